/* Every instruction of the vector ALU, in every way to write it that a processor has, against the rows of
 * amdgcn_rows.def. */
#include "tests/sim/amdgcn/wave/amd_wave.h"
#include "tests/sim/tests/amdgcn/amdgcn_variants.h"
#include "tests/sim/tests/ptx/ptx_harness.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct machine {
    const char *processor;
    bool wave64;
} machine;

static const machine machines[] = {{"gfx906", true},  {"gfx90a", true},   {"gfx942", true},
                                   {"gfx1010", true}, {"gfx1030", false}, {"gfx1100", false},
                                   {"gfx1102", true}, {"gfx1200", true},  {"gfx1201", false}};
enum { MACHINES = sizeof machines / sizeof *machines, ROUNDS = 3, FAILURES = 40 };

/* MODE: the compilers' own, f32 or all denormals flushed, without IEEE and DX10_CLAMP, each rounding. */
static const uint32_t modes[] = {0x3f0, 0x3f0, 0x3c0, 0x330, 0x300, 0x1c0, 0x0f0, 0x100, 0x3f5, 0x3fa, 0x3ff, 0x3c3};
enum { MODES = sizeof modes / sizeof *modes };

static amdgcn_registers before, expected, registers;
static uint64_t random_state;

/* How many variants of a kind were seen at work, and whether a row was. */
static unsigned kinds_run[VARIANT_KINDS];
static bool *row_run;
static unsigned failures;

/* ---- Running ---- */

static void draw_state(const variant *v, const amd_program *program) {
    variant_fill(v, &before, &random_state);
    before.mode = modes[draw(&random_state, MODES)];
    /* Whether v_fma_mix flushes a half that is denormal is not documented. */
    if (v->type[1].letter == 'x') before.mode |= 0xc0;
    uint32_t choice = draw(&random_state, 4);
    for (int i = 0; i < 2; i++) {
        uint32_t lanes = choice == 0 ? ~0u : (uint32_t)sim_random(&random_state);
        before.s[AMD_EXEC + i] = i && program->kernels[0].wave32 ? 0 : lanes;
    }
}

/* Says the first difference of a run; the test goes on, so that one look shows all that is wrong. */
static void difference_report(const variant *v, const char *processor) {
    char sources[256] = "";
    failures++;
    for (uint32_t i = 0; i < AMD_SCALARS; i++) {
        if (registers.s[i] == expected.s[i]) continue;
        print_error("%s, mode 0x%x: %s: s%u is 0x%08x, expected 0x%08x\n", processor, before.mode, v->text, i,
                    registers.s[i], expected.s[i]);
        return;
    }
    for (uint32_t r = 0; r < AMD_VECTORS; r++) {
        for (uint32_t l = 0; l < AMD_LANES; l++) {
            if (registers.v[r][l] == expected.v[r][l]) continue;
            for (uint32_t i = 0; i < 6; i++)
                snprintf(sources + strlen(sources), sizeof sources - strlen(sources), " v%u=0x%08x", SOURCE + i,
                         before.v[SOURCE + i][l]);
            print_error("%s, mode 0x%x: %s: v%u of lane %u is 0x%08x, expected 0x%08x, was 0x%08x;%s\n", processor,
                        before.mode, v->text, r, l, registers.v[r][l], expected.v[r][l], before.v[r][l], sources);
            return;
        }
    }
    print_error("%s: %s: SCC or MODE changed\n", processor, v->text);
}

static void variant_run(const variant *v, amd_program *program, uint32_t entry) {
    program->kernels[0].entry = entry;
    for (int round = 0; round < ROUNDS && failures < FAILURES; round++) {
        sim_report report;
        draw_state(v, program);
        registers = expected = before;
        variant_expect(v, program, &expected);
        if (!amdgcn_try(program, NULL, &registers, &report)) fail_msg("%s: %s", v->text, report.text);
        if (memcmp(&registers, &expected, sizeof expected) == 0) continue;
        difference_report(v, program->target->processor);
        break;
    }
    kinds_run[v->kind]++;
    row_run[v->row - amdgcn_rows] = true;
}

