/* setp and set of floating-point types, testp, copysign. */
#include "tests/sim/ptx/alu/ptx_float.h"
#include <math.h>
#include <string.h>

/* How two values stand to each other, a bit each. A comparison is the set of relations that satisfy it. */
enum { LESS = 1, EQUAL = 2, GREATER = 4, UNORDERED = 8 };

static const struct {
    int modifier;
    uint32_t relations;
} comparisons[] = {
    {PTX_M_EQ, EQUAL},
    {PTX_M_NE, LESS | GREATER},
    {PTX_M_LT, LESS},
    {PTX_M_LE, LESS | EQUAL},
    {PTX_M_GT, GREATER},
    {PTX_M_GE, GREATER | EQUAL},
    {PTX_M_EQU, EQUAL | UNORDERED},
    {PTX_M_NEU, LESS | GREATER | UNORDERED},
    {PTX_M_LTU, LESS | UNORDERED},
    {PTX_M_LEU, LESS | EQUAL | UNORDERED},
    {PTX_M_GTU, GREATER | UNORDERED},
    {PTX_M_GEU, GREATER | EQUAL | UNORDERED},
    {PTX_M_NUM, LESS | EQUAL | GREATER},
    {PTX_M_ISNAN, UNORDERED},
};
enum { COMPARISON_COUNT = sizeof comparisons / sizeof *comparisons };

enum { COMBINE_NONE, COMBINE_AND, COMBINE_OR, COMBINE_XOR, MODE_RELATIONS = 15, MODE_COMBINE_SHIFT = 4 };

static inline uint32_t relation(double a, double b) {
    return a < b ? LESS : a > b ? GREATER : a == b ? EQUAL : UNORDERED;
}

/* For each lane of mask a bit that says whether the comparison holds; of packed types, of the given element. */
static uint32_t compare(const ptx_warp *warp, const ptx_op *op, uint32_t mask, uint32_t element) {
    uint32_t relations = op->mode & MODE_RELATIONS, holds = 0;
    if (op->from == PTX_f64) {
        const double *a = PTX_ARRAY(double, op->s[0]), *b = PTX_ARRAY(double, op->s[1]);
        PTX_LANES(holds |= (uint32_t)((relation(a[l], b[l]) & relations) != 0) << l);
    } else if (op->from == PTX_f32 && !op->flags) {
        const float *a = PTX_ARRAY(float, op->s[0]), *b = PTX_ARRAY(float, op->s[1]);
        PTX_LANES(holds |= (uint32_t)((relation((double)a[l], (double)b[l]) & relations) != 0) << l);
    } else {
        sim_format format = ptx_format_of(op->from);
        uint32_t elements = ptx_elements_of(op->from);
        const void *first = PTX_ARRAY(void, op->s[0]), *second = PTX_ARRAY(void, op->s[1]);
        PTX_LANES({
            uint32_t i = (uint32_t)l * elements + element;
            double a = ptx_narrow_load(format, ptx_element(first, format, i), op->flags);
            double b = ptx_narrow_load(format, ptx_element(second, format, i), op->flags);
            holds |= (uint32_t)((relation(a, b) & relations) != 0) << l;
        });
    }
    return holds;
}

static uint32_t combine(const ptx_warp *warp, const ptx_op *op, uint32_t holds) {
    if (op->mode >> MODE_COMBINE_SHIFT == COMBINE_NONE) return holds;
    uint32_t other = op->negated[2] ? ~PTX_MASK(op->s[2]) : PTX_MASK(op->s[2]);
    switch (op->mode >> MODE_COMBINE_SHIFT) {
    case COMBINE_AND:
        return holds & other;
    case COMBINE_OR:
        return holds | other;
    default:
        return holds ^ other;
    }
}

static void run_setp(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    bool packed = ptx_elements_of(op->from) == 2;
    uint32_t holds = compare(warp, op, mask, 0), second = packed ? compare(warp, op, mask, 1) : ~holds;
    uint32_t p = combine(warp, op, holds), q = combine(warp, op, second);
    PTX_MASK(op->d[0]) = (PTX_MASK(op->d[0]) & ~mask) | (p & mask);
    if (op->d[1] != PTX_NOWHERE) PTX_MASK(op->d[1]) = (PTX_MASK(op->d[1]) & ~mask) | (q & mask);
}

