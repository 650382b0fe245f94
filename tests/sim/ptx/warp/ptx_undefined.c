#include "tests/sim/ptx/warp/ptx_undefined.h"
#include "tests/sim/ptx/decode/ptx_decode.h"
#include <stdlib.h>
#include <string.h>

typedef enum use {
    USE_STRICT, /* all that it reads must be defined */
    USE_SPREAD, /* a result is wholly undefined if anything that it is made of is in part */
    USE_MOVE,   /* the first sources' bits go to other places, where the other sources say */
    USE_AND,
    USE_OR,
    USE_XOR,
    USE_SHUFFLE, /* the first source may be undefined in a lane that no other reads */
    USE_LOAD,
    USE_STORE
} use;

/* By family. */
enum {
    FAMILY_arithmetic = USE_SPREAD,
    FAMILY_carry = USE_SPREAD,
    FAMILY_logic = USE_SPREAD,
    FAMILY_shift = USE_SPREAD,
    FAMILY_funnel = USE_SPREAD,
    FAMILY_lop3 = USE_SPREAD,
    FAMILY_permute = USE_SPREAD,
    FAMILY_count = USE_SPREAD,
    FAMILY_field = USE_SPREAD,
    FAMILY_dot = USE_SPREAD,
    FAMILY_video = USE_SPREAD,
    FAMILY_special = USE_SPREAD,
    FAMILY_convert = USE_SPREAD,
    FAMILY_address = USE_SPREAD,
    FAMILY_rank = USE_STRICT,
    FAMILY_compare = USE_SPREAD,
    FAMILY_select = USE_SPREAD,
    FAMILY_move = USE_SPREAD,
    FAMILY_memory = USE_LOAD,
    FAMILY_async = USE_STRICT,
    FAMILY_mbarrier = USE_STRICT,
    FAMILY_hint = USE_STRICT,
    FAMILY_atomic = USE_STRICT,
    FAMILY_branch = USE_STRICT,
    FAMILY_call = USE_STRICT,
    FAMILY_exit = USE_STRICT,
    FAMILY_stack = USE_STRICT,
    FAMILY_barrier = USE_STRICT,
    FAMILY_fence = USE_STRICT,
    FAMILY_warp = USE_STRICT,
    FAMILY_matrix_multiply = USE_STRICT,
    FAMILY_matrix_warp = USE_STRICT,
    FAMILY_matrix_move = USE_STRICT,
    FAMILY_warpgroup = USE_STRICT,
    FAMILY_registers = USE_STRICT
};

/* Before it: (opcode, use, sources of a MOVE that are moved). */
static const struct {
    const char *opcode;
    use use;
    uint32_t moved;
} exceptions[] = {{"mov", USE_MOVE, PTX_OPERAND_MAX},
                  {"cvt", USE_MOVE, 1},
                  {"shl", USE_MOVE, 1},
                  {"shr", USE_MOVE, 1},
                  {"shf", USE_MOVE, 2},
                  {"prmt", USE_MOVE, 2},
                  {"bfe", USE_MOVE, 1},
                  {"bfi", USE_MOVE, 2},
                  {"selp", USE_MOVE, 2},
                  {"and", USE_AND, 0},
                  {"or", USE_OR, 0},
                  {"xor", USE_XOR, 0},
                  {"not", USE_XOR, 0},
                  {"shfl", USE_SHUFFLE, 1},
                  {"st", USE_STORE, 0}};

static bool is_float(ptx_type type) {
    return ptx_type_class_of(type) == PTX_CLASS_FLOAT || ptx_type_class_of(type) == PTX_CLASS_PACKED;
}

void ptx_undefined_decode(ptx_decoder *decoder, const char *opcode) {
    static const struct {
        const char *opcode;
        use use;
    } rows[] = {
#define PTX_OPCODE(opcode, family) {#opcode, (use)FAMILY_##family},
#include "tests/sim/ptx/decode/ptx_opcodes.def"
#undef PTX_OPCODE
    };
    ptx_op *op = decoder->op;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].opcode[0] != opcode[0] || strcmp(rows[i].opcode, opcode) != 0) continue;
        op->use = (uint8_t)rows[i].use;
        break;
    }
    for (size_t i = 0; i < sizeof exceptions / sizeof *exceptions; i++) {
        if (strcmp(exceptions[i].opcode, opcode) != 0) continue;
        op->use = (uint8_t)exceptions[i].use;
        op->moved = (uint8_t)exceptions[i].moved;
    }
    bool changes = strcmp(opcode, "cvt") == 0 && (is_float(op->type) || is_float(op->from) || op->flags & PTX_F_SAT);
    if (!changes) return;
    op->use = USE_SPREAD;
    op->moved = 0;
}

/* ---- The account ---- */

typedef struct origin {
    uint32_t line; /* of the load */
    bool shared;   /* local otherwise */
    uint64_t address;
} origin;

