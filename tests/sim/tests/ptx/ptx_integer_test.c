/* Integer arithmetic of PTX: against references of 128 bits. */
#include "tests/sim/tests/ptx/ptx_rows.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(rows) (sizeof(rows) / sizeof *(rows))
#define ALL         "u16 u32 u64 s16 s32 s64"

static uint64_t seed;

#define EXPECT(name, expression)                   \
    static uint64_t name(const row_values *x) {    \
        ptx_wide a = x->value[0], b = x->value[1]; \
        (void)a;                                   \
        (void)b;                                   \
        return (uint64_t)(expression);             \
    }

/* Modulo 2^128, so that the product of two u64 is whole. */
static ptx_wide product(const row_values *x) {
    return (ptx_wide)((unsigned __int128)x->value[0] * (unsigned __int128)x->value[1]);
}

static uint64_t upper(const row_values *x) {
    return (uint64_t)((unsigned __int128)product(x) >> x->bits);
}

static ptx_wide clamped(ptx_wide value, ptx_wide least, ptx_wide most) {
    return value < least ? least : value > most ? most : value;
}

static uint64_t saturated(ptx_wide value) {
    return (uint64_t)clamped(value, INT32_MIN, INT32_MAX);
}

EXPECT(expect_add, a + b)
EXPECT(expect_sub, a - b)
EXPECT(expect_mul, product(x))
EXPECT(expect_mad, (uint64_t)product(x) + x->raw[2])
EXPECT(expect_mul_hi, upper(x))
EXPECT(expect_mad_hi, upper(x) + x->raw[2])
EXPECT(expect_div, a / b)
EXPECT(expect_rem, a % b)
EXPECT(expect_min, a < b ? a : b)
EXPECT(expect_max, a < b ? b : a)
EXPECT(expect_neg, -a)
EXPECT(expect_abs, a < 0 ? -a : a)
EXPECT(expect_add_sat, saturated(a + b))
EXPECT(expect_sub_sat, saturated(a - b))
EXPECT(expect_mad_hi_sat, saturated((a * b >> 32) + x->value[2]))
EXPECT(expect_min_relu, clamped(a < b ? a : b, 0, INT32_MAX))
EXPECT(expect_max_relu, clamped(a < b ? b : a, 0, INT32_MAX))
EXPECT(expect_sad, x->value[2] + (a < b ? b - a : a - b))

static void arithmetic(void **state) {
    (void)state;
    static const ptx_row rows[] = {
        {"add.$ %d, %a, %b;", ALL, SAME, 2, {0}, expect_add, 0},
        {"sub.$ %d, %a, %b;", ALL, SAME, 2, {0}, expect_sub, 0},
        {"mul.lo.$ %d, %a, %b;", ALL, SAME, 2, {0}, expect_mul, 0},
        {"mul.hi.$ %d, %a, %b;", ALL, SAME, 2, {0}, expect_mul_hi, 0},
        {"mul.wide.$ %d, %a, %b;", "u16 u32 s16 s32", DOUBLE, 2, {0}, expect_mul, 0},
        {"mad.lo.$ %d, %a, %b, %c;", ALL, SAME, 3, {0}, expect_mad, 0},
        {"mad.hi.$ %d, %a, %b, %c;", ALL, SAME, 3, {0}, expect_mad_hi, 0},
        {"mad.wide.$ %d, %a, %b, %c;", "u16 u32 s16 s32", DOUBLE, 3, {SAME, SAME, DOUBLE}, expect_mad, 0},
        {"div.$ %d, %a, %b;", ALL, SAME, 2, {0}, expect_div, NONZERO},
        {"rem.$ %d, %a, %b;", ALL, SAME, 2, {0}, expect_rem, NONZERO},
        {"min.$ %d, %a, %b;", ALL, SAME, 2, {0}, expect_min, 0},
        {"max.$ %d, %a, %b;", ALL, SAME, 2, {0}, expect_max, 0},
        {"neg.$ %d, %a;", "s16 s32 s64", SAME, 1, {0}, expect_neg, 0},
        {"abs.$ %d, %a;", "s16 s32 s64", SAME, 1, {0}, expect_abs, 0},
        {"add.sat.$ %d, %a, %b;", "s32", SAME, 2, {0}, expect_add_sat, 0},
        {"sub.sat.$ %d, %a, %b;", "s32", SAME, 2, {0}, expect_sub_sat, 0},
        {"mad.hi.sat.$ %d, %a, %b, %c;", "s32", SAME, 3, {0}, expect_mad_hi_sat, 0},
        {"min.relu.$ %d, %a, %b;", "s32", SAME, 2, {0}, expect_min_relu, 0},
        {"max.relu.$ %d, %a, %b;", "s32", SAME, 2, {0}, expect_max_relu, 0},
        {"sad.$ %d, %a, %b, %c;", ALL, SAME, 3, {0}, expect_sad, 0},
    };
    ptx_rows_check(rows, COUNT(rows), &seed);
}

