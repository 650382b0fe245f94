/* Floating-point instructions of PTX against exact integer arithmetic, over edge values and random ones. */
#include "tests/sim/exact.h"
#include "tests/sim/ptx_harness.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint64_t seed;

/* ---- Formats ---- */

typedef struct format {
    const char *name;
    uint32_t bits;
    int exponent, mantissa;
    uint64_t nan; /* what instructions produce */
} format;

static const format f16 = {"f16", 16, 5, 10, 0x7fff}, bf16 = {"bf16", 16, 8, 7, 0x7fff},
                    f32 = {"f32", 32, 8, 23, 0x7fffffff}, f64 = {"f64", 64, 11, 52, 0x7ff8000000000000};

static uint64_t infinity_of(const format *f) {
    return ((1ull << f->exponent) - 1) << f->mantissa;
}

static uint64_t sign_of(const format *f) {
    return 1ull << (f->bits - 1);
}

static double value_of(const format *f, uint64_t bits) {
    uint64_t magnitude = bits & (sign_of(f) - 1), exponent = magnitude >> f->mantissa;
    double value, mantissa = (double)(magnitude & ((1ull << f->mantissa) - 1));
    int bias = (1 << (f->exponent - 1)) - 1;
    if (magnitude >= infinity_of(f))
        value = magnitude > infinity_of(f) ? NAN : INFINITY;
    else if (exponent)
        value = ldexp(mantissa + ldexp(1, f->mantissa), (int)exponent - bias - f->mantissa);
    else
        value = ldexp(mantissa, 1 - bias - f->mantissa);
    return bits & sign_of(f) ? -value : value;
}

static uint64_t flushed(const format *f, uint64_t bits) {
    return (bits & (sign_of(f) - 1)) >> f->mantissa ? bits : bits & sign_of(f);
}

/* Numbers at and around every boundary of the format, with both signs. */
static size_t edges(const format *f, uint64_t *out) {
    uint64_t one = infinity_of(f) / 2 >> f->mantissa << f->mantissa, least = 1ull << f->mantissa;
    const uint64_t positive[] = {0,
                                 1,
                                 2,
                                 3,
                                 least / 2,
                                 least - 1,
                                 least,
                                 least + 1,
                                 one - 1,
                                 one,
                                 one + 1,
                                 one + least - 1,
                                 one + least,
                                 one + least / 2,
                                 one + 2 * least + 1,
                                 one + ((uint64_t)(f->mantissa + 1) << f->mantissa),
                                 one + ((uint64_t)f->mantissa << f->mantissa) + 1,
                                 one - ((uint64_t)(f->mantissa + 1) << f->mantissa),
                                 infinity_of(f) - least,
                                 infinity_of(f) - 1,
                                 infinity_of(f),
                                 infinity_of(f) + 1,
                                 infinity_of(f) + least / 2};
    size_t count = sizeof positive / sizeof *positive;
    for (size_t i = 0; i < count; i++) {
        out[2 * i] = positive[i];
        out[2 * i + 1] = positive[i] | sign_of(f);
    }
    return 2 * count;
}

/* Half of them of one size, so that sums cancel and products round near each other. */
static uint64_t random_bits(const format *f, uint64_t *state) {
    uint64_t bits = harness_random(state), mask = sign_of(f) | (sign_of(f) - 1);
    if (harness_random(state) & 1) return bits & mask;
    uint64_t one = infinity_of(f) / 2 >> f->mantissa;
    return (bits & (sign_of(f) | ((1ull << f->mantissa) - 1))) | (one - 2 + harness_random(state) % 5) << f->mantissa;
}

/* Operands of an instruction: every pair or triple of some edges, then random ones. */
typedef struct operands {
    size_t count;
    uint64_t *raw[3];
    void *packed[3]; /* in the format's width */
} operands;

static void *pack(const format *f, const uint64_t *raw, size_t count) {
    uint8_t *bytes = malloc(count * f->bits / 8);
    assert_non_null(bytes);
    for (size_t i = 0; i < count; i++)
        memcpy(bytes + i * f->bits / 8, &raw[i], f->bits / 8);
    return bytes;
}

