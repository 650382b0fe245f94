/* SiLU and the tanh form of GELU, t sigmoid(t P(t^2)) as in math.h, in fewer instructions and with the same bits
 * everywhere: one source for host C and both device compilers. The includer (device.h, cpu.h) defines what math.h asks
 * for. */
#ifndef KILN_KERNELS_COMMON_MATH_GLU_EXACTLY_H
#define KILN_KERNELS_COMMON_MATH_GLU_EXACTLY_H

#include "kernels/common/math/math.h"
#include "kernels/common/math/reciprocal_step.h"

/* A device's instructions with the same results. NaN may become the bound. */
#if defined(KILN_PART)
#include "kernels/common/math/float_bits.h"
#include "kernels/common/math/minimum.h"
#if defined(__CUDACC__)
#include "kernels/arch/ptx.h"
#endif
#define KILN_GLU_MIN(t, bound) kiln_fast_min(t, bound)
#define KILN_GLU_SHL(x, count) kiln_float_shl(x, count)
#else
#define KILN_GLU_MIN(t, bound) ((t) < (bound) ? (t) : (bound))
#define KILN_GLU_SHL(x, count) kiln_float(kiln_bits(x) << (count))
#endif

/* 1 / sum, whose last bit is cleared, so that its fraction does not have ones alone, rounded to nearest. For elements
 * of 16 bits NVIDIA's devices start from the reciprocal of the sum as it is, and so need no instruction for the sum
 * that is not negative: of the sums of all such gates the result is the same (codes_test). */
KILN_INLINE float kiln_glu_reciprocal(float sum) {
#if defined(KILN_PART) && defined(__CUDACC__) && !defined(KILN_PART_f32)
    const float opposite = kiln_ptx_and_or(sum, ~1u, 0x80000000u), start = kiln_fast_reciprocal(sum);
    return KILN_FMA(KILN_FMA(opposite, start, 1.0f), start, start);
#elif defined(KILN_PART)
    const float even = kiln_float_and(sum, ~1u);
    return kiln_reciprocal_step(even, kiln_fast_reciprocal(even));
#else
    return 1.0f / kiln_float(kiln_bits(sum) & ~1u);
#endif
}

/* t P(t^2) of t limited to bound; SiLU's is the limited t itself. */
KILN_INLINE float kiln_glu_argument(float limited, const float *coefficients) {
    return limited * KILN_FMA(coefficients[1], limited * limited, coefficients[0]);
}

/* 1 + e^-x, |x| < 87.
 *
 * e^-x = 2^n q: x = r - n ln 2, |r| <= ln 2 / 2, with q = e^-r by a polynomial of degree 4 (minimax error 3.6e-6, which
 * is little beside the rounding of gates to 16 bits and of results to 8). The low bits of the sum that rounds n are the
 * exponent of 2^n, and 1 + 2^n q is rounded once. */
KILN_INLINE float kiln_glu_sum(float x) {
    const float magic = 0x1.8p23f + 127.0f;
    float shifted = KILN_FMA(x, -0x1.715476p0f, magic);
    float r = KILN_FMA(shifted - magic, 0x1.62e43p-1f, x);
    float q = KILN_FMA(0x1.5b3004p-5f, r, -0x1.583e6ep-3f);
    q = KILN_FMA(q, r, 0x1.fff564p-2f);
    q = KILN_FMA(q, r, -0x1.fff9a4p-1f);
    q = KILN_FMA(q, r, 1.0f);
    return KILN_FMA(q, KILN_GLU_SHL(shifted, 23), 1.0f);
}

/* t sigmoid(x), x being the argument for t, |x| < 87. Besides what the rounding of x costs, the sigmoid has a relative
 * error of 4e-6. */
KILN_INLINE float kiln_glu_within(float t, float x) {
    return t * kiln_glu_reciprocal(kiln_glu_sum(x));
}

/* The same of any t; -0 where t < -bound. */
KILN_INLINE float kiln_glu_result(float t, float x, float bound) {
    float result = kiln_glu_within(t, x);
    return t < -bound ? -0.0f : result;
}

/* The activation of t. bound and the two coefficients are those that kiln_gated (math.h) takes: |t P(t^2)| < 87 where
 * |t| <= bound. Where t > bound the sigmoid is taken at the bound, and the result of t < -bound is -0. NaN stays NaN.
 */
KILN_INLINE float kiln_glu_exactly(float t, float bound, const float *coefficients) {
    return kiln_glu_result(t, kiln_glu_argument(KILN_GLU_MIN(t, bound), coefficients), bound);
}

#endif
