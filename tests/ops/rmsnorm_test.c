/* rmsnorm and add_rmsnorm against f64. */
#include "tests/ops/harness.h"
#include <math.h>
#include <stdlib.h>

typedef struct shape {
    int64_t rows, cols, padding, place;
    bool weighted;
    double eps; /* 0: the default */
} shape;

enum { NEW, FIRST, SECOND }; /* what an output is: a tensor of its own, x, or the residual */

static double magnitude; /* of the numbers */

static double any_number(void) {
    return random_number(-magnitude, magnitude);
}

static double weight_number(void) {
    return random_number(0.5, 2);
}

/* The norm of sums, [rows, cols], of which the second form allows for the error of the sum. */
static void reference(const double *sums, const double *weight, shape s, double *expected, double *allowed) {
    double eps = s.eps == 0 ? (double)1e-6f : (double)(float)s.eps;
    for (int64_t row = 0; row < s.rows; row++) {
        const double *x = sums + row * s.cols;
        double squares = 0;
        for (int64_t i = 0; i < s.cols; i++)
            squares += x[i] * x[i];
        double scale = 1 / sqrt(squares / (double)s.cols + eps);
        for (int64_t i = 0; i < s.cols; i++) {
            int64_t at = row * s.cols + i;
            expected[at] = x[i] * scale * (weight ? weight[i] : 1);
            allowed[at] = 1e-6 * fabs(expected[at]);
        }
    }
}

static matrix create(kiln_stream *stream, precision p, shape s, int64_t place) {
    return matrix_create(stream, p, s.rows, s.cols, s.cols + s.padding, place);
}

static int64_t stride_of(const matrix *m) {
    return m->stride == m->cols ? 0 : m->stride;
}

static void run_rmsnorm(kiln_stream *stream, precision p, shape s, int in_place) {
    harness_describe("rmsnorm_%s %lld x %lld, padding %lld, at %lld, %s weights, eps %g, y is %d", precision_name(p),
                     (long long)s.rows, (long long)s.cols, (long long)s.padding, (long long)s.place,
                     s.weighted ? "with" : "without", s.eps, in_place);
    matrix x = create(stream, p, s, s.place), y = create(stream, p, s, 0);
    matrix weight = matrix_create(stream, p, 1, s.cols, 0, s.place);
    double *expected = malloc(sizeof(double) * (size_t)(s.rows * s.cols));
    double *allowed = malloc(sizeof(double) * (size_t)(s.rows * s.cols));
    assert_true(expected && allowed);
    matrix_fill(&x, any_number);
    matrix_fill(&weight, weight_number);
    reference(x.values, s.weighted ? weight.values : NULL, s, expected, allowed);
    matrix *to = in_place == FIRST ? &x : &y;
    kiln_rmsnorm_params params = {.y = to->data,
                                  .x = x.data,
                                  .weight = s.weighted ? weight.data : NULL,
                                  .rows = s.rows,
                                  .cols = s.cols,
                                  .y_stride = stride_of(to),
                                  .x_stride = stride_of(&x),
                                  .eps = (float)s.eps};
    harness_ok(operator_function(&kiln__operator_rmsnorm, p)->call(stream, &params, sizeof params));
    matrix_expect(to, expected, allowed);
    if (to != &x) matrix_expect_unchanged(&x);
    matrix_expect_unchanged(&weight);
    matrix_destroy(&x);
    matrix_destroy(&y);
    matrix_destroy(&weight);
    free(expected);
    free(allowed);
}

