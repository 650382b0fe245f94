/* mov: registers, constants, addresses, special registers, and vectors into or out of one register. */
#include "tests/sim/ptx/decode/ptx_decode.h"
#include "tests/sim/ptx/warp/ptx_lanes.h"
#include <stdio.h>
#include <string.h>

PTX_UNARY(run_mov_16, uint16_t, a)
PTX_UNARY(run_mov_32, uint32_t, a)
PTX_UNARY(run_mov_64, uint64_t, a)
PTX_UNARY(run_mov_128, unsigned __int128, a)

static void run_mov_pred(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    PTX_MASK(op->d[0]) = (PTX_MASK(op->d[0]) & ~mask) | (PTX_MASK(op->s[0]) & mask);
}

/* Time in a block is the instructions that it has run; a cycle and a nanosecond are one each. mode: bits to drop. */
static void run_clock_32(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    uint32_t *d = PTX_ARRAY(uint32_t, op->d[0]), now = (uint32_t)(warp->block->instructions >> op->mode);
    PTX_LANES(d[l] = now);
}

static void run_clock_64(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    uint64_t *d = PTX_ARRAY(uint64_t, op->d[0]), now = warp->block->instructions;
    PTX_LANES(d[l] = now);
}

/* Little-endian, as the frame is: lane l's element i of the vector is element i of lane l's register. */
static void run_pack(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    uint32_t whole = ptx_type_bits(op->type) / 8, part = whole / op->count;
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
        uint32_t l = (uint32_t)__builtin_ctz(rest);
        uint8_t value[16];
        for (uint32_t i = 0; i < op->count; i++)
            memcpy(value + i * part, warp->frame + op->s[i] + l * part, part);
        memcpy(warp->frame + op->d[0] + l * whole, value, whole);
    }
}

static void run_unpack(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    uint32_t whole = ptx_type_bits(op->type) / 8, part = whole / op->count;
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
        uint32_t l = (uint32_t)__builtin_ctz(rest);
        uint8_t value[16];
        memcpy(value, warp->frame + op->s[0] + l * whole, whole);
        for (uint32_t i = 0; i < op->count; i++)
            memcpy(warp->frame + op->d[i] + l * part, value + i * part, part);
    }
}

/* The usual ones: two halves. */
#define HALVES(bits, half, whole)                                                                   \
    static void run_pack_##bits(ptx_warp *warp, const ptx_op *op, uint32_t mask) {                  \
        whole *d = PTX_ARRAY(whole, op->d[0]);                                                      \
        const half *low = PTX_ARRAY(half, op->s[0]), *high = PTX_ARRAY(half, op->s[1]);             \
        PTX_LANES(d[l] = low[l] | (whole)high[l] << (bits) / 2);                                    \
    }                                                                                               \
    static void run_unpack_##bits(ptx_warp *warp, const ptx_op *op, uint32_t mask) {                \
        half *low = PTX_ARRAY(half, op->d[0]), *high = PTX_ARRAY(half, op->d[1]);                   \
        const whole *a = PTX_ARRAY(whole, op->s[0]);                                                \
        PTX_LANES(whole value = a[l]; low[l] = (half)value; high[l] = (half)(value >> (bits) / 2)); \
    }
HALVES(32, uint16_t, uint32_t)
HALVES(64, uint32_t, uint64_t)

static void decode_vector(ptx_decoder *decoder, const ptx_operand *vector, bool pack) {
    const ptx_operand *operands = decoder->statement->operands;
    ptx_op *op = decoder->op;
    uint32_t bits = ptx_type_bits(op->type), count = vector->element_count;
    if (ptx_type_class_of(op->type) != PTX_CLASS_BITS || (count != 2 && count != 4) || bits / count < 8)
        ptx_refuse(decoder, "%u elements in type %s", count, ptx_type_name(op->type));
    static const ptx_type elements[] = {[8] = PTX_b8, [16] = PTX_b16, [32] = PTX_b32, [64] = PTX_b64};
    ptx_type element = elements[bits / count];
    op->count = count;
    op->run = pack ? run_pack : run_unpack;
    if (count == 2 && bits == 32) op->run = pack ? run_pack_32 : run_unpack_32;
    if (count == 2 && bits == 64) op->run = pack ? run_pack_64 : run_unpack_64;
    if (pack)
        op->d[0] = ptx_result(decoder, &operands[0], op->type);
    else
        op->s[0] = ptx_source(decoder, &operands[1], op->type);
    for (uint32_t i = 0; i < count; i++) {
        if (pack)
            op->s[i] = ptx_source(decoder, &vector->elements[i], element);
        else
            op->d[i] = ptx_result(decoder, &vector->elements[i], element);
    }
}

