/* Barriers in shared memory: mbarrier.init, .inval, .arrive, .arrive_drop, .expect_tx, .complete_tx, .test_wait,
 * .try_wait and .pending_count, and cp.async.mbarrier.arrive. (PTX ISA, "Parallel Synchronization and Communication
 * Instructions: mbarrier"; what it leaves open is as an H100 recorded it.)
 *
 * Arrivals and counts of bytes reach barriers of other blocks of the cluster, and give no state then. A phase ends when
 * no arrival is pending and as many bytes were completed as were expected; both may come first. A state is the object
 * as it was before the arrival, so its pending count is the one before, and a test of a state of any age looks at its
 * parity alone. Who has seen a phase end comes after what those did who arrived in it, and after the asynchronous
 * operations that completed in it. An arrival on copies takes them as done when it is made: nothing may touch them
 * before the phase has ended all the same. */
#include "tests/sim/ptx/decode/ptx_decode.h"
#include "tests/sim/ptx/memory/ptx_landing.h"
#include "tests/sim/ptx/memory/ptx_shared.h"
#include "tests/sim/ptx/warp/ptx_cluster.h"
#include "tests/sim/ptx/warp/ptx_lanes.h"
#include <string.h>

enum { INIT, INVAL, ARRIVE, ARRIVE_DROP, TEST_WAIT, TRY_WAIT, PENDING_COUNT, EXPECT_TX, COMPLETE_TX, ARRIVE_ON_COPIES };

/* How, in op->count. */
enum { NO_COMPLETE = 1, WITH_TX = 2, PARITY = 4, ACQUIRES = 8, NO_INCREMENT = 16 };

enum { COUNT_MAX = (1 << 20) - 1, COUNT_BITS = 20, TX_BITS = 22, TX_ZERO = 1 << 20 };

/* What an object holds; its bits are the interpreter's own. */
typedef struct mbarrier {
    uint32_t pending, expected; /* arrivals of this phase, and of each */
    int32_t tx;                 /* bytes that were expected and are not completed */
    bool valid, phase;          /* the phase's parity */
} mbarrier;

static uint64_t pack(const mbarrier *b) {
    return b->pending | (uint64_t)b->expected << COUNT_BITS | (uint64_t)(b->tx + TX_ZERO) << 2 * COUNT_BITS |
           (uint64_t)b->valid << (2 * COUNT_BITS + TX_BITS) | (uint64_t)b->phase << 63;
}

static mbarrier unpack(uint64_t bits) {
    return (mbarrier){.pending = (uint32_t)bits & COUNT_MAX,
                      .expected = (uint32_t)(bits >> COUNT_BITS) & COUNT_MAX,
                      .tx = (int32_t)(bits >> 2 * COUNT_BITS & ((1 << TX_BITS) - 1)) - TX_ZERO,
                      .valid = bits >> (2 * COUNT_BITS + TX_BITS) & 1,
                      .phase = bits >> 63};
}

/* What a lane's instruction is about. */
typedef struct visit {
    ptx_warp *warp;
    const ptx_op *op;
    uint32_t lane;
    uint64_t address;
    ptx_block *block; /* that has the barrier, */
    uint64_t offset;  /* and where */
} visit;

static bool is_wrong(const visit *v, const char *what, uint32_t number) {
    ptx_fault(v->warp, v->op, SIM_FAULT_ILLEGAL, v->lane, v->address, what, number);
    return false;
}

static void end_phase(const visit *v, mbarrier *b) {
    if (b->pending || b->tx) return;
    b->phase = !b->phase;
    b->pending = b->expected;
    ptx_landing_end_phase(v->block, v->offset);
}

static bool add_bytes(const visit *v, mbarrier *b, int64_t bytes) {
    if (bytes > COUNT_MAX || bytes < -COUNT_MAX || b->tx + bytes > COUNT_MAX || b->tx + bytes < -COUNT_MAX)
        return is_wrong(v, "a transaction count beyond 2^20 - 1: %u bytes", (uint32_t)(bytes < 0 ? -bytes : bytes));
    b->tx += (int32_t)bytes;
    return true;
}

