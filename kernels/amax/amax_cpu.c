/* amax on the CPU: the operator's definition. amax_gpu.c says what its blocks do.
 *
 * Floor: one read of the tensor at memory bandwidth.
 * Test: build/tests/ops/amax_test. Bench: build/kiln bench amax --device cpu */
#include "kernels/amax/amax_args.h"
#include "kernels/amax/amax_transposed_args.h"
#include "kernels/common/cpu.h"
#include "kernels/common/quantize/transposed_cpu.h"
#include "kernels/common/reduce/greatest_cpu.h"

/* The bits of the greatest magnitude among count elements and those seen before. */
KILN_INLINE uint32_t greatest_of(uint32_t greatest, const void *x, size_t count, kiln_cpu_dtype dtype) {
    float tile[KILN_TILE];
    for (size_t start = 0; start < count; start += KILN_TILE) {
        size_t n = kiln_min(count - start, KILN_TILE);
        const float *values = kiln_tile_read(tile, kiln_at(x, start, dtype), n, dtype);
        greatest = kiln_greatest_magnitude(greatest, values, n);
    }
    return greatest;
}

/* The partial results of blocks. */
KILN_INLINE void find(const kiln_amax_args args, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    for (uint64_t block = span->begin; block < span->end; block++) {
        uint64_t tile = block % span->grid[0], place = block / span->grid[0], first = place * args.block_rows;
        uint64_t end = kiln_min(first + args.block_rows, (uint64_t)args.shape.rows), col = tile * args.shape.tile;
        uint64_t count = kiln_min((uint64_t)args.shape.cols - col, args.shape.tile);
        uint32_t greatest = 0;
        for (uint64_t row = first; row < end; row++) {
            const void *x = kiln_at(args.x, row * (uint64_t)args.x_stride + col, dtype);
            greatest = greatest_of(args.shared ? greatest : 0, x, count, dtype);
            if (!args.shared) args.partials[row * (uint64_t)args.partial_cols + tile] = kiln_float(greatest);
        }
        if (args.shared && first < end)
            args.partials[place * (uint64_t)args.partial_cols + tile] = kiln_float(greatest);
    }
}
/* Reduces partial results. */
KILN_INLINE void join(const kiln_amax_args args, const kiln_cpu_span *span) {
    for (uint64_t block = span->begin; block < span->end; block++) {
        uint64_t col = block % span->grid[0], row = block / span->grid[0], first = row * (uint64_t)args.join_rows;
        uint64_t end = kiln_min(first + (uint64_t)args.join_rows, (uint64_t)args.partial_rows);
        uint32_t greatest = 0;
        for (uint64_t r = first; r < end; r++) {
            const float *partials = args.partials + r * (uint64_t)args.partial_cols + col * (uint64_t)args.join_cols;
            for (uint64_t i = 0; i < (uint64_t)args.join_cols; i++)
                greatest = kiln_bits(partials[i]) > greatest ? kiln_bits(partials[i]) : greatest;
        }
        if (first < end) args.y[row * (uint64_t)args.scale_cols + col] = kiln_float(greatest);
    }
}

KILN_OUTLINED void amax(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_amax_args args = *(const kiln_amax_args *)arguments; /* a copy, which no store can change */
    if (args.joining)
        join(args, span);
    else
        find(args, span, dtype);
}
KILN_CPU_KERNEL(amax)

/* The partial results of blocks where columns are not adjacent. */
KILN_OUTLINED void amax_transposed(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_amax_transposed_args args =
        *(const kiln_amax_transposed_args *)arguments; /* a copy, which no store can change */
    kiln_transposed_scratch *scratch = span->scratch;
    for (uint64_t block = span->begin; block < span->end; block++) {
        const uint64_t place = block % span->grid[0], number = block / span->grid[0], row = number << args.x.rows_log2;
        if (row >= (uint64_t)args.x.rows) continue;
        const uint64_t rows = kiln_min((uint64_t)args.x.rows - row, 1ull << args.x.rows_log2);
        memset(scratch->greatest, 0, sizeof scratch->greatest);
        for (uint64_t i = 0; i < args.tiles; i++) {
            const uint64_t col = (place * args.tiles + i) << KILN_TRANSPOSED_COLS_LOG2;
            const kiln_transposed_tile at = kiln_transposed_tile_at(&args.x, row, col, dtype);
            if (!at.cols) break;
            kiln_transposed_load(&args.x, &at, scratch->tiles[0], dtype);
            kiln_transposed_take(&at, scratch->tiles[0], scratch->greatest, args.shared);
        }
        for (uint64_t r = 0; r < (args.shared ? 1 : rows); r++)
            args.partials[(args.shared ? number : row + r) * (uint64_t)args.partial_cols + place] =
                kiln_float(scratch->greatest[r]);
    }
}
KILN_CPU_KERNEL(amax_transposed)
