/* More raw instructions of sm_90a: counters in global memory by which the blocks of a grid tell each other what is
 * done (PTX ISA, "Memory Consistency Model"). What all threads of a block did before a barrier comes before a count
 * that one of them makes after it, and that before what the threads of another block do after a barrier that follows
 * their own count, or their wait. */
#ifndef KILN_KERNELS_ARCH_SM90A_COUNTERS_H
#define KILN_KERNELS_ARCH_SM90A_COUNTERS_H

#include "kernels/arch/sm90a.h"

/* Counts one more. Returns the count before. */
KILN_SM90A uint32_t kiln_sm90a_count(uint32_t *counter) {
    uint32_t before;
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(counter) : "memory");
    return before;
}

/* Waits until the count is at least that. Only for what blocks of lower numbers count: these have begun. */
KILN_SM90A void kiln_sm90a_wait_count(const uint32_t *counter, uint32_t count) {
    uint32_t counted;
    for (;;) {
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(counted) : "l"(counter) : "memory");
        if (counted >= count) return;
        __nanosleep(64);
    }
}

#endif
