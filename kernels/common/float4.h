/* E2M1, the float of 4 bits of OCP's Microscaling Formats and of NVFP4: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives.
 * There is neither infinity nor NaN: conversions round to nearest even and saturate at 6, and NaN becomes +6, as in
 * PTX. A byte has two codes, the first in its low half.
 *
 * The includer (device.h, cpu.h) defines KILN_INLINE. */
#ifndef KILN_KERNELS_COMMON_FLOAT4_H
#define KILN_KERNELS_COMMON_FLOAT4_H

#include "kernels/common/small_float.h"

#define KILN_E2M1_GREATEST 6.0f

/* 0 to 15. */
KILN_INLINE uint8_t kiln_e2m1_of(float value) {
    uint32_t bits = kiln_bits(value), magnitude = bits & 0x7fffffffu;
    uint32_t code = kiln_small_float_encode(magnitude, 1, 1, KILN_E2M1_GREATEST) | (bits >> 28 & 8u);
    return (uint8_t)(magnitude > 0x7f800000u ? 7u : code);
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
