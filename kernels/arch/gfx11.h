/* Raw instructions of gfx11: matrix products by waves of 32. */
#ifndef KILN_KERNELS_ARCH_GFX11_H
#define KILN_KERNELS_ARCH_GFX11_H

#include <stdint.h>

/* A lane's sums of a tile of 16 x 16: element i is of row 2 i + lane / 16 and of column lane % 16. */
typedef float kiln_gfx11_sums __attribute__((ext_vector_type(8)));

/* 16 elements of 16 bits: row lane % 16 of a, or column lane % 16 of b. Lanes 16 to 31 have the same as 0 to 15. */
typedef uint32_t kiln_gfx11_row __attribute__((ext_vector_type(8)));

/* sums[16 x 16] += a[16 x 16] b[16 x 16]. */
static __attribute__((device, always_inline)) inline kiln_gfx11_sums
kiln_gfx11_wmma_f16(kiln_gfx11_row a, kiln_gfx11_row b, kiln_gfx11_sums sums) {
    typedef _Float16 half16 __attribute__((ext_vector_type(16)));
    return __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(__builtin_bit_cast(half16, a), __builtin_bit_cast(half16, b),
                                                      sums);
}

static __attribute__((device, always_inline)) inline kiln_gfx11_sums
kiln_gfx11_wmma_bf16(kiln_gfx11_row a, kiln_gfx11_row b, kiln_gfx11_sums sums) {
    typedef short short16 __attribute__((ext_vector_type(16)));
    return __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(__builtin_bit_cast(short16, a), __builtin_bit_cast(short16, b),
                                                       sums);
}

/* Laid out as kiln_gfx11_sums. */
typedef int32_t kiln_gfx11_sums_i32 __attribute__((ext_vector_type(8)));

/* sums[16 x 16] += a[16 x 16] b[16 x 16], exactly: the 16 bytes of row lane % 16 of a and of column lane % 16 of b, of
 * which lanes 16 to 31 have the same as 0 to 15. */
static __attribute__((device, always_inline)) inline kiln_gfx11_sums_i32
kiln_gfx11_wmma_i8(const uint32_t *a, const uint32_t *b, kiln_gfx11_sums_i32 sums) {
    typedef int32_t int4 __attribute__((ext_vector_type(4)));
    const int4 left = {(int32_t)a[0], (int32_t)a[1], (int32_t)a[2], (int32_t)a[3]};
    const int4 right = {(int32_t)b[0], (int32_t)b[1], (int32_t)b[2], (int32_t)b[3]};
    return __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32(true, left, true, right, sums, false);
}

#endif
