/* softmax_update against f64: blocks of scores, states merged, both at once; sums that one float would lose; and what a
 * row is after many blocks. */
#include "tests/ops/harness.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct shape {
    int64_t rows, cols, padding, place;
    bool with_before, with_other, with_x;
} shape;

static double logit(void) {
    return random_number(-4, 4);
}

static double wide_logit(void) {
    return random_number(-100, 100);
}

static double special_logit(void) {
    static const double values[] = {-INFINITY, -INFINITY, INFINITY, NAN, 0, -0.0, 60000};
    return random_integer(0, 20) ? random_number(-4, 4) : values[random_integer(0, 6)];
}

static double far_place;

static double far_logit(void) {
    return far_place + random_number(-40, 40);
}

static double lowest(void) {
    return -INFINITY;
}

/* ---- States: the maxima of all rows, their sums, their compensations --------------------------------------------- */

/* Sums that others could have left; some are empty, some infinite. */
static void fill_states(matrix *states, double place) {
    int64_t rows = states->cols;
    for (int64_t row = 0; row < rows; row++) {
        int64_t kind = random_integer(0, 9);
        double max = !kind ? -INFINITY : kind == 1 && place > 50 ? INFINITY : random_number(-place, place);
        double sum = kind ? random_number(1, 1000) : 0;
        states->values[row] = max;
        states->values[rows + row] = sum;
        states->values[2 * rows + row] = sum * random_number(-0x1p-25, 0x1p-25);
    }
    matrix_set(states, states->values);
}

/* What terms with these logarithms add up to. */
typedef struct total {
    double max, sum;
} total;

static double origin_of(double max) {
    return max == -INFINITY ? 0 : max;
}

static double weight_of(double x, double max) {
    return x == max && isinf(max) && max > 0 ? 1 : exp(x - origin_of(max));
}

static void add_total(total *t, double max, double sum) {
    double greatest = fmax(t->max, max);
    t->sum = t->sum * weight_of(t->max, greatest) + sum * weight_of(max, greatest);
    t->max = greatest;
}

static void add_states(total *t, const matrix *states, int64_t row) {
    int64_t rows = states->cols;
    add_total(t, states->values[row], states->values[rows + row] + states->values[2 * rows + row]);
}

/* ---- One call ---------------------------------------------------------------------------------------------------- */

static void expect_near(const char *what, int64_t row, double got, double expected, double allowed) {
    if (isnan(expected) ? isnan(got) : isinf(expected) ? got == expected : fabs(got - expected) <= allowed) return;
    harness_fail("%s of row %lld is %.9g: %.9g is expected, within %g", what, (long long)row, got, expected, allowed);
}

static void run(kiln_stream *stream, precision p, shape s, double (*value)(void), double place) {
    harness_describe("softmax_update_%s %lld x %lld, padding %lld, at %lld%s%s%s", precision_name(p), (long long)s.rows,
                     (long long)s.cols, (long long)s.padding, (long long)s.place, s.with_x ? ", x" : "",
                     s.with_before ? ", before" : "", s.with_other ? ", other" : "");
    bool in_place = s.with_before && random_integer(0, 1), wants_more = random_integer(0, 3) != 0;
    matrix x = matrix_create(stream, p, s.rows, s.cols ? s.cols : 1, (s.cols ? s.cols : 1) + s.padding, s.place);
    matrix before = matrix_create(stream, F32, 3, s.rows, 0, 0),
           other = matrix_create(stream, F32, 3, s.rows, 0, AT_END);
    matrix states = matrix_create(stream, F32, 3, s.rows, 0, AT_END), *out = in_place ? &before : &states;
    matrix scale = matrix_create(stream, F32, 1, s.rows, 0, AT_END), lse = matrix_create(stream, F32, 1, s.rows, 0, 0);
    matrix_fill(&x, value);
    fill_states(&before, place);
    fill_states(&other, place);
    total *totals = malloc(sizeof *totals * (size_t)s.rows);
    double *scales = malloc(sizeof *scales * (size_t)s.rows);
    assert_true(totals && scales);
    for (int64_t row = 0; row < s.rows; row++) {
        totals[row] = (total){-INFINITY, 0};
        if (s.with_before) add_states(&totals[row], &before, row);
        double max = totals[row].max;
        if (s.with_other) add_states(&totals[row], &other, row);
        for (int64_t i = 0; s.with_x && i < s.cols; i++) {
            double score = x.values[row * x.cols + i];
            if (isnan(score))
                totals[row].sum = NAN;
            else
                add_total(&totals[row], score, score == -INFINITY ? 0 : 1);
        }
        scales[row] = max == -INFINITY ? 0 : weight_of(max, totals[row].max);
    }
    kiln_softmax_update_params params = {.states = out->data,
                                         .scale = wants_more ? scale.data : NULL,
                                         .lse = wants_more ? lse.data : NULL,
                                         .x = s.with_x ? x.data : NULL,
                                         .before = s.with_before ? before.data : NULL,
                                         .other = s.with_other ? other.data : NULL,
                                         .rows = s.rows,
                                         .cols = s.with_x ? s.cols : 0,
                                         .x_stride = s.padding ? x.stride : 0};
    harness_ok(operator_function(&kiln__operator_softmax_update, p)->call(stream, &params, sizeof params));
    matrix_get(out);
    for (int64_t row = 0; row < s.rows; row++) {
        const total *t = &totals[row];
        double sum = out->values[s.rows + row] + out->values[2 * s.rows + row];
        expect_near("the maximum", row, out->values[row], t->max, 0);
        expect_near("the sum", row, sum, t->sum, 1e-6 * t->sum);
        if (!isnan(t->sum) && !(fabs(out->values[2 * s.rows + row]) <= 0x1p-16 * t->sum))
            harness_fail("the compensation of row %lld is %g beside %g", (long long)row, out->values[2 * s.rows + row],
                         t->sum);
    }
    if (wants_more) {
        matrix_get(&scale);
        matrix_get(&lse);
        for (int64_t row = 0; row < s.rows; row++) {
            double expected = origin_of(totals[row].max) + log(totals[row].sum);
            expect_near("the scale", row, scale.values[row], scales[row], 1.2e-7 * scales[row] + 0x1p-126);
            expect_near("the lse", row, lse.values[row], expected, 1.3e-6 + fabs(expected) * 0x1p-24);
        }
    } else {
        matrix_expect_unchanged(&scale);
        matrix_expect_unchanged(&lse);
    }
    matrix_expect_unchanged(&x);
    matrix_expect_unchanged(&other);
    if (!in_place) matrix_expect_unchanged(&before);
    if (in_place) matrix_expect_unchanged(&states);
    matrix_destroy(&x);
    matrix_destroy(&before);
    matrix_destroy(&other);
    matrix_destroy(&states);
    matrix_destroy(&scale);
    matrix_destroy(&lse);
    free(totals);
    free(scales);
}

