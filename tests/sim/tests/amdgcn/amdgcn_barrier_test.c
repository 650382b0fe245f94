/* gfx12's barrier in two halves: a signal, and a wait for those of all waves of the group. */
#include "tests/sim/tests/amdgcn/amdgcn_harness.h"
#include "tests/sim/tests/ptx/ptx_harness.h"
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static uint64_t random_state;

/* gfx12: a wave may work between its signal and its wait; what the others did before theirs is there after the wait. */
static void test_barrier_in_two_halves(void **state) {
    (void)state;
    enum { WAVES = 4 };
    static amdgcn_registers waves[WAVES];
    static const struct {
        const char *text;
        sim_fault_kind kind;
    } cases[] = {
        {"ds_store_b32 v4, v8\ns_wait_dscnt 0x0\ns_barrier_signal -1\nv_add_nc_u32 v9, 1, v9\ns_barrier_wait -1\n"
         "ds_load_b32 v10, v5\ns_wait_dscnt 0x0",
         SIM_FAULT_NONE},
        {"ds_store_b32 v4, v8\ns_wait_dscnt 0x0\ns_barrier_signal -1\nds_load_b32 v10, v5\ns_barrier_wait -1\n"
         "s_wait_dscnt 0x0",
         SIM_FAULT_RACE},
        {"ds_store_b32 v4, v8\ns_barrier_signal -1\ns_barrier_wait -1\nds_load_b32 v10, v5\ns_wait_dscnt 0x0",
         SIM_FAULT_RACE},
        {"s_barrier_signal -1\ns_barrier_signal -1\ns_barrier_wait -1", SIM_FAULT_BARRIER},
        {"s_barrier_wait -1", SIM_FAULT_BARRIER},
        {"s_cmp_eq_u32 s0, 0\ns_cbranch_scc1 out\ns_barrier_signal -1\ns_barrier_wait -1\nout:", SIM_FAULT_BARRIER},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        amd_program *program = amdgcn_load("gfx1201", false, cases[i].text);
        for (uint64_t seed = 1; seed <= 3; seed++) {
            amdgcn_setting several = {.waves = WAVES, .group_bytes = WAVES * 32 * 4, .seed = 1};
            sim_report report;
            several.seed = seed;
            for (uint32_t w = 0; w < WAVES; w++) {
                amdgcn_registers_fill(&waves[w], program, &random_state);
                waves[w].s[0] = w;
                for (uint32_t l = 0; l < 32; l++) {
                    waves[w].v[4][l] = (w * 32 + l) * 4;
                    waves[w].v[5][l] = ((w + 1) % WAVES * 32 + l) * 4;
                    waves[w].v[8][l] = w;
                }
            }
            amdgcn_try(program, &several, waves, &report);
            bool fits = report.kind == cases[i].kind;
            /* The wave that reads too early may find that nothing was written yet. */
            if (cases[i].kind == SIM_FAULT_RACE) fits |= report.kind == SIM_FAULT_UNINITIALISED;
            if (!fits) fail_msg("%s: got \"%s\"", cases[i].text, report.text);
            for (uint32_t w = 0; w < WAVES && !report.kind; w++)
                assert_int_equal(waves[w].v[10][7], (w + 1) % WAVES);
        }
        amd_program_free(program);
    }
}

static void test_the_first_at_a_barrier(void **state) {
    (void)state;
    enum { WAVES = 4 };
    static amdgcn_registers waves[WAVES];
    amdgcn_setting several = {.waves = WAVES, .group_bytes = WAVES * 32 * 4, .seed = 1};
    amd_program *program = amdgcn_load("gfx1201", false,
                                       "s_cmp_eq_u32 0, 1\ns_barrier_signal_isfirst -1\ns_cselect_b32 s1, 1, 0\n"
                                       "s_barrier_wait -1");
    for (int w = 0; w < WAVES; w++)
        amdgcn_registers_fill(&waves[w], program, &random_state);
    amdgcn_run(program, &several, waves);
    uint32_t first = 0;
    for (int w = 0; w < WAVES; w++)
        first += waves[w].s[1];
    assert_int_equal(first, 1);
    amd_program_free(program);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_barrier_in_two_halves),
        cmocka_unit_test(test_the_first_at_a_barrier),
    };
    if (!amdgcn_harness_ready()) return 0;
    random_state = harness_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
