/* quantize_fp8 and quantize_int8 against their formulas, bit by bit: every way to share scales, computed, from given
 * greatest magnitudes and given; infinities, NaN, zeros and tiny numbers; every number of 16 bits, and those of f32
 * about each tie. */
#include "tests/ops/harness.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GROUP = 128, NUMBERS = 65536 };

typedef enum source { COMPUTED, AMAX, GIVEN } source;

/* Both operators' params have the same fields at the same places. */
_Static_assert(sizeof(kiln_quantize_fp8_params) == sizeof(kiln_quantize_int8_params), "one struct for both");

typedef struct shape {
    bool fp8;
    source source;
    int64_t rows, cols, scale_rows, scale_cols, padding, place;
    float smax; /* 0: the greatest number */
    bool ones;  /* given scales are 1 */
} shape;

static double any_number(void) {
    return random_number(-1, 1) * ldexp(1, (int)random_integer(-12, 3));
}

static double special_number(void) {
    static const double values[] = {0, -0.0, 1e-45, -1e-40, 1e-37, 3e38, -INFINITY, INFINITY, NAN};
    return random_integer(0, 9) ? any_number() : values[random_integer(0, 8)];
}

static double zero_or_tiny(void) {
    static const double values[] = {0, -0.0, 1e-45, -1e-40};
    return values[random_integer(0, 3)];
}

static double positive_number(void) {
    return random_number(0.01, 0.02);
}

/* Scales that are taken for 1 are among them. */
static double any_scale(void) {
    static const double values[] = {0, NAN, -1, 1e-40, 0.5};
    return random_integer(0, 5) ? positive_number() : values[random_integer(0, 4)];
}

static double one(void) {
    return 1;
}

/* Every number of f16 and of bf16, one a call, by a count that the test begins. */
static uint32_t numbers;

static double next_f16(void) {
    const uint32_t bits = numbers++ % NUMBERS, field = bits >> 10 & 31, fraction = bits & 1023;
    double value = field ? ldexp(1024 + fraction, (int)field - 25) : ldexp(fraction, -24);
    if (field == 31) value = fraction ? NAN : INFINITY;
    return bits >> 15 ? -value : value;
}

