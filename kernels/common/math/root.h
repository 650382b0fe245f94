/* The reciprocal square root, one source for host C and both device compilers.
 *
 * The includer (device.h, cpu.h) defines what math.h asks for. */
#ifndef KILN_KERNELS_COMMON_MATH_ROOT_H
#define KILN_KERNELS_COMMON_MATH_ROOT_H

#include "kernels/common/math/math.h"

/* 1 / sqrt(x) for x >= 2^-120; 0 for +inf; NaN stays. Relative error at most 1.1e-7 (measured: 9.9e-8, 7.5e-8 fused).
 *
 * Halving and negating the exponent as bits gives 3.5 % at worst. With e = 1 - x r^2, each step multiplies r by
 * 1 + e / 2 + 3 e^2 / 8, which takes the error e to about e^3: two steps. */
KILN_INLINE float kiln_rsqrt(float x) {
    float r = kiln_float(0x5f375a86u - (kiln_bits(x) >> 1));
    KILN_UNROLL
    for (int step = 0; step < 2; step++) {
        float e = KILN_FMA(-x * r, r, 1.0f);
        r = KILN_FMA(r * e, KILN_FMA(e, 0.375f, 0.5f), r);
    }
    return x == KILN_INFINITY ? 0.0f : r;
}

#endif
