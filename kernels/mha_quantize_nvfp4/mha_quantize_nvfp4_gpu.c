/* mha_quantize_nvfp4: q, k and v in NVFP4, v transposed, for attention on them.
 *
 * mha_quantize_nvfp4_channels and mha_quantize_nvfp4_join are told in kernels/common/attention/mha_quantize_gpu.h.
 * mha_quantize_nvfp4_codes: a block does 128 tokens of one head; blocks next to each other have the heads of the same
 * tokens, which are neighbours in memory. Of q and k a thread has whole blocks of 16 elements, as quantize_nvfp4 has
 * them, of several tokens, all of which it loads before it looks at the first; as many threads share a token as it has
 * blocks, a power of two. Of v a thread has 16 keys of as many channels as 8 bytes hold. Eight neighbours have the next
 * channels, so that a key is read by whole sectors, and the eight after them the next 16 keys, so that the codes of a
 * channel are written as whole sectors, too.
 *
 * Floor: k and v are read twice, q once, and 0.5625 bytes are written for each element. Measured on an H100 (driver
 * 580.159.04, 2026-11-26) 4096 tokens of 32 heads of q and 8 of k and v, of 128 elements of bf16: 125 us, where a copy
 * of as many bytes takes 27, with 8 elements a thread, one token at a time, a channel of v a thread, and codes by the
 * formulas of the CPU. Predicted, not measured, for what stands here: 35 us.
 * Test: build/tests/ops/mha_quantize_nvfp4_test. Bench: build/kiln bench mha_quantize_nvfp4 */
#include "kernels/common/device.h"
#include "kernels/common/late_args.h"
#include "kernels/mha_quantize_nvfp4/mha_quantize_nvfp4_args.h"
#include "kernels/mha_quantize_nvfp4/mha_quantize_nvfp4_scale.h"

#define CHANNELS mha_quantize_nvfp4_channels
#define JOIN     mha_quantize_nvfp4_join
#include "kernels/common/attention/mha_quantize_gpu.h"

#include "kernels/common/quantize/nvfp4_block_gpu.h"
#include "kernels/common/quantize/nvfp4_quickly.h"

enum {
    BLOCK = KILN_NVFP4_BLOCK,
    BITS = 8 * sizeof(kiln_element),
    WORDS = BLOCK * sizeof(kiln_element) / 4, /* of a block as it is loaded */
    CHANNELS_HELD = 8 / sizeof(kiln_element), /* of v, of a thread */
    CHANNEL_GROUPS = 8,                       /* of neighbouring threads that have the same keys */
#if defined(__HIP__)
    BLOCKS_AHEAD = 1
#else
    BLOCKS_AHEAD = 2
#endif
};

/* A block as it is loaded. */
typedef struct raw_block {
    kiln_vector vectors[BLOCK / KILN_VECTOR];
} raw_block;

/* Neighbouring channels of a key as they are loaded. */
typedef struct raw_channels {
    uint32_t words[2];
} __attribute__((aligned(8))) raw_channels;

/* Shifts an element in behind the last of `words` words, which are constants' indices after unrolling. */
KILN_INLINE void shift_in(uint32_t *words, uint32_t count, kiln_element element) {
    uint32_t last = 0;
    __builtin_memcpy(&last, &element, sizeof element);
    KILN_UNROLL
    for (uint32_t w = 0; w < count; w++) {
        const uint32_t next = w + 1 < count ? words[w + 1] : last;
        words[w] = BITS == 32 ? next : words[w] >> 16 | next << 16;
    }
}

/* ---- q and k ----------------------------------------------------------------------------------------------------- */

typedef struct tokens {
    const kiln_element *from; /* the head */
    uint8_t *codes, *blocks;
    float *scales;
    const float *means; /* NULL: none */
    uint64_t stride;
    uint32_t heads, number, first, end; /* tokens */
} tokens;