/* What set writes where the comparison holds. */
static uint32_t truth(ptx_type type) {
    switch (type) {
    case PTX_f32:
        return 0x3f800000u;
    case PTX_f16:
    case PTX_f16x2:
        return 0x3c00u;
    case PTX_bf16:
    case PTX_bf16x2:
        return 0x3f80u;
    default:
        return 0xffffffffu;
    }
}

static void run_set(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    uint32_t low = combine(warp, op, compare(warp, op, mask, 0)), value = truth(op->type);
    if (ptx_elements_of(op->from) == 2) {
        uint32_t high = combine(warp, op, compare(warp, op, mask, 1)), *d = PTX_ARRAY(uint32_t, op->d[0]);
        value &= 0xffffu;
        PTX_LANES(d[l] = (low >> l & 1 ? value : 0) | (high >> l & 1 ? value << 16 : 0));
    } else if (ptx_type_bits(op->type) == 16) {
        uint16_t *d = PTX_ARRAY(uint16_t, op->d[0]);
        PTX_LANES(d[l] = (uint16_t)(low >> l & 1 ? value : 0));
    } else {
        uint32_t *d = PTX_ARRAY(uint32_t, op->d[0]);
        PTX_LANES(d[l] = low >> l & 1 ? value : 0);
    }
}

/* Which results set has, by the type that it compares. */
static void check_set_types(ptx_decoder *decoder, ptx_type to, ptx_type from) {
    bool word = to == PTX_u32 || to == PTX_s32, good = false;
    switch (from) {
    case PTX_f32:
    case PTX_f64:
        good = word || to == PTX_f32 || to == PTX_f16 || to == PTX_bf16;
        if (to == PTX_bf16) ptx_need(decoder, 90, 78);
        break;
    case PTX_f16:
    case PTX_bf16:
        good = word || to == PTX_u16 || to == PTX_s16 || to == from;
        break;
    default:
        good = word || to == from;
    }
    if (!good) ptx_refuse(decoder, "it has no types %s and %s", ptx_type_name(to), ptx_type_name(from));
    bool half = from == PTX_f16 || from == PTX_f16x2;
    if (half && to != from) ptx_need(decoder, 53, 65);
}

static void decode_source_type(ptx_decoder *decoder, ptx_type from) {
    if (ptx_type_class_of(from) != PTX_CLASS_FLOAT && ptx_elements_of(from) != 2)
        ptx_refuse(decoder, "it has no type %s", ptx_type_name(from));
    if (from != PTX_f32 && from != PTX_f64 && ptx_format_of(from) == SIM_f32)
        ptx_refuse(decoder, "it has no type %s", ptx_type_name(from));
    if (ptx_format_of(from) == SIM_bf16)
        ptx_need(decoder, 90, 78);
    else if (from != PTX_f64)
        ptx_take_flag(decoder, PTX_M_FTZ, PTX_F_FTZ);
    decoder->op->from = from;
}

static void decode_comparison(ptx_decoder *decoder) {
    static const int combinations[] = {PTX_M_AND, PTX_M_OR, PTX_M_XOR};
    int modifiers[COMPARISON_COUNT];
    for (int i = 0; i < COMPARISON_COUNT; i++)
        modifiers[i] = comparisons[i].modifier;
    int comparison = ptx_take_one(decoder, modifiers, COMPARISON_COUNT);
    if (comparison < 0) ptx_refuse(decoder, "it has no comparison of floating-point numbers");
    int combination = ptx_take_one(decoder, combinations, 3);
    const ptx_operand *operands = decoder->statement->operands;
    ptx_op *op = decoder->op;
    uint32_t count = combination < 0 ? 3 : 4;
    ptx_expect_operands(decoder, count, count);
    op->mode = comparisons[comparison].relations | (uint32_t)(combination + 1) << MODE_COMBINE_SHIFT;
    for (uint32_t i = 0; i < 2; i++)
        op->s[i] = ptx_source(decoder, &operands[i + 1], op->from);
    if (combination >= 0) op->s[2] = ptx_predicate(decoder, &operands[3], &op->negated[2]);
}