static operands operands_new(const format *f, uint32_t arity) {
    enum { RANDOM = 20000 };
    uint64_t edge[64], state = seed;
    size_t edge_count = edges(f, edge), pairs = edge_count * edge_count, step = arity == 3 ? edge_count / 2 : 1;
    operands o = {.count = pairs * step + RANDOM};
    for (int s = 0; s < 3; s++) {
        o.raw[s] = malloc(o.count * sizeof(uint64_t));
        assert_non_null(o.raw[s]);
    }
    for (size_t i = 0; i < o.count; i++)
        for (int s = 0; s < 3; s++)
            o.raw[s][i] = random_bits(f, &state);
    for (size_t i = 0; i < pairs * step; i++) {
        o.raw[0][i] = edge[i % edge_count];
        o.raw[1][i] = edge[i / edge_count % edge_count];
        if (arity == 3) o.raw[2][i] = edge[(i / pairs * 2 + (i & 1)) % edge_count];
    }
    for (int s = 0; s < 3; s++)
        o.packed[s] = pack(f, o.raw[s], o.count);
    return o;
}

static void operands_free(operands *o) {
    for (int s = 0; s < 3; s++) {
        free(o->raw[s]);
        free(o->packed[s]);
    }
}

static uint64_t *run(const format *f, const char *code, uint32_t arity, const operands *o, const format *result) {
    harness_case test = {.code = code, .result_bits = result->bits, .seed = seed};
    const void *sources[HARNESS_SOURCES] = {o->packed[0], o->packed[1], o->packed[2]};
    for (uint32_t s = 0; s < arity; s++)
        test.source_bits[s] = f->bits;
    uint8_t *bytes = malloc(o->count * result->bits / 8);
    uint64_t *results = calloc(o->count, sizeof *results);
    assert_non_null(bytes);
    assert_non_null(results);
    harness_run(&test, o->count, bytes, sources);
    for (size_t i = 0; i < o->count; i++)
        memcpy(&results[i], bytes + i * result->bits / 8, result->bits / 8);
    free(bytes);
    return results;
}

static void expect(const char *code, const operands *o, size_t i, uint64_t is, uint64_t wanted) {
    if (is == wanted) return;
    fail_msg("%s of 0x%llx 0x%llx 0x%llx is 0x%llx, not 0x%llx", code, (unsigned long long)o->raw[0][i],
             (unsigned long long)o->raw[1][i], (unsigned long long)o->raw[2][i], (unsigned long long)is,
             (unsigned long long)wanted);
}

/* ---- add, sub, mul, fma ---- */

enum { FTZ = 1, SAT = 2, RELU = 4 };

/* a * b + c, rounded once; the product or the sum alone have b = 1 or no c. */
static uint64_t multiply_add(const format *f, uint64_t a, uint64_t b, uint64_t c, exact_rounding rounding, bool adds) {
    double x = value_of(f, a), y = value_of(f, b), z = value_of(f, c);
    bool minus = signbit(x) != signbit(y), endless = isinf(x) || isinf(y);
    if (isnan(x) || isnan(y) || (isinf(x) && y == 0) || (x == 0 && isinf(y))) return f->nan;
    if (adds && (isnan(z) || (endless && isinf(z) && minus != signbit(z)))) return f->nan;
    if (endless || (adds && isinf(z))) return infinity_of(f) | ((endless ? minus : signbit(z)) ? sign_of(f) : 0);
    exact sum = {{0}};
    exact_add_product(&sum, x, y);
    if (adds) exact_add_product(&sum, z, 1);
    if (exact_sign(&sum)) return exact_round(&sum, f->exponent, f->mantissa, rounding);
    /* An exact zero: of equal signs that sign, else + but when rounding down. */
    bool product_zero = x == 0 || y == 0, same = !adds || (product_zero && z == 0 && minus == signbit(z));
    bool down = rounding == EXACT_RM && !same;
    return (same && minus) || down ? sign_of(f) : 0;
}

static uint64_t finish(const format *f, uint64_t bits, uint32_t flags) {
    bool minus = bits & sign_of(f), nan = (bits & (sign_of(f) - 1)) > infinity_of(f);
    uint64_t one = infinity_of(f) / 2 >> f->mantissa << f->mantissa;
    if (flags & FTZ) bits = flushed(f, bits);
    if (flags & SAT) return nan || minus ? 0 : bits > one ? one : bits;
    if (flags & RELU) return nan ? f->nan : minus ? 0 : bits;
    return bits;
}

