/* The harness of the tests of AMD instructions: registers go in and come out, and what cannot run is said. */
#include "tests/sim/tests/amdgcn/amdgcn_assembler.h"
#include "tests/sim/tests/amdgcn/amdgcn_harness.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static amdgcn_registers before, registers;

static void test_only_the_instructions_change_registers(void **state) {
    (void)state;
    static const struct {
        const char *processor;
        bool wave64;
    } targets[] = {{"gfx906", true},   {"gfx90a", true},   {"gfx942", true},  {"gfx1010", false}, {"gfx1030", true},
                   {"gfx1032", false}, {"gfx1100", false}, {"gfx1102", true}, {"gfx1200", false}, {"gfx1201", true}};
    uint64_t random = 1;
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        amd_program *program =
            amdgcn_load(targets[i].processor, targets[i].wave64, "v_mov_b32 v255, v7\ns_mov_b32 s5, 77");
        amdgcn_registers_fill(&before, program, &random);
        before.s[AMD_EXEC] = 0x0ff0f00f;
        registers = before;
        amdgcn_run(program, NULL, &registers);
        for (uint32_t l = 0; l < AMD_LANES; l++) {
            bool on = l < 32 ? 0x0ff0f00f >> l & 1 : targets[i].wave64;
            assert_int_equal(registers.v[255][l], on ? before.v[7][l] : before.v[255][l]);
            before.v[255][l] = registers.v[255][l];
        }
        before.s[5] = 77;
        assert_memory_equal(&registers, &before, sizeof before);
        amd_program_free(program);
    }
}

static void test_labels_and_faults(void **state) {
    (void)state;
    uint64_t random = 1;
    sim_report report;
    amd_program *program = amdgcn_load("gfx942", true, "s_branch over\ns_trap 2\nover:\ns_mov_b32 s0, 1");
    amdgcn_registers_fill(&registers, program, &random);
    amdgcn_run(program, NULL, &registers);
    assert_int_equal(registers.s[0], 1);
    amd_program_free(program);
    /* The second is how compilers trap on gfx11. */
    static const struct {
        const char *processor, *text;
    } traps[] = {{"gfx942", "s_trap 2"},
                 {"gfx1100", "s_trap 2\ns_sendmsg_rtn_b32 s0, sendmsg(MSG_RTN_GET_DOORBELL)\ns_mov_b32 ttmp2, m0\n"
                             "s_waitcnt lgkmcnt(0)\ns_and_b32 s0, s0, 0x3ff\ns_or_b32 s0, s0, 0x400\ns_mov_b32 m0, s0\n"
                             "s_sendmsg sendmsg(MSG_INTERRUPT)\ns_mov_b32 m0, ttmp2\nend:\ns_sethalt 5\ns_branch end"},
                 {"gfx1030", "s_sethalt 5"}};
    for (size_t i = 0; i < sizeof traps / sizeof *traps; i++) {
        program = amdgcn_load(traps[i].processor, traps[i].processor[3] == '9', traps[i].text);
        amdgcn_registers_fill(&registers, program, &random);
        assert_false(amdgcn_try(program, NULL, &registers, &report));
        assert_int_equal(report.kind, SIM_FAULT_TRAP);
        amd_program_free(program);
    }
}

static void test_what_the_assembler_refuses(void **state) {
    (void)state;
    static const struct {
        const char *processor, *text, *says;
    } bad[] = {{"gfx942", "v_novel_f32 v0, v1", "invalid instruction"},
               {"gfx942", "s_wait_loadcnt 0", "not supported on this GPU"},
               {"gfx942", "s_branch nowhere", "undefined label"},
               {"gfx1100", "s_mov_b32 s0, elsewhere", "does not define"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char why[512] = "";
        size_t size;
        assert_null(amdgcn_assemble(bad[i].processor, true, bad[i].text, &size, why, sizeof why));
        if (!strstr(why, bad[i].says)) fail_msg("%s: refused with \"%s\"", bad[i].text, why);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_the_instructions_change_registers),
        cmocka_unit_test(test_labels_and_faults),
        cmocka_unit_test(test_what_the_assembler_refuses),
    };
    if (!amdgcn_harness_ready()) return 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
