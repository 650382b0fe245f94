/* Stream capture and graphs of the simulated CUDA driver: what a capture forbids, and what a graph replays. */
#include "tests/sim/tests/cuda/cuda_driver.h"

enum { BYTES = 64, THREADS = BYTES / 4 };

static sim_control sim;
static cuda_driver driver;

/* Adds an amount to each of 16 numbers. */
static const char text[] = ".version 6.3\n.target sm_75\n.address_size 64\n"
                           ".visible .entry add(.param .align 8 .b8 args[16]) {\n"
                           ".reg .b32 %r<4>;\n.reg .b64 %rd<4>;\n"
                           "ld.param.u64 %rd1, [args];\nld.param.u32 %r1, [args+8];\n"
                           "mov.u32 %r2, %tid.x;\nmul.wide.u32 %rd2, %r2, 4;\nadd.s64 %rd3, %rd1, %rd2;\n"
                           "ld.global.u32 %r3, [%rd3];\nadd.u32 %r3, %r3, %r1;\nst.global.u32 [%rd3], %r3;\nret;\n}\n";

typedef struct add_args {
    kiln__cu_address numbers;
    uint32_t amount, padding;
} add_args;

typedef struct fixture {
    kiln__cu_context context;
    kiln__cu_stream stream;
    kiln__cu_module module;
    kiln__cu_function add;
    kiln__cu_address numbers;
} fixture;

static int setup(void **state) {
    static fixture f;
    *state = &f;
    f = (fixture){0};
    return cuda_driver_enter(&driver, &f.context) || driver.cuStreamCreate(&f.stream, 0) ||
           driver.cuModuleLoadDataEx(&f.module, text, 0, NULL, NULL) ||
           driver.cuModuleGetFunction(&f.add, f.module, "add") || driver.cuMemAlloc(&f.numbers, BYTES);
}

static int teardown(void **state) {
    const fixture *f = *state;
    return driver.cuCtxSynchronize() || driver.cuMemFree(f->numbers) || driver.cuModuleUnload(f->module) ||
           driver.cuStreamDestroy(f->stream) || cuda_driver_leave(&driver) || sim.live("*");
}

static kiln__cu_result launch(const fixture *f, uint32_t amount) {
    add_args args = {f->numbers, amount, 0};
    size_t size = sizeof args;
    void *extra[] = {KILN__CU_LAUNCH_PARAM_BUFFER_POINTER, &args, KILN__CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     KILN__CU_LAUNCH_PARAM_END};
    return driver.cuLaunchKernel(f->add, 1, 1, 1, THREADS, 1, 1, 0, f->stream, NULL, extra);
}

static void begin(const fixture *f) {
    expect_cu(CU_OK, driver.cuStreamBeginCapture(f->stream, CU_CAPTURE_GLOBAL));
}

/* Ends the capture, which must give the error, or a graph that the caller destroys. */
static struct CUgraph_st *end(const fixture *f, int wanted) {
    struct CUgraph_st *graph = (void *)1;
    expect_cu(wanted, driver.cuStreamEndCapture(f->stream, &graph));
    assert_true(!graph == (wanted != CU_OK));
    return graph;
}

static struct CUgraphExec_st *instantiate(struct CUgraph_st *graph) {
    struct CUgraphExec_st *executable;
    expect_cu(CU_OK, driver.cuGraphInstantiateWithFlags(&executable, graph, 0));
    expect_cu(CU_OK, driver.cuGraphDestroy(graph));
    return executable;
}

static uint32_t last_number(const fixture *f) {
    uint32_t numbers[THREADS];
    expect_cu(CU_OK, driver.cuMemcpyDtoHAsync(numbers, f->numbers, BYTES, f->stream));
    return numbers[THREADS - 1];
}

