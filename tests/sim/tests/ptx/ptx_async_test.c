/* cp.async: what arrives, for each size, source size and predicate. What must not be touched meanwhile is in
 * ptx_checks_test.c. */
#include "tests/sim/tests/ptx/ptx_harness.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { COUNT = 1 << 12 };

static uint64_t seed;
static uint64_t source[COUNT];
static uint32_t control[COUNT];

/* Lanes copy slots of so many bytes, of which their element is the first or second half, or has two slots. */
static void copy_slots(uint32_t size, const char *form, uint64_t *results) {
    char code[1024];
    harness_case test = {
        .target = "sm_80", .version = "7.8", .code = code, .result_bits = 64, .source_bits = {64, 32}, .seed = seed};
    snprintf(code, sizeof code,
             ".shared .align 16 .b8 s[256];\nld.param.u64 %%x0, [pa];\nmul.wide.u32 %%x1, %%i, 8;\n"
             "add.u64 %%x0, %%x0, %%x1;\nmov.u32 %%t0, s;\nmad.lo.u32 %%t0, %%j, 8, %%t0;\n"
             "setp.ne.u32 %%p, %%b, 0;\nand.b32 %%t1, %%j, 1;\nsetp.eq.u32 %%q, %%t1, 0;\n%s%s%s"
             "cp.async.commit_group;\ncp.async.wait_group 0;\nbar.warp.sync -1;\nld.shared.b64 %%d, [%%t0];",
             size == 16 ? "@%q " : "", form, size == 4 ? "cp.async.ca.shared.global [%t0+4], [%x0+4], 4;\n" : "");
    const void *sources[HARNESS_SOURCES] = {source, control};
    harness_run(&test, COUNT, results, sources);
}

static void prepare(uint64_t most) {
    uint64_t state = seed;
    for (size_t i = 0; i < COUNT; i++) {
        source[i] = sim_random(&state);
        control[i] = (uint32_t)(sim_random(&state) % (most + 1));
    }
}

/* The bytes of a slot behind the first present ones are zero. */
static uint64_t expected(uint32_t size, size_t i, bool sized, bool ignores) {
    size_t first = size == 16 ? i & ~(size_t)1 : i;
    uint32_t present = sized ? control[first] : ignores && control[first] ? 0 : size;
    uint8_t slot[16];
    memcpy(slot, &source[first], size == 16 ? 16 : 8);
    memset(slot + present, 0, size - present);
    uint64_t value;
    memcpy(&value, slot + 8 * (i - first), 8);
    return value;
}

static void bytes_arrive_and_the_rest_is_zero(void **state) {
    (void)state;
    static const struct {
        uint32_t size;
        bool sized, ignores;
        const char *form;
    } rows[] = {
        {4, false, false, "cp.async.ca.shared.global [%t0], [%x0], 4;\n"},
        {8, false, false, "cp.async.ca.shared::cta.global.L2::64B [%t0], [%x0], 8;\n"},
        {16, false, false, "cp.async.ca.shared.global [%t0], [%x0], 16;\n"},
        {16, false, false, "cp.async.cg.shared.global.L2::256B [%t0], [%x0], 16;\n"},
        {16, false, false, "cp.async.cg.shared.global.L2::cache_hint [%t0], [%x0], 16, %x1;\n"},
        {4, true, false, "cp.async.ca.shared.global [%t0], [%x0], 4, %b;\n"},
        {8, true, false, "cp.async.ca.shared.global [%t0], [%x0], 8, %b;\n"},
        {16, true, false, "cp.async.cg.shared.global [%t0], [%x0], 16, %b;\n"},
        {16, true, false, "cp.async.cg.shared.global.L2::cache_hint [%t0], [%x0], 16, %b, %x1;\n"},
        {4, false, true, "cp.async.ca.shared.global [%t0], [%x0], 4, %p;\n"},
        {8, false, true, "cp.async.ca.shared.global [%t0], [%x0], 8, %p;\n"},
        {16, false, true, "cp.async.cg.shared.global.L2::128B.L2::cache_hint [%t0], [%x0], 16, %p, %x1;\n"},
        {16, false, true, "not.pred %p, %p;\n@%q cp.async.cg.shared.global [%t0], [%x0], 16, !%p;\n"},
    };
    static uint64_t results[COUNT];
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        prepare(rows[r].ignores ? 1 : rows[r].size);
        copy_slots(rows[r].size, rows[r].form, results);
        for (size_t i = 0; i < COUNT; i++) {
            uint64_t wanted = expected(rows[r].size, i, rows[r].sized, rows[r].ignores);
            if (results[i] != wanted)
                fail_msg("%sof 0x%llx, control %u: 0x%llx, must be 0x%llx", rows[r].form, (unsigned long long)source[i],
                         control[i], (unsigned long long)results[i], (unsigned long long)wanted);
        }
    }
}

/* A ring of three stages, two of them in flight, as matrix kernels have it. */
static void stages_arrive_in_their_turn(void **state) {
    (void)state;
    static uint64_t results[COUNT];
    static const char code[] =
        ".shared .align 16 .b8 s[768];\nld.param.u64 %x0, [pa];\nand.b32 %t5, %i, 1023;\nmul.wide.u32 %x1, %t5, 8;\n"
        "add.u64 %x0, %x0, %x1;\nmov.u32 %t0, s;\nmad.lo.u32 %t0, %j, 8, %t0;\nmov.u64 %d, 0;\nmov.u32 %t3, 0;\n"
        "cp.async.ca.shared.global [%t0], [%x0], 8;\ncp.async.commit_group;\n"
        "cp.async.ca.shared.global [%t0+256], [%x0+256], 8;\ncp.async.commit_group;\n"
        "AGAIN:\nadd.u32 %t2, %t3, 2;\nrem.u32 %t4, %t2, 3;\nmad.lo.u32 %t4, %t4, 256, %t0;\n"
        "mad.wide.u32 %x2, %t2, 256, %x0;\nsetp.lt.u32 %p, %t2, 16;\n"
        "@%p cp.async.ca.shared.global [%t4], [%x2], 8;\ncp.async.commit_group;\ncp.async.wait_group 2;\n"
        "rem.u32 %t4, %t3, 3;\nmad.lo.u32 %t4, %t4, 256, %t0;\nld.shared.b64 %x3, [%t4];\n"
        "mul.lo.u64 %d, %d, 31;\nadd.u64 %d, %d, %x3;\nadd.u32 %t3, %t3, 1;\nsetp.lt.u32 %p, %t3, 16;\n@%p bra AGAIN;";
    harness_case test = {
        .target = "sm_80", .version = "7.0", .code = code, .result_bits = 64, .source_bits = {64}, .seed = seed};
    const void *sources[HARNESS_SOURCES] = {source};
    prepare(0);
    harness_run(&test, COUNT, results, sources);
    for (size_t i = 0; i < COUNT; i++) {
        uint64_t wanted = 0;
        for (size_t row = 0; row < 16; row++)
            wanted = wanted * 31 + source[i % 1024 + row * 32];
        if (results[i] != wanted)
            fail_msg("element %zu is 0x%llx, must be 0x%llx", i, (unsigned long long)results[i],
                     (unsigned long long)wanted);
    }
}

int main(void) {
    seed = harness_seed();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_arrive_and_the_rest_is_zero),
        cmocka_unit_test(stages_arrive_in_their_turn),
    };
    return cmocka_run_group_tests_name("ptx_async", tests, NULL, NULL);
}
