/* gemm_nvfp4 by the matrix units of AMD chips, as products of f16: the body of gemm_nvfp4_gfx90a.c and its like, for
 * rows of codes that are 16-byte aligned, beside the portable kernels (gemm_nvfp4_gpu.c) for the rest.
 *
 * 32 elements of k are a stage, of which there are two in LDS: while one is multiplied the next one's codes are on
 * their way into registers, 16 bytes of a row and their two scales by a thread, which makes f16 of them on their way to
 * the other at the end; one barrier a stage. matmul_amd.h tells the rest.
 *
 * Elements are times 2^4 there, in which none is subnormal (gfx90a's units take such for 0), and exact: E2M1 and E4M3
 * have six bits together. Sums get 2^-8 at the end. Which of a word's codes make a pair is the same for both factors,
 * and so it does not matter.
 *
 * Floor: 2 m n k operations. Not measured.
 * Test: build/tests/ops/gemm_nvfp4_test. Bench: build/kiln bench gemm_nvfp4 */
#ifndef KILN_KERNELS_GEMM_NVFP4_AMD_H
#define KILN_KERNELS_GEMM_NVFP4_AMD_H

#include "kernels/common/matmul/matmul_amd.h"
#include "kernels/common/tuned.h"
#include "kernels/gemm_nvfp4/gemm_nvfp4_portable.h"

enum : uint32_t {
    STAGE_DEPTH = KILN_NVFP4_CHUNK, /* ROW_VECTORS of f16 */
    PAIRS = WORD / 2                /* of a word's codes */
};
static_assert(STAGE_DEPTH * 2 == ROW_VECTORS * KILN_VECTOR_BYTES, "a row of a stage is a chunk as f16");

#define F16_FACTOR 0x1p-8f /* of sums of products of two elements */

/* ---- Numbers as f16 ---- */

typedef _Float16 half2 __attribute__((ext_vector_type(2)));

KILN_INLINE uint32_t product_of(uint32_t a, uint32_t b) {
    return __builtin_bit_cast(uint32_t, __builtin_bit_cast(half2, a) * __builtin_bit_cast(half2, b));
}

/* The E4M3 in the lowest byte, without its sign, times 2^4 as f16, twice. */
KILN_INLINE uint32_t scale_pair(uint32_t code) {
    code &= 0x7fu;
    const uint32_t pair = product_of(code * 0x00800080u, 0x6c006c00u); /* times 2^12 */
    return code == 0x7fu ? 0x7e007e00u : pair;
}

/* The elements of a word's codes, times 2^4: those of code i and of code i + 4 in pair i. A code's bits, moved, are the
 * f16 of the number times 2^-14. */
KILN_INLINE kiln_vector pairs_of(uint32_t word, uint32_t scale) {
    kiln_vector pairs;
    KILN_UNROLL
    for (uint32_t i = 0; i < PAIRS; i++) {
        const uint32_t moved = word << (12 - 4 * i);
        const uint32_t bits = (moved & 0x80008000u) | (moved >> 3 & 0x0e000e00u);
        pairs.words[i] = product_of(product_of(bits, 0x74007400u), scale); /* times 2^14 */
    }
    return pairs;
}

/* ---- Stages ---- */

/* A thread's row of one factor. */
struct row_source {
    const uint8_t *codes, *scales; /* of its first block */
    uint32_t swizzled;
    chunk held;
    uint32_t held_scales;
};

/* Rows beyond the last are the last one. */
KILN_INLINE row_source source_of(const kiln_nvfp4_operand &operand, uint64_t row, int64_t rows) {
    row_source s;
    if (row >= (uint64_t)rows) row = (uint64_t)rows - 1;
    s.codes = codes_of(&operand, row);
    s.scales = operand.scales + scale_place(&operand, row, 0);
    s.swizzled = operand.swizzled;
    return s;
}

/* Loads the codes of the stage from k on, and their scales. */
KILN_INLINE void load_row(row_source *s, uint32_t k) {
    const uint32_t block = k / KILN_NVFP4_BLOCK; /* four of a row are neighbours, and 512 bytes from the next four */
    s->held = *(const chunk *)(const void *)(s->codes + k / 2);
    s->held_scales = *(const uint16_t *)(const void *)(s->scales + (s->swizzled ? block / 4 * 512 + block % 4 : block));
}

