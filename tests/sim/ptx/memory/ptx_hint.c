/* Instructions that only hint at speed: prefetch, prefetchu, applypriority, discard, createpolicy, nanosleep,
 * griddepcontrol, pmevent. But discard destroys bytes, which must be written again before they are read, and
 * griddepcontrol says from when on a grid may count on those in front of it. */
#include "tests/sim/ptx/decode/ptx_decode.h"
#include "tests/sim/ptx/memory/ptx_overlap.h"
#include "tests/sim/ptx/warp/ptx_lanes.h"
#include <string.h>

enum { LINE_BYTES = 128 };

void ptx_run_nothing(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    (void)warp;
    (void)op;
    (void)mask;
}

/* [address], of global memory or generic. */
static void decode_line(ptx_decoder *decoder) {
    ptx_op *op = decoder->op;
    op->space = ptx_take(decoder, PTX_M_GLOBAL) ? PTX_SPACE_GLOBAL : PTX_SPACE_GENERIC;
    op->run = ptx_run_nothing;
    ptx_decode_pointer(decoder, &decoder->statement->operands[0]);
}

/* ---- prefetch{.global,.local}.{L1,L2}, prefetchu.L1, prefetch.global.L2::evict_{last,normal} ---- */

/* prefetch{.param,.const}.tensormap */
static void decode_prefetch_map(ptx_decoder *decoder) {
    static const int spaces[] = {PTX_M_PARAM, PTX_M_CONST};
    ptx_need(decoder, 90, 80);
    ptx_take_one(decoder, spaces, 2);
    ptx_expect_operands(decoder, 1, 1);
    ptx_decode_pointer(decoder, &decoder->statement->operands[0]);
    decoder->op->run = ptx_run_nothing;
}

static void decode_prefetch(ptx_decoder *decoder) {
    static const int levels[] = {PTX_M_L1, PTX_M_L2, PTX_M_L2_EVICT_LAST, PTX_M_L2_EVICT_NORMAL};
    bool uniform = strcmp(decoder->statement->opcode, "prefetchu") == 0;
    if (!uniform && ptx_take(decoder, PTX_M_TENSORMAP)) {
        decode_prefetch_map(decoder);
        return;
    }
    ptx_expect_operands(decoder, 1, 1);
    bool local = !uniform && ptx_take(decoder, PTX_M_LOCAL);
    if (uniform)
        ptx_decode_pointer(decoder, &decoder->statement->operands[0]);
    else
        decode_line(decoder);
    decoder->op->run = ptx_run_nothing;
    int level = ptx_take_one(decoder, levels, 4);
    if (level < 0 || (uniform && level != 0)) ptx_refuse(decoder, "it has no such level");
    if (level < 2) return;
    ptx_need(decoder, 80, 74);
    if (local || decoder->op->space != PTX_SPACE_GLOBAL) ptx_refuse(decoder, "a priority needs .global");
}

/* ---- applypriority{.global}.L2::evict_normal [a], 128; discard{.global}.L2 [a], 128 ---- */

static void run_discard(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    uint64_t addresses[PTX_WARP];
    ptx_addresses(warp, op->s[0], op->bits[0], op->offset, addresses);
    PTX_LANES(if (!ptx_global_discard(warp, op, (uint32_t)l, addresses[l], LINE_BYTES)) return );
}

static void decode_range(ptx_decoder *decoder, int modifier) {
    const ptx_operand *operands = decoder->statement->operands;
    ptx_need(decoder, 80, 74);
    ptx_expect_operands(decoder, 2, 2);
    decode_line(decoder);
    if (!ptx_take(decoder, modifier)) ptx_refuse(decoder, "it has no level");
    if (operands[1].kind != PTX_OPERAND_INTEGER || operands[1].value != LINE_BYTES)
        ptx_refuse(decoder, "its size must be %d", LINE_BYTES);
}

/* ---- createpolicy: a policy has no effect here, and any 64 bits will do ---- */

static void run_policy(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    uint64_t *d = PTX_ARRAY(uint64_t, op->d[0]);
    PTX_LANES(d[l] = 1ull << 60 | op->mode);
}

static void run_policy_copy(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    uint64_t *d = PTX_ARRAY(uint64_t, op->d[0]);
    const uint64_t *a = PTX_ARRAY(uint64_t, op->s[0]);
    PTX_LANES(d[l] = a[l]);
}

/* One or two priorities: the second may be .L2::evict_first or .L2::evict_unchanged. */
static void take_priorities(ptx_decoder *decoder) {
    bool last = ptx_take(decoder, PTX_M_L2_EVICT_LAST), normal = ptx_take(decoder, PTX_M_L2_EVICT_NORMAL);
    bool first = ptx_take(decoder, PTX_M_L2_EVICT_FIRST), unchanged = ptx_take(decoder, PTX_M_L2_EVICT_UNCHANGED);
    int count = last + normal + first + unchanged;
    if (count < 1 || count > 2 || (last && normal)) ptx_refuse(decoder, "it has no such priorities");
    decoder->op->mode = (uint32_t)(last | normal << 1 | first << 2 | unchanged << 3);
}

