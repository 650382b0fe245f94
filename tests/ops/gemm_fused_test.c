/* gemm with normalised rows of a and with gated results, alone and together, against f64: by one kernel and by several,
 * with all that a product ends with. */
#include "tests/ops/activation.h"
#include "tests/ops/harness.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct shape {
    int64_t batch, m, n, k;
    int64_t padding, place; /* of rows; of all tensors */
    bool norm, gated, c, bias;
    double scale, eps;
    kiln_gemm_activation activation;
    kiln_gemm_tile tile;
    double (*value)(void); /* of a; NULL: any number */
} shape;

static double any_number(void) {
    return random_number(-1, 1);
}

/* Whose products with weights f16 does not hold, and whose squares bf16's f32 sums do. */
static double large_number(void) {
    return random_number(20000, 60000) * (random_integer(0, 1) ? 1 : -1);
}

static double zero(void) {
    return 0;
}

static double weight(void) {
    return random_number(-3, 3);
}

/* What rounding a number to the precision loses of it at most, and what is below its normal numbers, which some matrix
 * units take for 0. */
static double rounding_of(precision p) {
    return p == F32 ? 0 : p == F16 ? 0x1p-11 : 0x1p-8;
}
static double smallest_of(precision p) {
    return p == F16 ? 0x1p-14 : 0;
}

typedef struct tensors {
    matrix d, a, b, c, bias, norm_weight;
} tensors;

/* A number and what it may be off. */
typedef struct number {
    double value, error;
} number;

/* The product of a row, as it is normalised, with a row of b, scaled, and with the bias. */
static number product_of(precision p, const shape *s, const tensors *t, const double *row, const double *right,
                         int64_t col) {
    double sum, magnitude, lost = 0, squares = 0;
    const double scale = s->scale == 0 ? 1 : (double)(float)s->scale;
    harness_dot(row, right, s->k, &sum, &magnitude);
    for (int64_t k = 0; k < s->k; k++) {
        const double product = fabs(row[k] * right[k]);
        squares += product * product;
        if (fabs(row[k]) < smallest_of(p) || fabs(right[k]) < smallest_of(p)) lost += product;
    }
    number result = {.value = scale * sum};
    magnitude *= fabs(scale);
    if (s->bias) {
        result.value += t->bias.values[col];
        magnitude += fabs(t->bias.values[col]);
    }
    result.error = 1.2 * magnitude * (sqrt((double)s->k + 16) + 4) * 0x1p-23 + 1.2 * fabs(scale) * lost;
    if (s->norm) result.error += 3 * fabs(scale) * rounding_of(p) * sqrt(squares);
    return result;
}

/* A number that is rounded: to what is twice as far apart, if its error takes it there. */
static number rounded(precision p, number x) {
    x.error += precision_half_ulp(p, fabs(x.value) + x.error);
    return x;
}

/* The gated product of both, each of which may be rounded. */
static number gated_of(precision p, const shape *s, number gate, number up) {
    gate = rounded(p, gate);
    up = rounded(p, up);
    const double active = activate(s->activation, gate.value);
    number result = {.value = active * up.value};
    const double error = 1.2 * gate.error + (s->activation ? 2e-6 + 2e-6 * fabs(active) : 0);
    result.error = error * fabs(up.value) + (fabs(active) + error) * up.error + fabs(result.value) * 0x1p-23;
    return result;
}

static number result_of(precision p, const shape *s, const tensors *t, const double *row, int64_t batch, int64_t i,
                        int64_t j) {
    const int64_t b_rows = s->gated ? 2 * s->n : s->n;
    const double *right = t->b.values + (batch * b_rows + j) * s->k;
    number result = product_of(p, s, t, row, right, j);
    if (s->gated) return gated_of(p, s, result, product_of(p, s, t, row, right + s->n * s->k, s->n + j));
    if (s->c) {
        const double addend = t->c.values[(batch * s->m + i) * s->n + j];
        result.value += addend;
        result.error += fabs(addend) * 0x1p-23;
    }
    result.value = activate(s->activation, result.value);
    result.error = 1.2 * result.error + (s->activation ? 2e-6 + 2e-6 * fabs(result.value) : 0);
    return result;
}

