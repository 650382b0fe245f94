/* Loads and stores of every width and space, and atomics of every operation and type, against what they must do by the
 * ISA's text. */
#include "tests/sim/tests/common/float_reference.h"
#include "tests/sim/tests/ptx/ptx_harness.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { COUNT = 1 << 13 };

static uint64_t seed;
static uint64_t first[COUNT], second[COUNT], third[COUNT], results[COUNT];

static void fail_at(const char *code, size_t i, uint64_t is, uint64_t wanted) {
    fail_msg("%s with 0x%llx 0x%llx 0x%llx: 0x%llx, must be 0x%llx", code, (unsigned long long)first[i],
             (unsigned long long)second[i], (unsigned long long)third[i], (unsigned long long)is,
             (unsigned long long)wanted);
}

static void fill(uint64_t *array, uint64_t *random) {
    static const uint64_t edges[] = {0, 1, ~0ull, 0x7fffffff7fffffff, 0x8000000080000000, 0xff80007f8001ff7f};
    for (size_t i = 0; i < COUNT; i++) {
        uint64_t word = sim_random(random);
        array[i] = word % 4 ? sim_random(random) : edges[word / 4 % 6];
    }
}

/* ---- Loads and stores ---- */

/* A lane's 8 bytes go through memory of a space, and come back as elements of a type; their sum is the result. */
static void each_type_and_space(void **state) {
    (void)state;
    static const struct {
        const char *type, *registers;
        uint32_t bits;
        bool is_signed;
    } types[] = {{"b8", "b32", 8, false},   {"u8", "b16", 8, false},   {"s8", "b64", 8, true},
                 {"s8", "b16", 8, true},    {"b16", "b16", 16, false}, {"u16", "b32", 16, false},
                 {"s16", "b64", 16, true},  {"b32", "b32", 32, false}, {"s32", "b64", 32, true},
                 {"u32", "b64", 32, false}, {"f32", "f32", 32, false}};
    static const char *const spaces[] = {".global", "", ".shared", ".local"};
    uint64_t random = seed;
    fill(first, &random);
    for (size_t n = 0; n < 4 * sizeof types / sizeof *types; n++) {
        const char *space = spaces[n % 4], *type = types[n / 4].type;
        uint32_t bits = types[n / 4].bits, elements = 32 / bits; /* of one half: a vector of up to four */
        char code[2048], vector[64] = "%v0", suffix[8] = "";
        if (elements == 2) snprintf(vector, sizeof vector, "{%%v0, %%v1}"), strcpy(suffix, ".v2");
        if (elements == 4) snprintf(vector, sizeof vector, "{%%v0, %%v1, %%v2, %%v3}"), strcpy(suffix, ".v4");
        int length = snprintf(code, sizeof code,
                              ".reg .%s %%v<4>;\n.reg .b64 %%s<4>;\n.shared .align 8 .b8 s[256];\n.local .align 8 .b8 "
                              "l[8];\n",
                              types[n / 4].registers);
        if (n % 4 < 2)
            length += snprintf(code + length, sizeof code - (size_t)length,
                               "ld.param.u64 %%x0, [pa];\nmad.wide.u32 %%x0, %%i, 8, %%x0;\n");
        else
            length += snprintf(code + length, sizeof code - (size_t)length, "mov.u64 %%x0, %s;\n%s",
                               n % 4 == 2 ? "s" : "l", n % 4 == 2 ? "mad.wide.u32 %x0, %j, 8, %x0;\n" : "");
        length += snprintf(code + length, sizeof code - (size_t)length, "st%s.b64 [%%x0], %%a;\n", space);
        /* Both halves in their elements, each stored again where it came from, and the whole is the result. */
        for (int half = 0; half < 2; half++)
            length += snprintf(code + length, sizeof code - (size_t)length,
                               "ld%s%s.%s %s, [%%x0+%d];\nst%s%s.%s [%%x0+%d], %s;\n", space, suffix, type, vector,
                               half * 4, space, suffix, type, half * 4, vector);
        length += snprintf(code + length, sizeof code - (size_t)length, "ld%s%s.%s %s, [%%x0+4];\n", space, suffix,
                           type, vector);
        /* The last element as its register has it. */
        const char *widen = strcmp(types[n / 4].registers, "b16") == 0   ? "cvt.u64.u16"
                            : strcmp(types[n / 4].registers, "b64") == 0 ? "mov.b64"
                            : strcmp(types[n / 4].registers, "f32") == 0 ? NULL
                                                                         : "cvt.u64.u32";
        if (widen)
            length += snprintf(code + length, sizeof code - (size_t)length, "%s %%s0, %%v%u;\n", widen, elements - 1);
        else
            length +=
                snprintf(code + length, sizeof code - (size_t)length, "mov.b32 %%t0, %%v0;\ncvt.u64.u32 %%s0, %%t0;\n");
        snprintf(code + length, sizeof code - (size_t)length,
                 "ld%s.b64 %%d, [%%x0];\nmul.lo.u64 %%s0, %%s0, 3;\nadd.u64 %%d, %%d, %%s0;", space);
        harness_case test = {.code = code, .result_bits = 64, .source_bits = {64}, .seed = seed};
        harness_run(&test, COUNT, results, (const void *[HARNESS_SOURCES]){first});
        uint32_t register_bits = (uint32_t)strtoul(types[n / 4].registers + 1, NULL, 10);
        for (size_t i = 0; i < COUNT; i++) {
            uint64_t last = first[i] >> (64 - bits);
            if (types[n / 4].is_signed && last >> (bits - 1)) last |= ~0ull << bits;
            if (register_bits < 64) last &= (1ull << register_bits) - 1;
            if (results[i] != first[i] + 3 * last) fail_at(code, i, results[i], first[i] + 3 * last);
        }
    }
}

