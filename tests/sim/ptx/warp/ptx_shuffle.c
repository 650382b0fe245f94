/* Instructions that exchange values within a warp: shfl, vote, match, redux, elect, activemask. All but the last have
 * .sync: the executor gathers the lanes that the member mask names before it runs them. */
#include "tests/sim/ptx/decode/ptx_decode.h"
#include "tests/sim/ptx/warp/ptx_lanes.h"
#include <string.h>

/* ---- shfl.sync.mode.b32 d{|p}, a, b, c, members ---- */

enum { SHUFFLE_UP, SHUFFLE_DOWN, SHUFFLE_BFLY, SHUFFLE_IDX };

uint32_t ptx_shuffle_from(const ptx_warp *warp, const ptx_op *op, uint32_t lane, bool *out_inside) {
    const uint32_t b = PTX_ARRAY(uint32_t, op->s[2])[lane] & 31, clamp = PTX_ARRAY(uint32_t, op->s[3])[lane];
    const uint32_t cval = clamp & 31, segment = clamp >> 8 & 31;
    const uint32_t highest = (lane & segment) | (cval & ~segment), lowest = lane & segment;
    uint32_t from = lane;
    bool inside = false;
    switch (op->mode) {
    case SHUFFLE_UP:
        inside = (int32_t)(lane - b) >= (int32_t)highest;
        from = lane - b;
        break;
    case SHUFFLE_DOWN:
        from = lane + b;
        inside = from <= highest;
        break;
    case SHUFFLE_BFLY:
        from = lane ^ b;
        inside = from <= highest;
        break;
    case SHUFFLE_IDX:
        from = lowest | (b & ~segment);
        inside = from <= highest;
        break;
    }
    if (out_inside) *out_inside = inside;
    return inside ? from : lane;
}

static void run_shuffle(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    uint32_t *d = PTX_ARRAY(uint32_t, op->d[0]), old[PTX_WARP], from[PTX_WARP], predicate = 0;
    memcpy(old, PTX_ARRAY(uint32_t, op->s[1]), sizeof old);
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(rest);
        bool inside;
        from[lane] = ptx_shuffle_from(warp, op, lane, &inside);
        if (!(mask >> from[lane] & 1)) {
            ptx_fault(warp, op, SIM_FAULT_SYNC, lane, from[lane], "lane %u is read, which takes no part", from[lane]);
            return;
        }
        predicate |= (uint32_t)inside << lane;
    }
    PTX_LANES(d[l] = old[from[l]]);
    if (op->d[1] != PTX_NOWHERE) PTX_MASK(op->d[1]) = (PTX_MASK(op->d[1]) & ~mask) | predicate;
}

static void decode_shuffle(ptx_decoder *decoder) {
    static const int modes[] = {PTX_M_UP, PTX_M_DOWN, PTX_M_BFLY, PTX_M_IDX};
    ptx_op *op = decoder->op;
    const ptx_operand *operands = decoder->statement->operands;
    int mode = ptx_take_one(decoder, modes, 4);
    if (mode < 0) ptx_refuse(decoder, "it has no mode");
    ptx_expect_types(decoder, 1);
    if (ptx_type_at(decoder, 0) != PTX_b32) ptx_refuse(decoder, "its type must be b32");
    ptx_expect_operands(decoder, 5, 5);
    op->mode = (uint32_t)mode;
    op->run = run_shuffle;
    ptx_operand result = operands[0];
    result.paired = false;
    op->d[0] = ptx_result(decoder, &result, PTX_b32);
    op->d[1] = operands[0].paired ? ptx_result(decoder, &operands[0].elements[0], PTX_pred) : PTX_NOWHERE;
    for (uint32_t i = 0; i < 3; i++)
        op->s[i + 1] = ptx_source(decoder, &operands[i + 1], PTX_b32);
    op->s[0] = ptx_source(decoder, &operands[4], PTX_b32);
}

/* ---- vote.sync.mode d, {!}p, members ---- */

enum { VOTE_ALL, VOTE_ANY, VOTE_UNI, VOTE_BALLOT };

static void run_vote(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    uint32_t predicate = PTX_MASK(op->s[1]);
    if (op->negated[1]) predicate = ~predicate;
    predicate &= mask;
    if (op->mode == VOTE_BALLOT) {
        uint32_t *d = PTX_ARRAY(uint32_t, op->d[0]);
        PTX_LANES(d[l] = predicate);
        return;
    }
    bool all = predicate == mask, any = predicate != 0;
    bool result = op->mode == VOTE_ALL ? all : op->mode == VOTE_ANY ? any : all || !any;
    PTX_MASK(op->d[0]) = result ? PTX_MASK(op->d[0]) | mask : PTX_MASK(op->d[0]) & ~mask;
}

