/* What matrix products by wgmma (sm_90a) share: d[m x n] = a[m x k] b[n x k]^T, with both factors copied by tensor
 * maps.
 *
 * A block computes tiles of 128 rows and COLS columns of d, one after the other; there are as many blocks as
 * multiprocessors. A stage is 128 bytes of each row of a and b; STAGES of them are in shared memory. One thread of the
 * first warpgroup copies them by tensor maps, swizzled as wgmma takes them, ahead of the products and across tiles;
 * beyond the ends of a and b a copy writes zeros. Of a stage's two barriers `full` counts the bytes that have come, and
 * other arrivals of the kernel, `empty` the warps that have multiplied it. Two warpgroups have half of a tile's rows
 * each. The first one hands registers to them: 168 per thread become 40 and 232.
 *
 * With clusters, two blocks compute tiles below each other: each copies its rows of a, and half of those of b to both.
 * A stage is empty when the warps of both have multiplied it.
 *
 * The warp that copies initialises the barriers, and waits for no other warp before its first copies; of clusters, for
 * the other block's. Clusters meet by barriers that order no memory: those that do wait for what a block wrote before.
 *
 * Tiles are taken in bands of 16 (COLS 256), 8 or 2 (COLS 64) rows of tiles, column by column, so that what the blocks
 * read at a time stays in L2, and neighbours read the same. If d has few tiles and k is long, blocks share a tile's k,
 * and another kernel adds the partial sums.
 *
 * On a programmatic stream (sm90a_programmatic.h) a block initialises its barriers and prefetches the first stages of
 * b, usually weights, into L2 before it waits for the preceding kernel. Where there is nothing to wait for, that would
 * cost the copies 0.6 to 1.6 us (measured on an H200: 7.6 instead of 8.3 us for gemm at 1024 cubed, when it took that).
 *
 * Found on an H100 with a prototype: acquire and release at cluster scope in the loop over k cost a quarter of the
 * speed, and so did a branch around the arrival at the other block's barrier.
 *
 * The includer's argument structs have m, n, k, splits, split and tile_rows; the mapped one begins with the other,
 * `plain`, and has the maps a and b. It declares batch_of(plain), the number of products, and is_early(mapped), whether
 * the kernel may have begun before the preceding one has ended. */
#ifndef KILN_KERNELS_COMMON_MATMUL_MATMUL_SM90A_H
#define KILN_KERNELS_COMMON_MATMUL_MATMUL_SM90A_H

#include "kernels/arch/sm90a_programmatic.h"
#include "kernels/arch/sm90a_wgmma.h"
#include "kernels/common/values.h"

enum : uint32_t {
    ROW_BYTES = 128,    /* of a stage: the swizzle's span */
    PRODUCT_BYTES = 32, /* of a row, in one instruction */
    WARPGROUP = 128,
    CONSUMERS = 2, /* warpgroups */
    CONSUMER_ROWS = 64,
    TILE_ROWS = CONSUMERS * CONSUMER_ROWS,
    THREADS = WARPGROUP * (1 + CONSUMERS),
    PRODUCER_REGISTERS = 40,
    CONSUMER_REGISTERS = 232,
    BARRIER_BYTES = 8,
    PART_COLS = 32, /* of a tile that are finished at a time */
    PIECE = PART_COLS / 8 * 2
};

/* A kernel's tile, and where its stages lie in shared memory: data, then the barriers `full`, then `empty`. */
template <uint32_t ELEMENT_BYTES_, uint32_t COLS_, uint32_t STAGES_, uint32_t CLUSTER_> struct matmul_shape {
    enum : uint32_t {
        ELEMENT_BYTES = ELEMENT_BYTES_, /* of a and b */
        COLS = COLS_,
        STAGES = STAGES_,
        CLUSTER = CLUSTER_,
        DEPTH = ROW_BYTES / ELEMENT_BYTES_, /* elements of k in a stage */
        RASTER = (COLS_ == 256  ? 16
                  : COLS_ == 64 ? 2
                                : 8) /
                 CLUSTER_, /* rows of clusters of tiles in a band */
        A_BYTES = TILE_ROWS * ROW_BYTES,
        B_BYTES = COLS_ * ROW_BYTES,
        STAGE_BYTES = A_BYTES + B_BYTES,
        FULL = STAGES_ * STAGE_BYTES,
        EMPTY = FULL + STAGES_ * BARRIER_BYTES,
        END = EMPTY + STAGES_ * BARRIER_BYTES
    };
};

