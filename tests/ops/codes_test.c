/* rmsnorm and silu_mul that quantise their results, bit by bit: the result in the order of operations that fused.h
 * states, checked against f64, and its codes and scales against their formulas. Every format and way to share scales;
 * rows of every length of a sum; infinities, NaN, zeros and tiny numbers. On the level of the CPU that has no fused
 * multiply-add codes may be the neighbours. */
#include "tests/ops/codes_reference.h"
#include "tests/ops/harness.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The elementary functions are the kernels' own: tests/unit/functions_test.c holds them to their bounds. */
#define KILN_INLINE static inline __attribute__((unused))
#define KILN_UNROLL
#define KILN_FMA(a, b, c) fmaf(a, b, c)
#include "kernels/common/gates.h"
#include "kernels/common/math/glu_exactly.h"
#include "kernels/common/math/root.h"

/* The params of both operators on bytes have the same fields at the same places. */
_Static_assert(sizeof(kiln_rmsnorm_fp8_params) == sizeof(kiln_rmsnorm_int8_params), "one struct for both");
_Static_assert(sizeof(kiln_silu_mul_fp8_params) == sizeof(kiln_silu_mul_int8_params), "one struct for both");

enum { EIGHT = 8, BLOCK = 16, SUMS = 256, SUBGROUP = 32 };

typedef enum producer { RMSNORM, SILU_MUL } producer;
typedef enum where { NOWHERE, NEW, X, RESIDUAL } where; /* where a sum goes */

typedef struct shape {
    producer producer;
    quantising q;
    int64_t padding, place;
    bool wanted; /* the scales that may be NULL */
    bool second; /* a residual; up in a tensor of its own */
    bool weighted;
    where sum;
    kiln_glu activation;
    float eps; /* 0: the default */
} shape;

typedef struct tensors {
    matrix first, second, weight, sum, codes, scales, globals;
    float *result, *sums;
} tensors;

static double any_number(void) {
    return random_number(-1, 1) * ldexp(1, (int)random_integer(-6, 3));
}

static double special_number(void) {
    static const double values[] = {0, -0.0, 1e-45, -1e-40, 1e-30, 1e19, -INFINITY, INFINITY, NAN};
    return random_integer(0, 300) ? any_number() : values[random_integer(0, 8)];
}

/* The greatest products with any numbers are near the end of f32. */
static double huge_number(void) {
    return random_number(-1, 1) * 0x1p125;
}

static double zero_or_tiny(void) {
    static const double values[] = {0, -0.0, 1e-45, -1e-40};
    return values[random_integer(0, 3)];
}

static double weight_number(void) {
    return random_number(0.5, 2);
}

/* ---- Results ----------------------------------------------------------------------------------------------------- */

/* The sum of a row's squares in its order. */
static float squares_of(const float *row, int64_t cols) {
    const int64_t count = cols <= 128 ? 16 : cols <= 512 ? SUBGROUP : SUMS;
    float sums[SUMS] = {0};
    for (int64_t first = 0; first < cols; first += EIGHT) {
        float squares[EIGHT] = {0};
        for (int64_t i = 0; i < EIGHT && first + i < cols; i++)
            squares[i] = row[first + i] * row[first + i];
        for (int half = EIGHT / 2; half; half /= 2)
            for (int i = 0; i < half; i++)
                squares[i] += squares[i + half];
        sums[first / EIGHT % count] += squares[0];
    }
    float all = 0;
    for (int64_t first = 0; first < count; first += SUBGROUP) {
        for (int step = 1; step < SUBGROUP && step < count; step *= 2)
            for (int i = 0; i < SUBGROUP && first + i + step < count; i += 2 * step)
                sums[first + i] += sums[first + i + step];
        all = first ? all + sums[first] : sums[first];
    }
    return all;
}

/* Fails unless a finite result is within allowed of f64's, which is finite too. */
static void expect_result(float result, double expected, double allowed) {
    if (isfinite(expected) && isfinite(result) && fabs((double)result - expected) > allowed)
        harness_fail("the definition gives %.9g, f64 %.9g", (double)result, expected);
}