static void reference(precision p, const shape *s, const tensors *t, double *expected, double *allowed) {
    double *row = calloc((size_t)s->k + 1, sizeof *row);
    assert_non_null(row);
    for (int64_t i = 0; i < s->batch * s->m; i++) {
        const double *a = t->a.values + i * s->k;
        double mean = 0, magnitude;
        harness_dot(a, a, s->k, &mean, &magnitude);
        const double root = sqrt(mean / (double)s->k + (s->eps == 0 ? 1e-6 : s->eps));
        for (int64_t k = 0; k < s->k; k++)
            row[k] = s->norm ? a[k] / root * t->norm_weight.values[k] : a[k];
        for (int64_t j = 0; j < s->n; j++) {
            const number result = result_of(p, s, t, row, i / s->m, i % s->m, j);
            expected[i * s->n + j] = result.value;
            allowed[i * s->n + j] = rounded(p, result).error - precision_half_ulp(p, result.value);
        }
    }
    free(row);
}

static tensors tensors_create(kiln_stream *stream, precision p, const shape *s) {
    const int64_t b_rows = s->gated ? 2 * s->n : s->n;
    tensors t = {.d = matrix_create(stream, p, s->batch * s->m, s->n, s->n + s->padding, s->place),
                 .a = matrix_create(stream, p, s->batch * s->m, s->k, s->k + s->padding, s->place),
                 .b = matrix_create(stream, p, s->batch * b_rows, s->k, s->k + s->padding, s->place),
                 .c = matrix_create(stream, p, s->batch * s->m, s->n, s->n + s->padding, s->place),
                 .bias = matrix_create(stream, p, 1, b_rows, 0, s->place),
                 .norm_weight = matrix_create(stream, p, 1, s->k, 0, s->place)};
    matrix_fill(&t.a, s->value ? s->value : any_number);
    matrix_fill(&t.b, any_number);
    matrix_fill(&t.c, any_number);
    matrix_fill(&t.bias, any_number);
    matrix_fill(&t.norm_weight, weight);
    return t;
}

static void tensors_destroy(tensors *t) {
    matrix *const inputs[] = {&t->a, &t->b, &t->c, &t->bias, &t->norm_weight};
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        matrix_expect_unchanged(inputs[i]);
        matrix_destroy(inputs[i]);
    }
    matrix_destroy(&t->d);
}

static kiln_gemm_params params_of(const shape *s, const tensors *t) {
    return (kiln_gemm_params){.d = t->d.data,
                              .a = t->a.data,
                              .b = t->b.data,
                              .c = s->c ? t->c.data : NULL,
                              .bias = s->bias ? t->bias.data : NULL,
                              .batch = s->batch,
                              .m = s->m,
                              .n = s->n,
                              .k = s->k,
                              .d_stride = s->n + s->padding,
                              .a_stride = s->k + s->padding,
                              .b_stride = s->k + s->padding,
                              .c_stride = s->n + s->padding,
                              .scale = (float)s->scale,
                              .activation = (int32_t)s->activation,
                              .tile = (int32_t)s->tile,
                              .norm_weight = s->norm ? t->norm_weight.data : NULL,
                              .norm_eps = (float)s->eps,
                              .gated = s->gated};
}

