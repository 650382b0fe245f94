/* Integer arithmetic with the condition code, a bit of warp->carry for each lane: add.cc, addc, sub.cc, subc, mad.cc,
 * madc. A subtraction adds the complement, as ptxas translates it, so that its carry is 1 where nothing was borrowed:
 * the PTX ISA speaks of a borrow, but nvcc's division of 128 bits asks for the carry of sub.cc by addc. */
#include "tests/sim/ptx/decode/ptx_decode.h"
#include "tests/sim/ptx/warp/ptx_lanes.h"
#include <string.h>

enum { ADD, SUB, MAD_LO, MAD_HI };

static inline uint64_t product_high(ptx_type type, uint64_t a, uint64_t b) {
    switch (type) {
    case PTX_u32:
        return a * b >> 32;
    case PTX_s32:
        return (uint64_t)((int64_t)(int32_t)a * (int32_t)b >> 32);
    case PTX_u64:
        return (uint64_t)((unsigned __int128)a * b >> 64);
    default:
        return (uint64_t)((__int128)(int64_t)a * (int64_t)b >> 64);
    }
}

/* x + y + carry in the type's width; *carry becomes that of the result. */
static uint64_t add(bool wide, uint64_t x, uint64_t y, bool *carry) {
    unsigned __int128 sum = (unsigned __int128)x + y + *carry;
    *carry = sum >> (wide ? 64 : 32) & 1;
    return (uint64_t)sum;
}

static uint64_t load(const ptx_warp *warp, uint32_t place, bool wide, int l) {
    return wide ? PTX_ARRAY(uint64_t, place)[l] : PTX_ARRAY(uint32_t, place)[l];
}

static void run_lane(ptx_warp *warp, const ptx_op *op, int l) {
    bool wide = ptx_type_bits(op->type) == 64;
    uint64_t x = load(warp, op->s[0], wide, l), y = load(warp, op->s[1], wide, l);
    bool carry = op->flags & PTX_F_CARRY_IN ? warp->carry >> l & 1 : op->mode == SUB;
    if (op->mode == MAD_LO || op->mode == MAD_HI) {
        x = op->mode == MAD_LO ? x * y : product_high(op->type, x, y);
        y = load(warp, op->s[2], wide, l);
        if (!wide) x = (uint32_t)x;
    } else if (op->mode == SUB) {
        y = wide ? ~y : (uint32_t)~y;
    }
    uint64_t result = add(wide, x, y, &carry);
    if (op->flags & PTX_F_CARRY_OUT) warp->carry = (warp->carry & ~(1u << l)) | (uint32_t)carry << l;
    if (wide)
        PTX_ARRAY(uint64_t, op->d[0])[l] = result;
    else
        PTX_ARRAY(uint32_t, op->d[0])[l] = (uint32_t)result;
}

static void run_carry(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    PTX_LANES(run_lane(warp, op, l));
}

void ptx_decode_carry(ptx_decoder *decoder) {
    static const int parts[] = {PTX_M_LO, PTX_M_HI};
    ptx_op *op = decoder->op;
    const char *opcode = decoder->statement->opcode;
    ptx_type type = ptx_type_at(decoder, 0);
    if (type != PTX_u32 && type != PTX_s32 && type != PTX_u64 && type != PTX_s64)
        ptx_refuse(decoder, "type %s has no carry", ptx_type_name(type));
    if (strncmp(opcode, "mad", 3) == 0) {
        int part = ptx_take_one(decoder, parts, 2);
        if (part < 0) ptx_refuse(decoder, "it needs .lo or .hi");
        op->mode = part == 0 ? MAD_LO : MAD_HI;
    } else if (strncmp(opcode, "add", 3) == 0 || strncmp(opcode, "sub", 3) == 0) {
        op->mode = *opcode == 'a' ? ADD : SUB;
    } else {
        ptx_refuse(decoder, ".cc does not go with it");
    }
    if (ptx_take(decoder, PTX_M_CC)) op->flags |= PTX_F_CARRY_OUT;
    if (opcode[3] == 'c') op->flags |= PTX_F_CARRY_IN;
    ptx_decode_same(decoder, type, op->mode >= MAD_LO ? 3 : 2);
    op->run = run_carry;
}
