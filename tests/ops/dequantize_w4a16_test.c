/* dequantize_w4a16 against f64: all groups, both orders of the scales, zeros or none. */
#include "tests/ops/harness.h"
#include <math.h>
#include <stdlib.h>

typedef struct shape {
    int64_t n, k, group;
    int64_t padding, place; /* of rows of y; of all tensors */
    bool zeros, groups_first;
} shape;

static double any_number(void) {
    return random_number(-1, 1);
}

static double any_byte(void) {
    return (double)random_integer(0, 255);
}

static void run(kiln_stream *stream, precision p, shape s) {
    harness_describe("dequantize_w4a16_%s %lld x %lld, groups of %lld%s, padding %lld, at %lld%s", precision_name(p),
                     (long long)s.n, (long long)s.k, (long long)s.group, s.groups_first ? " before n" : "",
                     (long long)s.padding, (long long)s.place, s.zeros ? ", zeros" : "");
    const int64_t groups = s.group ? s.k / s.group : 1;
    const int64_t rows = s.groups_first ? groups : s.n, cols = s.groups_first ? s.n : groups;
    matrix y = matrix_create(stream, p, s.n, s.k, s.k + s.padding, s.place);
    matrix weights = matrix_create(stream, U8, s.n, s.k / 2, 0, s.place);
    matrix scales = matrix_create(stream, p, rows, cols, 0, s.place);
    matrix zeros = matrix_create(stream, p, rows, cols, 0, s.place);
    matrix_fill(&weights, any_byte);
    matrix_fill(&scales, any_number);
    matrix_fill(&zeros, any_number);
    double *expected = malloc(sizeof(double) * (size_t)(s.n * s.k));
    double *allowed = malloc(sizeof(double) * (size_t)(s.n * s.k));
    assert_true(expected && allowed);
    for (int64_t j = 0; j < s.n; j++)
        for (int64_t k = 0; k < s.k; k++) {
            const int64_t g = s.group ? k / s.group : 0, at = s.groups_first ? g * s.n + j : j * groups + g;
            const int code = (int)weights.values[j * (s.k / 2) + k / 2] >> (k % 2 ? 4 : 0) & 15;
            const double scaled = (code < 8 ? code : code - 16) * scales.values[at];
            expected[j * s.k + k] = scaled + (s.zeros ? zeros.values[at] : 0);
            /* Without a fused multiply-add the product is rounded in f32. */
            allowed[j * s.k + k] = p == F32 && s.zeros ? fabs(scaled) * 0x1p-24 : 0;
        }
    const kiln_dequantize_w4a16_params params = {.y = y.data,
                                                 .weights = weights.data,
                                                 .scales = scales.data,
                                                 .zeros = s.zeros ? zeros.data : NULL,
                                                 .n = s.n,
                                                 .k = s.k,
                                                 .group = s.group,
                                                 .y_stride = s.padding ? y.stride : 0,
                                                 .scale_layout = s.groups_first};
    harness_ok(operator_function(&kiln__operator_dequantize_w4a16, p)->call(stream, &params, sizeof params));
    matrix_expect(&y, expected, allowed);
    matrix *inputs[] = {&weights, &scales, &zeros};
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        matrix_expect_unchanged(inputs[i]);
        matrix_destroy(inputs[i]);
    }
    matrix_destroy(&y);
    free(expected);
    free(allowed);
}

static void test_groups(kiln_stream *stream) {
    static const int64_t groups[] = {32, 64, 128, 256, 0};
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int i = 0; i < 20; i++) {
            shape s = {.n = 1 + i % 3, .group = groups[i / 4], .groups_first = i & 1, .zeros = i & 2};
            s.k = s.group ? 3 * s.group : 74;
            run(stream, p, s);
        }
}

static void test_random(kiln_stream *stream) {
    static const int64_t places[] = {0, 0, 1, 3, 8, AT_END}, groups[] = {0, 32, 64};
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int i = 0; i < harness_rounds(stream, 24); i++) {
            shape s = {.n = random_integer(1, 40),
                       .group = groups[random_integer(0, 2)],
                       .padding = random_integer(0, 1) * random_integer(1, 17),
                       .place = places[random_integer(0, 5)],
                       .zeros = random_integer(0, 1),
                       .groups_first = random_integer(0, 1)};
            s.k = s.group ? s.group * random_integer(1, 5) : 2 * random_integer(1, 300);
            run(stream, p, s);
        }
    run(stream, precision_first(), (shape){.n = 2, .k = 9000, .zeros = true});
}

static void test_refusals(kiln_stream *stream) {
    harness_describe("dequantize_w4a16 refused");
    matrix x = matrix_create(stream, F32, 1, 4096, 0, 0);
    const kiln_operator_function *function = operator_function(&kiln__operator_dequantize_w4a16, F32);
    const kiln_dequantize_w4a16_params good = {.y = x.data, .weights = x.data, .scales = x.data, .n = 2, .k = 64};
    kiln_dequantize_w4a16_params params = good;
    params.k = 63;
    expect_refusal(stream, function, &params, sizeof params, "k is 63: must be even");
    params = good;
    params.group = 16;
    expect_refusal(stream, function, &params, sizeof params, "group is 16: must be 32, 64, 128, 256 or k");
    params.group = 128;
    expect_refusal(stream, function, &params, sizeof params, "k is 64: must be a multiple of group, 128");
    params = good;
    params.scales = NULL;
    expect_refusal(stream, function, &params, sizeof params, "scales is NULL");
    matrix_expect_unchanged(&x);
    matrix_destroy(&x);
}

int main(void) {
    const struct CMUnitTest tests[] = {on_each_device(test_groups), on_each_device(test_random),
                                       on_one_device(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
