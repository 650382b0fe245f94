/* The floating-point arithmetic that came with sm_100, against exact integer arithmetic: f32x2, sums of f32 with 16-bit
 * numbers, and the least or greatest of three. */
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

enum { COUNT = 1 << 15 };

static uint64_t seed;
static const char *const rounding_names[] = {"rn", "rz", "rm", "rp"};
static const uint64_t one = 0x3f800000;

/* Edges in every combination as far as they go, then random numbers. */
static uint32_t operand(const float_format *f, size_t i, int source, uint64_t *state) {
    uint64_t edge[FLOAT_EDGES_MAX];
    size_t count = float_edges(f, edge);
    if (source == 2 && (i & 1)) return (uint32_t)edge[float_random(f, state) % count];
    if (source < 2 && i < count * count) return (uint32_t)edge[source ? i / count : i % count];
    return (uint32_t)float_random(f, state);
}

static void fail_at(const char *code, const uint32_t *x, uint32_t is, uint64_t wanted) {
    fail_msg("%s of 0x%x 0x%x 0x%x is 0x%x, not 0x%llx", code, x[0], x[1], x[2], is, (unsigned long long)wanted);
}

/* ---- f32x2 ---- */

static uint64_t wanted_of(const char *opcode, const uint32_t *x, exact_rounding rounding, uint32_t flags) {
    uint64_t a = x[0], b = x[1], c = x[2];
    if (flags & FLOAT_FTZ) {
        a = float_flushed(&float_f32, a);
        b = float_flushed(&float_f32, b);
        c = float_flushed(&float_f32, c);
    }
    bool fused = strcmp(opcode, "fma") == 0;
    if (strcmp(opcode, "sub") == 0) b ^= float_sign(&float_f32);
    uint64_t result = fused || strcmp(opcode, "mul") == 0
                          ? float_multiply_add(&float_f32, a, b, &float_f32, c, rounding, fused)
                          : float_multiply_add(&float_f32, a, one, &float_f32, b, rounding, true);
    /* As of f32 alone: what is below the least normal number before it is rounded is flushed. */
    bool multiplies = fused || strcmp(opcode, "mul") == 0;
    uint64_t cut = multiplies ? float_multiply_add(&float_f32, a, b, &float_f32, c, EXACT_RZ, fused) : result;
    bool sticky = fused && fabs(float_value(&float_f32, a) * float_value(&float_f32, b)) <
                               0x1p-24 * fabs(float_value(&float_f32, c)); /* ptx_float_test.c */
    if (flags & FLOAT_FTZ && !sticky && float_flushed(&float_f32, cut) != cut) result = float_flushed(&float_f32, cut);
    return float_finish(&float_f32, result, flags);
}

static void pairs_of_f32(void **state) {
    (void)state;
    static const char *const opcodes[] = {"add", "sub", "mul", "fma"};
    static uint32_t sources[3][2 * COUNT], results[2 * COUNT];
    uint64_t random = seed;
    for (int s = 0; s < 3; s++)
        for (size_t i = 0; i < COUNT; i++) {
            sources[s][2 * i] = operand(&float_f32, i, s, &random);
            sources[s][2 * i + 1] = operand(&float_f32, COUNT - 1 - i, s, &random);
        }
    for (int n = 0; n < 4 * 4 * 2; n++) {
        const char *opcode = opcodes[n % 4];
        exact_rounding rounding = (exact_rounding)(n / 4 % 4);
        uint32_t flags = n / 16 ? FLOAT_FTZ : 0;
        char code[96];
        snprintf(code, sizeof code, "%s.%s%s.f32x2 %%d, %%a, %%b%s;", opcode, rounding_names[rounding],
                 flags ? ".ftz" : "", n % 4 == 3 ? ", %c" : "");
        harness_case test = {
            .target = "sm_100", .code = code, .result_bits = 64, .source_bits = {64, 64, 64}, .seed = seed};
        harness_run(&test, COUNT, results, (const void *[HARNESS_SOURCES]){sources[0], sources[1], sources[2]});
        for (size_t i = 0; i < 2 * COUNT; i++) {
            uint32_t x[3] = {sources[0][i], sources[1][i], sources[2][i]};
            uint64_t wanted = wanted_of(opcode, x, rounding, flags);
            if (results[i] != wanted) fail_at(code, x, results[i], wanted);
        }
    }
}

/* ---- f32 with 16-bit numbers ---- */

