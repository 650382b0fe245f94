/* The forms of AMD's matrix instructions: modifiers, kinds of operands, what is refused and what is a fault. */
#include "tests/sim/amdgcn/wave/amd_launch.h"
#include "tests/sim/tests/amdgcn/amdgcn_assembler.h"
#include "tests/sim/tests/amdgcn/amdgcn_harness.h"
#include "tests/sim/tests/amdgcn/amdgcn_numbers.h"
#include "tests/sim/tests/amdgcn/amdgcn_problem.h"
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- Modifiers ---- */

/* Runs a problem with modifiers, which change what it is about as change says, and compares with the changed problem
 * without them. */
static void with_modifiers(const shape *s, const char *modifiers, void (*change)(problem *p, uint32_t n), uint32_t n) {
    static problem p, q;
    memset(&p, 0, sizeof p);
    p.s = *s;
    p.modifiers = modifiers;
    amd_program *program = problem_load(&p);
    problem_draw(&p);
    problem_run(&p, program);
    amd_program_free(program);
    q = p;
    q.modifiers = NULL;
    change(&q, n);
    program = problem_load(&q);
    problem_run(&q, program);
    amd_program_free(program);
    EACH_OUTPUT(s->matrix) {
        if (p.d[at] != q.d[at]) problem_differs(&p, at, q.d[at]);
    }
}

/* Block n & 15 of A stands for all of each 2^(n >> 4). */
static void change_cbsz(problem *p, uint32_t n) {
    uint32_t cbsz = n >> 4, abid = n & 15, size = (uint32_t)p->s.matrix->rows * p->s.matrix->k;
    static uint64_t a[PROBLEM_INPUTS];
    memcpy(a, p->a, sizeof a);
    EACH_INPUT(p->s.matrix) p->a[at] = a[((block >> cbsz << cbsz) + abid) * size + at % size];
}

/* The lanes of B, as the instruction set's documents number the patterns. */
static void change_blgp(problem *p, uint32_t n) {
    static uint64_t lanes[AMD_LANES][AMD_COORDINATE_MAX];
    EACH_INPUT(p->s.matrix) {
        place q = problem_input(&p->s, block, i, k);
        lanes[q.lane][q.element] = p->b[at];
    }
    EACH_INPUT(p->s.matrix) {
        place q = problem_input(&p->s, block, i, k);
        static const int first[] = {0, 0, 32, 0, 0, 16, 32, 48}, count[] = {64, 32, 32, 64, 16, 16, 16, 16};
        uint32_t from = n == 3 ? (q.lane + 16) % 64 : (uint32_t)first[n] + q.lane % (uint32_t)count[n];
        p->b[at] = lanes[from][q.element];
    }
}

static void test_broadcasts(void **state) {
    (void)state;
    static const struct {
        const char *mnemonic, *processor;
    } cases[] = {{"v_mfma_f32_4x4x4f16", "gfx90a"},        {"v_mfma_f32_16x16x4_4b_f16", "gfx942"},
                 {"v_mfma_i32_32x32x4_2b_i8", "gfx942"},   {"v_mfma_f32_32x32x2f32", "gfx90a"},
                 {"v_mfma_f32_16x16x16bf16_1k", "gfx90a"}, {"v_mfma_f32_4x4x1_16b_f32", "gfx942"}};
    char modifiers[64];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        shape s = problem_shape_of(cases[i].mnemonic, cases[i].processor, true);
        for (uint32_t blgp = 1; blgp < 8; blgp++) {
            snprintf(modifiers, sizeof modifiers, "blgp:%u", blgp);
            with_modifiers(&s, modifiers, change_blgp, blgp);
        }
        for (uint32_t cbsz = 1; 1u << cbsz <= s.matrix->blocks; cbsz++) {
            for (uint32_t abid = 0; abid < 1u << cbsz; abid += 1 + cbsz / 3) {
                snprintf(modifiers, sizeof modifiers, "cbsz:%u%s", cbsz, "");
                if (abid) snprintf(modifiers, sizeof modifiers, "cbsz:%u abid:%u", cbsz, abid);
                with_modifiers(&s, modifiers, change_cbsz, cbsz << 4 | abid);
            }
        }
    }
}