static void rmsnorm_reference(const shape *s, tensors *t) {
    const int64_t cols = s->q.cols;
    const float eps = s->eps == 0 ? 1e-6f : s->eps;
    for (int64_t row = 0; row < s->q.rows; row++) {
        float *sums = t->sums + row * cols;
        double squares = 0;
        for (int64_t i = 0; i < cols; i++) {
            sums[i] = (float)t->first.values[row * cols + i];
            if (s->second) sums[i] += (float)t->second.values[row * cols + i];
            squares += (double)sums[i] * (double)sums[i];
        }
        float scale = kiln_rsqrt(fmaf(squares_of(sums, cols), 1.0f / (float)cols, eps));
        for (int64_t i = 0; i < cols; i++) {
            float weight = s->weighted ? (float)t->weight.values[i] : 1.0f;
            double expected = (double)sums[i] / sqrt(squares / (double)cols + (double)eps) * (double)weight;
            t->result[row * cols + i] = sums[i] * scale * weight;
            if (squares < 1e38) expect_result(t->result[row * cols + i], expected, 1e-6 * fabs(expected) + 1e-40);
        }
    }
}

static double act(kiln_glu kind, double g) {
    if (isinf(g)) return g < 0 ? -0.0 : g;
    if (kind == KILN_GLU_SILU) return g / (1 + exp(-g));
    return g / (1 + exp(-2 * sqrt(2 / acos(-1)) * (g + 0.044715 * g * g * g)));
}

static const struct {
    float bound, coefficients[2];
} gates[] = {[KILN_GLU_SILU] = {KILN__GATE_SILU}, [KILN_GLU_GELU_TANH] = {KILN__GATE_GELU_TANH}};

static void silu_mul_reference(const shape *s, tensors *t) {
    const int64_t cols = s->q.cols;
    for (int64_t i = 0; i < s->q.rows * cols; i++) {
        const double *row = t->first.values + i / cols * t->first.cols;
        double gate = row[i % cols], up = s->second ? t->second.values[i] : row[cols + i % cols];
        double a = act(s->activation, gate);
        t->result[i] =
            kiln_glu_exactly((float)gate, gates[s->activation].bound, gates[s->activation].coefficients) * (float)up;
        expect_result(t->result[i], a * up, (1e-6 + 5e-6 * fabs(a)) * fmax(fabs(up), 1));
    }
}

/* ---- Calls ------------------------------------------------------------------------------------------------------- */

static const kiln_operator *operator_of(const shape *s) {
    static const kiln_operator *const operators[][3] = {
        {&kiln__operator_rmsnorm_fp8, &kiln__operator_rmsnorm_int8, &kiln__operator_rmsnorm_nvfp4},
        {&kiln__operator_silu_mul_fp8, &kiln__operator_silu_mul_int8, &kiln__operator_silu_mul_nvfp4}};
    return operators[s->producer][s->q.format];
}

static int64_t stride_of(const matrix *m) {
    return m->stride == m->cols ? 0 : m->stride;
}

/* The tensors that all operators call the same, of either kind of params. */
#define COMMON(s, t)                                                                                \
    .codes = (t)->codes.data, .scales = (s)->wanted ? (t)->scales.data : NULL, .rows = (s)->q.rows, \
    .cols = (s)->q.cols, .scale_cols = (s)->q.scale_cols, .codes_stride = stride_of(&(t)->codes),   \
    .static_scale = (s)->q.static_scale
#define OF_RMSNORM(s, t)                                                                                    \
    .sum = sum ? sum->data : NULL, .x = (t)->first.data, .residual = (s)->second ? (t)->second.data : NULL, \
    .weight = (s)->weighted ? (t)->weight.data : NULL, .sum_stride = sum ? stride_of(sum) : 0,              \
    .x_stride = stride_of(&(t)->first), .residual_stride = (s)->second ? stride_of(&(t)->second) : 0, .eps = (s)->eps
#define OF_SILU_MUL(s, t)                                                                                        \
    .gate = (t)->first.data, .up = (s)->second ? (t)->second.data : NULL, .gate_stride = stride_of(&(t)->first), \
    .up_stride = (s)->second ? stride_of(&(t)->second) : 0, .activation = (int32_t)(s)->activation

