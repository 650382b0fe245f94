/* gemm_w4a16 by wgmma, sm_90a, of more than 16 rows of a and weights in the layout sm80_v1 (gemm_w4a16_layout.h):
 * gemm_w4a16_wgmma_32 and _64, tiles of so many rows of a x 256 of weights, _128, 128 x 192, _128_256, 128 x 256, and
 * _256, 256 x 128.
 *
 * Weights are wgmma's first factor, from registers, and rows of a its second, from shared memory: what products make is
 * a part of d, transposed. So weights become numbers of 16 bits once for all rows of a tile: times the scale, plus the
 * zero, with one rounding, and then times pre_scale. Two to four warpgroups have 64 of a tile's rows of weights each,
 * as many as have registers for their sums. A warp of another one copies by tensor maps, 64 elements of k at a time, as
 * many stages ahead as shared memory has: 128 bytes of each row of a, swizzled as wgmma takes them, and the layout's
 * tiles as they are. While a warpgroup's products of a stage are made, it makes the numbers of the next and begins
 * their products. A block does one tile after the other (matmul_sm90a.h). Two blocks of _256, a cluster, do tiles
 * beside each other: each copies half of the rows of a to both.
 *
 * The layout is that of mma.sync with k in another order: a lane has 8 neighbours of k in 32, and wgmma wants 2 of each
 * of four lanes. They exchange them before they are numbers: two shuffles for 16 integers.
 *
 * The end of a tile transposes 8 x 8 elements at a time (movmatrix), and four lanes exchange words so that each writes
 * 16 bytes of a row of d. Where d has few tiles, blocks share k, and gemm_w4a16_wgmma_join adds the partial sums.
 *
 * Floor: 2 m n k operations, or one read of the weights. Measured on an H100 (driver 580.159.04, 2026-11-26; bf16, CUDA
 * graphs, weights not in L2, groups of 128), in us, and cuBLAS's with weights of bf16 in the same process:
 *
 *   n x k           32 rows   64 rows, cuBLAS   128 rows        256 rows      1024 rows       4096 rows
 *   8192 x 8192      24.4      30.7    48.6      37.3    50.1    54.4  54.3    214.9  182.5    756 to 838  674 to 690
 *   28672 x 8192     77.7      96.8   170.8     176.8   169.0
 *   8192 x 28672               82.0   171.8
 *   4096 x 4096      11.4      13.5     8.4 (in L2)
 *
 * Groups of 32 cost 64 rows 10 us, zeros 2. With 64 rows, a scheduler issues in half of the cycles: its four warps wait
 * for their own instructions, of which a word of integers takes 37. The rates of the tiles are from there. ptxas 13.0
 * and 12.8 do alike.
 *
 * Not better: two warpgroups with 128 rows of weights each, which wait for a stage's products before the next begin (64
 * rows of 8192 x 8192 32.1, 128 rows 43.6, 256 rows 61.5); products of half a stage at a time (64 rows 33.0, 4096 rows
 * 890); clusters of two for 64 and 128 rows (32.0, 38.8).
 *
 * _128_256 is for 128 rows where tiles of 192 columns of d would take a round more. A prototype that made the products
 * of a stage at once, and spilled 16 bytes, took 128.9 us for 28672 x 8192 (cuBLAS 169.0); ptxas makes it without
 * spills only one product after the other. So it makes them by half stages, and finds a tile's place again at its end.
 * Its rate is the prototype's, less the 7 % that half stages cost 64 rows: predicted. Not measured. */
#ifndef KILN_KERNELS_GEMM_W4A16_WGMMA_H
#define KILN_KERNELS_GEMM_W4A16_WGMMA_H

#include "kernels/arch/sm90a.h"
#include "kernels/arch/sm90a_wgmma.h"
#include "kernels/common/math/special.h"
#include "kernels/common/matmul/matmul_sm90a.h"
#include "kernels/gemm_w4a16/gemm_w4a16_integers.h"
#include "kernels/gemm_w4a16/gemm_w4a16_mapped_args.h"

