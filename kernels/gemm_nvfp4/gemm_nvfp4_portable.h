/* gemm_nvfp4's kernels for any chip and any alignment: gemm_nvfp4_gpu.c describes them. A tuned source includes them
 * too, for what its own kernels do not do. */
#ifndef KILN_KERNELS_GEMM_NVFP4_PORTABLE_H
#define KILN_KERNELS_GEMM_NVFP4_PORTABLE_H

#include "kernels/common/device.h"
#include "kernels/common/formats/small_float_gpu.h"
#include "kernels/common/quantize/nvfp4_scale.h"
#include "kernels/gemm_nvfp4/gemm_nvfp4_args.h"

enum {
    TILE = KILN_NVFP4_TILE,
    SIDE = 4,  /* a thread does SIDE x SIDE elements */
    WORD = 8,  /* codes in 32 bits: half a block */
    WORDS = 4, /* of a row in shared memory */
    DEPTH = WORDS * WORD,
    SWIZZLE = KILN_SUBGROUP / WORDS
};

typedef struct quad {
    float values[SIDE];
} __attribute__((aligned(SIDE * sizeof(float)))) quad;

/* What a block of gemm_nvfp4_tiles has in shared memory: both factors, or its part of d. */
typedef union tiles {
    float factors[2][DEPTH][TILE];
    float sums[TILE][TILE];
} tiles;

/* 16 bytes of codes. */
typedef struct chunk {
    uint32_t words[KILN_NVFP4_CHUNK / WORD];
} __attribute__((aligned(KILN_NVFP4_CHUNK / 2))) chunk;

/* ---- What all kernels share ---- */

/* Where the scale of a row's block is. */
KILN_INLINE uint64_t scale_place(const kiln_nvfp4_operand *factor, uint64_t row, uint64_t block) {
    const uint64_t blocks = (uint64_t)factor->scale_cols;
    return factor->swizzled ? kiln_nvfp4_swizzled(row, block, blocks) : row * blocks + block;
}

/* A scale; its sign is not read. */
KILN_INLINE float scale_of(const kiln_nvfp4_operand *factor, uint64_t row, uint32_t k) {
    return kiln_e4m3_number(factor->scales[scale_place(factor, row, k / KILN_NVFP4_BLOCK)] & 0x7fu);
}

KILN_INLINE const uint8_t *codes_of(const kiln_nvfp4_operand *factor, uint64_t row) {
    return factor->codes + row * (uint64_t)factor->stride;
}

/* Writes an element of d, from the sum of products of codes and their blocks' scales. Global scales come one by one:
 * the product of two may be infinite. */
KILN_INLINE void finish(const kiln_gemm_nvfp4_args *args, float sum, uint64_t row, uint64_t col) {
    const kiln_element *bias = (const kiln_element *)args->bias;
    kiln_element *d = (kiln_element *)args->d;
    if (args->k) { /* else there may be none */
        sum *= args->a.global_scale[args->a.each ? row : 0];
        sum *= args->b.global_scale[args->b.each ? col : 0];
    }
    float value = KILN_FMA(args->scale, sum, bias ? kiln_element_to_f32(bias[col]) : 0.0f);
    if (args->gated) value = kiln_gated(value, args->bound, args->coefficients, KILN_NVFP4_COEFFICIENTS);
    d[row * (uint64_t)args->d_stride + col] = kiln_element_from_f32(value);
}

/* ---- gemm_nvfp4_tiles ---- */

/* The 8 codes of a row from k on, a multiple of 8; zeros from `end` on. */
KILN_INLINE uint32_t fetch_word(const uint8_t *row, uint32_t k, uint32_t end, bool wide) {
    uint32_t word = 0;
    if (wide) return k < end ? *(const uint32_t *)(const void *)(row + k / 2) : 0;
    KILN_UNROLL
    for (uint32_t i = 0; i < WORD; i += 2)
        if (k + i < end) word |= (row[(k + i) / 2] & (k + i + 1 < end ? 0xffu : 0x0fu)) << 4 * i;
    return word;
}

