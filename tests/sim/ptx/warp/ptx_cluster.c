/* Clusters of blocks: mapa, getctarank, barrier.cluster. (PTX ISA, "Cluster of Cooperative Thread Arrays", "mapa",
 * "getctarank", "barrier.cluster".)
 *
 * A thread that has exited counts as arrived. One that arrives twice without a wait, or waits without having arrived,
 * is an error here, though hardware may forgive it. */
#include "tests/sim/ptx/warp/ptx_cluster.h"
#include "tests/sim/ptx/decode/ptx_decode.h"
#include "tests/sim/ptx/memory/ptx_shared.h"
#include "tests/sim/ptx/warp/ptx_lanes.h"
#include <string.h>

enum { ARRIVE, WAIT };
enum { RELAXED = 1 }; /* in op->count */

static uint32_t blocks_of(const ptx_block *block) {
    return block->cluster ? block->cluster->count : 1;
}

ptx_block *ptx_cluster_block(ptx_warp *warp, const ptx_op *op, uint32_t lane, uint64_t address, uint64_t *out_offset) {
    const uint32_t rank = ptx_address_rank(warp->block, address);
    *out_offset = address & ((1u << PTX_RANK_SHIFT) - 1);
    if (address >> 32 || rank >= blocks_of(warp->block)) {
        ptx_fault(warp, op, SIM_FAULT_OUT_OF_BOUNDS, lane, address, "shared memory of a cluster, which has %u blocks",
                  blocks_of(warp->block));
        return NULL;
    }
    ptx_block *block = warp->block->cluster ? &warp->block->cluster->blocks[rank] : warp->block;
    if (!block->ended) return block;
    ptx_fault(warp, op, SIM_FAULT_OUT_OF_BOUNDS, lane, address,
              "shared memory of block %u of the cluster, which has ended", rank);
    return NULL;
}

/* ---- Addresses ---- */

static uint64_t address_of(const ptx_warp *warp, const ptx_op *op, uint32_t lane) {
    return op->bits[0] == 64 ? PTX_ARRAY(const uint64_t, op->s[0])[lane] : PTX_ARRAY(const uint32_t, op->s[0])[lane];
}

/* Whether a lane's address is one of shared memory, which a generic one need not be. */
static bool is_shared(ptx_warp *warp, const ptx_op *op, uint32_t lane, uint64_t address) {
    if (op->space != PTX_SPACE_GENERIC || ptx_generic_space(address) == PTX_SPACE_SHARED) return true;
    ptx_fault(warp, op, SIM_FAULT_ILLEGAL, lane, address, "an address that is not of shared memory");
    return false;
}

static void run_map(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    const uint32_t *ranks = PTX_ARRAY(const uint32_t, op->s[1]);
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
        const uint32_t l = (uint32_t)__builtin_ctz(rest);
        const uint64_t address = address_of(warp, op, l);
        if (!is_shared(warp, op, l, address)) return;
        if (ranks[l] >= blocks_of(warp->block)) {
            ptx_fault(warp, op, SIM_FAULT_ILLEGAL, l, address, "block %u of a cluster of %u", ranks[l],
                      blocks_of(warp->block));
            return;
        }
        const uint64_t offset = address & ((1u << PTX_RANK_SHIFT) - 1);
        const uint64_t mapped = (address & PTX_WINDOW_MASK) | (uint64_t)(ranks[l] + 1) << PTX_RANK_SHIFT | offset;
        if (op->bits[0] == 64)
            PTX_ARRAY(uint64_t, op->d[0])[l] = mapped;
        else
            PTX_ARRAY(uint32_t, op->d[0])[l] = (uint32_t)mapped;
    }
}

static void run_rank(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
        const uint32_t l = (uint32_t)__builtin_ctz(rest);
        const uint64_t address = address_of(warp, op, l);
        if (!is_shared(warp, op, l, address)) return;
        PTX_ARRAY(uint32_t, op->d[0])[l] = ptx_address_rank(warp->block, address);
    }
}

/* mapa{.shared::cluster}.type d, a, rank; getctarank{.shared::cluster}.type d, a. */
void ptx_decode_rank(ptx_decoder *decoder) {
    ptx_op *op = decoder->op;
    const ptx_operand *operands = decoder->statement->operands;
    const bool maps = strcmp(decoder->statement->opcode, "mapa") == 0;
    ptx_need(decoder, 90, 78);
    op->space = ptx_take(decoder, PTX_M_SHARED_CLUSTER) ? PTX_SPACE_CLUSTER : PTX_SPACE_GENERIC;
    ptx_expect_types(decoder, 1);
    const ptx_type type = ptx_type_at(decoder, 0);
    if (type != PTX_u32 && type != PTX_u64) ptx_refuse(decoder, "an address is of .u32 or .u64");
    if (type == PTX_u32 && op->space == PTX_SPACE_GENERIC) ptx_refuse(decoder, "a generic address is of .u64");
    ptx_expect_operands(decoder, maps ? 3 : 2, maps ? 3 : 2);
    op->run = maps ? run_map : run_rank;
    op->bits[0] = (uint8_t)ptx_type_bits(type);
    op->d[0] = ptx_result(decoder, &operands[0], maps ? type : PTX_u32);
    op->s[0] = ptx_source(decoder, &operands[1], type);
    if (maps) op->s[1] = ptx_source(decoder, &operands[2], PTX_u32);
}

/* ---- The barrier ---- */

