/* Dot products that each lane makes of its own registers, on every target that has them, against exact sums. */
#include "tests/sim/amdgcn/matrix/amd_dot.h"
#include "tests/sim/tests/amdgcn/amdgcn_assembler.h"
#include "tests/sim/tests/amdgcn/amdgcn_harness.h"
#include "tests/sim/tests/amdgcn/amdgcn_numbers.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint64_t random_state;
static amdgcn_registers before, registers;

static const char *const processors[] = {"gfx906", "gfx90a", "gfx942", "gfx1010", "gfx1030", "gfx1100", "gfx1201"};
enum { PROCESSORS = sizeof processors / sizeof *processors };

/* One run: D is v0, A v1, B v2, C v3. */
typedef struct run {
    const amd_dot *dot;
    const char *processor, *modifiers;
    sim_sum_mode sums;
    uint32_t mode;
    char text[128];
} run;

static bool is_wide(const char *processor) {
    return processor[3] == '9';
}

/* Assembles it; NULL if the processor does not have it. */
static amd_program *run_load(run *r) {
    const char *c = r->dot->adds ? "" : ", v3";
    snprintf(r->text, sizeof r->text, "%s v0, v1, v2%s%s%s", r->dot->mnemonic, c, r->modifiers ? " " : "",
             r->modifiers ? r->modifiers : "");
    char why[512];
    size_t size;
    uint8_t *code = amdgcn_assemble(r->processor, is_wide(r->processor), r->text, &size, why, sizeof why);
    if (!code) return NULL;
    free(code);
    return amdgcn_load(r->processor, is_wide(r->processor), r->text);
}

/* Numbers near to each other: sums that cancel and round. */
static uint32_t random_word(amd_matrix_type type) {
    uint32_t word = (uint32_t)sim_random(&random_state);
    if (type == AMD_MATRIX_f32) return (word & 0x80ffffff) | (uint32_t)(0x38 + word % 16) << 24;
    if (type == AMD_MATRIX_f16) return (word & 0x8fff8fff) | 0x30003000;
    if (type == AMD_MATRIX_bf16) return (word & 0x83ff83ff) | 0x3c003c00;
    return word;
}

static void run_program(const run *r, const amd_program *program) {
    const amdgcn_setting setting = {.sums = r->sums};
    amdgcn_registers_fill(&before, program, &random_state);
    before.mode = r->mode;
    for (uint32_t l = 0; l < AMD_LANES; l++) {
        if (l % 4 == 3) continue; /* any bits at all */
        before.v[1][l] = random_word((amd_matrix_type)r->dot->a);
        before.v[2][l] = random_word((amd_matrix_type)r->dot->b);
        before.v[3][l] = before.v[0][l] = random_word((amd_matrix_type)r->dot->d);
    }
    registers = before;
    amdgcn_run(program, &setting, &registers);
}

/* ---- What must come of it ---- */

/* Changes that modifiers make. */
typedef struct change {
    bool a_signed, b_signed, clamp;
} change;

static double input(const run *r, amd_matrix_type type, uint32_t bits) {
    double value = amdgcn_decode(type, bits);
    bool dot2_f16 = r->dot->a == AMD_MATRIX_f16, half = type == AMD_MATRIX_f16;
    bool kept = half ? r->mode >> 6 & 1 : r->mode >> 4 & 1;
    if (half && !strcmp(r->processor, "gfx90a")) kept = false;
    if (type == AMD_MATRIX_f32 && dot2_f16) kept = false;
    if (amd_matrix_types[type].bits == 8) kept = true;
    return !kept && fabs(value) < (half ? 0x1p-14 : 0x1p-126) ? copysign(0, value) : value;
}

static uint32_t part(uint32_t word, uint32_t i, uint32_t bits) {
    return word >> i * bits & (uint32_t)((1ull << bits) - 1);
}

