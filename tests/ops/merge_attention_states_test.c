/* merge_attention_states against f64: parts of random weights, parts that saw nothing, infinities and NaN; and
 * attention to all keys at once against attention to parts of them, merged. */
#include "tests/ops/harness.h"
#include <math.h>
#include <stdlib.h>

typedef struct shape {
    int64_t parts, tokens, heads, head_dim, x_padding, out_padding, x_place, out_place;
} shape;

static double number(void) {
    return random_number(-4, 4);
}

static double lse_of_part(void) {
    return random_integer(0, 4) ? random_number(-6, 6) : -INFINITY;
}

static double far_lse(void) {
    return random_number(-300, 300);
}

static double nothing(void) {
    return -INFINITY;
}

static double special_lse(void) {
    static const double values[] = {INFINITY, NAN, -INFINITY, 1e30};
    return random_integer(0, 6) ? random_number(-6, 6) : values[random_integer(0, 3)];
}

static double weight_of(double lse, double origin) {
    return lse == origin && lse == INFINITY ? 1 : exp(lse - origin);
}

/* A query's out and lse; *bound gets the sum of the terms' magnitudes. */
static double reference(const matrix *x, const matrix *x_lse, shape s, int64_t token, int64_t head, int64_t col,
                        double *lse, double *bound) {
    double origin = -INFINITY, total = 0, sum = 0;
    *bound = 0;
    for (int64_t i = 0; i < s.parts; i++)
        origin = fmax(origin, x_lse->values[(i * s.heads + head) * s.tokens + token]);
    double from = origin == -INFINITY ? 0 : origin;
    for (int64_t i = 0; i < s.parts; i++) {
        double weight = weight_of(x_lse->values[(i * s.heads + head) * s.tokens + token], from);
        double value = x->values[(i * s.tokens + token) * s.heads * s.head_dim + head * s.head_dim + col];
        total += weight;
        if (weight == 0) continue;
        sum += weight * value;
        *bound += weight * fabs(value);
    }
    *lse = from + log(total);
    *bound /= total;
    return total == 0 ? 0 : sum / total;
}

static void run(kiln_stream *stream, precision p, shape s, double (*lse_value)(void), bool in_place) {
    harness_describe(
        "merge_attention_states_%s of %lld parts, %lld tokens, %lld heads of %lld, padding %lld and %lld%s",
        precision_name(p), (long long)s.parts, (long long)s.tokens, (long long)s.heads, (long long)s.head_dim,
        (long long)s.x_padding, (long long)s.out_padding, in_place ? ", in place" : "");
    int64_t cols = s.heads * s.head_dim;
    bool wants_lse = in_place || random_integer(0, 3) != 0;
    matrix x = matrix_create(stream, p, s.parts * s.tokens, cols, cols + s.x_padding, s.x_place);
    matrix out = matrix_create(stream, p, s.tokens, cols, cols + s.out_padding, s.out_place);
    matrix x_lse = matrix_create(stream, F32, s.parts * s.heads, s.tokens, 0, AT_END);
    matrix lse = matrix_create(stream, F32, s.heads, s.tokens, 0, AT_END);
    matrix_fill(&x, number);
    matrix_fill(&x_lse, lse_value);
    size_t outs = (size_t)(s.parts * s.tokens * cols), lses = (size_t)(s.parts * s.heads * s.tokens);
    double *expected = malloc(sizeof(double) * 2 * (outs + lses));
    assert_non_null(expected);
    double *allowed = expected + outs, *lse_expected = allowed + outs, *lse_allowed = lse_expected + lses;
    for (size_t i = 0; i < outs; i++) { /* in place other parts stay */
        expected[i] = x.values[i];
        allowed[i] = 0;
    }
    for (size_t i = 0; i < lses; i++) {
        lse_expected[i] = x_lse.values[i];
        lse_allowed[i] = 0;
    }
    for (int64_t token = 0; token < s.tokens; token++)
        for (int64_t head = 0; head < s.heads; head++) {
            double bound, query_lse = 0;
            for (int64_t col = 0; col < s.head_dim; col++) {
                int64_t at = token * cols + head * s.head_dim + col;
                expected[at] = reference(&x, &x_lse, s, token, head, col, &query_lse, &bound);
                allowed[at] = isfinite(bound) ? 1e-6 * bound : 0;
            }
            lse_expected[head * s.tokens + token] = query_lse;
            lse_allowed[head * s.tokens + token] = isfinite(query_lse) ? 1e-6 + fabs(query_lse) * 0x1p-24 : 0;
        }
    kiln_merge_attention_states_params params = {.out = in_place ? x.data : out.data,
                                                 .lse = in_place    ? x_lse.data
                                                        : wants_lse ? lse.data
                                                                    : NULL,
                                                 .x = x.data,
                                                 .x_lse = x_lse.data,
                                                 .parts = s.parts,
                                                 .tokens = s.tokens,
                                                 .heads = s.heads,
                                                 .head_dim = s.head_dim,
                                                 .out_stride = in_place        ? x.stride
                                                               : s.out_padding ? out.stride
                                                                               : 0,
                                                 .x_stride = s.x_padding ? x.stride : 0};
    harness_ok(operator_function(&kiln__operator_merge_attention_states, p)->call(stream, &params, sizeof params));
    matrix_expect(in_place ? &x : &out, expected, allowed);
    if (wants_lse)
        matrix_expect(in_place ? &x_lse : &lse, lse_expected, lse_allowed);
    else
        matrix_expect_unchanged(&lse);
    if (!in_place) matrix_expect_unchanged(&x);
    if (!in_place) matrix_expect_unchanged(&x_lse);
    matrix_destroy(&x);
    matrix_destroy(&out);
    matrix_destroy(&x_lse);
    matrix_destroy(&lse);
    free(expected);
}

