/* gemm_w4a16 against f64: all shapes, groups, both orders of the scales, zeros, bias and pre_scale or none of them, c,
 * activations, norms and gates; of canonical weights, and of repacked ones where the image takes them. */
#include "tests/ops/activation.h"
#include "tests/ops/harness.h"
#include <kiln/w4a16.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct shape {
    int64_t m, n, k, group;
    int64_t padding, place; /* of rows; of all tensors */
    bool zeros, bias, pre_scale, groups_first, workspace;
    double scale, eps;
    kiln_w4a16_layout layout;
    kiln_w4a16_tile tile;
    bool c, in_place, norm, gated, bare; /* in_place: c is d; bare: there is no workspace */
    kiln_gemm_activation activation;
    bool units; /* tiles of canonical weights are for matrix units */
} shape;

/* The tensors of a product; those that the shape does not want are there and are not passed. */
typedef struct product {
    matrix d, a, weights, packed, scales, zeros, bias, pre_scale, c, norm_weight;
    int64_t groups, rows; /* of weights */
} product;

static bool has_kernel(const kiln_stream *stream, precision p, const char *kernel) {
    extern const kiln_bundle kiln__bundle_gemm_w4a16;
    kiln_kernel_info info;
    char name[64];
    snprintf(name, sizeof name, "kiln_%s_%s", kernel, precision_name(p));
    return harness_find_kernel(stream, &kiln__bundle_gemm_w4a16, p, name, &info);
}

static bool takes_packed(const kiln_stream *stream, precision p) {
    return has_kernel(stream, p, "gemm_w4a16_mma_rows_8");
}

static double any_number(void) {
    return random_number(-1, 1);
}

static double any_scale(void) {
    return random_number(0.01, 0.1);
}

static double any_byte(void) {
    return (double)random_integer(0, 255);
}

/* Makes the packed weights of the others. */
static void pack(product *t, shape s) {
    const size_t size = (size_t)(t->rows * s.k / 2);
    uint8_t *bytes = calloc(2, size);
    double *values = malloc(size * sizeof *values);
    assert_true(bytes && values);
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)t->weights.values[i];
    harness_ok(kiln_w4a16_repack(s.layout, t->rows, s.k, bytes, bytes + size));
    for (size_t i = 0; i < size; i++)
        values[i] = bytes[size + i];
    matrix_set(&t->packed, values);
    free(bytes);
    free(values);
}

static product product_create(kiln_stream *stream, precision p, shape s) {
    product t = {.groups = s.group ? s.k / s.group : 1, .rows = s.gated ? 2 * s.n : s.n};
    int64_t rows = s.groups_first ? t.groups : t.rows, cols = s.groups_first ? t.rows : t.groups;
    t.d = matrix_create(stream, p, s.m, s.n, s.n + s.padding, s.place);
    t.a = matrix_create(stream, p, s.m, s.k, s.k + s.padding, s.place);
    t.weights = matrix_create(stream, U8, t.rows, s.k / 2, 0, s.place);
    t.scales = matrix_create(stream, p, rows, cols, 0, s.place);
    t.zeros = matrix_create(stream, p, rows, cols, 0, s.place);
    t.bias = matrix_create(stream, p, 1, t.rows, 0, s.place);
    t.pre_scale = matrix_create(stream, p, 1, s.k, 0, s.place);
    t.c = matrix_create(stream, p, s.m, s.n, s.n + s.padding, s.place);
    t.norm_weight = matrix_create(stream, p, 1, s.k, 0, s.place);
    matrix_fill(&t.a, any_number);
    matrix_fill(&t.weights, any_byte);
    matrix_fill(&t.scales, any_scale);
    matrix_fill(&t.zeros, any_number);
    matrix_fill(&t.bias, any_number);
    matrix_fill(&t.pre_scale, any_number);
    matrix_fill(&t.c, any_number);
    matrix_fill(&t.norm_weight, any_number);
    t.packed = matrix_create(stream, U8, t.rows, s.k / 2, 0, s.place);
    if (s.layout) pack(&t, s);
    return t;
}

static void product_destroy(product *t) {
    matrix *all[] = {&t->d,     &t->a,    &t->weights,   &t->packed, &t->scales,
                     &t->zeros, &t->bias, &t->pre_scale, &t->c,      &t->norm_weight};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        matrix_destroy(all[i]);
}

static kiln_gemm_w4a16_params params_of(const product *t, shape s) {
    return (kiln_gemm_w4a16_params){.d = s.in_place ? t->c.data : t->d.data,
                                    .a = t->a.data,
                                    .weights = s.layout ? t->packed.data : t->weights.data,
                                    .scales = t->scales.data,
                                    .zeros = s.zeros ? t->zeros.data : NULL,
                                    .bias = s.bias ? t->bias.data : NULL,
                                    .pre_scale = s.pre_scale ? t->pre_scale.data : NULL,
                                    .m = s.m,
                                    .n = s.n,
                                    .k = s.k,
                                    .group = s.group,
                                    .d_stride = s.padding ? t->d.stride : 0,
                                    .a_stride = s.padding ? t->a.stride : 0,
                                    .scale = (float)s.scale,
                                    .scale_layout = s.groups_first ? KILN_W4A16_SCALES_K_N : KILN_W4A16_SCALES_N_K,
                                    .weight_layout = (int32_t)s.layout,
                                    .tile = (int32_t)s.tile,
                                    .c = s.c ? t->c.data : NULL,
                                    .c_stride = s.padding ? t->c.stride : 0,
                                    .norm_weight = s.norm ? t->norm_weight.data : NULL,
                                    .norm_eps = (float)s.eps,
                                    .activation = (int32_t)s.activation,
                                    .gated = s.gated};
}

