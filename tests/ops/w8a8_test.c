/* gemm_fp8 and gemm_int8 against f64: every way to share scales, all shapes, strides and endings; products that are
 * exact; tensors that quantize_fp8 and quantize_int8 made. */
#include "kernels/common/extensions.h"
#include "tests/ops/activation.h"
#include "tests/ops/harness.h"
#include "tests/sim/amx/amx_sim.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GROUP = 128 };

/* Both operators' params have the same fields at the same places. */
_Static_assert(sizeof(kiln_gemm_fp8_params) == sizeof(kiln_gemm_int8_params), "one struct for both");

/* How many codes share a scale. */
typedef enum sharing { TENSOR, EACH_ROW, GROUPS, BLOCKS, ROW_BLOCKS, SHARINGS } sharing;

typedef struct shape {
    bool fp8;
    int64_t m, n, k;
    int64_t padding, place; /* of rows; of all tensors */
    sharing a, b;
    bool bias, workspace;
    bool exact; /* sums that f32 holds, in whatever order */
    double scale;
    kiln_gemm_activation activation;
    kiln_gemm_tile tile;
    bool fast; /* accumulation */
} shape;

static const kiln_bundle *bundle_of(bool fp8) {
    extern const kiln_bundle kiln__bundle_gemm_fp8, kiln__bundle_gemm_int8;
    return fp8 ? &kiln__bundle_gemm_fp8 : &kiln__bundle_gemm_int8;
}

static const kiln_operator *operator_of(bool fp8) {
    return fp8 ? &kiln__operator_gemm_fp8 : &kiln__operator_gemm_int8;
}

/* The kernel of matrix units for the tile, or one without a name where the image has none. */
static kiln_kernel_info kernel_of(kiln_stream *stream, bool fp8, precision p, kiln_gemm_tile tile) {
    static const char *const tiles[] = {
        [KILN_GEMM_TILE_SMALL] = "small", [KILN_GEMM_TILE_LARGE] = "large", [KILN_GEMM_TILE_MEDIUM] = "medium"};
    static const char *const units[] = {"wgmma", "mma"};
    kiln_kernel_info info = {0};
    char name[64];
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        snprintf(name, sizeof name, "kiln_%s_%s_%s_%s", operator_of(fp8)->name, units[i], tiles[tile],
                 precision_name(p));
        if (harness_find_kernel(stream, bundle_of(fp8), p, name, &info)) return info;
    }
    return (kiln_kernel_info){0};
}

/* ---- Numbers ---- */

static double e4m3_value(int code) {
    int exponent = code >> 3 & 15, fraction = code & 7;
    if ((code & 0x7f) == 0x7f) return NAN;
    double magnitude = exponent ? ldexp(8 + fraction, exponent - 10) : ldexp(fraction, -9);
    return code & 0x80 ? -magnitude : magnitude;
}

/* Codes of finite numbers. */
static double any_int8(void) {
    return (double)random_integer(-128, 127);
}
static double any_e4m3(void) {
    double code = (double)random_integer(0, 0x7e);
    return random_integer(0, 1) ? code : code + 0x80;
}
static double positive_int8(void) {
    return (double)random_integer(1, 127);
}
static double positive_e4m3(void) { /* 8 to 448: the sum of their products grows from step to step */
    return (double)random_integer(0x50, 0x7e);
}
static double least_int8(void) {
    return -128;
}
static double small_int8(void) {
    return (double)random_integer(-3, 3);
}
static double small_e4m3(void) { /* 0, 1, 2, 3, -1, -2, -3 */
    static const double codes[] = {0x00, 0x38, 0x40, 0x44, 0xb8, 0xc0, 0xc4};
    return codes[random_integer(0, 6)];
}
static double nan_e4m3(void) {
    return random_integer(0, 60) ? any_e4m3() : random_integer(0, 1) ? 0x7f : 0xff;
}