/* Writes a word of row `row`, which is number `part` of it in shared memory, as a column of numbers. */
KILN_INLINE void put_word(float (*tile)[TILE], uint32_t word, float scale, uint32_t row, uint32_t part) {
    KILN_UNROLL
    for (uint32_t i = 0; i < WORD; i++)
        tile[part * WORD + i][row ^ part * SWIZZLE] = kiln_e2m1_number(word >> 4 * i) * scale;
}

/* Adds the products of what is in shared memory. */
KILN_INLINE void multiply(const float (*a)[TILE], const float (*b)[TILE], float (*sums)[SIDE]) {
    uint32_t row = kiln_thread() / (TILE / SIDE) * SIDE, col = kiln_thread() % (TILE / SIDE) * SIDE;
    KILN_LOOP
    for (uint32_t part = 0; part < WORDS; part++) {
        KILN_UNROLL
        for (uint32_t i = 0; i < WORD; i++) {
            quad left = *(const quad *)&a[part * WORD + i][row ^ part * SWIZZLE];
            quad right = *(const quad *)&b[part * WORD + i][col ^ part * SWIZZLE];
            KILN_UNROLL
            for (uint32_t r = 0; r < SIDE; r++) {
                KILN_UNROLL
                for (uint32_t c = 0; c < SIDE; c++)
                    sums[r][c] = KILN_FMA(left.values[r], right.values[c], sums[r][c]);
            }
        }
    }
}

KILN_ENTRY(gemm_nvfp4_tiles, kiln_gemm_nvfp4_args) {
    KILN_SHARED tiles shared;
    uint32_t block = (uint32_t)kiln_block(), tile_row = block % args.tile_rows, split = block / args.tile_rows;
    if (split >= args.splits) return; /* the whole block */
    uint64_t first_row = (uint64_t)tile_row * TILE, first_col = (uint64_t)kiln_tile() * TILE;
    uint32_t row = kiln_thread() / WORDS, part = kiln_thread() % WORDS;
    uint32_t begin = split * args.split, end = begin + args.split;
    if (end > (uint32_t)args.k) end = (uint32_t)args.k;
    /* The rows that this thread reads; beyond the last one that once more, for nothing. */
    uint64_t a_row = first_row + row < (uint64_t)args.m ? first_row + row : (uint64_t)args.m - 1;
    uint64_t b_row = first_col + row < (uint64_t)args.n ? first_col + row : (uint64_t)args.n - 1;

    float sums[SIDE][SIDE] = {{0.0f}};
    KILN_LOOP
    for (; begin < end; begin += DEPTH) {
        uint32_t k = begin + part * WORD, a_word = 0, b_word = 0;
        float a_scale = 0.0f, b_scale = 0.0f;
        if (k < end) {
            a_word = fetch_word(codes_of(&args.a, a_row), k, end, args.wide);
            b_word = fetch_word(codes_of(&args.b, b_row), k, end, args.wide);
            a_scale = scale_of(&args.a, a_row, k);
            b_scale = scale_of(&args.b, b_row, k);
        }
        kiln_barrier(); /* what was there is read */
        put_word(shared.factors[0], a_word, a_scale, row, part);
        put_word(shared.factors[1], b_word, b_scale, row, part);
        kiln_barrier();
        multiply(shared.factors[0], shared.factors[1], sums);
    }

    /* By way of shared memory, so that neighbouring threads write neighbouring elements. */
    kiln_barrier();
    KILN_UNROLL
    for (uint32_t r = 0; r < SIDE; r++) {
        quad *to = (quad *)&shared.sums[kiln_thread() / (TILE / SIDE) * SIDE + r][kiln_thread() % (TILE / SIDE) * SIDE];
        KILN_UNROLL
        for (uint32_t c = 0; c < SIDE; c++)
            to->values[c] = sums[r][c];
    }
    kiln_barrier();
    float *partials = args.partials + (uint64_t)split * (uint64_t)args.m * (uint64_t)args.n;
    KILN_LOOP
    for (uint32_t i = kiln_thread(); i < TILE * TILE; i += KILN_BLOCK) {
        uint64_t d_row = first_row + i / TILE, d_col = first_col + i % TILE;
        if (d_row >= (uint64_t)args.m || d_col >= (uint64_t)args.n) continue;
        float sum = shared.sums[i / TILE][i % TILE];
        if (args.splits > 1)
            partials[d_row * (uint64_t)args.n + d_col] = sum;
        else
            finish(&args, sum, d_row, d_col);
    }
}

