/* gemm against f64: all shapes, strides, batches, epilogues; with and without workspace; as the CPU alone can. */
#include "kernels/common/extensions.h"
#include "tests/ops/activation.h"
#include "tests/ops/harness.h"
#include "tests/sim/amx/amx_sim.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct shape {
    int64_t batch, m, n, k;
    int64_t padding, place; /* of rows; of all tensors */
    bool interleaved;       /* the matrices of a batch lie side by side, row by row */
    bool c, bias, in_place, workspace;
    bool exact;      /* sums that f32 holds, in whatever order */
    double tf32;     /* what products lose where factors may be rounded to TF32; 0: they may not */
    bool dot;        /* by dot products of 16-bit numbers, where the CPU has them */
    double smallest; /* what is below it may be taken for 0 */
    double scale;
    kiln_gemm_activation activation;
    kiln_gemm_tile tile;
} shape;

/* The least number of the precision that the device's matrix units do not take for 0: gfx90a's have no subnormals. */
static double smallest_of(const kiln_stream *stream, precision p) {
    kiln_device_info info;
    harness_ok(kiln_device_get_info(stream->device, &info));
    if (p == F32 || strcmp(info.target.processor, "gfx90a") != 0) return 0;
    return p == F16 ? 0x1p-14 : 0x1p-126;
}

static double any_number(void) {
    return random_number(-1, 1);
}

static double positive_number(void) {
    return random_number(1, 2);
}

static double one(void) {
    return 1;
}

static double small_integer(void) {
    return (double)random_integer(-3, 3);
}

static double large_number(void) {
    return random_number(-200, 200);
}

static double not_a_number(void) {
    return (double)NAN;
}

/* A batch of matrices in one: below each other, or side by side. */
typedef struct tensor {
    matrix all;
    int64_t stride, batch_stride, rows, cols;
    bool interleaved;
} tensor;

static tensor tensor_create(kiln_stream *stream, precision p, shape s, int64_t rows, int64_t cols) {
    tensor t = {.rows = rows, .cols = cols, .interleaved = s.interleaved};
    int64_t all_rows = s.interleaved ? rows : s.batch * rows, all_cols = s.interleaved ? s.batch * cols : cols;
    t.all = matrix_create(stream, p, all_rows, all_cols, all_cols + s.padding, s.place);
    t.stride = t.all.stride;
    t.batch_stride = s.interleaved ? cols : rows * t.stride;
    return t;
}

static double *at(const tensor *t, double *values, int64_t batch, int64_t row, int64_t col) {
    return t->interleaved ? values + row * t->all.cols + batch * t->cols + col
                          : values + (batch * t->rows + row) * t->cols + col;
}

/* What f32 may lose: each product and each sum is rounded, in whatever order; before that TF32 rounds factors. */
static void reference(shape s, const tensor *a, const tensor *b, const tensor *c, const matrix *bias, const tensor *d,
                      double *expected, double *allowed) {
    for (int64_t batch = 0; batch < s.batch; batch++)
        for (int64_t row = 0; row < s.m; row++)
            for (int64_t col = 0; col < s.n; col++) {
                const double *left = at(a, a->all.values, batch, row, 0), *right = at(b, b->all.values, batch, col, 0);
                double sum, magnitude, lost = 0;
                harness_dot(left, right, s.k, &sum, &magnitude);
                for (int64_t k = 0; s.smallest > 0 && k < s.k; k++)
                    if (fabs(left[k]) < s.smallest || fabs(right[k]) < s.smallest) lost += fabs(left[k] * right[k]);
                double scale = s.scale == 0 ? 1 : (double)(float)s.scale, value = scale * sum;
                magnitude *= fabs(scale);
                lost *= 1.2 * fabs(scale);
                if (s.c) {
                    value += *at(c, c->all.values, batch, row, col);
                    magnitude += fabs(*at(c, c->all.values, batch, row, col));
                }
                if (s.bias) {
                    value += bias->values[col];
                    magnitude += fabs(bias->values[col]);
                }
                double result = activate(s.activation, value);
                *at(d, expected, batch, row, col) = result;
                if (s.exact) continue;
                *at(d, allowed, batch, row, col) = 1.2 * magnitude * (sqrt((double)s.k + 16) * 0x1p-23 + s.tf32) +
                                                   lost + (s.activation ? 2e-6 + 2e-6 * fabs(result) : 0);
            }
}

