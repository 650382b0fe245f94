/* Floating-point instructions of PTX against exact integer arithmetic, over edge values and random ones. */
#include "tests/sim/tests/common/float_reference.h"
#include "tests/sim/tests/ptx/ptx_harness.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint64_t seed;

/* Operands of an instruction: every pair or triple of some edges, then random ones. */
typedef struct operands {
    size_t count;
    uint64_t *raw[3];
    void *packed[3]; /* in the format's width */
} operands;

static void *pack(const float_format *f, const uint64_t *raw, size_t count) {
    uint8_t *bytes = malloc(count * f->bits / 8);
    assert_non_null(bytes);
    for (size_t i = 0; i < count; i++)
        memcpy(bytes + i * f->bits / 8, &raw[i], f->bits / 8);
    return bytes;
}

static operands operands_new(const float_format *f, uint32_t arity) {
    enum { RANDOM = 20000 };
    uint64_t edge[FLOAT_EDGES_MAX], state = seed;
    size_t edge_count = float_edges(f, edge), pairs = edge_count * edge_count, step = arity == 3 ? edge_count / 2 : 1;
    operands o = {.count = pairs * step + RANDOM};
    for (int s = 0; s < 3; s++) {
        o.raw[s] = malloc(o.count * sizeof(uint64_t));
        assert_non_null(o.raw[s]);
    }
    for (size_t i = 0; i < o.count; i++)
        for (int s = 0; s < 3; s++)
            o.raw[s][i] = float_random(f, &state);
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

static uint64_t *run(const float_format *f, const char *code, uint32_t arity, const operands *o,
                     const float_format *result) {
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

static void check_multiply_add(const float_format *f, const char *opcode, const char *rounding_name,
                               exact_rounding rounding, uint32_t flags) {
    bool fused = strcmp(opcode, "fma") == 0, multiplies = fused || strcmp(opcode, "mul") == 0;
    bool subtracts = strcmp(opcode, "sub") == 0;
    char code[128];
    snprintf(code, sizeof code, "%s.%s%s%s%s.%s %%d, %%a, %%b%s;", opcode, rounding_name,
             flags & FLOAT_FTZ ? ".ftz" : "", flags & FLOAT_SAT ? ".sat" : "", flags & FLOAT_RELU ? ".relu" : "",
             f->name, fused ? ", %c" : "");
    uint64_t one = float_infinity(f) / 2 >> f->mantissa << f->mantissa;
    operands o = operands_new(f, fused ? 3 : 2);
    uint64_t *results = run(f, code, fused ? 3 : 2, &o, f);
    for (size_t i = 0; i < o.count; i++) {
        uint64_t a = o.raw[0][i], b = o.raw[1][i], c = o.raw[2][i];
        if (flags & FLOAT_FTZ) a = float_flushed(f, a), b = float_flushed(f, b), c = float_flushed(f, c);
        if (subtracts) b ^= float_sign(f);
        uint64_t wanted = multiplies ? float_multiply_add(f, a, b, f, c, rounding, fused)
                                     : float_multiply_add(f, a, one, f, b, rounding, true);
        /* What is below the least normal number before it is rounded is flushed, too, unless a product too small to
         * move the addend's last place is all that takes it there. */
        uint64_t cut = multiplies ? float_multiply_add(f, a, b, f, c, EXACT_RZ, fused) : wanted;
        bool sticky =
            fused && f != &float_f64 &&
            fabs(float_value(f, a) * float_value(f, b)) < ldexp(fabs(float_value(f, c)), -(int)f->mantissa - 1);
        if (flags & FLOAT_FTZ && !sticky && float_flushed(f, cut) != cut) wanted = float_flushed(f, cut);
        expect(code, &o, i, results[i], float_finish(f, wanted, flags));
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
                check_multiply_add(&float_f32, opcodes[op], rounding_names[r], (exact_rounding)r, flags);
}

static void arithmetic_of_f64(void **state) {
    (void)state;
    for (int op = 0; op < 4; op++)
        for (int r = 0; r < 4; r++)
            check_multiply_add(&float_f64, opcodes[op], rounding_names[r], (exact_rounding)r, 0);
}

static void arithmetic_of_16_bits(void **state) {
    (void)state;
    for (int op = 0; op < 4; op++) {
        for (uint32_t flags = 0; flags < 4; flags++)
            check_multiply_add(&float_f16, opcodes[op], "rn", EXACT_RN, flags);
        check_multiply_add(&float_bf16, opcodes[op], "rn", EXACT_RN, 0);
    }
    check_multiply_add(&float_f16, "fma", "rn", EXACT_RN, FLOAT_RELU);
    check_multiply_add(&float_f16, "fma", "rn", EXACT_RN, FLOAT_RELU | FLOAT_FTZ);
    check_multiply_add(&float_bf16, "fma", "rn", EXACT_RN, FLOAT_RELU);
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
            sources[s][i] = (uint32_t)(float_random(&float_f16, &random) << 16 | float_random(&float_f16, &random));
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

/* What a tensor copy fills in where there is nothing makes a fused multiply-add 0, whatever else it would be. */
static void what_lies_outside_makes_zeros(void **state) {
    (void)state;
    static const struct {
        const char *code;
        uint32_t a, b, c, wanted;
    } rows[] = {
        {"fma.rn.oob.f16x2 %d, %a, %b, %c;", 0x7ff73c00, 0x40003c00, 0x3c003c00, 0x00004000},
        {"fma.rn.oob.f16x2 %d, %a, %b, %c;", 0x3c003c00, 0x7ff77ff6, 0x3c003c00, 0x00007fff},
        {"fma.rn.oob.relu.bf16x2 %d, %a, %b, %c;", 0x3f803f80, 0x3f80bf80, 0x7ff70000, 0x7fff0000},
        {"fma.rn.f16x2 %d, %a, %b, %c;", 0x7ff73c00, 0x40003c00, 0x3c003c00, 0x7fff4000},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint32_t d = 0;
        const harness_case test = {.code = rows[i].code, .result_bits = 32, .source_bits = {32, 32, 32}};
        const void *sources[HARNESS_SOURCES] = {&rows[i].a, &rows[i].b, &rows[i].c};
        harness_run(&test, 1, &d, sources);
        assert_int_equal(d, rows[i].wanted);
    }
}

/* ---- min, max, neg, abs, copysign ---- */

static void minimum_and_maximum(void **state) {
    (void)state;
    static const float_format *const formats[] = {&float_f32, &float_f64, &float_f16, &float_bf16};
    for (uint32_t n = 0; n < 4 * 16; n++) {
        const float_format *f = formats[n / 16];
        bool largest = n & 1, nan = n & 2, xorsign = n & 4, ftz = n & 8;
        if ((f == &float_f64 && (nan || xorsign || ftz)) || (f == &float_bf16 && ftz)) continue;
        char code[96];
        snprintf(code, sizeof code, "%s%s%s%s.%s %%d, %%a, %%b;", largest ? "max" : "min", ftz ? ".ftz" : "",
                 nan ? ".NaN" : "", xorsign ? ".xorsign.abs" : "", f->name);
        operands o = operands_new(f, 2);
        uint64_t *results = run(f, code, 2, &o, f);
        for (size_t i = 0; i < o.count; i++) {
            uint64_t a = o.raw[0][i], b = o.raw[1][i];
            if (ftz) a = float_flushed(f, a), b = float_flushed(f, b);
            expect(code, &o, i, results[i], float_chosen(f, a, b, largest, nan, xorsign));
        }
        free(results);
        operands_free(&o);
    }
}

static void signs(void **state) {
    (void)state;
    static const float_format *const formats[] = {&float_f32, &float_f64, &float_f16, &float_bf16};
    for (uint32_t n = 0; n < 4 * 3; n++) {
        const float_format *f = formats[n / 3];
        static const char *const names[] = {"neg", "abs", "copysign"};
        if (n % 3 == 2 && f->bits == 16) continue;
        char code[96];
        snprintf(code, sizeof code, "%s.%s %%d, %%a%s;", names[n % 3], f->name, n % 3 == 2 ? ", %b" : "");
        operands o = operands_new(f, 2);
        uint64_t *results = run(f, code, 2, &o, f), sign = float_sign(f);
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
    static const float_format *const formats[] = {&float_f32, &float_f64, &float_f16, &float_bf16},
                                     word = {"b32", 32, 8, 23, 0};
    for (size_t n = 0; n < 4 * 2 * sizeof comparisons / sizeof *comparisons; n++) {
        const float_format *f = formats[n % 4];
        bool ftz = n / 4 % 2;
        if (ftz && (f == &float_f64 || f == &float_bf16)) continue;
        char code[128];
        snprintf(code, sizeof code, "setp.%s%s.%s %%p%s, %%a, %%b; selp.b32 %%d, 1, 0, %%p; @%s add.u32 %%d, %%d, 2;",
                 comparisons[n / 8].name, ftz ? ".ftz" : "", f->name, f->bits == 16 ? "" : "|%q",
                 f->bits == 16 ? "!%p" : "%q");
        operands o = operands_new(f, 2);
        uint64_t *results = run(f, code, 2, &o, &word);
        for (size_t i = 0; i < o.count; i++) {
            uint64_t a = o.raw[0][i], b = o.raw[1][i];
            double x = float_value(f, ftz ? float_flushed(f, a) : a), y = float_value(f, ftz ? float_flushed(f, b) : b);
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
    static const float_format word = {"b32", 32, 8, 23, 0};
    static const struct {
        const char *code;
        const float_format *from, *to;
        uint64_t truth;
        bool ordered; /* what holds is less, not less or unordered */
    } rows[] = {{"set.ltu.u32.f32 %d, %a, %b;", &float_f32, &word, 0xffffffff, false},
                {"set.ltu.f32.f32 %d, %a, %b;", &float_f32, &float_f32, 0x3f800000, false},
                {"set.ltu.s32.f64 %d, %a, %b;", &float_f64, &word, 0xffffffff, false},
                {"set.ltu.f16.f16 %d, %a, %b;", &float_f16, &float_f16, 0x3c00, false},
                {"set.ltu.u16.f16 %d, %a, %b;", &float_f16, &float_f16, 0xffff, false},
                {"set.ltu.bf16.f32 %d, %a, %b;", &float_f32, &float_bf16, 0x3f80, false},
                {"setp.eq.u32 %p, 1, 1; set.ltu.and.u32.f32 %d, %a, %b, %p;", &float_f32, &word, 0xffffffff, false},
                {"setp.eq.u32 %p, 1, 1; set.geu.xor.u32.f32 %d, %a, %b, %p;", &float_f32, &word, 0xffffffff, true},
                {"setp.eq.u32 %p, 1, 1; set.ltu.or.u32.f32 %d, %a, %b, !%p;", &float_f32, &word, 0xffffffff, false}};
    for (size_t n = 0; n < sizeof rows / sizeof *rows; n++) {
        operands o = operands_new(rows[n].from, 2);
        uint64_t *results = run(rows[n].from, rows[n].code, 2, &o, rows[n].to);
        for (size_t i = 0; i < o.count; i++) {
            double x = float_value(rows[n].from, o.raw[0][i]), y = float_value(rows[n].from, o.raw[1][i]);
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
    static const float_format *const formats[] = {&float_f32, &float_f64}, word = {"b32", 32, 8, 23, 0};
    for (int n = 0; n < 12; n++) {
        const float_format *f = formats[n / 6];
        char code[128];
        snprintf(code, sizeof code, "testp.%s.%s %%p, %%a; selp.b32 %%d, 1, 0, %%p;", names[n % 6], f->name);
        operands o = operands_new(f, 2);
        uint64_t *results = run(f, code, 1, &o, &word);
        for (size_t i = 0; i < o.count; i++) {
            double x = float_value(f, o.raw[0][i]);
            bool small = x != 0 && o.raw[0][i] == (o.raw[0][i] & (float_sign(f) | ((1ull << f->mantissa) - 1)));
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
        {"sm_90", "9.0", "setp.lt.f16 %p|%q, %a, %a;", "one result", 16},
        {"sm_90", "9.0", "min.f32 %d, %a, %a, %a;", "sm_100", 32},
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
        cmocka_unit_test(what_lies_outside_makes_zeros),
        cmocka_unit_test(minimum_and_maximum),
        cmocka_unit_test(signs),
        cmocka_unit_test(comparisons_of_all_kinds),
        cmocka_unit_test(comparisons_into_registers),
        cmocka_unit_test(properties),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests_name("ptx_float", tests, NULL, NULL);
}
