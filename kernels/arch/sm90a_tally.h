/* One more raw instruction of sm_90a: an addition to a word of shared memory whose sum is not asked for. */
#ifndef KILN_KERNELS_ARCH_SM90A_TALLY_H
#define KILN_KERNELS_ARCH_SM90A_TALLY_H

#include "kernels/arch/sm90a.h"

KILN_SM90A void kiln_sm90a_tally(uint32_t shared, uint32_t amount) {
    asm volatile("red.shared.add.u32 [%0], %1;" ::"r"(shared), "r"(amount) : "memory");
}

#endif
