/* mma and the layouts of its fragments: the simulator's table against the tests' own, one-hot matrices through every
 * form, and which targets and PTX versions take it. */
#include "tests/sim/ptx/matrix/ptx_matrix.h"
#include "tests/sim/ptx/parse/ptx_arena.h"
#include "tests/sim/tests/ptx/ptx_mma_harness.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct {
    uint32_t shape[3];
    uint32_t bits[3]; /* of A, B and C */
} layouts[] = {
    {{8, 8, 4}, {16, 16, 16}},  {{8, 8, 4}, {16, 16, 32}},   {{8, 8, 4}, {64, 64, 64}},  {{8, 8, 16}, {8, 8, 32}},
    {{8, 8, 32}, {4, 4, 32}},   {{8, 8, 128}, {1, 1, 32}},   {{16, 8, 4}, {32, 32, 32}}, {{16, 8, 4}, {64, 64, 64}},
    {{16, 8, 8}, {16, 16, 16}}, {{16, 8, 8}, {32, 32, 32}},  {{16, 8, 8}, {64, 64, 64}}, {{16, 8, 16}, {16, 16, 16}},
    {{16, 8, 16}, {8, 8, 32}},  {{16, 8, 16}, {64, 64, 64}}, {{16, 8, 32}, {8, 8, 16}},  {{16, 8, 32}, {4, 4, 32}},
    {{16, 8, 64}, {4, 4, 32}},  {{16, 8, 128}, {1, 1, 32}},  {{16, 8, 256}, {1, 1, 32}},
};

static void compare_layout(const uint32_t shape[3], matrix_letter letter, uint32_t bits, bool column) {
    static const ptx_matrix_name names[] = {PTX_MATRIX_A, PTX_MATRIX_B, PTX_MATRIX_C, PTX_MATRIX_X};
    ptx_arena *arena = ptx_arena_new();
    ptx_layout layout;
    assert_true(ptx_layout_find(arena, shape, names[letter], bits, column, &layout));
    assert_int_equal(layout.elements, matrix_elements(shape, letter, bits, column));
    for (uint32_t i = 0; i < 32 * layout.elements; i++) {
        matrix_place p = matrix_place_of(shape, letter, bits, column, i / layout.elements, i % layout.elements);
        uint32_t line = letter == MATRIX_B ? p.column : p.row, at = letter == MATRIX_B ? p.row : p.column;
        uint32_t wanted = (p.matrix * layout.lines + line) * layout.length + at;
        if (layout.index[i] != wanted)
            fail_msg("m%un%uk%u, matrix %c of %u bits, lane %u, element %u: %u, must be %u", shape[0], shape[1],
                     shape[2], "ABCX"[letter], bits, i / layout.elements, i % layout.elements, layout.index[i], wanted);
    }
    ptx_arena_free(arena);
}

static void layouts_agree_with_those_of_another_source(void **state) {
    (void)state;
    static const uint32_t square[3] = {8, 8, 8};
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        for (int letter = MATRIX_A; letter <= MATRIX_C; letter++)
            for (int column = 0; column < 2; column++)
                compare_layout(layouts[i].shape, (matrix_letter)letter, layouts[i].bits[letter], column);
    compare_layout(square, MATRIX_X, 16, false);
}

/* ---- One-hot matrices ---- */

enum { AT_ONCE = 256 };

/* A number of the type, another for each index as far as it has so many; exact in f16 and f32. */
static uint64_t number_bits(const mma_type *type, uint32_t index) {
    double value = index % 256 + 1;
    uint64_t bits;
    switch (type->kind) {
    case MMA_DOUBLE:
        memcpy(&bits, &value, sizeof bits);
        return bits;
    case MMA_FLOAT:
        if (type->bits == 8)
            return index % 0x7b + (index / 0x7b % 2 ? 0x80 : 0); /* 0x7b is the first e5m2 that is not */
        return (uint64_t)sim_encode(type->format, value, SIM_ROUND_ZERO, false) << (type->format == SIM_tf32 ? 13 : 0);
    default:
        return (index * 7 + index / 16) & ((1ull << type->bits) - 1);
    }
}