/* Loads the count elements that a head has of a block; zeros after them. */
KILN_INLINE raw_block block_load(const kiln_element *from, uint32_t count, uint32_t wide) {
    raw_block b;
    if (wide && count >= BLOCK) {
        KILN_UNROLL
        for (uint32_t i = 0; i < BLOCK / KILN_VECTOR; i++)
            b.vectors[i] = kiln_vector_load(from + i * KILN_VECTOR);
        return b;
    }
    uint32_t words[WORDS] = {0};
    KILN_LOOP
    for (uint32_t i = 0; i < BLOCK; i++)
        shift_in(words, WORDS, i < count ? from[i] : (kiln_element)0);
    KILN_UNROLL
    for (uint32_t i = 0; i < WORDS; i++)
        b.vectors[i / 4].words[i % 4] = words[i];
    return b;
}

/* The means of a block's channels of a sequence; zeros after them. */
KILN_INLINE void means_load(float *mean, const float *from, uint32_t count) {
    if (count >= BLOCK) {
        KILN_UNROLL
        for (uint32_t i = 0; i < BLOCK; i++)
            mean[i] = from[i];
        return;
    }
    KILN_LOOP
    for (uint32_t i = 0; i < BLOCK; i++) {
        KILN_UNROLL
        for (uint32_t j = 0; j + 1 < BLOCK; j++)
            mean[j] = mean[j + 1];
        mean[BLOCK - 1] = i < count ? from[i] : 0.0f;
    }
}

KILN_INLINE void tokens_codes(const kiln_mha_quantize_nvfp4_args *args, const tokens *of) {
    const kiln_mha_quantize_args *plain = &args->plain;
    uint32_t lanes_log2 = 2; /* threads of a token */
    while (1u << lanes_log2 < args->head_blocks)
        lanes_log2++;
    const uint32_t lane = kiln_thread() & ((1u << lanes_log2) - 1), d = lane * BLOCK, size = plain->head_dim;
    const uint32_t count = d < size ? size - d : 0, step = KILN_BLOCK >> lanes_log2;
    const uint32_t end = of->end - of->first < TOKENS ? of->end : of->first + TOKENS;
    uint32_t batch = plain->batch;
    float values[BLOCK], mean[BLOCK] = {0.0f};
    uint32_t token = of->first + (kiln_thread() >> lanes_log2);
    const kiln_element *from = of->from + token * of->stride + d;
    KILN_LOOP
    for (uint32_t round = of->first; round < end; round += BLOCKS_AHEAD * step) { /* the same for all threads */
        raw_block raw[BLOCKS_AHEAD];
        KILN_UNROLL
        for (uint32_t t = 0; t < BLOCKS_AHEAD; t++) {
            raw[t] = block_load(from, token + t * step < end ? count : 0, plain->wide);
            from += step * of->stride;
        }
        KILN_UNROLL
        for (uint32_t t = 0; t < BLOCKS_AHEAD; t++, token += step) {
            KILN_UNROLL
            for (uint32_t i = 0; i < BLOCK / KILN_VECTOR; i++)
                kiln_vector_values(values + i * KILN_VECTOR, raw[t].vectors[i]);
            if (of->means && token < end) {
                const uint32_t sequence = sequence_of_key(plain, token);
                const bool none = sequence == plain->batch;
                if (!none && sequence != batch)
                    means_load(mean, of->means + (uint64_t)sequence * plain->kv_heads * size + d, count);
                batch = none ? batch : sequence;
                KILN_UNROLL
                for (uint32_t i = 0; i < BLOCK; i++)
                    values[i] = none ? 0.0f : values[i] - mean[i];
            }
            const float block = kiln_nvfp4_block_greatest(values);
            float amax = block;
            KILN_LOOP
            for (uint32_t mask = 1; mask < 1u << lanes_log2; mask *= 2)
                amax = kiln_fast_max(amax, kiln_shuffle_xor(amax, mask));
            const float scale = kiln_nvfp4_global_quickly(amax), encode = kiln_nvfp4_encode_quickly(scale);
            const uint32_t of_block = kiln_nvfp4_block_scale(block, encode);
            const kiln_eight_bytes words =
                kiln_nvfp4_block_codes(values, block, kiln_nvfp4_factor_quickly(of_block, encode));
            if (token >= end) continue;
            const uint64_t place = ((uint64_t)token * of->heads + of->number) * args->head_blocks + lane;
            if (lane == 0) of->scales[token] = scale;
            if (lane >= args->head_blocks) continue;
            ((kiln_eight_bytes *)of->codes)[place] = words;
            of->blocks[place] = (uint8_t)of_block;
        }
    }
}

