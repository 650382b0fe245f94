/* The block manager: what is promised of each call, and a million random calls beside a naive model, which keeps
 * every sequence's tokens, counts holders in the tables, and fills a cache as the kernels would: each token finds its
 * own key. */
#include "tests/assert_ok.h"
#include <kiln/blocks.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static kiln_blocks *manager_of(int32_t block_count, int32_t block_size, int32_t sequences, int32_t max_blocks) {
    kiln_blocks *blocks;
    assert_ok(kiln_blocks_create(
        &(kiln_blocks_options){
            .block_count = block_count, .block_size = block_size, .max_sequences = sequences, .max_blocks = max_blocks},
        &blocks));
    return blocks;
}

static kiln_blocks_info info_of(const kiln_blocks *blocks) {
    kiln_blocks_info info;
    assert_ok(kiln_blocks_get_info(blocks, &info));
    return info;
}

static kiln_sequence begin(kiln_blocks *blocks, const int32_t *tokens, int64_t count, int64_t reused) {
    kiln_sequence sequence;
    int64_t found;
    assert_ok(kiln_blocks_begin(blocks, tokens, count, 0, &sequence, &found));
    assert_int_equal(found, reused);
    return sequence;
}

static void assert_fails(kiln_status got, kiln_status wanted, const char *text) {
    assert_int_equal(got, wanted);
    if (!strstr(kiln_last_error(), text)) fail_msg("\"%s\" does not say \"%s\"", kiln_last_error(), text);
}

/* ---- One promise each -------------------------------------------------------------------------------------------- */

static const int32_t story[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};

static void a_prompt_is_reused_by_whole_blocks(void **state) {
    (void)state;
    kiln_blocks *blocks = manager_of(8, 4, 4, 8);
    kiln_sequence first = begin(blocks, story, 10, 0);
    kiln_sequence early = begin(blocks, story, 10, 0); /* nothing is published yet */
    kiln_blocks_end(blocks, early);
    assert_ok(kiln_blocks_publish(blocks, first, 10));
    assert_int_equal(info_of(blocks).reusable_blocks, 2);
    kiln_sequence second = begin(blocks, story, 10, 8);
    assert_int_equal(info_of(blocks).free_blocks, 8 - 4);

    int64_t slots[2][10];
    assert_ok(kiln_blocks_get_slots(blocks, first, 0, 10, slots[0]));
    assert_ok(kiln_blocks_get_slots(blocks, second, 0, 10, slots[1]));
    assert_memory_equal(slots[0], slots[1], 8 * sizeof(int64_t));
    assert_int_not_equal(slots[0][8], slots[1][8]);
    assert_int_equal(slots[1][9], slots[1][8] + 1);

    /* The last token's logits are wanted: a prompt of just the two blocks reuses one of them. */
    kiln_sequence third = begin(blocks, story, 8, 4);
    /* A block after other tokens is another block. */
    const int32_t other[] = {9, 9, 9, 9, 5, 6, 7, 8, 9};
    kiln_blocks_end(blocks, third);
    kiln_blocks_end(blocks, begin(blocks, other, 9, 0));
    kiln_blocks_end(blocks, first);
    kiln_blocks_end(blocks, second);
    assert_int_equal(info_of(blocks).free_blocks, 8);
    kiln_blocks_end(blocks, begin(blocks, story, 12, 8)); /* still there */

    kiln_sequence tenant;
    int64_t reused;
    assert_ok(kiln_blocks_begin(blocks, story, 12, 7, &tenant, &reused));
    assert_int_equal(reused, 0);
    kiln_blocks_end(blocks, tenant);
    kiln_blocks_forget(blocks);
    assert_int_equal(info_of(blocks).reusable_blocks, 0);
    kiln_blocks_end(blocks, begin(blocks, story, 12, 0));
    kiln_blocks_destroy(blocks);
}

static void what_ran_before_forgetting_is_not_published(void **state) {
    (void)state;
    kiln_blocks *blocks = manager_of(8, 4, 4, 8);
    kiln_sequence old = begin(blocks, story, 12, 0);
    kiln_blocks_forget(blocks);
    assert_ok(kiln_blocks_publish(blocks, old, 12));
    assert_int_equal(info_of(blocks).reusable_blocks, 0);
    kiln_blocks_destroy(blocks);
}

