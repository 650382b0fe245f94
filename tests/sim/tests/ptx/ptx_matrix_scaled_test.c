/* mma with scales: random matrices through every form and every place of the scales, whose lanes are read off CUTLASS 4
 * (include/cute/atom/mma_traits_sm120.hpp, SFALayout and SFBLayout) and not off the PTX ISA, and what ptxas 13 refuses.
 */
#include "tests/sim/core/sim_float.h"
#include "tests/sim/core/sim_random.h"
#include "tests/sim/tests/ptx/ptx_matrix_harness.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { M = 16, N = 8, K_MOST = 64, WORDS_IN = 12, LANES = 32 };

typedef struct form {
    const char *written; /* kind and scales */
    uint32_t k, count;   /* scales of a row */
    uint32_t bits;       /* of an element */
    sim_format a, b;
    const char *types;
    bool power; /* scales are ue8m0 */
} form;

static const form forms[] = {
    {"kind::mxf4nvf4.block_scale.scale_vec::4X", 64, 4, 4, SIM_e2m1, SIM_e2m1, "f32.e2m1.e2m1.f32.ue4m3", false},
    {"kind::mxf4nvf4.block_scale.scale_vec::2X", 64, 2, 4, SIM_e2m1, SIM_e2m1, "f32.e2m1.e2m1.f32.ue8m0", true},
    {"kind::mxf4.block_scale.scale_vec::2X", 64, 2, 4, SIM_e2m1, SIM_e2m1, "f32.e2m1.e2m1.f32.ue8m0", true},
    {"kind::mxf4.block_scale", 64, 2, 4, SIM_e2m1, SIM_e2m1, "f32.e2m1.e2m1.f32.ue8m0", true},
    {"kind::mxf8f6f4.block_scale.scale_vec::1X", 32, 1, 8, SIM_e4m3, SIM_e5m2, "f32.e4m3.e5m2.f32.ue8m0", true},
    {"kind::mxf8f6f4.block_scale", 32, 1, 8, SIM_e5m2, SIM_e4m3, "f32.e5m2.e4m3.f32.ue8m0", true},
};

static uint64_t state = 1;

static uint32_t random_below(uint32_t count) {
    return (uint32_t)(sim_random(&state) % count);
}

/* The bits of a number: any of e2m1, small integers of others. */
static uint32_t element_of(sim_format format) {
    return format == SIM_e2m1 ? random_below(16)
                              : sim_encode(format, (double)random_below(17) - 8, SIM_ROUND_NEAREST_EVEN, true);
}

/* A scale, and its number: 1/4 to 4, so that all sums are exact. */
static uint32_t scale_of(const form *f, double *number) {
    int power = (int)random_below(5) - 2;
    *number = ldexp(1, power);
    return f->power ? (uint32_t)(127 + power) : (uint32_t)(7 + power) << 3;
}

typedef struct matrices {
    double a[M][K_MOST], b[K_MOST][N], c[M][N];
} matrices;

/* Puts an element's bits into a lane's words. */
static void put(uint32_t *words, uint32_t element, uint32_t bits, uint32_t value) {
    words[element * bits / 32] |= value << element * bits % 32;
}

/* Fills the words of all lanes, those of A, B, C and of both scales, and says the numbers that they are. */
static void fill(const form *f, uint32_t byte_a, uint32_t thread_a, uint32_t byte_b, uint32_t thread_b,
                 uint32_t (*words)[WORDS_IN], matrices *x) {
    const uint32_t shape[3] = {M, N, f->k}, each = f->k / f->count;
    memset(words, 0, LANES * sizeof *words);
    for (uint32_t l = 0; l < LANES; l++) {
        for (uint32_t e = 0; e < matrix_elements(shape, MATRIX_A, f->bits, false); e++) {
            matrix_place p = matrix_place_of(shape, MATRIX_A, f->bits, false, l, e);
            uint32_t value = element_of(f->a);
            put(&words[l][0], e, f->bits, value);
            x->a[p.row][p.column] = sim_decode(f->a, value);
        }
        for (uint32_t e = 0; e < matrix_elements(shape, MATRIX_B, f->bits, true); e++) {
            matrix_place p = matrix_place_of(shape, MATRIX_B, f->bits, true, l, e);
            uint32_t value = element_of(f->b);
            put(&words[l][4], e, f->bits, value);
            x->b[p.row][p.column] = sim_decode(f->b, value);
        }
        for (uint32_t e = 0; e < 4; e++) {
            matrix_place p = matrix_place_of(shape, MATRIX_C, 32, false, l, e);
            x->c[p.row][p.column] = (double)random_below(100);
            put(&words[l][6], e, 32, sim_encode(SIM_f32, x->c[p.row][p.column], SIM_ROUND_NEAREST_EVEN, false));
        }
        words[l][10] = (uint32_t)sim_random(&state) & 0x7f7f7f7fu; /* where no scale is read */
        words[l][11] = (uint32_t)sim_random(&state) & 0x7f7f7f7fu;
    }
    /* SFALayout: threads (2, 2, 8) with strides (8, 0, 1) are rows; SFBLayout: threads (4, 8) with strides (0, 1) are
     * columns. The threads of stride 0 are those that {byte, thread} chooses from. */
    for (uint32_t l = 0; l < LANES; l++)
        for (uint32_t i = 0; i < f->count; i++) {
            double number;
            if (l % 4 / 2 == thread_a) {
                uint32_t shift = (byte_a + i) * 8, row = l % 2 * 8 + l / 4;
                words[l][10] = (words[l][10] & ~(0xffu << shift)) | scale_of(f, &number) << shift;
                for (uint32_t k = i * each; k < (i + 1) * each; k++)
                    x->a[row][k] *= number;
            }
            if (l % 4 == thread_b) {
                uint32_t shift = (byte_b + i) * 8;
                words[l][11] = (words[l][11] & ~(0xffu << shift)) | scale_of(f, &number) << shift;
                for (uint32_t k = i * each; k < (i + 1) * each; k++)
                    x->b[k][l / 4] *= number;
            }
        }
}

