/* gemm_w4a16 of 9 to 16 rows by mma.sync, for sm_90a, f16 and bf16, of weights in the layout sm80_v1 with groups that
 * whole steps of 128 of k are of: gemm_w4a16_mma_shared_16, gemm_w4a16_mma_shared_zeros_16 of weights with zeros, and
 * gemm_w4a16_mma_shared_factors_16 where columns of a have factors, as by pre_scale or, in bf16, where its rows are
 * normalised. Weights, scales and products are those of gemm_w4a16_mma_rows.h, which does the other calls; here rows of
 * a are in shared memory, and a block does as many columns as a multiprocessor has to.
 *
 * What bounds gemm_w4a16_mma_rows_16 is a: each 32 columns read it again from L2, four bytes of a for two of weights.
 * 28672 x 8192 is 121 MB of weights and scales and 235 MB of a, and took 59.3 us on an H100 (driver 580.159.04,
 * 2026-11-26), 8192 x 8192 35 and 67 MB and 19.5 us; 8 rows, half as much of a, took 47.2 and 15.5.
 *
 * A cluster of two blocks does up to 14 tiles of 32 columns, as of 28672 columns on 132 multiprocessors; each block has
 * half of k, and of a's rows just that: up to 7168 of k of 16 rows. They are asked for at the start, in copies of 512
 * of k, each with a barrier of its own in shared memory that completes once: nothing there is overwritten, and so no
 * warp waits for another. A warp has one tile, whose weights go straight into registers, two steps ahead, 4
 * KiB a warp; where a cluster has few tiles, several warps share a tile's half of k. The blocks read each other's sums
 * at the end, a row of 8 each. So 28672 x 8192 reads 17 MB of a, twice that of what is copied at least, and 4096 x
 * 14336, whose 128 tiles are two a cluster, 29 MB instead of 59.
 *
 * A zero is added to all weights of a group, and so what it adds is the sum of a's row over the group. A warp adds its
 * rows up beside the products, by 8 products with ones a step. These leave the sums of four steps and 16 rows where a
 * product of 16 x 8 x 8 of TF32 has its second factor: four such products multiply them, each as two numbers of 11
 * bits, with the zeros of four steps and 32 columns, which are exact there. So a step is 328 instructions instead of
 * 282, in the assembler's code, where that of gemm_w4a16_mma_rows_16 is 405, and 28672 x 4096 with zeros takes an
 * H100's schedulers 9 us (predicted), and reading 21.
 *
 * Factors are one more row beside a's, and each warp multiplies what it reads of a with them: a step is 361
 * instructions, with zeros or without. Of rows that are normalised a block adds up the squares of its half of k, once:
 * warps that have the same part of k for several tiles have a range of it each. The blocks exchange these sums as those
 * of products, and divide by the root at the end. So 16 rows need no launch that normalises them first.
 *
 * Floor: one read of the weights. Not measured. */
#ifndef KILN_KERNELS_GEMM_W4A16_MMA_SHARED_H
#define KILN_KERNELS_GEMM_W4A16_MMA_SHARED_H

#include "kernels/arch/sm80_tf32.h"
#include "kernels/arch/sm90a_bulk.h"
#include "kernels/arch/sm90a_shared.h"
#include "kernels/gemm_w4a16/gemm_w4a16_mma_rows.h"
#include "kernels/gemm_w4a16/gemm_w4a16_shared_args.h"

enum : uint32_t {
    SHARED_TILES = 2, /* of 8 rows of a */
    SHARED_ROWS = SHARED_TILES * 8,
    SHARED_STEPS = 2,  /* of weights, ahead */
    TOTAL_STEPS = 4,   /* whose zeros are multiplied at once */
    TF32 = 0xffffe000, /* the bits of an f32 that are one of TF32 */
    SLAB = KILN_W4A16_SHARED_SLAB
};
static_assert((uint32_t)KILN_W4A16_SHARED_STEP == STEP, "the host side divides k into steps");
static_assert(SLAB % STEP == 0, "a step is of one slab");

/* Rows of a in shared memory, and before them one of factors where there are: of k from `first` to `end`. */
struct shared_rows {
    uint32_t barriers, factors, rows; /* addresses in shared memory */
    uint32_t first, end, row_bytes;
};

