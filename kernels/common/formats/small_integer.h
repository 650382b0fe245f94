/* Signed integers of 8 and 4 bits from f32: rounded to nearest even, saturating; NaN becomes 0, as in PTX. int8 is
 * symmetric, -127 to 127; int4 is -8 to 7, and a byte has two, the first in its low half.
 *
 * The includer (device.h, cpu.h) defines KILN_INLINE. */
#ifndef KILN_KERNELS_COMMON_FORMATS_SMALL_INTEGER_H
#define KILN_KERNELS_COMMON_FORMATS_SMALL_INTEGER_H

#include "kernels/common/formats/float16.h"

/* The integer nearest to value, limited to [least, greatest], which are within +-2^22. Adding 1.5 * 2^23 leaves it in
 * the low bits of the sum. */
KILN_INLINE int32_t kiln_small_integer_of(float value, float least, float greatest) {
    const float anchor = 0x1.8p23f;
    float number = value == value ? value : 0.0f;
    float above = number > least ? number : least;
    float bounded = above < greatest ? above : greatest;
    return (int32_t)(kiln_bits(bounded + anchor) - kiln_bits(anchor));
}

/* bound: at most 127. */
KILN_INLINE int8_t kiln_int8_within(float value, float bound) {
    return (int8_t)kiln_small_integer_of(value, -bound, bound);
}

KILN_INLINE int8_t kiln_int8_of(float value) {
    return kiln_int8_within(value, 127.0f);
}

KILN_INLINE uint8_t kiln_int4_pair_of(float first, float second) {
    int32_t low = kiln_small_integer_of(first, -8.0f, 7.0f), high = kiln_small_integer_of(second, -8.0f, 7.0f);
    return (uint8_t)(((uint32_t)low & 15u) | ((uint32_t)high & 15u) << 4);
}

KILN_INLINE void kiln_int4_pair_values(float *values, uint8_t pair) {
    values[0] = (float)((int32_t)((pair & 15u) ^ 8u) - 8);
    values[1] = (float)((int32_t)(pair >> 4 ^ 8u) - 8);
}

#endif