static void run(kiln_stream *stream, precision p, shape s) {
    harness_describe("gemm_%s %lld of %lld x %lld x %lld, padding %lld, at %lld%s%s%s%s, scale %g, eps %g, activation "
                     "%d, tile %d",
                     precision_name(p), (long long)s.batch, (long long)s.m, (long long)s.n, (long long)s.k,
                     (long long)s.padding, (long long)s.place, s.norm ? ", normalised" : "", s.gated ? ", gated" : "",
                     s.c ? ", c" : "", s.bias ? ", bias" : "", s.scale, s.eps, s.activation, (int)s.tile);
    tensors t = tensors_create(stream, p, &s);
    const size_t bytes = sizeof(double) * (size_t)(s.batch * s.m * s.n);
    double *expected = malloc(bytes), *allowed = calloc(1, bytes);
    assert_true(expected && allowed);
    if (harness_needs_reference()) reference(p, &s, &t, expected, allowed);
    const kiln_operator_function *function = operator_function(&kiln__operator_gemm, p);
    kiln_gemm_params params = params_of(&s, &t);
    size_t size;
    harness_ok(function->workspace_size(stream, &params, sizeof params, &size));
    /* So few rows are done in one launch, but for f16 by matrix units. */
    if (s.m <= 8 && (p != F16 || !s.norm)) assert_int_equal(size, 0);
    matrix workspace = matrix_create(stream, F32, 1, ((int64_t)size + 3) / 4, 0, 0);
    params.workspace = size ? workspace.data : NULL;
    params.workspace_size = size;
    harness_ok(function->call(stream, &params, sizeof params));
    matrix_expect(&t.d, expected, allowed);
    matrix_get(&workspace); /* nothing around it is written */
    matrix_destroy(&workspace);
    tensors_destroy(&t);
    free(expected);
    free(allowed);
}

/* Numbers of rows of every kernel, and k that ends in each part of what the warps of a block take in turn. */
static void test_rows(kiln_stream *stream) {
    static const int64_t rows[] = {1, 2, 5, 8, 9, 16, 17, 70}, depths[] = {8, 40, 136, 1032, 328, 96, 264, 200};
    for (precision p = precision_first(); p < precision_end(); p++)
        for (size_t i = 0; i < 3 * sizeof rows / sizeof *rows; i++) {
            const size_t at = i / 3;
            shape s = {.batch = 1, .m = rows[at], .n = 21 + 3 * (int64_t)at, .k = depths[(at + (size_t)p) % 8]};
            s.norm = i % 3 != 1;
            s.gated = i % 3 != 0;
            s.activation = s.gated ? KILN_GEMM_SILU : KILN_GEMM_NONE;
            run(stream, p, s);
        }
}

/* Whole tiles of matrix units and of the vectors in which gates are read, products of which blocks share k, and few
 * rows of which warps take several parts of k. */
static void test_tiles(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++) {
        run(stream, p, (shape){.batch = 1, .m = 64, .n = 64, .k = 128, .norm = true, .gated = true});
        shape s = {.batch = 1, .m = 20, .n = 24, .k = 1200, .norm = true, .gated = true, .bias = true};
        s.activation = KILN_GEMM_GELU_TANH;
        run(stream, p, s);
        s = (shape){.batch = 1, .m = 4, .n = 40, .k = 72, .norm = true, .gated = true, .tile = KILN_GEMM_TILE_PORTABLE};
        run(stream, p, s);
        run(stream, p, (shape){.batch = 1, .m = 7, .n = 20, .k = 4504, .norm = true, .gated = true});
        run(stream, p, (shape){.batch = 1, .m = 13, .n = 20, .k = 4504, .norm = true, .c = true});
    }
}

/* Everything that a call can have besides. */
static void test_random(kiln_stream *stream) {
    static const int64_t places[] = {0, 0, 8, 1, 3, AT_END};
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int i = 0; i < harness_rounds(stream, 40); i++) {
            shape s = {.batch = random_integer(1, 3),
                       .m = random_integer(1, i % 4 ? 17 : 80),
                       .n = random_integer(1, 60),
                       .k = random_integer(1, 150),
                       .padding = random_integer(0, 1) * random_integer(1, 17),
                       .place = places[random_integer(0, 5)],
                       .norm = random_integer(0, 3),
                       .bias = random_integer(0, 1),
                       .scale = random_integer(0, 1) ? random_number(-2, 2) : 0,
                       .eps = random_integer(0, 1) ? 0.25 : 0,
                       .activation = (kiln_gemm_activation)random_integer(KILN_GEMM_NONE, KILN_GEMM_SILU)};
            if (i % 2) s.k = (s.k + 7) / 8 * 8, s.padding = s.padding / 8 * 8;
            s.gated = !s.norm || random_integer(0, 1);
            s.c = !s.gated && random_integer(0, 1);
            run(stream, p, s);
        }
}