/* 128 and 256 bits: what is stored is read back in the same order. */
static void wide_accesses(void **state) {
    (void)state;
    static const char *const codes[] = {
        ".reg .b128 w;\nmov.b128 w, {%a, %b};\nst.shared.b128 [%t0], w;\nld.shared.v2.b64 {%x1, %x2}, [%t0];",
        ".reg .b128 w, v;\nst.shared.v2.b64 [%t0], {%a, %b};\nld.shared.b128 w, [%t0];\nmov.b128 v, w;\n"
        "mov.b128 {%x1, %x2}, v;",
        "mov.b64 {%t1, %t2}, %a;\nmov.b64 {%t3, %t4}, %b;\nst.shared.v4.b32 [%t0], {%t1, %t2, %t3, %t4};\n"
        "ld.shared.b64 %x1, [%t0];\nld.shared.b64 %x2, [%t0+8];",
        ".reg .b128 w;\n.reg .b32 q<4>;\nmov.b64 {%t1, %t2}, %a;\nmov.b64 {%t3, %t4}, %b;\n"
        "mov.b128 w, {%t1, %t2, %t3, %t4};\nmov.b128 {q0, q1, q2, q3}, w;\nmov.b64 %x1, {q0, q1};\n"
        "mov.b64 %x2, {q2, q3};",
        "st.v4.b64 [%x0], {%a, %b, %b, %a};\nld.global.v8.b32 {%t0, %t1, %t2, %t3, %t4, %t5, %t6, %t7}, [%x0];\n"
        "mov.b64 %x1, {%t0, %t1};\nmov.b64 %x2, {%t4, %t5};",
        "mov.b64 {%t0, %t1}, %a;\nmov.b64 {%t2, %t3}, %b;\n"
        "st.global.L2::evict_last.v8.b32 [%x0], {%t2, %t3, %t0, %t1, %t2, %t3, %t0, %t1};\n"
        "ld.global.v4.u64 {%x4, %x1, %x2, %x5}, [%x0];"};
    static uint64_t scratch[4 * COUNT];
    uint64_t random = seed;
    fill(first, &random);
    fill(second, &random);
    for (size_t n = 0; n < sizeof codes / sizeof *codes; n++) {
        char code[1024];
        /* A lane in four has 32 bytes of the third array. */
        snprintf(code, sizeof code,
                 ".shared .align 16 .b8 s[512];\nmov.u32 %%t0, s;\nmad.lo.u32 %%t0, %%j, 16, %%t0;\n"
                 "ld.param.u64 %%x0, [pc];\nmad.wide.u32 %%x0, %%i, 8, %%x0;\nand.b32 %%t7, %%i, 3;\n"
                 "setp.eq.u32 %%p, %%t7, 0;\nmov.u64 %%d, 0;\n@!%%p bra END;\n%s\nmul.lo.u64 %%x2, %%x2, 3;\n"
                 "add.u64 %%d, %%x1, %%x2;\nEND:",
                 codes[n]);
        harness_case test = {
            .target = "sm_100", .code = code, .result_bits = 64, .source_bits = {64, 64, 64}, .seed = seed};
        harness_run(&test, COUNT, results, (const void *[HARNESS_SOURCES]){first, second, scratch});
        for (size_t i = 0; i < COUNT; i++) {
            uint64_t wanted = i % 4 ? 0 : first[i] + 3 * second[i];
            if (results[i] != wanted) fail_at(codes[n], i, results[i], wanted);
        }
    }
}