static kiln_gemm_params params_of(shape s, const tensor *d, const tensor *a, const tensor *b, const tensor *c,
                                  const matrix *bias) {
    bool packed = !s.padding && !s.interleaved;
    return (kiln_gemm_params){.d = d->all.data,
                              .a = a->all.data,
                              .b = b->all.data,
                              .c = s.c ? c->all.data : NULL,
                              .bias = s.bias ? bias->data : NULL,
                              .batch = s.batch,
                              .m = s.m,
                              .n = s.n,
                              .k = s.k,
                              .d_stride = packed ? 0 : d->stride,
                              .a_stride = packed ? 0 : a->stride,
                              .b_stride = packed ? 0 : b->stride,
                              .c_stride = packed ? 0 : c->stride,
                              .d_batch_stride = packed ? 0 : d->batch_stride,
                              .a_batch_stride = packed ? 0 : a->batch_stride,
                              .b_batch_stride = packed ? 0 : b->batch_stride,
                              .c_batch_stride = packed ? 0 : c->batch_stride,
                              .scale = (float)s.scale,
                              .activation = (int32_t)s.activation,
                              .tile = (int32_t)s.tile,
                              .compute = s.dot        ? KILN_GEMM_COMPUTE_DOT
                                         : s.tf32 > 0 ? KILN_GEMM_COMPUTE_TF32
                                                      : KILN_GEMM_COMPUTE_F32};
}

static void run(kiln_stream *stream, precision p, shape s, double (*value)(void)) {
    harness_describe(
        "gemm_%s %lld of %lld x %lld x %lld, padding %lld, at %lld%s%s%s%s%s, scale %g, activation %d, tile %d%s",
        precision_name(p), (long long)s.batch, (long long)s.m, (long long)s.n, (long long)s.k, (long long)s.padding,
        (long long)s.place, s.interleaved ? ", interleaved" : "", s.c ? ", c" : "", s.in_place ? " in place" : "",
        s.bias ? ", bias" : "", s.workspace ? ", workspace" : "", s.scale, s.activation, (int)s.tile,
        s.dot        ? ", dot products"
        : s.tf32 > 0 ? ", TF32"
                     : "");
    tensor a = tensor_create(stream, p, s, s.m, s.k), b = tensor_create(stream, p, s, s.n, s.k);
    tensor c = tensor_create(stream, p, s, s.m, s.n), own = tensor_create(stream, p, s, s.m, s.n);
    tensor *d = s.in_place ? &c : &own;
    matrix bias = matrix_create(stream, p, 1, s.n, 0, s.place);
    matrix_fill(&a.all, value);
    matrix_fill(&b.all, value);
    matrix_fill(&c.all, value);
    matrix_fill(&bias, value);
    size_t bytes = sizeof(double) * (size_t)(s.batch * s.m * s.n);
    double *expected = malloc(bytes), *allowed = calloc(1, bytes);
    assert_true(expected && allowed);
    s.smallest = s.dot && p == BF16 ? 0x1p-126 : smallest_of(stream, p);
    if (harness_needs_reference()) reference(s, &a, &b, &c, &bias, d, expected, allowed);
    kiln_gemm_params params = params_of(s, d, &a, &b, &c, &bias);
    const kiln_operator_function *function = operator_function(&kiln__operator_gemm, p);
    matrix workspace = {0};
    if (s.workspace) {
        harness_ok(function->workspace_size(stream, &params, sizeof params, &params.workspace_size));
        workspace = matrix_create(stream, F32, 1, (int64_t)params.workspace_size / 4, 0, 0);
        if (params.workspace_size) params.workspace = workspace.data;
    }
    harness_ok(function->call(stream, &params, sizeof params));
    matrix_expect(&d->all, expected, allowed);
    matrix_expect_unchanged(&a.all);
    matrix_expect_unchanged(&b.all);
    matrix_expect_unchanged(&bias);
    if (!s.in_place) matrix_expect_unchanged(&c.all);
    matrix_destroy(&a.all);
    matrix_destroy(&b.all);
    matrix_destroy(&c.all);
    matrix_destroy(&own.all);
    matrix_destroy(&bias);
    if (s.workspace) {
        matrix_get(&workspace); /* nothing around it is written */
        matrix_destroy(&workspace);
    }
    free(expected);
    free(allowed);
}

/* The product of a [m, k] and b [n, k] is d [m, n], to the bit. */
static void expect_product(kiln_stream *stream, precision p, int64_t m, int64_t n, int64_t k, const double *a,
                           const double *b, const double *d) {
    matrix left = matrix_create(stream, p, m, k, 0, 0), right = matrix_create(stream, p, n, k, 0, 0);
    matrix product = matrix_create(stream, p, m, n, 0, 0);
    matrix_set(&left, a);
    matrix_set(&right, b);
    kiln_gemm_params params = {.d = product.data, .a = left.data, .b = right.data, .batch = 1, .m = m, .n = n, .k = k};
    harness_ok(operator_function(&kiln__operator_gemm, p)->call(stream, &params, sizeof params));
    matrix_expect_exact(&product, d);
    matrix_destroy(&left);
    matrix_destroy(&right);
    matrix_destroy(&product);
}

