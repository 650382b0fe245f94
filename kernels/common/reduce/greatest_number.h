/* The greatest of many vectors' elements or of their magnitudes, of which NaN is none: two 16-bit elements at a time
 * where NVIDIA has an instruction for them. */
#ifndef KILN_KERNELS_COMMON_REDUCE_GREATEST_NUMBER_H
#define KILN_KERNELS_COMMON_REDUCE_GREATEST_NUMBER_H

#include "kernels/common/values.h"

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800 && !defined(KILN_PART_f32)

#include "kernels/arch/sm80.h"

#if defined(KILN_PART_f16)
#define KILN_GREATER_PAIR kiln_sm80_max_f16x2
#else
#define KILN_GREATER_PAIR kiln_sm80_max_bf16x2
#endif

typedef kiln_vector kiln_greatest_number; /* of each place */

/* That of no elements. */
KILN_INLINE kiln_greatest_number kiln_greatest_number_none(bool magnitudes) {
    const uint32_t word = magnitudes ? 0 : KILN_ELEMENT_NEGATIVE_INFINITY * 0x10001u;
    return {{word, word, word, word}};
}

KILN_INLINE void kiln_greatest_number_take(kiln_greatest_number *greatest, kiln_vector vector, bool magnitudes) {
    KILN_UNROLL
    for (int i = 0; i < 4; i++)
        greatest->words[i] =
            KILN_GREATER_PAIR(greatest->words[i], magnitudes ? vector.words[i] & 0x7fff7fffu : vector.words[i]);
}

KILN_INLINE void kiln_greatest_number_take_one(kiln_greatest_number *greatest, kiln_element element, bool magnitudes) {
    greatest->words[0] = KILN_GREATER_PAIR(greatest->words[0], (magnitudes ? element & 0x7fffu : element) * 0x10001u);
}

KILN_INLINE float kiln_greatest_number_value(kiln_greatest_number greatest) {
    float values[2];
    kiln_pair_values(values, KILN_GREATER_PAIR(KILN_GREATER_PAIR(greatest.words[0], greatest.words[1]),
                                               KILN_GREATER_PAIR(greatest.words[2], greatest.words[3])));
    return kiln_fast_max(values[0], values[1]);
}

#else

typedef float kiln_greatest_number;

KILN_INLINE kiln_greatest_number kiln_greatest_number_none(bool magnitudes) {
    return magnitudes ? 0.0f : -KILN_INFINITY;
}

KILN_INLINE void kiln_greatest_number_take(kiln_greatest_number *greatest, kiln_vector vector, bool magnitudes) {
    float values[KILN_VECTOR];
    kiln_vector_values(values, vector);
    KILN_UNROLL
    for (int i = 0; i < KILN_VECTOR; i++)
        *greatest = kiln_fast_max(magnitudes ? __builtin_fabsf(values[i]) : values[i], *greatest);
}

KILN_INLINE void kiln_greatest_number_take_one(kiln_greatest_number *greatest, kiln_element element, bool magnitudes) {
    const float value = kiln_element_to_f32(element);
    *greatest = kiln_fast_max(magnitudes ? __builtin_fabsf(value) : value, *greatest);
}

KILN_INLINE float kiln_greatest_number_value(kiln_greatest_number greatest) {
    return greatest;
}

#endif

#endif
