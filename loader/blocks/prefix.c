/* Published blocks, in a hash table of lists. The key consists of the preceding block, by number and serial number, and
 * the tokens. A chain of blocks is thus a prompt, which is compared token by token. */
#include "loader/blocks/manager.h"
#include <string.h>

/* Multiply and fold, a word at a time; the constant is the golden ratio's, as in splitmix64. */
static uint64_t mix(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

static uint32_t bucket_of(const kiln_blocks *blocks, kiln__prefix parent, const int32_t *tokens) {
    uint64_t hash = mix(mix(blocks->options.seed, (uint32_t)parent.block), parent.serial);
    for (int32_t i = 0; i < blocks->options.block_size; i++)
        hash = mix(hash, (uint32_t)tokens[i]);
    return (uint32_t)(hash >> 32) & blocks->bucket_mask;
}

static const int32_t *tokens_of(const kiln_blocks *blocks, int32_t block) {
    return blocks->tokens + (int64_t)block * blocks->options.block_size;
}

static int32_t find_in(const kiln_blocks *blocks, uint32_t bucket, kiln__prefix parent, const int32_t *tokens) {
    const size_t bytes = (size_t)blocks->options.block_size * sizeof *tokens;
    int32_t block = blocks->buckets[bucket];
    while (block != KILN__NO_BLOCK) {
        const kiln__block *b = &blocks->blocks[block];
        if (b->parent.block == parent.block && b->parent.serial == parent.serial &&
            !memcmp(tokens_of(blocks, block), tokens, bytes))
            return block;
        block = b->same_next;
    }
    return KILN__NO_BLOCK;
}

int32_t kiln__prefix_find(const kiln_blocks *blocks, kiln__prefix parent, const int32_t *tokens) {
    return find_in(blocks, bucket_of(blocks, parent, tokens), parent, tokens);
}

void kiln__prefix_add(kiln_blocks *blocks, kiln__prefix parent, int32_t block) {
    kiln__block *b = &blocks->blocks[block];
    if (b->published) return;
    b->bucket = bucket_of(blocks, parent, tokens_of(blocks, block));
    b->parent = parent;
    b->published = true;
    b->same_prev = KILN__NO_BLOCK;
    b->same_next = blocks->buckets[b->bucket];
    if (b->same_next != KILN__NO_BLOCK) blocks->blocks[b->same_next].same_prev = block;
    blocks->buckets[b->bucket] = block;
    blocks->info.reusable_blocks++;
}

void kiln__prefix_remove(kiln_blocks *blocks, int32_t block) {
    kiln__block *b = &blocks->blocks[block];
    if (!b->published) return;
    if (b->same_prev == KILN__NO_BLOCK)
        blocks->buckets[b->bucket] = b->same_next;
    else
        blocks->blocks[b->same_prev].same_next = b->same_next;
    if (b->same_next != KILN__NO_BLOCK) blocks->blocks[b->same_next].same_prev = b->same_prev;
    b->published = false;
    b->serial++;
    blocks->info.reusable_blocks--;
}

kiln__prefix kiln__prefix_of(const kiln_blocks *blocks, int32_t block) {
    return (kiln__prefix){block, blocks->blocks[block].serial};
}

bool kiln__prefix_holds(const kiln_blocks *blocks, kiln__prefix prefix) {
    if (prefix.block == KILN__NO_BLOCK) return true;
    const kiln__block *b = &blocks->blocks[prefix.block];
    return b->published && b->serial == prefix.serial;
}