static double any_scale(void) {
    return random_integer(0, 9) ? random_number(0.001, 0.01) : 0;
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

/* ---- Factors ---- */

/* Codes and their scales, and the numbers that they are. */
typedef struct factor {
    matrix codes, scales;
    int64_t scale_rows, scale_cols;
    double *numbers;
} factor;

static int64_t groups_of(int64_t count) {
    return (count + GROUP - 1) / GROUP;
}

static double scale_of(const factor *f, int64_t row, int64_t k) {
    int64_t r = f->scale_rows == f->codes.rows ? row : f->scale_rows == 1 ? 0 : row / GROUP;
    return f->scales.values[r * f->scale_cols + (f->scale_cols == 1 ? 0 : k / GROUP)];
}

static factor factor_create(kiln_stream *stream, shape s, int64_t rows, sharing how, double (*code)(void),
                            double (*scale)(void)) {
    factor f = {.scale_rows = how == TENSOR                        ? 1
                              : how == BLOCKS || how == ROW_BLOCKS ? groups_of(rows)
                                                                   : rows,
                .scale_cols = how == GROUPS || how == BLOCKS ? groups_of(s.k) : 1};
    f.codes = matrix_create(stream, s.fp8 ? U8 : I8, rows, s.k, s.k + s.padding, s.place);
    f.scales = matrix_create(stream, F32, f.scale_rows, f.scale_cols, 0, AT_END);
    matrix_fill(&f.codes, code);
    matrix_fill(&f.scales, scale);
    f.numbers = malloc(sizeof(double) * (size_t)(rows * s.k + 1));
    assert_non_null(f.numbers);
    for (int64_t i = 0; i < rows * s.k; i++) {
        double number = s.fp8 ? e4m3_value((int)f.codes.values[i]) : f.codes.values[i];
        f.numbers[i] = number * scale_of(&f, i / s.k, i % s.k);
    }
    return f;
}

static void factor_destroy(factor *f) {
    matrix_expect_unchanged(&f->codes);
    matrix_expect_unchanged(&f->scales);
    matrix_destroy(&f->codes);
    matrix_destroy(&f->scales);
    free(f->numbers);
}

/* ---- One product ---- */

/* What one addition of a product of codes may lose of those that it is added to. Matrix units of E4M3 add 16 or 32
 * products at once and drop of each what is 13 bits below the greatest: sm_89 once for those of a group of columns,
 * sm_90 with every 32 of them; only groups are added in f32, unless fast accumulation is asked for. Those of AMD add in
 * f32, over all of k. */
static double loss_of(kiln_stream *stream, shape s) {
    kiln_device_info info;
    harness_ok(kiln_device_get_info(stream->device, &info));
    if (!s.fp8) return 0;
    const bool cuda = info.target.backend == KILN_BACKEND_CUDA;
    if (cuda && info.target.compute_capability == 90) return s.fast ? 0x1p-10 * ((double)s.k / 32 + 4) : 0x1p-9;
    return cuda && info.target.compute_capability >= 89 ? 0x1p-11 : 0x1p-23 * sqrt((double)s.k + 16);
}

static void reference(kiln_stream *stream, shape s, const factor *a, const factor *b, const matrix *bias,
                      double *expected, double *allowed) {
    const double scale = s.scale == 0 ? 1 : (double)(float)s.scale, loss = loss_of(stream, s);
    for (int64_t row = 0; row < s.m; row++)
        for (int64_t col = 0; col < s.n; col++) {
            const double *left = a->numbers + row * s.k, *right = b->numbers + col * s.k;
            double sum, magnitude;
            harness_dot(left, right, s.k, &sum, &magnitude);
            double value = scale * sum + (s.bias ? bias->values[col] : 0);
            double rounded = fabs(scale) * magnitude + (s.bias ? fabs(bias->values[col]) : 0);
            double result = activate(s.activation, value);
            expected[row * s.n + col] = result;
            if (s.exact) continue;
            /* Scales, their product, its product with a sum, and the sums of groups: each rounded to f32. */
            allowed[row * s.n + col] = 1.2 * rounded * (loss + 0x1p-24 * (6 + sqrt((double)groups_of(s.k)))) +
                                       (s.activation ? 2e-6 + 2e-6 * fabs(result) : 0);
        }
}

static void call(kiln_stream *stream, precision p, shape s, const factor *a, const factor *b, matrix *bias, matrix *d) {
    bool packed = !s.padding;
    kiln_gemm_fp8_params params = {.d = d->data,
                                   .a = a->codes.data,
                                   .b = b->codes.data,
                                   .a_scales = a->scales.data,
                                   .b_scales = b->scales.data,
                                   .bias = s.bias ? bias->data : NULL,
                                   .m = s.m,
                                   .n = s.n,
                                   .k = s.k,
                                   .a_scale_rows = packed && s.a == EACH_ROW ? 0 : a->scale_rows,
                                   .a_scale_cols = packed && a->scale_cols == 1 ? 0 : a->scale_cols,
                                   .b_scale_rows = packed && s.b == EACH_ROW ? 0 : b->scale_rows,
                                   .b_scale_cols = packed && b->scale_cols == 1 ? 0 : b->scale_cols,
                                   .d_stride = packed ? 0 : d->stride,
                                   .a_stride = packed ? 0 : a->codes.stride,
                                   .b_stride = packed ? 0 : b->codes.stride,
                                   .scale = (float)s.scale,
                                   .activation = (int32_t)s.activation,
                                   .tile = (int32_t)s.tile};
    if (s.fast) params.accumulation = KILN_GEMM_ACCUMULATION_FAST;
    const kiln_operator_function *function = operator_function(operator_of(s.fp8), p);
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

static void run_with(kiln_stream *stream, precision p, shape s, double (*code)(void), double (*scale)(void)) {
    harness_describe("%s_%s %lld x %lld x %lld, scales %d and %d, padding %lld, at %lld%s%s, scale %g, activation %d, "
                     "tile %d%s",
                     operator_of(s.fp8)->name, precision_name(p), (long long)s.m, (long long)s.n, (long long)s.k,
                     (int)s.a, (int)s.b, (long long)s.padding, (long long)s.place, s.bias ? ", bias" : "",
                     s.workspace ? ", workspace" : "", s.scale, s.activation, (int)s.tile, s.fast ? ", fast" : "");
    factor a = factor_create(stream, s, s.m, s.a, code, scale), b = factor_create(stream, s, s.n, s.b, code, scale);
    matrix d = matrix_create(stream, p, s.m, s.n, s.n + s.padding, s.place);
    matrix bias = matrix_create(stream, p, 1, s.n, 0, s.place);
    matrix_fill(&bias, s.exact ? any_integer : any_number);
    size_t bytes = sizeof(double) * (size_t)(s.m * s.n);
    double *expected = malloc(bytes), *allowed = calloc(1, bytes);
    assert_true(expected && allowed);
    if (s.exact || harness_needs_reference()) reference(stream, s, &a, &b, &bias, expected, allowed);
    call(stream, p, s, &a, &b, &bias, &d);
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
    run_with(stream, p, s, s.fp8 ? any_e4m3 : any_int8, any_scale);
}

/* ---- Tests ---- */

static void test_plain(kiln_stream *stream) {
    static const int64_t shapes[][3] = {{1, 1, 1},    {1, 64, 64},    {1, 33, 257},  {2, 5, 31},
                                        {8, 40, 128}, {16, 9, 63},    {17, 9, 9},    {64, 64, 64},
                                        {65, 63, 33}, {100, 130, 70}, {12, 70, 300}, {70, 12, 300}};
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int i = 0; i < (int)(sizeof shapes / sizeof *shapes); i++)
            for (int fp8 = 0; fp8 < 2; fp8++) {
                const int64_t *sizes = shapes[i];
                shape s = {.fp8 = fp8, .m = sizes[0], .n = sizes[1], .k = sizes[2]};
                s.place = (i + fp8) % 2 ? AT_END : 0;
                s.a = s.b = (sharing)((i + (int)p) % 2);
                run(stream, p, s);
            }
}

/* Every way to share scales, of few rows and of many. */
static void test_scales(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int i = 0; i < 2 * SHARINGS * SHARINGS; i++) {
            shape s = {
                .fp8 = (i + i / SHARINGS) % 2, .a = (sharing)(i / 2 % SHARINGS), .b = (sharing)(i / 2 / SHARINGS)};
            bool few = (i + (int)p) % 2;
            s.m = few ? random_integer(1, 16) : random_integer(17, 40);
            if (!few && (s.a == BLOCKS || s.a == ROW_BLOCKS)) s.m = random_integer(129, 140);
            s.n = s.b == BLOCKS || s.b == ROW_BLOCKS ? random_integer(129, 140) : random_integer(1, 40);
            s.k = random_integer(100, few ? 700 : 300);
            s.padding = random_integer(0, 2) ? (16 - s.k % 16) % 16 : random_integer(0, 17);
            if (random_integer(0, 2) == 0) s.place = random_place();
            run(stream, p, s);
        }
}