static uint32_t expected_whole(const run *r, const change *c, uint32_t a, uint32_t b, uint32_t addend) {
    uint32_t bits = amd_matrix_types[r->dot->a].bits;
    int64_t sum = amdgcn_integer((amd_matrix_type)r->dot->d, false, addend);
    for (uint32_t i = 0; i < 32 / bits; i++)
        sum += amdgcn_integer((amd_matrix_type)r->dot->a, c->a_signed, part(a, i, bits)) *
               amdgcn_integer((amd_matrix_type)r->dot->b, c->b_signed, part(b, i, bits));
    bool is_signed = r->dot->d == AMD_MATRIX_i32;
    if (c->clamp && is_signed) sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
    if (c->clamp && !is_signed) sum = sum > UINT32_MAX ? UINT32_MAX : sum;
    return (uint32_t)sum;
}

/* False if it is no finite number; *out_size is what the magnitudes add up to. */
static bool expected_real(const run *r, uint32_t a, uint32_t b, uint32_t addend, uint32_t *out, double *out_size) {
    const amd_dot *dot = r->dot;
    uint32_t bits = amd_matrix_types[dot->a].bits;
    exact sum = {0};
    double c = input(r, (amd_matrix_type)dot->d, addend);
    if (!isfinite(c)) return false;
    exact_add_product(&sum, c, 1);
    *out_size = fabs(c);
    for (uint32_t i = 0; i < 32 / bits; i++) {
        double x = input(r, (amd_matrix_type)dot->a, part(a, i, bits));
        double y = input(r, (amd_matrix_type)dot->b, part(b, i, bits));
        if (!isfinite(x) || !isfinite(y)) return false;
        exact_add_product(&sum, x, y);
        *out_size += fabs(x * y);
    }
    *out = (uint32_t)amdgcn_round((amd_matrix_type)dot->d, &sum);
    double value = amdgcn_decode((amd_matrix_type)dot->d, *out);
    bool half = dot->d == AMD_MATRIX_f16, kept = half ? r->mode >> 7 & 1 : r->mode >> 5 & 1;
    if (dot->a == AMD_MATRIX_f16 && (!half || !strcmp(r->processor, "gfx90a"))) kept = false;
    if (!kept && fabs(value) < (half ? 0x1p-14 : 0x1p-126)) *out = 0;
    return isfinite(value);
}

static void check_lane(const run *r, uint32_t lane, uint32_t a, uint32_t b, uint32_t c) {
    amd_matrix_type type = (amd_matrix_type)r->dot->d;
    uint32_t mask = amd_matrix_types[type].bits == 16 ? 0xffff : 0xffffffff, expected = 0;
    uint32_t got = registers.v[0][lane] & mask;
    double size;
    if (amdgcn_is_integer(type)) {
        const change plain = {0};
        expected = expected_whole(r, &plain, a, b, c);
        if (got != expected) fail_msg("%s on %s: 0x%x, expected 0x%x", r->text, r->processor, got, expected);
        return;
    }
    if (!expected_real(r, a, b, c & mask, &expected, &size)) return;
    double value = amdgcn_decode(type, got), wanted = amdgcn_decode(type, expected);
    double last = type == AMD_MATRIX_f32 ? 0x1p-22 : type == AMD_MATRIX_f16 ? 0x1p-9 : 0x1p-6;
    bool same = got == expected || (value == 0 && wanted == 0);
    bool near_by = r->sums != SIM_SUM_EXACT && (fabs(value - wanted) <= 8 * last * size + 0x1p-23 || size > 0x1p127 ||
                                                (mask == 0xffff && size > 60000));
    if (!same && !near_by)
        fail_msg("%s on %s, way %d: 0x%x . 0x%x + 0x%x is 0x%x, expected 0x%x", r->text, r->processor, (int)r->sums, a,
                 b, c, got, expected);
}

