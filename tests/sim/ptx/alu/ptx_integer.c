/* Integer arithmetic: add, sub, mul, mad, div, rem, min, max, neg, abs. Those with a carry are in ptx_carry.c. */
#include "tests/sim/ptx/decode/ptx_decode.h"
#include "tests/sim/ptx/warp/ptx_lanes.h"
#include <string.h>

/* What wraps around is the same for signed and unsigned, and computed unsigned. */
#define WRAPPING(macro, name, expression) \
    macro(name##_16, uint16_t, expression) macro(name##_32, uint32_t, expression) macro(name##_64, uint64_t, expression)
#define SIGNED(macro, name, expression) \
    macro(name##_s16, int16_t, expression) macro(name##_s32, int32_t, expression) macro(name##_s64, int64_t, expression)
#define UNSIGNED(macro, name, expression)                                           \
    macro(name##_u16, uint16_t, expression) macro(name##_u32, uint32_t, expression) \
        macro(name##_u64, uint64_t, expression)

WRAPPING(PTX_BINARY, run_add, a + b)
WRAPPING(PTX_BINARY, run_sub, a - b)
WRAPPING(PTX_BINARY, run_mul_lo, (uint64_t)a *b)
WRAPPING(PTX_TERNARY, run_mad_lo, (uint64_t)a *b + c)
WRAPPING(PTX_UNARY, run_neg, 0u - a)
UNSIGNED(PTX_BINARY, run_min, a < b ? a : b)
UNSIGNED(PTX_BINARY, run_max, a > b ? a : b)
SIGNED(PTX_BINARY, run_min, a < b ? a : b)
SIGNED(PTX_BINARY, run_max, a > b ? a : b)
SIGNED(PTX_UNARY, run_abs, a < 0 ? 0 - (uint64_t)a : (uint64_t)a)

/* A quotient by zero is unspecified: all ones here, and the dividend is the remainder. The least number by -1 wraps. */
UNSIGNED(PTX_BINARY, run_div, b == 0 ? ~(uint64_t)0 : (uint64_t)(a / b))
UNSIGNED(PTX_BINARY, run_rem, b == 0 ? a : a % b)
SIGNED(PTX_BINARY, run_div, b == 0 ? UINT64_MAX : b == -1 ? 0 - (uint64_t)a : (uint64_t)(a / b))
SIGNED(PTX_BINARY, run_rem, b == 0 ? a : b == -1 ? 0 : a % b)

/* The upper half of a product, from a type of twice the width. */
#define HIGH(name, type, wide, bits)                                       \
    PTX_BINARY(run_mul_hi_##name, type, (uint64_t)((wide)a * b >> (bits))) \
    PTX_TERNARY(run_mad_hi_##name, type, (uint64_t)((wide)a * b >> (bits)) + (uint64_t)c)
HIGH(u16, uint16_t, uint32_t, 16)
HIGH(u32, uint32_t, uint64_t, 32)
HIGH(u64, uint64_t, unsigned __int128, 64)
HIGH(s16, int16_t, int32_t, 16)
HIGH(s32, int32_t, int64_t, 32)
HIGH(s64, int64_t, __int128, 64)

/* The whole product, in a register of twice the width. */
#define WIDE(name, type, wide, wrapping)                                               \
    static void run_mul_wide_##name(ptx_warp *warp, const ptx_op *op, uint32_t mask) { \
        wide *d = PTX_ARRAY(wide, op->d[0]);                                           \
        const type *a = PTX_ARRAY(type, op->s[0]), *b = PTX_ARRAY(type, op->s[1]);     \
        PTX_LANES(d[l] = (wide)a[l] * b[l]);                                           \
    }                                                                                  \
    static void run_mad_wide_##name(ptx_warp *warp, const ptx_op *op, uint32_t mask) { \
        wrapping *d = PTX_ARRAY(wrapping, op->d[0]);                                   \
        const type *a = PTX_ARRAY(type, op->s[0]), *b = PTX_ARRAY(type, op->s[1]);     \
        const wrapping *c = PTX_ARRAY(wrapping, op->s[2]);                             \
        PTX_LANES(d[l] = (wrapping)((wide)a[l] * b[l]) + c[l]);                        \
    }
WIDE(u16, uint16_t, uint32_t, uint32_t)
WIDE(u32, uint32_t, uint64_t, uint64_t)
WIDE(s16, int16_t, int32_t, uint32_t)
WIDE(s32, int32_t, int64_t, uint64_t)

PTX_BINARY(run_add_sat, int32_t, ptx_saturate((int64_t)a + b))
PTX_BINARY(run_sub_sat, int32_t, ptx_saturate((int64_t)a - b))
PTX_TERNARY(run_mad_hi_sat, int32_t, ptx_saturate(((int64_t)a * b >> 32) + c))
PTX_BINARY(run_min_relu, int32_t, (a < b ? a : b) > 0 ? (a < b ? a : b) : 0)
PTX_BINARY(run_max_relu, int32_t, (a > b ? a : b) > 0 ? (a > b ? a : b) : 0)

/* Two numbers of 16 bits in one register. */
typedef int32_t (*half_function)(int32_t a, int32_t b);

static inline uint32_t signed_halves(uint32_t a, uint32_t b, half_function each) {
    uint32_t low = (uint16_t)each((int16_t)a, (int16_t)b);
    return low | (uint32_t)each((int16_t)(a >> 16), (int16_t)(b >> 16)) << 16;
}

static inline uint32_t unsigned_halves(uint32_t a, uint32_t b, half_function each) {
    uint32_t low = (uint16_t)each((uint16_t)a, (uint16_t)b);
    return low | (uint32_t)each((uint16_t)(a >> 16), (uint16_t)(b >> 16)) << 16;
}

static inline int32_t half_add(int32_t a, int32_t b) {
    return a + b;
}
static inline int32_t half_min(int32_t a, int32_t b) {
    return a < b ? a : b;
}
static inline int32_t half_max(int32_t a, int32_t b) {
    return a > b ? a : b;
}
static inline int32_t half_min_relu(int32_t a, int32_t b) {
    return half_max(half_min(a, b), 0);
}
static inline int32_t half_max_relu(int32_t a, int32_t b) {
    return half_max(half_max(a, b), 0);
}

PTX_BINARY(run_add_x2, uint32_t, unsigned_halves(a, b, half_add))
PTX_BINARY(run_min_u16x2, uint32_t, unsigned_halves(a, b, half_min))
PTX_BINARY(run_max_u16x2, uint32_t, unsigned_halves(a, b, half_max))
PTX_BINARY(run_min_s16x2, uint32_t, signed_halves(a, b, half_min))
PTX_BINARY(run_max_s16x2, uint32_t, signed_halves(a, b, half_max))
PTX_BINARY(run_min_relu_s16x2, uint32_t, signed_halves(a, b, half_min_relu))
PTX_BINARY(run_max_relu_s16x2, uint32_t, signed_halves(a, b, half_max_relu))

/* ---- Decoding ---- */

enum { NO_PART, PART_LO, PART_HI, PART_WIDE };

#define ALL(name) \
    { name##_16, name##_32, name##_64, name##_16, name##_32, name##_64 }
#define EACH(name) \
    { name##_u16, name##_u32, name##_u64, name##_s16, name##_s32, name##_s64 }

/* The plain forms, for u16, u32, u64, s16, s32, s64. */
static const struct {
    const char *opcode;
    int part;
    ptx_run run[6];
} plain[] = {
    {"add", NO_PART, ALL(run_add)},
    {"sub", NO_PART, ALL(run_sub)},
    {"mul", PART_LO, ALL(run_mul_lo)},
    {"mul", PART_HI, EACH(run_mul_hi)},
    {"mul", PART_WIDE, {run_mul_wide_u16, run_mul_wide_u32, NULL, run_mul_wide_s16, run_mul_wide_s32, NULL}},
    {"mad", PART_LO, ALL(run_mad_lo)},
    {"mad", PART_HI, EACH(run_mad_hi)},
    {"mad", PART_WIDE, {run_mad_wide_u16, run_mad_wide_u32, NULL, run_mad_wide_s16, run_mad_wide_s32, NULL}},
    {"div", NO_PART, EACH(run_div)},
    {"rem", NO_PART, EACH(run_rem)},
    {"min", NO_PART, EACH(run_min)},
    {"max", NO_PART, EACH(run_max)},
    {"neg", NO_PART, {NULL, NULL, NULL, run_neg_16, run_neg_32, run_neg_64}},
    {"abs", NO_PART, {NULL, NULL, NULL, run_abs_s16, run_abs_s32, run_abs_s64}},
};

/* The forms of one type. */
static const struct {
    const char *opcode;
    ptx_type type;
    int part;
    uint32_t flags;
    uint32_t target; /* that they need */
    ptx_run run;
} particular[] = {
    {"add", PTX_s32, NO_PART, PTX_F_SAT, 0, run_add_sat},
    {"sub", PTX_s32, NO_PART, PTX_F_SAT, 0, run_sub_sat},
    {"mad", PTX_s32, PART_HI, PTX_F_SAT, 0, run_mad_hi_sat},
    {"min", PTX_s32, NO_PART, PTX_F_RELU, 90, run_min_relu},
    {"max", PTX_s32, NO_PART, PTX_F_RELU, 90, run_max_relu},
    {"add", PTX_u16x2, NO_PART, 0, 90, run_add_x2},
    {"add", PTX_s16x2, NO_PART, 0, 90, run_add_x2},
    {"min", PTX_u16x2, NO_PART, 0, 90, run_min_u16x2},
    {"max", PTX_u16x2, NO_PART, 0, 90, run_max_u16x2},
    {"min", PTX_s16x2, NO_PART, 0, 90, run_min_s16x2},
    {"max", PTX_s16x2, NO_PART, 0, 90, run_max_s16x2},
    {"min", PTX_s16x2, NO_PART, PTX_F_RELU, 90, run_min_relu_s16x2},
    {"max", PTX_s16x2, NO_PART, PTX_F_RELU, 90, run_max_relu_s16x2},
};

static ptx_run plain_run(const char *opcode, int part, ptx_type type) {
    static const ptx_type types[] = {PTX_u16, PTX_u32, PTX_u64, PTX_s16, PTX_s32, PTX_s64};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        for (size_t j = 0; j < 6; j++)
            if (strcmp(plain[i].opcode, opcode) == 0 && plain[i].part == part && types[j] == type)
                return plain[i].run[j];
    return NULL;
}

static ptx_run particular_run(ptx_decoder *decoder, int part, ptx_type type, uint32_t flags) {
    for (size_t i = 0; i < sizeof particular / sizeof *particular; i++) {
        if (strcmp(particular[i].opcode, decoder->statement->opcode) != 0 || particular[i].part != part ||
            particular[i].type != type || particular[i].flags != flags)
            continue;
        if (particular[i].target) ptx_need(decoder, particular[i].target, 80);
        return particular[i].run;
    }
    return NULL;
}

static ptx_type wide_type(ptx_type type) {
    return type == PTX_u16 ? PTX_u32 : type == PTX_u32 ? PTX_u64 : type == PTX_s16 ? PTX_s32 : PTX_s64;
}

static uint32_t source_count(const char *opcode) {
    if (strcmp(opcode, "mad") == 0) return 3;
    return strcmp(opcode, "neg") == 0 || strcmp(opcode, "abs") == 0 ? 1 : 2;
}

static void decode_integer(ptx_decoder *decoder, ptx_type type) {
    static const int parts[] = {PTX_M_LO, PTX_M_HI, PTX_M_WIDE};
    const char *opcode = decoder->statement->opcode;
    const ptx_operand *operands = decoder->statement->operands;
    ptx_op *op = decoder->op;
    int part = ptx_take_one(decoder, parts, 3) + 1;
    if (ptx_take(decoder, PTX_M_SAT)) op->flags |= PTX_F_SAT;
    if (ptx_take(decoder, PTX_M_RELU)) op->flags |= PTX_F_RELU;
    op->run = particular_run(decoder, part, type, op->flags);
    if (!op->run && !op->flags) op->run = plain_run(opcode, part, type);
    if (!op->run) ptx_refuse(decoder, "these modifiers with type %s are not simulated", ptx_type_name(type));
    uint32_t count = source_count(opcode);
    ptx_type result = part == PART_WIDE ? wide_type(type) : type;
    ptx_expect_types(decoder, 1);
    ptx_expect_operands(decoder, count + 1, count + 1);
    op->type = type;
    op->d[0] = ptx_result(decoder, &operands[0], result);
    for (uint32_t i = 0; i < count; i++)
        op->s[i] = ptx_source(decoder, &operands[i + 1], i == 2 ? result : type);
}

void ptx_decode_arithmetic(ptx_decoder *decoder) {
    ptx_type type = ptx_type_at(decoder, 0);
    ptx_type_class class = ptx_type_class_of(type);
    bool pair = type == PTX_u16x2 || type == PTX_s16x2;
    if (class == PTX_CLASS_FLOAT || (class == PTX_CLASS_PACKED && !pair))
        ptx_decode_float_arithmetic(decoder);
    else if (decoder->modifiers[PTX_M_CC / 64] >> PTX_M_CC % 64 & 1)
        ptx_decode_carry(decoder);
    else
        decode_integer(decoder, type);
}
