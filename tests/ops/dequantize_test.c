/* dequantize_fp8, dequantize_int8 and dequantize_nvfp4 against their formulas, bit by bit: every code, every way to
 * share scales, both layouts; and what the quantising operators made, back. */
#include "tests/ops/harness.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GROUP = 128, BLOCK = 16 };

/* Both operators' params have the same fields at the same places. */
_Static_assert(sizeof(kiln_dequantize_fp8_params) == sizeof(kiln_dequantize_int8_params), "one struct for both");

typedef struct shape {
    bool fp8;
    int64_t rows, cols, scale_rows, scale_cols, global_rows, padding, place;
    bool swizzled;
} shape;

static double any_byte(void) {
    return (double)random_integer(0, 255);
}

static double any_int8(void) {
    return (double)random_integer(-128, 127);
}

static double any_scale(void) {
    static const double values[] = {0, NAN, -1, 1e-40, INFINITY, 3e38};
    return random_integer(0, 7) ? random_number(1e-3, 1) : values[random_integer(0, 5)];
}

static double small_number(void) {
    return random_number(-1, 1) * ldexp(1, (int)random_integer(-6, 3));
}

/* Of an E4M3 without its sign. */
static double e4m3_number(int code) {
    if (code == 127) return NAN;
    return code < 8 ? ldexp(code, -9) : ldexp(8 + code % 8, code / 8 - 10);
}

static double e4m3_signed(double code) {
    return (int)code < 128 ? e4m3_number((int)code) : -e4m3_number((int)code - 128);
}

static double e2m1_signed(int code) {
    static const double numbers[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    return code < 8 ? numbers[code] : -numbers[code - 8];
}

static int64_t rounded_up(int64_t count, int64_t unit) {
    return (count + unit - 1) / unit * unit;
}

/* ---- fp8 and int8 ------------------------------------------------------------------------------------------------ */

static int64_t scale_of(shape s, int64_t row, int64_t col) {
    int64_t r = s.scale_rows == s.rows ? row : s.scale_rows == 1 ? 0 : row / GROUP;
    return r * s.scale_cols + (s.scale_cols == 1 ? 0 : col / GROUP);
}

static void run(kiln_stream *stream, precision p, shape s) {
    const kiln_operator *op = s.fp8 ? &kiln__operator_dequantize_fp8 : &kiln__operator_dequantize_int8;
    harness_describe("%s_%s %lld x %lld, scales %lld x %lld, padding %lld, at %lld", op->name, precision_name(p),
                     (long long)s.rows, (long long)s.cols, (long long)s.scale_rows, (long long)s.scale_cols,
                     (long long)s.padding, (long long)s.place);
    matrix y = matrix_create(stream, p, s.rows, s.cols, s.cols + s.padding, s.place);
    matrix codes = matrix_create(stream, s.fp8 ? U8 : I8, s.rows, s.cols, s.cols + s.padding, s.place);
    matrix scales = matrix_create(stream, F32, s.scale_rows, s.scale_cols, 0, AT_END);
    double *expected = malloc(sizeof(double) * (size_t)(s.rows * s.cols));
    assert_non_null(expected);
    matrix_fill(&codes, s.fp8 ? any_byte : any_int8);
    matrix_fill(&scales, any_scale);
    for (int64_t i = 0; i < s.rows * s.cols; i++) {
        double number = s.fp8 ? e4m3_signed(codes.values[i]) : codes.values[i];
        expected[i] = (double)((float)number * (float)scales.values[scale_of(s, i / s.cols, i % s.cols)]);
    }
    kiln_dequantize_fp8_params params = {.y = y.data,
                                         .codes = codes.data,
                                         .scales = scales.data,
                                         .rows = s.rows,
                                         .cols = s.cols,
                                         .scale_rows = s.padding && s.scale_rows == s.rows ? 0 : s.scale_rows,
                                         .scale_cols = s.padding && s.scale_cols == 1 ? 0 : s.scale_cols,
                                         .y_stride = s.padding ? y.stride : 0,
                                         .codes_stride = s.padding ? codes.stride : 0};
    harness_ok(operator_function(op, p)->call(stream, &params, sizeof params));
    matrix_expect_exact(&y, expected);
    matrix_expect_unchanged(&codes);
    matrix_expect_unchanged(&scales);
    matrix_destroy(&y);
    matrix_destroy(&codes);
    matrix_destroy(&scales);
    free(expected);
}

/* Every way to share scales, aligned and not; the numbers of rows and columns divide by nothing. */
static void test_scales(kiln_stream *stream) {
    static const int64_t cols[] = {1, 3, 8, 127, 129, 256, 1000, 6000};
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int i = 0; i < (int)(sizeof cols / sizeof *cols); i++)
            for (int way = 0; way < 4; way++) {
                shape s = {.fp8 = (i + way) % 2, .rows = random_integer(1, 4), .cols = cols[i]};
                if (way == 2 && i == 3) s.rows = random_integer(129, 140); /* blocks */
                const int64_t row_groups = rounded_up(s.rows, GROUP) / GROUP;
                s.scale_rows = (int64_t[]){1, s.rows, row_groups, s.rows}[way];
                s.scale_cols = way < 2 ? 1 : rounded_up(s.cols, GROUP) / GROUP;
                run(stream, p, s);
                s.fp8 = !s.fp8;
                s.padding = random_integer(0, 17);
                s.place = random_place();
                run(stream, p, s);
            }
}