static double next_bf16(void) {
    const uint32_t bits = numbers++ % NUMBERS << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

/* Each tie between two numbers of E4M3, and between two integers, and the f32 on either side of it; of both signs. */
static double next_about_tie(void) {
    const uint32_t n = numbers++, code = n / 6 % 254, field = code % 127 / 8;
    float tie = field ? ldexpf((float)(8 + code % 8) + 0.5f, (int)field - 10) : ldexpf((float)(code % 8) + 0.5f, -9);
    if (code >= 127) tie = (float)(code - 127) + 0.5f;
    const float about[] = {nextafterf(tie, 0), tie, nextafterf(tie, 1000)};
    return (double)(n % 2 ? -about[n / 2 % 3] : about[n / 2 % 3]);
}

/* The E4M3 nearest to a magnitude of at most 448, ties to even, as its code. */
static int e4m3_of(double magnitude) {
    int exponent;
    frexp(magnitude, &exponent);
    int field = exponent - 1 < -6 || magnitude == 0 ? -6 : exponent - 1;
    double units = nearbyint(ldexp(magnitude, 3 - field)); /* of the last place; 16 is the next power's first number */
    return (field + 6) * 8 + (int)units;
}

static double code_of(shape s, float value, float factor, float smax) {
    float product = value * factor;
    if (isnan(product)) return s.fp8 ? 0x7f : 0;
    double magnitude = fmin(fabs((double)product), (double)smax);
    if (!s.fp8) return copysign(nearbyint(magnitude), (double)product) + 0.0; /* no -0 */
    return e4m3_of(magnitude) + (signbit(product) ? 128 : 0);
}

/* Which scale an element has. */
static int64_t scale_of(shape s, int64_t row, int64_t col) {
    int64_t r = s.scale_rows == s.rows ? row : s.scale_rows == 1 ? 0 : row / GROUP;
    return r * s.scale_cols + (s.scale_cols == 1 ? 0 : col / GROUP);
}

static void reference(shape s, const double *x, const double *values, double *scales, double *codes) {
    const float greatest = s.fp8 ? 448.0f : 127.0f, smax = s.smax == 0 ? greatest : s.smax;
    for (int64_t i = 0; i < s.scale_rows * s.scale_cols; i++)
        scales[i] = s.source == COMPUTED ? 0 : values[i];
    for (int64_t i = 0; s.source == COMPUTED && i < s.rows * s.cols; i++) {
        double *scale = &scales[scale_of(s, i / s.cols, i % s.cols)];
        *scale = fmax(*scale, fabs(x[i])); /* passes over NaN */
    }
    for (int64_t i = 0; i < s.scale_rows * s.scale_cols; i++) {
        float amax = (float)fmin(scales[i], (double)FLT_MAX),
              scale = s.source == GIVEN ? (float)scales[i] : amax / smax;
        scales[i] = (double)(scale >= FLT_MIN ? scale : 1.0f);
    }
    for (int64_t i = 0; i < s.rows * s.cols; i++)
        codes[i] = code_of(s, (float)x[i], 1.0f / (float)scales[scale_of(s, i / s.cols, i % s.cols)], smax);
}

static void run(kiln_stream *stream, precision p, shape s, double (*value)(void)) {
    const kiln_operator *op = s.fp8 ? &kiln__operator_quantize_fp8 : &kiln__operator_quantize_int8;
    const int64_t scale_count = s.scale_rows * s.scale_cols;
    harness_describe("%s_%s %lld x %lld, scales %lld x %lld %s, padding %lld, at %lld, smax %g", op->name,
                     precision_name(p), (long long)s.rows, (long long)s.cols, (long long)s.scale_rows,
                     (long long)s.scale_cols, (const char *[]){"computed", "of amax", "given"}[s.source],
                     (long long)s.padding, (long long)s.place, (double)s.smax);
    matrix x = matrix_create(stream, p, s.rows, s.cols, s.cols + s.padding, s.place);
    matrix codes = matrix_create(stream, s.fp8 ? U8 : I8, s.rows, s.cols, s.cols + s.padding, s.place);
    matrix scales = matrix_create(stream, F32, 1, scale_count, 0, AT_END);
    matrix values = matrix_create(stream, F32, 1, scale_count, 0, AT_END);
    double *expected = malloc(sizeof(double) * (size_t)(s.rows * s.cols));
    double *expected_scales = malloc(sizeof(double) * (size_t)scale_count);
    assert_non_null(expected);
    assert_non_null(expected_scales);
    matrix_fill(&x, value);
    matrix_fill(&values, s.ones ? one : s.source == GIVEN ? any_scale : positive_number);
    reference(s, x.values, values.values, expected_scales, expected);
    bool scales_wanted = s.source != GIVEN || s.place != 0;
    kiln_quantize_fp8_params params = {.codes = codes.data,
                                       .scales = scales_wanted ? scales.data : NULL,
                                       .x = x.data,
                                       .given = s.source == GIVEN ? values.data : NULL,
                                       .amax = s.source == AMAX ? values.data : NULL,
                                       .rows = s.rows,
                                       .cols = s.cols,
                                       .scale_rows = s.padding && s.scale_rows == s.rows ? 0 : s.scale_rows,
                                       .scale_cols = s.padding && s.scale_cols == 1 ? 0 : s.scale_cols,
                                       .codes_stride = s.padding ? codes.stride : 0,
                                       .x_stride = s.padding ? x.stride : 0,
                                       .smax = s.smax};
    harness_ok(operator_function(op, p)->call(stream, &params, sizeof params));
    matrix_expect_exact(&codes, expected);
    if (scales_wanted) matrix_expect_exact(&scales, expected_scales);
    if (!scales_wanted) matrix_expect_unchanged(&scales);
    matrix_expect_unchanged(&x);
    matrix_expect_unchanged(&values);
    matrix_destroy(&x);
    matrix_destroy(&codes);
    matrix_destroy(&scales);
    matrix_destroy(&values);
    free(expected);
    free(expected_scales);
}

static int64_t groups_of(int64_t count) {
    return (count + GROUP - 1) / GROUP;
}

/* Every way to share scales, aligned and not; the numbers of rows and columns divide by nothing. */
static void test_scales(kiln_stream *stream) {
    static const int64_t cols[] = {1, 3, 8, 33, 127, 128, 129, 256, 1000, 2056, 4099, 4112};
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int i = 0; i < (int)(sizeof cols / sizeof *cols); i++)
            for (int way = 0; way < 4; way++) {
                shape s = {.fp8 = (i + way) % 2, .rows = random_integer(1, cols[i] < 300 ? 9 : 3), .cols = cols[i]};
                if (way == 2 && i % 2) s.rows = random_integer(127, 140); /* blocks */
                s.scale_rows = (int64_t[]){1, s.rows, groups_of(s.rows), s.rows}[way];
                s.scale_cols = way < 2 ? 1 : groups_of(s.cols);
                s.source = way == 0 ? (source)random_integer(AMAX, GIVEN) : (source)(random_integer(0, 5) % 4 % 3);
                s.smax = random_integer(0, 2) ? 0 : 2.25f;
                run(stream, p, s, way % 2 ? special_number : any_number);
                s.fp8 = !s.fp8;
                s.padding = random_integer(0, 17);
                s.place = random_place();
                run(stream, p, s, special_number);
            }
}