template <bool FACTORS>
KILN_INLINE shared_rows shared_rows_of(const kiln_gemm_w4a16_args &args, const uint8_t *dynamic) {
    shared_rows a;
    a.barriers = kiln_sm90a_shared(dynamic);
    a.first = kiln_sm90a_cluster_rank() * args.split;
    a.end = a.first + args.split < (uint32_t)args.k ? a.first + args.split : (uint32_t)args.k;
    a.row_bytes = args.split * (uint32_t)sizeof(kiln_element) + KILN_W4A16_SHARED_PADDING;
    a.factors = a.barriers + KILN_W4A16_SHARED_BARRIERS + (FACTORS ? KILN_W4A16_SHARED_SQUARES : 0);
    a.rows = a.factors + (FACTORS ? a.row_bytes : 0);
    return a;
}

/* Copies all slabs, by one warp, a lane for each row, of which the first has factors where there are. */
template <bool FACTORS> KILN_INLINE void fetch_slabs(const kiln_gemm_w4a16_args &args, const shared_rows &a) {
    const uint32_t lane = kiln_thread() % 32, rows = (uint32_t)args.m + FACTORS;
    const kiln_element *row = (const kiln_element *)args.a + (lane - FACTORS) * (uint64_t)args.a_stride;
    uint32_t barrier = a.barriers, to = a.factors + lane * a.row_bytes;
    if (FACTORS && lane == 0) row = (const kiln_element *)args.pre_scale;
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

/* A lane's vectors of a chunk of a: of its two rows, or of the last one for those that a does not have. */
KILN_INLINE void read_rows(kiln_vector *to, const uint32_t *rows, uint32_t at) {
    KILN_UNROLL
    for (uint32_t i = 0; i < SHARED_TILES; i++)
        asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(to[i].words[0]), "=r"(to[i].words[1]), "=r"(to[i].words[2]), "=r"(to[i].words[3])
                     : "r"(rows[i] + at * (uint32_t)sizeof(kiln_element)));
}

/* What a kernel with factors of a's columns has besides: of rows that are normalised, the range of k whose squares a
 * warp adds up, in its place in shared memory. Warps that share a part of k have a range of it each. */
template <bool FACTORS> struct shared_factors {
    float *squares; /* of 16 rows */
    uint32_t first, count;
};
template <> struct shared_factors<false> {};

/* Adds up the squares of a step of k, if it is in the range: four lanes have parts of two rows. */
KILN_INLINE void add_squares(const shared_factors<true> &factors, const uint32_t *rows, uint32_t k) {
    const uint32_t lane = kiln_thread() % 32;
    float sums[SHARED_TILES] = {};
    if (k - factors.first >= factors.count) return;
    KILN_LOOP
    for (uint32_t c = 0; c < STEP; c += CHUNK) {
        kiln_vector of_a[SHARED_TILES];
        read_rows(of_a, rows, k + c);
        KILN_UNROLL
        for (uint32_t i = 0; i < SHARED_TILES; i++) {
            float values[KILN_VECTOR];
            kiln_vector_values(values, of_a[i]);
            sums[i] = kiln_add_squares(sums[i], values);
        }
    }
    KILN_UNROLL
    for (uint32_t i = 0; i < SHARED_TILES; i++) {
        sums[i] += kiln_shuffle_xor(sums[i], 1);
        sums[i] += kiln_shuffle_xor(sums[i], 2);
        if (lane % 4 == 0) factors.squares[i * 8 + lane / 4] += sums[i];
    }
}
KILN_INLINE void add_squares(const shared_factors<false> &, const uint32_t *, uint32_t) {}

/* Multiplies a lane's vectors of a chunk of a, which is at k, with the factors of their columns. */
template <bool FACTORS> KILN_INLINE void multiply_factors(const shared_rows &a, kiln_vector *of_a, uint32_t k) {
    kiln_vector of_chunk;
    if (!FACTORS) return;
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(of_chunk.words[0]), "=r"(of_chunk.words[1]), "=r"(of_chunk.words[2]), "=r"(of_chunk.words[3])
                 : "r"(a.factors + (k + kiln_thread() % 4 * KILN_VECTOR) * (uint32_t)sizeof(kiln_element)));
    KILN_UNROLL
    for (uint32_t i = 0; i < SHARED_TILES; i++)
        multiply_pairs(&of_a[i], of_chunk);
}

/* What a kernel of weights with zeros has besides: the sums of a's rows over up to four steps, and of how many. A
 * lane's vector of a is a first factor's fragment of two rows, 8 apart, each of which is half of one row of a; columns
 * 2 j and 2 j + 1 are of step j, of a's first and second 8 rows. */