/* ---- nvfp4 ------------------------------------------------------------------------------------------------------- */

/* The order of cuBLAS's tiles, written as a transposition of their dimensions. */
static int64_t place_of(shape s, int64_t row, int64_t block) {
    if (!s.swizzled) return row * s.scale_cols + block;
    const int64_t at[] = {row / 128, block / 4, row % 32, row % 128 / 32, block % 4};
    const int64_t sizes[] = {s.scale_rows / 128, s.scale_cols / 4, 32, 4, 4};
    int64_t place = 0;
    for (int i = 0; i < 5; i++)
        place = place * sizes[i] + at[i];
    return place;
}

/* So many that a thread takes two vectors: kiln__thread_vectors_log2. */
static void test_several_vectors(kiln_stream *stream) {
    run(stream, F32, (shape){.fp8 = true, .rows = 65, .cols = 4100, .scale_rows = 65, .scale_cols = 1});
}

static void run_nvfp4(kiln_stream *stream, precision p, shape s) {
    harness_describe("dequantize_nvfp4_%s %lld x %lld, scales %lld x %lld%s, padding %lld, at %lld", precision_name(p),
                     (long long)s.rows, (long long)s.cols, (long long)s.scale_rows, (long long)s.scale_cols,
                     s.swizzled ? " swizzled" : "", (long long)s.padding, (long long)s.place);
    const int64_t code_cols = s.scale_cols * BLOCK / 2;
    matrix y = matrix_create(stream, p, s.rows, s.cols, s.cols + s.padding, s.place);
    matrix codes = matrix_create(stream, U8, s.rows, code_cols, code_cols + s.padding, s.place);
    matrix scales = matrix_create(stream, U8, s.scale_rows, s.scale_cols, 0, AT_END);
    matrix globals = matrix_create(stream, F32, 1, s.global_rows, 0, AT_END);
    double *expected = malloc(sizeof(double) * (size_t)(s.rows * s.cols));
    assert_non_null(expected);
    matrix_fill(&codes, any_byte);
    matrix_fill(&scales, any_byte);
    matrix_fill(&globals, any_scale);
    for (int64_t i = 0; i < s.rows * s.cols; i++) {
        const int64_t row = i / s.cols, col = i % s.cols;
        const int pair = (int)codes.values[row * code_cols + col / 2], code = col % 2 ? pair / 16 : pair % 16;
        const double scale = e4m3_signed(scales.values[place_of(s, row, col / BLOCK)]);
        expected[i] = (double)((float)(e2m1_signed(code) * scale) * (float)globals.values[s.global_rows > 1 ? row : 0]);
    }
    kiln_dequantize_nvfp4_params params = {.y = y.data,
                                           .codes = codes.data,
                                           .scales = scales.data,
                                           .global_scale = globals.data,
                                           .rows = s.rows,
                                           .cols = s.cols,
                                           .scale_rows = s.scale_rows,
                                           .scale_cols = s.scale_cols,
                                           .global_rows = s.global_rows,
                                           .y_stride = s.padding ? y.stride : 0,
                                           .codes_stride = s.padding ? codes.stride : 0,
                                           .scale_layout = s.swizzled ? KILN_SCALES_128X4 : KILN_SCALES_LINEAR};
    harness_ok(operator_function(&kiln__operator_dequantize_nvfp4, p)->call(stream, &params, sizeof params));
    matrix_expect_exact(&y, expected);
    matrix_expect_unchanged(&codes);
    matrix_expect_unchanged(&scales);
    matrix_expect_unchanged(&globals);
    matrix_destroy(&y);
    matrix_destroy(&codes);
    matrix_destroy(&scales);
    matrix_destroy(&globals);
    free(expected);
}