/* The weight of row j and element k, and the magnitude of what it is made of. */
static double weight(const product *t, shape s, int64_t j, int64_t k, double *magnitude) {
    int64_t g = s.group ? k / s.group : 0, at = s.groups_first ? g * t->rows + j : j * t->groups + g;
    int code = (int)t->weights.values[j * (s.k / 2) + k / 2] >> (k % 2 ? 4 : 0) & 15;
    double scaled = (code < 8 ? code : code - 16) * t->scales.values[at], zero = s.zeros ? t->zeros.values[at] : 0;
    *magnitude = fabs(scaled) + fabs(zero);
    return scaled + zero;
}

/* Rows of a as they are multiplied. */
static void factors_of(const product *t, shape s, double *a) {
    for (int64_t i = 0; i < s.m; i++) {
        double squares = 0;
        for (int64_t k = 0; k < s.k; k++)
            squares += t->a.values[i * s.k + k] * t->a.values[i * s.k + k];
        const double root = sqrt(squares / (double)s.k + (s.eps == 0 ? 1e-6 : (double)(float)s.eps));
        for (int64_t k = 0; k < s.k; k++) {
            double *to = &a[i * s.k + k];
            *to = t->a.values[i * s.k + k] * (s.pre_scale ? t->pre_scale.values[k] : 1);
            if (s.norm) *to *= t->norm_weight.values[k] / root;
        }
    }
}

/* What rounds factors, in units of the last place: repacked weights of more than 16 rows, canonical ones of more than 8
 * by matrix units, and what pre_scale and normalising make of a, but not one alone of few rows by portable kernels. */
static double rounding_of(shape s, precision p) {
    const double unit = p == F32 ? 0x1p-24 : p == F16 ? 0x1p-11 : 0x1p-8;
    const bool units = s.units && !s.layout && s.tile != KILN_W4A16_TILE_PORTABLE;
    int count = (units && s.m > 8) || (s.layout && (s.m > 16 || s.tile));
    count += (units || s.layout) && s.pre_scale;
    count += s.norm && (units || s.layout || s.m > 8 || s.pre_scale);
    return 1.1 * unit * count;
}

/* What f32 may lose: each weight, each product and each sum is rounded, in whatever order; and half a unit in the last
 * place for each rounding to the precision. */
static void reference(const product *t, shape s, precision p, double *expected, double *allowed) {
    double scale = s.scale == 0 ? 1 : (double)(float)s.scale, rounding = rounding_of(s, p) + (s.norm ? 5e-7 : 0);
    double *a = malloc(sizeof *a * (size_t)(s.m * s.k)), *factors = malloc(sizeof *factors * (size_t)(2 * s.k));
    assert_true(a && factors);
    double *sizes = factors + s.k;
    factors_of(t, s, a);
    for (int64_t j = 0; j < t->rows; j++) {
        for (int64_t k = 0; k < s.k; k++)
            factors[k] = weight(t, s, j, k, &sizes[k]);
        for (int64_t i = 0; i < s.m; i++) {
            double sum, rounded, of_sizes, magnitude, addend = s.bias ? t->bias.values[j] : 0;
            if (s.c) addend += t->c.values[i * s.n + j];
            harness_dot(a + i * s.k, factors, s.k, &sum, &rounded);
            harness_dot(a + i * s.k, sizes, s.k, &of_sizes, &magnitude);
            magnitude = fabs(scale) * magnitude + fabs(addend) + (s.c ? 2 : 0);
            const double value = scale * sum + addend;
            const double error =
                1.2 * magnitude * sqrt((double)s.k + 16) * 0x1p-23 + fabs(scale) * rounding * (rounded + 0x1p-13);
            double *to = &expected[i * s.n + j % s.n], *within = &allowed[i * s.n + j % s.n];
            if (j < s.n) {
                *to = activate(s.activation, value);
                *within = s.activation ? 1.2 * error + 2e-6 + 2e-6 * fabs(*to) : error;
            } else {
                *within = *within * (fabs(value) + error) + fabs(*to) * error;
                *to *= value;
            }
        }
    }
    free(a);
    free(factors);
}