static_assert(KILN_TENSOR_MAP_FITS_SM90(offsetof(kiln_gemm_w4a16_mapped_args, a)), "the offset of tensor maps");

/* A kernel's tile, and where its stages lie in shared memory: rows of a, tiles of weights; behind the stages the
 * barriers `full`, then `empty`. */
template <uint32_t ROWS_, uint32_t GROUPS_, uint32_t TURNS_, uint32_t STAGES_, uint32_t CLUSTER_> struct wgmma_shape {
    enum : uint32_t {
        ROWS = ROWS_,     /* of a */
        GROUPS = GROUPS_, /* warpgroups, which have 64 rows of weights each */
        TURNS = TURNS_,   /* in which the products of a stage are made: 1 or 2 */
        STAGES = STAGES_,
        CLUSTER = CLUSTER_,                          /* blocks, which compute tiles beside each other */
        COLS = GROUPS_ * CONSUMER_ROWS,              /* rows of weights */
        STEPS = KILN_W4A16_TILE_DEPTH / 16 / TURNS_, /* of k, of a turn: products */
        /* Of the 65536 of a multiprocessor, those of a thread that multiplies, and of the warpgroup that copies. */
        REGISTERS = GROUPS_ == 2   ? 232
                    : GROUPS_ == 3 ? 160
                                   : 112,
        COPY_REGISTERS = GROUPS_ == 2 ? 40 : 32,
        FULL_OF_SUMS = ROWS_ == 128 && GROUPS_ == 4, /* which leave no registers for what can be found again */
        BAND = 16,                                   /* tiles below each other that are taken first */
        A_BYTES = ROWS_ * ROW_BYTES,
        STAGE_BYTES = A_BYTES + COLS / KILN_W4A16_TILE_ROWS * KILN_W4A16_TILE_BYTES,
        FULL = STAGES_ * STAGE_BYTES,
        EMPTY = FULL + STAGES_ * BARRIER_BYTES
    };
};

/* ---- Tiles ---- */

/* The clusters of tiles beside each other. */
template <class S> KILN_INLINE uint32_t tiles_beside(const kiln_gemm_w4a16_args &args) {
    return ((uint32_t)args.n + S::CLUSTER * S::COLS - 1) / (S::CLUSTER * S::COLS);
}

template <class S> KILN_INLINE uint32_t tile_count(const kiln_gemm_w4a16_args &args) {
    return args.tile_rows * tiles_beside<S>(args) * args.splits;
}

template <class S> KILN_INLINE work tile_of(const kiln_gemm_w4a16_args &args, uint32_t number, uint32_t rank) {
    const uint32_t rows = args.tile_rows, cols = tiles_beside<S>(args);
    const uint32_t tile = number % (rows * cols), above = tile / (S::BAND * cols) * S::BAND;
    const uint32_t within = tile % (S::BAND * cols), height = rows - above < S::BAND ? rows - above : S::BAND;
    work w;
    w.batch = 0;
    w.row = (above + within % height) * S::ROWS;
    w.col = (within / height * S::CLUSTER + rank) * S::COLS;
    w.split = number / (rows * cols);
    w.begin = w.split * args.split;
    const uint32_t left = (uint32_t)args.k - w.begin, depth = left < args.split ? left : args.split;
    w.steps = depth / KILN_W4A16_TILE_DEPTH;
    return w;
}

/* ---- Copies: one thread ---- */

/* The first word of the layout's tiles at k. */
KILN_INLINE int32_t word_at(uint32_t k) {
    return (int32_t)(k / KILN_W4A16_TILE_DEPTH * (KILN_W4A16_TILE_BYTES / 4));
}

