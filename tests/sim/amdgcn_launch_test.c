/* How a kernel starts: its wave size, its arguments in registers, its scratch. */
#include "tests/sim/amdgcn/amd_launch.h"
#include "tests/sim/amdgcn_harness.h"
#include "tests/sim/programs_host.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { THREADS = 96, WORDS = 1024 };

static _Alignas(64) uint32_t memory[WORDS];

static bool find(void *context, uint64_t address, sim_region *out_region) {
    (void)context;
    *out_region = (sim_region){.base = (uintptr_t)memory, .size = sizeof memory};
    return address - out_region->base < sizeof memory;
}

static amd_program *load(const char *name, const char *processor) {
    char path[128], why[512] = "";
    size_t size;
    snprintf(path, sizeof path, "tests/sim/programs/%s.hsaco", name);
    char *bytes = programs_read(path, &size);
    amd_program *program = amd_program_load(bytes, size, processor, why, sizeof why);
    free(bytes);
    if (!program) fail_msg("%s: %s", path, why);
    return program;
}

/* Launches THREADS threads in one group. */
static sim_report launch(const amd_program *program, const char *name, const void *arguments, uint32_t private_bytes) {
    const amd_kernel *kernel = amd_program_find(program, name);
    assert_non_null(kernel);
    const amd_launch launched = {.program = program,
                                 .kernel = kernel,
                                 .grid = {THREADS, 1, 1},
                                 .group = {THREADS, 1, 1},
                                 .group_bytes = kernel->group_bytes,
                                 .private_bytes = private_bytes,
                                 .kernarg = (uintptr_t)arguments,
                                 .find = find,
                                 .seed = 1,
                                 .budget = 1 << 20,
                                 .threads = 1};
    sim_counters counters = {0};
    sim_report report;
    amd_launch_run(&launched, &counters, &report);
    return report;
}

static void expect(sim_report report, sim_fault_kind kind, const char *says) {
    if (report.kind != kind || !strstr(report.text, says))
        fail_msg("expected \"%s\" with \"%s\", got \"%s\"", sim_fault_text(kind), says, report.text);
}

static void test_kernels_of_both_wave_sizes(void **state) {
    (void)state;
    amd_program *program = load("wave_sizes.gfx1100", "gfx1100");
    const uint64_t out = (uintptr_t)memory;
    expect(launch(program, "waves_32", &out, 0), SIM_FAULT_NONE, "");
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(memory[i], 32);
    expect(launch(program, "waves_64", &out, 0), SIM_FAULT_NONE, "");
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(memory[i], i < 64 ? 64 : 32);
    amd_program_free(program);
}

static void test_preloaded_arguments(void **state) {
    (void)state;
    enum { N = 70, ADD = 1000 };
    amd_program *program = load("preload.gfx942", "gfx942");
    const struct {
        uint64_t out, in;
        uint32_t n, add;
    } arguments = {(uintptr_t)memory, (uintptr_t)(memory + 512), N, ADD};
    for (uint32_t i = 0; i < THREADS; i++) {
        memory[i] = 7;
        memory[512 + i] = i * i;
    }
    expect(launch(program, "preloaded", &arguments, 0), SIM_FAULT_NONE, "");
    for (uint32_t i = 0; i < THREADS; i++)
        assert_int_equal(memory[i], i < N ? i * i + ADD : 7);
    amd_program_free(program);
}

/* A recursion that goes deeper than there is scratch, as each of the targets sets scratch up. */
static void test_scratch_overflow(void **state) {
    (void)state;
    static const char *const processors[] = {"gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201"};
    for (size_t i = 0; i < sizeof processors / sizeof *processors; i++) {
        char name[64];
        snprintf(name, sizeof name, "programs.%s-O0", processors[i]);
        amd_program *program = load(name, processors[i]);
        const uint64_t out[33] = {(uintptr_t)memory};
        uint32_t own = amd_program_find(program, "recursion")->private_bytes;
        expect(launch(program, "recursion", out, own - 1), SIM_FAULT_ILLEGAL, "private bytes");
        expect(launch(program, "recursion", out, own + 100), SIM_FAULT_STACK, "scratch of");
        amd_program_free(program);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_of_both_wave_sizes),
        cmocka_unit_test(test_preloaded_arguments),
        cmocka_unit_test(test_scratch_overflow),
    };
    if (!amdgcn_harness_ready()) return 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
