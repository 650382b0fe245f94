/* The softmax that ships, run by the interpreter alone: right as it is, on every target; and with one bug planted in
 * its machine code, its arguments or its memory, what the simulator must say of it. */
#include "kernels/softmax/softmax_args.h"
#include "tests/sim/amdgcn/decode/amd_llvm.h"
#include "tests/sim/amdgcn/wave/amd_launch.h"
#include "tests/sim/tests/amdgcn/amdgcn_harness.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { COLS = 6000, IMAGE_MAX = 1 << 16, SEEDS = 3 };

/* The processor that runs each image. */
typedef struct pair {
    const char *image, *processor;
} pair;

static const pair pairs[] = {
    {"gfx942", "gfx942"},           {"gfx90a", "gfx90a"},           {"gfx1030", "gfx1030"},
    {"gfx1100", "gfx1100"},         {"gfx1201", "gfx1201"},         {"gfx9-generic", "gfx906"},
    {"gfx10-1-generic", "gfx1010"}, {"gfx10-3-generic", "gfx1032"}, {"gfx11-generic", "gfx1102"},
    {"gfx12-generic", "gfx1200"},
};
enum { PAIRS = sizeof pairs / sizeof *pairs };

/* One row, which a group of eight or four waves does; memory of it and of the result. */
typedef struct world {
    const pair *target;
    uint8_t bytes[IMAGE_MAX];
    size_t size;
    float *x, *y;
    uint32_t x_cols; /* how much of x is alive */
    uint8_t *x_written, *y_written;
    bool y_constant;
    kiln_softmax_args args;
    uint64_t seed, budget;
    sim_counters counters;
} world;

static bool find(void *context, uint64_t address, sim_region *out_region) {
    const world *w = context;
    *out_region = (sim_region){(uintptr_t)w->x, w->x_cols * sizeof(float), w->x_written, false};
    if (address - out_region->base < out_region->size) return true;
    *out_region = (sim_region){(uintptr_t)w->y, COLS * sizeof(float), w->y_written, w->y_constant};
    return address - out_region->base < out_region->size;
}

static void world_make(world *w, const pair *target) {
    char path[256];
    memset(w, 0, sizeof *w);
    snprintf(path, sizeof path, "embedded/softmax/softmax_f32.%s.hsaco", target->image);
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("%s: cannot be read; the tests run in the root folder", path);
    w->size = fread(w->bytes, 1, sizeof w->bytes, file);
    fclose(file);
    w->target = target;
    w->x = aligned_alloc(64, COLS * sizeof *w->x + 64);
    w->y = aligned_alloc(64, COLS * sizeof *w->y + 64);
    w->x_written = malloc(COLS);
    w->y_written = calloc(1, COLS);
    assert_true(w->x && w->y && w->x_written && w->y_written);
    memset(w->x_written, 0xff, COLS);
    for (int i = 0; i < COLS; i++)
        w->x[i] = (float)(i * 37 % 101) / 9 - 5;
    w->x_cols = COLS;
    w->seed = 1;
    w->budget = 10000000;
    w->args = (kiln_softmax_args){
        .y = w->y,
        .x = w->x,
        .shape = {.rows = 1, .cols = COLS, .tile = 8192, .lanes_log2 = 8, .wide = 1},
        .y_stride = COLS,
        .x_stride = COLS,
        .chunks = 1,
    };
}

static void world_free(world *w) {
    free(w->x);
    free(w->y);
    free(w->x_written);
    free(w->y_written);
}

static amd_program *world_load(const world *w) {
    char why[512] = "";
    amd_program *program = amd_program_load(w->bytes, w->size, w->target->processor, why, sizeof why);
    if (!program) fail_msg("%s: %s", w->target->image, why);
    return program;
}

static sim_report world_run(world *w) {
    amd_program *program = world_load(w);
    const amd_kernel *kernel = amd_program_find(program, "kiln_softmax_rows_f32");
    assert_non_null(kernel);
    assert_int_equal(kernel->kernarg_bytes, sizeof w->args);
    _Alignas(16) kiln_softmax_args kernargs = w->args;
    const amd_launch launch = {
        .program = program,
        .kernel = kernel,
        .grid = {KILN_BLOCK, 1, 1},
        .group = {KILN_BLOCK, 1, 1},
        .group_bytes = kernel->group_bytes + 6 * KILN_BLOCK * KILN_VECTOR_BYTES,
        .kernarg = (uintptr_t)&kernargs,
        .find = find,
        .find_context = w,
        .seed = w->seed,
        .budget = w->budget,
        .threads = 1,
    };
    sim_report report;
    memset(&w->counters, 0, sizeof w->counters);
    bool good = amd_launch_run(&launch, &w->counters, &report);
    assert_int_equal(good, report.kind == SIM_FAULT_NONE);
    amd_program_free(program);
    return report;
}

