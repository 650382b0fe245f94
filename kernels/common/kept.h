/* The elements of a row that a thread keeps in registers between two passes, as f32. With f32 these are its first 32,
 * so that a block reads rows of up to 8192 elements once; with 16 bits one vector, since reading so few bytes again
 * from a cache costs nothing (measured on an H100) and the code for each vector is twice as long. */
#ifndef KILN_KERNELS_COMMON_KEPT_H
#define KILN_KERNELS_COMMON_KEPT_H

#include "kernels/common/span.h"
#include "kernels/common/values.h"

enum { KILN_KEPT = sizeof(kiln_element) == sizeof(float) ? 8 : 1 }; /* vectors */

typedef float kiln_kept[KILN_KEPT][KILN_VECTOR];

/* The unrolled loop over the kept vectors, of which only those below `whole` are in the span; and the loop over the
 * vectors beyond them. */
#define KILN_FOR_KEPT(s, vector, k) \
    KILN_UNROLL                     \
    for (uint32_t k = 0, vector = (s).first; k < KILN_KEPT; k++, vector += (s).lanes)
#define KILN_FOR_BEYOND(s, vector) \
    for (uint32_t vector = (s).first + KILN_KEPT * (s).lanes; vector < (s).whole; vector += (s).lanes)

/* sum plus the squares of a vector's values. */
KILN_INLINE float kiln_add_squares(float sum, const float *values) {
    KILN_UNROLL
    for (int i = 0; i < KILN_VECTOR; i++)
        sum = KILN_FMA(values[i], values[i], sum);
    return sum;
}

/* A vector of values * scale * weight; weight may be NULL. */
KILN_INLINE kiln_vector kiln_weighted(const float *values, float scale, const kiln_element *weight) {
    float results[KILN_VECTOR], weights[KILN_VECTOR];
    KILN_UNROLL
    for (int i = 0; i < KILN_VECTOR; i++)
        weights[i] = 1.0f;
    if (weight) kiln_vector_values(weights, kiln_vector_load(weight));
    KILN_UNROLL
    for (int i = 0; i < KILN_VECTOR; i++)
        results[i] = values[i] * scale * weights[i];
    return kiln_vector_of(results);
}

#endif
