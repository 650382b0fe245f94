/* gemm_nvfp4 against f64: all shapes, strides and endings, both orders of scales, global scales of the matrix and of
 * rows; products that are exact; matrices that quantize_nvfp4 made. */
#include "tests/ops/activation.h"
#include "tests/ops/harness.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 16 };

/* How a factor is held. */
typedef struct holding {
    bool swizzled, each; /* the order of its scales; a global scale for each row */
    int64_t more;        /* blocks of a row beyond those of k */
    int64_t padding;     /* bytes between rows of codes */
} holding;

typedef struct shape {
    int64_t m, n, k;
    int64_t place;   /* of all tensors */
    int64_t padding; /* of d's rows */
    holding a, b;
    bool bias, workspace;
    bool exact; /* sums that f32 holds, in whatever order */
    double scale;
    kiln_gemm_activation activation;
    kiln_gemm_tile tile;
} shape;

static const kiln_bundle *bundle(void) {
    extern const kiln_bundle kiln__bundle_gemm_nvfp4;
    return &kiln__bundle_gemm_nvfp4;
}

/* ---- Numbers ---- */

static double e4m3_value(int code) {
    int exponent = code >> 3 & 15, fraction = code & 7; /* a sign does not count */
    if ((code & 0x7f) == 0x7f) return NAN;
    return exponent ? ldexp(8 + fraction, exponent - 10) : ldexp(fraction, -9);
}

