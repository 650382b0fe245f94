/* Memory of the simulated CUDA driver: allocations in the order of streams, fills by elements, and what is left. */
#include "tests/sim/tests/cuda/cuda_driver.h"

enum { BYTES = 64, SEEDS = 40, VALUE = 7, MEMORY = 1 << 20 };

static sim_control sim;
static cuda_driver driver;

/* Stores 7 where it is told. */
static const char text[] = ".version 6.3\n.target sm_75\n.address_size 64\n"
                           ".visible .entry store(.param .u64 at) {\n.reg .b64 %d;\n"
                           "ld.param.u64 %d, [at];\nst.global.u32 [%d], 7;\nret;\n}\n";

/* A context of its own, which a fault may end. */
typedef struct fixture {
    kiln__cu_context context;
    kiln__cu_module module;
    kiln__cu_function store;
    kiln__cu_stream a, b;
} fixture;

static void fixture_open(fixture *f) {
    expect_cu(CU_OK, driver.cuCtxCreate_v4(&f->context, NULL, 0, 0));
    expect_cu(CU_OK, driver.cuModuleLoadData(&f->module, text));
    expect_cu(CU_OK, driver.cuModuleGetFunction(&f->store, f->module, "store"));
    expect_cu(CU_OK, driver.cuStreamCreate(&f->a, KILN__CU_STREAM_NON_BLOCKING));
    expect_cu(CU_OK, driver.cuStreamCreate(&f->b, KILN__CU_STREAM_NON_BLOCKING));
}

/* The error that the context's work ended with. */
static int fixture_close(const fixture *f) {
    const int result = (int)driver.cuCtxSynchronize();
    expect_cu(CU_OK, driver.cuCtxDestroy(f->context));
    assert_int_equal(sim.live("*"), 0);
    return result;
}

