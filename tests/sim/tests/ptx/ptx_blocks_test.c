/* The order of blocks, and blocks that wait for each other: in what way soever they ask, they get on as long as the
 * device has room for those that wait and for those that they wait for. */
#include "tests/sim/ptx/warp/ptx_warp.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
    BLOCKS = 40,
    WORDS = BLOCKS + 1,
    SEEDS = 5,
    BUDGET = 1 << 28, /* a block may wait for one whose thread the machine has no time for */
    LITTLE = 1 << 18, /* for those that wait in vain */
    MUCH = 1 << 24    /* for those that are found before */
};

/* The last word counts. */
static uint32_t words[WORDS];

static bool find(void *context, uint64_t address, sim_region *out_region) {
    (void)context;
    *out_region = (sim_region){(uintptr_t)words, sizeof words, NULL, false};
    return address - (uintptr_t)words < sizeof words;
}

/* All blocks come to the counter, and wait until all have; %s asks for it. */
#define MEET                                                                                                     \
    "red.global.add.u32 [%%rd1+160], 1;\nmov.u32 %%r3, %%nctaid.x;\nAGAIN:\n%s\nsetp.lt.u32 %%p1, %%r2, %%r3;\n" \
    "@%%p1 bra AGAIN;\nst.global.u32 [%%rd2], 1;\n"
/* Each but the first waits for the one before it. */
#define LOOK_BACK                                                                                            \
    "setp.eq.u32 %%p1, %%r1, 0;\nmov.u32 %%r2, 1;\n@%%p1 bra END;\nAGAIN:\n%s\nsetp.eq.u32 %%p1, %%r2, 0;\n" \
    "@%%p1 bra AGAIN;\nEND:\nadd.u32 %%r2, %%r2, 1;\nst.volatile.global.u32 [%%rd2], %%r2;\n"
/* The same, and for one more than there are. */
#define MEET_MORE "mov.u32 %%r3, %%nctaid.x;\nAGAIN:\n%s\nsetp.le.u32 %%p1, %%r2, %%r3;\n@%%p1 bra AGAIN;\n"
/* The first warp of the first block lets the others go when it has computed. */
#define WORK_AND_MEET                                                                                                  \
    "mov.u32 %%r3, %%tid.x;\nshr.u32 %%r3, %%r3, 5;\nor.b32 %%r2, %%r1, %%r3;\nsetp.ne.u32 %%p1, %%r2, 0;\n@%%p1 bra " \
    "AGAIN;\n"                                                                                                         \
    "mov.u32 %%r3, 0;\nWORK:\nadd.u32 %%r3, %%r3, 1;\nsetp.lt.u32 %%p1, %%r3, 100000;\n@%%p1 bra WORK;\n"              \
    "st.volatile.global.u32 [%%rd1+160], 1;\nAGAIN:\n%s\nsetp.eq.u32 %%p1, %%r2, 0;\n@%%p1 bra AGAIN;\n"
/* Each takes a number. */
#define NUMBER "atom.global.add.u32 %%r2, [%%rd1+160], 1;\nst.global.u32 [%%rd2], %%r2;\n%s"

/* Runs a kernel whose %rd1 are the words, %r1 the block and %rd2 its word. No threads of the host: it is cooperative.
 */
static sim_report run_group(uint32_t group, const char *body, const char *ask, uint32_t blocks, uint64_t room,
                            uint32_t threads, uint64_t budget, uint64_t seed) {
    uint32_t workspace[PTX_WORKSPACE / 4] = {0};
    char inner[1024], text[2048], why[256] = "";
    snprintf(inner, sizeof inner, body, ask);
    snprintf(text, sizeof text,
             ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry kernel(.param .u64 p) {\n"
             ".reg .pred %%p<2>;\n.reg .b32 %%r<4>;\n.reg .b64 %%rd<3>;\nld.param.u64 %%rd1, [p];\n"
             "mov.u32 %%r1, %%ctaid.x;\nmad.wide.u32 %%rd2, %%r1, 4, %%rd1;\n%s\nret;\n}\n",
             inner);
    ptx_program *program = ptx_program_load(text, strlen(text), 80, why, sizeof why);
    if (!program) fail_msg("%s", why);
    memset(words, 0, sizeof words);
    uint64_t pointer = (uintptr_t)words;
    ptx_launch launch = {.program = program,
                         .code = ptx_program_find(program, "kernel"),
                         .grid = {blocks, 1, 1},
                         .block = {group, 1, 1},
                         .workspace = threads ? NULL : workspace,
                         .parameters = (const uint8_t *)&pointer,
                         .find = find,
                         .seed = seed,
                         .budget = budget,
                         .room = room,
                         .threads = threads};
    sim_counters counters = {0};
    sim_report report;
    assert_non_null(launch.code);
    ptx_launch_run(&launch, &counters, &report);
    ptx_program_free(program);
    return report;
}

/* The same, of blocks of one thread. */
static sim_report run(const char *body, const char *ask, uint32_t blocks, uint64_t room, uint32_t threads,
                      uint64_t budget, uint64_t seed) {
    return run_group(1, body, ask, blocks, room, threads, budget, seed);
}

static void check_run(const char *body, const char *ask, uint64_t room) {
    for (uint32_t threads = 1; threads <= 2; threads++) {
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            sim_report report = run(body, ask, BLOCKS, room, threads, BUDGET, seed);
            if (report.kind) fail_msg("%s (%u threads): %s", ask, threads, report.text);
            for (uint32_t b = 0; b < BLOCKS; b++)
                assert_int_not_equal(words[b], 0);
        }
    }
}