/* The file's bytes of the nth instruction whose text begins so, or NULL. */
static uint8_t *instruction(world *w, const char *begins, unsigned nth) {
    enum { TEXT_PAGE = 4096 }; /* lld puts .text a page behind its place in the file */
    amd_program *program = world_load(w);
    uint8_t *found = NULL;
    for (uint32_t i = 0; i < program->op_count && !found; i++) {
        const amd_op *op = &program->ops[i];
        if (strncmp(op->text, begins, strlen(begins)) != 0 || nth--) continue;
        found = w->bytes + op->address - TEXT_PAGE;
        assert_memory_equal(found, program->image + op->address, op->size);
    }
    amd_program_free(program);
    return found;
}

enum { NOP_9 = 0xbf800000u };

static void overwrite(uint8_t *bytes, uint32_t word) {
    memcpy(bytes, &word, sizeof word);
}

static void expect(world *w, sim_fault_kind kind, const char *says) {
    sim_report report = world_run(w);
    if (report.kind != kind) {
        fail_msg("%s: expected \"%s\", got \"%s\"", w->target->image, sim_fault_text(kind), report.text);
    } else if (!strstr(report.text, says) || !strstr(report.text, "kiln_softmax_rows_f32")) {
        fail_msg("%s: \"%s\" does not say \"%s\"", w->target->image, report.text, says);
    }
    world_free(w);
}

/* ---- Tests ---- */

static void test_softmax_is_right_on_every_target(void **state) {
    (void)state;
    for (int i = 0; i < PAIRS; i++) {
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            world w;
            world_make(&w, &pairs[i]);
            w.seed = seed;
            sim_report report = world_run(&w);
            if (report.kind != SIM_FAULT_NONE) fail_msg("%s: %s", pairs[i].image, report.text);
            double sum = 0;
            for (int c = 0; c < COLS; c++)
                sum += exp((double)w.x[c] - 100.0 / 9 + 5);
            for (int c = 0; c < COLS; c++) {
                double expected = exp((double)w.x[c] - 100.0 / 9 + 5) / sum;
                if (fabs((double)w.y[c] - expected) > expected * 2e-6)
                    fail_msg("%s, seed %d: y[%d] is %.9g, expected %.9g", pairs[i].image, (int)seed, c, (double)w.y[c],
                             expected);
            }
            /* Each element comes in once and goes out once, 16 bytes of each lane at a time. */
            assert_int_equal(w.counters.global_written_bytes, COLS * sizeof(float));
            assert_true(w.counters.global_read_bytes >= COLS * sizeof(float));
            assert_true(w.counters.global_read_bytes < COLS * sizeof(float) + 64 * 1024);
            assert_true(w.counters.barriers > 0 && w.counters.branches > 0);
            world_free(&w);
        }
    }
}

static void test_access_beyond_memory(void **state) {
    (void)state;
    for (int i = 0; i < PAIRS; i++) {
        world w;
        world_make(&w, &pairs[i]);
        w.x_cols = COLS - 1;
        expect(&w, SIM_FAULT_OUT_OF_BOUNDS, "global_load");
    }
}

static void test_memory_that_was_never_written(void **state) {
    (void)state;
    world w;
    world_make(&w, &pairs[0]);
    w.x_written[COLS * sizeof(float) / 8 / 2] = 0xfe;
    expect(&w, SIM_FAULT_UNINITIALISED, "lane");
}

static void test_misaligned(void **state) {
    (void)state;
    world w;
    world_make(&w, &pairs[0]);
    w.args.x = (const char *)w.args.x + 2;
    expect(&w, SIM_FAULT_MISALIGNED, "lane 0");
}

static void test_store_to_constant_memory(void **state) {
    (void)state;
    world w;
    world_make(&w, &pairs[0]);
    w.y_constant = true;
    expect(&w, SIM_FAULT_STORE_TO_CONSTANT, "global_store");
}