static double e2m1_value(int code) {
    static const double magnitudes[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    return code & 8 ? -magnitudes[code & 7] : magnitudes[code & 7];
}

static double any_pair(void) {
    return (double)random_integer(0, 255);
}
static double positive_pair(void) { /* 3, 4 and 6: the sum of their products grows from step to step */
    return (double)(random_integer(5, 7) | random_integer(5, 7) << 4);
}
static double small_pair(void) { /* 0, 1, 2, 3 and their negatives */
    static const int codes[] = {0, 2, 4, 5, 8, 10, 12, 13};
    return (double)(codes[random_integer(0, 7)] | codes[random_integer(0, 7)] << 4);
}
static double any_block_scale(void) {
    return (double)(random_integer(0, 0x7e) + (random_integer(0, 9) ? 0 : 0x80));
}
static double even_block_scale(void) { /* 1, 2, 4 */
    return (double)(0x38 + 8 * random_integer(0, 2));
}
static double nan_block_scale(void) {
    return random_integer(0, 60) ? any_block_scale() : 0x7f;
}
static double any_global(void) {
    return random_number(1e-4, 1e-3);
}
static double power_of_two(void) {
    return ldexp(1, (int)random_integer(-2, 2));
}
static double any_number(void) {
    return random_number(-1, 1);
}
static double any_integer(void) {
    return (double)random_integer(-8, 8);
}

/* What a factor is filled with. */
typedef struct numbers {
    double (*pair)(void), (*block_scale)(void), (*global)(void);
} numbers;

static const numbers any = {any_pair, any_block_scale, any_global};

/* ---- Factors ---- */

/* Codes and their scales, and the numbers that they are. */
typedef struct factor {
    matrix codes, scales, global;
    bool swizzled;
    double *numbers;
} factor;

/* The order of cuBLASLt and of tcgen05: tiles of 128 rows by 4 blocks. */
static int64_t place_of(const factor *f, int64_t row, int64_t block) {
    if (!f->swizzled) return row * f->scales.cols + block;
    return ((row / 128) * (f->scales.cols / 4) + block / 4) * 512 + row % 32 * 16 + row % 128 / 32 * 4 + block % 4;
}

static factor factor_create(kiln_stream *stream, int64_t rows, int64_t k, holding how, int64_t place, numbers of) {
    factor f = {.swizzled = how.swizzled};
    int64_t blocks = (k + BLOCK - 1) / BLOCK + how.more, scale_rows = rows;
    if (how.swizzled) {
        blocks = (blocks + 3) / 4 * 4;
        scale_rows = (rows + 127) / 128 * 128;
    }
    f.codes = matrix_create(stream, U8, rows, 8 * blocks, 8 * blocks + how.padding, place);
    f.scales = matrix_create(stream, U8, scale_rows, blocks, 0, place);
    f.global = matrix_create(stream, F32, 1, how.each ? rows : 1, 0, AT_END);
    matrix_fill(&f.codes, of.pair);
    matrix_fill(&f.scales, of.block_scale);
    matrix_fill(&f.global, of.global);
    f.numbers = malloc(sizeof(double) * (size_t)(rows * k + 1));
    assert_non_null(f.numbers);
    for (int64_t i = 0; i < rows * k; i++) {
        int64_t row = i / k, col = i % k;
        int pair = (int)f.codes.values[row * f.codes.cols + col / 2];
        f.numbers[i] = e2m1_value(col % 2 ? pair >> 4 : pair & 15) *
                       e4m3_value((int)f.scales.values[place_of(&f, row, col / BLOCK)]);
    }
    return f;
}

static double global_of(const factor *f, int64_t row) {
    return f->global.values[f->global.cols > 1 ? row : 0];
}

static void factor_destroy(factor *f) {
    matrix_expect_unchanged(&f->codes);
    matrix_expect_unchanged(&f->scales);
    matrix_expect_unchanged(&f->global);
    matrix_destroy(&f->codes);
    matrix_destroy(&f->scales);
    matrix_destroy(&f->global);
    free(f->numbers);
}

/* ---- One product ---- */

/* What the additions of k products may lose of their magnitudes: rounding, or what a matrix unit drops each time. */
static double loss_of(kiln_stream *stream, int64_t k) {
    return harness_on_cpu(stream) ? 0x1p-23 * sqrt((double)k + 16) : 0x1p-23 * (8 + (double)k / 16);
}

static void reference(kiln_stream *stream, shape s, const factor *a, const factor *b, const matrix *bias,
                      double *expected, double *allowed) {
    const double scale = s.scale == 0 ? 1 : (double)(float)s.scale, loss = loss_of(stream, s.k);
    for (int64_t row = 0; row < s.m; row++)
        for (int64_t col = 0; col < s.n; col++) {
            const double *left = a->numbers + row * s.k, *right = b->numbers + col * s.k;
            const double weight = s.k ? scale * global_of(a, row) * global_of(b, col) : 0;
            double sum, magnitude;
            harness_dot(left, right, s.k, &sum, &magnitude);
            double value = weight * sum + (s.bias ? bias->values[col] : 0);
            double rounded = fabs(weight) * magnitude + (s.bias ? fabs(bias->values[col]) : 0);
            double result = activate(s.activation, value);
            expected[row * s.n + col] = result;
            if (s.exact) continue;
            allowed[row * s.n + col] =
                1.2 * rounded * (loss + 0x1p-22) + (s.activation ? 2e-6 + 2e-6 * fabs(result) : 0);
        }
}

static kiln_gemm_nvfp4_params params_of(shape s, const factor *a, const factor *b, const matrix *bias,
                                        const matrix *d) {
    const bool least = s.place == 0; /* then zeros say what follows from the rest */
    return (kiln_gemm_nvfp4_params){.d = d->data,
                                    .a = a->codes.data,
                                    .b = b->codes.data,
                                    .a_scales = a->scales.data,
                                    .b_scales = b->scales.data,
                                    .a_global_scale = a->global.data,
                                    .b_global_scale = b->global.data,
                                    .bias = s.bias ? bias->data : NULL,
                                    .m = s.m,
                                    .n = s.n,
                                    .k = s.k,
                                    .a_scale_rows = least ? 0 : a->scales.rows,
                                    .a_scale_cols = s.a.more || !least ? a->scales.cols : 0,
                                    .b_scale_rows = least ? 0 : b->scales.rows,
                                    .b_scale_cols = s.b.more || !least ? b->scales.cols : 0,
                                    .a_global_rows = least && !s.a.each ? 0 : a->global.cols,
                                    .b_global_rows = b->global.cols,
                                    .d_stride = s.padding ? d->stride : 0,
                                    .a_stride = s.a.padding ? a->codes.stride : 0,
                                    .b_stride = s.b.padding ? b->codes.stride : 0,
                                    .scale = (float)s.scale,
                                    .a_scale_layout = a->swizzled ? KILN_SCALES_128X4 : KILN_SCALES_LINEAR,
                                    .b_scale_layout = b->swizzled ? KILN_SCALES_128X4 : KILN_SCALES_LINEAR,
                                    .activation = (int32_t)s.activation,
                                    .tile = (int32_t)s.tile};
}

static void call(kiln_stream *stream, precision p, shape s, kiln_gemm_nvfp4_params params) {
    const kiln_operator_function *function = operator_function(&kiln__operator_gemm_nvfp4, p);
    matrix workspace = {0};
    if (s.workspace) {
        harness_ok(function->workspace_size(stream, &params, sizeof params, &params.workspace_size));
        workspace = matrix_create(stream, F32, 1, (int64_t)params.workspace_size / 4, 0, 0);
        if (params.workspace_size) params.workspace = workspace.data;
    }
    harness_ok(function->call(stream, &params, sizeof params));
    if (!s.workspace) return;
    matrix_get(&workspace); /* nothing around it is written */
    matrix_destroy(&workspace);
}

static void run_with(kiln_stream *stream, precision p, shape s, numbers of) {
    harness_describe("gemm_nvfp4_%s %lld x %lld x %lld, a%s%s +%lld +%lld, b%s%s +%lld +%lld, padding %lld, at "
                     "%lld%s%s, scale %g, activation %d, tile %d",
                     precision_name(p), (long long)s.m, (long long)s.n, (long long)s.k, s.a.swizzled ? " swizzled" : "",
                     s.a.each ? " each" : "", (long long)s.a.more, (long long)s.a.padding,
                     s.b.swizzled ? " swizzled" : "", s.b.each ? " each" : "", (long long)s.b.more,
                     (long long)s.b.padding, (long long)s.padding, (long long)s.place, s.bias ? ", bias" : "",
                     s.workspace ? ", workspace" : "", s.scale, s.activation, (int)s.tile);
    factor a = factor_create(stream, s.m, s.k, s.a, s.place, of);
    factor b = factor_create(stream, s.n, s.k, s.b, s.place, of);
    matrix d = matrix_create(stream, p, s.m, s.n, s.n + s.padding, s.place);
    matrix bias = matrix_create(stream, p, 1, s.n, 0, s.place);
    matrix_fill(&bias, s.exact ? any_integer : any_number);
    size_t bytes = sizeof(double) * (size_t)(s.m * s.n);
    double *expected = malloc(bytes), *allowed = calloc(1, bytes);
    assert_true(expected && allowed);
    if (s.exact || harness_needs_reference()) reference(stream, s, &a, &b, &bias, expected, allowed);
    call(stream, p, s, params_of(s, &a, &b, &bias, &d));
    if (s.exact)
        matrix_expect_exact(&d, expected);
    else
        matrix_expect(&d, expected, allowed);
    matrix_expect_unchanged(&bias);
    factor_destroy(&a);
    factor_destroy(&b);
    matrix_destroy(&d);
    matrix_destroy(&bias);
    free(expected);
    free(allowed);
}

static void run(kiln_stream *stream, precision p, shape s) {
    run_with(stream, p, s, any);
}

/* ---- Tests ---- */

static void test_plain(kiln_stream *stream) {
    static const int64_t shapes[][3] = {{1, 1, 1},    {1, 64, 64},    {1, 33, 257},  {2, 5, 31},
                                        {8, 40, 128}, {16, 9, 63},    {17, 9, 9},    {64, 64, 64},
                                        {65, 63, 33}, {100, 130, 70}, {12, 70, 300}, {70, 12, 300}};
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int i = 0; i < (int)(sizeof shapes / sizeof *shapes); i++) {
            const int64_t *sizes = shapes[i];
            shape s = {.m = sizes[0], .n = sizes[1], .k = sizes[2], .place = i % 2 ? AT_END : 0};
            s.a.swizzled = (i + (int)p) % 2;
            s.b.swizzled = i / 2 % 2;
            s.a.each = i % 3 == 0;
            s.b.each = i % 3 == 1;
            run(stream, p, s);
        }
}

