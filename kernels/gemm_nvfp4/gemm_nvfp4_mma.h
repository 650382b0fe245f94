/* What gemm_nvfp4's kernels by mma.sync share, for sm_80 and later: numbers as f16, the kernel for few rows, and how
 * tiles leave.
 *
 * A code is four bits of an f16, the sign and three that stand at the lower end of its exponent and the upper of its
 * fraction: the number times 2^-14, with no more than moving them. Times the E4M3 of its block and 2^7, the most with
 * which f16 holds that, it is the element times 2^-7, still exactly, as code and scale have six bits together: so are
 * products, and only f32 sums of them are rounded. They get 2^14 at the end. Elements below 2^-7 (the greatest that
 * there are is 2688) are subnormal there: still exact, but matrix units align them as if they were greater. Which of a
 * word's codes make a pair is the same for both factors, and so it does not matter.
 *
 * gemm_nvfp4_mma_rows: up to 16 rows of a, as when tokens are generated. A block does 32 rows of b, read once, straight
 * into registers; its 8 warps share k, 128 elements at a time, and add up their sums in shared memory. Rows of b are
 * the first factor of mma.sync and those of a the second. The next 128 elements of both, with their scales, are on
 * their way while these are multiplied. The second 8 rows of a are passed over where there are none.
 *
 * Floor: one read of b, 0.5625 bytes an element, for few rows. Not measured. */
#ifndef KILN_KERNELS_GEMM_NVFP4_MMA_H
#define KILN_KERNELS_GEMM_NVFP4_MMA_H

#include "kernels/arch/sm80.h"
#include "kernels/common/matmul/matmul_mma.h"
#include "kernels/gemm_nvfp4/gemm_nvfp4_portable.h"

enum : uint32_t {
    WARPS = KILN_BLOCK / 32,
    CHUNK = KILN_NVFP4_CHUNK, /* codes of a row that a thread has at a time */
    CHUNK_WORDS = CHUNK / WORD,
    PAIRS = WORD / 2 /* of a word's codes */
};

/* ---- Numbers as f16 ---- */

KILN_INLINE uint32_t product_of(uint32_t a, uint32_t b) {
    return kiln_sm80_fma_f16x2(a, b, 0x80008000u); /* -0: a product of 0 keeps its sign */
}

/* The E4M3 in the lowest byte, without its sign, times 2^7 as f16, twice. */
KILN_INLINE uint32_t scale_pair(uint32_t code) {
    code &= 0x7fu;
    const uint32_t pair = product_of(code * 0x00800080u, 0x78007800u); /* times 2^15 */
    return code == 0x7fu ? 0x7e007e00u : pair;
}

/* The elements of a word's codes, times 2^-7: those of code i and of code i + 4 in pair i. */
KILN_INLINE void pairs_of(uint32_t *pairs, uint32_t word, uint32_t scale) {
    KILN_UNROLL
    for (uint32_t i = 0; i < PAIRS; i++) {
        const uint32_t moved = word << (12 - 4 * i);
        pairs[i] = product_of((moved & 0x80008000u) | (moved >> 3 & 0x0e000e00u), scale);
    }
}

#define F16_FACTOR 0x1p14f /* of sums of products of two of them */

/* ---- Tiles ---- */

/* Writes what write_sums gives: to d, or to the partial sums where blocks share k. */
KILN_INLINE void write_sum(const kiln_gemm_nvfp4_args *args, float *partials, float sum, uint64_t row, uint64_t col) {
    if (args->splits > 1)
        partials[row * (uint64_t)args->n + col] = sum;
    else
        finish(args, sum, row, col);
}

/* ---- gemm_nvfp4_mma_rows ---- */

enum : uint32_t {
    STEP = 4 * CHUNK, /* of k, that a warp does at a time: four lanes share a row */
    TILES = 2,        /* of 8 rows of a */
    BLOCKS = 2,       /* of 16 rows of b */
    COLS = 16 * BLOCKS
};

/* A lane's share of a step: its chunk of a row of each 8. */
template <uint32_t COUNT> struct lane_chunks {
    chunk of[COUNT];
    uint32_t scales[COUNT];
};

/* Chunks from k on; zeros where k is not there, or the row is not wanted. */
template <uint32_t COUNT>
KILN_INLINE void load_chunks(lane_chunks<COUNT> *to, const kiln_nvfp4_operand &operand, const uint64_t *rows,
                             uint32_t k, bool there, uint32_t wanted) {
    KILN_UNROLL
    for (uint32_t i = 0; i < COUNT; i++) {
        const bool present = there && i < wanted;
        kiln_sm80_load_v4(to->of[i].words, codes_of(&operand, rows[i]) + k / 2, present);
        to->scales[i] =
            kiln_sm80_load_u16(operand.scales + scale_place(&operand, rows[i], k / KILN_NVFP4_BLOCK), present);
    }
}