/* Rows that a block has in registers, the same number of vectors for each thread, with special numbers and without. */
static void test_even_rows(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int i = 0; i < 8; i++) {
            shape s = {.fp8 = i % 2, .rows = 2, .cols = i / 2 % 2 ? 8192 : 4096, .scale_rows = 2, .scale_cols = 1};
            s.source = COMPUTED;
            run(stream, p, s, i < 4 ? any_number : special_number);
        }
}

/* Blocks of 128 x 128, whole ones and parts, of aligned vectors, with special numbers and without. */
static void test_blocks(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int i = 0; i < 4; i++) {
            shape s = {.fp8 = i % 2, .source = COMPUTED, .rows = 150, .cols = 264, .scale_rows = 2, .scale_cols = 3};
            run(stream, p, s, i < 2 ? any_number : special_number);
        }
}

/* Every number that there is in 16 bits, as a code; in f32 those at which the code changes. */
static void test_every_number(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int fp8 = 0; fp8 < 2; fp8++) {
            shape s = {.fp8 = fp8, .source = GIVEN, .rows = 16, .cols = NUMBERS / 16, .scale_cols = 1, .ones = true};
            if (p == F32) s.cols = 6 * 254 / 16 + 1;
            s.scale_rows = s.rows;
            numbers = 0;
            run(stream, p, s, p == F32 ? next_about_tie : p == F16 ? next_f16 : next_bf16);
        }
}

/* So many rows that a block has several for each of its threads. */
static void test_many_rows(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int fp8 = 0; fp8 < 2; fp8++) {
            shape s = {.fp8 = fp8, .rows = random_integer(513, 570), .cols = 136, .scale_cols = 2};
            s.scale_rows = s.rows;
            s.source = random_integer(0, 3) ? COMPUTED : GIVEN;
            run(stream, p, s, special_number);
        }
}

static void test_zeros(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int fp8 = 0; fp8 < 2; fp8++)
            run(stream, p, (shape){.fp8 = fp8, .rows = 3, .cols = 130, .scale_rows = 3, .scale_cols = 2}, zero_or_tiny);
}