/* Bits 0 to 2 of n: A, B and C get another sign; for 16 bits that is neg_lo of even elements, and bits 4 and 5 of odd
 * ones. Bit 6: C loses its sign, problem_before. */
static void change_signs(problem *p, uint32_t n) {
    const shape *s = &p->s;
    EACH_INPUT(s->matrix) {
        bool odd = s->a_bits == 16 && (problem_input(s, block, i, k).element & 1);
        uint32_t mask = odd ? n >> 4 : n;
        p->a[at] ^= (uint64_t)(mask & 1) << (s->a_bits - 1);
        p->b[at] ^= (uint64_t)(mask >> 1 & 1) << (s->b_bits - 1);
    }
    EACH_OUTPUT(s->matrix) {
        uint64_t sign = 1ull << (s->d_bits - 1);
        if (n >> 6 & 1) p->c[at] &= ~sign;
        if (n >> 2 & 1) p->c[at] ^= sign;
    }
}

static void test_negations(void **state) {
    (void)state;
    shape s = problem_shape_of("v_mfma_f64_16x16x4_f64", "gfx942", true);
    with_modifiers(&s, "neg:[1,0,0]", change_signs, 1);
    with_modifiers(&s, "neg:[0,1,1]", change_signs, 6);
    static const char *const floats[] = {"v_wmma_f32_16x16x16_f16", "v_wmma_f32_16x16x16_bf16",
                                         "v_wmma_f16_16x16x16_f16", "v_wmma_bf16_16x16x16_bf16"};
    for (size_t i = 0; i < 4; i++) {
        for (int target = 0; target < 4; target++) {
            s = problem_shape_of(floats[i], target & 1 ? "gfx1201" : "gfx1100", target & 2);
            with_modifiers(&s, "neg_lo:[1,0,0]", change_signs, 1);
            with_modifiers(&s, "neg_lo:[0,1,1] neg_hi:[1,0,0]", change_signs, 6 | 1 << 4);
            with_modifiers(&s, "neg_lo:[0,0,1] neg_hi:[0,1,1]", change_signs, 4 | 2 << 4 | 1 << 6);
        }
    }
    s = problem_shape_of("v_wmma_f32_16x16x16_fp8_bf8", "gfx1201", false);
    with_modifiers(&s, "neg_lo:[0,0,1]", change_signs, 4);
    with_modifiers(&s, "neg_hi:[0,0,1]", change_signs, 1 << 6);
}

/* Integers of both signs, with and without saturation; C near the ends, so that there is something to saturate. */
static void test_integers(void **state) {
    (void)state;
    static const char *const mnemonics[] = {"v_wmma_i32_16x16x16_iu8", "v_wmma_i32_16x16x16_iu4",
                                            "v_wmma_i32_16x16x32_iu4"};
    static problem p;
    char modifiers[64];
    for (int n = 0; n < 3 * 4 * 8; n++) {
        bool a = n & 1, b = n & 2, clamp = n & 4, wave64 = n & 8, gfx12 = n & 16;
        const char *mnemonic = mnemonics[n / 32];
        if (n / 32 == 2 && !gfx12) continue;
        memset(&p, 0, sizeof p);
        p.s = problem_shape_of(mnemonic, gfx12 ? "gfx1201" : "gfx1100", wave64);
        int length = snprintf(modifiers, sizeof modifiers, "neg_lo:[%d,%d,0]", a, b);
        if (!a && !b) length = 0;
        snprintf(modifiers + length, sizeof modifiers - (size_t)length, "%s", clamp ? " clamp" : "");
        if (a || b || clamp) p.modifiers = modifiers;
        amd_program *program = problem_load(&p);
        problem_draw(&p);
        EACH_OUTPUT(p.s.matrix) if (at % 3) p.c[at] = at % 2 ? 0x7ffffff0 : 0x80000010;
        problem_run(&p, program);
        problem_check_integer(&p, a, b, clamp);
        amd_program_free(program);
    }
}

