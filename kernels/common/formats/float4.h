/* E2M1, the float of 4 bits of OCP's Microscaling Formats and of NVFP4: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives.
 * There is neither infinity nor NaN: conversions round to nearest even and saturate at 6, and NaN becomes +6, as in
 * PTX. A byte has two codes, the first in its low half.
 *
 * The includer (device.h, cpu.h) defines KILN_INLINE, and KILN_FMA(a, b, c): a * b + c. */
#ifndef KILN_KERNELS_COMMON_FORMATS_FLOAT4_H
#define KILN_KERNELS_COMMON_FORMATS_FLOAT4_H

#include "kernels/common/formats/small_float.h"

#define KILN_E2M1_GREATEST 6.0f

/* The minimum and maximum of a and a constant b, which give b for NaN, in one instruction: CPU vectors and NVIDIA's
 * compiler have one for the conditional as it is written, AMD's for C's functions. */
#if defined(__HIP__)
#define KILN_E2M1_MIN(a, b) __builtin_fminf(a, b)
#define KILN_E2M1_MAX(a, b) __builtin_fmaxf(a, b)
#else
#define KILN_E2M1_MIN(a, b) ((a) < (b) ? (a) : (b))
#define KILN_E2M1_MAX(a, b) ((a) > (b) ? (a) : (b))
#endif

/* The code, 0 to 15. Adding a power of two whose ulp is the spacing of the format around a magnitude rounds the
 * magnitude to that spacing; the sum's low bits count the steps, and each further exponent has two more. */
KILN_INLINE uint8_t kiln_e2m1_of(float value) {
    float below = KILN_E2M1_MIN(value, KILN_E2M1_GREATEST); /* NaN too */
    float bounded = KILN_E2M1_MAX(below, -KILN_E2M1_GREATEST);
    float magnitude = __builtin_fabsf(bounded);
    float normal = KILN_E2M1_MAX(magnitude, 1.0f); /* below 1 the spacing is that above 1 */
    uint32_t power = kiln_bits(normal) & 0x7f800000u;
    float sum =
        KILN_FMA(kiln_float(power), 0x1.000004p22f, magnitude); /* the 2 further steps are for the exponent's bias */
    uint32_t code = kiln_bits(sum) + (power >> 22);
    return (uint8_t)((code & 7u) | (kiln_bits(bounded) >> 28 & 8u));
}

KILN_INLINE float kiln_e2m1_value(uint8_t code) {
    return kiln_small_float_signed(kiln_small_float_decode(code & 7u, 1, 1), code >> 3 & 1u);
}

KILN_INLINE uint8_t kiln_e2m1_pair_of(float first, float second) {
    return (uint8_t)(kiln_e2m1_of(first) | kiln_e2m1_of(second) << 4);
}

KILN_INLINE void kiln_e2m1_pair_values(float *values, uint8_t pair) {
    values[0] = kiln_e2m1_value(pair & 15u);
    values[1] = kiln_e2m1_value(pair >> 4);
}

#endif