static void test_random(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int i = 0; i < harness_rounds(stream, 24); i++) {
            shape s = {.fp8 = random_integer(0, 1),
                       .m = random_integer(1, i % 2 ? 16 : 90),
                       .n = random_integer(1, 90),
                       .k = random_integer(0, 7) ? random_integer(1, 300) : 0,
                       .padding = random_integer(0, 1) * random_integer(1, 17),
                       .place = random_place(),
                       .a = (sharing)random_integer(TENSOR, SHARINGS - 1),
                       .b = (sharing)random_integer(TENSOR, SHARINGS - 1),
                       .bias = random_integer(0, 1),
                       .scale = random_integer(0, 1) ? random_number(-2, 2) : 0,
                       .activation = (kiln_gemm_activation)random_integer(KILN_GEMM_NONE, KILN_GEMM_SILU)};
            run(stream, p, s);
        }
}

/* Sums of whole numbers and scales that are powers of two: every order of additions gives the same. */
static void test_exact(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int i = 0; i < 8; i++) {
            shape s = {
                .fp8 = i % 2, .m = i & 2 ? 7 : 66, .n = 66, .k = 310, .padding = 10, .bias = true, .exact = true};
            s.a = s.b = i & 4 ? GROUPS : EACH_ROW;
            run_with(stream, p, s, s.fp8 ? small_e4m3 : small_int8, power_of_two);
        }
}

