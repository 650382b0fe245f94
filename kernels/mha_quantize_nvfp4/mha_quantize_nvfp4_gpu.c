/* mha_quantize_nvfp4: q, k and v in NVFP4, v transposed, for attention on them.
 *
 * mha_quantize_nvfp4_channels and mha_quantize_nvfp4_join are told in kernels/common/mha_quantize_gpu.h.
 * mha_quantize_nvfp4_codes: a block does 128 tokens of one head of q or k, a subgroup one token at a time, with 8
 * elements for each thread, of which two neighbours have a block of 16. Of v it does 128 keys of one head: a thread has
 * a channel of 64 keys, whose codes it writes as a sector, and reads what threads next to it read the neighbours of.
 *
 * Floor: k and v are read twice, q once, and 0.5625 bytes are written for each element. Not measured.
 * Test: build/tests/ops/mha_quantize_nvfp4_test. Bench: build/kiln bench mha_quantize_nvfp4 */
#include "kernels/common/device.h"
#include "kernels/mha_quantize_nvfp4/mha_quantize_nvfp4_args.h"
#include "kernels/mha_quantize_nvfp4/mha_quantize_nvfp4_scale.h"

#define CHANNELS mha_quantize_nvfp4_channels
#define JOIN     mha_quantize_nvfp4_join
#include "kernels/common/mha_quantize_gpu.h"

#include "kernels/common/encode_gpu.h"

enum { BLOCK = KILN_NVFP4_BLOCK, WORDS = BLOCK / 8, HALF = KILN_BLOCK / 2 };

/* A block's codes. */
typedef struct codes {
    uint32_t words[WORDS];
} __attribute__((aligned(KILN_NVFP4_BLOCK_BYTES))) codes;

KILN_INLINE float magnitude(float value) {
    return kiln_float(kiln_bits(value) & 0x7fffffffu);
}

/* The codes of 8 elements. */
KILN_INLINE uint32_t word_of(const float *values, float factor) {
    float products[8];
    KILN_UNROLL
    for (uint32_t i = 0; i < 8; i++)
        products[i] = values[i] * factor;
    return kiln_e2m1_eight(products);
}

/* Of q or of k. */
typedef struct tokens {
    const kiln_element *from; /* the head */
    uint8_t *codes, *blocks;
    float *scales;
    const float *means; /* NULL: none */
    uint64_t stride;
    uint32_t heads, number, first, end; /* tokens */
} tokens;

KILN_INLINE void tokens_codes(const kiln_mha_quantize_nvfp4_args *args, const tokens *of) {
    const kiln_mha_quantize_args *plain = &args->plain;
    const uint32_t lane = kiln_thread() % KILN_SUBGROUP, d = lane * PIECE, size = plain->head_dim;
    const uint32_t count = d < size ? size - d : 0;
    uint32_t batch = plain->batch;
    float values[PIECE], mean[PIECE] = {0.0f};
    KILN_LOOP
    for (uint32_t t = of->first + kiln_thread() / KILN_SUBGROUP; t < of->first + TOKENS && t < of->end;
         t += SUBGROUPS) {
        const uint32_t sequence = of->means ? sequence_of_key(plain, t) : 0;
        const bool none = of->means && sequence == plain->batch;
        if (of->means && !none && sequence != batch) {
            KILN_UNROLL
            for (uint32_t i = 0; i < PIECE; i++)
                mean[i] = i < count ? of->means[(uint64_t)sequence * plain->kv_heads * size + d + i] : 0.0f;
            batch = sequence;
        }
        piece_load(values, of->from + t * of->stride + d, count, plain->wide);
        float own = 0.0f;
        KILN_UNROLL
        for (uint32_t i = 0; i < PIECE; i++) { /* NaN is not greater */
            values[i] = none || i >= count ? 0.0f : values[i] - mean[i];
            own = kiln_max(magnitude(values[i]), own);
        }
        const float block = kiln_max(own, kiln_shuffle_xor(own, 1));
        float amax = block;
        KILN_UNROLL
        for (uint32_t mask = 2; mask < KILN_SUBGROUP; mask *= 2)
            amax = kiln_max(amax, kiln_shuffle_xor(amax, mask));
        const float scale = kiln_nvfp4_global(amax, 0), encode = 1.0f / scale;
        const uint32_t of_block = kiln_nvfp4_scale(kiln_bits(block), encode);
        const uint32_t word = word_of(values, kiln_nvfp4_factor(of_block, encode));
        const uint64_t place = ((uint64_t)t * of->heads + of->number) * args->head_blocks + lane / 2;
        if (lane == 0) of->scales[t] = scale;
        if (lane / 2 >= args->head_blocks) continue;
        ((uint32_t *)of->codes)[2 * place + lane % 2] = word;
        if (lane % 2 == 0) of->blocks[place] = (uint8_t)of_block;
    }
}

