/* Raw instructions of gfx12: matrix products by waves of 32. */
#ifndef KILN_KERNELS_ARCH_GFX12_H
#define KILN_KERNELS_ARCH_GFX12_H

#include <stdint.h>

/* A lane's sums of a tile of 16 x 16: element i is of row lane / 16 * 8 + i and of column lane % 16. */
typedef float kiln_gfx12_sums __attribute__((ext_vector_type(8)));

/* 8 elements of 16 bits, from k = lane / 16 * 8 on: of row lane % 16 of a, or of column lane % 16 of b. */
typedef uint32_t kiln_gfx12_row __attribute__((ext_vector_type(4)));

/* sums[16 x 16] += a[16 x 16] b[16 x 16]. */
static __attribute__((device, always_inline)) inline kiln_gfx12_sums
kiln_gfx12_wmma_f16(kiln_gfx12_row a, kiln_gfx12_row b, kiln_gfx12_sums sums) {
    typedef _Float16 half8 __attribute__((ext_vector_type(8)));
    return __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(__builtin_bit_cast(half8, a), __builtin_bit_cast(half8, b),
                                                            sums);
}

static __attribute__((device, always_inline)) inline kiln_gfx12_sums
kiln_gfx12_wmma_bf16(kiln_gfx12_row a, kiln_gfx12_row b, kiln_gfx12_sums sums) {
    typedef short short8 __attribute__((ext_vector_type(8)));
    return __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32_gfx12(__builtin_bit_cast(short8, a),
                                                             __builtin_bit_cast(short8, b), sums);
}

/* Laid out as kiln_gfx12_sums. */
typedef int32_t kiln_gfx12_sums_i32 __attribute__((ext_vector_type(8)));

/* sums[16 x 16] += a[16 x 16] b[16 x 16], of int8, exactly, and of E4M3 in f32: 8 bytes, from k = lane / 16 * 8 on, of
 * row lane % 16 of a and of column lane % 16 of b. */
typedef int32_t kiln_gfx12_bytes __attribute__((ext_vector_type(2)));

static __attribute__((device, always_inline)) inline kiln_gfx12_sums_i32
kiln_gfx12_wmma_i8(const uint32_t *a, const uint32_t *b, kiln_gfx12_sums_i32 sums) {
    const kiln_gfx12_bytes left = {(int32_t)a[0], (int32_t)a[1]}, right = {(int32_t)b[0], (int32_t)b[1]};
    return __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32_gfx12(true, left, true, right, sums, false);
}

static __attribute__((device, always_inline)) inline kiln_gfx12_sums
kiln_gfx12_wmma_e4m3(const uint32_t *a, const uint32_t *b, kiln_gfx12_sums sums) {
    const kiln_gfx12_bytes left = {(int32_t)a[0], (int32_t)a[1]}, right = {(int32_t)b[0], (int32_t)b[1]};
    return __builtin_amdgcn_wmma_f32_16x16x16_fp8_fp8_w32_gfx12(left, right, sums);
}

#endif