static void a_fork_copies_when_it_writes(void **state) {
    (void)state;
    kiln_blocks *blocks = manager_of(8, 4, 4, 8);
    kiln_sequence parent = begin(blocks, story, 6, 0), child;
    assert_ok(kiln_blocks_fork(blocks, parent, &child));
    assert_int_equal(info_of(blocks).free_blocks, 6);

    int32_t table[2][3];
    kiln_block_copy copy;
    assert_ok(kiln_blocks_get_tables(blocks, (kiln_sequence[]){parent, child}, 2, 3, table[0], NULL));
    assert_memory_equal(table[0], table[1], 2 * sizeof(int32_t));
    assert_ok(kiln_blocks_append(blocks, child, (int32_t[]){70}, 1, &copy));
    assert_int_equal(copy.from, table[0][1]);
    assert_ok(kiln_blocks_get_tables(blocks, (kiln_sequence[]){parent, child}, 2, 3, table[0], NULL));
    assert_int_equal(copy.to, table[1][1]);
    assert_int_not_equal(copy.to, table[0][1]);
    /* The other one has its block to itself now. */
    assert_ok(kiln_blocks_append(blocks, parent, (int32_t[]){71}, 1, &copy));
    assert_int_equal(copy.from, -1);

    int32_t tokens[7];
    assert_ok(kiln_blocks_get_tokens(blocks, child, 0, 7, tokens));
    assert_memory_equal(tokens, ((int32_t[]){1, 2, 3, 4, 5, 6, 70}), sizeof tokens);
    assert_ok(kiln_blocks_get_tokens(blocks, parent, 0, 7, tokens));
    assert_int_equal(tokens[6], 71);
    kiln_blocks_destroy(blocks);
}

static void out_of_blocks_changes_nothing(void **state) {
    (void)state;
    kiln_blocks *blocks = manager_of(4, 4, 3, 8);
    kiln_sequence sequence = begin(blocks, story, 11, 0), child, none;
    int64_t reused = 1;
    assert_ok(kiln_blocks_publish(blocks, sequence, 11));
    kiln_blocks_info before = info_of(blocks);
    const int32_t more[] = {90, 91, 92, 93, 94, 95, 96, 97};
    assert_fails(kiln_blocks_begin(blocks, more, 8, 0, &none, &reused), KILN_ERROR_OUT_OF_MEMORY,
                 "2 blocks are needed and 1 of 4 are free");
    assert_int_equal(none, 0);
    assert_int_equal(reused, 0);
    kiln_block_copy copy;
    assert_fails(kiln_blocks_append(blocks, sequence, more, 8, &copy), KILN_ERROR_OUT_OF_MEMORY, "2 blocks are needed");
    assert_int_equal(copy.from, -1);
    assert_ok(kiln_blocks_fork(blocks, sequence, &child));
    assert_fails(kiln_blocks_append(blocks, child, more, 2, &copy), KILN_ERROR_OUT_OF_MEMORY,
                 "2 blocks are needed"); /* a copy, and the next one */
    kiln_blocks_end(blocks, child);
    kiln_blocks_info after = info_of(blocks);
    assert_memory_equal(&before, &after, sizeof before);
    int64_t length;
    assert_ok(kiln_blocks_get_length(blocks, sequence, &length));
    assert_int_equal(length, 11);
    kiln_blocks_destroy(blocks);
}

static void the_least_recently_used_go_first(void **state) {
    (void)state;
    kiln_blocks *blocks = manager_of(4, 2, 4, 4);
    kiln_sequence a = begin(blocks, (int32_t[]){1, 1, 2}, 3, 0), b = begin(blocks, (int32_t[]){3, 3, 4}, 3, 0);
    assert_ok(kiln_blocks_publish(blocks, a, 3));
    assert_ok(kiln_blocks_publish(blocks, b, 3));
    kiln_blocks_end(blocks, a);
    kiln_blocks_end(blocks, b);
    /* Two blocks hold nothing of use: they are taken before those of a and b. */
    kiln_sequence c = begin(blocks, (int32_t[]){5, 5, 6, 6}, 4, 0);
    assert_int_equal(info_of(blocks).evictions, 0);
    kiln_sequence d = begin(blocks, (int32_t[]){7}, 1, 0);
    assert_int_equal(info_of(blocks).evictions, 1); /* a's */
    kiln_blocks_end(blocks, d);
    kiln_blocks_end(blocks, begin(blocks, (int32_t[]){3, 3, 4}, 3, 2));
    kiln_blocks_end(blocks, begin(blocks, (int32_t[]){1, 1}, 2, 0));
    kiln_blocks_end(blocks, c);
    kiln_blocks_destroy(blocks);
}

