/* Raw instructions of sm_90a across a warp. */
#ifndef KILN_KERNELS_ARCH_SM90A_WARP_H
#define KILN_KERNELS_ARCH_SM90A_WARP_H

#include "kernels/arch/sm90a.h"

/* The greatest number of a warp, all of whose threads take part. */
KILN_SM90A uint32_t kiln_sm90a_warp_greatest(uint32_t value) {
    uint32_t greatest;
    asm volatile("redux.sync.max.u32 %0, %1, 0xffffffff;" : "=r"(greatest) : "r"(value));
    return greatest;
}

#endif
