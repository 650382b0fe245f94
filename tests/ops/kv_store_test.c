/* kv_store: rows are copied bit for bit where slot_mapping says, and every other row stays. */
#include "tests/ops/harness.h"
#include <math.h>
#include <stdlib.h>

typedef struct shape {
    int64_t tokens, cols, capacity, padding, place;
} shape;

static double any_number(void) {
    return random_integer(0, 20) ? random_number(-4, 4) : (double)INFINITY;
}

enum { KEY_CACHE, VALUE_CACHE, KEY, VALUE, TENSORS };

/* Slots that are all different where they are in the cache; some are not. */
static void choose_slots(matrix *slot_mapping, int64_t capacity) {
    int64_t *order = malloc(sizeof *order * (size_t)capacity);
    assert_non_null(order);
    for (int64_t i = 0; i < capacity; i++)
        order[i] = i;
    for (int64_t i = 0; i < slot_mapping->cols; i++) {
        static const double outside[] = {-1, INT32_MIN, INT32_MAX, 0x1p32, -0x1p63}; /* the last two of I64 alone */
        slot_mapping->values[i] =
            i == 0 ? (double)capacity : outside[random_integer(0, slot_mapping->p == I64 ? 4 : 2)];
        if (i >= capacity || (i && random_integer(0, 4) == 0)) continue;
        int64_t other = random_integer(i, capacity - 1), slot = order[other];
        order[other] = order[i];
        order[i] = slot;
        if (i || random_integer(0, 1)) slot_mapping->values[i] = (double)slot;
    }
    matrix_set(slot_mapping, slot_mapping->values);
    free(order);
}

static void run(kiln_stream *stream, precision p, shape s) {
    harness_describe("kv_store_%s %lld x %lld of %lld, padding %lld, at %lld", precision_name(p), (long long)s.tokens,
                     (long long)s.cols, (long long)s.capacity, (long long)s.padding, (long long)s.place);
    const precision index = random_integer(0, 1) ? I64 : I32;
    matrix tensors[TENSORS], slot_mapping = matrix_create(stream, index, 1, s.tokens, 0, AT_END);
    double *expected[2];
    for (int i = 0; i < TENSORS; i++) {
        int64_t padding = s.padding ? s.padding + i : 0;
        tensors[i] =
            matrix_create(stream, p, i < KEY ? s.capacity : s.tokens, s.cols, s.cols + padding, i % 2 ? s.place : 0);
        matrix_fill(&tensors[i], any_number);
    }
    choose_slots(&slot_mapping, s.capacity);
    for (int i = 0; i < 2; i++) {
        const matrix *cache = &tensors[i], *source = &tensors[KEY + i];
        expected[i] = malloc(sizeof(double) * (size_t)(s.capacity * s.cols));
        assert_non_null(expected[i]);
        for (int64_t at = 0; at < s.capacity * s.cols; at++)
            expected[i][at] = cache->values[at];
        for (int64_t token = 0; token < s.tokens; token++) {
            double slot = slot_mapping.values[token];
            if (slot < 0 || slot >= (double)s.capacity) continue;
            for (int64_t col = 0; col < s.cols; col++)
                expected[i][(int64_t)slot * s.cols + col] = source->values[token * s.cols + col];
        }
    }
    kiln_kv_store_params params = {.key_cache = tensors[KEY_CACHE].data,
                                   .value_cache = tensors[VALUE_CACHE].data,
                                   .key = tensors[KEY].data,
                                   .value = tensors[VALUE].data,
                                   .slot_mapping = slot_mapping.data,
                                   .index_type = index == I64 ? KILN_INDEX_I64 : KILN_INDEX_I32,
                                   .tokens = s.tokens,
                                   .cols = s.cols,
                                   .capacity = s.capacity,
                                   .key_stride = s.padding ? tensors[KEY].stride : 0,
                                   .value_stride = s.padding ? tensors[VALUE].stride : 0,
                                   .key_cache_stride = s.padding ? tensors[KEY_CACHE].stride : 0,
                                   .value_cache_stride = s.padding ? tensors[VALUE_CACHE].stride : 0};
    harness_ok(operator_function(&kiln__operator_kv_store, p)->call(stream, &params, sizeof params));
    for (int i = 0; i < 2; i++) {
        matrix_expect_exact(&tensors[i], expected[i]);
        matrix_expect_unchanged(&tensors[KEY + i]);
        free(expected[i]);
    }
    matrix_expect_unchanged(&slot_mapping);
    for (int i = 0; i < TENSORS; i++)
        matrix_destroy(&tensors[i]);
    matrix_destroy(&slot_mapping);
}

static void test_shapes(kiln_stream *stream) {
    static const int64_t cols[] = {1, 3, 8, 16, 31, 64, 256, 257, 1024, 4099};
    static const int64_t places[] = {0, 1, 3, 8, AT_END};
    for (precision p = precision_first(); p < precision_end(); p++) {
        for (size_t i = 0; i < sizeof cols / sizeof *cols; i++) {
            shape s = {.tokens = random_integer(1, 20), .cols = cols[i], .capacity = random_integer(1, 40)};
            run(stream, p, s);
            s.padding = random_integer(1, 17);
            s.place = places[random_integer(0, sizeof places / sizeof *places - 1)];
            run(stream, p, s);
        }
    }
}

/* So many that a thread takes two vectors: kiln__thread_vectors_log2. */
static void test_several_vectors(kiln_stream *stream) {
    run(stream, F32, (shape){.tokens = 65, .cols = 4100, .capacity = 70});
}

/* Written past the caches. */
static void test_large(kiln_stream *stream) {
    if (!harness_on_cpu(stream)) return;
    run(stream, F32, (shape){.tokens = 501, .cols = 4201, .capacity = 510, .padding = 3, .place = AT_END});
}

static void test_bad_params(kiln_stream *stream) {
    double memory[4];
    const kiln_kv_store_params good = {.key_cache = memory,
                                       .value_cache = memory + 1,
                                       .key = memory + 2,
                                       .value = memory + 3,
                                       .slot_mapping = memory,
                                       .tokens = 1,
                                       .cols = 1,
                                       .capacity = 1};
    const kiln_operator_function *function = operator_function(&kiln__operator_kv_store, F32);
    kiln_kv_store_params params = good;
    params.index_type = -1;
    expect_refusal(stream, function, &params, sizeof params, "index_type");
    params = good;
    params.cache_type = 2;
    expect_refusal(stream, function, &params, sizeof params, "cache_type");
    params = good;
    params.index_type = KILN_INDEX_I64;
    params.slot_mapping = (const char *)memory + 4; /* aligned for 32 bits alone */
    expect_refusal(stream, function, &params, sizeof params, "slot_mapping");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        on_each_device(test_shapes),
        on_each_device(test_several_vectors),
        on_one_device(test_large),
        on_one_device(test_bad_params),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
