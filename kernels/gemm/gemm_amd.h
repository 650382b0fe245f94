/* gemm for CDNA, f16 and bf16: the body of gemm_gfx90a.c and gemm_gfx942.c, for rows of a and b that are 16-byte
 * aligned, beside the portable kernels (gemm_gpu.c) for the rest.
 *
 * A block does a tile of 256 x 128 elements of d (gemm_mma_large) or 64 x 64 (gemm_mma_small), each of its 4 waves 128
 * x 64 or 32 x 32 of them by v_mfma 32x32x8. 32 elements of k are a stage, of which there are two in LDS: while one is
 * multiplied the next is on its way into registers, which write it to the other at the end; one barrier a stage. A row
 * of a stage is 64 bytes and 16 more, whereby neither writes nor reads meet a bank twice. A lane reads 16 bytes of a
 * row of each factor, which are its part of two products: k is in another order there, the same for both factors.
 * Blocks go over d in groups of 8 rows of tiles, so that what they read stays in L2; where a chip is of several dies
 * (XCDS), to which it deals blocks in turn, each has tiles that are neighbours.
 *
 * Floor: 2 m n k operations. A stage of the large tile is 32 products of 16 passes (64 cycles) for each wave on gfx90a,
 * beside 12 reads and 6 writes of LDS by 16 bytes. Not measured.
 * Includers define XCDS. Test: build/tests/ops/gemm_test. Bench: build/kiln bench gemm */
#ifndef KILN_KERNELS_GEMM_MFMA_H
#define KILN_KERNELS_GEMM_MFMA_H

#include "kernels/arch/gfx90a.h"
#include "kernels/common/tuned.h"
#include "kernels/gemm/gemm_portable.h"

