/* Accesses at addresses that are no multiple of their size, where the driver allows them; elsewhere they are faults of
 * tests/sim/tests/amdgcn/amdgcn_memory_faults_test.c. */
#include "tests/sim/amdgcn/wave/amd_wave.h"
#include "tests/sim/tests/amdgcn/amdgcn_harness.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static _Alignas(64) uint8_t memory[2048];
static uint64_t random_state = 1;
static amdgcn_registers registers;

static bool find(void *context, uint64_t address, sim_region *out_region) {
    (void)context;
    *out_region = (sim_region){.base = (uintptr_t)memory, .size = sizeof memory};
    return address - out_region->base < sizeof memory;
}

/* But not to the scalar unit, nor to atomics. */
static void test_any_address(void **state) {
    (void)state;
    static const char *const text = "global_load_dword v8, v[2:3], off offset:3\ns_waitcnt vmcnt(0)\n"
                                    "ds_write_b32 v4, v8 offset:2\ns_waitcnt lgkmcnt(0)\nds_read_b32 v9, v4 offset:2\n"
                                    "s_waitcnt lgkmcnt(0)\nscratch_store_dword v5, v9, off offset:1\n"
                                    "scratch_load_dword v10, v5, off offset:1\ns_waitcnt vmcnt(0)\n"
                                    "global_store_dword v[2:3], v10, off offset:9";
    static const char *const never[] = {"s_load_dword s20, s[4:5], 0x2", "global_atomic_add v[2:3], v8, off offset:2"};
    const amdgcn_setting setting = {
        .group_bytes = 2048, .private_bytes = 64, .find = find, .seed = 1, .unaligned = true};
    for (size_t i = 0; i < sizeof memory; i++)
        memory[i] = (uint8_t)(i * 37);
    for (int i = -1; i < 2; i++) {
        amd_program *program = amdgcn_load("gfx942", true, i < 0 ? text : never[i]);
        sim_report report;
        amdgcn_registers_fill(&registers, program, &random_state);
        for (uint32_t l = 0; l < AMD_LANES; l++) {
            const uint64_t address = (uintptr_t)memory + l * 16;
            registers.v[2][l] = (uint32_t)address;
            registers.v[3][l] = (uint32_t)(address >> 32);
            registers.v[4][l] = l * 16;
            registers.v[5][l] = 0;
        }
        memcpy(&registers.s[4], &(uint64_t){(uintptr_t)memory}, 8);
        amdgcn_try(program, &setting, &registers, &report);
        assert_int_equal(report.kind, i < 0 ? SIM_FAULT_NONE : SIM_FAULT_MISALIGNED);
        for (uint32_t l = 0; i < 0 && l < AMD_LANES; l++)
            assert_memory_equal(memory + l * 16 + 9, memory + l * 16 + 3, 4);
        amd_program_free(program);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_any_address)};
    if (!amdgcn_harness_ready()) return 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
