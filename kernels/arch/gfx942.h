/* Raw instructions of gfx942: products of matrices of bytes, of which a lane gives 8 of a row of a and of a column of
 * b, and codes of E4M3 FNUZ (kernels/common/formats/float8.h). */
#ifndef KILN_KERNELS_ARCH_GFX942_H
#define KILN_KERNELS_ARCH_GFX942_H

#include "kernels/arch/gfx90a.h"

/* Laid out as kiln_gfx90a_sums. */
typedef int32_t kiln_gfx942_sums_i32 __attribute__((ext_vector_type(16)));

static __attribute__((device, always_inline)) inline int64_t kiln_gfx942_bytes(const uint32_t *words) {
    return (int64_t)((uint64_t)words[1] << 32 | words[0]);
}

/* sums[32 x 32] += a[32 x 16] b[16 x 32], of int8, exactly: bytes from k = lane / 32 * 8 on. */
static __attribute__((device, always_inline)) inline kiln_gfx942_sums_i32
kiln_gfx942_mfma_i8(const uint32_t *a, const uint32_t *b, kiln_gfx942_sums_i32 sums) {
    return __builtin_amdgcn_mfma_i32_32x32x16_i8(kiln_gfx942_bytes(a), kiln_gfx942_bytes(b), sums, 0, 0, 0);
}

/* sums[16 x 16] += a[16 x 32] b[32 x 16], of int8, exactly: bytes from k = lane / 16 * 8 on. */
static __attribute__((device, always_inline)) inline kiln_gfx90a_sums_16_i32
kiln_gfx942_mfma_16_i8(const uint32_t *a, const uint32_t *b, kiln_gfx90a_sums_16_i32 sums) {
    return __builtin_amdgcn_mfma_i32_16x16x32_i8(kiln_gfx942_bytes(a), kiln_gfx942_bytes(b), sums, 0, 0, 0);
}

/* The same two of E4M3 FNUZ (kernels/common/formats/float8.h), in f32. */
static __attribute__((device, always_inline)) inline kiln_gfx90a_sums
kiln_gfx942_mfma_fnuz(const uint32_t *a, const uint32_t *b, kiln_gfx90a_sums sums) {
    return __builtin_amdgcn_mfma_f32_32x32x16_fp8_fp8(kiln_gfx942_bytes(a), kiln_gfx942_bytes(b), sums, 0, 0, 0);
}

static __attribute__((device, always_inline)) inline kiln_gfx90a_sums_16
kiln_gfx942_mfma_16_fnuz(const uint32_t *a, const uint32_t *b, kiln_gfx90a_sums_16 sums) {
    return __builtin_amdgcn_mfma_f32_16x16x32_fp8_fp8(kiln_gfx942_bytes(a), kiln_gfx942_bytes(b), sums, 0, 0, 0);
}

/* The codes in E4M3 FNUZ of 4 numbers of magnitudes of at most 240. */
static __attribute__((device, always_inline)) inline uint32_t kiln_gfx942_cvt_fnuz_x4(const float *values) {
    const int32_t low = __builtin_amdgcn_cvt_pk_fp8_f32(values[0], values[1], 0, false);
    return (uint32_t)__builtin_amdgcn_cvt_pk_fp8_f32(values[2], values[3], low, true);
}

#endif
