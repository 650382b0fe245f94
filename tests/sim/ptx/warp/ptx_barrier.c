/* Barriers of a block. bar.sync is aligned: all lanes of a warp must come to the same instruction. barrier.sync is not.
 * A barrier without a count is for all threads of the block, and one that has returned before is an error here, though
 * hardware forgives it. */
#include "tests/sim/ptx/warp/ptx_warp.h"

enum { REDUCE_NONE, REDUCE_POPC, REDUCE_AND, REDUCE_OR, ARRIVE };

typedef struct arrival {
    ptx_warp *warp;
    ptx_group *group;
    const ptx_op *op;
    uint32_t number, count;
} arrival;

static uint32_t word_at(const ptx_group *group, uint32_t place) {
    return ((const uint32_t *)(const void *)(group->frame->bytes + place))[__builtin_ctz(group->mask)];
}

static arrival arrival_of(ptx_warp *warp, ptx_group *group) {
    const ptx_op *op = &group->frame->code->ops[group->op];
    return (arrival){warp, group, op, word_at(group, op->s[0]), op->s[1] == PTX_NOWHERE ? 0 : word_at(group, op->s[1])};
}

/* Joins the groups of a warp that wait at the same barrier instruction. */
static void join_waiting(ptx_warp *warp) {
    for (uint32_t i = 0; i < warp->group_count; i++) {
        for (uint32_t j = i + 1; j < warp->group_count;) {
            ptx_group *a = &warp->groups[i], *b = &warp->groups[j];
            if (a->state == PTX_AT_BARRIER && b->state == PTX_AT_BARRIER && a->op == b->op && a->frame == b->frame) {
                a->mask |= b->mask;
                ptx_frame_release(b->frame);
                *b = warp->groups[--warp->group_count];
            } else {
                j++;
            }
        }
    }
}

/* Whether all lanes of a warp that are left wait at a barrier: at one instruction, or at several that are not aligned.
 */
static bool warp_waits(ptx_warp *warp, uint32_t number) {
    uint32_t lanes = 0, groups = 0;
    bool aligned = false;
    for (uint32_t g = 0; g < warp->group_count; g++) {
        ptx_group *group = &warp->groups[g];
        if (group->state != PTX_AT_BARRIER) continue;
        arrival here = arrival_of(warp, group);
        if (here.number != number) continue;
        aligned |= here.op->flags & PTX_F_ALIGNED;
        lanes |= group->mask;
        groups++;
    }
    return groups && lanes == (warp->lanes & ~warp->exited) && (groups == 1 || !aligned);
}

/* The threads that wait at a barrier, in whole warps. */
static uint32_t waiting_threads(ptx_block *block, uint32_t number) {
    uint32_t threads = 0;
    for (uint32_t w = 0; w < block->warp_count; w++)
        if (warp_waits(&block->warps[w], number)) threads += PTX_WARP;
    return threads;
}

static uint32_t reduce(ptx_block *block, uint32_t number, uint32_t mode) {
    uint32_t count = 0, threads = 0;
    for (uint32_t w = 0; w < block->warp_count; w++) {
        ptx_warp *warp = &block->warps[w];
        for (uint32_t g = 0; g < warp->group_count; g++) {
            ptx_group *group = &warp->groups[g];
            if (group->state != PTX_AT_BARRIER) continue;
            arrival here = arrival_of(warp, group);
            if (here.number != number || here.op->s[2] == PTX_NOWHERE) continue;
            uint32_t predicate = *(const uint32_t *)(const void *)(group->frame->bytes + here.op->s[2]);
            if (here.op->negated[2]) predicate = ~predicate;
            count += (uint32_t)__builtin_popcount(predicate & group->mask);
            threads += (uint32_t)__builtin_popcount(group->mask);
        }
    }
    return mode == REDUCE_POPC ? count : mode == REDUCE_AND ? (count == threads) : (count != 0);
}

