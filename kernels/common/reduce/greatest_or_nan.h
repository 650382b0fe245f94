/* The greatest magnitude of many vectors' elements as the bits of an f32, or those of a NaN, without its sign, if there
 * is one: two 16-bit elements by one instruction where NVIDIA has it, by two on AMD; else as integers, whose order is
 * that of magnitudes without a sign, with NaN above infinity. */
#ifndef KILN_KERNELS_COMMON_REDUCE_GREATEST_OR_NAN_H
#define KILN_KERNELS_COMMON_REDUCE_GREATEST_OR_NAN_H

#include "kernels/common/device.h"
#include "kernels/common/math/pairs.h"
#include "kernels/common/values.h"

/* Each kind of device has its type, that of a word's elements, the greater of two, and its bits. */
#if KILN_PAIRS_COMPARED

typedef uint32_t kiln_greatest_or_nan; /* of each half, with some sign */

KILN_INLINE kiln_greatest_or_nan kiln_greatest_or_nan_of_word(uint32_t word) {
    return word;
}
KILN_INLINE kiln_greatest_or_nan kiln_greatest_or_nan_greater(kiln_greatest_or_nan a, kiln_greatest_or_nan b) {
    return kiln_pair_greater_or_nan(a, b);
}
KILN_INLINE uint32_t kiln_greatest_or_nan_bits(kiln_greatest_or_nan greatest) {
    float values[2];
    kiln_pair_values(values, kiln_pair_greater_or_nan(greatest, greatest >> 16));
    return kiln_bits(values[0]) & 0x7fffffffu;
}

#elif defined(KILN_PART_f32) && defined(__CUDACC__) && __CUDA_ARCH__ >= 860

#include "kernels/arch/sm86.h"

typedef float kiln_greatest_or_nan; /* with some sign */

KILN_INLINE kiln_greatest_or_nan kiln_greatest_or_nan_of_word(uint32_t word) {
    return kiln_float(word);
}
KILN_INLINE kiln_greatest_or_nan kiln_greatest_or_nan_greater(kiln_greatest_or_nan a, kiln_greatest_or_nan b) {
    return kiln_sm86_greater_or_nan_f32(a, b);
}
KILN_INLINE uint32_t kiln_greatest_or_nan_bits(kiln_greatest_or_nan greatest) {
    return kiln_bits(greatest) & 0x7fffffffu;
}

#elif defined(KILN_PART_f32)

typedef uint32_t kiln_greatest_or_nan; /* twice the bits */

KILN_INLINE kiln_greatest_or_nan kiln_greatest_or_nan_of_word(uint32_t word) {
    return word << 1;
}
KILN_INLINE kiln_greatest_or_nan kiln_greatest_or_nan_greater(kiln_greatest_or_nan a, kiln_greatest_or_nan b) {
    return b > a ? b : a;
}
KILN_INLINE uint32_t kiln_greatest_or_nan_bits(kiln_greatest_or_nan greatest) {
    return greatest >> 1;
}

#elif defined(__HIP__)

typedef uint16_t kiln_greatest_or_nan __attribute__((ext_vector_type(2))); /* twice the bits, of each half */

KILN_INLINE kiln_greatest_or_nan kiln_greatest_or_nan_of_word(uint32_t word) {
    return __builtin_bit_cast(kiln_greatest_or_nan, word) << (uint16_t)1;
}
KILN_INLINE kiln_greatest_or_nan kiln_greatest_or_nan_greater(kiln_greatest_or_nan a, kiln_greatest_or_nan b) {
    return __builtin_elementwise_max(a, b);
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

KILN_INLINE kiln_greatest_or_nan kiln_greatest_or_nan_of_word(uint32_t word) {
    return {word << 1, word << 17};
}
KILN_INLINE kiln_greatest_or_nan kiln_greatest_or_nan_greater(kiln_greatest_or_nan a, kiln_greatest_or_nan b) {
    return {b.upper > a.upper ? b.upper : a.upper, b.lower > a.lower ? b.lower : a.lower};
}
KILN_INLINE uint32_t kiln_greatest_or_nan_bits(kiln_greatest_or_nan greatest) {
    const uint32_t twice = greatest.upper > greatest.lower ? greatest.upper : greatest.lower;
    return kiln_bits(kiln_element_to_f32((kiln_element)(twice >> 17)));
}

#endif

KILN_INLINE kiln_greatest_or_nan kiln_greatest_or_nan_of(kiln_vector vector) {
    kiln_greatest_or_nan greatest = kiln_greatest_or_nan_of_word(vector.words[0]);
    KILN_UNROLL
    for (int i = 1; i < 4; i++)
        greatest = kiln_greatest_or_nan_greater(greatest, kiln_greatest_or_nan_of_word(vector.words[i]));
    return greatest;
}

KILN_INLINE void kiln_greatest_or_nan_take(kiln_greatest_or_nan *greatest, kiln_vector vector) {
    *greatest = kiln_greatest_or_nan_greater(*greatest, kiln_greatest_or_nan_of(vector));
}

#endif
