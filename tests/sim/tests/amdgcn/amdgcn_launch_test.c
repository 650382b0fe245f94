/* How a kernel starts: its wave size, its arguments in registers, its scratch. */
#include "tests/sim/amdgcn/wave/amd_launch.h"
#include "tests/sim/tests/amdgcn/amdgcn_harness.h"
#include "tests/sim/tests/amdgcn/amdgcn_object.h"
#include "tests/sim/tests/common/programs_host.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { THREADS = 96, WORDS = 8192 };

static _Alignas(64) uint32_t memory[WORDS];

static bool find(void *context, uint64_t address, sim_region *out_region) {
    (void)context;
    *out_region = (sim_region){.base = (uintptr_t)memory, .size = sizeof memory};
    return address - out_region->base < sizeof memory;
}

/* Launches one group, and counts. */
static sim_report launch_counted(const amd_program *program, const amd_kernel *kernel, uint32_t items,
                                 const void *arguments, uint32_t private_bytes, sim_counters *counters) {
    const amd_launch launched = {.program = program,
                                 .kernel = kernel,
                                 .grid = {items, 1, 1},
                                 .group = {items, 1, 1},
                                 .group_bytes = kernel->group_bytes,
                                 .private_bytes = private_bytes,
                                 .kernarg = (uintptr_t)arguments,
                                 .find = find,
                                 .seed = 1,
                                 .budget = 1 << 20,
                                 .threads = 1};
    sim_report report;
    *counters = (sim_counters){0};
    amd_launch_run(&launched, counters, &report);
    return report;
}

static sim_report launch_kernel(const amd_program *program, const amd_kernel *kernel, uint32_t items,
                                const void *arguments, uint32_t private_bytes) {
    sim_counters counters;
    return launch_counted(program, kernel, items, arguments, private_bytes, &counters);
}

static sim_report launch(const amd_program *program, const char *name, const void *arguments, uint32_t private_bytes) {
    const amd_kernel *kernel = amd_program_find(program, name);
    assert_non_null(kernel);
    return launch_kernel(program, kernel, THREADS, arguments, private_bytes);
}

static void expect(sim_report report, sim_fault_kind kind, const char *says) {
    if (report.kind != kind || !strstr(report.text, says))
        fail_msg("expected \"%s\" with \"%s\", got \"%s\"", sim_fault_text(kind), says, report.text);
}

static void test_kernels_of_both_wave_sizes(void **state) {
    (void)state;
    amd_program *program = amdgcn_object_load("wave_sizes.gfx1100", "gfx1100");
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
    amd_program *program = amdgcn_object_load("preload.gfx942", "gfx942");
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

/* ---- Grids that are no multiple of the group ---- */

/* The columns and rows of a grid, and of a group; what of its edges' groups is left is not a multiple of a wave. */
enum { COLUMNS = 75, ROWS = 13, WIDE = 32, HIGH = 4, VALUES = 5 };

/* The dispatch packet as HSA has it, and the kernel's arguments with those that HIP hides behind them. */
typedef struct dispatch {
    struct {
        uint16_t header, setup, group[3], reserved;
        uint32_t grid[3], private_bytes, group_bytes;
        uint64_t rest[4];
    } packet;
    _Alignas(16) struct {
        uint64_t out;
        uint32_t columns, padding;
        uint32_t blocks[3];
        uint16_t group[3], remainder[3];
        uint8_t rest[232];
    } arguments;
} dispatch;

static sim_report launch_sizes(const amd_program *program, dispatch *at) {
    const amd_kernel *kernel = amd_program_find(program, "sizes");
    const amd_launch launched = {.program = program,
                                 .kernel = kernel,
                                 .grid = {COLUMNS, ROWS, 1},
                                 .group = {WIDE, HIGH, 1},
                                 .group_bytes = kernel->group_bytes,
                                 .kernarg = (uintptr_t)&at->arguments,
                                 .dispatch_packet = (uintptr_t)&at->packet,
                                 .find = find,
                                 .seed = 1,
                                 .budget = 1 << 20,
                                 .threads = 2};
    sim_counters counters = {0};
    sim_report report;
    *at = (dispatch){.packet = {.setup = 2, .group = {WIDE, HIGH, 1}, .grid = {COLUMNS, ROWS, 1}},
                     .arguments = {.out = (uintptr_t)memory,
                                   .columns = COLUMNS,
                                   .blocks = {COLUMNS / WIDE, ROWS / HIGH, 1},
                                   .group = {WIDE, HIGH, 1},
                                   .remainder = {COLUMNS % WIDE, ROWS % HIGH}}};
    amd_launch_run(&launched, &counters, &report);
    return report;
}

static void test_partial_groups(void **state) {
    (void)state;
    static const char *const names[] = {"partial.gfx942-4", "partial.gfx942-5", "partial.gfx1100-5"};
    dispatch *at = (dispatch *)(void *)(memory + WORDS) - 1;
    assert_true((uint8_t *)at >= (uint8_t *)(memory + COLUMNS * ROWS * VALUES));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        amd_program *program = amdgcn_object_load(names[i], strstr(names[i], "gfx942") ? "gfx942" : "gfx1100");
        memset(memory, 0xff, sizeof memory);
        expect(launch_sizes(program, at), SIM_FAULT_NONE, "");
        for (uint32_t row = 0; row < ROWS; row++) {
            for (uint32_t column = 0; column < COLUMNS; column++) {
                const uint32_t wide = column / WIDE < COLUMNS / WIDE ? WIDE : COLUMNS % WIDE;
                const uint32_t high = row / HIGH < ROWS / HIGH ? HIGH : ROWS % HIGH;
                const uint32_t expected[VALUES] = {wide, high, column % WIDE, row % HIGH, wide * high};
                assert_memory_equal(memory + (row * COLUMNS + column) * VALUES, expected, sizeof expected);
            }
        }
        amd_program_free(program);
    }
}