struct ptx_undefined {
    origin *origins; /* of each lane of each register */
    uint8_t bits[];
};

uint8_t *ptx_undefined_bits(ptx_warp *warp) {
    ptx_frame *frame = warp->group->frame;
    if (!frame->undefined) {
        frame->undefined = calloc(1, sizeof *frame->undefined + frame->code->frame_bytes);
        if (!frame->undefined) abort();
        frame->undefined->origins = calloc(frame->code->function->register_count + 1, PTX_WARP * sizeof(origin));
        if (!frame->undefined->origins) abort();
    }
    return frame->undefined->bits;
}

void ptx_undefined_free(ptx_frame *frame) {
    if (frame->undefined) free(frame->undefined->origins);
    free(frame->undefined);
}

static uint32_t width_of(const ptx_code *code, uint32_t number) {
    return ptx_type_bits(code->function->registers[number].type);
}

/* The lanes of mask in which a register is undefined in part. */
static uint32_t lanes_undefined(const ptx_warp *warp, uint32_t number, uint32_t mask) {
    const ptx_code *code = warp->group->frame->code;
    const uint8_t *bits = warp->group->frame->undefined->bits + code->places[number];
    uint32_t width = width_of(code, number) / 8, lanes = 0;
    if (!width) {
        memcpy(&lanes, bits, sizeof lanes);
        return lanes & mask;
    }
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
        uint32_t l = (uint32_t)__builtin_ctz(rest);
        for (uint32_t i = 0; i < width; i++)
            if (bits[l * width + i]) lanes |= 1u << l;
    }
    return lanes;
}

static void set_lanes(const ptx_warp *warp, uint32_t number, uint32_t mask, bool undefined) {
    const ptx_code *code = warp->group->frame->code;
    uint8_t *bits = warp->group->frame->undefined->bits + code->places[number];
    uint32_t width = width_of(code, number) / 8;
    if (!width) {
        uint32_t lanes;
        memcpy(&lanes, bits, sizeof lanes);
        lanes = undefined ? lanes | mask : lanes & ~mask;
        memcpy(bits, &lanes, sizeof lanes);
        return;
    }
    for (uint32_t rest = mask; rest; rest &= rest - 1)
        memset(bits + (uint32_t)__builtin_ctz(rest) * width, undefined ? 0xff : 0, width);
}

static void fault(ptx_warp *warp, const ptx_op *op, uint32_t lane, uint32_t number) {
    const ptx_frame *frame = warp->group->frame;
    const origin *from = &frame->undefined->origins[number * PTX_WARP + lane];
    ptx_fault(warp, op, SIM_FAULT_UNINITIALISED, lane, from->address,
              "%s memory that line %u loaded into a register %s", from->shared ? "shared" : "local", from->line,
              frame->code->function->registers[number].name);
}

/* ---- The registers of a statement ---- */

enum { USES = 144 };

typedef struct registers {
    uint32_t numbers[USES];
    uint32_t count;
} registers;

/* Those of an operand; of an address, which is a source of its own kind, only if asked for. */
static void collect(const ptx_operand *operand, bool addresses, registers *out) {
    bool is = operand->kind == PTX_OPERAND_REGISTER || (operand->kind == PTX_OPERAND_ADDRESS && operand->has_register);
    if (is && addresses == (operand->kind == PTX_OPERAND_ADDRESS)) {
        for (uint32_t i = 0; i < out->count; i++)
            if (out->numbers[i] == operand->number) return;
        if (out->count < USES) out->numbers[out->count++] = operand->number;
    }
    for (uint32_t i = 0; i < operand->element_count; i++)
        collect(&operand->elements[i], addresses, out);
}

/* The lanes of mask in which one of these is undefined in part; from has their numbers. */
static uint32_t any_undefined(ptx_warp *warp, const registers *all, uint32_t mask, uint32_t *from) {
    uint32_t lanes = 0;
    for (uint32_t i = 0; i < all->count; i++) {
        uint32_t undefined = lanes_undefined(warp, all->numbers[i], mask);
        for (uint32_t rest = undefined; rest; rest &= rest - 1)
            from[__builtin_ctz(rest)] = all->numbers[i];
        lanes |= undefined;
    }
    return lanes;
}

static bool all_defined(ptx_warp *warp, const ptx_op *op, const registers *all, uint32_t mask) {
    for (uint32_t i = 0; i < all->count; i++) {
        uint32_t lanes = lanes_undefined(warp, all->numbers[i], mask);
        if (!lanes) continue;
        fault(warp, op, (uint32_t)__builtin_ctz(lanes), all->numbers[i]);
        return false;
    }
    return true;
}

/* ---- What becomes of the bits ---- */

