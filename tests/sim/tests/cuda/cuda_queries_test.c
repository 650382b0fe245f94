/* What the simulated CUDA driver answers: about devices, functions, addresses, errors. */
#include "tests/sim/tests/cuda/cuda_driver.h"

enum { BYTES = 100 };

static sim_control sim;
static cuda_driver driver;
static kiln__cu_context context;

static const char text[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
                           ".visible .global .align 8 .u64 counted[2];\n"
                           ".visible .entry small() .maxntid 192 {\nret;\n}\n"
                           ".visible .entry any() {\nret;\n}\n";

static kiln__cu_function function_of(kiln__cu_module module, const char *name) {
    kiln__cu_function function;
    expect_cu(CU_OK, driver.cuModuleGetFunction(&function, module, name));
    return function;
}

/* Of sm_90, by the CUDA C++ Programming Guide's "Technical Specifications per Compute Capability". */
static void devices_have_attributes(void **state) {
    (void)state;
    static const struct {
        kiln__cu_enum attribute;
        int value;
    } rows[] = {
        {1, 1024},   {2, 1024}, {4, 64},      {5, INT32_MAX}, {7, 65535},  {8, 49152}, {10, 32},
        {12, 65536}, {16, 132}, {39, 2048},   {41, 1},        {75, 9},     {76, 0},    {81, 233472},
        {82, 65536}, {95, 1},   {97, 232448}, {106, 32},      {111, 1024}, {115, 1},
    };
    int value;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        expect_cu(CU_OK, driver.cuDeviceGetAttribute(&value, rows[i].attribute, 0));
        if (value != rows[i].value) fail_msg("attribute %u: %d, must be %d", rows[i].attribute, value, rows[i].value);
    }
    expect_cu(CU_INVALID_VALUE, driver.cuDeviceGetAttribute(&value, 13, 0));
    assert_non_null(strstr(sim.violation(), "attribute 13 is not presented"));
    sim.reset();
}

static void errors_have_names(void **state) {
    (void)state;
    const char *name, *words;
    expect_cu(CU_OK, driver.cuGetErrorName(CU_OK, &name));
    expect_cu(CU_OK, driver.cuGetErrorString(CU_OK, &words));
    assert_string_equal(name, "CUDA_SUCCESS");
    assert_string_equal(words, "no error");
    expect_cu(CU_OK, driver.cuGetErrorName(CU_ILLEGAL_ADDRESS, &name));
    expect_cu(CU_OK, driver.cuGetErrorString(CU_ILLEGAL_ADDRESS, &words));
    assert_string_equal(name, "CUDA_ERROR_ILLEGAL_ADDRESS");
    assert_string_equal(words, "illegal address");
    expect_cu(CU_INVALID_VALUE, driver.cuGetErrorName(12345, &name));
    expect_cu(CU_INVALID_VALUE, driver.cuGetErrorString(12345, &words));
    assert_null(name);
    assert_null(words);
}

static void expect_owner(kiln__cu_address at, uint32_t type, kiln__cu_address first, size_t size) {
    enum { CONTEXT = 1, TYPE = 2, DEVICE_POINTER = 3, ORDINAL = 9, START = 11, SIZE = 12 };
    kiln__cu_enum attributes[] = {CONTEXT, TYPE, DEVICE_POINTER, ORDINAL, START, SIZE};
    kiln__cu_context owner;
    kiln__cu_address pointer, start;
    uint32_t found;
    int32_t ordinal;
    size_t range;
    void *values[] = {&owner, &found, &pointer, &ordinal, &start, &range};
    expect_cu(CU_OK, driver.cuPointerGetAttributes(sizeof attributes / sizeof *attributes, attributes, values, at));
    assert_int_equal(found, type);
    assert_ptr_equal(owner, type ? context : NULL);
    assert_int_equal(pointer, type ? at : 0);
    assert_int_equal(ordinal, 0);
    assert_int_equal(start, first);
    assert_int_equal(range, size);
    found = 99;
    expect_cu(type ? CU_OK : CU_INVALID_VALUE, driver.cuPointerGetAttribute(&found, TYPE, at));
    assert_int_equal(found, type ? type : 99);
}

