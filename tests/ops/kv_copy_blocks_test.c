/* kv_copy_blocks: blocks are copied bit for bit as pairs say, and every other block stays. */
#include "tests/ops/harness.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static double any_number(void) {
    return random_integer(0, 20) ? random_number(-4, 4) : (double)INFINITY;
}

static void run(kiln_stream *stream, precision p, int64_t count, int64_t blocks, int64_t cols, int64_t place) {
    harness_describe("kv_copy_blocks_%s %lld of %lld x %lld at %lld", precision_name(p), (long long)count,
                     (long long)blocks, (long long)cols, (long long)place);
    const precision index = random_integer(0, 1) ? I64 : I32;
    matrix caches[2], pairs = matrix_create(stream, index, count, 2, 0, AT_END);
    double *expected[2];
    for (int i = 0; i < 2; i++) {
        caches[i] = matrix_create(stream, p, blocks, cols, 0, i ? place : 0);
        matrix_fill(&caches[i], any_number);
        expected[i] = malloc(sizeof(double) * (size_t)(blocks * cols));
        assert_non_null(expected[i]);
        memcpy(expected[i], caches[i].values, sizeof(double) * (size_t)(blocks * cols));
    }
    /* From the lower half into blocks of the upper half, each once; some pairs name blocks that are not there. */
    for (int64_t i = 0; i < count; i++) {
        int64_t from = random_integer(0, blocks / 2 - 1), to = blocks / 2 + i;
        bool skipped = to >= blocks || random_integer(0, 4) == 0;
        if (to >= blocks) to = blocks + i;
        if (skipped && to < blocks) from = random_integer(0, 1) ? -1 : blocks;
        if (skipped && to < blocks && index == I64) from = (int64_t)1 << 32;
        pairs.values[2 * i] = (double)from;
        pairs.values[2 * i + 1] = (double)to;
        for (int c = 0; c < 2 && !skipped; c++)
            memcpy(expected[c] + to * cols, caches[c].values + from * cols, sizeof(double) * (size_t)cols);
    }
    matrix_set(&pairs, pairs.values);
    kiln_kv_copy_blocks_params params = {.key_cache = caches[0].data,
                                         .value_cache = caches[1].data,
                                         .pairs = pairs.data,
                                         .index_type = index == I64 ? KILN_INDEX_I64 : KILN_INDEX_I32,
                                         .count = count,
                                         .blocks = blocks,
                                         .cols = cols};
    harness_ok(operator_function(&kiln__operator_kv_copy_blocks, p)->call(stream, &params, sizeof params));
    for (int i = 0; i < 2; i++) {
        matrix_expect_exact(&caches[i], expected[i]);
        matrix_destroy(&caches[i]);
        free(expected[i]);
    }
    matrix_expect_unchanged(&pairs);
    matrix_destroy(&pairs);
}

static void test_shapes(kiln_stream *stream) {
    static const int64_t cols[] = {1, 7, 16, 64, 257, 1024, 4099};
    for (precision p = precision_first(); p < precision_end(); p++) {
        for (size_t i = 0; i < sizeof cols / sizeof *cols; i++) {
            run(stream, p, random_integer(1, 9), random_integer(2, 16), cols[i], 0);
            run(stream, p, random_integer(1, 9), random_integer(2, 16), cols[i], random_integer(0, 1) ? 1 : AT_END);
        }
    }
}

static void test_bad_params(kiln_stream *stream) {
    double memory[4];
    const kiln_kv_copy_blocks_params good = {
        .key_cache = memory, .value_cache = memory + 2, .pairs = memory, .count = 1, .blocks = 1, .cols = 1};
    const kiln_operator_function *function = operator_function(&kiln__operator_kv_copy_blocks, F32);
    kiln_kv_copy_blocks_params params = good;
    params.index_type = 2;
    expect_refusal(stream, function, &params, sizeof params, "index_type");
    params = good;
    params.cache_type = 2;
    expect_refusal(stream, function, &params, sizeof params, "cache_type");
    params = good;
    params.index_type = KILN_INDEX_I64;
    params.pairs = (const char *)memory + 4; /* aligned for 32 bits alone */
    expect_refusal(stream, function, &params, sizeof params, "pairs");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        on_each_device(test_shapes),
        on_one_device(test_bad_params),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
