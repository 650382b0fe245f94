/* gemm_fp8 and gemm_int8 of few rows by wgmma, sm_90a: wgmma_rows_1, _2 and _4, where reading b bounds the time.
 *
 * A block has 64 columns of d: a warp copies stages of 128 codes of each row of a and b by tensor maps, 6 of them, so
 * that two blocks fit a multiprocessor and each of their copies is far ahead; a warpgroup multiplies them. Where there
 * are fewer tiles than multiprocessors, PARTS blocks, a cluster, share a tile's k. At the end each of them gets the
 * others' sums of a part of the tile into its shared memory, where its stages were, adds them in their order, and ends
 * that part (w8a8_sm90a_end.h).
 *
 * A stage is a group that may have scales of its own. Where sums are taken over group by group, threads load the next
 * group's scales once they have used the last one's; they come while the warpgroup waits for the next stage.
 *
 * Floor: one read of b. Measured on an H100 (driver 580.159.04, 2026-11-26; cold), us, and torch in brackets: 32 x 8192
 * x 8192 of int8 27.8 (28.3 by _int_mm); as a prototype, 64 x 8192 x 8192 of e4m3 27.7 (27.9 by _scaled_mm), with
 * scales of rows and blocks 31.5. Tiles of 128 columns, three blocks of 4 stages and clusters of 4 were no faster
 * there.
 *
 * The includer defines `unit` (w8a8_sm90a.h). */
#ifndef KILN_KERNELS_COMMON_W8A8_SM90A_ROWS_H
#define KILN_KERNELS_COMMON_W8A8_SM90A_ROWS_H

#include "kernels/arch/sm90a_cluster.h"
#include "kernels/arch/sm90a_hints.h"
#include "kernels/common/w8a8_sm90a_end.h"

template <uint32_t COLS_, uint32_t STAGES_, uint32_t PARTS_> struct rows_shape {
    enum : uint32_t {
        COLS = COLS_,
        STAGES = STAGES_,
        PARTS = PARTS_,
        A_BYTES = CONSUMER_ROWS * ROW_BYTES,
        STAGE_BYTES = A_BYTES + COLS_ * ROW_BYTES,
        FULL = STAGES_ * STAGE_BYTES,
        EMPTY = FULL + STAGES_ * BARRIER_BYTES,
        END = EMPTY + STAGES_ * BARRIER_BYTES,
        PIECES = COLS_ / PART_COLS * 2,
        EACH = PIECES / PARTS_, /* that a block ends */
        OWN = COLS_ / 4         /* columns of a thread */
    };
};

enum : uint32_t { ROWS_THREADS = WARPGROUP + 32, ROWS_BLOCKS = 2 /* of a multiprocessor */ };

/* The part of a tile that is a block's: blocks of a cluster have the same tile. */
template <class S> KILN_INLINE work rows_work(const kiln_w8a8_args &args, uint32_t rank) {
    const uint32_t begin = rank * args.split, left = (uint32_t)args.k > begin ? (uint32_t)args.k - begin : 0;
    const uint32_t depth = left < args.split ? left : args.split;
    return {0, blockIdx.x / S::PARTS * S::COLS, 0, 0, begin, (depth + ROW_BYTES - 1) / ROW_BYTES};
}

/* ---- One thread ---- */

template <class S> KILN_INLINE void rows_begin(const kiln_w8a8_mapped_args &args, uint32_t shared, const work &w) {
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
        kiln_sm90a_prefetch_3d(&args.b, (int32_t)(w.begin + step * ROW_BYTES), (int32_t)w.col, 0);
}

template <class S> KILN_INLINE void rows_copy(const kiln_w8a8_mapped_args &args, uint32_t shared, const work &w) {
    place at = {0, 0};
    KILN_LOOP
    for (uint32_t step = 0; step < w.steps; step++) {
        const uint32_t full = shared + S::FULL + at.stage * BARRIER_BYTES, to = shared + at.stage * S::STAGE_BYTES;
        const int32_t k = (int32_t)(w.begin + step * ROW_BYTES);
        kiln_sm90a_mbarrier_wait(shared + S::EMPTY + at.stage * BARRIER_BYTES, at.parity ^ 1);
        kiln_sm90a_mbarrier_arrive_expect_tx(full, S::STAGE_BYTES);
        kiln_sm90a_copy_3d_once(to + S::A_BYTES, &args.b, full, k, (int32_t)w.col, 0);
        kiln_sm90a_copy_3d(to, &args.a, full, k, 0, 0);
        advance<S>(&at);
    }
}

/* ---- A warpgroup ---- */

/* The scales of a group: of a thread's two rows and of its columns. */
template <class S> struct rows_scales { float rows[2], cols[S::OWN]; };

