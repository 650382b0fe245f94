/* How many threads the process may use, and on which CPUs. */
#ifndef KILN_LOADER_CPU_THREADS_H
#define KILN_LOADER_CPU_THREADS_H

#include <sched.h>
#include <stdint.h>

/* A set of CPUs, large enough for any Linux kernel (8192). */
typedef struct kiln__cpu_mask {
    cpu_set_t sets[8192 / CPU_SETSIZE];
} kiln__cpu_mask;

/* The CPUs that the calling thread may run on. Returns their number, at least 1. If the kernel does not report them,
 * the mask is empty and the result is 1. */
uint32_t kiln__cpu_mask_read(kiln__cpu_mask *out_mask);

/* Removes cpu from the calling thread's affinity mask, unless it is the only one left; a thread running there moves. -1
 * removes none. *avoided, initially -1, is the CPU removed by the previous call, which is allowed again. */
void kiln__cpu_avoid(int cpu, int *avoided);

/* Hints to the processor that this is a spin-wait loop. */
static inline void kiln__cpu_pause(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* The CPU quota of the process in CPUs, rounded up: the smallest of its cgroup (v1 or v2) and that cgroup's ancestors.
 * UINT32_MAX if there is none, or if /proc or /sys is missing. root is prefixed to every path that is read ("" for the
 * machine's own). */
uint32_t kiln__cpu_quota(const char *root);

#endif
