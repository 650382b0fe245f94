/* One more raw instruction of sm_90a: an addition to a word of shared memory that takes no branch. */
#ifndef KILN_KERNELS_ARCH_SM90A_TALLY_H
#define KILN_KERNELS_ARCH_SM90A_TALLY_H

#include "kernels/arch/sm90a.h"

/* Adds the amount to the word at the address, if the value is `least` or greater. */
KILN_SM90A void kiln_sm90a_tally(uint32_t shared, uint32_t amount, float value, float least) {
    asm volatile("{.reg .pred enough; setp.ge.f32 enough, %2, %3; @enough red.shared.add.u32 [%0], %1;}" ::"r"(shared),
                 "r"(amount), "f"(value), "f"(least)
                 : "memory");
}

#endif