enum : uint32_t {
    WAVE = 64,
    STAGE_DEPTH = 32,
    ROW_VECTORS = STAGE_DEPTH / KILN_VECTOR, /* of a stage */
    ROW_PITCH = ROW_VECTORS + 1,             /* vectors from row to row in LDS */
    LOAD_ROWS = KILN_BLOCK / ROW_VECTORS,    /* that a block loads at once */
    MFMA = 32,                               /* rows and columns of a product */
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

KILN_INLINE kiln_gfx90a_sums mfma(const uint32_t *a, const uint32_t *b, kiln_gfx90a_sums sums) {
#ifdef KILN_PART_bf16
    return kiln_gfx90a_mfma_bf16(a, b, sums);
#else
    return kiln_gfx90a_mfma_f16(a, b, sums);
#endif
}

/* Adds the products of a stage to a wave's sums: a and b are at its first rows. */
template <uint32_t ROWS, uint32_t COLS>
KILN_INLINE void multiply_stage(kiln_gfx90a_sums (*sums)[COLS], const kiln_vector *a, const kiln_vector *b) {
    uint32_t lane = kiln_thread() % WAVE, own = lane % MFMA * ROW_PITCH + lane / MFMA;
    KILN_UNROLL
    for (uint32_t step = 0; step < ROW_VECTORS; step += WAVE / MFMA) {
        kiln_vector left[ROWS], right[COLS];
        KILN_UNROLL
        for (uint32_t i = 0; i < ROWS; i++)
            left[i] = a[i * MFMA * ROW_PITCH + own + step];
        KILN_UNROLL
        for (uint32_t j = 0; j < COLS; j++)
            right[j] = b[j * MFMA * ROW_PITCH + own + step];
        KILN_UNROLL
        for (uint32_t half = 0; half < 4; half += 2) {
            KILN_UNROLL
            for (uint32_t i = 0; i < ROWS; i++) {
                KILN_UNROLL
                for (uint32_t j = 0; j < COLS; j++)
                    sums[i][j] = mfma(left[i].words + half, right[j].words + half, sums[i][j]);
            }
        }
    }
}

/* Writes a wave's sums to d, or to the partial sums where blocks share k: a product's at a time, by its part of LDS, so
 * that a row is written by neighbouring lanes. All waves of the block come here. */
template <uint32_t ROWS, uint32_t COLS>
KILN_INLINE void write_sums(const kiln_gemm_args *args, float *partials, const kiln_gfx90a_sums (*sums)[COLS],
                            float *slice, uint32_t batch, uint64_t row, uint64_t col) {
    uint32_t lane = kiln_thread() % WAVE;
    KILN_LOOP
    for (uint32_t part = 0; part < ROWS * COLS; part++) {
        kiln_barrier();
        KILN_UNROLL
        for (uint32_t i = 0; i < ROWS * COLS; i++) { /* registers have no index */
            if (i != part) continue;
            KILN_UNROLL
            for (uint32_t r = 0; r < 16; r++)
                slice[(r / 4 * 8 + lane / MFMA * 4 + r % 4) * MFMA + lane % MFMA] = sums[i / COLS][i % COLS][r];
        }
        kiln_barrier();
        uint64_t first_row = row + part / COLS * MFMA, d_col = col + part % COLS * MFMA + lane % MFMA;
        KILN_LOOP
        for (uint32_t i = lane / MFMA; i < MFMA; i += WAVE / MFMA) {
            uint64_t d_row = first_row + i;
            if (d_row >= (uint64_t)args->m || d_col >= (uint64_t)args->n) continue;
            float sum = slice[i * MFMA + lane % MFMA];
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

KILN_INLINE work work_of(const kiln_gemm_args &args, uint32_t tile_cols) {
    uint64_t number = kiln_block() * tile_cols + kiln_tile();
    uint64_t count = (uint64_t)tile_cols * args.tile_rows * args.splits * args.batch;
    if (XCDS > 1) { /* a die's blocks are those whose numbers are the same modulo XCDS */
        uint64_t die = number % XCDS, each = count / XCDS, more = count % XCDS;
        if (number < count) number = die * each + (die < more ? die : more) + number / XCDS;
    }
    uint32_t block = (uint32_t)(number / tile_cols), col = (uint32_t)(number % tile_cols);
    uint32_t row = block % args.tile_rows, rest = block / args.tile_rows;
    /* Down RASTER rows of tiles before the next column. */
    uint32_t group = row / RASTER, place = row % RASTER * tile_cols + col;
    uint32_t height = args.tile_rows - group * RASTER < RASTER ? args.tile_rows - group * RASTER : RASTER;
    return {group * RASTER + place % height, place / height, rest % args.splits, rest / args.splits};
}

/* A block's tile of ROWS x COLS, of which a wave has WAVE_ROWS x WAVE_COLS. */
template <uint32_t ROWS, uint32_t COLS, uint32_t WAVE_ROWS, uint32_t WAVE_COLS>
KILN_INLINE void gemm_mma(const kiln_gemm_args &args) {
    enum : uint32_t { STAGE_VECTORS = (ROWS + COLS) * ROW_PITCH, ACROSS = COLS / WAVE_COLS };
    KILN_DYNAMIC_SHARED(kiln_vector, stages);
    work at = work_of(args, ((uint32_t)args.n + COLS - 1) / COLS);
    if (at.batch >= args.batch) return; /* the whole block */
    uint64_t first_row = (uint64_t)at.tile_row * ROWS, first_col = (uint64_t)at.tile_col * COLS;
    uint32_t begin = at.split * args.split, end = begin + args.split;
    if (end > (uint32_t)args.k) end = (uint32_t)args.k;

    operand<ROWS> a;
    operand<COLS> b;
    start(&a, args.a, at.batch * args.a_batch_stride, args.a_stride, first_row, args.m);
    start(&b, args.b, at.batch * args.b_batch_stride, args.b_stride, first_col, args.n);
    uint32_t wave = kiln_thread() / WAVE, wave_row = wave / ACROSS * WAVE_ROWS, wave_col = wave % ACROSS * WAVE_COLS;
    kiln_gfx90a_sums sums[WAVE_ROWS / MFMA][WAVE_COLS / MFMA] = {};
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
        multiply_stage<WAVE_ROWS / MFMA, WAVE_COLS / MFMA>(sums, use + wave_row * ROW_PITCH,
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
    write_sums<WAVE_ROWS / MFMA, WAVE_COLS / MFMA>(&args, partials, sums, (float *)stages + wave * MFMA * MFMA,
                                                   at.batch, first_row + wave_row, first_col + wave_col);
}

KILN_ENTRY(gemm_mma_large, kiln_gemm_args) {
    gemm_mma<256, 128, 128, 64>(args);
}

KILN_ENTRY(gemm_mma_small, kiln_gemm_args) {
    gemm_mma<64, 64, 32, 32>(args);
}

#endif
