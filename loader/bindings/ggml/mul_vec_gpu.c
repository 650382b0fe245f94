/* mul_vec on GPUs, for both vendors: mul_vec_args.h says what it computes.
 *
 * A subgroup does a row of w, for all rows of x. Eight threads share a block, with two pairs of integers each, one from
 * each half, so that a subgroup reads four blocks that follow each other at a time, and four times as many before it
 * multiplies any. A block lies on 2 bytes only: pairs that followed each other the compiler for AMD would read at once.
 * The sums of a row of x meet at the end.
 *
 * Floor: w at memory bandwidth, 34 bytes for 32 weights, where dequantising to f16 and multiplying that takes 162; x is
 * found in caches. Not measured.
 * Test: make check-ggml. */
#include "kernels/common/device.h"
#include "loader/bindings/ggml/mul_vec_args.h"

enum { PAIRS = 2, SHARE = GGML_KILN_MUL_VEC_BLOCK / 2 / PAIRS, AT_A_TIME = KILN_SUBGROUP / SHARE, STEPS = 4 };

typedef struct __attribute__((aligned(8))) pair {
    float first, second;
} pair;

typedef struct weights {
    pair pairs[PAIRS];
} weights;

/* A thread's integers of a block with its scale; zeros beyond the row. */
KILN_INLINE weights weights_of(const char *row, uint32_t block, uint32_t blocks, uint32_t share) {
    weights w = {{{0, 0}, {0, 0}}};
    if (block >= blocks) return w;
    const uint16_t *at = (const uint16_t *)(const void *)(row + (uint64_t)block * GGML_KILN_MUL_VEC_BYTES);
    float scale = kiln_f16_to_f32(at[0]);
    KILN_UNROLL
    for (uint32_t i = 0; i < PAIRS; i++) {
        uint32_t codes = at[1 + i * SHARE + share];
        w.pairs[i].first = (float)(int8_t)(codes & 0xff) * scale;
        w.pairs[i].second = (float)(int8_t)(codes >> 8) * scale;
    }
    return w;
}

KILN_ENTRY_HEAD ggml_kiln_mul_vec(const ggml_kiln_mul_vec_args args) {
    uint32_t lane = kiln_thread() & (KILN_SUBGROUP - 1), share = lane & (SHARE - 1);
    uint64_t n = (kiln_block() << (KILN_BLOCK_LOG2 - KILN_SUBGROUP_LOG2)) + (kiln_thread() >> KILN_SUBGROUP_LOG2);
    bool is_there = n < args.n;
    const char *row = (const char *)args.w + (int64_t)(is_there ? n : 0) * args.w_stride;
    float sums[GGML_KILN_MUL_VEC_MOST];
    KILN_UNROLL
    for (uint32_t m = 0; m < GGML_KILN_MUL_VEC_MOST; m++)
        sums[m] = 0;

    KILN_LOOP
    for (uint32_t first = lane / SHARE; first < args.blocks; first += STEPS * AT_A_TIME) {
        weights w[STEPS];
        KILN_UNROLL
        for (uint32_t step = 0; step < STEPS; step++)
            w[step] = weights_of(row, first + step * AT_A_TIME, args.blocks, share);
        KILN_UNROLL
        for (uint32_t m = 0; m < GGML_KILN_MUL_VEC_MOST; m++) {
            if (m >= args.m) break;
            const float *x = args.x + m * args.x_stride + share * 2;
            KILN_UNROLL
            for (uint32_t step = 0; step < STEPS; step++) {
                uint32_t block = first + step * AT_A_TIME;
                if (block >= args.blocks) break;
                const pair *numbers = (const pair *)(const void *)(x + (uint64_t)block * GGML_KILN_MUL_VEC_BLOCK);
                KILN_UNROLL
                for (uint32_t i = 0; i < PAIRS; i++) {
                    pair number = numbers[i * SHARE];
                    sums[m] = KILN_FMA(w[step].pairs[i].first, number.first, sums[m]);
                    sums[m] = KILN_FMA(w[step].pairs[i].second, number.second, sums[m]);
                }
            }
        }
    }
    KILN_UNROLL
    for (uint32_t m = 0; m < GGML_KILN_MUL_VEC_MOST; m++) {
        if (m >= args.m) break;
        KILN_UNROLL
        for (uint32_t mask = KILN_SUBGROUP / 2; mask; mask /= 2)
            sums[m] += kiln_shuffle_xor(sums[m], mask);
        if (is_there && lane == 0) args.y[m * args.y_stride + (int64_t)n] = sums[m];
    }
}
