/* Data that goes from lane to lane: permutations of rows, LDS's crossbar, and moves to and from accumulators. */
#include "tests/sim/amdgcn/wave/amd_wave.h"
#include "tests/sim/tests/amdgcn/amdgcn_harness.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint64_t random_state;
static amdgcn_registers before, registers;

typedef struct target {
    const char *processor;
    bool wave64;
} target;

static uint32_t lanes_of(const target *t) {
    return t->wave64 ? 64 : 32;
}

/* Random registers, but for those that prepare sets, with some lanes off. */
static void run(const target *t, const char *text, void (*prepare)(amdgcn_registers *r)) {
    amd_program *program = amdgcn_load(t->processor, t->wave64, text);
    amdgcn_registers_fill(&before, program, &random_state);
    before.s[AMD_EXEC] &= (uint32_t)(sim_random(&random_state) | sim_random(&random_state));
    if (t->wave64) before.s[AMD_EXEC + 1] &= (uint32_t)sim_random(&random_state);
    if (prepare) prepare(&before);
    registers = before;
    amdgcn_run(program, NULL, &registers);
    amd_program_free(program);
}

static bool is_on(uint32_t lane) {
    return before.s[AMD_EXEC + lane / 32] >> lane % 32 & 1;
}

/* v0 must be what expected says, where lanes are on, and nothing else may have changed. */
static void expect(const target *t, const char *text, const uint32_t *expected) {
    for (uint32_t l = 0; l < AMD_LANES; l++) {
        uint32_t value = l < lanes_of(t) && is_on(l) ? expected[l] : before.v[0][l];
        if (registers.v[0][l] != value)
            fail_msg("%s on %s: lane %u is 0x%x, expected 0x%x", text, t->processor, l, registers.v[0][l], value);
        before.v[0][l] = value;
    }
    if (memcmp(&before, &registers, sizeof before) != 0) fail_msg("%s: another register changed", text);
}

/* ---- Rows ---- */

static const target row_targets[] = {{"gfx1010", false}, {"gfx1030", true},  {"gfx1100", false},
                                     {"gfx1100", true},  {"gfx1201", false}, {"gfx1201", true}};
enum { ROW_TARGETS = sizeof row_targets / sizeof *row_targets };

/* A lane of the row named by bit 0 of n, or of the one beside it; n's other bits: fetch lanes that are off, or take 0
 * of them. */
static void check_row(const target *t, const char *text, int n, const uint32_t *select) {
    uint32_t expected[AMD_LANES];
    for (uint32_t l = 0; l < lanes_of(t); l++) {
        uint32_t from = (l / 16 ^ (uint32_t)(n & 1)) * 16 + select[l];
        expected[l] = before.v[1][from];
        if (!is_on(from) && !(n & 2)) expected[l] = n & 4 ? 0 : before.v[0][l];
    }
    expect(t, text, expected);
}

static void test_permlane16(void **state) {
    (void)state;
    for (int i = 0; i < ROW_TARGETS * 8; i++) {
        const target *t = &row_targets[i / 8];
        int n = i % 8;
        char text[96];
        uint32_t select[AMD_LANES];
        snprintf(text, sizeof text, "v_permlane%s16_b32 v0, v1, s2, s3 op_sel:[%d,%d]", n & 1 ? "x" : "", n >> 1 & 1,
                 n >> 2 & 1);
        run(t, text, NULL);
        for (uint32_t l = 0; l < AMD_LANES; l++)
            select[l] = before.s[l % 16 < 8 ? 2 : 3] >> l % 8 * 4 & 15;
        check_row(t, text, n, select);
        if (strcmp(t->processor, "gfx1201") != 0) continue;
        snprintf(text, sizeof text, "v_permlane%s16_var_b32 v0, v1, v2 op_sel:[%d,%d]", n & 1 ? "x" : "", n >> 1 & 1,
                 n >> 2 & 1);
        run(t, text, NULL);
        for (uint32_t l = 0; l < AMD_LANES; l++)
            select[l] = before.v[2][l] & 15;
        check_row(t, text, n, select);
    }
    run(&row_targets[2], "v_permlane16_b32 v0, v1, 0, -1", NULL);
    uint32_t select[AMD_LANES];
    for (uint32_t l = 0; l < AMD_LANES; l++)
        select[l] = l % 16 < 8 ? 0 : 15;
    check_row(&row_targets[2], "constants", 0, select);
}

static void test_permlane64(void **state) {
    (void)state;
    for (int i = 2; i < ROW_TARGETS; i++) {
        const target *t = &row_targets[i];
        uint32_t expected[AMD_LANES];
        run(t, "v_permlane64_b32 v0, v1", NULL);
        for (uint32_t l = 0; l < AMD_LANES; l++)
            expected[l] = t->wave64 ? before.v[1][l ^ 32] : before.v[0][l];
        expect(t, "v_permlane64_b32", expected);
    }
}

/* ---- LDS's crossbar: its results are there after a wait ---- */

static const target targets[] = {{"gfx906", true},  {"gfx90a", true},   {"gfx942", true},   {"gfx1010", false},
                                 {"gfx1030", true}, {"gfx1100", false}, {"gfx1201", false}, {"gfx1201", true}};
