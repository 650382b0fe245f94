/* gemm of 17 to 64 rows by wgmma, sm_90a: gemm_wgmma_rows_1, _2 and _4, where reading b bounds the time.
 *
 * A block has 64 columns of d: a warp copies stages of 128 bytes of each row of a and b by tensor maps, 6 of them, so
 * that two blocks fit a multiprocessor and each of their copies is far ahead; a warpgroup multiplies them. Where there
 * are fewer tiles than multiprocessors, PARTS blocks, a cluster, share a tile's k. At the end each of them gets the
 * others' sums of a part of the tile into its shared memory, where its stages were, adds them in their order, and ends
 * that part (gemm_pieces.h).
 *
 * Floor: one read of b. Measured on an H200 (driver 580.159.04, 2026-11-26; 64 rows of bf16, CUDA graphs, cold), us for
 * n x k, and cuBLAS's there: 6144 x 4096 17.6 (16.7), 4096 x 4096 12.9 (13.2), 28672 x 4096 63.6 (65.1),
 * 4096 x 14336 33.0 (36.7), 1280 x 8192 10.4 (11.0), 8192 x 1024 8.1 (8.5), 7168 x 8192 33.4 (31.7), 8192 x 3584 18.3
 * (18.2). In all a multiprocessor then takes in 50 to 60 bytes/ns, of which a is half. What was no faster as a
 * prototype: tiles of 96 to 256 columns, which read a less often (128: 63 at 28672 x 4096, but 22 at 4096 x 4096),
 * clusters of 8, and copying a's rows to two or four neighbours along n at once. Joining the sums of two blocks takes
 * about 1.6 us, of four 2.5.
 *
 * The includer defines `unit` (gemm_wgmma.h). */
#ifndef KILN_KERNELS_GEMM_WGMMA_ROWS_H
#define KILN_KERNELS_GEMM_WGMMA_ROWS_H

#include "kernels/arch/sm90a_cluster.h"
#include "kernels/arch/sm90a_hints.h"
#include "kernels/gemm/gemm_mapped_args.h"
#include "kernels/gemm/gemm_pieces.h"

template <uint32_t COLS_, uint32_t STAGES_, uint32_t PARTS_> struct rows_shape {
    enum : uint32_t {
        COLS = COLS_,
        STAGES = STAGES_,
        PARTS = PARTS_,
        DEPTH = ROW_BYTES / sizeof(kiln_element),
        A_BYTES = CONSUMER_ROWS * ROW_BYTES,
        STAGE_BYTES = A_BYTES + COLS_ * ROW_BYTES,
        FULL = STAGES_ * STAGE_BYTES,
        EMPTY = FULL + STAGES_ * BARRIER_BYTES,
        END = EMPTY + STAGES_ * BARRIER_BYTES,
        PIECES = COLS_ / PART_COLS * 2,
        EACH = PIECES / PARTS_ /* that a block ends */
    };
};

enum : uint32_t { ROWS_THREADS = WARPGROUP + 32, ROWS_BLOCKS = 2 /* of a multiprocessor */ };

/* The part of a tile that is a block's: blocks of a cluster have the same tile. */
template <class S> KILN_INLINE work rows_work(const kiln_gemm_args &args, uint32_t rank) {
    const uint32_t across = ((uint32_t)args.n + S::COLS - 1) / S::COLS, number = blockIdx.x / S::PARTS;
    work w;
    w.row = 0;
    w.col = number % across * S::COLS;
    w.batch = number / across;
    w.split = 0;
    w.begin = rank * args.split;
    const uint32_t left = (uint32_t)args.k > w.begin ? (uint32_t)args.k - w.begin : 0;
    w.steps = ((left < args.split ? left : args.split) + S::DEPTH - 1) / S::DEPTH;
    return w;
}

/* ---- One thread ---- */

