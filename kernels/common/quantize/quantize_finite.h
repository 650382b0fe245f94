/* The codes of elements over the scale of their own, where it is known that none is infinite or NaN and that no product
 * is beyond the code's greatest number but by rounding: without bounds, and without a case for NaN.
 *
 * The includer defines KILN_QUANTIZE_MOST, the code's greatest number, KILN_QUANTIZE_FINITE(products), the codes of
 * four such numbers, and KILN_QUANTIZE_UNIT, what these are multiplied by beforehand. Included after quantize_gpu.h. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_QUANTIZE_FINITE_H
#define KILN_KERNELS_COMMON_QUANTIZE_QUANTIZE_FINITE_H

#include "kernels/common/device.h"
#include "kernels/common/math/float_bits.h"
#include "kernels/common/math/reciprocal_step.h"
#include "kernels/common/math/two.h"
#include "kernels/common/quantize/quantize_gpu.h"
#include "kernels/common/reduce/row_reduce.h"

/* kiln_of_other_half for bits. */
KILN_INLINE uint32_t kiln_bits_of_other_half(uint32_t bits, uint32_t step) {
#if defined(__CUDACC__)
    return __shfl_xor_sync(0xffffffffu, bits, 1 << step);
#else
    return kiln_bits(kiln_of_other_half(kiln_float(bits), step));
#endif
}

/* The products of a vector's elements. */
KILN_INLINE void kiln_vector_scaled(float *values, kiln_vector vector, float factor) {
    kiln_vector_values(values, vector);
    KILN_UNROLL
    for (int i = 0; i < KILN_VECTOR; i += 2) {
        const kiln_two two = kiln_two_mul(kiln_two_of(values[i], values[i + 1]), kiln_two_of(factor, factor));
        values[i] = two.x;
        values[i + 1] = two.y;
    }
}

/* kiln_int8_word (code_words.h) with sums that stay f32, which NVIDIA's compiler would copy as integers. */
KILN_INLINE uint32_t kiln_int8_finite(const float *values) {
    float sums[4];
    KILN_UNROLL
    for (int i = 0; i < 4; i++)
        sums[i] = values[i] + 0x1.8p23f;
    return kiln_float_bytes(sums, 1, 0);
}

/* Stores the codes of a vector. */
KILN_INLINE void kiln_quantize_put_finite(uint8_t *codes, kiln_vector vector, float factor) {
    float values[KILN_VECTOR];
    kiln_quantize_codes bytes;
    kiln_vector_scaled(values, vector, factor);
    KILN_UNROLL
    for (int word = 0; word < KILN_QUADS; word++)
        bytes.words[word] = KILN_QUANTIZE_FINITE(values + 4 * word);
    *(kiln_quantize_codes *)codes = bytes;
}

/* kiln_quantize_scale where smax is the code's greatest number, and 1 over it: kiln_scale_quickly (codes_sm90a.h) says
 * why. bits: of the greatest magnitude, or of NaN. Returns whether they are right, which they are if no element is
 * infinite or NaN, and the greatest magnitude is not far from 1. */
KILN_INLINE bool kiln_quantize_finite_scale(uint32_t bits, float *scale, float *factor) {
    const float greatest = kiln_float(bits), start = 1.0f / KILN_QUANTIZE_MOST, near = greatest * start;
    *scale = KILN_FMA(KILN_FMA(-KILN_QUANTIZE_MOST, near, greatest), start, near);
    *factor = kiln_reciprocal_step(*scale, kiln_fast_reciprocal(*scale));
    return bits - kiln_bits(0x1p-64f) <= kiln_bits(0x1p64f) - kiln_bits(0x1p-64f) && ~kiln_bits(*scale) << 9;
}

#endif
