/* gemm_w4a16 by the matrix units of AMD chips, f16 and bf16, of canonical weights: the body of gemm_w4a16_gfx90a.c and
 * its like, for more than 8 rows of a where rows of a and of weights are 16-byte aligned, beside the portable kernels
 * (gemm_w4a16_gpu.c) for the rest.
 *
 * 32 elements of k are a stage, of which there are two in LDS, numbers of 16 bits of both factors: while one is
 * multiplied, the next becomes numbers and is written to the other; one barrier a stage. Its rows of a come meanwhile,
 * its weights have come while the stage before was multiplied, so that they are numbers by the time that products are
 * made. Each thread makes 8 or 16 of a row, once for all rows of a tile: q times the scale plus the zero, with one
 * rounding. f16 makes two at once from the bits of 1024 + q + 8 and 1024 + 16 (q + 8); those of bf16 are made in f32.
 * Where there is pre_scale, a is multiplied with it, and rounded, as it is written. Scales and zeros are read once for
 * each group. matmul_amd.h tells the rest.
 *
 * Floor: 2 m n k operations. Not measured. Simulated, groups of 128 without zeros: what a tile reads is its rows of a
 * and of weights and a scale of each thread for a group, no bank is met twice, and of a wave's instructions for a stage
 * of the large tile so many are products (their share of the time in which instructions are issued, if a product takes
 * so many cycles and others as many as a wave has of its unit's lanes):
 *
 *           f16                   bf16                  cycles
 *   gfx90a  32 of 159.2 (80 %)    32 of 204.2 (75 %)    64
 *   gfx942  32 of 151.5 (68 %)    32 of 195.5 (61 %)    32
 *   gfx11   16 of 138.5 (81 %)    16 of 205.5 (73 %)    32
 *   gfx12   16 of 129.0 (69 %)    16 of 194.0 (59 %)    16
 *
 * Test: build/tests/ops/gemm_w4a16_test. Bench: build/kiln bench gemm_w4a16 --set m=4096 */
#ifndef KILN_KERNELS_GEMM_W4A16_AMD_H
#define KILN_KERNELS_GEMM_W4A16_AMD_H

#include "kernels/common/matmul/matmul_amd.h"
#include "kernels/common/tuned.h"
#include "kernels/gemm_w4a16/gemm_w4a16_amd_numbers.h"

enum : uint32_t { STAGE_DEPTH = ROW_VECTORS * KILN_VECTOR };

/* ---- Stages ---- */

/* A thread's vectors of the rows of a. Rows beyond the last are the last one. */
template <uint32_t ROWS> struct a_source {
    enum : uint32_t { AT_ONCE = KILN_BLOCK / ROW_VECTORS, COUNT = ROWS / AT_ONCE };
    const kiln_element *rows[COUNT], *factors;
    kiln_vector next[COUNT], next_factors;

    KILN_INLINE uint32_t row(void) { return stage_row<ROW_VECTORS>(); }
    KILN_INLINE uint32_t vector(void) { return stage_vector<ROW_VECTORS>(); }
};

template <uint32_t ROWS> KILN_INLINE void start(a_source<ROWS> *of, const kiln_gemm_w4a16_args &args, uint64_t first) {
    const uint64_t last = (uint64_t)args.m - 1;
    const uint32_t own = of->vector() * KILN_VECTOR;
    of->factors = (const kiln_element *)args.pre_scale + own;
    KILN_UNROLL
    for (uint32_t i = 0; i < of->COUNT; i++) {
        const uint64_t row = first + of->row() + i * of->AT_ONCE;
        of->rows[i] = (const kiln_element *)args.a + (row < last ? row : last) * (uint64_t)args.a_stride + own;
    }
}

template <uint32_t ROWS> KILN_INLINE void load(a_source<ROWS> *of, const kiln_gemm_w4a16_args &args, uint32_t k) {
    if (args.pre_scale) of->next_factors = kiln_vector_load(of->factors + k);
    KILN_UNROLL
    for (uint32_t i = 0; i < of->COUNT; i++)
        of->next[i] = kiln_vector_load(of->rows[i] + k);
}

template <uint32_t ROWS>
KILN_INLINE void store(const a_source<ROWS> &of, const kiln_gemm_w4a16_args &args, kiln_vector *stage) {
    kiln_vector *to = stage + of.row() * ROW_PITCH + of.vector();
    if (args.pre_scale) {
        KILN_UNROLL
        for (uint32_t i = 0; i < of.COUNT; i++)
            to[i * of.AT_ONCE * ROW_PITCH] = times(of.next[i], of.next_factors);
    } else {
        KILN_UNROLL
        for (uint32_t i = 0; i < of.COUNT; i++)
            to[i * of.AT_ONCE * ROW_PITCH] = of.next[i];
    }
}

/* A thread's integers of a row of weights, WORDS times eight, with their scale and zero. */
template <uint32_t WORDS> struct weight_codes {
    struct row {
        uint32_t words[WORDS];
    } __attribute__((aligned(WORDS * sizeof(uint32_t)))) of;
    uint32_t scale, zero;
};

/* Those of a stage, and those of the next, which are on their way. */
template <uint32_t COLS> struct weight_source {
    enum : uint32_t { WORDS = COLS * ROW_VECTORS / KILN_BLOCK, SHARING = ROW_VECTORS / WORDS };
    const uint8_t *row_codes;
    uint64_t row_scales;
    weight_codes<WORDS> now, next;

    KILN_INLINE uint32_t row(void) { return stage_row<SHARING>(); }
    KILN_INLINE uint32_t vector(void) { return stage_vector<SHARING>() * WORDS; }
};

