/* The operators that quantise, on x read along either of its axes (x_col_stride), against themselves on a copy of x in
 * the usual order, bit by bit: transposed, with and without gaps, at any place; every way to share scales, computed, of
 * given greatest magnitudes and given; sizes that divide by nothing; infinities, NaN and zeros. */
#include "tests/ops/harness.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GROUP = 128 };

typedef enum source { COMPUTED, AMAX, GIVEN } source;

_Static_assert(sizeof(kiln_quantize_fp8_params) == sizeof(kiln_quantize_int8_params), "one struct for both");

/* How x lies in memory: a matrix, of which every step-th column is one of x, or where it is turned, a row of x. */
typedef struct layout {
    bool turned;
    int64_t step, padding, place;
} layout;

/* x twice: in the usual order, and as a layout has it. */
typedef struct inputs {
    matrix usual, other;
    int64_t stride, col_stride; /* of the other */
} inputs;

static double any_number(void) {
    return random_number(-1, 1) * ldexp(1, (int)random_integer(-12, 3));
}

static double special_number(void) {
    static const double values[] = {0, -0.0, 1e-45, -1e-40, 1e-37, 3e38, -INFINITY, INFINITY, NAN};
    return random_integer(0, 40) ? any_number() : values[random_integer(0, 8)];
}

static double rare_special_number(void) {
    return random_integer(0, 999) ? any_number() : special_number();
}

static double positive_number(void) {
    static const double values[] = {0, NAN, INFINITY, 1e-40, 0.5};
    return random_integer(0, 9) ? random_number(0.01, 0.02) : values[random_integer(0, 4)];
}

static int64_t groups_of(int64_t count) {
    return (count + GROUP - 1) / GROUP;
}

/* Half of them have what vectors of a transposed tensor need. */
static layout any_layout(int64_t rows) {
    layout l = {.turned = random_integer(0, 4) != 0, .step = 1};
    if (random_integer(0, 1) && l.turned) {
        l.padding = (16 - rows % 16) % 16;
        return l;
    }
    l.step = l.turned ? random_integer(1, 4) / 2 + 1 : random_integer(2, 3);
    l.padding = random_integer(0, 17);
    l.place = random_place();
    return l;
}

static inputs inputs_create(kiln_stream *stream, precision p, int64_t rows, int64_t cols, layout l,
                            double (*value)(void)) {
    const int64_t outer = l.turned ? cols : rows, inner = ((l.turned ? rows : cols) - 1) * l.step + 1;
    inputs in = {.usual = matrix_create(stream, p, rows, cols, 0, 0),
                 .other = matrix_create(stream, p, outer, inner, inner + l.padding, l.place)};
    double *values = malloc(sizeof(double) * (size_t)(rows * cols));
    assert_non_null(values);
    matrix_fill(&in.other, value);
    in.stride = l.turned ? l.step : in.other.stride;
    in.col_stride = l.turned ? in.other.stride : l.step;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++)
            values[r * cols + c] = in.other.values[(l.turned ? c : r) * inner + (l.turned ? r : c) * l.step];
    matrix_set(&in.usual, values);
    free(values);
    return in;
}

static void inputs_destroy(inputs *in) {
    matrix_expect_unchanged(&in->usual);
    matrix_expect_unchanged(&in->other);
    matrix_destroy(&in->usual);
    matrix_destroy(&in->other);
}

/* The same bits in both. */
static void expect_same(matrix *usual, matrix *other) {
    matrix_get(usual);
    matrix_expect_exact(other, usual->values);
    matrix_destroy(usual);
    matrix_destroy(other);
}

static void describe(const char *name, precision p, int64_t rows, int64_t cols, int64_t scale_rows, int64_t scale_cols,
                     source from, layout l) {
    harness_describe("%s_%s %lld x %lld, scales %lld x %lld %s, %s with step %lld, padding %lld, at %lld", name,
                     precision_name(p), (long long)rows, (long long)cols, (long long)scale_rows, (long long)scale_cols,
                     (const char *[]){"computed", "of amax", "given"}[from], l.turned ? "transposed" : "in order",
                     (long long)l.step, (long long)l.padding, (long long)l.place);
}