/* A lazy driver loads a function at its first launch, which a capture forbids. */
static void a_function_must_be_resident_before_a_capture(void **state) {
    const fixture *f = *state;
    begin(f);
    expect_cu(CU_CAPTURE_UNSUPPORTED, launch(f, 1));
    assert_non_null(strstr(sim.violation(), "add would be loaded inside a capture"));
    driver.cuGraphDestroy(end(f, CU_OK));
    expect_cu(CU_OK, driver.cuFuncLoad(f->add));
    begin(f);
    expect_cu(CU_OK, launch(f, 1));
    driver.cuGraphDestroy(end(f, CU_OK));
}

/* Loading, by whatever call, disturbs the capture of any thread in the global mode, and of none in the relaxed one. */
static void loading_disturbs_a_capture(void **state) {
    const fixture *f = *state;
    kiln__cu_enum mode = CU_CAPTURE_RELAXED;
    int registers;
    begin(f);
    expect_cu(CU_CAPTURE_UNSUPPORTED, driver.cuFuncLoad(f->add));
    end(f, CU_CAPTURE_INVALIDATED);
    begin(f);
    expect_cu(CU_CAPTURE_UNSUPPORTED, driver.cuFuncGetAttribute(&registers, KILN__CU_FUNC_ATTRIBUTE_NUM_REGS, f->add));
    end(f, CU_CAPTURE_INVALIDATED);
    begin(f);
    expect_cu(CU_OK, driver.cuThreadExchangeStreamCaptureMode(&mode));
    assert_int_equal(mode, CU_CAPTURE_GLOBAL);
    expect_cu(CU_OK, driver.cuFuncLoad(f->add));
    expect_cu(CU_OK, driver.cuThreadExchangeStreamCaptureMode(&mode));
    expect_cu(CU_OK, launch(f, 1));
    driver.cuGraphDestroy(end(f, CU_OK));
}

static void allocating_and_freeing_disturb_a_capture(void **state) {
    const fixture *f = *state;
    kiln__cu_address memory;
    begin(f);
    expect_cu(CU_CAPTURE_UNSUPPORTED, driver.cuMemAlloc(&memory, BYTES));
    expect_cu(CU_CAPTURE_INVALIDATED, driver.cuMemsetD8Async(f->numbers, 0, BYTES, f->stream));
    end(f, CU_CAPTURE_INVALIDATED);
    begin(f);
    expect_cu(CU_CAPTURE_UNSUPPORTED, driver.cuMemFree(f->numbers));
    end(f, CU_CAPTURE_INVALIDATED);
    begin(f);
    expect_cu(CU_CAPTURE_UNSUPPORTED, driver.cuCtxSynchronize());
    end(f, CU_CAPTURE_INVALIDATED);
}

static void a_captured_stream_cannot_be_waited_for(void **state) {
    const fixture *f = *state;
    begin(f);
    expect_cu(CU_CAPTURE_UNSUPPORTED, driver.cuStreamSynchronize(f->stream));
    end(f, CU_CAPTURE_INVALIDATED);
}

/* The legacy default stream would wait for the captured one. */
static void the_legacy_stream_is_forbidden_beside_a_blocking_capture(void **state) {
    const fixture *f = *state;
    kiln__cu_stream apart;
    kiln__cu_enum status;
    begin(f);
    expect_cu(CU_CAPTURE_IMPLICIT, driver.cuMemsetD8Async(f->numbers, 0, BYTES, NULL));
    end(f, CU_CAPTURE_INVALIDATED);
    begin(f);
    expect_cu(CU_CAPTURE_IMPLICIT, driver.cuMemsetD32(f->numbers, 0, THREADS));
    end(f, CU_CAPTURE_INVALIDATED);
    begin(f);
    expect_cu(CU_CAPTURE_IMPLICIT, driver.cuMemcpyDtoD(f->numbers, f->numbers, 0));
    end(f, CU_CAPTURE_INVALIDATED);
    begin(f);
    expect_cu(CU_CAPTURE_IMPLICIT, driver.cuStreamIsCapturing(NULL, &status));
    expect_cu(CU_CAPTURE_IMPLICIT, driver.cuStreamSynchronize(CU_STREAM_LEGACY));
    end(f, CU_CAPTURE_INVALIDATED);
    expect_cu(CU_OK, driver.cuStreamCreate(&apart, KILN__CU_STREAM_NON_BLOCKING));
    expect_cu(CU_OK, driver.cuStreamBeginCapture(apart, CU_CAPTURE_GLOBAL));
    expect_cu(CU_OK, driver.cuMemsetD8Async(f->numbers, 0, BYTES, NULL));
    struct CUgraph_st *graph;
    expect_cu(CU_OK, driver.cuStreamEndCapture(apart, &graph));
    expect_cu(CU_OK, driver.cuGraphDestroy(graph));
    expect_cu(CU_OK, driver.cuStreamDestroy(apart));
}

