/* Attention on the CPU: a few rows of a head, which share keys and values, times a few of them. */
#ifndef KILN_KERNELS_COMMON_ATTENTION_ATTENTION_PRODUCTS_CPU_H
#define KILN_KERNELS_COMMON_ATTENTION_ATTENTION_PRODUCTS_CPU_H

#include "kernels/common/attention/attention_args.h"
#include "kernels/common/formats/float8_cpu.h"
#include "kernels/common/vec.h"

enum {
    KEYS = KILN_ATTENTION_KEYS,                       /* of a tile */
    KEYS_AT_A_TIME = 4,                               /* that are multiplied */
    ROWS_AT_A_TIME = KILN_VEC_REGISTERS >= 32 ? 4 : 2 /* with rows: the registers hold a sum for each of both */
};

/* What k and v have: elements of the precision, or codes of E4M3, which are multiplied in KILN_E4M3_UNIT. */
typedef struct element {
    kiln_cpu_dtype dtype;
    bool codes;
} element;

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

/* How many vectors of a head are converted at a time. */
KILN_INLINE uint32_t vecs_of(element e) {
    return e.codes ? KILN_E4M3_VECS : 1;
}

KILN_INLINE float unit_of(element e) {
    return e.codes ? KILN_E4M3_UNIT : 1.0f;
}

/* So many vectors of a head from its element d on. */
KILN_INLINE void widen(kiln_vec *to, const void *head, uint32_t d, element e) {
    if (e.codes)
        kiln_e4m3_vecs(to, (const uint8_t *)head + d);
    else
        to[0] = kiln_vec_widen(kiln_at(head, d, e.dtype), e.dtype);
}

/* The scores of `rows` rows from a first on. */
KILN_INLINE void score(const products *p, uint32_t first, uint32_t rows, element e) {
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
    for (uint32_t d = 0; d < p->padded; d += vecs_of(e) * KILN_VEC) {
        kiln_vec keys[KEYS_AT_A_TIME][KILN_E4M3_VECS];
        KILN_UNROLL
        for (uint32_t k = 0; k < KEYS_AT_A_TIME; k++)
            widen(keys[k], heads[k], d, e);
        KILN_UNROLL
        for (uint32_t v = 0; v < vecs_of(e); v++) {
            KILN_UNROLL
            for (uint32_t r = 0; r < rows; r++) {
                kiln_vec query = KILN_VEC_LOAD(queries + r * p->padded + d + v * KILN_VEC);
                KILN_UNROLL
                for (uint32_t k = 0; k < KEYS_AT_A_TIME; k++)
                    sums[r][k] = KILN_VEC_FMA(query, keys[k][v], sums[r][k]);
            }
        }
    }
    KILN_UNROLL
    for (uint32_t r = 0; r < rows; r++) {
        KILN_UNROLL
        for (uint32_t k = 0; k < KEYS_AT_A_TIME; k++)
            flat[r * KEYS_AT_A_TIME + k] = sums[r][k];
    }
    sum_vectors(scores, flat, rows * KEYS_AT_A_TIME);
    for (uint32_t i = 0; i < rows * KEYS_AT_A_TIME; i++)
        scores[i] *= 1 / unit_of(e);
    KILN_UNROLL
    for (uint32_t r = 0; r < rows; r++)
        memcpy(p->weights + (first + r) * KEYS, scores + r * KEYS_AT_A_TIME, KEYS_AT_A_TIME * sizeof *scores);
}

/* Adds the values, times their weights, to the results of `rows` rows from a first on. */
KILN_INLINE void add(const products *p, uint32_t first, uint32_t rows, element e) {
    float *results = p->results + first * p->padded;
    kiln_vec weights[ROWS_AT_A_TIME][KEYS_AT_A_TIME];
    const void *heads[KEYS_AT_A_TIME];
    KILN_UNROLL
    for (uint32_t k = 0; k < KEYS_AT_A_TIME; k++) {
        heads[k] = p->heads[k];
        KILN_UNROLL
        for (uint32_t r = 0; r < rows; r++)
            weights[r][k] = KILN_VEC_SET(p->weights[(first + r) * KEYS + k] * (1 / unit_of(e)));
    }
    for (uint32_t d = 0; d < p->padded; d += vecs_of(e) * KILN_VEC) {
        kiln_vec values[KEYS_AT_A_TIME][KILN_E4M3_VECS];
        KILN_UNROLL
        for (uint32_t k = 0; k < KEYS_AT_A_TIME; k++)
            widen(values[k], heads[k], d, e);
        KILN_UNROLL
        for (uint32_t v = 0; v < vecs_of(e); v++) {
            KILN_UNROLL
            for (uint32_t r = 0; r < rows; r++) {
                float *result = results + r * p->padded + d + v * KILN_VEC;
                kiln_vec sum = KILN_VEC_LOAD(result);
                KILN_UNROLL
                for (uint32_t k = 0; k < KEYS_AT_A_TIME; k++)
                    sum = KILN_VEC_FMA(weights[r][k], values[k][v], sum);
                KILN_VEC_STORE(result, sum);
            }
        }
    }
}

KILN_INLINE void multiply_rows(const products *p, bool values, uint32_t first, uint32_t rows, element e) {
    if (values)
        add(p, first, rows, e);
    else
        score(p, first, rows, e);
}

KILN_INLINE void multiply_all(const products *p, bool values, element e) {
    uint32_t r = 0;
    for (; ROWS_AT_A_TIME == 4 && r + 4 <= p->rows; r += 4)
        multiply_rows(p, values, r, 4, e);
    for (; r + 2 <= p->rows; r += 2)
        multiply_rows(p, values, r, 2, e);
    if (r < p->rows) multiply_rows(p, values, r, 1, e);
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
        multiply_all(p, false, (element){KILN_CPU_f32, false});
    else if (dtype == KILN_CPU_f16)
        multiply_all(p, false, (element){KILN_CPU_f16, false});
    else
        multiply_all(p, false, (element){KILN_CPU_bf16, false});
}

/* Adds the values to the results of all rows. */
KILN_OUTLINED void multiply_values(const products *p, kiln_cpu_dtype dtype) {
    if (dtype == KILN_CPU_f32)
        multiply_all(p, true, (element){KILN_CPU_f32, false});
    else if (dtype == KILN_CPU_f16)
        multiply_all(p, true, (element){KILN_CPU_f16, false});
    else
        multiply_all(p, true, (element){KILN_CPU_bf16, false});
}

/* The same where they are codes: functions of their own, since those above are called so often that what codes ask for
 * in them costs a twentieth. */
KILN_OUTLINED void multiply_codes_of_keys(const products *p) {
    multiply_all(p, false, (element){.codes = true});
}

KILN_OUTLINED void multiply_codes_of_values(const products *p) {
    multiply_all(p, true, (element){.codes = true});
}

#endif