static void test_random(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int i = 0; i < harness_rounds(stream, 32); i++) {
            shape s = {.m = random_integer(1, i % 2 ? 16 : 90),
                       .n = random_integer(1, 90),
                       .k = random_integer(0, 7) ? random_integer(1, 300) : 0,
                       .place = random_place(),
                       .padding = random_integer(0, 1) * random_integer(1, 17),
                       .bias = random_integer(0, 1),
                       .scale = random_integer(0, 1) ? random_number(-2, 2) : 0,
                       .activation = (kiln_gemm_activation)random_integer(KILN_GEMM_NONE, KILN_GEMM_SILU)};
            s.a = (holding){.swizzled = random_integer(0, 1), .each = random_integer(0, 1)};
            s.b = (holding){.swizzled = random_integer(0, 1), .each = random_integer(0, 1)};
            s.a.more = random_integer(0, 2);
            s.b.padding = random_integer(0, 1) * random_integer(1, 17);
            run(stream, p, s);
        }
}

/* Sums of whole numbers and scales that are powers of two: every order of additions gives the same. */
static void test_exact(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int i = 0; i < 4; i++) {
            shape s = {.m = i % 2 ? 7 : 66, .n = 66, .k = 320, .bias = true, .exact = true};
            s.a.swizzled = s.b.swizzled = i / 2;
            run_with(stream, p, s, (numbers){small_pair, even_block_scale, power_of_two});
        }
}