static matrix *sum_of(const shape *s, tensors *t) {
    matrix *const places[] = {[NOWHERE] = NULL, [NEW] = &t->sum, [X] = &t->first, [RESIDUAL] = &t->second};
    return places[s->sum];
}

static void call(kiln_stream *stream, precision p, const shape *s, tensors *t) {
    const kiln_operator_function *function = operator_function(operator_of(s), p);
    const matrix *sum = sum_of(s, t);
    if (s->producer == RMSNORM && s->q.format == NVFP4) {
        kiln_rmsnorm_nvfp4_params params = {COMMON(s, t), OF_RMSNORM(s, t)};
        params.scales = t->scales.data;
        params.global_scale = s->wanted ? t->globals.data : NULL;
        params.scale_rows = s->q.scale_rows;
        params.scale_layout = s->q.swizzled;
        harness_ok(function->call(stream, &params, sizeof params));
    } else if (s->producer == RMSNORM) {
        kiln_rmsnorm_fp8_params params = {COMMON(s, t), OF_RMSNORM(s, t), .smax = s->q.smax};
        harness_ok(function->call(stream, &params, sizeof params));
    } else if (s->q.format == NVFP4) {
        kiln_silu_mul_nvfp4_params params = {COMMON(s, t), OF_SILU_MUL(s, t)};
        params.scales = t->scales.data;
        params.global_scale = s->wanted ? t->globals.data : NULL;
        params.scale_rows = s->q.scale_rows;
        params.scale_layout = s->q.swizzled;
        harness_ok(function->call(stream, &params, sizeof params));
    } else {
        kiln_silu_mul_fp8_params params = {COMMON(s, t), OF_SILU_MUL(s, t), .smax = s->q.smax};
        harness_ok(function->call(stream, &params, sizeof params));
    }
}

/* Without fused multiply-add a result may be its neighbour, and then its code, or a half of it, or a scale. */
static void expect_near(matrix *m, const double *expected, bool pairs) {
    int64_t different = 0;
    matrix_get(m);
    for (int64_t i = 0; i < m->rows * m->cols; i++) {
        double got = m->values[i], off = fabs(got - expected[i]);
        bool near = m->p == F32 ? off <= 1e-4 * expected[i] : off <= 1;
        if (pairs && !near) {
            int a = (int)got, b = (int)expected[i];
            near = abs(a % 16 - b % 16) <= 1 && abs(a / 16 - b / 16) <= 1;
        }
        if (!near) harness_fail("element %lld is %g, not near %g", (long long)i, got, expected[i]);
        different += m->p != F32 && off != 0;
    }
    if (different > 4 + m->rows * m->cols / 50) harness_fail("%lld elements differ", (long long)different);
}

static void expect(kiln_stream *stream, matrix *m, const double *expected, bool pairs) {
    kiln_device_info info;
    harness_ok(kiln_device_get_info(stream->device, &info));
    if (strcmp(info.target.processor, "x86-64-v2") == 0)
        expect_near(m, expected, pairs);
    else
        matrix_expect_exact(m, expected);
}

static void check(kiln_stream *stream, const shape *s, tensors *t) {
    const size_t codes = (size_t)(s->q.rows * codes_columns(&s->q)),
                 scales = (size_t)(s->q.scale_rows * s->q.scale_cols);
    double *expected = malloc(sizeof(double) * codes), *expected_scales = malloc(sizeof(double) * scales);
    double *expected_globals = malloc(sizeof(double) * (size_t)s->q.rows);
    double *sums = malloc(sizeof(double) * (size_t)(s->q.rows * s->q.cols));
    assert_true(expected && expected_scales && expected_globals && sums);
    codes_reference(&s->q, t->result, expected, expected_scales, expected_globals);
    expect(stream, &t->codes, expected, s->q.format == NVFP4);
    if (s->wanted || s->q.format == NVFP4)
        expect(stream, &t->scales, expected_scales, false);
    else
        matrix_expect_unchanged(&t->scales);
    if (s->wanted && s->q.format == NVFP4)
        expect(stream, &t->globals, expected_globals, false);
    else
        matrix_expect_unchanged(&t->globals);
    for (int64_t i = 0; i < s->q.rows * s->q.cols; i++)
        sums[i] = (double)t->sums[i];
    if (sum_of(s, t)) matrix_expect_exact(sum_of(s, t), sums);
    if (s->sum != NEW) matrix_expect_unchanged(&t->sum);
    if (s->sum != X) matrix_expect_unchanged(&t->first);
    if (s->sum != RESIDUAL) matrix_expect_unchanged(&t->second);
    matrix_expect_unchanged(&t->weight);
    free(expected);
    free(expected_scales);
    free(expected_globals);
    free(sums);
}