/* The next stage, and the parity of the phase of its barriers: that of `full`, and the opposite of that of `empty`. */
struct place {
    uint32_t stage, parity;
};

template <class S> KILN_INLINE void advance(place *at) {
    at->stage++;
    if (at->stage < S::STAGES) return;
    at->stage = 0;
    at->parity ^= 1;
}

/* A tile of this block: its first row and column in d, and the columns of a and b that it takes. */
struct work {
    uint32_t row, col, batch, split, begin, steps;
};

template <class S, class args_type> KILN_INLINE uint32_t tiles_down(const args_type &args) {
    return (args.tile_rows + S::CLUSTER - 1) / S::CLUSTER;
}

template <class S, class args_type> KILN_INLINE uint32_t tiles_across(const args_type &args) {
    return ((uint32_t)args.n + S::COLS - 1) / S::COLS;
}

/* The number of tiles for all clusters together. */
template <class S, class args_type> KILN_INLINE uint32_t work_count(const args_type &args) {
    return tiles_down<S>(args) * tiles_across<S>(args) * args.splits * batch_of(args);
}

template <class S, class args_type> KILN_INLINE work work_of(const args_type &args, uint32_t number, uint32_t rank) {
    uint32_t rows = tiles_down<S>(args), cols = tiles_across<S>(args);
    uint32_t tile = number % (rows * cols), rest = number / (rows * cols);
    uint32_t band = tile / (S::RASTER * cols), within = tile % (S::RASTER * cols), above = band * S::RASTER;
    uint32_t height = rows - above < S::RASTER ? rows - above : S::RASTER;
    work w;
    w.row = ((above + within % height) * S::CLUSTER + rank) * TILE_ROWS;
    w.col = within / height * S::COLS;
    w.split = rest % args.splits;
    w.batch = rest / args.splits;
    w.begin = w.split * args.split;
    uint32_t left = (uint32_t)args.k - w.begin, depth = left < args.split ? left : args.split;
    w.steps = (depth + S::DEPTH - 1) / S::DEPTH;
    return w;
}

/* ---- Copies: one thread ---- */

/* `w`: the block's first tile. */
template <class S, class args_type>
KILN_INLINE void copy_tiles(const args_type &args, uint32_t shared, uint32_t rank, work w) {
    const uint32_t count = work_count<S>(args.plain), part = rank * (S::COLS / S::CLUSTER);
    uint32_t number = blockIdx.x / S::CLUSTER;
    place at = {0, 0};
    KILN_LOOP
    for (;;) {
        KILN_LOOP
        for (uint32_t step = 0; step < w.steps; step++) {
            uint32_t full = shared + S::FULL + at.stage * BARRIER_BYTES, to = shared + at.stage * S::STAGE_BYTES;
            int32_t k = (int32_t)(w.begin + step * S::DEPTH), batch = (int32_t)w.batch;
            kiln_sm90a_mbarrier_wait(shared + S::EMPTY + at.stage * BARRIER_BYTES, at.parity ^ 1);
            kiln_sm90a_mbarrier_arrive_expect_tx(full, S::STAGE_BYTES);
            kiln_sm90a_copy_3d(to, &args.a, full, k, (int32_t)w.row, batch);
            to += S::A_BYTES + part * ROW_BYTES;
            if (S::CLUSTER > 1)
                kiln_sm90a_copy_3d_multicast(to, &args.b, full, (1 << S::CLUSTER) - 1, k, (int32_t)(w.col + part),
                                             batch);
            else
                kiln_sm90a_copy_3d(to, &args.b, full, k, (int32_t)w.col, batch);
            advance<S>(&at);
        }
        number += gridDim.x / S::CLUSTER;
        if (number >= count) return;
        w = work_of<S>(args.plain, number, rank);
    }
}

/* Prefetches this block's rows of b in the first stages into L2. */
template <class S, class args_type> KILN_INLINE void prefetch_weights(const args_type &args, uint32_t rank) {
    const uint32_t number = blockIdx.x / S::CLUSTER, part = rank * (S::COLS / S::CLUSTER);
    if (number >= work_count<S>(args.plain)) return;
    const work w = work_of<S>(args.plain, number, rank);
    KILN_LOOP
    for (uint32_t step = 0; step < w.steps && step < S::STAGES; step++)
        kiln_sm90a_prefetch_3d(&args.b, (int32_t)(w.begin + step * S::DEPTH), (int32_t)(w.col + part),
                               (int32_t)w.batch);
}

/* ---- Products: two warpgroups ---- */

