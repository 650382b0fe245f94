/* amax against an exact search: every way to share results, rows in one launch and in two; infinities, NaN, zeros and
 * tiny numbers; and in front of the operators that take it. */
#include "tests/ops/harness.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GROUP = 128 };

typedef struct shape {
    int64_t rows, cols, scale_rows, scale_cols, padding, place;
} shape;

static double any_number(void) {
    return random_number(-1, 1) * ldexp(1, (int)random_integer(-12, 3));
}

static double special_number(void) {
    static const double values[] = {0, -0.0, 1e-45, -1e-40, 3e38, -INFINITY, INFINITY, NAN, -NAN};
    return random_integer(0, 199) ? any_number() : values[random_integer(0, 8)];
}

static double nan_or_tiny(void) {
    static const double values[] = {NAN, -NAN, 0, -0.0, 1e-45, -1e-40};
    return values[random_integer(0, 5)];
}

static int64_t groups_of(int64_t count) {
    return (count + GROUP - 1) / GROUP;
}

static void run(kiln_stream *stream, precision p, shape s, double (*value)(void)) {
    harness_describe("amax_%s %lld x %lld, results %lld x %lld, padding %lld, at %lld", precision_name(p),
                     (long long)s.rows, (long long)s.cols, (long long)s.scale_rows, (long long)s.scale_cols,
                     (long long)s.padding, (long long)s.place);
    matrix x = matrix_create(stream, p, s.rows, s.cols, s.cols + s.padding, s.place);
    matrix y = matrix_create(stream, F32, s.scale_rows, s.scale_cols, 0, AT_END);
    double *expected = calloc((size_t)(s.scale_rows * s.scale_cols), sizeof *expected);
    assert_non_null(expected);
    matrix_fill(&x, value);
    for (int64_t i = 0; i < s.rows * s.cols; i++) {
        const int64_t row = i / s.cols, col = i % s.cols;
        const int64_t r = s.scale_rows == s.rows ? row : s.scale_rows == 1 ? 0 : row / GROUP;
        double *result = &expected[r * s.scale_cols + (s.scale_cols == 1 ? 0 : col / GROUP)];
        *result = fmax(*result, fabs(x.values[i])); /* passes over NaN */
    }
    kiln_amax_params params = {.y = y.data,
                               .x = x.data,
                               .rows = s.rows,
                               .cols = s.cols,
                               .scale_rows = s.scale_rows,
                               .scale_cols = s.scale_cols,
                               .x_stride = s.padding ? x.stride : 0};
    const kiln_operator_function *function = operator_function(&kiln__operator_amax, p);
    harness_ok(function->workspace_size(stream, &params, sizeof params, &params.workspace_size));
    matrix workspace = matrix_create(stream, U8, 1, (int64_t)params.workspace_size + !params.workspace_size, 0, 0);
    params.workspace = params.workspace_size ? workspace.data : NULL;
    if (params.workspace_size) {
        kiln_amax_params less = params;
        less.workspace_size--;
        expect_refusal(stream, function, &less, sizeof less, "workspace_size");
    }
    harness_ok(function->call(stream, &params, sizeof params));
    matrix_expect_exact(&y, expected);
    matrix_expect_unchanged(&x);
    matrix_destroy(&x);
    matrix_destroy(&y);
    matrix_destroy(&workspace);
    free(expected);
}

/* Every way to share results, aligned and not; the numbers of rows and columns divide by nothing. */
static void test_results(kiln_stream *stream) {
    static const int64_t cols[] = {1, 3, 33, 127, 129, 1000, 9001};
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int i = 0; i < (int)(sizeof cols / sizeof *cols); i++)
            for (int way = 0; way < 6; way++) {
                shape s = {.rows = random_integer(1, cols[i] < 300 ? 20 : 3), .cols = cols[i]};
                if (way > 2 && i % 2) s.rows = random_integer(129, 270);
                s.scale_rows = (int64_t[]){1, s.rows, s.rows, groups_of(s.rows), groups_of(s.rows), 1}[way];
                s.scale_cols = way < 2 || way == 4 ? 1 : groups_of(s.cols);
                run(stream, p, s, any_number);
                s.padding = random_integer(0, 17);
                s.place = random_place();
                run(stream, p, s, way % 2 ? special_number : nan_or_tiny);
            }
}