/* gfx11: the half of C and D that op_sel names; the other stays if D is C. */
static void test_halves(void **state) {
    (void)state;
    static problem p;
    for (int n = 0; n < 4; n++) {
        memset(&p, 0, sizeof p);
        p.s = problem_shape_of(n & 1 ? "v_wmma_bf16_16x16x16_bf16" : "v_wmma_f16_16x16x16_f16", "gfx1100", n & 2);
        p.high = true;
        p.modifiers = "op_sel:[0,0,1]";
        amd_program *program = problem_load(&p);
        problem_draw(&p);
        problem_run(&p, program);
        problem_check_real(&p);
        amd_program_free(program);
    }
    amd_program *program =
        amdgcn_load("gfx1100", false, "v_wmma_f16_16x16x16_f16 v[0:7], v[8:15], v[16:23], v[0:7] op_sel:[0,0,1]");
    amdgcn_registers_fill(&problem_before, program, &problem_random_state);
    for (uint32_t r = 8; r < 24; r++)
        memcpy(&problem_before.v[r][16], &problem_before.v[r][0], 16 * sizeof(uint32_t));
    problem_after = problem_before;
    amdgcn_run(program, NULL, &problem_after);
    for (uint32_t r = 0; r < 8; r++)
        for (uint32_t l = 0; l < 32; l++)
            assert_int_equal(problem_after.v[r][l] & 0xffff, problem_before.v[r][l] & 0xffff);
    amd_program_free(program);
}

/* Accumulation registers, and C as a constant. */
static void test_operands(void **state) {
    (void)state;
    static const struct {
        const char *mnemonic, *processor;
    } cases[] = {{"v_mfma_f32_32x32x8f16", "gfx90a"},       {"v_mfma_f64_16x16x4f64", "gfx90a"},
                 {"v_mfma_i32_16x16x32_i8", "gfx942"},      {"v_mfma_f32_32x32x1_2b_f32", "gfx942"},
                 {"v_mfma_f32_16x16x32_fp8_bf8", "gfx942"}, {"v_wmma_f32_16x16x16_f16", "gfx1100"},
                 {"v_wmma_f16_16x16x16_f16", "gfx1201"},    {"v_wmma_i32_16x16x16_iu8", "gfx1201"}};
    static problem p;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool mfma = strstr(cases[i].mnemonic, "mfma") != NULL;
        for (int n = 0; n < 4; n++) {
            memset(&p, 0, sizeof p);
            p.s = problem_shape_of(cases[i].mnemonic, cases[i].processor, mfma);
            p.accumulators = n & 1;
            p.constant = n & 2;
            if (p.accumulators && !mfma) continue;
            amd_program *program = problem_load(&p);
            problem_draw(&p);
            problem_run(&p, program);
            if (amdgcn_is_integer((amd_matrix_type)p.s.matrix->d))
                problem_check_integer(&p, false, false, false);
            else
                problem_check_real(&p);
            amd_program_free(program);
        }
    }
}

/* With a constant for C the result may stand where A and B do. */
static void test_result_over_inputs(void **state) {
    (void)state;
    static const struct {
        const char *processor, *apart, *over;
        uint32_t count;
    } rows[] = {
        {"gfx90a", "v_mfma_f64_16x16x4f64 v[20:27], v[2:3], v[4:5], 0",
         "v_mfma_f64_16x16x4f64 v[2:9], v[2:3], v[4:5], 0", 8},
        {"gfx942", "v_mfma_i32_32x32x16_i8 v[20:35], v[2:3], v[4:5], 7",
         "v_mfma_i32_32x32x16_i8 v[2:17], v[2:3], v[4:5], 7", 16},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        amd_program *apart = amdgcn_load(rows[i].processor, true, rows[i].apart);
        amd_program *over = amdgcn_load(rows[i].processor, true, rows[i].over);
        amdgcn_registers_fill(&problem_before, apart, &problem_random_state);
        problem_after = problem_before;
        amdgcn_run(apart, NULL, &problem_before);
        amdgcn_run(over, NULL, &problem_after);
        assert_memory_equal(problem_after.v[2], problem_before.v[20], rows[i].count * sizeof problem_after.v[2]);
        amd_program_free(apart);
        amd_program_free(over);
    }
}