static void check_multiply_add(const format *f, const char *opcode, const char *rounding_name, exact_rounding rounding,
                               uint32_t flags) {
    bool fused = strcmp(opcode, "fma") == 0, multiplies = fused || strcmp(opcode, "mul") == 0;
    bool subtracts = strcmp(opcode, "sub") == 0;
    char code[128];
    snprintf(code, sizeof code, "%s.%s%s%s%s.%s %%d, %%a, %%b%s;", opcode, rounding_name, flags & FTZ ? ".ftz" : "",
             flags & SAT ? ".sat" : "", flags & RELU ? ".relu" : "", f->name, fused ? ", %c" : "");
    uint64_t one = infinity_of(f) / 2 >> f->mantissa << f->mantissa;
    operands o = operands_new(f, fused ? 3 : 2);
    uint64_t *results = run(f, code, fused ? 3 : 2, &o, f);
    for (size_t i = 0; i < o.count; i++) {
        uint64_t a = o.raw[0][i], b = o.raw[1][i], c = o.raw[2][i];
        if (flags & FTZ) a = flushed(f, a), b = flushed(f, b), c = flushed(f, c);
        if (subtracts) b ^= sign_of(f);
        uint64_t wanted =
            multiplies ? multiply_add(f, a, b, c, rounding, fused) : multiply_add(f, a, one, b, rounding, true);
        expect(code, &o, i, results[i], finish(f, wanted, flags));
    }
    free(results);
    operands_free(&o);
}

static const char *const opcodes[] = {"add", "sub", "mul", "fma"};
static const char *const rounding_names[] = {"rn", "rz", "rm", "rp"};

static void arithmetic_of_f32(void **state) {
    (void)state;
    for (int op = 0; op < 4; op++)
        for (int r = 0; r < 4; r++)
            for (uint32_t flags = 0; flags < 4; flags++)
                check_multiply_add(&f32, opcodes[op], rounding_names[r], (exact_rounding)r, flags);
}

static void arithmetic_of_f64(void **state) {
    (void)state;
    for (int op = 0; op < 4; op++)
        for (int r = 0; r < 4; r++)
            check_multiply_add(&f64, opcodes[op], rounding_names[r], (exact_rounding)r, 0);
}

static void arithmetic_of_16_bits(void **state) {
    (void)state;
    for (int op = 0; op < 4; op++) {
        for (uint32_t flags = 0; flags < 4; flags++)
            check_multiply_add(&f16, opcodes[op], "rn", EXACT_RN, flags);
        check_multiply_add(&bf16, opcodes[op], "rn", EXACT_RN, 0);
    }
    check_multiply_add(&f16, "fma", "rn", EXACT_RN, RELU);
    check_multiply_add(&f16, "fma", "rn", EXACT_RN, RELU | FTZ);
    check_multiply_add(&bf16, "fma", "rn", EXACT_RN, RELU);
}

