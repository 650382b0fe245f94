/* top_k against the k greatest of each row: ties, NaN, infinities, rows of one chunk and of many, every k. */
#include "tests/ops/harness.h"
#include <math.h>
#include <stdlib.h>

typedef struct shape {
    int64_t rows, cols, k, padding, place;
} shape;

static double any_number(void) {
    return random_number(-4, 4);
}

/* Few values, so that elements equal to the last chosen one are many. */
static double few_numbers(void) {
    return (double)random_integer(-3, 0);
}

static double special_number(void) {
    static const double values[] = {0, -0.0, 1e-45, -1e-45, -INFINITY, -65504, -1, INFINITY, NAN};
    return values[random_integer(0, random_integer(0, 50) ? 6 : 8)];
}

static double one_number(void) {
    return -INFINITY;
}

/* Most elements are masked. */
static double masked_number(void) {
    return random_integer(0, 30) ? -INFINITY : random_number(-4, 4);
}

/* The greatest elements are neighbours. */
static double next_number; /* 0 at the begin of a run */
static double descending_number(void) {
    return next_number = next_number < -2000 ? 0 : next_number - 1;
}

/* ---- The definition ---- */

static bool is_greater(double x, double y) {
    return isnan(x) ? !isnan(y) : x > y;
}

/* The k first of a row: each element in turn goes before those among them that are less. */
static void define_row(const double *row, int64_t cols, int64_t k, double *values, double *indices) {
    for (int64_t col = 0; col < cols; col++) {
        int64_t i = col < k ? col : k;
        if (i == k && !is_greater(row[col], values[k - 1])) continue;
        for (i -= i == k; i > 0 && is_greater(row[col], values[i - 1]); i--) {
            values[i] = values[i - 1];
            indices[i] = indices[i - 1];
        }
        values[i] = row[col];
        indices[i] = (double)col;
    }
}

static void define(const matrix *x, int64_t k, double *values, double *indices) {
    for (int64_t r = 0; r < x->rows; r++)
        define_row(x->values + r * x->cols, x->cols, k, values + r * k, indices + r * k);
}

/* ---- Runs ---- */

static void run(kiln_stream *stream, precision p, shape s, double (*value)(void), bool wants_values) {
    harness_describe("top_k_%s %lld of %lld x %lld, padding %lld, at %lld", precision_name(p), (long long)s.k,
                     (long long)s.rows, (long long)s.cols, (long long)s.padding, (long long)s.place);
    next_number = 0;
    matrix x = matrix_create(stream, p, s.rows, s.cols, s.cols + s.padding, s.place);
    matrix values = matrix_create(stream, p, s.rows, s.k, 0, AT_END);
    matrix indices = matrix_create(stream, I32, s.rows, s.k, 0, AT_END);
    double *expected = malloc(sizeof *expected * (size_t)(2 * s.rows * s.k));
    assert_non_null(expected);
    matrix_fill(&x, value);
    define(&x, s.k, expected, expected + s.rows * s.k);
    kiln_top_k_params params = {.values = wants_values ? values.data : NULL,
                                .indices = indices.data,
                                .x = x.data,
                                .rows = s.rows,
                                .cols = s.cols,
                                .k = s.k,
                                .x_stride = s.padding ? x.stride : 0};
    const kiln_operator_function *function = operator_function(&kiln__operator_top_k, p);
    harness_ok(function->workspace_size(stream, &params, sizeof params, &params.workspace_size));
    matrix workspace = matrix_create(stream, F32, 1, (int64_t)params.workspace_size / 4 + 4, 0, 0);
    if (params.workspace_size) params.workspace = workspace.data;
    harness_ok(function->call(stream, &params, sizeof params));
    matrix_expect_exact(&indices, expected + s.rows * s.k);
    if (wants_values)
        matrix_expect_exact(&values, expected);
    else
        matrix_expect_unchanged(&values);
    matrix_expect_unchanged(&x);
    matrix_destroy(&x);
    matrix_destroy(&values);
    matrix_destroy(&indices);
    matrix_destroy(&workspace);
    free(expected);
}