static void run_add_rmsnorm(kiln_stream *stream, precision p, shape s, int y_is, int sum_is) {
    harness_describe("add_rmsnorm_%s %lld x %lld, padding %lld, at %lld, %s weights, eps %g, y is %d, sum is %d",
                     precision_name(p), (long long)s.rows, (long long)s.cols, (long long)s.padding, (long long)s.place,
                     s.weighted ? "with" : "without", s.eps, y_is, sum_is);
    matrix x = create(stream, p, s, s.place), residual = create(stream, p, s, 0);
    matrix y = create(stream, p, s, 1), sum = create(stream, p, s, AT_END);
    matrix weight = matrix_create(stream, p, 1, s.cols, 0, s.place);
    size_t bytes = sizeof(double) * (size_t)(s.rows * s.cols);
    double *expected = malloc(bytes), *allowed = malloc(bytes), *sums = malloc(bytes), *zeros = calloc(1, bytes);
    assert_true(expected && allowed && sums && zeros);
    matrix_fill(&x, any_number);
    matrix_fill(&residual, any_number);
    matrix_fill(&weight, weight_number);
    for (int64_t i = 0; i < s.rows * s.cols; i++)
        sums[i] = (float)x.values[i] + (float)residual.values[i];
    reference(sums, s.weighted ? weight.values : NULL, s, expected, allowed);
    matrix *inputs[] = {NULL, &x, &residual};
    matrix *y_to = y_is == NEW ? &y : inputs[y_is], *sum_to = sum_is == NEW ? &sum : inputs[sum_is];
    kiln_add_rmsnorm_params params = {.y = y_to->data,
                                      .sum = sum_to->data,
                                      .x = x.data,
                                      .residual = residual.data,
                                      .weight = s.weighted ? weight.data : NULL,
                                      .rows = s.rows,
                                      .cols = s.cols,
                                      .y_stride = stride_of(y_to),
                                      .sum_stride = stride_of(sum_to),
                                      .x_stride = stride_of(&x),
                                      .residual_stride = stride_of(&residual),
                                      .eps = (float)s.eps};
    harness_ok(operator_function(&kiln__operator_add_rmsnorm, p)->call(stream, &params, sizeof params));
    matrix_expect(y_to, expected, allowed);
    matrix_expect(sum_to, sums, zeros);
    if (y_is != FIRST && sum_is != FIRST) matrix_expect_unchanged(&x);
    if (y_is != SECOND && sum_is != SECOND) matrix_expect_unchanged(&residual);
    matrix_destroy(&x);
    matrix_destroy(&residual);
    matrix_destroy(&y);
    matrix_destroy(&sum);
    matrix_destroy(&weight);
    free(expected);
    free(allowed);
    free(sums);
    free(zeros);
}

static const int64_t columns[] = {1,  2,   3,   4,   7,    8,    9,    16,   17,   31,   33,   64,
                                  65, 100, 255, 257, 1000, 2048, 4095, 4096, 5120, 8192, 8193, 40961};
enum { COLUMNS = sizeof columns / sizeof *columns };

static shape random_shape(int64_t cols) {
    static const int64_t places[] = {0, 0, 1, 2, 3, 5, 8, 13, AT_END};
    static const double epsilons[] = {0, 0, 1e-5, 1};
    magnitude = (double[]){1, 1e-3, 100}[random_integer(0, 2)];
    return (shape){.rows = random_integer(1, cols < 300 ? 300 / cols + 2 : 3),
                   .cols = cols,
                   .padding = random_integer(0, 1) ? 0 : random_integer(0, 17),
                   .place = places[random_integer(0, sizeof places / sizeof *places - 1)],
                   .weighted = random_integer(0, 2) > 0,
                   .eps = epsilons[random_integer(0, sizeof epsilons / sizeof *epsilons - 1)]};
}

static void test_rmsnorm(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++) {
        for (int i = 0; i < COLUMNS; i++) {
            shape s = random_shape(columns[i]);
            run_rmsnorm(stream, p, s, (int)random_integer(NEW, FIRST));
            s.padding = s.place = 0;
            run_rmsnorm(stream, p, s, NEW);
        }
    }
}

static void test_add_rmsnorm(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++) {
        for (int i = 0; i < COLUMNS; i++) {
            shape s = random_shape(columns[i]);
            int y_is = (int)random_integer(NEW, SECOND), sum_is = (int)random_integer(NEW, SECOND);
            run_add_rmsnorm(stream, p, s, y_is, sum_is == y_is ? NEW : sum_is);
            s.padding = s.place = 0;
            run_add_rmsnorm(stream, p, s, FIRST, SECOND);
        }
    }
}

/* Tensors of more than the 8 MB from which the CPU writes results past the caches. */
static void test_large(kiln_stream *stream) {
    if (!harness_on_cpu(stream)) return;
    magnitude = 1;
    shape s = {.rows = 2100, .cols = 1001, .padding = 3, .place = 1, .weighted = true};
    run_rmsnorm(stream, F32, s, NEW);
    run_add_rmsnorm(stream, F32, s, NEW, NEW);
    s = (shape){.rows = 1100, .cols = 4000};
    run_rmsnorm(stream, BF16, s, FIRST);
    run_add_rmsnorm(stream, BF16, s, FIRST, SECOND);
}

/* Rows of zeros, with a NaN, with an infinity, whose squares are beyond f32, of ones, and with one element that is not
 * zero. With a residual of zeros add_rmsnorm gives the same, and the rows themselves. */
