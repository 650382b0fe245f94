/* mha_paged bit for bit against mha on the keys that it gathers; and at the edges of what a group does against f64. */
#include "tests/ops/attention.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A cache that has the keys and values of some sequences in blocks that lie anywhere in it. */
typedef struct paged {
    int64_t block_size, blocks, max_blocks_per_seq;
    matrix caches[2], block_table, lengths;
    matrix workspace; /* if there is one */
    size_t workspace_size;
} paged;

/* The numbers below count in any order, to be freed. */
static int64_t *shuffled(int64_t count) {
    int64_t *order = malloc(sizeof *order * (size_t)count);
    assert_non_null(order);
    for (int64_t i = 0; i < count; i++)
        order[i] = i;
    for (int64_t i = count - 1; i > 0; i--) {
        int64_t other = random_integer(0, i), block = order[i];
        order[i] = order[other];
        order[other] = block;
    }
    return order;
}

/* Copies a sequence's key of this number and its value into a row of the caches. */
static void cache_key(paged *c, attention_shape s, const attention_tensors *t, int64_t sequence, int64_t key,
                      int64_t row) {
    int64_t cols = t->k.cols, from = (attention_total(s.seqlens_k, sequence) + key) * cols;
    memcpy(c->caches[0].values + row * cols, t->k.values + from, sizeof(double) * (size_t)cols);
    memcpy(c->caches[1].values + row * cols, t->v.values + from, sizeof(double) * (size_t)cols);
}

/* What no sequence owns is NaN, and entries of block_table that no key needs are anything. */
static void paged_fill(paged *c, attention_shape s, const attention_tensors *t) {
    int64_t *order = shuffled(c->blocks), used = 0;
    for (int64_t i = 0; i < c->blocks * c->block_size * t->k.cols; i++)
        c->caches[0].values[i] = c->caches[1].values[i] = NAN;
    for (int64_t b = 0; b < s.batch; b++) {
        c->lengths.values[b] = (double)s.seqlens_k[b];
        for (int64_t i = 0; i < c->max_blocks_per_seq; i++) {
            bool needed = i * c->block_size < s.seqlens_k[b];
            int64_t block = needed ? order[used++] : random_integer(-9, 1 << 20);
            c->block_table.values[b * c->max_blocks_per_seq + i] = (double)block;
            for (int64_t j = i * c->block_size; needed && j < (i + 1) * c->block_size && j < s.seqlens_k[b]; j++)
                cache_key(c, s, t, b, j, block * c->block_size + j % c->block_size);
        }
    }
    free(order);
}

static kiln_mha_paged_params paged_params(const paged *c, const attention_tensors *t, attention_shape s) {
    return (kiln_mha_paged_params){.out = t->out.data,
                                   .lse = s.lse ? t->lse.data : NULL,
                                   .q = t->q.data,
                                   .k_cache = c->caches[0].data,
                                   .v_cache = c->caches[1].data,
                                   .block_table = c->block_table.data,
                                   .seqlens_k = c->lengths.data,
                                   .cu_seqlens_q = s.varlen ? t->cu_seqlens_q.data : NULL,
                                   .tokens = t->q.rows,
                                   .blocks = c->blocks,
                                   .block_size = c->block_size,
                                   .batch = s.batch,
                                   .max_blocks_per_seq = c->max_blocks_per_seq,
                                   .max_seqlen_q = s.varlen ? attention_longest(s.seqlens_q, s.batch) : 0,
                                   .heads = s.heads,
                                   .kv_heads = s.kv_heads,
                                   .head_dim = s.size,
                                   .out_stride = t->out.stride,
                                   .q_stride = t->q.stride,
                                   .k_cache_stride = c->caches[0].stride,
                                   .v_cache_stride = c->caches[1].stride,
                                   .window_left = s.left,
                                   .window_right = s.right,
                                   .scale = (float)s.scale,
                                   .softcap = (float)s.softcap,
                                   .workspace = c->workspace_size ? c->workspace.data : NULL,
                                   .workspace_size = c->workspace_size,
                                   .causal = s.causal,
                                   .kernel = s.portable ? KILN_MHA_KERNEL_PORTABLE : KILN_MHA_KERNEL_AUTO};
}