static void truncated_tokens_are_not_reused(void **state) {
    (void)state;
    kiln_blocks *blocks = manager_of(8, 4, 4, 8);
    kiln_sequence sequence = begin(blocks, story, 12, 0);
    assert_ok(kiln_blocks_publish(blocks, sequence, 12));
    assert_ok(kiln_blocks_truncate(blocks, sequence, 6));
    assert_int_equal(info_of(blocks).free_blocks, 8 - 2);
    kiln_block_copy copy;
    assert_ok(kiln_blocks_append(blocks, sequence, (int32_t[]){70, 80, 90}, 3, &copy));
    assert_int_equal(copy.from, -1);
    kiln_sequence again = begin(blocks, story, 9, 4); /* the second block holds 70 and 80 now */
    assert_ok(kiln_blocks_publish(blocks, sequence, 9));
    kiln_sequence same = begin(blocks, (int32_t[]){1, 2, 3, 4, 5, 6, 70, 80, 1}, 9, 8);
    kiln_blocks_end(blocks, again);
    kiln_blocks_end(blocks, same);
    kiln_blocks_destroy(blocks);
}

static void null_arguments_are_named(kiln_blocks *blocks, kiln_sequence sequence) {
    kiln_sequence other = 5;
    int64_t number;
    int32_t words[1];
    kiln_block_copy copy;
    kiln_blocks_info info;
    assert_fails(kiln_blocks_get_info(blocks, NULL), KILN_ERROR_INVALID_ARGUMENT, "out_info is NULL");
    assert_fails(kiln_blocks_get_info(NULL, &info), KILN_ERROR_INVALID_ARGUMENT, "blocks is NULL");
    assert_fails(kiln_blocks_begin(NULL, story, 1, 0, &other, &number), KILN_ERROR_INVALID_ARGUMENT, "blocks is NULL");
    assert_fails(kiln_blocks_fork(blocks, sequence, NULL), KILN_ERROR_INVALID_ARGUMENT, "out_sequence is NULL");
    assert_fails(kiln_blocks_fork(NULL, sequence, &other), KILN_ERROR_INVALID_ARGUMENT, "blocks is NULL");
    assert_fails(kiln_blocks_append(blocks, sequence, story, 1, NULL), KILN_ERROR_INVALID_ARGUMENT, "out_copy is NULL");
    assert_fails(kiln_blocks_append(NULL, sequence, story, 1, &copy), KILN_ERROR_INVALID_ARGUMENT, "blocks is NULL");
    assert_fails(kiln_blocks_publish(NULL, sequence, 1), KILN_ERROR_INVALID_ARGUMENT, "blocks is NULL");
    assert_fails(kiln_blocks_truncate(NULL, sequence, 1), KILN_ERROR_INVALID_ARGUMENT, "blocks is NULL");
    assert_fails(kiln_blocks_get_length(blocks, sequence, NULL), KILN_ERROR_INVALID_ARGUMENT, "out_length is NULL");
    assert_fails(kiln_blocks_get_length(NULL, sequence, &number), KILN_ERROR_INVALID_ARGUMENT, "blocks is NULL");
    assert_fails(kiln_blocks_get_tokens(blocks, sequence, 0, 1, NULL), KILN_ERROR_INVALID_ARGUMENT, "out_tokens is");
    assert_fails(kiln_blocks_get_slots(blocks, sequence, 0, 1, NULL), KILN_ERROR_INVALID_ARGUMENT, "out_slots is NULL");
    assert_fails(kiln_blocks_get_tables(NULL, &sequence, 1, 1, words, NULL), KILN_ERROR_INVALID_ARGUMENT, "blocks is");
    assert_fails(kiln_blocks_get_tables(blocks, NULL, 1, 1, words, NULL), KILN_ERROR_INVALID_ARGUMENT, "sequences is");
    assert_fails(kiln_blocks_get_tables(blocks, &sequence, 1, 1, NULL, NULL), KILN_ERROR_INVALID_ARGUMENT, "out_table");
}