static void test_all(void **state) {
    (void)state;
    uint32_t seen[AMD_DOT_ROWS] = {0};
    for (int p = 0; p < PROCESSORS; p++) {
        for (uint32_t i = 0; i < AMD_DOT_ROWS; i++) {
            run r = {.dot = &amd_dots[i], .processor = processors[p]};
            amd_program *program = run_load(&r);
            if (!program) continue;
            bool alias = &amd_dots[program->ops[0].mode] != r.dot; /* of another target's name */
            for (int n = 0; n < 12 && !alias; n++) {
                r.sums = (sim_sum_mode)(n % SIM_SUM_MODES);
                r.mode = n < 9 ? AMDGCN_MODE : n == 9 ? 0x300 : n == 10 ? 0x350 : 0x3a0;
                run_program(&r, program);
                seen[i]++;
                for (uint32_t l = 0; l < (is_wide(r.processor) ? 64u : 32u); l++)
                    check_lane(&r, l, before.v[1][l], before.v[2][l], r.dot->adds ? before.v[0][l] : before.v[3][l]);
            }
            amd_program_free(program);
        }
    }
    for (uint32_t i = 0; i < AMD_DOT_ROWS; i++)
        if (!seen[i]) fail_msg("%s: no target has it", amd_dots[i].mnemonic);
}

/* ---- Modifiers ---- */

static const amd_dot *row(const char *mnemonic) {
    uint32_t i = 0;
    while (strcmp(amd_dots[i].mnemonic, mnemonic) != 0)
        i++;
    return &amd_dots[i];
}

/* Runs with modifiers; the caller looks at the registers. */
static run with(const char *mnemonic, const char *processor, const char *modifiers) {
    run r = {.dot = row(mnemonic), .processor = processor, .modifiers = modifiers, .mode = AMDGCN_MODE};
    amd_program *program = run_load(&r);
    if (!program) fail_msg("%s: not assembled", r.text);
    run_program(&r, program);
    amd_program_free(program);
    return r;
}

