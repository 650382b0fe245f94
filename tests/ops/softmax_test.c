/* softmax against f64. */
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

static double tiny_logit(void) {
    return random_number(-1e-39, 1e-39);
}

/* One row and the error that its elements may have: 1e-6 of the value; x - max, rounded to f32, adds
 * its own half ulp, which exp turns into a relative error. */
static void reference(const double *x, int64_t cols, double *y, double *allowed) {
    double max = -INFINITY, sum = 0;
    bool poisoned = false;
    for (int64_t i = 0; i < cols; i++) {
        if (isnan(x[i]) || x[i] == INFINITY) poisoned = true;
        max = fmax(max, x[i]);
    }
    for (int64_t i = 0; i < cols; i++) {
        y[i] = max == -INFINITY ? 0 : exp(x[i] - max);
        sum += y[i];
    }
    for (int64_t i = 0; i < cols; i++) {
        y[i] = poisoned ? (double)NAN : max == -INFINITY ? 0 : y[i] / sum;
        allowed[i] = y[i] > 0 ? y[i] * (1e-6 + (max - x[i]) * 0x1p-24) + 0x1p-126 : 0;
    }
}

/* Calls softmax with the workspace that it asks for. */
static void call(kiln_stream *stream, precision p, kiln_softmax_params params) {
    const kiln_operator_function *function = operator_function(&kiln__operator_softmax, p);
    size_t size = 0;
    harness_ok(function->workspace_size(stream, &params, sizeof params, &size));
    matrix workspace = matrix_create(stream, F32, 1, (int64_t)(size + 3) / 4, 0, size % 16 == 0 ? AT_END : 0);
    params.workspace = size ? workspace.data : NULL;
    params.workspace_size = size;
    harness_ok(function->call(stream, &params, sizeof params));
    harness_ok(kiln_stream_sync(stream));
    matrix_destroy(&workspace);
}

/* Softmax of x into y, which may be x. */
static void run_on_matrix(kiln_stream *stream, matrix *x, matrix *y) {
    size_t bytes = sizeof(double) * (size_t)(x->rows * x->cols);
    double *expected = malloc(bytes), *allowed = malloc(bytes);
    assert_true(expected && allowed);
    for (int64_t row = 0; harness_needs_reference() && row < x->rows; row++) {
        int64_t at = row * x->cols;
        reference(x->values + at, x->cols, expected + at, allowed + at);
    }
    call(stream, x->p,
         (kiln_softmax_params){.y = y->data,
                               .x = x->data,
                               .rows = x->rows,
                               .cols = x->cols,
                               .y_stride = y->stride == y->cols ? 0 : y->stride,
                               .x_stride = x->stride == x->cols ? 0 : x->stride});
    matrix_expect(y, expected, allowed);
    if (y != x) matrix_expect_unchanged(x);
    free(expected);
    free(allowed);
}

static void run(kiln_stream *stream, precision p, shape s, double (*value)(void)) {
    harness_describe("softmax_%s %lld x %lld, padding %lld and %lld, at %lld and %lld", precision_name(p),
                     (long long)s.rows, (long long)s.cols, (long long)s.x_padding, (long long)s.y_padding,
                     (long long)s.x_place, (long long)s.y_place);
    matrix x = matrix_create(stream, p, s.rows, s.cols, s.cols + s.x_padding, s.x_place);
    matrix y = matrix_create(stream, p, s.rows, s.cols, s.cols + s.y_padding, s.y_place);
    matrix_fill(&x, value);
    run_on_matrix(stream, &x, &y);
    matrix_destroy(&x);
    matrix_destroy(&y);
}

static void test_shapes(kiln_stream *stream) {
    static const int64_t cols[] = {1,   2,   3,    7,    8,    9,    15,   16,   17,   31,   33,    64,    100,
                                   255, 257, 1000, 1023, 4095, 4096, 4097, 8191, 8192, 8193, 16384, 16385, 33000};
    for (precision p = precision_first(); p < precision_end(); p++) {
        for (size_t i = 0; i < sizeof cols / sizeof *cols; i++) {
            run(stream, p, (shape){.rows = 1, .cols = cols[i]}, logit);
            shape s = {random_integer(2, cols[i] < 1000 ? 40 : 4),
                       cols[i],
                       random_integer(0, 17),
                       random_integer(0, 17),
                       random_place(),
                       random_place()};
            run(stream, p, s, i % 2 ? logit : wide_logit);
        }
        run(stream, p, (shape){.rows = 1777, .cols = 5, .y_padding = 1}, logit);
        run(stream, p, (shape){.rows = 3, .cols = 1000}, tiny_logit);
    }
    if (precision_end() > F16) /* so many that half a block has a row of them */
        run(stream, (precision)(precision_end() - 1), (shape){.rows = 257, .cols = 4096}, logit);
}

/* Rows that are cut into pieces, whose results must not depend on the number of threads, and the longest that a cluster
 * of blocks holds on some devices, by the number of a block's threads; AMD's have no clusters. */