static void check(const form *f, uint32_t byte_a, uint32_t thread_a, uint32_t byte_b, uint32_t thread_b,
                  sim_sum_mode mode, const char *target) {
    const uint32_t shape[3] = {M, N, f->k};
    uint32_t words[LANES][WORDS_IN], results[LANES][4];
    matrices x;
    char code[512];
    sim_counters counters = {0};
    sim_report report;
    snprintf(
        code, sizeof code,
        "mma.sync.aligned.m16n8k%u.row.col.%s.%s {%%v0, %%v1, %%v2, %%v3}, {%%w0, %%w1, %%w2, %%w3}, {%%w4, %%w5}, "
        "{%%w6, %%w7, %%w8, %%w9}, %%w10, {%u, %u}, %%w11, {%u, %u};",
        f->k, f->written, f->types, byte_a, thread_a, byte_b, thread_b);
    const matrix_case test = {.target = target,
                              .version = "8.8",
                              .code = code,
                              .in = WORDS_IN,
                              .out = 4,
                              .blocks = 1,
                              .threads = LANES,
                              .seed = 1,
                              .mode = mode};
    fill(f, byte_a, thread_a, byte_b, thread_b, words, &x);
    if (!matrix_run(&test, words[0], results[0], &counters, &report)) fail_msg("%s: %s", code, report.text);
    assert_int_equal(counters.matrix_instructions, 1);
    for (uint32_t l = 0; l < LANES; l++)
        for (uint32_t e = 0; e < 4; e++) {
            matrix_place p = matrix_place_of(shape, MATRIX_C, 32, false, l, e);
            double sum = x.c[p.row][p.column];
            for (uint32_t k = 0; k < f->k; k++)
                sum += x.a[p.row][k] * x.b[k][p.column];
            double found = sim_decode(SIM_f32, results[l][e]);
            if (found != sum) fail_msg("%s: row %u, column %u is %g, must be %g", code, p.row, p.column, found, sum);
        }
}

static void scales_are_taken_from_where_they_are_said_to_be(void **unused) {
    (void)unused;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        for (uint32_t byte_a = 0; byte_a < 4; byte_a += forms[i].count)
            for (uint32_t byte_b = 0; byte_b < 4; byte_b += forms[i].count)
                for (uint32_t thread = 0; thread < 8; thread++)
                    check(&forms[i], byte_a, thread % 2, byte_b, thread / 2, SIM_SUM_EXACT, "sm_120a");
}

static void sums_that_are_exact_are_so_in_every_way_of_adding(void **unused) {
    (void)unused;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        for (int mode = 0; mode < SIM_SUM_MODES; mode++)
            check(&forms[i], 0, 0, 0, 0, (sim_sum_mode)mode, "sm_120f");
}

