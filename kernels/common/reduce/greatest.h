/* The greatest of many elements, as an ordering key (total_order.h): NaN counts as greater than every number. */
#ifndef KILN_KERNELS_COMMON_REDUCE_GREATEST_H
#define KILN_KERNELS_COMMON_REDUCE_GREATEST_H

#include "kernels/common/device.h"
#include "kernels/common/reduce/total_order.h"
#include "kernels/common/values.h"

#if !defined(KILN_PART_f32)
/* The greater of the keys of two elements. */
KILN_INLINE uint32_t kiln_greatest_of_pair(uint32_t word) {
    float values[2];
    kiln_pair_values(values, word);
    uint32_t first = kiln_order_key(values[0]), second = kiln_order_key(values[1]);
    return first > second ? first : second;
}
#endif

#if defined(__CUDACC__) && __CUDA_ARCH__ >= 800
#include "kernels/arch/sm80.h"

/* NVIDIA has maxima that NaN wins, of two 16-bit elements at a time: elements are compared as they were read. */
typedef kiln_vector kiln_greatest;

#if defined(KILN_PART_f32)
#define KILN_GREATEST_NONE 0xff800000u
#elif defined(KILN_PART_f16)
#define KILN_GREATEST_NONE 0xfc00fc00u
#else
#define KILN_GREATEST_NONE 0xff80ff80u
#endif

KILN_INLINE uint32_t kiln_greatest_word(uint32_t a, uint32_t b) {
#if defined(KILN_PART_f32)
    return kiln_bits(kiln_sm80_greater_or_nan_f32(kiln_float(a), kiln_float(b)));
#elif defined(KILN_PART_f16)
    return kiln_sm80_greater_or_nan_f16x2(a, b);
#else
    return kiln_sm80_greater_or_nan_bf16x2(a, b);
#endif
}

KILN_INLINE kiln_greatest kiln_greatest_none(void) {
    kiln_greatest none = {{KILN_GREATEST_NONE, KILN_GREATEST_NONE, KILN_GREATEST_NONE, KILN_GREATEST_NONE}};
    return none;
}

KILN_INLINE void kiln_greatest_take(kiln_greatest *greatest, kiln_vector vector) {
    KILN_UNROLL
    for (int i = 0; i < 4; i++)
        greatest->words[i] = kiln_greatest_word(greatest->words[i], vector.words[i]);
}

KILN_INLINE uint32_t kiln_greatest_key(kiln_greatest greatest) {
    uint32_t word = kiln_greatest_word(kiln_greatest_word(greatest.words[0], greatest.words[1]),
                                       kiln_greatest_word(greatest.words[2], greatest.words[3]));
#if defined(KILN_PART_f32)
    return kiln_order_key(kiln_float(word));
#else
    return kiln_greatest_of_pair(word);
#endif
}

#elif defined(__HIP__) && !defined(KILN_PART_f32)
typedef int16_t kiln_greatest_signed __attribute__((ext_vector_type(2)));
typedef uint16_t kiln_greatest_unsigned __attribute__((ext_vector_type(2)));

/* Elements are compared as integers, two at a time. Of bits as signed integers the greatest is that of the greatest
 * element if one is not negative, NaN included; of bits as unsigned integers the least is if all are negative, and the
 * greatest shows a negative NaN. */
typedef struct kiln_greatest {
    kiln_greatest_signed positive;
    kiln_greatest_unsigned negative, magnitude;
} kiln_greatest;

KILN_INLINE kiln_greatest kiln_greatest_none(void) {
    const kiln_greatest_unsigned infinity = KILN_ELEMENT_NEGATIVE_INFINITY;
    return {(kiln_greatest_signed)(int16_t)KILN_ELEMENT_NEGATIVE_INFINITY, infinity, infinity};
}

KILN_INLINE void kiln_greatest_take(kiln_greatest *greatest, kiln_vector vector) {
    KILN_UNROLL
    for (int i = 0; i < 4; i++) {
        const kiln_greatest_unsigned bits = __builtin_bit_cast(kiln_greatest_unsigned, vector.words[i]);
        greatest->positive =
            __builtin_elementwise_max(greatest->positive, __builtin_bit_cast(kiln_greatest_signed, vector.words[i]));
        greatest->negative = __builtin_elementwise_min(greatest->negative, bits);
        greatest->magnitude = __builtin_elementwise_max(greatest->magnitude, bits);
    }
}

KILN_INLINE uint32_t kiln_greatest_key(kiln_greatest greatest) {
    uint16_t bits[2];
    KILN_UNROLL
    for (int i = 0; i < 2; i++) {
        bits[i] = greatest.positive[i] < 0 ? greatest.negative[i] : (uint16_t)greatest.positive[i];
        bits[i] = greatest.magnitude[i] > KILN_ELEMENT_NEGATIVE_INFINITY ? greatest.magnitude[i] : bits[i];
    }
    return kiln_greatest_of_pair((uint32_t)bits[1] << 16 | bits[0]);
}

#else
typedef struct kiln_greatest {
    float max;
    uint32_t nan; /* whether there was one */
} kiln_greatest;

KILN_INLINE kiln_greatest kiln_greatest_none(void) {
    kiln_greatest none = {-KILN_INFINITY, 0};
    return none;
}

/* NaN, which maxima ignore, is looked for in pairs of elements. */
KILN_INLINE void kiln_greatest_take(kiln_greatest *greatest, kiln_vector vector) {
    float values[KILN_VECTOR];
    kiln_vector_values(values, vector);
    KILN_UNROLL
    for (int i = 0; i < KILN_VECTOR; i++)
        greatest->max = kiln_fast_max(values[i], greatest->max);
    KILN_UNROLL
    for (int i = 0; i < KILN_VECTOR; i += 2) {
        bool unordered = (values[i] != values[i]) | (values[i + 1] != values[i + 1]);
        greatest->nan = unordered ? 1 : greatest->nan;
    }
}

KILN_INLINE uint32_t kiln_greatest_key(kiln_greatest greatest) {
    return kiln_order_key(greatest.nan ? __builtin_nanf("") : greatest.max);
}
#endif

#endif