static void test_saturation_and_signs(void **state) {
    (void)state;
    static const struct {
        const char *mnemonic, *processor, *modifiers;
        change change;
    } cases[] = {
        {"v_dot4_i32_i8", "gfx906", "clamp", {.clamp = true}},
        {"v_dot4_u32_u8", "gfx1201", "clamp", {.clamp = true}},
        {"v_dot8_i32_i4", "gfx1030", "clamp", {.clamp = true}},
        {"v_dot2_u32_u16", "gfx90a", "clamp", {.clamp = true}},
        {"v_dot2_i32_i16", "gfx942", "clamp", {.clamp = true}},
        {"v_dot4_i32_iu8", "gfx1100", "neg_lo:[1,0,0]", {.a_signed = true}},
        {"v_dot4_i32_iu8", "gfx1201", "neg_lo:[0,1,0] clamp", {.b_signed = true, .clamp = true}},
        {"v_dot8_i32_iu4", "gfx1100", "neg_lo:[1,1,0] clamp", {true, true, true}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t saturated = 0;
        for (int n = 0; n < 50; n++) {
            run r = with(cases[i].mnemonic, cases[i].processor, cases[i].modifiers);
            for (uint32_t l = 0; l < 32; l++) {
                uint32_t a = before.v[1][l], b = before.v[2][l], c = before.v[3][l];
                uint32_t expected = expected_whole(&r, &cases[i].change, a, b, c), got = registers.v[0][l];
                change open = cases[i].change;
                open.clamp = false;
                saturated += expected != expected_whole(&r, &open, a, b, c);
                if (got != expected) fail_msg("%s: 0x%x, expected 0x%x", r.text, got, expected);
            }
        }
        /* C is drawn from all numbers: of 16 bits, products are large enough. */
        if (cases[i].change.clamp && strstr(cases[i].mnemonic, "dot2")) assert_true(saturated > 0);
    }
    /* The ends themselves. */
    amd_program *program = amdgcn_load("gfx942", true, "v_dot4_i32_i8 v0, v1, v2, v3 clamp");
    amdgcn_registers_fill(&registers, program, &random_state);
    registers.v[1][0] = registers.v[2][0] = registers.v[1][1] = 0x7f7f7f7f, registers.v[2][1] = 0x80808080;
    registers.v[3][0] = 0x7fffff00, registers.v[3][1] = 0x80000010;
    amdgcn_run(program, NULL, &registers);
    assert_int_equal(registers.v[0][0], 0x7fffffff);
    assert_int_equal(registers.v[0][1], 0x80000000);
    amd_program_free(program);
}

/* Halves that op_sel and op_sel_hi choose, and their signs: neg_lo of the first product's, neg_hi of the second's; of C
 * neg_hi is the absolute value. */
static void test_halves_and_signs(void **state) {
    (void)state;
    static const char *const mnemonics[] = {"v_dot2_f32_f16", "v_dot2_f32_bf16"};
    for (int n = 0; n < 2; n++) {
        run r = with(mnemonics[n], "gfx1100", "op_sel:[1,0,0] op_sel_hi:[0,1,1] neg_lo:[1,0,0] neg_hi:[0,1,0]");
        for (uint32_t l = 0; l < 32; l++) {
            uint32_t a = before.v[1][l];
            check_lane(&r, l, (a >> 16 ^ 0x8000) | a << 16, before.v[2][l] ^ 0x80000000, before.v[3][l]);
        }
        r = with(mnemonics[n], "gfx1201", "neg_lo:[0,1,1] neg_hi:[1,0,1]");
        for (uint32_t l = 0; l < 32; l++)
            check_lane(&r, l, before.v[1][l] ^ 0x80000000, before.v[2][l] ^ 0x8000, before.v[3][l] | 0x80000000);
    }
    run r = with("v_dot2_i32_i16", "gfx1030", "op_sel:[0,1,0] op_sel_hi:[1,0,1]");
    for (uint32_t l = 0; l < 32; l++)
        check_lane(&r, l, before.v[1][l], before.v[2][l] >> 16 | before.v[2][l] << 16, before.v[3][l]);
    r = with("v_dot4_f32_fp8_bf8", "gfx1201", "neg_lo:[0,0,1] neg_hi:[0,0,1]");
    for (uint32_t l = 0; l < 32; l++)
        check_lane(&r, l, before.v[1][l], before.v[2][l], before.v[3][l] | 0x80000000);
    /* op_sel of C and D of a 16-bit result; the other half stays. */
    r = with("v_dot2_f16_f16", "gfx1100", "op_sel:[0,0,1,0]");
    for (uint32_t l = 0; l < 32; l++) {
        assert_int_equal(registers.v[0][l] >> 16, before.v[0][l] >> 16);
        check_lane(&r, l, before.v[1][l], before.v[2][l], before.v[3][l] >> 16);
    }
    r = with("v_dot2_bf16_bf16", "gfx1201", "op_sel:[0,0,0,1]");
    for (uint32_t l = 0; l < 32; l++) {
        assert_int_equal(registers.v[0][l] & 0xffff, before.v[0][l] & 0xffff);
        registers.v[0][l] >>= 16;
        check_lane(&r, l, before.v[1][l], before.v[2][l], before.v[3][l]);
    }
    /* The clamp of floating point is to [0, 1]. */
    r = with("v_dot2_f32_f16", "gfx942", "clamp");
    for (uint32_t l = 0; l < 64; l++) {
        double size, value;
        uint32_t bits;
        if (!expected_real(&r, before.v[1][l], before.v[2][l], before.v[3][l], &bits, &size)) continue;
        value = amdgcn_decode(AMD_MATRIX_f32, bits);
        if (value <= 0) bits = 0;
        if (value > 1) bits = 0x3f800000;
        assert_int_equal(registers.v[0][l], bits);
    }
}

static void test_forms(void **state) {
    (void)state;
    /* DPP of A, and the half of a dual instruction. */
    run r = with("v_dot2c_f32_f16", "gfx90a", "quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf");
    for (uint32_t l = 0; l < 64; l++)
        check_lane(&r, l, before.v[1][l ^ 1], before.v[2][l], before.v[0][l]);
    r = (run){.dot = row("v_dot2acc_f32_f16"), .processor = "gfx1100", .mode = AMDGCN_MODE};
    amd_program *program = amdgcn_load("gfx1100", false, "v_dual_dot2acc_f32_f16 v0, v1, v2 :: v_dual_mov_b32 v5, v0");
    run_program(&r, program);
    for (uint32_t l = 0; l < 32; l++) {
        check_lane(&r, l, before.v[1][l], before.v[2][l], before.v[0][l]);
        assert_int_equal(registers.v[5][l], before.v[0][l]);
    }
    amd_program_free(program);
}

static void test_special_values(void **state) {
    (void)state;
    static const struct {
        uint32_t a, b, c, d;
    } cases[] = {{0x7c003c00, 0x3c003c00, 0, 0x7f800000},          {0x7c003c00, 0xbc003c00, 0, 0xff800000},
                 {0x7c007c00, 0xbc003c00, 0, 0x7fc00000},          {0x7c003c00, 0x00003c00, 0, 0x7fc00000},
                 {0x3c003c00, 0x3c003c00, 0x7fa00001, 0x7fc00000}, {0x3c003c00, 0x3c003c00, 0xff800000, 0xff800000},
                 {0x3c003c00, 0xbc003c00, 0x00000001, 0},          {0x7bff7bff, 0x7bff7bff, 0x7f7fffff, 0x7f7fffff},
                 {0x00010000, 0x3c000000, 0, 0x33800000}};
    enum { CASES = sizeof cases / sizeof *cases };
    amd_program *program = amdgcn_load("gfx942", true, "v_dot2_f32_f16 v0, v1, v2, v3");
    amdgcn_registers_fill(&registers, program, &random_state);
    for (uint32_t i = 0; i < CASES; i++)
        registers.v[1][i] = cases[i].a, registers.v[2][i] = cases[i].b, registers.v[3][i] = cases[i].c;
    amdgcn_run(program, NULL, &registers);
    for (uint32_t i = 0; i < CASES; i++)
        assert_int_equal(registers.v[0][i], cases[i].d);
    amd_program_free(program);
}

static void test_refusals(void **state) {
    (void)state;
    static const struct {
        const char *processor, *text, *says;
    } bad[] = {{"gfx906", "v_dot4_i32_i8 v0, v1, v2, v3 op_sel:[0,1,0]", "op_sel"},
               {"gfx1100", "v_dot2_f16_f16 v0, -v1, v2, v3", "a sign"},
               {"gfx942", "v_dot2_f32_f16 v0, 1.0, v2, v3", "a constant of halves"},
               {"gfx1100", "v_dot2_bf16_bf16 v0, v1, v2, 1.0", "a constant of halves"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *why = amdgcn_refusal(bad[i].processor, is_wide(bad[i].processor), bad[i].text);
        if (!strstr(why, bad[i].says)) fail_msg("%s: refused with \"%s\"", bad[i].text, why);
    }
}

int main(void) {
    const char *text = getenv("KILN_TEST_SEED");
    random_state = text ? strtoull(text, NULL, 0) : 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all),
        cmocka_unit_test(test_saturation_and_signs),
        cmocka_unit_test(test_halves_and_signs),
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_special_values),
        cmocka_unit_test(test_refusals),
    };
    if (!amdgcn_harness_ready()) return 0;
    print_message("# seed %llu (KILN_TEST_SEED sets it)\n", (unsigned long long)random_state);
    return cmocka_run_group_tests_name("amdgcn_dot", tests, NULL, NULL);
}
