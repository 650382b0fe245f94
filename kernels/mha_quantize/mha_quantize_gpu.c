/* mha_quantize: q, k and v as codes with scales, for attention on them.
 *
 * mha_quantize_channels and mha_quantize_join are told in kernels/common/mha_quantize_gpu.h. mha_quantize_codes: a
 * block does 128 tokens of one head of q, k or v, a subgroup one token at a time, with 8 elements for each thread. Of q
 * and k the greatest magnitudes of all its tokens go through shared memory, where tokens that share a scale find each
 * other's; then tokens are read again, from the cache.
 *
 * Floor: k with means and v are read twice, q once, and a byte is written for each element. Not measured.
 * Test: build/tests/ops/mha_quantize_test. Bench: build/kiln bench mha_quantize */
#include "kernels/common/device.h"
#include "kernels/mha_quantize/mha_quantize_scale.h"

#define CHANNELS mha_quantize_channels
#define JOIN     mha_quantize_join
#include "kernels/common/mha_quantize_gpu.h"

typedef struct piece {
    uint32_t words[PIECE / 4];
} __attribute__((aligned(PIECE))) piece;

KILN_INLINE void piece_store(uint8_t *codes, const float *values, const float *factors, bool e4m3, uint32_t count,
                             uint32_t wide) {
    piece p = {{0, 0}};
    KILN_UNROLL
    for (uint32_t i = 0; i < PIECE; i++)
        p.words[i / 4] |= (uint32_t)code_of(values[i] * factors[i], e4m3) << i % 4 * 8;
    if (wide && count >= PIECE) {
        *(piece *)codes = p;
        return;
    }
    KILN_UNROLL
    for (uint32_t i = 0; i < PIECE; i++)
        if (i < count) codes[i] = (uint8_t)(p.words[i / 4] >> i % 4 * 8);
}

/* What of a head a block makes codes of: 128 tokens. */
typedef struct head {
    const kiln_element *from;
    uint8_t *to;
    const float *means; /* [batch, kv_heads, head_dim], from the head on; NULL: none */
    uint64_t stride, codes_stride;
    uint32_t first, end; /* tokens */
    uint32_t d, count;   /* the thread's piece, and the elements of the head from it on */
    uint32_t size;       /* from sequence to sequence of means */
} head;

/* The thread's piece of a token, less its mean, in values; zeros where the token belongs to no sequence. *batch is the
 * sequence that mean is of, before and after. */
KILN_INLINE void token_load(const kiln_mha_quantize_args *args, const head *h, uint32_t token, bool is_key,
                            uint32_t *batch, float *mean, float *values) {
    uint32_t sequence = is_key ? sequence_of_key(args, token) : 0;
    bool none = is_key && sequence == args->batch;
    if (is_key && h->means && !none && sequence != *batch) {
        KILN_UNROLL
        for (uint32_t i = 0; i < PIECE; i++)
            mean[i] = i < h->count ? h->means[(uint64_t)sequence * h->size + h->d + i] : 0.0f;
        *batch = sequence;
    }
    piece_load(values, h->from + token * h->stride, h->count, args->wide);
    KILN_UNROLL
    for (uint32_t i = 0; i < PIECE; i++)
        values[i] = none || i >= h->count ? 0.0f : values[i] - mean[i];
}

KILN_INLINE float subgroup_max(float value) {
    KILN_UNROLL
    for (uint32_t mask = 1; mask < KILN_SUBGROUP; mask *= 2)
        value = kiln_max(value, kiln_shuffle_xor(value, mask));
    return value;
}

