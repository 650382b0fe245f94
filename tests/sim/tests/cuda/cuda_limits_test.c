/* The architecture's limits on a launch: threads that a kernel allows or requires, static and dynamic shared memory,
 * and how many blocks a multiprocessor has room for. */
#include "tests/sim/tests/common/programs_host.h"
#include "tests/sim/tests/cuda/cuda_driver.h"

#define DEVICES "sm_90,sm_75,sm_80,sm_86,sm_89,sm_100,sm_120"
enum { SM_80 = 2, ARGUMENTS_OF_TURN = 12 };

static sim_control sim;
static cuda_driver driver;
static kiln__cu_module module; /* the last one loaded */

static void unload(void) {
    if (module) expect_cu(CU_OK, driver.cuModuleUnload(module));
    module = NULL;
}

/* A kernel with a directive that declares so many bytes of shared memory. */
static kiln__cu_result load(const char *directive, unsigned shared, kiln__cu_function *out_function) {
    char text[512];
    unload();
    snprintf(
        text, sizeof text,
        ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry work() %s\n{\n.shared .align 4 .b8 s[%u];\n"
        "ret;\n}\n",
        directive, shared);
    kiln__cu_result result = driver.cuModuleLoadDataEx(&module, text, 0, NULL, NULL);
    return result ? result : driver.cuModuleGetFunction(out_function, module, "work");
}

static kiln__cu_result launch_with(kiln__cu_function function, unsigned x, unsigned y, unsigned dynamic, size_t size) {
    static uint8_t arguments[64];
    void *extra[] = {KILN__CU_LAUNCH_PARAM_BUFFER_POINTER, arguments, KILN__CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     KILN__CU_LAUNCH_PARAM_END};
    return driver.cuLaunchKernel(function, 1, 1, 1, x, y, 1, dynamic, NULL, NULL, extra);
}

static kiln__cu_result launch(kiln__cu_function function, unsigned x, unsigned y, unsigned dynamic) {
    return launch_with(function, x, y, dynamic, 0);
}

/* The context of a device, current until it is released. */
static void device_use(kiln__cu_device device) {
    kiln__cu_context context;
    expect_cu(CU_OK, driver.cuDevicePrimaryCtxRetain(&context, device));
    expect_cu(CU_OK, driver.cuCtxSetCurrent(context));
}

static void threads_are_limited(void **state) {
    (void)state;
    static const struct {
        const char *directive;
        unsigned x, y;
        kiln__cu_result result;
    } rows[] = {
        {"", 1024, 1, CU_OK},
        {"", 1025, 1, CU_INVALID_VALUE},
        {"", 64, 32, CU_INVALID_VALUE},
        {".maxntid 128", 128, 1, CU_OK},
        {".maxntid 128", 129, 1, CU_OUT_OF_RESOURCES},
        {".maxntid 32, 4, 1", 16, 8, CU_OK},
        {".maxntid 128 .minnctapersm 4", 256, 1, CU_OUT_OF_RESOURCES},
        {".maxnreg 32", 1024, 1, CU_OK},
        {".reqntid 64", 64, 1, CU_OK},
        {".reqntid 64", 32, 1, CU_INVALID_VALUE},
        {".reqntid 64", 128, 1, CU_INVALID_VALUE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kiln__cu_function function;
        expect_cu(CU_OK, load(rows[i].directive, 4, &function));
        kiln__cu_result result = launch(function, rows[i].x, rows[i].y, 0);
        if (result != rows[i].result)
            fail_msg("%s with %u x %u threads: %d, must be %d", rows[i].directive, rows[i].x, rows[i].y, (int)result,
                     (int)rows[i].result);
    }
}

static void shared_memory_is_limited(void **state) {
    (void)state;
    enum { FREE = 48 << 10, ALL = 227 << 10 }; /* of sm_90 */
    kiln__cu_function function;
    expect_cu(CU_INVALID_PTX, load("", FREE + 4, &function));
    expect_cu(CU_OK, load("", FREE, &function));
    expect_cu(CU_OK, launch(function, 32, 1, 0));
    expect_cu(CU_INVALID_VALUE, launch(function, 32, 1, 4));
    expect_cu(CU_OK, load("", 40000, &function));
    expect_cu(CU_OK, launch(function, 32, 1, FREE - 40000));
    expect_cu(CU_INVALID_VALUE, launch(function, 32, 1, FREE - 40000 + 4));
    kiln__cu_enum attribute = KILN__CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    expect_cu(CU_OK, driver.cuFuncSetAttribute(function, attribute, ALL - 40000));
    expect_cu(CU_OK, launch(function, 32, 1, ALL - 40000));
    expect_cu(CU_INVALID_VALUE, launch(function, 32, 1, ALL - 40000 + 4));
}

/* A device's own limit binds, opted in or not; the CUDA C++ Programming Guide's "Technical Specifications per Compute
 * Capability" has it. */
static void shared_memory_is_limited_by_the_device(void **state) {
    (void)state;
    static const int all[] = {227, 64, 163, 99, 99, 227, 99}; /* KiB, of DEVICES */
    for (int i = 0; i < (int)(sizeof all / sizeof *all); i++) {
        kiln__cu_function function;
        kiln__cu_enum attribute = KILN__CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        device_use(i);
        expect_cu(CU_OK, load("", 1024, &function));
        expect_cu(CU_OK, driver.cuFuncSetAttribute(function, attribute, (all[i] - 1) << 10));
        expect_cu(CU_OK, launch(function, 32, 1, (unsigned)(all[i] - 1) << 10));
        expect_cu(CU_INVALID_VALUE, driver.cuFuncSetAttribute(function, attribute, ((all[i] - 1) << 10) + 1));
        unload();
        expect_cu(CU_OK, driver.cuDevicePrimaryCtxRelease(i));
    }
    device_use(0);
    expect_cu(CU_OK, driver.cuDevicePrimaryCtxRelease(0));
}

/* Overwrites the numbers of each record of a cubin's .nv.info that begins with these four bytes. */
static void info_set(uint8_t *bytes, size_t size, const uint8_t record[4], size_t at, uint32_t value) {
    unsigned found = 0;
    for (size_t i = 0; i + 16 <= size; i += 4) {
        if (memcmp(bytes + i, record, 4) != 0) continue;
        memcpy(bytes + i + at, &value, sizeof value);
        found++;
    }
    assert_true(found);
}

/* A multiprocessor has 4 times 16384 registers, which a warp takes by 256. */
static void registers_are_limited(void **state) {
    (void)state;
    static const struct {
        uint32_t registers, threads;
    } rows[] = {{16, 1024}, {64, 1024}, {65, 896}, {72, 896}, {73, 768}, {128, 512}, {168, 384}, {255, 256}};
    static const uint8_t counts[] = {0x04, 0x2f, 0x08, 0x00}, bounds[] = {0x04, 0x05, 0x0c, 0x00};
    size_t size;
    device_use(SM_80);
    unload();
    sim.configure("KILN_SIM_RECORD", "1");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint8_t *bytes = (uint8_t *)programs_read("tests/unit/images/sm_80.cubin", &size);
        kiln__cu_function function;
        int most;
        info_set(bytes, size, counts, 8, rows[i].registers);
        info_set(bytes, size, bounds, 4, 1024);
        expect_cu(CU_OK, driver.cuModuleLoadDataEx(&module, bytes, 0, NULL, NULL));
        expect_cu(CU_OK, driver.cuModuleGetFunction(&function, module, "turn"));
        expect_cu(CU_OK, driver.cuFuncGetAttribute(&most, KILN__CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function));
        assert_int_equal(most, rows[i].threads);
        kiln__cu_result result = launch_with(function, rows[i].threads, 1, 0, ARGUMENTS_OF_TURN);
        kiln__cu_result beyond = launch_with(function, rows[i].threads + 1, 1, 0, ARGUMENTS_OF_TURN);
        if (result != CU_OK || beyond != (rows[i].threads == 1024 ? CU_INVALID_VALUE : CU_OUT_OF_RESOURCES))
            fail_msg("%u registers: %u threads %d, one more %d", rows[i].registers, rows[i].threads, (int)result,
                     (int)beyond);
        unload();
        free(bytes);
    }
    sim.configure("KILN_SIM_RECORD", "0");
    expect_cu(CU_OK, driver.cuDevicePrimaryCtxRelease(SM_80));
    device_use(0);
    expect_cu(CU_OK, driver.cuDevicePrimaryCtxRelease(0));
}

/* Of sm_90: 64 warps, 32 blocks and 228 KiB of shared memory, of which each block takes 1 KiB more than it asks for. */
static void blocks_are_limited(void **state) {
    (void)state;
    static const struct {
        unsigned shared;
        int threads;
        size_t dynamic;
        int blocks;
    } rows[] = {
        {4, 256, 0, 8},         {4, 1024, 0, 2},        {4, 96, 0, 21},        {4, 97, 0, 16},
        {4, 32, 0, 32},         {4, 1025, 0, 0},        {48 << 10, 32, 0, 4},  {44 << 10, 32, 0, 5},
        {128, 32, 27 << 10, 8}, {256, 32, 37 << 10, 5}, {4, 32, 226 << 10, 1}, {4, 32, 228 << 10, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kiln__cu_function function;
        int blocks;
        expect_cu(CU_OK, load("", rows[i].shared, &function));
        expect_cu(CU_OK, driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, rows[i].threads,
                                                                            rows[i].dynamic));
        if (blocks != rows[i].blocks)
            fail_msg("%d threads, %u + %zu bytes: %d blocks, must be %d", rows[i].threads, rows[i].shared,
                     rows[i].dynamic, blocks, rows[i].blocks);
    }
}

static int context_open(void **state) {
    (void)state;
    kiln__cu_context context;
    return cuda_driver_enter(&driver, &context);
}

static int context_close(void **state) {
    (void)state;
    unload();
    return driver.cuDevicePrimaryCtxRelease(0) != CU_OK;
}

int main(int argc, char **argv) {
    (void)argc;
    cuda_driver_start(argv, DEVICES, &sim, &driver);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_are_limited),
        cmocka_unit_test(shared_memory_is_limited),
        cmocka_unit_test(shared_memory_is_limited_by_the_device),
        cmocka_unit_test(registers_are_limited),
        cmocka_unit_test(blocks_are_limited),
    };
    return cmocka_run_group_tests_name("cuda_limits", tests, context_open, context_close);
}