static void only_the_legacy_stream_cannot_be_captured(void **state) {
    const fixture *f = *state;
    struct CUgraph_st *graph;
    expect_cu(CU_INVALID_VALUE, driver.cuStreamBeginCapture(CU_STREAM_LEGACY, CU_CAPTURE_GLOBAL));
    expect_cu(CU_OK, driver.cuStreamBeginCapture(CU_STREAM_PER_THREAD, CU_CAPTURE_GLOBAL));
    expect_cu(CU_ILLEGAL_STATE, driver.cuStreamBeginCapture(CU_STREAM_PER_THREAD, CU_CAPTURE_GLOBAL));
    expect_cu(CU_OK, driver.cuMemsetD8Async(f->numbers, 0, BYTES, CU_STREAM_PER_THREAD));
    expect_cu(CU_OK, driver.cuStreamEndCapture(CU_STREAM_PER_THREAD, &graph));
    expect_cu(CU_OK, driver.cuGraphDestroy(graph));
    end(f, CU_ILLEGAL_STATE);
}

/* An event recorded in a capture is a node of it; one from outside cannot be waited for inside. */
static void events_do_not_cross_a_capture_s_border(void **state) {
    const fixture *f = *state;
    kiln__cu_event inside, outside;
    expect_cu(CU_OK, driver.cuEventCreate(&inside, 0));
    expect_cu(CU_OK, driver.cuEventCreate(&outside, 0));
    expect_cu(CU_OK, driver.cuEventRecord(outside, f->stream));
    begin(f);
    expect_cu(CU_OK, driver.cuEventRecord(inside, f->stream));
    expect_cu(CU_OK, driver.cuStreamWaitEvent(f->stream, inside, 0));
    expect_cu(CU_CAPTURED_EVENT, driver.cuEventSynchronize(inside));
    expect_cu(CU_CAPTURE_ISOLATION, driver.cuStreamWaitEvent(f->stream, outside, 0));
    driver.cuGraphDestroy(end(f, CU_OK));
    expect_cu(CU_CAPTURED_EVENT, driver.cuStreamWaitEvent(f->stream, inside, 0));
    expect_cu(CU_OK, driver.cuEventDestroy(inside));
    expect_cu(CU_OK, driver.cuEventDestroy(outside));
}

