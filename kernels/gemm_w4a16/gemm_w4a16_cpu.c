/* gemm_w4a16 on the CPU: the operator's definition. gemm_w4a16_gpu.c says what its kernels and blocks do;
 * gemm_w4a16_rows_cpu.h and gemm_w4a16_tiles_cpu.h how the products are computed.
 *
 * Floor: one read of the weights at memory bandwidth for up to 8 rows, 2 m n k operations for many.
 * Test: build/tests/ops/gemm_w4a16_test. Bench: build/kiln bench gemm_w4a16 --device cpu */
#include "kernels/common/matmul/matmul_end_cpu.h"
#include "kernels/common/vec.h"
/* after them: */
#include "kernels/common/math/root.h"
#include "kernels/gemm_w4a16/gemm_w4a16_args.h"

enum { TILE = KILN_W4A16_TILE, ROWS = KILN_W4A16_ROWS };

/* ---- Results ---- */

typedef struct finish_tiles {
    float results[TILE], addends[TILE];
} finish_tiles;

/* Writes count elements of a row of d. */
KILN_OUTLINED void finish(finish_tiles *tiles, const kiln_gemm_w4a16_args *args, const float *sums, uint64_t row,
                          uint64_t col, size_t count, kiln_cpu_dtype dtype) {
    void *d = kiln_at_mut(args->d, row * (uint64_t)args->d_stride + col, dtype);
    float *results = kiln_tile_target(tiles->results, d, dtype, false);
    if (args->c) { /* which may be d */
        const uint64_t at = row * (uint64_t)args->c_stride + col;
        const float *addends = kiln_tile_load(tiles->addends, kiln_at(args->c, at, dtype), count, dtype);
        KILN_INDEPENDENT
        for (size_t i = 0; i < count; i++)
            results[i] = sums[i] * args->scale + addends[i];
    } else {
        KILN_INDEPENDENT
        for (size_t i = 0; i < count; i++)
            results[i] = sums[i] * args->scale;
    }
    kiln_matmul_add_bias(results, tiles->addends, args->bias, col, count, dtype);
    if (args->activated) kiln_matmul_activate(results, count, args->bound, args->coefficients, KILN_W4A16_COEFFICIENTS);
    kiln_tile_write(d, results, count, dtype, false);
}

/* The same of paired rows of weights: gates, and the sums that they are for. */
KILN_OUTLINED void finish_pairs(finish_tiles *tiles, const kiln_gemm_w4a16_args *args, const float *gates,
                                const float *sums, uint64_t row, uint64_t col, size_t count, kiln_cpu_dtype dtype) {
    float gate_tile[TILE], tile[TILE];
    KILN_INDEPENDENT
    for (size_t i = 0; i < count; i++) {
        gate_tile[i] = gates[i] * args->scale;
        tile[i] = sums[i] * args->scale;
    }
    kiln_matmul_add_bias(gate_tile, tiles->addends, args->bias, col, count, dtype);
    kiln_matmul_add_bias(tile, tiles->addends, args->bias, (uint64_t)args->n + col, count, dtype);
    if (args->activated)
        kiln_matmul_activate(gate_tile, count, args->bound, args->coefficients, KILN_W4A16_COEFFICIENTS);
    void *d = kiln_at_mut(args->d, row * (uint64_t)args->d_stride + col, dtype);
    float *results = kiln_tile_target(tiles->results, d, dtype, false);
    KILN_INDEPENDENT
    for (size_t i = 0; i < count; i++)
        results[i] = gate_tile[i] * tile[i];
    kiln_tile_write(d, results, count, dtype, false);
}

/* ---- Kernels ---- */

#include "kernels/gemm_w4a16/gemm_w4a16_rows_cpu.h"
#include "kernels/gemm_w4a16/gemm_w4a16_tiles_cpu.h"

typedef struct norm_scratch {
    float tile[KILN_TILE], factors[KILN_TILE];
} norm_scratch;
_Static_assert(sizeof(norm_scratch) <= KILN_CPU_SCRATCH, "fits");

/* Writes the normalised rows of a to d. */
KILN_OUTLINED void gemm_w4a16_norm(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_gemm_w4a16_args args = *(const kiln_gemm_w4a16_args *)arguments; /* a copy, which no store can change */
    norm_scratch *scratch = span->scratch;
    for (uint64_t row = span->begin; row < kiln_min(span->end, (uint64_t)args.m); row++) {
        const void *a = kiln_at(args.a, row * (uint64_t)args.a_stride, dtype);
        const float norm = norm_of(&args, a, dtype);
        for (uint64_t k = 0; k < (uint64_t)args.k; k += KILN_TILE) {
            size_t n = kiln_min((uint64_t)args.k - k, KILN_TILE);
            const float *values = kiln_tile_load(scratch->tile, kiln_at(a, k, dtype), n, dtype);
            void *d = kiln_at_mut(args.d, row * (uint64_t)args.d_stride + k, dtype);
            float *results = kiln_tile_target(scratch->tile, d, dtype, false);
            const float *factors = kiln_tile_load(scratch->factors, kiln_at(args.norm_weight, k, dtype), n, dtype);
            KILN_INDEPENDENT
            for (size_t i = 0; i < n; i++)
                results[i] = values[i] * norm * factors[i];
            kiln_tile_write(d, results, n, dtype, false);
        }
    }
}
KILN_CPU_KERNEL(gemm_w4a16_norm)

typedef struct join_scratch {
    float sums[TILE], gates[TILE];
    finish_tiles tiles;
} join_scratch;
_Static_assert(sizeof(join_scratch) <= KILN_CPU_SCRATCH, "fits");

KILN_OUTLINED void gemm_w4a16_join(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_gemm_w4a16_args args = *(const kiln_gemm_w4a16_args *)arguments; /* a copy, which no store can change */
    join_scratch *scratch = span->scratch;
    const uint64_t n = (uint64_t)args.n;
    for (uint64_t block = span->begin; block < span->end; block++) {
        uint64_t first = block % span->grid[0] * KILN_BLOCK, row = block / span->grid[0];
        uint64_t end = kiln_min(first + KILN_BLOCK, n);
        if (row >= (uint64_t)args.m) break;
        for (uint64_t col = first; col < end; col += TILE) {
            size_t count = kiln_min(end - col, TILE);
            float *sums = scratch->sums, *gates = scratch->gates;
            const uint64_t cols = args.paired ? 2 * n : n, step = (uint64_t)args.m * cols;
            const float *partials = args.partials + row * cols + col;
            kiln_matmul_join(sums, args.paired ? partials + n : partials, args.splits, step, count);
            if (args.paired) {
                kiln_matmul_join(gates, partials, args.splits, step, count);
                finish_pairs(&scratch->tiles, &args, gates, sums, row, col, count, dtype);
            } else {
                finish(&scratch->tiles, &args, sums, row, col, count, dtype);
            }
        }
    }
}
KILN_CPU_KERNEL(gemm_w4a16_join)