/* ---- Two numbers of 16 bits: parameter is the function, and 8 if they are signed ---- */

enum { PAIR_ADD, PAIR_MIN, PAIR_MAX, PAIR_MIN_RELU, PAIR_MAX_RELU, PAIR_SIGNED = 8 };

static uint64_t expect_pair(const row_values *x) {
    uint64_t result = 0;
    for (int i = 0; i < 2; i++) {
        long a = (long)(x->raw[0] >> i * 16 & 0xffff), b = (long)(x->raw[1] >> i * 16 & 0xffff), d = 0;
        if (x->parameter & PAIR_SIGNED && a > 32767) a -= 65536;
        if (x->parameter & PAIR_SIGNED && b > 32767) b -= 65536;
        uint32_t function = x->parameter % PAIR_SIGNED;
        if (function == PAIR_ADD) d = a + b;
        if (function == PAIR_MIN || function == PAIR_MIN_RELU) d = a < b ? a : b;
        if (function == PAIR_MAX || function == PAIR_MAX_RELU) d = a < b ? b : a;
        if ((function == PAIR_MIN_RELU || function == PAIR_MAX_RELU) && d < 0) d = 0;
        result |= ((uint64_t)d & 0xffff) << i * 16;
    }
    return result;
}

static void pairs(void **state) {
    (void)state;
    static const ptx_row rows[] = {
        {"add.u16x2 %d, %a, %b;", "b32", SAME, 2, {0}, expect_pair, PAIR_ADD},
        {"add.s16x2 %d, %a, %b;", "b32", SAME, 2, {0}, expect_pair, PAIR_ADD | PAIR_SIGNED},
        {"min.u16x2 %d, %a, %b;", "b32", SAME, 2, {0}, expect_pair, PAIR_MIN},
        {"max.u16x2 %d, %a, %b;", "b32", SAME, 2, {0}, expect_pair, PAIR_MAX},
        {"min.s16x2 %d, %a, %b;", "b32", SAME, 2, {0}, expect_pair, PAIR_MIN | PAIR_SIGNED},
        {"max.s16x2 %d, %a, %b;", "b32", SAME, 2, {0}, expect_pair, PAIR_MAX | PAIR_SIGNED},
        {"min.relu.s16x2 %d, %a, %b;", "b32", SAME, 2, {0}, expect_pair, PAIR_MIN_RELU | PAIR_SIGNED},
        {"max.relu.s16x2 %d, %a, %b;", "b32", SAME, 2, {0}, expect_pair, PAIR_MAX_RELU | PAIR_SIGNED},
    };
    ptx_rows_check(rows, COUNT(rows), &seed);
}

/* ---- Carries: one comes in if %e is not 0 and the instruction takes it; what goes out is read by addc. A subtraction
 * adds the complement and 1 or the carry, so that 1 goes out where nothing was borrowed. ---- */

enum { CARRY_ADD, CARRY_SUB, CARRY_LO, CARRY_HI, CARRY_IN = 4, CARRY_READ = 8 };

static uint64_t expect_carry(const row_values *x) {
    unsigned __int128 one = 1, limit = one << x->bits;
    unsigned __int128 in = x->parameter & CARRY_IN && x->raw[3], a = x->raw[0], b = x->raw[1], sum;
    switch (x->parameter & 3) {
    case CARRY_ADD:
        sum = a + b + in;
        break;
    case CARRY_SUB:
        sum = a + (limit - 1 - b) + (x->parameter & CARRY_IN ? in : 1);
        break;
    case CARRY_LO:
        sum = (unsigned __int128)product(x) % limit + x->raw[2] + in;
        break;
    default:
        sum = ((unsigned __int128)product(x) >> x->bits) % limit + x->raw[2] + in;
    }
    return x->parameter & CARRY_READ ? (uint64_t)(sum / limit) : (uint64_t)sum;
}

