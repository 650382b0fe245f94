/* The block manager beside the operators that it serves, as a server calls them: what sequences attend to through its
 * tables, with shared prompts, forks and copies, is what they would attend to with keys of their own, side by side. */
#include "tests/assert_ok.h"
#include <kiln/blocks.h>
#include <kiln/ops.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

enum { BLOCKS = 12, SIZE = 4, MOST = 5, HEADS = 2, DIM = 8, COLS = HEADS * DIM, LENGTH = SIZE * MOST };

typedef struct server {
    kiln_device *device;
    kiln_stream stream;
    kiln_blocks *blocks;
    float keys[BLOCKS * SIZE][COLS], values[BLOCKS * SIZE][COLS];
} server;

/* Keys and values of a token depend on its place, as a model's do. */
static void compute(int32_t token, int64_t place, float key[COLS], float value[COLS]) {
    for (int i = 0; i < COLS; i++) {
        key[i] = sinf((float)(token * 7 + place + i));
        value[i] = cosf((float)(token + 3 * place - i));
    }
}

/* Stores what a sequence has from token first on: the manager's slots, and its tokens. */
static void store(server *s, kiln_sequence sequence, int64_t first) {
    int64_t length = 0, slots[LENGTH];
    int32_t tokens[LENGTH];
    float keys[LENGTH][COLS], values[LENGTH][COLS];
    assert_ok(kiln_blocks_get_length(s->blocks, sequence, &length));
    int64_t count = length - first;
    assert_ok(kiln_blocks_get_tokens(s->blocks, sequence, first, count, tokens));
    assert_ok(kiln_blocks_get_slots(s->blocks, sequence, first, count, slots));
    for (int64_t i = 0; i < count; i++)
        compute(tokens[i], first + i, keys[i], values[i]);
    const kiln_kv_store_params params = {.key_cache = s->keys,
                                         .value_cache = s->values,
                                         .key = keys,
                                         .value = values,
                                         .slot_mapping = slots,
                                         .tokens = count,
                                         .cols = COLS,
                                         .capacity = BLOCKS * SIZE,
                                         .index_type = KILN_INDEX_I64};
    assert_ok(kiln_kv_store_f32(&s->stream, &params));
    assert_ok(kiln_blocks_publish(s->blocks, sequence, length));
}

static kiln_sequence begin(server *s, const int32_t *tokens, int64_t count, int64_t wanted_reused) {
    kiln_sequence sequence;
    int64_t reused;
    assert_ok(kiln_blocks_begin(s->blocks, tokens, count, 0, &sequence, &reused));
    assert_int_equal(reused, wanted_reused);
    store(s, sequence, reused);
    return sequence;
}

static void append(server *s, kiln_sequence sequence, const int32_t *tokens, int64_t count, bool wanted_copy) {
    int64_t length;
    kiln_block_copy copy;
    assert_ok(kiln_blocks_get_length(s->blocks, sequence, &length));
    assert_ok(kiln_blocks_append(s->blocks, sequence, tokens, count, &copy));
    assert_int_equal(copy.from >= 0, wanted_copy);
    const kiln_kv_copy_blocks_params params = {.key_cache = s->keys,
                                               .value_cache = s->values,
                                               .pairs = &copy,
                                               .count = 1,
                                               .blocks = BLOCKS,
                                               .cols = SIZE * COLS};
    assert_ok(kiln_kv_copy_blocks_f32(&s->stream, &params));
    store(s, sequence, length);
}

/* What a query of a sequence's last place finds, with keys and values one behind the other. */
static void attend_alone(server *s, const float query[COLS], const int32_t *tokens, int64_t count, float out[COLS]) {
    float keys[LENGTH][COLS], values[LENGTH][COLS];
    for (int64_t i = 0; i < count; i++)
        compute(tokens[i], i, keys[i], values[i]);
    const kiln_mha_params params = {.out = out,
                                    .q = query,
                                    .k = keys,
                                    .v = values,
                                    .tokens = 1,
                                    .kv_tokens = count,
                                    .batch = 1,
                                    .heads = HEADS,
                                    .kv_heads = HEADS,
                                    .head_dim = DIM};
    assert_ok(kiln_mha_f32(&s->stream, &params));
}

