/* quantize_nvfp4 against its formula, bit by bit: scales of a tensor and of rows, given and of greatest magnitudes, in
 * both layouts; every number of 16 bits up to the greatest code's, and those of f32 about each tie; infinities, NaN,
 * zeros and tiny numbers; padding. */
#include "tests/ops/harness.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 16 };

typedef struct shape {
    int64_t rows, cols, scale_rows, scale_cols, global_rows, padding, place;
    bool given, swizzled, wanted; /* wanted: the global scales */
} shape;

static double any_number(void) {
    return random_number(-1, 1) * ldexp(1, (int)random_integer(-12, 3));
}

static double special_number(void) {
    static const double values[] = {0, -0.0, 1e-45, -1e-40, 1e-37, 3e38, -INFINITY, INFINITY, NAN, -NAN};
    return random_integer(0, 9) ? any_number() : values[random_integer(0, 9)];
}

static double zero_or_tiny(void) {
    static const double values[] = {0, -0.0, 1e-45, -1e-40};
    return values[random_integer(0, 3)];
}

/* One a call, by a count that the test begins: the first of each block is 6, whose scale is then 1; the others are all
 * numbers of 16 bits from 0 to the one of those bits, by turns of both signs. */
static int64_t calls;

static double next_number(precision p, uint32_t bits_of_six) {
    const int64_t block = calls / BLOCK, place = calls % BLOCK;
    calls++;
    if (place == 0) return 6;
    const int64_t n = block * (BLOCK - 1) + place - 1;
    const uint32_t bits = (uint32_t)(n / 2) % (bits_of_six + 1), as_f32 = bits << 16;
    float value;
    memcpy(&value, &as_f32, sizeof value);
    if (p == F16)
        value = ldexpf((float)(bits >> 10 ? 1024 + bits % 1024 : bits), (bits >> 10 ? (int)(bits >> 10) : 1) - 25);
    return (double)(n % 2 ? -value : value);
}

static double next_f16(void) {
    return next_number(F16, 0x4600);
}

static double next_bf16(void) {
    return next_number(BF16, 0x40c0);
}

/* Each tie of E2M1 and the f32 on either side of it. */
static double next_about_tie(void) {
    static const float ties[] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5};
    const int64_t n = calls++;
    const float tie = ties[n / 6 % 7], about[] = {nextafterf(tie, 0), tie, nextafterf(tie, 6)};
    return n % BLOCK == 0 ? 6 : (double)(n % 2 ? -about[n / 2 % 3] : about[n / 2 % 3]);
}

static double positive_number(void) {
    return random_number(0.01, 4);
}

/* Some are taken for 1, or for the greatest number. */
static double any_global(void) {
    static const double values[] = {0, NAN, -1, 1e-40, INFINITY, 0x1p-116};
    return random_integer(0, 4) ? random_number(1e-4, 0.1) : values[random_integer(0, 5)];
}

static double one(void) {
    return 1;
}

/* Of numbers in order the nearest to a magnitude, of two as near the one of even index. */
static int nearest(const double *numbers, int count, double magnitude) {
    int best = 0;
    for (int i = 1; i < count; i++) {
        double nearer = fabs(magnitude - numbers[best]) - fabs(magnitude - numbers[i]);
        if (nearer > 0 || (nearer == 0 && i % 2 == 0)) best = i;
    }
    return best;
}