static void decode_policy(ptx_decoder *decoder) {
    static const int kinds[] = {PTX_M_FRACTIONAL, PTX_M_RANGE, PTX_M_CVT};
    const ptx_operand *operands = decoder->statement->operands;
    ptx_op *op = decoder->op;
    ptx_need(decoder, 80, 74);
    ptx_expect_types(decoder, 1);
    if (ptx_type_at(decoder, 0) != PTX_b64) ptx_refuse(decoder, "its type must be b64");
    int kind = ptx_take_one(decoder, kinds, 3);
    op->run = run_policy;
    switch (kind) {
    case 0: /* d {, fraction} */
        take_priorities(decoder);
        ptx_expect_operands(decoder, 1, 2);
        if (decoder->statement->operand_count == 2) ptx_source(decoder, &operands[1], PTX_f32);
        break;
    case 1: /* d, [a], bytes of the first priority, bytes of all */
        take_priorities(decoder);
        ptx_take(decoder, PTX_M_GLOBAL);
        ptx_expect_operands(decoder, 4, 4);
        ptx_decode_pointer(decoder, &operands[1]);
        ptx_source(decoder, &operands[2], PTX_u32);
        ptx_source(decoder, &operands[3], PTX_u32);
        break;
    case 2: /* d, a */
        if (!ptx_take(decoder, PTX_M_L2)) ptx_refuse(decoder, "it needs .L2");
        ptx_expect_operands(decoder, 2, 2);
        op->run = run_policy_copy;
        op->s[0] = ptx_source(decoder, &operands[1], PTX_b64);
        break;
    default:
        ptx_refuse(decoder, "it is none of .fractional, .range and .cvt");
    }
    op->d[0] = ptx_result(decoder, &operands[0], PTX_b64);
}

/* ---- pmevent number; pmevent.mask bits: nobody counts them here ---- */

static void decode_event(ptx_decoder *decoder) {
    const ptx_operand *event = &decoder->statement->operands[0];
    enum { EVENTS = 16 };
    ptx_expect_operands(decoder, 1, 1);
    uint64_t end = ptx_take(decoder, PTX_M_MASK) ? 1u << EVENTS : EVENTS;
    if (event->kind != PTX_OPERAND_INTEGER || (uint64_t)event->value >= end)
        ptx_refuse(decoder, "there are events 0 to %d", EVENTS - 1);
}

/* ---- griddepcontrol.wait, .launch_dependents ---- */

static void run_wait(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    (void)op;
    warp->waited |= mask;
}

static void run_trigger(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    (void)op;
    ptx_block *block = warp->block;
    if (!block->triggered && warp->waited & mask && block->launch->writes) ptx_writes_waited(block->launch->writes);
    block->triggered = true;
}

static void decode_grids(ptx_decoder *decoder) {
    static const int controls[] = {PTX_M_WAIT, PTX_M_LAUNCH_DEPENDENTS};
    ptx_need(decoder, 90, 78);
    ptx_expect_operands(decoder, 0, 0);
    int control = ptx_take_one(decoder, controls, 2);
    if (control < 0) ptx_refuse(decoder, "it neither waits nor launches");
    decoder->op->run = control == 0 ? run_wait : run_trigger;
}

/* ---- All ---- */

void ptx_decode_hint(ptx_decoder *decoder) {
    const char *opcode = decoder->statement->opcode;
    decoder->op->run = ptx_run_nothing;
    if (strcmp(opcode, "createpolicy") == 0) {
        decode_policy(decoder);
        return;
    }
    if (strcmp(opcode, "nanosleep") == 0) { /* time is not simulated */
        ptx_expect_types(decoder, 1);
        ptx_expect_operands(decoder, 1, 1);
        if (ptx_type_at(decoder, 0) != PTX_u32) ptx_refuse(decoder, "its type must be u32");
        ptx_source(decoder, &decoder->statement->operands[0], PTX_u32);
        return;
    }
    ptx_expect_types(decoder, 0);
    if (strcmp(opcode, "pmevent") == 0)
        decode_event(decoder);
    else if (strcmp(opcode, "griddepcontrol") == 0)
        decode_grids(decoder);
    else if (strcmp(opcode, "applypriority") == 0)
        decode_range(decoder, PTX_M_L2_EVICT_NORMAL);
    else if (strcmp(opcode, "discard") == 0) {
        decode_range(decoder, PTX_M_L2);
        decoder->op->run = run_discard;
    } else {
        decode_prefetch(decoder);
    }
}
