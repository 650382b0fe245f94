/* atom and red: one lane after the other, from a lane that the seed picks, by compare and swap on the host's memory,
 * since blocks run in parallel. */
#include "tests/sim/ptx/memory/ptx_atomic.h"
#include "tests/sim/ptx/alu/ptx_float.h"
#include <math.h>
#include <pthread.h>
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

/* The elements of 16 bits: to nearest, and subnormals stay. */
static uint64_t add_narrow(ptx_type type, uint64_t old, uint64_t a) {
    sim_format format = ptx_format_of(type);
    uint64_t sums = 0;
    for (uint32_t shift = 0; shift < ptx_type_bits(type); shift += 16) {
        double x = ptx_narrow_load(format, (uint32_t)(old >> shift) & 0xffff, 0);
        double y = ptx_narrow_load(format, (uint32_t)(a >> shift) & 0xffff, 0);
        sums |= (uint64_t)ptx_narrow_store(format, sim_add_odd(x, y), SIM_ROUND_NEAREST_EVEN, 0) << shift;
    }
    return sums;
}

/* In global memory an f32 add flushes subnormals, in shared it does not. */
static uint64_t add(const ptx_op *op, bool flushes, uint64_t old, uint64_t a) {
    if (ptx_format_of(op->type) != SIM_f32) return add_narrow(op->type, old, a);
    if (op->type == PTX_f32) {
        uint32_t flags = flushes ? PTX_F_FTZ : 0;
        double x = ptx_narrow_load(SIM_f32, (uint32_t)old, flags), y = ptx_narrow_load(SIM_f32, (uint32_t)a, flags);
        return ptx_narrow_store(SIM_f32, sim_add_odd(x, y), SIM_ROUND_NEAREST_EVEN, flags);
    }
    if (op->type == PTX_f64) {
        double x, y;
        memcpy(&x, &old, sizeof x);
        memcpy(&y, &a, sizeof y);
        x = isnan(x + y) ? ptx_double_nan() : x + y;
        memcpy(&old, &x, sizeof old);
        return old;
    }
    return old + a;
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

/* Whether an element still had its old value, and has the new one now; if not, *old is what it has. */
static bool replaced(void *memory, uint32_t bytes, uint64_t *old, uint64_t value) {
    if (bytes == 8) {
        return __atomic_compare_exchange_n((uint64_t *)memory, old, value, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
    }
    if (bytes == 4) {
        uint32_t before = (uint32_t)*old;
        const bool same = __atomic_compare_exchange_n((uint32_t *)memory, &before, (uint32_t)value, false,
                                                      __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
        *old = before;
        return same;
    }
    uint16_t before = (uint16_t)*old;
    const bool same = __atomic_compare_exchange_n((uint16_t *)memory, &before, (uint16_t)value, false, __ATOMIC_SEQ_CST,
                                                  __ATOMIC_RELAXED);
    *old = before;
    return same;
}

/* exch and cas of 128 bits, one at a time, since not every host has such an instruction. */
static unsigned __int128 exchange_wide(const ptx_op *op, unsigned __int128 *at, unsigned __int128 a,
                                       unsigned __int128 b) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    unsigned __int128 old = *at;
    if (op->mode == ATOMIC_EXCH)
        *at = a;
    else if (old == a)
        *at = b;
    pthread_mutex_unlock(&lock);
    return old;
}

static void run_lane_wide(ptx_warp *warp, const ptx_op *op, uint32_t lane, void *memory) {
    unsigned __int128 a = PTX_ARRAY(unsigned __int128, op->s[1])[lane], b = 0;
    if (op->mode == ATOMIC_CAS) b = PTX_ARRAY(unsigned __int128, op->s[2])[lane];
    PTX_ARRAY(unsigned __int128, op->d[0])[lane] = exchange_wide(op, memory, a, b);
}

/* Whether it leaves another value than it found. One that asks does not. */
static bool changes(const ptx_op *op, uint64_t old, uint64_t a, uint64_t b) {
    uint64_t bits = ptx_type_bits(op->type) == 64 ? ~0ull : (1ull << ptx_type_bits(op->type)) - 1;
    return ((combine(op, true, old, a, b) ^ old) & bits) != 0;
}

static void run_atomic(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    uint32_t bytes = ptx_type_bits(op->type) / 8;
    uint32_t first = (uint32_t)(sim_random(&warp->block->random) % PTX_WARP);
    if (op->polls) ptx_wait_ask(warp, op);
    for (uint32_t i = 0; i < PTX_WARP; i++) {
        uint32_t lane = (first + i) % PTX_WARP;
        if (!(mask >> lane & 1)) continue;
        uint64_t address = op->bits[0] == 64 ? PTX_ARRAY(uint64_t, op->s[0])[lane] + (uint64_t)op->offset
                                             : PTX_ARRAY(uint32_t, op->s[0])[lane] + (uint32_t)op->offset;
        void *memory = ptx_memory_at(warp, op, lane, op->space, address, bytes);
        if (!memory) return;
        if (bytes == 16) {
            warp->block->moved = true;
            run_lane_wide(warp, op, lane, memory);
            continue;
        }
        bool shared = op->space == PTX_SPACE_SHARED || op->space == PTX_SPACE_CLUSTER ||
                      (op->space == PTX_SPACE_GENERIC && ptx_generic_space(address) == PTX_SPACE_SHARED);
        uint64_t b = op->mode == ATOMIC_CAS ? source(warp, op, 2, lane) : 0;
        uint64_t old = exchange(op, memory, !shared, source(warp, op, 1, lane), b);
        warp->block->moved |= changes(op, old, source(warp, op, 1, lane), b);
        if (op->d[0] != PTX_NOWHERE) memcpy(warp->frame + op->d[0] + lane * bytes, &old, bytes);
    }
}

/* f16 and bf16, alone or two of them: add.noftz. */
static bool is_narrow_float(const ptx_op *op) {
    return ptx_format_of(op->type) != SIM_f32;
}

static bool type_fits(const ptx_op *op, bool result) {
    uint32_t bits = ptx_type_bits(op->type);
    ptx_type_class class = ptx_type_class_of(op->type);
    bool integer = class == PTX_CLASS_UNSIGNED || class == PTX_CLASS_SIGNED;
    switch (op->mode) {
    case ATOMIC_ADD:
        return op->type == PTX_f32 || op->type == PTX_f64 || is_narrow_float(op) ||
               (integer && bits >= 32 && op->type != PTX_s64);
    case ATOMIC_MIN:
    case ATOMIC_MAX:
        return integer && bits >= 32;
    case ATOMIC_AND:
    case ATOMIC_OR:
    case ATOMIC_XOR:
        return class == PTX_CLASS_BITS && (bits == 32 || bits == 64);
    case ATOMIC_EXCH:
        return result && class == PTX_CLASS_BITS && bits >= 32;
    case ATOMIC_CAS:
        return result && class == PTX_CLASS_BITS && bits >= 16;
    case ATOMIC_INC:
    case ATOMIC_DEC:
        return op->type == PTX_u32;
    default:
        return false;
    }
}

/* What a type needs beside its operation. */
static void check_type(ptx_decoder *decoder) {
    const ptx_op *op = decoder->op;
    if (is_narrow_float(op)) {
        if (!ptx_take(decoder, PTX_M_NOFTZ)) ptx_refuse(decoder, "it needs .noftz");
        if (ptx_format_of(op->type) == SIM_bf16) ptx_need(decoder, 90, 78);
    }
    if (op->type == PTX_b128) ptx_need(decoder, 90, 83);
}

void ptx_take_atomic(ptx_decoder *decoder) {
    static const int functions[] = {PTX_M_ADD, PTX_M_MIN,  PTX_M_MAX, PTX_M_AND, PTX_M_OR,
                                    PTX_M_XOR, PTX_M_EXCH, PTX_M_CAS, PTX_M_INC, PTX_M_DEC};
    const int function = ptx_take_one(decoder, functions, 10);
    if (function < 0) ptx_refuse(decoder, "it has no operation");
    decoder->op->mode = (uint32_t)function;
}

/* .inc and .dec of u32; .min and .max of 32 bits; .add of those and of u64; .and, .or and .xor of b32. */
bool ptx_atomic_async_fits(const ptx_op *op) {
    if (op->mode == ATOMIC_ADD && op->type == PTX_u64) return true;
    const ptx_type_class class = ptx_type_class_of(op->type);
    return type_fits(op, false) && ptx_type_bits(op->type) == 32 && class != PTX_CLASS_FLOAT;
}

bool ptx_atomic_tensor_fits(const ptx_op *op) {
    return op->mode != ATOMIC_EXCH && op->mode != ATOMIC_CAS;
}

bool ptx_atomic_bulk_fits(const ptx_op *op) {
    const ptx_type_class class = ptx_type_class_of(op->type);
    const bool narrow = op->type == PTX_f16 || op->type == PTX_bf16;
    if (!ptx_atomic_tensor_fits(op) || class == PTX_CLASS_PACKED) return false;
    return type_fits(op, false) || (narrow && (op->mode == ATOMIC_MIN || op->mode == ATOMIC_MAX));
}

/* The lesser or greater of two, the number where one is NaN; -0 is less than 0. */
static uint64_t pick_narrow(const ptx_op *op, uint64_t old, uint64_t a) {
    const sim_format format = ptx_format_of(op->type);
    const double x = ptx_narrow_load(format, (uint32_t)old & 0xffff, 0);
    const double y = ptx_narrow_load(format, (uint32_t)a & 0xffff, 0);
    if (isnan(x) && isnan(y)) return 0x7fff;
    if (isnan(x) || isnan(y)) return isnan(x) ? a : old;
    const bool lesser = x < y || (x == y && signbit(x) && !signbit(y));
    return lesser == (op->mode == ATOMIC_MIN) ? old : a;
}

/* One element, of which NaN has all bits but the sign's. */
static uint64_t reduced(const ptx_op *op, bool flushes, uint64_t old, uint64_t a) {
    if (is_narrow_float(op) && op->mode != ATOMIC_ADD) return pick_narrow(op, old, a);
    const uint64_t result = combine(op, flushes, old, a, 0);
    const bool nan = op->type == PTX_f64 && (result & ~(1ull << 63)) > 0x7ffull << 52;
    return nan ? ~(1ull << 63) : result;
}

void ptx_atomic_reduce(const ptx_op *op, ptx_type type, bool flushes, void *memory, const uint8_t *bytes,
                       uint32_t size) {
    const uint32_t element = ptx_type_bits(type) / 8;
    ptx_op one = *op;
    one.type = type;
    for (uint32_t at = 0; at < size; at += element) {
        uint64_t a = 0, old = 0;
        memcpy(&a, bytes + at, element);
        memcpy(&old, (uint8_t *)memory + at, element);
        uint64_t result;
        do
            result = reduced(&one, flushes, old, a);
        while (!replaced((uint8_t *)memory + at, element, &old, result));
    }
}

void ptx_atomic_apply(const ptx_op *op, void *memory, uint64_t value) {
    exchange(op, memory, false, value, 0);
}

void ptx_decode_atomic(ptx_decoder *decoder) {
    static const int words[] = {PTX_M_GLOBAL, PTX_M_SHARED, PTX_M_SHARED_CTA, PTX_M_SHARED_CLUSTER};
    ptx_op *op = decoder->op;
    const ptx_operand *operands = decoder->statement->operands;
    bool result = strcmp(decoder->statement->opcode, "atom") == 0;
    if (!result && ptx_take(decoder, PTX_M_ASYNC)) {
        ptx_decode_reduce_async(decoder);
        return;
    }
    ptx_take_atomic(decoder);
    const uint32_t function = op->mode;
    int space = ptx_take_one(decoder, words, 4);
    op->space = space < 0 ? PTX_SPACE_GENERIC : space == 0 ? PTX_SPACE_GLOBAL : PTX_SPACE_SHARED;
    if (space == 2) ptx_need(decoder, 0, 78);
    if (space == 3) ptx_need(decoder, 90, 78);
    if (space == 3) op->space = PTX_SPACE_CLUSTER;
    op->polls = ptx_take_access(decoder, result ? PTX_ACCESS_ATOMIC : PTX_ACCESS_REDUCTION, op->space);
    ptx_expect_types(decoder, 1);
    op->type = ptx_type_at(decoder, 0);
    if (!type_fits(op, result)) ptx_refuse(decoder, "this type is not simulated");
    check_type(decoder);
    uint32_t sources = function == ATOMIC_CAS ? 2 : 1, first = result ? 1 : 0;
    uint32_t policies = function == ATOMIC_CAS || space > 0 ? 0 : ptx_take_policy(decoder);
    ptx_expect_operands(decoder, first + 1 + sources + policies, first + 1 + sources + policies);
    op->run = run_atomic;
    op->d[0] = result ? ptx_result(decoder, &operands[0], op->type) : PTX_NOWHERE;
    ptx_decode_pointer(decoder, &operands[first]);
    for (uint32_t i = 0; i < sources; i++)
        op->s[i + 1] = ptx_source(decoder, &operands[first + 1 + i], op->type);
}
