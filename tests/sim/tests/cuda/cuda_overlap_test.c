/* Grids that may begin before those in front of them have ended (programmatic stream serialization): what touches their
 * results before it has waited is reported. */
#include "tests/sim/tests/cuda/cuda_driver.h"
#include <string.h>

enum { THREADS = 64, BUFFERS = 4, STEPS = 3, TRIES = 60 };
enum { A, B, C, D };

static sim_control sim;
static cuda_driver driver;

/* Each writes one more than it reads, by its thread's number. */
#define KERNEL(name, before, between)                                                                             \
    ".visible .entry " name "(.param .u64 from, .param .u64 to) {\n.reg .pred %p, %q;\n.reg .b32 %t, %x;\n"       \
    ".reg .b64 %f, %g, %o;\nld.param.u64 %f, [from];\nld.param.u64 %g, [to];\nmov.u32 %t, %tid.x;\n"              \
    "mul.wide.u32 %o, %t, 4;\nadd.u64 %f, %f, %o;\nadd.u64 %g, %g, %o;\nsetp.eq.u32 %p, %t, 0;\nand.b32 %x, %t, " \
    "31;\nsetp.eq.u32 %q, %x, 0;\n" before "\n"                                                                   \
    "ld.global.u32 %x, [%f];\nadd.u32 %x, %x, 1;\n" between "\nst.global.u32 [%g], %x;\nret;\n}\n"
#define WAIT    "griddepcontrol.wait;"
#define TRIGGER "griddepcontrol.launch_dependents;"

static const char text[] =
    ".version 7.8\n.target sm_90\n.address_size 64\n" KERNEL("never", "", "") KERNEL("first", WAIT, "")
        KERNEL("between", "", WAIT) KERNEL("hurried", TRIGGER WAIT, "") KERNEL("patient", WAIT TRIGGER, "")
            KERNEL("one", "@%q " WAIT, "") KERNEL("one_of_warp", "@%q " WAIT "\nbar.warp.sync -1;", "")
                KERNEL("one_for_all", "@%p " WAIT "\nbar.sync 0;", "");

typedef struct step {
    const char *kernel; /* NULL: no more */
    int from, to;
    uint8_t overlap;
} step;

typedef struct world {
    kiln__cu_context context;
    kiln__cu_module module;
    kiln__cu_address buffers[BUFFERS];
} world;

static world world_new(kiln__cu_device device) {
    world w;
    expect_cu(CU_OK, driver.cuDevicePrimaryCtxRetain(&w.context, device));
    expect_cu(CU_OK, driver.cuCtxSetCurrent(w.context));
    return w;
}

static void world_free(kiln__cu_device device) {
    expect_cu(CU_OK, driver.cuCtxSetCurrent(NULL));
    expect_cu(CU_OK, driver.cuDevicePrimaryCtxRelease(device));
}

static kiln__cu_result launch(world *w, const step *s) {
    kiln__cu_function function;
    kiln__cu_launch_attribute overlap = {.id = 6, .value.bytes[0] = s->overlap};
    kiln__cu_launch_config config = {.grid_x = 1,
                                     .grid_y = 1,
                                     .grid_z = 1,
                                     .block_x = THREADS,
                                     .block_y = 1,
                                     .block_z = 1,
                                     .attributes = &overlap,
                                     .attribute_count = 1};
    void *parameters[] = {&w->buffers[s->from], &w->buffers[s->to]};
    kiln__cu_result result = driver.cuModuleGetFunction(&function, w->module, s->kernel);
    return result ? result : driver.cuLaunchKernelEx(&config, function, parameters, NULL);
}

/* Launches all one after the other. Returns the driver's error, or what the last left in its buffer must be right. */
static kiln__cu_result run(const step *steps) {
    world w = world_new(0);
    uint32_t results[THREADS], wanted[BUFFERS] = {0};
    kiln__cu_result result;
    expect_cu(CU_OK, driver.cuModuleLoadData(&w.module, text));
    for (int i = 0; i < BUFFERS; i++) {
        expect_cu(CU_OK, driver.cuMemAlloc(&w.buffers[i], sizeof results));
        expect_cu(CU_OK, driver.cuMemsetD32(w.buffers[i], 0, THREADS));
    }
    int last = A;
    result = driver.cuCtxSynchronize();
    for (int i = 0; i < STEPS && steps[i].kernel && !result; i++) {
        last = steps[i].to;
        wanted[last] = wanted[steps[i].from] + 1;
        result = launch(&w, &steps[i]);
    }
    if (!result) result = driver.cuMemcpyDtoH(results, w.buffers[last], sizeof results);
    for (int i = 0; i < THREADS && !result; i++)
        assert_int_equal(results[i], wanted[last]);
    for (int i = 0; i < BUFFERS && !result; i++)
        expect_cu(CU_OK, driver.cuMemFree(w.buffers[i]));
    if (!result) expect_cu(CU_OK, driver.cuModuleUnload(w.module));
    world_free(0);
    return result;
}