static void give_result(const arrival *here, uint32_t value) {
    uint8_t *place = here->group->frame->bytes + here->op->d[0];
    uint32_t *lanes = (uint32_t *)(void *)place;
    if (here->op->mode == REDUCE_POPC) {
        for (uint32_t rest = here->group->mask; rest; rest &= rest - 1)
            lanes[__builtin_ctz(rest)] = value;
    } else if (value) {
        *lanes |= here->group->mask;
    } else {
        *lanes &= ~here->group->mask;
    }
}

/* All threads come after what one of them has waited for. */
static void pass_on_wait(ptx_block *block) {
    bool waited = false;
    for (uint32_t w = 0; w < block->warp_count; w++)
        waited |= block->warps[w].waited != 0;
    for (uint32_t w = 0; w < block->warp_count && waited; w++)
        block->warps[w].waited = ~0u;
}

/* Lets all go that wait at a barrier. */
static void release(ptx_block *block, uint32_t number) {
    uint32_t values[4] = {0};
    for (uint32_t mode = REDUCE_POPC; mode <= REDUCE_OR; mode++)
        values[mode] = reduce(block, number, mode);
    for (uint32_t w = 0; w < block->warp_count; w++) {
        ptx_warp *warp = &block->warps[w];
        for (uint32_t g = 0; g < warp->group_count; g++) {
            ptx_group *group = &warp->groups[g];
            if (group->state != PTX_AT_BARRIER) continue;
            arrival here = arrival_of(warp, group);
            if (here.number != number) continue;
            if (here.op->mode >= REDUCE_POPC && here.op->mode <= REDUCE_OR) give_result(&here, values[here.op->mode]);
            group->state = PTX_READY;
            group->op++;
        }
    }
    pass_on_wait(block);
    block->arrived[number] = 0;
    if (block->cluster)
        ptx_flag_meet(block); /* what other blocks do to its memory is ordered otherwise */
    else
        block->epoch++;
    block->counters.barriers++;
}

static uint32_t exited_threads(const ptx_block *block) {
    uint32_t exited = 0;
    for (uint32_t w = 0; w < block->warp_count; w++)
        exited += (uint32_t)__builtin_popcount(block->warps[w].exited);
    return exited;
}

/* Judges one group that waits. true if its barrier was let go. */
static bool judge(ptx_block *block, const arrival *here) {
    uint32_t whole = block->warp_count * PTX_WARP;
    uint32_t lane = (uint32_t)__builtin_ctz(here->group->mask);
    if (here->number >= PTX_BARRIERS || here->count % PTX_WARP) {
        ptx_fault(here->warp, here->op, SIM_FAULT_BARRIER, lane, here->number, "barrier %u for %u threads is malformed",
                  here->number, here->count);
        return false;
    }
    if (here->op->mode == ARRIVE) {
        if (here->group->mask != (here->warp->lanes & ~here->warp->exited)) return false;
        block->arrived[here->number] += PTX_WARP;
        here->group->state = PTX_READY;
        here->group->op++;
        return true;
    }
    if (!here->count && exited_threads(block)) {
        ptx_fault(here->warp, here->op, SIM_FAULT_BARRIER, lane, here->number, "%u threads of the block have returned",
                  exited_threads(block));
        return false;
    }
    uint32_t wanted = here->count ? here->count : whole;
    if (waiting_threads(block, here->number) + block->arrived[here->number] < wanted) return false;
    release(block, here->number);
    return true;
}

bool ptx_barriers_release(ptx_block *block) {
    for (uint32_t w = 0; w < block->warp_count; w++)
        join_waiting(&block->warps[w]);
    bool any = false;
    for (uint32_t w = 0; w < block->warp_count; w++) {
        ptx_warp *warp = &block->warps[w];
        for (uint32_t g = 0; g < warp->group_count && block->report->kind == SIM_FAULT_NONE; g++) {
            ptx_group *group = &warp->groups[g];
            if (group->state != PTX_AT_BARRIER) continue;
            arrival here = arrival_of(warp, group);
            any |= judge(block, &here);
        }
    }
    return any;
}
