/* gemm_w4a16 of up to 16 rows by mma.sync, for sm_90a, f16 and bf16, of weights in the layout sm80_v1 with groups that
 * whole steps of 128 of k are of: gemm_w4a16_mma_shared_8 and _16. Weights, scales and products are those of
 * gemm_w4a16_mma_rows.h, which does the other calls; here rows of a are in shared memory, and a block does as many
 * columns as a multiprocessor has to.
 *
 * A cluster of two blocks does up to 14 tiles of 32 columns, as of 28672 columns on 132 multiprocessors; each block has
 * half of k, and of a's rows just that. They are asked for at the start, in copies of 512 of k, each with a barrier of
 * its own in shared memory; of a half that is too long the next part is asked for when all have done with one. A warp
 * has one tile, whose weights go straight into registers, steps ahead; where a cluster has few tiles, several warps
 * share a tile's half of k. At the end each block sends the other the sums of its rows.
 *
 * What is the same for all tiles is done once: of each step of k one warp multiplies a by the factors of its columns,
 * where there are (pre_scale or, in bf16, norm_weight), and adds up its squares, where rows are normalised, and its
 * elements, all by mma.sync: with ones, and with itself, of which the diagonal is squares.
 *
 * A zero is added to all weights of a group, and so what it adds is the sum of a's row over the group. Integers of bf16
 * are multiplied with 136 added, as an and and an or make them (gemm_w4a16_integers.h), and what that adds is
 * subtracted in the same way.
 *
 * Measured on an H200 (141 GB, driver 580.159.04, 2026-11-27; bf16, groups of 128, CUDA graphs, weights not in L2), in
 * us, beside what gemm_w4a16_mma_rows.h has for the call, in the same run; "normalised" has zeros too:
 *
 *   n x k                        1 row          16 rows        reading at the best rate
 *   28672 x 4096                 21.0 (23.5)    27.9 (31.2)    13.7
 *   28672 x 4096, normalised     24.3 (34.1)    34.6 (43.1)    14.1
 *   6144 x 4096                   9.8  (9.4)    12.1 (11.5)     2.9
 *   6144 x 4096, normalised      12.4 (12.1)    13.1 (18.7)     3.0
 *   4096 x 4096, zeros            9.5  (7.9)    12.2 (11.5)     2.0
 *   4096 x 14336, zeros          19.5 (16.0)    24.6 (22.4)     7.1
 *
 * So the host side chooses it for many columns. What is lost is the beginning: of 24 us about 5 pass before the first
 * product, for which a is to be there (by samples of the program counter).
 *
 * Not better there: scales copied into shared memory at the start (26.1 for 28672 x 4096, normalised, 1 row), weights
 * asked for in L2 by bulk prefetches (26.4), clusters of four blocks (not all of which found room at once: 50 us).
 *
 * Floor: one read of the weights. */
#ifndef KILN_KERNELS_GEMM_W4A16_MMA_SHARED_H
#define KILN_KERNELS_GEMM_W4A16_MMA_SHARED_H

#include "kernels/arch/sm90a.h"
#include "kernels/gemm_w4a16/gemm_w4a16_mma_rows.h"
#include "kernels/gemm_w4a16/gemm_w4a16_shared_args.h"

enum : uint32_t { SLAB = KILN_W4A16_SHARED_SLAB, SLABS = KILN_W4A16_SHARED_STEPS * STEP / SLAB, ROWS_MOST = 16 };
static_assert((uint32_t)KILN_W4A16_SHARED_STEP == STEP, "the host side divides k into steps");
static_assert(SLAB % STEP == 0, "a step is of one slab");

/* What integers are greater by as they are multiplied. */
#ifdef KILN_PART_bf16
enum : uint32_t { ANCHORED = 136 };
#else
enum : uint32_t { ANCHORED = 0 };
#endif

/* The head of a block's shared memory. */
struct shared_head {
    uint64_t copied[SLABS], sent[2]; /* barriers: of slabs, and of what the other block sends */
    float squares[ROWS_MOST];        /* which it has sent */
    float of_warps[KILN_W4A16_SHARED_WARPS][ROWS_MOST];
    float totals[KILN_W4A16_SHARED_STEPS][ROWS_MOST]; /* of a, over a step */
};
static_assert(sizeof(shared_head) == KILN_W4A16_SHARED_HEAD, "the host side allocates it");

/* Rows of a in shared memory, and before them one of factors where there are: of k from `first` to `end`, of which the
 * block has more behind them where they end before its `last`. */