/* quantize_fp8 or quantize_int8. number: the elements; unless special ones are frequent, everything is aligned. */
static void quantize_numbers(kiln_stream *stream, precision p, bool fp8, int64_t rows, int64_t cols, int way,
                             double (*number)(void)) {
    const kiln_operator *op = fp8 ? &kiln__operator_quantize_fp8 : &kiln__operator_quantize_int8;
    const int64_t scale_rows = (int64_t[]){rows, rows, groups_of(rows), 1, groups_of(rows)}[way];
    const int64_t scale_cols = way == 1 || way == 2 ? groups_of(cols) : 1;
    const bool regular = number != special_number;
    const layout l = regular ? (layout){.turned = true, .step = 1} : any_layout(rows);
    source from = regular ? COMPUTED : (source)random_integer(COMPUTED, GIVEN);
    if (from == COMPUTED && scale_rows != rows && (way > 2 || (scale_cols == 1 && cols > GROUP))) from = AMAX;
    describe(op->name, p, rows, cols, scale_rows, scale_cols, from, l);
    inputs in = inputs_create(stream, p, rows, cols, l, number);
    matrix values = matrix_create(stream, F32, scale_rows, scale_cols, 0, AT_END);
    matrix_fill(&values, positive_number);
    const bool aligned = regular || random_integer(0, 1);
    const int64_t codes_stride = aligned ? (cols + 15) / 16 * 16 : cols + random_integer(0, 17);
    const int64_t place = regular || random_integer(0, 1) ? 0 : random_place();
    matrix codes[2], scales[2];
    for (int i = 0; i < 2; i++) {
        codes[i] = matrix_create(stream, fp8 ? U8 : I8, rows, cols, codes_stride, place);
        scales[i] = matrix_create(stream, F32, scale_rows, scale_cols, 0, AT_END);
        const matrix *x = i ? &in.other : &in.usual;
        const kiln_quantize_fp8_params params = {.codes = codes[i].data,
                                                 .scales = scales[i].data,
                                                 .x = x->data,
                                                 .given = from == GIVEN ? values.data : NULL,
                                                 .amax = from == AMAX ? values.data : NULL,
                                                 .rows = rows,
                                                 .cols = cols,
                                                 .scale_rows = scale_rows,
                                                 .scale_cols = scale_cols,
                                                 .codes_stride = codes_stride,
                                                 .x_stride = i ? in.stride : 0,
                                                 .smax = cols % 3 ? 0 : 2.25f,
                                                 .x_col_stride = i ? in.col_stride : 0};
        harness_ok(operator_function(op, p)->call(stream, &params, sizeof params));
    }
    expect_same(&codes[0], &codes[1]);
    expect_same(&scales[0], &scales[1]);
    matrix_expect_unchanged(&values);
    matrix_destroy(&values);
    inputs_destroy(&in);
}

static void quantize(kiln_stream *stream, precision p, bool fp8, int64_t rows, int64_t cols, int way) {
    quantize_numbers(stream, p, fp8, rows, cols, way, special_number);
}

static void find_amax(kiln_stream *stream, precision p, int64_t rows, int64_t cols, int way) {
    const int64_t scale_rows = (int64_t[]){rows, rows, groups_of(rows), 1, groups_of(rows), 1}[way];
    const int64_t scale_cols = way == 1 || way == 2 || way == 5 ? groups_of(cols) : 1;
    const layout l = any_layout(rows);
    describe("amax", p, rows, cols, scale_rows, scale_cols, COMPUTED, l);
    inputs in = inputs_create(stream, p, rows, cols, l, special_number);
    const kiln_operator_function *function = operator_function(&kiln__operator_amax, p);
    matrix y[2];
    for (int i = 0; i < 2; i++) {
        y[i] = matrix_create(stream, F32, scale_rows, scale_cols, 0, AT_END);
        kiln_amax_params params = {.y = y[i].data,
                                   .x = i ? in.other.data : in.usual.data,
                                   .rows = rows,
                                   .cols = cols,
                                   .scale_rows = scale_rows,
                                   .scale_cols = scale_cols,
                                   .x_stride = i ? in.stride : 0,
                                   .x_col_stride = i ? in.col_stride : 0};
        harness_ok(function->workspace_size(stream, &params, sizeof params, &params.workspace_size));
        matrix workspace = matrix_create(stream, U8, 1, (int64_t)params.workspace_size + !params.workspace_size, 0, 0);
        params.workspace = params.workspace_size ? workspace.data : NULL;
        harness_ok(function->call(stream, &params, sizeof params));
        matrix_get(&workspace); /* nothing around it is written */
        matrix_destroy(&workspace);
    }
    expect_same(&y[0], &y[1]);
    inputs_destroy(&in);
}

static int64_t round_up(int64_t count, int64_t unit) {
    return (count + unit - 1) / unit * unit;
}

