/* Order by flags in shared memory: who acquires a word comes after what those did who released it before.
 *
 * A lane that releases hands on what it did itself, what the lanes of its warp did before their last .sync instruction,
 * and what others had handed on to its warp; but not what other lanes of its warp did since. A warp takes together what
 * any of its lanes acquires. (PTX ISA, "Memory Consistency Model".)
 *
 * An asynchronous operation that completes at a barrier hands on what it wrote itself, and nothing that its thread
 * wrote before (PTX ISA, "Asynchronous Operations"); nor does a release of that thread hand on the operation. What its
 * thread had read before is taken as read. */
#include "tests/sim/ptx/memory/ptx_shared.h"
#include <stdlib.h>
#include <string.h>

/* What one knows of a warp: what all of its lanes did before a moment, what some did before another, and the
 * asynchronous operations that it began before a third. */
typedef struct ptx_known {
    uint32_t all, some;
    uint32_t lanes; /* those some */
    uint32_t began;
} ptx_known;

typedef struct ptx_flag {
    uint64_t address;
    uint32_t warp;    /* that released it last */
    ptx_known *known; /* of each warp */
    ptx_known *read;  /* the same of what came before asynchronous operations; NULL: none, or no other block */
} ptx_flag;

static void join(ptx_known *to, const ptx_known *from) {
    uint32_t all = to->all > from->all ? to->all : from->all;
    to->lanes = (to->some > all ? to->lanes : 0) | (from->some > all ? from->lanes : 0);
    to->some = to->some > from->some ? to->some : from->some;
    to->all = all;
    to->began = to->began > from->began ? to->began : from->began;
}

static void join_all(const ptx_block *block, ptx_known *to, const ptx_known *from) {
    for (uint32_t w = 0; w < block->known_count; w++)
        join(&to[w], &from[w]);
}

static ptx_known *known_new(const ptx_block *block) {
    ptx_known *known = calloc(block->known_count, sizeof *known);
    if (!known) abort();
    return known;
}

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
    *flag = (ptx_flag){.address = address, .known = known_new(block)};
    return flag;
}

static void flag_free(const ptx_flag *flag) {
    free(flag->known);
    free(flag->read);
}

void ptx_flag_prepare(ptx_block *block) {
    /* Not cleared, which takes long: what a shadow's readers do not name is not looked at. */
    block->reads = malloc((ptx_shadow_count(block) * block->warp_count + 1) * sizeof *block->reads);
    if (!block->reads) abort();
    for (uint32_t w = 0; w < block->warp_count; w++) {
        block->warps[w].known = known_new(block);
        if (!block->cluster) continue;
        block->warps[w].fenced = known_new(block);
        block->warps[w].read = known_new(block);
    }
}

void ptx_flag_clear(const ptx_block *block, ptx_known *known) {
    memset(known, 0, block->known_count * sizeof *known);
}

void ptx_flag_start(ptx_block *block) {
    while (block->flag_count)
        flag_free(&block->flags[--block->flag_count]);
    for (uint32_t w = 0; w < block->warp_count && block->reads; w++) {
        memset(block->warps[w].known, 0, block->known_count * sizeof *block->warps[w].known);
        if (!block->cluster) continue;
        ptx_flag_clear(block, block->warps[w].fenced);
        ptx_flag_clear(block, block->warps[w].read);
    }
}

void ptx_flag_end(ptx_block *block) {
    while (block->flag_count)
        flag_free(&block->flags[--block->flag_count]);
    for (uint32_t w = 0; w < block->warp_count; w++) {
        free(block->warps[w].known);
        free(block->warps[w].fenced);
        free(block->warps[w].read);
    }
    free(block->flags);
    free(block->reads);
}

/* What the lanes hand on now goes into known. */
static void give(ptx_warp *warp, uint32_t lanes, ptx_known *known) {
    join_all(warp->block, known, warp->known);
    ++warp->moment;
    const bool all = lanes == (warp->lanes & ~warp->exited);
    if (all) warp->synced = warp->moment;
    join(&known[warp->place], &(ptx_known){.all = warp->synced, .some = warp->moment, .lanes = lanes});
}