static void wrong_arguments_are_named(void **state) {
    (void)state;
    kiln_blocks *blocks = (kiln_blocks *)&blocks;
    const kiln_blocks_options good = {.block_count = 4, .block_size = 4, .max_sequences = 2, .max_blocks = 2};
    kiln_blocks_options wrong = good;
    assert_fails(kiln_blocks_create(&good, NULL), KILN_ERROR_INVALID_ARGUMENT, "out_blocks is NULL");
    assert_fails(kiln_blocks_create_sized(NULL, 0, &blocks), KILN_ERROR_INVALID_ARGUMENT, "options is NULL");
    assert_null(blocks);
    wrong.block_count = 0;
    assert_fails(kiln_blocks_create(&wrong, &blocks), KILN_ERROR_INVALID_ARGUMENT, "block_count is 0");
    wrong = good, wrong.block_size = -1;
    assert_fails(kiln_blocks_create(&wrong, &blocks), KILN_ERROR_INVALID_ARGUMENT, "block_size is -1");
    wrong = good, wrong.max_sequences = (1 << 24) + 1;
    assert_fails(kiln_blocks_create(&wrong, &blocks), KILN_ERROR_INVALID_ARGUMENT, "from 1 to 16777216");
    wrong = good, wrong.max_blocks = 0;
    assert_fails(kiln_blocks_create(&wrong, &blocks), KILN_ERROR_INVALID_ARGUMENT, "max_blocks is 0");
    wrong = good, wrong.max_sequences = wrong.max_blocks = 1 << 24;
    assert_fails(kiln_blocks_create(&wrong, &blocks), KILN_ERROR_INVALID_ARGUMENT, "at most 2^32");
    wrong = good, wrong.reserved = 1;
    assert_fails(kiln_blocks_create(&wrong, &blocks), KILN_ERROR_INVALID_ARGUMENT, "reserved");

    assert_ok(kiln_blocks_create(&good, &blocks));
    kiln_sequence sequence;
    int64_t number;
    kiln_block_copy copy;
    assert_fails(kiln_blocks_begin(blocks, NULL, 1, 0, &sequence, &number), KILN_ERROR_INVALID_ARGUMENT, "tokens");
    assert_fails(kiln_blocks_begin(blocks, story, -1, 0, &sequence, &number), KILN_ERROR_INVALID_ARGUMENT, "count");
    assert_fails(kiln_blocks_begin(blocks, story, 9, 0, &sequence, &number), KILN_ERROR_INVALID_ARGUMENT, "max_blocks");
    assert_fails(kiln_blocks_begin(blocks, story, 1, 0, &sequence, NULL), KILN_ERROR_INVALID_ARGUMENT, "out_reused");
    assert_fails(kiln_blocks_begin(blocks, story, 1, 0, NULL, &number), KILN_ERROR_INVALID_ARGUMENT, "out_sequence");
    assert_fails(kiln_blocks_append(blocks, 0, story, 1, &copy), KILN_ERROR_NOT_FOUND, "no sequence 0");
    sequence = begin(blocks, story, 4, 0);
    assert_fails(kiln_blocks_append(blocks, sequence, NULL, 1, &copy), KILN_ERROR_INVALID_ARGUMENT, "tokens is NULL");
    assert_fails(kiln_blocks_append(blocks, sequence, story, -1, &copy), KILN_ERROR_INVALID_ARGUMENT, "count is -1");
    assert_fails(kiln_blocks_append(blocks, sequence, story, 5, &copy), KILN_ERROR_INVALID_ARGUMENT, "max_blocks");
    assert_fails(kiln_blocks_append(blocks, sequence, story, INT64_MAX, &copy), KILN_ERROR_INVALID_ARGUMENT, "count");
    assert_fails(kiln_blocks_publish(blocks, sequence, 5), KILN_ERROR_INVALID_ARGUMENT, "has 4 tokens");
    assert_fails(kiln_blocks_truncate(blocks, sequence, 5), KILN_ERROR_INVALID_ARGUMENT, "has 4 tokens");
    assert_fails(kiln_blocks_get_slots(blocks, sequence, 1, 4, &number), KILN_ERROR_INVALID_ARGUMENT, "has 4");
    assert_fails(kiln_blocks_get_slots(blocks, sequence, -1, 1, &number), KILN_ERROR_INVALID_ARGUMENT, "[-1, + 1)");
    int32_t table[1];
    assert_fails(kiln_blocks_get_tokens(blocks, sequence, 0, 5, table), KILN_ERROR_INVALID_ARGUMENT, "has 4");
    assert_fails(kiln_blocks_get_tables(blocks, &sequence, -1, 1, table, NULL), KILN_ERROR_INVALID_ARGUMENT,
                 "count is -1");
    null_arguments_are_named(blocks, sequence);
    kiln_sequence last = begin(blocks, story, 8, 0);
    assert_fails(kiln_blocks_get_tables(blocks, &last, 1, 1, table, NULL), KILN_ERROR_INVALID_ARGUMENT, "table_stride");
    assert_fails(kiln_blocks_fork(blocks, last, &sequence), KILN_ERROR_OUT_OF_MEMORY, "max_sequences");
    kiln_blocks_end(blocks, last);
    assert_fails(kiln_blocks_get_length(blocks, last, &number), KILN_ERROR_NOT_FOUND, "not any more");
    kiln_blocks_end(blocks, last);
    kiln_blocks_end(NULL, last);
    kiln_blocks_destroy(blocks);
    kiln_blocks_destroy(NULL);
}

