/* The kernels of gemm_int8 and gemm_fp8 by the matrix units of AMD chips, for rows of a and b that are 16-byte aligned,
 * beside the portable ones (w8a8_gpu.h) for the rest; w8a8_amd_rows.h is for few rows.
 *
 * A block's tile is square. A stage is 64 bytes of each row: 64 codes, or 32 of those that are multiplied as f16. There
 * are two in LDS: while one is multiplied the next is on its way into registers, which write it to the other at the
 * end; one barrier a stage. Behind its rows are their scales for the group of 128 codes that it is of: where there are
 * such, the products of a group are made for themselves, scaled and added to the sums in f32; else products are added
 * over all of k, int8's in int32 and E4M3's in f32, and scaled at the end. matmul_amd.h tells the rest.
 *
 * Includers define `tile`, a chip's matrix unit, and what it takes of codes, from w8a8_amd_units.h:
 *   WIDTH                 vectors of 16 codes as they are multiplied; put(codes, to) writes them
 *   value(sum)            a sum of the unit's as f32 */
#ifndef KILN_KERNELS_COMMON_MATMUL_W8A8_AMD_H
#define KILN_KERNELS_COMMON_MATMUL_W8A8_AMD_H

#include "kernels/common/matmul/w8a8_amd_units.h"
#include "kernels/common/matmul/w8a8_gpu.h"

/* ---- Stages ---- */

/* A thread's vectors of the rows of a and then of b, and its row's scale. */
template <class tile, uint32_t HEIGHT> struct stage_source {
    enum : uint32_t {
        ROWS = 2 * HEIGHT,
        VECTORS = ROW_VECTORS / tile::WIDTH, /* of codes of a row */
        DEPTH = VECTORS * KILN_VECTOR_BYTES,
        AT_ONCE = KILN_BLOCK / VECTORS, /* rows that a block loads */
        COUNT = ROWS / AT_ONCE,
        SCALES = ROWS * ROW_PITCH, /* their place in a stage, behind the rows */
        STAGE_VECTORS = SCALES + ROWS * (uint32_t)sizeof(float) / KILN_VECTOR_BYTES
    };
    const uint8_t *rows[COUNT];
    const float *scales;
    uint32_t scale_step;
    kiln_vector next[COUNT];
    float next_scale;

    KILN_INLINE uint32_t load_row(void) { return stage_row<VECTORS>(); }
    KILN_INLINE uint32_t load_vector(void) { return stage_vector<VECTORS>(); }
};

/* Rows beyond the last are the last one. */
template <class tile, uint32_t HEIGHT>
KILN_INLINE void start(stage_source<tile, HEIGHT> *of, const kiln_w8a8_args &args, uint64_t first_row,
                       uint64_t first_col) {
    const uint64_t last_row = (uint64_t)args.m - 1, last_col = (uint64_t)args.n - 1;
    KILN_UNROLL
    for (uint32_t i = 0; i < of->COUNT; i++) {
        const uint32_t number = of->load_row() + i * of->AT_ONCE;
        const bool is_a = number < HEIGHT;
        uint64_t row = is_a ? first_row + number : first_col + number - HEIGHT, last = is_a ? last_row : last_col;
        if (row > last) row = last;
        const uint8_t *codes = is_a ? args.a + row * (uint64_t)args.a_stride : args.b + row * (uint64_t)args.b_stride;
        of->rows[i] = codes + of->load_vector() * KILN_VECTOR_BYTES;
    }
    const uint32_t number = kiln_thread() % of->ROWS;
    const bool is_a = number < HEIGHT;
    const kiln_w8a8_scales *scales = is_a ? &args.a_scales : &args.b_scales;
    uint64_t row = is_a ? first_row + number : first_col + number - HEIGHT, last = is_a ? last_row : last_col;
    if (row > last) row = last;
    of->scales = scales->values + (row >> scales->rows_log2) * (uint64_t)scales->cols;
    of->scale_step = scales->step;
}

