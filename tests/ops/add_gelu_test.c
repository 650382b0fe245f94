/* add_gelu against f64, in its three forms. */
#include "tests/ops/harness.h"
#include <math.h>
#include <stdlib.h>

typedef struct shape {
    int64_t rows, cols, x_padding, y_padding;
    int64_t x_place, y_place, bias_place;
    bool no_bias;
} shape;

static double activation(void) {
    return random_number(-8, 8);
}

static double large_activation(void) {
    return random_number(-200, 200);
}

static double special_activation(void) {
    static const double values[] = {0,      -0.0, INFINITY, -INFINITY, NAN,    1e-40,
                                    -1e-45, 3e38, -3e38,    65504,     -65504, 1e-20};
    return values[random_integer(0, sizeof values / sizeof *values - 1)];
}

/* The function at t, the f32 sum of x and the bias. */
static double gelu(kiln_gelu approx, double t) {
    if (isinf(t)) return t < 0 ? -0.0 : t;
    switch (approx) {
    case KILN_GELU_ERF:
        return 0.5 * t * erfc(-t / sqrt(2));
    case KILN_GELU_TANH:
        return t / (1 + exp(-2 * sqrt(2 / acos(-1)) * (t + 0.044715 * t * t * t)));
    default:
        return t / (1 + exp(-1.702 * t));
    }
}

/* Runs on x, which is set; y may be x. */
static void run_on_matrix(kiln_stream *stream, kiln_gelu approx, matrix *x, matrix *bias, matrix *y) {
    size_t bytes = sizeof(double) * (size_t)(x->rows * x->cols);
    double *expected = malloc(bytes), *allowed = malloc(bytes);
    assert_true(expected && allowed);
    for (int64_t i = 0; i < x->rows * x->cols; i++) {
        double t = (float)(x->values[i] + (bias ? bias->values[i % x->cols] : 0));
        expected[i] = gelu(approx, t);
        allowed[i] = isfinite(expected[i]) ? 1e-6 + 1e-6 * fabs(expected[i]) : 0;
    }
    kiln_add_gelu_params params = {.y = y->data,
                                   .x = x->data,
                                   .bias = bias ? bias->data : NULL,
                                   .rows = x->rows,
                                   .cols = x->cols,
                                   .y_stride = y->stride == y->cols ? 0 : y->stride,
                                   .x_stride = x->stride == x->cols ? 0 : x->stride,
                                   .approx = (int32_t)approx};
    harness_ok(operator_function(&kiln__operator_add_gelu, x->p)->call(stream, &params, sizeof params));
    matrix_expect(y, expected, allowed);
    for (int64_t i = 0; i < x->rows * x->cols; i++) {
        if (expected[i] == 0 && signbit(y->values[i]) != signbit(expected[i])) {
            harness_fail("element %lld: got %g, expected %g", (long long)i, y->values[i], expected[i]);
        }
    }
    if (y != x) matrix_expect_unchanged(x);
    if (bias) matrix_expect_unchanged(bias);
    free(expected);
    free(allowed);
}

static void run(kiln_stream *stream, precision p, kiln_gelu approx, shape s, bool in_place, double (*value)(void)) {
    harness_describe("add_gelu_%s %lld x %lld, form %d, padding %lld and %lld, at %lld, %lld, %lld%s%s",
                     precision_name(p), (long long)s.rows, (long long)s.cols, approx, (long long)s.x_padding,
                     (long long)s.y_padding, (long long)s.x_place, (long long)s.y_place, (long long)s.bias_place,
                     s.no_bias ? ", no bias" : "", in_place ? ", in place" : "");
    matrix x = matrix_create(stream, p, s.rows, s.cols, s.cols + s.x_padding, s.x_place);
    matrix y = matrix_create(stream, p, s.rows, s.cols, s.cols + s.y_padding, s.y_place);
    matrix bias = matrix_create(stream, p, 1, s.cols, 0, s.bias_place);
    matrix_fill(&x, value);
    matrix_fill(&bias, activation);
    run_on_matrix(stream, approx, &x, s.no_bias ? NULL : &bias, in_place ? &x : &y);
    matrix_destroy(&x);
    matrix_destroy(&y);
    matrix_destroy(&bias);
}

static void test_shapes(kiln_stream *stream) {
    static const int64_t cols[] = {1,  2,   3,   4,   7,    8,    9,    15,   16,   17,   31,    32,   33,
                                   64, 100, 255, 257, 1000, 1023, 2048, 4095, 4096, 4097, 11008, 65537};
    for (precision p = precision_first(); p < precision_end(); p++) {
        for (size_t i = 0; i < sizeof cols / sizeof *cols; i++) {
            kiln_gelu approx = (kiln_gelu)(i % 3);
            run(stream, p, approx, (shape){.rows = 1, .cols = cols[i]}, false, activation);
            shape s = {random_integer(2, cols[i] < 1000 ? 40 : 4),
                       cols[i],
                       random_integer(0, 17),
                       random_integer(0, 17),
                       random_place(),
                       random_place(),
                       random_place(),
                       i % 5 == 0};
            run(stream, p, (kiln_gelu)random_integer(0, 2), s, i % 4 == 3, i % 3 ? activation : large_activation);
        }
    }
}

/* Steps of a thousandth over the range where the forms bend. */
static void test_sweep(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++) {
        for (int form = 0; form < 3; form++) {
            matrix x = matrix_create(stream, p, 1, 40001, 0, 0);
            matrix y = matrix_create(stream, p, 1, 40001, 0, AT_END);
            harness_describe("add_gelu_%s from -20 to 20, form %d", precision_name(p), form);
            for (int64_t i = 0; i < x.cols; i++) {
                x.values[i] = (double)(i - 20000) * 1e-3;
            }
            matrix_set(&x, x.values);
            run_on_matrix(stream, (kiln_gelu)form, &x, NULL, &y);
            matrix_destroy(&x);
            matrix_destroy(&y);
        }
    }
}

static void test_special_values(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++) {
        for (int form = 0; form < 3; form++) {
            shape s = {.rows = 3, .cols = 500, .y_place = 1, .no_bias = true};
            run(stream, p, (kiln_gelu)form, s, false, special_activation);
            s.no_bias = false;
            run(stream, p, (kiln_gelu)form, s, true, special_activation);
            s.cols = 512; /* aligned */
            s.y_place = 0;
            run(stream, p, (kiln_gelu)form, s, false, special_activation);
        }
    }
}

/* So many that a thread takes two vectors: kiln__thread_vectors_log2. */
static void test_several_vectors(kiln_stream *stream) {
    run(stream, F32, KILN_GELU_QUICK, (shape){.rows = 65, .cols = 4100}, false, activation);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        on_each_device(test_shapes),
        on_each_device(test_sweep),
        on_each_device(test_special_values),
        on_each_device(test_several_vectors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