/* Rows and columns beyond the last have the last's. `row` and `col` are the thread's first. */
template <class S>
KILN_INLINE void load_group(rows_scales<S> *scales, const kiln_w8a8_args &args, uint32_t row, uint32_t col,
                            uint32_t group) {
    const uint32_t a_last = (uint32_t)args.m - 1, b_last = (uint32_t)args.n - 1;
    KILN_UNROLL
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t at = row + 8 * i;
        scales->rows[i] = kiln_w8a8_scale(&args.a_scales, at < a_last ? at : a_last, group);
    }
    KILN_UNROLL
    for (uint32_t i = 0; i < S::OWN; i++) {
        const uint32_t at = col + i / 2 * 8 + i % 2;
        scales->cols[i] = kiln_w8a8_scale(&args.b_scales, at < b_last ? at : b_last, group);
    }
}

/* Waits for the stage and begins its products; they are added to the sums if `add`. */
template <class S, class unit>
KILN_INLINE void rows_multiply(typename unit::sums *sums, uint32_t shared, place at, bool add) {
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
template <class S, class unit> KILN_INLINE void rows_whole(typename unit::sums *sums, uint32_t shared, const work &w) {
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

template <class S, class unit>
KILN_INLINE void rows_groups(typename unit::sums *sums, const kiln_w8a8_args &args, uint32_t shared, const work &w,
                             uint32_t row) {
    const uint32_t col = w.col + own_col(), group = w.begin / KILN_W8A8_GROUP;
    rows_scales<S> scales;
    place at = {0, 0};
    if (args.grouped && w.steps) load_group(&scales, args, row, col, group);
    KILN_LOOP
    for (uint32_t step = 0; step < w.steps; step++) {
        typename unit::sums products[S::COLS / 2];
        rows_multiply<S, unit>(products, shared, at, false);
        kiln_sm90a_wgmma_wait<0>();
        kiln_sm90a_wgmma_hold<S::COLS / 2>(products);
        rows_release<S>(shared, at.stage);
        advance<S>(&at);
        KILN_UNROLL
        for (uint32_t i = 0; i < S::COLS / 2; i++) {
            const float factor = args.grouped ? scales.rows[i / 2 % 2] * scales.cols[i / 4 * 2 + i % 2] : 1.0f;
            w8a8_add(&sums[i], unit::value(products[i]), factor);
        }
        if (args.grouped && step + 1 < w.steps) load_group(&scales, args, row, col, group + step + 1);
    }
}

/* Where this thread's piece of the sums of one of the blocks that share k is in shared memory: two vectors, each beside
 * those of the other threads. */
template <class S> KILN_INLINE uint32_t rows_place(uint32_t part, uint32_t piece) {
    return ((part * S::EACH + piece) * 2 * WARPGROUP + kiln_thread()) * KILN_VECTOR_BYTES;
}

/* Gives each block of the cluster its pieces: their bits. */
template <class S, class sum_type> KILN_INLINE void rows_give(const sum_type *sums, uint32_t shared, uint32_t rank) {
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

template <class S, class unit>
KILN_INLINE void rows_end(const kiln_w8a8_args &args, const typename unit::sums *sums, uint8_t *stages, uint32_t shared,
                          const work &w, uint32_t rank, uint32_t row, const ending &end) {
    if (S::PARTS > 1) {
        kiln_sm90a_cluster_sync(); /* no block uses its stages any more */
        rows_give<S>(sums, shared, rank);
        kiln_sm90a_cluster_sync();
    }
    KILN_UNROLL
    for (uint32_t i = 0; i < S::EACH; i++) {
        const uint32_t number = rank * S::EACH + i;
        typename unit::sums piece[PIECE];
        if (S::PARTS > 1)
            rows_sum<S>(piece, stages, i, end.integer);
        else
            take_piece(piece, sums, i / 2, i % 2);
        end_piece<unit>(args, piece, w, row + number % 2 * 8, w.col + number / 2 * PART_COLS, end);
    }
}

template <class unit, uint32_t COLS, uint32_t STAGES, uint32_t PARTS>
KILN_INLINE void w8a8_wgmma_rows(const kiln_w8a8_mapped_args &args) {
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
        return;
    }
    const uint32_t row = kiln_thread() / 32 * 16 + kiln_thread() % 32 / 4;
    const bool whole = unit::whole(args);
    const ending end = {args.plain.grouped != 0, whole, is_aligned(args.plain)};
    typename unit::sums sums[COLS / 2] = {};
    kiln_sm90a_wgmma_hold<COLS / 2>(sums); /* else the assembler makes one product wait for the other */
    if (whole)
        rows_whole<S, unit>(sums, shared, w);
    else
        rows_groups<S, unit>(sums, args.plain, shared, w, row);
    rows_end<S, unit>(args.plain, sums, stages, shared, w, rank, row, end);
}

#define ROWS_PASTE(kernel, part, cluster)                                                             \
    extern "C" __global__ void __launch_bounds__(ROWS_THREADS, ROWS_BLOCKS) __cluster_dims__(cluster) \
        kiln_##kernel##_##part(const __grid_constant__ kiln_w8a8_mapped_args args)
#define ROWS_OF_PART(kernel, part, cluster) ROWS_PASTE(kernel, part, cluster)
#define ROWS_ENTRY(kernel, cluster)         ROWS_OF_PART(kernel, KILN_PART, cluster)

#endif