static void test_shapes(kiln_stream *stream) {
    static const int64_t cols[] = {1, 2, 7, 8, 17, 33, 64, 100, 257, 1000, 1023, 4096, 4099};
    double (*values[])(void) = {logit, wide_logit, special_logit, logit};
    for (precision p = precision_first(); p < precision_end(); p++) {
        for (size_t i = 0; i < sizeof cols / sizeof *cols; i++)
            run(stream, p,
                (shape){.rows = random_integer(1, cols[i] < 1000 ? 20 : 3),
                        .cols = cols[i],
                        .padding = random_integer(0, 17),
                        .place = random_place(),
                        .with_before = random_integer(0, 2) != 0,
                        .with_other = random_integer(0, 2) == 0,
                        .with_x = true},
                values[i % 4], i % 3 ? 5 : 100);
        run(stream, p, (shape){.rows = 11, .cols = 64, .with_before = true, .with_x = true}, lowest, 3);
        run(stream, p, (shape){.rows = 3, .cols = 40, .with_x = true}, lowest, 3);
        run(stream, p, (shape){.rows = 300, .with_before = true, .with_other = true}, logit, 5);
        run(stream, p, (shape){.rows = 5, .with_other = true}, logit, 100);
        run(stream, p, (shape){.rows = 7, .with_x = true, .with_before = true}, logit, 5);
        run(stream, p, (shape){.rows = 2, .cols = 20008, .with_before = true, .with_x = true}, logit, 5);
    }
}

/* Scores that are near each other and far from 0. */
static void test_far_scores(kiln_stream *stream) {
    static const double places[] = {-1500, 20000, -33000, 62000, 1e6, -1e30};
    for (precision p = precision_first(); p < precision_end(); p++)
        for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
            far_place = places[i];
            run(stream, p, (shape){.rows = 2, .cols = 200, .place = AT_END, .with_x = true}, far_logit, 5);
        }
}

/* 2^21 scores at once, of which the last is the greatest. */
static void test_longest(kiln_stream *stream) {
    if (!harness_on_cpu(stream)) return;
    run(stream, F32, (shape){.rows = 1, .cols = 1 << 21, .with_x = true}, logit, 5);
    run(stream, BF16, (shape){.rows = 2, .cols = (1 << 21) - 1, .place = 3, .with_x = true}, logit, 5);
}

/* ---- Many calls -------------------------------------------------------------------------------------------------- */