/* The lanes of mask, of a register that so many bytes hold. */
static void lanes_copy(uint8_t *to, const uint8_t *from, size_t size, uint32_t mask) {
    const size_t width = size / PTX_WARP;
    if (!width) {
        uint32_t old, new;
        memcpy(&old, to, sizeof old);
        memcpy(&new, from, sizeof new);
        old = (old & ~mask) | (new &mask);
        memcpy(to, &old, sizeof old);
        return;
    }
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
        const uint32_t l = (uint32_t)__builtin_ctz(rest);
        memcpy(to + l * width, from + l * width, width);
    }
}

/* Where 32 lanes of a register stand, or of a constant. */
typedef struct place {
    uint32_t at;
    size_t size;
} place;

static place place_of(const ptx_code *code, uint32_t number) {
    uint32_t bits = width_of(code, number);
    return (place){code->places[number], bits == 1 ? sizeof(uint32_t) : bits * 4};
}

/* Lets registers and their account change places. */
static void swap(const ptx_warp *warp, const place *all, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        uint8_t kept[PTX_WARP * 16];
        uint8_t *numbers = warp->frame + all[i].at, *bits = warp->group->frame->undefined->bits + all[i].at;
        memcpy(kept, numbers, all[i].size);
        memcpy(numbers, bits, all[i].size);
        memcpy(bits, kept, all[i].size);
    }
}

static bool has_place(const place *all, uint32_t count, uint32_t at) {
    for (uint32_t i = 0; i < count; i++)
        if (all[i].at == at) return true;
    return false;
}

/* What is moved: registers, and constants, of which the account says that they are defined. */
static uint32_t places_moved(const ptx_warp *warp, const ptx_op *op, const registers *moved, place *out) {
    const ptx_code *code = warp->group->frame->code;
    uint32_t count = 0;
    for (; count < moved->count; count++)
        out[count] = place_of(code, moved->numbers[count]);
    for (uint32_t i = 0; i < code->constant_count; i++) {
        const ptx_constant *constant = &code->constants[i];
        bool is_moved = false, is_other = false;
        for (uint32_t j = 0; j < PTX_SOURCES; j++)
            *(j < op->moved ? &is_moved : &is_other) |= op->s[j] == constant->place;
        if (is_moved && !is_other) out[count++] = (place){constant->place, constant->bits * 4u};
    }
    return count;
}

/* The instruction moves the account as it moves the numbers. Its results stay where they are until they have been
 * computed, as they may be what says where to. */
static void move(ptx_warp *warp, const ptx_op *op, uint32_t mask, const registers *results, const registers *moved) {
    const ptx_frame *frame = warp->group->frame;
    uint8_t kept[PTX_VECTOR][PTX_WARP * 16];
    place places[USES + PTX_SOURCES], result[PTX_VECTOR];
    const uint32_t count = places_moved(warp, op, moved, places);
    for (uint32_t i = 0; i < results->count; i++) {
        result[i] = place_of(frame->code, results->numbers[i]);
        memcpy(kept[i], warp->frame + result[i].at, result[i].size);
    }
    swap(warp, places, count);
    op->run(warp, op, mask);
    for (uint32_t i = 0; i < results->count; i++) {
        if (has_place(places, count, result[i].at)) continue;
        lanes_copy(frame->undefined->bits + result[i].at, warp->frame + result[i].at, result[i].size, mask);
        memcpy(warp->frame + result[i].at, kept[i], result[i].size);
    }
    swap(warp, places, count);
}

/* A bit of the result is undefined where an undefined bit decides it. */
static void bitwise(ptx_warp *warp, const ptx_op *op, uint32_t mask, bool two) {
    uint8_t *bits = warp->group->frame->undefined->bits;
    uint32_t width = ptx_type_bits(op->type) / 8;
    for (uint32_t i = 0; i < (width ? width * PTX_WARP : sizeof(uint32_t)); i++) {
        uint32_t lanes = width ? (mask >> i / width & 1 ? 0xff : 0) : mask >> i * 8 & 0xff;
        uint32_t a = warp->frame[op->s[0] + i], b = warp->frame[op->s[1] + i];
        uint32_t of_a = bits[op->s[0] + i], of_b = two ? bits[op->s[1] + i] : 0;
        uint32_t decided = op->use == USE_AND  ? (of_a & b) | (of_b & a) | (of_a & of_b)
                           : op->use == USE_OR ? (of_a & ~b) | (of_b & ~a) | (of_a & of_b)
                                               : of_a | of_b;
        bits[op->d[0] + i] = (uint8_t)((bits[op->d[0] + i] & ~lanes) | (decided & lanes));
    }
}

/* What is undefined of a result came from where that of other registers did. */
static void origins_copy(ptx_frame *frame, uint32_t to, const uint32_t *from, uint32_t lanes) {
    origin *origins = frame->undefined->origins;
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        uint32_t l = (uint32_t)__builtin_ctz(rest);
        origins[to * PTX_WARP + l] = origins[from[l] * PTX_WARP + l];
    }
}