template <class S>
KILN_INLINE void copy_stages(const kiln_gemm_w4a16_mapped_args &args, uint32_t shared, uint32_t rank) {
    const uint32_t count = tile_count<S>(args.plain), part = rank * (S::ROWS / S::CLUSTER);
    const bool once = args.plain.tile_rows == 1; /* weights are read */
    place at = {0, 0};
    KILN_LOOP
    for (uint32_t number = blockIdx.x / S::CLUSTER; number < count; number += gridDim.x / S::CLUSTER) {
        const work w = tile_of<S>(args.plain, number, rank);
        KILN_LOOP
        for (uint32_t step = 0; step < w.steps; step++) {
            const uint32_t full = shared + S::FULL + at.stage * BARRIER_BYTES, to = shared + at.stage * S::STAGE_BYTES;
            const uint32_t k = w.begin + step * KILN_W4A16_TILE_DEPTH;
            const int32_t tile = (int32_t)(w.col / KILN_W4A16_TILE_ROWS);
            kiln_sm90a_mbarrier_wait(shared + S::EMPTY + at.stage * BARRIER_BYTES, at.parity ^ 1);
            kiln_sm90a_mbarrier_arrive_expect_tx(full, S::STAGE_BYTES);
            if (once)
                kiln_sm90a_copy_3d_once(to + S::A_BYTES, &args.weights, full, word_at(k), tile, 0);
            else
                kiln_sm90a_copy_3d(to + S::A_BYTES, &args.weights, full, word_at(k), tile, 0);
            if (S::CLUSTER > 1)
                kiln_sm90a_copy_3d_multicast(to + part * ROW_BYTES, &args.a, full, (1 << S::CLUSTER) - 1, (int32_t)k,
                                             (int32_t)(w.row + part), 0);
            else
                kiln_sm90a_copy_3d(to, &args.a, full, (int32_t)k, (int32_t)w.row, 0);
            advance<S>(&at);
        }
    }
}

/* Prefetches this block's weights of the first stages into L2. */
template <class S> KILN_INLINE void prefetch_stages(const kiln_gemm_w4a16_mapped_args &args, uint32_t rank) {
    const uint32_t number = blockIdx.x / S::CLUSTER;
    if (number >= tile_count<S>(args.plain)) return;
    const work w = tile_of<S>(args.plain, number, rank);
    KILN_LOOP
    for (uint32_t step = 0; step < w.steps && step < S::STAGES; step++)
        kiln_sm90a_prefetch_3d(&args.weights, word_at(w.begin + step * KILN_W4A16_TILE_DEPTH),
                               (int32_t)(w.col / KILN_W4A16_TILE_ROWS), 0);
}

/* ---- Weights ---- */

/* What a lane does in an exchange among four: selectors of bytes. */
struct exchange_bytes {
    uint32_t kept, first;
    bool upper;
};

KILN_INLINE exchange_bytes exchange_bytes_of(uint32_t lane) {
    const uint32_t lower = lane & 2 ? 4 : 0, own = lane & 1;
    return {(lower + own) * 0x11u + 0x20u + ((lower ^ 4) + own) * 0x1100u + 0x2000u, own ? 0x1504u : 0x5140u,
            (lane & 2) != 0};
}

/* Four neighbouring lanes have eight neighbours of k each, of two rows; afterwards each has those that are its parts of
 * two fragments. words: two of a lane, then two fragments, as the half bytes of integers_of. */
KILN_INLINE void exchange_integers(uint32_t *words, const exchange_bytes &by) {
    const uint32_t all = 0xffffffffu, kept = by.upper ? words[1] : words[0];
    const uint32_t got = __shfl_xor_sync(all, by.upper ? words[0] : words[1], 2);
    const uint32_t own = __byte_perm(kept, got, by.kept);
    const uint32_t other = __shfl_xor_sync(all, __byte_perm(kept, got, by.kept ^ 0x1111u), 1);
    words[0] = __byte_perm(own, other, by.first);
    words[1] = __byte_perm(own, other, by.first + 0x2222u);
}

/* The scales of a lane's rows of weights, and in the words' upper halves the zeros; of the second half of a stage only
 * where a group is so short. */
struct wgmma_groups {
    uint32_t of[2][2];
};

/* Whether a group is shorter than a stage. */
KILN_INLINE bool is_fine(const kiln_gemm_w4a16_args &args) {
    return args.group_log2 < 6;
}

/* Loads those of the stage from k on, if that is before the end: where it begins in the group of the one before, there
 * is nothing to do. Those of the lane's upper row begin at `place`. */