static void decode_vote(ptx_decoder *decoder) {
    static const int modes[] = {PTX_M_ALL, PTX_M_ANY, PTX_M_UNI, PTX_M_BALLOT};
    ptx_op *op = decoder->op;
    const ptx_operand *operands = decoder->statement->operands;
    int mode = ptx_take_one(decoder, modes, 4);
    if (mode < 0) ptx_refuse(decoder, "it has no mode");
    ptx_expect_types(decoder, 1);
    ptx_expect_operands(decoder, 3, 3);
    op->mode = (uint32_t)mode;
    op->run = run_vote;
    op->d[0] = ptx_result(decoder, &operands[0], mode == VOTE_BALLOT ? PTX_b32 : PTX_pred);
    op->s[1] = ptx_predicate(decoder, &operands[1], &op->negated[1]);
    op->s[0] = ptx_source(decoder, &operands[2], PTX_b32);
}

/* ---- match.{any,all}.sync.type d{|p}, a, members ---- */

static uint64_t value_of(const ptx_warp *warp, const ptx_op *op, int l) {
    return ptx_type_bits(op->type) == 64 ? PTX_ARRAY(uint64_t, op->s[1])[l] : PTX_ARRAY(uint32_t, op->s[1])[l];
}

static void run_match(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    uint32_t results[PTX_WARP] = {0};
    bool all = true;
    PTX_LANES({
        for (uint32_t others = mask; others; others &= others - 1) {
            int other = __builtin_ctz(others);
            if (value_of(warp, op, other) == value_of(warp, op, l)) results[l] |= 1u << other;
        }
        all = all && results[l] == mask;
    });
    uint32_t *d = PTX_ARRAY(uint32_t, op->d[0]);
    PTX_LANES(d[l] = op->mode ? (all ? mask : 0) : results[l]);
    if (op->d[1] != PTX_NOWHERE) PTX_MASK(op->d[1]) = all ? PTX_MASK(op->d[1]) | mask : PTX_MASK(op->d[1]) & ~mask;
}

static void decode_match(ptx_decoder *decoder) {
    static const int modes[] = {PTX_M_ANY, PTX_M_ALL};
    ptx_op *op = decoder->op;
    const ptx_operand *operands = decoder->statement->operands;
    int mode = ptx_take_one(decoder, modes, 2);
    if (mode < 0) ptx_refuse(decoder, "it has no mode");
    ptx_expect_types(decoder, 1);
    ptx_expect_operands(decoder, 3, 3);
    op->type = ptx_type_at(decoder, 0);
    if (op->type != PTX_b32 && op->type != PTX_b64) ptx_refuse(decoder, "its type must be b32 or b64");
    op->mode = (uint32_t)mode;
    op->run = run_match;
    if (mode == 0 && operands[0].paired) ptx_refuse(decoder, "it has no second result");
    ptx_operand result = operands[0];
    result.paired = false;
    op->d[0] = ptx_result(decoder, &result, PTX_b32);
    op->d[1] = operands[0].paired ? ptx_result(decoder, &operands[0].elements[0], PTX_pred) : PTX_NOWHERE;
    op->s[1] = ptx_source(decoder, &operands[1], op->type);
    op->s[0] = ptx_source(decoder, &operands[2], PTX_b32);
}

/* ---- redux.sync.op.type d, a, members ---- */

enum { REDUX_ADD, REDUX_MIN, REDUX_MAX, REDUX_AND, REDUX_OR, REDUX_XOR };

static void run_redux(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    const uint32_t *source = PTX_ARRAY(uint32_t, op->s[1]);
    uint32_t result = source[__builtin_ctz(mask)];
    bool is_signed = op->type == PTX_s32;
    for (uint32_t rest = mask & (mask - 1); rest; rest &= rest - 1) {
        uint32_t value = source[__builtin_ctz(rest)];
        bool less = is_signed ? (int32_t)value < (int32_t)result : value < result;
        switch (op->mode) {
        case REDUX_ADD:
            result += value;
            break;
        case REDUX_MIN:
            result = less ? value : result;
            break;
        case REDUX_MAX:
            result = less ? result : value;
            break;
        case REDUX_AND:
            result &= value;
            break;
        case REDUX_OR:
            result |= value;
            break;
        case REDUX_XOR:
            result ^= value;
            break;
        }
    }
    uint32_t *d = PTX_ARRAY(uint32_t, op->d[0]);
    PTX_LANES(d[l] = result);
}

/* Orders numbers as their values are, -0 before +0. */
static int64_t order_of(uint32_t bits) {
    return bits >> 31 ? -(int64_t)(bits & 0x7fffffffu) - 1 : (int64_t)bits;
}

static bool is_nan(uint32_t bits) {
    return (bits & 0x7fffffffu) > 0x7f800000u;
}

/* min and max of f32: a NaN counts with .NaN only, or if there is nothing else. */
static void run_redux_f32(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    const uint32_t *source = PTX_ARRAY(uint32_t, op->s[1]);
    uint32_t result = 0x7fffffffu, *d = PTX_ARRAY(uint32_t, op->d[0]);
    bool any = false, nan = false;
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
        uint32_t value = source[__builtin_ctz(rest)];
        if (op->count) value &= 0x7fffffffu; /* .abs */
        nan |= is_nan(value);
        if (is_nan(value)) continue;
        bool better = (order_of(value) > order_of(result)) == (op->mode == REDUX_MAX);
        if (!any || better) result = value;
        any = true;
    }
    if (nan && op->flags & PTX_F_NAN) result = 0x7fffffffu;
    PTX_LANES(d[l] = result);
}

