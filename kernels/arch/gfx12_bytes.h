/* Raw instructions of gfx12: products of matrices of bytes by waves of 32. */
#ifndef KILN_KERNELS_ARCH_GFX12_BYTES_H
#define KILN_KERNELS_ARCH_GFX12_BYTES_H

#include "kernels/arch/gfx12.h"

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
