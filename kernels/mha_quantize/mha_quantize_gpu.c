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

/* Writes the codes of a piece. An array that is not indexed by constants would not stay in registers, so that elements
 * take turns in the first place. */
KILN_INLINE void piece_store(uint8_t *codes, float *values, float *factors, bool e4m3, uint32_t count, uint32_t wide) {
    uint64_t bytes = 0;
    KILN_LOOP
    for (uint32_t i = 0; i < PIECE; i++) {
        const float value = values[0], factor = factors[0];
        bytes = bytes >> 8 | (uint64_t)code_of(value * factor, e4m3) << 56;
        KILN_UNROLL
        for (uint32_t j = 0; j + 1 < PIECE; j++) {
            values[j] = values[j + 1];
            factors[j] = factors[j + 1];
        }
        values[PIECE - 1] = value;
        factors[PIECE - 1] = factor;
    }
    if (wide && count >= PIECE) {
        const piece whole = {{(uint32_t)bytes, (uint32_t)(bytes >> 32)}};
        *(piece *)codes = whole;
        return;
    }
    KILN_LOOP
    for (uint32_t i = 0; i < PIECE && i < count; i++)
        codes[i] = (uint8_t)(bytes >> 8 * i);
}

/* The thread's piece of a token, less its mean, in values; zeros where the token belongs to no sequence. *batch is the
 * sequence that mean is of, before and after. */
KILN_INLINE void token_load(const kiln_mha_quantize_args *args, const head *h, uint32_t token, uint32_t *batch,
                            float *mean, float *values) {
    const uint32_t sequence = h->kind == HEAD_Q ? 0 : sequence_of_key(args, token);
    const bool none = h->kind != HEAD_Q && sequence == args->batch;
    if (!none && sequence != *batch) {
        piece_channels(mean, h->means, h, sequence);
        *batch = sequence;
    }
    piece_load(values, h->from + token * h->stride, h->count, args->wide);
    KILN_UNROLL
    for (uint32_t i = 0; i < PIECE; i++)
        values[i] = none ? 0.0f : values[i] - mean[i];
}

KILN_INLINE float columns_max(float value, uint32_t columns) {
    KILN_LOOP
    for (uint32_t mask = 1; mask < columns; mask *= 2)
        value = kiln_max(value, kiln_shuffle_xor(value, mask));
    return value;
}

/* The factors of v's channels. */
KILN_INLINE void piece_factors(float *factors, const head *h, uint32_t sequence) {
    piece_channels(factors, h->scales, h, sequence);
    KILN_LOOP
    for (uint32_t i = 0; i < PIECE; i++) {
        const float factor = 1.0f / factors[0];
        KILN_UNROLL
        for (uint32_t j = 0; j + 1 < PIECE; j++)
            factors[j] = factors[j + 1];
        factors[PIECE - 1] = factor;
    }
}

/* Of each token of q or k, or of those of the block that share one, the scale is found; each channel of v has its own.
 * All threads of the block call this, but of v any may do so alone. */
KILN_INLINE void tokens_codes(const kiln_mha_quantize_args *args, const head *h, float *amax) {
    const kiln_scale_index index = h->index;
    uint32_t batch = args->batch;
    float values[PIECE], mean[PIECE] = {0.0f}, factors[PIECE] = {0.0f};
    KILN_LOOP
    for (uint32_t t = h->row; t < TOKENS && h->kind != HEAD_V; t += h->step) {
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
    if (h->kind != HEAD_V) kiln_barrier();
    KILN_LOOP
    for (uint32_t t = h->row; t < TOKENS; t += h->step) {
        float factor = 0.0f;
        if (h->kind != HEAD_V) {
            uint64_t place = kiln_scale_at(index, h->first + t);
            float greatest = amax[t];
            if (index.high) {
                KILN_LOOP
                for (uint32_t other = h->column; other < TOKENS; other += h->columns)
                    if (kiln_scale_at(index, h->first + other) == place) greatest = kiln_max(amax[other], greatest);
                greatest = columns_max(greatest, h->columns);
            }
            float scale = scale_of(greatest, greatest_code(args));
            if (h->column == 0 && h->first + t < h->end) h->scales[place] = scale;
            factor = 1.0f / scale;
        }
        if (h->first + t >= h->end) continue;
        const uint32_t before = batch;
        token_load(args, h, h->first + t, &batch, mean, values);
        if (h->kind == HEAD_V) {
            if (batch != before) piece_factors(factors, h, batch);
        } else {
            KILN_UNROLL
            for (uint32_t i = 0; i < PIECE; i++)
                factors[i] = factor;
        }
        piece_store(h->to + (h->first + t) * h->codes_stride, values, factors, h->kind == HEAD_V || args->e4m3,
                    h->count, args->wide);
    }
}

KILN_ENTRY(mha_quantize_codes, kiln_mha_quantize_args) {
    KILN_SHARED shared_numbers shared;
    head h;
    if (!head_of(&h, &args, kiln_tile())) return; /* the whole block */
    if (args.wide && block_codes(&args, &h, &shared)) return;
    const kiln_mha_quantize_args *late = KILN_LATE_ARGS(kiln_mha_quantize_args, args);
    head_of(&h, late, kiln_tile());
    tokens_codes(late, &h, shared.numbers);
}