/* ---- A million random calls -------------------------------------------------------------------------------------- */

enum { BLOCKS = 24, SIZE = 4, SEQUENCES = 10, MOST = 8, LENGTH = SIZE * MOST, CALLS = 1000000 };

typedef struct model_sequence {
    kiln_sequence number;
    bool used;
    int64_t salt;
    int32_t length;
    int32_t tokens[LENGTH];
} model_sequence;

typedef struct model {
    kiln_blocks *blocks;
    uint64_t random;
    uint64_t cache[BLOCKS][SIZE]; /* what a kernel stored: the hash of a token and all before it */
    model_sequence sequences[SEQUENCES];
    int64_t reused, copies, refused;
} model;

static uint32_t draw(model *m, uint32_t bound) {
    m->random ^= m->random << 13;
    m->random ^= m->random >> 7;
    m->random ^= m->random << 17;
    return (uint32_t)((m->random >> 32) * bound >> 32);
}

/* The key of a token depends on all tokens before it and on the salt: the adapter that computed it. */
static uint64_t key_of(const model_sequence *s, int32_t place) {
    uint64_t key = 0xcbf29ce484222325u ^ (uint64_t)s->salt << 40;
    for (int32_t i = 0; i <= place; i++)
        key = (key ^ (uint64_t)(s->tokens[i] + 1)) * 0x100000001b3u;
    return key;
}

/* As the model runs: stores the keys of tokens [first, length). */
static void store(model *m, const model_sequence *s, int32_t first) {
    int64_t slots[LENGTH];
    assert_ok(kiln_blocks_get_slots(m->blocks, s->number, first, s->length - first, slots));
    for (int32_t i = first; i < s->length; i++)
        m->cache[slots[i - first] / SIZE][slots[i - first] % SIZE] = key_of(s, i);
}

/* Every token of a sequence, and the key that attention finds for it. */
static void check_sequence(model *m, const model_sequence *s) {
    int64_t slots[LENGTH], length;
    int32_t tokens[LENGTH];
    assert_ok(kiln_blocks_get_length(m->blocks, s->number, &length));
    assert_int_equal(length, s->length);
    assert_ok(kiln_blocks_get_tokens(m->blocks, s->number, 0, length, tokens));
    assert_memory_equal(tokens, s->tokens, (size_t)length * sizeof *tokens);
    assert_ok(kiln_blocks_get_slots(m->blocks, s->number, 0, length, slots));
    for (int32_t i = 0; i < s->length; i++)
        if (m->cache[slots[i] / SIZE][slots[i] % SIZE] != key_of(s, i))
            fail_msg("token %d of a sequence finds another one's key in slot %lld", i, (long long)slots[i]);
}