/* The lanes that keep their own undefined number; false after a fault, where another lane reads one. */
static bool shuffle(ptx_warp *warp, const ptx_op *op, uint32_t mask, uint32_t undefined, const uint32_t *from,
                    uint32_t *out_kept) {
    *out_kept = 0;
    for (uint32_t rest = undefined ? mask : 0; rest; rest &= rest - 1) {
        const uint32_t lane = (uint32_t)__builtin_ctz(rest), read = ptx_shuffle_from(warp, op, lane, NULL);
        if (!(undefined >> read & 1)) continue;
        if (read != lane) {
            fault(warp, op, read, from[read]);
            return false;
        }
        *out_kept |= 1u << lane;
    }
    return true;
}

bool ptx_undefined_step(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    const ptx_frame *frame = warp->group->frame;
    const ptx_function *function = frame->code->function;
    uint32_t index = (uint32_t)(op - frame->code->ops);
    if (index >= function->statement_count) return true;
    const ptx_statement *statement = &function->statements[index];
    const ptx_operand *operands = statement->operands;
    if (statement->guard >= 0 &&
        !all_defined(warp, op, &(registers){{(uint32_t)statement->guard}, 1}, warp->group->mask))
        return false;
    /* The flow of a group is decided by what it reads; else the first operand is the result, unless it is an address.
     */
    bool has_result = op->flow != PTX_FLOW_BARRIER && op->flow != PTX_FLOW_INDEXED && op->flow != PTX_FLOW_CALL;
    registers results = {.count = 0}, moved = {.count = 0}, others = {.count = 0}, addresses = {.count = 0};
    for (uint32_t i = 0; i < statement->operand_count; i++) {
        bool is_result = i == 0 && has_result;
        collect(&operands[i], false, is_result ? &results : i && i <= op->moved ? &moved : &others);
        collect(&operands[i], true, &addresses);
    }
    if (!all_defined(warp, op, &addresses, mask)) return false;
    if (op->use == USE_STORE) return true; /* ptx_undefined_shown */
    if ((op->use == USE_STRICT || op->use == USE_SHUFFLE) && !all_defined(warp, op, &others, mask)) return false;
    uint32_t from[PTX_WARP], spread = 0, lanes = any_undefined(warp, &moved, mask, from);
    if (op->use == USE_SHUFFLE && !shuffle(warp, op, mask, lanes, from, &lanes)) return false;
    if (op->use == USE_MOVE || op->use == USE_SPREAD) spread = any_undefined(warp, &others, mask, from);
    if (op->use >= USE_AND && op->use <= USE_XOR) {
        lanes = any_undefined(warp, &others, mask, from);
        bitwise(warp, op, mask, statement->operand_count > 2);
    } else if (op->use == USE_MOVE && lanes & ~spread) {
        move(warp, op, mask, &results, &moved);
    } else {
        for (uint32_t i = 0; i < results.count; i++)
            set_lanes(warp, results.numbers[i], mask, false);
    }
    if (op->use == USE_SHUFFLE && operands[0].kind == PTX_OPERAND_REGISTER) {
        results.count = 1; /* the predicate is defined */
        spread = lanes;
    }
    for (uint32_t i = 0; i < results.count; i++) {
        set_lanes(warp, results.numbers[i], spread, true);
        origins_copy(warp->group->frame, results.numbers[i], from, lanes | spread);
    }
    return true;
}

/* ---- Loads and stores ---- */

bool ptx_undefined_loads(const ptx_op *op) {
    return op->use == USE_LOAD;
}

void ptx_undefined_came(ptx_warp *warp, const ptx_op *op, uint32_t lane, ptx_space space, uint64_t address) {
    const ptx_frame *frame = warp->group->frame;
    registers results = {.count = 0};
    collect(&frame->code->function->statements[op - frame->code->ops].operands[0], false, &results);
    for (uint32_t i = 0; i < results.count; i++)
        frame->undefined->origins[results.numbers[i] * PTX_WARP + lane] =
            (origin){op->line, space == PTX_SPACE_SHARED, address};
}

bool ptx_undefined_shown(ptx_warp *warp, const ptx_op *op, uint32_t lane, const uint8_t *bits, uint32_t size) {
    const ptx_frame *frame = warp->group->frame;
    registers data = {.count = 0};
    for (uint32_t i = 0; i < size; i++)
        if (size == 1 || bits[i] != 0xff) return true;
    collect(&frame->code->function->statements[op - frame->code->ops].operands[1], false, &data);
    for (uint32_t i = 0; i < data.count; i++)
        if (lanes_undefined(warp, data.numbers[i], 1u << lane)) fault(warp, op, lane, data.numbers[i]);
    return false;
}
