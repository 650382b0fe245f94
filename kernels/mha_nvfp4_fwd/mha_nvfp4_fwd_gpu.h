/* The portable kernels of mha_nvfp4_fwd, on all targets: attention on q, k and v in NVFP4, v transposed.
 *
 * attention_codes_loop_gpu.h has the loop and its floor. Of a tile of values a thread has 16 keys of a channel; of the
 * weights of a row 16 threads have a block, whose scale they find together. Test: build/tests/ops/mha_nvfp4_fwd_test.
 */
#ifndef KILN_KERNELS_MHA_NVFP4_FWD_GPU_H
#define KILN_KERNELS_MHA_NVFP4_FWD_GPU_H

#include "kernels/mha_nvfp4_fwd/mha_nvfp4_fwd_args.h"

#define ATTEND         mha_nvfp4_fwd_attend
#define JOIN           mha_nvfp4_fwd_join
#define ATTEND_ARGS    kiln_attention_nvfp4_args
#define CODES_OF(args) (&(args)->codes)
#include "kernels/common/attention/attention_codes_loop_gpu.h"

#include "kernels/common/attention/attention_nvfp4.h"

enum {
    BLOCK = KILN_NVFP4_BLOCK,
    BLOCK_WORDS = BLOCK / 8,
    TILE_BLOCKS = KEYS / BLOCK,
    CHANNELS = KILN_BLOCK / TILE_BLOCKS /* of v that a block loads at once */
};

typedef struct block_codes {
    uint32_t words[BLOCK_WORDS];
} __attribute__((aligned(KILN_NVFP4_BLOCK_BYTES))) block_codes;

/* Four codes, the lowest of a word, as f32, times the scales of their block and of their token. */
KILN_INLINE quad numbers_of(uint32_t word, float block, float scale) {
    quad out;
    KILN_UNROLL
    for (uint32_t i = 0; i < 4; i++)
        out.values[i] = kiln_e2m1_number(word >> 4 * i) * block * scale;
    return out;
}

/* Puts a head of k, of so many blocks, into shared memory as f32 by LOADERS threads: zeros behind its last block. */
KILN_INLINE void head_load(float *to, const uint8_t *codes, const uint8_t *blocks, uint32_t count, uint32_t stride,
                           float scale) {
    KILN_LOOP
    for (uint32_t block = kiln_thread() % LOADERS; block * BLOCK < stride; block += LOADERS) {
        block_codes own = {{0}};
        float of_block = 0.0f;
        if (block < count) {
            own = ((const block_codes *)codes)[block];
            of_block = kiln_e4m3_number(blocks[block]);
        }
        KILN_UNROLL
        for (uint32_t i = 0; i < BLOCK; i += 4)
            if (block * BLOCK + i < stride)
                *(quad *)(to + block * BLOCK + i) = numbers_of(own.words[i / 8] >> i % 8 * 4, of_block, scale);
    }
}

/* Puts a tile of values into shared memory: a thread has 16 keys of a channel. */
KILN_INLINE void load_values(const kiln_attention_nvfp4_args *args, const kiln_sequence *s,
                             const kiln_attention_work *work, float *tile, uint32_t stride, uint32_t key) {
    const kiln_attention_args *plain = &args->codes.plain;
    const uint32_t size = plain->head_dim, half = kiln_thread() / CHANNELS, first = key + half * BLOCK;
    const uint64_t start = (uint64_t)kiln_value_tile(s->kv_first, work->batch) * KILN_VALUE_TILE_BLOCKS + first / BLOCK;
    KILN_LOOP
    for (uint32_t d = kiln_thread() % CHANNELS; d < stride; d += CHANNELS) {
        block_codes own = {{0}};
        float scale = 0.0f;
        if (d < size && first < work->key_end) {
            const uint64_t at = ((uint64_t)work->kv_head * size + d) * args->value_blocks + start;
            own = ((const block_codes *)KILN_GLOBAL(const uint8_t, plain->v))[at];
            scale = kiln_e4m3_number(KILN_GLOBAL(const uint8_t, args->v_blocks)[at]);
        }
        KILN_UNROLL
        for (uint32_t i = 0; i < BLOCK; i++)
            tile[(half * BLOCK + i) * stride + d] = kiln_e2m1_number(own.words[i / 8] >> i % 8 * 4) * scale;
    }
}

KILN_INLINE void load_tile(const kiln_attention_nvfp4_args *args, const kiln_sequence *s,
                           const kiln_attention_work *work, float *tile, uint32_t stride, bool values, uint32_t key) {
    const kiln_attention_codes_args *codes = &args->codes;
    if (values) {
        load_values(args, s, work, tile, stride, key);
        return;
    }
    const uint32_t number = kiln_thread() / LOADERS, last = work->key_end - 1 - key;
    const uint64_t row = s->kv_first + key + (number <= last ? number : last);
    const uint64_t place = (row * codes->plain.kv_heads + work->kv_head) * args->head_blocks;
    const float scale = KILN_GLOBAL(
        const float,
        codes->k_scales)[work->kv_head * (uint64_t)codes->k_scale_rows + kiln_scale_at(codes->k_index, row)];
    head_load(tile + number * stride, KILN_GLOBAL(const uint8_t, codes->plain.k) + place * KILN_NVFP4_BLOCK_BYTES,
              KILN_GLOBAL(const uint8_t, args->k_blocks) + place, number <= last ? args->head_blocks : 0, stride,
              number <= last ? scale : 0.0f);
}

/* A thread has the elements that it wants again for their means. */
KILN_INLINE void load_queries(const kiln_attention_nvfp4_args *args, const kiln_sequence *s,
                              const kiln_attention_work *work, float *queries, uint32_t stride, uint32_t end) {
    const kiln_attention_codes_args *codes = &args->codes;
    const uint32_t group = codes->plain.group, heads = codes->plain.kv_heads * group;
    KILN_LOOP
    for (uint32_t r = kiln_thread() / KILN_SUBGROUP; r < codes->plain.rows * SUBGROUPS; r += SUBGROUPS) {
        const uint32_t number = work->row + r, own = number < end ? number : end - 1;
        const uint32_t head = work->kv_head * group + own % group;
        const uint64_t token = s->q_first + own / group, place = (token * heads + head) * args->head_blocks;
        const uint8_t *from = KILN_GLOBAL(const uint8_t, codes->plain.q) + place * KILN_NVFP4_BLOCK_BYTES;
        const uint8_t *blocks = KILN_GLOBAL(const uint8_t, args->q_blocks) + place;
        const float scale = KILN_GLOBAL(
            const float, codes->q_scales)[head * (uint64_t)codes->q_scale_rows + kiln_scale_at(codes->q_index, token)];
        KILN_LOOP
        for (uint32_t d = kiln_thread() % KILN_SUBGROUP; d < stride; d += KILN_SUBGROUP) {
            float value = 0.0f;
            if (number < end && d < codes->plain.head_dim)
                value =
                    kiln_e2m1_number((uint32_t)from[d / 2] >> d % 2 * 4) * kiln_e4m3_number(blocks[d / BLOCK]) * scale;
            queries[r * stride + d] = value;
        }
    }
}

/* Times 2688: 16 threads have a block. */
KILN_INLINE float weight_rounded(float weight) {
    float greatest = weight;
    KILN_UNROLL
    for (uint32_t mask = 1; mask < BLOCK; mask *= 2)
        greatest = kiln_max(greatest, kiln_shuffle_xor(greatest, mask));
    const float scale = kiln_e4m3_number(kiln_weights_scale(greatest));
    return kiln_weight_of_block(weight, scale, kiln_weights_factor(scale));
}

#endif
