/* causal_conv1d against f64, and its states, which are copies. */
#include "tests/ops/harness.h"
#include <math.h>
#include <stdlib.h>

typedef struct shape {
    int64_t tokens, channels, batch, width, dilation, states, extra; /* extra: rows of a state that are not needed */
    int64_t padding, place;
    bool ragged, indexed, biased, residual, in_place, initial, final, same_states, silu;
} shape;

static double any_number(void) {
    return random_number(-2, 2);
}

/* ---- The reference ----------------------------------------------------------------------------------------------- */

/* Where sequences begin and which states they have. */
typedef struct sequences {
    int32_t *begin, *state;
} sequences;

static sequences sequences_create(const shape *s) {
    sequences q = {calloc((size_t)s->batch + 1, sizeof(int32_t)), calloc((size_t)s->batch + 1, sizeof(int32_t))};
    assert_true(q.begin && q.state);
    for (int64_t b = 0; b <= s->batch; b++) {
        q.begin[b] = (int32_t)(b * (s->tokens / s->batch));
        q.state[b] = (int32_t)b;
    }
    for (int64_t b = 0; s->ragged && b <= s->batch; b++) { /* in order, by insertion */
        int32_t begin = (int32_t)random_integer(0, s->tokens);
        int64_t at = b;
        for (; at > 0 && q.begin[at - 1] > begin; at--)
            q.begin[at] = q.begin[at - 1];
        q.begin[at] = begin;
    }
    /* States of their own, of which some do not exist: a rotation. */
    int64_t first = random_integer(0, s->states);
    for (int64_t b = 0; s->indexed && b < s->batch; b++) {
        int32_t state = (int32_t)((first + b) % (s->states + 1));
        q.state[b] = state == s->states && b % 2 ? -1 : state;
    }
    return q;
}

static bool has_state(const shape *s, const sequences *q, int64_t b) {
    return q->state[b] >= 0 && q->state[b] < s->states;
}

/* x of a sequence at a place that may lie before it. */
static double input(const shape *s, const sequences *q, const matrix *x, const double *initial, int64_t history,
                    int64_t b, int64_t place, int64_t channel) {
    if (place >= 0) return x->values[(q->begin[b] + place) * s->channels + channel];
    if (!s->initial || !has_state(s, q, b)) return 0;
    return initial[(q->state[b] * history + history + place) * s->channels + channel];
}

/* ---- Calls ------------------------------------------------------------------------------------------------------- */

static matrix numbers(kiln_stream *stream, int64_t count, const int32_t *values) {
    matrix m = matrix_create(stream, I32, 1, count, 0, AT_END);
    for (int64_t i = 0; i < count; i++)
        m.values[i] = values[i];
    matrix_set(&m, m.values);
    return m;
}

static int64_t stride_of(const matrix *m) {
    return m->stride == m->cols ? 0 : m->stride;
}

/* Rows of y that no sequence has are expected to be poison: they are taken from what is there. */
static void expect_y(const shape *s, const sequences *q, matrix *y, const matrix *x, const matrix *weight,
                     const double *bias, const double *residual, const double *initial, int64_t history) {
    const size_t bytes = sizeof(double) * (size_t)(s->tokens * s->channels);
    double *expected = malloc(bytes), *allowed = calloc(1, bytes);
    assert_true(expected && allowed);
    matrix_get(y);
    for (int64_t i = 0; i < s->tokens * s->channels; i++)
        expected[i] = y->values[i];
    for (int64_t b = 0; b < s->batch; b++)
        for (int64_t t = q->begin[b]; t < q->begin[b + 1]; t++)
            for (int64_t c = 0; c < s->channels; c++) {
                double sum = bias ? bias[c] : 0, terms = fabs(sum);
                for (int64_t k = 0; k < s->width; k++) {
                    int64_t place = t - q->begin[b] - (s->width - 1 - k) * s->dilation;
                    double term = weight->values[k * s->channels + c] * input(s, q, x, initial, history, b, place, c);
                    sum += term;
                    terms += fabs(term);
                }
                double result = s->silu ? sum / (1 + exp(-sum)) : sum;
                expected[t * s->channels + c] = result + (residual ? residual[t * s->channels + c] : 0);
                allowed[t * s->channels + c] = 1e-6 * terms + 2e-7 * fabs(expected[t * s->channels + c]);
            }
    matrix_expect(y, expected, allowed);
    free(expected);
    free(allowed);
}

