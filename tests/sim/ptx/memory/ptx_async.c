/* Asynchronous copies from global to shared memory: cp.async.ca, .cg, .commit_group, .wait_group, .wait_all.
 *
 * A copy lands as late as the ISA allows: when its thread waits for it. Until then no thread may touch the destination
 * or write the source. What a thread never waits for never lands. */
#include "tests/sim/ptx/decode/ptx_decode.h"
#include "tests/sim/ptx/memory/ptx_shared.h"
#include "tests/sim/ptx/warp/ptx_lanes.h"
#include <stdlib.h>
#include <string.h>

typedef struct ptx_copy {
    uint64_t to, from;
    uint32_t size, present; /* bytes; those behind present become zero */
    uint32_t lane, group;   /* of the lane's groups, from 0 */
} ptx_copy;

bool ptx_async_reads(const ptx_block *block, uint64_t address, uint64_t size) {
    for (uint32_t w = 0; w < block->warp_count; w++) {
        const ptx_warp *warp = &block->warps[w];
        for (uint32_t i = 0; i < warp->copy_count; i++) {
            const ptx_copy *copy = &warp->copies[i];
            if (copy->from < address + size && address < copy->from + copy->present) return true;
        }
    }
    return false;
}

/* ---- Running ---- */

static bool copy_add(ptx_warp *warp, const ptx_copy *copy) {
    if (warp->copy_count == warp->copy_room) {
        uint32_t room = warp->copy_room ? warp->copy_room * 2 : 64;
        ptx_copy *grown = realloc(warp->copies, room * sizeof *grown);
        if (!grown) return false;
        warp->copies = grown;
        warp->copy_room = room;
    }
    warp->copies[warp->copy_count++] = *copy;
    warp->block->copies_in_flight++;
    return true;
}

/* The bytes that a lane reads: all of them, as many as source 2 says, or none if the predicate of source 3 is true. */
static uint32_t present_bytes(const ptx_warp *warp, const ptx_op *op, uint32_t lane) {
    if (op->s[2] != PTX_NOWHERE) return PTX_ARRAY(uint32_t, op->s[2])[lane];
    if (op->s[3] == PTX_NOWHERE) return op->count;
    bool ignored = PTX_MASK(op->s[3]) >> lane & 1;
    return ignored != op->negated[3] ? 0 : op->count;
}

/* Checks a copy as far as it can be now. */
static bool copy_start(ptx_warp *warp, const ptx_op *op, const ptx_copy *copy) {
    if (copy->present > copy->size) {
        ptx_fault(warp, op, SIM_FAULT_ILLEGAL, copy->lane, copy->from, "a source of %u bytes for a copy of %u",
                  copy->present, copy->size);
        return false;
    }
    uint64_t wrong = copy->to % copy->size ? copy->to : copy->present && copy->from % copy->size ? copy->from : 0;
    if (wrong) {
        ptx_fault(warp, op, SIM_FAULT_MISALIGNED, copy->lane, wrong, "copy of %u bytes", copy->size);
        return false;
    }
    if (copy->present && !ptx_global_bytes(warp, op, copy->lane, copy->from, copy->present, true, false)) return false;
    return ptx_shared_send(warp, op, copy->lane, copy->to, copy->size);
}

static void run_copy(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    uint64_t to[PTX_WARP], from[PTX_WARP];
    uint32_t reading = 0;
    ptx_addresses(warp, op->s[0], op->bits[0], op->offset, to);
    ptx_addresses(warp, op->s[1], op->bits[1], op->source_offset, from);
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
        uint32_t l = (uint32_t)__builtin_ctz(rest), present = present_bytes(warp, op, l);
        ptx_copy copy = {to[l], from[l], op->count, present, l, warp->committed[l]};
        if (!copy_start(warp, op, &copy)) return;
        if (!copy_add(warp, &copy)) {
            ptx_fault(warp, op, SIM_FAULT_STACK, l, to[l], "no memory for a copy in flight");
            return;
        }
        reading |= (uint32_t)(present != 0) << l;
    }
    if (reading) ptx_count_request(warp, PTX_SPACE_GLOBAL, from, reading, op->count, false);
    ptx_count_request(warp, PTX_SPACE_SHARED, to, mask, op->count, true);
}

static void run_commit(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    (void)op;
    PTX_LANES(warp->committed[l]++);
}

static void land(ptx_warp *warp, const ptx_op *op, const ptx_copy *copy) {
    uint8_t *bytes = ptx_shared_land(warp, op, copy->lane, copy->to, copy->size);
    if (copy->present) memcpy(bytes, (const void *)(uintptr_t)copy->from, copy->present);
    memset(bytes + copy->present, 0, copy->size - copy->present);
    warp->block->copies_in_flight--;
}