/* Numbers of one sign: what sums drop does not cancel. */
static void test_positive(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int i = 0; i < 2; i++) {
            shape s = {.m = i ? 3 : 18, .n = 17, .k = i ? 4096 : 1040};
            run_with(stream, p, s, (numbers){positive_pair, even_block_scale, power_of_two});
        }
}

/* Every code with every scale: the products of one column of k, on a diagonal. */
static void test_every_number(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int few = 0; few < 2; few++) {
            enum { SCALES = 127, CODES = 16 };
            harness_describe("gemm_nvfp4_%s of every number, %s", precision_name(p), few ? "few rows" : "tiles");
            shape s = {.m = few ? CODES : 32, .n = SCALES, .k = 32};
            factor a = factor_create(stream, s.m, s.k, s.a, 0, (numbers){small_pair, even_block_scale, power_of_two});
            factor b = factor_create(stream, s.n, s.k, s.b, 0, any);
            /* Row i of a has one element that is not 0: number i % 16 of a block, 1. Rows of b have all codes. */
            double *pairs = calloc((size_t)(s.m + s.n) * BLOCK, sizeof *pairs);
            double *expected = calloc((size_t)(s.m * s.n), sizeof *expected);
            assert_true(pairs && expected);
            for (int64_t row = 0; row < s.m; row++)
                pairs[row * BLOCK + row % CODES / 2 + row / CODES * 8] = row % 2 ? 0x20 : 0x02;
            matrix_set(&a.codes, pairs);
            for (int64_t i = 0; i < s.n * BLOCK; i++)
                pairs[i] = (double)(i % 8 * 2 | (i % 8 * 2 + 1) << 4);
            matrix_set(&b.codes, pairs);
            for (int64_t i = 0; i < s.n * 2; i++)
                pairs[i] = (double)(i / 2);
            matrix_set(&b.scales, pairs);
            matrix d = matrix_create(stream, p, s.m, s.n, s.n, 0);
            for (int64_t row = 0; row < s.m; row++)
                for (int64_t col = 0; col < s.n; col++)
                    expected[row * s.n + col] = e2m1_value((int)(row % CODES)) * e4m3_value((int)col) *
                                                e4m3_value((int)a.scales.values[row * 2 + row / CODES]) *
                                                global_of(&a, row) * (double)(float)global_of(&b, col);
            double *allowed = calloc((size_t)(s.m * s.n), sizeof *allowed);
            assert_non_null(allowed);
            for (int64_t i = 0; i < s.m * s.n; i++)
                allowed[i] = fabs(expected[i]) * 0x1p-22;
            call(stream, p, s, params_of(s, &a, &b, NULL, &d));
            matrix_expect(&d, expected, allowed);
            factor_destroy(&a);
            factor_destroy(&b);
            matrix_destroy(&d);
            free(pairs);
            free(expected);
            free(allowed);
        }
}

static void test_nan(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int i = 0; i < 4; i++) {
            shape s = {.m = i % 2 ? 5 : 30, .n = 37, .k = i < 2 ? 64 : 50};
            s.a.more = 1; /* scales beyond k do not count */
            run_with(stream, p, s, (numbers){any_pair, nan_block_scale, any_global});
        }
}

/* The tiles of matrix units, whole ones and those that end within one. */
static void test_matrix_units(kiln_stream *stream) {
    static const int64_t shapes[][3] = {{17, 70, 32}, {64, 128, 128}, {65, 129, 160}, {129, 40, 288}, {20, 300, 544}};
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int i = 0; i < 2; i++) {
            /* Images without such kernels take the portable one, of which other tests ask more. */
            bool tuned = harness_has_tuned(stream, bundle(), p);
            for (size_t j = 0; j < (tuned ? sizeof shapes / sizeof *shapes : 1); j++) {
                shape s = {.m = shapes[j][0], .n = shapes[j][1], .k = shapes[j][2], .bias = j % 2};
                s.tile = i ? KILN_GEMM_TILE_SMALL : KILN_GEMM_TILE_LARGE;
                s.a.swizzled = (j + (size_t)i) % 2;
                s.b.swizzled = j % 2;
                s.b.each = s.a.each = j % 2;
                s.a.more = s.b.more = (64 - s.k % 64) % 64 / BLOCK; /* scales on 4 bytes */
                run(stream, p, s);
            }
        }
}