/* Of many rows, whose partials the threads of a block share among themselves. */
static void test_many_rows(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++)
        run(stream, p, (shape){.rows = 20000, .cols = 1, .scale_rows = 1, .scale_cols = 1}, any_number);
    run(stream, F16, (shape){.rows = 1, .cols = 40000, .scale_rows = 1, .scale_cols = 1}, any_number);
}

/* A tensor's scale without reading back: what quantize_fp8 makes of amax is what the greatest magnitude makes. */
static void test_in_front_of_quantize(kiln_stream *stream) {
    enum { ROWS = 30, COLS = 50 };
    harness_describe("amax_f32 and quantize_fp8_f32");
    matrix x = matrix_create(stream, F32, ROWS, COLS, 0, 0), y = matrix_create(stream, F32, 1, 1, 0, 0);
    matrix codes = matrix_create(stream, U8, ROWS, COLS, 0, 0), scales = matrix_create(stream, F32, 1, 1, 0, 0);
    matrix workspace = matrix_create(stream, F32, 1, ROWS, 0, 0);
    double greatest = 0;
    matrix_fill(&x, any_number);
    for (int i = 0; i < ROWS * COLS; i++)
        greatest = fmax(greatest, fabs(x.values[i]));
    greatest = (double)((float)greatest / 448.0f);
    harness_ok(kiln_amax_f32(stream, &(kiln_amax_params){.y = y.data,
                                                         .x = x.data,
                                                         .rows = ROWS,
                                                         .cols = COLS,
                                                         .scale_rows = 1,
                                                         .scale_cols = 1,
                                                         .workspace = workspace.data,
                                                         .workspace_size = ROWS * sizeof(float)}));
    harness_ok(kiln_quantize_fp8_f32(stream, &(kiln_quantize_fp8_params){.codes = codes.data,
                                                                         .scales = scales.data,
                                                                         .x = x.data,
                                                                         .amax = y.data,
                                                                         .rows = ROWS,
                                                                         .cols = COLS,
                                                                         .scale_rows = 1,
                                                                         .scale_cols = 1}));
    matrix_expect_exact(&scales, &greatest);
    matrix_destroy(&x);
    matrix_destroy(&y);
    matrix_destroy(&codes);
    matrix_destroy(&scales);
    matrix_destroy(&workspace);
}

static void test_refusals(kiln_stream *stream) {
    harness_describe("amax refused");
    matrix x = matrix_create(stream, F32, 130, 200, 0, 0), y = matrix_create(stream, F32, 130, 2, 0, 0);
    const kiln_operator_function *function = operator_function(&kiln__operator_amax, F32);
    const kiln_amax_params good = {
        .y = y.data, .x = x.data, .rows = 130, .cols = 200, .scale_rows = 130, .scale_cols = 1};
    kiln_amax_params bad = good;
#define REFUSED(field, value, parameter) \
    bad = good;                          \
    bad.field = value;                   \
    expect_refusal(stream, function, &bad, sizeof bad, parameter)
    REFUSED(y, NULL, "y");
    REFUSED(x, NULL, "x");
    REFUSED(cols, (int64_t)1 << 31, "cols");
    REFUSED(scale_rows, 3, "scale_rows");
    REFUSED(scale_cols, 3, "scale_cols");
    REFUSED(x_stride, 199, "x_stride");
    REFUSED(scale_rows, 1, "workspace");
#undef REFUSED
    matrix_expect_unchanged(&x);
    matrix_expect_unchanged(&y);
    matrix_destroy(&x);
    matrix_destroy(&y);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        on_each_device(test_results),
        on_each_device(test_many_rows),
        on_each_device(test_in_front_of_quantize),
        on_one_device(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
