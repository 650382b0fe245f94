/* mha_quantize: q, k and v as codes with scales, for attention on them.
 *
 * mha_quantize_channels and mha_quantize_join are told in kernels/common/mha_quantize_gpu.h. mha_quantize_codes: a
 * block does 128 tokens of one head of q, k or v; blocks next to each other have the heads of the same tokens, which
 * are neighbours in memory. A token is shared by as few threads as have 8 elements each, a power of two. What most
 * blocks do is in mha_quantize_block.h: those whose rows are aligned, whose keys are of one sequence, and whose numbers
 * are finite. What any can do is here, a token at a time: of q and k the greatest magnitudes of all tokens go through
 * shared memory, where tokens that share a scale find each other's; then tokens are read again, from the cache.
 *
 * Floor: k with means and v are read twice, q once, and a byte is written for each element. Not measured.
 * Test: build/tests/ops/mha_quantize_test. Bench: build/kiln bench mha_quantize */
#include "kernels/common/device.h"
#include "kernels/common/late_args.h"
#include "kernels/mha_quantize/mha_quantize_scale.h"

#define CHANNELS mha_quantize_channels
#define JOIN     mha_quantize_join
#include "kernels/common/mha_quantize_gpu.h"

#include "kernels/mha_quantize/mha_quantize_block.h"

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

/* The thread's piece of a token, less its mean, in values; zeros where the token belongs to no sequence. *batch is the
 * sequence that mean is of, before and after. */
KILN_INLINE void token_load(const kiln_mha_quantize_args *args, const head *h, uint32_t token, uint32_t *batch,
                            float *mean, float *values) {
    const bool is_key = h->kind != HEAD_Q;
    uint32_t sequence = is_key ? sequence_of_key(args, token) : 0;
    bool none = is_key && sequence == args->batch;
    if (is_key && h->means && !none && sequence != *batch) {
        KILN_UNROLL
        for (uint32_t i = 0; i < PIECE; i++)
            mean[i] = i < h->count ? h->means[(uint64_t)sequence * h->size + i] : 0.0f;
        *batch = sequence;
    }
    piece_load(values, h->from + token * h->stride, h->count, args->wide);
    KILN_UNROLL
    for (uint32_t i = 0; i < PIECE; i++)
        values[i] = none || i >= h->count ? 0.0f : values[i] - mean[i];
}

KILN_INLINE float columns_max(float value, uint32_t columns) {
    KILN_LOOP
    for (uint32_t mask = 1; mask < columns; mask *= 2)
        value = kiln_max(value, kiln_shuffle_xor(value, mask));
    return value;
}

/* Codes of q or k: a scale for each token, or for those of the block that share one. */
KILN_INLINE void tokens_codes(const kiln_mha_quantize_args *args, const head *h, float *amax) {
    const kiln_scale_index index = h->index;
    uint32_t batch = args->batch;
    float values[PIECE], mean[PIECE] = {0.0f}, factors[PIECE];
    KILN_LOOP
    for (uint32_t t = h->row; t < TOKENS; t += h->step) {
        float greatest = 0.0f;
        if (h->first + t < h->end) {
            token_load(args, h, h->first + t, &batch, mean, values);
            KILN_UNROLL
            for (uint32_t i = 0; i < PIECE; i++) /* NaN is not greater */
                greatest = kiln_max(kiln_float(kiln_bits(values[i]) & 0x7fffffffu), greatest);
        }
        greatest = columns_max(greatest, h->columns);
        if (h->column == 0) amax[t] = greatest;
    }
    kiln_barrier();
    KILN_LOOP
    for (uint32_t t = h->row; t < TOKENS; t += h->step) {
        uint64_t place = kiln_scale_at(index, h->first + t);
        float greatest = amax[t];
        if (index.high) {
            KILN_LOOP
            for (uint32_t other = h->column; other < TOKENS; other += h->columns)
                if (kiln_scale_at(index, h->first + other) == place) greatest = kiln_max(amax[other], greatest);
            greatest = columns_max(greatest, h->columns);
        }
        if (h->first + t >= h->end) continue;
        float scale = scale_of(greatest, greatest_code(args));
        if (h->column == 0) h->scales[place] = scale;
        token_load(args, h, h->first + t, &batch, mean, values);
        KILN_UNROLL
        for (uint32_t i = 0; i < PIECE; i++)
            factors[i] = 1.0f / scale;
        piece_store(h->to + (h->first + t) * h->codes_stride, values, factors, args->e4m3 != 0, h->count, args->wide);
    }
}

/* Codes of v: a scale for each channel. */
KILN_INLINE void values_codes(const kiln_mha_quantize_args *args, const head *h) {
    uint32_t of_mean = args->batch, of_factors = args->batch;
    float values[PIECE], mean[PIECE] = {0.0f}, factors[PIECE] = {0.0f};
    KILN_LOOP
    for (uint32_t t = h->first + h->row; t < h->first + TOKENS && t < h->end; t += h->step) {
        token_load(args, h, t, &of_mean, mean, values);
        uint32_t sequence = sequence_of_key(args, t);
        if (sequence != args->batch && sequence != of_factors) {
            KILN_UNROLL
            for (uint32_t i = 0; i < PIECE; i++)
                factors[i] = i < h->count ? 1.0f / h->scales[(uint64_t)sequence * h->size + i] : 0.0f;
            of_factors = sequence;
        }
        piece_store(h->to + t * h->codes_stride, values, factors, true, h->count, args->wide);
    }
}

KILN_ENTRY(mha_quantize_codes, kiln_mha_quantize_args) {
    KILN_SHARED shared_tokens shared;
    head h;
    if (!head_of(&h, &args, kiln_tile())) return; /* the whole block */
    if (args.wide && block_codes(&args, &h, &shared)) return;
    const kiln_mha_quantize_args *late = KILN_LATE_ARGS(kiln_mha_quantize_args, args);
    head_of(&h, late, kiln_tile());
    if (h.kind == HEAD_V)
        values_codes(late, &h);
    else
        tokens_codes(late, &h, shared.numbers);
}