static void test_partial_groups_of_a_kernel_for_whole_ones(void **state) {
    (void)state;
    amd_program *program = amdgcn_object_load("partial.gfx1100-5-whole", "gfx1100");
    expect(launch_sizes(program, (dispatch *)(void *)memory), SIM_FAULT_ILLEGAL,
           "grid size 75 is no multiple of the group size 32");
    amd_program_free(program);
}

static void test_more_scratch_than_there_can_be(void **state) {
    (void)state;
    static const struct {
        const char *processor;
        uint32_t most;
    } rows[] = {{"gfx942", 131056}, {"gfx1030", 262112}, {"gfx1100", 262136}, {"gfx1201", 2097144}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char name[64];
        snprintf(name, sizeof name, "programs.%s-O0", rows[i].processor);
        amd_program *program = amdgcn_object_load(name, rows[i].processor);
        const uint64_t out[33] = {(uintptr_t)memory};
        expect(launch(program, "recursion", out, rows[i].most + 1), SIM_FAULT_ILLEGAL, "private bytes, there can be");
        if (i == 0) expect(launch(program, "recursion", out, rows[i].most), SIM_FAULT_NONE, "");
        amd_program_free(program);
    }
}

/* A recursion that goes deeper than there is scratch, as each of the targets sets scratch up. */
static void test_scratch_overflow(void **state) {
    (void)state;
    static const char *const processors[] = {"gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201"};
    for (size_t i = 0; i < sizeof processors / sizeof *processors; i++) {
        char name[64];
        snprintf(name, sizeof name, "programs.%s-O0", processors[i]);
        amd_program *program = amdgcn_object_load(name, processors[i]);
        const uint64_t out[33] = {(uintptr_t)memory};
        uint32_t own = amd_program_find(program, "recursion")->private_bytes;
        expect(launch(program, "recursion", out, own - 1), SIM_FAULT_ILLEGAL, "private bytes");
        expect(launch(program, "recursion", out, own + 100), SIM_FAULT_STACK, "scratch of");
        amd_program_free(program);
    }
}

/* A SIMD of gfx9 has 256 registers of 64 lanes, with accumulators 512; from gfx10 on 1024 of 32, or 1536. A group's
 * waves share 4 SIMDs, from gfx10 on 2 unless the descriptor says that they share two compute units. */