/* ---- Atomics ---- */

typedef uint64_t (*change)(uint64_t old, uint64_t a, uint64_t b, uint32_t bits);

static int64_t extended(uint64_t value, uint32_t bits) {
    return (int64_t)(value << (64 - bits)) >> (64 - bits);
}

#define CHANGE(name, expression)                                                \
    static uint64_t name(uint64_t old, uint64_t a, uint64_t b, uint32_t bits) { \
        (void)old, (void)a, (void)b, (void)bits;                                \
        return expression;                                                      \
    }
CHANGE(add, old + a)
CHANGE(least, a < old ? a : old)
CHANGE(greatest, a > old ? a : old)
CHANGE(signed_least, extended(a, bits) < extended(old, bits) ? a : old)
CHANGE(signed_greatest, extended(a, bits) > extended(old, bits) ? a : old)
CHANGE(conjunction, old &a)
CHANGE(disjunction, old | a)
CHANGE(exclusion, old ^ a)
CHANGE(exchange, a)
CHANGE(compare, old == a ? b : old)
CHANGE(increment, old >= a ? 0 : old + 1)
CHANGE(decrement, old == 0 || old > a ? a : old - 1)

static uint64_t sum_of(const float_format *f, uint64_t old, uint64_t a) {
    uint64_t one = float_infinity(f) / 2 >> f->mantissa << f->mantissa;
    return float_multiply_add(f, old, one, f, a, EXACT_RN, true);
}
CHANGE(add_f32, sum_of(&float_f32, old, a))
CHANGE(add_f32_flushing,
       float_flushed(&float_f32, sum_of(&float_f32, float_flushed(&float_f32, old), float_flushed(&float_f32, a))))
CHANGE(add_f64, sum_of(&float_f64, old, a))
CHANGE(add_f16, sum_of(&float_f16, old, a))
CHANGE(add_bf16, sum_of(&float_bf16, old, a))
CHANGE(add_f16x2, sum_of(&float_f16, old >> 16, a >> 16) << 16 | sum_of(&float_f16, old & 0xffff, a & 0xffff))
CHANGE(add_bf16x2, sum_of(&float_bf16, old >> 16, a >> 16) << 16 | sum_of(&float_bf16, old & 0xffff, a & 0xffff))