static void test_plain(kiln_stream *stream) {
    static const int64_t shapes[][3] = {{1, 1, 1},    {1, 64, 64},   {1, 33, 257},  {2, 5, 31},   {8, 40, 128},
                                        {7, 129, 63}, {9, 9, 9},     {64, 64, 64},  {65, 63, 33}, {100, 130, 70},
                                        {16, 1, 100}, {130, 65, 17}, {12, 200, 16}, {31, 32, 1}};
    for (precision p = precision_first(); p < precision_end(); p++)
        for (size_t i = 0; i < 2 * sizeof shapes / sizeof *shapes; i++) {
            const int64_t *sizes = shapes[i / 2];
            shape s = {.batch = 1, .m = sizes[0], .n = sizes[1], .k = sizes[2], .place = i % 2 ? AT_END : 0};
            run(stream, p, s, any_number);
        }
}

/* Aligned rows that end within a vector: in the first step of k, in a later one, and after many. */
static void test_aligned(kiln_stream *stream) {
    static const int64_t depths[] = {13, 37, 293};
    for (precision p = precision_first(); p < precision_end(); p++) {
        for (size_t i = 0; i < sizeof depths / sizeof *depths; i++) {
            run(stream, p, (shape){.batch = 1, .m = 20, .n = 30, .k = depths[i], .padding = 3}, any_number);
            run(stream, p, (shape){.batch = 1, .m = 5, .n = 30, .k = depths[i], .padding = 3}, any_number);
        }
    }
}

static void test_random(kiln_stream *stream) {
    static const int64_t places[] = {0, 0, 1, 3, 8, AT_END};
    for (precision p = precision_first(); p < precision_end(); p++) {
        for (int i = 0; i < harness_rounds(stream, 24); i++) {
            shape s = {.batch = random_integer(1, 3),
                       .m = random_integer(1, i % 2 ? 8 : 90),
                       .n = random_integer(1, 90),
                       .k = random_integer(0, 7) ? random_integer(1, 150) : 0,
                       .padding = random_integer(0, 1) * random_integer(1, 17),
                       .place = places[random_integer(0, 5)],
                       .interleaved = random_integer(0, 3) == 0,
                       .c = random_integer(0, 1),
                       .bias = random_integer(0, 1),
                       .scale = random_integer(0, 1) ? random_number(-2, 2) : 0,
                       .activation = (kiln_gemm_activation)random_integer(KILN_GEMM_NONE, KILN_GEMM_SILU)};
            s.in_place = s.c && random_integer(0, 1);
            run(stream, p, s, any_number);
        }
    }
}

/* Each way of ending a product, of tiles and of rows: a compiler may make code of its own for any. The last columns are
 * some of a thread's, and none of others'. */
static void test_endings(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int i = 0; i < 16; i++) {
            shape s = {.batch = 1, .m = i & 1 ? 66 : 6, .n = 65, .k = 5, .padding = 63, .c = i & 2, .bias = i & 4};
            s.activation = i & 8 ? KILN_GEMM_GELU_TANH : KILN_GEMM_NONE;
            run(stream, p, s, any_number);
        }
}

/* The kernel for a tile in the image that the device has; without a name where it has none. */
static kiln_kernel_info kernel_of(kiln_stream *stream, precision p, kiln_gemm_tile tile) {
    extern const kiln_bundle kiln__bundle_gemm;
    static const char *const sizes[] = {
        [KILN_GEMM_TILE_SMALL] = "small", [KILN_GEMM_TILE_LARGE] = "large", [KILN_GEMM_TILE_MEDIUM] = "medium"};
    static const char *const units[] = {"wgmma", "mma"};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        char name[64];
        kiln_kernel_info info;
        snprintf(name, sizeof name, "kiln_gemm_%s_%s_%s", units[i], sizes[tile], precision_name(p));
        if (harness_find_kernel(stream, &kiln__bundle_gemm, p, name, &info)) return info;
    }
    return (kiln_kernel_info){0};
}

/* What products of a precision lose by matrix units besides: two factors of f32 are rounded to 11 bits. */
static double tf32_of(precision p) {
    return p == F32 ? 0x1p-10 : 0;
}