/* Each half of a packed instruction is what the scalar one gives, the other half notwithstanding. */
static void packed_halves_are_scalars(void **state) {
    (void)state;
    static const char *const codes[][2] = {
        {"fma.rn.f16x2 %d, %a, %b, %c;",
         "mov.b32 {%ha,%hx}, %a; mov.b32 {%hb,%hy}, %b; mov.b32 {%hc,%hz}, %c; fma.rn.f16 %ha, %ha, %hb, %hc; "
         "fma.rn.f16 %hx, %hx, %hy, %hz; mov.b32 %d, {%ha,%hx};"},
        {"add.bf16x2 %d, %a, %b;", "mov.b32 {%ha,%hx}, %a; mov.b32 {%hb,%hy}, %b; add.bf16 %ha, %ha, %hb; "
                                   "add.bf16 %hx, %hx, %hy; mov.b32 %d, {%ha,%hx};"},
        {"max.NaN.f16x2 %d, %a, %b;", "mov.b32 {%ha,%hx}, %a; mov.b32 {%hb,%hy}, %b; max.NaN.f16 %ha, %ha, %hb; "
                                      "max.NaN.f16 %hx, %hx, %hy; mov.b32 %d, {%ha,%hx};"},
        {"neg.bf16x2 %d, %a;", "mov.b32 {%ha,%hx}, %a; neg.bf16 %ha, %ha; neg.bf16 %hx, %hx; mov.b32 %d, {%ha,%hx};"},
        {"abs.ftz.f16x2 %d, %a;",
         "mov.b32 {%ha,%hx}, %a; abs.ftz.f16 %ha, %ha; abs.ftz.f16 %hx, %hx; mov.b32 %d, {%ha,%hx};"}};
    enum { COUNT = 4096 };
    static uint32_t sources[3][COUNT], results[2][COUNT];
    uint64_t random = seed;
    for (int s = 0; s < 3; s++)
        for (int i = 0; i < COUNT; i++)
            sources[s][i] = (uint32_t)(random_bits(&f16, &random) << 16 | random_bits(&f16, &random));
    const void *pointers[HARNESS_SOURCES] = {sources[0], sources[1], sources[2]};
    for (size_t c = 0; c < sizeof codes / sizeof *codes; c++) {
        for (int scalar = 0; scalar < 2; scalar++) {
            char code[512];
            snprintf(code, sizeof code, ".reg .b16 %%ha,%%hb,%%hc,%%hx,%%hy,%%hz; %s", codes[c][scalar]);
            harness_case test = {.code = code, .result_bits = 32, .source_bits = {32, 32, 32}};
            harness_run(&test, COUNT, results[scalar], pointers);
        }
        assert_memory_equal(results[0], results[1], sizeof results[0]);
    }
}

/* ---- min, max, neg, abs, copysign ---- */

static uint64_t chosen(const format *f, uint64_t a, uint64_t b, bool largest, bool nan, bool xorsign) {
    uint64_t sign = sign_of(f), result;
    bool a_nan = (a & (sign - 1)) > infinity_of(f), b_nan = (b & (sign - 1)) > infinity_of(f);
    uint64_t both = (a ^ b) & sign;
    if ((a_nan && b_nan) || (nan && (a_nan || b_nan))) return f->nan;
    if (xorsign) a &= sign - 1, b &= sign - 1;
    /* In order of the numbers: negative bits fall as their numbers rise. */
    uint64_t key_a = a & sign ? sign - 1 - (a & (sign - 1)) : a | sign,
             key_b = b & sign ? sign - 1 - (b & (sign - 1)) : b | sign;
    if (a_nan || b_nan)
        result = a_nan ? b : a;
    else
        result = (key_a > key_b) == largest ? a : b;
    return xorsign ? (result & (sign - 1)) | both : result;
}

static void minimum_and_maximum(void **state) {
    (void)state;
    static const format *const formats[] = {&f32, &f64, &f16, &bf16};
    for (uint32_t n = 0; n < 4 * 16; n++) {
        const format *f = formats[n / 16];
        bool largest = n & 1, nan = n & 2, xorsign = n & 4, ftz = n & 8;
        if ((f == &f64 && (nan || xorsign || ftz)) || (f == &bf16 && ftz)) continue;
        char code[96];
        snprintf(code, sizeof code, "%s%s%s%s.%s %%d, %%a, %%b;", largest ? "max" : "min", ftz ? ".ftz" : "",
                 nan ? ".NaN" : "", xorsign ? ".xorsign.abs" : "", f->name);
        operands o = operands_new(f, 2);
        uint64_t *results = run(f, code, 2, &o, f);
        for (size_t i = 0; i < o.count; i++) {
            uint64_t a = o.raw[0][i], b = o.raw[1][i];
            if (ftz) a = flushed(f, a), b = flushed(f, b);
            expect(code, &o, i, results[i], chosen(f, a, b, largest, nan, xorsign));
        }
        free(results);
        operands_free(&o);
    }
}

