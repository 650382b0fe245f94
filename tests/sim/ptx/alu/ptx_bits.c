/* Bits as a whole: and, or, xor, not, cnot, lop3, shl, shr, shf, prmt. */
#include "tests/sim/ptx/decode/ptx_decode.h"
#include "tests/sim/ptx/warp/ptx_lanes.h"
#include <string.h>

static ptx_type one_type(ptx_decoder *decoder, const ptx_type *types, size_t count) {
    ptx_type type = ptx_type_at(decoder, 0);
    for (size_t i = 0; i < count; i++)
        if (types[i] == type) return type;
    ptx_refuse(decoder, "it has no type %s", ptx_type_name(type));
}

/* ---- and, or, xor, not, cnot ---- */

#define WIDTHS(macro, name, expression) \
    macro(name##_16, uint16_t, expression) macro(name##_32, uint32_t, expression) macro(name##_64, uint64_t, expression)

WIDTHS(PTX_BINARY, run_and, a &b)
WIDTHS(PTX_BINARY, run_or, a | b)
WIDTHS(PTX_BINARY, run_xor, a ^ b)
WIDTHS(PTX_UNARY, run_not, ~a)
WIDTHS(PTX_UNARY, run_cnot, a == 0)

/* Predicates: all lanes at once. */
#define PREDICATE(name, expression)                                              \
    static void name(ptx_warp *warp, const ptx_op *op, uint32_t mask) {          \
        uint32_t a = PTX_MASK(op->s[0]), b = PTX_MASK(op->s[1]);                 \
        (void)b;                                                                 \
        PTX_MASK(op->d[0]) = (PTX_MASK(op->d[0]) & ~mask) | ((expression)&mask); \
    }
PREDICATE(run_and_pred, a &b)
PREDICATE(run_or_pred, a | b)
PREDICATE(run_xor_pred, a ^ b)
PREDICATE(run_not_pred, ~a)

void ptx_decode_logic(ptx_decoder *decoder) {
    static const ptx_type types[] = {PTX_b16, PTX_b32, PTX_b64, PTX_pred};
    static const struct {
        const char *opcode;
        uint32_t sources;
        ptx_run run[4]; /* of types */
    } rows[] = {
        {"and", 2, {run_and_16, run_and_32, run_and_64, run_and_pred}},
        {"or", 2, {run_or_16, run_or_32, run_or_64, run_or_pred}},
        {"xor", 2, {run_xor_16, run_xor_32, run_xor_64, run_xor_pred}},
        {"not", 1, {run_not_16, run_not_32, run_not_64, run_not_pred}},
        {"cnot", 1, {run_cnot_16, run_cnot_32, run_cnot_64, NULL}},
    };
    ptx_type type = one_type(decoder, types, 4);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(rows[i].opcode, decoder->statement->opcode) != 0) continue;
        ptx_decode_same(decoder, type, rows[i].sources);
        for (size_t t = 0; t < 4; t++)
            if (types[t] == type) decoder->op->run = rows[i].run[t];
    }
    if (!decoder->op->run) ptx_refuse(decoder, "it has no type %s", ptx_type_name(type));
}

/* ---- lop3{.or,.and}.b32 d{|p}, a, b, c, table {, q} ---- */

/* Any function of three bits: bit 4a + 2b + c of the table is its value. value: each bit of the table, spread. */
static inline uint32_t look_up(uint32_t a, uint32_t b, uint32_t c, const uint32_t value[8]) {
    uint32_t neither = (value[0] & ~c) | (value[1] & c);
    uint32_t only_b = (value[2] & ~c) | (value[3] & c);
    uint32_t only_a = (value[4] & ~c) | (value[5] & c);
    uint32_t both = (value[6] & ~c) | (value[7] & c);
    return (~a & ((neither & ~b) | (only_b & b))) | (a & ((only_a & ~b) | (both & b)));
}