struct shared_rows {
    uint32_t copied, factors, rows; /* addresses in shared memory */
    uint32_t first, end, last, row_bytes;
};

KILN_INLINE shared_rows shared_rows_of(const kiln_gemm_w4a16_shared_args &all, const shared_head *head,
                                       const void *rows) {
    const kiln_gemm_w4a16_args &args = all.plain;
    shared_rows a;
    a.copied = kiln_sm90a_shared(head->copied);
    a.first = kiln_sm90a_cluster_rank() * args.split;
    a.last = a.first + args.split < (uint32_t)args.k ? a.first + args.split : (uint32_t)args.k;
    a.end = a.first + all.depth < a.last ? a.first + all.depth : a.last;
    a.row_bytes = all.depth * (uint32_t)sizeof(kiln_element) + KILN_W4A16_SHARED_PADDING;
    a.factors = kiln_sm90a_shared(rows);
    a.rows = a.factors + all.factor_rows * a.row_bytes;
    return a;
}

/* A warp's place among a block's: which of its tiles it has, and which part of each step's k for all of them. */
struct shared_place {
    uint32_t number, part, parts, step; /* step: of k, of all parts */
    uint32_t tile;                      /* of all */
    bool present;                       /* whether there is such a tile */
};

KILN_INLINE shared_place shared_place_of(const kiln_gemm_w4a16_shared_args &all) {
    const uint32_t warp = kiln_ptx_thread() / 32;
    shared_place place;
    place.number = warp % all.tiles;
    place.part = warp / all.tiles;
    place.parts = blockDim.x / 32 / all.tiles;
    place.step = place.parts * STEP;
    place.tile = kiln_tile() / 2 * all.tiles + place.number;
    place.present = (uint64_t)place.tile << columns_log2(all.plain) < (uint64_t)all.plain.n;
    return place;
}

/* Copies all slabs, by one warp, a lane for each row, of which the first has factors where there are. */
KILN_INLINE void fetch_slabs(const kiln_gemm_w4a16_shared_args &all, const shared_rows &a) {
    const kiln_gemm_w4a16_args &args = all.plain;
    const uint32_t lane = kiln_thread() % 32, rows = (uint32_t)args.m + all.factor_rows;
    const kiln_element *row = (const kiln_element *)args.a + (lane - all.factor_rows) * (uint64_t)args.a_stride;
    uint32_t barrier = a.copied, to = a.factors + lane * a.row_bytes;
    if (lane < all.factor_rows) row = (const kiln_element *)args.pre_scale;
    KILN_LOOP
    for (uint32_t k = a.first; k < a.end; k += SLAB) {
        const uint32_t left = a.end - k, bytes = (left < SLAB ? left : SLAB) * (uint32_t)sizeof(kiln_element);
        if (lane == 0) kiln_sm90a_mbarrier_arrive_expect_tx(barrier, bytes * rows);
        __syncwarp();
        if (lane < rows) kiln_sm90a_copy_bytes(to, row + k, bytes, barrier);
        barrier += 8;
        to += SLAB * (uint32_t)sizeof(kiln_element);
    }
}

/* ---- Rows of a ---- */

/* Where a lane's rows are: of each 8 of a that of lane / 4, or the last one for those that a does not have. */
template <uint32_t TILES> struct lane_rows { uint32_t at[TILES]; };

template <uint32_t TILES>
KILN_INLINE lane_rows<TILES> lane_rows_of(const kiln_gemm_w4a16_args &args, const shared_rows &a) {
    const uint32_t lane = kiln_thread() % 32, last = (uint32_t)args.m - 1;
    lane_rows<TILES> rows;
    KILN_UNROLL
    for (uint32_t i = 0; i < TILES; i++) {
        const uint32_t row = lane / 4 + 8 * i;
        rows.at[i] = a.rows + (row < last ? row : last) * a.row_bytes +
                     lane % 4 * (KILN_VECTOR * (uint32_t)sizeof(kiln_element));
    }
    return rows;
}

