/* atom and red: one lane after the other, from a lane that the seed picks, by compare and swap on the host's memory,
 * since blocks run in parallel. */
#include "tests/sim/ptx/ptx_decode.h"
#include "tests/sim/ptx/ptx_lanes.h"
#include <string.h>

enum {
    ATOMIC_ADD,
    ATOMIC_MIN,
    ATOMIC_MAX,
    ATOMIC_AND,
    ATOMIC_OR,
    ATOMIC_XOR,
    ATOMIC_EXCH,
    ATOMIC_CAS,
    ATOMIC_INC,
    ATOMIC_DEC
};

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* In global memory an f32 add flushes subnormals, in shared it does not. */
static uint32_t flush(uint32_t bits) {
    return bits & 0x7f800000u ? bits : bits & 0x80000000u;
}

static uint64_t add(const ptx_op *op, bool flushes, uint64_t old, uint64_t a) {
    if (op->type == PTX_f64) {
        double x, y;
        memcpy(&x, &old, sizeof x);
        memcpy(&y, &a, sizeof y);
        x += y;
        memcpy(&old, &x, sizeof old);
        return old;
    }
    if (op->type != PTX_f32) return old + a;
    if (!flushes) return bits_of(float_of((uint32_t)old) + float_of((uint32_t)a));
    return flush(bits_of(float_of(flush((uint32_t)old)) + float_of(flush((uint32_t)a))));
}

static bool less(const ptx_op *op, uint64_t a, uint64_t b) {
    switch (op->type) {
    case PTX_s32:
        return (int32_t)a < (int32_t)b;
    case PTX_s64:
        return (int64_t)a < (int64_t)b;
    default:
        return a < b;
    }
}

static uint64_t combine(const ptx_op *op, bool flushes, uint64_t old, uint64_t a, uint64_t b) {
    switch (op->mode) {
    case ATOMIC_ADD:
        return add(op, flushes, old, a);
    case ATOMIC_MIN:
        return less(op, a, old) ? a : old;
    case ATOMIC_MAX:
        return less(op, old, a) ? a : old;
    case ATOMIC_AND:
        return old & a;
    case ATOMIC_OR:
        return old | a;
    case ATOMIC_XOR:
        return old ^ a;
    case ATOMIC_EXCH:
        return a;
    case ATOMIC_CAS:
        return old == a ? b : old;
    case ATOMIC_INC:
        return old >= a ? 0 : old + 1;
    case ATOMIC_DEC:
        return old == 0 || old > a ? a : old - 1;
    default:
        return old;
    }
}

static uint64_t source(const ptx_warp *warp, const ptx_op *op, uint32_t index, uint32_t lane) {
    switch (ptx_type_bits(op->type)) {
    case 64:
        return PTX_ARRAY(const uint64_t, op->s[index])[lane];
    case 32:
        return PTX_ARRAY(const uint32_t, op->s[index])[lane];
    default:
        return PTX_ARRAY(const uint16_t, op->s[index])[lane];
    }
}

/* Replaces the value at memory by what function makes of it; returns the old one. */
static uint64_t exchange(const ptx_op *op, void *memory, bool flushes, uint64_t a, uint64_t b) {
    if (ptx_type_bits(op->type) == 64) {
        uint64_t *at = memory, old = __atomic_load_n(at, __ATOMIC_RELAXED);
        while (!__atomic_compare_exchange_n(at, &old, combine(op, flushes, old, a, b), true, __ATOMIC_SEQ_CST,
                                            __ATOMIC_RELAXED)) {
        }
        return old;
    }
    if (ptx_type_bits(op->type) == 32) {
        uint32_t *at = memory, old = __atomic_load_n(at, __ATOMIC_RELAXED);
        while (!__atomic_compare_exchange_n(at, &old, (uint32_t)combine(op, flushes, old, a, b), true, __ATOMIC_SEQ_CST,
                                            __ATOMIC_RELAXED)) {
        }
        return old;
    }
    uint16_t *at = memory, old = __atomic_load_n(at, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(at, &old, (uint16_t)combine(op, flushes, old, a, b), true, __ATOMIC_SEQ_CST,
                                        __ATOMIC_RELAXED)) {
    }
    return old;
}