/* A large sum, and then small ones: one float would lose all of them. Then both are halved. */
static void test_beside_large(kiln_stream *stream) {
    harness_describe("softmax_update_f32 of small sums beside a large one");
    enum { MERGES = 40 };
    matrix states = matrix_create(stream, F32, 3, 1, 0, 0), other = matrix_create(stream, F32, 3, 1, 0, 0);
    matrix_set(&states, (const double[]){0, 1e10, 0});
    matrix_set(&other, (const double[]){0, 1, 0});
    kiln_softmax_update_params params = {.states = states.data, .before = states.data, .other = other.data, .rows = 1};
    const kiln_operator_function *function = operator_function(&kiln__operator_softmax_update, F32);
    for (int i = 0; i < MERGES; i++)
        harness_ok(function->call(stream, &params, sizeof params));
    matrix_expect_exact(&states, (const double[]){0, 1e10, MERGES});
    matrix_set(&other, (const double[]){log(2), 0, 0});
    harness_ok(function->call(stream, &params, sizeof params));
    matrix_expect(&states, (const double[]){log(2), 5e9, (double)MERGES / 2}, (const double[]){0, 500, 501});
    matrix_get(&states);
    double sum = states.values[1] + states.values[2];
    if (!(fabs(sum - (1e10 + (double)MERGES) / 2) < 1000)) harness_fail("the sum is %.12g", sum);
    matrix_destroy(&states);
    matrix_destroy(&other);
}

/* Of two states it does not matter, to the bit, which is merged with which; a third comes first or last. */
static void test_order(kiln_stream *stream) {
    harness_describe("softmax_update_f32 of states in any order");
    enum { ROWS = 40 };
    matrix parts[3], merged[4];
    for (int i = 0; i < 3; i++) {
        parts[i] = matrix_create(stream, F32, 3, ROWS, 0, 0);
        fill_states(&parts[i], 5);
    }
    const int order[4][3] = {{0, 1, -1}, {1, 0, -1}, {0, 1, 2}, {2, 1, 0}};
    const kiln_operator_function *function = operator_function(&kiln__operator_softmax_update, F32);
    for (int i = 0; i < 4; i++) {
        merged[i] = matrix_create(stream, F32, 3, ROWS, 0, 0);
        kiln_softmax_update_params params = {.states = merged[i].data, .rows = ROWS};
        for (int j = 0; j < 3 && order[i][j] >= 0; j++) {
            params.before = j ? merged[i].data : NULL;
            params.other = parts[order[i][j]].data;
            harness_ok(function->call(stream, &params, sizeof params));
        }
        matrix_get(&merged[i]);
    }
    if (memcmp(merged[0].values, merged[1].values, 3 * ROWS * sizeof(double)) != 0) harness_fail("a + b is not b + a");
    for (int row = 0; row < ROWS; row++) {
        double sums[2];
        for (int i = 0; i < 2; i++)
            sums[i] = merged[2 + i].values[ROWS + row] + merged[2 + i].values[2 * ROWS + row];
        expect_near("the maximum", row, merged[2].values[row], merged[3].values[row], 0);
        expect_near("the sum", row, sums[0], sums[1], 5e-7 * sums[1]);
    }
    for (int i = 0; i < 3; i++)
        matrix_destroy(&parts[i]);
    for (int i = 0; i < 4; i++)
        matrix_destroy(&merged[i]);
}

static void test_refusals(kiln_stream *stream) {
    harness_describe("softmax_update_f32 and what it refuses");
    matrix x = matrix_create(stream, F32, 3, 8, 0, 0), states = matrix_create(stream, F32, 3, 3, 0, 0);
    const kiln_operator_function *function = operator_function(&kiln__operator_softmax_update, F32);
    kiln_softmax_update_params params = {.states = states.data, .rows = 3, .cols = 8};
    expect_refusal(stream, function, &params, sizeof params, "x");
    params.other = states.data;
    expect_refusal(stream, function, &params, sizeof params, "cols");
    params.x = x.data;
    params.x_stride = 7;
    expect_refusal(stream, function, &params, sizeof params, "x_stride");
    params.x_stride = 0;
    params.states = NULL;
    expect_refusal(stream, function, &params, sizeof params, "states");
    params.states = states.data;
    params.before = (const float *)((const char *)states.data + 2);
    expect_refusal(stream, function, &params, sizeof params, "before");
    params.before = NULL;
    params.rows = -1;
    expect_refusal(stream, function, &params, sizeof params, "rows");
    params.rows = 3;
    params.cols = (int64_t)INT32_MAX + 1;
    expect_refusal(stream, function, &params, sizeof params, "cols");
    params.rows = 0;
    params.cols = 8;
    harness_ok(function->call(stream, &params, sizeof params));
    matrix_expect_unchanged(&x);
    matrix_expect_unchanged(&states);
    matrix_destroy(&x);
    matrix_destroy(&states);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        on_each_device(test_shapes),       on_each_device(test_far_scores), on_one_device(test_longest),
        on_each_device(test_beside_large), on_each_device(test_order),      on_one_device(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