static void expect_states(const shape *s, const sequences *q, matrix *states, const double *before, const matrix *x,
                          const double *initial, int64_t history) {
    const int64_t row_count = s->states * history;
    double *expected = malloc(sizeof(double) * (size_t)(row_count * s->channels));
    assert_non_null(expected);
    for (int64_t i = 0; i < row_count * s->channels; i++)
        expected[i] = before[i];
    for (int64_t b = 0; b < s->batch; b++)
        for (int64_t row = 0; row < history && has_state(s, q, b); row++)
            for (int64_t c = 0; c < s->channels; c++) {
                int64_t place = q->begin[b + 1] - q->begin[b] - history + row;
                expected[(q->state[b] * history + row) * s->channels + c] =
                    input(s, q, x, initial, history, b, place, c);
            }
    matrix_expect_exact(states, expected);
    free(expected);
}

static double *copy_of(const double *values, int64_t count) {
    double *copy = malloc(sizeof(double) * (size_t)count + 8);
    assert_non_null(copy);
    for (int64_t i = 0; i < count; i++)
        copy[i] = values[i];
    return copy;
}

static void run(kiln_stream *stream, precision p, shape s) {
    harness_describe(
        "causal_conv1d_%s %lld x %lld, %lld sequences%s, width %lld, dilation %lld, %lld states%s and %lld "
        "rows, padding %lld, at %lld%s%s%s%s%s%s%s",
        precision_name(p), (long long)s.tokens, (long long)s.channels, (long long)s.batch, s.ragged ? ", ragged" : "",
        (long long)s.width, (long long)s.dilation, (long long)s.states, s.indexed ? ", indexed" : "",
        (long long)s.extra, (long long)s.padding, (long long)s.place, s.biased ? ", bias" : "",
        s.residual ? ", residual" : "", s.in_place ? " in place" : "", s.initial ? ", initial" : "",
        s.final ? ", final" : "", s.same_states ? " in place" : "", s.silu ? ", SiLU" : "");
    int64_t history = (s.width - 1) * s.dilation + s.extra, rows = s.states * history;
    sequences q = sequences_create(&s);
    matrix y = matrix_create(stream, p, s.tokens, s.channels, s.channels + s.padding, s.place);
    matrix x = matrix_create(stream, p, s.tokens, s.channels, s.channels + s.padding, s.place);
    matrix residual = matrix_create(stream, p, s.tokens, s.channels, s.channels + s.padding, s.place);
    matrix weight = matrix_create(stream, p, s.width, s.channels, 0, s.place);
    matrix bias = matrix_create(stream, p, 1, s.channels, 0, s.place);
    matrix initial = matrix_create(stream, p, rows ? rows : 1, s.channels, 0, s.place);
    matrix final = matrix_create(stream, p, rows ? rows : 1, s.channels, 0, s.place);
    matrix begin = numbers(stream, s.batch + 1, q.begin), state = numbers(stream, s.batch, q.state);
    matrix *all[] = {&y, &x, &residual, &weight, &bias, &initial, &final, &begin, &state};
    matrix *inputs[] = {&x, &residual, &weight, &bias, &initial, &final};
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        matrix_fill(inputs[i], any_number);
    double *states = copy_of(initial.values, initial.rows * s.channels);
    double *residuals = copy_of(residual.values, s.tokens * s.channels);
    matrix *to = s.in_place ? &residual : &y, *states_to = s.same_states ? &initial : &final;
    double *before = copy_of(states_to->values, final.rows * s.channels);
    kiln_causal_conv1d_params params = {.y = to->data,
                                        .final_states = s.final ? states_to->data : NULL,
                                        .x = x.data,
                                        .weight = weight.data,
                                        .bias = s.biased ? bias.data : NULL,
                                        .residual = s.residual ? residual.data : NULL,
                                        .initial_states = s.initial ? initial.data : NULL,
                                        .cu_seqlens = s.ragged ? begin.data : NULL,
                                        .state_indices = s.indexed ? state.data : NULL,
                                        .tokens = s.tokens,
                                        .channels = s.channels,
                                        .batch = s.batch,
                                        .width = s.width,
                                        .dilation = s.dilation,
                                        .states = s.states,
                                        .history = s.extra ? history : 0,
                                        .y_stride = stride_of(to),
                                        .x_stride = stride_of(&x),
                                        .residual_stride = stride_of(&residual),
                                        .activation = s.silu ? KILN_CONV_SILU : KILN_CONV_NONE};
    harness_ok(operator_function(&kiln__operator_causal_conv1d, p)->call(stream, &params, sizeof params));
    expect_y(&s, &q, to, &x, &weight, s.biased ? bias.values : NULL, s.residual ? residuals : NULL, states, history);
    if (s.final && rows) expect_states(&s, &q, states_to, before, &x, states, history);
    if (!s.same_states || !s.final) matrix_expect_unchanged(&initial);
    matrix_expect_unchanged(&x);
    matrix_expect_unchanged(&weight);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        matrix_destroy(all[i]);
    free(q.begin);
    free(q.state);
    free(states);
    free(residuals);
    free(before);
}