/* Numbers of one sign: what sums of f32 or of a matrix unit drop does not cancel, and int32 is filled. */
static void test_positive(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int i = 0; i < 8; i++) {
            shape s = {.fp8 = i % 2, .m = i & 2 ? 3 : 18, .n = 17, .k = i & 2 ? 4096 : 1040};
            s.a = s.b = i & 4 ? GROUPS : EACH_ROW;
            run_with(stream, p, s, s.fp8 ? positive_e4m3 : positive_int8, power_of_two);
        }
    if (harness_on_cpu(stream)) /* more than int32 holds */
        run_with(stream, F32, (shape){.m = 1, .n = 2, .k = 140000}, least_int8, power_of_two);
}

static void test_nan(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int i = 0; i < 4; i++) {
            shape s = {.fp8 = true, .m = i % 2 ? 5 : 30, .n = 37, .k = 48, .a = GROUPS};
            s.padding = i / 2 * 3;
            run_with(stream, p, s, nan_e4m3, any_scale);
        }
}

/* The tiles of matrix units: whole ones and those that end within one, d that lies so that vectors can be written and
 * so that they cannot, more stages than there are in shared memory, and blocks that share k. */
static void test_matrix_units(kiln_stream *stream) {
    static const int64_t shapes[][3] = {{17, 72, 16}, {64, 128, 128}, {65, 129, 144}, {129, 40, 300}, {20, 304, 1168}};
    enum { SHAPES = sizeof shapes / sizeof *shapes };
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int fp8 = 0; fp8 < 2; fp8++)
            for (kiln_gemm_tile tile = KILN_GEMM_TILE_SMALL; tile <= KILN_GEMM_TILE_MEDIUM; tile++) {
                /* Images without such kernels take the portable one, of which other tests ask more. */
                bool tuned = kernel_of(stream, fp8, p, tile).name;
                for (int j = 0; j < (tuned ? SHAPES : 1); j++) {
                    if (tuned && p != F16 && j != 1 && j != 2) continue; /* simulated devices take long */
                    shape s = {.fp8 = fp8, .m = shapes[j][0], .n = shapes[j][1], .k = shapes[j][2], .tile = tile};
                    s.padding = (16 - s.k % 16) % 16;
                    s.bias = j % 2;
                    s.a = j % 3 == 0 ? EACH_ROW : GROUPS;
                    s.b = j % 3 == 0 ? EACH_ROW : j % 3 == 1 ? BLOCKS : GROUPS;
                    s.activation = j == 2 ? KILN_GEMM_SILU : KILN_GEMM_NONE;
                    run(stream, p, s);
                }
                if (!tuned) continue;
                shape s = {.fp8 = fp8, .m = 70, .n = 131, .k = 2064, .workspace = true, .tile = tile};
                s.a = EACH_ROW;
                s.b = ROW_BLOCKS;
                run(stream, p, s);
                s = (shape){.fp8 = fp8, .m = 40, .n = 264, .k = 528, .a = EACH_ROW, .tile = tile};
                s.fast = fp8;
                s.activation = (kiln_gemm_activation)(fp8 * KILN_GEMM_SILU);
                run(stream, p, s);
                s = (shape){.fp8 = fp8, .m = 130, .n = 66, .k = 208, .exact = true, .tile = tile};
                s.a = s.b = fp8 ? GROUPS : TENSOR;
                run_with(stream, p, s, s.fp8 ? small_e4m3 : small_int8, power_of_two);
            }
}