static void run(kiln_stream *stream, precision p, shape s, double (*value)(void)) {
    harness_describe(
        "%s_%s %lld x %lld, scales %lld x %lld%s%s, padding %lld, at %lld, smax %g, static %g, %s, %s, sum "
        "%d, function %d",
        operator_of(&s)->name, precision_name(p), (long long)s.q.rows, (long long)s.q.cols, (long long)s.q.scale_rows,
        (long long)s.q.scale_cols, s.q.swizzled ? " swizzled" : "", s.wanted ? "" : " not wanted", (long long)s.padding,
        (long long)s.place, (double)s.q.smax, (double)s.q.static_scale, s.second ? "two tensors" : "one tensor",
        s.weighted ? "weighted" : "not weighted", s.sum, s.activation);
    const int64_t rows = s.q.rows, cols = s.q.cols, code_cols = codes_columns(&s.q);
    const int64_t first_cols = s.producer == SILU_MUL && !s.second ? 2 * cols : cols;
    const bool bytes = s.q.format != NVFP4;
    tensors t = {
        .first = matrix_create(stream, p, rows, first_cols, first_cols + s.padding, s.place),
        .second = matrix_create(stream, p, rows, cols, cols + s.padding, 0),
        .weight = matrix_create(stream, p, 1, cols, 0, s.place),
        .sum = matrix_create(stream, p, rows, cols, cols + s.padding, s.place),
        .codes = matrix_create(stream, s.q.format == INT8 ? I8 : U8, rows, code_cols, code_cols + s.padding, s.place),
        .scales = matrix_create(stream, bytes ? F32 : U8, s.q.scale_rows, s.q.scale_cols, 0, AT_END),
        .globals = matrix_create(stream, F32, 1, rows, 0, AT_END),
        .result = malloc(sizeof(float) * (size_t)(rows * cols)),
        .sums = malloc(sizeof(float) * (size_t)(rows * cols)),
    };
    assert_true(t.result && t.sums);
    matrix_fill(&t.first, value);
    matrix_fill(&t.second, any_number);
    matrix_fill(&t.weight, weight_number);
    (s.producer == RMSNORM ? rmsnorm_reference : silu_mul_reference)(&s, &t);
    call(stream, p, &s, &t);
    check(stream, &s, &t);
    matrix *all[] = {&t.first, &t.second, &t.weight, &t.sum, &t.codes, &t.scales, &t.globals};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        matrix_destroy(all[i]);
    free(t.result);
    free(t.sums);
}

/* ---- Tests ------------------------------------------------------------------------------------------------------- */

/* A way to share scales: of a row, of groups or in tiles, or given. */
static quantising quantising_of(format kind, int64_t rows, int64_t cols, int way) {
    quantising q = {.format = kind, .rows = rows, .cols = cols, .scale_rows = rows, .scale_cols = 1};
    if (way == 2) q.static_scale = kind == NVFP4 ? 0x1.3p-9f : 0.017f;
    if (kind != NVFP4) {
        if (way == 1) q.scale_cols = (cols + 127) / 128;
        q.smax = random_integer(0, 2) ? 0 : 2.25f;
        return q;
    }
    q.scale_cols = (cols + BLOCK - 1) / BLOCK + random_integer(0, 2);
    q.swizzled = way == 1;
    if (q.swizzled) q.scale_cols = (q.scale_cols + 3) / 4 * 4;
    q.scale_rows = q.swizzled ? (rows + 127) / 128 * 128 : rows + random_integer(0, 9);
    return q;
}