/* The scales that a call computes give the same codes when they are given. */
static void test_scales_given_again(kiln_stream *stream) {
    enum { ROWS = 5, COLS = 300 };
    harness_describe("quantize_fp8_f32 with its own scales");
    matrix x = matrix_create(stream, F32, ROWS, COLS, 0, 0), scales = matrix_create(stream, F32, ROWS, 1, 0, 0);
    matrix first = matrix_create(stream, U8, ROWS, COLS, 0, 0), second = matrix_create(stream, U8, ROWS, COLS, 0, 0);
    matrix_fill(&x, any_number);
    kiln_quantize_fp8_params params = {.codes = first.data, .scales = scales.data, .x = x.data, .rows = ROWS};
    params.cols = COLS;
    params.scale_rows = ROWS;
    params.scale_cols = 1;
    harness_ok(kiln_quantize_fp8_f32(stream, &params));
    params.codes = second.data;
    params.scales = NULL;
    params.given = scales.data;
    harness_ok(kiln_quantize_fp8_f32(stream, &params));
    matrix_get(&first);
    matrix_expect_exact(&second, first.values);
    matrix_destroy(&x);
    matrix_destroy(&scales);
    matrix_destroy(&first);
    matrix_destroy(&second);
}

static void test_refusals(kiln_stream *stream) {
    harness_describe("quantize refused");
    matrix x = matrix_create(stream, F32, 130, 200, 0, 0), codes = matrix_create(stream, U8, 130, 200, 0, 0);
    matrix scales = matrix_create(stream, F32, 130, 2, 0, 0);
    const kiln_operator_function *fp8 = operator_function(&kiln__operator_quantize_fp8, F32);
    const kiln_operator_function *int8 = operator_function(&kiln__operator_quantize_int8, F32);
    const kiln_quantize_fp8_params good = {.codes = codes.data,
                                           .scales = scales.data,
                                           .x = x.data,
                                           .rows = 130,
                                           .cols = 200,
                                           .scale_rows = 130,
                                           .scale_cols = 1};
    kiln_quantize_fp8_params bad = good;
#define REFUSED(function, field, value, parameter) \
    bad = good;                                    \
    bad.field = value;                             \
    expect_refusal(stream, function, &bad, sizeof bad, parameter)
    REFUSED(fp8, codes, NULL, "codes");
    REFUSED(fp8, scales, (float *)1, "scales");
    REFUSED(fp8, scale_rows, -1, "scale_rows");
    REFUSED(fp8, x, NULL, "x");
    REFUSED(fp8, given, (const float *)1, "given");
    REFUSED(fp8, amax, (const float *)1, "amax");
    REFUSED(fp8, rows, -1, "rows");
    REFUSED(fp8, cols, (int64_t)1 << 31, "cols");
    REFUSED(fp8, scale_rows, 3, "scale_rows");
    REFUSED(fp8, scale_cols, 200, "scale_cols");
    REFUSED(fp8, scale_rows, 1, "amax");
    REFUSED(fp8, scale_rows, 2, "amax");
    REFUSED(fp8, codes_stride, 199, "codes_stride");
    REFUSED(fp8, x_stride, 199, "x_stride");
    REFUSED(fp8, smax, 449, "smax");
    REFUSED(fp8, smax, 0.5f, "smax");
    REFUSED(int8, smax, 128, "smax");
    REFUSED(int8, reserved, 1, "reserved");
#undef REFUSED
    matrix_expect_unchanged(&x);
    matrix_expect_unchanged(&codes);
    matrix_expect_unchanged(&scales);
    matrix_destroy(&x);
    matrix_destroy(&codes);
    matrix_destroy(&scales);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        on_each_device(test_scales),
        on_each_device(test_even_rows),
        on_each_device(test_blocks),
        on_each_device(test_every_number),
        on_each_device(test_many_rows),
        on_each_device(test_zeros),
        on_each_device(test_scales_given_again),
        on_one_device(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