#define SET_CARRY "add.cc.u32 %t0, %e, -1;\n"
#define CARRY_ROWS(opcode, operands, kind)                                                                             \
    {SET_CARRY opcode ".$ %d, " operands, "u32 s32 u64 s64", SAME, 4, {SAME, SAME, SAME, WORD}, expect_carry, kind}, { \
        SET_CARRY "{ .reg .$ %y; " opcode ".cc.$ %y, " operands " }\naddc.u32 %d, 0, 0;", "u32 s32 u64 s64", WORD, 4,  \
            {SAME, SAME, SAME, WORD}, expect_carry, kind | CARRY_READ                                                  \
    }

static void carries(void **state) {
    (void)state;
    static const ptx_row rows[] = {
        CARRY_ROWS("add", "%a, %b;", CARRY_ADD),
        CARRY_ROWS("sub", "%a, %b;", CARRY_SUB),
        CARRY_ROWS("mad.lo", "%a, %b, %c;", CARRY_LO),
        CARRY_ROWS("mad.hi", "%a, %b, %c;", CARRY_HI),
        CARRY_ROWS("addc", "%a, %b;", CARRY_ADD | CARRY_IN),
        CARRY_ROWS("subc", "%a, %b;", CARRY_SUB | CARRY_IN),
        CARRY_ROWS("madc.lo", "%a, %b, %c;", CARRY_LO | CARRY_IN),
        CARRY_ROWS("madc.hi", "%a, %b, %c;", CARRY_HI | CARRY_IN),
    };
    ptx_rows_check(rows, COUNT(rows), &seed);
}

/* ---- Dot products and products of 24 bits ---- */

enum { A_SIGNED = 1, B_SIGNED = 2, HALVES = 4, UPPER = 8 };

static uint64_t part(uint64_t word, uint32_t i, uint32_t bits, bool is_signed) {
    uint64_t value = word >> i * bits & ((1u << bits) - 1);
    return is_signed && value >> (bits - 1) ? value - (1ull << bits) : value;
}

static uint64_t expect_dot(const row_values *x) {
    bool halves = x->parameter & HALVES;
    uint64_t sum = x->raw[2];
    for (uint32_t i = 0; i < (halves ? 2u : 4u); i++)
        sum += part(x->raw[0], i, halves ? 16 : 8, x->parameter & A_SIGNED) *
               part(x->raw[1], i + (x->parameter & UPPER ? 2 : 0), 8, x->parameter & B_SIGNED);
    return sum;
}

static void dots(void **state) {
    (void)state;
    static const char *const types[] = {"u32.u32", "s32.u32", "u32.s32", "s32.s32"};
    for (uint32_t i = 0; i < 4; i++) {
        char code[3][64];
        snprintf(code[0], sizeof code[0], "dp4a.%s %%d, %%a, %%b, %%c;", types[i]);
        snprintf(code[1], sizeof code[1], "dp2a.lo.%s %%d, %%a, %%b, %%c;", types[i]);
        snprintf(code[2], sizeof code[2], "dp2a.hi.%s %%d, %%a, %%b, %%c;", types[i]);
        const ptx_row rows[] = {
            {code[0], "b32", SAME, 3, {0}, expect_dot, i},
            {code[1], "b32", SAME, 3, {0}, expect_dot, i | HALVES},
            {code[2], "b32", SAME, 3, {0}, expect_dot, i | HALVES | UPPER},
        };
        ptx_rows_check(rows, COUNT(rows), &seed);
    }
}

enum { PLAIN, SATURATED, ADDED, DIFFERENCES_OF_HALVES = 64, RESULT_SIGNED = 128, WAYS_SHIFT = 8 };

