/* gemm_w4a16's kernels for any chip, any alignment and canonical weights: gemm_w4a16_gpu.c describes them. A tuned
 * source includes them too, for what its own kernels do not do. */
#ifndef KILN_KERNELS_GEMM_W4A16_PORTABLE_H
#define KILN_KERNELS_GEMM_W4A16_PORTABLE_H

#include "kernels/common/device.h"
#include "kernels/common/kept.h"
#include "kernels/common/math/root.h"
#include "kernels/common/reduce/reduce.h"
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

/* A sum times the scale, plus the bias of a row of weights. */
KILN_INLINE float scaled(const kiln_gemm_w4a16_args *args, float sum, uint64_t col) {
    float value = sum * args->scale;
    if (args->bias) value += kiln_element_to_f32(((const kiln_element *)args->bias)[col]);
    return value;
}

KILN_INLINE float activated(const kiln_gemm_w4a16_args *args, float value) {
    if (!args->activated) return value;
    return kiln_gated(value, args->bound, args->coefficients, KILN_W4A16_COEFFICIENTS);
}

KILN_INLINE void put(const kiln_gemm_w4a16_args *args, float value, uint64_t row, uint64_t col) {
    ((kiln_element *)args->d)[row * (uint64_t)args->d_stride + col] = kiln_element_from_f32(value);
}

/* The result of a sum before the activation. */
KILN_INLINE float result_of(const kiln_gemm_w4a16_args *args, float sum, uint64_t row, uint64_t col) {
    const float value = scaled(args, sum, col);
    if (!args->c) return value;
    return value + kiln_element_to_f32(((const kiln_element *)args->c)[row * (uint64_t)args->c_stride + col]);
}

KILN_INLINE void finish_element(const kiln_gemm_w4a16_args *args, float sum, uint64_t row, uint64_t col) {
    put(args, activated(args, result_of(args, sum, row, col)), row, col);
}

/* The same of the sums of paired rows of weights. */
KILN_INLINE void finish_pair(const kiln_gemm_w4a16_args *args, float gate, float sum, uint64_t row, uint64_t col) {
    const float factor = activated(args, scaled(args, gate, col));
    put(args, factor * scaled(args, sum, (uint64_t)args->n + col), row, col);
}

/* What the sums of a row of a are normalised by, of its squares' sum. */
KILN_INLINE float norm_of(const kiln_gemm_w4a16_args *args, float squares) {
    return kiln_rsqrt(KILN_FMA(squares, args->mean, args->norm_eps));
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

/* Has no registers for activations: where there is one, gemm_w4a16_join finishes d. */
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
            if (args.partials)
                partials[(d_row + r) * (uint64_t)args.n + d_col + c] = sums[r][c];
            else
                put(&args, result_of(&args, sums[r][c], d_row + r, d_col + c), d_row + r, d_col + c);
        }
    }
}

/* ---- gemm_w4a16_join ---- */

/* The sum of the partial sums of a row's column, of which there are `cols`. */
KILN_INLINE float joined(const kiln_gemm_w4a16_args *args, uint64_t row, uint64_t cols, uint64_t col) {
    const float *partial = args->partials + row * cols + col;
    float sum = 0.0f;
    KILN_LOOP
    for (uint32_t split = 0; split < args->splits; split++, partial += (uint64_t)args->m * cols)
        sum += *partial;
    return sum;
}

KILN_ENTRY(gemm_w4a16_join, kiln_gemm_w4a16_args) {
    uint64_t col = (uint64_t)kiln_tile() * KILN_BLOCK + kiln_thread(), row = kiln_block(), n = (uint64_t)args.n;
    if (col >= n || row >= (uint64_t)args.m) return;
    if (args.paired)
        finish_pair(&args, joined(&args, row, 2 * n, col), joined(&args, row, 2 * n, n + col), row, col);
    else
        finish_element(&args, joined(&args, row, n, col), row, col);
}

/* ---- gemm_w4a16_norm ---- */

/* Writes the normalised rows of a to d, a row for each block. */
KILN_ENTRY(gemm_w4a16_norm, kiln_gemm_w4a16_args) {
    KILN_SHARED float exchange[KILN_SUBGROUPS];
    const uint64_t row = kiln_block(), whole = args.wide ? (uint64_t)args.k / KILN_VECTOR : 0, k = (uint64_t)args.k;
    if (row >= (uint64_t)args.m) return; /* the whole block */
    const kiln_element *a = (const kiln_element *)args.a + row * (uint64_t)args.a_stride;
    const kiln_element *weight = (const kiln_element *)args.norm_weight;
    kiln_element *d = (kiln_element *)args.d + row * (uint64_t)args.d_stride;
    float sum = 0.0f, values[KILN_VECTOR];
    KILN_LOOP
    for (uint64_t i = kiln_thread(); i < whole; i += KILN_BLOCK) {
        kiln_vector_values(values, kiln_vector_load(a + i * KILN_VECTOR));
        sum = kiln_add_squares(sum, values);
    }
    KILN_LOOP
    for (uint64_t i = whole * KILN_VECTOR + kiln_thread(); i < k; i += KILN_BLOCK) {
        const float value = kiln_element_to_f32(a[i]);
        sum = KILN_FMA(value, value, sum);
    }
    const float norm = norm_of(&args, kiln_reduce(sum, KILN_BLOCK_LOG2, exchange, KILN_REDUCE_SUM));
    KILN_LOOP
    for (uint64_t i = kiln_thread(); i < whole; i += KILN_BLOCK) {
        kiln_vector_values(values, kiln_vector_load(a + i * KILN_VECTOR));
        kiln_vector_store(d + i * KILN_VECTOR, kiln_weighted(values, norm, weight + i * KILN_VECTOR));
    }
    KILN_LOOP
    for (uint64_t i = whole * KILN_VECTOR + kiln_thread(); i < k; i += KILN_BLOCK)
        d[i] = kiln_element_from_f32(kiln_element_to_f32(a[i]) * norm * kiln_element_to_f32(weight[i]));
}

