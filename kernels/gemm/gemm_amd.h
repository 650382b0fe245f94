/* gemm by the matrix units of AMD chips, f16 and bf16: the body of gemm_gfx90a.c and its like, for rows of a and b that
 * are 16-byte aligned, beside the portable kernels (gemm_gpu.c) for the rest.
 *
 * 32 elements of k are a stage, of which there are two in LDS: while one is multiplied the next is on its way into
 * registers, which write it to the other at the end; one barrier a stage. matmul_amd.h tells the rest.
 *
 * Floor: 2 m n k operations. Not measured. Simulated on gfx1201, 128 x 256 x 512 in f16 by large tiles: 84.0
 * instructions of a lane for each element of d and no conflicts; where rows of products went through LDS, by two
 * barriers each, 88.1 and 1024.
 * Test: build/tests/ops/gemm_test. Bench: build/kiln bench gemm */
#ifndef KILN_KERNELS_GEMM_AMD_H
#define KILN_KERNELS_GEMM_AMD_H

#include "kernels/common/matmul/matmul_amd.h"
#include "kernels/common/tuned.h"
#include "kernels/gemm/gemm_portable.h"

enum : uint32_t {
    STAGE_DEPTH = ROW_VECTORS * KILN_VECTOR,
    LOAD_ROWS = KILN_BLOCK / ROW_VECTORS /* that a block loads at once */
};

/* A thread's rows of one factor, and which of their vectors it loads. Rows beyond the last are the last one. */
template <uint32_t ROWS> struct operand {
    enum : uint32_t { COUNT = ROWS / LOAD_ROWS };
    const kiln_element *rows[COUNT];
    kiln_vector next[COUNT];
};

template <uint32_t ROWS>
KILN_INLINE void start(operand<ROWS> *of, const void *data, uint64_t offset, uint64_t stride, uint64_t first,
                       uint64_t rows) {
    KILN_UNROLL
    for (uint32_t i = 0; i < of->COUNT; i++) {
        uint64_t row = first + stage_row<ROW_VECTORS>() + i * LOAD_ROWS;
        of->rows[i] = (const kiln_element *)data + offset + (row < rows ? row : rows - 1) * stride;
    }
}

/* Loads this thread's vectors of the stage from k on; zeros from `end` on. */
template <uint32_t ROWS> KILN_INLINE void load(operand<ROWS> *of, uint32_t k, uint32_t end) {
    uint32_t at = k + stage_vector<ROW_VECTORS>() * KILN_VECTOR;
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
        stage[(stage_row<ROW_VECTORS>() + i * LOAD_ROWS) * ROW_PITCH + stage_vector<ROW_VECTORS>()] = of.next[i];
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
    const uint32_t tile_cols = ((uint32_t)args.n + COLS - 1) / COLS;
    const block_work at = block_work_of<unit::DIES>(args.tile_rows, tile_cols, args.splits * args.batch);
    const uint32_t split = at.share % args.splits, batch = at.share / args.splits;
    if (batch >= args.batch) return; /* the whole block */
    uint64_t first_row = (uint64_t)at.tile_row * ROWS, first_col = (uint64_t)at.tile_col * COLS;
    uint32_t begin = split * args.split, end = begin + args.split;
    if (end > (uint32_t)args.k) end = (uint32_t)args.k;

    operand<ROWS> a;
    operand<COLS> b;
    start(&a, args.a, batch * args.a_batch_stride, args.a_stride, first_row, args.m);
    start(&b, args.b, batch * args.b_batch_stride, args.b_stride, first_col, args.n);
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
        kiln_barrier(); /* not at the end, where clang 19 has gfx9 copy the sums in each turn */
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

    kiln_barrier(); /* the last stage has been read */
    float *partials = args.partials + ((uint64_t)split * args.batch + batch) * (uint64_t)args.m * (uint64_t)args.n;
    finish_products<unit, DOWN_PRODUCTS, ACROSS_PRODUCTS>(
        &args, stages, wave, first_row + wave_row, first_col + wave_col,
        [&](uint32_t i, uint32_t j, uint32_t r) KILN_INLINE_LAMBDA { return sums[i][j][r]; },
        [=](const kiln_gemm_args *args, float sum, uint64_t row, uint64_t col) KILN_INLINE_LAMBDA {
            if (args->splits > 1)
                partials[row * (uint64_t)args->n + col] = sum;
            else
                finish_element(args, sum, batch, row, col);
        });
}

#endif
