#include "tests/sim/tests/ptx/ptx_harness.h"
#include "tests/sim/ptx/warp/ptx_warp.h"
#include "tests/sim/tests/ptx/ptx_device.h"
#include "tests/sim/tests/ptx/ptx_record.h"
#include "tests/sim/tests/ptx/ptx_verdict.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static const char names[] = "abce";

/* The text: a warp a block, whose lanes each load their operands and store their result. */
static size_t write_text(const harness_case *test, char *text, size_t size) {
    size_t length = 0;
#define WRITE(...) length += (size_t)snprintf(text + length, size - length, __VA_ARGS__)
    WRITE(".version %s\n.target %s\n.address_size 64\n", test->version ? test->version : "9.0",
          test->target ? test->target : "sm_90");
    WRITE(
        ".visible .entry kernel(.param .u64 pd, .param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pe)\n{\n");
    WRITE(".reg .pred %%p, %%q;\n.reg .b32 %%t<8>, %%i, %%j;\n.reg .b64 %%x<8>, %%at, %%by;\n");
    WRITE(".reg .b%u %%d;\n", test->result_bits);
    WRITE("mov.u32 %%i, %%ctaid.x;\nmov.u32 %%j, %%tid.x;\nmad.lo.s32 %%i, %%i, 32, %%j;\n");
    for (int s = 0; s < HARNESS_SOURCES && test->source_bits[s]; s++) {
        uint32_t bits = test->source_bits[s];
        WRITE(".reg .b%u %%%c;\nld.param.u64 %%at, [p%c];\nmul.wide.u32 %%by, %%i, %u;\n", bits, names[s], names[s],
              bits / 8);
        WRITE("add.s64 %%at, %%at, %%by;\nld.global.b%u %%%c, [%%at];\n", bits, names[s]);
    }
    WRITE("%s\nld.param.u64 %%at, [pd];\nmul.wide.u32 %%by, %%i, %u;\n", test->code, test->result_bits / 8);
    WRITE("add.s64 %%at, %%at, %%by;\nst.global.b%u [%%at], %%d;\nret;\n}\n", test->result_bits);
#undef WRITE
    assert_true(length < size);
    return length;
}

enum { TEXT_SIZE = 16384, WHY_SIZE = 512 };

static ptx_program *load(const harness_case *test, char *why) {
    static char text[TEXT_SIZE];
    size_t length = write_text(test, text, sizeof text);
    int32_t capability = (int32_t)strtol((test->target ? test->target : "sm_90") + 3, NULL, 10);
    return ptx_program_load(text, length, capability, why, WHY_SIZE);
}

/* The arrays that the kernel may touch. */
typedef struct arrays {
    uint8_t *memory[HARNESS_SOURCES + 1];
    size_t size[HARNESS_SOURCES + 1];
} arrays;

static bool find(void *context, uint64_t address, sim_region *out_region) {
    const arrays *all = context;
    for (int i = 0; i <= HARNESS_SOURCES; i++) {
        uint64_t base = (uintptr_t)all->memory[i];
        if (!all->memory[i] || address - base >= all->size[i]) continue;
        *out_region = (sim_region){.base = base, .size = all->size[i]};
        return true;
    }
    return false;
}

static uint8_t *copy(const void *from, size_t used, size_t size) {
    uint8_t *memory = aligned_alloc(64, (size + 63) / 64 * 64);
    assert_non_null(memory);
    memset(memory, 0xb5, size);
    if (from) memcpy(memory, from, used);
    return memory;
}

/* ---- Running ---- */

static arrays arrays_new(const harness_case *test, size_t count, const void *const sources[HARNESS_SOURCES]) {
    arrays all = {0};
    size_t padded = (count + 31) / 32 * 32;
    for (int i = 0; i <= HARNESS_SOURCES; i++) {
        size_t bytes = (i == 0 ? test->result_bits : test->source_bits[i - 1]) / 8;
        if (!bytes) continue;
        all.size[i] = padded * bytes;
        all.memory[i] = copy(i == 0 ? NULL : sources[i - 1], count * bytes, all.size[i]);
    }
    return all;
}

static void arrays_free(arrays *all) {
    for (int i = 0; i <= HARNESS_SOURCES; i++)
        free(all->memory[i]);
}

static uint32_t blocks_of(const harness_case *test, const arrays *all) {
    return (uint32_t)(all->size[0] * 8 / test->result_bits / 32);
}

static void simulate(const harness_case *test, ptx_program *program, arrays *all) {
    uint64_t parameters[HARNESS_SOURCES + 1];
    for (int i = 0; i <= HARNESS_SOURCES; i++)
        parameters[i] = (uintptr_t)all->memory[i];
    ptx_launch launch = {.program = program,
                         .code = ptx_program_find(program, "kernel"),
                         .grid = {blocks_of(test, all), 1, 1},
                         .block = {32, 1, 1},
                         .parameters = (const uint8_t *)parameters,
                         .find = find,
                         .find_context = all,
                         .seed = test->seed,
                         .budget = 1 << 20,
                         .threads = 1};
    assert_non_null(launch.code);
    sim_counters counters = {0};
    sim_report report;
    if (!ptx_launch_run(&launch, &counters, &report)) fail_msg("%s: %s", test->code, report.text);
}