static void run_lop3(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    const uint32_t *a = PTX_ARRAY(uint32_t, op->s[0]), *b = PTX_ARRAY(uint32_t, op->s[1]);
    const uint32_t *c = PTX_ARRAY(uint32_t, op->s[2]);
    uint32_t *d = PTX_ARRAY(uint32_t, op->d[0]), value[8], some = 0;
    for (uint32_t i = 0; i < 8; i++)
        value[i] = op->mode >> i & 1 ? 0xffffffffu : 0;
    PTX_LANES(d[l] = look_up(a[l], b[l], c[l], value));
    if (op->d[1] == PTX_NOWHERE) return;
    PTX_LANES(some |= (uint32_t)(d[l] != 0) << l);
    uint32_t other = op->negated[3] ? ~PTX_MASK(op->s[3]) : PTX_MASK(op->s[3]);
    some = op->count == 0 ? some | other : some & other;
    PTX_MASK(op->d[1]) = (PTX_MASK(op->d[1]) & ~mask) | (some & mask);
}

void ptx_decode_lop3(ptx_decoder *decoder) {
    static const int combinations[] = {PTX_M_OR, PTX_M_AND};
    static const ptx_type types[] = {PTX_b32};
    const ptx_operand *operands = decoder->statement->operands;
    ptx_op *op = decoder->op;
    one_type(decoder, types, 1);
    int combination = ptx_take_one(decoder, combinations, 2);
    uint32_t count = combination < 0 ? 5 : 6;
    ptx_expect_types(decoder, 1);
    ptx_expect_operands(decoder, count, count);
    ptx_operand result = operands[0];
    if (result.paired != (combination >= 0)) ptx_refuse(decoder, "a second result goes with .or and .and");
    result.paired = false;
    op->d[0] = ptx_result(decoder, &result, PTX_b32);
    op->d[1] = PTX_NOWHERE;
    for (uint32_t i = 0; i < 3; i++)
        op->s[i] = ptx_source(decoder, &operands[i + 1], PTX_b32);
    if (operands[4].kind != PTX_OPERAND_INTEGER || operands[4].value < 0 || operands[4].value > 255)
        ptx_refuse(decoder, "its table must be a constant of 8 bits");
    op->mode = (uint32_t)operands[4].value;
    op->run = run_lop3;
    if (combination < 0) return;
    ptx_need(decoder, 70, 82);
    op->count = (uint32_t)combination;
    op->d[1] = ptx_result(decoder, &result.elements[0], PTX_pred);
    op->s[3] = ptx_predicate(decoder, &operands[5], &op->negated[3]);
}

/* ---- shl, shr: amounts beyond the width shift everything out ---- */

#define SHIFT(name, type, expression)                                                    \
    static void name(ptx_warp *warp, const ptx_op *op, uint32_t mask) {                  \
        enum { BITS = 8 * sizeof(type) };                                                \
        type *d = PTX_ARRAY(type, op->d[0]);                                             \
        const type *first = PTX_ARRAY(type, op->s[0]);                                   \
        const uint32_t *amount = PTX_ARRAY(uint32_t, op->s[1]);                          \
        PTX_LANES(type a = first[l]; uint32_t n = amount[l]; d[l] = (type)(expression)); \
    }
SHIFT(run_shl_16, uint16_t, n < BITS ? (uint32_t)a << n : 0)
SHIFT(run_shl_32, uint32_t, n < BITS ? a << n : 0)
SHIFT(run_shl_64, uint64_t, n < BITS ? a << n : 0)
SHIFT(run_shr_u16, uint16_t, n < BITS ? a >> n : 0)
SHIFT(run_shr_u32, uint32_t, n < BITS ? a >> n : 0)
SHIFT(run_shr_u64, uint64_t, n < BITS ? a >> n : 0)
SHIFT(run_shr_s16, int16_t, a >> (n < BITS ? n : BITS - 1))
SHIFT(run_shr_s32, int32_t, a >> (n < BITS ? n : BITS - 1))
SHIFT(run_shr_s64, int64_t, a >> (n < BITS ? n : BITS - 1))