static void run(kiln_stream *stream, precision p, shape s) {
    s.units = has_kernel(stream, p, "gemm_w4a16_mma_small");
    harness_describe(
        "gemm_w4a16_%s %lld x %lld x %lld, groups of %lld%s, padding %lld, at %lld%s%s%s%s%s%s%s%s, tile %d, "
        "scale %g, activation %d",
        precision_name(p), (long long)s.m, (long long)s.n, (long long)s.k, (long long)s.group,
        s.groups_first ? " before n" : "", (long long)s.padding, (long long)s.place, s.zeros ? ", zeros" : "",
        s.bias ? ", bias" : "", s.pre_scale ? ", pre_scale" : "", s.workspace ? ", workspace" : "",
        s.layout ? ", repacked" : "",
        s.in_place ? ", c in place"
        : s.c      ? ", c"
                   : "",
        s.norm ? ", normalised" : "", s.gated ? ", gated" : "", (int)s.tile, s.scale, (int)s.activation);
    product t = product_create(stream, p, s);
    size_t bytes = sizeof(double) * (size_t)(s.m * s.n);
    double *expected = malloc(bytes), *allowed = malloc(bytes);
    assert_true(expected && allowed);
    if (harness_needs_reference()) reference(&t, s, p, expected, allowed);
    kiln_gemm_w4a16_params params = params_of(&t, s);
    const kiln_operator_function *function = operator_function(&kiln__operator_gemm_w4a16, p);
    matrix workspace = {0};
    if (s.workspace || (!s.bare && (s.norm || s.gated || s.activation))) {
        harness_ok(function->workspace_size(stream, &params, sizeof params, &params.workspace_size));
        if (params.workspace_size) workspace = matrix_create(stream, U8, 1, (int64_t)params.workspace_size, 0, 0);
        params.workspace = workspace.data;
    }
    harness_ok(function->call(stream, &params, sizeof params));
    matrix_expect(s.in_place ? &t.c : &t.d, expected, allowed);
    matrix *inputs[] = {&t.a, &t.weights, &t.packed, &t.scales, &t.zeros, &t.bias, &t.pre_scale, &t.norm_weight, &t.c};
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs - s.in_place; i++)
        matrix_expect_unchanged(inputs[i]);
    product_destroy(&t);
    if (params.workspace_size) {
        matrix_get(&workspace); /* nothing around it is written */
        matrix_destroy(&workspace);
    }
    free(expected);
    free(allowed);
}

static void test_plain(kiln_stream *stream) {
    static const int64_t shapes[][3] = {{1, 1, 2},    {1, 64, 64},  {1, 33, 258}, {2, 5, 30},
                                        {8, 40, 128}, {7, 129, 62}, {9, 9, 10},   {64, 64, 64},
                                        {65, 63, 34}, {70, 66, 96}, {16, 1, 100}, {12, 67, 16}};
    for (precision p = precision_first(); p < precision_end(); p++)
        for (size_t i = 0; i < 2 * sizeof shapes / sizeof *shapes; i++) {
            const int64_t *sizes = shapes[i / 2];
            run(stream, p, (shape){.m = sizes[0], .n = sizes[1], .k = sizes[2], .place = i % 2 ? AT_END : 0});
        }
}

/* Every size of group, in both orders, with and without zeros: few rows and tiles, k of several groups. */
static void test_groups(kiln_stream *stream) {
    static const int64_t groups[] = {32, 64, 128, 256, 0};
    for (precision p = precision_first(); p < precision_end(); p++)
        for (size_t i = 0; i < 4 * sizeof groups / sizeof *groups; i++) {
            int64_t group = groups[i / 4];
            shape s = {.m = i % 3 ? random_integer(1, 8) : 11, .n = 37, .k = group ? 3 * group : 544, .group = group};
            s.groups_first = i & 1;
            s.zeros = i & 2;
            run(stream, p, s);
        }
}

static void test_random(kiln_stream *stream) {
    static const int64_t places[] = {0, 0, 1, 3, 8, AT_END}, groups[] = {0, 0, 32, 64, 128, 256};
    for (precision p = precision_first(); p < precision_end(); p++) {
        for (int i = 0; i < harness_rounds(stream, 24); i++) {
            shape s = {.m = random_integer(1, i % 2 ? 8 : 90),
                       .n = random_integer(1, 90),
                       .group = groups[random_integer(0, 5)],
                       .padding = random_integer(0, 1) * random_integer(1, 17),
                       .place = places[random_integer(0, 5)],
                       .zeros = random_integer(0, 1),
                       .bias = random_integer(0, 1),
                       .pre_scale = random_integer(0, 1),
                       .groups_first = random_integer(0, 1),
                       .scale = random_integer(0, 1) ? random_number(-2, 2) : 0};
            s.k = s.group ? s.group * random_integer(1, 320 / s.group) : 2 * random_integer(1, 80);
            run(stream, p, s);
        }
    }
}

/* Each way of ending a product, of tiles and of rows. */
static void test_endings(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int i = 0; i < 8; i++) {
            shape s = {.m = i & 1 ? 66 : 6, .n = 65, .k = 32, .padding = 8, .bias = i & 2, .pre_scale = i & 4};
            run(stream, p, s);
        }
}

/* Products whose k blocks share, in pieces that begin within a group. */
static void test_split(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++) {
        shape s = {.m = 20, .n = 70, .k = 1790, .bias = true, .workspace = true, .zeros = true};
        run(stream, p, s);
        s = (shape){.m = 9, .n = 3, .k = 1792, .group = 256, .zeros = true, .groups_first = true, .scale = 0.5};
        s.workspace = true;
        run(stream, p, s);
        run(stream, p, (shape){.m = 9, .n = 3, .k = 1056, .group = 32});
    }
}

/* More of k than the CPU keeps of few rows of a, and more of each than it does at a time. */
static void test_long(kiln_stream *stream) {
    if (!harness_on_cpu(stream)) return;
    for (precision p = precision_first(); p < precision_end(); p++) {
        run(stream, p, (shape){.m = 1, .n = 9, .k = 16640, .group = 256, .zeros = true});
        run(stream, p, (shape){.m = 8, .n = 34, .k = 4100});
        run(stream, p, (shape){.m = 73, .n = 65, .k = 576, .group = 64, .groups_first = true});
    }
}

