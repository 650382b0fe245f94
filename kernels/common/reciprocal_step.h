/* SiLU and the tanh form of GELU, t sigmoid(t P(t^2)) as in math.h, in fewer instructions and with the same bits
 * everywhere: one source for host C and both device compilers. The includer (device.h, cpu.h) defines what math.h asks
 * for. */
#ifndef KILN_KERNELS_COMMON_GATED_EXACTLY_H
#define KILN_KERNELS_COMMON_GATED_EXACTLY_H

#include "kernels/common/math.h"

/* 1 / x rounded to nearest, from a start of which the true value is less than an ulp away: by Markstein's theorem, one
 * step of Newton's method is enough unless the fraction of x has ones alone. */
KILN_INLINE float kiln_reciprocal_step(float x, float start) {
    return KILN_FMA(KILN_FMA(-x, start, 1.0f), start, start);
}

/* A device's instructions with the same results. NaN may become the bound. */
#if defined(KILN_PART)
#include "kernels/common/float_bits.h"
#include "kernels/common/minimum.h"
#define KILN_GATED_RECIPROCAL(x) kiln_reciprocal_step(x, kiln_fast_reciprocal(x))
#define KILN_GATED_MIN(t, bound) kiln_fast_min(t, bound)
#define KILN_GATED_SHL(x, count) kiln_float_shl(x, count)
#define KILN_GATED_AND(x, mask)  kiln_float_and(x, mask)
#else
#define KILN_GATED_RECIPROCAL(x) (1.0f / (x))
#define KILN_GATED_MIN(t, bound) ((t) < (bound) ? (t) : (bound))
#define KILN_GATED_SHL(x, count) kiln_float(kiln_bits(x) << (count))
#define KILN_GATED_AND(x, mask)  kiln_float(kiln_bits(x) & (mask))
#endif

/* t P(t^2) of t limited to bound; SiLU's is the limited t itself. */
KILN_INLINE float kiln_gated_argument(float limited, const float *coefficients) {
    return limited * KILN_FMA(coefficients[1], limited * limited, coefficients[0]);
}

/* t sigmoid(x), x being the argument for t, |x| < 87.
 *
 * e^-x = 2^n q: x = r - n ln 2, |r| <= ln 2 / 2, with q = e^-r by a polynomial of degree 6 (minimax error 3e-9). The
 * low bits of the sum that rounds n are the exponent of 2^n, and 1 + 2^n q is rounded once. Its last bit is cleared, so
 * that its fraction does not have ones alone and every device finds the same reciprocal. Besides what the rounding of x
 * costs, the sigmoid has a relative error of 3e-7 where |x| <= 10, and of 5e-7 elsewhere. */
KILN_INLINE float kiln_gated_within(float t, float x) {
    const float magic = 0x1.8p23f + 127.0f;
    float shifted = KILN_FMA(x, -0x1.715476p0f, magic);
    float r = KILN_FMA(shifted - magic, 0x1.62e43p-1f, x);
    float q = KILN_FMA(0x1.6a2436p-10f, r, -0x1.1239ep-7f);
    q = KILN_FMA(q, r, 0x1.5558f2p-5f);
    q = KILN_FMA(q, r, -0x1.555492p-3f);
    q = KILN_FMA(q, r, 0x1.fffffcp-2f);
    q = KILN_FMA(q, r, -1.0f);
    q = KILN_FMA(q, r, 1.0f);
    float sum = KILN_GATED_AND(KILN_FMA(q, KILN_GATED_SHL(shifted, 23), 1.0f), ~1u);
    return t * KILN_GATED_RECIPROCAL(sum);
}

/* The same of any t; -0 where t < -bound. */
KILN_INLINE float kiln_gated_result(float t, float x, float bound) {
    float result = kiln_gated_within(t, x);
    return t < -bound ? -0.0f : result;
}

/* The activation of t. bound and the two coefficients are those that kiln_gated (math.h) takes: |t P(t^2)| < 87 where
 * |t| <= bound. Where t > bound the sigmoid is taken at the bound, and the result of t < -bound is -0. NaN stays NaN.
 */
KILN_INLINE float kiln_gated_exactly(float t, float bound, const float *coefficients) {
    return kiln_gated_result(t, kiln_gated_argument(KILN_GATED_MIN(t, bound), coefficients), bound);
}

#endif