static void signs(void **state) {
    (void)state;
    static const format *const formats[] = {&f32, &f64, &f16, &bf16};
    for (uint32_t n = 0; n < 4 * 3; n++) {
        const format *f = formats[n / 3];
        static const char *const names[] = {"neg", "abs", "copysign"};
        if (n % 3 == 2 && f->bits == 16) continue;
        char code[96];
        snprintf(code, sizeof code, "%s.%s %%d, %%a%s;", names[n % 3], f->name, n % 3 == 2 ? ", %b" : "");
        operands o = operands_new(f, 2);
        uint64_t *results = run(f, code, 2, &o, f), sign = sign_of(f);
        for (size_t i = 0; i < o.count; i++) {
            uint64_t a = o.raw[0][i], b = o.raw[1][i];
            uint64_t wanted = n % 3 == 0 ? a ^ sign : n % 3 == 1 ? a & ~sign : (a & sign) | (b & ~sign);
            expect(code, &o, i, results[i], wanted);
        }
        free(results);
        operands_free(&o);
    }
}

/* ---- setp, testp ---- */

/* The comparison of two numbers as the place in a string of what holds if less, equal, greater, unordered. */
static const struct {
    const char *name, *holds;
} comparisons[] = {{"eq", ".=.."},  {"ne", "<.>."},  {"lt", "<..."},  {"le", "<=.."},  {"gt", "..>."},
                   {"ge", ".=>."},  {"equ", ".=.?"}, {"neu", "<.>?"}, {"ltu", "<..?"}, {"leu", "<=.?"},
                   {"gtu", "..>?"}, {"geu", ".=>?"}, {"num", "<=>."}, {"nan", "...?"}};

static void comparisons_of_all_kinds(void **state) {
    (void)state;
    static const format *const formats[] = {&f32, &f64, &f16, &bf16}, word = {"b32", 32, 8, 23, 0};
    for (size_t n = 0; n < 4 * 2 * sizeof comparisons / sizeof *comparisons; n++) {
        const format *f = formats[n % 4];
        bool ftz = n / 4 % 2;
        if (ftz && (f == &f64 || f == &bf16)) continue;
        char code[128];
        snprintf(code, sizeof code,
                 "setp.%s%s.%s %%p|%%q, %%a, %%b; selp.b32 %%d, 1, 0, %%p; @%%q add.u32 %%d, %%d, 2;",
                 comparisons[n / 8].name, ftz ? ".ftz" : "", f->name);
        operands o = operands_new(f, 2);
        uint64_t *results = run(f, code, 2, &o, &word);
        for (size_t i = 0; i < o.count; i++) {
            uint64_t a = o.raw[0][i], b = o.raw[1][i];
            double x = value_of(f, ftz ? flushed(f, a) : a), y = value_of(f, ftz ? flushed(f, b) : b);
            int relation = isunordered(x, y) ? 3 : x < y ? 0 : x > y ? 2 : 1;
            expect(code, &o, i, results[i], comparisons[n / 8].holds[relation] != '.' ? 1 : 2);
        }
        free(results);
        operands_free(&o);
    }
}

/* set writes 1.0 or all ones; .and and the like take a predicate in. */
static void comparisons_into_registers(void **state) {
    (void)state;
    static const format word = {"b32", 32, 8, 23, 0};
    static const struct {
        const char *code;
        const format *from, *to;
        uint64_t truth;
        bool ordered; /* what holds is less, not less or unordered */
    } rows[] = {{"set.ltu.u32.f32 %d, %a, %b;", &f32, &word, 0xffffffff, false},
                {"set.ltu.f32.f32 %d, %a, %b;", &f32, &f32, 0x3f800000, false},
                {"set.ltu.s32.f64 %d, %a, %b;", &f64, &word, 0xffffffff, false},
                {"set.ltu.f16.f16 %d, %a, %b;", &f16, &f16, 0x3c00, false},
                {"set.ltu.u16.f16 %d, %a, %b;", &f16, &f16, 0xffff, false},
                {"set.ltu.bf16.f32 %d, %a, %b;", &f32, &bf16, 0x3f80, false},
                {"setp.eq.u32 %p, 1, 1; set.ltu.and.u32.f32 %d, %a, %b, %p;", &f32, &word, 0xffffffff, false},
                {"setp.eq.u32 %p, 1, 1; set.geu.xor.u32.f32 %d, %a, %b, %p;", &f32, &word, 0xffffffff, true},
                {"setp.eq.u32 %p, 1, 1; set.ltu.or.u32.f32 %d, %a, %b, !%p;", &f32, &word, 0xffffffff, false}};
    for (size_t n = 0; n < sizeof rows / sizeof *rows; n++) {
        operands o = operands_new(rows[n].from, 2);
        uint64_t *results = run(rows[n].from, rows[n].code, 2, &o, rows[n].to);
        for (size_t i = 0; i < o.count; i++) {
            double x = value_of(rows[n].from, o.raw[0][i]), y = value_of(rows[n].from, o.raw[1][i]);
            bool holds = x < y || (!rows[n].ordered && isunordered(x, y));
            expect(rows[n].code, &o, i, results[i], holds ? rows[n].truth : 0);
        }
        free(results);
        operands_free(&o);
    }
}

