/* The kernels of gemm_int8 and gemm_fp8 for 8 or 16 rows of a by mma.sync m16n8k32 of bytes, sm_80 and later, where
 * rows of a and b are 16-byte aligned and k is a multiple of 16. A block does 16 or 32 columns of d; its 8 warps share
 * k and add up their sums in shared memory. Rows of b are the first factor of mma.sync and those of a the second, and
 * nothing goes through shared memory: a lane's 16 bytes of a row are, with k in another order that is the same for both
 * factors, its part of two fragments. As soon as a chunk of k has been multiplied, its registers wait for that of the
 * warp's next step, so that 2 to 4 chunks are on their way at any time; the scales of a block's results are, too, while
 * it multiplies.
 *
 * Floor: one read of b. Measured on an H100 (80 GB HBM3, driver 580.159.04, 2026-11-26), e4m3, in us; before, when the
 * assembler had moved each load to where its chunk was multiplied; and what reading b takes at 3 TB/s. 1 row by ncu
 * within a step of Llama-3-8B, 16 rows by CUDA graphs:
 *
 *   rows x n x k        now    before   reading
 *   1 x 28672 x 4096    44.9   50.0     39
 *   1 x 4096 x 14336    23.6   26.9     19.5
 *   1 x 6144 x 4096     12.4   15.6      8.4
 *   1 x 4096 x 4096      9.3   10.3      5.6
 *   16 x 8192 x 8192    28.2   30.3     22.4
 *
 * The includer defines, after the portable kernels, `unit`:
 *   sums                       int32_t or float: what mma adds in
 *   TWO_LEVEL                  whether its results are taken over group by group where scales are not of groups either
 *   mma(sums, a, b)
 *   first(), value(sums)       what the products of a group begin with, and what they are then as f32 */
#ifndef KILN_KERNELS_COMMON_MATMUL_W8A8_MMA_ROWS_H
#define KILN_KERNELS_COMMON_MATMUL_W8A8_MMA_ROWS_H

#include "kernels/arch/sm80.h"
#include "kernels/common/matmul/w8a8_gpu.h"
#include "kernels/common/matmul/w8a8_sums.h"

enum : uint32_t {
    WARPS = KILN_BLOCK / 32,
    CHUNK = 64, /* codes of k of which a warp's lanes have 16 bytes each: two fragments */
    PER_GROUP = KILN_W8A8_GROUP / CHUNK
};

/* TILES times 8 rows of a, BLOCKS times 16 of b, and CHUNKS chunks of k of b under way, a step: whole groups. Those of
 * a, which a cache has, need not be so far ahead. A lane has of each 8 rows one, and results of rows lane / 4 and
 * lane / 4 + 8 of each 16 of b, and of 2 of each 8 of a. */
template <uint32_t TILES, uint32_t BLOCKS, uint32_t CHUNKS> struct few_rows {
    enum : uint32_t {
        COLS = 16 * BLOCKS,
        STEP = CHUNK * CHUNKS,
        STRIDE = WARPS * STEP, /* from a warp's step to its next */
        GROUPS = CHUNKS / PER_GROUP,
        AHEAD = PER_GROUP,                                         /* chunks of a under way */
        RESULTS = (COLS * TILES * 8 + KILN_BLOCK - 1) / KILN_BLOCK /* of a thread */
    };
    const uint8_t *a[TILES], *b[2 * BLOCKS]; /* at the lane's own place of the step */
    uint32_t k;                              /* which this is */
    uint32_t a_ends[TILES];                  /* where to load no more of a */
    kiln_vector a_chunks[AHEAD][TILES], b_chunks[CHUNKS][2 * BLOCKS];
    struct sums { /* of the block's warps, in shared memory: their bits; and the scales of all of k */
        uint32_t of[WARPS][TILES][COLS][8];
        float a_scales[8 * TILES], b_scales[COLS];
    };
};

/* Loads chunk c, counted from the step's first. Beyond the end codes of a are 0 and those of b remain, which may be NaN
 * only where one of their row is. */
template <uint32_t TILES, uint32_t BLOCKS, uint32_t CHUNKS>
KILN_INLINE void load_b(few_rows<TILES, BLOCKS, CHUNKS> *rows, const kiln_w8a8_args &args, uint32_t c) {
    const uint32_t at = c / CHUNKS * rows->STRIDE + c % CHUNKS * CHUNK;
    const bool present = rows->k + at < (uint32_t)args.k;
    KILN_UNROLL
    for (uint32_t i = 0; i < 2 * BLOCKS; i++)
#if __CUDA_ARCH__ >= 900 /* its first drivers read PTX 7.4 */
        kiln_sm80_refill_v4_once(rows->b_chunks[c % CHUNKS][i].words, rows->b[i] + at, present);
#else
        kiln_sm80_refill_v4(rows->b_chunks[c % CHUNKS][i].words, rows->b[i] + at, present);
#endif
}

