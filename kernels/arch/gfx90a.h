/* Raw instructions of gfx90a and later CDNA: matrix products by waves. Those of int8 are of gfx90a alone: gfx942 has
 * others (gfx942.h). */
#ifndef KILN_KERNELS_ARCH_GFX90A_H
#define KILN_KERNELS_ARCH_GFX90A_H

#include <stdint.h>

/* ---- 32 x 32 ---- */

/* A lane's sums of a tile of 32 x 32: element i is of row i / 4 * 8 + lane / 32 * 4 + i % 4 and of column lane % 32. */
typedef float kiln_gfx90a_sums __attribute__((ext_vector_type(16)));

/* sums[32 x 32] += a[32 x 8] b[8 x 32]. A lane gives 4 elements, from k = lane / 32 * 4 on, of row lane % 32 of a and
 * of column lane % 32 of b. */
static __attribute__((device, always_inline)) inline kiln_gfx90a_sums
kiln_gfx90a_mfma_f16(const uint32_t *a, const uint32_t *b, kiln_gfx90a_sums sums) {
    typedef _Float16 half4 __attribute__((ext_vector_type(4)));
    const uint64_t left = (uint64_t)a[1] << 32 | a[0], right = (uint64_t)b[1] << 32 | b[0];
    return __builtin_amdgcn_mfma_f32_32x32x8f16(__builtin_bit_cast(half4, left), __builtin_bit_cast(half4, right), sums,
                                                0, 0, 0);
}

static __attribute__((device, always_inline)) inline kiln_gfx90a_sums
kiln_gfx90a_mfma_bf16(const uint32_t *a, const uint32_t *b, kiln_gfx90a_sums sums) {
    typedef short short4 __attribute__((ext_vector_type(4)));
    const uint64_t left = (uint64_t)a[1] << 32 | a[0], right = (uint64_t)b[1] << 32 | b[0];
    return __builtin_amdgcn_mfma_f32_32x32x8bf16_1k(__builtin_bit_cast(short4, left), __builtin_bit_cast(short4, right),
                                                    sums, 0, 0, 0);
}

/* ---- 16 x 16 ---- */

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

/* sums[16 x 16] += a[16 x 16] b[16 x 16], laid out as kiln_gfx90a_mfma_16_f16's. */
static __attribute__((device, always_inline)) inline kiln_gfx90a_sums_16
kiln_gfx90a_mfma_16_bf16(const uint32_t *a, const uint32_t *b, kiln_gfx90a_sums_16 sums) {
    typedef short short4 __attribute__((ext_vector_type(4)));
    const uint64_t left = (uint64_t)a[1] << 32 | a[0], right = (uint64_t)b[1] << 32 | b[0];
    return __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(__builtin_bit_cast(short4, left),
                                                     __builtin_bit_cast(short4, right), sums, 0, 0, 0);
}

/* ---- int8, exactly ---- */

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