/* Multiplies a lane's vectors of a chunk of a with the factors of their columns, in shared memory too. */
template <uint32_t TILES>
KILN_INLINE void multiply_factors(const kiln_gemm_w4a16_args &args, const shared_rows &a, kiln_vector *of_a,
                                  const lane_rows<TILES> &rows, uint32_t offset) {
    const uint32_t lane = kiln_thread() % 32;
    kiln_vector factors;
    kiln_sm80_shared_load_v4(factors.words,
                             a.factors + lane % 4 * (KILN_VECTOR * (uint32_t)sizeof(kiln_element)) + offset);
    __syncwarp(); /* the last row may have been read by several lanes */
    KILN_UNROLL
    for (uint32_t i = 0; i < TILES; i++) {
        multiply_pairs(&of_a[i], factors);
        if (lane / 4 + 8 * i < (uint32_t)args.m) kiln_sm80_shared_store_v4(rows.at[i] + offset, of_a[i].words);
    }
}

/* Adds a chunk's squares: a lane's vectors are fragments of both factors of a's rows times themselves. */
template <uint32_t TILES> KILN_INLINE void add_squares(float (*squares)[4], const kiln_vector *of_a) {
    KILN_UNROLL
    for (uint32_t half = 0; half < 2; half++) {
        const uint32_t *first = of_a[0].words + 2 * half, *second = of_a[TILES - 1].words + 2 * half;
        const uint32_t both[4] = {first[0], second[0], first[1], second[1]};
        KILN_UNROLL
        for (uint32_t i = 0; i < TILES; i++)
            mma(squares[i], both, of_a[i].words + 2 * half);
    }
}

/* Does for all warps what a step of a needs: `at` is in what there is of k. */
template <uint32_t TILES>
KILN_INLINE void prepare_step(const kiln_gemm_w4a16_args &args, const shared_rows &a, const lane_rows<TILES> &rows,
                              shared_head *head, float (*squares)[4], uint32_t at, uint32_t parity) {
    const uint32_t lane = kiln_thread() % 32, ones[4] = {ONES, ONES, ONES, ONES};
    float totals[TILES][4] = {};
    kiln_sm90a_mbarrier_wait(a.copied + at / SLAB * 8, parity);
    KILN_LOOP
    for (uint32_t c = 0; c < STEP / CHUNK; c++) {
        const uint32_t offset = (at + c * CHUNK) * (uint32_t)sizeof(kiln_element);
        kiln_vector of_a[TILES];
        KILN_UNROLL
        for (uint32_t i = 0; i < TILES; i++)
            kiln_sm80_shared_load_v4(of_a[i].words, rows.at[i] + offset);
        if (args.norm_weight) add_squares<TILES>(squares, of_a);
        if (args.pre_scale) multiply_factors<TILES>(args, a, of_a, rows, offset);
        KILN_UNROLL
        for (uint32_t i = 0; i < 2 * TILES; i++)
            mma(totals[i / 2], ones, of_a[i / 2].words + 2 * (i % 2));
    }
    KILN_UNROLL
    for (uint32_t i = 0; i < TILES; i++)
        if (lane < 4) *(float2 *)&head->totals[at / STEP][i * 8 + lane * 2] = make_float2(totals[i][0], totals[i][1]);
}

/* Adds to the squares of a warp its sums, the diagonals of the products: of row r lane 4 r + r / 2 has it. */
template <uint32_t TILES> KILN_INLINE void put_squares(const float (*squares)[4], float *to, bool first) {
    const uint32_t lane = kiln_thread() % 32, row = lane / 4;
    KILN_UNROLL
    for (uint32_t i = 0; i < TILES; i++) {
        const float sum = row % 2 ? squares[i][i * 2 + 1] : squares[i][i * 2];
        if (lane % 4 == row / 2) to[i * 8 + row] = first ? sum : to[i * 8 + row] + sum;
    }
}

/* ---- Products ---- */

/* The integers of a word as a fragment, greater by ANCHORED. */
KILN_INLINE void anchored_integers_of(uint32_t *fragment, uint32_t word) {
    KILN_UNROLL
    for (uint32_t i = 0; ANCHORED && i < 4; i++)
        fragment[i] = anchored(word >> 4 * i);
    if (!ANCHORED) integers_of(fragment, word);
}

template <uint32_t TILES>
KILN_INLINE void multiply_anchored(float (*products)[TILES][4], const kiln_vector *weights, const kiln_vector *of_a,
                                   uint32_t c) {
    KILN_UNROLL
    for (uint32_t half = 0; half < 2; half++) {
        KILN_UNROLL
        for (uint32_t b = 0; b < BLOCKS; b++) {
            uint32_t fragment[4];
            anchored_integers_of(fragment, weights[b].words[c * 2 + half]);
            KILN_UNROLL
            for (uint32_t i = 0; i < TILES; i++)
                mma(products[b][i], fragment, of_a[i].words + 2 * half);
        }
    }
}

