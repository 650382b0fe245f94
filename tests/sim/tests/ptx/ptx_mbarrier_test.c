/* Barriers in shared memory: kernels with a planted mistake, each beside what it should have been. What hardware
 * answers step by step is in the recorded cases. */
#include "tests/sim/ptx/warp/ptx_warp.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { THREADS = 64, WORDS = 128, SEEDS = 8 };

static uint32_t memory[WORDS];
static uint8_t written[WORDS * 4 / 8];

static bool find(void *context, uint64_t address, sim_region *out_region) {
    (void)context;
    if (address - (uintptr_t)memory >= sizeof memory) return false;
    *out_region = (sim_region){.base = (uintptr_t)memory, .size = sizeof memory, .written = written};
    return true;
}

/* %r1 the thread, [%r3] its word of tile and [%r4] that of a thread of the other warp, [mb] the barrier, %p1 the first
 * thread. */
static sim_report run(const char *body, uint64_t seed) {
    static char text[8192];
    char why[256] = "";
    snprintf(text, sizeof text,
             ".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry kernel(.param .u64 p) {\n"
             ".reg .pred %%p<8>;\n.reg .b32 %%r<16>;\n.reg .b64 %%rd<8>;\n"
             ".shared .align 16 .b8 tile[256];\n.shared .align 8 .b64 mb;\n"
             "ld.param.u64 %%rd1, [p];\ncvta.to.global.u64 %%rd2, %%rd1;\nmov.u32 %%r1, %%tid.x;\n"
             "setp.eq.u32 %%p1, %%r1, 0;\nmov.u32 %%r2, tile;\nshl.b32 %%r3, %%r1, 2;\nxor.b32 %%r4, %%r3, 128;\n"
             "add.u32 %%r3, %%r3, %%r2;\nadd.u32 %%r4, %%r4, %%r2;\n%s\nret;\n}\n",
             body);
    ptx_program *program = ptx_program_load(text, strlen(text), 90, why, sizeof why);
    if (!program) fail_msg("%s", why);
    memset(written, 0xff, sizeof written);
    const uint64_t pointer = (uintptr_t)memory;
    sim_report report = {0};
    sim_counters counters = {0};
    const ptx_launch launch = {.program = program,
                               .code = ptx_program_find(program, "kernel"),
                               .grid = {1, 1, 1},
                               .block = {THREADS, 1, 1},
                               .parameters = (const uint8_t *)&pointer,
                               .find = find,
                               .seed = seed,
                               .budget = 100000,
                               .reserved_shared_bytes = 1024,
                               .threads = 1};
    ptx_launch_run(&launch, &counters, &report);
    ptx_program_free(program);
    return report;
}

#define INIT(count)  "@%p1 mbarrier.init.shared.b64 [mb], " #count ";\nbar.sync 0;\n"
#define STORE        "st.shared.u32 [%r3], %r1;\n"
#define ARRIVE       "mbarrier.arrive.shared.b64 %rd3, [mb];\n"
#define UNTIL(wait)  "AGAIN:\n" wait "\n@!%p2 bra AGAIN;\n"
#define WAIT(parity) UNTIL("mbarrier.try_wait.parity.shared.b64 %p2, [mb], " #parity ";")
#define COPY         "cp.async.ca.shared.global [%r3], [%rd2], 4;\n"

