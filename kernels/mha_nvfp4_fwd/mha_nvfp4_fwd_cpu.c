/* mha_nvfp4_fwd on the CPU, the operator's definition: attention on q, k and v in NVFP4, v transposed.
 *
 * attention_codes_loop_cpu.h has the loop and its floor; a tile of v is transposed back a vector of channels at a time.
 * Test: build/tests/ops/mha_nvfp4_fwd_test. Bench: build/kiln bench mha_nvfp4_fwd --device cpu */
#include "kernels/common/formats/float4_cpu.h"

#include "kernels/mha_nvfp4_fwd/mha_nvfp4_fwd_args.h"

#define ATTEND         mha_nvfp4_fwd_attend
#define JOIN           mha_nvfp4_fwd_join
#define ATTEND_ARGS    kiln_attention_nvfp4_args
#define CODES_OF(args) (&(args)->codes)
#define VALUES_UNIT    1.0f
#include "kernels/common/attention/attention_codes_loop_cpu.h"

#include "kernels/common/attention/attention_nvfp4.h"

enum { BLOCK_KEYS = KILN_NVFP4_BLOCK, BLOCK_BYTES = KILN_NVFP4_BLOCK_BYTES };

/* The numbers of blocks of 16 that lie one behind the other, at most those of a head, times the scale. */
KILN_INLINE void blocks_load(float *to, const uint8_t *codes, const uint8_t *scales, float scale, uint32_t blocks) {
    kiln_e2m1_load(to, codes, blocks * BLOCK_KEYS);
    for (uint32_t block = 0; block < blocks; block++) {
        const float each = kiln_e4m3_value(scales[block]);
        KILN_INDEPENDENT
        for (uint32_t i = block * BLOCK_KEYS; i < (block + 1) * BLOCK_KEYS; i++)
            to[i] = to[i] * each * scale;
    }
}

/* The numbers of a head of q or k, given its number among all, and zeros to the end of its last block. */
KILN_INLINE void head_load(float *to, const kiln_attention_nvfp4_args *args, const void *codes, const uint8_t *blocks,
                           uint64_t number, float scale) {
    const uint32_t size = args->codes.plain.head_dim, count = (size + BLOCK_KEYS - 1) / BLOCK_KEYS;
    const uint64_t at = number * args->head_blocks;
    blocks_load(to, (const uint8_t *)codes + at * BLOCK_BYTES, blocks + at, scale, count);
    memset(to + size, 0, (count * BLOCK_KEYS - size) * sizeof *to);
}

KILN_INLINE void load_query(float *to, const kiln_attention_nvfp4_args *args, place at) {
    const kiln_attention_codes_args *codes = &args->codes;
    const uint32_t heads = codes->plain.kv_heads * codes->plain.group;
    const uint64_t scale = at.head * (uint64_t)codes->q_scale_rows + kiln_scale_at(codes->q_index, at.token);
    head_load(to, args, codes->plain.q, args->q_blocks, at.token * heads + at.head, codes->q_scales[scale]);
}

/* A vector of channels at a time. */
KILN_INLINE void add_values(state *held, const kiln_attention_nvfp4_args *args, const kiln_sequence *s,
                            const kiln_attention_work *work, uint32_t key) {
    const kiln_attention_args *plain = &args->codes.plain;
    const uint32_t size = plain->head_dim, keys = (uint32_t)kiln_min(work->key_end - key, KEYS);
    const uint32_t blocks = (keys + BLOCK_KEYS - 1) / BLOCK_KEYS;
    const uint64_t first =
        (uint64_t)kiln_value_tile(s->kv_first, work->batch) * KILN_VALUE_TILE_BLOCKS + key / BLOCK_KEYS;
    float channels[KILN_VEC][KEYS] = {{0}};
    for (uint32_t d = 0; d < held->padded; d += KILN_VEC) {
        for (uint32_t i = 0; i < KILN_VEC; i++) { /* beyond a head's last channel again the last */
            const uint64_t channel = (uint64_t)work->kv_head * size + kiln_min(d + i, size - 1);
            const uint64_t at = channel * args->value_blocks + first;
            blocks_load(channels[i], (const uint8_t *)plain->v + at * BLOCK_BYTES, args->v_blocks + at, 1.0f, blocks);
        }
        for (uint32_t i = 0; i < KEYS; i += KILN_VEC) {
            kiln_vec turned[KILN_VEC];
            KILN_UNROLL
            for (uint32_t j = 0; j < KILN_VEC; j++)
                turned[j] = KILN_VEC_LOAD(&channels[j][i]);
            kiln_vec_transpose(turned);
            KILN_UNROLL
            for (uint32_t j = 0; j < KILN_VEC; j++)
                KILN_VEC_STORE(&held->tile[i + j][d], turned[j]);
        }
    }
    for (uint32_t i = 0; i < KEYS; i++)
        memset(held->tile[i] + size, 0, (held->padded - size) * sizeof(float));
    add_tile(held);
}

KILN_INLINE void score_keys(state *held, const kiln_attention_nvfp4_args *args, const kiln_sequence *s,
                            const kiln_attention_work *work, uint32_t key) {
    const kiln_attention_codes_args *codes = &args->codes;
    const uint32_t kv_head = work->kv_head;
    for (uint32_t i = 0; i < KEYS; i++) {
        memset(held->tile[i], 0, held->padded * sizeof(float));
        held->key_scales[i] = 0.0f;
        if (key + i >= work->key_end) continue;
        const uint64_t row = s->kv_first + key + i;
        const uint64_t scale = kv_head * (uint64_t)codes->k_scale_rows + kiln_scale_at(codes->k_index, row);
        head_load(held->tile[i], args, codes->plain.k, args->k_blocks, row * codes->plain.kv_heads + kv_head, 1.0f);
        held->key_scales[i] = codes->k_scales[scale];
    }
    score_tile(held);
}

/* Times 2688: a tile's blocks are those of v. */
KILN_INLINE void round_weights(float *weights) {
    for (uint32_t first = 0; first < KEYS; first += BLOCK_KEYS) {
        float *block = weights + first, greatest = 0.0f;
        for (uint32_t i = 0; i < BLOCK_KEYS; i++)
            greatest = kiln_max(block[i], greatest);
        const float scale = kiln_e4m3_value((uint8_t)kiln_weights_scale(greatest));
        const float factor = kiln_weights_factor(scale);
        KILN_INDEPENDENT
        for (uint32_t i = 0; i < BLOCK_KEYS; i++)
            block[i] = kiln_weight_of_block(block[i], scale, factor);
    }
}
