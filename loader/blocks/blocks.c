/* The block manager: sequences and their tables. */
#include "loader/blocks/manager.h"
#include "loader/operator.h"
#include "loader/status.h"
#include <stdlib.h>
#include <string.h>

/* ---- The manager ------------------------------------------------------------------------------------------------- */

static kiln_status check_range(const char *name, int64_t value, int64_t most) {
    KILN__REQUIRE(value >= 1 && value <= most, "kiln_blocks_create: %s is %lld: must be from 1 to %lld", name,
                  (long long)value, (long long)most);
    return KILN_OK;
}

static kiln_status check_options(const kiln_blocks_options *options) {
    KILN__TRY(check_range("block_count", options->block_count, 1 << 30));
    KILN__TRY(check_range("block_size", options->block_size, 1 << 20));
    KILN__TRY(check_range("max_sequences", options->max_sequences, 1 << 24));
    KILN__TRY(check_range("max_blocks", options->max_blocks, 1 << 24));
    KILN__REQUIRE((int64_t)options->max_sequences * options->max_blocks <= (int64_t)1 << 32,
                  "kiln_blocks_create: max_sequences * max_blocks is %lld: must be at most 2^32",
                  (long long)options->max_sequences * options->max_blocks);
    KILN__REQUIRE(!options->reserved, "kiln_blocks_create: reserved is %d: must be 0", options->reserved);
    return KILN_OK;
}

/* A power of two, at least as many as blocks. */
static uint32_t bucket_count(int32_t block_count) {
    uint32_t count = 1;
    while (count < (uint32_t)block_count)
        count <<= 1;
    return count;
}

static bool allocate(kiln_blocks *blocks) {
    const kiln_blocks_options *o = &blocks->options;
    blocks->bucket_mask = bucket_count(o->block_count) - 1;
    blocks->blocks = calloc((size_t)o->block_count, sizeof *blocks->blocks);
    blocks->tokens = calloc((size_t)o->block_count * (size_t)o->block_size, sizeof *blocks->tokens);
    blocks->buckets = malloc(((size_t)blocks->bucket_mask + 1) * sizeof *blocks->buckets);
    blocks->sequences = calloc((size_t)o->max_sequences, sizeof *blocks->sequences);
    blocks->tables = calloc((size_t)o->max_sequences * (size_t)o->max_blocks, sizeof *blocks->tables);
    return blocks->blocks && blocks->tokens && blocks->buckets && blocks->sequences && blocks->tables;
}

kiln_status kiln_blocks_create_sized(const kiln_blocks_options *options, size_t options_size,
                                     kiln_blocks **out_blocks) {
    KILN__REQUIRE(out_blocks, "kiln_blocks_create: out_blocks is NULL");
    *out_blocks = NULL;
    KILN__REQUIRE(options, "kiln_blocks_create: options is NULL");
    kiln_blocks_options wanted;
    KILN__TRY(kiln__params_copy("kiln_blocks_create", "options", &wanted, sizeof wanted, options, options_size));
    KILN__TRY(check_options(&wanted));

    kiln_blocks *blocks = calloc(1, sizeof *blocks);
    if (blocks) blocks->options = wanted;
    if (!blocks || !allocate(blocks)) {
        kiln_blocks_destroy(blocks);
        return kiln__fail(KILN_ERROR_OUT_OF_MEMORY, "kiln_blocks_create: no memory for %d blocks of %d tokens",
                          wanted.block_count, wanted.block_size);
    }
    blocks->info.block_count = wanted.block_count;
    memset(blocks->buckets, 0xff, ((size_t)blocks->bucket_mask + 1) * sizeof *blocks->buckets);
    kiln__pool_fill(blocks);
    for (int32_t i = 0; i < wanted.max_sequences; i++)
        blocks->sequences[i].next = i + 1;
    *out_blocks = blocks;
    return KILN_OK;
}

void kiln_blocks_destroy(kiln_blocks *blocks) {
    if (!blocks) return;
    free(blocks->blocks);
    free(blocks->tokens);
    free(blocks->buckets);
    free(blocks->sequences);
    free(blocks->tables);
    free(blocks);
}

