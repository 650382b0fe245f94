/* Clusters of blocks: kernels with a planted mistake, each beside what it should have been. What hardware answers is in
 * the recorded cases. */
#include "tests/sim/ptx/warp/ptx_warp.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BLOCKS = 4, CLUSTER = 2, THREADS = 64, WORDS = BLOCKS * THREADS, SEEDS = 8 };

static uint32_t memory[WORDS];

static bool find(void *context, uint64_t address, sim_region *out_region) {
    (void)context;
    if (address - (uintptr_t)memory >= sizeof memory) return false;
    *out_region = (sim_region){.base = (uintptr_t)memory, .size = sizeof memory};
    return true;
}

/* %r1 the thread, %r2 the rank, [%r3] its word of tile, [%r4] that of the other block, [%r10] the same of notes,
 * and [%r5] its barrier, [mb] the block's own, %p1 the first thread, %p2 block 0 of the cluster, [%rd2] the thread's
 * word of memory. */
static sim_report run(const char *body, uint64_t seed, sim_counters *counters) {
    static char text[8192];
    char why[256] = "";
    snprintf(text, sizeof text,
             ".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry kernel(.param .u64 p)\n"
             ".reqnctapercluster 2\n{\n"
             ".reg .pred %%p<8>;\n.reg .b32 %%r<16>;\n.reg .b64 %%rd<8>;\n"
             ".shared .align 16 .b8 tile[256], notes[256];\n.shared .align 8 .b64 mb;\n"
             "ld.param.u64 %%rd1, [p];\ncvta.to.global.u64 %%rd1, %%rd1;\nmov.u32 %%r1, %%tid.x;\n"
             "mov.u32 %%r2, %%cluster_ctarank;\nmov.u32 %%r6, %%ctaid.x;\nmad.lo.u32 %%r6, %%r6, 64, %%r1;\n"
             "mul.wide.u32 %%rd2, %%r6, 4;\nadd.u64 %%rd2, %%rd2, %%rd1;\n"
             "setp.eq.u32 %%p1, %%r1, 0;\nsetp.eq.u32 %%p2, %%r2, 0;\nxor.b32 %%r7, %%r2, 1;\n"
             "mov.u32 %%r3, tile;\nshl.b32 %%r8, %%r1, 2;\nadd.u32 %%r3, %%r3, %%r8;\n"
             "mapa.shared::cluster.u32 %%r4, %%r3, %%r7;\nmapa.shared::cluster.u32 %%r5, mb, %%r7;\n"
             "mov.u32 %%r10, notes;\nadd.u32 %%r10, %%r10, %%r8;\nmapa.shared::cluster.u32 %%r10, %%r10, "
             "%%r7;\n%s\nret;\n}\n",
             body);
    ptx_program *program = ptx_program_load(text, strlen(text), 90, why, sizeof why);
    if (!program) fail_msg("%s", why);
    const uint64_t pointer = (uintptr_t)memory;
    sim_report report = {0};
    const ptx_launch launch = {.program = program,
                               .code = ptx_program_find(program, "kernel"),
                               .grid = {BLOCKS, 1, 1},
                               .block = {THREADS, 1, 1},
                               .parameters = (const uint8_t *)&pointer,
                               .find = find,
                               .seed = seed,
                               .budget = 100000,
                               .reserved_shared_bytes = 1024,
                               .threads = 1 + seed % 2};
    memset(memory, 0, sizeof memory);
    ptx_launch_run(&launch, counters, &report);
    ptx_program_free(program);
    return report;
}

#define STORE      "st.shared.u32 [%r3], %r6;\n"
#define ARRIVE     "barrier.cluster.arrive.aligned;\n"
#define WAIT       "barrier.cluster.wait.aligned;\n"
#define SYNC       ARRIVE WAIT
#define LOAD       "ld.shared::cluster.u32 %r9, [%r4];\nst.global.u32 [%rd2], %r9;\n"
#define INIT       "@%p1 mbarrier.init.shared.b64 [mb], 64;\n@%p1 fence.mbarrier_init.release.cluster;\n"
#define REMOTE     "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r5];\n"
#define AWAIT      "AGAIN:\nmbarrier.try_wait.parity.acquire.cluster.shared.b64 %p3, [mb], 0;\n@!%p3 bra AGAIN;\n"
#define EXPECT     "@%p1 mbarrier.init.shared.b64 [mb], 1;\n@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [mb], 256;\n"
#define RENEW      "bar.sync 0;\n@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [mb], 256;\n"
#define AWAIT_NEXT "NEXT:\nmbarrier.try_wait.parity.acquire.cluster.shared.b64 %p3, [mb], 1;\n@!%p3 bra NEXT;\n"
#define SEND       "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r4], %r6, [%r5];\n"
#define NOTIFY     "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r10], %r6, [%r5];\n"
#define OWN        "ld.shared.u32 %r9, [%r3];\nst.global.u32 [%rd2], %r9;\n"
#define COUNTED    "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r4], %r6, [%r5];\n"

