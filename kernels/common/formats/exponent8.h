/* UE8M0, the scale of OCP's Microscaling Formats: a byte is the exponent of a power of two, 2^-127 to 2^127, and 0xff
 * is NaN. There is no sign and no zero.
 *
 * The includer (device.h, cpu.h) defines KILN_INLINE. */
#ifndef KILN_KERNELS_COMMON_FORMATS_EXPONENT8_H
#define KILN_KERNELS_COMMON_FORMATS_EXPONENT8_H

#include "kernels/common/formats/float16.h"

/* The least power of two that is not less than the value's magnitude, so that values divided by it do not overflow; at
 * most 2^127. */
KILN_INLINE uint8_t kiln_ue8m0_of(float value) {
    uint32_t magnitude = kiln_bits(value) & 0x7fffffffu;
    uint32_t exponent = (magnitude + 0x7fffffu) >> 23;
    exponent = magnitude <= 0x400000u ? 0u : exponent; /* 2^-127, a subnormal f32 */
    exponent = exponent < 0xfeu ? exponent : 0xfeu;
    return (uint8_t)(magnitude > 0x7f800000u ? 0xffu : exponent);
}

KILN_INLINE float kiln_ue8m0_value(uint8_t code) {
    uint32_t bits = code ? (uint32_t)code << 23 : 0x400000u;
    return kiln_float(code == 0xffu ? 0x7fc00000u : bits);
}

#endif