/* Sums that must be exact: one integer among zeros, which shows a misplaced one, and all of them in turn. */
static void test_exact(kiln_stream *stream) {
    enum { M = 66, N = 67, K = 64, GROUP = 32 };
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int i = 0; i < 8; i++) {
            shape s = {.m = i % 2 ? M : 5, .n = N, .k = K, .group = GROUP};
            int64_t row = random_integer(0, s.m - 1), col = random_integer(0, N - 1), k = random_integer(0, K - 1);
            int integer = (int)random_integer(-8, 7);
            harness_describe("gemm_w4a16_%s with %d in row %lld, column %lld, at %lld", precision_name(p), integer,
                             (long long)row, (long long)col, (long long)k);
            product t = product_create(stream, p, s);
            static double a[M * K], codes[N * K / 2], scales[N * K / GROUP], d[M * N];
            memset(codes, 0, sizeof codes);
            memset(d, 0, sizeof d);
            for (int64_t j = 0; j < M * K; j++)
                a[j] = j == row * K + k ? 3 : 0;
            for (int64_t j = 0; j < N * K / GROUP; j++)
                scales[j] = j == col * (K / GROUP) + k / GROUP ? 0.5 : 8;
            codes[col * (K / 2) + k / 2] = (integer & 15) << (k % 2 ? 4 : 0);
            d[row * N + col] = 1.5 * integer;
            matrix_set(&t.a, a);
            matrix_set(&t.weights, codes);
            matrix_set(&t.scales, scales);
            kiln_gemm_w4a16_params params = params_of(&t, s);
            harness_ok(operator_function(&kiln__operator_gemm_w4a16, p)->call(stream, &params, sizeof params));
            matrix_expect_exact(&t.d, d);
            product_destroy(&t);
        }
}

/* Repacked weights of few rows: steps of k that are not whole and more than a warp's, a last block of half the columns,
 * groups within a chunk's step and over several, each with zeros and without; and whole steps with pre_scale too. */
static void test_packed_rows(kiln_stream *stream) {
    static const int64_t groups[] = {32, 64, 128, 256, 0}, depths[] = {1088, 64, 1280, 2304, 192};
    for (precision p = F16; p < precision_end(); p++) {
        if (!takes_packed(stream, p)) continue;
        for (int64_t m = 1; m <= 16; m += m % 8 == 1 ? 4 : 3) {
            int i = (int)(m + (int64_t)p) % 5;
            int64_t group = groups[i], k = group ? (depths[i] + group - 1) / group * group : depths[i];
            shape s = {.m = m, .n = 16 * random_integer(1, 4), .k = k, .group = group, .zeros = m % 2, .bias = m % 3};
            s.layout = KILN_W4A16_SM80_V1;
            s.groups_first = m % 4 == 1;
            s.pre_scale = m % 5 == 3;
            s.padding = m % 3 ? 0 : 8;
            run(stream, p, s);
        }
        for (int i = 0; i < 4; i++) {
            shape s = {.m = i % 2 ? 13 : 3, .n = 48, .k = 1408, .group = i / 2 ? 128 : 64, .zeros = true};
            s.layout = KILN_W4A16_SM80_V1;
            s.scale = i % 2 ? 0.5 : 0;
            run(stream, p, s);
        }
        for (int i = 0; i < 16; i++) { /* whole steps: fewer than warps, and of a warp two, three or five */
            static const int64_t of[][2] = {{384, 128}, {2432, 0}, {2560, 256}, {4480, 128}};
            shape s = {.m = (i + i / 4 + (int)p) % 2 ? 7 : 16, .n = 48, .k = of[i % 4][0], .group = of[i % 4][1]};
            s.layout = KILN_W4A16_SM80_V1;
            s.zeros = i / 4 % 2;
            s.pre_scale = i / 8;
            s.groups_first = i % 3 == 1;
            run(stream, p, s);
        }
    }
}

/* Repacked weights of few rows whose groups fill vectors: fewer steps than warps, an odd number of a warp's, more
 * groups or more of a than are in shared memory at a time, a last block of half the columns. */
static void test_packed_rows_of_vectors(kiln_stream *stream) {
    static const int64_t of[][2] = {{256, 32},  {2816, 32},  {8960, 32},   {512, 64},   {3584, 64},
                                    {9216, 64}, {1024, 128}, {17408, 128}, {2048, 256}, {34816, 256}};
    enum { COUNT = sizeof of / sizeof *of };
    for (precision p = F16; p < precision_end(); p++) {
        if (!takes_packed(stream, p)) continue;
        for (int i = 0; i < 2 * COUNT; i++) {
            const int64_t k = of[i % COUNT][0], group = of[i % COUNT][1];
            shape s = {.m = (i + i / COUNT + (int)p) % 2 ? 5 : 14, .n = k > 10000 ? 16 : 48, .k = k, .group = group};
            s.layout = KILN_W4A16_SM80_V1;
            s.zeros = group > 64 || (i + i / COUNT) % 2;
            s.bias = i % 3 == 0;
            s.padding = i % 4 == 1 ? 8 : 0;
            s.norm = k == 17408 && i >= COUNT;
            s.pre_scale = k == 34816 && i >= COUNT;
            run(stream, p, s);
        }
    }
}

/* Repacked weights of few rows for more blocks than there are multiprocessors, which have fewer warps then; for more
 * columns than the warps of all, 14 a multiprocessor, do at once in clusters of two blocks; and for as many that a warp
 * has the zeros of one batch of steps and of a part of another. */