KILN_INLINE void load_groups(const kiln_gemm_w4a16_args &args, wgmma_groups *to, uint64_t place, uint32_t k,
                             uint32_t end, bool first) {
    const uint64_t below = 8 * (uint64_t)args.scale_row_step;
    if (k >= end || (!first && !is_fine(args) && k & (1u << args.group_log2) - 1)) return;
    KILN_UNROLL
    for (uint32_t half = 0; half < 2; half++) {
        const uint64_t at = place + (k + half * 32 >> args.group_log2) * (uint64_t)args.scale_group_step;
        if (half && !is_fine(args)) return;
        KILN_UNROLL
        for (uint32_t i = 0; i < 2; i++) {
            to->of[half][i] = ((const kiln_element *)args.scales)[at + i * below];
            if (args.zeros) to->of[half][i] |= (uint32_t)((const kiln_element *)args.zeros)[at + i * below] << 16;
        }
    }
}

/* The fragments of a turn, as numbers: a step of k each. */
template <class S> struct wgmma_weights { uint32_t of[S::STEPS][4]; };

/* Multiplies them with pre_scale, from k on. */
template <class S>
KILN_INLINE void scale_weights(wgmma_weights<S> *weights, const kiln_element *pre_scale, uint32_t k) {
    const kiln_element *factors = pre_scale + k + kiln_thread() % 4 * 2;
    KILN_UNROLL
    for (uint32_t i = 0; i < 4 * S::STEPS; i++) {
        uint32_t *number = &weights->of[i / 4][i % 4];
        const uint32_t pair = *(const uint32_t *)(factors + i / 2 * 8);
        *number = fma_pair(*number, pair, 0x80008000u); /* -0: a product of 0 keeps its sign */
    }
}

/* Makes those of a stage's turn, of a lane's integers of the stage in shared memory. */
template <class S, uint32_t TURN>
KILN_INLINE void load_weights(const kiln_gemm_w4a16_args &args, wgmma_weights<S> *to, uint32_t integers,
                              const wgmma_groups &groups, const exchange_bytes &by, uint32_t k) {
    uint32_t codes[S::STEPS];
    if constexpr (S::STEPS == 4) {
        kiln_sm80_shared_load_v4(codes, integers);
        exchange_integers(codes + 2, by);
    } else {
        kiln_sm80_shared_load_v2(codes, integers + TURN * 8);
    }
    exchange_integers(codes, by);
    KILN_UNROLL
    for (uint32_t step = 0; step < S::STEPS; step++) {
        uint32_t *fragment = to->of[step];
        const bool second = (TURN * S::STEPS + step) / 2 && is_fine(args);
        integers_of(fragment, codes[step]);
        KILN_UNROLL
        for (uint32_t i = 0; i < 4; i++) {
            const uint32_t group = second ? groups.of[1][i % 2] : groups.of[0][i % 2];
            fragment[i] = fma_pair(fragment[i], __byte_perm(group, 0, 0x1010), __byte_perm(group, 0, 0x3232));
        }
    }
    if (args.pre_scale) scale_weights(to, (const kiln_element *)args.pre_scale, k + TURN * S::STEPS * 16);
}

/* ---- Products: warpgroups ---- */

template <uint32_t ROWS> KILN_INLINE void wgmma(float *sums, const uint32_t *a, uint64_t b) {
#ifdef KILN_PART_bf16
    if constexpr (ROWS == 256)
        kiln_sm90a_wgmma_bf16_n256<0>(sums, a, b, true);
    else if constexpr (ROWS == 128)
        kiln_sm90a_wgmma_bf16_n128<0>(sums, a, b, true);
    else if constexpr (ROWS == 32)
        kiln_sm90a_wgmma_bf16_n32(sums, a, b);
    else
        kiln_sm90a_wgmma_bf16_n64<0>(sums, a, b, true);
#else
    if constexpr (ROWS == 256)
        kiln_sm90a_wgmma_f16_n256<0>(sums, a, b, true);
    else if constexpr (ROWS == 128)
        kiln_sm90a_wgmma_f16_n128<0>(sums, a, b, true);
    else if constexpr (ROWS == 32)
        kiln_sm90a_wgmma_f16_n32(sums, a, b);
    else
        kiln_sm90a_wgmma_f16_n64<0>(sums, a, b, true);
#endif
}