static void test_endless(void **state) {
    (void)state;
    enum { BRANCH_TO_ITSELF_9 = 0xbf82ffff };
    world w;
    world_make(&w, &pairs[0]);
    overwrite(instruction(&w, "s_waitcnt", 0), BRANCH_TO_ITSELF_9);
    expect(&w, SIM_FAULT_ENDLESS, "s_branch");
}

/* Every wait for a load of a vector register, taken out one at a time, is missed: on each target under its own name. */
static void test_missing_wait_for_a_load(void **state) {
    (void)state;
    static const char *const waits[] = {"s_waitcnt vmcnt(0)", "s_wait_loadcnt 0x0"};
    for (int i = 0; i < PAIRS; i++) {
        unsigned planted = 0;
        for (int k = 0; k < 2; k++) {
            world w;
            world_make(&w, &pairs[i]);
            uint8_t *wait = instruction(&w, waits[k], 0);
            world_free(&w);
            if (!wait) continue;
            for (unsigned nth = 0;; nth++) {
                world_make(&w, &pairs[i]);
                wait = instruction(&w, waits[k], nth);
                if (!wait) break;
                overwrite(wait, NOP_9);
                sim_report report = world_run(&w);
                planted += report.kind == SIM_FAULT_WAIT;
                /* a race where the wait is for shared memory as well */
                if (report.kind != SIM_FAULT_WAIT && report.kind != SIM_FAULT_RACE && report.kind != SIM_FAULT_NONE)
                    fail_msg("%s", report.text);
                world_free(&w);
            }
            world_free(&w);
        }
        /* The others are not reached, or wait for stores, which nothing here depends on. */
        if (!planted) fail_msg("%s: no missing wait was noticed", pairs[i].image);
    }
}

static void test_missing_wait_for_arguments(void **state) {
    (void)state;
    world w;
    world_make(&w, &pairs[0]);
    overwrite(instruction(&w, "s_waitcnt lgkmcnt(0)", 0), NOP_9);
    expect(&w, SIM_FAULT_WAIT, "s_load_dword");
}

/* Every barrier, taken out one at a time, is missed, but for those that this launch does not come to and those that
 * only keep a second use of LDS away from the first. */
static void test_missing_barrier(void **state) {
    (void)state;
    for (int i = 0; i < PAIRS; i++) {
        unsigned noticed = 0;
        world w;
        for (unsigned nth = 0;; nth++) {
            world_make(&w, &pairs[i]);
            uint8_t *wait = instruction(&w, "s_barrier_wait", nth), *barrier = instruction(&w, "s_barrier_signal", nth);
            if (!barrier) barrier = instruction(&w, "s_barrier", nth);
            if (!barrier) break;
            overwrite(barrier, NOP_9);
            if (wait) overwrite(wait, NOP_9);
            sim_report report = world_run(&w);
            noticed += report.kind == SIM_FAULT_RACE || report.kind == SIM_FAULT_UNINITIALISED;
            world_free(&w);
        }
        world_free(&w);
        if (!noticed) fail_msg("%s: no missing barrier was noticed", pairs[i].image);
    }
}

/* A wave's part of the barrier is done by some only: gfx12 cannot wait for what it did not signal. */
static void test_wait_without_signal(void **state) {
    (void)state;
    world w;
    world_make(&w, &pairs[4]);
    /* The first in the code is not the first that this launch comes to. */
    overwrite(instruction(&w, "s_barrier_signal", 1), NOP_9);
    expect(&w, SIM_FAULT_BARRIER, "s_barrier_wait");
}

/* Two of three waves come to the barrier; the third, in which SCC is set, ends without. */
static void test_barrier_that_some_waves_do_not_reach(void **state) {
    (void)state;
    enum { WAVES = 3 };
    static amdgcn_registers registers[WAVES];
    static const struct {
        const char *processor;
        bool wave64;
        const char *barrier, *at;
    } cases[] = {{"gfx90a", true, "s_barrier", "s_barrier"},
                 {"gfx942", true, "s_barrier", "s_barrier"},
                 {"gfx1030", false, "s_barrier", "s_barrier"},
                 {"gfx1100", true, "s_barrier", "s_barrier"},
                 {"gfx1201", false, "s_barrier_signal -1\ns_barrier_wait -1", "s_barrier_wait"}};
    uint64_t random = 1;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[128];
        snprintf(text, sizeof text, "s_cbranch_scc1 over\n%s\nover:\ns_nop 0", cases[i].barrier);
        amd_program *program = amdgcn_load(cases[i].processor, cases[i].wave64, text);
        for (uint64_t seed = 1; seed <= WAVES + 1; seed++) {
            const amdgcn_setting setting = {.waves = WAVES, .seed = seed};
            sim_report report;
            for (int n = 0; n < WAVES; n++) {
                amdgcn_registers_fill(&registers[n], program, &random);
                registers[n].scc = n == (int)seed - 1; /* the last time all reach it */
            }
            bool good = amdgcn_try(program, &setting, registers, &report);
            assert_int_equal(good, seed > WAVES);
            if (good) continue;
            assert_int_equal(report.kind, SIM_FAULT_BARRIER);
            if (!strstr(report.text, "2 of 3 waves") || !strstr(report.text, cases[i].at))
                fail_msg("%s: \"%s\"", cases[i].processor, report.text);
        }
        amd_program_free(program);
    }
}