/* The vector of a row at column k of it; zeros from its end on. */
KILN_INLINE kiln_vector fetch(const uint8_t *row, uint32_t k, uint32_t end) {
    kiln_vector vector;
    KILN_UNROLL
    for (uint32_t i = 0; i < KILN_VECTOR_BYTES / W8A8_PIECE; i++) {
        const w8a8_piece piece = w8a8_fetch(row, k + i * W8A8_PIECE, end, true);
        KILN_UNROLL
        for (uint32_t w = 0; w < W8A8_PIECE / 4; w++)
            vector.words[i * (W8A8_PIECE / 4) + w] = piece.words[w];
    }
    return vector;
}

/* Loads this thread's vectors of the stage from k on, and its scale; zeros from `end` on. */
template <class tile, uint32_t HEIGHT, bool GROUPED>
KILN_INLINE void load_stage(stage_source<tile, HEIGHT> *of, uint32_t k, uint32_t end) {
    if (k + of->DEPTH <= end) {
        KILN_UNROLL
        for (uint32_t i = 0; i < of->COUNT; i++)
            of->next[i] = *(const kiln_vector *)(const void *)(of->rows[i] + k);
    } else {
        const uint32_t own = of->load_vector() * KILN_VECTOR_BYTES;
        KILN_LOOP
        for (uint32_t i = 0; i < of->COUNT; i++) { /* registers have no index: rows and vectors go round */
            const uint8_t *row = of->rows[0];
            KILN_UNROLL
            for (uint32_t j = 1; j < of->COUNT; j++) {
                of->rows[j - 1] = of->rows[j];
                of->next[j - 1] = of->next[j];
            }
            of->rows[of->COUNT - 1] = row;
            of->next[of->COUNT - 1] = fetch(row - own, k + own, end);
        }
    }
    if (GROUPED) of->next_scale = of->scales[(uint64_t)(k >> KILN_W8A8_GROUP_LOG2) * of->scale_step];
}

template <class tile, uint32_t HEIGHT, bool GROUPED>
KILN_INLINE void store_stage(const stage_source<tile, HEIGHT> &of, kiln_vector *stage) {
    KILN_UNROLL
    for (uint32_t i = 0; i < of.COUNT; i++)
        tile::put(of.next[i], stage + (of.load_row() + i * of.AT_ONCE) * ROW_PITCH + of.load_vector() * tile::WIDTH);
    if (GROUPED && kiln_thread() < of.ROWS) ((float *)(stage + of.SCALES))[kiln_thread()] = of.next_scale;
}

/* ---- Products ---- */

/* Takes a wave's products of a group into its sums, and begins those of the next. Scales are at its first rows. */
template <class tile, uint32_t DOWN, uint32_t ACROSS>
KILN_INLINE void promote(float (*sums)[ACROSS][tile::ELEMENTS], typename tile::sums (*products)[ACROSS],
                         const float *a_scales, const float *b_scales) {
    const uint32_t lane = kiln_thread() % tile::WAVE;
    float right[ACROSS];
    KILN_UNROLL
    for (uint32_t j = 0; j < ACROSS; j++)
        right[j] = b_scales[j * tile::SIDE + lane % tile::SIDE];
    KILN_UNROLL
    for (uint32_t i = 0; i < DOWN; i++) {
        KILN_UNROLL
        for (uint32_t r = 0; r < tile::ELEMENTS; r++) {
            const float left = a_scales[i * tile::SIDE + tile::row_of(lane, r)];
            KILN_UNROLL
            for (uint32_t j = 0; j < ACROSS; j++) {
                sums[i][j][r] = KILN_FMA(tile::value(products[i][j][r]), left * right[j], sums[i][j][r]);
                products[i][j][r] = 0;
            }
        }
    }
}

/* ---- Tiles ---- */

