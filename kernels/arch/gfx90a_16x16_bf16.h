/* Raw instructions of gfx90a and later CDNA: products of 16 x 16 of bf16 by waves. */
#ifndef KILN_KERNELS_ARCH_GFX90A_16X16_BF16_H
#define KILN_KERNELS_ARCH_GFX90A_16X16_BF16_H

#include "kernels/arch/gfx90a_16x16.h"

/* sums[16 x 16] += a[16 x 16] b[16 x 16], laid out as kiln_gfx90a_mfma_16_f16's. */
static __attribute__((device, always_inline)) inline kiln_gfx90a_sums_16
kiln_gfx90a_mfma_16_bf16(const uint32_t *a, const uint32_t *b, kiln_gfx90a_sums_16 sums) {
    typedef short short4 __attribute__((ext_vector_type(4)));
    const uint64_t left = (uint64_t)a[1] << 32 | a[0], right = (uint64_t)b[1] << 32 | b[0];
    return __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(__builtin_bit_cast(short4, left),
                                                     __builtin_bit_cast(short4, right), sums, 0, 0, 0);
}

#endif