static void run_special(kiln_stream *stream, precision p, int64_t padding, bool weighted) {
    enum { ROWS = 6, COLS = 72, LAST = COLS - 1 };
    static const double zeros[ROWS][COLS];
    shape s = {.rows = ROWS, .cols = COLS, .padding = padding};
    harness_describe("rmsnorm_%s of special values, padding %lld%s", precision_name(p), (long long)padding,
                     weighted ? ", weighted" : "");
    matrix x = create(stream, p, s, 0), y = create(stream, p, s, 0), residual = create(stream, p, s, 0);
    matrix sum = create(stream, p, s, 0), weight = matrix_create(stream, p, 1, COLS, 0, 0);
    double values[ROWS][COLS] = {{0}}, expected[ROWS][COLS] = {{0}}, allowed[ROWS][COLS] = {{0}};
    for (int i = 0; i < COLS; i++) {
        values[1][i] = i == 7 ? (double)NAN : 1;
        expected[1][i] = (double)NAN;
        values[2][i] = i == 7 ? (double)INFINITY : 1;
        expected[2][i] = i == 7 ? (double)NAN : 0;
        values[3][i] = p == F16 ? 0 : 1e30;
        values[4][i] = 1;
        expected[4][i] = 1 / sqrt(1 + 1e-6);
        allowed[4][i] = 1e-6;
        weight.values[i] = 1;
    }
    values[5][LAST] = 3;
    expected[5][LAST] = 3 / sqrt(9.0 / (double)COLS + 1e-6);
    allowed[5][LAST] = 1e-5;
    matrix_set(&x, values[0]);
    matrix_set(&residual, zeros[0]);
    matrix_set(&weight, weight.values);
    const void *weights = weighted ? weight.data : NULL;
    kiln_rmsnorm_params norm = {.y = y.data, .x = x.data, .weight = weights, .rows = ROWS, .cols = COLS};
    norm.y_stride = norm.x_stride = x.stride;
    harness_ok(operator_function(&kiln__operator_rmsnorm, p)->call(stream, &norm, sizeof norm));
    matrix_expect(&y, expected[0], allowed[0]);
    matrix_poison(&y);
    for (int i = 0; i < COLS; i++)
        values[1][i] = (double)NAN;
    matrix_set(&x, values[0]);
    kiln_add_rmsnorm_params add = {.y = y.data, .sum = sum.data, .x = x.data, .residual = residual.data};
    add.weight = weights;
    add.rows = ROWS;
    add.cols = COLS;
    add.y_stride = add.sum_stride = add.x_stride = add.residual_stride = x.stride;
    harness_describe("add_rmsnorm_%s of special values, padding %lld%s", precision_name(p), (long long)padding,
                     weighted ? ", weighted" : "");
    harness_ok(operator_function(&kiln__operator_add_rmsnorm, p)->call(stream, &add, sizeof add));
    matrix_expect(&y, expected[0], allowed[0]);
    matrix_expect_exact(&sum, x.values);
    matrix_destroy(&x);
    matrix_destroy(&y);
    matrix_destroy(&residual);
    matrix_destroy(&sum);
    matrix_destroy(&weight);
}

static void test_special_values(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int i = 0; i < 4; i++)
            run_special(stream, p, i % 2, i / 2);
}

static void test_refusals(kiln_stream *stream) {
    harness_describe("norms refused");
    matrix x = matrix_create(stream, F32, 2, 8, 0, 0), y = matrix_create(stream, F32, 2, 8, 0, 0);
    kiln_rmsnorm_params norm = {.y = y.data, .x = x.data, .rows = 2, .cols = 8, .eps = -1};
    expect_refusal(stream, operator_function(&kiln__operator_rmsnorm, F32), &norm, sizeof norm, "eps");
    norm.eps = 1e-31f;
    expect_refusal(stream, operator_function(&kiln__operator_rmsnorm, F32), &norm, sizeof norm, "eps");
    norm = (kiln_rmsnorm_params){.y = x.data, .x = x.data, .rows = 1, .cols = 4, .y_stride = 5};
    expect_refusal(stream, operator_function(&kiln__operator_rmsnorm, F32), &norm, sizeof norm, "y_stride");
    kiln_add_rmsnorm_params sum = {.y = y.data, .sum = y.data, .x = x.data, .residual = x.data, .rows = 1, .cols = 4};
    expect_refusal(stream, operator_function(&kiln__operator_add_rmsnorm, F32), &sum, sizeof sum, "sum");
    sum.sum = x.data;
    sum.sum_stride = 5;
    expect_refusal(stream, operator_function(&kiln__operator_add_rmsnorm, F32), &sum, sizeof sum, "sum_stride");
    matrix_expect_unchanged(&x);
    matrix_expect_unchanged(&y);
    matrix_destroy(&x);
    matrix_destroy(&y);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        on_each_device(test_rmsnorm),        on_each_device(test_add_rmsnorm), on_one_device(test_large),
        on_each_device(test_special_values), on_one_device(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