/* More tiles than there are multiprocessors, for kernels whose blocks do several: many rows of few columns, or of a
 * tile's. */
static void test_many_tiles(kiln_stream *stream) {
    kiln_device_info device;
    harness_ok(kiln_device_get_info(stream->device, &device));
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int fp8 = 0; fp8 < 2; fp8++)
            for (kiln_gemm_tile tile = KILN_GEMM_TILE_SMALL; tile <= KILN_GEMM_TILE_MEDIUM; tile++) {
                const kiln_kernel_info kernel = kernel_of(stream, fp8, p, tile);
                if (!kernel.name || !kernel.boxes[0][0]) continue;
                if (tile != (p == F16 ? KILN_GEMM_TILE_LARGE : KILN_GEMM_TILE_SMALL))
                    continue; /* simulated ones take long */
                shape s = {.fp8 = fp8, .n = 3, .k = 144, .tile = tile, .a = fp8 ? GROUPS : EACH_ROW, .b = EACH_ROW};
                s.m = (device.multiprocessors + 3) * (int64_t)kernel.tile[0];
                if (tile == KILN_GEMM_TILE_SMALL && !fp8) s.n = kernel.tile[1];
                run(stream, p, s);
            }
}

/* Sums of int8's products are exact, so that the result is the same number on every device where no scale is of a
 * group: the sum as f32, times the product of both scales, plus the bias. */
static void test_bits(kiln_stream *stream) {
    static const int64_t shapes[][3] = {{5, 20, 144}, {16, 33, 130}, {70, 40, 272}, {70, 40, 270}};
    if (precision_first() != F32) return;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        shape s = {.m = shapes[i][0], .n = shapes[i][1], .k = shapes[i][2], .a = EACH_ROW, .bias = true};
        s.b = i % 2 ? TENSOR : ROW_BLOCKS;
        harness_describe("gemm_int8_f32 %lld x %lld x %lld, bit for bit", (long long)s.m, (long long)s.n,
                         (long long)s.k);
        factor a = factor_create(stream, s, s.m, s.a, any_int8, any_scale);
        factor b = factor_create(stream, s, s.n, s.b, any_int8, any_scale);
        matrix d = matrix_create(stream, F32, s.m, s.n, s.n, 0), bias = matrix_create(stream, F32, 1, s.n, 0, 0);
        matrix_fill(&bias, any_number);
        double *expected = malloc(sizeof(double) * (size_t)(s.m * s.n));
        assert_non_null(expected);
        for (int64_t j = 0; j < s.m * s.n; j++) {
            const int64_t row = j / s.n, col = j % s.n;
            int64_t sum = 0;
            for (int64_t k = 0; k < s.k; k++)
                sum += (int64_t)(a.codes.values[row * s.k + k] * b.codes.values[col * s.k + k]);
            const float scale = (float)scale_of(&a, row, 0) * (float)scale_of(&b, col, 0), product = (float)sum * scale;
            expected[j] = (double)(product + (float)bias.values[col]);
        }
        call(stream, F32, s, &a, &b, &bias, &d);
        matrix_expect_exact(&d, expected);
        factor_destroy(&a);
        factor_destroy(&b);
        matrix_destroy(&d);
        matrix_destroy(&bias);
        free(expected);
    }
}