template <bool ZEROS> struct row_totals {
    float of[4];
    uint32_t steps;
};
template <> struct row_totals<false> {};

KILN_INLINE void total_rows(row_totals<true> *totals, const kiln_vector *a) {
    const uint32_t column = kiln_thread() % 32 / 4 - SHARED_TILES * totals->steps;
    KILN_UNROLL
    for (uint32_t i = 0; i < SHARED_TILES; i++) {
        const uint32_t one = column == i ? (uint32_t)ONES : 0, ones[2] = {one, one};
        mma(totals->of, a[i].words, ones);
    }
}
KILN_INLINE void total_rows(row_totals<false> *, const kiln_vector *) {}

/* Adds to the sums, after the step at k, what the zeros of a batch of steps make of a's rows: a product of zeros and
 * totals, each of the latter in two parts that are TF32. A lane has the zeros of one step, of four rows of weights. */
KILN_INLINE void add_zeros(const kiln_gemm_w4a16_args &args, float (*sums)[SHARED_TILES][4], row_totals<true> *totals,
                           const row_sources<SHARED_TILES> &from, uint32_t k, uint32_t step, uint32_t end) {
    const uint32_t number = kiln_thread() % 4, last = totals->steps++;
    if (last + 1 < TOTAL_STEPS && k + step < end) return;
    const uint32_t of_k = k - (number < last ? last - number : 0) * step;
    const kiln_element *zeros =
        (const kiln_element *)args.zeros + (uint64_t)(of_k >> args.group_log2) * (uint32_t)args.scale_group_step;
    uint32_t of_rows[2 * BLOCKS], parts[SHARED_TILES][2];
    KILN_UNROLL
    for (uint32_t row = 0; row < 2 * BLOCKS; row++)
        of_rows[row] = kiln_bits(kiln_element_to_f32(zeros[__shfl_sync(~0u, from.group, (int)row, 4)]));
    KILN_UNROLL
    for (uint32_t i = 0; i < SHARED_TILES; i++) {
        const float total = totals->of[i] + totals->of[2 + i];
        parts[i][0] = kiln_bits(total) & TF32;
        parts[i][1] = kiln_bits(total - kiln_float(parts[i][0])) & TF32;
    }
    KILN_UNROLL
    for (uint32_t b = 0; b < BLOCKS; b++) {
        const uint32_t first = of_rows[2 * b], second = of_rows[2 * b + 1];
        const uint32_t fragment[4] = {first, second, first, second};
        KILN_UNROLL
        for (uint32_t i = 0; i < SHARED_TILES; i++)
            kiln_sm80_mma_tf32(sums[b][i], fragment, parts[i]);
    }
    *totals = row_totals<true>();
}
KILN_INLINE void add_zeros(const kiln_gemm_w4a16_args &, float (*)[SHARED_TILES][4], row_totals<false> *,
                           const row_sources<SHARED_TILES> &, uint32_t, uint32_t, uint32_t) {}

/* Adds to the sums the products of a tile's steps, every `parts`th from number `part` on. */
template <bool ZEROS, bool FACTORS>
KILN_INLINE void multiply_shared(const kiln_gemm_w4a16_args &args, float (*sums)[SHARED_TILES][4], const shared_rows &a,
                                 const shared_factors<FACTORS> &factors, row_sources<SHARED_TILES> from,
                                 row_tile<SHARED_TILES> (*tiles)[STEP_TILES], row_group *groups, uint32_t step) {
    row_totals<ZEROS> totals = {};
    const uint32_t lane = kiln_thread() % 32, end = a.end + SHARED_STEPS * step;
    uint32_t rows[SHARED_TILES];
    KILN_UNROLL
    for (uint32_t i = 0; i < SHARED_TILES; i++) {
        const uint32_t row = lane / 4 + 8 * i, last = (uint32_t)args.m - 1;
        rows[i] = a.rows + (row < last ? row : last) * a.row_bytes +
                  lane % 4 * (KILN_VECTOR * (uint32_t)sizeof(kiln_element));
    }
    KILN_LOOP
    while (from.k < end) {
        KILN_UNROLL
        for (uint32_t s = 0; s < SHARED_STEPS; s++, advance(&from, step)) {
            const uint32_t at = from.k - SHARED_STEPS * step - a.first; /* of the block's */
            if (from.k >= end) return;
            kiln_sm90a_mbarrier_wait(a.barriers + at / SLAB * 8, 0);
            add_squares(factors, rows, at);
            row_products<SHARED_TILES> products = {};
            KILN_UNROLL
            for (uint32_t t = 0; t < STEP_TILES; t++) {
                KILN_UNROLL
                for (uint32_t c = 0; c < TILE_CHUNKS; c++) {
                    read_rows(tiles[s][t].a[c], rows, at + t * KILN_W4A16_TILE_DEPTH + c * CHUNK);
                    multiply_factors<FACTORS>(a, tiles[s][t].a[c], at + t * KILN_W4A16_TILE_DEPTH + c * CHUNK);
                    multiply_chunk(&products, tiles[s][t], tiles[s][t], c);
                    total_rows(&totals, tiles[s][t].a[c]);
                }
                refill_weights(args, &tiles[s][t], from, t, a.end);
                __syncwarp(); /* keeps assemblers from moving the loads behind the next products */
            }
            add_products<SHARED_TILES>(sums, products.of, true, groups[s].scale);
            refill_groups<SHARED_TILES, 1>(args, groups + s, from, false, a.end);
            if (!FACTORS || args.zeros) add_zeros(args, sums, &totals, from, at + a.first, step, a.end);
        }
    }
}