static void variants_run(const machine *m, const variant *variants, size_t count) {
    const char **lines = malloc(count * sizeof *lines);
    uint32_t *entries = malloc(count * sizeof *entries);
    assert_true(lines && entries);
    for (size_t i = 0; i < count; i++)
        lines[i] = variants[i].text;
    amd_program *program = amdgcn_load_each(m->processor, m->wave64, lines, count, entries);
    amdgcn_registers_fill(&before, program, &random_state);
    for (size_t i = 0; i < count; i++)
        if (entries[i] != AMD_NO_OP) variant_run(&variants[i], program, entries[i]);
    amd_program_free(program);
    free(lines);
    free(entries);
}

static void machine_run(const machine *m) {
    enum { MORE_DRAWS = 3, DRAWS = VARIANT_KINDS * MORE_DRAWS };
    size_t count = 0;
    variant *variants = malloc(amdgcn_row_count * DRAWS * sizeof *variants);
    assert_non_null(variants);
    for (size_t i = 0; i < amdgcn_row_count; i++) {
        for (int kind = 0; kind < VARIANT_KINDS; kind++) {
            int draws = kind >= VARIANT_CONSTANT ? MORE_DRAWS : 1;
            for (int n = 0; n < draws; n++)
                count += variant_make(&variants[count], &amdgcn_rows[i], (variant_kind)kind, m->processor, m->wave64,
                                      &random_state);
        }
    }
    variants_run(m, variants, count);
    free(variants);
}

/* Constants are what each source's own type makes of them: every one, where the types are of different sizes. */
static void constants_run(const machine *m) {
    size_t count = 0;
    variant *variants = malloc(amdgcn_row_count * ROW_SOURCES * VARIANT_CONSTANTS * sizeof *variants);
    assert_non_null(variants);
    for (size_t i = 0; i < amdgcn_row_count; i++)
        for (int n = 0; n < ROW_SOURCES * VARIANT_CONSTANTS; n++) {
            variant *v = &variants[count];
            if (!variant_make_constant(v, &amdgcn_rows[i], n / VARIANT_CONSTANTS, n % VARIANT_CONSTANTS, m->processor,
                                       m->wave64, &random_state))
                continue;
            bool mixed = false;
            for (int s = 1; s < v->sources; s++)
                mixed |= v->type[1 + s].bits != v->type[1].bits;
            count += mixed;
        }
    assert_in_range(count, 100, UINT32_MAX);
    variants_run(m, variants, count);
    free(variants);
}

/* ---- Tests ---- */

static void test_rows_on_every_processor(void **state) {
    (void)state;
    for (int i = 0; i < MACHINES; i++)
        machine_run(&machines[i]);
    assert_int_equal(failures, 0);
    for (size_t i = 0; i < amdgcn_row_count; i++)
        if (!row_run[i]) fail_msg("no processor has %s", amdgcn_rows[i].mnemonic);
    for (int i = 0; i < VARIANT_KINDS; i++) {
        print_message("# kind %d: %u variants\n", i, kinds_run[i]);
        if (kinds_run[i] < 20) fail_msg("only %u variants of kind %d ran", kinds_run[i], i);
    }
}

static void test_constants_among_sources_of_other_sizes(void **state) {
    (void)state;
    for (int i = 0; i < MACHINES; i++)
        constants_run(&machines[i]);
    assert_int_equal(failures, 0);
}

