/* quantize_fp8 and quantize_int8 on sm_90a where x's columns are not adjacent and each row has a computed scale: a
 * cluster of blocks has the rows of a tile, and each block every eighth tile of these, all in shared memory, so that x
 * is read once. A block asks for all its tiles before it looks at the first. The blocks meet once: each tells all of
 * them the greatest magnitudes that it has. Included after quantize_transposed_gpu.h.
 *
 * A thread makes the codes of elements whose magnitudes it has taken, and so knows whether all are finite.
 *
 * Floor: that of the kernel for adjacent columns. Not measured. Simulated, 32 x 2048 of bf16: 18 instructions an
 * element for E4M3 and 19.0 for int8 (21.3 with a question for NaN at each vector). That without clusters, which reads
 * x twice, took an H200 104 us for 14336 x 4096 of bf16 in E4M3 (2026-11-27). */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_QUANTIZE_TRANSPOSED_CLUSTER_H
#define KILN_KERNELS_COMMON_QUANTIZE_QUANTIZE_TRANSPOSED_CLUSTER_H

#include "kernels/arch/sm90a.h"
#include "kernels/common/quantize/quantize_finite.h"
#include "kernels/common/quantize/quantize_transposed_gpu.h"
#include "kernels/common/reduce/greatest_or_nan.h"

#define KILN_QUANTIZE_CLUSTER_HEAD \
    extern "C" __global__ __cluster_dims__(KILN_QUANTIZE_CLUSTER, 1, 1) __launch_bounds__(KILN_BLOCK) void

typedef struct kiln_quantize_cluster_shared {
    kiln_quantize_transposed_shared own;
    float told[KILN_QUANTIZE_CLUSTER][KILN_TRANSPOSED_LINES]; /* the greatest magnitudes of each block's lines */
} kiln_quantize_cluster_shared;

/* Makes the greatest magnitudes of a block's lines those of the whole cluster's. All blocks have begun once they have
 * come to kiln_sm90a_cluster_arrive. */
KILN_INLINE void kiln_quantize_cluster_tell(kiln_quantize_cluster_shared *shared) {
    kiln_barrier();
    kiln_sm90a_cluster_wait();
    KILN_UNROLL
    for (uint32_t n = kiln_thread(); n < KILN_QUANTIZE_CLUSTER * KILN_TRANSPOSED_LINES; n += KILN_BLOCK) {
        const uint32_t line = n % KILN_TRANSPOSED_LINES;
        const uint32_t target = kiln_sm90a_shared(&shared->told[kiln_tile()][line]);
        kiln_sm90a_store_remote(kiln_sm90a_remote(target, n / KILN_TRANSPOSED_LINES), shared->own.of_lines[line]);
    }
    kiln_sm90a_cluster_sync();
    if (kiln_thread() < KILN_TRANSPOSED_LINES) {
        float greatest = 0.0f;
        KILN_UNROLL
        for (uint32_t i = 0; i < KILN_QUANTIZE_CLUSTER; i++)
            greatest = kiln_fast_max(shared->told[i][kiln_thread()], greatest);
        shared->own.of_lines[kiln_thread()] = greatest;
    }
    kiln_barrier();
}

/* Stores the greatest magnitude of each line of a block's tiles. Returns whether a thread's own elements, which it
 * makes the codes of, are finite, and their codes are not bounded otherwise. */
KILN_INLINE bool kiln_quantize_cluster_take(const kiln_quantize_transposed_args *args, const kiln_vector *tiles,
                                            uint64_t begin, uint64_t end, uint32_t step, float *of_lines) {
    const kiln_transposed *t = &args->x;
    const uint32_t line = kiln_thread() / KILN_LINE_THREADS;
    const uint32_t place = kiln_transposed_place(t, line, kiln_transposed_own(line));
    const kiln_vector none = {{0}};
    kiln_greatest_or_nan all = kiln_greatest_or_nan_of(none);
    const kiln_vector *tile = tiles;
    KILN_LOOP
    for (uint64_t col = begin; col < end; col += step, tile += KILN_TRANSPOSED_VECTORS) {
        KILN_UNROLL
        for (uint32_t i = 0; i < KILN_LINE_EACH; i++)
            kiln_greatest_or_nan_take(&all, tile[place ^ i * KILN_LINE_THREADS]);
    }
    float greatest = kiln_float(kiln_greatest_or_nan_bits(all));
    const bool finite = greatest < KILN_INFINITY;
    if (!finite) {
        kiln_greatest_magnitude numbers = kiln_greatest_magnitude_none();
        tile = tiles;
        KILN_LOOP
        for (uint64_t col = begin; col < end; col += step, tile += KILN_TRANSPOSED_VECTORS)
            kiln_transposed_take(t, tile, &numbers);
        greatest = kiln_greatest_magnitude_value(numbers);
    }
    greatest = kiln_subgroup_reduce(greatest, KILN_LINE_THREADS_LOG2, KILN_REDUCE_MAX);
    if (kiln_thread() % KILN_LINE_THREADS == 0) of_lines[line] = greatest;
    return finite && args->quantize.smax == KILN_QUANTIZE_MOST;
}

/* A block's tiles. tiles: shared memory of args->held, which has them all. */
KILN_INLINE void kiln_quantize_transposed_of_cluster(const kiln_quantize_transposed_args *args, kiln_vector *tiles,
                                                     kiln_quantize_cluster_shared *shared) {
    const kiln_transposed *t = &args->x;
    const uint64_t first = kiln_block() * args->quantize.block_rows;
    if (first >= (uint64_t)t->rows) return; /* the whole cluster */
    const uint32_t cols_log2 = kiln_transposed_cols_log2(t), step = KILN_QUANTIZE_CLUSTER << cols_log2;
    const uint64_t begin = (uint64_t)kiln_tile() << cols_log2, end = (uint64_t)t->cols;
    kiln_sm90a_cluster_arrive();
    kiln_vector *tile = tiles;
    KILN_LOOP
    for (uint64_t col = begin; col < end; col += step, tile += KILN_TRANSPOSED_VECTORS)
        kiln_transposed_load(t, kiln_transposed_at(t, first, col), tile);
    kiln_barrier();
    const bool finite = kiln_quantize_cluster_take(args, tiles, begin, end, step, shared->own.of_lines);
    kiln_quantize_cluster_tell(shared);
    kiln_quantize_transposed_scales(args, first, kiln_transposed_inside(t->rows, first, t->rows_log2), &shared->own);
    kiln_barrier();
    tile = tiles;
    KILN_LOOP
    for (uint64_t col = begin; col < end; col += step, tile += KILN_TRANSPOSED_VECTORS)
        kiln_quantize_transposed_put(args, kiln_transposed_at(t, first, col), tile, shared->own.factors, finite);
}

#endif