template <class S> struct wgmma_sums { float of[S::ROWS / 2]; };

/* Begins the products of a turn with the stage's rows of a. */
template <class S>
KILN_INLINE void begin_turn(wgmma_sums<S> *sums, const wgmma_weights<S> &weights, uint32_t stage, uint32_t turn) {
    const uint64_t a = kiln_sm90a_swizzled_128(stage, 0, 8 * ROW_BYTES) + turn * S::STEPS * (PRODUCT_BYTES >> 4);
    kiln_sm90a_wgmma_fence();
    KILN_UNROLL
    for (uint32_t step = 0; step < S::STEPS; step++) /* addresses in units of 16 bytes */
        wgmma<S::ROWS>(sums->of, weights.of[step], a + step * (PRODUCT_BYTES >> 4));
    kiln_sm90a_wgmma_commit();
}

/* Waits for all products but those of the last PENDING turns. The compiler does not know that they read their weights
 * until now. */
template <int PENDING, class S> KILN_INLINE void end_turn(wgmma_weights<S> *weights) {
    kiln_sm90a_wgmma_wait<PENDING>();
    KILN_UNROLL
    for (uint32_t i = 0; i < 4 * S::STEPS; i++)
        asm volatile("" : "+r"(weights->of[i / 4][i % 4])::"memory");
}

/* Adds the products of a tile. The weights of a turn become numbers, and their products begin, while those of the turn
 * before are multiplied. */
template <class S>
KILN_INLINE void multiply_tile(const kiln_gemm_w4a16_args &args, wgmma_sums<S> *sums, uint32_t shared, place *at,
                               const work &w, const exchange_bytes &by) {
    const uint32_t lane = kiln_thread() % 32, warp = kiln_thread() / 32 - WARPGROUP / 32,
                   end = w.begin + w.steps * KILN_W4A16_TILE_DEPTH;
    const uint32_t row = w.col + warp * KILN_W4A16_TILE_ROWS + lane / 4;
    uint64_t scales = (row < (uint32_t)args.n ? row : lane / 4) * (uint64_t)args.scale_row_step;
    asm volatile("" : "+l"(scales)); /* else it is computed at each load */
    const uint32_t integers = shared + S::A_BYTES + warp * KILN_W4A16_TILE_BYTES + lane * KILN_VECTOR_BYTES;
    wgmma_groups groups = {};
    wgmma_weights<S> weights, next;
    uint32_t k = w.begin;
    bool begun = false;
    load_groups(args, &groups, scales, k, end, true);
    kiln_sm90a_wgmma_hold<S::ROWS / 2>(sums->of);
    /* Begins the first products of a stage, or all, and waits for those before, which read `now`. */
    auto begin_stage = [&](wgmma_weights<S> *now, wgmma_weights<S> *after) {
        kiln_sm90a_mbarrier_wait(shared + S::FULL + at->stage * BARRIER_BYTES, at->parity);
        load_weights<S, 0>(args, after, integers + at->stage * S::STAGE_BYTES, groups, by, k);
        begin_turn(sums, *after, shared + at->stage * S::STAGE_BYTES, 0);
        if (S::TURNS == 1) load_groups(args, &groups, scales, k + KILN_W4A16_TILE_DEPTH, end, false);
        end_turn<1>(now);
        release<S>(shared, (at->stage ? at->stage : S::STAGES) - 1, begun);
        begun = true;
    };
    auto end_stage = [&]() {
        advance<S>(at);
        k += KILN_W4A16_TILE_DEPTH;
    };
    if (S::TURNS == 1 && w.steps % 2) {
        begin_stage(&next, &weights);
        end_stage();
        end_turn<0>(&weights);
        release<S>(shared, (at->stage ? at->stage : S::STAGES) - 1, true);
        begun = false;
    }
    KILN_LOOP
    while (k < end) {
        begin_stage(&next, &weights);
        if constexpr (S::TURNS == 2) {
            load_weights<S, 1>(args, &next, integers + at->stage * S::STAGE_BYTES, groups, by, k);
            begin_turn(sums, next, shared + at->stage * S::STAGE_BYTES, 1);
            load_groups(args, &groups, scales, k + KILN_W4A16_TILE_DEPTH, end, false);
            end_turn<1>(&weights);
        } else {
            end_stage();
            begin_stage(&weights, &next);
        }
        end_stage();
    }
    end_turn<0>(&next);
    release<S>(shared, (at->stage ? at->stage : S::STAGES) - 1, begun);
    kiln_sm90a_wgmma_hold<S::ROWS / 2>(sums->of);
}

