/* d = a b^T of up to 64 rows by wgmma, sm_90a, where reading b bounds the time: how the kernels wgmma_rows_1, _2 and _4
 * of gemm, gemm_fp8 and gemm_int8 copy, multiply, and share k.
 *
 * A block has 64 columns of d: a warp copies stages of 128 bytes of each row of a and b by tensor maps, 6 of them, so
 * that two blocks fit a multiprocessor and each of their copies is far ahead; a warpgroup multiplies them. Where there
 * are fewer tiles than multiprocessors, PARTS blocks, a cluster, share a tile's k. At the end each of them gets the
 * others' sums of a part of the tile into its shared memory, where its stages were, adds them in their order, and ends
 * that part.
 *
 * The includer's argument structs are matmul_sm90a.h's, and it declares is_early(mapped). Sums are floats, or integers
 * whose bits may be a float's (w8a8_sums.h). */
#ifndef KILN_KERNELS_COMMON_MATMUL_MATMUL_ROWS_SM90A_H
#define KILN_KERNELS_COMMON_MATMUL_MATMUL_ROWS_SM90A_H

#include "kernels/arch/sm90a.h"
#include "kernels/arch/sm90a_wgmma.h"
#include "kernels/common/matmul/matmul_sm90a.h"
#include "kernels/common/matmul/w8a8_sums.h"

