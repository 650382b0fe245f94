/* Instructions of the vector ALU that reach from one lane to another or to a scalar register, those that run in pairs,
 * and the order of output modifiers. */
#include "tests/sim/amdgcn/wave/amd_wave.h"
#include "tests/sim/tests/amdgcn/amdgcn_harness.h"
#include "tests/sim/tests/ptx/ptx_harness.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static amdgcn_registers before, registers;
static uint64_t random_state;

/* Runs a text on random registers with lanes in EXEC. */
static void run(const char *processor, bool wave64, const char *text, uint64_t exec) {
    amd_program *program = amdgcn_load(processor, wave64, text);
    amdgcn_registers_fill(&before, program, &random_state);
    before.s[AMD_EXEC] = (uint32_t)exec;
    before.s[AMD_EXEC + 1] = (uint32_t)(exec >> 32);
    registers = before;
    amdgcn_run(program, NULL, &registers);
    amd_program_free(program);
}

/* What must have changed is written to before; nothing else may have. */
static void expect_nothing_else(const char *text) {
    if (memcmp(&before, &registers, sizeof before) != 0) fail_msg("%s: another register changed", text);
}

static void test_readfirstlane(void **state) {
    (void)state;
    static const struct {
        uint64_t exec;
        int lane;
    } cases[] = {{~0ull, 0}, {0x80, 7}, {0xf000000000000000, 60}, {0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        run("gfx942", true, "v_readfirstlane_b32 s7, v3", cases[i].exec);
        assert_int_equal(registers.s[7], before.v[3][cases[i].lane]);
        before.s[7] = registers.s[7];
        expect_nothing_else("v_readfirstlane_b32");
    }
    run("gfx1100", false, "v_readfirstlane_b32 s7, v3", 0x40000000);
    assert_int_equal(registers.s[7], before.v[3][30]);
    run("gfx1201", false, "v_readfirstlane_b32 s7, v3", 0);
    assert_int_equal(registers.s[7], before.v[3][0]);
}

/* Registers so many further on as M0 says. */
static void test_registers_by_number(void **state) {
    (void)state;
    enum { SCALAR = 1000 };
    static const struct {
        const char *processor, *text;
        uint32_t to, from, count;
    } cases[] = {
        {"gfx1030", "s_mov_b32 m0, 3\nv_movrels_b32 v1, v2", 1, 5, 1},
        {"gfx1100", "s_mov_b32 m0, 4\nv_movreld_b32 v2, v1", 6, 1, 1},
        {"gfx1201", "s_mov_b32 m0, 4\nv_movreld_b32 v2, s9", 6, SCALAR + 9, 1},
        {"gfx1030", "s_mov_b32 m0, 5\nv_movrelsd_b32 v2, v1", 7, 6, 1},
        {"gfx1100", "s_mov_b32 m0, 2\ns_movrels_b32 s4, s8", SCALAR + 4, SCALAR + 10, 1},
        {"gfx1030", "s_mov_b32 m0, 2\ns_movreld_b64 s[8:9], s[4:5]", SCALAR + 10, SCALAR + 4, 2},
        {"gfx90a", "s_set_gpr_idx_on 3, gpr_idx(SRC0)\nv_mov_b32 v1, v2\ns_set_gpr_idx_off", 1, 5, 1},
        {"gfx942", "s_set_gpr_idx_on 3, gpr_idx(DST)\nv_mov_b32 v1, v2\ns_set_gpr_idx_off", 4, 2, 1},
        {"gfx90a", "s_set_gpr_idx_on 3, gpr_idx(SRC0,DST)\nv_mov_b32 v1, v2\ns_set_gpr_idx_off", 4, 5, 1},
        {"gfx90a", "s_set_gpr_idx_on 3, gpr_idx(SRC0)\ns_set_gpr_idx_off\nv_mov_b32 v1, v2", 1, 2, 1},
        {"gfx90a",
         "s_set_gpr_idx_on 3, gpr_idx(SRC0)\ns_set_gpr_idx_mode gpr_idx(DST)\ns_set_gpr_idx_idx 5\nv_mov_b32 v1, v2\n"
         "s_set_gpr_idx_off",
         6, 2, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool wave64 = !strncmp(cases[i].processor, "gfx9", 4), scalar = cases[i].from >= SCALAR;
        uint64_t exec = 0x80f0ff0f1234567f;
        run(cases[i].processor, wave64, cases[i].text, exec);
        for (uint32_t n = 0; n < cases[i].count && cases[i].to >= SCALAR; n++)
            before.s[cases[i].to - SCALAR + n] = before.s[cases[i].from - SCALAR + n];
        for (int l = 0; l < (wave64 ? 64 : 32) && cases[i].to < SCALAR; l++)
            if (exec >> l & 1)
                before.v[cases[i].to][l] = scalar ? before.s[cases[i].from - SCALAR] : before.v[cases[i].from][l];
        before.s[AMD_M0] = registers.s[AMD_M0];
        expect_nothing_else(cases[i].text);
    }
}

static void test_registers_that_are_not_there(void **state) {
    (void)state;
    static const struct {
        const char *processor, *text, *says;
    } cases[] = {
        {"gfx1030", "s_movk_i32 m0, 0x1000\nv_movrels_b32 v1, v2", "register 4098 of 16"},
        {"gfx1030", "s_mov_b32 m0, -1\nv_movreld_b32 v0, v2", "register"},
        {"gfx1030", "s_movk_i32 m0, 99\ns_movrels_b32 s4, s8", "register 107 of"},
        {"gfx90a", "s_set_gpr_idx_on 3, gpr_idx(SRC0)\nv_add_f32 v1, v2, v3", "only v_mov_b32"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        amd_program *program = amdgcn_load(cases[i].processor, !strncmp(cases[i].processor, "gfx9", 4), cases[i].text);
        sim_report report;
        amdgcn_registers_fill(&registers, program, &random_state);
        amdgcn_try(program, NULL, &registers, &report);
        assert_int_equal(report.kind, SIM_FAULT_ILLEGAL);
        if (!strstr(report.text, cases[i].says)) fail_msg("\"%s\" is not in \"%s\"", cases[i].says, report.text);
        amd_program_free(program);
    }
}

/* EXEC has no say; the lane's number is cut to the wave. */
static void test_readlane_and_writelane(void **state) {
    (void)state;
    run("gfx90a", true, "v_readlane_b32 s7, v3, 63", 0);
    assert_int_equal(registers.s[7], before.v[3][63]);
    run("gfx90a", true, "v_readlane_b32 s7, v3, s2", 1);
    assert_int_equal(registers.s[7], before.v[3][before.s[2] % 64]);
    run("gfx1030", false, "v_readlane_b32 s7, v3, s2", 1);
    assert_int_equal(registers.s[7], before.v[3][before.s[2] % 32]);
    before.s[7] = registers.s[7];
    expect_nothing_else("v_readlane_b32");
    run("gfx942", true, "v_writelane_b32 v9, s7, 40", 0);
    before.v[9][40] = before.s[7];
    expect_nothing_else("v_writelane_b32");
    run("gfx1201", false, "v_writelane_b32 v9, -5, s2", 2);
    before.v[9][before.s[2] % 32] = (uint32_t)-5;
    expect_nothing_else("v_writelane_b32");
}

static void test_swap(void **state) {
    (void)state;
    run("gfx942", true, "v_swap_b32 v1, v255", 0x0123456789abcdef);
    for (int l = 0; l < AMD_LANES; l++) {
        uint32_t held = before.v[1][l];
        if (!(0x0123456789abcdef >> l & 1)) continue;
        before.v[1][l] = before.v[255][l];
        before.v[255][l] = held;
    }
    expect_nothing_else("v_swap_b32");
}

static void test_nop(void **state) {
    (void)state;
    run("gfx942", true, "v_nop", ~0ull);
    expect_nothing_else("v_nop");
}

/* Each half of the result is the half of its own source that op_sel names. */
static void test_pk_mov(void **state) {
    (void)state;
    for (int first = 0; first < 2; first++) {
        for (int second = 0; second < 2; second++) {
            char text[96];
            snprintf(text, sizeof text, "v_pk_mov_b32 v[10:11], v[2:3], v[4:5] op_sel:[%d,%d]", first, second);
            run("gfx942", true, text, 0x5555555555555555);
            for (int l = 0; l < AMD_LANES; l += 2) {
                before.v[10][l] = before.v[2 + first][l];
                before.v[11][l] = before.v[4 + second][l];
            }
            expect_nothing_else(text);
        }
    }
}

/* Both halves of a dual instruction read before either writes. */
static void test_dual_instructions(void **state) {
    (void)state;
    static const char *const texts[] = {"v_dual_mov_b32 v0, v1 :: v_dual_mov_b32 v1, v0",
                                        "v_dual_mov_b32 v1, v0 :: v_dual_mov_b32 v0, v1"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        run(i ? "gfx1201" : "gfx1100", false, texts[i], 0xf0f0f0f0);
        for (int l = 0; l < 32; l++) {
            bool on = 0xf0f0f0f0 >> l & 1;
            uint32_t zero = before.v[0][l], one = before.v[1][l];
            before.v[0][l] = on ? one : zero;
            before.v[1][l] = on ? zero : one;
        }
        expect_nothing_else(texts[i]);
    }
    run("gfx1100", false, "v_dual_fmac_f32 v6, v7, v4 :: v_dual_cndmask_b32 v7, v6, v5", 0xffffffff);
    for (int l = 0; l < 32; l++)
        assert_int_equal(registers.v[7][l], before.s[AMD_VCC] >> l & 1 ? before.v[5][l] : before.v[6][l]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_readfirstlane),
        cmocka_unit_test(test_readlane_and_writelane),
        cmocka_unit_test(test_registers_by_number),
        cmocka_unit_test(test_registers_that_are_not_there),
        cmocka_unit_test(test_swap),
        cmocka_unit_test(test_nop),
        cmocka_unit_test(test_pk_mov),
        cmocka_unit_test(test_dual_instructions),
    };
    if (!amdgcn_harness_ready()) return 0;
    random_state = harness_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