/* How often the sequences' tables have each block; what is in none is free. */
static int32_t check_free(model *m) {
    bool held[BLOCKS] = {false};
    int32_t free_blocks = BLOCKS;
    for (int i = 0; i < SEQUENCES; i++) {
        const model_sequence *s = &m->sequences[i];
        if (!s->used) continue;
        int32_t table[MOST], length;
        assert_ok(kiln_blocks_get_tables(m->blocks, &s->number, 1, MOST, table, &length));
        for (int32_t b = 0; b < (length + SIZE - 1) / SIZE; b++) {
            assert_in_range(table[b], 0, BLOCKS - 1);
            free_blocks -= !held[table[b]];
            held[table[b]] = true;
        }
    }
    assert_int_equal(info_of(m->blocks).free_blocks, free_blocks);
    return free_blocks;
}

/* Whether the last block of a sequence is in another one's table. */
static bool last_is_shared(model *m, const model_sequence *s) {
    int32_t own[MOST], other[MOST], length;
    assert_ok(kiln_blocks_get_tables(m->blocks, &s->number, 1, MOST, own, NULL));
    int32_t last = own[(s->length - 1) / SIZE];
    for (int i = 0; i < SEQUENCES; i++) {
        const model_sequence *o = &m->sequences[i];
        if (!o->used || o == s) continue;
        assert_ok(kiln_blocks_get_tables(m->blocks, &o->number, 1, MOST, other, &length));
        for (int32_t b = 0; b < (length + SIZE - 1) / SIZE; b++)
            if (other[b] == last) return true;
    }
    return false;
}

static void begin_random(model *m, model_sequence *s) {
    s->salt = draw(m, 8) == 0;
    s->length = (int32_t)draw(m, LENGTH + 1);
    for (int32_t i = 0; i < s->length; i++)
        s->tokens[i] = draw(m, 12) == 0;
    int64_t reused;
    kiln_blocks_info before = info_of(m->blocks);
    kiln_status status = kiln_blocks_begin(m->blocks, s->tokens, s->length, (uint64_t)s->salt, &s->number, &reused);
    if (status != KILN_OK) {
        /* Whatever is reused, so many blocks are not there. */
        assert_int_equal(status, KILN_ERROR_OUT_OF_MEMORY);
        kiln_blocks_info after = info_of(m->blocks);
        assert_memory_equal(&before, &after, sizeof before);
        assert_true((s->length + SIZE - 1) / SIZE > before.free_blocks);
        m->refused++;
        return;
    }
    assert_int_equal(reused % SIZE, 0);
    assert_true(reused < s->length || !reused);
    s->used = true;
    m->reused += reused;
    store(m, s, (int32_t)reused); /* the model runs on what is not reused, and on no more */
    check_sequence(m, s);
    if (draw(m, 4)) assert_ok(kiln_blocks_publish(m->blocks, s->number, s->length));
    if (s->length > SIZE && draw(m, 2)) { /* what was published is found at once, by an equal prompt */
        assert_ok(kiln_blocks_publish(m->blocks, s->number, s->length));
        kiln_sequence twin;
        int64_t found;
        int32_t free_blocks = info_of(m->blocks).free_blocks;
        status = kiln_blocks_begin(m->blocks, s->tokens, s->length, (uint64_t)s->salt, &twin, &found);
        if (status == KILN_OK) {
            assert_int_equal(found, (s->length - 1) / SIZE * SIZE);
            kiln_blocks_end(m->blocks, twin);
        } else {
            int32_t used = 0;
            for (int i = 0; i < SEQUENCES; i++)
                used += m->sequences[i].used;
            assert_true(!free_blocks || used == SEQUENCES);
        }
    }
}

