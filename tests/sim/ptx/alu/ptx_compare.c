/* Comparisons of integers and what chooses by one: setp, set, selp, slct. */
#include "tests/sim/ptx/decode/ptx_decode.h"
#include "tests/sim/ptx/warp/ptx_lanes.h"
#include <string.h>

/* ---- Comparing: a bit for each lane ---- */

enum { EQ, NE, LT, LE, GT, GE };
enum { COMBINE_NONE, COMBINE_AND, COMBINE_OR, COMBINE_XOR };

#define RELATION(relation)                                            \
    PTX_LANES(holds |= (uint32_t)(first[l] relation second[l]) << l); \
    break

#define COMPARE(name, type)                                                                 \
    static uint32_t name(const ptx_warp *warp, const ptx_op *op, uint32_t mask) {           \
        const type *first = PTX_ARRAY(type, op->s[0]), *second = PTX_ARRAY(type, op->s[1]); \
        uint32_t holds = 0;                                                                 \
        switch (op->mode) {                                                                 \
        case EQ:                                                                            \
            RELATION(==);                                                                   \
        case NE:                                                                            \
            RELATION(!=);                                                                   \
        case LT:                                                                            \
            RELATION(<);                                                                    \
        case LE:                                                                            \
            RELATION(<=);                                                                   \
        case GT:                                                                            \
            RELATION(>);                                                                    \
        default:                                                                            \
            RELATION(>=);                                                                   \
        }                                                                                   \
        return holds;                                                                       \
    }
COMPARE(compare_u16, uint16_t)
COMPARE(compare_u32, uint32_t)
COMPARE(compare_u64, uint64_t)
COMPARE(compare_s16, int16_t)
COMPARE(compare_s32, int32_t)
COMPARE(compare_s64, int64_t)

static uint32_t compare(const ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    switch (op->from) {
    case PTX_b16:
    case PTX_u16:
        return compare_u16(warp, op, mask);
    case PTX_b32:
    case PTX_u32:
        return compare_u32(warp, op, mask);
    case PTX_b64:
    case PTX_u64:
        return compare_u64(warp, op, mask);
    case PTX_s16:
        return compare_s16(warp, op, mask);
    case PTX_s32:
        return compare_s32(warp, op, mask);
    default:
        return compare_s64(warp, op, mask);
    }
}

/* With the predicate of source 2, if there is one. */
static uint32_t combine(const ptx_warp *warp, const ptx_op *op, uint32_t holds) {
    if (op->count == COMBINE_NONE) return holds;
    uint32_t other = op->negated[2] ? ~PTX_MASK(op->s[2]) : PTX_MASK(op->s[2]);
    return op->count == COMBINE_AND ? holds & other : op->count == COMBINE_OR ? holds | other : holds ^ other;
}

static void run_setp(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    uint32_t holds = compare(warp, op, mask);
    uint32_t p = combine(warp, op, holds), q = combine(warp, op, ~holds);
    PTX_MASK(op->d[0]) = (PTX_MASK(op->d[0]) & ~mask) | (p & mask);
    if (op->d[1] != PTX_NOWHERE) PTX_MASK(op->d[1]) = (PTX_MASK(op->d[1]) & ~mask) | (q & mask);
}

static void run_set(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    uint32_t holds = combine(warp, op, compare(warp, op, mask));
    uint32_t value = op->type == PTX_f32 ? 0x3f800000u : 0xffffffffu; /* 1.0, or -1 */
    uint32_t *d = PTX_ARRAY(uint32_t, op->d[0]);
    PTX_LANES(d[l] = holds >> l & 1 ? value : 0);
}

/* The comparison: .lo .ls .hi .hs are the unsigned ones under other names, and bits are only equal or not. */
static uint32_t take_comparison(ptx_decoder *decoder, ptx_type type) {
    static const int modifiers[] = {PTX_M_EQ, PTX_M_NE, PTX_M_LT, PTX_M_LE, PTX_M_GT,
                                    PTX_M_GE, PTX_M_LO, PTX_M_LS, PTX_M_HI, PTX_M_HS};
    ptx_type_class class = ptx_type_class_of(type);
    int found = ptx_take_one(decoder, modifiers, 10);
    if (found < 0) ptx_refuse(decoder, "it has no comparison of integers");
    if (class == PTX_CLASS_BITS && found > NE) ptx_refuse(decoder, "bits have no order");
    if (found > GE && class != PTX_CLASS_UNSIGNED) ptx_refuse(decoder, "this comparison is of unsigned numbers");
    return (uint32_t)(found > GE ? found - GE - 1 + LT : found);
}

static void check_source_type(ptx_decoder *decoder, ptx_type type) {
    ptx_type_class class = ptx_type_class_of(type);
    bool integer = class == PTX_CLASS_BITS || class == PTX_CLASS_UNSIGNED || class == PTX_CLASS_SIGNED;
    uint32_t bits = ptx_type_bits(type);
    if (!integer || bits < 16 || bits > 64) ptx_refuse(decoder, "it has no type %s", ptx_type_name(type));
}

