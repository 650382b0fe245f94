/* log_softmax against f64: the logarithms, the sums' logarithms alone, and both. */
#include "tests/ops/harness.h"
#include <math.h>
#include <stdlib.h>

typedef struct shape {
    int64_t rows, cols, x_padding, y_padding; /* elements between rows */
    int64_t x_place, y_place;
} shape;

static double logit(void) {
    return random_number(-4, 4);
}

static double wide_logit(void) {
    return random_number(-100, 100);
}

static double low_logit(void) {
    return random_integer(0, 3) ? random_number(-1000, -900) : (double)-INFINITY;
}

/* Some rows have one of them, and many none. */
static double special_logit(void) {
    static const double values[] = {-INFINITY, INFINITY, NAN, 0, -0.0, 60000, -60000};
    return random_integer(0, 300) ? random_number(-4, 4) : values[random_integer(0, 6)];
}

static double lowest(void) {
    return -INFINITY;
}

/* A row's lse, y and the errors that they may have: the sum's relative error, and the roundings of two differences. */
static void reference(const double *x, int64_t cols, double *y, double *y_allowed, double *lse, double *lse_allowed) {
    double max = -INFINITY, sum = 0;
    bool nan = false;
    for (int64_t i = 0; i < cols; i++) {
        nan |= isnan(x[i]);
        max = fmax(max, x[i]);
    }
    double origin = isinf(max) ? 0 : max;
    for (int64_t i = 0; i < cols; i++)
        sum += max == INFINITY ? 0 : exp(x[i] - origin);
    *lse = nan ? (double)NAN : isinf(max) ? max : origin + log(sum);
    *lse_allowed = isfinite(*lse) ? 1e-6 + fabs(*lse) * 0x1p-24 : 0;
    for (int64_t i = 0; i < cols; i++) {
        y[i] = nan || max == INFINITY ? (double)NAN : max == -INFINITY ? max : x[i] - *lse;
        y_allowed[i] = isfinite(y[i]) ? 1e-6 + fabs(y[i]) * 0x1p-23 : 0;
    }
}

static void run_on_matrix(kiln_stream *stream, matrix *x, matrix *y, bool wants_y) {
    int64_t count = x->rows * x->cols;
    double *values = malloc(sizeof *values * (size_t)(2 * (count + x->rows)));
    assert_non_null(values);
    double *allowed = values + count, *sums = allowed + count, *sums_allowed = sums + x->rows;
    for (int64_t row = 0; row < x->rows; row++)
        reference(x->values + row * x->cols, x->cols, values + row * x->cols, allowed + row * x->cols, sums + row,
                  sums_allowed + row);
    matrix lse = matrix_create(stream, F32, 1, x->rows, 0, AT_END);
    kiln_log_softmax_params params = {.y = wants_y ? y->data : NULL,
                                      .lse = lse.data,
                                      .x = x->data,
                                      .rows = x->rows,
                                      .cols = x->cols,
                                      .y_stride = y->stride == y->cols ? 0 : y->stride,
                                      .x_stride = x->stride == x->cols ? 0 : x->stride};
    const kiln_operator_function *function = operator_function(&kiln__operator_log_softmax, x->p);
    harness_ok(function->workspace_size(stream, &params, sizeof params, &params.workspace_size));
    matrix workspace = matrix_create(stream, F32, 1, (int64_t)params.workspace_size / 4 + 4, 0, 0);
    if (params.workspace_size) params.workspace = workspace.data;
    harness_ok(function->call(stream, &params, sizeof params));
    matrix_expect(&lse, sums, sums_allowed);
    if (wants_y)
        matrix_expect(y, values, allowed);
    else if (y != x)
        matrix_expect_unchanged(y);
    if (y != x) matrix_expect_unchanged(x);
    matrix_destroy(&lse);
    matrix_destroy(&workspace);
    free(values);
}

static void run(kiln_stream *stream, precision p, shape s, double (*value)(void), bool wants_y) {
    harness_describe("log_softmax_%s %lld x %lld, padding %lld and %lld, at %lld and %lld%s", precision_name(p),
                     (long long)s.rows, (long long)s.cols, (long long)s.x_padding, (long long)s.y_padding,
                     (long long)s.x_place, (long long)s.y_place, wants_y ? "" : ", lse alone");
    matrix x = matrix_create(stream, p, s.rows, s.cols, s.cols + s.x_padding, s.x_place);
    matrix y = matrix_create(stream, p, s.rows, s.cols, s.cols + s.y_padding, s.y_place);
    matrix_fill(&x, value);
    run_on_matrix(stream, &x, &y, wants_y);
    matrix_destroy(&x);
    matrix_destroy(&y);
}