static void test_nvfp4(kiln_stream *stream) {
    static const int64_t cols[] = {1, 15, 16, 33, 100, 256, 1000, 6000};
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int i = 0; i < (int)(sizeof cols / sizeof *cols); i++) {
            shape s = {.rows = random_integer(1, 5), .cols = cols[i]};
            s.scale_rows = s.rows;
            s.scale_cols = rounded_up(s.cols, BLOCK) / BLOCK;
            s.global_rows = i % 2 ? 1 : s.rows;
            run_nvfp4(stream, p, s);
            s.swizzled = cols[i] < 300;
            if (i == 4) s.rows = s.global_rows = random_integer(129, 140);
            s.scale_rows = rounded_up(s.rows, 128);
            s.scale_cols = rounded_up(s.scale_cols, 4);
            s.padding = random_integer(0, 17);
            s.place = random_place();
            run_nvfp4(stream, p, s);
        }
}

/* Within a half of the distance of E2M1's numbers from 4 to 6 at the block's greatest magnitude, and what its scale was
 * rounded by. */
static void test_nvfp4_comes_back(kiln_stream *stream) {
    enum { ROWS = 5, COLS = 100, SCALE_COLS = 8 };
    harness_describe("quantize_nvfp4_f32 and dequantize_nvfp4_f32");
    matrix x = matrix_create(stream, F32, ROWS, COLS, 0, 0), y = matrix_create(stream, F32, ROWS, COLS, 0, 0);
    matrix codes = matrix_create(stream, U8, ROWS, SCALE_COLS * 8, 0, 0), amax = matrix_create(stream, F32, 1, 1, 0, 0);
    matrix scales = matrix_create(stream, U8, 128, SCALE_COLS, 0, 0), global = matrix_create(stream, F32, 1, 1, 0, 0);
    double greatest = 0, expected[ROWS * COLS], allowed[ROWS * COLS];
    matrix_fill(&x, small_number);
    for (int i = 0; i < ROWS * COLS; i++)
        greatest = fmax(greatest, fabs(x.values[i]));
    matrix_set(&amax, &greatest);
    kiln_quantize_nvfp4_params there = {.codes = codes.data,
                                        .scales = scales.data,
                                        .global_scale = global.data,
                                        .x = x.data,
                                        .amax = amax.data,
                                        .rows = ROWS,
                                        .cols = COLS,
                                        .scale_rows = 128,
                                        .scale_cols = SCALE_COLS,
                                        .global_rows = 1,
                                        .scale_layout = KILN_SCALES_128X4};
    kiln_dequantize_nvfp4_params back = {.y = y.data,
                                         .codes = codes.data,
                                         .scales = scales.data,
                                         .global_scale = global.data,
                                         .rows = ROWS,
                                         .cols = COLS,
                                         .scale_rows = 128,
                                         .scale_cols = SCALE_COLS,
                                         .global_rows = 1,
                                         .scale_layout = KILN_SCALES_128X4};
    harness_ok(kiln_quantize_nvfp4_f32(stream, &there));
    harness_ok(kiln_dequantize_nvfp4_f32(stream, &back));
    for (int row = 0; row < ROWS; row++)
        for (int first = 0; first < COLS; first += BLOCK) {
            double most = 0;
            const int end = first + BLOCK < COLS ? first + BLOCK : COLS;
            for (int col = first; col < end; col++)
                most = fmax(most, fabs(x.values[row * COLS + col]));
            for (int col = first; col < end; col++) {
                expected[row * COLS + col] = x.values[row * COLS + col];
                allowed[row * COLS + col] = most * (1.0 / 6 + 1.0 / 16);
            }
        }
    matrix_expect(&y, expected, allowed);
    matrix_destroy(&x);
    matrix_destroy(&y);
    matrix_destroy(&codes);
    matrix_destroy(&amax);
    matrix_destroy(&scales);
    matrix_destroy(&global);
}