/* Signals that a warp has multiplied a stage; one lane signals each block of the cluster. */
template <class S> KILN_INLINE void release(uint32_t shared, uint32_t stage, bool present) {
    uint32_t lane = kiln_thread() % 32;
    kiln_sm90a_mbarrier_arrive_remote(shared + S::EMPTY + stage * BARRIER_BYTES, lane, present && lane < S::CLUSTER);
}

/* Waits for the stage, and begins the products of this warpgroup's rows with COLS rows of b from `first` on; they are
 * added to the sums if `add`. */
template <class S, class unit, uint32_t COLS, class sum_type>
KILN_INLINE void begin_products(sum_type *sums, uint32_t shared, place at, uint32_t first, bool add) {
    const uint32_t own = (kiln_thread() / WARPGROUP - 1) * CONSUMER_ROWS, from = shared + at.stage * S::STAGE_BYTES;
    uint64_t a = kiln_sm90a_swizzled_128(from + own * ROW_BYTES, 0, 8 * ROW_BYTES);
    uint64_t b = kiln_sm90a_swizzled_128(from + S::A_BYTES + first * ROW_BYTES, 0, 8 * ROW_BYTES);
    kiln_sm90a_mbarrier_wait(shared + S::FULL + at.stage * BARRIER_BYTES, at.parity);
    kiln_sm90a_wgmma_fence();
    KILN_UNROLL
    for (uint32_t k = 0; k < ROW_BYTES / PRODUCT_BYTES; k++) /* the addresses in units of 16 bytes */
        unit::template multiply<COLS>(sums, a + k * (PRODUCT_BYTES >> 4), b + k * (PRODUCT_BYTES >> 4), add || k > 0);
    kiln_sm90a_wgmma_commit();
}

/* Adds the products of a tile's stages. Those of one stage are pending while it waits for the next. */
template <class S, class unit, class sum_type>
KILN_INLINE void add_products(sum_type *sums, uint32_t shared, place *at, uint32_t steps) {
    uint32_t before = 0;
    KILN_LOOP
    for (uint32_t step = 0; step < steps; step++) {
        begin_products<S, unit, S::COLS>(sums, shared, *at, 0, true);
        kiln_sm90a_wgmma_wait<1>();
        release<S>(shared, before, step > 0);
        before = at->stage;
        advance<S>(at);
    }
    kiln_sm90a_wgmma_wait<0>();
    release<S>(shared, before, true);
}

/* ---- The end of a tile. A thread has two elements of two rows in each 8 columns; PIECE elements, those of one row in
 * PART_COLS columns, are finished at a time ---- */

/* The row of d, and the column in the tile, of this thread's first elements of a tile. */
KILN_INLINE uint32_t own_row(const work &w) {
    return w.row + (kiln_thread() - WARPGROUP) / 32 * 16 + kiln_thread() % 32 / 4;
}
KILN_INLINE uint32_t own_col(void) {
    return kiln_thread() % 4 * 2;
}

/* The piece of a tile's sums in the columns from PART_COLS * part on, of the upper or the lower row. */
template <class sum_type>
KILN_INLINE void take_piece(sum_type *piece, const sum_type *sums, uint32_t part, uint32_t lower) {
    KILN_UNROLL
    for (uint32_t i = 0; i < PIECE; i++)
        piece[i] = sums[part * 2 * PIECE + i / 2 * 4 + 2 * lower + i % 2];
}

/* Reads the elements of a row in the columns of a piece, from this thread's first column on, two at a time. */
KILN_INLINE void read_piece(float *values, const kiln_element *from) {
    KILN_UNROLL
    for (uint32_t i = 0; i < PIECE; i += 2) {
#ifdef KILN_PART_f32
        float2 pair = *(const float2 *)(from + 4 * i);
        values[i] = pair.x;
        values[i + 1] = pair.y;
#else
        kiln_pair_values(values + i, *(const uint32_t *)(from + 4 * i));
#endif
    }
}

/* Four threads of a row each have a word of each of four 16-byte vectors; afterwards each has a whole vector. */
KILN_INLINE void exchange(uint32_t *words) {
    uint32_t lane = kiln_thread();
    KILN_UNROLL
    for (uint32_t mask = 1; mask < 4; mask *= 2) {
        bool upper = lane & mask;
        KILN_UNROLL
        for (uint32_t i = 0; i < 4; i++) {
            if (i & mask) continue;
            uint32_t got = __shfl_xor_sync(0xffffffffu, upper ? words[i] : words[i | mask], (int)mask);
            words[i] = upper ? got : words[i];
            words[i | mask] = upper ? words[i | mask] : got;
        }
    }
}