static bool arrive(const visit *v, mbarrier *b, uint32_t count) {
    if (!count || count > COUNT_MAX) return is_wrong(v, "a count of %u arrivals", count);
    if (count > b->pending) return is_wrong(v, "%u arrivals, more than are pending", count);
    if (v->op->count & NO_COMPLETE && count == b->pending && !b->tx)
        return is_wrong(v, "%u arrivals that are to end no phase end it", count);
    b->pending -= count;
    if (v->op->mode == ARRIVE_DROP) b->expected -= count;
    end_phase(v, b);
    return true;
}

static uint32_t word(const visit *v, uint32_t source, uint32_t absent) {
    const ptx_warp *warp = v->warp;
    return v->op->s[source] == PTX_NOWHERE ? absent : PTX_ARRAY(const uint32_t, v->op->s[source])[v->lane];
}

static bool init(const visit *v, mbarrier *b) {
    const uint32_t count = word(v, 1, 0);
    if (!count || count > COUNT_MAX) return is_wrong(v, "a barrier of %u arrivals", count);
    *b = (mbarrier){.pending = count, .expected = count, .valid = true};
    return true;
}

/* Without .noinc the arrival adds itself to what is pending first, so that the count is the other arrivals'. */
static bool arrive_on_copies(const visit *v, mbarrier *b) {
    if (!(v->op->count & NO_INCREMENT) && b->pending++ == COUNT_MAX)
        return is_wrong(v, "%u arrivals are pending already", COUNT_MAX);
    return arrive(v, b, 1);
}

/* Changes the object. false after a fault. */
static bool change(const visit *v, mbarrier *b) {
    const bool with_tx = v->op->count & WITH_TX;
    switch (v->op->mode) {
    case INIT:
        return init(v, b);
    case INVAL:
        b->valid = false;
        return true;
    case ARRIVE:
    case ARRIVE_DROP:
        return (!with_tx || add_bytes(v, b, word(v, 1, 0))) && arrive(v, b, with_tx ? 1 : word(v, 1, 1));
    case ARRIVE_ON_COPIES:
        return arrive_on_copies(v, b);
    case EXPECT_TX:
        return add_bytes(v, b, word(v, 1, 0));
    default:
        if (!add_bytes(v, b, -(int64_t)word(v, 1, 0))) return false;
        end_phase(v, b);
        return true;
    }
}

/* Whether the phase has ended that a state or a parity means. */
static bool ended(const visit *v, const mbarrier *b, bool *out_ended) {
    const ptx_warp *warp = v->warp;
    bool asked;
    if (v->op->count & PARITY) {
        const uint32_t parity = word(v, 1, 0);
        if (parity > 1) return is_wrong(v, "a parity of %u", parity);
        asked = parity;
    } else {
        asked = unpack(PTX_ARRAY(const uint64_t, v->op->s[1])[v->lane]).phase;
    }
    *out_ended = b->phase != asked;
    return true;
}

static bool is_test(const ptx_op *op) {
    return op->mode == TEST_WAIT || op->mode == TRY_WAIT;
}

static void give_predicate(const visit *v, bool value) {
    const ptx_warp *warp = v->warp;
    const uint32_t bit = 1u << v->lane;
    PTX_MASK(v->op->d[0]) = value ? PTX_MASK(v->op->d[0]) | bit : PTX_MASK(v->op->d[0]) & ~bit;
}

static bool test(const visit *v, const mbarrier *b) {
    bool done = false;
    if (!ended(v, b, &done)) return false;
    give_predicate(v, done);
    if (done) v->warp->asks = false;
    if (done) ptx_landing_land(v->block, v->offset);
    if (done && v->op->count & ACQUIRES) ptx_flag_acquire(v->block, v->warp, v->offset);
    return true;
}

