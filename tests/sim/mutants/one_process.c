/* To be preloaded where processes fork for mutants: each takes itself for the one that it came from, which code that
 * refuses to work in a forked child, as libkiln and the simulated drivers, would notice by its number, or by memory
 * that is zeroed on fork. */
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#pragma GCC visibility push(default)

static pid_t first;

/* Processes of mutants begin only where it is. */
pid_t kiln_sim_one_process(void);
pid_t kiln_sim_one_process(void) {
    return getpid();
}

pid_t getpid(void) {
    if (!first) first = (pid_t)syscall(SYS_getpid);
    return first;
}

/* The processes have one thread. */
pid_t gettid(void) {
    return getpid();
}

int madvise(void *address, size_t size, int advice) {
    return advice == MADV_WIPEONFORK ? 0 : (int)syscall(SYS_madvise, address, size, advice);
}
