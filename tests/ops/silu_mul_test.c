/* silu_mul against f64: both gate functions, both layouts. */
#include "tests/ops/harness.h"
#include <math.h>
#include <stdlib.h>

typedef struct shape {
    int64_t rows, cols, y_padding, gate_padding, up_padding;
    int64_t y_place, gate_place, up_place;
    bool joined; /* gate and up in one matrix of 2 * cols columns */
} shape;

enum { NEW, GATE, UP }; /* what y is */

static double activation(void) {
    return random_number(-10, 10);
}

static double large_activation(void) {
    return random_number(-200, 200);
}

static double act(kiln_glu kind, double g) {
    if (isinf(g)) return g < 0 ? -0.0 : g;
    if (kind == KILN_GLU_SILU) return g / (1 + exp(-g));
    return g / (1 + exp(-2 * sqrt(2 / acos(-1)) * (g + 0.044715 * g * g * g)));
}

/* gate and up are set; y may be one of them. up is NULL where gate holds both. */
static void run_on_matrices(kiln_stream *stream, kiln_glu kind, matrix *gate, matrix *up, matrix *y, int64_t cols) {
    size_t bytes = sizeof(double) * (size_t)(gate->rows * cols);
    double *expected = malloc(bytes), *allowed = malloc(bytes);
    assert_true(expected && allowed);
    for (int64_t i = 0; i < gate->rows * cols; i++) {
        const double *row = gate->values + i / cols * gate->cols;
        double a = act(kind, row[i % cols]), u = up ? up->values[i] : row[cols + i % cols];
        expected[i] = a * u;
        allowed[i] = isfinite(expected[i]) ? (1e-6 + 1e-6 * fabs(a)) * fmax(fabs(u), 1) : 0;
    }
    kiln_silu_mul_params params = {.y = y->data,
                                   .gate = gate->data,
                                   .up = up ? up->data : NULL,
                                   .rows = gate->rows,
                                   .cols = cols,
                                   .y_stride = y->stride == y->cols ? 0 : y->stride,
                                   .gate_stride = gate->stride == gate->cols ? 0 : gate->stride,
                                   .up_stride = up && up->stride != up->cols ? up->stride : 0,
                                   .activation = (int32_t)kind};
    harness_ok(operator_function(&kiln__operator_silu_mul, gate->p)->call(stream, &params, sizeof params));
    matrix_expect(y, expected, allowed);
    if (y != gate) matrix_expect_unchanged(gate);
    if (up && y != up) matrix_expect_unchanged(up);
    free(expected);
    free(allowed);
}

static void run(kiln_stream *stream, precision p, kiln_glu kind, shape s, int in_place, double (*value)(void)) {
    harness_describe("silu_mul_%s %lld x %lld, function %d, padding %lld %lld %lld, at %lld %lld %lld, %s%s",
                     precision_name(p), (long long)s.rows, (long long)s.cols, kind, (long long)s.y_padding,
                     (long long)s.gate_padding, (long long)s.up_padding, (long long)s.y_place, (long long)s.gate_place,
                     (long long)s.up_place, s.joined ? "one matrix" : "two matrices", in_place ? ", in place" : "");
    int64_t gate_cols = s.joined ? 2 * s.cols : s.cols;
    matrix gate = matrix_create(stream, p, s.rows, gate_cols, gate_cols + s.gate_padding, s.gate_place);
    matrix up = matrix_create(stream, p, s.rows, s.cols, s.cols + s.up_padding, s.up_place);
    matrix y = matrix_create(stream, p, s.rows, s.cols, s.cols + s.y_padding, s.y_place);
    matrix_fill(&gate, value);
    matrix_fill(&up, activation);
    matrix *to = in_place == GATE ? &gate : in_place == UP ? &up : &y;
    run_on_matrices(stream, kind, &gate, s.joined ? NULL : &up, to, s.cols);
    matrix_destroy(&gate);
    matrix_destroy(&up);
    matrix_destroy(&y);
}

static void test_shapes(kiln_stream *stream) {
    static const int64_t cols[] = {1,  2,   3,   4,   7,    8,    9,    15,   16,   17,   31,    32,   33,
                                   64, 100, 255, 257, 1000, 1023, 2048, 4095, 4096, 4097, 11008, 65537};
    for (precision p = precision_first(); p < precision_end(); p++) {
        for (size_t i = 0; i < sizeof cols / sizeof *cols; i++) {
            kiln_glu kind = (kiln_glu)(i % 2);
            run(stream, p, kind, (shape){.rows = 1, .cols = cols[i]}, NEW, activation);
            shape s = {random_integer(2, cols[i] < 1000 ? 40 : 4),
                       cols[i],
                       random_integer(0, 17),
                       random_integer(0, 17),
                       random_integer(0, 17),
                       random_place(),
                       random_place(),
                       random_place(),
                       random_integer(0, 1) == 1};
            int in_place = s.joined ? NEW : (int)random_integer(NEW, UP);
            if (s.joined) s.up_padding = 0;
            run(stream, p, (kiln_glu)random_integer(0, 1), s, in_place, i % 3 ? activation : large_activation);
        }
    }
}

/* Gates that are no ordinary numbers, with ups that are: silu(-inf) is -0, silu(+inf) is +inf, NaN goes through. */
static void test_special_values(kiln_stream *stream) {
    static const double gates[] = {0, -0.0, INFINITY, -INFINITY, NAN, 1e-40, -1e-45, 65504, -65504, -88, -104, 88, 1};
    enum { COUNT = sizeof gates / sizeof *gates }; /* odd, so that each stands at each place of a vector */
    for (precision p = precision_first(); p < precision_end(); p++) {
        for (int i = 0; i < 4; i++) {
            int kind = i % 2, place = i / 2;
            harness_describe("silu_mul_%s of special values, function %d", precision_name(p), kind);
            matrix gate = matrix_create(stream, p, 5, 8 * COUNT, 0, 0);
            matrix up = matrix_create(stream, p, 5, 8 * COUNT, 0, place);
            matrix y = matrix_create(stream, p, 5, 8 * COUNT, 0, AT_END);
            for (int64_t j = 0; j < gate.rows * gate.cols; j++) {
                gate.values[j] = gates[j % COUNT];
                up.values[j] = random_number(0.5, 2) * (random_integer(0, 1) ? 1 : -1);
            }
            matrix_set(&gate, gate.values);
            matrix_set(&up, up.values);
            run_on_matrices(stream, (kiln_glu)kind, &gate, &up, &y, gate.cols);
            matrix_destroy(&gate);
            matrix_destroy(&up);
            matrix_destroy(&y);
        }
    }
}

/* So many that a thread takes two vectors: kiln__thread_vectors_log2. */
static void test_several_vectors(kiln_stream *stream) {
    run(stream, F32, KILN_GLU_SILU, (shape){.rows = 65, .cols = 4100}, NEW, activation);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        on_each_device(test_shapes),
        on_each_device(test_special_values),
        on_each_device(test_several_vectors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
