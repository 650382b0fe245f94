/* Attention on 8-bit codes on the CPU, for mha_int8_x_fp8_fwd and mha_fp8_fwd: the operators' definition.
 * attention_codes.h says how weights are rounded, attention_codes_loop_cpu.h has the loop and its floor.
 *
 * Includers define ATTEND and JOIN, the entries' names, KEYS_ARE_E4M3, code_numbers(to, codes, count), the numbers of
 * codes of q and k, and keys_load(to, codes, count), the same in KEYS_UNIT, which may write zeros behind the last, to
 * the end of as many codes of E4M3 as are converted at a time. Test: build/tests/ops/mha_codes_test. */
#ifndef KILN_KERNELS_COMMON_ATTENTION_ATTENTION_CODES_CPU_H
#define KILN_KERNELS_COMMON_ATTENTION_ATTENTION_CODES_CPU_H

#include "kernels/common/formats/float8_cpu.h"

#define ATTEND_ARGS    kiln_attention_codes_args
#define CODES_OF(args) (args)
#define VALUES_UNIT    KILN_E4M3_UNIT
#include "kernels/common/attention/attention_codes_loop_cpu.h"

enum { LINE = 64 /* bytes */ };
_Static_assert(SIZE % KILN_E4M3_AT_A_TIME == 0, "a row of the tile has room for what keys_load writes");

KILN_INLINE void load_query(float *to, const kiln_attention_codes_args *args, place at) {
    const kiln_attention_args *plain = &args->plain;
    const uint8_t *q = (const uint8_t *)plain->q + at.token * (uint64_t)plain->q_stride;
    const float scale = args->q_scales[at.head * (uint64_t)args->q_scale_rows + kiln_scale_at(args->q_index, at.token)];
    code_numbers(to, q + at.head * plain->head_dim, plain->head_dim);
    KILN_INDEPENDENT
    for (uint32_t d = 0; d < plain->head_dim; d++)
        to[d] *= scale;
}

/* The head's codes of the first key of a tensor with a row. */
KILN_INLINE const uint8_t *head_of(const kiln_attention_args *plain, bool values, uint64_t row, uint32_t kv_head) {
    const uint64_t stride = (uint64_t)(values ? plain->v_stride : plain->k_stride);
    return (const uint8_t *)(values ? plain->v : plain->k) + row * stride + kv_head * plain->head_dim;
}

/* Asks for what comes after a row of the tile: the values of its key, or the key of the next tile. */
KILN_INLINE void prefetch_next(const kiln_attention_args *plain, bool values, uint64_t row, uint32_t kv_head) {
    const uint8_t *next = head_of(plain, !values, row + (values ? KEYS : 0), kv_head);
    for (uint32_t byte = 0; byte < plain->head_dim; byte += LINE)
        __builtin_prefetch(next + byte);
}

/* The factor of the scores of a key, given its row. */
KILN_INLINE float key_scale_of(const kiln_attention_codes_args *args, uint64_t row, uint32_t kv_head) {
    const float *scales = args->k_scales + kv_head * (uint64_t)args->k_scale_rows;
    return scales[kiln_scale_at(args->k_index, row)] * (1 / KEYS_UNIT);
}

/* Loads the keys into the tile, and their scales, or the values; zeros from work->key_end on. */
KILN_INLINE void load_tile(state *held, const kiln_attention_codes_args *args, const kiln_sequence *s,
                           const kiln_attention_work *work, bool values, uint32_t key) {
    const kiln_attention_args *plain = &args->plain;
    const uint32_t size = plain->head_dim, kv_head = work->kv_head;
    const uint32_t count = (uint32_t)kiln_min(work->key_end - key, KEYS);
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t row = s->kv_first + key + i;
        const uint8_t *codes = head_of(plain, values, row, kv_head);
        prefetch_next(plain, values, row, kv_head);
        float *to = held->tile[i];
        if (size < held->padded) memset(to + size, 0, (held->padded - size) * sizeof *to);
        if (values) {
            kiln_e4m3_load_units(to, codes, size);
            continue;
        }
        keys_load(to, codes, size);
        held->key_scales[i] = key_scale_of(args, row, kv_head);
    }
    for (uint32_t i = count; i < KEYS; i++) {
        memset(held->tile[i], 0, held->padded * sizeof(float));
        held->key_scales[i] = 0.0f;
    }
}

