/* PTX instructions on bits, comparisons and moves: against references that go bit by bit, as the ISA describes them. */
#include "tests/sim/tests/ptx/ptx_rows.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(rows) (sizeof(rows) / sizeof *(rows))
#define BITS        "b16 b32 b64"
#define ALL         "u16 u32 u64 s16 s32 s64"

static uint64_t seed;

static bool bit(uint64_t word, uint32_t i) {
    return i < 64 && word >> i & 1;
}

/* ---- Logic ---- */

enum { AND, OR, XOR, NOT, CNOT };

static uint64_t expect_logic(const row_values *x) {
    uint64_t result = 0;
    if (x->parameter == CNOT) return x->raw[0] == 0;
    for (uint32_t i = 0; i < x->bits; i++) {
        uint32_t ones = (uint32_t)bit(x->raw[0], i) + bit(x->raw[1], i);
        bool set = x->parameter == AND ? ones == 2 : x->parameter == OR ? ones > 0 : ones == 1;
        if (x->parameter == NOT) set = !bit(x->raw[0], i);
        result |= (uint64_t)set << i;
    }
    return result;
}

/* The same of whether a and b are not 0. */
static uint64_t expect_predicates(const row_values *x) {
    row_values truth = {.bits = 1, .parameter = x->parameter, .raw = {x->raw[0] != 0, x->raw[1] != 0}};
    return expect_logic(&truth);
}

#define TRUTHS "setp.ne.b32 %p, %a, 0;\nsetp.ne.b32 %q, %b, 0;\n"

static void logic(void **state) {
    (void)state;
    static const ptx_row rows[] = {
        {"and.$ %d, %a, %b;", BITS, SAME, 2, {0}, expect_logic, AND},
        {"or.$ %d, %a, %b;", BITS, SAME, 2, {0}, expect_logic, OR},
        {"xor.$ %d, %a, %b;", BITS, SAME, 2, {0}, expect_logic, XOR},
        {"not.$ %d, %a;", BITS, SAME, 1, {0}, expect_logic, NOT},
        {"cnot.$ %d, %a;", BITS, SAME, 1, {0}, expect_logic, CNOT},
        {TRUTHS "and.pred %p, %p, %q;\nselp.$ %d, 1, 0, %p;", "b32", SAME, 2, {0}, expect_predicates, AND},
        {TRUTHS "or.pred %p, %p, %q;\nselp.$ %d, 1, 0, %p;", "b32", SAME, 2, {0}, expect_predicates, OR},
        {TRUTHS "xor.pred %p, %p, %q;\nselp.$ %d, 1, 0, %p;", "b32", SAME, 2, {0}, expect_predicates, XOR},
        {TRUTHS "not.pred %p, %p;\nselp.$ %d, 1, 0, %p;", "b32", SAME, 2, {0}, expect_predicates, NOT},
    };
    ptx_rows_check(rows, COUNT(rows), &seed);
}

static uint64_t expect_lop3(const row_values *x) {
    uint64_t result = 0;
    for (uint32_t i = 0; i < 32; i++) {
        uint32_t index = (uint32_t)bit(x->raw[0], i) * 4 + (uint32_t)bit(x->raw[1], i) * 2 + bit(x->raw[2], i);
        result |= (uint64_t)bit(x->parameter & 255, index) << i;
    }
    if (x->parameter & 0x100) return result != 0 || x->raw[3] != 0;
    if (x->parameter & 0x200) return result != 0 && x->raw[3] != 0;
    return result;
}