/* The tiles of matrix units, whole ones and those that end within one: several of them in each direction, stages of k
 * that are less, as many and more than shared memory holds, rows that end within a vector, and blocks that share k. */
static void test_matrix_units(kiln_stream *stream) {
    static const int64_t shapes[][3] = {{9, 70, 8},     {64, 128, 64},  {65, 129, 72},  {128, 256, 192},
                                        {130, 257, 40}, {200, 40, 203}, {20, 300, 333}, {600, 17, 64}};
    for (precision p = precision_first(); p < precision_end(); p++)
        for (kiln_gemm_tile tile = KILN_GEMM_TILE_SMALL; tile <= KILN_GEMM_TILE_MEDIUM; tile++) {
            /* Images without such kernels take the portable one, of which other tests ask more. */
            bool tuned = kernel_of(stream, p, tile).name;
            const double tf32 = tf32_of(p);
            for (size_t i = 0; i < (tuned ? sizeof shapes / sizeof *shapes : 1); i++) {
                const int64_t *sizes = shapes[i];
                shape s = {.batch = 1, .m = sizes[0], .n = sizes[1], .k = sizes[2], .tf32 = tf32, .tile = tile};
                s.padding = (8 - sizes[2] % 8) % 8;
                s.bias = i % 2;
                run(stream, p, s, any_number);
            }
            if (!tuned) continue;
            shape s = {.batch = 1, .m = 70, .n = 131, .k = 1100, .padding = 4, .workspace = true, .c = true};
            s.batch += tile == KILN_GEMM_TILE_SMALL; /* a large tile takes simulated devices long */
            s.tf32 = tf32;
            s.tile = tile;
            s.activation = KILN_GEMM_SILU;
            s.scale = 0.5;
            run(stream, p, s, any_number);
            s = (shape){.batch = 1, .m = 70, .n = 66, .k = 104, .exact = true, .tf32 = tf32, .tile = tile};
            run(stream, p, s, small_integer);
            s = (shape){.batch = 1, .m = 9, .n = 33, .k = 1032, .workspace = true, .exact = true, .tf32 = tf32};
            s.tile = tile;
            run(stream, p, s, small_integer);
        }
}

/* The tiles of other columns, whose numbers divide n, and small tiles in clusters: more stages than shared memory
 * holds, with all that a tile ends with, and one tile of a cluster. */
static void test_narrower_tiles(kiln_stream *stream) {
    static const struct {
        int64_t m, n, k;
        kiln_gemm_tile tile;
    } shapes[] = {{130, 192, 520, KILN_GEMM_TILE_LARGE}, {270, 224, 392, KILN_GEMM_TILE_LARGE},
                  {20, 576, 64, KILN_GEMM_TILE_LARGE},   {90, 448, 72, KILN_GEMM_TILE_LARGE},
                  {270, 80, 520, KILN_GEMM_TILE_SMALL},  {140, 240, 392, KILN_GEMM_TILE_SMALL},
                  {300, 160, 72, KILN_GEMM_TILE_SMALL},  {200, 128, 584, KILN_GEMM_TILE_SMALL}};
    for (precision p = F16; p < precision_end(); p++) {
        if (!kernel_of(stream, p, KILN_GEMM_TILE_LARGE).cluster) continue;
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
            const bool ends = i % 4 < 2;
            shape s = {.batch = 1, .m = shapes[i].m, .n = shapes[i].n, .k = shapes[i].k, .bias = ends, .c = i % 4 == 1};
            s.activation = !ends ? KILN_GEMM_NONE : i < 4 ? KILN_GEMM_GELU_ERF : KILN_GEMM_GELU_TANH;
            s.tile = shapes[i].tile;
            run(stream, p, s, any_number);
        }
    }
}

/* Kernels whose blocks do one tile after the other: more stages than shared memory holds; whole tiles, which end by
 * vectors, without anything to add and with all of it; more tiles than blocks and groups of them that are cut off,
 * which take simulated devices long and are asked of one tile in each precision. */