/* ---- Tests ------------------------------------------------------------------------------------------------------- */

static shape random_shape(int64_t channels) {
    static const int64_t places[] = {0, 0, 1, 3, 8, AT_END};
    shape s = {.channels = channels,
               .batch = random_integer(1, 5),
               .width = random_integer(1, 4),
               .dilation = random_integer(1, 3),
               .extra = random_integer(0, 2) ? 0 : random_integer(1, 2),
               .ragged = random_integer(0, 1),
               .indexed = random_integer(0, 1),
               .biased = random_integer(0, 1),
               .residual = random_integer(0, 2) > 0,
               .initial = random_integer(0, 2) > 0,
               .final = random_integer(0, 2) > 0,
               .silu = random_integer(0, 1)};
    s.tokens = s.batch * (random_integer(0, 1) ? 1 : random_integer(2, channels < 100 ? 20 : 5));
    s.in_place = s.residual && random_integer(0, 1);
    s.same_states = s.initial && s.final && random_integer(0, 1);
    s.states = s.indexed ? random_integer(1, 7) : s.batch;
    if (s.indexed && s.batch > s.states + 1) s.batch = 1;
    s.padding = random_integer(0, 2) ? 0 : random_integer(1, 9);
    s.place = places[random_integer(0, 5)];
    return s;
}

static void test_shapes(kiln_stream *stream) {
    static const int64_t channels[] = {1, 3, 8, 17, 64, 100, 256, 1000, 2064};
    for (precision p = precision_first(); p < precision_end(); p++)
        for (size_t i = 0; i < sizeof channels / sizeof *channels; i++) {
            shape s = random_shape(channels[i]);
            run(stream, p, s);
            for (int round = 0; round < 3; round++) { /* of vectors, with what there may be in any combination */
                s = random_shape(channels[i]);
                s.padding = s.place = 0;
                run(stream, p, s);
            }
        }
}

/* Step by step, with the states of the step before, y is that of the whole sequences. */
static void test_decode(kiln_stream *stream) {
    enum { BATCH = 2, LENGTH = 12, CHANNELS = 40, HISTORY = 9 };
    for (precision p = precision_first(); p < precision_end(); p++) {
        harness_describe("causal_conv1d_%s step by step", precision_name(p));
        matrix x = matrix_create(stream, p, BATCH * LENGTH, CHANNELS, 0, 0),
               weight = matrix_create(stream, p, 4, CHANNELS, 0, 0);
        matrix whole = matrix_create(stream, p, BATCH * LENGTH, CHANNELS, 0, 0);
        matrix step = matrix_create(stream, p, BATCH, CHANNELS, 0, 0),
               y = matrix_create(stream, p, BATCH, CHANNELS, 0, 0);
        matrix states = matrix_create(stream, p, BATCH * HISTORY, CHANNELS, 0, 0);
        double zeros[BATCH * HISTORY * CHANNELS] = {0}, values[BATCH * CHANNELS], expected[BATCH * CHANNELS];
        matrix_fill(&x, any_number);
        matrix_fill(&weight, any_number);
        matrix_set(&states, zeros);
        kiln_causal_conv1d_params params = {.y = whole.data,
                                            .x = x.data,
                                            .weight = weight.data,
                                            .tokens = BATCH * LENGTH,
                                            .channels = CHANNELS,
                                            .batch = BATCH,
                                            .width = 4,
                                            .dilation = 3,
                                            .activation = KILN_CONV_SILU};
        const kiln_operator_function *function = operator_function(&kiln__operator_causal_conv1d, p);
        harness_ok(function->call(stream, &params, sizeof params));
        matrix_get(&whole);
        params.y = y.data;
        params.x = step.data;
        params.initial_states = params.final_states = states.data;
        params.tokens = BATCH;
        for (int64_t t = 0; t < LENGTH; t++) {
            for (int64_t i = 0; i < BATCH * CHANNELS; i++) {
                int64_t at = (i / CHANNELS * LENGTH + t) * CHANNELS + i % CHANNELS;
                values[i] = x.values[at];
                expected[i] = whole.values[at];
            }
            matrix_set(&step, values);
            harness_ok(function->call(stream, &params, sizeof params));
            matrix_expect_exact(&y, expected);
        }
        matrix *all[] = {&x, &weight, &whole, &step, &y, &states};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            matrix_destroy(all[i]);
    }
}