/* ---- gemm_nvfp4_join ---- */

KILN_ENTRY(gemm_nvfp4_join, kiln_gemm_nvfp4_args) {
    uint64_t col = (uint64_t)kiln_tile() * KILN_BLOCK + kiln_thread(), row = kiln_block();
    if (col >= (uint64_t)args.n || row >= (uint64_t)args.m) return;
    const float *partial = args.partials + row * (uint64_t)args.n + col;
    float sum = 0.0f;
    KILN_LOOP
    for (uint32_t split = 0; split < args.splits; split++, partial += (uint64_t)args.m * (uint64_t)args.n)
        sum += *partial;
    finish(&args, sum, row, col);
}

/* ---- gemm_nvfp4_rows ---- */

/* A subgroup's rows of a and of b; beyond the last of b that once more, for nothing. */
typedef struct few {
    uint64_t first_row, columns[KILN_NVFP4_COLUMNS];
    uint32_t rows;
} few;

/* The sums of a subgroup's rows of b with its rows of a: one for each of its threads. */
typedef struct row_sums {
    float of[KILN_NVFP4_ROWS][KILN_NVFP4_COLUMNS];
} row_sums;

/* Adds the products of `count` codes, at most a word, of each row: those of the words' codes are exact in f32, and so
 * is the sum of 8, before it gets the blocks' scales. */
KILN_INLINE void multiply_word(const kiln_gemm_nvfp4_args *args, const few *of, const uint32_t *b_words,
                               const float *b_scales, uint32_t k, bool whole, row_sums *sums) {
    enum { COLUMNS = KILN_NVFP4_COLUMNS };
    float right[COLUMNS][WORD];
    KILN_UNROLL
    for (uint32_t c = 0; c < COLUMNS; c++) {
        KILN_UNROLL
        for (uint32_t i = 0; i < (whole ? WORD : 1); i++)
            right[c][i] = kiln_e2m1_number(b_words[c] >> 4 * i);
    }
    KILN_UNROLL
    for (uint32_t r = 0; r < KILN_NVFP4_ROWS; r++) {
        if (r >= of->rows) continue;
        const uint8_t *source = codes_of(&args->a, of->first_row + r) + k / 2;
        const uint32_t word = whole ? *(const uint32_t *)(const void *)source : (uint32_t)*source >> k % 2 * 4;
        const float a_scale = scale_of(&args->a, of->first_row + r, k);
        float left[WORD];
        KILN_UNROLL
        for (uint32_t i = 0; i < (whole ? WORD : 1); i++)
            left[i] = kiln_e2m1_number(word >> 4 * i);
        KILN_UNROLL
        for (uint32_t c = 0; c < COLUMNS; c++) {
            float products = 0.0f;
            KILN_UNROLL
            for (uint32_t i = 0; i < (whole ? WORD : 1); i++)
                products = KILN_FMA(left[i], right[c][i], products);
            sums->of[r][c] = KILN_FMA(products, a_scale * b_scales[c], sums->of[r][c]);
        }
    }
}