/* ---- The end of a tile: a thread has elements of two columns of d in 16, and of two rows in each 8 ---- */

/* Writes a vector of d as far as its place allows: at once, or by elements. */
KILN_INLINE void write_vector(kiln_element *to, kiln_vector vector, bool aligned) {
    if (aligned) {
        kiln_vector_store(to, vector);
        return;
    }
    KILN_UNROLL
    for (uint32_t i = 0; i < KILN_VECTOR; i++)
        to[i] = (kiln_element)(vector.words[i / 2] >> i % 2 * 16);
}

/* Finishes the sums of 16 columns of d, from `col` on, where there is more to do than to scale them and to add a bias.
 */
template <class S>
KILN_INLINE void activate_columns(const kiln_gemm_w4a16_args &args, float *sums, uint32_t row, uint32_t col,
                                  const float *bias) {
    const uint32_t lane = kiln_thread() % 32;
    float powers[KILN_W4A16_COEFFICIENTS];
    kiln_powers_of(powers, args.coefficients, KILN_W4A16_COEFFICIENTS);
    const kiln_element *c = (const kiln_element *)args.c + col + lane / 4;
    KILN_UNROLL
    for (uint32_t i = 0; i < S::ROWS / 2; i++) {
        const uint32_t at = row + i / 4 * 8 + lane % 4 * 2 + i % 2;
        float value = KILN_FMA(args.scale, sums[i], bias[i % 4 / 2]);
        if (args.c && at < (uint32_t)args.m)
            value += kiln_element_to_f32(c[at * (uint64_t)args.c_stride + i % 4 / 2 * 8]);
        if (args.activated) value = kiln_fast_gated(value, args.bound, powers, KILN_W4A16_COEFFICIENTS);
        sums[i] = value;
    }
}

/* Writes the sums of 16 columns of d, from `col` on: four lanes write 16 columns of two rows at once. */
template <class S>
KILN_INLINE void write_columns(const kiln_gemm_w4a16_args &args, float *sums, uint32_t row, uint32_t col,
                               bool aligned) {
    const uint32_t lane = kiln_thread() % 32;
    float bias[2] = {}, scale = args.scale;
    if (args.bias) {
        bias[0] = kiln_element_to_f32(((const kiln_element *)args.bias)[col + lane / 4]);
        bias[1] = kiln_element_to_f32(((const kiln_element *)args.bias)[col + lane / 4 + 8]);
    }
    if (args.c || args.activated) {
        activate_columns<S>(args, sums, row, col, bias);
        bias[0] = bias[1] = 0.0f;
        scale = 1.0f;
    }
    kiln_element *d = (kiln_element *)args.d + col + lane % 2 * 8;
    KILN_UNROLL
    for (uint32_t i = 0; i < S::ROWS / 2; i += 8) {
        kiln_vector vector;
        KILN_UNROLL
        for (uint32_t j = 0; j < 4; j++) {
            const float pair[2] = {KILN_FMA(scale, sums[i + 2 * j], bias[j % 2]),
                                   KILN_FMA(scale, sums[i + 2 * j + 1], bias[j % 2])};
            vector.words[j] = kiln_sm80_movmatrix_trans(kiln_pair_of(pair));
        }
        exchange(vector.words);
        const uint32_t at = row + 2 * i + lane % 4 / 2 * 8 + lane / 4;
        if (at < (uint32_t)args.m) write_vector(d + at * (uint64_t)args.d_stride, vector, aligned);
    }
}