static void test_persistent(kiln_stream *stream) {
    kiln_device_info device;
    harness_ok(kiln_device_get_info(stream->device, &device));
    for (precision p = precision_first(); p < precision_end(); p++)
        for (kiln_gemm_tile tile = KILN_GEMM_TILE_SMALL; tile <= KILN_GEMM_TILE_MEDIUM; tile++) {
            const kiln_kernel_info kernel = kernel_of(stream, p, tile);
            if (!kernel.stages) continue;
            const double tf32 = tf32_of(p);
            shape s = {
                .batch = 1, .m = 20, .n = kernel.tile[1], .k = (kernel.stages + 2) * kernel.tile[2], .tile = tile};
            s.tf32 = tf32;
            run(stream, p, s, any_number);
            s = (shape){.batch = 2, .m = 70, .n = kernel.tile[1] + 40, .k = 64, .c = true, .bias = true, .tile = tile};
            s.scale = -1.5;
            s.activation = KILN_GEMM_GELU_TANH;
            s.tf32 = tf32;
            run(stream, p, s, any_number);
            if (tile != (p == F16 ? KILN_GEMM_TILE_LARGE : KILN_GEMM_TILE_SMALL)) continue;
            s = (shape){.m = 17, .n = 24, .k = 72, .bias = true, .tile = tile};
            s.batch = device.multiprocessors / (kernel.cluster ? (int64_t)kernel.cluster : 1) + 3;
            s.tf32 = tf32;
            run(stream, p, s, any_number);
            s = (shape){.batch = 1, .m = 17 * kernel.tile[0], .n = 2 * kernel.tile[1], .k = 16, .exact = true};
            s.tile = tile;
            s.tf32 = tf32;
            run(stream, p, s, small_integer);
        }
}

/* TF32 is rounded to, and not cut: the errors of numbers of one sign cancel. */
static void test_rounding(kiln_stream *stream) {
    if (precision_first() != F32) return;
    run(stream, F32, (shape){.batch = 1, .m = 20, .n = 24, .k = 520, .tf32 = 0x1p-12}, positive_number);
}

/* Few rows, by matrix units where the image has them: each number of rows, columns beyond the last block's, k that ends
 * in each part of what the warps of a block take in turn. */
static void test_few_rows(kiln_stream *stream) {
    extern const kiln_bundle kiln__bundle_gemm;
    static const int64_t depths[] = {8, 24, 40, 120, 136, 1016, 1024, 1048, 2056};
    for (precision p = F16; p < precision_end(); p++) {
        for (int64_t m = 1; m <= 17; m += harness_has_tuned(stream, &kiln__bundle_gemm, p) ? 1 : 5) {
            int64_t k = depths[(size_t)(m + p) % (sizeof depths / sizeof *depths)];
            shape s = {.batch = 1 + m % 2, .m = m, .n = random_integer(1, 50), .k = k, .bias = m % 3, .c = m % 4};
            s.padding = m % 5 ? 0 : 8;
            s.activation = m % 3 ? KILN_GEMM_NONE : KILN_GEMM_SILU;
            run(stream, p, s, any_number);
        }
        run(stream, p, (shape){.batch = 1, .m = 16, .n = 17, .k = 4104, .exact = true}, small_integer);
        run(stream, p, (shape){.batch = 1, .m = 5, .n = 33, .k = 3000, .exact = true}, small_integer);
        run(stream, p, (shape){.batch = 1, .m = 12, .n = 20, .k = 1024, .place = 1}, any_number);
    }
}

/* More of few rows, of which the image's kernels by wgmma share k in clusters: each number of blocks, fewer stages than
 * shared memory holds, and more; columns beyond the last; c, the bias and all activations. Of other tiles three
 * suffice: they meet what other tests of theirs do not. */
static void test_cluster_rows(kiln_stream *stream) {
    static const int64_t shapes[][3] = {{17, 70, 40},    {64, 64, 384},  {33, 130, 1000}, {50, 200, 2056},
                                        {20, 129, 2400}, {64, 64, 4096}, {29, 70, 4104},  {40, 24, 4872}};
    extern const kiln_bundle kiln__bundle_gemm;
    for (precision p = F16; p < precision_end(); p++) {
        char name[64];
        kiln_kernel_info info;
        snprintf(name, sizeof name, "kiln_gemm_wgmma_rows_1_%s", precision_name(p));
        const bool clusters = harness_find_kernel(stream, &kiln__bundle_gemm, p, name, &info);
        for (size_t i = 0; i < (clusters ? sizeof shapes / sizeof *shapes : 3); i++) {
            const int64_t *sizes = shapes[i];
            shape s = {.batch = 1, .m = sizes[0], .n = sizes[1], .k = sizes[2], .bias = i % 2, .c = i % 4 == 3};
            s.batch += i % 4 == 2;
            s.padding = i % 3 ? 0 : 8;
            s.activation = (kiln_gemm_activation)(i % (KILN_GEMM_SILU + 1));
            run(stream, p, s, any_number);
        }
        run(stream, p, (shape){.batch = 1, .m = 41, .n = 96, .k = 2048, .exact = true}, small_integer);
        run(stream, p, (shape){.batch = 1, .m = 18, .n = 20, .k = 4096, .place = 1}, any_number);
    }
}

