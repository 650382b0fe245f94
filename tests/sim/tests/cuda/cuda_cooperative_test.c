/* Cooperative launches on the simulated CUDA driver: blocks that wait for each other, as cooperative groups make them
 * do, and how many there may be. */
#include "tests/sim/tests/cuda/cuda_driver.h"
#include <stdlib.h>

enum { COOPERATIVE_LAUNCH = 95, ATTRIBUTE_COOPERATIVE = 2, BLOCKS_MAX = 64 };

static sim_control sim;
static cuda_driver driver;

/* Each block writes its number, meets the others, and sums up what they all wrote. The blocks count themselves in a
 * word of the grid's workspace, block 0 so that its topmost bit turns when all have come. Block absent does not come.
 */
static const char text[] =
    ".version 7.8\n.target sm_75\n.address_size 64\n"
    ".visible .entry meet(.param .u64 in, .param .u64 out, .param .u32 absent) {\n"
    ".reg .b32 b, n, v, old, now, i, gone;\n.reg .b64 w, x, y;\n.reg .pred p;\n.shared .b8 bytes[1024];\n"
    "mov.u32 b, %ctaid.x;\nmov.u32 n, %nctaid.x;\nld.param.u64 x, [in];\nld.param.u64 y, [out];\n"
    "ld.param.u32 gone, [absent];\nmad.wide.u32 w, b, 4, x;\nadd.u32 v, b, 1;\nst.global.u32 [w], v;\n"
    "setp.eq.u32 p, b, gone;\n@p exit;\n"
    "mov.u32 v, %envreg1;\nmov.u32 i, %envreg2;\nmov.b64 w, {i, v};\n"
    "setp.eq.u64 p, w, 0;\n@p trap;\n"
    "mov.u32 v, 1;\nsetp.ne.u32 p, b, 0;\n@p bra COUNT;\nsub.u32 v, 0x80000001, n;\nCOUNT:\n"
    "atom.add.release.gpu.u32 old, [w+4], v;\n"
    "AGAIN: ld.acquire.gpu.u32 now, [w+4];\nxor.b32 now, now, old;\nsetp.ge.s32 p, now, 0;\n@p bra AGAIN;\n"
    "mov.u32 v, 0;\nmov.u32 i, 0;\n"
    "SUM: mad.wide.u32 w, i, 4, x;\nld.global.u32 now, [w];\nadd.u32 v, v, now;\nadd.u32 i, i, 1;\n"
    "setp.lt.u32 p, i, n;\n@p bra SUM;\nmad.wide.u32 w, b, 4, y;\nst.global.u32 [w], v;\nret;\n}\n";

typedef struct world {
    kiln__cu_context context;
    kiln__cu_module module;
    kiln__cu_function function;
    kiln__cu_address in, out;
} world;

static world world_new(void) {
    world w;
    expect_cu(CU_OK, driver.cuCtxCreate(&w.context, 0, 0));
    expect_cu(CU_OK, driver.cuModuleLoadDataEx(&w.module, text, 0, NULL, NULL));
    expect_cu(CU_OK, driver.cuModuleGetFunction(&w.function, w.module, "meet"));
    expect_cu(CU_OK, driver.cuMemAlloc(&w.in, BLOCKS_MAX * 4));
    expect_cu(CU_OK, driver.cuMemAlloc(&w.out, BLOCKS_MAX * 4));
    return w;
}

static void world_free(world *w) {
    expect_cu(CU_OK, driver.cuCtxDestroy(w->context));
}

static int launch(world *w, uint32_t blocks, uint32_t absent) {
    void *parameters[] = {&w->in, &w->out, &absent};
    return (int)driver.cuLaunchCooperativeKernel(w->function, blocks, 1, 1, 1, 1, 1, 0, NULL, parameters);
}

static void check_sums(const world *w, uint32_t blocks) {
    uint32_t sums[BLOCKS_MAX];
    expect_cu(CU_OK, driver.cuMemcpyDtoHAsync(sums, w->out, blocks * 4, NULL));
    expect_cu(CU_OK, driver.cuStreamSynchronize(NULL));
    for (uint32_t b = 0; b < blocks; b++)
        assert_int_equal(sums[b], blocks * (blocks + 1) / 2);
}