/* Writes them into the partial sums, where blocks share k. */
template <class S>
KILN_INLINE void write_partials(const kiln_gemm_w4a16_args &args, const float *sums, uint32_t split, uint32_t row,
                                uint32_t col) {
    const uint32_t lane = kiln_thread() % 32;
    float *to = args.partials + ((uint64_t)split * (uint64_t)args.m + row) * (uint64_t)args.n + col + lane / 4;
    KILN_UNROLL
    for (uint32_t i = 0; i < S::ROWS / 2; i++) {
        const uint32_t below = i / 4 * 8 + lane % 4 * 2 + i % 2;
        if (row + below < (uint32_t)args.m) to[below * (uint64_t)args.n + i % 4 / 2 * 8] = sums[i];
    }
}

/* Whether rows of d begin on 16 bytes. */
KILN_INLINE bool is_aligned(const kiln_gemm_w4a16_args &args) {
    return !(((uint64_t)args.d | (uint64_t)args.d_stride * sizeof(kiln_element)) % KILN_VECTOR_BYTES);
}

template <class S> KILN_INLINE void multiply_tiles(const kiln_gemm_w4a16_args &args, uint32_t shared, uint32_t rank) {
    const exchange_bytes by = exchange_bytes_of(kiln_thread() % 32);
    place at = {0, 0};
    KILN_LOOP
    for (uint32_t number = blockIdx.x / S::CLUSTER; number < tile_count<S>(args); number += gridDim.x / S::CLUSTER) {
        wgmma_sums<S> sums = {};
        uint32_t again = number;
        multiply_tile(args, &sums, shared, &at, tile_of<S>(args, number, rank), by);
        if (S::FULL_OF_SUMS) asm volatile("" : "+r"(again)); /* else the tile's place is in registers meanwhile */
        const work w = tile_of<S>(args, again, rank);
        const uint32_t col = w.col + (kiln_thread() / 32 - WARPGROUP / 32) * KILN_W4A16_TILE_ROWS;
        if (col >= (uint32_t)args.n) continue;
        if (args.partials)
            write_partials<S>(args, sums.of, w.split, w.row, col);
        else
            write_columns<S>(args, sums.of, w.row, col, is_aligned(args));
    }
}

/* ---- The kernels: warpgroups that multiply, and a warp that copies ---- */

template <uint32_t ROWS, uint32_t GROUPS, uint32_t TURNS, uint32_t STAGES, uint32_t CLUSTER>
KILN_INLINE void gemm_w4a16_wgmma(const kiln_gemm_w4a16_mapped_args &args) {
    typedef wgmma_shape<ROWS, GROUPS, TURNS, STAGES, CLUSTER> S;
    extern __shared__ __align__(1024) uint8_t stages[];
    const uint32_t shared = kiln_sm90a_shared(stages), rank = CLUSTER > 1 ? kiln_sm90a_cluster_rank() : 0;
    if (kiln_thread() == 0) {
        kiln_sm90a_prefetch_tensormap(&args.a);
        kiln_sm90a_prefetch_tensormap(&args.weights);
        KILN_UNROLL
        for (uint32_t i = 0; i < STAGES; i++) {
            kiln_sm90a_mbarrier_init(shared + S::FULL + i * BARRIER_BYTES, 1);
            kiln_sm90a_mbarrier_init(shared + S::EMPTY + i * BARRIER_BYTES, CLUSTER * GROUPS * (WARPGROUP / 32));
        }
        kiln_sm90a_fence_mbarrier_init();
        if (args.early) prefetch_stages<S>(args, rank);
    }
    __syncwarp();
    kiln_sm90a_begin();
    if (CLUSTER > 1)
        kiln_sm90a_cluster_sync();
    else
        kiln_barrier();
    if (kiln_thread() < WARPGROUP) {
        kiln_sm90a_setmaxnreg_dec<S::COPY_REGISTERS>();
        if (kiln_thread() < 32 && kiln_sm90a_elect()) copy_stages<S>(args, shared, rank);
    } else {
        kiln_sm90a_setmaxnreg_inc<S::REGISTERS>();
        multiply_tiles<S>(args.plain, shared, rank);
    }
    /* No block ends while the other one copies into it or signals its barriers. */
    __syncwarp();
    if (CLUSTER > 1) kiln_sm90a_cluster_sync();
}