/* Writes what is held as f16 to a row of a stage. */
KILN_INLINE void store_row(const row_source &s, kiln_vector *to) {
    KILN_UNROLL
    for (uint32_t w = 0; w < ROW_VECTORS; w++)
        to[w] = pairs_of(s.held.words[w], scale_pair(s.held_scales >> w / 2 * 8));
}

/* A block's tile of SIDE_ROWS x SIDE_ROWS, of which a wave has WAVE_ROWS x WAVE_COLS. A stage is rows of a, then rows
 * of b, one for each thread, or for half of them. */
template <class unit, uint32_t SIDE_ROWS, uint32_t WAVE_ROWS, uint32_t WAVE_COLS>
KILN_INLINE void gemm_nvfp4_mma(const kiln_gemm_nvfp4_args &args) {
    enum : uint32_t {
        STAGE_VECTORS = 2 * SIDE_ROWS * ROW_PITCH,
        ACROSS = SIDE_ROWS / WAVE_COLS,
        DOWN_PRODUCTS = WAVE_ROWS / unit::SIDE,
        ACROSS_PRODUCTS = WAVE_COLS / unit::SIDE
    };
    KILN_DYNAMIC_SHARED(kiln_vector, stages);
    const uint32_t tile_cols = ((uint32_t)args.n + SIDE_ROWS - 1) / SIDE_ROWS;
    const block_work at = block_work_of<unit::DIES>(args.tile_rows, tile_cols, args.splits);
    if (at.share >= args.splits) return; /* the whole block */
    const uint64_t first_row = (uint64_t)at.tile_row * SIDE_ROWS, first_col = (uint64_t)at.tile_col * SIDE_ROWS;
    uint32_t begin = at.share * args.split, end = begin + args.split;
    if (end > (uint32_t)args.k) end = (uint32_t)args.k;

    const uint32_t thread = kiln_thread();
    const bool loads = thread < 2 * SIDE_ROWS;
    row_source source = thread < SIDE_ROWS ? source_of(args.a, first_row + thread, args.m)
                                           : source_of(args.b, first_col + thread - SIDE_ROWS, args.n);
    const uint32_t wave = thread / unit::WAVE;
    const uint32_t wave_row = wave / ACROSS * WAVE_ROWS, wave_col = wave % ACROSS * WAVE_COLS;
    typename unit::sums sums[DOWN_PRODUCTS][ACROSS_PRODUCTS] = {};
    kiln_vector *use = stages, *fill = stages + STAGE_VECTORS;
    if (loads) {
        load_row(&source, begin);
        store_row(source, use + thread * ROW_PITCH);
    }
    kiln_barrier();
    KILN_LOOP
    for (; begin < end; begin += STAGE_DEPTH) {
        const bool more = loads && begin + STAGE_DEPTH < end;
        if (more) load_row(&source, begin + STAGE_DEPTH);
        multiply_stage<unit, DOWN_PRODUCTS, ACROSS_PRODUCTS>(sums, use + wave_row * ROW_PITCH,
                                                             use + (SIDE_ROWS + wave_col) * ROW_PITCH);
        if (more) store_row(source, fill + thread * ROW_PITCH);
        kiln_barrier(); /* not at the head, before which clang 19 does not wait for LDS on gfx942 */
        kiln_vector *done = use;
        use = fill;
        fill = done;
    }

    float *partials = args.partials + (uint64_t)at.share * (uint64_t)args.m * (uint64_t)args.n;
    finish_products<unit, DOWN_PRODUCTS, ACROSS_PRODUCTS>(
        &args, stages, wave, first_row + wave_row, first_col + wave_col,
        [&](uint32_t i, uint32_t j, uint32_t r) KILN_INLINE_LAMBDA { return sums[i][j][r] * F16_FACTOR; },
        [=](const kiln_gemm_nvfp4_args *args, float sum, uint64_t row, uint64_t col) KILN_INLINE_LAMBDA {
            if (args->splits > 1)
                partials[row * (uint64_t)args->n + col] = sum;
            else
                finish(args, sum, row, col);
        });
}

#endif
