/* Attention on the CPU: a few rows of a head, which share keys and values, times a few of them. */
#ifndef KILN_KERNELS_COMMON_ATTENTION_PRODUCTS_CPU_H
#define KILN_KERNELS_COMMON_ATTENTION_PRODUCTS_CPU_H

#include "kernels/common/attention_args.h"
#include "kernels/common/vec.h"

enum {
    KEYS = KILN_ATTENTION_KEYS,                       /* of a tile */
    KEYS_AT_A_TIME = 4,                               /* that are multiplied */
    ROWS_AT_A_TIME = KILN_VEC_REGISTERS >= 32 ? 4 : 2 /* with rows: the registers hold a sum for each of both */
};

typedef struct products {
    const void *const *heads; /* KEYS_AT_A_TIME of k or of v, of padded elements */
    const float *queries;     /* [rows, padded] */
    float *results;           /* [rows, padded] */
    float *weights;           /* [rows, KEYS], from the first of these keys on */
    uint32_t rows, padded;    /* padded: a multiple of KILN_VEC */
} products;

/* The sums of the elements of count vectors, a power of two. The vectors are overwritten. */
KILN_INLINE void sum_vectors(float *to, kiln_vec *vectors, uint32_t count) {
    KILN_UNROLL
    for (uint32_t i = 0; i + KILN_VEC <= count; i += KILN_VEC)
        KILN_VEC_STORE(to + i, kiln_vec_sums(vectors + i));
    if (count >= KILN_VEC) return;
    float lanes[KILN_VEC];
    KILN_UNROLL
    for (uint32_t half = count / 2; half; half /= 2) {
        KILN_UNROLL
        for (uint32_t i = 0; i < half; i++)
            vectors[i] = KILN_VEC_ADD(KILN_VEC_ZIP_LOW(vectors[i], vectors[i + half]),
                                      KILN_VEC_ZIP_HIGH(vectors[i], vectors[i + half]));
    }
    KILN_VEC_STORE(lanes, vectors[0]);
    KILN_UNROLL
    for (uint32_t half = KILN_VEC / 2; half >= count; half /= 2) {
        for (uint32_t i = 0; i < half; i++)
            lanes[i] += lanes[i + half];
    }
    memcpy(to, lanes, count * sizeof *to);
}

/* The scores of `rows` rows from a first on. */
KILN_INLINE void score(const products *p, uint32_t first, uint32_t rows, kiln_cpu_dtype dtype) {
    const float *queries = p->queries + first * p->padded;
    kiln_vec sums[ROWS_AT_A_TIME][KEYS_AT_A_TIME], flat[ROWS_AT_A_TIME * KEYS_AT_A_TIME];
    float scores[ROWS_AT_A_TIME * KEYS_AT_A_TIME];
    const void *heads[KEYS_AT_A_TIME];
    KILN_UNROLL
    for (uint32_t k = 0; k < KEYS_AT_A_TIME; k++)
        heads[k] = p->heads[k];
    KILN_UNROLL
    for (uint32_t r = 0; r < rows; r++) {
        KILN_UNROLL
        for (uint32_t k = 0; k < KEYS_AT_A_TIME; k++)
            sums[r][k] = KILN_VEC_ZERO();
    }
    for (uint32_t d = 0; d < p->padded; d += KILN_VEC) {
        kiln_vec keys[KEYS_AT_A_TIME];
        KILN_UNROLL
        for (uint32_t k = 0; k < KEYS_AT_A_TIME; k++)
            keys[k] = kiln_vec_widen(kiln_at(heads[k], d, dtype), dtype);
        KILN_UNROLL
        for (uint32_t r = 0; r < rows; r++) {
            kiln_vec query = KILN_VEC_LOAD(queries + r * p->padded + d);
            KILN_UNROLL
            for (uint32_t k = 0; k < KEYS_AT_A_TIME; k++)
                sums[r][k] = KILN_VEC_FMA(query, keys[k], sums[r][k]);
        }
    }
    KILN_UNROLL
    for (uint32_t r = 0; r < rows; r++) {
        KILN_UNROLL
        for (uint32_t k = 0; k < KEYS_AT_A_TIME; k++)
            flat[r * KEYS_AT_A_TIME + k] = sums[r][k];
    }
    sum_vectors(scores, flat, rows * KEYS_AT_A_TIME);
    KILN_UNROLL
    for (uint32_t r = 0; r < rows; r++)
        memcpy(p->weights + (first + r) * KEYS, scores + r * KEYS_AT_A_TIME, KEYS_AT_A_TIME * sizeof *scores);
}