/* Rows whose products with the weights a precision may not hold, and rows of zeros, of which eps alone is left. */
static void test_extremes(kiln_stream *stream) {
    static const int64_t rows[] = {3, 12, 20};
    for (precision p = precision_first(); p < precision_end(); p++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            const int64_t m = rows[i];
            run(stream, p, (shape){.batch = 1, .m = m, .n = 20, .k = 64, .norm = true, .value = large_number});
            run(stream, p, (shape){.batch = 1, .m = m, .n = 20, .k = 64, .norm = true, .bias = true, .value = zero});
        }
}

/* A row with a NaN is NaN, and no other one; without products the biases are gated. */
static void test_special(kiln_stream *stream) {
    enum { N = 10, K = 24, MOST = 20 };
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int64_t m = 4; m <= MOST; m += 16) {
            const shape s = {.batch = 1, .m = m, .n = N, .k = K, .norm = true};
            static double a[MOST * K], expected[MOST * N], allowed[MOST * N];
            harness_describe("gemm_%s of %lld rows with a NaN", precision_name(p), (long long)m);
            tensors t = tensors_create(stream, p, &s);
            for (int64_t i = 0; i < m * K; i++)
                a[i] = i == K + 5 ? (double)NAN : t.a.values[i];
            matrix_set(&t.a, a);
            reference(p, &s, &t, expected, allowed);
            kiln_gemm_params params = params_of(&s, &t);
            const kiln_operator_function *function = operator_function(&kiln__operator_gemm, p);
            size_t size;
            harness_ok(function->workspace_size(stream, &params, sizeof params, &size));
            matrix workspace = matrix_create(stream, F32, 1, ((int64_t)size + 3) / 4, 0, 0);
            params.workspace = size ? workspace.data : NULL;
            params.workspace_size = size;
            harness_ok(function->call(stream, &params, sizeof params));
            matrix_expect(&t.d, expected, allowed);

            harness_describe("gemm_%s of %lld rows, gated, without products", precision_name(p), (long long)m);
            matrix biases = matrix_create(stream, p, 1, 2 * N, 0, 0);
            matrix_fill(&biases, any_number);
            params.a = params.b = NULL;
            params.k = 0;
            params.gated = 1;
            params.bias = biases.data;
            params.workspace_size = 0;
            params.workspace = NULL;
            harness_ok(function->workspace_size(stream, &params, sizeof params, &size));
            matrix space = matrix_create(stream, F32, 1, ((int64_t)size + 3) / 4, 0, 0);
            params.workspace = size ? space.data : NULL;
            params.workspace_size = size;
            for (int64_t i = 0; i < m * N; i++) {
                expected[i] = biases.values[i % N] * biases.values[N + i % N];
                allowed[i] = fabs(expected[i]) * 0x1p-23;
            }
            harness_ok(function->call(stream, &params, sizeof params));
            matrix_expect(&t.d, expected, allowed);
            matrix_destroy(&space);
            matrix_destroy(&biases);
            matrix_destroy(&workspace);
            tensors_destroy(&t);
        }
}