static const struct atomic {
    const char *operation, *type;
    uint32_t bits;
    change change;
    bool reduces; /* red has it too */
} atomics[] = {
    {"add", "u32", 32, add, true},
    {"add", "s32", 32, add, true},
    {"add", "u64", 64, add, true},
    {"add", "f32", 32, NULL, true}, /* by its space */
    {"add", "f64", 64, add_f64, true},
    {"add.noftz", "f16", 16, add_f16, true},
    {"add.noftz", "bf16", 16, add_bf16, true},
    {"add.noftz", "f16x2", 32, add_f16x2, true},
    {"add.noftz", "bf16x2", 32, add_bf16x2, true},
    {"min", "u32", 32, least, true},
    {"min", "s32", 32, signed_least, true},
    {"min", "u64", 64, least, true},
    {"min", "s64", 64, signed_least, true},
    {"max", "u32", 32, greatest, true},
    {"max", "s32", 32, signed_greatest, true},
    {"max", "u64", 64, greatest, true},
    {"max", "s64", 64, signed_greatest, true},
    {"and", "b32", 32, conjunction, true},
    {"and", "b64", 64, conjunction, true},
    {"or", "b32", 32, disjunction, true},
    {"or", "b64", 64, disjunction, true},
    {"xor", "b32", 32, exclusion, true},
    {"xor", "b64", 64, exclusion, true},
    {"exch", "b32", 32, exchange, false},
    {"exch", "b64", 64, exchange, false},
    {"cas", "b16", 16, compare, false},
    {"cas", "b32", 32, compare, false},
    {"cas", "b64", 64, compare, false},
    {"inc", "u32", 32, increment, true},
    {"dec", "u32", 32, decrement, true},
};

/* old: the result is what was there, else what is there afterwards. */
static void check_atomic(const struct atomic *row, const char *space, bool reduces, bool old) {
    char code[1024], operand[16] = "";
    bool shared = strcmp(space, ".shared") == 0;
    if (row->change == compare) strcpy(operand, ", %c");
    snprintf(
        code, sizeof code,
        ".shared .align 8 .b8 s[256];\n%s\n%s.b%u [%%x0], %%a;\n%s%s.%s.%s %s[%%x0], %%b%s;\n%s%s.b%u %%d, [%%x0];",
        shared ? "mov.u64 %x0, s;\nmad.wide.u32 %x0, %j, 8, %x0;"
               : "ld.param.u64 %x0, [pe];\nmad.wide.u32 %x0, %i, 8, %x0;",
        shared ? "st.shared" : "st", row->bits, reduces ? "red" : "atom", space, row->operation, row->type,
        reduces ? "" : "%d, ", operand, old ? "//" : "", shared ? "ld.shared" : "ld", row->bits);
    harness_case test = {
        .code = code, .result_bits = row->bits, .source_bits = {row->bits, row->bits, row->bits, 64}, .seed = seed};
    static uint8_t packed[3][COUNT * 8], bytes[COUNT * 8];
    static uint64_t scratch[COUNT];
    const uint64_t *arrays[] = {first, second, third};
    for (int s = 0; s < 3; s++)
        for (size_t i = 0; i < COUNT; i++)
            memcpy(packed[s] + i * row->bits / 8, &arrays[s][i], row->bits / 8);
    harness_run(&test, COUNT, bytes, (const void *[HARNESS_SOURCES]){packed[0], packed[1], packed[2], scratch});
    uint64_t mask = row->bits == 64 ? ~0ull : (1ull << row->bits) - 1;
    change function = row->change ? row->change : shared ? add_f32 : add_f32_flushing;
    for (size_t i = 0; i < COUNT; i++) {
        uint64_t is = 0, was = first[i] & mask;
        uint64_t wanted = old ? was : function(was, second[i] & mask, third[i] & mask, row->bits) & mask;
        memcpy(&is, bytes + i * row->bits / 8, row->bits / 8);
        if (is != wanted) fail_at(code, i, is, wanted);
    }
}

static void each_atomic_changes_its_element(void **state) {
    (void)state;
    uint64_t random = seed;
    fill(first, &random);
    fill(second, &random);
    fill(third, &random);
    for (size_t i = 0; i < COUNT; i += 3)
        second[i] = first[i]; /* for cas */
    for (size_t n = 0; n < sizeof atomics / sizeof *atomics; n++) {
        static const char *const spaces[] = {".global", ".shared"};
        for (int s = 0; s < 2; s++) {
            check_atomic(&atomics[n], spaces[s], false, true);
            check_atomic(&atomics[n], spaces[s], false, false);
            if (atomics[n].reduces) check_atomic(&atomics[n], spaces[s], true, false);
        }
    }
}