static void assert_attends(server *s, const kiln_sequence *sequences, int64_t count, const int32_t *const *tokens,
                           const int64_t *lengths) {
    float queries[4][COLS], out[4][COLS], wanted[COLS];
    int32_t table[4][MOST], seqlens[4];
    for (int i = 0; i < 4; i++)
        compute(11, i, queries[i], wanted);
    assert_ok(kiln_blocks_get_tables(s->blocks, sequences, count, MOST, table[0], seqlens));
    const kiln_mha_paged_params params = {.out = out,
                                          .q = queries,
                                          .k_cache = s->keys,
                                          .v_cache = s->values,
                                          .block_table = table[0],
                                          .seqlens_k = seqlens,
                                          .tokens = count,
                                          .blocks = BLOCKS,
                                          .block_size = SIZE,
                                          .batch = count,
                                          .max_blocks_per_seq = MOST,
                                          .heads = HEADS,
                                          .kv_heads = HEADS,
                                          .head_dim = DIM};
    assert_ok(kiln_mha_paged_f32(&s->stream, &params));
    for (int64_t i = 0; i < count; i++) {
        assert_int_equal(seqlens[i], lengths[i]);
        attend_alone(s, queries[i], tokens[i], lengths[i], wanted);
        for (int c = 0; c < COLS; c++)
            assert_true(fabsf(out[i][c] - wanted[c]) < 1e-5f);
    }
}

static void sequences_attend_as_with_keys_of_their_own(void **state) {
    (void)state;
    static const int32_t first[] = {5, 3, 9, 1, 4, 8, 2, 7, 6, 5, 13};
    static const int32_t second[] = {5, 3, 9, 1, 4, 8, 2, 7, 12, 2};
    static const int32_t forked[] = {5, 3, 9, 1, 4, 8, 2, 7, 12, 2, 15, 16, 17, 18};
    static const int32_t kept[] = {5, 3, 9, 1, 4, 8, 2, 7, 12, 2, 20};
    static server s;
    const kiln_device_options cpu = {.backend = KILN_BACKEND_CPU, .threads = 1};
    const kiln_blocks_options options = {
        .block_count = BLOCKS, .block_size = SIZE, .max_sequences = 4, .max_blocks = MOST};
    assert_ok(kiln_device_open(&cpu, &s.device));
    assert_ok(kiln_stream_open(s.device, 0, &s.stream));
    assert_ok(kiln_blocks_create(&options, &s.blocks));

    kiln_sequence a = begin(&s, first, 11, 0);
    kiln_sequence b = begin(&s, second, 10, 8);
    kiln_sequence c;
    assert_ok(kiln_blocks_fork(s.blocks, b, &c));
    append(&s, c, forked + 10, 4, true);
    append(&s, b, kept + 10, 1, false);
    assert_attends(&s, (kiln_sequence[]){a, b, c}, 3, (const int32_t *[]){first, kept, forked},
                   (int64_t[]){11, 11, 14});

    kiln_blocks_end(s.blocks, b);
    kiln_sequence d = begin(&s, forked, 14, 12);
    assert_attends(&s, (kiln_sequence[]){c, d, a}, 3, (const int32_t *[]){forked, forked, first},
                   (int64_t[]){14, 14, 11});
    kiln_blocks_destroy(s.blocks);
    kiln_stream_close(&s.stream);
    kiln_device_close(s.device);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(sequences_attend_as_with_keys_of_their_own)};
    return cmocka_run_group_tests_name("blocks_operators", tests, NULL, NULL);
}
