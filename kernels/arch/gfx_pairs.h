/* Two integers of 16 bits at once on AMD, by an instruction that the compiler does not choose. */
#ifndef KILN_KERNELS_ARCH_GFX_PAIRS_H
#define KILN_KERNELS_ARCH_GFX_PAIRS_H

#include <stdint.h>

/* In each half of a word twice the number and an addend, which is the same for both, without what is beyond 16 bits. */
static __attribute__((device, always_inline)) inline uint32_t kiln_gfx_twice_plus(uint32_t pair, uint32_t addend) {
    uint32_t sum;
    __asm__("v_pk_mad_u16 %0, %1, 2, %2 op_sel_hi:[1,0,0]" : "=v"(sum) : "v"(pair), "s"(addend));
    return sum;
}

#endif
