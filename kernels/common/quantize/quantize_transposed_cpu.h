/* quantize_fp8 and quantize_int8 on the CPU where x's columns are not adjacent: the operators' definition, on the tiles
 * of quantize_transposed_gpu.h; those of up to 28 tiles are kept between the two passes. Measured with one thread of an
 * Intel Xeon with AVX-512, whose other processor was busy (2026-11-27), quantize_fp8 of 4096 x 4096 of bf16 with a
 * scale for each row: 25 ms transposed, where adjacent columns took 9 ms; 57 where columns were stored an
 * element at a time and read twice. With scales of 128 columns 21 ms, as with adjacent columns. The includer defines
 * KILN_QUANTIZE_CODE as for quantize_cpu.h, and its kernel over kiln_quantize_transposed. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_QUANTIZE_TRANSPOSED_CPU_H
#define KILN_KERNELS_COMMON_QUANTIZE_QUANTIZE_TRANSPOSED_CPU_H

#include "kernels/common/quantize/quantize_cpu.h"
#include "kernels/common/quantize/quantize_transposed_args.h"
#include "kernels/common/quantize/transposed_cpu.h"

/* A tile's codes; number is that of its first column's 128. */
KILN_INLINE void kiln_quantize_transposed_put(const kiln_quantize_args *args, const kiln_transposed_tile *at,
                                              uint64_t number, const float *tile, const uint32_t *greatest) {
    for (uint64_t r = 0; r < at->rows; r++) {
        const uint64_t row = at->row + r;
        const float scale = kiln_quantize_scale_of(args, row, number, greatest[args->rows_log2 ? 0 : r]);
        uint8_t *codes = (uint8_t *)args->codes + row * (uint64_t)args->codes_stride + at->col;
        kiln_quantize_put(codes, tile + r * at->pitch, at->cols, scale, args->smax, KILN_CPU_f32);
    }
}

KILN_INLINE void kiln_quantize_transposed(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_quantize_transposed_args args =
        *(const kiln_quantize_transposed_args *)arguments; /* a copy, which no store can change */
    const kiln_quantize_args *q = &args.quantize;
    const bool computed = q->source == KILN_QUANTIZE_COMPUTED;
    kiln_transposed_scratch *scratch = span->scratch;
    for (uint64_t block = span->begin; block < span->end; block++) {
        const uint64_t first = block / span->grid[0] * q->block_rows;
        if (first >= (uint64_t)args.x.rows) continue;
        const uint64_t inside = kiln_min((uint64_t)args.x.rows - first, KILN_QUANTIZE_GROUP);
        const uint64_t down = (inside + (1ull << args.x.rows_log2) - 1) >> args.x.rows_log2;
        const uint64_t tiles = args.down ? down : args.tiles;
        const bool kept = tiles <= KILN_TRANSPOSED_KEPT;
        memset(scratch->greatest, 0, sizeof scratch->greatest);
        for (uint64_t step = computed ? 0 : tiles; step < 2 * tiles; step++) {
            const bool again = step >= tiles;
            const uint64_t number = again ? 2 * tiles - 1 - step : step;
            const uint64_t row = first + (args.down ? number << args.x.rows_log2 : 0);
            const uint64_t tile = block % span->grid[0] + (args.down ? 0 : number);
            const uint64_t col = tile << kiln_transposed_cols_log2(&args.x, dtype);
            const kiln_transposed_tile at = kiln_transposed_tile_at(&args.x, row, col, dtype);
            float *values = scratch->tiles[kept ? number : 0];
            if (!again || !computed || (!kept && step != tiles)) kiln_transposed_load(&args.x, &at, values, dtype);
            if (again)
                kiln_quantize_transposed_put(q, &at, tile, values, scratch->greatest);
            else
                kiln_transposed_take(&at, values, scratch->greatest, q->rows_log2 != 0);
        }
    }
}

#endif