static void test_packed_rows_of_many_blocks(kiln_stream *stream) {
    kiln_device_info info = {0};
    harness_ok(kiln_device_get_info(stream->device, &info));
    for (precision p = F16; p < precision_end(); p++) {
        if (!takes_packed(stream, p)) continue;
        for (int i = 0; i < 4; i++) {
            shape s = {.m = i % 2 ? 9 : 2, .n = 32 * info.multiprocessors + 16, .k = 1280, .group = i / 2 ? 128 : 32};
            s.layout = KILN_W4A16_SM80_V1;
            s.zeros = i / 2 == 0;
            run(stream, p, s);
        }
        shape s = {.m = 11, .n = 14 * 32 * (info.multiprocessors / 2) + 48, .k = 640, .group = 128};
        s.layout = KILN_W4A16_SM80_V1;
        s.bias = true;
        run(stream, p, s);
        s = (shape){.m = 9, .n = 8 * 32 * (info.multiprocessors / 2) - 16, .k = 1408, .group = 128, .zeros = true};
        s.layout = KILN_W4A16_SM80_V1;
        run(stream, p, s);
    }
}

/* Repacked weights in all tiles: several in each direction and parts of some, fewer and more stages of k than are in
 * shared memory, blocks that share k, rows of d that begin on 16 bytes and others. */
static void test_packed_tiles(kiln_stream *stream) {
    for (precision p = F16; p < precision_end(); p++) {
        if (!takes_packed(stream, p)) continue;
        for (int tile = KILN_W4A16_TILE_64; tile <= KILN_W4A16_TILE_256; tile++) {
            shape s = {.m = 17, .n = 80, .k = 64, .layout = KILN_W4A16_SM80_V1, .tile = (kiln_w4a16_tile)tile};
            run(stream, p, s);
            s.m = 130, s.n = 144, s.k = 448, s.group = 64, s.zeros = s.bias = true, s.padding = 8;
            run(stream, p, s);
            s.m = 70, s.n = 16, s.k = 320, s.group = 32, s.groups_first = s.pre_scale = true, s.padding = 0;
            run(stream, p, s);
            s = (shape){.m = 33, .n = 64, .k = 1280, .group = 256, .workspace = true, .bias = true, .scale = -0.5};
            s.layout = KILN_W4A16_SM80_V1;
            s.tile = (kiln_w4a16_tile)tile;
            run(stream, p, s);
        }
        shape s = {.m = 40, .n = 48, .k = 128, .layout = KILN_W4A16_SM80_V1};
        run(stream, p, s);
        s.m = 20, s.n = 272, s.k = 1152, s.group = 128, s.zeros = true;
        run(stream, p, s);
    }
}

/* Canonical weights by matrix units. Few rows: fewer steps of k than waves and more, groups of steps and of parts of
 * one, a in LDS, all and by parts, with a workspace and without. Tiles: several and parts of some, one stage of k and
 * more, groups of several, blocks that share k, and the portable kernel's. */
static void test_units(kiln_stream *stream) {
    static const int64_t of[][2] = {{128, 0}, {384, 128}, {1280, 256}, {1152, 0}, {640, 32}, {1152, 64}};
    enum { COUNT = sizeof of / sizeof *of };
    for (precision p = F16; p < precision_end(); p++) {
        if (!has_kernel(stream, p, "gemm_w4a16_mma_small")) continue;
        for (int i = 0; i < 3 * COUNT; i++) {
            shape s = {.m = 1 + i * 5 % 16, .n = 16 + i % 3 * 9, .k = of[i % COUNT][0], .group = of[i % COUNT][1]};
            s.zeros = i % 2, s.workspace = i % 4 < 2, s.bare = !s.workspace, s.bias = i % 3;
            s.gated = i % 5 == 3, s.c = i % 4 == 2 && !s.gated, s.norm = i / 2 % 3 == 1, s.pre_scale = i % 7 > 4;
            s.groups_first = i % 8 > 3, s.padding = i % 3 ? 0 : 8;
            s.scale = i % 5 ? 0 : -0.5, s.activation = i % 6 == 5 ? KILN_GEMM_SILU : KILN_GEMM_NONE;
            run(stream, p, s);
        }
        for (int tile = KILN_W4A16_TILE_AUTO; tile <= KILN_W4A16_TILE_128; tile++) {
            shape s = {.m = 17, .n = 17, .k = 32, .tile = (kiln_w4a16_tile)tile};
            run(stream, p, s);
            if (tile == KILN_W4A16_TILE_PORTABLE) continue;
            s.m = tile == KILN_W4A16_TILE_128 ? 257 : 66, s.n = 130, s.k = 96, s.group = 32, s.zeros = s.bias = true;
            s.padding = 8;
            run(stream, p, s);
            s.m = 20, s.n = 40, s.k = 192, s.group = 64, s.groups_first = s.pre_scale = s.c = true, s.padding = 0;
            run(stream, p, s);
            s = (shape){.m = 33, .n = 64, .k = 1280, .group = 256, .workspace = true, .bias = true, .scale = -0.5};
            s.tile = (kiln_w4a16_tile)tile, s.gated = tile == KILN_W4A16_TILE_64;
            run(stream, p, s);
        }
    }
}

/* A d whose rows do not begin on 16 bytes, though those of a do. */
static void test_packed_unaligned(kiln_stream *stream) {
    for (precision p = F16; p < precision_end(); p++) {
        if (!takes_packed(stream, p)) continue;
        for (int tile = KILN_W4A16_TILE_64; tile <= KILN_W4A16_TILE_256; tile++) {
            enum { M = 18, N = 32, K = 64 };
            harness_describe("gemm_w4a16_%s of rows of d at any place, tile %d", precision_name(p), tile);
            const shape s = {.m = M, .n = N, .k = K, .layout = KILN_W4A16_SM80_V1, .tile = (kiln_w4a16_tile)tile};
            product t = product_create(stream, p, s);
            matrix d = matrix_create(stream, p, M, N, N + 3, 1);
            double expected[M * N], allowed[M * N];
            reference(&t, s, p, expected, allowed);
            kiln_gemm_w4a16_params params = params_of(&t, s);
            params.d = d.data;
            params.d_stride = d.stride;
            harness_ok(operator_function(&kiln__operator_gemm_w4a16, p)->call(stream, &params, sizeof params));
            matrix_expect(&d, expected, allowed);
            matrix_destroy(&d);
            product_destroy(&t);
        }
    }
}