static void a_scale_with_a_sign_is_found(void **unused) {
    (void)unused;
    uint32_t words[LANES][WORDS_IN], results[LANES][4];
    matrices x;
    sim_counters counters = {0};
    sim_report report;
    const matrix_case test = {
        .target = "sm_120f",
        .version = "8.8",
        .code = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3 "
                "{%v0, %v1, %v2, %v3}, {%w0, %w1, %w2, %w3}, {%w4, %w5}, {%w6, %w7, %w8, %w9}, %w10, {0, 0}, %w11, "
                "{0, 0};",
        .in = WORDS_IN,
        .out = 4,
        .blocks = 1,
        .threads = LANES};
    fill(&forms[0], 0, 0, 0, 0, words, &x);
    words[5][10] |= 0x8000; /* of row 9 */
    assert_false(matrix_run(&test, words[0], results[0], &counters, &report));
    assert_non_null(strstr(report.text, "ue4m3"));
}

static void what_the_assembler_refuses_is_refused(void **unused) {
    (void)unused;
#define SCALED(shape, kind, types, selectors)                                                                        \
    "mma.sync.aligned." shape ".row.col." kind "." types " {%v0, %v1, %v2, %v3}, {%w0, %w1, %w2, %w3}, {%w4, %w5}, " \
    "{%w6, %w7, %w8, %w9}, " selectors ";"
#define FOURS "f32.e2m1.e2m1.f32.ue4m3"
#define NVFP4 "kind::mxf4nvf4.block_scale.scale_vec::4X"
#define ZEROS "%w10, {0, 0}, %w11, {0, 0}"
    static const struct {
        const char *target, *version, *code, *word;
    } refused[] = {
        {"sm_120a", "8.6", SCALED("m16n8k64", NVFP4, FOURS, ZEROS), "PTX 8.7"},
        {"sm_120", "8.8", SCALED("m16n8k64", NVFP4, FOURS, ZEROS), "sm_120a"},
        {"sm_100a", "8.8", SCALED("m16n8k64", NVFP4, FOURS, ZEROS), "sm_120"},
        {"sm_120a", "9.0", SCALED("m16n8k64", NVFP4, FOURS, "%w10, {1, 0}, %w11, {0, 0}"), "first byte"},
        {"sm_120a", "9.0", SCALED("m16n8k64", NVFP4, FOURS, "%w10, {0, 2}, %w11, {0, 0}"), "thread"},
        {"sm_120a", "9.0", SCALED("m16n8k64", NVFP4, FOURS, "%w10, {0, 0}, %w11, {0, 4}"), "thread"},
        {"sm_120a", "9.0", SCALED("m16n8k64", NVFP4, FOURS, "%w10, %w11"), "8 operands"},
        {"sm_120a", "9.0", SCALED("m16n8k64", "kind::mxf4nvf4.block_scale", FOURS, ZEROS), ".scale_vec"},
        {"sm_120a", "9.0", SCALED("m16n8k64", "kind::mxf4nvf4.scale_vec::4X", FOURS, ZEROS), "types"},
        {"sm_120a", "9.0", SCALED("m16n8k64", "block_scale.scale_vec::4X", FOURS, ZEROS), "kind"},
        {"sm_120a", "9.0", SCALED("m16n8k64", "kind::mxf4nvf4.block_scale.scale_vec::2X", FOURS, ZEROS), "form"},
        {"sm_120a", "9.0", SCALED("m16n8k64", "kind::mxf4.block_scale.scale_vec::4X", FOURS, ZEROS), "form"},
        {"sm_120a", "9.0", SCALED("m16n8k64", NVFP4, "f32.e2m1.e2m1.f32.ue8m0", ZEROS), "form"},
        {"sm_120a", "9.0", SCALED("m16n8k32", NVFP4, FOURS, ZEROS), "form"},
        {"sm_120a", "9.0", SCALED("m16n8k64", NVFP4, "f16.e2m1.e2m1.f16.ue4m3", ZEROS), "form"},
        {"sm_120a", "9.0",
         SCALED("m16n8k64", "kind::mxf4.block_scale", "f32.e2m1.e2m1.f32.ue8m0", "%w10, {1, 0}, %w11, {0, 0}"),
         "first byte"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        const char *why = matrix_refusal(refused[i].target, refused[i].version, refused[i].code);
        if (!strstr(why, refused[i].word)) fail_msg("%s: \"%s\"", refused[i].code, why);
    }
    const char *why = matrix_refusal("sm_120f", "8.8", SCALED("m16n8k64", NVFP4, FOURS, "%w10, {0, 1}, %w11, {0, 3}"));
    assert_string_equal(why, "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scales_are_taken_from_where_they_are_said_to_be),
        cmocka_unit_test(sums_that_are_exact_are_so_in_every_way_of_adding),
        cmocka_unit_test(a_scale_with_a_sign_is_found),
        cmocka_unit_test(what_the_assembler_refuses_is_refused),
    };
    return cmocka_run_group_tests_name("ptx_matrix_scaled", tests, NULL, NULL);
}