static void store(const fixture *f, kiln__cu_address at, kiln__cu_stream stream) {
    void *parameters[] = {&at};
    expect_cu(CU_OK, driver.cuLaunchKernel(f->store, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
}

static void fill(const fixture *f, kiln__cu_address at, kiln__cu_stream stream) {
    (void)f;
    expect_cu(CU_OK, driver.cuMemsetD8Async(at, VALUE, BYTES, stream));
}

typedef void (*user)(const fixture *f, kiln__cu_address at, kiln__cu_stream stream);

/* A program that allocates, uses and frees. */
typedef void (*program)(const fixture *f, user use);

/* Under how many of the seeds nothing was wrong; the rest are illegal addresses. */
static int right_seeds(program run, user use) {
    int right = 0;
    for (int seed = 1; seed <= SEEDS; seed++) {
        char number[16];
        snprintf(number, sizeof number, "%d", seed);
        sim.configure("KILN_SIM_SEED", number);
        fixture f;
        fixture_open(&f);
        run(&f, use);
        const int result = fixture_close(&f);
        assert_true(result == CU_OK || result == CU_ILLEGAL_ADDRESS);
        right += result == CU_OK;
    }
    sim.configure("KILN_SIM_SEED", NULL);
    return right;
}

/* ---- In the order of streams ---- */

static void wait_for(kiln__cu_stream before, kiln__cu_stream after) {
    kiln__cu_event event;
    expect_cu(CU_OK, driver.cuEventCreate(&event, 0));
    expect_cu(CU_OK, driver.cuEventRecord(event, before));
    expect_cu(CU_OK, driver.cuStreamWaitEvent(after, event, 0));
    expect_cu(CU_OK, driver.cuEventDestroy(event));
}

static kiln__cu_address allocate(kiln__cu_stream stream) {
    kiln__cu_address at;
    expect_cu(CU_OK, driver.cuMemAllocAsync(&at, BYTES, stream));
    return at;
}

static void on_one_stream(const fixture *f, user use) {
    const kiln__cu_address at = allocate(f->a);
    use(f, at, f->a);
    expect_cu(CU_OK, driver.cuMemFreeAsync(at, f->a));
}

static void on_two_streams(const fixture *f, user use) {
    const kiln__cu_address at = allocate(f->a);
    wait_for(f->a, f->b);
    use(f, at, f->b);
    wait_for(f->b, f->a);
    expect_cu(CU_OK, driver.cuMemFreeAsync(at, f->a));
}

static void without_waiting_for_the_beginning(const fixture *f, user use) {
    const kiln__cu_address at = allocate(f->a);
    use(f, at, f->b);
    if (driver.cuStreamSynchronize(f->b) != CU_OK) return;
    expect_cu(CU_OK, driver.cuMemFree(at));
}

static void without_waiting_for_the_use(const fixture *f, user use) {
    kiln__cu_address at;
    expect_cu(CU_OK, driver.cuMemAlloc(&at, BYTES));
    use(f, at, f->b);
    expect_cu(CU_OK, driver.cuMemFreeAsync(at, f->a));
}

static void after_the_end(const fixture *f, user use) {
    const kiln__cu_address at = allocate(f->a);
    expect_cu(CU_OK, driver.cuMemFreeAsync(at, f->a));
    use(f, at, f->a);
}

static void memory_comes_and_goes_in_the_order_of_streams(void **state) {
    (void)state;
    static const user uses[] = {fill, store};
    for (size_t i = 0; i < sizeof uses / sizeof *uses; i++) {
        assert_int_equal(right_seeds(on_one_stream, uses[i]), SEEDS);
        assert_int_equal(right_seeds(on_two_streams, uses[i]), SEEDS);
    }
    assert_int_equal(right_seeds(after_the_end, store), 0);
}

static void a_forgotten_wait_is_an_illegal_address_under_some_seed(void **state) {
    (void)state;
    static const user uses[] = {fill, store};
    for (size_t i = 0; i < sizeof uses / sizeof *uses; i++) {
        assert_in_range(right_seeds(without_waiting_for_the_beginning, uses[i]), 1, SEEDS - 1);
        assert_in_range(right_seeds(without_waiting_for_the_use, uses[i]), 1, SEEDS - 1);
    }
    assert_int_equal(sim.violations(), 0);
}

static void what_is_freed_twice_is_reported(void **state) {
    (void)state;
    fixture f;
    fixture_open(&f);
    const kiln__cu_address at = allocate(f.a);
    sim.configure("KILN_SIM_SEED", "2");
    expect_cu(CU_OK, driver.cuMemFreeAsync(at, f.a));
    expect_cu(CU_INVALID_VALUE, driver.cuMemFreeAsync(at, f.a));
    assert_non_null(strstr(sim.violation(), "or is being freed"));
    sim.configure("KILN_SIM_SEED", NULL);
    expect_cu(CU_OK, fixture_close(&f));
    sim.reset();
}

static void memory_of_graphs_is_refused(void **state) {
    (void)state;
    fixture f;
    kiln__cu_address at;
    struct CUgraph_st *graph;
    fixture_open(&f);
    expect_cu(CU_OK, driver.cuStreamBeginCapture(f.a, CU_CAPTURE_GLOBAL));
    expect_cu(CU_CAPTURE_UNSUPPORTED, driver.cuMemAllocAsync(&at, BYTES, f.a));
    assert_non_null(strstr(sim.violation(), "memory of graphs is not presented"));
    expect_cu(CU_OK, driver.cuStreamEndCapture(f.a, &graph));
    expect_cu(CU_OK, driver.cuGraphDestroy(graph));
    expect_cu(CU_OK, fixture_close(&f));
    sim.reset();
}

/* What is being freed has room for what comes; what was said to be free is. */
static void memory_is_as_much_as_the_device_has(void **state) {
    (void)state;
    fixture f;
    size_t left, total;
    kiln__cu_address at;
    fixture_open(&f);
    for (int i = 0; i < 8; i++) {
        expect_cu(CU_OK, driver.cuMemAllocAsync(&at, MEMORY / 4 * 3, f.a));
        expect_cu(CU_OK, driver.cuMemGetInfo(&left, &total));
        assert_int_equal(total, MEMORY);
        assert_int_equal(left, MEMORY / 4);
        expect_cu(CU_OK, driver.cuMemFreeAsync(at, f.a));
    }
    expect_cu(CU_OUT_OF_MEMORY, driver.cuMemAllocAsync(&at, MEMORY + 1, f.a));
    expect_cu(CU_OK, driver.cuCtxSynchronize());
    expect_cu(CU_OK, driver.cuMemGetInfo(&left, &total));
    assert_int_equal(left, MEMORY);
    sim.fault("cuMemAllocAsync", 1, CU_OUT_OF_MEMORY);
    expect_cu(CU_OUT_OF_MEMORY, driver.cuMemAllocAsync(&at, BYTES, f.a));
    sim.fault(NULL, 0, 0);
    expect_cu(CU_OK, fixture_close(&f));
    assert_int_equal(sim.violations(), 0);
    sim.reset();
}

/* The end comes after the beginning by no order of these streams. */
static void an_end_before_the_beginning_is_reported(void **state) {
    (void)state;
    int reported = 0;
    for (int seed = 1; seed <= SEEDS; seed++) {
        char number[16];
        snprintf(number, sizeof number, "%d", seed);
        sim.configure("KILN_SIM_SEED", number);
        fixture f;
        fixture_open(&f);
        expect_cu(CU_OK, driver.cuMemFreeAsync(allocate(f.a), f.b));
        expect_cu(CU_OK, fixture_close(&f));
        reported += sim.violations() != 0;
        sim.reset();
    }
    sim.configure("KILN_SIM_SEED", NULL);
    assert_in_range(reported, 1, SEEDS - 1);
}

/* ---- Fills ---- */

/* The bytes of a fill, and of those behind it. */
static void expect_bytes(kiln__cu_address at, uint32_t value, size_t width, size_t count) {
    uint8_t bytes[BYTES];
    expect_cu(CU_OK, driver.cuMemcpyDtoH(bytes, at, BYTES));
    for (size_t i = 0; i < BYTES; i++)
        assert_int_equal(bytes[i], i < width * count ? (uint8_t)(value >> i % width * 8) : 0);
    expect_cu(CU_OK, driver.cuMemsetD8(at, 0, BYTES));
}

static void fills_are_of_elements(void **state) {
    (void)state;
    fixture f;
    kiln__cu_address at;
    fixture_open(&f);
    expect_cu(CU_OK, driver.cuMemAlloc(&at, BYTES));
    expect_cu(CU_OK, driver.cuMemsetD8(at, 0, BYTES));
    expect_cu(CU_OK, driver.cuMemsetD8(at, 0x12, 3));
    expect_bytes(at, 0x12, 1, 3);
    expect_cu(CU_OK, driver.cuMemsetD16(at, 0x1234, 3));
    expect_bytes(at, 0x1234, 2, 3);
    expect_cu(CU_OK, driver.cuMemsetD32(at, 0x12345678, 3));
    expect_bytes(at, 0x12345678, 4, 3);
    expect_cu(CU_OK, driver.cuMemsetD16Async(at, 0x2345, BYTES / 2, NULL));
    expect_bytes(at, 0x2345, 2, BYTES / 2);
    expect_cu(CU_OK, driver.cuMemsetD32Async(at, 0x23456789, BYTES / 4, NULL));
    expect_bytes(at, 0x23456789, 4, BYTES / 4);
    assert_int_equal(sim.violations(), 0);
    expect_cu(CU_INVALID_VALUE, driver.cuMemsetD16(at + 1, 0, 1));
    expect_cu(CU_INVALID_VALUE, driver.cuMemsetD32(at + 2, 0, 1));
    expect_cu(CU_INVALID_VALUE, driver.cuMemsetD32(at, 0, BYTES / 4 + 1));
    expect_cu(CU_INVALID_VALUE, driver.cuMemsetD32Async(at, 0, SIZE_MAX / 4 + 2, NULL));
    assert_int_equal(sim.violations(), 4);
    expect_cu(CU_OK, driver.cuMemFree(at));
    expect_cu(CU_OK, fixture_close(&f));
    sim.reset();
}

/* ---- Copies ---- */

static void copies_find_out_where_memory_is(void **state) {
    (void)state;
    fixture f;
    kiln__cu_address at;
    void *pinned;
    uint8_t bytes[BYTES];
    fixture_open(&f);
    expect_cu(CU_OK, driver.cuMemAlloc(&at, BYTES));
    expect_cu(CU_OK, driver.cuMemAllocHost(&pinned, BYTES));
    memset(bytes, VALUE, BYTES);
    expect_cu(CU_OK, driver.cuMemcpy((uintptr_t)pinned, (uintptr_t)bytes, BYTES));
    expect_cu(CU_OK, driver.cuMemcpyAsync(at, (uintptr_t)pinned, BYTES, f.a));
    memset(bytes, 0, BYTES);
    expect_cu(CU_OK, driver.cuMemcpyAsync((uintptr_t)bytes, at, BYTES, f.a));
    assert_int_equal(bytes[BYTES - 1], VALUE);
    assert_int_equal(sim.violations(), 0);
    expect_cu(CU_INVALID_VALUE, driver.cuMemcpy(at, (uintptr_t)pinned, BYTES + 1));
    expect_cu(CU_INVALID_VALUE, driver.cuMemcpyHtoD(at, pinned, BYTES + 1));
    expect_cu(CU_INVALID_VALUE, driver.cuMemcpyDtoH(bytes, (uintptr_t)pinned, BYTES));
    expect_cu(CU_INVALID_VALUE, driver.cuMemcpyDtoD(at, (uintptr_t)bytes, BYTES));
    expect_cu(CU_INVALID_VALUE, driver.cuMemcpyHtoD(at, (void *)(uintptr_t)at, BYTES));
    assert_int_equal(sim.violations(), 5);
    expect_cu(CU_OK, driver.cuMemFreeHost(pinned));
    expect_cu(CU_OK, driver.cuMemFree(at));
    expect_cu(CU_OK, fixture_close(&f));
    sim.reset();
}

int main(int argc, char **argv) {
    (void)argc;
    setenv("KILN_SIM_MEMORY", "1048576", 1);
    cuda_driver_start(argv, "sm_90", &sim, &driver);
    expect_cu(CU_OK, driver.cuInit(0));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_comes_and_goes_in_the_order_of_streams),
        cmocka_unit_test(a_forgotten_wait_is_an_illegal_address_under_some_seed),
        cmocka_unit_test(what_is_freed_twice_is_reported),
        cmocka_unit_test(an_end_before_the_beginning_is_reported),
        cmocka_unit_test(memory_of_graphs_is_refused),
        cmocka_unit_test(memory_is_as_much_as_the_device_has),
        cmocka_unit_test(fills_are_of_elements),
        cmocka_unit_test(copies_find_out_where_memory_is),
    };
    return cmocka_run_group_tests_name("cuda_memory", tests, NULL, NULL);
}