/* One lane. false after a fault. */
static bool run_lane(ptx_warp *warp, const ptx_op *op, uint32_t lane) {
    const uint64_t address = op->bits[0] == 64 ? PTX_ARRAY(uint64_t, op->s[0])[lane] + (uint64_t)op->offset
                                               : PTX_ARRAY(uint32_t, op->s[0])[lane] + (uint32_t)op->offset;
    visit v = {warp, op, lane, address, NULL, 0};
    if (op->space == PTX_SPACE_GENERIC && ptx_generic_space(address) != PTX_SPACE_SHARED)
        return is_wrong(&v, "a barrier that is not in shared memory", 0);
    v.block = ptx_cluster_block(warp, op, lane, op->space == PTX_SPACE_GENERIC ? address & ~PTX_WINDOW_MASK : address,
                                &v.offset);
    if (!v.block) return false;
    if (v.block != warp->block && op->space != PTX_SPACE_CLUSTER)
        return is_wrong(&v, "a barrier of block %u of the cluster, which .shared::cluster reaches", v.block->rank);
    if (op->mode == ARRIVE_ON_COPIES) ptx_async_land(warp, op, lane); /* before what it releases */
    uint8_t *memory = ptx_memory_bytes(warp, op, lane, op->space, address, sizeof(uint64_t), op->mode != INIT, true);
    if (!memory) return false;
    uint64_t before, after;
    memcpy(&before, memory, sizeof before);
    mbarrier b = unpack(before);
    if (op->mode != INIT && !b.valid) return is_wrong(&v, "no barrier was initialised there", 0);
    if (is_test(op)) return test(&v, &b);
    if (!change(&v, &b)) return false;
    after = pack(&b);
    memcpy(memory, &after, sizeof after);
    warp->block->moved = true;
    if (op->d[0] != PTX_NOWHERE) PTX_ARRAY(uint64_t, op->d[0])[lane] = before;
    return true;
}

bool ptx_mbarrier_complete(ptx_block *block, ptx_warp *warp, const ptx_op *op, uint32_t lane, uint64_t barrier,
                           uint32_t bytes) {
    ptx_op complete = {.mode = COMPLETE_TX, .line = op->line, .flags = PTX_F_STRONG};
    const visit v = {warp, &complete, lane, barrier, block, barrier};
    uint64_t bits;
    if (barrier % sizeof bits) {
        ptx_fault(warp, op, SIM_FAULT_MISALIGNED, lane, barrier, "a barrier");
        return false;
    }
    uint8_t *memory = ptx_shared_bytes_of(block, warp, &complete, lane, barrier, sizeof bits, true, true);
    if (!memory) return false;
    memcpy(&bits, memory, sizeof bits);
    mbarrier b = unpack(bits);
    if (!b.valid) return is_wrong(&v, "no barrier was initialised there", 0);
    if (!add_bytes(&v, &b, -(int64_t)bytes)) return false;
    end_phase(&v, &b);
    bits = pack(&b);
    memcpy(memory, &bits, sizeof bits);
    warp->block->moved = true;
    return true;
}

static void run_mbarrier(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    const uint32_t first = (uint32_t)(sim_random(&warp->block->random) % PTX_WARP);
    if (op->polls) ptx_wait_ask(warp, op);
    for (uint32_t i = 0; i < PTX_WARP; i++) {
        const uint32_t lane = (first + i) % PTX_WARP;
        if (mask >> lane & 1 && !run_lane(warp, op, lane)) return;
    }
}

static void run_pending_count(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    const uint64_t *states = PTX_ARRAY(const uint64_t, op->s[1]);
    uint32_t *counts = PTX_ARRAY(uint32_t, op->d[0]);
    PTX_LANES(counts[l] = unpack(states[l]).pending);
}

/* ---- Decoding ---- */