static void quantize_nvfp4(kiln_stream *stream, precision p, int64_t rows, int64_t cols, bool swizzled, bool each) {
    const int64_t scale_rows = swizzled ? round_up(rows, 128) : rows + random_integer(0, 3);
    const int64_t scale_cols = round_up(round_up(cols, 16) / 16, swizzled ? 4 : 1) + 4 * random_integer(0, 2);
    const layout l = any_layout(rows);
    const source from = (source)random_integer(AMAX, GIVEN);
    describe("quantize_nvfp4", p, rows, cols, scale_rows, scale_cols, from, l);
    inputs in = inputs_create(stream, p, rows, cols, l, special_number);
    matrix values = matrix_create(stream, F32, 1, each ? rows : 1, 0, AT_END);
    matrix_fill(&values, positive_number);
    const int64_t codes_stride = 8 * scale_cols + (random_integer(0, 1) ? 0 : random_integer(0, 17));
    const int64_t place = random_integer(0, 1) ? 0 : random_place();
    matrix codes[2], scales[2], global_scales[2];
    for (int i = 0; i < 2; i++) {
        codes[i] = matrix_create(stream, U8, rows, 8 * scale_cols, codes_stride, place);
        scales[i] = matrix_create(stream, U8, scale_rows, scale_cols, 0, AT_END);
        global_scales[i] = matrix_create(stream, F32, 1, each ? rows : 1, 0, AT_END);
        const matrix *x = i ? &in.other : &in.usual;
        const kiln_quantize_nvfp4_params params = {.codes = codes[i].data,
                                                   .scales = scales[i].data,
                                                   .global_scale = global_scales[i].data,
                                                   .x = x->data,
                                                   .given = from == GIVEN ? values.data : NULL,
                                                   .amax = from == AMAX ? values.data : NULL,
                                                   .rows = rows,
                                                   .cols = cols,
                                                   .scale_rows = scale_rows,
                                                   .scale_cols = scale_cols,
                                                   .global_rows = each ? rows : 1,
                                                   .codes_stride = codes_stride,
                                                   .x_stride = i ? in.stride : 0,
                                                   .scale_layout = swizzled ? KILN_SCALES_128X4 : KILN_SCALES_LINEAR,
                                                   .x_col_stride = i ? in.col_stride : 0};
        harness_ok(operator_function(&kiln__operator_quantize_nvfp4, p)->call(stream, &params, sizeof params));
    }
    expect_same(&codes[0], &codes[1]);
    expect_same(&scales[0], &scales[1]);
    expect_same(&global_scales[0], &global_scales[1]);
    matrix_expect_unchanged(&values);
    matrix_destroy(&values);
    inputs_destroy(&in);
}

/* Sizes of edges, and of whole rows that take several tiles. */
static void any_size(int64_t *rows, int64_t *cols) {
    static const int64_t counts[] = {1, 3, 8, 31, 64, 65, 127, 128, 129, 136, 200, 257};
    *rows = counts[random_integer(0, 11)];
    *cols = *rows < 65 && !random_integer(0, 2) ? random_integer(500, 1300) : counts[random_integer(0, 11)];
}

static void test_8_bits(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int round = 0; round < harness_rounds(stream, 40); round++) {
            int64_t rows, cols;
            any_size(&rows, &cols);
            quantize(stream, p, round % 2, rows, cols, round / 2 % 5);
        }
}

static void test_amax(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int round = 0; round < harness_rounds(stream, 24); round++) {
            int64_t rows, cols;
            any_size(&rows, &cols);
            find_amax(stream, p, rows, cols, round % 6);
        }
}

static void test_nvfp4(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int round = 0; round < harness_rounds(stream, 24); round++) {
            int64_t rows, cols;
            any_size(&rows, &cols);
            quantize_nvfp4(stream, p, rows, cols, round % 2, round / 2 % 2);
        }
}

/* The shapes of weights: whole tiles, and rows that are too long to be kept. */
static void test_whole_tiles(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int way = 0; way < 4; way++)
            quantize(stream, p, way % 2, 128, 256, way);
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int fp8 = 0; fp8 < 2; fp8++) /* groups of 128 columns */
            for (int i = 0; i < 2; i++)
                quantize_numbers(stream, p, fp8, 72, 256, 1, i ? rare_special_number : any_number);
    for (int round = 0; round < 4; round++) /* clusters of blocks */
        quantize(stream, round / 2 ? BF16 : F16, round % 2, 40, 2100, 0);
    quantize(stream, BF16, true, 3, 7500, 0);
    find_amax(stream, BF16, 24, 1200, 0);
    for (int way = 0; way < 4; way++) /* one row, whose strides may be 1 and 1 */
        quantize(stream, F32, way % 2, 1, 130, way);
}

