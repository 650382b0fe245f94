/* Raw instructions of gfx90a and later CDNA: products of 16 x 16 by waves. */
#ifndef KILN_KERNELS_ARCH_GFX90A_16X16_H
#define KILN_KERNELS_ARCH_GFX90A_16X16_H

#include <stdint.h>

/* A lane's sums of a tile of 16 x 16: element i is of row lane / 16 * 4 + i and of column lane % 16. */
typedef float kiln_gfx90a_sums_16 __attribute__((ext_vector_type(4)));
typedef int32_t kiln_gfx90a_sums_16_i32 __attribute__((ext_vector_type(4)));

/* sums[16 x 16] += a[16 x 16] b[16 x 16]. A lane gives 4 elements, from k = lane / 16 * 4 on, of row lane % 16 of a and
 * of column lane % 16 of b. */
static __attribute__((device, always_inline)) inline kiln_gfx90a_sums_16
kiln_gfx90a_mfma_16_f16(const uint32_t *a, const uint32_t *b, kiln_gfx90a_sums_16 sums) {
    typedef _Float16 half4 __attribute__((ext_vector_type(4)));
    const uint64_t left = (uint64_t)a[1] << 32 | a[0], right = (uint64_t)b[1] << 32 | b[0];
    return __builtin_amdgcn_mfma_f32_16x16x16f16(__builtin_bit_cast(half4, left), __builtin_bit_cast(half4, right),
                                                 sums, 0, 0, 0);
}

#endif
