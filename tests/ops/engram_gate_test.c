/* engram_gate against f64. */
#include "tests/ops/harness.h"
#include <math.h>
#include <stdlib.h>

typedef struct shape {
    int64_t tokens, groups, cols, padding, place;
    bool weighted, in_place, joined; /* joined: key and value are of one product */
    double eps, norm_eps;            /* 0: the defaults */
} shape;

static double magnitude; /* of the numbers */

static double any_number(void) {
    return random_number(-magnitude, magnitude);
}

static double weight_number(void) {
    return random_number(0.5, 2);
}

/* Where a reference is, with what it allows. */
typedef struct results {
    double *y, *y_allowed, *normed, *normed_allowed;
} results;

static results results_create(int64_t count) {
    const size_t bytes = sizeof(double) * (size_t)count;
    results r = {malloc(bytes), malloc(bytes), malloc(bytes), malloc(bytes)};
    assert_true(r.y && r.y_allowed && r.normed && r.normed_allowed);
    return r;
}

static void results_destroy(results *r) {
    free(r->y);
    free(r->y_allowed);
    free(r->normed);
    free(r->normed_allowed);
}

/* The gate, and its error from one of a millionth of the product's terms: the root's derivative has no bound at 0,
 * where the sign may be either. */
static double gate_of(double g, double error, double *out_error) {
    double size = fmax(fabs(g), 1e-6), root = g < 0 ? -sqrt(size) : g > 0 ? sqrt(size) : g;
    double root_error = sqrt(size + error) - sqrt(fmax(size - error, 1e-6)) + (fabs(g) <= error ? 2e-3 : 0);
    double gate = 1 / (1 + exp(-root));
    *out_error = gate * (1 - gate) * root_error * 1.01 + 3e-7 * gate;
    return gate;
}

/* One group of one token: its rows, and its weights, which may be NULL. */
static void reference_row(const shape *s, const double *key, const double *query, const double *value,
                          const double *const weights[3], results *r, int64_t at) {
    double eps = s->eps == 0 ? (double)1e-6f : (double)(float)s->eps;
    double norm_eps = s->norm_eps == 0 ? (double)1e-5f : (double)(float)s->norm_eps;
    double keys = 0, queries = 0, product = 0, terms = 0, values = 0, error, n = (double)s->cols;
    for (int64_t i = 0; i < s->cols; i++) {
        double term = key[i] * query[i];
        if (weights[0]) term *= weights[0][i] * weights[1][i];
        keys += key[i] * key[i];
        queries += query[i] * query[i];
        values += value[i] * value[i];
        product += term;
        terms += fabs(term);
    }
    double scale = 1 / sqrt(keys / n + eps) / sqrt(queries / n + eps) / sqrt(n);
    double gate = gate_of(product * scale, 2e-6 * terms * scale, &error);
    double norm = 1 / sqrt(gate * gate * values / n + norm_eps);
    for (int64_t i = 0; i < s->cols; i++) {
        r->y[at + i] = gate * value[i];
        r->y_allowed[at + i] = error * fabs(value[i]);
        r->normed[at + i] = r->y[at + i] * norm * (weights[2] ? weights[2][i] : 1);
        r->normed_allowed[at + i] = (error / gate + 1e-6) * fabs(r->normed[at + i]);
    }
}

/* Pads with padding, but for a joined value, which key's rows have at their end. */
static matrix create(kiln_stream *stream, precision p, const shape *s, int64_t cols, int64_t stride) {
    matrix m = matrix_create(stream, p, s->tokens, cols, stride ? stride : cols + s->padding, s->place);
    matrix_fill(&m, any_number);
    return m;
}

static int64_t stride_of(const matrix *m) {
    return m->stride == m->cols ? 0 : m->stride;
}

