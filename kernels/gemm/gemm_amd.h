/* gemm by the matrix units of AMD chips, f16 and bf16: the body of gemm_gfx90a.c and its like, for rows of a and b that
 * are 16-byte aligned, beside the portable kernels (gemm_gpu.c) for the rest.
 *
 * A block does a tile of d, and each of its waves a part of it by products of SIDE x SIDE. 32 elements of k are a
 * stage, of which there are two in LDS: while one is multiplied the next is on its way into registers, which write it
 * to the other at the end; one barrier a stage. A row of a stage is 64 bytes and 16 more, whereby neither writes nor
 * reads meet a bank twice. Blocks go over d in bands of 8 rows of tiles, so that what they read stays in L2; where a
 * chip is of several dies, to which it deals blocks in turn, each has tiles that are neighbours.
 *
 * Floor: 2 m n k operations. Not measured. Simulated on gfx1201, 128 x 256 x 512 in f16 by large tiles: 85.5
 * instructions of a lane for each element of d and no conflicts; where rows of products went through LDS, by two
 * barriers each, 88.1 and 1024.
 * Includers define `unit`, a chip's matrix unit:
 *   WAVE, SIDE            lanes of a wave; rows and columns of a product
 *   DIES                  of the chip
 *   PRODUCTS              that 16 elements of k take
 *   sums                  a lane's elements of a product, ELEMENTS of them
 *   fragment              a lane's part of SIDE rows and 16 elements of k; load(row, lane) reads it, from their first
 *                         vector of the first row on, with ROW_PITCH vectors from row to row
 *   multiply(a, b, product, sums), row_of(lane, element): its row of the product; its column is lane % SIDE
 * Test: build/tests/ops/gemm_test. Bench: build/kiln bench gemm */
#ifndef KILN_KERNELS_GEMM_AMD_H
#define KILN_KERNELS_GEMM_AMD_H

#include "kernels/common/tuned.h"
#include "kernels/gemm/gemm_portable.h"

enum : uint32_t {
    STAGE_DEPTH = 32,
    ROW_VECTORS = STAGE_DEPTH / KILN_VECTOR, /* of a stage */
    ROW_PITCH = ROW_VECTORS + 1,             /* vectors from row to row in LDS */
    LOAD_ROWS = KILN_BLOCK / ROW_VECTORS,    /* that a block loads at once */
    STEP_VECTORS = 2,                        /* of a row in a fragment: 16 elements of k */
    RASTER = 8                               /* rows of tiles that neighbouring blocks go over together */
};

/* A thread's rows of one factor, and which of their vectors it loads. Rows beyond the last are the last one. */
template <uint32_t ROWS> struct operand {
    enum : uint32_t { COUNT = ROWS / LOAD_ROWS };
    const kiln_element *rows[COUNT];
    kiln_vector next[COUNT];
};

/* Eight neighbouring threads have the same vector of 8 rows: their writes meet no bank twice. */
KILN_INLINE uint32_t load_row(void) {
    return kiln_thread() % 8 + kiln_thread() / 32 * 8;
}
KILN_INLINE uint32_t load_vector(void) {
    return kiln_thread() / 8 % ROW_VECTORS;
}

template <uint32_t ROWS>
KILN_INLINE void start(operand<ROWS> *of, const void *data, uint64_t offset, uint64_t stride, uint64_t first,
                       uint64_t rows) {
    KILN_UNROLL
    for (uint32_t i = 0; i < of->COUNT; i++) {
        uint64_t row = first + load_row() + i * LOAD_ROWS;
        of->rows[i] = (const kiln_element *)data + offset + (row < rows ? row : rows - 1) * stride;
    }
}

/* Loads this thread's vectors of the stage from k on; zeros from `end` on. */
template <uint32_t ROWS> KILN_INLINE void load(operand<ROWS> *of, uint32_t k, uint32_t end) {
    uint32_t at = k + load_vector() * KILN_VECTOR;
    if (k + STAGE_DEPTH <= end) {
        KILN_UNROLL
        for (uint32_t i = 0; i < of->COUNT; i++)
            of->next[i] = kiln_vector_load(of->rows[i] + at);
    } else {
        KILN_UNROLL
        for (uint32_t i = 0; i < of->COUNT; i++)
            of->next[i] = fetch(of->rows[i], at, end, true);
    }
}