/* Products whose k blocks share. */
static void test_split(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++) {
        shape s = {.batch = 1, .m = 20, .n = 70, .k = 2000 + 7 * (int64_t)p, .bias = true, .workspace = true};
        run(stream, p, s, any_number);
        s = (shape){.batch = 2, .m = 65, .n = 3, .k = 1100, .padding = 5, .workspace = true, .c = true, .scale = 0.5};
        s.activation = KILN_GEMM_SILU;
        run(stream, p, s, any_number);
        run(stream, p, (shape){.batch = 1, .m = 9, .n = 3, .k = 1100}, any_number);
        /* Partial sums that are joined by vectors, where the image has a kernel for it. */
        s = (shape){.batch = 2, .m = 70, .n = 136, .k = 4096, .workspace = true, .c = true, .bias = true, .scale = 2};
        s.activation = KILN_GEMM_GELU_TANH;
        s.tf32 = tf32_of(p);
        run(stream, p, s, any_number);
    }
}

/* More rows of tiles than the CPU does at a time. */
static void test_tall(kiln_stream *stream) {
    if (!harness_on_cpu(stream)) return;
    for (precision p = precision_first(); p < precision_end(); p++) {
        run(stream, p, (shape){.batch = 2, .m = 400, .n = 70, .k = 140, .padding = 3, .bias = true}, any_number);
        run(stream, p, (shape){.batch = 1, .m = 270, .n = 5, .k = 1100, .workspace = true}, any_number);
    }
}

/* Dot products of 16-bit numbers, asked for: each number of rows of gemm_rows, and strips of tiles; k of less than a
 * pair, of odd ones, of a vector's end, of more than the columns that are transposed and than the rows that are kept.
 */
static void test_dot_products_of(kiln_stream *stream, precision p, int64_t rows_least) {
    static const int64_t depths[] = {1, 2, 31, 32, 33, 65, 127, 255, 256, 257, 300, 513, 1100, 8200};
    enum { DEPTHS = sizeof depths / sizeof *depths };
    for (int i = 0; i < 2 * DEPTHS; i++) {
        shape s = {.batch = 1 + i % 2, .k = depths[i % DEPTHS], .n = random_integer(1, 80), .dot = true};
        s.m = random_integer(rows_least, rows_least < 9 && i % 2 ? 8 : s.k > 1000 ? 40 : i % 4 ? 70 : 290);
        s.padding = random_integer(0, 1) * random_integer(1, 17);
        s.place = random_integer(0, 1) ? AT_END : random_integer(0, 3);
        s.interleaved = random_integer(0, 3) == 0;
        s.c = random_integer(0, 1);
        s.in_place = s.c && random_integer(0, 1);
        s.bias = random_integer(0, 1);
        s.activation = (kiln_gemm_activation)random_integer(KILN_GEMM_NONE, KILN_GEMM_SILU);
        run(stream, p, s, any_number);
    }
    for (int64_t m = rows_least; m <= 70; m += 63) {
        run(stream, p, (shape){.batch = 1, .m = m, .n = 66, .k = 999, .exact = true, .dot = true}, small_integer);
        run(stream, p, (shape){.batch = 1, .m = m, .n = 4, .k = 33, .dot = true}, not_a_number);
    }
    run(stream, p, (shape){.batch = 1, .m = 20, .n = 70, .k = 2001, .workspace = true, .dot = true}, any_number);
}

static void test_dot_products(kiln_stream *stream) {
    if (!harness_on_cpu(stream)) return;
    for (precision p = precision_first(); p < precision_end(); p++)
        test_dot_products_of(stream, p, 1);
}

/* The same by the tiles of AMX: the processor's, or simulated where it has none. */
static void test_amx(kiln_stream *stream) {
    const shape several_blocks = {.batch = 1, .m = 590, .n = 530, .k = 70, .exact = true, .dot = true};
    kiln_device_info info;
    harness_ok(kiln_device_get_info(stream->device, &info));
    if (strcmp(info.target.processor, "x86-64-v4") != 0) return;
    for (precision p = F16; p < precision_end(); p++) {
        const uint32_t wanted = p == F16 ? KILN__CPU_AMX_F16 : KILN__CPU_AMX_BF16, can = amx_sim_enter();
        bool held;
        kiln__cpu_amx = can & wanted;
        if (can & wanted) test_dot_products_of(stream, p, 9);
        if (can & wanted) run(stream, p, several_blocks, small_integer);
        kiln__cpu_amx = 0;
        const uint64_t simulated = amx_sim_leave(&held);
        print_message("# %s by tiles: %s\n", precision_name(p),
                      simulated      ? "simulated"
                      : can & wanted ? "the processor's"
                                     : "it has none of them");
        assert_true(simulated > 0 || !amx_sim_can());
        assert_false(held);
    }
}

