/* gemm_w4a16's kernels for any chip, any alignment and canonical weights: gemm_w4a16_gpu.c describes them. A tuned
 * source includes them too, for what its own kernels do not do. */
#ifndef KILN_KERNELS_GEMM_W4A16_PORTABLE_H
#define KILN_KERNELS_GEMM_W4A16_PORTABLE_H

#include "kernels/common/device.h"
#include "kernels/common/values.h"
#include "kernels/gemm_w4a16/gemm_w4a16_args.h"

enum {
    TILE = KILN_W4A16_TILE,
    SIDE = 4,    /* a thread does SIDE x SIDE elements */
    VECTORS = 4, /* of a row of a in shared memory */
    DEPTH = VECTORS * KILN_VECTOR,
    SWIZZLE = KILN_SUBGROUP / VECTORS,
    WORD = 8 /* integers of 4 bits in 32 */
};

typedef struct quad {
    float values[SIDE];
} __attribute__((aligned(SIDE * sizeof(float)))) quad;

/* ---- What all kernels share ---- */

/* The scale and the zero of a group of a row of weights. */
typedef struct group {
    float scale, zero;
} group;

KILN_INLINE group group_of(const kiln_gemm_w4a16_args *args, uint64_t row, uint32_t k) {
    uint64_t at = row * (uint64_t)args->scale_row_step + (k >> args->group_log2) * (uint64_t)args->scale_group_step;
    group g = {kiln_element_to_f32(((const kiln_element *)args->scales)[at]), 0.0f};
    if (args->zeros) g.zero = kiln_element_to_f32(((const kiln_element *)args->zeros)[at]);
    return g;
}

/* The element whose integer is the lowest of a word, of which all are greater by 8. */
KILN_INLINE float weight_of(uint32_t word, group g) {
    return KILN_FMA(kiln_float(0x4b000000u | (word & 15u)) - 8388616.0f, g.scale, g.zero);
}

KILN_INLINE void finish_element(const kiln_gemm_w4a16_args *args, float sum, uint64_t row, uint64_t col) {
    float value = sum * args->scale;
    if (args->bias) value += kiln_element_to_f32(((const kiln_element *)args->bias)[col]);
    ((kiln_element *)args->d)[row * (uint64_t)args->d_stride + col] = kiln_element_from_f32(value);
}

/* ---- gemm_w4a16_tiles ---- */

/* count elements of a row of a from k on; zeros behind them. */
KILN_INLINE kiln_vector fetch_a(const kiln_gemm_w4a16_args *args, const kiln_element *row, uint32_t k, uint32_t count) {
    kiln_vector vector = {{0, 0, 0, 0}};
    if (args->wide && count == KILN_VECTOR) return kiln_vector_load(row + k);
    KILN_UNROLL
    for (uint32_t i = 0; i < KILN_VECTOR; i++) {
        uint32_t bit = i * (uint32_t)sizeof(kiln_element) * 8;
        if (i < count) vector.words[bit / 32] |= (uint32_t)row[k + i] << bit % 32;
    }
    return vector;
}

/* The integers of a row of weights from k on, which is even, as those of 8 elements or 4, greater by 8. */
KILN_INLINE uint32_t fetch_codes(const kiln_gemm_w4a16_args *args, uint64_t row, uint32_t k, uint32_t count) {
    const uint8_t *source = args->weights + row * ((uint64_t)args->k / 2) + k / 2;
    uint32_t word = 0;
    if (args->wide && count == KILN_VECTOR) {
#if defined(KILN_PART_f32)
        word = *(const uint16_t *)source;
#else
        word = *(const uint32_t *)source;
#endif
    } else {
        KILN_UNROLL
        for (uint32_t i = 0; i < KILN_VECTOR / 2; i++)
            if (2 * i < count) word |= (uint32_t)source[i] << 8 * i;
    }
    return word ^ 0x88888888u;
}