static const struct {
    const char *name, *body;
    sim_fault_kind kind; /* NONE: as it should be */
    const char *word;
} rows[] = {
    {"a phase of all threads", INIT(64) STORE ARRIVE WAIT(0) "ld.shared.u32 %r5, [%r4];", SIM_FAULT_NONE, ""},
    {"no wait", INIT(64) STORE ARRIVE "ld.shared.u32 %r5, [%r4];", SIM_FAULT_RACE, "thread"},
    {"the parity of the phase before", INIT(64) STORE ARRIVE WAIT(1) "ld.shared.u32 %r5, [%r4];", SIM_FAULT_RACE,
     "thread"},
    {"a relaxed wait",
     INIT(64) STORE ARRIVE UNTIL("mbarrier.try_wait.parity.relaxed.cta.shared.b64 %p2, [mb], 0;") "ld.shared.u32 %r5, "
                                                                                                  "[%r4];",
     SIM_FAULT_RACE, "thread"},
    {"a relaxed arrival",
     INIT(64) STORE "mbarrier.arrive.relaxed.cta.shared.b64 %rd3, [mb];\n" WAIT(0) "ld.shared.u32 %r5, [%r4];",
     SIM_FAULT_RACE, "thread"},
    {"a store after the arrival", INIT(64) ARRIVE STORE WAIT(0) "ld.shared.u32 %r5, [%r4];", SIM_FAULT_RACE, "thread"},
    {"a wait for one's own state",
     INIT(64) STORE ARRIVE UNTIL("mbarrier.test_wait.shared.b64 %p2, [mb], %rd3;") "ld.shared.u32 %r5, [%r4];",
     SIM_FAULT_NONE, ""},
    {"an arrival behind a barrier of one warp, for which the other one asks",
     INIT(32) "setp.lt.u32 %p3, %r1, 32;\n@!%p3 bra ASKS;\nbar.sync 1, 32;\n" STORE ARRIVE
              "bra END;\nASKS:\n" WAIT(0) "ld.shared.u32 %r5, [%r4];\nEND:",
     SIM_FAULT_NONE, ""},
    {"a barrier of a warp that asks, in vain, for what is behind it",
     INIT(64) "setp.lt.u32 %p3, %r1, 32;\n@!%p3 bra ASKS;\nbar.sync 1, 64;\n" ARRIVE "ASKS:\n" WAIT(0),
     SIM_FAULT_ENDLESS, ""},
    {"an arrival too few", INIT(65) ARRIVE WAIT(0), SIM_FAULT_ENDLESS, ""},
    {"an arrival too many", INIT(63) ARRIVE "bar.sync 0;\n" ARRIVE "mbarrier.arrive.shared.b64 %rd3, [mb], 63;",
     SIM_FAULT_ILLEGAL, "more than are pending"},
    {"bytes that come",
     INIT(64) "@%p1 mbarrier.expect_tx.relaxed.cta.shared.b64 [mb], 16;\n" ARRIVE
              "@%p1 mbarrier.complete_tx.relaxed.cta.shared.b64 [mb], 16;\n" WAIT(0),
     SIM_FAULT_NONE, ""},
    {"bytes that do not come",
     INIT(64) "@%p1 mbarrier.expect_tx.relaxed.cta.shared.b64 [mb], 16;\nbar.sync 0;\n" ARRIVE WAIT(0),
     SIM_FAULT_ENDLESS, ""},
    {"too many bytes", INIT(64) "mov.u32 %r5, 1048575;\nmbarrier.expect_tx.relaxed.cta.shared.b64 [mb], %r5;\n",
     SIM_FAULT_ILLEGAL, "2^20 - 1"},
    {"a barrier that was never initialised", ARRIVE, SIM_FAULT_UNINITIALISED, ""},
    {"zeros in place of a barrier", "@%p1 st.shared.u64 [mb], 0;\nbar.sync 0;\n" ARRIVE, SIM_FAULT_ILLEGAL,
     "no barrier was initialised there"},
    {"a barrier that has ended", INIT(64) "@%p1 mbarrier.inval.shared.b64 [mb];\nbar.sync 0;\n" ARRIVE,
     SIM_FAULT_ILLEGAL, "no barrier was initialised there"},
    {"a barrier of nobody", INIT(0), SIM_FAULT_ILLEGAL, "a barrier of 0 arrivals"},
    {"no arrivals", INIT(64) "mov.u32 %r5, 0;\nmbarrier.arrive.shared.b64 %rd3, [mb], %r5;", SIM_FAULT_ILLEGAL,
     "a count of 0"},
    {"an end that was ruled out", INIT(64) "mbarrier.arrive.noComplete.shared.b64 %rd3, [mb], 1;", SIM_FAULT_ILLEGAL,
     "are to end no phase"},
    {"a parity of 2", INIT(64) "mbarrier.test_wait.parity.shared.b64 %p2, [mb], 2;", SIM_FAULT_ILLEGAL,
     "a parity of 2"},
    {"a barrier in global memory", "mbarrier.init.b64 [%rd1], 1;", SIM_FAULT_ILLEGAL, "not in shared memory"},
    {"a barrier off 8 bytes", "mov.u32 %r5, tile;\n@%p1 mbarrier.init.shared.b64 [%r5+4], 1;", SIM_FAULT_MISALIGNED,
     ""},
    {"no barrier behind the initialisation",
     "@%p1 mbarrier.init.shared.b64 [mb], 64;\nbar.sync 0;\n" ARRIVE "@%p1 mbarrier.init.shared.b64 [mb], 64;",
     SIM_FAULT_RACE, "thread"},
    {"arrivals on copies",
     INIT(64) COPY "cp.async.mbarrier.arrive.noinc.shared.b64 [mb];\n" WAIT(0) "ld.shared.u32 %r5, [%r4];",
     SIM_FAULT_NONE, ""},
    {"arrivals on copies beside others",
     INIT(64) COPY "cp.async.mbarrier.arrive.shared.b64 [mb];\n" ARRIVE WAIT(0) "ld.shared.u32 %r5, [%r4];",
     SIM_FAULT_NONE, ""},
    {"an arrival that is on no copy", INIT(64) COPY ARRIVE WAIT(0) "ld.shared.u32 %r5, [%r4];", SIM_FAULT_IN_FLIGHT,
     ""},
    {"copies without a wait",
     INIT(64) COPY "cp.async.mbarrier.arrive.noinc.shared.b64 [mb];\nld.shared.u32 %r5, [%r4];", SIM_FAULT_RACE,
     "thread"},
};

static void each_mistake_is_reported(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            const sim_report report = run(rows[i].body, seed);
            if (report.kind != rows[i].kind || (report.kind && !strstr(report.text, rows[i].word)))
                fail_msg("%s, seed %llu: %s (%s)", rows[i].name, (unsigned long long)seed, sim_fault_text(report.kind),
                         report.kind ? report.text : "");
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_mistake_is_reported)};
    return cmocka_run_group_tests_name("ptx_mbarrier", tests, NULL, NULL);
}