/* ---- v ----------------------------------------------------------------------------------------------------------- */

/* Loads `count` channels of a key one by one; zeros after them. */
KILN_INLINE raw_channels channels_load(const kiln_element *from, uint32_t count) {
    raw_channels c = {{0, 0}};
    KILN_UNROLL
    for (uint32_t i = 0; i < CHANNELS_HELD; i++)
        shift_in(c.words, 2, i < count ? from[i] : (kiln_element)0);
    return c;
}

/* The number of an element of a word. */
KILN_INLINE float number_of(uint32_t word, uint32_t element) {
#if defined(KILN_PART_f32)
    (void)element;
    return kiln_float(word);
#else
    return kiln_element_to_f32((kiln_element)(word >> element * 16));
#endif
}

/* The codes of one channel, whose block of keys has `count` keys; the element of the first words. */
KILN_INLINE kiln_eight_bytes channel_codes(const raw_channels *raw, uint32_t element, uint32_t count, float mean,
                                           float encode, uint8_t *scale) {
    float values[BLOCK];
    KILN_UNROLL
    for (uint32_t i = 0; i < BLOCK; i++)
        values[i] = number_of(raw[i].words[0], element) - mean;
    if (count < BLOCK) {
        KILN_UNROLL
        for (uint32_t i = 0; i < BLOCK; i++)
            values[i] = i < count ? values[i] : 0.0f;
    }
    const float greatest = kiln_nvfp4_block_greatest(values);
    const uint32_t of_block = kiln_nvfp4_block_scale(greatest, encode);
    *scale = (uint8_t)of_block;
    return kiln_nvfp4_block_codes(values, greatest, kiln_nvfp4_factor_quickly(of_block, encode));
}

/* A block of keys of a tile, of channels from d on. */
KILN_INLINE void channels_codes(const kiln_mha_quantize_nvfp4_args *args, uint32_t kv_head, uint32_t tile,
                                uint32_t block, uint32_t d) {
    const kiln_mha_quantize_args *plain = &args->plain;
    const uint32_t batch = sequence_of_tile(plain, tile), size = plain->head_dim, channels = size - d;
    const keys k = keys_of(plain, batch);
    const uint32_t key = (tile - kiln_value_tile(k.first, batch)) * KILN_VALUE_TILE + block * BLOCK;
    const uint32_t count = key < k.count ? k.count - key : 0;
    const uint64_t stride = (uint64_t)plain->v_stride,
                   channel = ((uint64_t)batch * plain->kv_heads + kv_head) * size + d;
    const float *scales = KILN_GLOBAL(const float, plain->v_scales) + channel;
    const float *means = plain->v_means ? KILN_GLOBAL(const float, plain->v_means) + channel : 0;
    const kiln_element *from =
        KILN_GLOBAL(const kiln_element, plain->v) + (k.first + (uint64_t)key) * stride + kv_head * size + d;
    uint64_t place = ((uint64_t)kv_head * size + d) * args->value_blocks + tile * KILN_VALUE_TILE_BLOCKS + block;
    raw_channels raw[BLOCK];
    if (plain->wide && channels >= CHANNELS_HELD && count >= BLOCK) {
        KILN_UNROLL
        for (uint32_t i = 0; i < BLOCK; i++, from += stride)
            raw[i] = *(const raw_channels *)from;
    } else {
        KILN_LOOP
        for (uint32_t i = 0; i < BLOCK; i++, from += stride) {
            KILN_UNROLL
            for (uint32_t j = 0; j + 1 < BLOCK; j++)
                raw[j] = raw[j + 1];
            raw[BLOCK - 1] = channels_load(from, i < count ? channels : 0);
        }
    }
    args = KILN_LATE_ARGS(kiln_mha_quantize_nvfp4_args, *args);
    kiln_eight_bytes *to = (kiln_eight_bytes *)KILN_GLOBAL(uint8_t, args->plain.v_codes);
    uint8_t *block_scales = KILN_GLOBAL(uint8_t, args->v_blocks);
    KILN_LOOP
    for (uint32_t c = 0; c < CHANNELS_HELD; c += CHANNELS_HELD / 2) { /* those of a word */
        KILN_UNROLL
        for (uint32_t e = 0; e < CHANNELS_HELD / 2; e++, place += args->value_blocks)
            if (c + e < channels)
                to[place] = channel_codes(raw, e, count, means ? means[c + e] : 0.0f,
                                          kiln_nvfp4_encode_quickly(scales[c + e]), &block_scales[place]);
        KILN_UNROLL
        for (uint32_t i = 0; i < BLOCK; i++)
            raw[i].words[0] = raw[i].words[1];
    }
}

