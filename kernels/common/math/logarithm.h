/* The natural logarithm, one source for host C and both device compilers. The includer (device.h, cpu.h) defines what
 * math.h asks for. */
#ifndef KILN_KERNELS_COMMON_MATH_LOGARITHM_H
#define KILN_KERNELS_COMMON_MATH_LOGARITHM_H

#include "kernels/common/math/math.h"

/* ln x for normal x; NaN stays NaN. The error is at most 1.4e-7 (measured: 1.26e-7, 1.15e-7 fused), relative to the
 * result if that is above 1, else absolute.
 *
 * x = m 2^n with m in [sqrt 1/2, sqrt 2); ln m = 2 artanh z with z = (m - 1) / (m + 1), a series in z^2 <= 0.03. */
KILN_INLINE float kiln_log(float x) {
    uint32_t bits = kiln_bits(x) - 0x3f3504f3u; /* sqrt 1/2 */
    float n = (float)((int32_t)bits >> 23), m = kiln_float((bits & 0x7fffffu) + 0x3f3504f3u);
    float z = (m - 1.0f) * kiln_reciprocal(m + 1.0f), square = z * z;
    float p = KILN_FMA(square, 2.0f / 9.0f, 2.0f / 7.0f);
    p = KILN_FMA(p, square, 2.0f / 5.0f);
    p = KILN_FMA(p, square, 2.0f / 3.0f);
    p = KILN_FMA(p * square, z, 2.0f * z);
    float result = KILN_FMA(n, 0x1.62e430p-1f, p);
    return x == x ? result : x;
}

#endif
