/* The formulas of a decode scale and of the factor for elements, one source for host C and both device compilers:
 * IEEE division, so that all backends have the same bits. The includer (device.h, cpu.h) defines what math.h asks
 * for. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_QUANTIZE_SCALE_H
#define KILN_KERNELS_COMMON_QUANTIZE_QUANTIZE_SCALE_H

#include "kernels/common/math/math.h"
#include "kernels/common/quantize/quantize_args.h"

/* A scale is a normal number: one that would be less, as for zeros, is 1. An infinite amax is the greatest number. */
KILN_INLINE float kiln_quantize_scale(const kiln_quantize_args *args, float value) {
    float amax = value < 0x1.fffffep127f ? value : 0x1.fffffep127f;
    float computed = amax >= args->smax * 0x1p-126f ? amax / args->smax : 1.0f;
    float given = value >= 0x1p-126f ? value : 1.0f;
    return args->source == KILN_QUANTIZE_GIVEN ? given : computed;
}

/* The index of the scale of a row's tile. */
KILN_INLINE uint64_t kiln_quantize_scale_at(const kiln_quantize_args *args, uint64_t row, uint64_t tile) {
    return (row >> args->rows_log2) * (uint64_t)args->scale_cols + (args->grouped ? tile : 0u);
}

/* Whether a row's tile is the first of those that share a scale. */
KILN_INLINE uint32_t kiln_quantize_is_first(const kiln_quantize_args *args, uint64_t row, uint64_t tile) {
    uint64_t others = (1ull << args->rows_log2) - 1;
    return (row & others) == 0 && (args->grouped || tile == 0);
}

#endif