static void lop3(void **state) {
    (void)state;
    for (uint32_t table = 0; table < 256; table++) {
        char code[64];
        snprintf(code, sizeof code, "lop3.$ %%d, %%a, %%b, %%c, 0x%02x;", table);
        const ptx_row row = {code, "b32", SAME, 3, {0}, expect_lop3, table};
        ptx_rows_check(&row, 1, &seed);
    }
    static const ptx_row rows[] = {
        {"setp.ne.u32 %q, %e, 0;\nlop3.or.$ %t0|%p, %a, %b, %c, 0x80, %q;\nselp.$ %d, 1, 0, %p;",
         "b32",
         SAME,
         4,
         {0},
         expect_lop3,
         0x180},
        {"setp.ne.u32 %q, %e, 0;\nlop3.and.$ _|%p, %a, %b, %c, 0x80, %q;\nselp.$ %d, 1, 0, %p;",
         "b32",
         SAME,
         4,
         {0},
         expect_lop3,
         0x280},
    };
    ptx_rows_check(rows, COUNT(rows), &seed);
}

/* ---- Shifts ---- */

enum { LEFT, RIGHT, WRAP = 0, CLAMP = 2 };

static uint64_t expect_shift(const row_values *x) {
    uint64_t result = 0;
    for (uint32_t i = 0; i < x->bits; i++) {
        uint64_t from = x->parameter == LEFT ? i - x->raw[1] : i + x->raw[1]; /* below 0 it is large */
        bool set = from < x->bits ? bit(x->raw[0], (uint32_t)from) : x->parameter == RIGHT && x->value[0] < 0;
        result |= (uint64_t)set << i;
    }
    return result;
}

static uint64_t expect_funnel(const row_values *x) {
    uint64_t amount = x->raw[2], result = 0;
    amount = x->parameter & CLAMP ? (amount < 32 ? amount : 32) : amount % 32;
    for (uint64_t i = 0; i < 32; i++) {
        uint64_t from = x->parameter & RIGHT ? i + amount : i + 32 - amount;
        result |= (uint64_t)(from < 32 ? bit(x->raw[0], (uint32_t)from) : bit(x->raw[1], (uint32_t)from - 32)) << i;
    }
    return result;
}

static void shifts(void **state) {
    (void)state;
    static const ptx_row rows[] = {
        {"shl.$ %d, %a, %b;", BITS, SAME, 2, {SAME, WORD}, expect_shift, LEFT},
        {"shr.$ %d, %a, %b;", BITS " " ALL, SAME, 2, {SAME, WORD}, expect_shift, RIGHT},
        {"shf.l.wrap.$ %d, %a, %b, %c;", "b32", SAME, 3, {0}, expect_funnel, LEFT | WRAP},
        {"shf.l.clamp.$ %d, %a, %b, %c;", "b32", SAME, 3, {0}, expect_funnel, LEFT | CLAMP},
        {"shf.r.wrap.$ %d, %a, %b, %c;", "b32", SAME, 3, {0}, expect_funnel, RIGHT | WRAP},
        {"shf.r.clamp.$ %d, %a, %b, %c;", "b32", SAME, 3, {0}, expect_funnel, RIGHT | CLAMP},
    };
    ptx_rows_check(rows, COUNT(rows), &seed);
}

/* ---- prmt ---- */

enum { INDEXED, F4E, B4E, RC8, ECL, ECR, RC16 };

static uint64_t expect_prmt(const row_values *x) {
    uint64_t result = 0, by = x->raw[2] % 4;
    for (uint64_t i = 0; i < 4; i++) {
        uint64_t from = x->raw[2] >> i * 4 & 7;
        bool sign = x->parameter == INDEXED && x->raw[2] >> i * 4 & 8;
        if (x->parameter == F4E) from = by + i;
        if (x->parameter == B4E) from = (by + 8 - i) % 8;
        if (x->parameter == RC8) from = by;
        if (x->parameter == ECL) from = i < by ? by : i;
        if (x->parameter == ECR) from = i < by ? i : by;
        if (x->parameter == RC16) from = by % 2 * 2 + i % 2;
        uint64_t byte = (from < 4 ? x->raw[0] >> from * 8 : x->raw[1] >> (from - 4) * 8) & 255;
        if (sign) byte = byte > 127 ? 255 : 0;
        result |= byte << i * 8;
    }
    return result;
}