/* A fill, a launch and a copy, each with what it had when it was captured, on what the memory holds at each replay. */
static void a_graph_replays_launches_copies_and_fills(void **state) {
    const fixture *f = *state;
    kiln__cu_address total;
    expect_cu(CU_OK, driver.cuMemAlloc(&total, BYTES));
    expect_cu(CU_OK, driver.cuMemsetD8Async(f->numbers, 0, BYTES, f->stream));
    expect_cu(CU_OK, driver.cuFuncLoad(f->add));
    sim.reset();
    begin(f);
    expect_cu(CU_OK, launch(f, 3));
    expect_cu(CU_OK, driver.cuMemcpyDtoDAsync(total, f->numbers, BYTES, f->stream));
    expect_cu(CU_OK, driver.cuMemsetD32Async(f->numbers, 0x1234567, 1, f->stream));
    expect_cu(CU_OK, launch(f, 4));
    struct CUgraphExec_st *executable = instantiate(end(f, CU_OK));
    assert_int_equal(last_number(f), 0); /* nothing was done yet */
    for (uint32_t round = 1; round <= 3; round++) {
        uint32_t numbers[THREADS];
        expect_cu(CU_OK, driver.cuGraphLaunch(executable, f->stream));
        assert_int_equal(last_number(f), 7 * round);
        expect_cu(CU_OK, driver.cuMemcpyDtoHAsync(numbers, total, BYTES, f->stream));
        assert_int_equal(numbers[THREADS - 1], 7 * round - 4);
        expect_cu(CU_OK, driver.cuMemcpyDtoHAsync(numbers, f->numbers, BYTES, f->stream));
        assert_int_equal(numbers[0], 0x1234567 + 4);
    }
    assert_int_equal(sim.launches(), 2 + 3 * 2); /* captured, then executed thrice */
    expect_cu(CU_OK, driver.cuGraphExecDestroy(executable));
    expect_cu(CU_OK, driver.cuMemFree(total));
}

/* A graph launched inside a capture becomes a part of the other. */
static void a_graph_can_be_captured(void **state) {
    const fixture *f = *state;
    expect_cu(CU_OK, driver.cuMemsetD8Async(f->numbers, 0, BYTES, f->stream));
    expect_cu(CU_OK, driver.cuFuncLoad(f->add));
    begin(f);
    expect_cu(CU_OK, launch(f, 5));
    struct CUgraphExec_st *inner = instantiate(end(f, CU_OK));
    begin(f);
    expect_cu(CU_OK, driver.cuGraphLaunch(inner, f->stream));
    expect_cu(CU_OK, launch(f, 2));
    expect_cu(CU_OK, driver.cuGraphLaunch(inner, f->stream));
    struct CUgraphExec_st *outer = instantiate(end(f, CU_OK));
    expect_cu(CU_OK, driver.cuGraphExecDestroy(inner));
    assert_int_equal(last_number(f), 0);
    expect_cu(CU_OK, driver.cuGraphLaunch(outer, f->stream));
    assert_int_equal(last_number(f), 12);
    expect_cu(CU_OK, driver.cuGraphExecDestroy(outer));
}

/* An executable graph runs once at a time, and in the order of its launches, on whatever streams these are. */
static void launches_of_a_graph_come_one_after_the_other(void **state) {
    enum { SEEDS = 10, LAUNCHES = 6 };
    const fixture *f = *state;
    kiln__cu_stream other;
    kiln__cu_address copied;
    expect_cu(CU_OK, driver.cuStreamCreate(&other, KILN__CU_STREAM_NON_BLOCKING));
    expect_cu(CU_OK, driver.cuMemAlloc(&copied, BYTES));
    expect_cu(CU_OK, driver.cuFuncLoad(f->add));
    begin(f);
    expect_cu(CU_OK, launch(f, 1));
    expect_cu(CU_OK, driver.cuMemcpyDtoDAsync(copied, f->numbers, BYTES, f->stream));
    expect_cu(CU_OK, driver.cuMemsetD8Async(f->numbers, 0, BYTES, f->stream));
    expect_cu(CU_OK, launch(f, 2));
    expect_cu(CU_OK, driver.cuMemcpyDtoDAsync(f->numbers, copied, BYTES, f->stream));
    struct CUgraphExec_st *executable = instantiate(end(f, CU_OK));
    for (int seed = 1; seed <= SEEDS; seed++) {
        char text_of[16];
        snprintf(text_of, sizeof text_of, "%d", seed);
        sim.configure("KILN_SIM_SEED", text_of);
        expect_cu(CU_OK, driver.cuMemsetD8(f->numbers, 0, BYTES));
        expect_cu(CU_OK, driver.cuCtxSynchronize());
        for (int i = 0; i < LAUNCHES; i++)
            expect_cu(CU_OK, driver.cuGraphLaunch(executable, i % 2 ? other : f->stream));
        expect_cu(CU_OK, driver.cuStreamSynchronize(other));
        assert_int_equal(last_number(f), LAUNCHES);
    }
    sim.configure("KILN_SIM_SEED", NULL);
    expect_cu(CU_OK, driver.cuGraphExecDestroy(executable));
    expect_cu(CU_OK, driver.cuMemFree(copied));
    expect_cu(CU_OK, driver.cuStreamDestroy(other));
}