template <uint32_t COLS>
KILN_INLINE void start(weight_source<COLS> *of, const kiln_gemm_w4a16_args &args, uint64_t first) {
    const uint64_t last = (uint64_t)args.n - 1, beside = first + of->row(), row = beside < last ? beside : last;
    of->row_codes = args.weights + row * ((uint64_t)args.k / 2) + of->vector() * sizeof(uint32_t);
    of->row_scales = row * (uint64_t)args.scale_row_step;
    of->next.zero = 0;
}

/* Loads the integers of the stage from k on and, where a group begins there or for the `first`, its scale and zero. */
template <uint32_t COLS>
KILN_INLINE void load(weight_source<COLS> *of, const kiln_gemm_w4a16_args &args, uint32_t k, bool first) {
    of->next.of = *(const decltype(of->next.of) *)(const void *)(of->row_codes + k / 2);
    if (!first && (k & ((1u << args.group_log2) - 1)) != 0) return;
    const uint64_t at = of->row_scales + (k >> args.group_log2) * (uint64_t)args.scale_group_step;
    of->next.scale = ((const kiln_element *)args.scales)[at];
    if (args.zeros) of->next.zero = ((const kiln_element *)args.zeros)[at];
}

template <uint32_t COLS> KILN_INLINE void store(const weight_source<COLS> &of, kiln_vector *stage) {
    kiln_vector *to = stage + of.row() * ROW_PITCH + of.vector();
    KILN_UNROLL
    for (uint32_t i = 0; i < of.WORDS; i++)
        to[i] = weights_of(of.now.of.words[i], of.now.scale, of.now.zero);
}

/* ---- Tiles ---- */

/* A block's tile of ROWS x COLS, of which a wave has WAVE_ROWS x WAVE_COLS. */
template <class unit, uint32_t ROWS, uint32_t COLS, uint32_t WAVE_ROWS, uint32_t WAVE_COLS>
KILN_INLINE void gemm_w4a16_mma(const kiln_gemm_w4a16_args &args) {
    enum : uint32_t {
        STAGE_VECTORS = (ROWS + COLS) * ROW_PITCH,
        WEIGHTS = ROWS * ROW_PITCH, /* their place in a stage */
        WAVES_ACROSS = COLS / WAVE_COLS,
        DOWN = WAVE_ROWS / unit::SIDE,
        ACROSS = WAVE_COLS / unit::SIDE
    };
    KILN_DYNAMIC_SHARED(kiln_vector, stages);
    const uint32_t tile_cols = ((uint32_t)args.n + COLS - 1) / COLS;
    const block_work at = block_work_of<unit::DIES>(args.tile_rows, tile_cols, args.splits);
    if (at.share >= args.splits) return; /* the whole block */
    const uint64_t first_row = (uint64_t)at.tile_row * ROWS, first_col = (uint64_t)at.tile_col * COLS;
    const uint32_t begin = at.share * args.split;
    const uint32_t end = begin + args.split < (uint32_t)args.k ? begin + args.split : (uint32_t)args.k;

    a_source<ROWS> a;
    weight_source<COLS> weights;
    start(&a, args, first_row);
    start(&weights, args, first_col);
    const uint32_t wave = kiln_thread() / unit::WAVE;
    const uint32_t wave_row = wave / WAVES_ACROSS * WAVE_ROWS, wave_col = wave % WAVES_ACROSS * WAVE_COLS;
    const uint32_t left = wave_row * ROW_PITCH, right = WEIGHTS + wave_col * ROW_PITCH;
    typename unit::sums sums[DOWN][ACROSS] = {};
    kiln_vector *use = stages, *fill = stages + STAGE_VECTORS;
    load(&weights, args, begin, true);
    load(&a, args, begin);
    weights.now = weights.next;
    if (begin + STAGE_DEPTH < end) load(&weights, args, begin + STAGE_DEPTH, false);
    store(weights, use + WEIGHTS);
    store(a, args, use);
    kiln_barrier();
    KILN_LOOP
    for (uint32_t next = begin + STAGE_DEPTH; next < end; next += STAGE_DEPTH) {
        weights.now = weights.next;
        load(&a, args, next);
        if (next + STAGE_DEPTH < end) load(&weights, args, next + STAGE_DEPTH, false);
        __builtin_amdgcn_sched_barrier(0); /* else what was loaded is waited for before products are made */
        multiply_stage<unit, DOWN, ACROSS>(sums, use + left, use + right);
        store(weights, fill + WEIGHTS);
        store(a, args, fill);
        kiln_barrier();
        kiln_vector *done = use;
        use = fill;
        fill = done;
    }
    multiply_stage<unit, DOWN, ACROSS>(sums, use + left, use + right);
    kiln_barrier();

    float *partials = args.partials + (uint64_t)at.share * (uint64_t)args.m * (uint64_t)args.n;
    finish_products<unit, DOWN, ACROSS>(
        &args, stages, wave, first_row + wave_row, first_col + wave_col,
        [&](uint32_t i, uint32_t j, uint32_t r) KILN_INLINE_LAMBDA { return sums[i][j][r]; },
        [=](const kiln_gemm_w4a16_args *args, float sum, uint64_t row, uint64_t col) KILN_INLINE_LAMBDA {
            if (args->partials)
                partials[row * (uint64_t)args->n + col] = sum;
            else
                finish_element(args, sum, row, col);
        });
}

#endif