static uint64_t one_bits(const mma_type *type) {
    double one = 1;
    uint64_t bits;
    memcpy(&bits, &one, sizeof bits);
    if (type->kind == MMA_DOUBLE) return bits;
    if (type->kind != MMA_FLOAT) return 1;
    return (uint64_t)sim_encode(type->format, 1, SIM_ROUND_ZERO, false) << (type->format == SIM_tf32 ? 13 : 0);
}

static uint64_t result_bits(const mma_type *type, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (type->kind == MMA_DOUBLE) return bits;
    return type->kind == MMA_FLOAT ? sim_encode(type->format, value, SIM_ROUND_ZERO, false) : (uint32_t)(int32_t)value;
}

/* What element i of the result must be: at most one product is not 0, or all are small integers. */
static uint64_t product_bits(const mma_form *f, const mma_operands *x, uint32_t i) {
    uint32_t matrix = i / (f->m * f->n), row = i / f->n, column = i % f->n;
    double sum = 0;
    for (uint32_t l = 0; l < f->k; l++) {
        uint64_t a = x->a[row * f->k + l], b = x->b[(matrix * f->k + l) * f->n + column];
        if (!a && !f->exclusive) continue;
        if (f->a->kind == MMA_BIT)
            sum += (double)(f->exclusive ? a ^ b : a & b);
        else
            sum += mma_number(f->a, a) * mma_number(f->b, b);
    }
    return result_bits(f->d, sum);
}

/* One element of A (or B) is 1, all others 0, each in turn. */
static void check_one_hot(const mma_form *f, bool in_b) {
    static mma_operands x[AT_ONCE];
    static uint64_t d[AT_ONCE][MMA_RESULTS];
    const mma_type *hot = in_b ? f->b : f->a, *other = in_b ? f->a : f->b;
    uint32_t sizes[2] = {f->matrices * f->m * f->k, f->matrices * f->k * f->n};
    for (uint32_t first = 0; first < sizes[in_b]; first += AT_ONCE) {
        uint32_t count = sizes[in_b] - first < AT_ONCE ? sizes[in_b] - first : AT_ONCE;
        memset(x, 0, sizeof x);
        for (uint32_t t = 0; t < count; t++) {
            (in_b ? x[t].b : x[t].a)[first + t] = one_bits(hot);
            for (uint32_t i = 0; i < sizes[!in_b]; i++)
                (in_b ? x[t].a : x[t].b)[i] = number_bits(other, i);
        }
        mma_run(f, NULL, "", SIM_SUM_EXACT, x, d, count);
        for (uint32_t t = 0; t < count; t++)
            for (uint32_t i = 0; i < f->matrices * f->m * f->n; i++)
                if (d[t][i] != product_bits(f, &x[t], i))
                    fail_msg("%s, element %u of %c is 1: element %u is 0x%llx, must be 0x%llx", f->name, first + t,
                             in_b ? 'B' : 'A', i, (unsigned long long)d[t][i],
                             (unsigned long long)product_bits(f, &x[t], i));
    }
}

static void check_form(const mma_form *f) {
    check_one_hot(f, false);
    check_one_hot(f, true);
}

static void one_hot_matrices_pick_elements(void **state) {
    (void)state;
    mma_each_form(check_form);
}

/* ---- Targets ---- */

static void check_target(const mma_form *f) {
    static const uint32_t targets[] = {75, 80, 86, 87, 89, 90, 100, 103, 120};
    static const uint32_t versions[] = {63, 64, 65, 70, 71, 78, 84, 87, 90};
    char code[4096], target[16], version[16], word[32];
    matrix_case test;
    mma_write_code(f, "", code, sizeof code, &test);
    snprintf(word, sizeof word, "needs sm_%u", f->target);
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        snprintf(target, sizeof target, "sm_%u", targets[i]);
        const char *why = matrix_refusal(target, "9.0", code);
        if (targets[i] < f->target ? !strstr(why, word) : *why != 0) fail_msg("%s for %s: %s", code, target, why);
    }
    snprintf(target, sizeof target, "sm_%u", f->target);
    snprintf(word, sizeof word, "needs PTX %u.%u", f->version / 10, f->version % 10);
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        snprintf(version, sizeof version, "%u.%u", versions[i] / 10, versions[i] % 10);
        const char *why = matrix_refusal(target, version, code);
        if (versions[i] < f->version ? !strstr(why, word) : *why != 0) fail_msg("%s in %s: %s", code, version, why);
    }
}