static shape random_shape(producer by, quantising q) {
    shape s = {.producer = by, .q = q, .padding = random_integer(0, 17), .place = random_place()};
    s.wanted = random_integer(0, 2) > 0;
    s.second = random_integer(0, 1);
    s.weighted = random_integer(0, 1);
    if (by == RMSNORM) s.sum = (where)random_integer(NOWHERE, s.second ? RESIDUAL : X);
    if (by == SILU_MUL) s.activation = (kiln_glu)random_integer(KILN_GLU_SILU, KILN_GLU_GELU_TANH);
    s.eps = random_integer(0, 1) ? 0 : 1e-5f;
    return s;
}

/* Rows of every number of sums, of one eight a thread and of more; aligned and not. */
static void test_shapes(kiln_stream *stream) {
    static const int64_t cols[] = {1, 7, 16, 48, 127, 129, 256, 300, 640, 1024, 1027, 1536, 4112};
    enum { COLUMNS = sizeof cols / sizeof *cols };
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int i = 0; i < 6 * COLUMNS; i++) {
            int64_t columns = cols[i / 6], rows = random_integer(1, columns < 300 ? 9 : 2);
            quantising q = quantising_of((format)(i % 3), rows, columns, (int)random_integer(0, 2));
            shape s = random_shape((producer)(i % 2), q);
            run(stream, p, s, i % 4 ? any_number : special_number);
            s.q = quantising_of((format)(i % 3), rows, columns, (i / 6 + i / 2) % 3);
            s.padding = random_integer(0, 1) * 16;
            s.place = 0;
            if (harness_on_cpu(stream) || i % 5 < 3) run(stream, p, s, any_number);
        }
}

static void test_zeros(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int i = 0; i < 6; i++) {
            shape s = {.producer = (producer)(i % 2), .wanted = true};
            s.q = quantising_of((format)(i / 2), 3, 160, 0);
            run(stream, p, s, zero_or_tiny);
        }
}

/* More rows than a block has, and tiles of scales beyond them. */
static void test_many_rows(kiln_stream *stream) {
    for (int i = 0; i < 6; i++) {
        const precision p = (precision)(precision_first() + (precision)i % (precision_end() - precision_first()));
        quantising q = quantising_of((format)(i / 2), random_integer(129, 150), i < 4 ? 100 : 112, 1);
        run(stream, p, random_shape((producer)(i % 2), q), any_number);
    }
}

/* Scales of many more columns than there are. */
static void test_many_scales(kiln_stream *stream) {
    for (int i = 0; i < 2; i++) {
        shape s = {.producer = (producer)i, .q = quantising_of(NVFP4, 3, 64, 0), .second = true, .wanted = true};
        s.q.scale_cols = 140;
        run(stream, (precision)(precision_end() - 1), s, any_number);
    }
}

/* More columns than a block keeps in shared memory. */
static void test_long_rows(kiln_stream *stream) {
    for (int i = 0; i < 3; i++) {
        const precision p = (precision)(precision_first() + (precision)i % (precision_end() - precision_first()));
        quantising q = quantising_of((format)i, 1, random_integer(14337, 18000) & -EIGHT, 0);
        shape s = {.producer = SILU_MUL, .q = q, .second = true, .wanted = true};
        run(stream, p, s, any_number);
    }
}

/* Rows that a block has in registers, of whole eights of all its threads and of some, of usual numbers, with special
 * ones and of huge ones. */
static void test_rows_in_registers(kiln_stream *stream) {
    static const int64_t cols[] = {4096, 4160, 8192};
    for (int i = 0; i < 30; i++) {
        const precision p = (precision)(precision_first() + (precision)i % (precision_end() - precision_first()));
        quantising q = quantising_of((format)(i / 2 % 2), 1, cols[i / 4 % 3], 0);
        shape s = {.producer = (producer)(i % 2), .q = q, .second = i % 3 > 0, .wanted = true, .weighted = i % 5 > 0};
        s.q.smax = 0;
        run(stream, p, s, i < 12 ? any_number : i < 24 ? special_number : huge_number);
    }
}

/* More long rows than clusters of blocks do. */
static void test_many_long_rows(kiln_stream *stream) {
    for (int i = 0; i < 2; i++) {
        quantising q = quantising_of((format)i, 70, 4104, 0);
        shape s = {.producer = SILU_MUL, .q = q, .wanted = true};
        run(stream, (precision)(precision_end() - 1), s, any_number);
    }
}