/* exch and cas of 128 bits: %a %b are there, %c %e come if the lower half of the comparison is right. */
static void atomics_of_128_bits(void **state) {
    (void)state;
    static uint64_t fourth[COUNT];
    uint64_t random = seed;
    fill(first, &random);
    fill(second, &random);
    fill(third, &random);
    fill(fourth, &random);
    for (int n = 0; n < 3; n++) {
        static const char *const operations[] = {"atom.shared.exch.b128 o, [%t0], v;",
                                                 "atom.shared.cas.b128 o, [%t0], w, v;",
                                                 "atom.shared.cas.b128 o, [%t0], v, w;"};
        char code[1024];
        snprintf(
            code, sizeof code,
            ".reg .b128 w, v, o;\n.shared .align 16 .b8 s[512];\nmov.u32 %%t0, s;\nmad.lo.u32 %%t0, %%j, 16, %%t0;\n"
            "mov.b128 w, {%%a, %%b};\nmov.b128 v, {%%c, %%e};\nst.shared.b128 [%%t0], w;\n%s\n"
            "ld.shared.v2.b64 {%%x0, %%x1}, [%%t0];\nmov.b128 {%%x2, %%x3}, o;\nmul.lo.u64 %%d, %%x0, 3;\n"
            "add.u64 %%d, %%d, %%x1;\nmul.lo.u64 %%d, %%d, 5;\nadd.u64 %%d, %%d, %%x2;\nmul.lo.u64 %%d, %%d, 7;\n"
            "add.u64 %%d, %%d, %%x3;",
            operations[n]);
        harness_case test = {.code = code, .result_bits = 64, .source_bits = {64, 64, 64, 64}, .seed = seed};
        harness_run(&test, COUNT, results, (const void *[HARNESS_SOURCES]){first, second, third, fourth});
        for (size_t i = 0; i < COUNT; i++) {
            bool same = first[i] == third[i] && second[i] == fourth[i], changes = n < 2 || same;
            uint64_t low = changes ? third[i] : first[i], high = changes ? fourth[i] : second[i];
            uint64_t wanted = ((low * 3 + high) * 5 + first[i]) * 7 + second[i];
            if (results[i] != wanted) fail_at(operations[n], i, results[i], wanted);
        }
    }
}

/* All lanes of a block change one word: each sees another old value, and none is lost. */
static void lanes_take_turns(void **state) {
    (void)state;
    static uint32_t old[COUNT];
    static const char code[] =
        ".shared .align 4 .b8 s[4];\nsetp.eq.u32 %p, %j, 0;\nmov.u32 %t0, 1000;\n"
        "@%p st.shared.u32 [s], %t0;\nbar.sync 0;\natom.shared.add.u32 %d, [s], 3;\nbar.sync 0;\n"
        "ld.shared.u32 %t0, [s];\nsetp.ne.u32 %p, %t0, 1096;\n@%p trap;";
    harness_case test = {.code = code, .result_bits = 32, .seed = seed, .open = true};
    harness_run(&test, COUNT, old, (const void *[HARNESS_SOURCES]){NULL});
    for (size_t block = 0; block < COUNT; block += 32) {
        uint32_t seen = 0;
        for (size_t l = 0; l < 32; l++) {
            uint32_t turn = (old[block + l] - 1000) / 3;
            assert_true(old[block + l] >= 1000 && (old[block + l] - 1000) % 3 == 0 && turn < 32);
            seen |= 1u << turn;
        }
        assert_int_equal(seen, 0xffffffff);
    }
}

int main(void) {
    seed = harness_seed();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_type_and_space),
        cmocka_unit_test(wide_accesses),
        cmocka_unit_test(each_atomic_changes_its_element),
        cmocka_unit_test(atomics_of_128_bits),
        cmocka_unit_test(lanes_take_turns),
    };
    return cmocka_run_group_tests_name("ptx_memory", tests, NULL, NULL);
}