static void test_shapes(kiln_stream *stream) {
    static const int64_t head_dims[] = {1, 8, 17, 40, 64, 128, 256, 257, 300};
    double (*values[])(void) = {lse_of_part, far_lse, special_lse};
    for (precision p = precision_first(); p < precision_end(); p++) {
        for (size_t i = 0; i < sizeof head_dims / sizeof *head_dims; i++) {
            shape s = {random_integer(1, 4), random_integer(1, 9), random_integer(1, 5), head_dims[i],
                       random_integer(0, 9), random_integer(0, 9), random_place(),       random_place()};
            run(stream, p, s, values[i % 3], false);
        }
        run(stream, p, (shape){.parts = 2, .tokens = 5, .heads = 3, .head_dim = 128}, lse_of_part, false);
        run(stream, p, (shape){.parts = 9, .tokens = 2, .heads = 2, .head_dim = 64}, lse_of_part, false);
        run(stream, p, (shape){.parts = 3, .tokens = 2, .heads = 2, .head_dim = 33}, nothing, false);
        run(stream, p, (shape){.parts = 2, .tokens = 7, .heads = 3, .head_dim = 72, .x_padding = 8}, lse_of_part, true);
    }
}

/* ---- Attention to parts of the keys ------------------------------------------------------------------------------ */

enum { TOKENS = 6, HEADS = 2, HEAD_DIM = 64, KEYS = 23, FIRST = 9, COLS = HEADS * HEAD_DIM };

/* Attention to keys from `begin` to before `end`, into one part of out and lse. */
static void attend(kiln_stream *stream, const matrix *q, const matrix *k, const matrix *v, int begin, int end,
                   void *out, void *lse) {
    kiln_mha_params params = {.out = out,
                              .lse = lse,
                              .q = q->data,
                              .k = (const float *)k->data + begin * COLS,
                              .v = (const float *)v->data + begin * COLS,
                              .batch = 1,
                              .tokens = TOKENS,
                              .kv_tokens = end - begin,
                              .heads = HEADS,
                              .kv_heads = HEADS,
                              .head_dim = HEAD_DIM};
    const kiln_operator_function *function = operator_function(&kiln__operator_mha, F32);
    harness_ok(function->workspace_size(stream, &params, sizeof params, &params.workspace_size));
    matrix workspace = matrix_create(stream, F32, 1, (int64_t)params.workspace_size / 4 + 4, 0, 0);
    if (params.workspace_size) params.workspace = workspace.data;
    harness_ok(function->call(stream, &params, sizeof params));
    harness_ok(kiln_stream_sync(stream));
    matrix_destroy(&workspace);
}