kiln_status kiln_blocks_get_info(const kiln_blocks *blocks, kiln_blocks_info *out_info) {
    KILN__REQUIRE(out_info, "kiln_blocks_get_info: out_info is NULL");
    *out_info = (kiln_blocks_info){0};
    KILN__REQUIRE(blocks, "kiln_blocks_get_info: blocks is NULL");
    *out_info = blocks->info;
    return KILN_OK;
}

void kiln_blocks_forget(kiln_blocks *blocks) {
    if (!blocks) return;
    for (int32_t block = 0; block < blocks->options.block_count; block++)
        kiln__prefix_remove(blocks, block);
    blocks->epoch++;
}

/* ---- Sequences --------------------------------------------------------------------------------------------------- */

static int32_t index_of(kiln_sequence number) {
    return (int32_t)(number & INT32_MAX);
}

/* The sequence of a number, or NULL. */
static kiln__sequence *find(const kiln_blocks *blocks, kiln_sequence number) {
    if (!blocks || number < 0 || index_of(number) >= blocks->options.max_sequences) return NULL;
    kiln__sequence *sequence = &blocks->sequences[index_of(number)];
    return sequence->used && sequence->generation == (uint64_t)number >> 32 ? sequence : NULL;
}

static kiln_status get(const char *name, const kiln_blocks *blocks, kiln_sequence number,
                       kiln__sequence **out_sequence) {
    KILN__REQUIRE(blocks, "%s: blocks is NULL", name);
    *out_sequence = find(blocks, number);
    if (!*out_sequence)
        return kiln__fail(KILN_ERROR_NOT_FOUND, "%s: there is no sequence %lld, or not any more", name,
                          (long long)number);
    return KILN_OK;
}

static int32_t *table_of(const kiln_blocks *blocks, const kiln__sequence *sequence) {
    return blocks->tables + (sequence - blocks->sequences) * blocks->options.max_blocks;
}

static int32_t *block_tokens(const kiln_blocks *blocks, int32_t block) {
    return blocks->tokens + (int64_t)block * blocks->options.block_size;
}

static kiln__prefix beginning(uint64_t salt) {
    return (kiln__prefix){KILN__NO_BLOCK, salt};
}

/* A place for one sequence more; it is taken by claim. */
static kiln_status find_place(const char *name, const kiln_blocks *blocks, kiln__sequence **out_sequence) {
    if (blocks->info.sequences == blocks->options.max_sequences)
        return kiln__fail(KILN_ERROR_OUT_OF_MEMORY, "%s: max_sequences, %d, are there already", name,
                          blocks->options.max_sequences);
    *out_sequence = &blocks->sequences[blocks->sequence_free];
    return KILN_OK;
}

static kiln_sequence claim(kiln_blocks *blocks, kiln__sequence *place, kiln__sequence contents) {
    contents.generation = place->generation == INT32_MAX ? 1 : place->generation + 1;
    contents.used = true;
    blocks->sequence_free = place->next;
    blocks->info.sequences++;
    *place = contents;
    return (kiln_sequence)((uint64_t)contents.generation << 32 | (uint64_t)(place - blocks->sequences));
}

/* The blocks that count tokens fill, and no more than a sequence may have. */
static kiln_status count_blocks(const char *name, const kiln_blocks *blocks, int64_t count, int32_t *out_blocks) {
    int64_t most = (int64_t)blocks->options.max_blocks * blocks->options.block_size;
    KILN__REQUIRE(count <= most, "%s: %lld tokens are more than max_blocks of block_size hold, %lld", name,
                  (long long)count, (long long)most);
    *out_blocks = (int32_t)((count + blocks->options.block_size - 1) / blocks->options.block_size);
    return KILN_OK;
}

static kiln_status check_free(const char *name, const kiln_blocks *blocks, int64_t needed, int64_t free_blocks) {
    if (needed <= free_blocks) return KILN_OK;
    return kiln__fail(KILN_ERROR_OUT_OF_MEMORY, "%s: %lld blocks are needed and %lld of %d are free", name,
                      (long long)needed, (long long)free_blocks, blocks->options.block_count);
}

/* Copies tokens into the blocks of a sequence, from its length on, which grows by them. */
static void write_tokens(kiln_blocks *blocks, kiln__sequence *sequence, const int32_t *tokens, int64_t count) {
    const int32_t *table = table_of(blocks, sequence);
    const int64_t size = blocks->options.block_size;
    while (count) {
        int64_t place = sequence->length % size, part = count < size - place ? count : size - place;
        memcpy(block_tokens(blocks, table[sequence->length / size]) + place, tokens, (size_t)part * sizeof *tokens);
        sequence->length += part;
        tokens += part;
        count -= part;
    }
}