/* The sum of an element of a block's tile over the warps of both blocks that share it. */
KILN_INLINE float cluster_sum(warp_sums<SHARED_TILES> *shared, uint32_t tiles, uint32_t tile, uint32_t row,
                              uint32_t col) {
    float sum = 0.0f;
    KILN_UNROLL
    for (uint32_t rank = 0; rank < 2; rank++) {
        const float *from = &kiln_sm90a_shared_of(shared + tile, rank)->of[row / 8][col][place_of_row(col, row % 8)];
        KILN_LOOP
        for (uint32_t w = tile; w < blockDim.x / 32; w += tiles, from += tiles * sizeof *shared / sizeof *from)
            sum += *from;
    }
    return sum;
}

/* The factors of a warp, which has tile number `number` of the block's, one of `tiles` that there are. */
KILN_INLINE shared_factors<true> shared_factors_of(const kiln_gemm_w4a16_args &args, float *of_warps, uint32_t number,
                                                   uint32_t tiles, uint32_t step) {
    shared_factors<true> factors;
    const uint32_t lane = kiln_thread() % 32, each = ((args.split + step - 1) / step + tiles - 1) / tiles;
    factors.squares = of_warps + kiln_thread() / 32 * SHARED_ROWS;
    factors.first = number * each * step;
    factors.count = args.norm_weight ? each * step : 0;
    if (lane < SHARED_ROWS) factors.squares[lane] = 0.0f;
    return factors;
}

/* Adds up the squares of a's rows that the warps of a block have. */
KILN_INLINE void join_squares(const float *of_warps, float *of_block) {
    const uint32_t lane = kiln_thread() % 32, warps = blockDim.x / 32;
    KILN_LOOP
    for (uint32_t row = kiln_thread() / 32; row < SHARED_ROWS; row += warps) {
        float sum = lane < warps ? of_warps[lane * SHARED_ROWS + row] : 0.0f;
        KILN_UNROLL
        for (uint32_t distance = 16; distance; distance /= 2)
            sum += kiln_shuffle_xor(sum, distance);
        if (lane == 0) of_block[row] = sum;
    }
}

/* What a row's sums are multiplied with, where both blocks of a cluster have squares of it. */
KILN_INLINE float cluster_factor(const kiln_gemm_w4a16_args &args, float *squares, uint32_t row) {
    if (!args.norm_weight) return 1.0f;
    return norm_of(&args, *kiln_sm90a_shared_of(squares + row, 0) + *kiln_sm90a_shared_of(squares + row, 1));
}