static void run(kiln_stream *stream, precision p, shape s) {
    harness_describe("engram_gate_%s %lld x %lld x %lld, padding %lld, at %lld, %s weights%s%s, eps %g %g",
                     precision_name(p), (long long)s.tokens, (long long)s.groups, (long long)s.cols,
                     (long long)s.padding, (long long)s.place, s.weighted ? "with" : "without",
                     s.in_place ? ", in place" : "", s.joined ? ", joined" : "", s.eps, s.norm_eps);
    int64_t all = s.groups * s.cols;
    matrix y = create(stream, p, &s, all, 0), normed = create(stream, p, &s, all, 0);
    matrix key = create(stream, p, &s, s.joined ? all + s.cols : all, 0), query = create(stream, p, &s, all, 0);
    matrix value = create(stream, p, &s, s.cols, 0), weights[3];
    const double *rows[3] = {NULL};
    results r = results_create(s.tokens * all);
    for (int i = 0; i < 3; i++) {
        weights[i] = matrix_create(stream, p, 1, all, 0, s.place);
        matrix_fill(&weights[i], weight_number);
    }
    matrix_poison(&y);
    matrix_poison(&normed);
    for (int64_t row = 0; row < s.tokens * s.groups; row++) {
        int64_t token = row / s.groups, col = row % s.groups * s.cols;
        const double *values = s.joined ? key.values + token * key.cols + all : value.values + token * s.cols;
        for (int i = 0; i < 3 && s.weighted; i++)
            rows[i] = weights[i].values + col;
        reference_row(&s, key.values + token * key.cols + col, query.values + token * all + col, values, rows, &r,
                      row * s.cols);
    }
    matrix *to = s.in_place ? &query : &y;
    const char *joined = (const char *)key.data + (size_t)all * precision_size(p);
    kiln_engram_gate_params params = {.y = to->data,
                                      .normed = normed.data,
                                      .key = key.data,
                                      .query = query.data,
                                      .value = s.joined ? joined : value.data,
                                      .key_weight = s.weighted ? weights[0].data : NULL,
                                      .query_weight = s.weighted ? weights[1].data : NULL,
                                      .norm_weight = s.weighted ? weights[2].data : NULL,
                                      .tokens = s.tokens,
                                      .groups = s.groups,
                                      .cols = s.cols,
                                      .y_stride = stride_of(to),
                                      .normed_stride = stride_of(&normed),
                                      .key_stride = s.joined ? key.stride : stride_of(&key),
                                      .query_stride = stride_of(&query),
                                      .value_stride = s.joined ? key.stride : stride_of(&value),
                                      .eps = (float)s.eps,
                                      .norm_eps = (float)s.norm_eps};
    const kiln_operator_function *function = operator_function(&kiln__operator_engram_gate, p);
    if (s.in_place) params.normed = NULL;
    harness_ok(function->call(stream, &params, sizeof params));
    matrix_expect(to, r.y, r.y_allowed);
    if (!s.in_place) matrix_expect(&normed, r.normed, r.normed_allowed);
    matrix_expect_unchanged(&key);
    matrix_expect_unchanged(&value);
    matrix *rest[] = {&y, &normed, &key, &query, &value, &weights[0], &weights[1], &weights[2]};
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++)
        matrix_destroy(rest[i]);
    results_destroy(&r);
}

static void test_shapes(kiln_stream *stream) {
    static const int64_t cols[] = {1, 3, 8, 17, 64, 100, 257, 1024, 2500, 4096, 8195};
    static const int64_t places[] = {0, 0, 1, 3, 8, AT_END};
    static const double epsilons[] = {0, 0, 1e-5, 1};
    for (precision p = precision_first(); p < precision_end(); p++)
        for (size_t i = 0; i < sizeof cols / sizeof *cols; i++) {
            magnitude = (double[]){1, 1e-2, 30}[random_integer(0, 2)];
            shape s = {.tokens = random_integer(1, cols[i] < 300 ? 200 / cols[i] + 2 : 2),
                       .groups = random_integer(1, cols[i] < 3000 ? 4 : 2),
                       .cols = cols[i],
                       .padding = random_integer(0, 1) ? 0 : random_integer(0, 17),
                       .place = places[random_integer(0, 5)],
                       .weighted = random_integer(0, 2) > 0,
                       .in_place = random_integer(0, 2) == 0,
                       .joined = random_integer(0, 2) == 0,
                       .eps = epsilons[random_integer(0, 3)],
                       .norm_eps = epsilons[random_integer(0, 3)]};
            run(stream, p, s);
            s.padding = s.place = 0;
            run(stream, p, s);
        }
}

/* Results of more than the 8 MB from which the CPU writes past the caches. */
static void test_large(kiln_stream *stream) {
    if (!harness_on_cpu(stream)) return;
    magnitude = 1;
    run(stream, BF16, (shape){.tokens = 1100, .groups = 4, .cols = 1001, .padding = 3, .place = 1, .weighted = true});
}

