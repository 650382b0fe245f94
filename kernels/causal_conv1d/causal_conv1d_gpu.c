/* causal_conv1d: y = activation(bias + the sum of up to four weights times x at distances of the dilation) + residual,
 * for each channel along each sequence, in f32, with one rounding.
 *
 * A thread computes 16 bytes of channels of a token and reads the inputs and weights one after the other; without
 * 16-byte alignment, and where the channels are not whole vectors, it computes one element. The first tokens of a
 * sequence take the inputs before it from its state. An input that four tokens need is read from memory once and from
 * caches after that, as the weights are. Tried: runs of eight tokens per thread with inputs and weights in registers,
 * which read 5.8 bytes per element of 16 bits instead of 13.8 (4 of them from memory either way) with 1.7 times the
 * code. Which is faster on hardware was not measured.
 *
 * final_states may be initial_states, which the threads of every sequence's first tokens read. So a second kernel
 * writes them, with a thread for each vector of a sequence's state, from the oldest row on. Where each sequence has one
 * token, the token's thread does both.
 *
 * Floor: a read of x and of residual and a write of y at memory bandwidth, 6 bytes an element of 16 bits, and a read
 * and a write of the states; docs/kernel-report.md has the instruction counts and the time that they take. Not measured
 * on hardware. Test: build/tests/ops/causal_conv1d_test. Bench: build/kiln bench causal_conv1d */
#include "kernels/common/math/mixed.h"
#include "kernels/common/span.h"

#include "kernels/causal_conv1d/place.h"

#if defined(__HIP__)
#include "kernels/arch/gfx.h"
#endif

KILN_INLINE kiln_vector load(kiln_conv_place place, uint64_t channel) {
    kiln_vector zeros = {{0}};
    if (!place.tensor) return zeros;
    return kiln_vector_load((const kiln_element *)place.tensor + place.element + channel);
}

KILN_INLINE float load_one(kiln_conv_place place, uint64_t channel) {
    return place.tensor ? kiln_element_to_f32(((const kiln_element *)place.tensor)[place.element + channel]) : 0.0f;
}

/* sum sigmoid(sum). The sigmoid ends in 0 and 1 where 2^x ends in infinity and 0; the factor of 0 is a finite number,
 * whose product is -0. */
KILN_INLINE float silu(float sum) {
    const float sigmoid = kiln_fast_reciprocal(1.0f + kiln_fast_exp2(sum * -KILN_LOG2_E));
    return kiln_fast_max(sum, -0x1p127f) * sigmoid;
}

/* Writes a sequence's next state row by row, from the oldest on: a row that it takes over from the previous state lies
 * further on there. */
KILN_INLINE void put_state(const kiln_causal_conv1d_args *args, kiln_span s, uint64_t channel,
                           kiln_varlen_sequence sequence) {
    uint64_t state = kiln_conv_state(args, sequence.number);
    uint32_t length = sequence.end - sequence.begin;
    if (state >= (uint64_t)args->states) return;
    KILN_LOOP
    for (uint32_t row = 0; row < args->history; row++) {
        kiln_conv_place place = kiln_conv_before(args, sequence, length, args->history - row);
        kiln_element *target = (kiln_element *)args->final_states + kiln_conv_state_row(args, state, row) + channel;
        if (s.whole)
            kiln_vector_store(target, load(place, channel));
        else
            *target = place.tensor ? ((const kiln_element *)place.tensor)[place.element + channel] : (kiln_element)0;
    }
}

/* Writes a vector of y from its sums. */
KILN_INLINE void put_vector(const kiln_causal_conv1d_args *args, float *sums, uint32_t token, uint64_t channel) {
    const kiln_element *residual = (const kiln_element *)args->residual;
    kiln_vector held;
    if (residual) held = kiln_vector_load(residual + token * (uint64_t)args->residual_stride + channel);
    if (args->activation) {
        KILN_UNROLL
        for (int i = 0; i < KILN_VECTOR; i++)
            sums[i] = silu(sums[i]);
    }
    if (residual) {
        float residuals[KILN_VECTOR];
        kiln_vector_values(residuals, held);
        KILN_UNROLL
        for (int i = 0; i < KILN_VECTOR; i++)
            sums[i] += residuals[i];
    }
    kiln_vector_store((kiln_element *)args->y + token * (uint64_t)args->y_stride + channel, kiln_vector_of(sums));
}