/* A tile of HEIGHT x HEIGHT, its waves in two rows. GROUPED: group by group. */
template <class tile, bool GROUPED, uint32_t HEIGHT> KILN_INLINE void w8a8_mma_tile(const kiln_w8a8_args &args) {
    typedef stage_source<tile, HEIGHT> source_type;
    enum : uint32_t {
        WAVE_COLUMNS = KILN_BLOCK / tile::WAVE / 2, /* of the block */
        WAVE_ROWS = HEIGHT / 2,
        WAVE_COLS = HEIGHT / WAVE_COLUMNS,
        DOWN = WAVE_ROWS / tile::SIDE,
        ACROSS = WAVE_COLS / tile::SIDE
    };
    KILN_DYNAMIC_SHARED(kiln_vector, stages);
    const uint32_t tile_cols = ((uint32_t)args.n + HEIGHT - 1) / HEIGHT;
    const block_work at = block_work_of<tile::DIES>(args.tile_rows, tile_cols, args.splits);
    if (at.share >= args.splits) return; /* the whole block */
    const uint64_t first_row = (uint64_t)at.tile_row * HEIGHT, first_col = (uint64_t)at.tile_col * HEIGHT;
    uint32_t begin = at.share * args.split, end = begin + args.split;
    if (end > (uint32_t)args.k) end = (uint32_t)args.k;

    source_type source;
    start(&source, args, first_row, first_col);
    const uint32_t wave = kiln_thread() / tile::WAVE;
    const uint32_t wave_row = wave / WAVE_COLUMNS * WAVE_ROWS, wave_col = wave % WAVE_COLUMNS * WAVE_COLS;
    typename tile::sums products[DOWN][ACROSS] = {};
    float sums[DOWN][ACROSS][tile::ELEMENTS] = {};
    kiln_vector *use = stages, *fill = stages + source_type::STAGE_VECTORS;
    /* One place that loads and one that stores, the first stage's too: unrolled they are the longest part of the code.
     */
    uint32_t next = begin;
    KILN_LOOP
    for (;;) {
        const bool more = next < end;
        if (more) load_stage<tile, HEIGHT, GROUPED>(&source, next, end);
        if (next != begin) {
            multiply_stage<tile, DOWN, ACROSS>(products, use + wave_row * ROW_PITCH,
                                               use + (HEIGHT + wave_col) * ROW_PITCH);
            if (GROUPED && (next % KILN_W8A8_GROUP == 0 || !more)) {
                const float *scales = (const float *)(use + source_type::SCALES);
                promote<tile, DOWN, ACROSS>(sums, products, scales + wave_row, scales + HEIGHT + wave_col);
            }
        }
        if (!more) break;
        store_stage<tile, HEIGHT, GROUPED>(source, fill);
        kiln_barrier();
        kiln_vector *done = use;
        use = fill;
        fill = done;
        next += source_type::DEPTH;
    }
    kiln_barrier();

    float *partials = args.partials + (uint64_t)at.share * (uint64_t)args.m * (uint64_t)args.n;
    finish_products<tile, DOWN, ACROSS>(
        &args, stages, wave, first_row + wave_row, first_col + wave_col,
        [&](uint32_t i, uint32_t j, uint32_t r)
            KILN_INLINE_LAMBDA { return GROUPED ? sums[i][j][r] : tile::value(products[i][j][r]); },
        [=](const kiln_w8a8_args *args, float sum, uint64_t row, uint64_t col) KILN_INLINE_LAMBDA {
            if (!GROUPED) sum *= kiln_w8a8_scale(&args->a_scales, row, 0) * kiln_w8a8_scale(&args->b_scales, col, 0);
            if (args->splits > 1)
                partials[row * (uint64_t)args->n + col] = sum;
            else
                w8a8_finish(args, sum, row, col);
        });
}

template <class tile, uint32_t HEIGHT> KILN_INLINE void w8a8_mma(const kiln_w8a8_args &args) {
    if (args.grouped)
        w8a8_mma_tile<tile, true, HEIGHT>(args);
    else
        w8a8_mma_tile<tile, false, HEIGHT>(args);
}

#endif