template <uint32_t ROWS> KILN_INLINE void store(const operand<ROWS> &of, kiln_vector *stage) {
    KILN_UNROLL
    for (uint32_t i = 0; i < of.COUNT; i++)
        stage[(load_row() + i * LOAD_ROWS) * ROW_PITCH + load_vector()] = of.next[i];
}

/* Adds the products of a stage to a wave's sums: a and b are at its first rows. */
template <class unit, uint32_t ROWS, uint32_t COLS>
KILN_INLINE void multiply_stage(typename unit::sums (*sums)[COLS], const kiln_vector *a, const kiln_vector *b) {
    uint32_t lane = kiln_thread() % unit::WAVE;
    KILN_UNROLL
    for (uint32_t step = 0; step < ROW_VECTORS; step += STEP_VECTORS) {
        typename unit::fragment left[ROWS], right[COLS];
        KILN_UNROLL
        for (uint32_t i = 0; i < ROWS; i++)
            left[i] = unit::load(a + i * unit::SIDE * ROW_PITCH + step, lane);
        KILN_UNROLL
        for (uint32_t j = 0; j < COLS; j++)
            right[j] = unit::load(b + j * unit::SIDE * ROW_PITCH + step, lane);
        KILN_UNROLL
        for (uint32_t product = 0; product < unit::PRODUCTS; product++) {
            KILN_UNROLL
            for (uint32_t i = 0; i < ROWS; i++) {
                KILN_UNROLL
                for (uint32_t j = 0; j < COLS; j++)
                    sums[i][j] = unit::multiply(left[i], right[j], product, sums[i][j]);
            }
        }
    }
}

/* Writes a wave's sums to d, or to the partial sums where blocks share k: a product's at a time, which lanes leave in
 * LDS and take from there, each its own, since registers have no index. Lanes of a row are neighbours. All waves of the
 * block come here. */
template <class unit, uint32_t ROWS, uint32_t COLS>
KILN_INLINE void write_sums(const kiln_gemm_args *args, float *partials, const typename unit::sums (*sums)[COLS],
                            float *slice, uint32_t batch, uint64_t row, uint64_t col) {
    enum : uint32_t { SIDE = unit::SIDE, WAVE = unit::WAVE };
    uint32_t lane = kiln_thread() % WAVE;
    kiln_barrier(); /* the last stage has been read */
    KILN_LOOP
    for (uint32_t part = 0; part < ROWS * COLS; part++) {
        KILN_UNROLL
        for (uint32_t i = 0; i < ROWS * COLS; i++) {
            if (i != part) continue;
            KILN_UNROLL
            for (uint32_t r = 0; r < unit::ELEMENTS; r++)
                slice[r * WAVE + lane] = sums[i / COLS][i % COLS][r];
        }
        uint64_t first_row = row + part / COLS * SIDE, d_col = col + part % COLS * SIDE + lane % SIDE;
        KILN_LOOP
        for (uint32_t r = 0; r < unit::ELEMENTS; r++) {
            uint64_t d_row = first_row + unit::row_of(lane, r);
            if (d_row >= (uint64_t)args->m || d_col >= (uint64_t)args->n) continue;
            float sum = slice[r * WAVE + lane];
            if (args->splits > 1)
                partials[d_row * (uint64_t)args->n + d_col] = sum;
            else
                finish_element(args, sum, batch, d_row, d_col);
        }
    }
}

/* What a block does: a tile, and a share of k. */
struct work {
    uint32_t tile_row, tile_col, split, batch;
};