/* Adds the values, times their weights, to the results of `rows` rows from a first on. */
KILN_INLINE void add(const products *p, uint32_t first, uint32_t rows, kiln_cpu_dtype dtype) {
    float *results = p->results + first * p->padded;
    kiln_vec weights[ROWS_AT_A_TIME][KEYS_AT_A_TIME];
    const void *heads[KEYS_AT_A_TIME];
    KILN_UNROLL
    for (uint32_t k = 0; k < KEYS_AT_A_TIME; k++) {
        heads[k] = p->heads[k];
        KILN_UNROLL
        for (uint32_t r = 0; r < rows; r++)
            weights[r][k] = KILN_VEC_SET(p->weights[(first + r) * KEYS + k]);
    }
    for (uint32_t d = 0; d < p->padded; d += KILN_VEC) {
        kiln_vec values[KEYS_AT_A_TIME];
        KILN_UNROLL
        for (uint32_t k = 0; k < KEYS_AT_A_TIME; k++)
            values[k] = kiln_vec_widen(kiln_at(heads[k], d, dtype), dtype);
        KILN_UNROLL
        for (uint32_t r = 0; r < rows; r++) {
            kiln_vec sum = KILN_VEC_LOAD(results + r * p->padded + d);
            KILN_UNROLL
            for (uint32_t k = 0; k < KEYS_AT_A_TIME; k++)
                sum = KILN_VEC_FMA(weights[r][k], values[k], sum);
            KILN_VEC_STORE(results + r * p->padded + d, sum);
        }
    }
}

KILN_INLINE void multiply_rows(const products *p, bool values, uint32_t first, uint32_t rows, kiln_cpu_dtype dtype) {
    if (values)
        add(p, first, rows, dtype);
    else
        score(p, first, rows, dtype);
}

KILN_INLINE void multiply_all(const products *p, bool values, kiln_cpu_dtype dtype) {
    uint32_t r = 0;
    for (; ROWS_AT_A_TIME == 4 && r + 4 <= p->rows; r += 4)
        multiply_rows(p, values, r, 4, dtype);
    for (; r + 2 <= p->rows; r += 2)
        multiply_rows(p, values, r, 2, dtype);
    if (r < p->rows) multiply_rows(p, values, r, 1, dtype);
}

/* Whether elements are multiplied as they are: without instructions that convert them they had better be converted
 * once for all rows. */
KILN_INLINE bool widens(kiln_cpu_dtype dtype) {
#if defined(__F16C__) || defined(__aarch64__)
    (void)dtype;
    return true;
#else
    return dtype != KILN_CPU_f16;
#endif
}

/* Scores the keys for all rows. */
KILN_OUTLINED void multiply_keys(const products *p, kiln_cpu_dtype dtype) {
    if (dtype == KILN_CPU_f32)
        multiply_all(p, false, KILN_CPU_f32);
    else if (dtype == KILN_CPU_f16)
        multiply_all(p, false, KILN_CPU_f16);
    else
        multiply_all(p, false, KILN_CPU_bf16);
}

/* Adds the values to the results of all rows. */
KILN_OUTLINED void multiply_values(const products *p, kiln_cpu_dtype dtype) {
    if (dtype == KILN_CPU_f32)
        multiply_all(p, true, KILN_CPU_f32);
    else if (dtype == KILN_CPU_f16)
        multiply_all(p, true, KILN_CPU_f16);
    else
        multiply_all(p, true, KILN_CPU_bf16);
}

#endif