/* Rounds the pieces of a row's four threads and writes them by whole sectors, if the row is `present`; `to` is the
 * first of its PART_COLS columns. All lanes of the warp must call this. */
KILN_INLINE void write_piece(kiln_element *to, const float *values, bool present) {
#ifdef KILN_PART_f32
    KILN_UNROLL
    for (uint32_t i = 0; i < PIECE; i += 2)
        if (present) *(float2 *)(to + own_col() + 4 * i) = make_float2(values[i], values[i + 1]);
#else
    uint32_t words[PIECE / 2];
    KILN_UNROLL
    for (uint32_t i = 0; i < PIECE / 2; i++)
        words[i] = kiln_pair_of(values + 2 * i);
    exchange(words);
    if (present)
        kiln_vector_store(to + kiln_thread() % 4 * KILN_VECTOR, kiln_vector{{words[0], words[1], words[2], words[3]}});
#endif
}

/* ---- A kernel ---- */

/* Waits until the barriers of the block, or of its cluster's blocks, are initialised. The warp that copies did that in
 * its block, and waits for nothing else. */
template <class S> KILN_INLINE void meet(bool copies) {
    if (S::CLUSTER > 1)
        kiln_sm90a_cluster_wait();
    else if (copies)
        kiln_sm90a_barrier_arrive(1, THREADS);
    else
        kiln_sm90a_barrier_sync(1, THREADS);
}

/* `beside` is what the first warpgroup's other warps do; other warpgroups call `multiply`. Both get the address of
 * shared memory and the rank in the cluster. `full` counts `arrivals`, one of them for the copies. */
template <class S, class args_type, class beside_type, class multiply_type>
KILN_INLINE void matmul(const args_type &args, uint32_t arrivals, beside_type beside, multiply_type multiply) {
    extern __shared__ __align__(1024) uint8_t stages[];
    uint32_t shared = kiln_sm90a_shared(stages), rank = S::CLUSTER > 1 ? kiln_sm90a_cluster_rank() : 0;
    if (kiln_thread() == 0) {
        kiln_sm90a_prefetch_tensormap(&args.a);
        kiln_sm90a_prefetch_tensormap(&args.b);
        KILN_UNROLL
        for (uint32_t i = 0; i < S::STAGES; i++) {
            kiln_sm90a_mbarrier_init(shared + S::FULL + i * BARRIER_BYTES, arrivals);
            kiln_sm90a_mbarrier_init(shared + S::EMPTY + i * BARRIER_BYTES, S::CLUSTER * CONSUMERS * (WARPGROUP / 32));
        }
        kiln_sm90a_fence_mbarrier_init();
        if (is_early(args)) prefetch_weights<S>(args, rank);
    }
    __syncwarp();
    if (S::CLUSTER > 1) kiln_sm90a_cluster_arrive();
    if (kiln_thread() < WARPGROUP) {
        const work first = work_of<S>(args.plain, blockIdx.x / S::CLUSTER, rank);
        const bool copies = kiln_thread() < 32;
        kiln_sm90a_setmaxnreg_dec<PRODUCER_REGISTERS>();
        kiln_sm90a_begin();
        meet<S>(copies);
        if (!copies)
            beside(shared, stages, rank);
        else if (kiln_sm90a_elect())
            copy_tiles<S>(args, shared, rank, first);
    } else {
        kiln_sm90a_setmaxnreg_inc<CONSUMER_REGISTERS>();
        kiln_sm90a_begin();
        meet<S>(false);
        multiply(shared, stages, rank);
    }
    /* No block ends while the other one copies into it or signals its barriers. What it has written need not have
     * arrived. */
    __syncwarp();
    if (S::CLUSTER > 1) {
        kiln_sm90a_cluster_arrive();
        kiln_sm90a_cluster_wait();
    }
}

#define MATMUL_PASTE(kernel, part, args_type, cluster)                                 \
    extern "C" __global__ void __launch_bounds__(THREADS, 1) __cluster_dims__(cluster) \
        kiln_##kernel##_##part(const __grid_constant__ args_type args)
#define MATMUL_OF_PART(kernel, part, args_type, cluster) MATMUL_PASTE(kernel, part, args_type, cluster)
#define MATMUL_ENTRY(kernel, args_type, cluster)         MATMUL_OF_PART(kernel, KILN_PART, args_type, cluster)

#endif
