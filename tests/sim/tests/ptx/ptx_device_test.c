/* The comparison of single instructions with a device: a simulated driver is the device, under another seed, and each
 * kind of verdict is brought about. */
#include "tests/sim/core/sim_client.h"
#include "tests/sim/tests/ptx/ptx_device.h"
#include "tests/sim/tests/ptx/ptx_harness.h"
#include "tests/sim/tests/ptx/ptx_mma_harness.h"
#include "tests/sim/tests/ptx/ptx_verdict.h"
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { COUNT = 1024 };

static uint32_t operands[COUNT], results[COUNT];

/* How many verdicts of a kind the last case brought. */
static uint64_t before[VERDICTS];

static uint64_t brought(verdict which) {
    return verdict_total(which) - before[which];
}

static void run(const harness_case *test) {
    for (int v = 0; v < VERDICTS; v++)
        before[v] = verdict_total((verdict)v);
    harness_run(test, COUNT, results, (const void *[HARNESS_SOURCES]){operands});
}

/* Runs first: main has the driver refuse the first kernel. */
static void a_refused_kernel_is_told(void **state) {
    (void)state;
    const harness_case test = {.code = "add.u32 %d, %a, 1;", .result_bits = 32, .source_bits = {32}};
    run(&test);
    assert_int_equal(brought(VERDICT_FAILED), 1);
    run(&test);
    assert_int_equal(brought(VERDICT_FAILED), 0);
    assert_int_equal(brought(VERDICT_EQUAL), COUNT);
}

/* Which multiprocessor has a block is the seed's choice, and the driver has another one. */
#define PLANTED "mov.u32 %t0, %smid;\nadd.u32 %d, %a, %t0;"

static void a_planted_difference_is_found(void **state) {
    (void)state;
    const harness_case test = {.code = PLANTED, .result_bits = 32, .source_bits = {32}};
    run(&test);
    assert_in_range(brought(VERDICT_DIFFERENT), COUNT / 2, COUNT);
    assert_int_equal(brought(VERDICT_DIFFERENT) + brought(VERDICT_EQUAL), COUNT);
    const harness_case open = {.code = PLANTED, .result_bits = 32, .source_bits = {32}, .open = true};
    run(&open);
    for (int v = 0; v < VERDICTS; v++)
        assert_int_equal(brought((verdict)v), 0);
}

/* The even elements may be anything. */
static bool allows_even(const void *context, size_t i, const void *result) {
    (void)result;
    assert_ptr_equal(context, operands);
    return i % 2 == 0;
}

static void what_a_test_allows_is_within(void **state) {
    (void)state;
    const harness_case test = {
        .code = PLANTED, .result_bits = 32, .source_bits = {32}, .allows = allows_even, .context = operands};
    run(&test);
    assert_true(brought(VERDICT_WITHIN) > 0);
    assert_int_equal(brought(VERDICT_WITHIN), brought(VERDICT_DIFFERENT));
}

static void what_the_device_has_not_is_not_run(void **state) {
    (void)state;
    const harness_case test = {
        .target = "sm_100", .code = "max.f32 %d, %a, %a, %a;", .result_bits = 32, .source_bits = {32}};
    run(&test);
    assert_int_equal(brought(VERDICT_ABSENT), 1);
    assert_int_equal(brought(VERDICT_EQUAL), 0);
    assert_string_equal(device_target_for("sm_80"), "sm_90");
    assert_string_equal(device_target_for("sm_90a"), "sm_90a");
    assert_string_equal(device_target_for("sm_100a"), "sm_90");
}