/* A device's reciprocals start with what its instruction gives, whose error is less than an ulp. */
static void test_reciprocal(void **state) {
    (void)state;
    for (uint32_t bits = 0x3f800000u; bits < 0x40000000u; bits += 2) {
        const float x = kiln_float(bits), expected = 1.0f / x, ulp = bits == 0x3f800000u ? 0x1p-23f : 0x1p-24f;
        for (int off = -1; off <= 1; off++) {
            const float start = kiln_float(kiln_bits(expected) + (uint32_t)off);
            if (fabs((double)start - 1 / (double)x) >= (double)ulp) continue;
            const float got = kiln_reciprocal_step(x, start);
            if (got != expected) fail_msg("from %a, 1 / %a is %a", (double)start, (double)x, (double)got);
        }
    }
}

/* Fails unless a reciprocal that starts from any of an uncleared sum's that is less than an ulp off is that of the sum
 * with its last bit cleared. */
static void check_sum(float sum) {
    const float even = kiln_float(kiln_bits(sum) & ~1u), expected = 1.0f / even, near = 1.0f / sum;
    const double ulp = (double)kiln_float(kiln_bits(near) + 1) - (double)near;
    for (int off = -1; off <= 1; off++) {
        const float start = kiln_float(kiln_bits(near) + (uint32_t)off);
        if (fabs((double)start - 1 / (double)sum) >= ulp) continue;
        const float got = kiln_reciprocal_step(even, start);
        if (got != expected) fail_msg("from %a, 1 / %a is %a", (double)start, (double)sum, (double)got);
    }
}

/* NVIDIA's devices start so for gates of 16 bits (kiln_glu_reciprocal): all of these are tried. */
static void test_reciprocal_of_16_bits(void **state) {
    (void)state;
    for (int activation = 0; activation < 2; activation++) {
        const float bound = gates[activation].bound;
        for (uint32_t bits = 0; bits < 0x20000u; bits++) {
            const uint16_t element = (uint16_t)bits;
            const float t = bits >> 16 ? kiln_bf16_to_f32(element) : kiln_f16_to_f32_soft(element);
            if (t >= -bound)
                check_sum(kiln_glu_sum(kiln_glu_argument(t < bound ? t : bound, gates[activation].coefficients)));
        }
    }
}

static void test_gated(void **state) {
    static const float silu[] = {1, 0};
    (void)state;
    for (uint32_t bits = 0x01000000u; bits < 0x42a00000u; bits += 1009) /* 2^-125 to 80 */
        for (int sign = 0; sign < 2; sign++) {
            const float t = kiln_float(bits | (uint32_t)sign << 31), got = kiln_glu_exactly(t, 80.0f, silu);
            const double expected = (double)t / (1 + exp(-(double)t)), allowed = 4e-6;
            if (!(fabs((double)got / expected - 1) <= allowed) && fabs(expected) > 0x1p-126)
                fail_msg("SiLU of %a is %a", (double)t, (double)got);
        }
    assert_true(isnan(kiln_glu_exactly(NAN, 80.0f, silu)));
    assert_true(kiln_glu_exactly(INFINITY, 80.0f, silu) == INFINITY);
    assert_true(kiln_glu_exactly(-INFINITY, 80.0f, silu) == 0.0f);
}

