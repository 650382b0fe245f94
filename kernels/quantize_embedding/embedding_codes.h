/* The formulas of quantize_embedding, one source for host C and both device compilers. The includer (device.h, cpu.h)
 * defines what math.h asks for. */
#ifndef KILN_KERNELS_QUANTIZE_EMBEDDING_CODES_H
#define KILN_KERNELS_QUANTIZE_EMBEDDING_CODES_H

#include "kernels/common/formats/small_integer.h"
#include "kernels/common/math/root.h"
#include "kernels/quantize_embedding/quantize_embedding_args.h"

/* The scale as in quantize_int8: a normal number, or 1 if amax is too small for that. */
KILN_INLINE float kiln_embedding_scale(float greatest, float smax) {
    float amax = greatest < 0x1.fffffep127f ? greatest : 0x1.fffffep127f;
    return amax >= smax * 0x1p-126f ? amax / smax : 1.0f;
}

/* A number in units of the scale, before it is rounded to its code. */
KILN_INLINE float kiln_embedding_bounded(float value, float smax) {
    float number = value == value ? value : 0.0f;
    float above = number > -smax ? number : -smax;
    return above < smax ? above : smax;
}

/* The scale that gives the row length 1, from the sum of its squares in units of its scale. For a row whose greatest
 * magnitude is a normal number that sum is at least smax squared. */
KILN_INLINE float kiln_embedding_normalized(float scale, float squares) {
    return squares >= 1.0f ? kiln_rsqrt(squares) : scale;
}

/* The codes of a unit, the first in the lowest byte, from numbers in units of the scale. */
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