template <uint32_t TILES, uint32_t BLOCKS, uint32_t CHUNKS>
KILN_INLINE void load_a(few_rows<TILES, BLOCKS, CHUNKS> *rows, uint32_t c) {
    const uint32_t at = c / CHUNKS * rows->STRIDE + c % CHUNKS * CHUNK;
    KILN_UNROLL
    for (uint32_t i = 0; i < TILES; i++)
        kiln_sm80_load_v4(rows->a_chunks[c % rows->AHEAD][i].words, rows->a[i] + at, rows->k + at < rows->a_ends[i]);
}

/* Loads the first step from k on: b, which memory has, before a. */
template <uint32_t TILES, uint32_t BLOCKS, uint32_t CHUNKS>
KILN_INLINE void begin_rows(few_rows<TILES, BLOCKS, CHUNKS> *rows, const kiln_w8a8_args &args, uint32_t k) {
    const uint32_t lane = kiln_thread() % 32;
    rows->k = k + lane % 4 * KILN_VECTOR_BYTES;
    KILN_UNROLL
    for (uint32_t i = 0; i < 2 * BLOCKS; i++) { /* beyond the last one: that once more, for nothing */
        const uint32_t col = kiln_tile() * rows->COLS + lane / 4 + 8 * i, last = (uint32_t)args.n - 1;
        rows->b[i] = args.b + (col < last ? col : last) * (uint64_t)args.b_stride + rows->k;
    }
    KILN_UNROLL
    for (uint32_t c = 0; c < CHUNKS; c++) {
        KILN_UNROLL
        for (uint32_t i = 0; i < 2 * BLOCKS; i++)
            rows->b_chunks[c][i] = {};
        load_b(rows, args, c);
    }
    __syncwarp(); /* keeps assemblers from moving what follows in front of the loads */
    KILN_UNROLL
    for (uint32_t i = 0; i < TILES; i++) {
        const uint32_t row = lane / 4 + 8 * i;
        rows->a_ends[i] = row < (uint32_t)args.m ? (uint32_t)args.k : 0;
        rows->a[i] = args.a + row * (uint64_t)args.a_stride + rows->k;
    }
    KILN_UNROLL
    for (uint32_t c = 0; c < rows->AHEAD; c++)
        load_a(rows, c);
}

KILN_INLINE const float *scale_at(const kiln_w8a8_scales &scales, uint64_t row, uint64_t group) {
    return scales.values + (row >> scales.rows_log2) * (uint64_t)scales.cols + group * scales.step;
}

/* Asks for the scales of a block's results, if they are of all of k. */
template <uint32_t TILES, uint32_t BLOCKS, uint32_t CHUNKS>
KILN_INLINE void begin_scales(typename few_rows<TILES, BLOCKS, CHUNKS>::sums *shared, const kiln_w8a8_args &args) {
#if __CUDA_ARCH__ >= 800
    const uint32_t cols = 16 * BLOCKS, thread = kiln_thread();
    const uint64_t col = (uint64_t)kiln_tile() * cols + thread, row = thread - cols;
    if (!args.grouped && thread < cols && col < (uint64_t)args.n)
        kiln_sm80_cp_async_4(kiln_sm80_shared(&shared->b_scales[thread]), scale_at(args.b_scales, col, 0), 4);
    if (!args.grouped && thread >= cols && row < (uint64_t)args.m)
        kiln_sm80_cp_async_4(kiln_sm80_shared(&shared->a_scales[row]), scale_at(args.a_scales, row, 0), 4);
    kiln_sm80_cp_async_commit();
#endif
}

/* A result's. */
template <uint32_t TILES, uint32_t BLOCKS, uint32_t CHUNKS>
KILN_INLINE float scale_of(const typename few_rows<TILES, BLOCKS, CHUNKS>::sums &shared, const kiln_w8a8_args &args,
                           uint32_t row, uint32_t col) {
#if __CUDA_ARCH__ >= 800
    return shared.a_scales[row] * shared.b_scales[col];
#else
    return kiln_w8a8_scale(&args.a_scales, row, 0) *
           kiln_w8a8_scale(&args.b_scales, (uint64_t)kiln_tile() * (16 * BLOCKS) + col, 0);
#endif
}

