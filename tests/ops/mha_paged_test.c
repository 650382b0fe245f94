/* mha_paged bit for bit against mha on the keys that it gathers; and at the edges of what a group does against f64. */
#include "tests/ops/paged.h"
#include <stdlib.h>
#include <string.h>

static void run(kiln_stream *stream, precision p, attention_shape s) {
    attention_describe("mha_paged", p, s);
    attention_tensors t = attention_create(stream, p, s);
    s.rounding = attention_rounding(stream, p, s.portable);
    if (harness_needs_reference()) attention_reference(&s, &t);
    paged c = paged_create(stream, p, s, &t, 16);
    kiln_mha_paged_params params = paged_params(&c, &t, s);
    harness_ok(operator_function(&kiln__operator_mha_paged, p)->call(stream, &params, sizeof params));
    matrix_expect(&t.out, t.expected, t.allowed);
    if (s.lse)
        matrix_expect(&t.lse, t.lses, t.lses_allowed);
    else
        matrix_expect_unchanged(&t.lse);
    paged_destroy(&c, s);
    attention_destroy(&t);
}

/* With room for as many keys of a sequence, blocks of a cluster may share them, whatever the sequences have. */
enum { MANY_KEYS = 512 };

/* The same keys and values in a cache and contiguous: bit for bit the same, unless keys may be divided for the cache's
 * room and not for the sequences' lengths. */
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
    harness_ok(operator_function(&kiln__operator_mha, p)->call(stream, &contiguous, sizeof contiguous));
    matrix_get(&t.out);
    double *gathered = malloc(sizeof(double) * (size_t)(t.out.rows * t.out.cols + 1));
    assert_non_null(gathered);
    memcpy(gathered, t.out.values, sizeof(double) * (size_t)(t.out.rows * t.out.cols));
    matrix_poison(&t.out);
    harness_ok(operator_function(&kiln__operator_mha_paged, p)->call(stream, &params, sizeof params));
    const bool divides = params.max_blocks_per_seq * params.block_size >= MANY_KEYS;
    const bool alike = !divides || contiguous.max_seqlen_k >= MANY_KEYS;
    if (s.lse || !alike) {
        s.rounding = attention_rounding(stream, p, s.portable);
        if (harness_needs_reference()) attention_reference(&s, &t);
    }
    if (alike)
        matrix_expect_exact(&t.out, gathered);
    else
        matrix_expect(&t.out, t.expected, t.allowed);
    if (s.lse) matrix_expect(&t.lse, t.lses, t.lses_allowed);
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
        if (p == F32) continue;
        /* So many keys that blocks share them by a second launch, and more heads than there are multiprocessors. */
        s = attention_plain(1, 4128, 2, 1, 32);
        s.lse = s.workspace = true;
        run_both(stream, p, s, 32);
        run_both(stream, p, attention_plain(1, 70, 140, 140, 64), 8);
    }
}

/* More rows than a block has, and several tiles of keys, for each kernel that tuned images have by the size of heads:
 * blocks that have all keys, and that share them. */
static void test_head_sizes(kiln_stream *stream) {
    static const int64_t sizes[] = {64, 72, 96, 128, 136, 192, 256};
    for (precision p = precision_first(); p < precision_end(); p++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i += p == F32 ? 3 : 1) {
            attention_shape s = attention_plain(random_integer(43, 50), 160, 3, 1, sizes[i]);
            s.lse = true;
            s.causal = i % 2;
            run_both(stream, p, s, 32);
            s = attention_plain(random_integer(6, 9), 544, 3, 1, sizes[i]);
            s.workspace = true;
            s.left = i % 2 ? 300 : 0;
            run_both(stream, p, s, 32);
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
            harness_ok(operator_function(&kiln__operator_mha_paged, p)->call(stream, &params, sizeof params));
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
        harness_ok(operator_function(&kiln__operator_mha_paged, p)->call(stream, &params, sizeof params));
        matrix_get(&t.out);
        matrix_expect_unchanged(&t.lse);
        paged_destroy(&c, s);
        attention_destroy(&t);
    }
}

static void test_refusals(kiln_stream *stream) {
    harness_describe("mha_paged refused");
    matrix x = matrix_create(stream, F32, 1, 8192, 0, 0);
    const kiln_operator_function *function = operator_function(&kiln__operator_mha_paged, F32);
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
        on_each_device(test_head_sizes),   on_one_device(test_edges),
        on_one_device(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