static void test_groups_whose_registers_have_no_room(void **state) {
    (void)state;
    static const struct {
        const char *file, *processor;
        uint32_t items, most; /* registers that have room */
        uint32_t wgp;
    } rows[] = {{"programs.gfx90a-O3", "gfx90a", 1024, 128, 0},   {"programs.gfx942-O3", "gfx942", 1024, 128, 0},
                {"programs.gfx942-O3", "gfx942", 512, 256, 0},    {"programs.gfx1030-O3", "gfx1030", 1024, 64, 0},
                {"programs.gfx1030-O3", "gfx1030", 1024, 128, 1}, {"programs.gfx1030-O3", "gfx1030", 512, 128, 0},
                {"programs.gfx1100-O3", "gfx1100", 1024, 96, 0},  {"programs.gfx1100-O3", "gfx1100", 1024, 192, 1},
                {"programs.gfx1201-O3", "gfx1201", 1024, 96, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        amd_program *program = amdgcn_object_load(rows[i].file, rows[i].processor);
        amd_kernel kernel = *amd_program_find(program, "reduce");
        for (uint32_t more = 0; more < 2; more++) {
            kernel.rsrc1 = (kernel.rsrc1 & ~(63u | 1u << 29)) | (rows[i].most / 8 - 1 + more) | rows[i].wgp << 29;
            const sim_report report = launch_kernel(program, &kernel, rows[i].items, memory, kernel.private_bytes);
            if ((strstr(report.text, "has no room in a compute unit") != NULL) != (more == 1))
                fail_msg("%s, %u work-items, %u registers: %s", rows[i].processor, rows[i].items,
                         rows[i].most + 8 * more, report.text);
        }
        amd_program_free(program);
    }
}

/* A descriptor that gives fewer registers than the code uses. */
static void test_registers_beyond_the_descriptors(void **state) {
    (void)state;
    static const struct {
        const char *file, *processor;
        uint32_t keep; /* of compute_pgm_rsrc1 */
    } rows[] = {{"programs.gfx90a-O3", "gfx90a", ~63u},
                {"programs.gfx942-O3", "gfx942", ~63u},
                {"programs.gfx942-O3", "gfx942", ~(15u << 6)},
                {"programs.gfx1030-O3", "gfx1030", ~63u},
                {"programs.gfx1201-O3", "gfx1201", ~63u}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char path[128], why[512] = "";
        size_t size;
        amd_program *whole = amdgcn_object_load(rows[i].file, rows[i].processor);
        const amd_kernel kernel = *amd_program_find(whole, "multiply_matrices");
        amd_program_free(whole);
        snprintf(path, sizeof path, "tests/sim/tests/programs/%s.hsaco", rows[i].file);
        char *bytes = programs_read(path, &size), *rsrc1 = bytes + kernel.descriptor + 48;
        assert_memory_equal(rsrc1, &kernel.rsrc1, sizeof kernel.rsrc1); /* the file is laid out as the image is */
        const uint32_t less = kernel.rsrc1 & rows[i].keep;
        memcpy(rsrc1, &less, sizeof less);
        assert_null(amd_program_load(bytes, size, rows[i].processor, why, sizeof why));
        if (!strstr(why, "kernel multiply_matrices") || !strstr(why, "beyond the"))
            fail_msg("%s: refused with \"%s\"", path, why);
        free(bytes);
    }
}

/* The turns of a SIMD that two waves take on gfx9: 7 of the vector unit in each, where v_exp_f32 takes 4, or 9 of the
 * scalar one; waits none. */
static void test_turns_of_the_busiest_unit(void **state) {
    (void)state;
    static const char *const vector = "v_mov_b32 v1, 0\nv_exp_f32 v1, v1\ns_mov_b32 s1, 0\ns_waitcnt 0\ns_nop 0\n"
                                      "v_add_f32 v1, v1, v1\ns_mov_b32 s2, 0\nv_pk_mul_f16 v1, v1, v1\n";
    static const char *const scalar = "s_mov_b32 s1, 0\ns_add_u32 s1, s1, s1\ns_mov_b32 s2, s1\ns_mov_b32 s3, s1\n"
                                      "s_mov_b32 s4, s1\ns_mov_b32 s5, s1\ns_mov_b32 s6, s1\ns_mov_b32 s7, s1\n"
                                      "v_mov_b32 v1, s1\nv_rcp_f32 v1, v1\ns_mov_b32 s8, s1\n";
    const struct {
        const char *processor, *text;
        uint64_t turns;
    } cases[] = {{"gfx906", vector, 14}, {"gfx90a", scalar, 18}, {"gfx1100", vector, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        amd_program *program = amdgcn_load(cases[i].processor, true, cases[i].text);
        sim_counters counters;
        expect(launch_counted(program, program->kernels, 2 * AMD_LANES, NULL, 0, &counters), SIM_FAULT_NONE, "");
        assert_int_equal(counters.unit_turns, cases[i].turns);
        amd_program_free(program);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_turns_of_the_busiest_unit),
        cmocka_unit_test(test_kernels_of_both_wave_sizes),
        cmocka_unit_test(test_preloaded_arguments),
        cmocka_unit_test(test_more_scratch_than_there_can_be),
        cmocka_unit_test(test_partial_groups),
        cmocka_unit_test(test_partial_groups_of_a_kernel_for_whole_ones),
        cmocka_unit_test(test_scratch_overflow),
        cmocka_unit_test(test_groups_whose_registers_have_no_room),
        cmocka_unit_test(test_registers_beyond_the_descriptors),
    };
    if (!amdgcn_harness_ready()) return 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