/* mov.v2 and mov.v4: each element to its own. */
static void run_vector(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    uint32_t part = ptx_type_bits(op->type) / 8;
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
        uint32_t l = (uint32_t)__builtin_ctz(rest);
        uint8_t value[16];
        for (uint32_t i = 0; i < op->count; i++)
            memcpy(value + i * part, warp->frame + op->s[i] + l * part, part);
        for (uint32_t i = 0; i < op->count; i++)
            memcpy(warp->frame + op->d[i] + l * part, value + i * part, part);
    }
}

static void decode_elements(ptx_decoder *decoder) {
    const ptx_operand *to = &decoder->statement->operands[0], *from = &decoder->statement->operands[1];
    ptx_op *op = decoder->op;
    if (op->type == PTX_pred) ptx_refuse(decoder, "it has no vectors of predicates");
    if (op->count * ptx_type_bits(op->type) > 128 || to->kind != PTX_OPERAND_VECTOR || to->element_count != op->count)
        ptx_refuse(decoder, "it needs a vector of %u elements", op->count);
    for (uint32_t i = 0; i < op->count; i++) {
        ptx_operand element;
        if (from->kind == PTX_OPERAND_VECTOR && from->element_count == op->count) {
            element = from->elements[i];
        } else if (from->kind == PTX_OPERAND_SPECIAL && op->count == 4) {
            char *name = ptx_arena_take(decoder->program->module->arena, strlen(from->name) + 3);
            snprintf(name, strlen(from->name) + 3, "%s.%c", from->name, "xyzw"[i]);
            element = (ptx_operand){.kind = PTX_OPERAND_SPECIAL, .name = name};
        } else {
            ptx_refuse(decoder, "it needs a vector of %u elements", op->count);
        }
        op->s[i] = ptx_source(decoder, &element, op->type);
        op->d[i] = ptx_result(decoder, &to->elements[i], op->type);
    }
    op->run = run_vector;
}

/* mov of a clock; false if it is of something else. */
static bool decode_clock(ptx_decoder *decoder, const ptx_operand *source) {
    static const struct {
        const char *name;
        uint32_t bits, drop;
    } clocks[] = {
        {"%clock", 32, 0},       {"%clock_hi", 32, 32},      {"%clock64", 64, 0},
        {"%globaltimer", 64, 0}, {"%globaltimer_lo", 32, 0}, {"%globaltimer_hi", 32, 32},
    };
    ptx_op *op = decoder->op;
    if (source->kind != PTX_OPERAND_SPECIAL) return false;
    for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++) {
        if (strcmp(source->name, clocks[i].name) != 0) continue;
        if (ptx_type_bits(op->type) != clocks[i].bits) ptx_refuse(decoder, "%s has another width", source->name);
        op->run = clocks[i].bits == 32 ? run_clock_32 : run_clock_64;
        op->mode = clocks[i].drop;
        op->d[0] = ptx_result(decoder, &decoder->statement->operands[0], op->type);
        return true;
    }
    return false;
}

void ptx_decode_move(ptx_decoder *decoder) {
    const ptx_operand *operands = decoder->statement->operands;
    ptx_op *op = decoder->op;
    ptx_expect_types(decoder, 1);
    ptx_expect_operands(decoder, 2, 2);
    op->type = ptx_type_at(decoder, 0);
    uint32_t bits = ptx_type_bits(op->type);
    bool good = op->type == PTX_pred || (bits >= 16 && ptx_type_class_of(op->type) != PTX_CLASS_PACKED);
    if (bits == 128) ptx_need(decoder, 70, 83);
    if (!good || op->type == PTX_tf32 || op->type == PTX_bf16 || op->type == PTX_f16)
        ptx_refuse(decoder, "it has no type %s", ptx_type_name(op->type));
    static const int vectors[] = {PTX_M_V2, PTX_M_V4};
    int vector = ptx_take_one(decoder, vectors, 2);
    op->count = vector < 0 ? 1 : 2u << vector;
    if (op->count > 1) {
        decode_elements(decoder);
    } else if (operands[0].kind == PTX_OPERAND_VECTOR) {
        decode_vector(decoder, &operands[0], false);
    } else if (operands[1].kind == PTX_OPERAND_VECTOR) {
        decode_vector(decoder, &operands[1], true);
    } else if (!decode_clock(decoder, &operands[1])) {
        ptx_decode_same(decoder, op->type, 1);
        op->run = bits == 1    ? run_mov_pred
                  : bits == 16 ? run_mov_16
                  : bits == 32 ? run_mov_32
                  : bits == 64 ? run_mov_64
                               : run_mov_128;
    }
}