/* ---- What is refused, and what is a fault ---- */

static void test_refusals(void **state) {
    (void)state;
    static const struct {
        const char *processor;
        bool wave64;
        const char *text, *says;
    } bad[] = {
        {"gfx942", true, "v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], v[0:3] cbsz:1", "cbsz and abid"},
        {"gfx942", true, "v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], v[0:3] blgp:1", "blgp"},
        {"gfx942", true, "v_mfma_f32_16x16x4_4b_f16 v[0:15], v[20:21], v[22:23], v[0:15] cbsz:3", "more blocks"},
        {"gfx942", true, "v_mfma_f32_16x16x4_4b_f16 v[0:15], v[20:21], v[22:23], v[0:15] cbsz:1 abid:2", "abid"},
        {"gfx90a", true, "v_mfma_f64_4x4x4f64 v[0:1], v[2:3], v[4:5], v[0:1] blgp:1", "blgp"},
        {"gfx942", true, "v_mfma_f32_32x32x8_f16 v[0:15], v[4:5], v[16:17], v[0:15]", "overlaps A or B"},
        {"gfx942", true, "v_smfmac_f32_16x16x32_f16 v[0:3], v[4:5], v[6:9], v10", "v_smfmac_f32_16x16x32_f16"},
        {"gfx1100", false, "v_wmma_f32_16x16x16_f16 v[0:7], v[0:7], v[16:23], v[24:31]", "overlaps A or B"},
        {"gfx1100", false, "v_wmma_f32_16x16x16_f16 v[0:7], v[8:15], v[16:23], v[1:8]", "a part of C"},
        {"gfx1100", false, "v_wmma_bf16_16x16x16_bf16 v[0:7], v[8:15], v[16:23], 1.0", "a bf16 constant"},
        {"gfx1201", false, "v_swmmac_f32_16x16x32_f16 v[0:7], v[8:11], v[12:19], v20", "v_swmmac_f32_16x16x32_f16"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *why = amdgcn_refusal(bad[i].processor, bad[i].wave64, bad[i].text);
        if (!strstr(why, bad[i].says)) fail_msg("%s: refused with \"%s\"", bad[i].text, why);
    }
    /* What a target does not have its assembler does not take. */
    static const struct {
        const char *processor, *text;
    } absent[] = {{"gfx90a", "v_mfma_f32_16x16x8_xf32 v[0:3], v[4:5], v[6:7], v[0:3]"},
                  {"gfx90a", "v_mfma_f32_16x16x32_fp8_fp8 v[0:3], v[4:5], v[6:7], v[0:3]"},
                  {"gfx906", "v_mfma_f32_4x4x1f32 a[0:3], v4, v5, a[0:3]"},
                  {"gfx942", "v_mfma_f32_16x16x8bf16 v[0:3], v4, v5, v[0:3]"},
                  {"gfx942", "v_mfma_f32_16x16x16_f16 v[1:4], v[6:7], v[8:9], v[0:3]"},
                  {"gfx1030", "v_wmma_f32_16x16x16_f16 v[0:7], v[8:15], v[16:23], v[24:31]"},
                  {"gfx1100", "v_wmma_f32_16x16x16_fp8_fp8 v[0:7], v[8:9], v[10:11], v[12:19]"}};
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
        char why[512];
        size_t size;
        if (amdgcn_assemble(absent[i].processor, true, absent[i].text, &size, why, sizeof why))
            fail_msg("%s: %s: assembled", absent[i].processor, absent[i].text);
    }
}