/* Products of the row with KILN_VEC keys. */
KILN_OUTLINED void score_codes(float *scores, const float *query, const uint8_t *keys, uint64_t stride, uint32_t size) {
    kiln_vec sums[KILN_VEC];
    KILN_UNROLL
    for (uint32_t i = 0; i < KILN_VEC; i++)
        sums[i] = KILN_VEC_ZERO();
    for (uint32_t d = 0; d < size; d += KILN_E4M3_AT_A_TIME) {
        KILN_UNROLL
        for (uint32_t i = 0; i < KILN_VEC; i++) {
            kiln_vec numbers[KILN_E4M3_VECS];
            kiln_e4m3_vecs(numbers, keys + i * stride + d);
            KILN_UNROLL
            for (uint32_t v = 0; v < KILN_E4M3_VECS; v++)
                sums[i] = KILN_VEC_FMA(KILN_VEC_LOAD(query + d + v * KILN_VEC), numbers[v], sums[i]);
        }
    }
    KILN_VEC_STORE(scores, kiln_vec_sums(sums));
}

/* Adds the values of a tile to the result, in BLOCK sums. */
KILN_OUTLINED void add_codes(float *result, const float *weights, const uint8_t *values, uint64_t stride,
                             uint32_t size) {
    for (uint32_t d = 0; d < size; d += KILN_E4M3_AT_A_TIME) {
        kiln_vec sums[KILN_E4M3_VECS][BLOCK];
        KILN_UNROLL
        for (uint32_t v = 0; v < KILN_E4M3_VECS; v++) {
            KILN_UNROLL
            for (uint32_t i = 0; i < BLOCK; i++)
                sums[v][i] = i ? KILN_VEC_ZERO() : KILN_VEC_LOAD(result + d + v * KILN_VEC);
        }
        for (uint32_t key = 0; key < KEYS; key += BLOCK) {
            KILN_UNROLL
            for (uint32_t i = 0; i < BLOCK; i++) {
                const kiln_vec weight = KILN_VEC_SET(weights[key + i]);
                kiln_vec numbers[KILN_E4M3_VECS];
                kiln_e4m3_vecs(numbers, values + (key + i) * stride + d);
                KILN_UNROLL
                for (uint32_t v = 0; v < KILN_E4M3_VECS; v++)
                    sums[v][i] = KILN_VEC_FMA(weight, numbers[v], sums[v][i]);
            }
        }
        KILN_UNROLL
        for (uint32_t v = 0; v < KILN_E4M3_VECS; v++) {
            KILN_UNROLL
            for (uint32_t half = BLOCK / 2; half; half /= 2) {
                KILN_UNROLL
                for (uint32_t i = 0; i < half; i++)
                    sums[v][i] = KILN_VEC_ADD(sums[v][i], sums[v][i + half]);
            }
            KILN_VEC_STORE(result + d + v * KILN_VEC, sums[v][0]);
        }
    }
}

/* Whether codes are multiplied as they become numbers, without the tile: where all of it would be for one row. */
KILN_INLINE bool needs_no_tile(const state *held, const kiln_attention_args *plain, const kiln_attention_work *work,
                               uint32_t key) {
    return held->rows == 1 && work->key_end - key >= KEYS && plain->head_dim % KILN_E4M3_AT_A_TIME == 0;
}

KILN_INLINE void score_keys(state *held, const kiln_attention_codes_args *args, const kiln_sequence *s,
                            const kiln_attention_work *work, uint32_t key) {
    const kiln_attention_args *plain = &args->plain;
    if (!KEYS_ARE_E4M3 || !needs_no_tile(held, plain, work, key)) {
        load_tile(held, args, s, work, false, key);
        score_tile(held);
        return;
    }
    const uint64_t row = s->kv_first + key, stride = (uint64_t)plain->k_stride;
    const uint8_t *codes = head_of(plain, false, row, work->kv_head);
    for (uint32_t i = 0; i < KEYS; i++) {
        prefetch_next(plain, false, row + i, work->kv_head);
        held->key_scales[i] = key_scale_of(args, row + i, work->kv_head);
    }
    for (uint32_t i = 0; i < KEYS; i += KILN_VEC)
        score_codes(held->weights[0] + i, held->queries[0], codes + i * stride, stride, plain->head_dim);
}

KILN_INLINE void add_values(state *held, const kiln_attention_codes_args *args, const kiln_sequence *s,
                            const kiln_attention_work *work, uint32_t key) {
    const kiln_attention_args *plain = &args->plain;
    if (!needs_no_tile(held, plain, work, key)) {
        load_tile(held, args, s, work, true, key);
        add_tile(held);
        return;
    }
    const uint64_t row = s->kv_first + key;
    for (uint32_t i = 0; i < KEYS; i++)
        prefetch_next(plain, true, row + i, work->kv_head);
    add_codes(held->results[0], held->weights[0], head_of(plain, true, row, work->kv_head), (uint64_t)plain->v_stride,
              plain->head_dim);
}

KILN_INLINE void round_weights(float *weights) {
    for (uint32_t i = 0; i < KEYS; i++)
        weights[i] = kiln_weight_rounded(weights[i]);
}

#endif