enum { TARGETS = sizeof targets / sizeof *targets };

static const char *waits_for(const target *t) {
    return !strncmp(t->processor, "gfx12", 5) ? "s_wait_dscnt 0" : "s_waitcnt lgkmcnt(0)";
}

/* Of all lanes of a wave, on gfx10 and gfx11 of a half of 32. */
static uint32_t partner(const target *t, uint32_t lane, uint32_t address) {
    const bool halves = !strncmp(t->processor, "gfx10", 5) || !strncmp(t->processor, "gfx11", 5);
    return halves ? lane / 32 * 32 + address / 4 % 32 : address / 4 % lanes_of(t);
}

static void test_ds_bpermute(void **state) {
    (void)state;
    for (int i = 0; i < TARGETS * 2; i++) {
        const target *t = &targets[i / 2];
        uint32_t expected[AMD_LANES], offset = i % 2 ? 12 : 0;
        char text[96];
        snprintf(text, sizeof text, "ds_bpermute_b32 v0, v1, v2%s\n%s", offset ? " offset:12" : "", waits_for(t));
        run(t, text, NULL);
        for (uint32_t l = 0; l < AMD_LANES; l++) {
            uint32_t from = partner(t, l, before.v[1][l] + offset);
            expected[l] = is_on(from) ? before.v[2][from] : 0;
        }
        expect(t, text, expected);
    }
}

/* Of several lanes that give to one the last counts. */
static void test_ds_permute(void **state) {
    (void)state;
    for (int i = 0; i < TARGETS; i++) {
        const target *t = &targets[i];
        uint32_t expected[AMD_LANES] = {0};
        char text[96];
        snprintf(text, sizeof text, "ds_permute_b32 v0, v1, v2\n%s", waits_for(t));
        run(t, text, NULL);
        for (uint32_t l = 0; l < lanes_of(t); l++)
            if (is_on(l)) expected[partner(t, l, before.v[1][l])] = before.v[2][l];
        expect(t, text, expected);
    }
}

/* Bit 15: four lanes among themselves; else and, or and xor masks of five bits. */
static void test_ds_swizzle(void **state) {
    (void)state;
    for (int i = 0; i < TARGETS * 24; i++) {
        const target *t = &targets[i % TARGETS];
        uint32_t pattern = (uint32_t)sim_random(&random_state) & (i % 2 ? 0x7fff : 0x80ff), expected[AMD_LANES];
        if (i % 2 == 0) pattern |= 0x8000;
        char text[96];
        snprintf(text, sizeof text, "ds_swizzle_b32 v0, v1 offset:0x%x\n%s", pattern, waits_for(t));
        run(t, text, NULL);
        for (uint32_t l = 0; l < AMD_LANES; l++) {
            uint32_t masked = (((l % 32) & (pattern & 31)) | (pattern >> 5 & 31)) ^ (pattern >> 10 & 31);
            uint32_t from = l / 32 * 32 + masked;
            if (pattern & 0x8000) from = l / 4 * 4 + (pattern >> l % 4 * 2 & 3);
            expected[l] = is_on(from) ? before.v[1][from] : 0;
        }
        expect(t, text, expected);
    }
}

/* ---- Accumulators ---- */

static void test_accumulators(void **state) {
    (void)state;
    for (int i = 1; i < 3; i++) {
        const target *t = &targets[i];
        run(t, "v_accvgpr_read_b32 v0, a7", NULL);
        expect(t, "v_accvgpr_read_b32", before.v[AMD_ACCUMULATORS + 7]);
        static const struct {
            const char *text;
            uint32_t value;
        } writes[] = {{"v_accvgpr_write_b32 a3, -5", (uint32_t)-5}, {"v_accvgpr_write_b32 a3, 2.0", 0x40000000}};
        for (int n = 0; n < 4; n++) {
            run(t, n < 2 ? writes[n].text : n == 2 ? "v_accvgpr_write_b32 a3, v9" : "v_accvgpr_mov_b32 a3, a255", NULL);
            for (uint32_t l = 0; l < AMD_LANES; l++) {
                uint32_t value = n < 2    ? writes[n].value
                                 : n == 2 ? before.v[9][l]
                                          : before.v[AMD_ACCUMULATORS + 255][l];
                if (is_on(l)) before.v[AMD_ACCUMULATORS + 3][l] = value;
            }
            assert_memory_equal(&before, &registers, sizeof before);
        }
    }
}

int main(void) {
    const char *text = getenv("KILN_TEST_SEED");
    random_state = text ? strtoull(text, NULL, 0) : 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_permlane16), cmocka_unit_test(test_permlane64), cmocka_unit_test(test_ds_bpermute),
        cmocka_unit_test(test_ds_permute), cmocka_unit_test(test_ds_swizzle), cmocka_unit_test(test_accumulators),
    };
    if (!amdgcn_harness_ready()) return 0;
    print_message("# seed %llu (KILN_TEST_SEED sets it)\n", (unsigned long long)random_state);
    return cmocka_run_group_tests_name("amdgcn_exchange", tests, NULL, NULL);
}