/* Products whose k blocks share. */
static void test_shared_k(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int i = 0; i < 2; i++) {
            shape s = {.m = 18, .n = 21, .k = i ? 3104 : 3099, .workspace = true, .bias = true, .scale = 0.5};
            s.activation = KILN_GEMM_SILU;
            s.b.swizzled = i;
            s.a.each = i;
            s.a.more = i ? 2 : 0;
            run(stream, p, s);
        }
}

/* Few rows: each number of them, columns beyond the last block's, k that ends in each part of what is taken in turn. */
static void test_few_rows(kiln_stream *stream) {
    static const int64_t depths[] = {32, 96, 128, 160, 512, 1056, 1120, 2080};
    for (precision p = precision_first(); p < precision_end(); p++) {
        int64_t step = harness_on_cpu(stream) ? 1 : harness_has_tuned(stream, bundle(), p) ? 2 : 5;
        for (int64_t m = 1; m <= 17; m += step) {
            shape s = {.m = m, .n = random_integer(1, 50), .bias = m % 3};
            s.k = depths[(size_t)(m + p) % (sizeof depths / sizeof *depths)];
            s.a.swizzled = m % 2;
            s.b.swizzled = m % 4 > 1;
            s.b.padding = m % 5 ? 0 : 16;
            s.a.more = s.b.more = m % 7 ? (64 - s.k % 64) % 64 / BLOCK : 0;
            run(stream, p, s);
        }
    }
}

/* ---- What quantize makes ---- */

/* A matrix, quantised: near it, as near as codes of 4 bits are. */
typedef struct quantised {
    matrix x;
    factor f;
} quantised;

static quantised quantise(kiln_stream *stream, precision p, int64_t rows, int64_t k, bool swizzled) {
    quantised q = {.x = matrix_create(stream, p, rows, k, 0, 0), .f.swizzled = swizzled};
    const int64_t blocks = (k + BLOCK - 1) / BLOCK;
    const int64_t cols = swizzled ? (blocks + 3) / 4 * 4 : blocks,
                  scale_rows = swizzled ? (rows + 127) / 128 * 128 : rows;
    matrix amax = matrix_create(stream, F32, 1, 1, 0, 0);
    q.f.codes = matrix_create(stream, U8, rows, 8 * cols, 0, 0);
    q.f.scales = matrix_create(stream, U8, scale_rows, cols, 0, 0);
    q.f.global = matrix_create(stream, F32, 1, 1, 0, 0);
    matrix_fill(&q.x, any_number);
    matrix_set(&amax, (double[]){1});
    kiln_quantize_nvfp4_params params = {.codes = q.f.codes.data,
                                         .scales = q.f.scales.data,
                                         .global_scale = q.f.global.data,
                                         .x = q.x.data,
                                         .amax = amax.data,
                                         .rows = rows,
                                         .cols = k,
                                         .scale_rows = scale_rows,
                                         .scale_cols = cols,
                                         .global_rows = 1,
                                         .scale_layout = swizzled ? KILN_SCALES_128X4 : KILN_SCALES_LINEAR};
    harness_ok(operator_function(&kiln__operator_quantize_nvfp4, p)->call(stream, &params, sizeof params));
    matrix_get(&q.f.global);
    matrix_destroy(&amax);
    return q;
}

static void quantised_destroy(quantised *q) {
    matrix_destroy(&q->x);
    matrix_destroy(&q->f.codes);
    matrix_destroy(&q->f.scales);
    matrix_destroy(&q->f.global);
}