static paged paged_create(kiln_stream *stream, precision p, attention_shape s, const attention_tensors *t,
                          int64_t block_size) {
    paged c = {.block_size = block_size};
    /* Keys are divided as mha divides them only if the table has room for the longest sequence and no more. */
    c.max_blocks_per_seq =
        (attention_longest(s.seqlens_k, s.batch) + block_size - 1) / block_size + (s.workspace ? 0 : 1);
    c.blocks = s.batch * c.max_blocks_per_seq + 3;
    for (int i = 0; i < 2; i++)
        c.caches[i] = matrix_create(stream, p, c.blocks * block_size, t->k.cols, t->k.cols + s.padding, s.place);
    c.block_table = matrix_create(stream, I32, s.batch, c.max_blocks_per_seq, 0, 0);
    c.lengths = matrix_create(stream, I32, 1, s.batch, 0, 0);
    paged_fill(&c, s, t);
    matrix *all[] = {&c.caches[0], &c.caches[1], &c.block_table, &c.lengths};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        matrix_set(all[i], all[i]->values);
    if (s.workspace) {
        kiln_mha_paged_params params = paged_params(&c, t, s);
        harness_ok(
            operator_function("mha_paged", p)->workspace_size(stream, &params, sizeof params, &c.workspace_size));
        c.workspace = matrix_create(stream, F32, 1, (int64_t)c.workspace_size / 4, 0, 0);
    }
    return c;
}

static void paged_destroy(paged *c, attention_shape s) {
    matrix_destroy(&c->caches[0]);
    matrix_destroy(&c->caches[1]);
    matrix_destroy(&c->block_table);
    matrix_destroy(&c->lengths);
    if (!s.workspace) return;
    matrix_get(&c->workspace); /* nothing around it is written */
    matrix_destroy(&c->workspace);
}

static void run(kiln_stream *stream, precision p, attention_shape s) {
    attention_describe("mha_paged", p, s);
    attention_tensors t = attention_create(stream, p, s);
    s.rounding = attention_rounding(stream, p, s.portable);
    attention_reference(&s, &t);
    paged c = paged_create(stream, p, s, &t, 16);
    kiln_mha_paged_params params = paged_params(&c, &t, s);
    harness_ok(operator_function("mha_paged", p)->call(stream, &params, sizeof params));
    matrix_expect(&t.out, t.expected, t.allowed);
    if (s.lse)
        matrix_expect(&t.lse, t.lses, t.lses_allowed);
    else
        matrix_expect_unchanged(&t.lse);
    paged_destroy(&c, s);
    attention_destroy(&t);
}

/* The same keys and values in a cache and contiguous: bit for bit the same. */
static void run_both(kiln_stream *stream, precision p, attention_shape s, int64_t block_size) {
    attention_describe("mha_paged", p, s);
    attention_tensors t = attention_create(stream, p, s);
    paged c = paged_create(stream, p, s, &t, block_size);
    kiln_mha_paged_params params = paged_params(&c, &t, s);
    kiln_mha_params contiguous = attention_mha_params(&t, s);
    contiguous.cu_seqlens_k = t.cu_seqlens_k.data; /* whatever cu_seqlens_q are */
    contiguous.max_seqlen_k = attention_longest(s.seqlens_k, s.batch);
    contiguous.lse = NULL;
    contiguous.workspace = params.workspace;
    contiguous.workspace_size = params.workspace_size;
    harness_ok(operator_function("mha", p)->call(stream, &contiguous, sizeof contiguous));
    matrix_get(&t.out);
    double *gathered = malloc(sizeof(double) * (size_t)(t.out.rows * t.out.cols + 1));
    assert_non_null(gathered);
    memcpy(gathered, t.out.values, sizeof(double) * (size_t)(t.out.rows * t.out.cols));
    matrix_poison(&t.out);
    harness_ok(operator_function("mha_paged", p)->call(stream, &params, sizeof params));
    matrix_expect_exact(&t.out, gathered);
    if (s.lse) {
        s.rounding = attention_rounding(stream, p, s.portable);
        attention_reference(&s, &t);
        matrix_expect(&t.lse, t.lses, t.lses_allowed);
    }
    free(gathered);
    paged_destroy(&c, s);
    attention_destroy(&t);
}

static void test_edges(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++)
        attention_edges(stream, p, run);
}

static void test_like_mha(kiln_stream *stream) {
    static const int64_t blocks[] = {1, 8, 16, 32, 64, 128, 256};
    for (precision p = precision_first(); p < precision_end(); p++)
        for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
            attention_shape s = attention_random_shape();
            s.varlen = true;
            run_both(stream, p, s, blocks[i]);
        }
}