/* More tiles than a device has multiprocessors, so that a block does several. Of f16 or bf16 alone if f32 is not
 * tested: then another device of the same text has the other. */
static void test_packed_rounds(kiln_stream *stream) {
    if (harness_on_cpu(stream) || !takes_packed(stream, BF16)) return;
    const bool all = precision_first() == F32, f16 = all || precision_first() == F16, bf16 = precision_first() != F16;
    kiln_device_info info = {0};
    harness_ok(kiln_device_get_info(stream->device, &info));
    shape s = {.m = 1, .k = 192, .layout = KILN_W4A16_SM80_V1, .tile = KILN_W4A16_TILE_64, .bias = true};
    s.n = 256 * info.multiprocessors + 272;
    if (bf16) run(stream, BF16, s);
    /* Of 192 columns, where there is a kernel of 256 for 128 rows. */
    s.m = 3, s.n = 192 * info.multiprocessors + 272, s.tile = KILN_W4A16_TILE_128;
    if (bf16) run(stream, BF16, s);
    s.m = 128, s.k = s.group = 64, s.zeros = true;
    if (f16) run(stream, F16, s);
}

/* What is added to the product, activations, norms and gates of canonical weights: few rows, tiles, tiles whose k
 * blocks share, k that vectors do not fill, and tensors at any place. */
static void test_fused(kiln_stream *stream) {
    static const int64_t of[][4] = {
        {1, 65, 256, 64}, {8, 33, 62, 0}, {5, 18, 96, 32}, {20, 70, 130, 0}, {9, 3, 1792, 256}};
    static const int64_t places[] = {0, 1, AT_END};
    enum { COUNT = sizeof of / sizeof *of };
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int i = 0; i < harness_rounds(stream, 12 * COUNT); i++) {
            const int64_t *sizes = of[(i + (int)p) % COUNT];
            const int kind = i % 12;
            shape s = {.m = sizes[0], .n = sizes[1], .k = sizes[2], .group = sizes[3], .place = places[i % 3]};
            s.padding = i % 4 == 1 ? 8 : 0;
            s.gated = kind & 1;
            s.norm = kind & 2;
            s.c = !s.gated && kind % 3 < 2;
            s.in_place = s.c && kind % 3;
            s.activation = (kiln_gemm_activation)(i % (KILN_GEMM_SILU + 1));
            s.workspace = i % 4 != 0;
            s.bias = random_integer(0, 1);
            s.zeros = random_integer(0, 1);
            s.pre_scale = i % 5 == 0;
            s.groups_first = random_integer(0, 1);
            s.scale = i % 3 ? 0 : -0.5;
            s.eps = i % 2 ? 0 : 0.25;
            run(stream, p, s);
        }
}

/* The same of repacked weights of few rows: whole steps and others, small groups in vectors or not, one and several
 * panels, more of k than the kernel that normalises takes. */
static void test_packed_fused_rows(kiln_stream *stream) {
    static const int64_t of[][2] = {{256, 32}, {1408, 64}, {2816, 32}, {8960, 32}, {1280, 128}, {640, 0}, {16512, 128}};
    enum { COUNT = sizeof of / sizeof *of };
    for (precision p = F16; p < precision_end(); p++) {
        if (!takes_packed(stream, p)) continue;
        for (int i = 0; i < harness_rounds(stream, 8 * COUNT); i++) {
            const int64_t *sizes = of[i % COUNT];
            const int kind = (i + i / COUNT) % 8;
            shape s = {
                .m = i % 5 == 4 ? 11 : 1 + i % 8, .n = sizes[0] > 8000 ? 16 : 48, .k = sizes[0], .group = sizes[1]};
            s.layout = KILN_W4A16_SM80_V1;
            s.gated = kind & 1;
            s.norm = kind & 2 || kind == 5;
            s.c = !s.gated && kind & 4;
            s.in_place = s.c && i % 2;
            s.activation = s.gated || i % 3 == 0 ? KILN_GEMM_SILU : KILN_GEMM_NONE;
            s.bias = random_integer(0, 1);
            s.zeros = random_integer(0, 1);
            s.pre_scale = i % 7 == 3;
            s.groups_first = i % 6 == 5;
            s.padding = i % 4 == 1 ? 8 : 0;
            s.scale = i % 3 ? 0 : 0.5;
            run(stream, p, s);
        }
    }
}

/* And of 9 to 16 rows in groups of whole steps, with and without zeros, norms and pre_scale: fewer steps than warps and
 * more; and so many columns that clusters of blocks have several tiles of them, the last one fewer. */