static void check_mixed(const float_format *f, const char *opcode, exact_rounding rounding, uint32_t flags) {
    static uint16_t narrow[2][COUNT];
    static uint32_t last[COUNT], results[COUNT];
    uint64_t random = seed;
    for (size_t i = 0; i < COUNT; i++) {
        narrow[0][i] = (uint16_t)operand(f, i, 0, &random);
        narrow[1][i] = (uint16_t)operand(f, i, 1, &random);
        last[i] = operand(&float_f32, i, strcmp(opcode, "fma") == 0 ? 2 : 1, &random);
    }
    bool fused = strcmp(opcode, "fma") == 0;
    char code[96];
    snprintf(code, sizeof code, "%s.%s%s.f32.%s %%d, %%a, %s%%c;", opcode, rounding_names[rounding],
             flags ? ".sat" : "", f->name, fused ? "%b, " : "");
    harness_case test = {
        .target = "sm_100", .code = code, .result_bits = 32, .source_bits = {16, 16, 32}, .seed = seed};
    harness_run(&test, COUNT, results, (const void *[HARNESS_SOURCES]){narrow[0], narrow[1], last});
    uint64_t unit = float_infinity(f) / 2 >> f->mantissa << f->mantissa;
    for (size_t i = 0; i < COUNT; i++) {
        uint64_t c = last[i] ^ (strcmp(opcode, "sub") == 0 ? float_sign(&float_f32) : 0);
        uint64_t b = fused ? narrow[1][i] : unit;
        uint64_t wanted = float_multiply_add(f, narrow[0][i], b, &float_f32, c, rounding, true);
        wanted = float_finish(&float_f32, wanted, flags);
        uint32_t x[3] = {narrow[0][i], narrow[1][i], last[i]};
        if (results[i] != wanted) fail_at(code, x, results[i], wanted);
    }
}

static void sums_with_16_bit_numbers(void **state) {
    (void)state;
    static const char *const opcodes[] = {"add", "sub", "fma"};
    for (int n = 0; n < 3 * 4 * 2; n++) {
        check_mixed(&float_f16, opcodes[n % 3], (exact_rounding)(n / 3 % 4), n / 12 ? FLOAT_SAT : 0);
        check_mixed(&float_bf16, opcodes[n % 3], (exact_rounding)(n / 3 % 4), n / 12 ? FLOAT_SAT : 0);
    }
}

/* ---- min and max of three ---- */

static void choices_of_three(void **state) {
    (void)state;
    static uint32_t sources[3][COUNT], results[COUNT];
    uint64_t random = seed;
    for (int s = 0; s < 3; s++)
        for (size_t i = 0; i < COUNT; i++)
            sources[s][i] = operand(&float_f32, i, s, &random);
    for (int n = 0; n < 16; n++) {
        bool largest = n & 1, nan = n & 2, ftz = n & 4, absolute = n & 8;
        char code[96];
        snprintf(code, sizeof code, "%s%s%s%s.f32 %%d, %%a, %%b, %%c;", largest ? "max" : "min", ftz ? ".ftz" : "",
                 nan ? ".NaN" : "", absolute ? ".abs" : "");
        harness_case test = {
            .target = "sm_100", .code = code, .result_bits = 32, .source_bits = {32, 32, 32}, .seed = seed};
        harness_run(&test, COUNT, results, (const void *[HARNESS_SOURCES]){sources[0], sources[1], sources[2]});
        for (size_t i = 0; i < COUNT; i++) {
            uint64_t x[3];
            for (int s = 0; s < 3; s++) {
                x[s] = ftz ? float_flushed(&float_f32, sources[s][i]) : sources[s][i];
                if (absolute) x[s] &= 0x7fffffff;
            }
            /* Either bracketing gives the same. */
            uint64_t wanted = float_chosen(&float_f32, x[1], x[2], largest, nan, false);
            wanted = float_chosen(&float_f32, x[0], wanted, largest, nan, false);
            if (results[i] != wanted)
                fail_at(code, (uint32_t[]){sources[0][i], sources[1][i], sources[2][i]}, results[i], wanted);
        }
    }
}

int main(void) {
    seed = harness_seed();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_of_f32),
        cmocka_unit_test(sums_with_16_bit_numbers),
        cmocka_unit_test(choices_of_three),
    };
    return cmocka_run_group_tests_name("ptx_float_sm100", tests, NULL, NULL);
}