/* A CPU with instructions that its level need not have gives what the level alone does, bit for bit. */
static void test_extensions(kiln_stream *stream) {
    static const int64_t depths[] = {1, 3, 63, 64, 65, 127, 129, 190, 256, 1000, 4096, 4225};
    enum { DEPTHS = sizeof depths / sizeof *depths };
    if (!harness_on_cpu(stream)) return;
    for (int i = 0; i < 3 * DEPTHS; i++) { /* few rows twice and many once, of each */
        shape s = {.m = (i + i / DEPTHS) % 3 ? random_integer(1, 16) : random_integer(17, 75), .k = depths[i % DEPTHS]};
        s.n = random_integer(1, 70);
        s.padding = random_integer(0, 1) * random_integer(1, 17);
        s.place = random_place();
        s.a = random_integer(0, 1) ? GROUPS : EACH_ROW;
        s.b = random_integer(0, 1) ? GROUPS : TENSOR;
        harness_describe("gemm_int8_f32 %lld x %lld x %lld, scales %d and %d, with and without extensions",
                         (long long)s.m, (long long)s.n, (long long)s.k, (int)s.a, (int)s.b);
        factor a = factor_create(stream, s, s.m, s.a, any_int8, any_scale);
        factor b = factor_create(stream, s, s.n, s.b, any_int8, any_scale);
        matrix bias = {0}, d[2];
        for (int off = 0; off < 2; off++) {
            d[off] = matrix_create(stream, F32, s.m, s.n, s.n + s.padding, 0);
            kiln__cpu_extensions_off = off;
            call(stream, F32, s, &a, &b, &bias, &d[off]);
            kiln__cpu_extensions_off = false;
        }
        matrix_get(&d[1]);
        matrix_expect_exact(&d[0], d[1].values);
        factor_destroy(&a);
        factor_destroy(&b);
        matrix_destroy(&d[0]);
        matrix_destroy(&d[1]);
    }
}

/* So do the tiles of AMX, the processor's or simulated ones: strips of several tiles and what is left of them, and k of
 * less than a tile, of its end, of a group's and of more than is transposed at a time. */
static void test_amx(kiln_stream *stream) {
    static const int64_t depths[] = {1, 63, 64, 65, 128, 130, 192, 511, 512, 1000, 1152};
    enum { DEPTHS = sizeof depths / sizeof *depths };
    kiln_device_info info;
    harness_ok(kiln_device_get_info(stream->device, &info));
    if (strcmp(info.target.processor, "x86-64-v4") != 0) return;
    for (int i = 0; i < 2 * DEPTHS; i++) {
        shape s = {.m = random_integer(17, i % 4 ? 70 : 290), .n = random_integer(1, 140), .k = depths[i % DEPTHS]};
        if (i % DEPTHS == 4) s.m = 590, s.n = 530; /* several blocks of AMX */
        s.padding = random_integer(0, 1) * random_integer(1, 17);
        s.place = random_place();
        s.a = i < DEPTHS ? GROUPS : EACH_ROW;
        s.b = i < DEPTHS && random_integer(0, 1) ? BLOCKS : TENSOR;
        harness_describe("gemm_int8_f32 %lld x %lld x %lld, scales %d and %d, by AMX", (long long)s.m, (long long)s.n,
                         (long long)s.k, (int)s.a, (int)s.b);
        factor a = factor_create(stream, s, s.m, s.a, any_int8, any_scale);
        factor b = factor_create(stream, s, s.n, s.b, any_int8, any_scale);
        matrix bias = {0}, plain = matrix_create(stream, F32, s.m, s.n, s.n + s.padding, 0);
        matrix tiles = matrix_create(stream, F32, s.m, s.n, s.n + s.padding, 0);
        call(stream, F32, s, &a, &b, &bias, &plain);
        bool held;
        kiln__cpu_amx = amx_sim_enter() & KILN__CPU_AMX_INT8;
        call(stream, F32, s, &a, &b, &bias, &tiles);
        kiln__cpu_amx = 0;
        assert_true(amx_sim_leave(&held) > 0 || !amx_sim_can());
        assert_false(held);
        matrix_get(&plain);
        matrix_expect_exact(&tiles, plain.values);
        factor_destroy(&a);
        factor_destroy(&b);
        matrix_destroy(&plain);
        matrix_destroy(&tiles);
    }
}

/* Products whose k blocks share. */
static void test_shared_k(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int i = 0; i < 4; i++) {
            shape s = {.fp8 = i % 2, .m = 18, .n = 21, .k = 3100, .padding = i & 2 ? 4 : 3, .workspace = true};
            s.bias = true;
            s.scale = 0.5;
            s.activation = KILN_GEMM_SILU;
            s.a = i & 2 ? GROUPS : EACH_ROW;
            s.b = i & 2 ? BLOCKS : EACH_ROW;
            run(stream, p, s);
        }
}