/* ---- gemm_w4a16_rows, gemm_w4a16_fused_rows ---- */

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

/* The sum of a subgroup's threads, which all get it. */
KILN_INLINE float subgroup_sum(float sum) {
    KILN_UNROLL
    for (uint32_t mask = 1; mask < KILN_SUBGROUP; mask *= 2)
        sum += kiln_shuffle_xor(sum, mask);
    return sum;
}

/* What rows of a are normalised by: a subgroup finds that of one row. Without norm_weight, 1. */
KILN_INLINE void find_norms(const kiln_gemm_w4a16_args *args, float *norms) {
    const uint32_t row = kiln_thread() / KILN_SUBGROUP, lane = kiln_thread() % KILN_SUBGROUP;
    const kiln_element *a = (const kiln_element *)args->a + row * (uint64_t)args->a_stride;
    float sum = 0.0f, values[KILN_VECTOR];
    if (row >= (uint32_t)args->m) return;
    const uint64_t end = args->norm_weight ? (uint64_t)args->k : 0, whole = args->wide ? end : 0;
    KILN_LOOP
    for (uint64_t k = lane * KILN_VECTOR; k < whole; k += KILN_SUBGROUP * KILN_VECTOR) {
        kiln_vector_values(values, kiln_vector_load(a + k));
        sum = kiln_add_squares(sum, values);
    }
    KILN_LOOP
    for (uint64_t k = whole + lane; k < end; k += KILN_SUBGROUP) {
        const float value = kiln_element_to_f32(a[k]);
        sum = KILN_FMA(value, value, sum);
    }
    sum = subgroup_sum(sum);
    if (lane == 0) norms[row] = args->norm_weight ? norm_of(args, sum) : 1.0f;
}

/* What the subgroups of a block exchange where rows of a are normalised, or rows of weights paired. */
typedef struct row_exchange {
    float norms[KILN_W4A16_ROWS], results[KILN_BLOCK];
} row_exchange;

/* `exchange`: NULL, or rows of a may be normalised and rows of weights paired, of which half of the subgroups then do
 * the gates and the others what they are for. */
KILN_INLINE void multiply_few_rows(const kiln_gemm_w4a16_args *args, row_exchange *exchange) {
    enum { ROWS = KILN_W4A16_ROWS, COLUMNS = KILN_W4A16_COLUMNS, HALF = KILN_BLOCK / 2 };
    const bool fused = exchange != 0, paired = fused && args->paired;
    const uint32_t lane = kiln_thread() % KILN_SUBGROUP, rows = (uint32_t)args->m;
    const uint32_t threads = paired ? HALF : KILN_BLOCK, own = kiln_thread() % threads / KILN_SUBGROUP;
    const uint64_t first = ((uint64_t)kiln_tile() * (threads / KILN_SUBGROUP) + own) * COLUMNS;
    const uint64_t beyond = paired && kiln_thread() >= HALF ? (uint64_t)args->n : 0;
    uint64_t columns[COLUMNS];
    row_sums sums = {{{0.0f}}};
    if (fused) find_norms(args, exchange->norms);
    KILN_UNROLL
    for (uint32_t c = 0; c < COLUMNS; c++) /* beyond the last one: that once more, for nothing */
        columns[c] = (first + c < (uint64_t)args->n ? first + c : (uint64_t)args->n - 1) + beyond;
    if (args->wide) {
        KILN_LOOP
        for (uint64_t k = lane * KILN_W4A16_CHUNK; k < (uint64_t)args->k; k += KILN_SUBGROUP * KILN_W4A16_CHUNK)
            multiply_chunk(args, columns, k, &sums);
    } else {
        KILN_LOOP
        for (uint64_t k = lane; k < (uint64_t)args->k; k += KILN_SUBGROUP)
            multiply_element(args, columns, k, &sums);
    }

    /* Each thread has one element: that of its lane. */
    float result = 0.0f;
    KILN_UNROLL
    for (uint32_t r = 0; r < ROWS; r++) {
        if (r >= rows) continue;
        KILN_UNROLL
        for (uint32_t c = 0; c < COLUMNS; c++) {
            float sum = subgroup_sum(sums.of[r][c]);
            result = lane == r * COLUMNS + c ? sum : result;
        }
    }
    const uint64_t row = lane / COLUMNS, col = first + lane % COLUMNS;
    const bool present = row < rows && col < (uint64_t)args->n;
    if (fused) {
        exchange->results[kiln_thread()] = result;
        kiln_barrier();
        if (present) result *= exchange->norms[row];
    }
    if (paired) {
        if (present && kiln_thread() < HALF)
            finish_pair(args, result, exchange->results[kiln_thread() + HALF] * exchange->norms[row], row, col);
    } else if (present) {
        finish_element(args, result, row, col);
    }
}

KILN_ENTRY(gemm_w4a16_rows, kiln_gemm_w4a16_args) {
    if (kiln_block()) return; /* the whole block */
    multiply_few_rows(&args, 0);
}

KILN_ENTRY(gemm_w4a16_fused_rows, kiln_gemm_w4a16_args) {
    KILN_SHARED row_exchange exchange;
    if (kiln_block()) return; /* the whole block */
    multiply_few_rows(&args, &exchange);
}

#endif
