/* How many threads the process may use, and on which CPUs. */
#ifndef KILN_LOADER_CPU_THREADS_H
#define KILN_LOADER_CPU_THREADS_H

#include <sched.h>
#include <stdint.h>

/* A set of CPUs, with room for as many as Linux can be built for (8192). */
typedef struct kiln__cpu_mask {
    cpu_set_t sets[8192 / CPU_SETSIZE];
} kiln__cpu_mask;

/* The CPUs that the calling thread may run on. Returns their number, at least 1; where the kernel does not say, the
 * mask is empty and the number is 1. */
uint32_t kiln__cpu_mask_read(kiln__cpu_mask *out_mask);

/* Keeps the calling thread off this one of the CPUs that it may run on, if there is another, and moves it if it is
 * there; -1: lets it run on all. *avoided, -1 at first, is the one of the call before, where it may run again. */
void kiln__cpu_avoid(int cpu, int *avoided);

/* Tells the processor that the calling thread waits in a loop. */
static inline void kiln__cpu_pause(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* The CPU time that the cgroups of the process allow, in CPUs, rounded up: the least quota of its cgroup, version 1 or
 * 2, and of those above it. UINT32_MAX without a quota, and where /proc or /sys is missing. root is put before every
 * path that is read ("" for the machine's own). */
uint32_t kiln__cpu_quota(const char *root);

#endif