static void test_packed_shared_rows(kiln_stream *stream) {
    static const int64_t of[][2] = {{384, 128}, {2560, 256}, {4480, 0}};
    kiln_device_info info = {0};
    harness_ok(kiln_device_get_info(stream->device, &info));
    for (precision p = F16; p < precision_end(); p++) {
        if (!takes_packed(stream, p)) continue;
        for (int i = 0; i < 8; i++) {
            shape s = {.m = 9 + i, .n = i % 2 ? 48 : 64, .k = of[i % 3][0], .group = of[i % 3][1]};
            s.layout = KILN_W4A16_SM80_V1;
            s.norm = i != 4 && i != 6;
            s.zeros = i & 2;
            s.pre_scale = i & 4;
            s.gated = i % 3 == 1;
            s.c = !s.gated && i % 2;
            s.bias = i % 4 == 0;
            s.activation = s.gated ? KILN_GEMM_SILU : KILN_GEMM_NONE;
            s.groups_first = i % 4 == 3;
            s.padding = i % 3 ? 0 : 8;
            s.eps = i % 2 ? 0 : 0.25;
            run(stream, p, s);
        }
        shape s = {.m = 14, .n = 32 * (info.multiprocessors / 2 * 3 - 1), .k = 1408, .group = 128, .norm = true};
        s.layout = KILN_W4A16_SM80_V1;
        run(stream, p, s);
    }
}

/* And in all tiles, divided and not. */
static void test_packed_fused_tiles(kiln_stream *stream) {
    for (precision p = F16; p < precision_end(); p++) {
        if (!takes_packed(stream, p)) continue;
        for (int i = 0; i < 15; i++) {
            shape s = {.m = 33, .n = 80, .k = i % 5 ? 192 : 1280, .group = 64, .layout = KILN_W4A16_SM80_V1};
            s.tile = (kiln_w4a16_tile)(i % 4 ? KILN_W4A16_TILE_64 + i % 4 - 1 : KILN_W4A16_TILE_AUTO);
            s.gated = i % 2;
            s.norm = i % 3 == 1;
            s.c = !s.gated && i % 3;
            s.in_place = s.c && i % 4 == 0;
            s.activation = (kiln_gemm_activation)((i + 1) % (KILN_GEMM_SILU + 1));
            s.bias = random_integer(0, 1);
            s.padding = i % 3 ? 0 : 8;
            s.workspace = i % 5 != 1;
            s.scale = i % 3 ? 0 : -0.5;
            run(stream, p, s);
        }
    }
}

/* What is refused of repacked weights; where the image takes none, all. */
static void test_packed_refusals(kiln_stream *stream) {
    harness_describe("gemm_w4a16 of repacked weights refused");
    kiln_w4a16_layout layout;
    harness_ok(kiln_w4a16_layout_of(stream, &layout));
    assert_int_equal(layout, takes_packed(stream, F16) ? KILN_W4A16_SM80_V1 : KILN_W4A16_CANONICAL);
    matrix x = matrix_create(stream, F32, 1, 8192, 0, 0);
    const kiln_operator_function *function = operator_function(&kiln__operator_gemm_w4a16, F16);
    const kiln_gemm_w4a16_params good = {
        .d = x.data, .a = x.data, .weights = x.data, .scales = x.data, .m = 3, .n = 16, .k = 64, .weight_layout = 1};
    kiln_gemm_w4a16_params params = good;
    const kiln_operator_function *without = operator_function(&kiln__operator_gemm_w4a16, layout ? F32 : F16);
    expect_refusal(stream, without, &params, sizeof params, "which this device's image does not take");
    size_t size;
    assert_int_equal(without->workspace_size(stream, &params, sizeof params, &size), KILN_ERROR_INVALID_ARGUMENT);
    if (takes_packed(stream, F16)) {
        params.n = 24;
        expect_refusal(stream, function, &params, sizeof params, "n is 24: must be a multiple of 16");
        params = good;
        params.k = 96;
        expect_refusal(stream, function, &params, sizeof params, "k is 96: must be a multiple of 64");
        params = good;
        params.tile = KILN_W4A16_TILE_PORTABLE;
        expect_refusal(stream, function, &params, sizeof params, "tile is portable");
        params = good;
        params.a_stride = 68;
        expect_refusal(stream, function, &params, sizeof params, "a is");
        params = good;
        params.weights++;
        expect_refusal(stream, function, &params, sizeof params, "weights is");
        params = good;
        params.pre_scale = (char *)x.data + 2;
        expect_refusal(stream, function, &params, sizeof params, "pre_scale is");
        params = good;
        params.norm_weight = (char *)x.data + 2;
        expect_refusal(stream, function, &params, sizeof params, "norm_weight is");
    }
    matrix_expect_unchanged(&x);
    matrix_destroy(&x);
}

/* Without products there are no factors, and the bias is left. */
static void test_no_products(kiln_stream *stream) {
    enum { N = 5 };
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int64_t m = 3; m <= 66; m += 63) {
            harness_describe("gemm_w4a16_%s of %lld rows without products", precision_name(p), (long long)m);
            matrix d = matrix_create(stream, p, m, N, 0, 0), bias = matrix_create(stream, p, 1, N, 0, 0);
            double expected[66 * N];
            matrix_fill(&bias, any_number);
            for (int64_t i = 0; i < m * N; i++)
                expected[i] = bias.values[i % N];
            kiln_gemm_w4a16_params params = {.d = d.data, .bias = bias.data, .m = m, .n = N};
            harness_ok(operator_function(&kiln__operator_gemm_w4a16, p)->call(stream, &params, sizeof params));
            matrix_expect_exact(&d, expected);
            matrix_destroy(&d);
            matrix_destroy(&bias);
        }
}