static void test_composition(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int i = 0; i < 4; i++) {
            shape s = {.m = i & 2 ? 3 : 20, .n = 140, .k = 300};
            harness_describe("quantize_nvfp4 and gemm_nvfp4_%s of %lld rows%s", precision_name(p), (long long)s.m,
                             i % 2 ? ", swizzled" : "");
            quantised a = quantise(stream, p, s.m, s.k, i % 2), b = quantise(stream, p, s.n, s.k, i % 2);
            matrix d = matrix_create(stream, p, s.m, s.n, 0, 0);
            call(stream, p, s, params_of(s, &a.f, &b.f, NULL, &d));
            matrix_get(&d);
            double error = 0, size = 0;
            for (int64_t j = 0; j < s.m * s.n; j++) {
                double sum = 0;
                for (int64_t k = 0; k < s.k; k++)
                    sum += a.x.values[j / s.n * s.k + k] * b.x.values[j % s.n * s.k + k];
                error += (d.values[j] - sum) * (d.values[j] - sum);
                size += sum * sum;
            }
            double relative = sqrt(error / size), most = 0.2; /* E2M1's numbers are up to 1/3 apart */
            if (!(relative < most)) harness_fail("the relative error is %g: must be below %g", relative, most);
            quantised_destroy(&a);
            quantised_destroy(&b);
            matrix_destroy(&d);
        }
}

/* ---- Refusals ---- */

static void test_refusals(kiln_stream *stream) {
    harness_describe("gemm_nvfp4 refused");
    shape s = {.m = 130, .n = 200, .k = 300, .place = AT_END};
    factor a = factor_create(stream, s.m, s.k, s.a, 0, any), b = factor_create(stream, s.n, s.k, s.b, 0, any);
    matrix d = matrix_create(stream, F32, s.m, s.n, 0, 0);
    const kiln_operator_function *function = operator_function(&kiln__operator_gemm_nvfp4, F32);
    const kiln_gemm_nvfp4_params good = params_of(s, &a, &b, NULL, &d);
    kiln_gemm_nvfp4_params bad;
#define REFUSED(field, value, parameter) \
    bad = good;                          \
    bad.field = value;                   \
    expect_refusal(stream, function, &bad, sizeof bad, parameter)
    REFUSED(d, NULL, "d");
    REFUSED(d, (char *)d.data + 2, "d");
    REFUSED(a, NULL, "a");
    REFUSED(b, NULL, "b");
    REFUSED(a_scales, NULL, "a_scales");
    REFUSED(b_scales, NULL, "b_scales");
    REFUSED(a_global_scale, NULL, "a_global_scale");
    REFUSED(b_global_scale, (const float *)1, "b_global_scale");
    REFUSED(bias, (const float *)1, "bias");
    REFUSED(m, -1, "m");
    REFUSED(n, (int64_t)1 << 31, "n");
    REFUSED(k, (int64_t)1 << 31, "k");
    REFUSED(a_scale_rows, 129, "a_scale_rows");
    REFUSED(a_scale_rows, -1, "a_scale_rows");
    REFUSED(a_scale_cols, 18, "a_scale_cols");
    REFUSED(b_scale_rows, 199, "b_scale_rows");
    REFUSED(b_scale_cols, -1, "b_scale_cols");
    REFUSED(a_global_rows, 2, "a_global_rows");
    REFUSED(b_global_rows, 130, "b_global_rows");
    REFUSED(b_scale_layout, 1, "b_scale_rows");
    REFUSED(a_scale_layout, 2, "a_scale_layout");
    REFUSED(b_scale_layout, -1, "b_scale_layout");
    REFUSED(d_stride, 199, "d_stride");
    REFUSED(a_stride, 151, "a_stride");
    REFUSED(b_stride, -1, "b_stride");
    REFUSED(scale, (float)INFINITY, "scale");
    REFUSED(activation, 5, "activation");
    REFUSED(tile, 5, "tile");
    REFUSED(reserved, 1, "reserved");
    bad = good;
    bad.b_scale_layout = KILN_SCALES_128X4;
    bad.b_scale_rows = 256;
    expect_refusal(stream, function, &bad, sizeof bad, "b_scale_cols");
    bad = good;
    bad.m = 18;
    bad.n = 2;
    bad.k = 4096;
    bad.a_scale_cols = bad.b_scale_cols = 0;
    bad.workspace_size = 4;
    expect_refusal(stream, function, &bad, sizeof bad, "workspace_size");
    bad.workspace_size = 1 << 20;
    expect_refusal(stream, function, &bad, sizeof bad, "workspace");
#undef REFUSED
    matrix_expect_unchanged(&d);
    matrix_destroy(&d);
    factor_destroy(&a);
    factor_destroy(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        on_each_device(test_plain),        on_each_device(test_random),   on_each_device(test_exact),
        on_each_device(test_positive),     on_each_device(test_nan),      on_each_device(test_every_number),
        on_each_device(test_matrix_units), on_each_device(test_shared_k), on_each_device(test_few_rows),
        on_each_device(test_composition),  on_one_device(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