static void permutations(void **state) {
    (void)state;
    static const ptx_row rows[] = {
        {"prmt.$ %d, %a, %b, %c;", "b32", SAME, 3, {0}, expect_prmt, INDEXED},
        {"prmt.$.f4e %d, %a, %b, %c;", "b32", SAME, 3, {0}, expect_prmt, F4E},
        {"prmt.$.b4e %d, %a, %b, %c;", "b32", SAME, 3, {0}, expect_prmt, B4E},
        {"prmt.$.rc8 %d, %a, %b, %c;", "b32", SAME, 3, {0}, expect_prmt, RC8},
        {"prmt.$.ecl %d, %a, %b, %c;", "b32", SAME, 3, {0}, expect_prmt, ECL},
        {"prmt.$.ecr %d, %a, %b, %c;", "b32", SAME, 3, {0}, expect_prmt, ECR},
        {"prmt.$.rc16 %d, %a, %b, %c;", "b32", SAME, 3, {0}, expect_prmt, RC16},
    };
    ptx_rows_check(rows, COUNT(rows), &seed);
}

/* ---- Counts and fields ---- */

enum { POPC, CLZ, BREV, BFIND, SHIFTAMT };

static uint64_t expect_count(const row_values *x) {
    uint64_t a = x->raw[0], ones = 0, zeros = 0, reversed = 0, found = UINT32_MAX;
    bool sign = x->is_signed && bit(a, x->bits - 1);
    for (uint32_t i = 0; i < x->bits; i++) {
        ones += bit(a, i);
        zeros = bit(a, i) ? 0 : zeros + 1;
        reversed |= (uint64_t)bit(a, i) << (x->bits - 1 - i);
        if (bit(a, i) != sign) found = i;
    }
    if (x->parameter == SHIFTAMT && found != UINT32_MAX) found = x->bits - 1 - found;
    return x->parameter == POPC ? ones : x->parameter == CLZ ? zeros : x->parameter == BREV ? reversed : found;
}

/* Positions and lengths beyond 255, of which the ISA says nothing, are as an H100 has them. */
static uint64_t amount(const row_values *x, int source) {
    return x->bits == 64 ? x->raw[source] : x->raw[source] & 255;
}

static uint64_t expect_bfe(const row_values *x) {
    uint64_t top = x->bits - 1, position = amount(x, 1), length = amount(x, 2), last = position + length - 1;
    bool sign = x->is_signed && length && bit(x->raw[0], (uint32_t)(last < top ? last : top));
    uint64_t result = 0;
    for (uint32_t i = 0; i <= top; i++)
        result |= (uint64_t)(i < length && position + i <= top ? bit(x->raw[0], (uint32_t)position + i) : sign) << i;
    return result;
}

static uint64_t expect_bfi(const row_values *x) {
    uint64_t position = amount(x, 2), length = amount(x, 3), result = x->raw[1];
    for (uint32_t i = 0; i < length && position + i < x->bits; i++) {
        uint64_t one = 1ull << (position + i);
        result = bit(x->raw[0], i) ? result | one : result & ~one;
    }
    return result;
}

/* The ISA's own text. */
static uint64_t expect_szext(const row_values *x) {
    uint32_t a = (uint32_t)x->raw[0], b1 = x->raw[1] & 31, sign_position = (b1 - 1) & 31;
    bool too_large = x->raw[1] >= 32 && x->parameter == CLAMP;
    uint32_t mask = too_large ? 0 : ~0u << b1;
    bool sign = b1 && !too_large && x->is_signed && a >> sign_position & 1;
    return (a & ~mask) | (sign ? mask | 1u << sign_position : 0);
}

