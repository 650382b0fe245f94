/* kv_compact: the rows of accepted nodes are moved bit for bit, one after the other, and every other row stays. */
#include "tests/ops/harness.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct shape {
    int64_t batch, nodes, depth, cols, padding, place;
} shape;

static double any_number(void) {
    return random_integer(0, 20) ? random_number(-4, 4) : (double)INFINITY;
}

/* Slots that differ from each other, some of them none. */
static void draw_slots(matrix *slots, int64_t capacity) {
    int64_t count = slots->rows * slots->cols;
    int64_t *order = malloc(sizeof *order * (size_t)capacity);
    assert_non_null(order);
    for (int64_t i = 0; i < capacity; i++) {
        int64_t j = random_integer(0, i);
        order[i] = order[j];
        order[j] = i;
    }
    for (int64_t i = 0; i < count; i++)
        slots->values[i] = random_integer(0, 15) ? (double)order[i] : random_integer(0, 1) ? -1 : (double)capacity;
    free(order);
    matrix_set(slots, slots->values);
}

/* Paths that ascend from the root; at times a node that is not there. */
static void draw_paths(matrix *path, matrix *accepted, int64_t nodes) {
    for (int64_t b = 0; b < path->rows; b++) {
        int64_t node = 0;
        for (int64_t i = 0; i < path->cols; i++) {
            path->values[b * path->cols + i] = (double)node;
            node += random_integer(1, 3);
        }
        int64_t count = random_integer(-1, path->cols + 1);
        if (random_integer(0, 3) == 0)
            path->values[b * path->cols + path->cols / 2] = random_integer(0, 1) ? -1 : (double)nodes;
        accepted->values[b] = (double)count;
    }
    matrix_set(path, path->values);
    matrix_set(accepted, accepted->values);
}

static void define(double *cache, shape s, int64_t capacity, const matrix *slots, const matrix *path,
                   const matrix *accepted) {
    for (int64_t b = 0; b < s.batch; b++)
        for (int64_t i = 0; i < s.depth && i < s.nodes && (double)i < accepted->values[b]; i++) {
            double node = path->values[b * s.depth + i];
            if (node < 0 || node >= (double)s.nodes) continue;
            double from = slots->values[b * s.nodes + (int64_t)node], to = slots->values[b * s.nodes + i];
            if (from < 0 || to < 0 || from >= (double)capacity || to >= (double)capacity) continue;
            memmove(cache + (int64_t)to * s.cols, cache + (int64_t)from * s.cols, sizeof *cache * (size_t)s.cols);
        }
}

static void run(kiln_stream *stream, precision p, shape s) {
    harness_describe("kv_compact_%s %lld trees of %lld nodes, paths of %lld, %lld columns, padding %lld, at %lld",
                     precision_name(p), (long long)s.batch, (long long)s.nodes, (long long)s.depth, (long long)s.cols,
                     (long long)s.padding, (long long)s.place);
    int64_t capacity = s.batch * s.nodes + random_integer(0, 5);
    const precision index = random_integer(0, 1) ? I64 : I32;
    matrix slots = matrix_create(stream, index, s.batch, s.nodes, 0, AT_END);
    matrix path = matrix_create(stream, I32, s.batch, s.depth, 0, AT_END);
    matrix accepted = matrix_create(stream, I32, 1, s.batch, 0, AT_END), caches[2];
    double *expected[2];
    draw_slots(&slots, capacity);
    draw_paths(&path, &accepted, s.nodes);
    for (int i = 0; i < 2; i++) {
        size_t size = sizeof(double) * (size_t)(capacity * s.cols);
        caches[i] = matrix_create(stream, p, capacity, s.cols, s.cols + i * s.padding, i ? s.place : 0);
        matrix_fill(&caches[i], any_number);
        expected[i] = malloc(size);
        assert_non_null(expected[i]);
        memcpy(expected[i], caches[i].values, size);
        define(expected[i], s, capacity, &slots, &path, &accepted);
    }
    kiln_kv_compact_params params = {.key_cache = caches[0].data,
                                     .value_cache = caches[1].data,
                                     .slot_mapping = slots.data,
                                     .path = path.data,
                                     .accepted = accepted.data,
                                     .batch = s.batch,
                                     .nodes = s.nodes,
                                     .depth = s.depth,
                                     .cols = s.cols,
                                     .capacity = capacity,
                                     .value_cache_stride = s.padding ? caches[1].stride : 0,
                                     .index_type = index == I64 ? KILN_INDEX_I64 : KILN_INDEX_I32};
    harness_ok(operator_function(&kiln__operator_kv_compact, p)->call(stream, &params, sizeof params));
    for (int i = 0; i < 2; i++) {
        matrix_expect_exact(&caches[i], expected[i]);
        matrix_destroy(&caches[i]);
        free(expected[i]);
    }
    matrix_expect_unchanged(&slots);
    matrix_expect_unchanged(&path);
    matrix_expect_unchanged(&accepted);
    matrix_destroy(&slots);
    matrix_destroy(&path);
    matrix_destroy(&accepted);
}

static void test_shapes(kiln_stream *stream) {
    static const int64_t cols[] = {1, 7, 16, 64, 257, 1024, 4099};
    for (precision p = precision_first(); p < precision_end(); p++)
        for (size_t i = 0; i < sizeof cols / sizeof *cols; i++) {
            shape s = {
                .batch = random_integer(1, cols[i] > 1000 ? 2 : 5), .nodes = random_integer(1, 12), .cols = cols[i]};
            s.depth = random_integer(1, 6);
            run(stream, p, s);
            s.padding = random_integer(0, 17);
            s.place = random_place();
            run(stream, p, s);
        }
}

static void test_bad_params(kiln_stream *stream) {
    double memory[8];
    const kiln_kv_compact_params good = {.key_cache = memory,
                                         .value_cache = memory + 2,
                                         .slot_mapping = memory + 4,
                                         .path = (const int32_t *)(memory + 5),
                                         .accepted = (const int32_t *)(memory + 6),
                                         .batch = 1,
                                         .nodes = 1,
                                         .depth = 1,
                                         .cols = 1,
                                         .capacity = 1};
    const kiln_operator_function *function = operator_function(&kiln__operator_kv_compact, F32);
    kiln_kv_compact_params params = good;
    params.index_type = 2;
    expect_refusal(stream, function, &params, sizeof params, "index_type");
    params = good;
    params.cache_type = 2;
    expect_refusal(stream, function, &params, sizeof params, "cache_type");
    params = good;
    params.index_type = KILN_INDEX_I64;
    params.slot_mapping = (const char *)memory + 4; /* aligned for 32 bits alone */
    expect_refusal(stream, function, &params, sizeof params, "slot_mapping");
    params = good;
    params.nodes = (int64_t)INT32_MAX + 1;
    expect_refusal(stream, function, &params, sizeof params, "nodes");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        on_each_device(test_shapes),
        on_one_device(test_bad_params),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