void ptx_cluster_start(ptx_cluster *cluster) {
    ptx_flag_clear(cluster->blocks, cluster->given);
    ptx_flag_clear(cluster->blocks, cluster->known);
    ptx_flag_clear(cluster->blocks, cluster->reading);
    ptx_flag_clear(cluster->blocks, cluster->read);
}

/* Joins the groups of a warp that are at the same instruction of it. */
static void join_groups(ptx_warp *warp) {
    for (uint32_t i = 0; i < warp->group_count; i++) {
        for (uint32_t j = i + 1; j < warp->group_count;) {
            ptx_group *a = &warp->groups[i], *b = &warp->groups[j];
            if (a->state == PTX_AT_CLUSTER && b->state == PTX_AT_CLUSTER && a->op == b->op && a->frame == b->frame) {
                a->mask |= b->mask;
                ptx_frame_release(b->frame);
                *b = warp->groups[--warp->group_count];
            } else {
                j++;
            }
        }
    }
}

static void arrive(ptx_warp *warp, const ptx_op *op, uint32_t lanes) {
    const uint32_t twice = lanes & (warp->arrived | warp->passed);
    if (twice)
        ptx_fault(warp, op, SIM_FAULT_BARRIER, (uint32_t)__builtin_ctz(twice), 0,
                  "it arrives at the cluster's barrier twice without a wait");
    warp->arrived |= lanes;
    if (warp->block->cluster)
        ptx_flag_arrive(warp, lanes, op->count & RELAXED, warp->block->cluster->given, warp->block->cluster->reading);
}

/* Whether all threads of all blocks have arrived or exited; then they may pass. */
static void go_if_complete(ptx_block *own) {
    ptx_block *blocks = own->cluster ? own->cluster->blocks : own;
    bool any = false;
    for (uint32_t b = 0; b < blocks_of(own); b++) {
        for (uint32_t w = 0; w < blocks[b].warp_count; w++) {
            const ptx_warp *warp = &blocks[b].warps[w];
            if ((warp->arrived | warp->exited) != warp->lanes) return;
            any |= warp->arrived != 0;
        }
    }
    if (!any) return;
    for (uint32_t b = 0; b < blocks_of(own); b++) {
        for (uint32_t w = 0; w < blocks[b].warp_count; w++) {
            blocks[b].warps[w].passed |= blocks[b].warps[w].arrived;
            blocks[b].warps[w].arrived = 0;
        }
        blocks[b].counters.barriers++;
    }
    if (own->cluster) {
        ptx_flag_move(own, own->cluster->known, own->cluster->given);
        ptx_flag_move(own, own->cluster->read, own->cluster->reading);
    } else {
        own->epoch++;
    }
}

/* Judges a group at the barrier: whether it goes on. */
static bool judge(ptx_warp *warp, ptx_group *group) {
    const ptx_op *op = &group->frame->code->ops[group->op];
    const uint32_t lost = group->mask & ~(warp->arrived | warp->passed);
    if (op->flags & PTX_F_ALIGNED && group->mask != (warp->lanes & ~warp->exited)) return false;
    if (op->mode == ARRIVE) {
        arrive(warp, op, group->mask);
    } else if (lost) {
        ptx_fault(warp, op, SIM_FAULT_BARRIER, (uint32_t)__builtin_ctz(lost), 0,
                  "it waits at the cluster's barrier without having arrived");
        return false;
    } else if (group->mask & ~warp->passed) {
        return false;
    } else {
        warp->passed &= ~group->mask;
        if (warp->block->cluster) ptx_flag_take(warp, warp->block->cluster->known, warp->block->cluster->read);
    }
    group->state = PTX_READY;
    group->op++;
    return true;
}

bool ptx_cluster_release(ptx_block *block) {
    bool any = false;
    go_if_complete(block); /* the last may have exited */
    for (uint32_t w = 0; w < block->warp_count; w++) {
        ptx_warp *warp = &block->warps[w];
        join_groups(warp);
        for (uint32_t g = 0; g < warp->group_count && block->report->kind == SIM_FAULT_NONE; g++)
            if (warp->groups[g].state == PTX_AT_CLUSTER) any |= judge(warp, &warp->groups[g]);
    }
    go_if_complete(block);
    return any;
}

/* barrier.cluster.arrive{.release, .relaxed}{.aligned}; barrier.cluster.wait{.acquire}{.aligned}. */
void ptx_decode_cluster_barrier(ptx_decoder *decoder) {
    static const int kinds[] = {PTX_M_ARRIVE, PTX_M_WAIT};
    ptx_op *op = decoder->op;
    const int kind = ptx_take_one(decoder, kinds, 2);
    if (kind < 0) ptx_refuse(decoder, "it neither arrives nor waits");
    ptx_need(decoder, 90, 78);
    const bool relaxed = kind == ARRIVE && ptx_take(decoder, PTX_M_RELAXED);
    const bool ordered = ptx_take(decoder, kind == ARRIVE ? PTX_M_RELEASE : PTX_M_ACQUIRE);
    if (relaxed && ordered) ptx_refuse(decoder, ".release and .relaxed exclude each other");
    if (relaxed || ordered) ptx_need(decoder, 90, 80);
    if (ptx_take(decoder, PTX_M_ALIGNED)) op->flags |= PTX_F_ALIGNED;
    ptx_expect_types(decoder, 0);
    ptx_expect_operands(decoder, 0, 0);
    op->flow = PTX_FLOW_CLUSTER;
    decoder->program->uses_clusters = true;
    op->mode = (uint32_t)kind;
    op->count = relaxed ? RELAXED : 0;
}