/* Adds to the sums a step's products times their rows' scales, and what zeros make of a's totals, less what is too much
 * of the products. A lane has the scale and the zero of one row of weights. */
template <uint32_t TILES>
KILN_INLINE void add_step(const kiln_gemm_w4a16_args &args, float (*sums)[TILES][4], const float (*products)[TILES][4],
                          const row_group &group, const float *totals) {
    const float scale = kiln_element_to_f32((kiln_element)group.scale);
    const float zero = args.zeros ? kiln_element_to_f32((kiln_element)group.zero) : 0.0f;
    const float shift = KILN_FMA(scale, -(float)ANCHORED, zero);
    float2 of_a[TILES];
    KILN_UNROLL
    for (uint32_t i = 0; i < TILES; i++)
        of_a[i] = *(const float2 *)(totals + i * 8 + kiln_thread() % 4 * 2);
    KILN_UNROLL
    for (uint32_t row = 0; row < 2 * BLOCKS; row++) {
        const float of_row = __shfl_sync(~0u, scale, (int)row, 4), more = __shfl_sync(~0u, shift, (int)row, 4);
        KILN_UNROLL
        for (uint32_t i = 0; i < 2 * TILES; i++) {
            const uint32_t element = row % 2 * 2 + i % 2;
            float *sum = &sums[row / 2][i / 2][element];
            *sum = KILN_FMA(i % 2 ? of_a[i / 2].y : of_a[i / 2].x, more, *sum);
            *sum = KILN_FMA(products[row / 2][i / 2][element], of_row, *sum);
        }
    }
}

/* Adds to the sums the products of a warp's steps. */
template <uint32_t TILES, uint32_t AHEAD>
KILN_INLINE void multiply_shared(const kiln_gemm_w4a16_args &args, float (*sums)[TILES][4], const shared_rows &a,
                                 const lane_rows<TILES> &rows, const shared_head *head, row_sources<TILES> &from,
                                 kiln_vector (*weights)[STEP_TILES][BLOCKS], row_group *groups, uint32_t step) {
    const uint32_t end = a.end + AHEAD * step;
    KILN_LOOP
    while (from.k < end) {
        KILN_UNROLL
        for (uint32_t s = 0; s < AHEAD; s++, advance(&from, step)) {
            const uint32_t at = from.k - AHEAD * step - a.first;
            if (from.k >= end) return;
            float products[BLOCKS][TILES][4] = {};
            KILN_UNROLL
            for (uint32_t t = 0; t < STEP_TILES; t++) {
                KILN_UNROLL
                for (uint32_t c = 0; c < TILE_CHUNKS; c++) {
                    const uint32_t chunk = at + t * KILN_W4A16_TILE_DEPTH + c * CHUNK;
                    kiln_vector of_a[TILES];
                    KILN_UNROLL
                    for (uint32_t i = 0; i < TILES; i++)
                        kiln_sm80_shared_load_v4(of_a[i].words, rows.at[i] + chunk * (uint32_t)sizeof(kiln_element));
                    multiply_anchored<TILES>(products, weights[s][t], of_a, c);
                }
                refill_weights(args, weights[s][t], from, t, a.last);
                __syncwarp(); /* keeps assemblers from moving the loads behind the next products */
            }
            add_step<TILES>(args, sums, products, groups[s], head->totals[at / STEP]);
            refill_groups<TILES, 1>(args, groups + s, from, true, a.last);
        }
    }
}

/* ---- Sums ---- */

/* The sum of an element of the warp's tile over the warps of the block that share it, the first of which is shared. */
template <uint32_t TILES>
KILN_INLINE float tile_sum(const warp_sums<TILES> *shared, uint32_t tiles, uint32_t parts, uint32_t row, uint32_t col) {
    const float *from = &shared->of[row / 8][col][place_of_row(col, row % 8)];
    float sum = 0.0f;
    KILN_LOOP
    for (uint32_t part = 0; part < parts; part++, from += tiles * (sizeof *shared / sizeof *from))
        sum += *from;
    return sum;
}

/* The sum of the squares of a row that the warps of a block have. */
KILN_INLINE float block_squares(const shared_head *head, uint32_t row) {
    float sum = 0.0f;
    KILN_LOOP
    for (uint32_t w = 0; w < blockDim.x / 32; w++)
        sum += head->of_warps[w][row];
    return sum;
}