static void test_attention(kiln_stream *stream) {
    harness_describe("mha_f32 of keys in two parts, merged");
    matrix q = matrix_create(stream, F32, TOKENS, COLS, 0, 0), k = matrix_create(stream, F32, KEYS, COLS, 0, 0);
    matrix v = matrix_create(stream, F32, KEYS, COLS, 0, 0), parts = matrix_create(stream, F32, 2 * TOKENS, COLS, 0, 0);
    matrix parts_lse = matrix_create(stream, F32, 2 * HEADS, TOKENS, 0, 0);
    matrix whole = matrix_create(stream, F32, TOKENS, COLS, 0, 0),
           merged = matrix_create(stream, F32, TOKENS, COLS, 0, 0);
    matrix whole_lse = matrix_create(stream, F32, HEADS, TOKENS, 0, 0);
    matrix merged_lse = matrix_create(stream, F32, HEADS, TOKENS, 0, 0);
    matrix_fill(&q, number);
    matrix_fill(&k, number);
    matrix_fill(&v, number);
    attend(stream, &q, &k, &v, 0, KEYS, whole.data, whole_lse.data);
    attend(stream, &q, &k, &v, 0, FIRST, parts.data, parts_lse.data);
    attend(stream, &q, &k, &v, FIRST, KEYS, (float *)parts.data + TOKENS * COLS,
           (float *)parts_lse.data + HEADS * TOKENS);
    kiln_merge_attention_states_params params = {.out = merged.data,
                                                 .lse = merged_lse.data,
                                                 .x = parts.data,
                                                 .x_lse = parts_lse.data,
                                                 .parts = 2,
                                                 .tokens = TOKENS,
                                                 .heads = HEADS,
                                                 .head_dim = HEAD_DIM};
    harness_ok(operator_function(&kiln__operator_merge_attention_states, F32)->call(stream, &params, sizeof params));
    double allowed[TOKENS * COLS], lse_allowed[HEADS * TOKENS];
    for (int i = 0; i < TOKENS * COLS; i++)
        allowed[i] = 1e-5;
    for (int i = 0; i < HEADS * TOKENS; i++)
        lse_allowed[i] = 1e-5;
    matrix_get(&whole);
    matrix_get(&whole_lse);
    matrix_expect(&merged, whole.values, allowed);
    matrix_expect(&merged_lse, whole_lse.values, lse_allowed);
    matrix *all[] = {&q, &k, &v, &parts, &parts_lse, &whole, &whole_lse, &merged, &merged_lse};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        matrix_destroy(all[i]);
}

static void test_refusals(kiln_stream *stream) {
    harness_describe("merge_attention_states_f32 and what it refuses");
    matrix x = matrix_create(stream, F32, 4, 16, 0, 0), lse = matrix_create(stream, F32, 4, 2, 0, 0);
    const kiln_operator_function *function = operator_function(&kiln__operator_merge_attention_states, F32);
    kiln_merge_attention_states_params params = {.out = x.data,
                                                 .x = x.data,
                                                 .x_lse = lse.data,
                                                 .parts = 2,
                                                 .tokens = 2,
                                                 .heads = 2,
                                                 .head_dim = 8,
                                                 .out_stride = 17};
    expect_refusal(stream, function, &params, sizeof params, "out_stride");
    params.out_stride = 0;
    params.x_stride = 15;
    expect_refusal(stream, function, &params, sizeof params, "x_stride");
    params.x_stride = 0;
    params.x_lse = NULL;
    expect_refusal(stream, function, &params, sizeof params, "x_lse");
    params.x_lse = lse.data;
    params.lse = (float *)((char *)lse.data + 1);
    expect_refusal(stream, function, &params, sizeof params, "lse");
    params.lse = NULL;
    params.parts = 0;
    expect_refusal(stream, function, &params, sizeof params, "parts");
    params.parts = 2;
    params.heads = INT32_MAX;
    expect_refusal(stream, function, &params, sizeof params, "heads");
    params.tokens = 0;
    harness_ok(function->call(stream, &params, sizeof params));
    matrix_expect_unchanged(&x);
    matrix_expect_unchanged(&lse);
    matrix_destroy(&x);
    matrix_destroy(&lse);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        on_each_device(test_shapes),
        on_each_device(test_attention),
        on_one_device(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