/* A token each, as when tokens are generated: one sequence is long, and groups share its keys. */
static void test_decode(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++) {
        attention_shape s = {.batch = 3, .heads = 4, .kv_heads = 1, .size = 64, .seqlens_q = {1, 1, 1}};
        s.seqlens_k[0] = 37;
        s.seqlens_k[1] = 1024;
        s.seqlens_k[2] = 300;
        s.lse = true;
        s.workspace = true;
        for (int64_t block_size = 16; block_size <= 256; block_size *= 2)
            if (harness_on_cpu(stream) || block_size == 64) run_both(stream, p, s, block_size);
        s.workspace = false;
        s.seqlens_k[1] = 0;
        run_both(stream, p, s, 16);
    }
}

static void test_queries_of_no_sequence(kiln_stream *stream) {
    for (precision p = precision_first(); p < precision_end(); p++)
        for (int shared = 0; shared < 2; shared++) {
            attention_shape s = attention_unowned(shared);
            attention_describe("mha_paged", p, s);
            attention_tensors t = attention_create(stream, p, s);
            paged c = paged_create(stream, p, s, &t, 32);
            kiln_mha_paged_params params = paged_params(&c, &t, s);
            attention_unowned_set(&t);
            harness_ok(operator_function("mha_paged", p)->call(stream, &params, sizeof params));
            attention_unowned_expect(&t);
            paged_destroy(&c, s);
            attention_destroy(&t);
        }
}

/* Blocks that the cache does not have, and lengths beyond the block_table or below zero: whatever is computed, nothing
 * outside of the caches is read. */
static void test_wrong_tables(kiln_stream *stream) {
    static const double wrong[] = {-1, INT32_MIN, INT32_MAX, 1 << 20}, lengths[] = {1 << 30, -3, INT32_MAX};
    attention_shape s = {.batch = 3,
                         .heads = 2,
                         .kv_heads = 1,
                         .size = 16,
                         .seqlens_q = {1, 1, 1},
                         .seqlens_k = {20, 3, 40},
                         .place = AT_END};
    for (precision p = precision_first(); p < precision_end(); p++) {
        harness_describe("mha_paged_%s with wrong block_table", precision_name(p));
        attention_tensors t = attention_create(stream, p, s);
        paged c = paged_create(stream, p, s, &t, 16);
        kiln_mha_paged_params params = paged_params(&c, &t, s);
        for (int64_t i = 0; i < s.batch * c.max_blocks_per_seq; i++)
            c.block_table.values[i] = wrong[i % 4];
        matrix_set(&c.block_table, c.block_table.values);
        matrix_set(&c.lengths, lengths);
        harness_ok(operator_function("mha_paged", p)->call(stream, &params, sizeof params));
        matrix_get(&t.out);
        matrix_expect_unchanged(&t.lse);
        paged_destroy(&c, s);
        attention_destroy(&t);
    }
}

static void test_refusals(kiln_stream *stream) {
    harness_describe("mha_paged refused");
    matrix x = matrix_create(stream, F32, 1, 8192, 0, 0);
    const kiln_operator_function *function = operator_function("mha_paged", F32);
    kiln_mha_paged_params params = {.out = x.data,
                                    .q = x.data,
                                    .k_cache = x.data,
                                    .v_cache = x.data,
                                    .block_table = x.data,
                                    .seqlens_k = x.data,
                                    .tokens = 1,
                                    .blocks = 4,
                                    .block_size = 12,
                                    .batch = 1,
                                    .max_blocks_per_seq = 2,
                                    .heads = 1,
                                    .kv_heads = 1,
                                    .head_dim = 8};
    expect_refusal(stream, function, &params, sizeof params, "block_size");
    params.block_size = 16;
    params.max_seqlen_q = 1;
    expect_refusal(stream, function, &params, sizeof params, "max_seqlen_q");
    params.max_seqlen_q = 0;
    params.window_left = -1;
    expect_refusal(stream, function, &params, sizeof params, "window_left");
    params.window_left = 0;
    params.max_blocks_per_seq = INT32_MAX / 8;
    expect_refusal(stream, function, &params, sizeof params, "max_blocks_per_seq");
    matrix_expect_unchanged(&x);
    matrix_destroy(&x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        on_each_device(test_wrong_tables), on_each_device(test_queries_of_no_sequence),
        on_each_device(test_like_mha),     on_each_device(test_decode),
        on_one_device(test_edges),         on_one_device(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