static void targets_and_versions_are_those_of_the_assembler(void **state) {
    (void)state;
    mma_each_form(check_target);
}

static void what_is_no_form_is_refused_by_name(void **state) {
    (void)state;
#define FOUR(letter) "{%" letter "0, %" letter "1, %" letter "2, %" letter "3}"
#define TWO(letter)  "{%" letter "0, %" letter "1}"
#define F16(text)    "mma.sync.aligned." text " " FOUR("v") ", " FOUR("w") ", " TWO("w") ", " FOUR("w") ";"
    static const struct {
        const char *code, *word;
    } refused[] = {
        {"mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 " FOUR("v") ", " TWO("w") ", " TWO("w") ", " FOUR(
             "w") ", %w0, 0;",
         ".sp"},
        {"mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 " FOUR("v") ", " TWO("w") ", " TWO(
             "w") ", " FOUR("w") ", %w0, 0;",
         ".sp::ordered_metadata"},
        {F16("m16n8k32.row.col.kind::f8f6f4.f32.e4m3.e4m3.f32"), ".kind::f8f6f4"},
        {F16("m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0"), "sm_120a"},
        {F16("m16n8k32.row.col.f32.e3m2.e2m3.f32"), ".e3m2"},
        {F16("m16n8k24.row.col.f32.f16.f16.f32"), ".m16n8k24"},
        {F16("m16n16k16.row.col.f32.f16.f16.f32"), "shape"},
        {F16("m16n8k16.col.col.f32.f16.f16.f32"), "no such form"},
        {F16("m16n8k16.row.row.f32.f16.f16.f32"), "no such form"},
        {F16("m16n8k16.row.f32.f16.f16.f32"), "layouts"},
        {F16("m16n8k16.f32.f16.f16.f32"), "layouts"},
        {F16("m16n8k16.row.col.f32.f16.bf16.f32"), "no such form"},
        {F16("m16n8k16.row.col.f32.f16.f16.f16"), "no such form"},
        {F16("m16n8k16.row.col.f16.f16.f16.f32"), "no such form"},
        {F16("m16n8k16.row.col.f16.bf16.bf16.f16"), "no such form"},
        {F16("m16n8k16.row.col.f32.tf32.tf32.f32"), "no such form"},
        {F16("m16n8k16.row.col.f32.f16.f16"), "types"},
        {F16("m16n8k16.row.col.satfinite.f32.f16.f16.f32"), ".satfinite"},
        {F16("m16n8k16.row.col.rz.f32.f16.f16.f32"), ".rz"},
        {F16("m16n8k32.row.col.s32.s8.s4.s32"), "no such form"},
        {F16("m16n8k256.row.col.s32.b1.b1.s32"), "no such form"},
        {F16("m16n8k256.row.col.s32.b1.b1.s32.xor"), ".popc"},
        {F16("m16n8k256.row.col.s32.b1.b1.s32.or.popc"), "no such form"},
        {F16("m16n8k32.row.col.s32.s8.s8.s32.xor.popc"), "no such form"},
        {"mma.sync.m16n8k16.row.col.f32.f16.f16.f32 " FOUR("v") ", " FOUR("w") ", " TWO("w") ", " FOUR("w") ";",
         ".sync.aligned"},
        {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 " FOUR("v") ", " TWO("w") ", " TWO("w") ", " FOUR("w") ";",
         "2 registers where it has 4"},
        {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 " FOUR("v") ", " FOUR("w") ", %w0, " FOUR("w") ";",
         "vectors"},
        {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 " FOUR("v") ", " FOUR("w") ", " TWO("x") ", " FOUR("w") ";",
         "64 bits"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        const char *why = matrix_refusal("sm_120", "9.0", refused[i].code);
        if (!strstr(why, refused[i].word) || !strstr(why, "line ")) fail_msg("%s: \"%s\"", refused[i].code, why);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layouts_agree_with_those_of_another_source),
        cmocka_unit_test(one_hot_matrices_pick_elements),
        cmocka_unit_test(targets_and_versions_are_those_of_the_assembler),
        cmocka_unit_test(what_is_no_form_is_refused_by_name),
    };
    return cmocka_run_group_tests_name("ptx_matrix", tests, NULL, NULL);
}
