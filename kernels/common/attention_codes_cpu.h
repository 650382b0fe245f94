/* Attention on 8-bit codes on the CPU, for mha_int8_x_fp8_fwd and mha_fp8_fwd: the operators' definition.
 * attention_codes.h says how weights are rounded, attention_codes_loop_cpu.h has the loop and its floor. The products
 * of int8 codes, and of a key and its scale, are exact but for the rounding of f32.
 *
 * Includers define ATTEND and JOIN, the entries' names, and code_numbers(to, codes, count), the numbers of codes of q
 * and k. Test: build/tests/ops/mha_codes_test. */
#ifndef KILN_KERNELS_COMMON_ATTENTION_CODES_CPU_H
#define KILN_KERNELS_COMMON_ATTENTION_CODES_CPU_H

#define ATTEND_ARGS    kiln_attention_codes_args
#define CODES_OF(args) (args)
#include "kernels/common/attention_codes_loop_cpu.h"
#include "kernels/common/float8_cpu.h"

/* The numbers of a head of q or k times the scale. */
KILN_INLINE void load_scaled(float *to, const uint8_t *codes, uint32_t size, float scale) {
    code_numbers(to, codes, size);
    KILN_INDEPENDENT
    for (uint32_t d = 0; d < size; d++)
        to[d] *= scale;
}

KILN_INLINE void load_query(float *to, const kiln_attention_codes_args *args, place at) {
    const kiln_attention_args *plain = &args->plain;
    const uint8_t *q = (const uint8_t *)plain->q + at.token * (uint64_t)plain->q_stride;
    load_scaled(to, q + at.head * plain->head_dim, plain->head_dim,
                args->q_scales[at.head * (uint64_t)args->q_scale_rows + kiln_scale_at(args->q_index, at.token)]);
}

KILN_INLINE void load_tile(state *held, const kiln_attention_codes_args *args, const kiln_sequence *s,
                           const kiln_attention_work *work, bool values, uint32_t key) {
    const kiln_attention_args *plain = &args->plain;
    const uint32_t size = plain->head_dim, kv_head = work->kv_head;
    for (uint32_t i = 0; i < KEYS; i++) {
        float *to = held->tile[i];
        memset(to + size, 0, (held->padded - size) * sizeof *to);
        if (key + i >= work->key_end) {
            memset(to, 0, size * sizeof *to);
            continue;
        }
        uint64_t row = s->kv_first + key + i, stride = (uint64_t)(values ? plain->v_stride : plain->k_stride);
        const uint8_t *codes = (const uint8_t *)(values ? plain->v : plain->k) + row * stride + kv_head * size;
        if (values)
            kiln_e4m3_load(to, codes, size);
        else
            load_scaled(to, codes, size,
                        args->k_scales[kv_head * (uint64_t)args->k_scale_rows + kiln_scale_at(args->k_index, row)]);
    }
}

KILN_INLINE void round_weights(float *weights) {
    for (uint32_t i = 0; i < KEYS; i++)
        weights[i] = kiln_weight_rounded(weights[i]);
}

#endif