/* Codes of q or k: a scale for each token, or for those of the block that share one. */
KILN_INLINE void tokens_codes(const kiln_mha_quantize_args *args, const head *h, bool is_key, kiln_scale_index index,
                              float *scales, float *amax) {
    uint32_t subgroup = kiln_thread() / KILN_SUBGROUP, lane = kiln_thread() % KILN_SUBGROUP, batch = args->batch;
    float values[PIECE], mean[PIECE] = {0.0f}, factors[PIECE];
    KILN_LOOP
    for (uint32_t t = subgroup; t < TOKENS; t += SUBGROUPS) {
        float greatest = 0.0f;
        if (h->first + t < h->end) {
            token_load(args, h, h->first + t, is_key, &batch, mean, values);
            KILN_UNROLL
            for (uint32_t i = 0; i < PIECE; i++) /* NaN is not greater */
                greatest = kiln_max(kiln_float(kiln_bits(values[i]) & 0x7fffffffu), greatest);
        }
        greatest = subgroup_max(greatest);
        if (lane == 0) amax[t] = greatest;
    }
    kiln_barrier();
    KILN_LOOP
    for (uint32_t t = subgroup; t < TOKENS && h->first + t < h->end; t += SUBGROUPS) {
        uint64_t place = kiln_scale_at(index, h->first + t);
        float greatest = amax[t];
        if (index.high) {
            KILN_LOOP
            for (uint32_t other = lane; other < TOKENS; other += KILN_SUBGROUP)
                if (kiln_scale_at(index, h->first + other) == place) greatest = kiln_max(amax[other], greatest);
            greatest = subgroup_max(greatest);
        }
        float scale = scale_of(greatest, greatest_code(args));
        if (lane == 0) scales[place] = scale;
        token_load(args, h, h->first + t, is_key, &batch, mean, values);
        KILN_UNROLL
        for (uint32_t i = 0; i < PIECE; i++)
            factors[i] = 1.0f / scale;
        piece_store(h->to + (h->first + t) * h->codes_stride, values, factors, args->e4m3 != 0, h->count, args->wide);
    }
}

/* Codes of v: a scale for each channel. */
KILN_INLINE void values_codes(const kiln_mha_quantize_args *args, const head *h, const float *scales) {
    uint32_t subgroup = kiln_thread() / KILN_SUBGROUP, of_mean = args->batch, of_factors = args->batch;
    float values[PIECE], mean[PIECE] = {0.0f}, factors[PIECE] = {0.0f};
    KILN_LOOP
    for (uint32_t t = h->first + subgroup; t < h->first + TOKENS && t < h->end; t += SUBGROUPS) {
        token_load(args, h, t, true, &of_mean, mean, values);
        uint32_t sequence = sequence_of_key(args, t);
        if (sequence != args->batch && sequence != of_factors) {
            KILN_UNROLL
            for (uint32_t i = 0; i < PIECE; i++)
                factors[i] = i < h->count ? 1.0f / scales[(uint64_t)sequence * h->size + h->d + i] : 0.0f;
            of_factors = sequence;
        }
        piece_store(h->to + t * h->codes_stride, values, factors, true, h->count, args->wide);
    }
}

KILN_ENTRY(mha_quantize_codes, kiln_mha_quantize_args) {
    KILN_SHARED float amax[TOKENS];
    uint32_t number = (uint32_t)kiln_block(), size = args.head_dim, heads = args.heads, end = args.tokens;
    const void *from = args.q;
    uint8_t *codes = args.q_codes;
    float *scales = args.q_scales;
    const float *means = 0;
    uint64_t stride = (uint64_t)args.q_stride, scale_rows = (uint64_t)args.q_scale_rows;
    kiln_scale_index index = args.q_index;
    bool is_key = number >= heads, is_value = number >= heads + args.kv_heads;
    if (is_key) {
        number -= heads + (is_value ? args.kv_heads : 0);
        from = is_value ? args.v : args.k;
        codes = is_value ? args.v_codes : args.k_codes;
        scales = is_value ? args.v_scales : args.k_scales;
        means = is_value ? args.v_means : args.k_means;
        stride = (uint64_t)(is_value ? args.v_stride : args.k_stride);
        scale_rows = is_value ? size : (uint64_t)args.k_scale_rows;
        index = args.k_index;
        heads = args.kv_heads;
        end = args.kv_tokens;
    }
    head h;
    h.first = kiln_tile() * TOKENS;
    h.end = end;
    if (number >= heads || !codes || h.first >= end) return; /* the whole block */
    h.d = kiln_thread() % KILN_SUBGROUP * PIECE;
    h.count = h.d < size ? size - h.d : 0;
    h.size = args.kv_heads * size;
    h.from = KILN_GLOBAL(const kiln_element, from) + number * size + h.d;
    h.to = KILN_GLOBAL(uint8_t, codes) + number * size + h.d;
    h.means = means ? KILN_GLOBAL(const float, means) + number * size : 0;
    h.stride = stride;
    h.codes_stride = heads * (uint64_t)size;
    scales = KILN_GLOBAL(float, scales) + number * scale_rows;
    if (is_value)
        values_codes(&args, &h, scales);
    else
        tokens_codes(&args, &h, is_key, index, scales, amax);
}