static uint64_t expect_differences(const row_values *x) {
    uint32_t ways = x->parameter >> WAYS_SHIFT, bits = x->parameter & DIFFERENCES_OF_HALVES ? 16 : 8;
    int64_t most = (1 << (bits - (x->parameter & RESULT_SIGNED ? 1 : 0))) - 1;
    uint64_t sum = x->raw[2], word = 0;
    for (uint32_t i = 0; i < 32 / bits; i++) {
        int64_t a = (int64_t)part(x->raw[0], i, bits, x->parameter & A_SIGNED);
        int64_t b = (int64_t)part(x->raw[1], i, bits, x->parameter & B_SIGNED);
        int64_t apart = a > b ? a - b : b - a;
        if (ways == SATURATED && apart > most) apart = most;
        sum += (uint64_t)apart;
        word |= ((uint64_t)apart & ((1u << bits) - 1)) << i * bits;
    }
    return ways == ADDED ? sum : word;
}

static void differences(void **state) {
    (void)state;
    static const char *const ways[] = {"", ".sat", ".add"};
    for (uint32_t n = 0; n < 3 * 16; n++) {
        bool halves = n & 1, a_signed = n & 2, b_signed = n & 4, d_signed = n & 8;
        char code[64];
        snprintf(code, sizeof code, "vabsdiff%d.%s.%s.%s%s %%d, %%a, %%b, %%c;", halves ? 2 : 4,
                 d_signed ? "s32" : "u32", a_signed ? "s32" : "u32", b_signed ? "s32" : "u32", ways[n / 16]);
        uint32_t parameter = (halves ? DIFFERENCES_OF_HALVES : 0) | (d_signed ? RESULT_SIGNED : 0) |
                             (a_signed ? A_SIGNED : 0) | (b_signed ? B_SIGNED : 0) | n / 16 << WAYS_SHIFT;
        const ptx_row rows[] = {{code, "b32", SAME, 3, {0}, expect_differences, parameter}};
        ptx_rows_check(rows, COUNT(rows), &seed);
    }
}

static ptx_wide product_24(const row_values *x) {
    ptx_wide factor[2];
    for (int i = 0; i < 2; i++) {
        factor[i] = x->raw[i] % (1 << 24);
        if (x->is_signed && factor[i] >= 1 << 23) factor[i] -= 1 << 24;
    }
    return factor[0] * factor[1];
}

EXPECT(expect_mul24_lo, product_24(x))
EXPECT(expect_mul24_hi, (product_24(x) >> 16))
EXPECT(expect_mad24_lo, product_24(x) + x->value[2])
EXPECT(expect_mad24_hi, (product_24(x) >> 16) + x->value[2])
EXPECT(expect_mad24_sat, saturated((product_24(x) >> 16) + x->value[2]))

static void products_of_24_bits(void **state) {
    (void)state;
    static const ptx_row rows[] = {
        {"mul24.lo.$ %d, %a, %b;", "u32 s32", SAME, 2, {0}, expect_mul24_lo, 0},
        {"mul24.hi.$ %d, %a, %b;", "u32 s32", SAME, 2, {0}, expect_mul24_hi, 0},
        {"mad24.lo.$ %d, %a, %b, %c;", "u32 s32", SAME, 3, {0}, expect_mad24_lo, 0},
        {"mad24.hi.$ %d, %a, %b, %c;", "u32 s32", SAME, 3, {0}, expect_mad24_hi, 0},
        {"mad24.hi.sat.$ %d, %a, %b, %c;", "s32", SAME, 3, {0}, expect_mad24_sat, 0},
    };
    ptx_rows_check(rows, COUNT(rows), &seed);
}

/* ---- What has no value, and what is refused ---- */

static void a_quotient_by_zero_does_not_trap(void **state) {
    (void)state;
    static const char *const codes[] = {"div.u32 %d, %a, 0;", "rem.u32 %d, %a, 0;", "div.s32 %d, %a, 0;",
                                        "rem.s32 %d, %a, 0;"};
    uint32_t a[64], d[64];
    for (uint32_t i = 0; i < 64; i++)
        a[i] = (uint32_t)sim_random(&seed);
    const void *sources[HARNESS_SOURCES] = {a};
    for (size_t i = 0; i < COUNT(codes); i++) {
        harness_case test = {.code = codes[i], .result_bits = 32, .source_bits = {32}, .seed = i, .open = true};
        memset(d, UINT8_MAX, sizeof d);
        harness_run(&test, 64, d, sources);
    }
}

