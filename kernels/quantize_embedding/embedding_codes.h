/* The formulas of quantize_embedding, one text for host C and both device compilers. The includer (device.h, cpu.h)
 * defines what math.h asks for. */
#ifndef KILN_KERNELS_QUANTIZE_EMBEDDING_CODES_H
#define KILN_KERNELS_QUANTIZE_EMBEDDING_CODES_H

#include "kernels/common/root.h"
#include "kernels/common/small_integer.h"
#include "kernels/quantize_embedding/quantize_embedding_args.h"

/* The magnitude by which a row's greatest is found: NaN is passed over. */
KILN_INLINE float kiln_embedding_magnitude(float value) {
    return value == value ? kiln_float(kiln_bits(value) & 0x7fffffffu) : 0.0f;
}

/* As that of quantize_int8: a normal number, which is 1 where amax is too small for it. */
KILN_INLINE float kiln_embedding_scale(float greatest, float smax) {
    float amax = greatest < 0x1.fffffep127f ? greatest : 0x1.fffffep127f;
    return amax >= smax * 0x1p-126f ? amax / smax : 1.0f;
}

/* A number in units of the scale, of which its code is the nearest integer. */
KILN_INLINE float kiln_embedding_bounded(float value, float smax) {
    float number = value == value ? value : 0.0f;
    float above = number > -smax ? number : -smax;
    return above < smax ? above : smax;
}

/* The scale of a row of length 1, from the sum of squares in units of its scale: those of a row whose greatest is a
 * normal number are at least smax squared. */
KILN_INLINE float kiln_embedding_normalized(float scale, float squares) {
    return squares >= 1.0f ? kiln_rsqrt(squares) : scale;
}

/* The codes of a unit, from its first byte on, of numbers in units of the scale. */
KILN_INLINE uint64_t kiln_embedding_codes(const float *numbers, float smax, uint32_t code_type) {
    uint64_t codes = 0;
    KILN_UNROLL
    for (uint32_t i = 0; i < KILN_EMBEDDING_UNIT; i++) {
        if (code_type == KILN_CODE_BINARY) {
            codes |= (uint64_t)(numbers[i] > 0.0f) << (KILN_EMBEDDING_UNIT - 1 - i);
            continue;
        }
        uint32_t code = (uint32_t)kiln_small_integer_of(numbers[i], -smax, smax);
        codes |= code_type == KILN_CODE_INT8 ? (uint64_t)(code & 0xffu) << 8 * i : (uint64_t)(code + 8u) << 4 * i;
    }
    return codes;
}

#endif