static void blocks_wait_for_each_other(void **state) {
    (void)state;
    check_run(MEET, "ld.volatile.global.u32 %r2, [%rd1+160];", 0);
    check_run(MEET, "ld.acquire.gpu.u32 %r2, [%rd1+160];", 0);
    check_run(MEET, "ld.relaxed.gpu.global.u32 %r2, [%rd1+160];\nnanosleep.u32 20;", 0);
    check_run(MEET, "ld.global.cv.u32 %r2, [%rd1+160];", 0);
    check_run(MEET, "atom.or.b32 %r2, [%rd1+160], 0;", 0);
    check_run(MEET, "atom.global.cas.b32 %r2, [%rd1+160], 77, 77;", BLOCKS);
}

static void a_scan_may_look_back_however_large_its_grid(void **state) {
    (void)state;
    static const char ask[] = "ld.volatile.global.u32 %r2, [%rd2+-4];";
    for (uint64_t room = 1; room <= BLOCKS; room = room * 3 + 1) {
        check_run(LOOK_BACK, ask, room);
        for (uint32_t b = 0; b < BLOCKS; b++)
            assert_int_equal(words[b], b + 2);
    }
}

static void blocks_that_wait_must_have_room(void **state) {
    (void)state;
    static const char ask[] = "ld.volatile.global.u32 %r2, [%rd1+160];";
    for (uint32_t threads = 1; threads <= 2; threads++) {
        assert_int_equal(run(MEET, ask, 7, 7, threads, BUDGET, 1).kind, SIM_FAULT_NONE);
        assert_int_equal(run(MEET, ask, 8, 7, threads, LITTLE, 1).kind, SIM_FAULT_ENDLESS);
    }
}

/* All blocks but the last few have begun and wait for those: that is found long before one has used up its budget. */
static void blocks_that_wait_in_vain_are_found_together(void **state) {
    (void)state;
    static const char *const asks[] = {"ld.acquire.gpu.u32 %r2, [%rd1+160];", "atom.or.b32 %r2, [%rd1+160], 0;"};
    for (uint32_t threads = 0; threads <= 2; threads++) { /* 0: a cooperative launch */
        for (size_t i = 0; i < sizeof asks / sizeof *asks; i++) {
            sim_report report = run(MEET_MORE, asks[i], BLOCKS, BLOCKS, threads, MUCH, 1);
            assert_int_equal(report.kind, SIM_FAULT_ENDLESS);
            assert_non_null(strstr(report.text, "each block has asked in vain"));
        }
    }
    sim_report report = run(MEET_MORE, "red.global.add.u32 [%rd2], 1;\nld.volatile.global.u32 %r2, [%rd1+160];", BLOCKS,
                            0, 1, LITTLE, 1);
    assert_non_null(strstr(report.text, "instructions of warps in one block"));
}

/* One warp computes for long, and all others wait for it. */
static void blocks_that_wait_for_a_warp_at_work_go_on(void **state) {
    (void)state;
    static const char ask[] = "ld.volatile.global.u32 %r2, [%rd1+160];";
    for (uint32_t threads = 0; threads <= 1; threads++) {
        sim_report report = run_group(256, WORK_AND_MEET, ask, 3, 3, threads, MUCH, 1);
        if (report.kind) fail_msg("%s", report.text);
    }
}

/* Of more blocks than there is room for, those that come first have the lower numbers. */
static void the_order_is_the_seed_s(void **state) {
    (void)state;
    uint32_t kept[BLOCKS], different = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        assert_int_equal(run(NUMBER, "", BLOCKS, 0, 1, BUDGET, seed).kind, SIM_FAULT_NONE);
        different += seed > 1 && memcmp(kept, words, sizeof kept);
        memcpy(kept, words, sizeof kept);
        assert_int_equal(run(NUMBER, "", BLOCKS, 16, 1, BUDGET, seed).kind, SIM_FAULT_NONE);
        for (uint32_t b = 0; b < BLOCKS; b++)
            assert_int_equal(words[b] / 16, b / 16);
    }
    assert_int_not_equal(different, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_wait_for_each_other),
        cmocka_unit_test(a_scan_may_look_back_however_large_its_grid),
        cmocka_unit_test(blocks_that_wait_must_have_room),
        cmocka_unit_test(blocks_that_wait_in_vain_are_found_together),
        cmocka_unit_test(blocks_that_wait_for_a_warp_at_work_go_on),
        cmocka_unit_test(the_order_is_the_seed_s),
    };
    return cmocka_run_group_tests_name("ptx_blocks", tests, NULL, NULL);
}