static void take_space(ptx_decoder *decoder) {
    static const int words[] = {PTX_M_SHARED, PTX_M_SHARED_CTA, PTX_M_SHARED_CLUSTER};
    const int space = ptx_take_one(decoder, words, 3);
    if (space == 1) ptx_need(decoder, 0, 78);
    const bool reaches = decoder->op->mode == ARRIVE || decoder->op->mode == ARRIVE_DROP ||
                         decoder->op->mode == EXPECT_TX || decoder->op->mode == COMPLETE_TX;
    if (space == 2) ptx_need(decoder, 90, 80);
    if (space == 2 && !reaches) ptx_refuse(decoder, "it reaches no barrier of another block");
    decoder->op->space = space < 0 ? PTX_SPACE_GENERIC : space == 2 ? PTX_SPACE_CLUSTER : PTX_SPACE_SHARED;
}

/* The order that is written, or the default of an arrival and of a wait. */
static void take_order(ptx_decoder *decoder, bool waits) {
    static const int orders[] = {PTX_M_RELEASE, PTX_M_ACQUIRE, PTX_M_RELAXED}, scopes[] = {PTX_M_CTA, PTX_M_CLUSTER};
    ptx_op *op = decoder->op;
    const int order = ptx_take_one(decoder, orders, 3), scope = ptx_take_one(decoder, scopes, 2);
    const bool bytes_alone = op->mode == EXPECT_TX || op->mode == COMPLETE_TX;
    if (order >= 0) ptx_need(decoder, scope == 1 || order == 2 ? 90 : 80, order == 2 && !bytes_alone ? 86 : 80);
    if ((order >= 0) != (scope >= 0) || order == (waits ? 0 : 1) || (bytes_alone && order != 2 && order >= 0))
        ptx_refuse(decoder, "it has no such order");
    if (waits && order != 2) op->count |= ACQUIRES;
    if (!waits && !bytes_alone && order != 2) op->flags |= PTX_F_RELEASE;
}

static void decode_wait(ptx_decoder *decoder, const ptx_operand *operands, uint32_t count) {
    ptx_op *op = decoder->op;
    const bool parity = ptx_take(decoder, PTX_M_PARITY);
    if (op->mode == TRY_WAIT) ptx_need(decoder, 90, 78);
    if (parity) ptx_need(decoder, 80, 71);
    if (parity) op->count |= PARITY;
    take_order(decoder, true);
    ptx_expect_operands(decoder, 3, op->mode == TRY_WAIT ? 4 : 3);
    bool negated = false;
    op->d[0] = ptx_predicate(decoder, &operands[0], &negated);
    ptx_decode_pointer(decoder, &operands[1]);
    op->s[1] = ptx_source(decoder, &operands[2], parity ? PTX_u32 : PTX_b64);
    if (count == 4) op->s[2] = ptx_source(decoder, &operands[3], PTX_u32); /* how long to wait: it is not told apart */
    op->polls = true;
}

/* [state,] [address] [, count] */
static void decode_arrive(ptx_decoder *decoder, const ptx_operand *operands, uint32_t count, bool with_tx) {
    ptx_op *op = decoder->op;
    const bool no_complete = ptx_take(decoder, PTX_M_NO_COMPLETE);
    if (with_tx) ptx_need(decoder, 90, 80);
    if (with_tx && no_complete) ptx_refuse(decoder, ".noComplete and .expect_tx exclude each other");
    op->count |= (no_complete ? NO_COMPLETE : 0u) | (with_tx ? WITH_TX : 0u);
    take_order(decoder, false);
    const uint32_t counted = with_tx || no_complete ? 1 : 0;
    ptx_expect_operands(decoder, 2 + counted, 3);
    if (count == 3 && !no_complete && !with_tx) ptx_need(decoder, 90, 78);
    if (operands[0].kind == PTX_OPERAND_NONE)
        ptx_need(decoder, 80, 71);
    else
        op->d[0] = ptx_result(decoder, &operands[0], PTX_b64);
    if (op->space == PTX_SPACE_CLUSTER && (no_complete || operands[0].kind != PTX_OPERAND_NONE))
        ptx_refuse(decoder, "a barrier of another block gives no state");
    ptx_decode_pointer(decoder, &operands[1]);
    if (count == 3) op->s[1] = ptx_source(decoder, &operands[2], PTX_u32);
}