/* ---- Captures of several streams --------------------------------------------------------------------------------- */

/* A second stream, and the events of a fork to it and of the join. */
typedef struct side {
    kiln__cu_stream stream;
    kiln__cu_event fork, join;
    kiln__cu_address scratch;
} side;

static void side_open(side *s) {
    expect_cu(CU_OK, driver.cuStreamCreate(&s->stream, KILN__CU_STREAM_NON_BLOCKING));
    expect_cu(CU_OK, driver.cuEventCreate(&s->fork, 0));
    expect_cu(CU_OK, driver.cuEventCreate(&s->join, 0));
    expect_cu(CU_OK, driver.cuMemAlloc(&s->scratch, BYTES));
}

static void side_close(const side *s) {
    expect_cu(CU_OK, driver.cuStreamDestroy(s->stream));
    expect_cu(CU_OK, driver.cuEventDestroy(s->fork));
    expect_cu(CU_OK, driver.cuEventDestroy(s->join));
    expect_cu(CU_OK, driver.cuMemFree(s->scratch));
}

static void fork_to(const fixture *f, const side *s) {
    expect_cu(CU_OK, driver.cuEventRecord(s->fork, f->stream));
    expect_cu(CU_OK, driver.cuStreamWaitEvent(s->stream, s->fork, 0));
}

static void join_from(const fixture *f, const side *s) {
    expect_cu(CU_OK, driver.cuEventRecord(s->join, s->stream));
    expect_cu(CU_OK, driver.cuStreamWaitEvent(f->stream, s->join, 0));
}

/* Adds 1, copies by way of the side stream, adds 2. If waits is 0 the sum is copied before or after it is made. */
static struct CUgraphExec_st *capture_fork(const fixture *f, const side *s, int waits) {
    kiln__cu_enum status;
    begin(f);
    if (!waits) fork_to(f, s);
    expect_cu(CU_OK, launch(f, 1));
    if (waits) fork_to(f, s);
    expect_cu(CU_OK, driver.cuStreamIsCapturing(s->stream, &status));
    assert_int_equal(status, 1);
    expect_cu(CU_OK, driver.cuMemcpyDtoDAsync(s->scratch, f->numbers, BYTES, s->stream));
    join_from(f, s);
    expect_cu(CU_OK, launch(f, 2));
    struct CUgraphExec_st *executable = instantiate(end(f, CU_OK));
    expect_cu(CU_OK, driver.cuStreamIsCapturing(s->stream, &status));
    assert_int_equal(status, 0);
    return executable;
}

/* Under how many seeds the side stream saw the sum. */
static int right_copies(const fixture *f, int waits) {
    enum { SEEDS = 40 };
    int right = 0;
    side s;
    side_open(&s);
    expect_cu(CU_OK, driver.cuFuncLoad(f->add));
    struct CUgraphExec_st *executable = capture_fork(f, &s, waits);
    for (int seed = 1; seed <= SEEDS; seed++) {
        char number[16];
        uint32_t copied[THREADS];
        snprintf(number, sizeof number, "%d", seed);
        sim.configure("KILN_SIM_SEED", number);
        expect_cu(CU_OK, driver.cuMemsetD8Async(f->numbers, 0, BYTES, f->stream));
        expect_cu(CU_OK, driver.cuGraphLaunch(executable, f->stream));
        assert_int_equal(last_number(f), 3);
        expect_cu(CU_OK, driver.cuMemcpyDtoHAsync(copied, s.scratch, BYTES, f->stream));
        right += copied[0] == 1;
    }
    sim.configure("KILN_SIM_SEED", NULL);
    expect_cu(CU_OK, driver.cuGraphExecDestroy(executable));
    side_close(&s);
    return right == SEEDS ? 1 : right ? 0 : -1;
}