static uint64_t expect_bmsk(const row_values *x) {
    uint64_t a = x->raw[0], b = x->raw[1], result = 0;
    if (x->parameter == WRAP) a %= 32, b %= 32;
    for (uint64_t i = 0; i < 32; i++)
        result |= (uint64_t)(i >= a && i - a < b) << i;
    return result;
}

/* The places of ones in the order in which they are met. */
static uint64_t expect_nth(const row_values *x) {
    int64_t places[33], count = 0, base = (int64_t)x->raw[1], offset = (int32_t)x->raw[2];
    if (offset == INT32_MIN) return 0; /* beyond the ISA's domain, as an H100 has it */
    if (base > 31) return 0xffffffff;
    int64_t step = offset < 0 ? -1 : 1, nth = offset < 0 ? -offset : offset;
    for (int64_t at = base; at >= 0 && at < 32; at += step)
        if (x->raw[0] >> at & 1) places[count++] = at;
    if (offset == 0) return count && places[0] == base ? (uint64_t)base : 0xffffffff;
    return nth <= count ? (uint64_t)places[nth - 1] : 0xffffffff;
}

static uint64_t expect_nth_near(const row_values *x) {
    row_values near = *x;
    near.raw[1] &= 31;
    near.raw[2] = (uint64_t)(int64_t)((int32_t)(x->raw[2] & 15) - 8);
    return expect_nth(&near);
}

static void counts_and_fields(void **state) {
    (void)state;
    static const ptx_row rows[] = {
        {"popc.$ %d, %a;", "b32 b64", WORD, 1, {0}, expect_count, POPC},
        {"clz.$ %d, %a;", "b32 b64", WORD, 1, {0}, expect_count, CLZ},
        {"brev.$ %d, %a;", "b32 b64", SAME, 1, {0}, expect_count, BREV},
        {"bfind.$ %d, %a;", "u32 u64 s32 s64", WORD, 1, {0}, expect_count, BFIND},
        {"bfind.shiftamt.$ %d, %a;", "u32 u64 s32 s64", WORD, 1, {0}, expect_count, SHIFTAMT},
        {"bfe.$ %d, %a, %b, %c;", "u32 u64 s32 s64", SAME, 3, {SAME, WORD, WORD}, expect_bfe, 0},
        {"bfi.$ %d, %a, %b, %c, %e;", "b32 b64", SAME, 4, {SAME, SAME, WORD, WORD}, expect_bfi, 0},
        {"szext.wrap.$ %d, %a, %b;", "u32 s32", SAME, 2, {0}, expect_szext, WRAP},
        {"szext.clamp.$ %d, %a, %b;", "u32 s32", SAME, 2, {0}, expect_szext, CLAMP},
        {"bmsk.wrap.$ %d, %a, %b;", "b32", SAME, 2, {0}, expect_bmsk, WRAP},
        {"bmsk.clamp.$ %d, %a, %b;", "b32", SAME, 2, {0}, expect_bmsk, CLAMP},
        {"fns.$ %d, %a, %b, %c;", "b32", SAME, 3, {0}, expect_nth, 0},
        {"and.$ %t0, %b, 31;\nand.$ %t1, %c, 15;\nsub.s32 %t1, %t1, 8;\nfns.$ %d, %a, %t0, %t1;",
         "b32",
         SAME,
         3,
         {0},
         expect_nth_near,
         0},
    };
    ptx_rows_check(rows, COUNT(rows), &seed);
}

/* ---- Comparisons: parameter is the relations that satisfy it, and how a third operand joins ---- */

enum { LESS = 1, EQUAL = 2, GREATER = 4, WITH_AND = 8, WITH_OR = 16, WITH_XOR = 32, TRUE_IS_ONE = 64, BOTH = 128 };

static bool join(uint32_t parameter, bool holds, bool other) {
    return parameter & WITH_AND ? holds && other : parameter & WITH_OR ? holds || other : holds != other;
}