static void addresses_tell_what_they_are_of(void **state) {
    (void)state;
    enum { HOST = 1, DEVICE = 2, HOST_POINTER = 4, BUFFER = 7 };
    kiln__cu_address device, variable;
    kiln__cu_module module;
    void *host, *pointer;
    uint64_t number;
    size_t size;
    expect_cu(CU_OK, driver.cuMemAlloc(&device, BYTES));
    expect_cu(CU_OK, driver.cuMemAllocHost(&host, BYTES));
    expect_cu(CU_OK, driver.cuModuleLoadData(&module, text));
    expect_cu(CU_OK, driver.cuModuleGetGlobal(&variable, &size, module, "counted"));
    assert_int_equal(size, 16);
    expect_owner(device + BYTES - 1, DEVICE, device, BYTES);
    expect_owner((uintptr_t)host + 1, HOST, (uintptr_t)host, BYTES);
    expect_owner(variable, DEVICE, variable, 16);
    expect_owner((uintptr_t)&number, 0, 0, 0);
    expect_cu(CU_OK, driver.cuPointerGetAttribute(&pointer, HOST_POINTER, (uintptr_t)host));
    assert_ptr_equal(pointer, host);
    expect_cu(CU_INVALID_VALUE, driver.cuPointerGetAttribute(&pointer, HOST_POINTER, device));
    assert_int_equal(sim.violations(), 0);
    expect_cu(CU_INVALID_VALUE, driver.cuPointerGetAttribute(&number, BUFFER, device));
    assert_non_null(strstr(sim.violation(), "attribute 7 is not presented"));
    expect_cu(CU_OK, driver.cuModuleUnload(module));
    expect_cu(CU_OK, driver.cuMemFreeHost(host));
    expect_cu(CU_OK, driver.cuMemFree(device));
    sim.reset();
}

static void functions_have_attributes(void **state) {
    (void)state;
    enum { CONSTANT = 2, LOCAL = 3, PTX = 5, BINARY = 6, CARVEOUT = 9 };
    static const char with_memory[] = ".version 7.0\n.target sm_75\n.address_size 64\n.const .align 4 .b8 table[48];\n"
                                      ".visible .entry any() {\nret;\n}\n.visible .entry small() {\n"
                                      ".local .align 8 .b8 depot[40];\n.local .b32 spilled;\nret;\n}\n";
    kiln__cu_module module;
    kiln__cu_function function;
    int value;
    expect_cu(CU_OK, driver.cuModuleLoadData(&module, with_memory));
    expect_cu(CU_OK, driver.cuFuncGetAttribute(&value, LOCAL, function_of(module, "small")));
    assert_int_equal(value, 44);
    function = function_of(module, "any");
    expect_cu(CU_OK, driver.cuFuncGetAttribute(&value, LOCAL, function));
    assert_int_equal(value, 0);
    expect_cu(CU_OK, driver.cuFuncGetAttribute(&value, CONSTANT, function));
    assert_int_equal(value, 48);
    expect_cu(CU_OK, driver.cuFuncGetAttribute(&value, PTX, function));
    assert_int_equal(value, 75);
    expect_cu(CU_OK, driver.cuFuncGetAttribute(&value, BINARY, function));
    assert_int_equal(value, 90);
    expect_cu(CU_OK, driver.cuFuncGetAttribute(&value, CARVEOUT, function));
    assert_int_equal(value, -1);
    expect_cu(CU_OK, driver.cuFuncSetAttribute(function, CARVEOUT, 50));
    expect_cu(CU_OK, driver.cuFuncGetAttribute(&value, CARVEOUT, function));
    assert_int_equal(value, 50);
    expect_cu(CU_INVALID_VALUE, driver.cuFuncSetAttribute(function, CARVEOUT, 101));
    expect_cu(CU_OK, driver.cuModuleUnload(module));
    sim.reset();
}

static size_t more_of_larger_blocks(int block_size) {
    return block_size > 512 ? 150 << 10 : 20 << 10;
}