/* The numbers of a group's scales, which 32 bits hold unless b has 512 GiB: of a lane's results those of all rows of a,
 * and that of one row of b, which it shares with its neighbours. */
template <uint32_t TILES> struct row_scales {
    uint32_t a_first[2 * TILES], b_first;
    float a[2 * TILES], b;
};

template <uint32_t TILES, uint32_t BLOCKS>
KILN_INLINE void find_scales(row_scales<TILES> *scales, const kiln_w8a8_args &args) {
    const uint32_t lane = kiln_thread() % 32;
    const uint64_t col = (uint64_t)kiln_tile() * (16 * BLOCKS) + lane / 4 + lane % (2 * BLOCKS) * 8;
    const uint64_t last_row = (uint64_t)args.m - 1, last_col = (uint64_t)args.n - 1;
    scales->b_first =
        (uint32_t)((col < last_col ? col : last_col) >> args.b_scales.rows_log2) * (uint32_t)args.b_scales.cols;
    KILN_UNROLL
    for (uint32_t i = 0; i < 2 * TILES; i++) {
        const uint64_t row = i / 2 * 8 + lane % 4 * 2 + i % 2;
        scales->a_first[i] =
            (uint32_t)((row < last_row ? row : last_row) >> args.a_scales.rows_log2) * (uint32_t)args.a_scales.cols;
    }
}

/* Loads the scales of the group from k on, if that is not beyond the end. */
template <uint32_t TILES>
KILN_INLINE void load_scales(row_scales<TILES> *scales, const kiln_w8a8_args &args, uint32_t k) {
    const uint32_t group = k / KILN_W8A8_GROUP;
    const bool present = k / CHUNK * CHUNK < (uint32_t)args.k;
    kiln_sm80_load_f32(&scales->b, args.b_scales.values + (scales->b_first + group * args.b_scales.step), present);
    KILN_UNROLL
    for (uint32_t i = 0; i < 2 * TILES; i++)
        kiln_sm80_load_f32(&scales->a[i], args.a_scales.values + (scales->a_first[i] + group * args.a_scales.step),
                           present);
}

/* Adds to the sums the products of a group, with its scales. */
template <class unit, uint32_t TILES, uint32_t BLOCKS>
KILN_INLINE void add_scaled(typename unit::sums (*sums)[TILES][4], const typename unit::sums (*products)[TILES][4],
                            const row_scales<TILES> &scales) {
    KILN_UNROLL
    for (uint32_t row = 0; row < 2 * BLOCKS; row++) {
        const float of_b = __shfl_sync(~0u, scales.b, (int)row, 4);
        KILN_UNROLL
        for (uint32_t i = 0; i < 2 * TILES; i++) {
            const uint32_t r = row % 2 * 2 + i % 2;
            w8a8_add(&sums[row / 2][i / 2][r], unit::value(products[row / 2][i / 2][r]), scales.a[i] * of_b);
        }
    }
}

/* Adds the products of a chunk. */
template <class unit, uint32_t TILES, uint32_t BLOCKS>
KILN_INLINE void multiply_chunk(typename unit::sums (*sums)[TILES][4], const kiln_vector *a, const kiln_vector *b) {
    KILN_UNROLL
    for (uint32_t block = 0; block < BLOCKS; block++) {
        const uint32_t *low = b[2 * block].words, *high = b[2 * block + 1].words;
        KILN_UNROLL
        for (uint32_t half = 0; half < 4; half += 2) {
            const uint32_t fragment[4] = {low[half], high[half], low[half + 1], high[half + 1]};
            KILN_UNROLL
            for (uint32_t i = 0; i < TILES; i++)
                unit::mma(sums[block][i], fragment, a[i].words + half);
        }
    }
}