/* Of an instruction with one operand of 16 bits, all values; false if the processor does not have it. */
static bool exhaust(const amdgcn_row *row, const machine *m) {
    static const uint32_t settings[] = {0x3f0, 0x300, 0x1fc};
    variant v;
    uint32_t entry;
    assert_true(variant_make(&v, row, VARIANT_E64, m->processor, m->wave64, &random_state));
    const char *const lines[] = {v.text};
    if (v.sources != 1 || v.type[1].bits != 16) return true;
    amd_program *program = amdgcn_load_each(m->processor, m->wave64, lines, 1, &entry);
    amdgcn_registers_fill(&before, program, &random_state);
    uint32_t lanes = m->wave64 ? 64 : 32;
    for (uint32_t first = 0; first < 3 * 65536 && entry != AMD_NO_OP; first += lanes) {
        for (uint32_t l = 0; l < lanes; l++)
            before.v[SOURCE][l] = (before.v[SOURCE][l] & 0xffff0000) | ((first + l) & 0xffff);
        before.mode = settings[first >> 16];
        registers = expected = before;
        variant_expect(&v, program, &expected);
        amdgcn_run(program, NULL, &registers);
        if (memcmp(&registers, &expected, sizeof expected) != 0) difference_report(&v, m->processor);
    }
    amd_program_free(program);
    return entry != AMD_NO_OP;
}

static void test_all_operands_of_16_bits(void **state) {
    (void)state;
    for (size_t i = 0; i < amdgcn_row_count; i++) {
        bool run = false;
        for (int m = 0; m < MACHINES && !run; m++)
            run = exhaust(&amdgcn_rows[i], &machines[m]);
        assert_true(run);
    }
    assert_int_equal(failures, 0);
}

/* Of the tables. */
static const char *const mnemonics[] = {
#define AMD_ALU_OPCODE(mnemonic) #mnemonic,
#define AMD_ALU_SCALAR_OPCODE    AMD_ALU_OPCODE
#include "tests/sim/amdgcn/alu/amd_vector.def"
#undef AMD_ALU_OPCODE
#undef AMD_ALU_SCALAR_OPCODE
};
/* Those have tests of their own. */
static const char *const elsewhere[] = {
    "v_accvgpr_read_b32", "v_accvgpr_write_b32", "v_accvgpr_mov_b32", "v_pk_mov_b32",     "v_mov_b16",
    "v_cvt_f32_fp8",      "v_cvt_f32_bf8",       "v_cvt_pk_f32_fp8",  "v_cvt_pk_f32_bf8", "v_cvt_pk_fp8_f32",
    "v_cvt_pk_bf8_f32",   "v_cvt_sr_fp8_f32",    "v_cvt_sr_bf8_f32",
#define AMD_APPROXIMATE(mnemonic, type, function, unit, bound)        #mnemonic,
#define AMD_APPROXIMATE_SCALAR(mnemonic, type, function, unit, bound) #mnemonic,
#include "tests/sim/amdgcn/alu/amd_approximations.def"
#undef AMD_APPROXIMATE
#undef AMD_APPROXIMATE_SCALAR
#define AMD_LANE(mnemonic) #mnemonic,
#include "tests/sim/amdgcn/alu/amd_vector_lane.def"
#undef AMD_LANE
};

static bool is_tested(const char *mnemonic) {
    for (size_t i = 0; i < amdgcn_row_count; i++)
        if (!strcmp(amdgcn_rows[i].mnemonic, mnemonic)) return true;
    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
        if (!strcmp(elsewhere[i], mnemonic)) return true;
    return false;
}

static void test_every_instruction_has_a_row(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof mnemonics / sizeof *mnemonics; i++)
        if (!is_tested(mnemonics[i])) fail_msg("%s is simulated and has no row in amdgcn_rows.def", mnemonics[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_instruction_has_a_row),
        cmocka_unit_test(test_rows_on_every_processor),
        cmocka_unit_test(test_constants_among_sources_of_other_sizes),
        cmocka_unit_test(test_all_operands_of_16_bits),
    };
    if (!amdgcn_harness_ready()) return 0;
    random_state = harness_seed();
    row_run = calloc(amdgcn_row_count, sizeof *row_run);
    int failed = row_run ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
    free(row_run);
    return failed;
}