/* Products of 0, by zeros and by cancellation, and of NaN; a gate that is all but shut and one all but open. */
static void test_special_values(kiln_stream *stream) {
    enum { TOKENS = 5, COLS = 8 };
    for (precision p = precision_first(); p < precision_end(); p++) {
        double keys[TOKENS][COLS] = {{0}}, queries[TOKENS][COLS], values[TOKENS][COLS], expected[TOKENS][COLS];
        double allowed[TOKENS][COLS], weights[COLS];
        harness_describe("engram_gate_%s of special values", precision_name(p));
        for (int i = 0; i < COLS; i++) {
            keys[1][i] = i % 2 ? -1 : 1;
            keys[2][i] = i == 3 ? (double)NAN : 1;
            keys[3][i] = 1;
            keys[4][i] = -1;
            weights[i] = 100;
            for (int t = 0; t < TOKENS; t++) {
                queries[t][i] = 1;
                values[t][i] = i;
                double gate = t < 2    ? 0.5
                              : t == 2 ? (double)NAN
                                       : 1 / (1 + exp((t == 3 ? -1 : 1) * 100 * sqrt(sqrt(8))));
                expected[t][i] = gate * i;
                allowed[t][i] = t == 2 ? 0 : 1e-30 + 1e-4 * fabs(expected[t][i]);
            }
        }
        matrix tensors[4], weight = matrix_create(stream, p, 1, COLS, 0, 0);
        const double *const numbers[] = {keys[0], queries[0], values[0]};
        for (int i = 0; i < 4; i++)
            tensors[i] = matrix_create(stream, p, TOKENS, COLS, 0, 0);
        for (int i = 0; i < 3; i++)
            matrix_set(&tensors[i], numbers[i]);
        matrix_set(&weight, weights);
        kiln_engram_gate_params params = {.y = tensors[3].data,
                                          .key = tensors[0].data,
                                          .query = tensors[1].data,
                                          .value = tensors[2].data,
                                          .key_weight = weight.data,
                                          .query_weight = weight.data,
                                          .tokens = TOKENS,
                                          .groups = 1,
                                          .cols = COLS};
        harness_ok(operator_function(&kiln__operator_engram_gate, p)->call(stream, &params, sizeof params));
        matrix_expect(&tensors[3], expected[0], allowed[0]);
        for (int i = 0; i < 4; i++)
            matrix_destroy(&tensors[i]);
        matrix_destroy(&weight);
    }
}

static void test_refusals(kiln_stream *stream) {
    float memory[8] = {0}, other[8], third[8];
    const kiln_engram_gate_params good = {
        .y = memory, .key = other, .query = other, .value = other, .tokens = 2, .groups = 2, .cols = 2};
    const kiln_operator_function *function = operator_function(&kiln__operator_engram_gate, F32);
#define REFUSED(field, value, parameter)                                     \
    do {                                                                     \
        kiln_engram_gate_params params = good;                               \
        params.field = value;                                                \
        expect_refusal(stream, function, &params, sizeof params, parameter); \
    } while (0)
    REFUSED(tokens, -1, "tokens");
    REFUSED(groups, -1, "groups");
    REFUSED(groups, (int64_t)1 << 23, "groups");
    REFUSED(cols, -1, "cols");
    REFUSED(cols, (int64_t)1 << 32, "cols");
    REFUSED(eps, -1, "eps");
    REFUSED(norm_eps, 1e-31f, "norm_eps");
    REFUSED(y, NULL, "y");
    REFUSED(key_stride, 3, "key");
    REFUSED(query, (const char *)other + 1, "query");
    REFUSED(value_stride, 1, "value");
    REFUSED(key_weight, (const char *)other + 1, "key_weight");
    REFUSED(normed, memory, "normed");
    REFUSED(normed, (char *)third + 2, "normed");
#undef REFUSED
    kiln_engram_gate_params params = good;
    params.query = memory;
    params.query_stride = 5;
    expect_refusal(stream, function, &params, sizeof params, "y_stride");
    params = good;
    params.tokens = 0;
    params.y = NULL;
    harness_ok(kiln_engram_gate_f32(stream, &params));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        on_each_device(test_shapes),
        on_one_device(test_large),
        on_each_device(test_special_values),
        on_one_device(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