static uint64_t expect_compare(const row_values *x) {
    ptx_wide a = x->value[0], b = x->value[1];
    bool holds = x->parameter & (a < b ? LESS : a == b ? EQUAL : GREATER), fails = !holds;
    if (x->parameter & (WITH_AND | WITH_OR | WITH_XOR)) {
        holds = join(x->parameter, holds, x->raw[2] == 0);
        fails = join(x->parameter, fails, x->raw[2] == 0);
    }
    if (x->parameter & BOTH) return (uint64_t)holds + 2 * (uint64_t)fails;
    return !holds ? 0 : x->parameter & TRUE_IS_ONE ? 0x3f800000u : 0xffffffffu;
}

static void comparisons(void **state) {
    (void)state;
    static const struct {
        const char *name, *types;
        uint32_t relations;
    } names[] = {
        {"eq", BITS " " ALL, EQUAL},
        {"ne", BITS " " ALL, LESS | GREATER},
        {"lt", ALL, LESS},
        {"le", ALL, LESS | EQUAL},
        {"gt", ALL, GREATER},
        {"ge", ALL, GREATER | EQUAL},
        {"lo", "u16 u32 u64", LESS},
        {"ls", "u16 u32 u64", LESS | EQUAL},
        {"hi", "u16 u32 u64", GREATER},
        {"hs", "u16 u32 u64", GREATER | EQUAL},
    };
    static const struct {
        const char *name;
        uint32_t join;
    } joins[] = {{"", 0}, {".and", WITH_AND}, {".or", WITH_OR}, {".xor", WITH_XOR}};
    for (size_t i = 0; i < COUNT(names); i++) {
        for (size_t j = 0; j < COUNT(joins); j++) {
            char code[3][256];
            const char *third = j ? ", !%q" : "";
            snprintf(code[0], sizeof code[0],
                     "setp.ne.b32 %%q, %%c, 0;\nsetp.%s%s.$ %%p|%%q, %%a, %%b%s;\nselp.b32 %%d, 1, 0, %%p;\n"
                     "selp.b32 %%t0, 2, 0, %%q;\nor.b32 %%d, %%d, %%t0;",
                     names[i].name, joins[j].name, third);
            snprintf(code[1], sizeof code[1], "setp.ne.b32 %%q, %%c, 0;\nset.%s%s.u32.$ %%d, %%a, %%b%s;",
                     names[i].name, joins[j].name, third);
            snprintf(code[2], sizeof code[2], "setp.ne.b32 %%q, %%c, 0;\nset.%s%s.f32.$ %%d, %%a, %%b%s;",
                     names[i].name, joins[j].name, third);
            uint32_t parameter = names[i].relations | joins[j].join;
            const ptx_row rows[] = {
                {code[0], names[i].types, WORD, 3, {SAME, SAME, WORD}, expect_compare, parameter | BOTH},
                {code[1], names[i].types, WORD, 3, {SAME, SAME, WORD}, expect_compare, parameter},
                {code[2], names[i].types, WORD, 3, {SAME, SAME, WORD}, expect_compare, parameter | TRUE_IS_ONE},
            };
            ptx_rows_check(rows, COUNT(rows), &seed);
        }
    }
}

/* ---- Choices ---- */

static uint64_t expect_selp(const row_values *x) {
    return x->raw[x->raw[2] ? 0 : 1];
}

static uint64_t expect_slct(const row_values *x) {
    return x->raw[(int32_t)(uint32_t)x->raw[2] >= 0 ? 0 : 1];
}

static uint64_t expect_slct_float(const row_values *x) {
    uint32_t word = (uint32_t)x->raw[2];
    float c;
    memcpy(&c, &word, sizeof c);
    if (x->parameter && c < 0 && c > -0x1p-126f) c = 0; /* .ftz */
    return x->raw[c >= 0 ? 0 : 1];
}

