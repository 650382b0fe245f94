/* What clang makes of HIP where it is not plain: tests/sim/tests/programs/habits.cu. */
#include "tests/sim/amdgcn/wave/amd_launch.h"
#include "tests/sim/tests/amdgcn/amdgcn_harness.h"
#include "tests/sim/tests/amdgcn/amdgcn_object.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { SEEDS = 3, WORDS = 2048 };

static const char *const processors[] = {"gfx90a", "gfx942", "gfx1100"};
enum { PROCESSORS = sizeof processors / sizeof *processors };

static _Alignas(64) uint32_t in[WORDS], out[WORDS];

static bool find(void *context, uint64_t address, sim_region *out_region) {
    (void)context;
    *out_region = (sim_region){.base = (uintptr_t)in, .size = sizeof in};
    if (address - out_region->base < sizeof in) return true;
    *out_region = (sim_region){.base = (uintptr_t)out, .size = sizeof out};
    return address - out_region->base < sizeof out;
}

/* One group; what is hidden behind the arguments is not asked for. */
static sim_report run(const char *processor, const char *name, uint32_t items, uint32_t number, uint64_t seed) {
    char file[32];
    snprintf(file, sizeof file, "habits.%s", processor);
    amd_program *program = amdgcn_object_load(file, processor);
    const struct {
        uint64_t in, out;
        uint32_t number, padding;
        uint8_t hidden[256];
    } arguments = {(uintptr_t)in, (uintptr_t)out, number, 0, {0}};
    const amd_kernel *kernel = amd_program_find(program, name);
    assert_non_null(kernel);
    const amd_launch launched = {.program = program,
                                 .kernel = kernel,
                                 .grid = {items, 1, 1},
                                 .group = {items, 1, 1},
                                 .group_bytes = kernel->group_bytes,
                                 .private_bytes = kernel->private_bytes,
                                 .kernarg = (uintptr_t)&arguments,
                                 .find = find,
                                 .seed = seed,
                                 .budget = 1 << 20,
                                 .threads = 1};
    sim_counters counters = {0};
    sim_report report;
    amd_launch_run(&launched, &counters, &report);
    amd_program_free(program);
    return report;
}

static void run_right(const char *processor, const char *name, uint32_t items, uint32_t number, uint64_t seed) {
    const sim_report report = run(processor, name, items, number, seed);
    if (report.kind != SIM_FAULT_NONE) fail_msg("%s: %s", processor, report.text);
}

static void test_compare_and_swap_in_lds(void **state) {
    (void)state;
    enum { ITEMS = 256 };
    uint32_t product = 1;
    for (uint32_t i = 0; i < ITEMS; i++) {
        in[i] = i * 2 + 3;
        product *= in[i];
    }
    for (int i = 0; i < PROCESSORS * SEEDS; i++) {
        run_right(processors[i / SEEDS], "product", ITEMS, 0, (uint64_t)i);
        assert_int_equal(out[0], product);
    }
}

static void test_halves_of_a_constant(void **state) {
    (void)state;
    enum { ITEMS = 64 };
    for (uint32_t i = 0; i < ITEMS + 4; i++)
        in[i] = i * i / 3;
    for (int i = 0; i < PROCESSORS; i++) {
        run_right(processors[i], "brain", ITEMS, 0, 1);
        for (uint32_t j = 0; j < ITEMS * 4; j++)
            assert_int_equal(((const uint16_t *)out)[j], in[j / 4 + j % 4] & 1 ? 0x4000 : 0x3f80);
    }
}

static void test_traps(void **state) {
    (void)state;
    enum { ITEMS = 96, DIVISOR = 7 };
    for (uint32_t i = 0; i < ITEMS; i++)
        in[i] = i * 0x01234567;
    for (int i = 0; i < PROCESSORS; i++) {
        run_right(processors[i], "checked", ITEMS, DIVISOR, 1);
        for (uint32_t j = 0; j < ITEMS; j++)
            assert_int_equal(out[j], in[j] / DIVISOR);
        assert_int_equal(run(processors[i], "checked", ITEMS, 0, 1).kind, SIM_FAULT_TRAP);
    }
}

static void test_more_work_items_than_a_kernel_is_made_for(void **state) {
    (void)state;
    for (int i = 0; i < PROCESSORS; i++) {
        run_right(processors[i], "bounded", 64, 0, 1);
        const sim_report report = run(processors[i], "bounded", 96, 0, 1);
        assert_int_equal(report.kind, SIM_FAULT_ILLEGAL);
        assert_non_null(strstr(report.text, "a group of 96 work-items, .max_flat_workgroup_size is 64"));
    }
}

/* Behind the loop come accesses to the product that LLVM 19 puts too close, counted in instructions. */
static void test_stages_in_lds(void **state) {
    (void)state;
    enum { N = 32, DEPTH = 16 };
    const double *a = (const double *)(const void *)in, *b = a + N * DEPTH;
    const double *d = (const double *)(const void *)out;
    for (int i = 0; i < 2 * N * DEPTH; i++)
        ((double *)(void *)in)[i] = i * 7 % 32 - 16;
    for (int p = 0; p < 2 * SEEDS; p++) {
        memset(out, 0xff, sizeof out);
        run_right(processors[p / SEEDS], "stages", 256, DEPTH, (uint64_t)p);
        for (int i = 0; i < N * N; i++) {
            double sum = 0;
            for (int k = 0; k < DEPTH; k++)
                sum += a[i / N * DEPTH + k] * b[i % N * DEPTH + k];
            assert_true(d[i] == sum);
        }
    }
}

static void test_matrices_over_their_operands(void **state) {
    (void)state;
    enum { N = 16, K = 4, LANES = 64 };
    double *a = (double *)(void *)in, *b = a + LANES;
    const double *d = (const double *)(const void *)out;
    for (int i = 0; i < 2 * LANES; i++)
        a[i] = i * 7 % 32 - 16;
    for (int p = 0; p < 2; p++) {
        memset(out, 0xff, sizeof out);
        run_right(processors[p], "tile", LANES, 0, 1);
        for (int row = 0; row < N; row++) {
            for (int column = 0; column < N; column++) {
                double sum = 0;
                for (int k = 0; k < K; k++)
                    sum += a[k * N + row] * b[k * N + column];
                assert_true(d[(row % 4 * N + column) * 4 + row / 4] == sum);
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_compare_and_swap_in_lds),
        cmocka_unit_test(test_halves_of_a_constant),
        cmocka_unit_test(test_traps),
        cmocka_unit_test(test_more_work_items_than_a_kernel_is_made_for),
        cmocka_unit_test(test_stages_in_lds),
        cmocka_unit_test(test_matrices_over_their_operands),
    };
    if (!amdgcn_harness_ready()) return 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