/* Writes the published blocks with which the prompt begins into table; the last of them is *out_last. */
static int32_t match(const kiln_blocks *blocks, const int32_t *tokens, int64_t count, uint64_t salt, int32_t *table,
                     kiln__prefix *out_last) {
    *out_last = beginning(salt);
    int32_t matched = 0;
    int64_t most = count && !blocks->options.no_reuse ? (count - 1) / blocks->options.block_size : 0;
    while (matched < most) {
        int32_t block = kiln__prefix_find(blocks, *out_last, tokens + (int64_t)matched * blocks->options.block_size);
        if (block == KILN__NO_BLOCK) break;
        table[matched++] = block;
        *out_last = kiln__prefix_of(blocks, block);
    }
    return matched;
}

kiln_status kiln_blocks_begin(kiln_blocks *blocks, const int32_t *tokens, int64_t count, uint64_t salt,
                              kiln_sequence *out_sequence, int64_t *out_reused) {
    static const char name[] = "kiln_blocks_begin";
    KILN__REQUIRE(out_sequence && out_reused, "%s: %s is NULL", name, out_sequence ? "out_reused" : "out_sequence");
    *out_sequence = 0;
    *out_reused = 0;
    KILN__REQUIRE(blocks, "%s: blocks is NULL", name);
    KILN__REQUIRE(count >= 0, "%s: count is %lld: must not be negative", name, (long long)count);
    KILN__REQUIRE(tokens || !count, "%s: tokens is NULL", name);
    int32_t needed = 0;
    KILN__TRY(count_blocks(name, blocks, count, &needed));
    kiln__sequence *sequence = NULL;
    KILN__TRY(find_place(name, blocks, &sequence));

    kiln__sequence contents = {.block_count = needed, .salt = salt, .epoch = blocks->epoch};
    int32_t *table = table_of(blocks, sequence);
    contents.published = match(blocks, tokens, count, salt, table, &contents.last);
    int32_t idle = 0; /* blocks that are reused and free */
    for (int32_t i = 0; i < contents.published; i++)
        idle += !blocks->blocks[table[i]].holders;
    KILN__TRY(check_free(name, blocks, needed - contents.published, blocks->info.free_blocks - idle));

    for (int32_t i = 0; i < contents.published; i++)
        kiln__pool_hold(blocks, table[i]);
    for (int32_t i = contents.published; i < needed; i++)
        table[i] = kiln__pool_take(blocks);
    int64_t reused = contents.length = (int64_t)contents.published * blocks->options.block_size;
    *out_sequence = claim(blocks, sequence, contents);
    if (count > reused) write_tokens(blocks, sequence, tokens + reused, count - reused);
    *out_reused = reused;
    blocks->info.prompt_tokens += count;
    blocks->info.reused_tokens += reused;
    return KILN_OK;
}

kiln_status kiln_blocks_fork(kiln_blocks *blocks, kiln_sequence sequence, kiln_sequence *out_sequence) {
    static const char name[] = "kiln_blocks_fork";
    KILN__REQUIRE(out_sequence, "%s: out_sequence is NULL", name);
    *out_sequence = 0;
    kiln__sequence *held = NULL, *child = NULL;
    KILN__TRY(get(name, blocks, sequence, &held));
    KILN__TRY(find_place(name, blocks, &child));
    const int32_t *from = table_of(blocks, held);
    int32_t *table = table_of(blocks, child);
    for (int32_t i = 0; i < held->block_count; i++)
        kiln__pool_hold(blocks, table[i] = from[i]);
    *out_sequence = claim(blocks, child, *held);
    return KILN_OK;
}

/* Lets a sequence write into its last block, which is partly full. Another's gets a copy. */
static void own_last_block(kiln_blocks *blocks, kiln__sequence *held, kiln_block_copy *copy) {
    int32_t *last = &table_of(blocks, held)[held->block_count - 1];
    if (blocks->blocks[*last].holders == 1) {
        kiln__prefix_remove(blocks, *last);
        return;
    }
    *copy = (kiln_block_copy){*last, kiln__pool_take(blocks)};
    int64_t filled = held->length % blocks->options.block_size;
    memcpy(block_tokens(blocks, copy->to), block_tokens(blocks, copy->from), (size_t)filled * sizeof(int32_t));
    kiln__pool_release(blocks, copy->from);
    *last = copy->to;
}