static void only_bits_of_nans_may_differ(void **state) {
    (void)state;
    static const struct {
        const char *code;
        uint32_t bits;
        uint64_t one, other;
        bool same;
    } rows[] = {
        {"add.f32 %d, %a, %b;", 32, 0x7fffffff, 0xffc00001, true},
        {"add.f32 %d, %a, %b;", 32, 0x7f800000, 0x7fc00000, false},
        {"add.f32 %t0, %a, %b;\nadd.u32 %d, %t0, 0;", 32, 0x7fffffff, 0x7fc00000, false},
        {"@%p add.f64 %d, %a, %b;", 64, 0x7ff8000000000000, 0x7ff8000000000001, true},
        {"fma.rn.f16x2 %d, %a, %b, %c;", 32, 0x7fff3c00, 0x7e003c00, true},
        {"fma.rn.f16x2 %d, %a, %b, %c;", 32, 0x7fff3c00, 0x7e003c01, false},
        {"add.bf16 %d, %a, %b;", 16, 0x7fff, 0x7fc0, true},
        {"cvt.rn.satfinite.e4m3x2.f16x2 %d, %a;", 16, 0x7fff, 0x7f7f, false},
        {"set.lt.u32.f32 %d, %a, %b;", 32, 0xffffffff, 0x7fffffff, false},
        {"set.lt.f32.f32 %d, %a, %b;", 32, 0xffffffff, 0x7fffffff, true},
        {"mov.b32 %d, %a;", 32, 0x7fffffff, 0x7fc00000, false},
        {"abs.ftz.f16 %h0, %h1;\nmov.b32 %d, {%h0, %h1};", 32, 0x7fff3c00, 0x7e003c00, true},
        {"st.global.b64 [%x0], %a;\natom.global.add.f64 %x1, [%x0], %b;\nld.global.b64 %d, [%x0];", 64, ~0ull,
         0x7ff8000000000000, true},
        {"add.f32 %t0, %a, %b;\nand.b32 %t1, %t0, 1;\nmov.b32 %d, %t1;", 32, 0x7fffffff, 0x7fc00000, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (verdict_same_but_nan(rows[i].code, rows[i].bits, &rows[i].one, &rows[i].other) != rows[i].same)
            fail_msg("%s: 0x%llx and 0x%llx", rows[i].code, (unsigned long long)rows[i].one,
                     (unsigned long long)rows[i].other);
}

/* The driver adds by truncating (main says so): an element by element that sums to 1 + 2^-23 exactly comes out as 1. */
static void check_sum(const mma_form *f) {
    static mma_operands in;
    static uint64_t d[1][MMA_RESULTS];
    if (!strstr(f->name, "m16n8k16.row.col%s.f32.f16.f16.f32")) return;
    for (uint32_t i = 0; i < f->m * f->k; i++)
        in.a[i] = i % f->k ? 0 : 0x0e00; /* 1.5 * 2^-12 */
    for (uint32_t i = 0; i < f->k * f->n; i++)
        in.b[i] = 0x0c00; /* 2^-12 */
    for (uint32_t i = 0; i < f->m * f->n; i++)
        in.c[i] = 0x3f800000;
    for (int v = 0; v < VERDICTS; v++)
        before[v] = verdict_total((verdict)v);
    mma_run(f, NULL, "", SIM_SUM_EXACT, &in, d, 1);
    assert_int_equal(d[0][0], 0x3f800001);
    assert_int_equal(brought(VERDICT_EQUAL), f->m * f->n);
}

static void sums_are_matched_with_a_way_of_adding(void **state) {
    (void)state;
    mma_each_form(check_sum);
}

int main(void) {
    char folder[PATH_MAX + 16], path[PATH_MAX + 32];
    sim_client_folder(folder);
    snprintf(path, sizeof path, "%s/libcuda.so.1", folder);
    setenv("KILN_TEST_REAL_CUDA", path, 1);
    unsetenv("KILN_TEST_REAL_DEVICE");
    setenv("KILN_SIM_DEVICES", "sm_90", 1);
    setenv("KILN_SIM_SEED", "12345", 1);
    setenv("KILN_SIM_MATRIX", "truncating", 1);
    setenv("KILN_SIM_FAULT", "cuModuleLoadDataEx,1,218", 1);
    for (uint32_t i = 0; i < COUNT; i++)
        operands[i] = i;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refused_kernel_is_told),     cmocka_unit_test(a_planted_difference_is_found),
        cmocka_unit_test(what_a_test_allows_is_within), cmocka_unit_test(what_the_device_has_not_is_not_run),
        cmocka_unit_test(only_bits_of_nans_may_differ), cmocka_unit_test(sums_are_matched_with_a_way_of_adding),
    };
    return cmocka_run_group_tests_name("ptx_device", tests, NULL, NULL);
}