static void properties(void **state) {
    (void)state;
    static const char *const names[] = {"finite", "infinite", "number", "notanumber", "normal", "subnormal"};
    static const format *const formats[] = {&f32, &f64}, word = {"b32", 32, 8, 23, 0};
    for (int n = 0; n < 12; n++) {
        const format *f = formats[n / 6];
        char code[128];
        snprintf(code, sizeof code, "testp.%s.%s %%p, %%a; selp.b32 %%d, 1, 0, %%p;", names[n % 6], f->name);
        operands o = operands_new(f, 2);
        uint64_t *results = run(f, code, 1, &o, &word);
        for (size_t i = 0; i < o.count; i++) {
            double x = value_of(f, o.raw[0][i]);
            bool small = x != 0 && o.raw[0][i] == (o.raw[0][i] & (sign_of(f) | ((1ull << f->mantissa) - 1)));
            const bool wanted[] = {isfinite(x), isinf(x), !isnan(x), isnan(x), isfinite(x) && !small, small};
            expect(code, &o, i, results[i], wanted[n % 6]);
        }
        free(results);
        operands_free(&o);
    }
}

/* ---- What is refused ---- */

static void refusals(void **state) {
    (void)state;
    static const struct {
        const char *target, *version, *code, *word;
        uint32_t bits;
    } rows[] = {
        {"sm_80", "7.0", "fma.f32 %d, %a, %a, %a;", "rounding", 32},
        {"sm_80", "7.0", "add.rn.relu.f32 %d, %a, %a;", ".relu", 32},
        {"sm_80", "9.0", "add.bf16 %d, %a, %a;", "sm_90", 16},
        {"sm_75", "9.0", "min.f16 %d, %a, %a;", "sm_80", 16},
        {"sm_80", "9.0", "min.xorsign.abs.f32 %d, %a, %a;", "sm_86", 32},
        {"sm_90", "9.0", "add.rz.f16 %d, %a, %a;", "nearest", 16},
        {"sm_90", "9.0", "fma.rn.ftz.bf16 %d, %a, %a, %a;", ".ftz", 16},
        {"sm_90", "9.0", "add.ftz.f64 %d, %a, %a;", ".ftz", 64},
        {"sm_90", "9.0", "div.f32 %d, %a, %a;", "rounding", 32},
        {"sm_90", "9.0", "sin.rn.f32 %d, %a;", ".approx", 32},
        {"sm_80", "9.0", "ex2.approx.ftz.bf16 %d, %a;", "sm_90", 16},
        {"sm_90", "9.0", "setp.lo.f32 %p, %a, %a;", ".lo", 32},
        {"sm_100", "9.0", "min.f32 %d, %a, %a, %a;", "operands", 32},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        harness_case test = {.target = rows[i].target,
                             .version = rows[i].version,
                             .code = rows[i].code,
                             .result_bits = rows[i].bits,
                             .source_bits = {rows[i].bits}};
        const char *why = harness_refusal(&test);
        if (!strstr(why, rows[i].word) || !strstr(why, "line ")) fail_msg("%s: \"%s\"", rows[i].code, why);
    }
}

int main(void) {
    seed = harness_seed();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arithmetic_of_f32),
        cmocka_unit_test(arithmetic_of_f64),
        cmocka_unit_test(arithmetic_of_16_bits),
        cmocka_unit_test(packed_halves_are_scalars),
        cmocka_unit_test(minimum_and_maximum),
        cmocka_unit_test(signs),
        cmocka_unit_test(comparisons_of_all_kinds),
        cmocka_unit_test(comparisons_into_registers),
        cmocka_unit_test(properties),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests_name("ptx_float", tests, NULL, NULL);
}
