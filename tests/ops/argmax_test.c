/* argmax against a plain search: ties, NaN, infinities, rows short and long. */
#include "tests/ops/harness.h"
#include <math.h>
#include <stdlib.h>

typedef struct shape {
    int64_t rows, cols, padding, place;
} shape;

static double any_number(void) {
    return random_number(-4, 4);
}

/* Few values, so that the greatest comes many times. */
static double few_numbers(void) {
    return (double)random_integer(-3, 0);
}

static double special_number(void) {
    static const double values[] = {0, -0.0, 1e-45, -1e-45, -INFINITY, -65504, -1, INFINITY, NAN};
    return values[random_integer(0, random_integer(0, 50) ? 6 : 8)];
}

static double lowest_number(void) {
    return -INFINITY;
}

static int64_t find(const double *row, int64_t cols) {
    int64_t best = 0;
    for (int64_t i = 0; i < cols; i++) {
        if (isnan(row[i])) return i;
        if (row[i] > row[best]) best = i;
    }
    return best;
}

static void run(kiln_stream *stream, precision p, shape s, double (*value)(void)) {
    harness_describe("argmax_%s %lld x %lld, padding %lld, at %lld", precision_name(p), (long long)s.rows,
                     (long long)s.cols, (long long)s.padding, (long long)s.place);
    matrix x = matrix_create(stream, p, s.rows, s.cols, s.cols + s.padding, s.place);
    matrix y = matrix_create(stream, I32, 1, s.rows, 0, AT_END);
    double *expected = malloc(sizeof(double) * (size_t)s.rows);
    assert_non_null(expected);
    matrix_fill(&x, value);
    for (int64_t row = 0; row < s.rows; row++)
        expected[row] = (double)find(x.values + row * s.cols, s.cols);
    kiln_argmax_params params = {
        .y = y.data, .x = x.data, .rows = s.rows, .cols = s.cols, .x_stride = s.padding ? x.stride : 0};
    const kiln_operator_function *function = operator_function(&kiln__operator_argmax, p);
    harness_ok(function->workspace_size(stream, &params, sizeof params, &params.workspace_size));
    matrix workspace = matrix_create(stream, F32, 1, (int64_t)params.workspace_size / 4 + 4, 0, 0);
    if (params.workspace_size) params.workspace = workspace.data;
    harness_ok(function->call(stream, &params, sizeof params));
    matrix_expect_exact(&y, expected);
    matrix_expect_unchanged(&x);
    matrix_destroy(&x);
    matrix_destroy(&y);
    matrix_destroy(&workspace);
    free(expected);
}

static void test_shapes(kiln_stream *stream) {
    static const int64_t cols[] = {1,  2,  3,   4,   5,    8,    15,   16,   17,   33,    64,
                                   65, 99, 128, 512, 1000, 4097, 8191, 8192, 8193, 32000, 100003};
    static const int64_t places[] = {0, 1, 2, 3, 8, AT_END};
    for (precision p = precision_first(); p < precision_end(); p++) {
        for (size_t i = 0; i < sizeof cols / sizeof *cols; i++) {
            double (*values[])(void) = {any_number, few_numbers, special_number};
            shape s = {.rows = random_integer(1, cols[i] < 300 ? 600 / cols[i] + 1 : 3), .cols = cols[i]};
            run(stream, p, s, values[i % 3]);
            s.padding = random_integer(0, 17);
            s.place = places[random_integer(0, sizeof places / sizeof *places - 1)];
            run(stream, p, s, values[random_integer(0, 2)]);
        }
        run(stream, p, (shape){.rows = 3, .cols = 1000}, lowest_number);
    }
}

/* More chunks than a group has threads: the greatest of a row is in the first, or in the last, which have a thread in
 * common, or in both. */
static void test_many_chunks(kiln_stream *stream) {
    enum { ROWS = 3, COLS = 256 * 8192 + 1 };
    for (precision p = precision_first(); p < precision_end(); p++) {
        harness_describe("argmax_%s %d x %d", precision_name(p), ROWS, COLS);
        matrix x = matrix_create(stream, p, ROWS, COLS, 0, 0), y = matrix_create(stream, I32, 1, ROWS, 0, AT_END);
        for (int64_t i = 0; i < ROWS * COLS; i++)
            x.values[i] = 1;
        x.values[0 * COLS + 5] = x.values[1 * COLS + 5] = 2;
        x.values[1 * COLS + COLS - 1] = x.values[2 * COLS + COLS - 1] = 2;
        matrix_set(&x, x.values);
        kiln_argmax_params params = {.y = y.data, .x = x.data, .rows = ROWS, .cols = COLS};
        const kiln_operator_function *function = operator_function(&kiln__operator_argmax, p);
        harness_ok(function->workspace_size(stream, &params, sizeof params, &params.workspace_size));
        harness_ok(kiln_memory_alloc(stream->device, params.workspace_size, &params.workspace));
        harness_ok(function->call(stream, &params, sizeof params));
        matrix_expect_exact(&y, (const double[ROWS]){5, 5, COLS - 1});
        kiln_memory_free(stream->device, params.workspace);
        matrix_destroy(&x);
        matrix_destroy(&y);
    }
}

static void test_workspace(kiln_stream *stream) {
    harness_describe("argmax_f32 and its workspace");
    matrix x = matrix_create(stream, F32, 1, 8193, 0, 0), y = matrix_create(stream, I32, 1, 1, 0, 0);
    kiln_argmax_params params = {.y = y.data, .x = x.data, .rows = 1, .cols = 8193};
    const kiln_operator_function *function = operator_function(&kiln__operator_argmax, F32);
    expect_refusal(stream, function, &params, sizeof params, "workspace_size");
    params.workspace_size = 1 << 20;
    expect_refusal(stream, function, &params, sizeof params, "workspace");
    params.cols = (int64_t)INT32_MAX + 1;
    expect_refusal(stream, function, &params, sizeof params, "cols");
    size_t size = 1;
    assert_int_equal(kiln_argmax_f32_workspace_size(stream, &params, &size), KILN_ERROR_INVALID_ARGUMENT);
    assert_int_equal(size, 0);
    matrix_expect_unchanged(&x);
    matrix_expect_unchanged(&y);
    matrix_destroy(&x);
    matrix_destroy(&y);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        on_each_device(test_shapes),
        on_one_device(test_many_chunks),
        on_one_device(test_workspace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