/* Few rows: each number of them, columns beyond the last block's, k that ends in each part of what is taken in turn. */
static void test_few_rows(kiln_stream *stream) {
    static const int64_t depths[] = {16, 48, 112, 128, 144, 512, 1040, 2064};
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int fp8 = 0; fp8 < 2; fp8++) {
            int64_t step = harness_has_tuned(stream, bundle_of(fp8), p) || harness_on_cpu(stream) ? 1 : 5;
            for (int64_t m = 1; m <= 17; m += step) {
                shape s = {.fp8 = fp8, .m = m, .n = random_integer(1, 50), .bias = m % 3};
                s.k = depths[(size_t)(m + p) % (sizeof depths / sizeof *depths)];
                s.padding = m % 5 ? 0 : 16;
                s.a = m % 2 ? EACH_ROW : GROUPS;
                s.b = m % 4 ? EACH_ROW : BLOCKS;
                run(stream, p, s);
            }
        }
}

/* More rows, where there are kernels for them whose blocks may share k: tiles that end within one, k that they share
 * unevenly. */
static void test_some_rows(kiln_stream *stream) {
    static const int64_t shapes[][3] = {{64, 128, 528}, {33, 70, 4112}, {17, 40, 8336}};
    kiln_kernel_info info;
    char name[64];
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int i = 0; i < 6; i++) {
            const int64_t *sizes = shapes[i / 2];
            shape s = {.fp8 = i % 2, .m = sizes[0], .n = sizes[1], .k = sizes[2], .bias = i % 3 == 0};
            snprintf(name, sizeof name, "kiln_%s_wgmma_rows_1_%s", operator_of(s.fp8)->name, precision_name(p));
            if (!harness_find_kernel(stream, bundle_of(s.fp8), p, name, &info)) continue;
            s.fast = s.fp8 && p == F16;
            s.a = p == F32 ? EACH_ROW : GROUPS;
            s.b = p == F32 ? EACH_ROW : p == BF16 ? BLOCKS : GROUPS;
            s.activation = i == 2 ? KILN_GEMM_SILU : KILN_GEMM_NONE;
            run(stream, p, s);
        }
}

/* ---- What quantize makes ---- */

/* x of a and w of b, quantised, multiplied: near their product, as near as codes of 8 bits are. */
static void composed(kiln_stream *stream, precision p, bool fp8, int64_t m, bool blocks) {
    enum { N = 140, K = 300 };
    const int64_t groups = groups_of(K), a_cols = blocks ? groups : 1, b_cols = blocks ? groups : 1;
    const int64_t b_rows = blocks ? groups_of(N) : N;
    harness_describe("quantize_%s and gemm_%s_%s of %lld rows%s", fp8 ? "fp8" : "int8", fp8 ? "fp8" : "int8",
                     precision_name(p), (long long)m, blocks ? ", blocks" : "");
    matrix x = matrix_create(stream, p, m, K, 0, 0), w = matrix_create(stream, p, N, K, 0, 0);
    matrix a = matrix_create(stream, U8, m, K, 0, 0), b = matrix_create(stream, U8, N, K, 0, 0);
    matrix a_scales = matrix_create(stream, F32, m, a_cols, 0, 0), d = matrix_create(stream, p, m, N, 0, 0);
    matrix b_scales = matrix_create(stream, F32, b_rows, b_cols, 0, 0);
    matrix_fill(&x, any_number);
    matrix_fill(&w, any_number);
    kiln_quantize_fp8_params quantize = {.codes = a.data, .scales = a_scales.data, .x = x.data, .rows = m, .cols = K};
    quantize.scale_rows = m;
    quantize.scale_cols = a_cols;
    const kiln_operator_function *function =
        operator_function(fp8 ? &kiln__operator_quantize_fp8 : &kiln__operator_quantize_int8, p);
    harness_ok(function->call(stream, &quantize, sizeof quantize));
    quantize = (kiln_quantize_fp8_params){.codes = b.data, .scales = b_scales.data, .x = w.data, .rows = N, .cols = K};
    quantize.scale_rows = b_rows;
    quantize.scale_cols = b_cols;
    harness_ok(function->call(stream, &quantize, sizeof quantize));
    kiln_gemm_fp8_params product = {.d = d.data,
                                    .a = a.data,
                                    .b = b.data,
                                    .a_scales = a_scales.data,
                                    .b_scales = b_scales.data,
                                    .m = m,
                                    .n = N,
                                    .k = K,
                                    .a_scale_rows = m,
                                    .a_scale_cols = a_cols,
                                    .b_scale_rows = b_rows,
                                    .b_scale_cols = b_cols};
    harness_ok(operator_function(operator_of(fp8), p)->call(stream, &product, sizeof product));
    matrix_get(&d);
    /* The error of a product of codes: 2^-4 of E4M3's numbers each, 1 / 254 of the greatest of int8's. */
    double error = 0, size = 0;
    for (int64_t i = 0; i < m * N; i++) {
        double sum = 0;
        for (int64_t k = 0; k < K; k++)
            sum += x.values[i / N * K + k] * w.values[i % N * K + k];
        error += (d.values[i] - sum) * (d.values[i] - sum);
        size += sum * sum;
    }
    double relative = sqrt(error / size), most = fp8 ? 0.05 : 0.015;
    if (!(relative < most)) harness_fail("the relative error is %g: must be below %g", relative, most);
    matrix_destroy(&x);
    matrix_destroy(&w);
    matrix_destroy(&a);
    matrix_destroy(&b);
    matrix_destroy(&a_scales);
    matrix_destroy(&b_scales);
    matrix_destroy(&d);
}