static void blocks_meet(void **state) {
    (void)state;
    int value = 0;
    expect_cu(CU_OK, driver.cuDeviceGetAttribute(&value, COOPERATIVE_LAUNCH, 0));
    assert_int_equal(value, 1);
    world w = world_new();
    for (uint32_t blocks = 1; blocks <= BLOCKS_MAX; blocks *= 4) {
        expect_cu(CU_OK, launch(&w, blocks, BLOCKS_MAX));
        check_sums(&w, blocks);
    }
    uint32_t absent = BLOCKS_MAX;
    void *parameters[] = {&w.in, &w.out, &absent};
    kiln__cu_launch_attribute attribute = {.id = ATTRIBUTE_COOPERATIVE, .value = {.bytes = {1}}};
    kiln__cu_launch_config config = {.grid_x = 7,
                                     .grid_y = 1,
                                     .grid_z = 1,
                                     .block_x = 1,
                                     .block_y = 1,
                                     .block_z = 1,
                                     .attributes = &attribute,
                                     .attribute_count = 1};
    expect_cu(CU_OK, driver.cuLaunchKernelEx(&config, w.function, parameters, NULL));
    check_sums(&w, 7);
    world_free(&w);
    assert_int_equal(sim.violations(), 0);
}

static void a_block_that_does_not_come_is_found(void **state) {
    (void)state;
    world w = world_new();
    expect_cu(CU_OK, launch(&w, 5, 3));
    expect_cu(CU_LAUNCH_TIMEOUT, driver.cuCtxSynchronize());
    world_free(&w);
}

/* Before any block has used up its budget, but where the host could still let them go. */
static void blocks_that_wait_in_vain_are_found_early(void **state) {
    (void)state;
    sim.configure("KILN_SIM_BUDGET", "4000000");
    for (int pinned = 0; pinned < 2; pinned++) {
        uint64_t instructions = 0;
        void *memory;
        world w = world_new();
        if (pinned) expect_cu(CU_OK, driver.cuMemHostAlloc(&memory, 64, 0));
        sim.reset();
        expect_cu(CU_OK, launch(&w, 5, 3));
        expect_cu(CU_LAUNCH_TIMEOUT, driver.cuCtxSynchronize());
        assert_true(sim.counter(0, "instructions", &instructions));
        assert_int_equal(instructions > 4000000, pinned);
        world_free(&w);
    }
    sim.configure("KILN_SIM_BUDGET", "100000");
}

/* An ordinary launch has no place to meet. */
static void only_a_cooperative_launch_can_meet(void **state) {
    (void)state;
    world w = world_new();
    uint32_t absent = BLOCKS_MAX;
    void *parameters[] = {&w.in, &w.out, &absent};
    expect_cu(CU_OK, driver.cuLaunchKernel(w.function, 2, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
    expect_cu(CU_LAUNCH_FAILED, driver.cuCtxSynchronize());
    world_free(&w);
}

/* All blocks must have room at once: as many on each multiprocessor as occupancy says. */
static void too_many_blocks_are_refused(void **state) {
    (void)state;
    int each, multiprocessors;
    uint32_t absent = BLOCKS_MAX;
    world w = world_new();
    void *parameters[] = {&w.in, &w.out, &absent};
    const unsigned shared = 40000;
    expect_cu(CU_OK, driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(&each, w.function, 1024, shared));
    expect_cu(CU_OK, driver.cuDeviceGetAttribute(&multiprocessors, KILN__CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    assert_in_range(each, 1, 8);
    unsigned most = (unsigned)(each * multiprocessors);
    expect_cu(CU_TOO_LARGE,
              driver.cuLaunchCooperativeKernel(w.function, most / 3 + 1, 3, 1, 1024, 1, 1, shared, NULL, parameters));
    expect_cu(CU_TOO_LARGE,
              driver.cuLaunchCooperativeKernel(w.function, most + 1, 1, 1, 1024, 1, 1, shared, NULL, parameters));
    expect_cu(CU_OK, driver.cuCtxSynchronize());
    world_free(&w);
    assert_int_equal(sim.violations(), 0);
}

int main(int argc, char **argv) {
    (void)argc;
    setenv("KILN_SIM_BUDGET", "100000", 1);
    cuda_driver_start(argv, "sm_80", &sim, &driver);
    expect_cu(CU_OK, driver.cuInit(0));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_meet),
        cmocka_unit_test(a_block_that_does_not_come_is_found),
        cmocka_unit_test(blocks_that_wait_in_vain_are_found_early),
        cmocka_unit_test(only_a_cooperative_launch_can_meet),
        cmocka_unit_test(too_many_blocks_are_refused),
    };
    return cmocka_run_group_tests_name("cuda_cooperative", tests, NULL, NULL);
}
