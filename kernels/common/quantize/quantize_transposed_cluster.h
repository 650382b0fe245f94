/* quantize_fp8 and quantize_int8 on sm_90a where x's columns are not adjacent and each row has a computed scale: a
 * cluster of blocks has the rows of a tile, and each block every eighth tile of these, all in shared memory, so that x
 * is read once. A block asks for all its tiles before it looks at the first. The blocks meet once: each tells all of
 * them the greatest magnitudes that it has. Included after quantize_transposed_gpu.h.
 *
 * Floor: that of the kernel for adjacent columns. Not measured. Simulated, 32 x 2048 of bf16: 18.0 instructions an
 * element for E4M3 and 21.3 for int8, whose issue takes 0.64 of the memory's time (predicted). That without clusters,
 * which reads x twice, took an H200 104 us for 14336 x 4096 of bf16 in E4M3 (2026-11-27). */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_QUANTIZE_TRANSPOSED_CLUSTER_H
#define KILN_KERNELS_COMMON_QUANTIZE_QUANTIZE_TRANSPOSED_CLUSTER_H

#include "kernels/arch/sm90a.h"
#include "kernels/common/quantize/quantize_transposed_gpu.h"

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

/* A block's tiles. tiles: shared memory of args->held, which has them all. */
KILN_INLINE void kiln_quantize_transposed_of_cluster(const kiln_quantize_transposed_args *args, kiln_vector *tiles,
                                                     kiln_quantize_cluster_shared *shared) {
    const kiln_transposed *t = &args->x;
    const uint64_t first = kiln_block() * args->quantize.block_rows;
    if (first >= (uint64_t)t->rows) return; /* the whole cluster */
    const uint32_t cols_log2 = kiln_transposed_cols_log2(t), step = KILN_QUANTIZE_CLUSTER << cols_log2;
    const uint64_t begin = (uint64_t)kiln_tile() << cols_log2, end = (uint64_t)t->cols;
    kiln_greatest_magnitude greatest = kiln_greatest_magnitude_none();
    kiln_sm90a_cluster_arrive();
    kiln_vector *tile = tiles;
    KILN_LOOP
    for (uint64_t col = begin; col < end; col += step, tile += KILN_TRANSPOSED_VECTORS)
        kiln_transposed_load(t, kiln_transposed_at(t, first, col), tile);
    kiln_barrier();
    tile = tiles;
    KILN_LOOP
    for (uint64_t col = begin; col < end; col += step, tile += KILN_TRANSPOSED_VECTORS)
        kiln_transposed_take(t, tile, &greatest);
    kiln_transposed_tell(greatest, shared->own.of_lines);
    kiln_quantize_cluster_tell(shared);
    kiln_quantize_transposed_scales(args, first, kiln_transposed_inside(t->rows, first, t->rows_log2), &shared->own);
    kiln_barrier();
    tile = tiles;
    KILN_LOOP
    for (uint64_t col = begin; col < end; col += step, tile += KILN_TRANSPOSED_VECTORS)
        kiln_quantize_transposed_put(args, kiln_transposed_at(t, first, col), tile, shared->own.factors, true);
}

#endif