/* Adds the products of a chunk: 16 bytes of each row of b, a word of 8 codes at a time. */
KILN_INLINE void multiply_chunk(const kiln_gemm_nvfp4_args *args, const few *of, uint32_t k, row_sums *sums) {
    enum { COLUMNS = KILN_NVFP4_COLUMNS };
    chunk chunks[COLUMNS];
    uint32_t scales[COLUMNS], words[COLUMNS]; /* the E4M3 of two blocks */
    float numbers[COLUMNS];
    KILN_UNROLL
    for (uint32_t c = 0; c < COLUMNS; c++) {
        chunks[c] = *(const chunk *)(const void *)(codes_of(&args->b, of->columns[c]) + k / 2);
        scales[c] = *(const uint16_t *)(const void *)(args->b.scales +
                                                      scale_place(&args->b, of->columns[c], k / KILN_NVFP4_BLOCK));
    }
    KILN_LOOP
    for (uint32_t i = 0; i < KILN_NVFP4_CHUNK; i += WORD) {
        KILN_UNROLL
        for (uint32_t c = 0; c < COLUMNS; c++) {
            uint32_t *held = chunks[c].words;
            words[c] = held[0];
            held[0] = held[1], held[1] = held[2], held[2] = held[3]; /* registers have no index */
            numbers[c] = kiln_e4m3_number(scales[c] >> i / KILN_NVFP4_BLOCK * 8 & 0x7fu);
        }
        multiply_word(args, of, words, numbers, k + i, true, sums);
    }
}

/* Adds the products of one code of each row. */
KILN_INLINE void multiply_code(const kiln_gemm_nvfp4_args *args, const few *of, uint32_t k, row_sums *sums) {
    uint32_t words[KILN_NVFP4_COLUMNS];
    float scales[KILN_NVFP4_COLUMNS];
    KILN_UNROLL
    for (uint32_t c = 0; c < KILN_NVFP4_COLUMNS; c++) {
        words[c] = (uint32_t)codes_of(&args->b, of->columns[c])[k / 2] >> k % 2 * 4;
        scales[c] = scale_of(&args->b, of->columns[c], k);
    }
    multiply_word(args, of, words, scales, k, false, sums);
}

/* The sum over a subgroup's threads of that of its sums whose number is the thread's: each round gives half of those
 * that are left to the other half of the threads. */
KILN_INLINE float sum_of_lane(float *sums) {
    const uint32_t lane = kiln_thread() % KILN_SUBGROUP;
    KILN_UNROLL
    for (uint32_t round = 1; round <= KILN_SUBGROUP_LOG2; round++) {
        const uint32_t half = KILN_SUBGROUP >> round;
        KILN_UNROLL
        for (uint32_t i = 0; i < KILN_SUBGROUP / 2; i++) {
            if (i >= half) continue;
            const float low = sums[i], high = sums[i + half];
            sums[i] = (lane & half ? high : low) + kiln_shuffle_xor(lane & half ? low : high, half);
        }
    }
    return sums[0];
}

KILN_ENTRY(gemm_nvfp4_rows, kiln_gemm_nvfp4_args) {
    enum { ROWS = KILN_NVFP4_ROWS, COLUMNS = KILN_NVFP4_COLUMNS };
    const uint32_t lane = kiln_thread() % KILN_SUBGROUP, end = (uint32_t)args.k;
    const uint64_t first =
        ((uint64_t)kiln_tile() * (KILN_BLOCK / KILN_SUBGROUP) + kiln_thread() / KILN_SUBGROUP) * COLUMNS;
    few of = {.first_row = kiln_block() * ROWS};
    row_sums sums = {{{0.0f}}};
    if (of.first_row >= (uint64_t)args.m) return; /* the whole block */
    of.rows = (uint64_t)args.m - of.first_row < ROWS ? (uint32_t)((uint64_t)args.m - of.first_row) : ROWS;
    KILN_UNROLL
    for (uint32_t c = 0; c < COLUMNS; c++)
        of.columns[c] = first + c < (uint64_t)args.n ? first + c : (uint64_t)args.n - 1;
    if (args.wide) {
        KILN_LOOP
        for (uint32_t k = lane * KILN_NVFP4_CHUNK; k < end; k += KILN_SUBGROUP * KILN_NVFP4_CHUNK)
            multiply_chunk(&args, &of, k, &sums);
    } else {
        KILN_LOOP
        for (uint32_t k = lane; k < end; k += KILN_SUBGROUP)
            multiply_code(&args, &of, k, &sums);
    }

    const float result = sum_of_lane(sums.of[0]);
    const uint64_t row = lane / COLUMNS, col = first + lane % COLUMNS;
    if (row < of.rows && col < (uint64_t)args.n) finish(&args, result, of.first_row + row, col);
}

#endif
