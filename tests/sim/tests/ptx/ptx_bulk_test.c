/* Bulk copies between global and shared memory: kernels with a planted mistake, each beside what it should have been.
 * What hardware answers is in the recorded cases. */
#include "tests/sim/ptx/memory/ptx_tensor.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { THREADS = 64, WORDS = 2 * THREADS, SEEDS = 4 };

static _Alignas(128) uint32_t memory[WORDS];

static bool find(void *context, uint64_t address, sim_region *out_region) {
    (void)context;
    if (address - (uintptr_t)memory >= sizeof memory) return false;
    *out_region = (sim_region){.base = (uintptr_t)memory, .size = sizeof memory};
    return true;
}

/* 64 words of memory are copied to tile and from there to the 64 behind them: %r1 the thread, [%r3] its word of tile,
 * %rd1 memory, %rd2 its second half, %rd5 and %rd6 maps of the halves as a tensor of 8 rows, %p1 the first thread. */
static sim_report run(const char *body, uint64_t seed, sim_counters *counters) {
    static char text[8192];
    char why[256] = "";
    snprintf(text, sizeof text,
             ".version 8.6\n.target sm_90\n.address_size 64\n"
             ".visible .entry kernel(.param .align 64 .b8 from[128], .param .align 64 .b8 to[128], .param .u64 p)\n{\n"
             ".reg .pred %%p<8>;\n.reg .b32 %%r<16>;\n.reg .b64 %%rd<8>;\n"
             ".shared .align 128 .b8 tile[256];\n.shared .align 8 .b64 mb;\n"
             "ld.param.u64 %%rd1, [p];\ncvta.to.global.u64 %%rd1, %%rd1;\nadd.u64 %%rd2, %%rd1, 256;\n"
             "mov.b64 %%rd5, from;\ncvta.param.u64 %%rd5, %%rd5;\nmov.b64 %%rd6, to;\ncvta.param.u64 %%rd6, %%rd6;\n"
             "mov.u32 %%r1, %%tid.x;\nmov.u32 %%r7, 0;\nsetp.eq.u32 %%p1, %%r1, 0;\n"
             "mov.u32 %%r2, tile;\nshl.b32 %%r8, %%r1, 2;\nadd.u32 %%r3, %%r2, %%r8;\n%s\nret;\n}\n",
             body);
    ptx_program *program = ptx_program_load(text, strlen(text), 90, why, sizeof why);
    if (!program) fail_msg("%s", why);
    const ptx_code *code = ptx_program_find(program, "kernel");
    _Alignas(64) uint8_t parameters[512] = {0};
    const ptx_variable *parameter = code->function->parameters;
    assert_true(code->function->parameter_bytes <= sizeof parameters);
    for (uint32_t i = 0; i < 2; i++, parameter = parameter->next) {
        const ptx_tensor_map map = {.magic = PTX_TENSOR_MAGIC,
                                    .type = PTX_TENSOR_U32,
                                    .rank = 2,
                                    .address = (uintptr_t)(memory + i * THREADS),
                                    .strides = {32},
                                    .dims = {8, 8},
                                    .box = {8, 8},
                                    .steps = {1, 1}};
        memcpy(parameters + parameter->offset, &map, sizeof map);
    }
    const uint64_t pointer = (uintptr_t)memory;
    memcpy(parameters + parameter->offset, &pointer, sizeof pointer);
    sim_report report = {0};
    const ptx_launch launch = {.program = program,
                               .code = code,
                               .grid = {1, 1, 1},
                               .block = {THREADS, 1, 1},
                               .parameters = parameters,
                               .find = find,
                               .seed = seed,
                               .budget = 100000,
                               .reserved_shared_bytes = 1024,
                               .threads = 1};
    for (uint32_t i = 0; i < WORDS; i++)
        memory[i] = i < THREADS ? 1000 + i : 0;
    ptx_launch_run(&launch, counters, &report);
    ptx_program_free(program);
    return report;
}