/* A grid begins early only if it was enqueued in time, which is by chance: so what is wrong is found in some tries, and
 * what is right is right in all. */
static void what_is_touched_before_the_wait_is_reported(void **state) {
    (void)state;
    static const struct {
        const char *name;
        step steps[STEPS];
        bool wrong;
    } rows[] = {
        {"no wait", {{"never", A, B, 0}, {"never", B, C, 1}}, true},
        {"no wait, and none is needed", {{"never", A, B, 0}, {"never", A, C, 1}}, false},
        {"no wait, but in order", {{"never", A, B, 0}, {"never", B, C, 0}}, false},
        {"a wait", {{"never", A, B, 0}, {"first", B, C, 1}}, false},
        {"a wait behind the load", {{"never", A, B, 0}, {"between", B, C, 1}}, true},
        {"a wait in front of the store", {{"never", A, B, 0}, {"between", A, B, 1}}, false},
        {"a store without", {{"never", A, B, 0}, {"never", A, B, 1}}, true},
        {"a wait of one thread of each warp", {{"never", A, B, 0}, {"one", B, C, 1}}, true},
        {"the same, and then they meet", {{"never", A, B, 0}, {"one_of_warp", B, C, 1}}, false},
        {"a wait of one thread, and a barrier", {{"never", A, B, 0}, {"one_for_all", B, C, 1}}, false},
        {"the grid before last, which nobody waits for",
         {{"never", A, B, 0}, {"never", A, C, 1}, {"never", B, D, 1}},
         true},
        {"the same, which the last waits for too late",
         {{"never", A, B, 0}, {"hurried", A, C, 1}, {"never", B, D, 1}},
         true},
        {"the same, which it waits for in time", {{"never", A, B, 0}, {"patient", A, C, 1}, {"never", B, D, 1}}, false},
        {"the same, by its end", {{"never", A, B, 0}, {"first", A, C, 1}, {"never", B, D, 1}}, false},
        {"the same, if the last began in order", {{"never", A, B, 0}, {"never", A, C, 0}, {"never", B, D, 1}}, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kiln__cu_result result = CU_OK;
        for (int n = 0; n < TRIES && !result; n++)
            result = run(rows[i].steps);
        if (result != (rows[i].wrong ? CU_LAUNCH_FAILED : CU_OK)) fail_msg("%s: %u", rows[i].name, result);
    }
}

static void what_is_no_such_attribute_is_refused(void **state) {
    (void)state;
    static const char any[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
                              ".visible .entry any(.param .u64 from, .param .u64 to) {\nret;\n}\n";
    for (kiln__cu_device device = 0; device < 2; device++) {
        world w = world_new(device);
        memset(w.buffers, 0, sizeof w.buffers);
        expect_cu(CU_OK, driver.cuModuleLoadData(&w.module, any));
        expect_cu(CU_OK, launch(&w, &(step){"any", A, B, 0}));
        expect_cu(device ? CU_NOT_SUPPORTED : CU_OK, launch(&w, &(step){"any", A, B, 1}));
        assert_int_equal(strstr(sim.violation(), "compute capability 9.0") != NULL, device);
        expect_cu(CU_INVALID_VALUE, launch(&w, &(step){"any", A, B, 2}));
        assert_non_null(strstr(sim.violation(), "attribute 6) is 2"));
        expect_cu(CU_OK, driver.cuModuleUnload(w.module));
        world_free(device);
        sim.reset();
    }
}

static int setup(void **state) {
    (void)state;
    return (int)driver.cuInit(0);
}

static int teardown(void **state) {
    (void)state;
    return sim.violations() || sim.live("*");
}

int main(int argc, char **argv) {
    (void)argc;
    cuda_driver_start(argv, "sm_90,sm_80", &sim, &driver);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_touched_before_the_wait_is_reported),
        cmocka_unit_test(what_is_no_such_attribute_is_refused),
    };
    return cmocka_run_group_tests_name("cuda_overlap", tests, setup, teardown);
}
