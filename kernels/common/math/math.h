/* The elementary functions of the operators, one source for host C and both device compilers: no libm, no libdevice, no
 * ocml, so that all backends compute the same results. Straight-line code: CPU compilers vectorise it.
 *
 * The includer (device.h, cpu.h) defines KILN_INLINE; KILN_UNROLL, before a loop of constant length; and KILN_FMA(a, b,
 * c): a * b + c, rounded once where the machine can. The errors below hold either way. */
#ifndef KILN_KERNELS_COMMON_MATH_MATH_H
#define KILN_KERNELS_COMMON_MATH_MATH_H

#include "kernels/common/formats/float16.h"

#define KILN_INFINITY __builtin_inff()

KILN_INLINE float kiln_max(float a, float b) {
    return a > b ? a : b;
} /* b if one is NaN */

/* x = n ln 2 + r for x >= -88, with |r| <= ln 2 / 2. Adding 1.5 * 2^23 + 127 rounds n to an integer and leaves n + 127,
 * the exponent field of 2^n, in the low bits of shifted; n = -127 makes the scale 0. The high part of ln 2 has 15 bits,
 * so that n times it is exact. */
typedef struct kiln_exp_reduction {
    float shifted;
    float r;
} kiln_exp_reduction;

KILN_INLINE kiln_exp_reduction kiln_exp_reduce(float x) {
    const float magic = 0x1.8p23f + 127.0f;
    kiln_exp_reduction reduction;
    reduction.shifted = KILN_FMA(x, 0x1.715476p0f, magic);
    float n = reduction.shifted - magic;
    reduction.r = KILN_FMA(n, -0x1.7f7d1cp-20f, KILN_FMA(n, -0x1.62e4p-1f, x));
    return reduction;
}

/* 2^n e^r, e^r by a polynomial of degree 6 (minimax error 3e-9). */
KILN_INLINE float kiln_exp_finish(kiln_exp_reduction reduction) {
    float p = 0x1.6a2436p-10f;
    p = KILN_FMA(p, reduction.r, 0x1.1239ep-7f);
    p = KILN_FMA(p, reduction.r, 0x1.5558f2p-5f);
    p = KILN_FMA(p, reduction.r, 0x1.555492p-3f);
    p = KILN_FMA(p, reduction.r, 0x1.fffffcp-2f);
    p = KILN_FMA(p, reduction.r, 1.0f);
    p = KILN_FMA(p, reduction.r, 1.0f);
    return p * kiln_float(kiln_bits(reduction.shifted) << 23);
}

/* e^x for x <= 88. Relative error at most 1.0e-7 down to 2^-126 (measured: 9.6e-8 without, 7.7e-8 with fused
 * multiply-add); 0 from x = -87.7 on; NaN stays NaN. */
KILN_INLINE float kiln_exp(float x) {
    return kiln_exp_finish(kiln_exp_reduce(-88.0f > x ? -88.0f : x));
}

/* e^(x - max) for x <= max, corrected for the rounding error of the difference, which for x - max = -20 would be an
 * error of 1e-6 in the result. NaN, and +inf - inf, give NaN. */
KILN_INLINE float kiln_exp_difference(float x, float max) {
    float difference = x - max;
    float lost = x - (difference + max);
    kiln_exp_reduction reduction = kiln_exp_reduce(-88.0f > difference ? -88.0f : difference);
    reduction.r += -88.0f > difference ? 0.0f : lost;
    return kiln_exp_finish(reduction);
}

/* 1 / x for |x| in [2^-120, 2^120]. Relative error at most 1.2e-7 (measured: 1.11e-7, 6.0e-8 fused); NaN stays
 * NaN.
 *
 * Subtracting the bits negates the exponent and gives 12 % at worst; each cubic step takes the error e to e^3. */
KILN_INLINE float kiln_reciprocal(float x) {
    float r = kiln_float(0x7ef311c3u - kiln_bits(x));
    float e = KILN_FMA(-x, r, 1.0f);
    r = KILN_FMA(KILN_FMA(e, e, e), r, r);
    e = KILN_FMA(-x, r, 1.0f);
    return KILN_FMA(KILN_FMA(e, e, e), r, r);
}

/* t sigmoid(t P(t^2)): SiLU and the forms of GELU, by P's coefficients, the constant first. Where |t| > bound the
 * sigmoid is taken at the bound, and the result of t < -bound is -0; there |t P(t^2)| is at most 88. NaN stays NaN. */
KILN_INLINE float kiln_gated(float t, float bound, const float *coefficients, int count) {
    float c = -bound > t ? -bound : t;
    c = bound < c ? bound : c;
    float square = c * c, p = coefficients[count - 1];
    KILN_UNROLL
    for (int i = count - 2; i >= 0; i--)
        p = KILN_FMA(p, square, coefficients[i]);
    float sigmoid = kiln_reciprocal(1.0f + kiln_exp(-c * p));
    return t < -bound ? -0.0f : t * sigmoid;
}

#endif