static void choices(void **state) {
    (void)state;
    static const ptx_row rows[] = {
        {"setp.ne.u32 %p, %c, 0;\nselp.$ %d, %a, %b, %p;",
         BITS " " ALL " f32 f64",
         SAME,
         3,
         {SAME, SAME, WORD},
         expect_selp,
         0},
        {"slct.$.s32 %d, %a, %b, %c;", BITS " " ALL " f32 f64", SAME, 3, {SAME, SAME, WORD}, expect_slct, 0},
        {"slct.$.f32 %d, %a, %b, %c;", BITS " " ALL " f32 f64", SAME, 3, {SAME, SAME, WORD}, expect_slct_float, 0},
        {"slct.ftz.$.f32 %d, %a, %b, %c;", "b32", SAME, 3, {0}, expect_slct_float, 1},
    };
    ptx_rows_check(rows, COUNT(rows), &seed);
}

/* ---- Moves ---- */

static uint64_t expect_first(const row_values *x) {
    return x->raw[0];
}

static uint64_t expect_truth(const row_values *x) {
    return x->raw[0] != 0;
}

static uint64_t expect_one(const row_values *x) {
    (void)x;
    return 1;
}

/* Parts of the given width, the first in the lowest bits. */
static uint64_t expect_packed(const row_values *x) {
    uint64_t result = 0;
    for (uint32_t i = 0; i < HARNESS_SOURCES && i * x->bits < 64; i++)
        result |= x->raw[i] << i * x->bits;
    return result;
}

/* Halves or quarters the other way round. */
static uint64_t expect_reversed(const row_values *x) {
    uint64_t result = 0;
    uint32_t part = x->bits / x->parameter;
    for (uint32_t i = 0; i < x->parameter; i++)
        for (uint32_t j = 0; j < part; j++)
            result |= (uint64_t)bit(x->raw[0], i * part + j) << ((x->parameter - 1 - i) * part + j);
    return result;
}

static void moves(void **state) {
    (void)state;
    static const ptx_row rows[] = {
        {"mov.$ %d, %a;", BITS " " ALL " f32 f64", SAME, 1, {0}, expect_first, 0},
        {"setp.ne.u32 %q, %a, 0;\nmov.pred %p, %q;\nselp.$ %d, 1, 0, %p;", "u32", SAME, 1, {0}, expect_truth, 0},
        {"mov.pred %p, 1;\nselp.$ %d, 1, 0, %p;", "u32", SAME, 1, {0}, expect_one, 0},
        {"mov.b32 %d, {%a, %b};", "b16", DOUBLE, 2, {0}, expect_packed, 0},
        {"mov.b64 %d, {%a, %b};", "b32", DOUBLE, 2, {0}, expect_packed, 0},
        {"mov.b64 %d, {%a, %b, %c, %e};", "b16", 64, 4, {0}, expect_packed, 0},
        {"{ .reg .b16 %h<4>; mov.$ {%h0, %h1}, %a; mov.$ %d, {%h1, %h0}; }", "b32", SAME, 1, {0}, expect_reversed, 2},
        {"mov.$ {%t0, %t1}, %a;\nmov.$ %d, {%t1, %t0};", "b64", SAME, 1, {0}, expect_reversed, 2},
        {"{ .reg .b16 %h<4>; mov.$ {%h0, %h1, %h2, %h3}, %a; mov.$ %d, {%h3, %h2, %h1, %h0}; }",
         "b64",
         SAME,
         1,
         {0},
         expect_reversed,
         4},
        {"{ .reg .b8 %h<4>; mov.$ {%h0, %h1, %h2, %h3}, %a; mov.$ %d, {%h3, %h2, %h1, %h0}; }",
         "b32",
         SAME,
         1,
         {0},
         expect_reversed,
         4},
        {"mov.b64 {%d, _}, %a;", "b64", WORD, 1, {0}, expect_first, 0},
        {"mov.u32 %t0, %clock;\nmov.u32 %t1, %clock;\nsetp.lt.u32 %p, %t0, %t1;\nselp.$ %d, 1, 0, %p;",
         "u32",
         SAME,
         1,
         {0},
         expect_one,
         0},
        {"mov.u64 %x0, %clock64;\nmov.u64 %x1, %clock64;\nsetp.lt.u64 %p, %x0, %x1;\nselp.$ %d, 1, 0, %p;",
         "u32",
         SAME,
         1,
         {0},
         expect_one,
         0},
        {"mov.u64 %x0, %globaltimer;\nmov.u64 %x1, %globaltimer;\nmov.u32 %t0, %globaltimer_hi;\n"
         "mov.u32 %t1, %clock_hi;\nsetp.lt.u64 %p, %x0, %x1;\nsetp.eq.and.u32 %p, %t0, %t1, %p;\n"
         "selp.$ %d, 1, 0, %p;",
         "u32",
         SAME,
         1,
         {0},
         expect_one,
         OPEN}, /* ticks of any length */
    };
    ptx_rows_check(rows, COUNT(rows), &seed);
}