/* ---- Comparing with a device ---- */

static verdict judge(const harness_case *test, size_t i, const uint8_t *wanted, const uint8_t *got) {
    if (memcmp(wanted, got, test->result_bits / 8) == 0) return VERDICT_EQUAL;
    if (verdict_same_but_nan(test->code, test->result_bits, wanted, got)) return VERDICT_NAN;
    return test->allows && test->allows(test->context, i, got) ? VERDICT_WITHIN : VERDICT_DIFFERENT;
}

static uint64_t element(const uint8_t *array, size_t i, uint32_t bits) {
    uint64_t value = 0;
    if (array) memcpy(&value, array + i * bits / 8, bits / 8);
    return value;
}

static void print_difference(const harness_case *test, size_t i, const arrays *wanted, const arrays *got) {
    printf("# different: %s: element %zu", verdict_line(test->code), i);
    for (int s = 0; s < HARNESS_SOURCES && test->source_bits[s]; s++)
        printf(", %c 0x%llx", names[s], (unsigned long long)element(wanted->memory[s + 1], i, test->source_bits[s]));
    printf(": the device's 0x%llx, simulated 0x%llx\n",
           (unsigned long long)element(got->memory[0], i, test->result_bits),
           (unsigned long long)element(wanted->memory[0], i, test->result_bits));
}

static void judge_all(const harness_case *test, size_t count, const arrays *wanted, const arrays *got) {
    enum { PRINTED = 4 };
    uint64_t counts[VERDICTS] = {0};
    for (size_t i = 0; i < count; i++) {
        size_t at = i * test->result_bits / 8;
        verdict which = judge(test, i, wanted->memory[0] + at, got->memory[0] + at);
        if (counts[which]++ < PRINTED && which == VERDICT_DIFFERENT) print_difference(test, i, wanted, got);
    }
    for (int v = 0; v < VERDICTS; v++)
        verdict_count(test->named ? test->named : test->code, (verdict)v, counts[v]);
}

/* Records what the device made of a text. */
static void keep(const harness_case *test, const char *kernel, size_t count, const void *const sources[HARNESS_SOURCES],
                 const device_array *after) {
    arrays before = arrays_new(test, count, sources);
    record_kernel record = {.text = kernel,
                            .code = test->code,
                            .blocks = blocks_of(test, &before),
                            .threads = 32,
                            .result_bits = test->result_bits,
                            .count = HARNESS_SOURCES + 1};
    for (int i = 0; i <= HARNESS_SOURCES; i++) {
        record.before[i] = (device_array){before.memory[i], before.size[i]};
        record.after[i] = after[i];
    }
    record_write(&record);
    arrays_free(&before);
}

/* The same text, for the device's target, on the interpreter and on the device. */
static void compare(const harness_case *test, size_t count, const void *const sources[HARNESS_SOURCES]) {
    static char text[TEXT_SIZE];
    char why[WHY_SIZE] = "";
    harness_case here = *test;
    here.target = device_target_for(test->target);
    here.version = device_version();
    const char *named = test->named ? test->named : test->code;
    ptx_program *program = load(&here, why);
    if (!program) {
        verdict_on_kernel(named, VERDICT_ABSENT, why);
        return;
    }
    arrays wanted = arrays_new(test, count, sources), got = arrays_new(test, count, sources);
    device_array passed[HARNESS_SOURCES + 1];
    for (int i = 0; i <= HARNESS_SOURCES; i++)
        passed[i] = (device_array){got.memory[i], got.size[i]};
    simulate(&here, program, &wanted);
    write_text(&here, text, sizeof text);
    if (device_run(text, blocks_of(&here, &got), 32, passed, HARNESS_SOURCES + 1, why, sizeof why)) {
        keep(&here, text, count, sources, passed);
        judge_all(&here, count, &wanted, &got);
    } else {
        verdict_on_kernel(named, VERDICT_FAILED, why);
    }
    arrays_free(&wanted);
    arrays_free(&got);
    ptx_program_free(program);
}

void harness_run(const harness_case *test, size_t count, void *d, const void *const sources[HARNESS_SOURCES]) {
    char why[WHY_SIZE] = "";
    ptx_program *program = load(test, why);
    if (!program) fail_msg("%s: %s", test->code, why);
    arrays all = arrays_new(test, count, sources);
    simulate(test, program, &all);
    memcpy(d, all.memory[0], count * test->result_bits / 8);
    arrays_free(&all);
    ptx_program_free(program);
    if (!test->open && device_present()) compare(test, count, sources);
}

const char *harness_refusal(const harness_case *test) {
    static char why[WHY_SIZE];
    ptx_program *program = load(test, why);
    if (program) {
        ptx_program_free(program);
        fail_msg("%s is not refused", test->code);
    }
    return why;
}

uint64_t harness_seed(void) {
    const char *text = getenv("KILN_TEST_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 0) : (uint64_t)time(NULL);
    print_message("# seed %llu (KILN_TEST_SEED sets it)\n", (unsigned long long)seed);
    return seed;
}