/* A channel of a tile of v. */
KILN_INLINE void channel_codes(const kiln_mha_quantize_nvfp4_args *args, uint32_t kv_head, uint32_t tile, uint32_t d) {
    const kiln_mha_quantize_args *plain = &args->plain;
    const uint32_t batch = sequence_of_tile(plain, tile), size = plain->head_dim;
    const keys k = keys_of(plain, batch);
    const uint32_t key = (tile - kiln_value_tile(k.first, batch)) * KILN_VALUE_TILE;
    const uint64_t channel = ((uint64_t)batch * plain->kv_heads + kv_head) * size + d;
    const float encode = 1.0f / KILN_GLOBAL(const float, plain->v_scales)[channel];
    const float mean = plain->v_means ? KILN_GLOBAL(const float, plain->v_means)[channel] : 0.0f;
    const kiln_element *from = KILN_GLOBAL(const kiln_element, plain->v) + kv_head * size + d;
    const uint64_t place = ((uint64_t)kv_head * size + d) * args->value_blocks + tile * KILN_VALUE_TILE_BLOCKS;
    uint32_t scales = 0;
    KILN_LOOP
    for (uint32_t block = 0; block < KILN_VALUE_TILE_BLOCKS; block++) {
        float values[BLOCK], amax = 0.0f;
        KILN_UNROLL
        for (uint32_t i = 0; i < BLOCK; i++) {
            const uint32_t at = key + block * BLOCK + i;
            values[i] = 0.0f;
            if (at < k.count)
                values[i] = kiln_element_to_f32(from[(k.first + (uint64_t)at) * (uint64_t)plain->v_stride]) - mean;
            amax = kiln_max(magnitude(values[i]), amax);
        }
        const uint32_t scale = kiln_nvfp4_scale(kiln_bits(amax), encode);
        const float factor = kiln_nvfp4_factor(scale, encode);
        codes out;
        KILN_UNROLL
        for (uint32_t w = 0; w < WORDS; w++)
            out.words[w] = word_of(values + 8 * w, factor);
        ((codes *)KILN_GLOBAL(uint8_t, plain->v_codes))[place + block] = out;
        scales |= scale << 8 * block;
    }
    *(uint32_t *)(KILN_GLOBAL(uint8_t, args->v_blocks) + place) = scales;
}

KILN_ENTRY(mha_quantize_nvfp4_codes, kiln_mha_quantize_nvfp4_args) {
    const kiln_mha_quantize_args *plain = &args.plain;
    const uint32_t heads = plain->heads, kv_heads = plain->kv_heads, size = plain->head_dim;
    uint32_t number = (uint32_t)kiln_block();
    if (number >= heads + kv_heads) {
        number -= heads + kv_heads;
        const uint32_t tile = kiln_tile() * 2 + kiln_thread() / HALF;
        if (number >= kv_heads || tile * KILN_VALUE_TILE_BLOCKS >= args.value_blocks) return;
        KILN_LOOP
        for (uint32_t d = kiln_thread() % HALF; d < size; d += HALF)
            channel_codes(&args, number, tile, d);
        return;
    }
    const bool is_key = number >= heads;
    tokens of;
    of.number = is_key ? number - heads : number;
    of.heads = is_key ? kv_heads : heads;
    of.first = kiln_tile() * TOKENS;
    of.end = is_key ? plain->kv_tokens : plain->tokens;
    of.stride = (uint64_t)(is_key ? plain->k_stride : plain->q_stride);
    of.from = KILN_GLOBAL(const kiln_element, is_key ? plain->k : plain->q) + of.number * size;
    of.codes = KILN_GLOBAL(uint8_t, is_key ? plain->k_codes : plain->q_codes);
    of.blocks = KILN_GLOBAL(uint8_t, is_key ? args.k_blocks : args.q_blocks);
    of.scales = KILN_GLOBAL(float, is_key ? plain->k_scales : plain->q_scales) + of.number * (uint64_t)of.end;
    of.means = is_key ? KILN_GLOBAL(const float, plain->k_means) + of.number * size : 0;
    tokens_codes(&args, &of);
}