static void decode_pending_count(ptx_decoder *decoder, const ptx_operand *operands) {
    ptx_op *op = decoder->op;
    ptx_expect_operands(decoder, 2, 2);
    op->run = run_pending_count;
    op->d[0] = ptx_result(decoder, &operands[0], PTX_u32);
    op->s[1] = ptx_source(decoder, &operands[1], PTX_b64);
}

/* [address] [, count] */
static void decode_plain(ptx_decoder *decoder, const ptx_operand *operands) {
    ptx_op *op = decoder->op;
    const uint32_t count = op->mode == INVAL ? 1 : 2;
    if (op->mode >= EXPECT_TX) ptx_need(decoder, 90, 80);
    if (op->mode >= EXPECT_TX) take_order(decoder, false);
    ptx_expect_operands(decoder, count, count);
    ptx_decode_pointer(decoder, &operands[0]);
    if (count == 2) op->s[1] = ptx_source(decoder, &operands[1], PTX_u32);
}

void ptx_decode_mbarrier(ptx_decoder *decoder) {
    static const int kinds[] = {PTX_M_INIT,      PTX_M_INVAL,    PTX_M_ARRIVE,       PTX_M_ARRIVE_DROP,
                                PTX_M_TEST_WAIT, PTX_M_TRY_WAIT, PTX_M_PENDING_COUNT};
    const ptx_operand *operands = decoder->statement->operands;
    const uint32_t count = decoder->statement->operand_count;
    ptx_op *op = decoder->op;
    int kind = ptx_take_one(decoder, kinds, 7);
    const bool with_tx = ptx_take(decoder, PTX_M_EXPECT_TX);
    if (kind < 0) kind = with_tx ? EXPECT_TX : ptx_take(decoder, PTX_M_COMPLETE_TX) ? COMPLETE_TX : -1;
    if (kind < 0) ptx_refuse(decoder, "it has no operation");
    ptx_need(decoder, 80, 70);
    ptx_expect_types(decoder, 1);
    if (ptx_type_at(decoder, 0) != PTX_b64) ptx_refuse(decoder, "a barrier is of .b64");
    op->mode = (uint32_t)kind;
    op->run = run_mbarrier;
    op->d[0] = op->s[1] = op->s[2] = PTX_NOWHERE;
    if (kind == PENDING_COUNT) {
        decode_pending_count(decoder, operands);
        return;
    }
    take_space(decoder);
    if (kind != INIT) op->flags |= PTX_F_STRONG;
    decoder->program->uses_flags = true;
    if (kind == TEST_WAIT || kind == TRY_WAIT)
        decode_wait(decoder, operands, count);
    else if (kind == ARRIVE || kind == ARRIVE_DROP)
        decode_arrive(decoder, operands, count, with_tx);
    else
        decode_plain(decoder, operands);
}

void ptx_decode_arrive_on_copies(ptx_decoder *decoder) {
    ptx_op *op = decoder->op;
    if (!ptx_take(decoder, PTX_M_ARRIVE)) ptx_refuse(decoder, "it has no operation");
    if (ptx_take(decoder, PTX_M_NOINC)) op->count |= NO_INCREMENT;
    ptx_expect_types(decoder, 1);
    if (ptx_type_at(decoder, 0) != PTX_b64) ptx_refuse(decoder, "a barrier is of .b64");
    ptx_expect_operands(decoder, 1, 1);
    op->mode = ARRIVE_ON_COPIES;
    take_space(decoder);
    op->run = run_mbarrier;
    op->d[0] = op->s[1] = op->s[2] = PTX_NOWHERE;
    op->flags |= PTX_F_STRONG | PTX_F_RELEASE;
    decoder->program->uses_flags = true;
    ptx_decode_pointer(decoder, &decoder->statement->operands[0]);
}