#define INIT   "@%p1 mbarrier.init.shared.b64 [mb], 1;\nbar.sync 0;\n"
#define EXPECT "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [mb], 256;\n"
#define LOAD   "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1], 256, [mb];\n"
#define TENSOR                                                                                                      \
    "@%p1 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd5, {%r7, %r7}], " \
    "[mb];\n"
#define AWAIT "AGAIN:\nmbarrier.try_wait.parity.shared.b64 %p3, [mb], 0;\n@!%p3 bra AGAIN;\n"
#define USE                                                                                                      \
    "ld.shared.u32 %r9, [%r3];\nadd.u64 %rd4, %rd2, 0;\nmul.wide.u32 %rd3, %r1, 4;\nadd.u64 %rd4, %rd4, %rd3;\n" \
    "st.global.u32 [%rd4], %r9;\n"
#define FILL  "add.u32 %r9, %r1, 1000;\nst.shared.u32 [%r3], %r9;\n"
#define FENCE "fence.proxy.async.shared::cta;\n"
#define SYNC  "bar.sync 0;\n"
#define STORE "@%p1 cp.async.bulk.global.shared::cta.bulk_group [%rd2], [tile], 256;\n"
#define BOX   "@%p1 cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd6, {%r7, %r7}], [tile];\n"
#define WAIT  "@%p1 cp.async.bulk.commit_group;\n@%p1 cp.async.bulk.wait_group.read 0;\n"

static const struct {
    const char *name, *body;
    sim_fault_kind kind; /* NONE: the second half of memory is as the first */
    const char *word;
} rows[] = {
    {"a copy to shared memory", INIT EXPECT LOAD AWAIT USE, SIM_FAULT_NONE, ""},
    {"a read before it has come", INIT EXPECT LOAD SYNC USE, SIM_FAULT_IN_FLIGHT, "reads"},
    {"a store to where it goes", INIT EXPECT LOAD SYNC FILL AWAIT, SIM_FAULT_IN_FLIGHT, "writes"},
    {"more bytes expected", INIT "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [mb], 272;\n" LOAD AWAIT USE,
     SIM_FAULT_ENDLESS, ""},
    {"fewer bytes expected", INIT "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [mb], 240;\n" LOAD AWAIT USE,
     SIM_FAULT_ENDLESS, ""},
    {"no bytes expected", INIT LOAD AWAIT USE, SIM_FAULT_ENDLESS, ""},
    {"a size of 24 bytes",
     INIT "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1], 24, [mb];\n",
     SIM_FAULT_ILLEGAL, "multiple of 16"},
    {"a source off 16 bytes",
     INIT "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1+8], 16, [mb];\n",
     SIM_FAULT_MISALIGNED, ""},
    {"a destination off 16 bytes",
     INIT "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile+8], [%rd1], 16, [mb];\n",
     SIM_FAULT_MISALIGNED, ""},
    {"beyond the memory",
     INIT "@%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd2+16], 256, [mb];\n",
     SIM_FAULT_OUT_OF_BOUNDS, ""},
    {"a box to shared memory", INIT EXPECT TENSOR AWAIT USE, SIM_FAULT_NONE, ""},
    {"a read before it has come all", INIT EXPECT TENSOR SYNC USE, SIM_FAULT_IN_FLIGHT, "reads"},
    {"a box off 16 bytes", INIT EXPECT "mov.u32 %r7, 1;\n" TENSOR AWAIT, SIM_FAULT_ILLEGAL, "multiple of 16"},
    {"a map that is none", INIT EXPECT "add.u64 %rd5, %rd5, 64;\n" TENSOR AWAIT, SIM_FAULT_ILLEGAL, "no tensor map"},
    {"a map off 64 bytes", INIT EXPECT "add.u64 %rd5, %rd5, 32;\n" TENSOR AWAIT, SIM_FAULT_MISALIGNED, "map"},
    {"a copy from shared memory", FILL FENCE SYNC STORE WAIT, SIM_FAULT_NONE, ""},
    {"the fence behind the barrier", FILL SYNC FENCE STORE WAIT, SIM_FAULT_NONE, ""},
    {"no fence", FILL SYNC STORE WAIT, SIM_FAULT_RACE, "fence.proxy.async"},
    {"a fence before the stores", FENCE FILL SYNC STORE WAIT, SIM_FAULT_RACE, "fence.proxy.async"},
    {"no wait", FILL FENCE SYNC STORE "@%p1 cp.async.bulk.commit_group;\n", SIM_FAULT_IN_FLIGHT,
     "before its bulk copy"},
    {"no group", FILL FENCE SYNC STORE "@%p1 cp.async.bulk.wait_group.read 0;\n", SIM_FAULT_IN_FLIGHT,
     "before its bulk copy"},
    {"a wait for the group before",
     FILL FENCE SYNC STORE "@%p1 cp.async.bulk.commit_group;\n@%p1 cp.async.bulk.wait_group.read 1;\n",
     SIM_FAULT_IN_FLIGHT, "before its bulk copy"},
    {"a store to the source", FILL FENCE SYNC STORE SYNC FILL SYNC WAIT, SIM_FAULT_IN_FLIGHT, "a bulk copy reads"},
    {"a store to the source behind the wait", FILL FENCE SYNC STORE WAIT SYNC FILL, SIM_FAULT_NONE, ""},
    {"a box from shared memory", FILL FENCE SYNC BOX WAIT, SIM_FAULT_NONE, ""},
    {"a box without a fence", FILL SYNC BOX WAIT, SIM_FAULT_RACE, "fence.proxy.async"},
    {"a box to a negative row", FILL FENCE SYNC "mov.u32 %r7, -4;\n" BOX WAIT, SIM_FAULT_ILLEGAL, "coordinate -4"},
};