/* Whether two products of bf16 are the same to the bit, one computed as is asked for and one by f32 arithmetic. In each
 * row of a are large numbers whose sum is 0: what of the small ones is left tells the order of sums. */
static bool same_as_plain(kiln_stream *stream, int64_t m, kiln_gemm_compute compute) {
    enum { M = 40, N = 50, K = 101 };
    double values[M * K];
    matrix a = matrix_create(stream, BF16, m, K, 0, 0), b = matrix_create(stream, BF16, N, K, 0, 0);
    matrix d[2];
    for (int64_t i = 0; i < m * K; i++)
        values[i] = random_number(1, 2);
    for (int64_t row = 0; row < m; row++)
        for (int i = 0; i < 4; i++)
            values[row * K + random_integer(0, K - 1)] = i % 2 ? 0x1p40 : -0x1p40;
    matrix_set(&a, values);
    matrix_fill(&b, one);
    for (int i = 0; i < 2; i++) {
        d[i] = matrix_create(stream, BF16, m, N, 0, 0);
        kiln_gemm_params params = {.d = d[i].data, .a = a.data, .b = b.data, .batch = 1, .m = m, .n = N, .k = K};
        params.compute = i ? KILN_GEMM_COMPUTE_F32 : (int32_t)compute;
        harness_ok(operator_function(&kiln__operator_gemm, BF16)->call(stream, &params, sizeof params));
        matrix_get(&d[i]);
    }
    bool same = memcmp(d[0].values, d[1].values, sizeof(double) * (size_t)(m * N)) == 0;
    matrix_destroy(&a);
    matrix_destroy(&b);
    matrix_destroy(&d[0]);
    matrix_destroy(&d[1]);
    return same;
}

/* A CPU does nothing else unless it is asked, and what it does not have it does in f32. */
static void test_dot_products_are_asked_for(kiln_stream *stream) {
    kiln_device_info info;
    harness_ok(kiln_device_get_info(stream->device, &info));
    if (!harness_on_cpu(stream)) return;
    for (int64_t m = 6; m <= 40; m += 34) {
        harness_describe("gemm_bf16 of %lld rows, asked for dot products or not", (long long)m);
        assert_true(same_as_plain(stream, m, KILN_GEMM_COMPUTE_TF32));
        kiln__cpu_extensions_off = true;
        assert_true(same_as_plain(stream, m, KILN_GEMM_COMPUTE_DOT));
        kiln__cpu_extensions_off = false;
#if defined(__x86_64__)
        bool has = __builtin_cpu_supports("avx512bf16") && !strcmp(info.target.processor, "x86-64-v4");
#else
        bool has = false;
#endif
        bool same = true; /* of few rows by chance, too */
        for (int i = 0; i < 8 && same; i++)
            same = same_as_plain(stream, m, KILN_GEMM_COMPUTE_DOT);
        assert_int_equal(same, !has);
    }
}

/* Sums that must be exact: ones, and one element among zeros, which shows a misplaced one. */
static void test_exact(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++) {
        run(stream, p, (shape){.batch = 1, .m = 3, .n = 50, .k = 100, .exact = true}, one);
        run(stream, p, (shape){.batch = 1, .m = 70, .n = 66, .k = 100, .exact = true}, one);
        run(stream, p, (shape){.batch = 2, .m = 70, .n = 66, .k = 33, .c = true, .bias = true, .exact = true},
            small_integer);
        run(stream, p, (shape){.batch = 1, .m = 8, .n = 66, .k = 999, .scale = 2, .exact = true}, small_integer);
        run(stream, p, (shape){.batch = 1, .m = 9, .n = 33, .k = 1500, .workspace = true, .exact = true},
            small_integer);
        run(stream, p, (shape){.batch = 1, .m = 70, .n = 66, .k = 65}, large_number);
    }
    for (precision p = precision_first(); p < precision_end(); p++) {
        enum { M = 66, N = 67, K = 37 };
        static double a[M * K], b[N * K], d[M * N];
        for (int i = 0; i < 3; i++) {
            int64_t row = random_integer(0, M - 1), col = random_integer(0, N - 1), k = random_integer(0, K - 1);
            harness_describe("gemm_%s with one element in row %lld, column %lld, at %lld", precision_name(p),
                             (long long)row, (long long)col, (long long)k);
            for (int64_t j = 0; j < M * K; j++)
                a[j] = j == row * K + k ? 3 : 0;
            for (int64_t j = 0; j < N * K; j++)
                b[j] = j == col * K + k ? 5 : 0;
            for (int64_t j = 0; j < M * N; j++)
                d[j] = j == row * N + col ? 15 : 0;
            expect_product(stream, p, M, N, K, a, b, d);
        }
    }
}

