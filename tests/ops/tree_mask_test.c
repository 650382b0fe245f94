/* mha_paged with masks of trees, against f64 attention over the keys that each query sees, gathered one by one. */
#include "tests/ops/paged.h"
#include <stdlib.h>
#include <string.h>

/* Trees of the sequences of a call, a node for each of their last keys. */
typedef struct trees {
    int64_t nodes[ATTENTION_BATCH], words, common; /* common: tree_nodes of the call */
    matrix mask;                                   /* of the queries */
    uint32_t *rows;
} trees;

/* The mask of a random tree, of `queries` of its nodes: each sees itself and its ancestors. What lies behind the last
 * node's bit is set, and is no node's. */
static void grow(uint32_t *rows, int64_t words, int64_t nodes, int64_t queries) {
    uint32_t *all = calloc((size_t)(nodes * words + 1), sizeof *all);
    assert_non_null(all);
    for (int64_t node = 0; node < nodes; node++) {
        uint32_t *row = all + node * words;
        if (node) memcpy(row, all + random_integer(node > 9 ? node - 9 : 0, node - 1) * words, 4 * (size_t)words);
        row[node / 32] |= 1u << node % 32;
    }
    for (int64_t query = 0; query < queries; query++) {
        /* The last nodes, as when a tree is drafted layer by layer. */
        memcpy(rows + query * words, all + (nodes - queries + query) * words, 4 * (size_t)words);
        for (int64_t bit = nodes; bit < 32 * words; bit++)
            rows[query * words + bit / 32] |= 1u << bit % 32;
    }
    free(all);
}

static trees trees_create(kiln_stream *stream, attention_shape s, int64_t common) {
    trees t = {.common = common};
    int64_t tokens = attention_total(s.seqlens_q, s.batch), most = attention_longest(s.seqlens_q, s.batch);
    t.words = ((common ? common : most) + 31) / 32 + random_integer(0, 1);
    t.rows = calloc((size_t)(tokens * t.words + 1), sizeof *t.rows);
    assert_non_null(t.rows);
    t.mask = matrix_create(stream, I32, tokens, t.words, 0, AT_END);
    for (int64_t b = 0; b < s.batch; b++) {
        t.nodes[b] = common ? common : s.seqlens_q[b];
        grow(t.rows + attention_total(s.seqlens_q, b) * t.words, t.words, t.nodes[b], s.seqlens_q[b]);
    }
    for (int64_t i = 0; i < tokens * t.words; i++)
        t.mask.values[i] = (double)(int32_t)t.rows[i];
    matrix_set(&t.mask, t.mask.values);
    return t;
}

static void trees_destroy(trees *t) {
    matrix_expect_unchanged(&t->mask);
    matrix_destroy(&t->mask);
    free(t->rows);
}

/* Whether a query of a sequence sees a key. */
static bool sees(const attention_shape *s, const trees *t, int64_t b, int64_t query, int64_t key) {
    int64_t own = query + s->seqlens_k[b] - s->seqlens_q[b], right = s->causal ? 1 : s->right;
    int64_t node = key - s->seqlens_k[b] + t->nodes[b], token = attention_total(s->seqlens_q, b) + query;
    if ((s->left && key <= own - s->left) || (right && key >= own + right)) return false;
    return node < 0 || (t->rows[token * t->words + node / 32] >> node % 32 & 1);
}

/* What must come out: one query at a time, of the keys that it sees. */
static void reference(const attention_shape *s, const trees *t, attention_tensors *a) {
    const int64_t tokens = a->q.rows, cols = a->k.cols, longest = attention_longest(s->seqlens_k, s->batch);
    double *keys = malloc(sizeof(double) * (size_t)(longest * cols + 1));
    double *values = malloc(sizeof(double) * (size_t)(longest * cols + 1));
    attention_shape open = *s;
    assert_true(keys && values);
    open.left = open.right = 0;
    open.causal = false;
    for (int64_t b = 0; b < s->batch; b++)
        for (int64_t query = 0; query < s->seqlens_q[b]; query++) {
            int64_t first = attention_total(s->seqlens_k, b), count = 0;
            int64_t token = attention_total(s->seqlens_q, b) + query;
            for (int64_t key = 0; key < s->seqlens_k[b]; key++) {
                if (!sees(s, t, b, query, key)) continue;
                memcpy(keys + count * cols, a->k.values + (first + key) * cols, sizeof(double) * (size_t)cols);
                memcpy(values + count * cols, a->v.values + (first + key) * cols, sizeof(double) * (size_t)cols);
                count++;
            }
            for (int64_t head = 0; head < s->heads; head++) {
                int64_t kv = head / (s->heads / s->kv_heads) * s->size, place = token * a->q.cols + head * s->size;
                attention_query(&open, a->q.values + place, keys + kv, values + kv, cols, 0, 1, count,
                                a->expected + place, a->allowed + place, &a->lses[head * tokens + token],
                                &a->lses_allowed[head * tokens + token]);
            }
        }
    free(keys);
    free(values);
}