static void run_atomic(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    uint32_t bytes = ptx_type_bits(op->type) / 8;
    uint32_t first = (uint32_t)(ptx_random(&warp->block->random) % PTX_WARP);
    for (uint32_t i = 0; i < PTX_WARP; i++) {
        uint32_t lane = (first + i) % PTX_WARP;
        if (!(mask >> lane & 1)) continue;
        uint64_t address = op->bits[0] == 64 ? PTX_ARRAY(uint64_t, op->s[0])[lane] + (uint64_t)op->offset
                                             : PTX_ARRAY(uint32_t, op->s[0])[lane] + (uint32_t)op->offset;
        void *memory = ptx_memory_at(warp, op, lane, op->space, address, bytes);
        if (!memory) return;
        bool shared = op->space == PTX_SPACE_SHARED ||
                      (op->space == PTX_SPACE_GENERIC && ptx_generic_space(address) == PTX_SPACE_SHARED);
        uint64_t b = op->mode == ATOMIC_CAS ? source(warp, op, 2, lane) : 0;
        uint64_t old = exchange(op, memory, !shared, source(warp, op, 1, lane), b);
        if (op->d[0] != PTX_NOWHERE) memcpy(warp->frame + op->d[0] + lane * bytes, &old, bytes);
    }
}

static bool type_fits(const ptx_op *op) {
    uint32_t bits = ptx_type_bits(op->type);
    ptx_type_class class = ptx_type_class_of(op->type);
    bool integer = class == PTX_CLASS_UNSIGNED || class == PTX_CLASS_SIGNED;
    switch (op->mode) {
    case ATOMIC_ADD:
        return op->type == PTX_f32 || op->type == PTX_f64 || (integer && bits >= 32 && op->type != PTX_s64);
    case ATOMIC_MIN:
    case ATOMIC_MAX:
        return integer && bits >= 32;
    case ATOMIC_AND:
    case ATOMIC_OR:
    case ATOMIC_XOR:
    case ATOMIC_EXCH:
        return class == PTX_CLASS_BITS && (bits == 32 || bits == 64);
    case ATOMIC_CAS:
        return class == PTX_CLASS_BITS && bits >= 16 && bits <= 64;
    case ATOMIC_INC:
    case ATOMIC_DEC:
        return op->type == PTX_u32;
    default:
        return false;
    }
}

void ptx_decode_atomic(ptx_decoder *decoder) {
    static const int functions[] = {PTX_M_ADD, PTX_M_MIN,  PTX_M_MAX, PTX_M_AND, PTX_M_OR,
                                    PTX_M_XOR, PTX_M_EXCH, PTX_M_CAS, PTX_M_INC, PTX_M_DEC};
    static const int words[] = {PTX_M_GLOBAL, PTX_M_SHARED, PTX_M_SHARED_CTA};
    ptx_op *op = decoder->op;
    const ptx_operand *operands = decoder->statement->operands;
    bool result = strcmp(decoder->statement->opcode, "atom") == 0;
    int function = ptx_take_one(decoder, functions, 10), space = ptx_take_one(decoder, words, 3);
    if (function < 0) ptx_refuse(decoder, "it has no operation");
    ptx_take_hints(decoder);
    ptx_take(decoder, PTX_M_NOFTZ);
    ptx_expect_types(decoder, 1);
    uint32_t sources = function == ATOMIC_CAS ? 2 : 1, first = result ? 1 : 0;
    uint32_t policies = function == ATOMIC_CAS || space > 0 ? 0 : ptx_take_policy(decoder);
    ptx_expect_operands(decoder, first + 1 + sources + policies, first + 1 + sources + policies);
    op->mode = (uint32_t)function;
    op->space = space < 0 ? PTX_SPACE_GENERIC : space == 0 ? PTX_SPACE_GLOBAL : PTX_SPACE_SHARED;
    op->type = ptx_type_at(decoder, 0);
    if (!type_fits(op)) ptx_refuse(decoder, "this type is not simulated");
    op->run = run_atomic;
    op->d[0] = result ? ptx_result(decoder, &operands[0], op->type) : PTX_NOWHERE;
    ptx_decode_pointer(decoder, &operands[first]);
    for (uint32_t i = 0; i < sources; i++)
        op->s[i + 1] = ptx_source(decoder, &operands[first + 1 + i], op->type);
}