KILN_ENTRY(gemm_nvfp4_mma_rows, kiln_gemm_nvfp4_args) {
    KILN_SHARED float shared[WARPS][TILES][COLS][8];
    const uint32_t lane = kiln_thread() % 32, warp = kiln_thread() / 32, end = (uint32_t)args.k;
    const uint32_t tiles_wanted = args.m > 8 ? 2 : 1;
    const uint64_t first = (uint64_t)kiln_tile() * COLS, last_row = (uint64_t)args.m - 1,
                   last_col = (uint64_t)args.n - 1;
    if (kiln_block()) return; /* the whole block */
    uint64_t a_rows[TILES], b_rows[2 * BLOCKS];
    KILN_UNROLL
    for (uint32_t i = 0; i < 2 * BLOCKS; i++) { /* beyond the last one: that once more, for nothing; of a as well */
        const uint64_t col = first + lane / 4 + 8 * i;
        b_rows[i] = col < last_col ? col : last_col;
    }
    KILN_UNROLL
    for (uint32_t i = 0; i < TILES; i++) {
        const uint64_t row = lane / 4 + 8 * i;
        a_rows[i] = row < last_row ? row : last_row;
    }

    float sums[BLOCKS][TILES][4] = {};
    lane_chunks<TILES> a, next_a;
    lane_chunks<2 * BLOCKS> b, next_b;
    uint32_t k = warp * STEP + lane % 4 * CHUNK;
    load_chunks(&next_a, args.a, a_rows, k, k < end, tiles_wanted);
    load_chunks(&next_b, args.b, b_rows, k, k < end, 2 * BLOCKS);
    KILN_LOOP
    for (uint32_t step = warp * STEP; step < end; step += WARPS * STEP) {
        a = next_a, b = next_b;
        k += WARPS * STEP;
        load_chunks(&next_a, args.a, a_rows, k, k < end, tiles_wanted);
        load_chunks(&next_b, args.b, b_rows, k, k < end, 2 * BLOCKS);
        KILN_UNROLL
        for (uint32_t w = 0; w < CHUNK_WORDS; w++) {
            uint32_t left[2 * BLOCKS][PAIRS], right[PAIRS];
            KILN_UNROLL
            for (uint32_t i = 0; i < 2 * BLOCKS; i++)
                pairs_of(left[i], b.of[i].words[w], scale_pair(b.scales[i] >> w / 2 * 8));
            KILN_UNROLL
            for (uint32_t i = 0; i < TILES; i++) {
                if (i >= tiles_wanted) continue;
                pairs_of(right, a.of[i].words[w], scale_pair(a.scales[i] >> w / 2 * 8));
                KILN_UNROLL
                for (uint32_t p = 0; p < PAIRS; p += 2) {
                    KILN_UNROLL
                    for (uint32_t j = 0; j < BLOCKS; j++) {
                        const uint32_t fragment[4] = {left[2 * j][p], left[2 * j + 1][p], left[2 * j][p + 1],
                                                      left[2 * j + 1][p + 1]};
                        kiln_sm80_mma_f16(sums[j][i], fragment, right + p);
                    }
                }
            }
        }
    }

    KILN_UNROLL
    for (uint32_t i = 0; i < BLOCKS * TILES; i++) {
        const float *sum = sums[i / TILES][i % TILES];
        float(*to)[8] = &shared[warp][i % TILES][i / TILES * 16 + lane / 4];
        *(float2 *)&to[0][lane % 4 * 2] = make_float2(sum[0], sum[1]);
        *(float2 *)&to[8][lane % 4 * 2] = make_float2(sum[2], sum[3]);
    }
    kiln_barrier();
    KILN_LOOP
    for (uint32_t i = kiln_thread(); i < COLS * TILES * 8; i += KILN_BLOCK) {
        const uint64_t row = i / COLS, col = first + i % COLS;
        if (row >= (uint64_t)args.m || col >= (uint64_t)args.n) continue;
        float sum = 0.0f;
        KILN_UNROLL
        for (uint32_t w = 0; w < WARPS; w++)
            sum += shared[w][row / 8][i % COLS][row % 8];
        finish(&args, sum * F16_FACTOR, row, col);
    }
}

#endif