static void a_capture_forks_and_joins(void **state) {
    assert_int_equal(right_copies(*state, 1), 1);
}

static void a_forgotten_wait_in_a_graph_shows_under_some_seed(void **state) {
    assert_int_equal(right_copies(*state, 0), 0);
}

static void a_fork_must_be_joined(void **state) {
    const fixture *f = *state;
    side s;
    struct CUgraph_st *graph;
    side_open(&s);
    begin(f);
    fork_to(f, &s);
    expect_cu(CU_OK, driver.cuMemsetD8Async(s.scratch, 0, BYTES, s.stream));
    expect_cu(CU_CAPTURE_UNMATCHED, driver.cuStreamEndCapture(s.stream, &graph));
    end(f, CU_CAPTURE_UNJOINED);
    begin(f);
    fork_to(f, &s);
    join_from(f, &s);
    expect_cu(CU_OK, driver.cuMemsetD8Async(s.scratch, 0, BYTES, s.stream)); /* behind the join */
    end(f, CU_CAPTURE_UNJOINED);
    expect_cu(CU_OK, driver.cuMemsetD8Async(s.scratch, 0, BYTES, s.stream));
    side_close(&s);
}

static void two_captures_do_not_merge(void **state) {
    const fixture *f = *state;
    side s;
    struct CUgraph_st *graph;
    side_open(&s);
    begin(f);
    expect_cu(CU_OK, driver.cuStreamBeginCapture(s.stream, CU_CAPTURE_GLOBAL));
    expect_cu(CU_OK, driver.cuEventRecord(s.fork, f->stream));
    expect_cu(CU_CAPTURE_MERGE, driver.cuStreamWaitEvent(s.stream, s.fork, 0));
    expect_cu(CU_OK, driver.cuStreamEndCapture(s.stream, &graph));
    expect_cu(CU_OK, driver.cuGraphDestroy(graph));
    driver.cuGraphDestroy(end(f, CU_OK));
    side_close(&s);
}

int main(int argc, char **argv) {
    (void)argc;
    cuda_driver_start(argv, "sm_90", &sim, &driver);
#define CAPTURE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CAPTURE_TEST(a_function_must_be_resident_before_a_capture),
        CAPTURE_TEST(loading_disturbs_a_capture),
        CAPTURE_TEST(allocating_and_freeing_disturb_a_capture),
        CAPTURE_TEST(a_captured_stream_cannot_be_waited_for),
        CAPTURE_TEST(the_legacy_stream_is_forbidden_beside_a_blocking_capture),
        CAPTURE_TEST(only_the_legacy_stream_cannot_be_captured),
        CAPTURE_TEST(events_do_not_cross_a_capture_s_border),
        CAPTURE_TEST(a_graph_replays_launches_copies_and_fills),
        CAPTURE_TEST(launches_of_a_graph_come_one_after_the_other),
        CAPTURE_TEST(a_graph_can_be_captured),
        CAPTURE_TEST(a_capture_forks_and_joins),
        CAPTURE_TEST(a_forgotten_wait_in_a_graph_shows_under_some_seed),
        CAPTURE_TEST(a_fork_must_be_joined),
        CAPTURE_TEST(two_captures_do_not_merge),
    };
    return cmocka_run_group_tests_name("cuda_capture", tests, NULL, NULL);
}