/* An odd first register, which the assembler does not write: in the field of the operand, of D or A. */
static void test_odd_registers(void **state) {
    (void)state;
    const amd_kernel kernel = {.name = "test"};
    for (int byte = 0; byte <= 4; byte += 4) {
        char why[512] = "";
        size_t size;
        uint8_t *code = amdgcn_assemble("gfx942", true, "v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], 0\ns_endpgm",
                                        &size, why, sizeof why);
        assert_non_null(code);
        code[byte] |= 1;
        assert_null(amd_program_of_code(code, size, "gfx942", &kernel, why, sizeof why));
        if (!strstr(why, "even")) fail_msg("refused with \"%s\"", why);
        free(code);
    }
}

static void test_counter(void **state) {
    (void)state;
    static const char *const text = "v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], v[0:3]\n"
                                    "v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], v[0:3]";
    amd_program *program = amdgcn_load("gfx942", true, text);
    const amd_launch launch = {.program = program,
                               .kernel = &program->kernels[0],
                               .grid = {512, 1, 1},
                               .group = {128, 1, 1},
                               .budget = 1000,
                               .threads = 1};
    sim_counters counters = {0};
    sim_report report;
    assert_true(amd_launch_run(&launch, &counters, &report));
    assert_int_equal(counters.matrix_instructions, 2 * 512 / 64);
    amd_program_free(program);
}

static void faults(const char *processor, const char *text, uint64_t exec, bool replicas, const char *says) {
    sim_report report;
    amd_program *program = amdgcn_load(processor, processor[3] == '9', text);
    amdgcn_registers_fill(&problem_after, program, &problem_random_state);
    problem_after.s[AMD_EXEC] = (uint32_t)exec;
    problem_after.s[AMD_EXEC + 1] = (uint32_t)(exec >> 32);
    for (uint32_t r = 8; replicas && r < 24; r++)
        memcpy(&problem_after.v[r][16], &problem_after.v[r][0], 16 * sizeof(uint32_t));
    problem_after.v[23][31] ^= 1;
    assert_false(amdgcn_try(program, NULL, &problem_after, &report));
    assert_int_equal(report.kind, SIM_FAULT_ILLEGAL);
    if (!strstr(report.text, says)) fail_msg("\"%s\" does not say \"%s\"", report.text, says);
    amd_program_free(program);
}

static void test_faults(void **state) {
    (void)state;
    static const char *const wmma = "v_wmma_f32_16x16x16_f16 v[0:7], v[8:15], v[16:23], v[0:7]";
    faults("gfx942", "v_mfma_f32_16x16x16_f16 v[0:3], v[4:5], v[6:7], v[0:3]", ~1ull, false, "lanes are off");
    faults("gfx1100", wmma, 0xffff, true, "lanes are off");
    faults("gfx1100", wmma, 0xffffffff, true, "B differs from lane 15");
    faults("gfx1100", wmma, 0xffffffff, false, "A differs from lane 0");
}

int main(void) {
    const char *text = getenv("KILN_TEST_SEED");
    problem_random_state = text ? strtoull(text, NULL, 0) : 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_broadcasts), cmocka_unit_test(test_negations),
        cmocka_unit_test(test_integers),   cmocka_unit_test(test_halves),
        cmocka_unit_test(test_operands),   cmocka_unit_test(test_result_over_inputs),
        cmocka_unit_test(test_refusals),   cmocka_unit_test(test_odd_registers),
        cmocka_unit_test(test_counter),    cmocka_unit_test(test_faults),
    };
    if (!amdgcn_harness_ready()) return 0;
    print_message("# seed %llu (KILN_TEST_SEED sets it)\n", (unsigned long long)problem_random_state);
    return cmocka_run_group_tests_name("amdgcn_matrix_forms", tests, NULL, NULL);
}