template <class S> KILN_INLINE void rows_begin(const kiln_gemm_mapped_args &args, uint32_t shared, const work &w) {
    kiln_sm90a_prefetch_tensormap(&args.a);
    kiln_sm90a_prefetch_tensormap(&args.b);
    KILN_UNROLL
    for (uint32_t i = 0; i < S::STAGES; i++) {
        kiln_sm90a_mbarrier_init(shared + S::FULL + i * BARRIER_BYTES, 1);
        kiln_sm90a_mbarrier_init(shared + S::EMPTY + i * BARRIER_BYTES, WARPGROUP / 32);
    }
    kiln_sm90a_fence_mbarrier_init();
    KILN_LOOP
    for (uint32_t step = 0; args.early && step < w.steps && step < S::STAGES; step++)
        kiln_sm90a_prefetch_3d(&args.b, (int32_t)(w.begin + step * S::DEPTH), (int32_t)w.col, (int32_t)w.batch);
}

template <class S> KILN_INLINE void rows_copy(const kiln_gemm_mapped_args &args, uint32_t shared, const work &w) {
    place at = {0, 0};
    KILN_LOOP
    for (uint32_t step = 0; step < w.steps; step++) {
        const uint32_t full = shared + S::FULL + at.stage * BARRIER_BYTES, to = shared + at.stage * S::STAGE_BYTES;
        const int32_t k = (int32_t)(w.begin + step * S::DEPTH), batch = (int32_t)w.batch;
        kiln_sm90a_mbarrier_wait(shared + S::EMPTY + at.stage * BARRIER_BYTES, at.parity ^ 1);
        kiln_sm90a_mbarrier_arrive_expect_tx(full, S::STAGE_BYTES);
        kiln_sm90a_copy_3d_once(to + S::A_BYTES, &args.b, full, k, (int32_t)w.col, batch);
        kiln_sm90a_copy_3d(to, &args.a, full, k, 0, batch);
        advance<S>(&at);
    }
}

/* ---- A warpgroup ---- */

template <class S, class unit> KILN_INLINE void rows_multiply(float *sums, uint32_t shared, const work &w) {
    uint32_t before = 0;
    place at = {0, 0};
    KILN_LOOP
    for (uint32_t step = 0; step < w.steps; step++) {
        const uint32_t from = shared + at.stage * S::STAGE_BYTES;
        const uint64_t a = kiln_sm90a_swizzled_128(from, 0, 8 * ROW_BYTES);
        const uint64_t b = kiln_sm90a_swizzled_128(from + S::A_BYTES, 0, 8 * ROW_BYTES);
        kiln_sm90a_mbarrier_wait(shared + S::FULL + at.stage * BARRIER_BYTES, at.parity);
        kiln_sm90a_wgmma_fence();
        KILN_UNROLL
        for (uint32_t k = 0; k < ROW_BYTES / PRODUCT_BYTES; k++) /* the addresses in units of 16 bytes */
            unit::template multiply<S::COLS>(sums, a + k * (PRODUCT_BYTES >> 4), b + k * (PRODUCT_BYTES >> 4), true);
        kiln_sm90a_wgmma_commit();
        kiln_sm90a_wgmma_wait<1>();
        if (step > 0 && kiln_thread() % 32 == 0) kiln_sm90a_mbarrier_arrive(shared + S::EMPTY + before * BARRIER_BYTES);
        before = at.stage;
        advance<S>(&at);
    }
    kiln_sm90a_wgmma_wait<0>();
}

/* Where this thread's piece of the sums of one of the blocks that share k is in shared memory: two vectors, each beside
 * those of the other threads. */
template <class S> KILN_INLINE uint32_t rows_place(uint32_t part, uint32_t piece) {
    return ((part * S::EACH + piece) * 2 * WARPGROUP + kiln_thread()) * KILN_VECTOR_BYTES;
}

/* Gives each block of the cluster its pieces. */
template <class S> KILN_INLINE void rows_give(const float *sums, uint32_t shared, uint32_t rank) {
    KILN_UNROLL
    for (uint32_t i = 0; i < S::PIECES; i++) {
        float piece[PIECE];
        take_piece(piece, sums, i / 2, i % 2);
        const uint32_t to = kiln_sm90a_remote(shared + rows_place<S>(rank, i % S::EACH), i / S::EACH);
        kiln_sm90a_store_remote_v4(to, piece);
        kiln_sm90a_store_remote_v4(to + WARPGROUP * KILN_VECTOR_BYTES, piece + 4);
    }
}