template <uint32_t ELEMENT_BYTES_, bool BATCHED_, uint32_t COLS_, uint32_t STAGES_, uint32_t PARTS_> struct rows_shape {
    enum : uint32_t {
        BATCHED = BATCHED_, /* whether there may be several products */
        COLS = COLS_,
        STAGES = STAGES_,
        PARTS = PARTS_,
        DEPTH = ROW_BYTES / ELEMENT_BYTES_, /* elements of k in a stage */
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
template <class S, class args_type> KILN_INLINE work rows_work(const args_type &args, uint32_t rank) {
    const uint32_t across = ((uint32_t)args.n + S::COLS - 1) / S::COLS, number = blockIdx.x / S::PARTS;
    work w;
    w.row = 0;
    w.col = (S::BATCHED ? number % across : number) * S::COLS;
    w.batch = S::BATCHED ? number / across : 0;
    w.split = 0;
    w.begin = rank * args.split;
    const uint32_t left = (uint32_t)args.k > w.begin ? (uint32_t)args.k - w.begin : 0;
    w.steps = ((left < args.split ? left : args.split) + S::DEPTH - 1) / S::DEPTH;
    return w;
}

/* ---- One thread ---- */

template <class S, class args_type> KILN_INLINE void rows_begin(const args_type &args, uint32_t shared, const work &w) {
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

template <class S, class args_type> KILN_INLINE void rows_copy(const args_type &args, uint32_t shared, const work &w) {
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

/* Waits for the stage and begins its products; they are added to the sums if `add`. */
template <class S, class unit, class sum_type>
KILN_INLINE void rows_multiply(sum_type *sums, uint32_t shared, place at, bool add) {
    const uint32_t from = shared + at.stage * S::STAGE_BYTES;
    const uint64_t a = kiln_sm90a_swizzled_128(from, 0, 8 * ROW_BYTES);
    const uint64_t b = kiln_sm90a_swizzled_128(from + S::A_BYTES, 0, 8 * ROW_BYTES);
    kiln_sm90a_mbarrier_wait(shared + S::FULL + at.stage * BARRIER_BYTES, at.parity);
    kiln_sm90a_wgmma_fence();
    KILN_UNROLL
    for (uint32_t k = 0; k < ROW_BYTES / PRODUCT_BYTES; k++) /* the addresses in units of 16 bytes */
        unit::template multiply<S::COLS>(sums, a + k * (PRODUCT_BYTES >> 4), b + k * (PRODUCT_BYTES >> 4),
                                         add || k > 0);
    kiln_sm90a_wgmma_commit();
}

template <class S> KILN_INLINE void rows_release(uint32_t shared, uint32_t stage) {
    if (kiln_thread() % 32 == 0) kiln_sm90a_mbarrier_arrive(shared + S::EMPTY + stage * BARRIER_BYTES);
}

/* Adds the products of all stages; those of one are pending while it waits for the next. */
template <class S, class unit, class sum_type>
KILN_INLINE void rows_whole(sum_type *sums, uint32_t shared, const work &w) {
    uint32_t before = 0;
    place at = {0, 0};
    KILN_LOOP
    for (uint32_t step = 0; step < w.steps; step++) {
        rows_multiply<S, unit>(sums, shared, at, true);
        kiln_sm90a_wgmma_wait<1>();
        if (step > 0) rows_release<S>(shared, before);
        before = at.stage;
        advance<S>(&at);
    }
    kiln_sm90a_wgmma_wait<0>();
}

/* ---- Sums of blocks that share k ---- */

/* Where this thread's piece of the sums of one of the blocks is in shared memory: two vectors, each beside those of the
 * other threads. */
template <class S> KILN_INLINE uint32_t rows_place(uint32_t part, uint32_t piece) {
    return ((part * S::EACH + piece) * 2 * WARPGROUP + kiln_thread()) * KILN_VECTOR_BYTES;
}

/* Gives each block of the cluster its pieces: their bits. No block uses its stages any more once all have come. */
template <class S, class sum_type> KILN_INLINE void rows_give(const sum_type *sums, uint32_t shared, uint32_t rank) {
    kiln_sm90a_cluster_sync();
    KILN_UNROLL
    for (uint32_t i = 0; i < S::PIECES; i++) {
        sum_type piece[PIECE];
        float bits[PIECE];
        take_piece(piece, sums, i / 2, i % 2);
        KILN_UNROLL
        for (uint32_t j = 0; j < PIECE; j++)
            bits[j] = w8a8_f32(piece[j]);
        const uint32_t to = kiln_sm90a_remote(shared + rows_place<S>(rank, i % S::EACH), i / S::EACH);
        kiln_sm90a_store_remote_v4(to, bits);
        kiln_sm90a_store_remote_v4(to + WARPGROUP * KILN_VECTOR_BYTES, bits + 4);
    }
    kiln_sm90a_cluster_sync();
}

/* Adds sums of another block, or their bits where they are integers. */
KILN_INLINE void rows_add(float *sum, float other, bool) {
    *sum += other;
}
KILN_INLINE void rows_add(int32_t *sum, float other, bool integer) {
    *sum = integer ? *sum + (int32_t)kiln_bits(other) : (int32_t)kiln_bits(w8a8_f32(*sum) + other);
}

template <class S, class sum_type>
KILN_INLINE void rows_sum(sum_type *piece, const uint8_t *stages, uint32_t number, bool integer) {
    KILN_UNROLL
    for (uint32_t i = 0; i < PIECE; i++)
        piece[i] = 0;
    KILN_UNROLL
    for (uint32_t part = 0; part < S::PARTS; part++) {
        const float4 *from = (const float4 *)(stages + rows_place<S>(part, number));
        const float4 low = from[0], high = from[WARPGROUP];
        const float values[PIECE] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
        KILN_UNROLL
        for (uint32_t i = 0; i < PIECE; i++)
            rows_add(&piece[i], values[i], integer);
    }
}

/* ---- A kernel ---- */

/* The warpgroup calls `multiply` with the address of shared memory, the rank in the cluster, and its work; it ends with
 * rows_give where PARTS > 1. */
template <class S, class args_type, class multiply_type>
KILN_INLINE void matmul_rows(const args_type &args, multiply_type multiply) {
    extern __shared__ __align__(1024) uint8_t stages[];
    const uint32_t shared = kiln_sm90a_shared(stages), rank = S::PARTS > 1 ? kiln_sm90a_cluster_rank() : 0;
    const work w = rows_work<S>(args.plain, rank);
    const bool copies = kiln_thread() >= WARPGROUP;
    if (copies && kiln_sm90a_elect()) rows_begin<S>(args, shared, w);
    __syncwarp();
    kiln_sm90a_begin();
    kiln_barrier();
    if (!copies) {
        multiply(shared, stages, rank, w);
        return;
    }
    if (kiln_sm90a_elect()) rows_copy<S>(args, shared, w);
    __syncwarp();
    if (S::PARTS > 1) { /* as rows_give does */
        kiln_sm90a_cluster_sync();
        kiln_sm90a_cluster_sync();
    }
}

#define ROWS_PASTE(kernel, part, args_type, cluster)                                                  \
    extern "C" __global__ void __launch_bounds__(ROWS_THREADS, ROWS_BLOCKS) __cluster_dims__(cluster) \
        kiln_##kernel##_##part(const __grid_constant__ args_type args)
#define ROWS_OF_PART(kernel, part, args_type, cluster) ROWS_PASTE(kernel, part, args_type, cluster)
#define ROWS_ENTRY(kernel, args_type, cluster)         ROWS_OF_PART(kernel, KILN_PART, args_type, cluster)

#endif