/* Adds the products of all of a warp's k. Sums of groups are f32, those of all of k what mma adds in. */
template <class unit, bool GROUPED, uint32_t TILES, uint32_t BLOCKS, uint32_t CHUNKS>
KILN_INLINE void multiply_rows(typename unit::sums (*sums)[TILES][4], few_rows<TILES, BLOCKS, CHUNKS> *rows,
                               const kiln_w8a8_args &args) {
    typedef few_rows<TILES, BLOCKS, CHUNKS> shape;
    const bool whole = !GROUPED && !unit::TWO_LEVEL;
    row_scales<TILES> scales;
    if (GROUPED) find_scales<TILES, BLOCKS>(&scales, args);
    KILN_LOOP
    while (rows->k / CHUNK * CHUNK < (uint32_t)args.k) {
        KILN_UNROLL
        for (uint32_t g = 0; g < shape::GROUPS; g++) {
            if (g > 0 && rows->k / CHUNK * CHUNK + g * KILN_W8A8_GROUP >= (uint32_t)args.k) return;
            typename unit::sums products[BLOCKS][TILES][4];
            KILN_UNROLL
            for (uint32_t i = 0; i < BLOCKS * TILES * 4; i++)
                products[i / 4 / TILES][i / 4 % TILES][i % 4] = unit::first();
            KILN_UNROLL
            for (uint32_t c = g * PER_GROUP; c < (g + 1) * PER_GROUP; c++) {
                multiply_chunk<unit, TILES, BLOCKS>(whole ? sums : products, rows->a_chunks[c % shape::AHEAD],
                                                    rows->b_chunks[c]);
                load_b(rows, args, c + CHUNKS);
                load_a(rows, c + shape::AHEAD);
                __syncwarp(); /* keeps assemblers from moving the loads behind the next chunks' products */
            }
            if (GROUPED) {
                load_scales(&scales, args, rows->k + g * KILN_W8A8_GROUP);
                add_scaled<unit, TILES, BLOCKS>(sums, products, scales);
            }
            KILN_UNROLL
            for (uint32_t i = 0; !GROUPED && !whole && i < BLOCKS * TILES * 4; i++) {
                const uint32_t block = i / 4 / TILES, tile = i / 4 % TILES, r = i % 4;
                w8a8_add(&sums[block][tile][r], unit::value(products[block][tile][r]), 1.0f);
            }
        }
        rows->k += shape::STRIDE;
        KILN_UNROLL
        for (uint32_t i = 0; i < 2 * BLOCKS; i++)
            rows->b[i] += shape::STRIDE;
        KILN_UNROLL
        for (uint32_t i = 0; i < TILES; i++)
            rows->a[i] += shape::STRIDE;
    }
}

template <class unit, uint32_t TILES, uint32_t BLOCKS, uint32_t CHUNKS>
KILN_INLINE void w8a8_mma_rows(const kiln_w8a8_args &args, typename few_rows<TILES, BLOCKS, CHUNKS>::sums *shared) {
    typedef typename unit::sums sum_type;
    typedef few_rows<TILES, BLOCKS, CHUNKS> shape;
    const uint32_t lane = kiln_thread() % 32, warp = kiln_thread() / 32, k = warp * shape::STEP;
    const uint64_t first = (uint64_t)kiln_tile() * shape::COLS;
    shape rows;
    begin_rows(&rows, args, k);
    if (kiln_block()) return; /* the whole block */
    begin_scales<TILES, BLOCKS, CHUNKS>(shared, args);
    sum_type sums[BLOCKS][TILES][4] = {};
    if (args.grouped)
        multiply_rows<unit, true>(sums, &rows, args);
    else
        multiply_rows<unit, false>(sums, &rows, args);

    KILN_UNROLL
    for (uint32_t i = 0; i < BLOCKS * TILES; i++) {
        const sum_type *sum = sums[i / TILES][i % TILES];
        sum_type(*to)[8] = (sum_type(*)[8])shared->of[warp][i % TILES][i / TILES * 16 + lane / 4];
        to[0][lane % 4 * 2] = sum[0];
        to[0][lane % 4 * 2 + 1] = sum[1];
        to[8][lane % 4 * 2] = sum[2];
        to[8][lane % 4 * 2 + 1] = sum[3];
    }
#if __CUDA_ARCH__ >= 800
    kiln_sm80_cp_async_wait<0>();
#endif
    kiln_barrier();
    KILN_UNROLL
    for (uint32_t i = 0; i < shape::RESULTS; i++) {
        const uint32_t number = i * KILN_BLOCK + kiln_thread(), row = number / shape::COLS;
        const uint64_t col = first + number % shape::COLS;
        if (row >= (uint64_t)args.m || col >= (uint64_t)args.n) continue;
        sum_type total = 0;
        float scaled = 0.0f;
        KILN_UNROLL
        for (uint32_t w = 0; w < WARPS; w++) {
            sum_type sum = ((const sum_type *)shared->of[w][row / 8][number % shape::COLS])[row % 8];
            total += sum;
            scaled += w8a8_f32(sum);
        }
        if (!args.grouped)
            scaled = (float)total * scale_of<TILES, BLOCKS, CHUNKS>(*shared, args, row, number % shape::COLS);
        w8a8_finish(&args, scaled, row, col);
    }
}

#endif