/* Without products there are no factors, and what is added to them is left. */
static void test_no_products(kiln_stream *stream) {
    enum { N = 5 };
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int64_t m = 3; m <= 66; m += 63) {
            harness_describe("gemm_%s of %lld rows without products", precision_name(p), (long long)m);
            matrix d = matrix_create(stream, p, m, N, 0, 0), bias = matrix_create(stream, p, 1, N, 0, 0);
            double expected[66 * N];
            matrix_fill(&bias, any_number);
            for (int64_t i = 0; i < m * N; i++)
                expected[i] = bias.values[i % N];
            kiln_gemm_params params = {.d = d.data, .bias = bias.data, .batch = 1, .m = m, .n = N};
            harness_ok(operator_function(&kiln__operator_gemm, p)->call(stream, &params, sizeof params));
            matrix_expect_exact(&d, expected);
            matrix_destroy(&d);
            matrix_destroy(&bias);
        }
}

/* NaN and infinities reach their row or column and nothing else, also where they stand at an edge. */
static void test_special_values(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++) {
        for (int64_t m = 5; m <= 69; m += 64) {
            enum { M = 69, N = 35, K = 19 };
            static double a[M * K], b[N * K], d[M * N];
            harness_describe("gemm_%s of special values, %lld rows", precision_name(p), (long long)m);
            for (int64_t i = 0; i < m * K; i++)
                a[i] = i == 2 * K + 18 ? (double)NAN : 1;
            for (int64_t i = 0; i < N * K; i++)
                b[i] = i == 34 * K + 18 ? (double)INFINITY : 1;
            for (int64_t i = 0; i < m * N; i++)
                d[i] = i / N == 2 ? (double)NAN : i % N == 34 ? (double)INFINITY : (double)K;
            expect_product(stream, p, m, N, K, a, b, d);
        }
    }
}

/* NaN stays NaN in each element of a thread, for which a compiler makes code of its own, as it does for each way of
 * ending; and where groups share k. */
static void test_nan(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++) {
        for (int i = 0; i < 8; i++) {
            shape s = {.batch = 1, .m = 9, .n = 4, .k = 1, .c = i & 1, .bias = i & 2};
            s.activation = i & 4 ? KILN_GEMM_SILU : KILN_GEMM_NONE;
            run(stream, p, s, not_a_number);
        }
        run(stream, p, (shape){.batch = 1, .m = 9, .n = 4, .k = 1024, .workspace = true}, not_a_number);
    }
}

static void test_refusals(kiln_stream *stream) {
    harness_describe("gemm refused");
    matrix x = matrix_create(stream, F32, 1, 4096, 0, 0);
    const kiln_operator_function *function = operator_function(&kiln__operator_gemm, F32);
    const kiln_gemm_params good = {.d = x.data, .a = x.data, .b = x.data, .batch = 1, .m = 20, .n = 4, .k = 4096};
    kiln_gemm_params params = good;
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
    /* So many tiles of d that their number is 0 in 64 bits. */
    params = (kiln_gemm_params){.batch = 1 << 14, .m = INT32_MAX, .n = INT32_MAX, .k = 4096};
    assert_int_equal(function->workspace_size(stream, &params, sizeof params, &size), KILN_ERROR_INVALID_ARGUMENT);
    assert_int_equal(size, 0);
    params = good;
    params.c = x.data;
    params.c_stride = 5;
    expect_refusal(stream, function, &params, sizeof params, "d_stride");
    matrix_expect_unchanged(&x);
    matrix_destroy(&x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        on_each_device(test_special_values),
        on_each_device(test_nan),
        on_each_device(test_no_products),
        on_each_device(test_aligned),
        on_each_device(test_random),
        on_each_device(test_plain),
        on_each_device(test_exact),
        on_each_device(test_endings),
        on_each_device(test_split),
        on_each_device(test_matrix_units),
        on_each_device(test_tall),
        on_each_device(test_few_rows),
        on_each_device(test_cluster_rows),
        on_each_device(test_narrower_tiles),
        on_each_device(test_persistent),
        on_each_device(test_rounding),
        on_each_device(test_dot_products),
        on_each_device(test_amx),
        on_each_device(test_dot_products_are_asked_for),
        on_one_device(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
