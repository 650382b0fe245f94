/* Floats of 8 bits and fewer, by the widths of their fields, one source for host C and both device compilers: float8.h
 * and float4.h have the formats. Straight-line integer arithmetic, and one sum of f32 that needs no subnormal number.
 *
 * The includer (device.h, cpu.h) defines KILN_INLINE. */
#ifndef KILN_KERNELS_COMMON_FORMATS_SMALL_FLOAT_H
#define KILN_KERNELS_COMMON_FORMATS_SMALL_FLOAT_H

#include "kernels/common/formats/float16.h"

/* The code, without its sign, of an f32 whose bits without the sign are magnitude, rounded to nearest even. What
 * exceeds `greatest`, at most the format's greatest number, gets its code, infinities and NaN too. */
KILN_INLINE uint32_t kiln_small_float_encode(uint32_t magnitude, uint32_t fraction_bits, uint32_t bias,
                                             float greatest) {
    uint32_t dropped = 23 - fraction_bits, most = kiln_bits(greatest);
    uint32_t bounded = magnitude < most ? magnitude : most;
    uint32_t normal = ((bounded + (1u << (dropped - 1)) - 1 + (bounded >> dropped & 1u)) >> dropped) -
                      ((127 - bias) << fraction_bits);
    uint32_t anchor = (128 - bias + dropped) << 23; /* a power of two with the ulp of the format's subnormals */
    uint32_t subnormal = kiln_bits(kiln_float(bounded) + kiln_float(anchor)) - anchor;
    return bounded < (128 - bias) << 23 ? subnormal : normal;
}

/* The number of a code without its sign. It is exact: the implicit one of the least exponent is subtracted again. */
KILN_INLINE float kiln_small_float_decode(uint32_t code, uint32_t fraction_bits, uint32_t bias) {
    uint32_t least = (128 - bias) << 23, moved = code << (23 - fraction_bits);
    float normal = kiln_float(moved + ((127 - bias) << 23));
    float subnormal = kiln_float(moved + least) - kiln_float(least);
    return code < 1u << fraction_bits ? subnormal : normal;
}

/* value with the sign that a bit gives: 0 is plus, 1 minus. */
KILN_INLINE float kiln_small_float_signed(float value, uint32_t sign) {
    return kiln_float(kiln_bits(value) | sign << 31);
}

#endif
