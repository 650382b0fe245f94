/* causal_conv1d: y = activation(bias + the sum of up to four factors times x at distances of the dilation) + residual,
 * channel by channel along sequences, in f32, with one rounding.
 *
 * A thread has a vector of channels of a token, 16 bytes, and reads inputs and factors one after the other; without
 * 16-byte alignment, and where channels are no whole vectors, a thread has an element. The first tokens of a sequence
 * find what came before in its state. An input that four tokens need comes from memory once and from caches then, as
 * factors do. Runs of eight tokens for each thread, with inputs and factors in registers, were tried: they read 5.8
 * bytes an element of 16 bits instead of 13.8, of which 4 are from memory either way, with 1.7 times the code. Which is
 * faster on hardware is not measured.
 *
 * final_states may be initial_states, of which every thread that has a first token reads: a further kernel writes them,
 * a thread for each vector of a sequence's state, from the oldest row on. Where each sequence has one token its one
 * thread does both.
 *
 * Floor: a read of x and of residual and a write of y at memory bandwidth, 6 bytes an element of 16 bits, and a read
 * and a write of the states; docs/kernel-report.md has the instructions counted, and their time beside it. Not measured
 * on hardware. Test: build/tests/ops/causal_conv1d_test. Bench: build/kiln bench causal_conv1d */
#include "kernels/common/span.h"
#include "kernels/common/values.h"

#include "kernels/causal_conv1d/place.h"

KILN_INLINE kiln_vector load(kiln_conv_place place, uint64_t channel) {
    kiln_vector zeros = {{0}};
    if (!place.tensor) return zeros;
    return kiln_vector_load((const kiln_element *)place.tensor + place.element + channel);
}

KILN_INLINE float load_one(kiln_conv_place place, uint64_t channel) {
    return place.tensor ? kiln_element_to_f32(((const kiln_element *)place.tensor)[place.element + channel]) : 0.0f;
}

KILN_INLINE float activated(float sum, uint32_t activation) {
    const float coefficients[1] = {1.0f};
    float powers[1];
    kiln_powers_of(powers, coefficients, 1);
    return activation ? kiln_fast_gated(sum, 80.0f, powers, 1) : sum;
}

/* Row after row of a sequence's next state, from the oldest on: a row of the state that it began with lies behind. */
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

/* A vector of some tensor, zeros where there is none. */
KILN_INLINE void values_of(float *values, const void *tensor, uint64_t element) {
    kiln_conv_place place = {tensor, element};
    kiln_vector_values(values, load(place, 0));
}

KILN_INLINE void add_products(float *sums, kiln_vector factors, kiln_vector inputs) {
    float values[KILN_VECTOR], others[KILN_VECTOR];
    kiln_vector_values(values, inputs);
    kiln_vector_values(others, factors);
    KILN_UNROLL
    for (int i = 0; i < KILN_VECTOR; i++)
        sums[i] = KILN_FMA(others[i], values[i], sums[i]);
}

/* A vector of y from its sums. */
KILN_INLINE void put_vector(const kiln_causal_conv1d_args *args, float *sums, uint32_t token, uint64_t channel) {
    float residuals[KILN_VECTOR];
    values_of(residuals, args->residual, token * (uint64_t)args->residual_stride + channel);
    KILN_UNROLL
    for (int i = 0; i < KILN_VECTOR; i++)
        sums[i] = activated(sums[i], args->activation) + residuals[i];
    kiln_vector_store((kiln_element *)args->y + token * (uint64_t)args->y_stride + channel, kiln_vector_of(sums));
}

/* A token, each input and factor read as it is needed. */
KILN_INLINE void put_token(const kiln_causal_conv1d_args *args, kiln_varlen_sequence sequence, uint32_t token,
                           uint64_t channel) {
    float sums[KILN_VECTOR];
    values_of(sums, args->bias, channel);
    KILN_LOOP
    for (uint32_t row = 0; row < args->width; row++) {
        kiln_conv_place factors = {args->weight, row * (uint64_t)args->shape.cols};
        uint32_t before = (args->width - 1 - row) * args->dilation;
        add_products(sums, load(factors, channel),
                     load(kiln_conv_before(args, sequence, token - sequence.begin, before), channel));
    }
    put_vector(args, sums, token, channel);
}

/* The same of one channel. */
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
        kiln_element_from_f32(activated(sum, args->activation) + load_one(residual, channel));
}

/* The thread's channel, the first of a vector or alone; false: it has none. */
KILN_INLINE bool find_channel(kiln_span s, uint64_t *channel) {
    *channel = s.start + (s.whole ? s.first * KILN_VECTOR : s.first);
    return s.first < (s.whole ? s.whole : s.count);
}

KILN_ENTRY(causal_conv1d, kiln_causal_conv1d_args) {
    kiln_span s = kiln_span_of(&args.shape);
    uint64_t channel;
    if (!find_channel(s, &channel)) return;
    kiln_varlen_sequence sequence = kiln_varlen_find(&args.varlen, (uint32_t)s.row);
    if (sequence.number >= args.varlen.batch) return;
    if (s.whole)
        put_token(&args, sequence, (uint32_t)s.row, channel);
    else
        put_element(&args, sequence, (uint32_t)s.row, channel);
    if (args.final_states) put_state(&args, s, channel, sequence);
}

KILN_ENTRY(causal_conv1d_states, kiln_causal_conv1d_args) {
    kiln_span s = kiln_span_of(&args.shape);
    uint64_t channel;
    if (!find_channel(s, &channel)) return;
    put_state(&args, s, channel, kiln_varlen_of(&args.varlen, (uint32_t)s.row, args.tokens));
}