static const struct {
    const char *name, *body;
    sim_fault_kind kind; /* NONE: as it should be, with what the thread of the other block has in memory */
    const char *word;
} rows[] = {
    {"a load from the other block", STORE SYNC LOAD SYNC, SIM_FAULT_NONE, ""},
    {"a load before the barrier", STORE LOAD SYNC, SIM_FAULT_UNINITIALISED, ""},
    {"a load before the wait", STORE SYNC STORE ARRIVE LOAD WAIT, SIM_FAULT_RACE, "thread"},
    {"a store behind the arrival", STORE SYNC ARRIVE STORE WAIT LOAD SYNC, SIM_FAULT_RACE, "thread"},
    {"a relaxed arrival", STORE "barrier.cluster.arrive.relaxed.aligned;\n" WAIT LOAD SYNC, SIM_FAULT_RACE, "thread"},
    {"a relaxed arrival behind a fence",
     STORE "fence.acq_rel.cluster;\nbarrier.cluster.arrive.relaxed.aligned;\n" WAIT LOAD SYNC, SIM_FAULT_NONE, ""},
    {"a relaxed arrival behind a fence of the block",
     STORE "fence.acq_rel.cta;\nbarrier.cluster.arrive.relaxed.aligned;\n" WAIT LOAD SYNC, SIM_FAULT_RACE, "thread"},
    {"a barrier of the block alone", STORE SYNC "bar.sync 0;\n" STORE "bar.sync 0;\n" LOAD SYNC, SIM_FAULT_RACE,
     "thread"},
    {"a block that has ended",
     STORE SYNC "@!%p2 ret;\nmov.u32 %r9, 0;\nL:\nadd.u32 %r9, %r9, 1;\n"
                "setp.lt.u32 %p3, %r9, 900;\n@%p3 bra L;\n" LOAD,
     SIM_FAULT_OUT_OF_BOUNDS, "has ended"},
    {"two arrivals", ARRIVE ARRIVE WAIT, SIM_FAULT_BARRIER, "twice"},
    {"a wait without an arrival", WAIT, SIM_FAULT_BARRIER, "without having arrived"},
    {"an aligned arrival of some", "@%p1 " ARRIVE "@!%p1 barrier.cluster.arrive;\n" WAIT, SIM_FAULT_BARRIER,
     "for ever"},
    {"a block that does not arrive, but waits for it",
     "@!%p2 bra E;\n" SYNC "E:\n@%p2 bra F;\nW: bar.sync 0;\nbra W;\nF:\n", SIM_FAULT_ENDLESS, ""},
    {"a block that exits without arriving", "@!%p2 ret;\n" SYNC, SIM_FAULT_NONE, NULL},
    {"a rank that there is not", "mapa.shared::cluster.u32 %r9, %r3, 2;\n", SIM_FAULT_ILLEGAL, "block 2"},
    {"another block's address in the block's own space", STORE SYNC "ld.shared.u32 %r9, [%r4];\n" SYNC,
     SIM_FAULT_OUT_OF_BOUNDS, ""},
    {"beyond the other block's memory", STORE SYNC "ld.shared::cluster.u32 %r9, [%r4+4096];\n" SYNC,
     SIM_FAULT_OUT_OF_BOUNDS, ""},
    {"arrivals at the other block's barrier", INIT SYNC STORE REMOTE AWAIT LOAD SYNC, SIM_FAULT_NONE, ""},
    {"no wait for them", INIT STORE SYNC STORE REMOTE LOAD SYNC, SIM_FAULT_RACE, "thread"},
    {"a relaxed arrival there",
     INIT STORE SYNC STORE "mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%r5];\n" AWAIT LOAD SYNC,
     SIM_FAULT_RACE, "thread"},
    {"a barrier that the other block may not have initialised", INIT REMOTE AWAIT SYNC, SIM_FAULT_UNINITIALISED, ""},
    {"each waits for the other's arrival", INIT SYNC AWAIT REMOTE SYNC, SIM_FAULT_ENDLESS, ""},
    {"one waits at the cluster's barrier, the other for an arrival", INIT SYNC "@%p2 bra B;\n" AWAIT "B:\n" SYNC REMOTE,
     SIM_FAULT_ENDLESS, ""},
    {"a wait at the other block's barrier",
     INIT SYNC "cvt.u64.u32 %rd3, %r5;\ncvta.shared::cluster.u64 %rd3, %rd3;\n"
               "mbarrier.test_wait.parity.b64 %p3, [%rd3], 0;\n" SYNC,
     SIM_FAULT_ILLEGAL, "of block"},
    {"words that are sent", EXPECT SYNC SEND AWAIT OWN SYNC, SIM_FAULT_NONE, ""},
    {"a read before they have come", STORE EXPECT SYNC SEND SYNC OWN AWAIT SYNC, SIM_FAULT_IN_FLIGHT, "reads"},
    {"too few of them", EXPECT SYNC "@!%p1 " SEND AWAIT OWN SYNC, SIM_FAULT_ENDLESS, ""},
    {"a store to where they go", STORE EXPECT SYNC SEND STORE AWAIT SYNC, SIM_FAULT_RACE, ""},
    {"a barrier of another block than the words'",
     EXPECT SYNC "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r3], %r6, [%r5];\n" AWAIT SYNC,
     SIM_FAULT_ILLEGAL, "its barrier is of block"},
    {"a word that is sent does not release what its thread stored before",
     STORE EXPECT SYNC STORE NOTIFY AWAIT LOAD SYNC, SIM_FAULT_RACE, "wrote"},
    {"a fence before it does", STORE EXPECT SYNC STORE "fence.acq_rel.cluster;\n" NOTIFY AWAIT LOAD SYNC,
     SIM_FAULT_NONE, ""},
    {"what was read before a word is sent",
     STORE EXPECT SYNC "ld.shared::cluster.u32 %r9, [%r4];\n" NOTIFY AWAIT STORE SYNC LOAD SYNC, SIM_FAULT_NONE, ""},
    {"what is sent to where a word was stored", EXPECT SYNC STORE NOTIFY AWAIT RENEW SEND AWAIT_NEXT OWN SYNC,
     SIM_FAULT_NONE, ""},
    {"sums that are sent", "st.shared.u32 [%r3], 0;\n" EXPECT SYNC COUNTED AWAIT OWN SYNC, SIM_FAULT_NONE, ""},
    {"a sum that is read too early", "st.shared.u32 [%r3], 0;\n" EXPECT SYNC COUNTED OWN AWAIT SYNC, SIM_FAULT_RACE,
     "thread"},
};