#define WGMMA_PASTE(kernel, part, groups, cluster)                                                        \
    extern "C" __global__ void __launch_bounds__(((groups) + 1) * WARPGROUP, 1) __cluster_dims__(cluster) \
        kiln_##kernel##_##part(const __grid_constant__ kiln_gemm_w4a16_mapped_args args)
#define WGMMA_OF_PART(kernel, part, groups, cluster) WGMMA_PASTE(kernel, part, groups, cluster)
#define WGMMA_ENTRY(kernel, rows, groups, turns, stages, cluster)     \
    WGMMA_OF_PART(kernel, KILN_PART, groups, cluster) {               \
        gemm_w4a16_wgmma<rows, groups, turns, stages, cluster>(args); \
    }
WGMMA_ENTRY(gemm_w4a16_wgmma_256, 256, 2, 1, 6, 2)
WGMMA_ENTRY(gemm_w4a16_wgmma_128, 128, 3, 1, 10, 1)
WGMMA_ENTRY(gemm_w4a16_wgmma_128_256, 128, 4, 2, 9, 1)
WGMMA_ENTRY(gemm_w4a16_wgmma_64, 64, 4, 1, 13, 1)
WGMMA_ENTRY(gemm_w4a16_wgmma_32, 32, 4, 1, 16, 1)

/* Adds the partial sums of as many columns of a row as are in 16 bytes of d, in their order, from a row of weights on;
 * times the scale, plus the bias. */
KILN_INLINE void join_columns(const kiln_gemm_w4a16_args &args, float *sums, uint64_t row, uint32_t rows,
                              uint32_t col) {
    const uint64_t step = (uint64_t)args.m * rows;
    const float *partials = args.partials + row * rows + col;
#pragma unroll 4
    for (uint32_t split = 0; split < args.splits; split++) {
        KILN_UNROLL
        for (uint32_t i = 0; i < KILN_VECTOR; i += 4) {
            const float4 four = *(const float4 *)(partials + split * step + i);
            sums[i] += four.x;
            sums[i + 1] += four.y;
            sums[i + 2] += four.z;
            sums[i + 3] += four.w;
        }
    }
    KILN_UNROLL
    for (uint32_t i = 0; i < KILN_VECTOR; i++) {
        const float bias = args.bias ? kiln_element_to_f32(((const kiln_element *)args.bias)[col + i]) : 0.0f;
        sums[i] = KILN_FMA(args.scale, sums[i], bias);
    }
}

KILN_ENTRY(gemm_w4a16_wgmma_join, kiln_gemm_w4a16_args) {
    const uint32_t n = (uint32_t)args.n, col = (kiln_tile() * KILN_BLOCK + kiln_thread()) * KILN_VECTOR;
    const uint32_t rows = args.paired ? 2 * n : n; /* of weights */
    const uint64_t row = kiln_block();
    if (col >= n || row >= (uint64_t)args.m) return;
    float sums[KILN_VECTOR] = {}, others[KILN_VECTOR] = {};
    join_columns(args, sums, row, rows, col);
    if (args.paired) join_columns(args, others, row, rows, n + col);
    KILN_UNROLL
    for (uint32_t i = 0; i < KILN_VECTOR; i++) {
        if (args.c)
            sums[i] += kiln_element_to_f32(((const kiln_element *)args.c)[row * (uint64_t)args.c_stride + col + i]);
        sums[i] = activated(&args, sums[i]);
        if (args.paired) sums[i] *= others[i];
    }
    write_vector((kiln_element *)args.d + row * (uint64_t)args.d_stride + col, kiln_vector_of(sums), is_aligned(args));
}

#endif
