/* A vector's elements as f32, all of them at once and converted two by two where the target can: for kernels that would
 * otherwise be bound by instructions instead of memory. */
#ifndef KILN_KERNELS_COMMON_VALUES_H
#define KILN_KERNELS_COMMON_VALUES_H

#include "kernels/common/math/special.h"

#if defined(KILN_PART_f16)

#if defined(__CUDACC__)
KILN_INLINE void kiln_pair_values(float *values, uint32_t word) {
    kiln_ptx_cvt_f32_f16x2(values, word);
}
KILN_INLINE uint32_t kiln_pair_of(const float *values) {
    return kiln_ptx_cvt_rn_f16x2_f32(values);
}
#else
typedef _Float16 kiln_pair __attribute__((ext_vector_type(2)));
KILN_INLINE void kiln_pair_values(float *values, uint32_t word) {
    kiln_pair pair = __builtin_bit_cast(kiln_pair, word);
    values[0] = (float)pair.x;
    values[1] = (float)pair.y;
}
KILN_INLINE uint32_t kiln_pair_of(const float *values) {
    return __builtin_bit_cast(uint32_t, (kiln_pair){(_Float16)values[0], (_Float16)values[1]});
}
#endif

#elif defined(KILN_PART_bf16)

KILN_INLINE void kiln_pair_values(float *values, uint32_t word) {
#if defined(__CUDACC__)
    kiln_ptx_f32_of_bf16x2(values, word);
#else
    values[0] = kiln_float(word << 16);
    values[1] = kiln_float(word & 0xffff0000u);
#endif
}

/* The upper half is value rounded to nearest even. A NaN of AMD's arithmetic has the payload of an operand, which was
 * bf16, or none, so that rounding leaves it a NaN. NVIDIA's is 0x7fffffff, which would overflow. */
KILN_INLINE uint32_t kiln_rounded_to_bf16(float value) {
    uint32_t bits = kiln_bits(value), rounded = bits + (bits >> 16 & 1u) + 0x7fffu;
#if defined(__CUDACC__)
    rounded = value == value ? rounded : 0x7fff0000u;
#endif
    return rounded;
}

KILN_INLINE uint32_t kiln_pair_of(const float *values) {
#if defined(__HIP__)
    return __builtin_amdgcn_perm(kiln_rounded_to_bf16(values[1]), kiln_rounded_to_bf16(values[0]), 0x07060302u);
#elif __CUDA_ARCH__ >= 800
    return kiln_ptx_cvt_rn_bf16x2_f32(values);
#else
    return __byte_perm(kiln_rounded_to_bf16(values[0]), kiln_rounded_to_bf16(values[1]), 0x7632);
#endif
}

#endif

/* values has KILN_VECTOR elements. Values that become a vector are results of arithmetic on elements. */
KILN_INLINE void kiln_vector_values(float *values, kiln_vector vector) {
    KILN_UNROLL
    for (int i = 0; i < 4; i++) {
#if defined(KILN_PART_f32)
        values[i] = kiln_float(vector.words[i]);
#else
        kiln_pair_values(&values[2 * i], vector.words[i]);
#endif
    }
}

KILN_INLINE kiln_vector kiln_vector_of(const float *values) {
    kiln_vector vector;
    KILN_UNROLL
    for (int i = 0; i < 4; i++) {
#if defined(KILN_PART_f32)
        vector.words[i] = kiln_bits(values[i]);
#else
        vector.words[i] = kiln_pair_of(&values[2 * i]);
#endif
    }
    return vector;
}

#endif
