/* quantize_fp8 and quantize_int8 on the CPU: the operators' definition. The includer defines KILN_QUANTIZE_CODE(value,
 * bound), the byte of a number, and its kernel over kiln_quantize. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_QUANTIZE_CPU_H
#define KILN_KERNELS_COMMON_QUANTIZE_QUANTIZE_CPU_H

#include "kernels/common/quantize/quantize_scale.h"
#include "kernels/common/reduce/greatest_cpu.h"

/* The bits of the greatest magnitude among count elements and those seen before. */
KILN_INLINE uint32_t kiln_quantize_greatest(uint32_t greatest, const void *x, size_t count, kiln_cpu_dtype dtype) {
    float tile[KILN_TILE];
    for (size_t start = 0; start < count; start += KILN_TILE) {
        size_t n = kiln_min(count - start, KILN_TILE);
        const float *values = kiln_tile_read(tile, kiln_at(x, start, dtype), n, dtype);
        greatest = kiln_greatest_magnitude(greatest, values, n);
    }
    return greatest;
}

KILN_INLINE void kiln_quantize_put(uint8_t *codes, const void *x, size_t count, float scale, float smax,
                                   kiln_cpu_dtype dtype) {
    const float factor = 1.0f / scale;
    float tile[KILN_TILE];
    for (size_t start = 0; start < count; start += KILN_TILE) {
        size_t n = kiln_min(count - start, KILN_TILE);
        const float *values = kiln_tile_read(tile, kiln_at(x, start, dtype), n, dtype);
        uint8_t *target = codes + start;
        KILN_INDEPENDENT
        for (size_t i = 0; i < n; i++)
            target[i] = (uint8_t)KILN_QUANTIZE_CODE(values[i] * factor, smax);
    }
}

/* A tile's scale, from the bits of its greatest magnitude if it is not known beforehand. It is written once. */
KILN_INLINE float kiln_quantize_scale_of(const kiln_quantize_args *args, uint64_t row, uint64_t tile,
                                         uint32_t greatest) {
    uint64_t at = kiln_quantize_scale_at(args, row, tile);
    float value = args->source == KILN_QUANTIZE_COMPUTED ? kiln_float(greatest) : args->values[at];
    float scale = kiln_quantize_scale(args, value);
    if (args->scales && kiln_quantize_is_first(args, row, tile)) args->scales[at] = scale;
    return scale;
}

/* If a computed scale is for more than one row, all rows of a block share it. */
KILN_INLINE void kiln_quantize(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_quantize_args args = *(const kiln_quantize_args *)arguments; /* a copy, which no store can change */
    const bool computed = args.source == KILN_QUANTIZE_COMPUTED, shared = computed && args.rows_log2;
    for (uint64_t block = span->begin; block < span->end; block++) {
        uint64_t tile = block % span->grid[0], first = block / span->grid[0] * args.block_rows;
        uint64_t end = kiln_min(first + args.block_rows, (uint64_t)args.shape.rows), col = tile * args.shape.tile;
        uint64_t count = kiln_min((uint64_t)args.shape.cols - col, args.shape.tile);
        uint32_t greatest = 0;
        for (uint64_t row = first; shared && row < end; row++)
            greatest = kiln_quantize_greatest(greatest, kiln_at(args.x, row * (uint64_t)args.x_stride + col, dtype),
                                              count, dtype);
        for (uint64_t row = first; row < end; row++) {
            const void *x = kiln_at(args.x, row * (uint64_t)args.x_stride + col, dtype);
            uint8_t *codes = (uint8_t *)args.codes + row * (uint64_t)args.codes_stride + col;
            if (computed && !shared) greatest = kiln_quantize_greatest(0, x, count, dtype);
            kiln_quantize_put(codes, x, count, kiln_quantize_scale_of(&args, row, tile, greatest), args.smax, dtype);
        }
    }
}

#endif