kiln_status kiln_blocks_append(kiln_blocks *blocks, kiln_sequence sequence, const int32_t *tokens, int64_t count,
                               kiln_block_copy *out_copy) {
    static const char name[] = "kiln_blocks_append";
    KILN__REQUIRE(out_copy, "%s: out_copy is NULL", name);
    *out_copy = (kiln_block_copy){KILN__NO_BLOCK, KILN__NO_BLOCK};
    kiln__sequence *held = NULL;
    KILN__TRY(get(name, blocks, sequence, &held));
    KILN__REQUIRE(count >= 0, "%s: count is %lld: must not be negative", name, (long long)count);
    KILN__REQUIRE(tokens || !count, "%s: tokens is NULL", name);
    if (!count) return KILN_OK;
    int64_t length;
    KILN__REQUIRE(!__builtin_add_overflow(held->length, count, &length), "%s: count is %lld: is too large", name,
                  (long long)count);
    int32_t wanted = 0;
    KILN__TRY(count_blocks(name, blocks, length, &wanted));
    int32_t *table = table_of(blocks, held);
    bool partial = held->length % blocks->options.block_size;
    bool shared = partial && blocks->blocks[table[held->block_count - 1]].holders > 1;
    KILN__TRY(check_free(name, blocks, wanted - held->block_count + shared, blocks->info.free_blocks));

    if (partial) own_last_block(blocks, held, out_copy);
    while (held->block_count < wanted)
        table[held->block_count++] = kiln__pool_take(blocks);
    write_tokens(blocks, held, tokens, count);
    return KILN_OK;
}

kiln_status kiln_blocks_publish(kiln_blocks *blocks, kiln_sequence sequence, int64_t count) {
    static const char name[] = "kiln_blocks_publish";
    kiln__sequence *held = NULL;
    KILN__TRY(get(name, blocks, sequence, &held));
    KILN__REQUIRE(count >= 0 && count <= held->length, "%s: count is %lld: the sequence has %lld tokens", name,
                  (long long)count, (long long)held->length);
    if (blocks->options.no_reuse || held->epoch != blocks->epoch) return KILN_OK;
    int32_t whole = (int32_t)(count / blocks->options.block_size);
    if (whole <= held->published) return KILN_OK;
    if (!kiln__prefix_holds(blocks, held->last)) { /* another's equal block, taken meanwhile: from the beginning */
        held->published = 0;
        held->last = beginning(held->salt);
    }
    const int32_t *table = table_of(blocks, held);
    for (; held->published < whole; held->published++) {
        int32_t own = table[held->published];
        int32_t block = kiln__prefix_find(blocks, held->last, block_tokens(blocks, own));
        if (block == KILN__NO_BLOCK) {
            kiln__prefix_remove(blocks, own); /* it may stand behind a block that is gone */
            kiln__prefix_add(blocks, held->last, own);
            block = own;
        }
        held->last = kiln__prefix_of(blocks, block);
    }
    return KILN_OK;
}

/* Gives back the blocks of a table from its end down to count. */
static void shrink(kiln_blocks *blocks, kiln__sequence *held, int32_t count) {
    const int32_t *table = table_of(blocks, held);
    while (held->block_count > count)
        kiln__pool_release(blocks, table[--held->block_count]);
}

kiln_status kiln_blocks_truncate(kiln_blocks *blocks, kiln_sequence sequence, int64_t count) {
    static const char name[] = "kiln_blocks_truncate";
    kiln__sequence *held = NULL;
    KILN__TRY(get(name, blocks, sequence, &held));
    KILN__REQUIRE(count >= 0 && count <= held->length, "%s: count is %lld: the sequence has %lld tokens", name,
                  (long long)count, (long long)held->length);
    int64_t size = blocks->options.block_size;
    shrink(blocks, held, (int32_t)((count + size - 1) / size));
    held->length = count;
    if (count / size < held->published) { /* the last one published is not known: publishing finds it again */
        held->published = 0;
        held->last = beginning(held->salt);
    }
    return KILN_OK;
}