/* All committed groups but the last op->count land. */
static void run_wait_group(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    for (uint32_t i = 0; i < warp->copy_count;) {
        ptx_copy *copy = &warp->copies[i];
        if (mask >> copy->lane & 1 && (uint64_t)copy->group + op->count < warp->committed[copy->lane]) {
            land(warp, op, copy);
            *copy = warp->copies[--warp->copy_count];
        } else {
            i++;
        }
    }
}

void ptx_async_land(ptx_warp *warp, const ptx_op *op, uint32_t lane) {
    for (uint32_t i = 0; i < warp->copy_count;) {
        if (warp->copies[i].lane == lane) {
            land(warp, op, &warp->copies[i]);
            warp->copies[i] = warp->copies[--warp->copy_count];
        } else {
            i++;
        }
    }
}

static void run_wait_all(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    run_commit(warp, op, mask);
    run_wait_group(warp, op, mask);
}

/* ---- Decoding ---- */

/* A size that is a constant. */
static uint32_t constant(ptx_decoder *decoder, const ptx_operand *operand) {
    if (operand->kind != PTX_OPERAND_INTEGER) ptx_refuse(decoder, "a size or count must be a constant");
    return (uint32_t)operand->value;
}

/* The fourth operand: a source size, or a predicate that ignores the source. */
static void decode_present(ptx_decoder *decoder, const ptx_operand *operand) {
    ptx_op *op = decoder->op;
    bool predicate =
        operand->kind == PTX_OPERAND_REGISTER && decoder->code->function->registers[operand->number].type == PTX_pred;
    if (predicate) {
        ptx_need(decoder, 80, 75);
        op->s[3] = ptx_predicate(decoder, operand, &op->negated[3]);
        return;
    }
    op->s[2] = ptx_source(decoder, operand, PTX_u32);
    if (operand->kind == PTX_OPERAND_INTEGER && (uint64_t)operand->value > op->count)
        ptx_refuse(decoder, "its source has more bytes than the copy");
}

static void decode_copy(ptx_decoder *decoder) {
    static const int levels[] = {PTX_M_CA, PTX_M_CG}, shared[] = {PTX_M_SHARED, PTX_M_SHARED_CTA};
    static const int prefetches[] = {PTX_M_L2_64B, PTX_M_L2_128B, PTX_M_L2_256B};
    ptx_op *op = decoder->op;
    const ptx_operand *operands = decoder->statement->operands;
    int level = ptx_take_one(decoder, levels, 2);
    bool spaces = ptx_take_one(decoder, shared, 2) >= 0 && ptx_take(decoder, PTX_M_GLOBAL);
    if (level < 0 || !spaces) ptx_refuse(decoder, "only .ca and .cg from global to shared memory are simulated");
    if (ptx_take_one(decoder, prefetches, 3) >= 0) ptx_need(decoder, 80, 74);
    uint32_t policies = ptx_take_policy(decoder);
    ptx_expect_operands(decoder, 3 + policies, 4 + policies);
    op->count = constant(decoder, &operands[2]);
    if (op->count != 16 && (level == 1 || (op->count != 4 && op->count != 8)))
        ptx_refuse(decoder, "it cannot copy %u bytes", op->count);
    op->run = run_copy;
    ptx_decode_pointer(decoder, &operands[1]);
    op->s[1] = op->s[0];
    op->bits[1] = op->bits[0];
    op->source_offset = op->offset;
    op->offset = 0;
    ptx_decode_pointer(decoder, &operands[0]);
    op->s[2] = op->s[3] = PTX_NOWHERE;
    if (decoder->statement->operand_count - policies == 4) decode_present(decoder, &operands[3]);
}

void ptx_decode_async(ptx_decoder *decoder) {
    static const int kinds[] = {PTX_M_COMMIT_GROUP, PTX_M_WAIT_GROUP, PTX_M_WAIT_ALL};
    static const ptx_run runs[] = {run_commit, run_wait_group, run_wait_all};
    ptx_op *op = decoder->op;
    const bool reduces = ptx_take(decoder, PTX_M_REDUCE);
    if (!ptx_take(decoder, PTX_M_ASYNC)) ptx_refuse(decoder, "is not simulated");
    if (ptx_take(decoder, PTX_M_BULK)) {
        ptx_decode_bulk(decoder, reduces);
        return;
    }
    if (reduces) ptx_refuse(decoder, "a reduction is .bulk");
    ptx_need(decoder, 80, 70);
    if (ptx_take(decoder, PTX_M_MBARRIER)) {
        ptx_decode_arrive_on_copies(decoder);
        return;
    }
    ptx_expect_types(decoder, 0);
    int kind = ptx_take_one(decoder, kinds, 3);
    if (kind < 0) {
        decode_copy(decoder);
        return;
    }
    uint32_t operands = kind == 1 ? 1 : 0;
    ptx_expect_operands(decoder, operands, operands);
    op->run = runs[kind];
    if (operands) op->count = constant(decoder, &decoder->statement->operands[0]);
}
