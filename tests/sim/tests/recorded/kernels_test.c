/* Single instructions that were recorded on a device (ptx_record.h), replayed on the interpreter: the files that are
 * named, as kernels_test.sh names them. A kind of instruction is equal if each of its results is: in
 * every bit, but for those of NaN, or as near as the ISA promises of approximations. */
#include "tests/sim/ptx/warp/ptx_warp.h"
#include "tests/sim/tests/ptx/ptx_record.h"
#include "tests/sim/tests/ptx/ptx_verdict.h"
#include "tests/sim/tests/recorded/truth.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char **paths;
static int path_count;

static bool find(void *context, uint64_t address, sim_region *out_region) {
    const record_kernel *kernel = context;
    for (uint32_t i = 0; i < kernel->count; i++) {
        uint64_t base = (uintptr_t)kernel->before[i].bytes;
        if (!base || address - base >= kernel->before[i].size) continue;
        *out_region = (sim_region){.base = base, .size = kernel->before[i].size};
        return true;
    }
    return false;
}

/* Runs it on what was before. why has what is wrong. */
static bool run(record_kernel *kernel, char *why, size_t size) {
    const char *target = strstr(kernel->text, ".target sm_");
    int32_t capability = target ? (int32_t)strtol(target + strlen(".target sm_"), NULL, 10) : 0;
    ptx_program *program = ptx_program_load(kernel->text, strlen(kernel->text), capability, why, size);
    if (!program) return false;
    uint64_t parameters[DEVICE_ARRAYS];
    for (uint32_t i = 0; i < kernel->count; i++)
        parameters[i] = (uintptr_t)kernel->before[i].bytes;
    ptx_launch launch = {.program = program,
                         .code = ptx_program_find(program, "kernel"),
                         .grid = {kernel->blocks, 1, 1},
                         .block = {kernel->threads, 1, 1},
                         .parameters = (const uint8_t *)parameters,
                         .find = find,
                         .find_context = kernel,
                         .budget = 1 << 20,
                         .threads = 1,
                         .sum_mode = capability == 90 ? SIM_SUM_HOPPER : SIM_SUM_EXACT};
    sim_counters counters = {0};
    sim_report report = {0};
    bool ok = launch.code && ptx_launch_run(&launch, &counters, &report);
    if (!ok) snprintf(why, size, "%s", report.text);
    ptx_program_free(program);
    return ok;
}

/* The approximate instruction of a code; "" if it has none. */
static const char *approximation_of(const char *code) {
    static char opcode[64];
    const char *at = strstr(code, ".approx");
    if (!at) at = strstr(code, ".full");
    while (at && at > code && !strchr(" \n;", at[-1]))
        at--;
    snprintf(opcode, sizeof opcode, "%.*s", at ? (int)strcspn(at, " ") : 0, at ? at : "");
    return opcode;
}

/* Whether an element of the results may differ so. */
static bool may_differ(const record_kernel *kernel, const uint8_t *operand, const uint8_t *wanted, const uint8_t *got) {
    truth_verdict found = {0};
    uint32_t bits = kernel->result_bits;
    if (!bits) return false;
    if (verdict_same_but_nan(kernel->code, bits, wanted, got)) return true;
    const char *opcode = approximation_of(kernel->code);
    if (*opcode) truth_compare_results(opcode, operand, wanted, got, bits / 8, &found);
    return *opcode && !*found.wrong;
}

static bool compare(const record_kernel *kernel, char *why, size_t size) {
    for (uint32_t i = 0; i < kernel->count; i++) {
        const uint8_t *wanted = kernel->after[i].bytes, *got = kernel->before[i].bytes;
        uint32_t bytes = i == 0 && kernel->result_bits ? kernel->result_bits / 8 : 4;
        for (size_t at = 0; wanted && at + bytes <= kernel->after[i].size; at += bytes) {
            const uint8_t *operand = kernel->before[1].bytes ? (const uint8_t *)kernel->before[1].bytes + at : NULL;
            if (memcmp(wanted + at, got + at, bytes) == 0) continue;
            if (i == 0 && operand && may_differ(kernel, operand, wanted + at, got + at)) continue;
            snprintf(why, size, "array %u, element %zu", (unsigned)i, at / bytes);
            return false;
        }
    }
    return true;
}

static void replay(const char *path) {
    FILE *file = fopen(path, "rb");
    record_kernel kernel;
    bool broken = false;
    if (!file) fail_msg("%s: cannot be read", path);
    while (record_read(file, &kernel, &broken)) {
        char why[2048] = "";
        bool equal = run(&kernel, why, sizeof why) && compare(&kernel, why, sizeof why);
        if (!equal) printf("# different: %s: %s\n", verdict_line(kernel.code), why);
        verdict_count(kernel.code, equal ? VERDICT_EQUAL : VERDICT_DIFFERENT, 1);
        record_free(&kernel);
    }
    fclose(file);
    if (broken) fail_msg("%s: is broken", path);
}

static void the_interpreter_does_as_was_recorded(void **state) {
    (void)state;
    if (!path_count) skip();
    for (int i = 0; i < path_count; i++)
        replay(paths[i]);
    uint64_t kinds = verdict_kinds(), different = verdict_kinds_with(VERDICT_DIFFERENT);
    printf("# recorded: %llu of %llu kinds equal\n", (unsigned long long)(kinds - different),
           (unsigned long long)kinds);
    assert_int_equal(different, 0);
}

int main(int argc, char **argv) {
    paths = argv + 1;
    path_count = argc - 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_interpreter_does_as_was_recorded)};
    return cmocka_run_group_tests_name("kernels", tests, NULL, NULL);
}
