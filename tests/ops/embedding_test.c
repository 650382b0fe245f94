/* embedding: rows are copied bit for bit, and an id that the table has not gives zeros. */
#include "tests/ops/harness.h"
#include <math.h>
#include <stdlib.h>

static double any_number(void) {
    return random_number(-4, 4);
}

static double special_number(void) {
    static const double values[] = {0, -0.0, NAN, INFINITY, -INFINITY, 1e-40, -1e-45, 65504, -65504, 1 / 3.0};
    return values[random_integer(0, sizeof values / sizeof *values - 1)];
}

typedef struct shape {
    int64_t rows, cols, vocabulary, first;
    int64_t y_padding, table_padding, y_place, table_place;
} shape;

static void run(kiln_stream *stream, precision p, shape s, double (*value)(void)) {
    harness_describe("embedding_%s %lld x %lld of %lld from %lld, padding %lld %lld, at %lld %lld", precision_name(p),
                     (long long)s.rows, (long long)s.cols, (long long)s.vocabulary, (long long)s.first,
                     (long long)s.y_padding, (long long)s.table_padding, (long long)s.y_place,
                     (long long)s.table_place);
    matrix y = matrix_create(stream, p, s.rows, s.cols, s.cols + s.y_padding, s.y_place);
    matrix table = matrix_create(stream, p, s.vocabulary, s.cols, s.cols + s.table_padding, s.table_place);
    const precision index = s.first > INT32_MAX || random_integer(0, 1) ? I64 : I32;
    matrix ids = matrix_create(stream, index, 1, s.rows, 0, AT_END);
    double *expected = malloc(sizeof(double) * (size_t)(s.rows * s.cols));
    assert_non_null(expected);
    matrix_fill(&table, value);
    for (int64_t row = 0; row < s.rows; row++) {
        int64_t id = random_integer(s.first - 2, s.first + s.vocabulary + 1);
        if (row == 1) id = INT32_MIN;
        if (row == 2) id = INT32_MAX;
        if (row == 3 && index == I64) id = s.first + ((int64_t)1 << 32);
        if (row == 4 && index == I64) id = INT64_MIN;
        ids.values[row] = (double)id;
        bool inside = id >= s.first && id < s.first + s.vocabulary;
        for (int64_t col = 0; col < s.cols; col++) {
            expected[row * s.cols + col] = inside ? table.values[(id - s.first) * s.cols + col] : 0;
        }
    }
    matrix_set(&ids, ids.values);
    kiln_embedding_params params = {.y = y.data,
                                    .table = table.data,
                                    .ids = ids.data,
                                    .index_type = index == I64 ? KILN_INDEX_I64 : KILN_INDEX_I32,
                                    .rows = s.rows,
                                    .cols = s.cols,
                                    .vocabulary = s.vocabulary,
                                    .y_stride = s.y_padding ? y.stride : 0,
                                    .table_stride = s.table_padding ? table.stride : 0,
                                    .first = s.first};
    harness_ok(operator_function(&kiln__operator_embedding, p)->call(stream, &params, sizeof params));
    matrix_expect_exact(&y, expected);
    matrix_expect_unchanged(&table);
    matrix_expect_unchanged(&ids);
    matrix_destroy(&y);
    matrix_destroy(&table);
    matrix_destroy(&ids);
    free(expected);
}

static void test_shapes(kiln_stream *stream) {
    static const int64_t cols[] = {1, 2, 3, 4, 7, 8, 16, 17, 33, 64, 100, 257, 1000, 4096, 4097, 20011};
    for (precision p = precision_first(); p < precision_end(); p++) {
        for (size_t i = 0; i < sizeof cols / sizeof *cols; i++) {
            shape s = {.rows = random_integer(1, 40), .cols = cols[i], .vocabulary = random_integer(1, 9)};
            run(stream, p, s, any_number);
            s = (shape){random_integer(1, 9),  cols[i],
                        random_integer(1, 9),  random_integer(-100, 100),
                        random_integer(0, 17), random_integer(0, 17),
                        random_place(),        random_place()};
            run(stream, p, s, special_number);
        }
    }
}

static void test_many_rows(kiln_stream *stream) {
    run(stream, F16, (shape){.rows = 100000, .cols = 3, .vocabulary = 1000, .first = 500}, any_number);
}

/* A part of a table with more rows than 32 bits count. */
static void test_far_rows(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++)
        run(stream, p, (shape){.rows = 20, .cols = 40, .vocabulary = 9, .first = (int64_t)1 << 40}, any_number);
}

static void test_bad_params(kiln_stream *stream) {
    double memory[4];
    const kiln_embedding_params good = {
        .y = memory, .table = memory, .ids = memory, .rows = 1, .cols = 1, .vocabulary = 2};
    const kiln_operator_function *function = operator_function(&kiln__operator_embedding, F32);
    kiln_embedding_params params = good;
    params.index_type = 2;
    expect_refusal(stream, function, &params, sizeof params, "index_type");
    params = good;
    params.reserved = 1;
    expect_refusal(stream, function, &params, sizeof params, "reserved");
    params = good;
    params.first = INT64_MAX;
    expect_refusal(stream, function, &params, sizeof params, "first");
    params = good;
    params.index_type = KILN_INDEX_I64;
    params.ids = (const char *)memory + 4; /* aligned for 32 bits alone */
    expect_refusal(stream, function, &params, sizeof params, "ids");
}

/* Written past the caches. */
/* So many that a thread takes two vectors: kiln__thread_vectors_log2. */
static void test_several_vectors(kiln_stream *stream) {
    run(stream, F32, (shape){.rows = 65, .cols = 4100, .vocabulary = 9}, any_number);
}

static void test_large(kiln_stream *stream) {
    if (!harness_on_cpu(stream)) return;
    run(stream, F32, (shape){.rows = 501, .cols = 4201, .vocabulary = 9, .y_padding = 3, .y_place = AT_END},
        any_number);
}

/* A table without rows may be NULL: every row is zeros. */
static void test_empty_table(kiln_stream *stream) {
    harness_describe("embedding_f32 of an empty table");
    matrix y = matrix_create(stream, F32, 3, 5, 0, 0), ids = matrix_create(stream, I32, 1, 3, 0, 0);
    matrix_set(&ids, (const double[]){0, 1, -1});
    kiln_embedding_params params = {.y = y.data, .ids = ids.data, .rows = 3, .cols = 5};
    harness_ok(kiln_embedding_f32(stream, &params));
    matrix_expect_exact(&y, (const double[15]){0});
    matrix_destroy(&y);
    matrix_destroy(&ids);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        on_each_device(test_shapes),          on_one_device(test_many_rows), on_each_device(test_far_rows),
        on_each_device(test_several_vectors), on_each_device(test_large),    on_each_device(test_empty_table),
        on_one_device(test_bad_params),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
