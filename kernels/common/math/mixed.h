/* Arithmetic on a vector's elements in f32, which take no conversion where the device has instructions for both types
 * (sm_100). The results are those of converted elements. */
#ifndef KILN_KERNELS_COMMON_MATH_MIXED_H
#define KILN_KERNELS_COMMON_MATH_MIXED_H

#include "kernels/common/values.h"

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000 && !defined(KILN_PART_f32)

#include "kernels/arch/sm100.h"

#if defined(KILN_PART_f16)
#define KILN_MIXED_SUB kiln_sm100_sub_f16x2
#define KILN_MIXED_FMA kiln_sm100_fma_f16x2
#else
#define KILN_MIXED_SUB kiln_sm100_sub_bf16x2
#define KILN_MIXED_FMA kiln_sm100_fma_bf16x2
#endif

/* The elements less c. */
KILN_INLINE void kiln_vector_less(float *values, kiln_vector vector, float c) {
    KILN_UNROLL
    for (int i = 0; i < 4; i++)
        KILN_MIXED_SUB(&values[2 * i], vector.words[i], c);
}

/* Adds the products of two vectors' elements to sums. */
KILN_INLINE void kiln_vector_products(float *sums, kiln_vector a, kiln_vector b) {
    KILN_UNROLL
    for (int i = 0; i < 4; i++)
        KILN_MIXED_FMA(&sums[2 * i], a.words[i], b.words[i]);
}

#else

KILN_INLINE void kiln_vector_less(float *values, kiln_vector vector, float c) {
    kiln_vector_values(values, vector);
    KILN_UNROLL
    for (int i = 0; i < KILN_VECTOR; i++)
        values[i] -= c;
}

KILN_INLINE void kiln_vector_products(float *sums, kiln_vector a, kiln_vector b) {
    float of_a[KILN_VECTOR], of_b[KILN_VECTOR];
    kiln_vector_values(of_a, a);
    kiln_vector_values(of_b, b);
    KILN_UNROLL
    for (int i = 0; i < KILN_VECTOR; i++)
        sums[i] = KILN_FMA(of_a[i], of_b[i], sums[i]);
}

#endif

#endif