static void test_refusals(kiln_stream *stream) {
    harness_describe("dequantize refused");
    matrix y = matrix_create(stream, F32, 130, 200, 0, 0), codes = matrix_create(stream, U8, 130, 200, 0, 0);
    matrix scales = matrix_create(stream, F32, 130, 2, 0, 0);
    const kiln_dequantize_fp8_params good = {
        .y = y.data, .codes = codes.data, .scales = scales.data, .rows = 130, .cols = 200, .scale_rows = 130};
    const kiln_dequantize_nvfp4_params good4 = {.y = y.data,
                                                .codes = codes.data,
                                                .scales = codes.data,
                                                .global_scale = scales.data,
                                                .rows = 30,
                                                .cols = 200,
                                                .scale_rows = 128,
                                                .scale_cols = 16,
                                                .global_rows = 1,
                                                .scale_layout = KILN_SCALES_128X4};
    kiln_dequantize_fp8_params bad = good;
    kiln_dequantize_nvfp4_params bad4 = good4;
#define REFUSED(params, from, op, field, value, parameter) \
    params = from;                                         \
    params.field = value;                                  \
    expect_refusal(stream, operator_function(&kiln__operator_##op, F32), &params, sizeof params, parameter)
    REFUSED(bad, good, dequantize_fp8, y, NULL, "y");
    REFUSED(bad, good, dequantize_fp8, codes, NULL, "codes");
    REFUSED(bad, good, dequantize_int8, scales, NULL, "scales");
    REFUSED(bad, good, dequantize_int8, scales, (const float *)1, "scales");
    REFUSED(bad, good, dequantize_fp8, cols, (int64_t)1 << 31, "cols");
    REFUSED(bad, good, dequantize_fp8, scale_rows, 3, "scale_rows");
    REFUSED(bad, good, dequantize_int8, scale_cols, 3, "scale_cols");
    REFUSED(bad, good, dequantize_fp8, codes_stride, 199, "codes_stride");
    REFUSED(bad, good, dequantize_int8, y_stride, 199, "y_stride");
    REFUSED(bad4, good4, dequantize_nvfp4, global_scale, NULL, "global_scale");
    REFUSED(bad4, good4, dequantize_nvfp4, scales, NULL, "scales");
    REFUSED(bad4, good4, dequantize_nvfp4, scale_rows, 130, "scale_rows");
    REFUSED(bad4, good4, dequantize_nvfp4, scale_cols, 12, "scale_cols");
    REFUSED(bad4, good4, dequantize_nvfp4, scale_cols, 14, "scale_cols");
    REFUSED(bad4, good4, dequantize_nvfp4, global_rows, 2, "global_rows");
    REFUSED(bad4, good4, dequantize_nvfp4, codes_stride, 127, "codes_stride");
    REFUSED(bad4, good4, dequantize_nvfp4, scale_layout, -1, "scale_layout");
    REFUSED(bad4, good4, dequantize_nvfp4, reserved, 1, "reserved");
#undef REFUSED
    matrix_expect_unchanged(&y);
    matrix_destroy(&y);
    matrix_destroy(&codes);
    matrix_destroy(&scales);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        on_each_device(test_scales),           on_each_device(test_several_vectors), on_each_device(test_nvfp4),
        on_each_device(test_nvfp4_comes_back), on_one_device(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