template <bool ZEROS, bool FACTORS> KILN_INLINE void gemm_w4a16_mma_shared(const kiln_gemm_w4a16_shared_args &all) {
    const kiln_gemm_w4a16_args &args = all.plain;
    extern __shared__ __align__(16) uint8_t dynamic[];
    const uint32_t warp = kiln_thread() / 32, rank = kiln_sm90a_cluster_rank();
    const uint32_t first_tile = kiln_tile() / 2 * all.tiles, tile = first_tile + warp % all.tiles;
    const uint32_t step = blockDim.x / 32 / all.tiles * STEP, cols_log2 = columns_log2(args);
    const bool present = (uint64_t)tile << cols_log2 < (uint64_t)args.n;
    const shared_rows a = shared_rows_of<FACTORS>(args, dynamic);
    row_sources<SHARED_TILES> from =
        row_sources_of<SHARED_TILES>(args, present ? tile : first_tile, a.first + warp / all.tiles * STEP);
    float *squares = (float *)(dynamic + KILN_W4A16_SHARED_BARRIERS), *of_warps = squares + SHARED_ROWS;
    row_tile<SHARED_TILES> tiles[SHARED_STEPS][STEP_TILES] = {};
    row_group groups[SHARED_STEPS] = {};
    shared_factors<FACTORS> factors = {};
    float sums[BLOCKS][SHARED_TILES][4] = {};
    if constexpr (FACTORS) {
        const uint32_t left = (uint32_t)(((uint64_t)args.n - 1 >> cols_log2) + 1) - first_tile;
        factors = shared_factors_of(args, of_warps, tile - first_tile, left < all.tiles ? left : all.tiles, step);
    }
    if (kiln_thread() < KILN_W4A16_SHARED_BARRIERS / 8) {
        kiln_sm90a_mbarrier_init(a.barriers + 8 * kiln_thread(), 1);
        kiln_sm90a_fence_mbarrier_init();
    }
    KILN_UNROLL
    for (uint32_t s = 0; s < SHARED_STEPS; s++, advance(&from, step)) {
        KILN_UNROLL
        for (uint32_t t = 0; t < STEP_TILES; t++)
            refill_weights(args, &tiles[s][t], from, t, present ? a.end : 0);
        refill_groups<SHARED_TILES, 1>(args, groups + s, from, false, present ? a.end : 0);
    }
    kiln_barrier();
    if (warp == 0) fetch_slabs<FACTORS>(args, a);
    if (present) multiply_shared<ZEROS>(args, sums, a, factors, from, tiles, groups, step);

    warp_sums<SHARED_TILES> *shared =
        (warp_sums<SHARED_TILES> *)(dynamic + KILN_W4A16_SHARED_BARRIERS + (FACTORS ? KILN_W4A16_SHARED_SQUARES : 0));
    kiln_barrier(); /* a has been read */
    if constexpr (FACTORS) join_squares(of_warps, squares);
    give_sums(sums, shared + warp);
    kiln_sm90a_cluster_sync();
    const uint32_t cols = all.tiles << cols_log2;
    KILN_LOOP
    for (uint32_t i = kiln_thread(); i < 8 * cols; i += blockDim.x) {
        const uint32_t row = rank * 8 + i / cols, place = i % cols, col = place & ((1u << cols_log2) - 1);
        const uint64_t d_col = ((uint64_t)first_tile << cols_log2) + place;
        if (row >= (uint64_t)args.m || d_col >= (uint64_t)args.n) continue;
        const float factor = FACTORS ? cluster_factor(args, squares, row) : 1.0f;
        const float sum = cluster_sum(shared, all.tiles, place >> cols_log2, row, col) * factor;
        if (args.paired)
            finish_pair(&args, sum,
                        cluster_sum(shared, all.tiles, place >> cols_log2, row, col + KILN_W4A16_TILE_ROWS) * factor,
                        row, d_col);
        else
            finish_element(&args, sum, row, d_col);
    }
    kiln_sm90a_cluster_sync(); /* no block ends while the other reads its sums */
}

#pragma push_macro("KILN_ENTRY_HEAD")
#undef KILN_ENTRY_HEAD
#define KILN_ENTRY_HEAD extern "C" __global__ __cluster_dims__(2, 1, 1) __launch_bounds__(14 * 32, 1) void
KILN_ENTRY(gemm_w4a16_mma_shared_16, kiln_gemm_w4a16_shared_args) {
    gemm_w4a16_mma_shared<false, false>(args);
}
KILN_ENTRY(gemm_w4a16_mma_shared_zeros_16, kiln_gemm_w4a16_shared_args) {
    gemm_w4a16_mma_shared<true, false>(args);
}
KILN_ENTRY(gemm_w4a16_mma_shared_factors_16, kiln_gemm_w4a16_shared_args) {
    gemm_w4a16_mma_shared<true, true>(args);
}
#pragma pop_macro("KILN_ENTRY_HEAD")

#endif