/* How many rows of d the block of that rank finishes: of the first 4 or 8 those that there are, or of the others. */
template <uint32_t TILES> KILN_INLINE uint32_t own_rows(const kiln_gemm_w4a16_args &args, uint32_t rank) {
    enum : uint32_t { OWN = TILES * 4 };
    const uint32_t m = (uint32_t)args.m, first = rank * OWN;
    return m < first ? 0 : m - first < OWN ? m - first : OWN;
}

/* Sends the other block of the cluster the sums of its rows, two columns at a time, and squares. */
template <uint32_t TILES>
KILN_INLINE void send_sums(const kiln_gemm_w4a16_shared_args &all, shared_head *head, const warp_sums<TILES> *shared,
                           const float *sent, const shared_place &place) {
    enum : uint32_t { OWN = TILES * 4, PAIRS = COLS / 2 };
    const uint32_t other = kiln_sm90a_cluster_rank() ^ 1, lane = kiln_thread() % 32,
                   rows = own_rows<TILES>(all.plain, other);
    const uint32_t barrier = kiln_sm90a_remote(kiln_sm90a_shared(head->sent), other);
    const uint32_t to = kiln_sm90a_remote(kiln_sm90a_shared(sent), other);
    const uint32_t squares = kiln_sm90a_remote(kiln_sm90a_shared(head->squares), other);
    KILN_LOOP
    for (uint32_t i = place.part * 2 + lane / PAIRS; i < rows; i += place.parts * 2) {
        const uint32_t col = lane % PAIRS * 2, row = other * OWN + i;
        const float first = tile_sum(shared + place.number, all.tiles, place.parts, row, col);
        const float second = tile_sum(shared + place.number, all.tiles, place.parts, row, col + 1);
        kiln_sm90a_send_64(to + ((i * all.tiles + place.number) * COLS + col) * 4, barrier,
                           kiln_bits(first) | (uint64_t)kiln_bits(second) << 32);
    }
    if (!all.plain.norm_weight || kiln_thread() >= TILES * 4) return;
    const float first = block_squares(head, 2 * kiln_thread()), second = block_squares(head, 2 * kiln_thread() + 1);
    kiln_sm90a_send_64(squares + 8 * kiln_thread(), barrier, kiln_bits(first) | (uint64_t)kiln_bits(second) << 32);
}

/* Expects what the other block sends. */
template <uint32_t TILES> KILN_INLINE void expect_sums(const kiln_gemm_w4a16_shared_args &all, shared_head *head) {
    const uint32_t bytes = own_rows<TILES>(all.plain, kiln_sm90a_cluster_rank()) * all.tiles * COLS * 4;
    kiln_sm90a_mbarrier_arrive_expect_tx(kiln_sm90a_shared(head->sent),
                                         bytes + (all.plain.norm_weight ? TILES * 8 * 4 : 0));
}

/* Writes the block's rows of the warp's tile of d, by the warps that share it. */
template <uint32_t TILES>
KILN_INLINE void finish_rows(const kiln_gemm_w4a16_shared_args &all, const shared_head *head,
                             const warp_sums<TILES> *shared, const float *sent, const shared_place &place) {
    enum : uint32_t { OWN = TILES * 4 };
    const kiln_gemm_w4a16_args &args = all.plain;
    const uint32_t cols_log2 = columns_log2(args), at_once = 32 >> cols_log2, rank = kiln_sm90a_cluster_rank();
    const uint32_t lane = kiln_thread() % 32, col = lane & ((1u << cols_log2) - 1), rows = own_rows<TILES>(args, rank);
    const uint64_t d_col = ((uint64_t)place.tile << cols_log2) + col;
    if (d_col >= (uint64_t)args.n) return;
    shared += place.number;
    KILN_LOOP
    for (uint32_t i = place.part * at_once + (lane >> cols_log2); i < rows; i += place.parts * at_once) {
        const uint32_t row = rank * OWN + i;
        const float *of_other = sent + (i * all.tiles + place.number) * COLS + col;
        const float factor = args.norm_weight ? norm_of(&args, block_squares(head, row) + head->squares[row]) : 1.0f;
        const float sum = (tile_sum(shared, all.tiles, place.parts, row, col) + of_other[0]) * factor;
        if (!args.paired) {
            finish_element(&args, sum, row, d_col);
            continue;
        }
        const float second = tile_sum(shared, all.tiles, place.parts, row, col + KILN_W4A16_TILE_ROWS);
        finish_pair(&args, sum, (second + of_other[KILN_W4A16_TILE_ROWS]) * factor, row, d_col);
    }
}