void ptx_decode_compare(ptx_decoder *decoder) {
    static const int combinations[] = {PTX_M_AND, PTX_M_OR, PTX_M_XOR};
    ptx_op *op = decoder->op;
    const ptx_operand *operands = decoder->statement->operands;
    bool set = strcmp(decoder->statement->opcode, "set") == 0;
    ptx_type type = ptx_type_at(decoder, set ? 1 : 0);
    ptx_type_class class = ptx_type_class_of(type);
    if (class == PTX_CLASS_FLOAT || class == PTX_CLASS_PACKED) {
        ptx_decode_float_compare(decoder);
        return;
    }
    ptx_expect_types(decoder, set ? 2 : 1);
    check_source_type(decoder, type);
    op->from = type;
    op->mode = take_comparison(decoder, type);
    op->count = (uint32_t)(ptx_take_one(decoder, combinations, 3) + 1);
    uint32_t count = op->count == COMBINE_NONE ? 3 : 4;
    ptx_expect_operands(decoder, count, count);
    for (uint32_t i = 0; i < 2; i++)
        op->s[i] = ptx_source(decoder, &operands[i + 1], type);
    if (count == 4) op->s[2] = ptx_predicate(decoder, &operands[3], &op->negated[2]);
    if (set) {
        op->type = ptx_type_at(decoder, 0);
        if (op->type != PTX_u32 && op->type != PTX_s32 && op->type != PTX_f32)
            ptx_refuse(decoder, "it has no result of type %s", ptx_type_name(op->type));
        op->d[0] = ptx_result(decoder, &operands[0], op->type);
        op->run = run_set;
        return;
    }
    ptx_operand result = operands[0];
    result.paired = false;
    op->d[0] = ptx_result(decoder, &result, PTX_pred);
    op->d[1] = operands[0].paired ? ptx_result(decoder, &result.elements[0], PTX_pred) : PTX_NOWHERE;
    op->run = run_setp;
}

/* ---- selp: a where the predicate holds, else b; slct: a where c >= 0, else b ---- */

static uint32_t choice(const ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    uint32_t holds = 0;
    if (op->from == PTX_pred) return PTX_MASK(op->s[2]);
    if (op->from == PTX_s32) {
        const int32_t *c = PTX_ARRAY(int32_t, op->s[2]);
        PTX_LANES(holds |= (uint32_t)(c[l] >= 0) << l);
        return holds;
    }
    /* The bits of an f32: below infinity's successor, or minus zero; with .ftz also what is flushed to it. */
    const uint32_t *c = PTX_ARRAY(uint32_t, op->s[2]);
    uint32_t zeros = op->flags & PTX_F_FTZ ? 0x807fffffu : 0x80000000u;
    PTX_LANES(holds |= (uint32_t)(c[l] <= 0x7f800000u || (c[l] >= 0x80000000u && c[l] <= zeros)) << l);
    return holds;
}

#define SELECT(name, type)                                                         \
    static void name(ptx_warp *warp, const ptx_op *op, uint32_t mask) {            \
        type *d = PTX_ARRAY(type, op->d[0]);                                       \
        const type *a = PTX_ARRAY(type, op->s[0]), *b = PTX_ARRAY(type, op->s[1]); \
        uint32_t holds = choice(warp, op, mask);                                   \
        PTX_LANES(d[l] = holds >> l & 1 ? a[l] : b[l]);                            \
    }
SELECT(run_select_16, uint16_t)
SELECT(run_select_32, uint32_t)
SELECT(run_select_64, uint64_t)

void ptx_decode_select(ptx_decoder *decoder) {
    ptx_op *op = decoder->op;
    const ptx_operand *operands = decoder->statement->operands;
    bool by_sign = strcmp(decoder->statement->opcode, "slct") == 0;
    ptx_expect_types(decoder, by_sign ? 2 : 1);
    ptx_expect_operands(decoder, 4, 4);
    op->type = ptx_type_at(decoder, 0);
    op->from = by_sign ? ptx_type_at(decoder, 1) : PTX_pred;
    if (by_sign && op->from != PTX_s32 && op->from != PTX_f32)
        ptx_refuse(decoder, "it does not choose by type %s", ptx_type_name(op->from));
    if (op->from == PTX_f32 && ptx_take(decoder, PTX_M_FTZ)) op->flags |= PTX_F_FTZ;
    if (op->type != PTX_f32 && op->type != PTX_f64) check_source_type(decoder, op->type);
    uint32_t bits = ptx_type_bits(op->type);
    op->d[0] = ptx_result(decoder, &operands[0], op->type);
    op->s[0] = ptx_source(decoder, &operands[1], op->type);
    op->s[1] = ptx_source(decoder, &operands[2], op->type);
    op->s[2] = ptx_source(decoder, &operands[3], op->from);
    op->run = bits == 16 ? run_select_16 : bits == 32 ? run_select_32 : run_select_64;
}
