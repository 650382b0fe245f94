/* add against the sum in f32, which is correctly rounded: every element must be exact. */
#include "tests/ops/harness.h"
#include <math.h>
#include <stdlib.h>

static double any_number(void) {
    return random_number(-4, 4);
}

/* Numbers whose sums overflow, cancel, vanish or are none. */
static double special_number(void) {
    static const double values[] = {0,      -0.0, 1,       -1,    INFINITY, -INFINITY, NAN,   1e-40,
                                    -1e-45, 6e-8, -6.1e-5, 65504, -65504,   3e38,      -3e38, 0x1p-24};
    return values[random_integer(0, sizeof values / sizeof *values - 1)];
}

enum { A, B, NEW }; /* what y is */

static void run(kiln_stream *stream, precision p, int64_t count, const int64_t places[3], int in_place,
                double (*value)(void)) {
    matrix tensors[3];
    harness_describe("add_%s of %lld at %lld %lld %lld, y is tensor %d", precision_name(p), (long long)count,
                     (long long)places[0], (long long)places[1], (long long)places[2], in_place);
    double *expected = malloc(sizeof(double) * (size_t)count);
    assert_non_null(expected);
    for (int i = 0; i < 3; i++) {
        tensors[i] = matrix_create(stream, p, 1, count, 0, places[i]);
        if (i != NEW) matrix_fill(&tensors[i], value);
    }
    for (int64_t i = 0; i < count; i++) {
        expected[i] = (float)tensors[A].values[i] + (float)tensors[B].values[i];
    }
    kiln_add_params params = {.y = tensors[in_place].data, .a = tensors[A].data, .b = tensors[B].data, .count = count};
    harness_ok(operator_function(&kiln__operator_add, p)->call(stream, &params, sizeof params));
    matrix_expect_exact(&tensors[in_place], expected);
    for (int i = 0; i < 3; i++) {
        if (i != in_place) matrix_expect_unchanged(&tensors[i]);
        matrix_destroy(&tensors[i]);
    }
    free(expected);
}

static void random_places(int64_t places[3]) {
    for (int i = 0; i < 3; i++)
        places[i] = random_place();
}

static void test_sizes(kiln_stream *stream) {
    static const int64_t counts[] = {1,  2,  3,  4,   7,   8,   9,    15,   16,   17,    31,    32,
                                     33, 63, 64, 100, 255, 257, 1000, 4095, 4097, 20011, 65536, 131075};
    for (precision p = precision_first(); p < precision_end(); p++) {
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            int64_t places[3] = {0, 0, 0};
            run(stream, p, counts[i], places, NEW, any_number);
            random_places(places);
            run(stream, p, counts[i], places, (int)random_integer(A, NEW), any_number);
        }
    }
}

static void test_special_values(kiln_stream *stream) {
    const int64_t places[3] = {0, 1, 2}, aligned[3] = {0, 0, 0};
    for (precision p = precision_first(); p < precision_end(); p++) {
        run(stream, p, 10007, places, NEW, special_number);
        run(stream, p, 10007, aligned, NEW, special_number);
    }
}

/* So many that a thread takes two vectors: kiln__thread_vectors_log2. */
static void test_several_vectors(kiln_stream *stream) {
    const int64_t places[3] = {0, 0, 0};
    run(stream, F32, (1 << 18) + 3, places, NEW, any_number);
}

static void test_large(kiln_stream *stream) {
    if (!harness_on_cpu(stream)) return;
    const int64_t places[3] = {0, 0, AT_END};
    run(stream, F32, (1 << 22) + 5, places, NEW, any_number);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        on_each_device(test_sizes),
        on_each_device(test_special_values),
        on_each_device(test_several_vectors),
        on_one_device(test_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