/* Where element i of a row's vector number `part` is in a tile, as a column. */
KILN_INLINE float *place_of(float (*tile)[TILE], uint32_t row, uint32_t part, uint32_t i) {
    return &tile[part * KILN_VECTOR + i][row ^ part * SWIZZLE];
}

/* Adds the products of what is in shared memory. */
KILN_INLINE void multiply(const float (*a)[TILE], const float (*w)[TILE], float (*sums)[SIDE]) {
    uint32_t row = kiln_thread() / (TILE / SIDE) * SIDE, col = kiln_thread() % (TILE / SIDE) * SIDE;
    KILN_LOOP
    for (uint32_t part = 0; part < VECTORS; part++) {
        KILN_UNROLL
        for (uint32_t i = 0; i < KILN_VECTOR; i++) {
            uint32_t k = part * KILN_VECTOR + i;
            quad left = *(const quad *)&a[k][row ^ part * SWIZZLE];
            quad right = *(const quad *)&w[k][col ^ part * SWIZZLE];
            KILN_UNROLL
            for (uint32_t r = 0; r < SIDE; r++) {
                KILN_UNROLL
                for (uint32_t c = 0; c < SIDE; c++)
                    sums[r][c] = KILN_FMA(left.values[r], right.values[c], sums[r][c]);
            }
        }
    }
}

KILN_ENTRY(gemm_w4a16_tiles, kiln_gemm_w4a16_args) {
    KILN_SHARED float a_tile[DEPTH][TILE];
    KILN_SHARED float w_tile[DEPTH][TILE];
    uint32_t block = (uint32_t)kiln_block(), tile_row = block % args.tile_rows, split = block / args.tile_rows;
    if (split >= args.splits) return; /* the whole block */
    uint64_t first_row = (uint64_t)tile_row * TILE, first_col = (uint64_t)kiln_tile() * TILE;
    uint32_t row = kiln_thread() / VECTORS, part = kiln_thread() % VECTORS;
    uint32_t begin = split * args.split, end = begin + args.split;
    if (end > (uint32_t)args.k) end = (uint32_t)args.k;
    /* The rows that this thread reads; beyond the last one that once more, for nothing. */
    uint64_t a_row = first_row + row < (uint64_t)args.m ? first_row + row : (uint64_t)args.m - 1;
    uint64_t w_row = first_col + row < (uint64_t)args.n ? first_col + row : (uint64_t)args.n - 1;
    const kiln_element *a = (const kiln_element *)args.a + a_row * (uint64_t)args.a_stride;

    float sums[SIDE][SIDE] = {{0.0f}}, values[KILN_VECTOR];
    KILN_LOOP
    for (; begin < end; begin += DEPTH) {
        uint32_t k = begin + part * KILN_VECTOR, count = k < end ? end - k : 0, codes = 0;
        if (count > KILN_VECTOR) count = KILN_VECTOR;
        group g = {0.0f, 0.0f};
        if (count) {
            codes = fetch_codes(&args, w_row, k, count);
            g = group_of(&args, w_row, k);
        }
        kiln_vector vector = fetch_a(&args, a, k, count);
        kiln_barrier(); /* what was there is read */
        kiln_vector_values(values, vector);
        KILN_UNROLL
        for (uint32_t i = 0; i < KILN_VECTOR; i++) {
            if (args.pre_scale && i < count)
                values[i] *= kiln_element_to_f32(((const kiln_element *)args.pre_scale)[k + i]);
            *place_of(a_tile, row, part, i) = values[i];
            *place_of(w_tile, row, part, i) = i < count ? weight_of(codes >> 4 * i, g) : 0.0f;
        }
        kiln_barrier();
        multiply(a_tile, w_tile, sums);
    }

    float *partials = args.partials + (uint64_t)split * (uint64_t)args.m * (uint64_t)args.n;
    uint64_t d_row = first_row + kiln_thread() / (TILE / SIDE) * SIDE;
    uint64_t d_col = first_col + kiln_thread() % (TILE / SIDE) * SIDE;
    KILN_UNROLL
    for (uint32_t r = 0; r < SIDE; r++) {
        KILN_UNROLL
        for (uint32_t c = 0; c < SIDE; c++) {
            if (d_row + r >= (uint64_t)args.m || d_col + c >= (uint64_t)args.n) continue;
            if (args.splits > 1)
                partials[(d_row + r) * (uint64_t)args.n + d_col + c] = sums[r][c];
            else
                finish_element(&args, sums[r][c], d_row + r, d_col + c);
        }
    }
}