static void run(kiln_stream *stream, precision p, attention_shape s, int64_t common, bool codes) {
    attention_describe("mha_paged", p, s);
    attention_tensors a = attention_create(stream, p, s);
    paged c = codes ? paged_create_codes(stream, p, s, &a, 16, s.kv_heads, 0) : paged_create(stream, p, s, &a, 16);
    trees t = trees_create(stream, s, common);
    s.rounding = attention_rounding(stream, p, s.portable);
    reference(&s, &t, &a);
    kiln_mha_paged_params params = paged_params(&c, &a, s);
    params.tree_mask = t.mask.data;
    params.tree_words = t.words;
    params.tree_nodes = t.common;
    harness_ok(operator_function(&kiln__operator_mha_paged, p)->call(stream, &params, sizeof params));
    matrix_expect(&a.out, a.expected, a.allowed);
    if (s.lse) matrix_expect(&a.lse, a.lses, a.lses_allowed);
    trees_destroy(&t);
    paged_destroy(&c, s);
    attention_destroy(&a);
}

/* Sequences of any length, whose trees may have more nodes than there are keys; windows besides. */
static void test_random(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int i = 0; i < 5; i++) {
            attention_shape s = attention_random_shape();
            run(stream, p, s, i % 2 ? random_integer(12, 70) : 0, i == 4);
        }
}

/* Trees as they are verified: behind more or fewer keys, by kernels of few rows and of many, with each size of heads
 * that has kernels of its own; and the last layer of a tree that is being drafted. */
static void test_verified(kiln_stream *stream) {
    static const int64_t sizes[] = {64, 96, 128, 256};
    for (precision p = precision_first(); p < precision_end(); p++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i += p == F32 ? 2 : 1) {
            attention_shape s = {.batch = 2, .heads = 2, .kv_heads = 1, .size = sizes[i], .varlen = true, .lse = true};
            s.seqlens_q[0] = 45;
            s.seqlens_q[1] = 5;
            s.seqlens_k[0] = 45 + random_integer(0, 60);
            s.seqlens_k[1] = random_integer(5, 70);
            run(stream, p, s, 0, i % 2);
            s.seqlens_q[0] = 4;
            run(stream, p, s, 45, !(i % 2));
            s = attention_plain(3, 520, 2, 1, sizes[i]);
            s.workspace = true;
            if (i % 2) run(stream, p, s, 40, i == 3);
        }
}

/* A mask of a chain is causal. */
static void test_chain(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++) {
        attention_shape s = attention_plain(7, 50, 2, 1, 64);
        attention_describe("mha_paged", p, s);
        attention_tensors a = attention_create(stream, p, s);
        paged c = paged_create(stream, p, s, &a, 16);
        matrix mask = matrix_create(stream, I32, 7, 1, 0, 0);
        matrix_set(&mask, (const double[]){1, 3, 7, 15, 31, 63, 127});
        kiln_mha_paged_params params = paged_params(&c, &a, s);
        params.causal = 1;
        harness_ok(operator_function(&kiln__operator_mha_paged, p)->call(stream, &params, sizeof params));
        matrix_get(&a.out);
        memcpy(a.expected, a.out.values, sizeof(double) * (size_t)(a.out.rows * a.out.cols));
        matrix_poison(&a.out);
        params.causal = 0;
        params.tree_mask = mask.data;
        params.tree_words = 1;
        harness_ok(operator_function(&kiln__operator_mha_paged, p)->call(stream, &params, sizeof params));
        matrix_expect_exact(&a.out, a.expected);
        matrix_destroy(&mask);
        paged_destroy(&c, s);
        attention_destroy(&a);
    }
}

static void test_refusals(kiln_stream *stream) {
    harness_describe("masks of trees refused");
    matrix x = matrix_create(stream, F32, 1, 8192, 0, 0);
    const kiln_operator_function *function = operator_function(&kiln__operator_mha_paged, F32);
    kiln_mha_paged_params params = {.out = x.data,
                                    .q = x.data,
                                    .k_cache = x.data,
                                    .v_cache = x.data,
                                    .block_table = x.data,
                                    .seqlens_k = x.data,
                                    .tokens = 33,
                                    .blocks = 4,
                                    .block_size = 16,
                                    .batch = 1,
                                    .max_blocks_per_seq = 2,
                                    .heads = 1,
                                    .kv_heads = 1,
                                    .head_dim = 8,
                                    .tree_mask = x.data,
                                    .tree_words = 1};
    expect_refusal(stream, function, &params, sizeof params, "tree_words");
    params.tree_nodes = 33;
    expect_refusal(stream, function, &params, sizeof params, "tree_words");
    params.tree_nodes = -1;
    expect_refusal(stream, function, &params, sizeof params, "tree_nodes");
    params.tree_nodes = 0;
    params.tree_words = -1;
    expect_refusal(stream, function, &params, sizeof params, "tree_words");
    params.tree_words = 2;
    params.tree_mask = (const uint32_t *)((const char *)x.data + 2);
    expect_refusal(stream, function, &params, sizeof params, "tree_mask");
    matrix_expect_unchanged(&x);
    matrix_destroy(&x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        on_each_device(test_random),
        on_one_device(test_verified),
        on_one_device(test_chain),
        on_one_device(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
