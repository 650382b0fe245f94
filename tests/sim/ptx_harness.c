#include "tests/sim/ptx_harness.h"
#include "tests/sim/ptx/ptx_warp.h"
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

static ptx_program *load(const harness_case *test, char *why, size_t why_size) {
    static char text[16384];
    size_t length = write_text(test, text, sizeof text);
    int32_t capability = (int32_t)strtol((test->target ? test->target : "sm_90") + 3, NULL, 10);
    return ptx_program_load(text, length, capability, why, why_size);
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

void harness_run(const harness_case *test, size_t count, void *d, const void *const sources[HARNESS_SOURCES]) {
    char why[512] = "";
    size_t padded = (count + 31) / 32 * 32;
    ptx_program *program = load(test, why, sizeof why);
    if (!program) fail_msg("%s: %s", test->code, why);
    arrays all = {0};
    uint64_t parameters[HARNESS_SOURCES + 1] = {0};
    for (int i = 0; i <= HARNESS_SOURCES; i++) {
        size_t bytes = (i == 0 ? test->result_bits : test->source_bits[i - 1]) / 8;
        if (!bytes) continue;
        all.size[i] = padded * bytes;
        all.memory[i] = copy(i == 0 ? NULL : sources[i - 1], count * bytes, all.size[i]);
        parameters[i] = (uintptr_t)all.memory[i];
    }
    ptx_launch launch = {.program = program,
                         .code = ptx_program_find(program, "kernel"),
                         .grid = {(uint32_t)(padded / 32), 1, 1},
                         .block = {32, 1, 1},
                         .parameters = (const uint8_t *)parameters,
                         .find = find,
                         .find_context = &all,
                         .seed = test->seed,
                         .budget = 1 << 20,
                         .threads = 1};
    assert_non_null(launch.code);
    sim_counters counters = {0};
    sim_report report;
    if (!ptx_launch_run(&launch, &counters, &report)) fail_msg("%s: %s", test->code, report.text);
    memcpy(d, all.memory[0], count * test->result_bits / 8);
    for (int i = 0; i <= HARNESS_SOURCES; i++)
        free(all.memory[i]);
    ptx_program_free(program);
}

const char *harness_refusal(const harness_case *test) {
    static char why[512];
    ptx_program *program = load(test, why, sizeof why);
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

uint64_t harness_random(uint64_t *state) {
    return ptx_random(state);
}
