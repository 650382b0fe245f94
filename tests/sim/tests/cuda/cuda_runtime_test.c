/* printf, malloc and free in kernels, on the simulated CUDA driver: what comes out and when, and what of a heap is
 * found to be wrong. */
#include "tests/sim/tests/cuda/cuda_driver.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LIMIT_STACK = 0, LIMIT_PRINTED = 1, LIMIT_HEAP = 2, WORDS = 64 };

static sim_control sim;
static cuda_driver driver;

#define FREE(p) "{ .param .b64 n; st.param.b64 [n], " p "; call free, (n); }\n"

/* Each thread of say prints a line with arguments of every size. heap does what its second parameter says with 24 bytes
 * that malloc gave it. */
static const char text[] =
    ".version 7.8\n.target sm_75\n.address_size 64\n"
    ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
    ".extern .func (.param .b64 r) malloc(.param .b64 n);\n.extern .func free(.param .b64 p);\n"
    ".global .b8 format[] = {%s, 0};\n.global .b8 word[] = {119, 111, 114, 100, 0};\n"
    ".visible .entry say(.param .u64 at, .param .u32 what) {\n.reg .b32 t, c;\n.reg .b64 x, a;\n.reg .f64 f;\n"
    ".local .align 8 .b8 list[64];\n"
    "mov.u32 t, %%tid.x;\nst.local.u32 [list], t;\nmov.u64 x, word;\nst.local.u64 [list+8], x;\n"
    "cvt.rn.f64.u32 f, t;\nadd.f64 f, f, 0.25;\nst.local.f64 [list+16], f;\nadd.u32 c, t, 97;\n"
    "st.local.u32 [list+24], c;\nmul.wide.s32 x, t, -1000000000;\nmul.lo.s64 x, x, 1000;\nst.local.u64 [list+32], x;\n"
    "st.local.u32 [list+40], 7;\nst.local.u32 [list+44], t;\n"
    "mov.u64 a, list;\ncvta.local.u64 a, a;\nmov.u64 x, format;\n"
    "{ .param .b64 f; .param .b64 l; .param .b32 r; st.param.b64 [f], x; st.param.b64 [l], a;\n"
    "call (r), vprintf, (f, l); ld.param.b32 c, [r]; }\n"
    "ld.param.u64 x, [at];\nmad.wide.u32 x, t, 4, x;\nst.global.u32 [x], c;\nret;\n}\n"
    ".visible .entry heap(.param .u64 at, .param .u32 what) {\n.reg .b32 w, v;\n.reg .b64 p, q, o;\n.reg .pred e;\n"
    "ld.param.u32 w, [what];\nld.param.u64 o, [at];\n"
    "{ .param .b64 n; .param .b64 r; st.param.b64 [n], 24; call (r), malloc, (n); ld.param.b64 p, [r]; }\n"
    "WAYS: .branchtargets RIGHT, BEYOND, FREED, TWICE, FRESH, INSIDE, BEFORE, ALL;\nbrx.idx w, WAYS;\n"
    "RIGHT: st.u64 [p+16], 5;\nld.u32 v, [p+16];\nst.global.u32 [o], v;\n" FREE("p")
        FREE("0") "ret;\n"
                  "BEYOND: st.u32 [p+24], 1;\nret;\n"
                  "FREED: st.u32 [p], 1;\n" FREE(
                      "p") "ld.u32 v, [p];\nst.global.u32 [o], v;\nret;\n"
                           "TWICE: " FREE("p")
                               FREE("p") "ret;\n"
                                         "FRESH: ld.u32 v, [p+20];\nret;\n"
                                         "INSIDE: add.u64 q, p, 8;\n" FREE(
                                             "q") "ret;\n"
                                                  "BEFORE: ld.u32 v, [p+-4];\nret;\n"
                                                  "ALL: mov.u32 v, 0;\n"
                                                  "AGAIN: { .param .b64 n; .param .b64 r; st.param.b64 [n], 1000; call "
                                                  "(r), malloc, (n); ld.param.b64 p, [r]; }\n"
                                                  "setp.eq.u64 e, p, 0;\n@e bra DONE;\nadd.u32 v, v, 1;\nbra "
                                                  "AGAIN;\nDONE: st.global.u32 [o], v;\nret;\n}\n";

typedef struct world {
    kiln__cu_context context;
    kiln__cu_module module;
    kiln__cu_address words;
} world;

/* A context of its own, with the text for a format. */
static world world_new(const char *format) {
    static char numbers[4096], whole[16384];
    size_t length = 0;
    world w;
    for (size_t i = 0; format[i]; i++)
        length += (size_t)snprintf(numbers + length, sizeof numbers - length, i ? ", %d" : "%d", format[i]);
    snprintf(whole, sizeof whole, text, numbers);
    expect_cu(CU_OK, driver.cuCtxCreate(&w.context, 0, 0));
    expect_cu(CU_OK, driver.cuModuleLoadDataEx(&w.module, whole, 0, NULL, NULL));
    expect_cu(CU_OK, driver.cuMemAlloc(&w.words, WORDS * 4));
    return w;
}

static void world_free(world *w) {
    expect_cu(CU_OK, driver.cuCtxDestroy(w->context));
}

static void launch(const world *w, const char *kernel, unsigned blocks, unsigned threads, uint32_t what) {
    kiln__cu_function function;
    kiln__cu_address at = w->words;
    void *parameters[] = {&at, &what};
    expect_cu(CU_OK, driver.cuModuleGetFunction(&function, w->module, kernel));
    expect_cu(CU_OK, driver.cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, NULL, parameters, NULL));
}

static uint32_t first_word(const world *w) {
    uint32_t word;
    expect_cu(CU_OK, driver.cuMemcpyDtoHAsync(&word, w->words, sizeof word, NULL));
    expect_cu(CU_OK, driver.cuStreamSynchronize(NULL));
    return word;
}