static void test_fused_refusals(kiln_stream *stream) {
    harness_describe("gemm_w4a16 refused what is done besides the product");
    matrix x = matrix_create(stream, F32, 1, 8192, 0, 0);
    const kiln_operator_function *function = operator_function(&kiln__operator_gemm_w4a16, F32);
    const kiln_gemm_w4a16_params good = {
        .d = x.data, .a = x.data, .weights = x.data, .scales = x.data, .m = 9, .n = 4, .k = 64};
    kiln_gemm_w4a16_params params = good;
    params.activation = 5;
    expect_refusal(stream, function, &params, sizeof params, "activation is 5: must be none (0)");
    params = good;
    params.gated = 2;
    expect_refusal(stream, function, &params, sizeof params, "gated is 2: must be no (0) or yes (1)");
    params.gated = 1;
    params.c = x.data;
    expect_refusal(stream, function, &params, sizeof params, "must be NULL with gated");
    params.c = NULL;
    expect_refusal(stream, function, &params, sizeof params, "for norm_weight, gated or activation with so many rows");
    params.n = INT32_MAX / 2 + 1;
    expect_refusal(stream, function, &params, sizeof params, "n is 1073741824: must be at most 1073741823");
    params.n = INT64_MAX; /* twice that is no int64_t: the sanitizer's build would stop */
    expect_refusal(stream, function, &params, sizeof params, "n is 9223372036854775807: must be at most 1073741823");
    params = good;
    params.norm_weight = x.data;
    expect_refusal(stream, function, &params, sizeof params,
                   "workspace_size is 0: must be at least 2304 for norm_weight, gated or activation with so many rows");
    params.workspace = (char *)x.data + 4;
    params.workspace_size = 2304;
    expect_refusal(stream, function, &params, sizeof params, "must be 16-byte aligned");
    params.norm_weight = (char *)x.data + 2;
    expect_refusal(stream, function, &params, sizeof params, "norm_weight is");
    params = good;
    params.norm_eps = -1;
    expect_refusal(stream, function, &params, sizeof params, "norm_eps is -1: must be 0 or from 1e-30 to 1e30");
    params = good;
    params.reserved = 1;
    expect_refusal(stream, function, &params, sizeof params, "reserved is 1: must be 0");
    params = good;
    params.c = params.d;
    params.c_stride = 5;
    expect_refusal(stream, function, &params, sizeof params, "d is c, but d_stride is 4 and c_stride 5: must be equal");
    params.c = (char *)x.data + 2;
    expect_refusal(stream, function, &params, sizeof params, "c is");
    matrix_expect_unchanged(&x);
    matrix_destroy(&x);
}

static void test_refusals(kiln_stream *stream) {
    harness_describe("gemm_w4a16 refused");
    matrix x = matrix_create(stream, F32, 1, 8192, 0, 0);
    const kiln_operator_function *function = operator_function(&kiln__operator_gemm_w4a16, F32);
    const kiln_gemm_w4a16_params good = {
        .d = x.data, .a = x.data, .weights = x.data, .scales = x.data, .m = 9, .n = 4, .k = 2048};
    kiln_gemm_w4a16_params params = good;
    size_t size;
    harness_ok(function->workspace_size(stream, &params, sizeof params, &size));
    assert_true(size > 0);
    params.workspace_size = size;
    expect_refusal(stream, function, &params, sizeof params, "workspace");
    params.workspace = x.data;
    params.workspace_size = size - 1;
    expect_refusal(stream, function, &params, sizeof params, "workspace_size");
    params.workspace_size = 0;
    expect_refusal(stream, function, &params, sizeof params, "or 0 without a workspace");
    /* So many partial sums that their number is beyond 64 bits. */
    params = (kiln_gemm_w4a16_params){.m = INT32_MAX, .n = INT32_MAX, .k = 4096};
    assert_int_equal(function->workspace_size(stream, &params, sizeof params, &size), KILN_ERROR_INVALID_ARGUMENT);
    assert_int_equal(size, 0);
    params = good;
    params.k = 2047;
    expect_refusal(stream, function, &params, sizeof params, "k is 2047: must be even");
    params = good;
    params.group = 48;
    expect_refusal(stream, function, &params, sizeof params, "group is 48: must be 32, 64, 128, 256 or k");
    params.group = 128;
    params.k = 2000;
    expect_refusal(stream, function, &params, sizeof params, "k is 2000: must be a multiple of group, 128");
    params = good;
    params.group = -32;
    expect_refusal(stream, function, &params, sizeof params, "group is -32");
    params = good;
    params.weights = NULL;
    expect_refusal(stream, function, &params, sizeof params, "weights is NULL");
    params = good;
    params.scales = (char *)x.data + 2;
    expect_refusal(stream, function, &params, sizeof params, "scales is");
    matrix_expect_unchanged(&x);
    matrix_destroy(&x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        on_each_device(test_plain),
        on_each_device(test_groups),
        on_each_device(test_random),
        on_each_device(test_endings),
        on_each_device(test_split),
        on_each_device(test_long),
        on_each_device(test_exact),
        on_each_device(test_no_products),
        on_each_device(test_packed_rows),
        on_each_device(test_packed_rows_of_vectors),
        on_each_device(test_packed_rows_of_many_blocks),
        on_each_device(test_packed_tiles),
        on_each_device(test_units),
        on_each_device(test_packed_unaligned),
        on_each_device(test_packed_rounds),
        on_each_device(test_fused),
        on_each_device(test_packed_fused_rows),
        on_each_device(test_packed_shared_rows),
        on_each_device(test_packed_fused_tiles),
        on_one_device(test_refusals),
        on_one_device(test_fused_refusals),
        on_one_device(test_packed_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
