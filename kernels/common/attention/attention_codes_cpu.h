/* Attention on 8-bit codes on the CPU, for mha_int8_x_fp8_fwd and mha_fp8_fwd: the operators' definition.
 * attention_codes.h says how weights are rounded, attention_codes_loop_cpu.h has the loop and its floor.
 *
 * Includers define ATTEND and JOIN, the entries' names, code_numbers(to, codes, count), the numbers of codes of q and
 * k, and keys_load(to, codes, count), the same in KEYS_UNIT, which may write zeros behind the last, to the end of as
 * many codes of E4M3 as are converted at a time. Test: build/tests/ops/mha_codes_test. */
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

KILN_INLINE void load_tile(state *held, const kiln_attention_codes_args *args, const kiln_sequence *s,
                           const kiln_attention_work *work, bool values, uint32_t key) {
    const kiln_attention_args *plain = &args->plain;
    const uint32_t size = plain->head_dim, kv_head = work->kv_head;
    const float *scales = args->k_scales + kv_head * (uint64_t)args->k_scale_rows;
    const uint32_t count = (uint32_t)kiln_min(work->key_end - key, KEYS);
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t row = s->kv_first + key + i;
        const uint8_t *codes = head_of(plain, values, row, kv_head);
        const uint8_t *next = head_of(plain, !values, row + (values ? KEYS : 0), kv_head);
        for (uint32_t byte = 0; byte < size; byte += LINE)
            __builtin_prefetch(next + byte);
        float *to = held->tile[i];
        if (size < held->padded) memset(to + size, 0, (held->padded - size) * sizeof *to);
        if (values) {
            kiln_e4m3_load_units(to, codes, size);
            continue;
        }
        keys_load(to, codes, size);
        held->key_scales[i] = scales[kiln_scale_at(args->k_index, row)] * (1 / KEYS_UNIT);
    }
    for (uint32_t i = count; i < KEYS; i++) {
        memset(held->tile[i], 0, held->padded * sizeof(float));
        held->key_scales[i] = 0.0f;
    }
}

KILN_INLINE void round_weights(float *weights) {
    for (uint32_t i = 0; i < KEYS; i++)
        weights[i] = kiln_weight_rounded(weights[i]);
}

#endif