void ptx_decode_shift(ptx_decoder *decoder) {
    static const struct {
        ptx_type type;
        ptx_run left, right;
    } rows[] = {
        {PTX_b16, run_shl_16, run_shr_u16}, {PTX_b32, run_shl_32, run_shr_u32}, {PTX_b64, run_shl_64, run_shr_u64},
        {PTX_u16, NULL, run_shr_u16},       {PTX_u32, NULL, run_shr_u32},       {PTX_u64, NULL, run_shr_u64},
        {PTX_s16, NULL, run_shr_s16},       {PTX_s32, NULL, run_shr_s32},       {PTX_s64, NULL, run_shr_s64},
    };
    const ptx_operand *operands = decoder->statement->operands;
    ptx_op *op = decoder->op;
    ptx_type type = ptx_type_at(decoder, 0);
    bool left = strcmp(decoder->statement->opcode, "shl") == 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].type == type) op->run = left ? rows[i].left : rows[i].right;
    if (!op->run) ptx_refuse(decoder, "it has no type %s", ptx_type_name(type));
    ptx_expect_types(decoder, 1);
    ptx_expect_operands(decoder, 3, 3);
    op->d[0] = ptx_result(decoder, &operands[0], type);
    op->s[0] = ptx_source(decoder, &operands[1], type);
    op->s[1] = ptx_source(decoder, &operands[2], PTX_u32);
}

/* ---- shf: the upper or lower word of the pair b:a, shifted ---- */

#define PAIR ((uint64_t)b << 32 | a)
PTX_TERNARY(run_shf_l_wrap, uint32_t, PAIR << (c & 31) >> 32)
PTX_TERNARY(run_shf_l_clamp, uint32_t, PAIR << (c < 32 ? c : 32) >> 32)
PTX_TERNARY(run_shf_r_wrap, uint32_t, PAIR >> (c & 31))
PTX_TERNARY(run_shf_r_clamp, uint32_t, PAIR >> (c < 32 ? c : 32))

void ptx_decode_funnel(ptx_decoder *decoder) {
    static const ptx_type types[] = {PTX_b32};
    static const int directions[] = {PTX_M_L, PTX_M_R}, modes[] = {PTX_M_WRAP, PTX_M_CLAMP};
    static const ptx_run runs[2][2] = {{run_shf_l_wrap, run_shf_l_clamp}, {run_shf_r_wrap, run_shf_r_clamp}};
    ptx_type type = one_type(decoder, types, 1);
    int direction = ptx_take_one(decoder, directions, 2), mode = ptx_take_one(decoder, modes, 2);
    if (direction < 0 || mode < 0) ptx_refuse(decoder, "it needs a direction and a mode");
    ptx_decode_same(decoder, type, 3);
    decoder->op->run = runs[direction][mode];
}

/* ---- prmt: bytes of the pair b:a ---- */

/* By selectors of 4 bits: the byte's number, and whether to spread its sign. */
static uint32_t select_bytes(uint64_t pair, uint32_t selectors) {
    uint32_t result = 0;
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t selector = selectors >> i * 4 & 15, byte = pair >> (selector & 7) * 8 & 255;
        if (selector & 8) byte = byte & 128 ? 255 : 0;
        result |= byte << i * 8;
    }
    return result;
}

static const uint16_t prmt_selectors[][4] = {
    {0x3210, 0x4321, 0x5432, 0x6543}, /* f4e */
    {0x5670, 0x6701, 0x7012, 0x0123}, /* b4e */
    {0x0000, 0x1111, 0x2222, 0x3333}, /* rc8 */
    {0x3210, 0x3211, 0x3222, 0x3333}, /* ecl */
    {0x0000, 0x1110, 0x2210, 0x3210}, /* ecr */
    {0x1010, 0x3232, 0x1010, 0x3232}, /* rc16 */
};

PTX_TERNARY(run_prmt, uint32_t, select_bytes(PAIR, c))
PTX_TERNARY(run_prmt_mode, uint32_t, select_bytes(PAIR, prmt_selectors[op->mode][c & 3]))

void ptx_decode_permute(ptx_decoder *decoder) {
    static const ptx_type types[] = {PTX_b32};
    static const int modes[] = {PTX_M_F4E, PTX_M_B4E, PTX_M_RC8, PTX_M_ECL, PTX_M_ECR, PTX_M_RC16};
    ptx_type type = one_type(decoder, types, 1);
    int mode = ptx_take_one(decoder, modes, 6);
    ptx_decode_same(decoder, type, 3);
    decoder->op->mode = mode < 0 ? 0 : (uint32_t)mode;
    decoder->op->run = mode < 0 ? run_prmt : run_prmt_mode;
}