static int e2m1_of(float value) {
    static const double numbers[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    if (isnan(value)) return 7;
    return nearest(numbers, 8, fmin(fabs((double)value), 6)) + (signbit(value) ? 8 : 0);
}

static double e4m3_number(int code) {
    return code < 8 ? ldexp(code, -9) : ldexp(8 + code % 8, code / 8 - 10);
}

static int e4m3_of(float value) {
    double numbers[127];
    for (int i = 0; i < 127; i++)
        numbers[i] = e4m3_number(i);
    return nearest(numbers, 127, fmin((double)value, 448));
}

static float global_of(double value, bool given) {
    float number = fminf((float)value, FLT_MAX); /* NaN: not looked at */
    float scale = given ? number : number / 2688.0f;
    return isnan(value) || value < (given ? 0x1p-116 : 0x1p-116 * 2688) ? 1.0f : scale;
}

/* Where a scale is: the order of FlashInfer's and cuBLAS's tiles, written as a transposition of their dimensions. */
static int64_t place_of(shape s, int64_t row, int64_t block) {
    if (!s.swizzled) return row * s.scale_cols + block;
    const int64_t at[] = {row / 128, block / 4, row % 32, row % 128 / 32, block % 4};
    const int64_t sizes[] = {s.scale_rows / 128, s.scale_cols / 4, 32, 4, 4};
    int64_t place = 0;
    for (int i = 0; i < 5; i++)
        place = place * sizes[i] + at[i];
    return place;
}

static void reference(shape s, const double *x, const double *values, double *codes, double *scales, double *globals) {
    for (int64_t i = 0; i < s.rows * s.scale_cols * BLOCK / 2; i++)
        codes[i] = 0;
    for (int64_t i = 0; i < s.scale_rows * s.scale_cols; i++)
        scales[i] = 0;
    for (int64_t i = 0; i < s.global_rows; i++)
        globals[i] = (double)global_of(values[i], s.given);
    for (int64_t row = 0; row < s.rows; row++)
        for (int64_t first = 0; first < s.cols; first += BLOCK) {
            float encode = 1.0f / (float)globals[s.global_rows > 1 ? row : 0], greatest = 0;
            const int64_t end = first + BLOCK < s.cols ? first + BLOCK : s.cols;
            for (int64_t col = first; col < end; col++)
                greatest = fmaxf(greatest, fabsf((float)x[row * s.cols + col])); /* passes over NaN */
            int scale = e4m3_of(greatest / 6.0f * encode);
            float factor = scale ? encode / (float)e4m3_number(scale) : 0;
            scales[place_of(s, row, first / BLOCK)] = scale;
            for (int64_t col = first; col < end; col++)
                codes[(row * s.scale_cols * BLOCK + col) / 2] +=
                    e2m1_of((float)x[row * s.cols + col] * factor) * (col % 2 ? 16 : 1);
        }
}

static void run(kiln_stream *stream, precision p, shape s, double (*value)(void), double (*global)(void)) {
    harness_describe("quantize_nvfp4_%s %lld x %lld, scales %lld x %lld%s, %lld %s, padding %lld, at %lld",
                     precision_name(p), (long long)s.rows, (long long)s.cols, (long long)s.scale_rows,
                     (long long)s.scale_cols, s.swizzled ? " swizzled" : "", (long long)s.global_rows,
                     s.given ? "given" : "of amax", (long long)s.padding, (long long)s.place);
    const int64_t code_cols = s.scale_cols * BLOCK / 2;
    matrix x = matrix_create(stream, p, s.rows, s.cols, s.cols + s.padding, s.place);
    matrix codes = matrix_create(stream, U8, s.rows, code_cols, code_cols + s.padding, s.place);
    matrix scales = matrix_create(stream, U8, s.scale_rows, s.scale_cols, 0, s.place);
    matrix globals = matrix_create(stream, F32, 1, s.global_rows, 0, AT_END);
    matrix values = matrix_create(stream, F32, 1, s.global_rows, 0, AT_END);
    double *expected = malloc(sizeof(double) * (size_t)(s.rows * code_cols));
    double *expected_scales = malloc(sizeof(double) * (size_t)(s.scale_rows * s.scale_cols));
    double *expected_globals = malloc(sizeof(double) * (size_t)s.global_rows);
    assert_true(expected && expected_scales && expected_globals);
    matrix_fill(&x, value);
    matrix_fill(&values, global);
    reference(s, x.values, values.values, expected, expected_scales, expected_globals);
    kiln_quantize_nvfp4_params params = {.codes = codes.data,
                                         .scales = scales.data,
                                         .global_scale = s.wanted ? globals.data : NULL,
                                         .x = x.data,
                                         .given = s.given ? values.data : NULL,
                                         .amax = s.given ? NULL : values.data,
                                         .rows = s.rows,
                                         .cols = s.cols,
                                         .scale_rows = s.scale_rows,
                                         .scale_cols = s.scale_cols,
                                         .global_rows = s.global_rows,
                                         .codes_stride = s.padding ? codes.stride : 0,
                                         .x_stride = s.padding ? x.stride : 0,
                                         .scale_layout = s.swizzled ? KILN_SCALES_128X4 : KILN_SCALES_LINEAR};
    harness_ok(operator_function(&kiln__operator_quantize_nvfp4, p)->call(stream, &params, sizeof params));
    matrix_expect_exact(&codes, expected);
    matrix_expect_exact(&scales, expected_scales);
    if (s.wanted) matrix_expect_exact(&globals, expected_globals);
    if (!s.wanted) matrix_expect_unchanged(&globals);
    matrix_expect_unchanged(&x);
    matrix_expect_unchanged(&values);
    matrix_destroy(&x);
    matrix_destroy(&codes);
    matrix_destroy(&scales);
    matrix_destroy(&globals);
    matrix_destroy(&values);
    free(expected);
    free(expected_scales);
    free(expected_globals);
}

static int64_t rounded_up(int64_t count, int64_t unit) {
    return (count + unit - 1) / unit * unit;
}

/* Aligned and not; the numbers of rows and columns divide by nothing. */
static void test_shapes(kiln_stream *stream) {
    static const int64_t cols[] = {1, 15, 16, 33, 64, 100, 256, 1000, 5000};
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int i = 0; i < (int)(sizeof cols / sizeof *cols); i++) {
            shape s = {.rows = random_integer(1, cols[i] < 300 ? 9 : 2), .cols = cols[i], .given = i % 2 != 0};
            s.scale_rows = s.rows;
            s.scale_cols = rounded_up(s.cols, BLOCK) / BLOCK;
            s.global_rows = i % 3 ? 1 : s.rows;
            s.wanted = i % 4 != 0;
            run(stream, p, s, any_number, s.given ? any_global : positive_number);
            s.given = !s.given;
            s.swizzled = cols[i] < 300;
            s.scale_rows = rounded_up(s.rows, 128);
            s.scale_cols = rounded_up(s.scale_cols, 4);
            s.padding = random_integer(0, 17);
            s.place = random_place();
            run(stream, p, s, special_number, s.given ? any_global : positive_number);
        }
}