template <class S> KILN_INLINE void rows_sum(float *piece, const uint8_t *stages, uint32_t number) {
    KILN_UNROLL
    for (uint32_t i = 0; i < PIECE; i++)
        piece[i] = 0.0f;
    KILN_UNROLL
    for (uint32_t part = 0; part < S::PARTS; part++) {
        const float4 *from = (const float4 *)(stages + rows_place<S>(part, number));
        const float4 low = from[0], high = from[WARPGROUP];
        const float values[PIECE] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
        KILN_UNROLL
        for (uint32_t i = 0; i < PIECE; i++)
            piece[i] += values[i];
    }
}

template <class S>
KILN_INLINE void rows_end(const kiln_gemm_args &args, const float *sums, uint8_t *stages, uint32_t shared,
                          const work &w, uint32_t rank) {
    const bool aligned = is_aligned(args);
    const uint32_t row = kiln_thread() / 32 * 16 + kiln_thread() % 32 / 4;
    uint32_t bias[ADDEND_WORDS] = {};
    if (S::PARTS == 1) {
        load_bias(bias, args, w.col, (uint32_t)args.n, aligned);
        write_tile<S::COLS, false>(args, sums, bias, w, row, aligned, stages);
        return;
    }
    kiln_sm90a_cluster_sync(); /* no block uses its stages any more */
    rows_give<S>(sums, shared, rank);
    kiln_sm90a_cluster_sync();
    KILN_LOOP
    for (uint32_t i = 0; i < S::EACH; i++) {
        const uint32_t number = rank * S::EACH + i, first = w.col + number / 2 * PART_COLS;
        float piece[PIECE];
        load_bias(bias, args, first, (uint32_t)args.n, aligned);
        rows_sum<S>(piece, stages, i);
        end_pieces<1>(args, piece, bias, w, row + number % 2 * 8, first, (uint32_t)args.n, aligned);
    }
}

template <uint32_t COLS, uint32_t STAGES, uint32_t PARTS>
KILN_INLINE void gemm_wgmma_rows(const kiln_gemm_mapped_args &args) {
    typedef rows_shape<COLS, STAGES, PARTS> S;
    extern __shared__ __align__(1024) uint8_t stages[];
    const uint32_t shared = kiln_sm90a_shared(stages), rank = PARTS > 1 ? kiln_sm90a_cluster_rank() : 0;
    const work w = rows_work<S>(args.plain, rank);
    const bool copies = kiln_thread() >= WARPGROUP;
    if (copies && kiln_sm90a_elect()) rows_begin<S>(args, shared, w);
    __syncwarp();
    kiln_sm90a_begin();
    kiln_barrier();
    if (copies) {
        if (kiln_sm90a_elect()) rows_copy<S>(args, shared, w);
        __syncwarp();
        if (PARTS > 1) { /* as the warpgroup does at its end */
            kiln_sm90a_cluster_sync();
            kiln_sm90a_cluster_sync();
        }
    } else {
        float sums[COLS / 2] = {};
        rows_multiply<S, unit>(sums, shared, w);
        rows_end<S>(args.plain, sums, stages, shared, w, rank);
    }
}

#define ROWS_PASTE(kernel, part, cluster)                                                             \
    extern "C" __global__ void __launch_bounds__(ROWS_THREADS, ROWS_BLOCKS) __cluster_dims__(cluster) \
        kiln_##kernel##_##part(const __grid_constant__ kiln_gemm_mapped_args args)
#define ROWS_OF_PART(kernel, part, cluster) ROWS_PASTE(kernel, part, cluster)
#define ROWS_ENTRY(kernel, cluster)         ROWS_OF_PART(kernel, KILN_PART, cluster)

ROWS_ENTRY(gemm_wgmma_rows_1, 1) {
    gemm_wgmma_rows<64, 6, 1>(args);
}

ROWS_ENTRY(gemm_wgmma_rows_2, 2) {
    gemm_wgmma_rows<64, 6, 2>(args);
}

ROWS_ENTRY(gemm_wgmma_rows_4, 4) {
    gemm_wgmma_rows<64, 6, 4>(args);
}

#endif