void ptx_decode_float_compare(ptx_decoder *decoder) {
    ptx_op *op = decoder->op;
    bool set = strcmp(decoder->statement->opcode, "set") == 0;
    ptx_expect_types(decoder, set ? 2 : 1);
    decode_source_type(decoder, ptx_type_at(decoder, set ? 1 : 0));
    decode_comparison(decoder);
    ptx_operand result = decoder->statement->operands[0];
    if (set) {
        op->type = ptx_type_at(decoder, 0);
        check_set_types(decoder, op->type, op->from);
        op->d[0] = ptx_result(decoder, &result, op->type);
        op->run = run_set;
        return;
    }
    bool packed = ptx_elements_of(op->from) == 2, paired = result.paired;
    if (packed && !paired) ptx_refuse(decoder, "a packed comparison has two results");
    if (paired && !packed && ptx_type_bits(op->from) == 16)
        ptx_refuse(decoder, "a comparison of 16 bits has one result");
    result.paired = false;
    op->d[0] = ptx_result(decoder, &result, PTX_pred);
    op->d[1] = paired ? ptx_result(decoder, &result.elements[0], PTX_pred) : PTX_NOWHERE;
    op->run = run_setp;
}

/* ---- testp ---- */

enum { TEST_FINITE, TEST_INFINITE, TEST_NUMBER, TEST_NOTANUMBER, TEST_NORMAL, TEST_SUBNORMAL, TEST_COUNT };

/* Zeros count as normal. */
static bool test(uint32_t property, uint64_t magnitude, uint64_t infinity, uint64_t least) {
    switch (property) {
    case TEST_FINITE:
        return magnitude < infinity;
    case TEST_INFINITE:
        return magnitude == infinity;
    case TEST_NUMBER:
        return magnitude <= infinity;
    case TEST_NOTANUMBER:
        return magnitude > infinity;
    case TEST_NORMAL:
        return magnitude == 0 || (magnitude >= least && magnitude < infinity);
    default:
        return magnitude != 0 && magnitude < least;
    }
}

static void run_testp(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    uint32_t holds = 0;
    if (op->type == PTX_f64) {
        const uint64_t *a = PTX_ARRAY(uint64_t, op->s[0]);
        PTX_LANES(holds |= (uint32_t)test(op->mode, a[l] & ~(1ull << 63), 0x7ffull << 52, 1ull << 52) << l);
    } else {
        const uint32_t *a = PTX_ARRAY(uint32_t, op->s[0]);
        PTX_LANES(holds |= (uint32_t)test(op->mode, a[l] & 0x7fffffffu, 0x7f800000u, 0x00800000u) << l);
    }
    PTX_MASK(op->d[0]) = (PTX_MASK(op->d[0]) & ~mask) | holds;
}

static ptx_type single_or_double(ptx_decoder *decoder) {
    ptx_expect_types(decoder, 1);
    ptx_type type = ptx_type_at(decoder, 0);
    if (type != PTX_f32 && type != PTX_f64) ptx_refuse(decoder, "it has no type %s", ptx_type_name(type));
    return type;
}

void ptx_decode_testp(ptx_decoder *decoder) {
    static const int properties[TEST_COUNT] = {PTX_M_FINITE,     PTX_M_INFINITE, PTX_M_NUMBER,
                                               PTX_M_NOTANUMBER, PTX_M_NORMAL,   PTX_M_SUBNORMAL};
    ptx_op *op = decoder->op;
    int property = ptx_take_one(decoder, properties, TEST_COUNT);
    if (property < 0) ptx_refuse(decoder, "it has no property to test");
    op->type = single_or_double(decoder);
    ptx_expect_operands(decoder, 2, 2);
    op->mode = (uint32_t)property;
    op->d[0] = ptx_result(decoder, &decoder->statement->operands[0], PTX_pred);
    op->s[0] = ptx_source(decoder, &decoder->statement->operands[1], op->type);
    op->run = run_testp;
}

/* ---- copysign: the sign of a on the magnitude of b ---- */

PTX_BINARY(run_copysign_32, uint32_t, (a & 0x80000000u) | (b & 0x7fffffffu))
PTX_BINARY(run_copysign_64, uint64_t, (a & 1ull << 63) | (b & ~(1ull << 63)))

void ptx_decode_copysign(ptx_decoder *decoder) {
    ptx_decode_same(decoder, single_or_double(decoder), 2);
    decoder->op->run = decoder->op->type == PTX_f64 ? run_copysign_64 : run_copysign_32;
}