/* ---- gemm_w4a16_join ---- */

KILN_ENTRY(gemm_w4a16_join, kiln_gemm_w4a16_args) {
    uint64_t col = (uint64_t)kiln_tile() * KILN_BLOCK + kiln_thread(), row = kiln_block();
    if (col >= (uint64_t)args.n || row >= (uint64_t)args.m) return;
    const float *partial = args.partials + row * (uint64_t)args.n + col;
    float sum = 0.0f;
    KILN_LOOP
    for (uint32_t split = 0; split < args.splits; split++, partial += (uint64_t)args.m * (uint64_t)args.n)
        sum += *partial;
    finish_element(&args, sum, row, col);
}

/* ---- gemm_w4a16_rows ---- */

/* The sums of a subgroup's rows of weights with all rows of a. */
typedef struct row_sums {
    float of[KILN_W4A16_ROWS][KILN_W4A16_COLUMNS];
} row_sums;

/* Eight elements of a row of a, times those of pre_scale. */
KILN_INLINE void word_of_a(const kiln_gemm_w4a16_args *args, const kiln_element *row, uint64_t k, float *values) {
    KILN_UNROLL
    for (uint32_t i = 0; i < WORD; i += KILN_VECTOR)
        kiln_vector_values(values + i, kiln_vector_load(row + k + i));
    if (!args->pre_scale) return;
    float factors[WORD];
    KILN_UNROLL
    for (uint32_t i = 0; i < WORD; i += KILN_VECTOR)
        kiln_vector_values(factors + i, kiln_vector_load((const kiln_element *)args->pre_scale + k + i));
    KILN_UNROLL
    for (uint32_t i = 0; i < WORD; i++)
        values[i] *= factors[i];
}

/* Adds the products of a chunk: 16 bytes of each row of weights, a word of 8 elements at a time. */
KILN_INLINE void multiply_chunk(const kiln_gemm_w4a16_args *args, const uint64_t *columns, uint64_t k, row_sums *sums) {
    kiln_vector codes[KILN_W4A16_COLUMNS];
    group groups[KILN_W4A16_COLUMNS];
    KILN_UNROLL
    for (uint32_t c = 0; c < KILN_W4A16_COLUMNS; c++) {
        codes[c] = *(const kiln_vector *)(args->weights + columns[c] * ((uint64_t)args->k / 2) + k / 2);
        groups[c] = group_of(args, columns[c], (uint32_t)k);
    }
    KILN_LOOP
    for (uint32_t word = 0; word < KILN_W4A16_CHUNK / WORD; word++, k += WORD) {
        float weights[KILN_W4A16_COLUMNS][WORD], values[WORD];
        KILN_UNROLL
        for (uint32_t c = 0; c < KILN_W4A16_COLUMNS; c++) {
            uint32_t *words = codes[c].words, biased = words[0] ^ 0x88888888u;
            KILN_UNROLL
            for (uint32_t i = 0; i < WORD; i++)
                weights[c][i] = weight_of(biased >> 4 * i, groups[c]);
            words[0] = words[1], words[1] = words[2], words[2] = words[3]; /* registers have no index */
        }
        KILN_UNROLL
        for (uint32_t r = 0; r < KILN_W4A16_ROWS; r++) {
            if (r >= (uint32_t)args->m) continue;
            word_of_a(args, (const kiln_element *)args->a + r * (uint64_t)args->a_stride, k, values);
            KILN_UNROLL
            for (uint32_t c = 0; c < KILN_W4A16_COLUMNS; c++) {
                KILN_UNROLL
                for (uint32_t i = 0; i < WORD; i++)
                    sums->of[r][c] = KILN_FMA(values[i], weights[c][i], sums->of[r][c]);
            }
        }
    }
}