/* Computes a token; each input and weight is read when it is needed. */
KILN_INLINE void put_token(const kiln_causal_conv1d_args *args, kiln_varlen_sequence sequence, uint32_t token,
                           uint64_t channel) {
    float sums[KILN_VECTOR] = {0.0f};
    if (args->bias) kiln_vector_values(sums, kiln_vector_load((const kiln_element *)args->bias + channel));
    const kiln_element *factors = (const kiln_element *)args->weight + channel;
    KILN_LOOP
    for (uint32_t row = 0; row < args->width; row++, factors += (uint64_t)args->shape.cols) {
        uint32_t before = (args->width - 1 - row) * args->dilation;
        kiln_vector_products(sums, kiln_vector_load(factors),
                             load(kiln_conv_before(args, sequence, token - sequence.begin, before), channel));
    }
    put_vector(args, sums, token, channel);
}

/* The same for one channel. */
KILN_INLINE void put_element(const kiln_causal_conv1d_args *args, kiln_varlen_sequence sequence, uint32_t token,
                             uint64_t channel) {
    kiln_conv_place bias = {args->bias, 0}, residual = {args->residual, token * (uint64_t)args->residual_stride};
    float sum = load_one(bias, channel);
    KILN_LOOP
    for (uint32_t row = 0; row < args->width; row++) {
        kiln_conv_place factors = {args->weight, row * (uint64_t)args->shape.cols};
        uint32_t before = (args->width - 1 - row) * args->dilation;
        sum = KILN_FMA(load_one(factors, channel),
                       load_one(kiln_conv_before(args, sequence, token - sequence.begin, before), channel), sum);
    }
    ((kiln_element *)args->y)[token * (uint64_t)args->y_stride + channel] =
        kiln_element_from_f32((args->activation ? silu(sum) : sum) + load_one(residual, channel));
}

/* Finds the thread's channel, the first of its vector or its only one; false if it has none. */
KILN_INLINE bool find_channel(kiln_span s, uint64_t *channel) {
    *channel = s.start + (s.whole ? s.first * KILN_VECTOR : s.first);
    return s.first < (s.whole ? s.whole : s.count);
}

/* A thread's share of its token. */
KILN_INLINE void put_share(const kiln_causal_conv1d_args *args, kiln_span s, uint32_t token, uint64_t channel) {
    kiln_varlen_sequence sequence = kiln_varlen_find(&args->varlen, token);
    if (sequence.number >= args->varlen.batch) return;
    if (s.whole)
        put_token(args, sequence, token, channel);
    else
        put_element(args, sequence, token, channel);
    if (args->final_states) put_state(args, s, channel, sequence);
}

KILN_ENTRY(causal_conv1d, kiln_causal_conv1d_args) {
    kiln_span s = kiln_span_of(&args.shape);
    uint64_t channel;
    if (!find_channel(s, &channel)) return;
#if defined(__HIP__) /* where a wave has one token, the scalar unit multiplies it by strides */
    if (s.whole && s.lanes >= __builtin_amdgcn_wavefrontsize() && !args.final_states) {
        const uint32_t token = (uint32_t)kiln_gfx_first_lane(s.row);
        kiln_varlen_sequence sequence = kiln_varlen_find(&args.varlen, token);
        if (sequence.number < args.varlen.batch) put_token(&args, sequence, token, channel);
        return;
    }
#endif
    put_share(&args, s, (uint32_t)s.row, channel);
}

KILN_ENTRY(causal_conv1d_states, kiln_causal_conv1d_args) {
    kiln_span s = kiln_span_of(&args.shape);
    uint64_t channel;
    if (!find_channel(s, &channel)) return;
    put_state(&args, s, channel, kiln_varlen_of(&args.varlen, (uint32_t)s.row, args.tokens));
}