static void test_long_rows(kiln_stream *stream) {
    kiln_device_info info;
    harness_ok(kiln_device_get_info(stream->device, &info));
    const int64_t longest = info.backend == KILN_BACKEND_ROCM ? 1 : 4;
    for (precision p = precision_first(); p < precision_end(); p++) {
        int64_t most = (1 << 18) / (int64_t)precision_size(p);
        run(stream, p, (shape){.rows = 2, .cols = most, .x_padding = 8}, logit);
        for (int64_t more = 1; more <= longest; more *= 2)
            run(stream, p, (shape){.rows = 1, .cols = more * most + 8}, logit);
        run(stream, p, (shape){.rows = 2, .cols = 100003, .x_padding = 1, .x_place = 3}, logit);
    }
    if (precision_first() == F32) run(stream, F32, (shape){.rows = 1, .cols = 1 << 20, .y_place = AT_END}, logit);
}

/* Tensors of more than the 8 MB from which the CPU writes results past the caches. */
static void test_large(kiln_stream *stream) {
    if (!harness_on_cpu(stream)) return;
    run(stream, F32, (shape){.rows = 2100, .cols = 1001, .x_padding = 3, .y_padding = 2, .y_place = 1}, logit);
    run(stream, BF16, (shape){.rows = 1100, .cols = 4000, .x_place = 5}, wide_logit);
    matrix x = matrix_create(stream, F32, 513, 4096, 0, 0);
    harness_describe("softmax_f32 513 x 4096 in place");
    matrix_fill(&x, logit);
    run_on_matrix(stream, &x, &x);
    matrix_destroy(&x);
}

/* The largest element stands near the end: a maximum that misses it overflows. */
static void run_largest_last(kiln_stream *stream, precision p, int64_t cols) {
    matrix x = matrix_create(stream, p, 1, cols, 0, 0);
    harness_describe("softmax_%s of %lld in place, one large", precision_name(p), (long long)cols);
    matrix_fill(&x, logit);
    x.values[cols - 3] = 120;
    matrix_set(&x, x.values);
    run_on_matrix(stream, &x, &x);
    matrix_destroy(&x);
}

/* A row that is one piece, and pieces by the thousand; on a GPU, which may be simulated, some more than a group has
 * threads. */
static void test_longest_row(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++) {
        run_largest_last(stream, p, 8000);
        if (!harness_on_cpu(stream) && p == precision_first())
            run_largest_last(stream, p, 257 * (32768 / (int64_t)precision_size(p)));
    }
    if (harness_on_cpu(stream)) run_largest_last(stream, F32, 1 << 24);
}

static void test_sum_is_one(kiln_stream *stream) {
    harness_describe("the sum of softmax_f32");
    static const int64_t cols[] = {1, 17, 8192, 8193, 1 << 18};
    for (size_t i = 0; i < sizeof cols / sizeof *cols; i++) {
        matrix x = matrix_create(stream, F32, 1, cols[i], 0, 0);
        double sum = 0;
        matrix_fill(&x, logit);
        call(stream, F32, (kiln_softmax_params){.y = x.data, .x = x.data, .rows = 1, .cols = cols[i]});
        matrix_get(&x);
        for (int64_t c = 0; c < cols[i]; c++) {
            sum += x.values[c];
        }
        if (!(fabs(sum - 1) <= 1e-6)) harness_fail("the sum of %lld is off by %g", (long long)cols[i], sum - 1);
        matrix_destroy(&x);
    }
}

static void test_in_place(kiln_stream *stream) {
    static const int64_t cols[] = {5, 1000, 20000, 70000};
    for (precision p = precision_first(); p < precision_end(); p++) {
        for (size_t i = 0; i < sizeof cols / sizeof *cols; i++) {
            matrix x = matrix_create(stream, p, 3, cols[i], cols[i] + 7, random_place());
            harness_describe("softmax_%s 3 x %lld in place", precision_name(p), (long long)cols[i]);
            matrix_fill(&x, logit);
            run_on_matrix(stream, &x, &x);
            matrix_destroy(&x);
        }
    }
}

/* Rows with a few elements that are no ordinary numbers, short and long ones. */
static void test_special_values(kiln_stream *stream) {
    static const int64_t cols[] = {1, 3, 40, 1000, 8192, 9000, 40000};
    static const double kinds[] = {-INFINITY, INFINITY, NAN, 1e38, -1e38, 65504, -65504, 1e-45};
    enum { KINDS = sizeof kinds / sizeof *kinds };
    for (precision p = precision_first(); p < precision_end(); p++) {
        for (size_t i = 0; i < sizeof cols / sizeof *cols; i++) {
            matrix x = matrix_create(stream, p, 2 * KINDS, cols[i], 0, 0);
            matrix y = matrix_create(stream, p, 2 * KINDS, cols[i], 0, AT_END);
            harness_describe("softmax_%s of special values, %lld columns", precision_name(p), (long long)cols[i]);
            matrix_fill(&x, logit);
            for (int64_t row = 0; row < x.rows; row++) { /* one such element; then all elements such */
                for (int64_t c = row < KINDS ? random_integer(0, cols[i] - 1) : 0; c < cols[i]; c++) {
                    x.values[row * cols[i] + c] = kinds[row % KINDS];
                    if (row < KINDS) break;
                }
            }
            matrix_set(&x, x.values);
            run_on_matrix(stream, &x, &y);
            matrix_destroy(&x);
            matrix_destroy(&y);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        on_each_device(test_shapes),         on_each_device(test_in_place),   on_each_device(test_long_rows),
        on_each_device(test_special_values), on_each_device(test_sum_is_one), on_each_device(test_large),
        on_one_device(test_longest_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