static void each_mistake_is_reported(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            sim_counters counters = {0};
            const sim_report report = run(rows[i].body, seed, &counters);
            if (report.kind != rows[i].kind || (report.kind && !strstr(report.text, rows[i].word)))
                fail_msg("%s, seed %llu: %s (%s)", rows[i].name, (unsigned long long)seed, sim_fault_text(report.kind),
                         report.kind ? report.text : "");
            if (!report.kind && memcmp(memory, memory + THREADS, THREADS * sizeof *memory) != 0)
                fail_msg("%s, seed %llu: another result", rows[i].name, (unsigned long long)seed);
        }
    }
}

/* Of a tensor that is what lies within it. */
static void bytes_are_counted(void **state) {
    (void)state;
    static const struct {
        const char *body;
        uint32_t read, written; /* bytes */
    } copies[] = {
        {INIT EXPECT LOAD AWAIT, 256, 0},
        {INIT EXPECT TENSOR AWAIT, 256, 0},
        {INIT EXPECT "mov.u32 %r7, 4;\n" TENSOR AWAIT, 64, 0},
        {FILL FENCE SYNC STORE WAIT, 0, 256},
        {FILL FENCE SYNC BOX WAIT, 0, 256},
    };
    for (size_t i = 0; i < sizeof copies / sizeof *copies; i++) {
        sim_counters counters = {0};
        assert_int_equal(run(copies[i].body, 1, &counters).kind, SIM_FAULT_NONE);
        assert_int_equal(counters.global_read_bytes, copies[i].read);
        assert_int_equal(counters.global_written_bytes, copies[i].written);
        assert_int_equal(counters.global_sectors, (copies[i].read == 64 ? 128 : 256) / 32);
        assert_int_equal(counters.global_requests, 1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_mistake_is_reported), cmocka_unit_test(bytes_are_counted)};
    return cmocka_run_group_tests_name("ptx_bulk", tests, NULL, NULL);
}