void ptx_flag_release(ptx_block *block, ptx_warp *warp, uint32_t lane, uint64_t address) {
    ptx_flag *flag = flag_at(block, address);
    if (!flag) flag = flag_add(block, address);
    flag->warp = warp->place;
    join_all(block, flag->known, warp->known);
    join(&flag->known[warp->place], &(ptx_known){.all = warp->synced, .some = ++warp->moment, .lanes = 1u << lane});
}

void ptx_flag_complete(ptx_block *block, ptx_warp *warp, uint32_t lane, uint64_t barrier) {
    ptx_flag *flag = flag_at(block, barrier);
    if (!flag) flag = flag_add(block, barrier);
    flag->warp = warp->place;
    flag->known[warp->place].began = ++warp->moment;
    if (!warp->fenced) return;
    join_all(block, flag->known, warp->fenced);
    if (!flag->read) flag->read = known_new(block);
    join_all(block, flag->read, warp->known);
    join_all(block, flag->read, warp->read);
    join(&flag->read[warp->place], &(ptx_known){.all = warp->synced, .some = warp->moment, .lanes = 1u << lane});
}

void ptx_flag_acquire(ptx_block *block, ptx_warp *warp, uint64_t address) {
    const ptx_flag *flag = flag_at(block, address);
    if (flag) join_all(block, warp->known, flag->known);
    if (flag && flag->read) join_all(block, warp->read, flag->read);
}

void ptx_flag_fence(ptx_warp *warp, uint32_t lanes) {
    if (warp->fenced) give(warp, lanes, warp->fenced);
}

void ptx_flag_arrive(ptx_warp *warp, uint32_t lanes, bool relaxed, ptx_known *known, ptx_known *reading) {
    give(warp, lanes, reading);
    if (relaxed)
        join_all(warp->block, known, warp->fenced);
    else
        give(warp, lanes, known);
}

void ptx_flag_take(ptx_warp *warp, const ptx_known *known, const ptx_known *read) {
    join_all(warp->block, warp->known, known);
    join_all(warp->block, warp->read, read);
}

ptx_known *ptx_flag_known(const ptx_block *block) {
    return known_new(block);
}

void ptx_flag_move(const ptx_block *block, ptx_known *to, ptx_known *from) {
    memcpy(to, from, block->known_count * sizeof *to);
    ptx_flag_clear(block, from);
}

void ptx_flag_meet(ptx_block *block) {
    ptx_known *all = known_new(block);
    for (uint32_t w = 0; w < block->warp_count; w++) {
        ptx_warp *warp = &block->warps[w];
        give(warp, warp->lanes & ~warp->exited, all);
    }
    for (uint32_t w = 0; w < block->warp_count; w++)
        join_all(block, block->warps[w].known, all);
    free(all);
}

void ptx_flag_forget(ptx_block *block, const ptx_warp *warp, uint64_t address, uint32_t size) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < block->flag_count; i++) {
        const ptx_flag flag = block->flags[i];
        if (flag.address - address < size && flag.warp != warp->place)
            flag_free(&flag);
        else
            block->flags[kept++] = flag;
    }
    block->flag_count = kept;
}

static bool orders(const ptx_known *of_warps, const ptx_touches *touches) {
    const ptx_known *known = &of_warps[touches->thread / PTX_WARP];
    if (touches->async) return touches->moment < known->began;
    const bool by_some = touches->together || known->lanes >> touches->thread % PTX_WARP & 1;
    return touches->moment < known->all || (touches->moment < known->some && by_some);
}

bool ptx_flag_orders(const ptx_warp *warp, const ptx_touches *touches) {
    return orders(warp->known, touches);
}

bool ptx_flag_orders_read(const ptx_warp *warp, const ptx_touches *reads) {
    return warp->read && orders(warp->read, reads);
}