static void append_random(model *m, model_sequence *s) {
    int32_t count = (int32_t)draw(m, 7), tokens[6] = {0};
    for (int32_t i = 0; i < count; i++)
        tokens[i] = draw(m, 12) == 0;
    bool copies = count && s->length % SIZE && last_is_shared(m, s);
    int32_t needed = (s->length + count + SIZE - 1) / SIZE - (s->length + SIZE - 1) / SIZE + copies;
    int32_t free_blocks = info_of(m->blocks).free_blocks;
    kiln_block_copy copy;
    kiln_status status = kiln_blocks_append(m->blocks, s->number, tokens, count, &copy);
    if (s->length + count > LENGTH) {
        assert_int_equal(status, KILN_ERROR_INVALID_ARGUMENT);
    } else if (needed > free_blocks) {
        assert_int_equal(status, KILN_ERROR_OUT_OF_MEMORY);
        m->refused++;
    } else {
        assert_ok(status);
        assert_int_equal(copy.from >= 0, copies);
        assert_int_equal(info_of(m->blocks).free_blocks, free_blocks - needed);
        if (copies) {
            memcpy(m->cache[copy.to], m->cache[copy.from], sizeof m->cache[0]);
            m->copies++;
        }
        memcpy(s->tokens + s->length, tokens, (size_t)count * sizeof *tokens);
        s->length += count;
        store(m, s, s->length - count);
    }
    check_sequence(m, s);
}

static void step(model *m) {
    model_sequence *s = &m->sequences[draw(m, SEQUENCES)], *o = &m->sequences[draw(m, SEQUENCES)];
    if (!s->used) {
        begin_random(m, s);
        return;
    }
    switch (draw(m, 8)) {
    case 0:
        if (o->used) break;
        *o = *s;
        assert_ok(kiln_blocks_fork(m->blocks, s->number, &o->number));
        check_sequence(m, o);
        break;
    case 1:
        kiln_blocks_end(m->blocks, s->number);
        s->used = false;
        break;
    case 2:
        s->length -= (int32_t)draw(m, (uint32_t)s->length + 1) * (draw(m, 2) == 0);
        assert_ok(kiln_blocks_truncate(m->blocks, s->number, s->length));
        check_sequence(m, s);
        break;
    case 3:
        assert_ok(kiln_blocks_publish(m->blocks, s->number, draw(m, (uint32_t)s->length + 1)));
        break;
    default:
        append_random(m, s);
    }
    if (!draw(m, 2000)) kiln_blocks_forget(m->blocks);
}

static void random_calls_agree_with_a_naive_model(void **state) {
    (void)state;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    model m = {.blocks = manager_of(BLOCKS, SIZE, SEQUENCES, MOST), .random = (uint64_t)now.tv_nsec | 1};
    printf("# seed %llu\n", (unsigned long long)m.random);
    for (int i = 0; i < CALLS; i++) {
        step(&m);
        if (i % 16) continue;
        check_free(&m);
        for (int j = 0; j < SEQUENCES; j++)
            if (m.sequences[j].used) check_sequence(&m, &m.sequences[j]);
    }
    printf("# %lld tokens reused, %lld copies, %lld refused, %lld evictions\n", (long long)m.reused,
           (long long)m.copies, (long long)m.refused, (long long)info_of(m.blocks).evictions);
    assert_true(m.reused > CALLS / 100 && m.copies > CALLS / 1000 && m.refused > CALLS / 1000);
    assert_true(info_of(m.blocks).evictions > CALLS / 1000);
    for (int j = 0; j < SEQUENCES; j++)
        if (m.sequences[j].used) kiln_blocks_end(m.blocks, m.sequences[j].number);
    assert_int_equal(info_of(m.blocks).free_blocks, BLOCKS);
    assert_int_equal(info_of(m.blocks).sequences, 0);
    kiln_blocks_destroy(m.blocks);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_prompt_is_reused_by_whole_blocks),
        cmocka_unit_test(what_ran_before_forgetting_is_not_published),
        cmocka_unit_test(a_fork_copies_when_it_writes),
        cmocka_unit_test(out_of_blocks_changes_nothing),
        cmocka_unit_test(the_least_recently_used_go_first),
        cmocka_unit_test(truncated_tokens_are_not_reused),
        cmocka_unit_test(wrong_arguments_are_named),
        cmocka_unit_test(random_calls_agree_with_a_naive_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
