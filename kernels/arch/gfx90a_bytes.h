/* Raw instructions of gfx90a: products of matrices of int8, exactly. gfx942 has others (gfx942_bytes.h). */
#ifndef KILN_KERNELS_ARCH_GFX90A_BYTES_H
#define KILN_KERNELS_ARCH_GFX90A_BYTES_H

#include "kernels/arch/gfx90a.h"
#include "kernels/arch/gfx90a_16x16.h"

/* Laid out as kiln_gfx90a_sums. */
typedef int32_t kiln_gfx90a_sums_i32 __attribute__((ext_vector_type(16)));

/* sums[32 x 32] += a[32 x 8] b[8 x 32]. A lane gives 4 bytes, from k = lane / 32 * 4 on, of row lane % 32 of a and of
 * column lane % 32 of b. */
static __attribute__((device, always_inline)) inline kiln_gfx90a_sums_i32
kiln_gfx90a_mfma_i8(uint32_t a, uint32_t b, kiln_gfx90a_sums_i32 sums) {
    return __builtin_amdgcn_mfma_i32_32x32x8i8((int32_t)a, (int32_t)b, sums, 0, 0, 0);
}

/* sums[16 x 16] += a[16 x 16] b[16 x 16]. A lane gives 4 bytes, from k = lane / 16 * 4 on, of row lane % 16 of a and of
 * column lane % 16 of b. */
static __attribute__((device, always_inline)) inline kiln_gfx90a_sums_16_i32
kiln_gfx90a_mfma_16_i8(uint32_t a, uint32_t b, kiln_gfx90a_sums_16_i32 sums) {
    return __builtin_amdgcn_mfma_i32_16x16x16i8((int32_t)a, (int32_t)b, sums, 0, 0, 0);
}

#endif
