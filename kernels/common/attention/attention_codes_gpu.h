/* Attention on codes of 8 bits: the device source of mha_int8_x_fp8_fwd and mha_fp8_fwd, which differ in what a code of
 * q and k is and in nothing else. attention_codes_loop_gpu.h has what they compute, their tiles and the floor.
 *
 * Includers define ATTEND and JOIN, the entries' names, and code_number(code), the number of a code of q and k with any
 * bits above its eight. Test: build/tests/ops/mha_codes_test. */
#ifndef KILN_KERNELS_COMMON_ATTENTION_ATTENTION_CODES_GPU_H
#define KILN_KERNELS_COMMON_ATTENTION_ATTENTION_CODES_GPU_H

#define ATTEND_ARGS    kiln_attention_codes_args
#define CODES_OF(args) (args)
#include "kernels/common/attention/attention_codes_loop_gpu.h"

typedef struct code_vector {
    uint32_t words[CODES / 4];
} __attribute__((aligned(CODES))) code_vector;

/* Four codes as f32, times the scale. */
KILN_INLINE quad numbers_of(uint32_t word, bool values, float scale) {
    quad out;
    KILN_UNROLL
    for (uint32_t i = 0; i < 4; i++)
        out.values[i] = (values ? kiln_e4m3_number(word >> 8 * i) : code_number(word >> 8 * i)) * scale;
    return out;
}

KILN_INLINE void load_tile(const kiln_attention_codes_args *args, const kiln_sequence *s,
                           const kiln_attention_work *work, float *tile, uint32_t stride, bool values, uint32_t key) {
    const kiln_attention_args *plain = &args->plain;
    const uint32_t kv_head = work->kv_head;
    uint32_t number = kiln_thread() / LOADERS, lane = kiln_thread() % LOADERS, last = work->key_end - 1 - key;
    uint32_t size = number <= last ? plain->head_dim : 0, whole = plain->wide ? size / CODES * CODES : 0;
    uint64_t place = s->kv_first + key + (number <= last ? number : last);
    const uint8_t *from = KILN_GLOBAL(const uint8_t, values ? plain->v : plain->k) + kv_head * plain->head_dim;
    from += place * (uint64_t)(values ? plain->v_stride : plain->k_stride);
    float *to = tile + number * stride, scale = 1.0f;
    if (!values)
        scale = KILN_GLOBAL(
            const float, args->k_scales)[kv_head * (uint64_t)args->k_scale_rows + kiln_scale_at(args->k_index, place)];
    KILN_LOOP
    for (uint32_t d = lane * CODES; d < whole; d += LOADERS * CODES) {
        code_vector vector = *(const code_vector *)(from + d);
        KILN_UNROLL
        for (uint32_t w = 0; w < CODES / 4; w++)
            *(quad *)(to + d + 4 * w) = numbers_of(vector.words[w], values, scale);
    }
    KILN_LOOP
    for (uint32_t d = whole + lane; d < stride; d += LOADERS)
        to[d] = d < size ? numbers_of(from[d], values, scale).values[0] : 0.0f;
}

KILN_INLINE void load_queries(const kiln_attention_codes_args *args, const kiln_sequence *s,
                              const kiln_attention_work *work, float *queries, uint32_t stride, uint32_t end) {
    const kiln_attention_args *plain = &args->plain;
    uint32_t lane = kiln_thread() % KILN_SUBGROUP;
    KILN_LOOP
    for (uint32_t r = kiln_thread() / KILN_SUBGROUP; r < plain->rows * SUBGROUPS; r += SUBGROUPS) {
        uint32_t number = work->row + r, query = number < end ? number / plain->group : 0;
        uint32_t head = work->kv_head * plain->group + number % plain->group;
        uint64_t token = s->q_first + query;
        const uint8_t *q =
            KILN_GLOBAL(const uint8_t, plain->q) + token * (uint64_t)plain->q_stride + head * plain->head_dim;
        float scale = KILN_GLOBAL(
            const float, args->q_scales)[head * (uint64_t)args->q_scale_rows + kiln_scale_at(args->q_index, token)];
        KILN_LOOP
        for (uint32_t d = lane; d < stride; d += KILN_SUBGROUP) {
            bool inside = number < end && d < plain->head_dim;
            queries[r * stride + d] = inside ? numbers_of(q[d], false, scale).values[0] : 0.0f;
        }
    }
}

KILN_INLINE float weight_rounded(float weight) {
    return kiln_weight_rounded(weight);
}

#endif