static void test_composition(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int i = 0; i < 4; i++)
            composed(stream, p, i % 2, i & 2 ? 3 : 20, i == 1 || i == 2);
}

/* ---- Refusals ---- */

static void test_refusals(kiln_stream *stream) {
    harness_describe("gemm_fp8 and gemm_int8 refused");
    matrix d = matrix_create(stream, F32, 130, 200, 0, 0), a = matrix_create(stream, U8, 130, 300, 0, 0);
    matrix b = matrix_create(stream, U8, 200, 300, 0, 0), scales = matrix_create(stream, F32, 200, 3, 0, 0);
    const kiln_gemm_fp8_params good = {.d = d.data,
                                       .a = a.data,
                                       .b = b.data,
                                       .a_scales = scales.data,
                                       .b_scales = scales.data,
                                       .m = 130,
                                       .n = 200,
                                       .k = 300};
    kiln_gemm_fp8_params bad;
    for (int fp8 = 0; fp8 < 2; fp8++) {
        const kiln_operator_function *function = operator_function(operator_of(fp8), F32);
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
        REFUSED(b_scales, (const float *)1, "b_scales");
        REFUSED(bias, (const float *)1, "bias");
        REFUSED(m, -1, "m");
        REFUSED(n, (int64_t)1 << 31, "n");
        REFUSED(k, (int64_t)1 << 31, "k");
        REFUSED(a_scale_rows, 3, "a_scale_rows");
        REFUSED(a_scale_rows, -1, "a_scale_rows");
        REFUSED(a_scale_cols, 2, "a_scale_cols");
        REFUSED(b_scale_rows, 130, "b_scale_rows");
        REFUSED(b_scale_cols, 300, "b_scale_cols");
        REFUSED(d_stride, 199, "d_stride");
        REFUSED(a_stride, 299, "a_stride");
        REFUSED(b_stride, -1, "b_stride");
        REFUSED(scale, (float)INFINITY, "scale");
        REFUSED(activation, 5, "activation");
        REFUSED(tile, 5, "tile");
        REFUSED(accumulation, fp8 ? 2 : 1, fp8 ? "accumulation" : "reserved");
        bad = good;
        bad.m = 70;
        bad.n = 2;
        bad.k = 4096;
        bad.a_stride = bad.b_stride = 4096;
        bad.workspace_size = 4;
        expect_refusal(stream, function, &bad, sizeof bad, "workspace_size");
        bad.workspace_size = 1 << 20;
        expect_refusal(stream, function, &bad, sizeof bad, "workspace");
#undef REFUSED
    }
    matrix_expect_unchanged(&d);
    matrix_destroy(&d);
    matrix_destroy(&a);
    matrix_destroy(&b);
    matrix_destroy(&scales);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        on_each_device(test_plain),        on_each_device(test_scales),     on_each_device(test_random),
        on_each_device(test_exact),        on_each_device(test_positive),   on_each_device(test_nan),
        on_each_device(test_matrix_units), on_each_device(test_many_tiles), on_each_device(test_bits),
        on_each_device(test_shared_k),     on_each_device(test_few_rows),   on_each_device(test_some_rows),
        on_each_device(test_extensions),   on_each_device(test_amx),        on_each_device(test_composition),
        on_one_device(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
