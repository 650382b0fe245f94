/* Codes and weights of NVFP4, for attention_codes_cpu.h, which includes this. */

enum { BLOCK_KEYS = KILN_NVFP4_BLOCK, BLOCK_BYTES = KILN_NVFP4_BLOCK_BYTES };

/* A block's numbers, times the scale. */
KILN_INLINE void block_load(float *to, const uint8_t *codes, uint8_t block_scale, float scale) {
    const float each = kiln_e4m3_value(block_scale);
    KILN_INDEPENDENT
    for (uint32_t i = 0; i < BLOCK_KEYS; i++)
        to[i] = kiln_e2m1_value(codes[i / 2] >> i % 2 * 4 & 15) * each * scale;
}

/* The numbers of a head, the so-manieth of q or k, to the end of its last vector. */
KILN_INLINE void head_load(float *to, const kiln_attention_nvfp4_args *args, const void *codes, const uint8_t *blocks,
                           uint64_t number, float scale) {
    float block[BLOCK_KEYS];
    const uint32_t size = args->codes.plain.head_dim;
    for (uint32_t d = 0; d < size; d += BLOCK_KEYS) {
        const uint64_t at = number * args->head_blocks + d / BLOCK_KEYS;
        block_load(block, (const uint8_t *)codes + at * BLOCK_BYTES, blocks[at], scale);
        memcpy(to + d, block, kiln_min(size - d, BLOCK_KEYS) * sizeof *to);
    }
}

KILN_INLINE void load_query(float *to, const kiln_attention_nvfp4_args *args, place at) {
    const kiln_attention_codes_args *codes = &args->codes;
    const uint32_t heads = codes->plain.kv_heads * codes->plain.group;
    const uint64_t scale = at.head * (uint64_t)codes->q_scale_rows + kiln_scale_at(codes->q_index, at.token);
    head_load(to, args, codes->plain.q, args->q_blocks, at.token * heads + at.head, codes->q_scales[scale]);
}

/* The values of a tile's keys from `key` on, a channel and 16 keys at a time. */
KILN_INLINE void load_values(state *held, const kiln_attention_nvfp4_args *args, const kiln_sequence *s, uint32_t batch,
                             uint32_t kv_head, uint32_t key, uint32_t end) {
    const kiln_attention_args *plain = &args->codes.plain;
    const uint32_t size = plain->head_dim;
    const uint64_t first = (uint64_t)kiln_value_tile(s->kv_first, batch) * KILN_VALUE_TILE_BLOCKS + key / BLOCK_KEYS;
    for (uint32_t d = 0; d < size; d++) {
        const uint64_t channel = ((uint64_t)kv_head * size + d) * args->value_blocks + first;
        for (uint32_t i = 0; i < KEYS; i += BLOCK_KEYS) {
            float block[BLOCK_KEYS] = {0};
            const uint64_t at = channel + i / BLOCK_KEYS;
            if (key + i < end)
                block_load(block, (const uint8_t *)plain->v + at * BLOCK_BYTES, args->v_blocks[at], 1.0f);
            for (uint32_t j = 0; j < BLOCK_KEYS; j++)
                held->tile[i + j][d] = block[j];
        }
    }
    for (uint32_t i = 0; i < KEYS; i++)
        memset(held->tile[i] + size, 0, (held->padded - size) * sizeof(float));
}

/* Brings the tile's keys, or their values; zeros from end on. */
KILN_INLINE void load_tile(state *held, const kiln_attention_nvfp4_args *args, const kiln_sequence *s, bool values,
                           uint32_t batch, uint32_t kv_head, uint32_t key, uint32_t end) {
    const kiln_attention_codes_args *codes = &args->codes;
    if (values) {
        load_values(held, args, s, batch, kv_head, key, end);
        return;
    }
    for (uint32_t i = 0; i < KEYS; i++) {
        memset(held->tile[i], 0, held->padded * sizeof(float));
        if (key + i >= end) continue;
        const uint64_t row = s->kv_first + key + i;
        const uint64_t scale = kv_head * (uint64_t)codes->k_scale_rows + kiln_scale_at(codes->k_index, row);
        head_load(held->tile[i], args, codes->plain.k, args->k_blocks, row * codes->plain.kv_heads + kv_head,
                  codes->k_scales[scale]);
    }
}

/* A tile's weights as codes, times 2688: its blocks are those of v. */
KILN_INLINE void round_weights(float *weights) {
    for (uint32_t first = 0; first < KEYS; first += BLOCK_KEYS) {
        float *block = weights + first, greatest = 0.0f;
        for (uint32_t i = 0; i < BLOCK_KEYS; i++)
            greatest = kiln_max(block[i], greatest);
        const float scale = kiln_e4m3_value((uint8_t)kiln_weights_scale(greatest));
        const float factor = kiln_weights_factor(scale);
        for (uint32_t i = 0; i < BLOCK_KEYS; i++)
            block[i] = kiln_weight_of_block(block[i], scale, factor);
    }
}