static void test_shapes(kiln_stream *stream) {
    static const int64_t cols[] = {1, 2, 7, 8, 9, 17, 31, 33, 64, 100, 257, 1000, 1023, 4096, 4097, 8192, 8193, 16385};
    double (*values[])(void) = {logit, wide_logit, low_logit, special_logit};
    for (precision p = precision_first(); p < precision_end(); p++) {
        for (size_t i = 0; i < sizeof cols / sizeof *cols; i++) {
            run(stream, p, (shape){.rows = 1, .cols = cols[i]}, values[i % 4], true);
            shape s = {random_integer(2, cols[i] < 1000 ? 20 : 3),
                       cols[i],
                       random_integer(0, 17),
                       random_integer(0, 17),
                       random_place(),
                       random_place()};
            run(stream, p, s, values[random_integer(0, 3)], random_integer(0, 2) != 0);
        }
        run(stream, p, (shape){.rows = 3, .cols = 100}, lowest, true);
        for (int special = 0; special < 4; special++)
            run(stream, p, (shape){.rows = 2, .cols = 8192}, values[special], true);
    }
    if (precision_end() > F16) /* so many that half a block has a row of them */
        run(stream, (precision)(precision_end() - 1), (shape){.rows = 257, .cols = 4096}, special_logit, true);
}

/* A row in some of whose chunks there is nothing but -inf, or an infinity, or elements far below the others'. */
static void run_special(kiln_stream *stream, precision p, int64_t cols, int special) {
    harness_describe("log_softmax_%s of a row of %lld, kind %d", precision_name(p), (long long)cols, special);
    matrix x = matrix_create(stream, p, 1, cols, 0, 0), y = matrix_create(stream, p, 1, cols, 0, AT_END);
    for (int64_t i = 0; i < cols; i++)
        x.values[i] = i < 20000 ? -INFINITY : special == 1 && i > 40000 ? 300 : random_number(-4, 4);
    if (special == 2) x.values[1] = INFINITY;
    if (special == 3) x.values[cols - 1] = NAN;
    if (special == 2) x.values[cols - 1] = 300;
    matrix_set(&x, x.values);
    run_on_matrix(stream, &x, &y, true);
    matrix_destroy(&x);
    matrix_destroy(&y);
}

/* Rows of many chunks, and rows that a cluster of blocks holds on some devices: those that begin on 16 bytes, with
 * whole vectors, up to 1 MiB. */
static void test_long_rows(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++) {
        int64_t cols = 50003, most = (1 << 18) / (int64_t)precision_size(p);
        run(stream, p, (shape){.rows = 1, .cols = cols, .x_padding = 1, .x_place = 3}, logit, true);
        run(stream, p, (shape){.rows = 2, .cols = cols}, low_logit, false);
        run(stream, p, (shape){.rows = 2, .cols = 40000, .x_padding = 8, .y_padding = 16}, special_logit, true);
        run(stream, p, (shape){.rows = 2, .cols = most}, wide_logit, false);
        run(stream, p, (shape){.rows = 1, .cols = most}, logit, true);
        for (int64_t more = 1; more <= 4; more *= 2)
            run(stream, p, (shape){.rows = 1, .cols = more * most + 8}, logit, true);
        run(stream, p, (shape){.rows = 1, .cols = 40000}, lowest, true);
        for (int special = 0; special < 4; special++) {
            run_special(stream, p, cols, special);
            run_special(stream, p, cols - 3, special);
        }
    }
}

/* 2^21 elements: the sum is as good as that of few. */
static void test_longest(kiln_stream *stream) {
    if (!harness_on_cpu(stream)) return;
    run(stream, F32, (shape){.rows = 1, .cols = 1 << 21}, logit, true);
    run(stream, BF16, (shape){.rows = 1100, .cols = 4000, .x_place = 5}, wide_logit, true);
}

static void test_in_place(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++) {
        harness_describe("log_softmax_%s in place", precision_name(p));
        matrix x = matrix_create(stream, p, 3, 777, 780, 0);
        matrix_fill(&x, logit);
        run_on_matrix(stream, &x, &x, true);
        matrix_destroy(&x);
    }
}

static void test_refusals(kiln_stream *stream) {
    harness_describe("log_softmax_f32 and what it refuses");
    matrix x = matrix_create(stream, F32, 1, 8193, 0, 0);
    const kiln_operator_function *function = operator_function(&kiln__operator_log_softmax, F32);
    float lse[4];
    kiln_log_softmax_params params = {.y = x.data, .x = x.data, .rows = 1, .cols = 8};
    expect_refusal(stream, function, &params, sizeof params, "lse");
    params.lse = lse;
    params.x_stride = 9;
    expect_refusal(stream, function, &params, sizeof params, "y_stride");
    params.x_stride = 0;
    params.cols = 8193;
    expect_refusal(stream, function, &params, sizeof params, "workspace_size");
    params.cols = (int64_t)INT32_MAX + 1;
    expect_refusal(stream, function, &params, sizeof params, "cols");
    matrix_expect_unchanged(&x);
    matrix_destroy(&x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        on_each_device(test_shapes),  on_each_device(test_long_rows), on_one_device(test_longest),
        on_one_device(test_in_place), on_one_device(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