/* Two tiles of v, of which groups of channels are divided among the threads. */
KILN_INLINE void values_codes(const kiln_mha_quantize_nvfp4_args *args, uint32_t kv_head, uint32_t first_tile_of) {
    const uint32_t size = args->plain.head_dim, groups = (size + CHANNELS_HELD - 1) / CHANNELS_HELD;
    const uint32_t rounds = (groups + CHANNEL_GROUPS - 1) / CHANNEL_GROUPS; /* of a tile */
    KILN_LOOP
    for (uint32_t i = kiln_thread(); i < 2 * rounds * CHANNEL_GROUPS * KILN_VALUE_TILE_BLOCKS; i += KILN_BLOCK) {
        const uint32_t round = i / (CHANNEL_GROUPS * KILN_VALUE_TILE_BLOCKS), second = round >= rounds;
        const uint32_t tile = first_tile_of + second, block = i / CHANNEL_GROUPS % KILN_VALUE_TILE_BLOCKS;
        const uint32_t group = (round - second * rounds) * CHANNEL_GROUPS + i % CHANNEL_GROUPS;
        if (group < groups && tile * KILN_VALUE_TILE_BLOCKS < args->value_blocks)
            channels_codes(KILN_LATE_ARGS(kiln_mha_quantize_nvfp4_args, *args), kv_head, tile, block,
                           group * CHANNELS_HELD);
    }
}

/* Without a bound NVIDIA's compiler takes more registers; where it converts to E2M1 it spills with that. */
#if defined(__CUDACC__)
#undef KILN_ENTRY_HEAD
#define KILN_ENTRY_HEAD extern "C" __global__ __launch_bounds__(KILN_BLOCK, KILN_E2M1_INSTRUCTION ? 2 : 3) void
#endif
KILN_ENTRY(mha_quantize_nvfp4_codes, kiln_mha_quantize_nvfp4_args) {
    const kiln_mha_quantize_args *plain = &args.plain;
    const uint32_t heads = plain->heads, kv_heads = plain->kv_heads, size = plain->head_dim;
    const uint32_t number = kiln_tile(), first = (uint32_t)kiln_block() * TOKENS;
    if (number >= heads + kv_heads) {
        values_codes(&args, number - heads - kv_heads, first / KILN_VALUE_TILE);
        return;
    }
    const bool is_key = number >= heads;
    tokens of;
    of.number = is_key ? number - heads : number;
    of.heads = is_key ? kv_heads : heads;
    of.first = first;
    of.end = is_key ? plain->kv_tokens : plain->tokens;
    if (first >= of.end) return;
    of.stride = (uint64_t)(is_key ? plain->k_stride : plain->q_stride);
    of.from = KILN_GLOBAL(const kiln_element, is_key ? plain->k : plain->q) + of.number * size;
    of.codes = KILN_GLOBAL(uint8_t, is_key ? plain->k_codes : plain->q_codes);
    of.blocks = KILN_GLOBAL(uint8_t, is_key ? args.k_blocks : args.q_blocks);
    of.scales = KILN_GLOBAL(float, is_key ? plain->k_scales : plain->q_scales) + of.number * (uint64_t)of.end;
    of.means = is_key ? KILN_GLOBAL(const float, plain->k_means) + of.number * size : 0;
    tokens_codes(&args, &of);
}