static void test_shapes(kiln_stream *stream) {
    static const struct {
        int64_t cols, k;
    } sizes[] = {{1, 1},       {2, 2},       {7, 3},       {8, 8},        {64, 6},      {65, 64},     {256, 8},
                 {300, 257},   {1024, 1024}, {4095, 1000}, {4096, 1},     {4096, 1024}, {4097, 2},    {8192, 64},
                 {9000, 5},    {12289, 255}, {16385, 600}, {20000, 1024}, {32000, 40},  {4100, 1024}, {16384, 8},
                 {16390, 100}, {40000, 192}, {8192, 193},  {2050, 16},    {1024, 17}};
    double (*values[])(void) = {any_number, few_numbers, special_number, masked_number, descending_number};
    for (precision p = precision_first(); p < precision_end(); p++) {
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            shape s = {.rows = sizes[i].cols < 300 ? 3 : 1, .cols = sizes[i].cols, .k = sizes[i].k};
            if (i % 2) {
                s.padding = random_integer(0, 17);
                s.place = random_place();
            }
            run(stream, p, s, values[random_integer(0, 4)], i % 3 != 0);
        }
        run(stream, p, (shape){.rows = 2, .cols = 1000, .k = 100}, one_number, true);
        run(stream, p, (shape){.rows = 1, .cols = 8200, .k = 1024}, few_numbers, true);
    }
}

/* Rows that subgroups choose from, some of which they leave to the block. */
static void test_short_rows(kiln_stream *stream) {
    static const struct {
        int64_t rows, cols, k;
    } sizes[] = {{1, 1, 1},    {9, 8, 2},    {17, 16, 16},  {8, 60, 6},    {33, 64, 8},    {3, 255, 16},  {10, 256, 8},
                 {21, 257, 1}, {5, 300, 12}, {12, 512, 10}, {7, 1000, 16}, {16, 1024, 16}, {9, 1023, 16}, {19, 128, 4}};
    double (*values[])(void) = {any_number, few_numbers, special_number, masked_number, descending_number, one_number};
    for (precision p = precision_first(); p < precision_end(); p++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            shape s = {.rows = sizes[i].rows, .cols = sizes[i].cols, .k = sizes[i].k};
            if (i % 2) {
                s.padding = random_integer(0, 17);
                s.place = random_place();
            }
            run(stream, p, s, values[random_integer(0, 5)], i % 3 != 0);
        }
}

/* What is left of a row after one launch is many chunks again: both halves of the workspace are used in turn. */
static void test_many_launches(kiln_stream *stream) {
    if (!harness_on_cpu(stream))
        return run(stream, BF16, (shape){.rows = 1, .cols = 280001, .k = 1024}, any_number, true);
    for (precision p = precision_first(); p < precision_end(); p++) {
        run(stream, p, (shape){.rows = 2, .cols = 1 << 20, .k = 1024}, any_number, true);
        run(stream, p, (shape){.rows = 3, .cols = 300001, .k = 700, .padding = 3}, few_numbers, true);
        run(stream, p, (shape){.rows = 4, .cols = 128256, .k = 64}, any_number, false);
    }
}

/* Many rows, whose chunks are longer: a whole row, and two to a row, of which a subgroup joins what is left. */
static void test_many_rows(kiln_stream *stream) {
    run(stream, BF16, (shape){.rows = 1024, .cols = harness_on_cpu(stream) ? 16391 : 8203, .k = 8}, any_number, true);
    run(stream, BF16, (shape){.rows = 9, .cols = 33000, .k = 5}, few_numbers, true);
    if (harness_on_cpu(stream)) run(stream, BF16, (shape){.rows = 520, .cols = 40000, .k = 3}, few_numbers, true);
}

static void test_refusals(kiln_stream *stream) {
    harness_describe("top_k_f32 and what it refuses");
    matrix x = matrix_create(stream, F32, 1, 16385, 0, 0), indices = matrix_create(stream, I32, 1, 4, 0, 0);
    kiln_top_k_params params = {.indices = indices.data, .x = x.data, .rows = 1, .cols = 16385, .k = 4};
    const kiln_operator_function *function = operator_function(&kiln__operator_top_k, F32);
    expect_refusal(stream, function, &params, sizeof params, "workspace_size");
    params.workspace_size = 1 << 20;
    expect_refusal(stream, function, &params, sizeof params, "workspace");
    params.k = KILN_TOP_K_MOST + 1;
    expect_refusal(stream, function, &params, sizeof params, "k");
    params.cols = 3;
    params.k = 4;
    expect_refusal(stream, function, &params, sizeof params, "k");
    params.cols = (int64_t)INT32_MAX + 1;
    expect_refusal(stream, function, &params, sizeof params, "cols");
    size_t size = 1;
    assert_int_equal(kiln_top_k_f32_workspace_size(stream, &params, &size), KILN_ERROR_INVALID_ARGUMENT);
    assert_int_equal(size, 0);
    params.cols = 4;
    params.k = 0;
    params.workspace_size = 0;
    harness_ok(function->call(stream, &params, sizeof params));
    matrix_expect_unchanged(&x);
    matrix_expect_unchanged(&indices);
    matrix_destroy(&x);
    matrix_destroy(&indices);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        on_each_device(test_shapes),   on_each_device(test_short_rows), on_one_device(test_many_launches),
        on_one_device(test_many_rows), on_one_device(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
