/* The greatest magnitude of many vectors' elements as the bits of an f32, or those of a NaN, without its sign, if there
 * is one: two 16-bit elements by one instruction where NVIDIA has it, by two on AMD; else as integers, whose order is
 * that of magnitudes without a sign, with NaN above infinity. */
#ifndef KILN_KERNELS_COMMON_GREATEST_OR_NAN_H
#define KILN_KERNELS_COMMON_GREATEST_OR_NAN_H

#include "kernels/common/pairs.h"
#include "kernels/common/values.h"

#if KILN_PAIRS_COMPARED

typedef kiln_vector kiln_greatest_or_nan; /* of each place, with some sign */

KILN_INLINE kiln_greatest_or_nan kiln_greatest_or_nan_of(kiln_vector vector) {
    return vector;
}

KILN_INLINE void kiln_greatest_or_nan_take(kiln_greatest_or_nan *greatest, kiln_vector vector) {
    KILN_UNROLL
    for (int i = 0; i < 4; i++)
        greatest->words[i] = kiln_pair_greater_or_nan(greatest->words[i], vector.words[i]);
}

KILN_INLINE uint32_t kiln_greatest_or_nan_bits(kiln_greatest_or_nan greatest) {
    const uint32_t pair = kiln_pair_greater_or_nan(kiln_pair_greater_or_nan(greatest.words[0], greatest.words[1]),
                                                   kiln_pair_greater_or_nan(greatest.words[2], greatest.words[3]));
    float values[2];
    kiln_pair_values(values, kiln_pair_greater_or_nan(pair, pair >> 16));
    return kiln_bits(values[0]) & 0x7fffffffu;
}

#elif defined(KILN_PART_f32)

#if defined(__CUDACC__) && __CUDA_ARCH__ >= 860
#include "kernels/arch/sm86_greater_or_nan.h"

typedef float kiln_greatest_or_nan; /* with some sign */

KILN_INLINE void kiln_greatest_or_nan_take(kiln_greatest_or_nan *greatest, kiln_vector vector) {
    KILN_UNROLL
    for (int i = 0; i < KILN_VECTOR; i++)
        *greatest = kiln_sm86_greater_or_nan_f32(*greatest, kiln_float(vector.words[i]));
}

KILN_INLINE kiln_greatest_or_nan kiln_greatest_or_nan_of(kiln_vector vector) {
    kiln_greatest_or_nan greatest = kiln_float(vector.words[0]);
    KILN_UNROLL
    for (int i = 1; i < KILN_VECTOR; i++)
        greatest = kiln_sm86_greater_or_nan_f32(greatest, kiln_float(vector.words[i]));
    return greatest;
}

KILN_INLINE uint32_t kiln_greatest_or_nan_bits(kiln_greatest_or_nan greatest) {
    return kiln_bits(greatest) & 0x7fffffffu;
}
#else
typedef uint32_t kiln_greatest_or_nan; /* twice the bits */

KILN_INLINE void kiln_greatest_or_nan_take(kiln_greatest_or_nan *greatest, kiln_vector vector) {
    KILN_UNROLL
    for (int i = 0; i < KILN_VECTOR; i++) {
        const uint32_t twice = vector.words[i] << 1;
        *greatest = twice > *greatest ? twice : *greatest;
    }
}

KILN_INLINE kiln_greatest_or_nan kiln_greatest_or_nan_of(kiln_vector vector) {
    kiln_greatest_or_nan greatest = 0;
    kiln_greatest_or_nan_take(&greatest, vector);
    return greatest;
}

KILN_INLINE uint32_t kiln_greatest_or_nan_bits(kiln_greatest_or_nan greatest) {
    return greatest >> 1;
}
#endif

#elif defined(__HIP__)

typedef uint16_t kiln_greatest_or_nan __attribute__((ext_vector_type(2))); /* twice the bits, of each half */

KILN_INLINE void kiln_greatest_or_nan_take(kiln_greatest_or_nan *greatest, kiln_vector vector) {
    KILN_UNROLL
    for (int i = 0; i < 4; i++)
        *greatest = __builtin_elementwise_max(*greatest, __builtin_bit_cast(kiln_greatest_or_nan, vector.words[i])
                                                             << (uint16_t)1);
}

KILN_INLINE kiln_greatest_or_nan kiln_greatest_or_nan_of(kiln_vector vector) {
    kiln_greatest_or_nan greatest = {0, 0};
    kiln_greatest_or_nan_take(&greatest, vector);
    return greatest;
}

KILN_INLINE uint32_t kiln_greatest_or_nan_bits(kiln_greatest_or_nan greatest) {
    const uint32_t twice = greatest.x > greatest.y ? greatest.x : greatest.y;
    return kiln_bits(kiln_element_to_f32((kiln_element)(twice / 2)));
}

#else

/* Twice the bits of each half, those of the upper half with some of the lower one's below them. */
typedef struct kiln_greatest_or_nan {
    uint32_t upper, lower;
} kiln_greatest_or_nan;

KILN_INLINE void kiln_greatest_or_nan_take(kiln_greatest_or_nan *greatest, kiln_vector vector) {
    KILN_UNROLL
    for (int i = 0; i < 4; i++) {
        const uint32_t upper = vector.words[i] << 1, lower = vector.words[i] << 17;
        greatest->upper = upper > greatest->upper ? upper : greatest->upper;
        greatest->lower = lower > greatest->lower ? lower : greatest->lower;
    }
}

KILN_INLINE kiln_greatest_or_nan kiln_greatest_or_nan_of(kiln_vector vector) {
    kiln_greatest_or_nan greatest = {0, 0};
    kiln_greatest_or_nan_take(&greatest, vector);
    return greatest;
}

KILN_INLINE uint32_t kiln_greatest_or_nan_bits(kiln_greatest_or_nan greatest) {
    const uint32_t twice = greatest.upper > greatest.lower ? greatest.upper : greatest.lower;
    return kiln_bits(kiln_element_to_f32((kiln_element)(twice >> 17)));
}

#endif

#endif