template <uint32_t TILES> KILN_INLINE void gemm_w4a16_mma_shared(const kiln_gemm_w4a16_shared_args &all) {
    enum : uint32_t { AHEAD = TILES == 1 && ANCHORED ? 3 : 2 }; /* steps of weights: what there are registers for */
    const kiln_gemm_w4a16_args &args = all.plain;
    extern __shared__ __align__(16) uint8_t dynamic[];
    shared_head *head = (shared_head *)dynamic;
    const uint32_t warp = kiln_thread() / 32;
    float *sent = (float *)(head + 1);
    warp_sums<TILES> *shared = (warp_sums<TILES> *)(sent + all.tiles * (TILES * 4 * COLS)); /* where a is before */
    shared_rows a = shared_rows_of(all, head, shared);
    if (warp == 0) {
        const uint32_t slabs = (a.end - a.first + SLAB - 1) / SLAB, barrier = kiln_thread() ? kiln_thread() - 1 : SLABS;
        if (kiln_thread() <= slabs) kiln_sm90a_mbarrier_init(a.copied + 8 * barrier, 1);
        kiln_sm90a_fence_mbarrier_init();
        __syncwarp();
        fetch_slabs(all, a);
    }
    kiln_sm90a_cluster_arrive();
    const shared_place place = shared_place_of(all);
    const uint32_t tile = place.present ? place.tile : place.tile - place.number;
    row_sources<TILES> from = row_sources_of<TILES>(args, tile, a.first + place.part * STEP);
    kiln_vector weights[AHEAD][STEP_TILES][BLOCKS] = {};
    row_group groups[AHEAD] = {};
    KILN_UNROLL
    for (uint32_t s = 0; s < AHEAD; s++, advance(&from, place.step)) {
        KILN_UNROLL
        for (uint32_t t = 0; t < STEP_TILES; t++)
            refill_weights(args, weights[s][t], from, t, place.present ? a.last : 0);
        refill_groups<TILES, 1>(args, groups + s, from, true, place.present ? a.last : 0);
    }
    kiln_barrier(); /* the barriers are seen */
    const lane_rows<TILES> rows = lane_rows_of<TILES>(args, a);
    float sums[BLOCKS][TILES][4] = {};
    KILN_LOOP
    for (uint32_t round = 0;; round++) {
        float squares[TILES][4] = {};
        KILN_LOOP
        for (uint32_t at = warp * STEP; at < a.end - a.first; at += blockDim.x / 32 * STEP)
            prepare_step<TILES>(args, a, rows, head, squares, at, round % 2);
        if (args.norm_weight) put_squares<TILES>(squares, head->of_warps[warp], round == 0);
        kiln_barrier(); /* a and its totals are ready */
        const shared_place now = shared_place_of(all);
        if (now.present) multiply_shared<TILES, AHEAD>(args, sums, a, rows, head, from, weights, groups, now.step);
        if (a.end == a.last) break;
        a.first = a.end;
        a.end = a.last - a.first < all.depth ? a.last : a.first + all.depth;
        kiln_sm90a_fence_proxy_async(); /* copies follow writes of factors */
        kiln_barrier();                 /* a has been read */
        if (warp == 0) fetch_slabs(all, a);
    }

    if (kiln_thread() == 0) expect_sums<TILES>(all, head);
    kiln_barrier(); /* a has been read */
    give_sums(sums, shared + warp);
    kiln_barrier();
    kiln_sm90a_cluster_wait(); /* the other block's barriers are ready */
    const shared_place again = shared_place_of(all);
    send_sums<TILES>(all, head, shared, sent, again);
    kiln_sm90a_mbarrier_wait(kiln_sm90a_shared(head->sent), 0);
    finish_rows<TILES>(all, head, shared, sent, again);
}

#pragma push_macro("KILN_ENTRY_HEAD")
#undef KILN_ENTRY_HEAD
#define KILN_ENTRY_HEAD \
    extern "C" __global__ __cluster_dims__(2, 1, 1) __launch_bounds__(KILN_W4A16_SHARED_WARPS * 32, 1) void
KILN_ENTRY(gemm_w4a16_mma_shared_8, kiln_gemm_w4a16_shared_args) {
    gemm_w4a16_mma_shared<1>(args);
}
KILN_ENTRY(gemm_w4a16_mma_shared_16, kiln_gemm_w4a16_shared_args) {
    gemm_w4a16_mma_shared<2>(args);
}
#pragma pop_macro("KILN_ENTRY_HEAD")

#endif