/* redux.sync.{min,max}{.abs}{.NaN}.f32: of sm_100a, sm_103a and their families. */
static void decode_redux_f32(ptx_decoder *decoder) {
    ptx_op *op = decoder->op;
    const char *target = decoder->program->module->target;
    ptx_need(decoder, 100, 86);
    if (strncmp(target, "sm_10", 5) != 0 || target[strlen(target) - 1] < 'a')
        ptx_refuse(decoder, "needs a target like sm_100a");
    if (op->mode != REDUX_MIN && op->mode != REDUX_MAX) ptx_refuse(decoder, "f32 has .min and .max only");
    op->count = ptx_take(decoder, PTX_M_ABS);
    if (ptx_take(decoder, PTX_M_NAN)) op->flags |= PTX_F_NAN;
    op->run = run_redux_f32;
}

static void decode_redux(ptx_decoder *decoder) {
    static const int modes[] = {PTX_M_ADD, PTX_M_MIN, PTX_M_MAX, PTX_M_AND, PTX_M_OR, PTX_M_XOR};
    ptx_op *op = decoder->op;
    const ptx_operand *operands = decoder->statement->operands;
    int mode = ptx_take_one(decoder, modes, 6);
    if (mode < 0) ptx_refuse(decoder, "it has no operation");
    ptx_need(decoder, 80, 70);
    ptx_expect_types(decoder, 1);
    ptx_expect_operands(decoder, 3, 3);
    op->type = ptx_type_at(decoder, 0);
    op->mode = (uint32_t)mode;
    op->run = run_redux;
    bool arithmetic = mode < REDUX_AND && (op->type == PTX_u32 || op->type == PTX_s32);
    if (op->type == PTX_f32)
        decode_redux_f32(decoder);
    else if (!arithmetic && (mode < REDUX_AND || op->type != PTX_b32))
        ptx_refuse(decoder, "it has no type %s", ptx_type_name(op->type));
    op->d[0] = ptx_result(decoder, &operands[0], op->type);
    op->s[1] = ptx_source(decoder, &operands[1], op->type);
    op->s[0] = ptx_source(decoder, &operands[2], PTX_b32);
}

/* ---- elect.sync d|p, members: the seed picks the one; seed 0 the lowest, as was recorded on an H100 ---- */

static void run_elect(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    uint32_t left = mask, skip = 0;
    if (warp->block->launch->seed)
        skip = (uint32_t)(sim_random(&warp->block->random) % (uint32_t)__builtin_popcount(mask));
    while (skip--)
        left &= left - 1;
    uint32_t *d = PTX_ARRAY(uint32_t, op->d[0]), elected = (uint32_t)__builtin_ctz(left);
    PTX_LANES(d[l] = elected);
    PTX_MASK(op->d[1]) = (PTX_MASK(op->d[1]) & ~mask) | 1u << elected;
}

static void decode_elect(ptx_decoder *decoder) {
    ptx_op *op = decoder->op;
    const ptx_operand *operands = decoder->statement->operands;
    ptx_need(decoder, 90, 80);
    ptx_expect_types(decoder, 0);
    ptx_expect_operands(decoder, 2, 2);
    if (!operands[0].paired) ptx_refuse(decoder, "it has two results");
    ptx_operand result = operands[0];
    result.paired = false;
    op->run = run_elect;
    op->d[0] = ptx_result(decoder, &result, PTX_b32);
    op->d[1] = ptx_result(decoder, &operands[0].elements[0], PTX_pred);
    op->s[0] = ptx_source(decoder, &operands[1], PTX_b32);
}

static void run_activemask(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    uint32_t *d = PTX_ARRAY(uint32_t, op->d[0]);
    PTX_LANES(d[l] = mask);
}

void ptx_decode_warp(ptx_decoder *decoder) {
    const char *opcode = decoder->statement->opcode;
    if (strcmp(opcode, "activemask") == 0) {
        ptx_expect_types(decoder, 1);
        if (ptx_type_at(decoder, 0) != PTX_b32) ptx_refuse(decoder, "its type must be b32");
        ptx_expect_operands(decoder, 1, 1);
        decoder->op->run = run_activemask;
        decoder->op->d[0] = ptx_result(decoder, &decoder->statement->operands[0], PTX_b32);
        return;
    }
    decoder->op->flow = PTX_FLOW_WARP;
    if (!ptx_take(decoder, PTX_M_SYNC)) ptx_refuse(decoder, "without .sync it is gone since sm_70");
    if (strcmp(opcode, "shfl") == 0) decode_shuffle(decoder);
    if (strcmp(opcode, "vote") == 0) decode_vote(decoder);
    if (strcmp(opcode, "match") == 0) decode_match(decoder);
    if (strcmp(opcode, "redux") == 0) decode_redux(decoder);
    if (strcmp(opcode, "elect") == 0) decode_elect(decoder);
}