/* cu_seqlens that no sequences can have: nothing is read or written that is not there. */
static void test_bad_sequences(kiln_stream *stream) {
    static const int32_t odd[] = {-5, 3, 100, 7};
    harness_describe("causal_conv1d of sequences out of order");
    matrix x = matrix_create(stream, F32, 8, 5, 0, AT_END), y = matrix_create(stream, F32, 8, 5, 0, AT_END);
    matrix states = matrix_create(stream, F32, 9, 5, 0, AT_END), begin = numbers(stream, 4, odd);
    matrix_fill(&x, any_number);
    matrix_fill(&states, any_number);
    kiln_causal_conv1d_params params = {.y = y.data,
                                        .final_states = states.data,
                                        .x = x.data,
                                        .weight = x.data,
                                        .initial_states = states.data,
                                        .cu_seqlens = begin.data,
                                        .tokens = 8,
                                        .channels = 5,
                                        .batch = 3,
                                        .width = 4};
    harness_ok(kiln_causal_conv1d_f32(stream, &params));
    matrix_get(&y);
    matrix_get(&states);
    matrix *all[] = {&x, &y, &states, &begin};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        matrix_destroy(all[i]);
}

static void test_refusals(kiln_stream *stream) {
    float memory[8] = {0}, other[8] = {0};
    const kiln_causal_conv1d_params good = {
        .y = memory, .x = other, .weight = other, .tokens = 2, .channels = 2, .width = 2};
    const kiln_operator_function *function = operator_function(&kiln__operator_causal_conv1d, F32);
#define REFUSED(field, value, parameter)                                     \
    do {                                                                     \
        kiln_causal_conv1d_params params = good;                             \
        params.field = value;                                                \
        expect_refusal(stream, function, &params, sizeof params, parameter); \
    } while (0)
    REFUSED(tokens, -1, "tokens");
    REFUSED(tokens, (int64_t)1 << 31, "tokens");
    REFUSED(channels, -1, "channels");
    REFUSED(batch, 3, "batch");
    REFUSED(width, -1, "width");
    REFUSED(width, 5, "width");
    REFUSED(dilation, -1, "dilation");
    REFUSED(dilation, 65537, "dilation");
    REFUSED(states, -1, "states");
    REFUSED(history, -1, "history");
    REFUSED(activation, 2, "activation");
    REFUSED(reserved, 1, "reserved");
    REFUSED(y, NULL, "y");
    REFUSED(y, other, "y");
    REFUSED(x_stride, 1, "x");
    REFUSED(weight, NULL, "weight");
    REFUSED(bias, (const char *)other + 1, "bias");
    REFUSED(residual, (const char *)other + 2, "residual");
    REFUSED(initial_states, (const char *)other + 2, "initial_states");
    REFUSED(final_states, (char *)other + 2, "final_states");
#undef REFUSED
    kiln_causal_conv1d_params params = good;
    params.dilation = 3;
    params.history = 2;
    expect_refusal(stream, function, &params, sizeof params,
                   "history is 2: must be at least (width - 1) * dilation, 3");
    params = good;
    params.width = 4;
    params.dilation = INT64_MAX; /* times 3 is no int64_t: the sanitizer's build would stop */
    expect_refusal(stream, function, &params, sizeof params, "dilation is 9223372036854775807: must be at most 65536");
    params = good;
    params.batch = 2;
    params.states = 1;
    expect_refusal(stream, function, &params, sizeof params, "states");
    params = good;
    params.residual = memory;
    params.residual_stride = 3;
    expect_refusal(stream, function, &params, sizeof params, "y_stride");
    params = good;
    params.tokens = 0;
    params.y = NULL;
    harness_ok(kiln_causal_conv1d_f32(stream, &params));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        on_each_device(test_shapes),
        on_each_device(test_decode),
        on_each_device(test_bad_sequences),
        on_one_device(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