static void test_lds_write_not_awaited(void **state) {
    (void)state;
    world w;
    world_make(&w, &pairs[0]);
    /* The wait in front of the second barrier that awaits a write and no read: this launch does not come to the first.
     */
    amd_program *program = world_load(&w);
    unsigned nth = 0, barriers = 0;
    bool written = false, found = false;
    for (uint32_t i = 0; i + 1 < program->op_count && !found; i++) {
        const char *text = program->ops[i].text;
        const bool waits = !strncmp(text, "s_waitcnt lgkmcnt(0)", 20);
        if (!strncmp(text, "ds_", 3)) written = !strncmp(text, "ds_write", 8);
        found = waits && written && strcmp(program->ops[i + 1].text, "s_barrier") == 0 && ++barriers == 2;
        nth += waits && !found;
    }
    amd_program_free(program);
    assert_true(found);
    overwrite(instruction(&w, "s_waitcnt lgkmcnt(0)", nth), NOP_9);
    expect(&w, SIM_FAULT_RACE, "is not waited for before the barrier");
}

static void test_unknown_instruction_is_refused(void **state) {
    (void)state;
    enum { SETVSKIP_9 = 0xbf100100, NOTHING_9 = 0xbfff0000 };
    static const struct {
        uint32_t word;
        const char *says;
    } bad[] = {{SETVSKIP_9, "s_setvskip is not simulated"}, {NOTHING_9, "is no instruction"}};
    for (int i = 0; i < 2; i++) {
        world w;
        char why[512], address[32];
        world_make(&w, &pairs[0]);
        uint8_t *at = instruction(&w, "s_waitcnt", 1);
        snprintf(address, sizeof address, "0x%tx", at - w.bytes + 4096);
        overwrite(at, bad[i].word);
        assert_null(amd_program_load(w.bytes, w.size, "gfx942", why, sizeof why));
        if (!strstr(why, bad[i].says) || !strstr(why, address)) fail_msg("refused with \"%s\"", why);
        world_free(&w);
    }
}

static void test_code_objects_that_are_none(void **state) {
    (void)state;
    world w;
    char why[512];
    world_make(&w, &pairs[0]);
    assert_null(amd_program_load(w.bytes, 10, "gfx942", why, sizeof why));
    assert_null(amd_program_load(w.bytes, 700, "gfx942", why, sizeof why));
    assert_null(amd_program_load(w.bytes, w.size, "gfx950", why, sizeof why));
    assert_non_null(strstr(why, "gfx950"));
    world_free(&w);
}

int main(void) {
    const char *why;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_softmax_is_right_on_every_target),
        cmocka_unit_test(test_access_beyond_memory),
        cmocka_unit_test(test_memory_that_was_never_written),
        cmocka_unit_test(test_misaligned),
        cmocka_unit_test(test_store_to_constant_memory),
        cmocka_unit_test(test_endless),
        cmocka_unit_test(test_missing_wait_for_a_load),
        cmocka_unit_test(test_missing_wait_for_arguments),
        cmocka_unit_test(test_missing_barrier),
        cmocka_unit_test(test_wait_without_signal),
        cmocka_unit_test(test_barrier_that_some_waves_do_not_reach),
        cmocka_unit_test(test_lds_write_not_awaited),
        cmocka_unit_test(test_unknown_instruction_is_refused),
        cmocka_unit_test(test_code_objects_that_are_none),
    };
    if (!amd_llvm_present(&why)) {
        fprintf(stderr, "AMD machine code is NOT tested: %s\n", why);
        printf("1..0 # SKIP %s\n", why);
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