/* In f32 a CPU multiplies what rmsnorm computes, to the bit. */
static void test_is_rmsnorm(kiln_stream *stream) {
    if (!harness_on_cpu(stream) || precision_first() != F32) return;
    for (int64_t m = 5; m <= 30; m += 25) {
        const shape s = {.batch = 1, .m = m, .n = 50, .k = 700, .norm = true, .c = true, .eps = 1e-5};
        harness_describe("gemm_f32 of %lld rows and rmsnorm", (long long)m);
        tensors t = tensors_create(stream, F32, &s);
        matrix y = matrix_create(stream, F32, m, s.k, 0, 0), d = matrix_create(stream, F32, m, s.n, 0, 0);
        matrix workspace = matrix_create(stream, F32, 1, m * s.k, 0, 0);
        kiln_gemm_params params = params_of(&s, &t);
        params.workspace = workspace.data;
        params.workspace_size = sizeof(float) * (size_t)(m * s.k);
        harness_ok(operator_function(&kiln__operator_gemm, F32)->call(stream, &params, sizeof params));
        matrix_get(&t.d);
        kiln_rmsnorm_params norm = {.y = y.data, .x = t.a.data, .weight = t.norm_weight.data, .rows = m, .cols = s.k};
        norm.eps = 1e-5f;
        harness_ok(operator_function(&kiln__operator_rmsnorm, F32)->call(stream, &norm, sizeof norm));
        params.norm_weight = params.workspace = NULL;
        params.workspace_size = 0;
        params.a = y.data;
        params.d = d.data;
        harness_ok(operator_function(&kiln__operator_gemm, F32)->call(stream, &params, sizeof params));
        matrix_expect_exact(&d, t.d.values);
        matrix_destroy(&workspace);
        matrix_destroy(&y);
        matrix_destroy(&d);
        tensors_destroy(&t);
    }
}

static void test_refusals(kiln_stream *stream) {
    harness_describe("gemm with norm_weight and gated refused");
    matrix x = matrix_create(stream, F32, 1, 4096, 0, 0);
    const kiln_operator_function *function = operator_function(&kiln__operator_gemm, F32);
    const kiln_gemm_params good = {.d = x.data, .a = x.data, .b = x.data, .batch = 1, .m = 20, .n = 4, .k = 64};
    kiln_gemm_params params = good;
    size_t size;
    params.norm_weight = x.data;
    params.gated = 1;
    harness_ok(function->workspace_size(stream, &params, sizeof params, &size));
    assert_int_equal(size, sizeof(float) * 20 * (64 + 2 * 4));
    expect_refusal(stream, function, &params, sizeof params, "workspace_size is 0: must be at least 5760");
    params.workspace_size = size - 1;
    params.workspace = x.data;
    expect_refusal(stream, function, &params, sizeof params, "workspace_size is 5759");
    params.workspace_size = size;
    params.workspace = (char *)x.data + 4;
    expect_refusal(stream, function, &params, sizeof params, "workspace is");
    params.workspace = x.data;
    params.c = x.data;
    expect_refusal(stream, function, &params, sizeof params, "c is given: must be NULL if gated");
    params = good;
    params.gated = 2;
    expect_refusal(stream, function, &params, sizeof params, "gated is 2: must be no (0) or yes (1)");
    params.gated = 1;
    params.n = (int64_t)1 << 30;
    expect_refusal(stream, function, &params, sizeof params, "n is 1073741824: must be at most 1073741823 if gated");
    params = good;
    params.norm_eps = -1;
    expect_refusal(stream, function, &params, sizeof params, "norm_eps is -1: must be 0 or from 1e-30 to 1e30");
    params.norm_eps = 0;
    params.norm_weight = (char *)x.data + 1;
    expect_refusal(stream, function, &params, sizeof params, "norm_weight");
    /* So many elements of a that their number is beyond 64 bits. */
    params = (kiln_gemm_params){.batch = INT32_MAX, .m = INT32_MAX, .n = 1, .k = INT32_MAX, .norm_weight = x.data};
    assert_int_equal(function->workspace_size(stream, &params, sizeof params, &size), KILN_ERROR_INVALID_ARGUMENT);
    matrix_expect_unchanged(&x);
    matrix_destroy(&x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        on_each_device(test_special), on_each_device(test_rows),     on_each_device(test_tiles),
        on_each_device(test_random),  on_each_device(test_extremes), on_each_device(test_is_rmsnorm),
        on_one_device(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