/* Of 2048 threads of each of 132 multiprocessors, which have 227 KiB of shared memory. */
static void the_best_size_of_a_block_is_found(void **state) {
    (void)state;
    static const struct {
        const char *name;
        size_t (*shared_of)(int block_size);
        size_t shared;
        int limit, grid, block;
    } rows[] = {
        {"any", NULL, 0, 0, 2 * 132, 1024},   {"any", NULL, 0, 512, 4 * 132, 512},
        {"any", NULL, 0, 100, 32 * 132, 64},  {"any", NULL, 40 << 10, 256, 5 * 132, 256},
        {"small", NULL, 0, 0, 16 * 132, 128}, {"any", more_of_larger_blocks, 0, 0, 4 * 132, 512},
        {"any", NULL, 228 << 10, 0, 0, 0},
    };
    kiln__cu_module module;
    int grid, block;
    expect_cu(CU_OK, driver.cuModuleLoadData(&module, text));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        expect_cu(CU_OK, driver.cuOccupancyMaxPotentialBlockSize(&grid, &block, function_of(module, rows[i].name),
                                                                 rows[i].shared_of, rows[i].shared, rows[i].limit));
        if (grid != rows[i].grid || block != rows[i].block)
            fail_msg("row %zu: %d blocks of %d, must be %d of %d", i, grid, block, rows[i].grid, rows[i].block);
    }
    expect_cu(CU_OK, driver.cuModuleUnload(module));
}

static void profilers_may_be_told(void **state) {
    (void)state;
    kiln__cu_context other;
    expect_cu(CU_OK, driver.cuProfilerStart());
    expect_cu(CU_OK, driver.cuProfilerStop());
    expect_cu(CU_INVALID_VALUE, driver.cuCtxCreate_v4(&other, (struct CUctxCreateParams_st *)&sim, 0, 0));
    assert_non_null(strstr(sim.violation(), "parameters are not presented"));
    sim.reset();
}

static int setup(void **state) {
    (void)state;
    return cuda_driver_enter(&driver, &context);
}

static int teardown(void **state) {
    (void)state;
    return cuda_driver_leave(&driver) || sim.violations() || sim.live("*");
}

/* As a driver did on an H100. */
static void tensor_maps_are_taken_or_refused(void **state) {
    (void)state;
    static const struct {
        kiln__cu_result refused;
        kiln__cu_enum type;
        uint32_t rank, offset;
        uint64_t dims[5], strides[5];
        uint32_t box[5], steps[5];
        kiln__cu_enum swizzle, promotion, fill;
    } rows[] = {
#define ONLY(...) \
    { __VA_ARGS__ }
#define SIM_TENSOR(refused, type, rank, offset, dims, strides, box, steps, swizzle, promotion, fill) \
    {refused, type, rank, offset, ONLY dims, ONLY strides, ONLY box, ONLY steps, swizzle, promotion, fill},
#include "tests/sim/recorded/tensor_maps.def"
#undef SIM_TENSOR
    };
    _Alignas(64) uint8_t bytes[128];
    struct CUtensorMap_st *map = (struct CUtensorMap_st *)(void *)bytes;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        void *address = (void *)(uintptr_t)(4096 + rows[i].offset);
        const kiln__cu_result result = driver.cuTensorMapEncodeTiled(
            map, rows[i].type, rows[i].rank, address, rows[i].dims, rows[i].strides, rows[i].box, rows[i].steps, 0,
            rows[i].swizzle, rows[i].promotion, rows[i].fill);
        if (result != rows[i].refused) fail_msg("row %zu: %u, must be %u", i, result, rows[i].refused);
    }
    expect_cu(CU_OK, driver.cuTensorMapReplaceAddress(map, (void *)(uintptr_t)8192));
    expect_cu(CU_INVALID_VALUE, driver.cuTensorMapReplaceAddress(map, (void *)(uintptr_t)8200));
}

int main(int argc, char **argv) {
    (void)argc;
    cuda_driver_start(argv, "sm_90", &sim, &driver);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensor_maps_are_taken_or_refused),
        cmocka_unit_test(devices_have_attributes),
        cmocka_unit_test(errors_have_names),
        cmocka_unit_test(addresses_tell_what_they_are_of),
        cmocka_unit_test(functions_have_attributes),
        cmocka_unit_test(the_best_size_of_a_block_is_found),
        cmocka_unit_test(profilers_may_be_told),
    };
    return cmocka_run_group_tests_name("cuda_queries", tests, setup, teardown);
}