/* ---- Standard output into a file, and back ---- */

static int kept;

static FILE *catch_begin(void) {
    FILE *file = tmpfile();
    assert_non_null(file);
    fflush(stdout);
    kept = dup(STDOUT_FILENO);
    assert_true(kept >= 0 && dup2(fileno(file), STDOUT_FILENO) >= 0);
    return file;
}

static size_t caught(FILE *file) {
    fseek(file, 0, SEEK_END);
    return (size_t)ftell(file);
}

static void catch_end(FILE *file, char *out, size_t size) {
    fflush(stdout);
    assert_true(dup2(kept, STDOUT_FILENO) >= 0);
    close(kept);
    rewind(file);
    out[fread(out, 1, size - 1, file)] = 0;
    fclose(file);
}

/* ---- printf ---- */

static void each_thread_prints_its_line(void **state) {
    (void)state;
    static char printed[8192];
    world w = world_new("[%d %6s %.2f %c %lld %-3u%%%x]\n");
    FILE *file = catch_begin();
    launch(&w, "say", 2, 3, 0);
    size_t before = caught(file);
    int result = (int)driver.cuCtxSynchronize();
    catch_end(file, printed, sizeof printed);
    assert_int_equal(before, 0); /* not before something waits */
    assert_int_equal(result, CU_OK);
    size_t length = 0;
    for (int t = 0; t < 3; t++) {
        char line[128];
        int size = snprintf(line, sizeof line, "[%d %6s %.2f %c %lld %-3u%%%x]\n", t, "word", t + 0.25, 'a' + t,
                            t * -1000000000000ll, 7u, (unsigned)t);
        const char *at = strstr(printed, line);
        if (!at || !strstr(at + 1, line)) fail_msg("%s is not there twice in %s", line, printed);
        length += 2 * (size_t)size;
    }
    assert_int_equal(strlen(printed), length);
    assert_int_equal(first_word(&w), 7); /* arguments */
    world_free(&w);
}

/* Of more than there is room for, the last is left, and it is said. */
static void what_does_not_fit_is_lost(void **state) {
    (void)state;
    static char printed[8192];
    size_t limit;
    world w = world_new("%5d\n");
    expect_cu(CU_OK, driver.cuCtxGetLimit(&limit, LIMIT_PRINTED));
    assert_int_equal(limit, 1 << 20);
    expect_cu(CU_OK, driver.cuCtxSetLimit(LIMIT_PRINTED, 600));
    FILE *file = catch_begin();
    launch(&w, "say", 1, 32, 0);
    launch(&w, "say", 8, 32, 0);
    int result = (int)driver.cuCtxSynchronize();
    catch_end(file, printed, sizeof printed);
    assert_int_equal(result, CU_OK);
    assert_int_equal(strlen(printed), 600);
    assert_int_equal(sim.violations(), 1);
    assert_non_null(strstr(sim.violation(), "printf"));
    expect_cu(CU_INVALID_VALUE, driver.cuCtxSetLimit(LIMIT_PRINTED, 1 << 20)); /* too late */
    sim.reset();
    world_free(&w);
}

/* ---- malloc and free ---- */

static void a_heap_s_faults_are_found(void **state) {
    (void)state;
    static const int results[] = {CU_OK,
                                  CU_ILLEGAL_ADDRESS,
                                  CU_ILLEGAL_ADDRESS,
                                  CU_ILLEGAL_ADDRESS,
                                  CU_LAUNCH_FAILED,
                                  CU_ILLEGAL_ADDRESS,
                                  CU_ILLEGAL_ADDRESS};
    for (uint32_t what = 0; what < sizeof results / sizeof *results; what++) {
        world w = world_new("-");
        launch(&w, "heap", 1, what ? 1 : 64, what);
        int result = (int)driver.cuCtxSynchronize();
        if (result != results[what]) fail_msg("way %u: %d, must be %d", what, result, results[what]);
        if (result == CU_OK) assert_int_equal(first_word(&w), 5);
        world_free(&w);
    }
    assert_int_equal(sim.violations(), 0);
}

static void a_heap_has_its_limit(void **state) {
    (void)state;
    size_t limit;
    world w = world_new("-");
    expect_cu(CU_OK, driver.cuCtxGetLimit(&limit, LIMIT_HEAP));
    assert_int_equal(limit, 8 << 20);
    expect_cu(CU_OK, driver.cuCtxSetLimit(LIMIT_HEAP, 64 << 10));
    expect_cu(CU_INVALID_VALUE, driver.cuCtxSetLimit(LIMIT_STACK, 1024));
    assert_int_equal(sim.violations(), 1);
    sim.reset();
    launch(&w, "heap", 1, 1, 7);
    uint32_t count = first_word(&w);
    assert_in_range(count, (64 << 10) / 1100, (64 << 10) / 1000);
    launch(&w, "heap", 1, 1, 7); /* what is left of it is nothing */
    assert_int_equal(first_word(&w), 0);
    expect_cu(CU_INVALID_VALUE, driver.cuCtxSetLimit(LIMIT_HEAP, 1 << 20));
    world_free(&w);
}

int main(int argc, char **argv) {
    (void)argc;
    cuda_driver_start(argv, "sm_80", &sim, &driver);
    expect_cu(CU_OK, driver.cuInit(0));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_thread_prints_its_line),
        cmocka_unit_test(what_does_not_fit_is_lost),
        cmocka_unit_test(a_heap_s_faults_are_found),
        cmocka_unit_test(a_heap_has_its_limit),
    };
    return cmocka_run_group_tests_name("cuda_runtime", tests, NULL, NULL);
}