static void refuse_rmsnorm(kiln_stream *stream, const tensors *t) {
    const kiln_operator_function *function = operator_function(&kiln__operator_rmsnorm_fp8, F32);
    const kiln_rmsnorm_fp8_params good = {.codes = t->codes.data,
                                          .scales = t->scales.data,
                                          .sum = t->sum.data,
                                          .x = t->first.data,
                                          .residual = t->second.data,
                                          .rows = 2,
                                          .cols = 200};
    kiln_rmsnorm_fp8_params bad = good;
#define REFUSED(field, value, parameter) \
    bad = good;                          \
    bad.field = value;                   \
    expect_refusal(stream, function, &bad, sizeof bad, parameter)
    REFUSED(codes, NULL, "codes");
    REFUSED(scales, (float *)1, "scales");
    REFUSED(x, NULL, "x");
    REFUSED(weight, (const void *)1, "weight");
    REFUSED(rows, -1, "rows");
    REFUSED(cols, (int64_t)1 << 31, "cols");
    REFUSED(scale_cols, 3, "scale_cols");
    REFUSED(codes_stride, 199, "codes_stride");
    REFUSED(x_stride, 199, "x_stride");
    REFUSED(residual_stride, 199, "residual_stride");
    REFUSED(smax, 449, "smax");
    REFUSED(static_scale, -1, "static_scale");
    REFUSED(static_scale, NAN, "static_scale");
    REFUSED(static_scale, 1e-39f, "static_scale");
    REFUSED(eps, -1, "eps");
    REFUSED(reserved, 1, "reserved");
    bad = good;
    bad.static_scale = 1;
    bad.scale_cols = 2;
    expect_refusal(stream, function, &bad, sizeof bad, "scale_cols");
    bad = good;
    bad.sum = t->first.data;
    bad.sum_stride = 201;
    expect_refusal(stream, function, &bad, sizeof bad, "sum_stride");
    bad = good;
    bad.sum = NULL;
    bad.sum_stride = 200;
    expect_refusal(stream, function, &bad, sizeof bad, "sum_stride");
    bad.sum_stride = 0;
    bad.residual = NULL;
    bad.residual_stride = 200;
    expect_refusal(stream, function, &bad, sizeof bad, "residual_stride");
    bad = good;
    bad.smax = 128;
    expect_refusal(stream, operator_function(&kiln__operator_rmsnorm_int8, F32), &bad, sizeof bad, "smax");
#undef REFUSED
}

static void refuse_silu_mul(kiln_stream *stream, const tensors *t) {
    const kiln_operator_function *function = operator_function(&kiln__operator_silu_mul_nvfp4, F32);
    const kiln_silu_mul_nvfp4_params good = {.codes = t->codes.data,
                                             .scales = t->scales.data,
                                             .gate = t->first.data,
                                             .up = t->second.data,
                                             .rows = 2,
                                             .cols = 200,
                                             .scale_rows = 2,
                                             .scale_cols = 13};
    kiln_silu_mul_nvfp4_params bad = good;
#define REFUSED(field, value, parameter) \
    bad = good;                          \
    bad.field = value;                   \
    expect_refusal(stream, function, &bad, sizeof bad, parameter)
    REFUSED(codes, NULL, "codes");
    REFUSED(scales, NULL, "scales");
    REFUSED(global_scale, (float *)1, "global_scale");
    REFUSED(gate, NULL, "gate");
    REFUSED(up, (const void *)1, "up");
    REFUSED(scale_rows, 1, "scale_rows");
    REFUSED(scale_cols, 12, "scale_cols");
    REFUSED(scale_layout, 1, "scale_rows");
    REFUSED(scale_layout, 2, "scale_layout");
    REFUSED(codes_stride, 100, "codes_stride");
    REFUSED(gate_stride, 199, "gate_stride");
    REFUSED(up_stride, 199, "up_stride");
    REFUSED(static_scale, 0x1p-117f, "static_scale");
    REFUSED(activation, 2, "activation");
    REFUSED(reserved, 1, "reserved");
#undef REFUSED
}

static void test_refusals(kiln_stream *stream) {
    harness_describe("quantising operators refused");
    tensors t = {.first = matrix_create(stream, F32, 2, 200, 201, 0),
                 .second = matrix_create(stream, F32, 2, 200, 0, 0),
                 .sum = matrix_create(stream, F32, 2, 200, 0, 0),
                 .codes = matrix_create(stream, U8, 2, 200, 0, 0),
                 .scales = matrix_create(stream, F32, 2, 2, 0, 0)};
    matrix *all[] = {&t.first, &t.second, &t.sum, &t.codes, &t.scales};
    refuse_rmsnorm(stream, &t);
    refuse_silu_mul(stream, &t);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        matrix_expect_unchanged(all[i]);
        matrix_destroy(all[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        on_each_device(test_shapes),
        on_each_device(test_zeros),
        on_each_device(test_many_rows),
        on_each_device(test_long_rows),
        on_each_device(test_rows_in_registers),
        on_each_device(test_many_long_rows),
        on_each_device(test_many_scales),
        cmocka_unit_test(test_reciprocal),
        cmocka_unit_test(test_reciprocal_of_16_bits),
        cmocka_unit_test(test_gated),
        on_one_device(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