static void wrong_forms_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *code, *word, *target;
    } refused[] = {
        {"add.b32 %d, %a, %a;", "b32", NULL},
        {"add.u8 %d, %a, %a;", "u8", NULL},
        {"add.sat.u32 %d, %a, %a;", "u32", NULL},
        {"mul.u32 %d, %a, %a;", "u32", NULL},
        {"mul.wide.u64 %x0, %x1, %x1;", "u64", NULL},
        {"mad.lo.sat.s32 %d, %a, %a, %a;", "s32", NULL},
        {"neg.u32 %d, %a;", "u32", NULL},
        {"div.rn.u32 %d, %a, %a;", "rn", NULL},
        {"add.u32 %d, %a;", "operands", NULL},
        {"add.u64 %d, %a, %a;", "64", NULL},
        {"add.cc.u16 %d, %a, %a;", "u16", NULL},
        {"min.cc.u32 %d, %a, %a;", ".cc", NULL},
        {"madc.u32 %d, %a, %a, %a;", ".lo", NULL},
        {"min.relu.s32 %d, %a, %a;", "sm_90", "sm_80"},
        {"add.u16x2 %d, %a, %a;", "sm_90", "sm_89"},
        {"mul24.u32 %d, %a, %a;", ".lo", NULL},
        {"dp2a.u32.u32 %d, %a, %a, %a;", ".lo", NULL},
        {"vabsdiff4.u32.u32.u32.sat.add %d, %a, %a, %a;", ".sat", NULL},
        {"sad.b32 %d, %a, %a, %a;", "b32", NULL},
        {"add.u32 %d, %a, 0f3F800000;", "float", NULL},
    };
    for (size_t i = 0; i < COUNT(refused); i++) {
        harness_case test = {.target = refused[i].target, .code = refused[i].code, .result_bits = 32};
        test.source_bits[0] = 32;
        const char *why = harness_refusal(&test);
        if (!strstr(why, refused[i].word)) fail_msg("%s: %s", refused[i].code, why);
    }
}

/* Saturated to the parameter's bits, of which 1 says that they are signed, and side by side. */
static uint64_t expect_pack(const row_values *x) {
    uint32_t bits = x->parameter & ~1u, count = bits == 16 ? 2 : 3;
    ptx_wide half = (ptx_wide)1 << (bits - (x->parameter & 1)), low = x->parameter & 1 ? -half : 0;
    uint64_t field = (1u << bits) - 1, both = (uint64_t)clamped(x->value[0], low, half - 1) & field;
    both = both << bits | ((uint64_t)clamped(x->value[1], low, half - 1) & field);
    return count == 2 ? both : x->raw[2] << 2 * bits | both;
}

static void packing(void **state) {
    (void)state;
    static const ptx_row rows[] = {
        {"cvt.pack.sat.s16.$ %d, %a, %b;", "s32", SAME, 2, {0}, expect_pack, 16 | 1},
        {"cvt.pack.sat.u16.$ %d, %a, %b;", "s32", SAME, 2, {0}, expect_pack, 16},
        {"cvt.pack.sat.s8.$.b32 %d, %a, %b, %c;", "s32", SAME, 3, {0}, expect_pack, 8 | 1},
        {"cvt.pack.sat.u8.$.b32 %d, %a, %b, %c;", "s32", SAME, 3, {0}, expect_pack, 8},
        {"cvt.pack.sat.s4.$.b32 %d, %a, %b, %c;", "s32", SAME, 3, {0}, expect_pack, 4 | 1},
        {"cvt.pack.sat.u4.$.b32 %d, %a, %b, %c;", "s32", SAME, 3, {0}, expect_pack, 4},
        {"cvt.pack.sat.s2.$.b32 %d, %a, %b, %c;", "s32", SAME, 3, {0}, expect_pack, 2 | 1},
        {"cvt.pack.sat.u2.$.b32 %d, %a, %b, %c;", "s32", SAME, 3, {0}, expect_pack, 2},
    };
    ptx_rows_check(rows, sizeof rows / sizeof *rows, &seed);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packing),
        cmocka_unit_test(arithmetic),
        cmocka_unit_test(pairs),
        cmocka_unit_test(carries),
        cmocka_unit_test(dots),
        cmocka_unit_test(differences),
        cmocka_unit_test(products_of_24_bits),
        cmocka_unit_test(a_quotient_by_zero_does_not_trap),
        cmocka_unit_test(wrong_forms_are_refused),
    };
    seed = harness_seed();
    return cmocka_run_group_tests_name("ptx_integer", tests, NULL, NULL);
}
