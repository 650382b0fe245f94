/* How many sequences hold each block, and the list of blocks that none holds. Published blocks are added at its end, to
 * stay reusable as long as possible. */
#include "loader/blocks/manager.h"

static void insert(kiln_blocks *blocks, int32_t block, bool at_end) {
    kiln__block *b = &blocks->blocks[block];
    b->free_prev = at_end ? blocks->free_last : KILN__NO_BLOCK;
    b->free_next = at_end ? KILN__NO_BLOCK : blocks->free_first;
    if (b->free_prev == KILN__NO_BLOCK)
        blocks->free_first = block;
    else
        blocks->blocks[b->free_prev].free_next = block;
    if (b->free_next == KILN__NO_BLOCK)
        blocks->free_last = block;
    else
        blocks->blocks[b->free_next].free_prev = block;
    blocks->info.free_blocks++;
}

static void unlink_free(kiln_blocks *blocks, int32_t block) {
    const kiln__block *b = &blocks->blocks[block];
    if (b->free_prev == KILN__NO_BLOCK)
        blocks->free_first = b->free_next;
    else
        blocks->blocks[b->free_prev].free_next = b->free_next;
    if (b->free_next == KILN__NO_BLOCK)
        blocks->free_last = b->free_prev;
    else
        blocks->blocks[b->free_next].free_prev = b->free_prev;
    blocks->info.free_blocks--;
}

void kiln__pool_fill(kiln_blocks *blocks) {
    blocks->free_first = blocks->free_last = KILN__NO_BLOCK;
    for (int32_t block = 0; block < blocks->options.block_count; block++)
        insert(blocks, block, true);
}

int32_t kiln__pool_take(kiln_blocks *blocks) {
    int32_t block = blocks->free_first;
    unlink_free(blocks, block);
    if (blocks->blocks[block].published) {
        kiln__prefix_remove(blocks, block);
        blocks->info.evictions++;
    }
    blocks->blocks[block].holders = 1;
    return block;
}

void kiln__pool_hold(kiln_blocks *blocks, int32_t block) {
    if (!blocks->blocks[block].holders++) unlink_free(blocks, block);
}

void kiln__pool_release(kiln_blocks *blocks, int32_t block) {
    if (!--blocks->blocks[block].holders) insert(blocks, block, blocks->blocks[block].published);
}