/* Rows and columns of several tiles of scales. */
static void test_tiles_of_scales(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++) {
        shape s = {.rows = random_integer(129, 170), .cols = 100, .scale_rows = 256, .scale_cols = 12};
        s.global_rows = 1;
        s.swizzled = true;
        run(stream, p, s, any_number, positive_number);
    }
}

/* Of a scale that rounds nothing, every number of 16 bits; in f32 those at which the code changes. */
static void test_every_number(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++) {
        const int64_t blocks = p == F32 ? 42 : 239; /* of a row: 10 rows have more than twice 0x4600 numbers */
        shape s = {.rows = 10, .cols = BLOCK * blocks, .scale_rows = 10, .scale_cols = blocks, .global_rows = 1};
        s.given = true;
        calls = 0;
        run(stream, p, s, p == F32 ? next_about_tie : p == F16 ? next_f16 : next_bf16, one);
    }
}

static void test_zeros(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++) {
        shape s = {.rows = 3, .cols = 160, .scale_rows = 3, .scale_cols = 10, .global_rows = 1, .wanted = true};
        run(stream, p, s, zero_or_tiny, zero_or_tiny);
    }
}

static void test_refusals(kiln_stream *stream) {
    harness_describe("quantize_nvfp4 refused");
    matrix x = matrix_create(stream, F32, 5, 100, 0, 0), codes = matrix_create(stream, U8, 5, 64, 0, 0);
    matrix scales = matrix_create(stream, U8, 128, 8, 0, 0), amax = matrix_create(stream, F32, 1, 5, 0, 0);
    const kiln_operator_function *function = operator_function(&kiln__operator_quantize_nvfp4, F32);
    const kiln_quantize_nvfp4_params good = {.codes = codes.data,
                                             .scales = scales.data,
                                             .x = x.data,
                                             .amax = amax.data,
                                             .rows = 5,
                                             .cols = 100,
                                             .scale_rows = 128,
                                             .scale_cols = 8,
                                             .global_rows = 1,
                                             .scale_layout = KILN_SCALES_128X4};
    kiln_quantize_nvfp4_params bad = good;
#define REFUSED(field, value, parameter) \
    bad = good;                          \
    bad.field = value;                   \
    expect_refusal(stream, function, &bad, sizeof bad, parameter)
    REFUSED(codes, NULL, "codes");
    REFUSED(scales, NULL, "scales");
    REFUSED(global_scale, (float *)1, "global_scale");
    REFUSED(x, NULL, "x");
    REFUSED(given, (const float *)1, "given");
    REFUSED(amax, NULL, "amax");
    REFUSED(amax, (const float *)1, "amax");
    REFUSED(rows, -1, "rows");
    REFUSED(cols, (int64_t)1 << 31, "cols");
    REFUSED(scale_rows, 4, "scale_rows");
    REFUSED(scale_rows, 64, "scale_rows is 64: must be a multiple of 128 in 128x4");
    REFUSED(scale_cols, 6, "scale_cols");
    REFUSED(scale_cols, 9, "scale_cols is 9: must be a multiple of 4 in 128x4");
    REFUSED(global_rows, 0, "global_rows");
    REFUSED(global_rows, 2, "global_rows");
    REFUSED(codes_stride, 63, "codes_stride");
    REFUSED(x_stride, 99, "x_stride");
    REFUSED(scale_layout, 2, "scale_layout");
    REFUSED(reserved, 1, "reserved");
#undef REFUSED
    matrix_expect_unchanged(&x);
    matrix_expect_unchanged(&codes);
    matrix_expect_unchanged(&scales);
    matrix_destroy(&x);
    matrix_destroy(&codes);
    matrix_destroy(&scales);
    matrix_destroy(&amax);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        on_each_device(test_shapes), on_each_device(test_tiles_of_scales), on_each_device(test_every_number),
        on_each_device(test_zeros),  on_one_device(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