/* Adds the products of one element of each row. */
KILN_INLINE void multiply_element(const kiln_gemm_w4a16_args *args, const uint64_t *columns, uint64_t k,
                                  row_sums *sums) {
    const kiln_element *a = (const kiln_element *)args->a + k, *factor = (const kiln_element *)args->pre_scale;
    float weights[KILN_W4A16_COLUMNS];
    KILN_UNROLL
    for (uint32_t c = 0; c < KILN_W4A16_COLUMNS; c++) {
        uint32_t pair = args->weights[columns[c] * ((uint64_t)args->k / 2) + k / 2] ^ 0x88u;
        weights[c] = weight_of(pair >> 4 * (k % 2), group_of(args, columns[c], (uint32_t)k));
    }
    KILN_UNROLL
    for (uint32_t r = 0; r < KILN_W4A16_ROWS; r++) {
        if (r >= (uint32_t)args->m) continue;
        float value = kiln_element_to_f32(a[r * (uint64_t)args->a_stride]);
        if (factor) value *= kiln_element_to_f32(factor[k]);
        KILN_UNROLL
        for (uint32_t c = 0; c < KILN_W4A16_COLUMNS; c++)
            sums->of[r][c] = KILN_FMA(value, weights[c], sums->of[r][c]);
    }
}

KILN_ENTRY(gemm_w4a16_rows, kiln_gemm_w4a16_args) {
    enum { ROWS = KILN_W4A16_ROWS, COLUMNS = KILN_W4A16_COLUMNS };
    uint32_t lane = kiln_thread() % KILN_SUBGROUP, rows = (uint32_t)args.m;
    uint64_t first = ((uint64_t)kiln_tile() * (KILN_BLOCK / KILN_SUBGROUP) + kiln_thread() / KILN_SUBGROUP) * COLUMNS;
    uint64_t columns[COLUMNS];
    row_sums sums = {{{0.0f}}};
    if (kiln_block()) return; /* the whole block */
    KILN_UNROLL
    for (uint32_t c = 0; c < COLUMNS; c++) /* beyond the last one: that once more, for nothing */
        columns[c] = first + c < (uint64_t)args.n ? first + c : (uint64_t)args.n - 1;
    if (args.wide) {
        KILN_LOOP
        for (uint64_t k = lane * KILN_W4A16_CHUNK; k < (uint64_t)args.k; k += KILN_SUBGROUP * KILN_W4A16_CHUNK)
            multiply_chunk(&args, columns, k, &sums);
    } else {
        KILN_LOOP
        for (uint64_t k = lane; k < (uint64_t)args.k; k += KILN_SUBGROUP)
            multiply_element(&args, columns, k, &sums);
    }

    /* Each thread writes one element: that of its lane. */
    float result = 0.0f;
    KILN_UNROLL
    for (uint32_t r = 0; r < ROWS; r++) {
        if (r >= rows) continue;
        KILN_UNROLL
        for (uint32_t c = 0; c < COLUMNS; c++) {
            float sum = sums.of[r][c];
            KILN_UNROLL
            for (uint32_t mask = 1; mask < KILN_SUBGROUP; mask *= 2)
                sum += kiln_shuffle_xor(sum, mask);
            result = lane == r * COLUMNS + c ? sum : result;
        }
    }
    uint64_t row = lane / COLUMNS, col = first + lane % COLUMNS;
    if (row < rows && col < (uint64_t)args.n) finish_element(&args, result, row, col);
}

#endif