/* Whether each thread has what its like in the other block of the cluster stored. */
static bool exchanged(void) {
    for (uint32_t i = 0; i < WORDS; i++)
        if (memory[i] != (i ^ THREADS)) return false;
    return true;
}

static void each_mistake_is_reported(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool reported = false;
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            sim_counters counters = {0};
            const sim_report report = run(rows[i].body, seed, &counters);
            const bool good = rows[i].kind == SIM_FAULT_NONE;
            const bool early =
                report.kind == SIM_FAULT_RACE || report.kind == SIM_FAULT_NONE; /* by the order of blocks */
            reported |= report.kind == rows[i].kind;
            if ((report.kind == rows[i].kind && (good || strstr(report.text, rows[i].word))) || (!good && early)) {
                if (good && rows[i].word && !exchanged()) fail_msg("%s: another result", rows[i].name);
                continue;
            }
            fail_msg("%s, seed %llu: %s (%s)", rows[i].name, (unsigned long long)seed, sim_fault_text(report.kind),
                     report.kind ? report.text : "");
        }
        if (!reported) fail_msg("%s: is not reported", rows[i].name);
    }
}

/* Neighbouring lanes store to words of one bank, of two blocks. */
static void each_block_has_its_own_banks(void **state) {
    (void)state;
    static const char body[] = SYNC "shl.b32 %r7, %r2, 7;\nand.b32 %r8, %r1, 62;\nshl.b32 %r8, %r8, 1;\n"
                                    "add.u32 %r7, %r7, %r8;\nmov.u32 %r8, tile;\nadd.u32 %r7, %r7, %r8;\n"
                                    "and.b32 %r8, %r1, 1;\nmapa.shared::cluster.u32 %r9, %r7, %r8;\n"
                                    "st.shared::cluster.u32 [%r9], %r1;\n" SYNC;
    sim_counters counters = {0};
    const sim_report report = run(body, 1, &counters);
    if (report.kind) fail_msg("%s", report.text);
    assert_int_equal(counters.shared_requests, WORDS / 32);
    assert_int_equal(counters.shared_conflicts, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_mistake_is_reported),
                                       cmocka_unit_test(each_block_has_its_own_banks)};
    return cmocka_run_group_tests_name("ptx_cluster", tests, NULL, NULL);
}