template <uint32_t DIES> KILN_INLINE work work_of(const kiln_gemm_args &args, uint32_t tile_cols) {
    uint64_t number = kiln_block() * tile_cols + kiln_tile();
    uint64_t count = (uint64_t)tile_cols * args.tile_rows * args.splits * args.batch;
    if (DIES > 1 && number < count) { /* a die's blocks are those whose numbers are the same modulo DIES */
        uint64_t die = number % DIES, each = count / DIES, more = count % DIES;
        number = die * each + (die < more ? die : more) + number / DIES;
    }
    uint32_t block = (uint32_t)(number / tile_cols), col = (uint32_t)(number % tile_cols);
    uint32_t row = block % args.tile_rows, rest = block / args.tile_rows;
    /* Down RASTER rows of tiles before the next column. */
    uint32_t band = row / RASTER, place = row % RASTER * tile_cols + col;
    uint32_t height = args.tile_rows - band * RASTER < RASTER ? args.tile_rows - band * RASTER : RASTER;
    return {band * RASTER + place % height, place / height, rest % args.splits, rest / args.splits};
}

/* A block's tile of ROWS x COLS, of which a wave has WAVE_ROWS x WAVE_COLS. */
template <class unit, uint32_t ROWS, uint32_t COLS, uint32_t WAVE_ROWS, uint32_t WAVE_COLS>
KILN_INLINE void gemm_mma(const kiln_gemm_args &args) {
    enum : uint32_t {
        STAGE_VECTORS = (ROWS + COLS) * ROW_PITCH,
        ACROSS = COLS / WAVE_COLS,
        DOWN_PRODUCTS = WAVE_ROWS / unit::SIDE,
        ACROSS_PRODUCTS = WAVE_COLS / unit::SIDE
    };
    KILN_DYNAMIC_SHARED(kiln_vector, stages);
    work at = work_of<unit::DIES>(args, ((uint32_t)args.n + COLS - 1) / COLS);
    if (at.batch >= args.batch) return; /* the whole block */
    uint64_t first_row = (uint64_t)at.tile_row * ROWS, first_col = (uint64_t)at.tile_col * COLS;
    uint32_t begin = at.split * args.split, end = begin + args.split;
    if (end > (uint32_t)args.k) end = (uint32_t)args.k;

    operand<ROWS> a;
    operand<COLS> b;
    start(&a, args.a, at.batch * args.a_batch_stride, args.a_stride, first_row, args.m);
    start(&b, args.b, at.batch * args.b_batch_stride, args.b_stride, first_col, args.n);
    uint32_t wave = kiln_thread() / unit::WAVE;
    uint32_t wave_row = wave / ACROSS * WAVE_ROWS, wave_col = wave % ACROSS * WAVE_COLS;
    typename unit::sums sums[DOWN_PRODUCTS][ACROSS_PRODUCTS] = {};
    kiln_vector *use = stages, *fill = stages + STAGE_VECTORS;
    load(&a, begin, end);
    load(&b, begin, end);
    store(a, use);
    store(b, use + ROWS * ROW_PITCH);
    KILN_LOOP
    for (; begin < end; begin += STAGE_DEPTH) {
        kiln_barrier();
        bool more = begin + STAGE_DEPTH < end;
        if (more) {
            load(&a, begin + STAGE_DEPTH, end);
            load(&b, begin + STAGE_DEPTH, end);
        }
        multiply_stage<unit, DOWN_PRODUCTS, ACROSS_PRODUCTS>(sums, use + wave_row * ROW_PITCH,
                                                             use + (ROWS + wave_col) * ROW_PITCH);
        if (more) {
            store(a, fill);
            store(b, fill + ROWS * ROW_PITCH);
        }
        kiln_vector *done = use;
        use = fill;
        fill = done;
    }

    float *partials = args.partials;
    partials += ((uint64_t)at.split * args.batch + at.batch) * (uint64_t)args.m * (uint64_t)args.n;
    float *slice = (float *)stages + wave * unit::SIDE * unit::SIDE;
    write_sums<unit, DOWN_PRODUCTS, ACROSS_PRODUCTS>(&args, partials, sums, slice, at.batch, first_row + wave_row,
                                                     first_col + wave_col);
}

#endif