void kiln_blocks_end(kiln_blocks *blocks, kiln_sequence sequence) {
    kiln__sequence *held = find(blocks, sequence);
    if (!held) return;
    shrink(blocks, held, 0);
    held->used = false;
    held->next = blocks->sequence_free;
    blocks->sequence_free = (int32_t)(held - blocks->sequences);
    blocks->info.sequences--;
}

/* ---- What operators and the model ask ---------------------------------------------------------------------------- */

kiln_status kiln_blocks_get_length(const kiln_blocks *blocks, kiln_sequence sequence, int64_t *out_length) {
    KILN__REQUIRE(out_length, "kiln_blocks_get_length: out_length is NULL");
    *out_length = 0;
    kiln__sequence *held = NULL;
    KILN__TRY(get("kiln_blocks_get_length", blocks, sequence, &held));
    *out_length = held->length;
    return KILN_OK;
}

static kiln_status check_span(const char *name, const kiln__sequence *held, int64_t first, int64_t count) {
    KILN__REQUIRE(first >= 0 && count >= 0 && first <= held->length && count <= held->length - first,
                  "%s: tokens [%lld, + %lld): the sequence has %lld", name, (long long)first, (long long)count,
                  (long long)held->length);
    return KILN_OK;
}

kiln_status kiln_blocks_get_tokens(const kiln_blocks *blocks, kiln_sequence sequence, int64_t first, int64_t count,
                                   int32_t *out_tokens) {
    static const char name[] = "kiln_blocks_get_tokens";
    kiln__sequence *held = NULL;
    KILN__TRY(get(name, blocks, sequence, &held));
    KILN__TRY(check_span(name, held, first, count));
    KILN__REQUIRE(out_tokens || !count, "%s: out_tokens is NULL", name);
    const int32_t *table = table_of(blocks, held);
    for (int64_t i = 0; i < count; i++) {
        int64_t place = first + i, size = blocks->options.block_size;
        out_tokens[i] = block_tokens(blocks, table[place / size])[place % size];
    }
    return KILN_OK;
}

kiln_status kiln_blocks_get_slots(const kiln_blocks *blocks, kiln_sequence sequence, int64_t first, int64_t count,
                                  int64_t *out_slots) {
    static const char name[] = "kiln_blocks_get_slots";
    kiln__sequence *held = NULL;
    KILN__TRY(get(name, blocks, sequence, &held));
    KILN__TRY(check_span(name, held, first, count));
    KILN__REQUIRE(out_slots || !count, "%s: out_slots is NULL", name);
    const int32_t *table = table_of(blocks, held);
    for (int64_t i = 0; i < count; i++) {
        int64_t place = first + i, size = blocks->options.block_size;
        out_slots[i] = table[place / size] * size + place % size;
    }
    return KILN_OK;
}

kiln_status kiln_blocks_get_tables(const kiln_blocks *blocks, const kiln_sequence *sequences, int64_t count,
                                   int64_t table_stride, int32_t *out_table, int32_t *out_lengths) {
    static const char name[] = "kiln_blocks_get_tables";
    KILN__REQUIRE(blocks, "%s: blocks is NULL", name);
    KILN__REQUIRE(count >= 0, "%s: count is %lld: must not be negative", name, (long long)count);
    KILN__REQUIRE((sequences && out_table) || !count, "%s: %s is NULL", name, sequences ? "out_table" : "sequences");
    for (int64_t i = 0; i < count; i++) {
        kiln__sequence *held = NULL;
        KILN__TRY(get(name, blocks, sequences[i], &held));
        KILN__REQUIRE(table_stride >= held->block_count, "%s: table_stride is %lld: sequence %lld has %d blocks", name,
                      (long long)table_stride, (long long)sequences[i], held->block_count);
        KILN__REQUIRE(held->length <= INT32_MAX || !out_lengths, "%s: sequence %lld has %lld tokens: too many", name,
                      (long long)sequences[i], (long long)held->length);
    }
    for (int64_t i = 0; i < count; i++) {
        const kiln__sequence *held = find(blocks, sequences[i]);
        if (held->block_count)
            memcpy(out_table + i * table_stride, table_of(blocks, held), (size_t)held->block_count * sizeof *out_table);
        if (out_lengths) out_lengths[i] = (int32_t)held->length;
    }
    return KILN_OK;
}
