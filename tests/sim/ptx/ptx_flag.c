/* Order by flags in shared memory: a warp that acquires a word comes after what those that released it did before.
 *
 * A release begins another epoch of the block, and the word remembers which. For a warp that acquires it, touches of
 * earlier epochs no longer count: those of the releasing warp, which speaks for all its lanes, and those of others that
 * it may have come after. So what a warp does after its release counts, and no order that there is gets lost.
 * (PTX ISA, "Memory Consistency Model".) */
#include "tests/sim/ptx/ptx_shared.h"
#include <stdlib.h>

typedef struct ptx_flag {
    uint64_t address;
    uint32_t epoch; /* that began with the release */
    uint32_t warp;  /* that released it last */
} ptx_flag;

static ptx_flag *flag_at(const ptx_block *block, uint64_t address) {
    for (uint32_t i = 0; i < block->flag_count; i++)
        if (block->flags[i].address == address) return &block->flags[i];
    return NULL;
}

static ptx_flag *flag_add(ptx_block *block, uint64_t address) {
    if (block->flag_count == block->flag_room) {
        block->flag_room = block->flag_room ? block->flag_room * 2 : 16;
        block->flags = realloc(block->flags, block->flag_room * sizeof *block->flags);
        if (!block->flags) abort();
    }
    ptx_flag *flag = &block->flags[block->flag_count++];
    flag->address = address;
    return flag;
}

void ptx_flag_release(const ptx_warp *warp, uint64_t address) {
    ptx_flag *flag = flag_at(warp->block, address);
    if (!flag) flag = flag_add(warp->block, address);
    flag->epoch = ++warp->block->epoch;
    flag->warp = warp->number;
}

void ptx_flag_acquire(ptx_warp *warp, uint64_t address) {
    const ptx_flag *flag = flag_at(warp->block, address);
    if (flag && flag->epoch > warp->since) warp->since = flag->epoch;
}

void ptx_flag_forget(const ptx_warp *warp, uint64_t address, uint32_t size) {
    ptx_block *block = warp->block;
    for (uint32_t i = 0; i < block->flag_count;) {
        if (block->flags[i].address - address < size && block->flags[i].warp != warp->number)
            block->flags[i] = block->flags[--block->flag_count];
        else
            i++;
    }
}