static void test_refusals(kiln_stream *stream) {
    harness_describe("x_col_stride refused");
    matrix x = matrix_create(stream, F32, 200, 130, 0, 0), scales = matrix_create(stream, F32, 130, 13, 0, 0);
    matrix codes = matrix_create(stream, U8, 130, 200, 0, 0);
    const kiln_quantize_fp8_params good = {.codes = codes.data,
                                           .x = x.data,
                                           .rows = 130,
                                           .cols = 200,
                                           .scale_rows = 130,
                                           .scale_cols = 1,
                                           .x_stride = 1,
                                           .x_col_stride = 130};
    kiln_quantize_fp8_params bad = good;
    static const kiln_operator *const operators[] = {&kiln__operator_quantize_fp8, &kiln__operator_quantize_int8};
    for (int i = 0; i < 2; i++) {
        const kiln_operator_function *function = operator_function(operators[i], F32);
#define REFUSED(field, value, parameter) \
    bad = good;                          \
    bad.field = value;                   \
    expect_refusal(stream, function, &bad, sizeof bad, parameter)
        REFUSED(x_col_stride, -1, "x_col_stride");
        REFUSED(x_col_stride, INT64_MIN, "x_col_stride");
        REFUSED(x_col_stride, 129, "x_col_stride"); /* columns overlap */
        REFUSED(x_col_stride, INT64_MAX, "x_col_stride");
        REFUSED(x_col_stride, INT64_MAX / 200, "x_col_stride");
        REFUSED(x_stride, -1, "x_stride");
        REFUSED(x_stride, 2, "x_stride"); /* rows do */
        REFUSED(x_stride, 0, "x_stride"); /* 200 */
        REFUSED(x_stride, INT64_MAX, "x_stride");
        REFUSED(x, NULL, "x");
        REFUSED(x, (const char *)x.data + 2, "x");
        REFUSED(codes_stride, 199, "codes_stride");
        REFUSED(codes, NULL, "codes");
#undef REFUSED
    }
    const kiln_operator_function *amax = operator_function(&kiln__operator_amax, F32);
    const kiln_amax_params good_amax = {.y = codes.data,
                                        .x = x.data,
                                        .rows = 130,
                                        .cols = 200,
                                        .scale_rows = 130,
                                        .scale_cols = 1,
                                        .x_stride = 1,
                                        .x_col_stride = 130};
    kiln_amax_params bad_amax = good_amax;
    bad_amax.x_col_stride = -1;
    expect_refusal(stream, amax, &bad_amax, sizeof bad_amax, "x_col_stride");
    bad_amax.x_col_stride = 129;
    expect_refusal(stream, amax, &bad_amax, sizeof bad_amax, "x_col_stride");
    bad_amax = good_amax;
    bad_amax.x_stride = 0;
    expect_refusal(stream, amax, &bad_amax, sizeof bad_amax, "x_stride");
    const kiln_quantize_nvfp4_params good_nvfp4 = {.codes = codes.data,
                                                   .scales = scales.data,
                                                   .x = x.data,
                                                   .amax = scales.data,
                                                   .rows = 130,
                                                   .cols = 200,
                                                   .scale_rows = 130,
                                                   .scale_cols = 13,
                                                   .global_rows = 1,
                                                   .x_stride = 1,
                                                   .x_col_stride = 130};
    kiln_quantize_nvfp4_params bad_nvfp4 = good_nvfp4;
    const kiln_operator_function *nvfp4 = operator_function(&kiln__operator_quantize_nvfp4, F32);
    bad_nvfp4.x_col_stride = -1;
    expect_refusal(stream, nvfp4, &bad_nvfp4, sizeof bad_nvfp4, "x_col_stride");
    bad_nvfp4.x_col_stride = 129;
    expect_refusal(stream, nvfp4, &bad_nvfp4, sizeof bad_nvfp4, "x_col_stride");
    bad_nvfp4 = good_nvfp4;
    bad_nvfp4.codes = NULL;
    expect_refusal(stream, nvfp4, &bad_nvfp4, sizeof bad_nvfp4, "codes");
    matrix_expect_unchanged(&x);
    matrix_expect_unchanged(&codes);
    matrix_expect_unchanged(&scales);
    matrix_destroy(&x);
    matrix_destroy(&codes);
    matrix_destroy(&scales);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        on_each_device(test_8_bits),      on_each_device(test_amax),    on_each_device(test_nvfp4),
        on_each_device(test_whole_tiles), on_one_device(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