static void wrong_forms_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *code, *word;
    } refused[] = {
        {"and.u32 %d, %a, %a;", "u32"},
        {"cnot.pred %p, %p;", "pred"},
        {"shl.u32 %d, %a, %a;", "u32"},
        {"shf.l.b32 %d, %a, %a, %a;", "mode"},
        {"lop3.b32 %d, %a, %a, %a, 256;", "table"},
        {"lop3.b32 %d, %a, %a, %a, %a;", "table"},
        {"lop3.or.b32 %d, %a, %a, %a, 1, %p;", "second"},
        {"prmt.b32.f4e.b4e %d, %a, %a, %a;", "exclude"},
        {"popc.b64 %d, %a;", "64"},
        {"clz.shiftamt.b32 %d, %a;", "modifier"},
        {"bfe.b32 %d, %a, %a, %a;", "b32"},
        {"szext.s32 %d, %a, %a;", "wrap"},
        {"setp.lt.b32 %p, %a, %a;", "order"},
        {"setp.lo.s32 %p, %a, %a;", "unsigned"},
        {"setp.equ.s32 %p, %a, %a;", "comparison"},
        {"setp.eq.u8 %p, %a, %a;", "u8"},
        {"setp.eq.and.u32 %p, %a, %a;", "operands"},
        {"set.eq.u64.u32 %x0, %a, %a;", "u64"},
        {"selp.b32 %d, %a, %a, !%p;", "negated"},
        {"slct.b32.u32 %d, %a, %a, %a;", "u32"},
        {"mov.b64 %d, %a;", "64"},
        {"mov.u32 %d, {%t0, %t1};", "elements"},
        {"mov.u32 %d, %clock64;", "%clock64"},
        {"mov.u32 %d, %globaltimer;", "%globaltimer"},
        {"mov.u32 %d, %pm0;", "%pm0"},
        {"mov.u32 %d, %envreg32;", "%envreg32"},
        {"add.u32 %d, %tid.x, %a;", "special register"},
        {"mov.b8 %d, 1;", "b8"},
    };
    for (size_t i = 0; i < COUNT(refused); i++) {
        harness_case test = {.code = refused[i].code, .result_bits = 32};
        test.source_bits[0] = 32;
        const char *why = harness_refusal(&test);
        if (!strstr(why, refused[i].word)) fail_msg("%s: %s", refused[i].code, why);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logic),
        cmocka_unit_test(lop3),
        cmocka_unit_test(shifts),
        cmocka_unit_test(permutations),
        cmocka_unit_test(counts_and_fields),
        cmocka_unit_test(comparisons),
        cmocka_unit_test(choices),
        cmocka_unit_test(moves),
        cmocka_unit_test(wrong_forms_are_refused),
    };
    seed = harness_seed();
    return cmocka_run_group_tests_name("ptx_bits", tests, NULL, NULL);
}
