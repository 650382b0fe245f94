/* The order of work on CUDA streams: whatever streams, events and the default streams do not order is done in an order
 * of the seed's, so that a program that forgets a wait fails under some seed, and a right one under none. */
#include "tests/sim/tests/cuda/cuda_driver.h"
#include <pthread.h>

enum { BYTES = 64, SEEDS = 40, OLD = 1, NEW = 2 };

static sim_control sim;
static cuda_driver driver;

/* Two buffers of the device, filled with OLD, and streams. */
typedef struct fixture {
    kiln__cu_address from, to;
    kiln__cu_stream a, b;
    kiln__cu_event event;
} fixture;

static void fixture_open(fixture *f, unsigned flags_a, unsigned flags_b) {
    expect_cu(CU_OK, driver.cuMemAlloc(&f->from, BYTES));
    expect_cu(CU_OK, driver.cuMemAlloc(&f->to, BYTES));
    expect_cu(CU_OK, driver.cuStreamCreate(&f->a, flags_a));
    expect_cu(CU_OK, driver.cuStreamCreate(&f->b, flags_b));
    expect_cu(CU_OK, driver.cuEventCreate(&f->event, 0));
    expect_cu(CU_OK, driver.cuMemsetD8Async(f->from, OLD, BYTES, f->a));
    expect_cu(CU_OK, driver.cuMemsetD8Async(f->to, OLD, BYTES, f->a));
    expect_cu(CU_OK, driver.cuCtxSynchronize());
}

static void fixture_close(const fixture *f) {
    expect_cu(CU_OK, driver.cuCtxSynchronize());
    expect_cu(CU_OK, driver.cuEventDestroy(f->event));
    expect_cu(CU_OK, driver.cuStreamDestroy(f->a));
    expect_cu(CU_OK, driver.cuStreamDestroy(f->b));
    expect_cu(CU_OK, driver.cuMemFree(f->from));
    expect_cu(CU_OK, driver.cuMemFree(f->to));
}

/* What the consumer of `to` sees. */
static int seen(const fixture *f) {
    uint8_t bytes[BYTES];
    expect_cu(CU_OK, driver.cuMemcpyDtoHAsync(bytes, f->to, BYTES, f->b));
    return bytes[0];
}

/* A program in which b is to see what a produced. */
typedef int (*program)(fixture *f);

/* Under how many of the seeds the consumer saw the new bytes. */
static int right_seeds(program run, unsigned flags_a, unsigned flags_b) {
    int right = 0;
    for (int seed = 1; seed <= SEEDS; seed++) {
        char text[16];
        snprintf(text, sizeof text, "%d", seed);
        sim.configure("KILN_SIM_SEED", text);
        fixture f;
        fixture_open(&f, flags_a, flags_b);
        right += run(&f) == NEW;
        fixture_close(&f);
    }
    sim.configure("KILN_SIM_SEED", NULL);
    return right;
}

#define assert_ordered(run, flags_a, flags_b) assert_int_equal(right_seeds(run, flags_a, flags_b), SEEDS)

/* The bug shows under some seed, and under another it does not. */
#define assert_unordered(run, flags_a, flags_b) assert_in_range(right_seeds(run, flags_a, flags_b), 1, SEEDS - 1)

static void produce(fixture *f, kiln__cu_stream stream) {
    expect_cu(CU_OK, driver.cuMemsetD8Async(f->from, NEW, BYTES, stream));
}

static int consume(fixture *f, kiln__cu_stream stream) {
    expect_cu(CU_OK, driver.cuMemcpyDtoDAsync(f->to, f->from, BYTES, stream));
    expect_cu(CU_OK, driver.cuStreamSynchronize(stream));
    return seen(f);
}

/* ---- Events ------------------------------------------------------------------------------------------------------ */

static int with_a_wait(fixture *f) {
    produce(f, f->a);
    expect_cu(CU_OK, driver.cuEventRecord(f->event, f->a));
    expect_cu(CU_OK, driver.cuStreamWaitEvent(f->b, f->event, 0));
    return consume(f, f->b);
}

static int without_the_wait(fixture *f) {
    produce(f, f->a);
    expect_cu(CU_OK, driver.cuEventRecord(f->event, f->a));
    return consume(f, f->b);
}

/* The wait is for what was recorded before it, not for what comes. */
static int with_a_wait_too_early(fixture *f) {
    expect_cu(CU_OK, driver.cuEventRecord(f->event, f->a));
    expect_cu(CU_OK, driver.cuStreamWaitEvent(f->b, f->event, 0));
    produce(f, f->a);
    expect_cu(CU_OK, driver.cuEventRecord(f->event, f->a));
    return consume(f, f->b);
}

static int with_the_host_waiting(fixture *f) {
    produce(f, f->a);
    expect_cu(CU_OK, driver.cuEventRecord(f->event, f->a));
    expect_cu(CU_OK, driver.cuEventSynchronize(f->event));
    return consume(f, f->b);
}

static int with_an_event_that_is_gone(fixture *f) {
    kiln__cu_event event;
    expect_cu(CU_OK, driver.cuEventCreate(&event, 0));
    produce(f, f->a);
    expect_cu(CU_OK, driver.cuEventRecord(event, f->a));
    expect_cu(CU_OK, driver.cuStreamWaitEvent(f->b, event, 0));
    expect_cu(CU_OK, driver.cuEventDestroy(event));
    return consume(f, f->b);
}

static void streams_are_ordered_by_events_alone(void **state) {
    (void)state;
    const unsigned apart = KILN__CU_STREAM_NON_BLOCKING;
    assert_ordered(with_a_wait, apart, apart);
    assert_ordered(with_a_wait, 0, 0);
    assert_ordered(with_the_host_waiting, apart, apart);
    assert_ordered(with_an_event_that_is_gone, apart, apart);
}

static void a_forgotten_wait_shows_under_some_seed(void **state) {
    (void)state;
    assert_unordered(without_the_wait, KILN__CU_STREAM_NON_BLOCKING, KILN__CU_STREAM_NON_BLOCKING);
    assert_unordered(without_the_wait, 0, 0);
    assert_unordered(with_a_wait_too_early, 0, KILN__CU_STREAM_NON_BLOCKING);
}

/* Asking again and again is a way of waiting. */
static int with_the_host_asking(fixture *f) {
    produce(f, f->a);
    expect_cu(CU_OK, driver.cuEventRecord(f->event, f->a));
    for (int asked; (asked = (int)driver.cuEventQuery(f->event)) != CU_OK;)
        expect_cu(CU_NOT_READY, asked);
    return consume(f, f->b);
}

static int with_the_host_asking_the_stream(fixture *f) {
    produce(f, f->a);
    for (int asked; (asked = (int)driver.cuStreamQuery(f->a)) != CU_OK;)
        expect_cu(CU_NOT_READY, asked);
    return consume(f, f->b);
}

static int with_the_host_asking_once(fixture *f) {
    produce(f, f->a);
    (void)driver.cuStreamQuery(f->a);
    return consume(f, f->b);
}

static void queries_tell_what_is_done(void **state) {
    (void)state;
    assert_ordered(with_the_host_asking, 0, 0);
    assert_ordered(with_the_host_asking_the_stream, 0, 0);
    assert_unordered(with_the_host_asking_once, 0, 0);
}

/* ---- Default streams --------------------------------------------------------------------------------------------- */

static int legacy_consumes(fixture *f) {
    produce(f, f->a);
    return consume(f, CU_STREAM_LEGACY);
}

static int legacy_produces(fixture *f) {
    produce(f, NULL);
    return consume(f, f->b);
}

static int thread_consumes(fixture *f) {
    produce(f, f->a);
    return consume(f, CU_STREAM_PER_THREAD);
}

static int thread_after_legacy(fixture *f) {
    produce(f, NULL);
    return consume(f, CU_STREAM_PER_THREAD);
}

/* From one blocking stream to the other by way of the legacy one, which does nothing of its own to the bytes. */
static int legacy_between(fixture *f) {
    produce(f, f->a);
    expect_cu(CU_OK, driver.cuEventRecord(f->event, CU_STREAM_LEGACY));
    return consume(f, f->b);
}

static void the_legacy_stream_and_blocking_ones_wait_for_each_other(void **state) {
    (void)state;
    assert_ordered(legacy_consumes, 0, 0);
    assert_ordered(legacy_produces, 0, 0);
    assert_ordered(legacy_between, 0, 0);
}

static void non_blocking_streams_and_the_legacy_one_do_not(void **state) {
    (void)state;
    assert_unordered(legacy_consumes, KILN__CU_STREAM_NON_BLOCKING, 0);
    assert_unordered(legacy_produces, 0, KILN__CU_STREAM_NON_BLOCKING);
    assert_unordered(legacy_between, 0, KILN__CU_STREAM_NON_BLOCKING);
}

static void the_thread_s_default_stream_is_like_any_blocking_one(void **state) {
    (void)state;
    assert_ordered(thread_after_legacy, 0, 0);
    assert_unordered(thread_consumes, 0, 0);
}

static void *produce_on_own_stream(void *context) {
    produce(context, CU_STREAM_PER_THREAD);
    return NULL;
}

/* Another thread's default stream is another one; the driver's context is current in no new thread. */
static void *with_context(void *argument) {
    void **both = argument;
    expect_cu(CU_OK, driver.cuCtxSetCurrent(both[0]));
    return produce_on_own_stream(both[1]);
}

static int other_thread_produces(fixture *f) {
    pthread_t thread;
    kiln__cu_context context;
    expect_cu(CU_OK, driver.cuCtxGetCurrent(&context));
    void *both[] = {context, f};
    assert_int_equal(pthread_create(&thread, NULL, with_context, both), 0);
    pthread_join(thread, NULL);
    return consume(f, CU_STREAM_PER_THREAD);
}

static void each_thread_has_its_own_default_stream(void **state) {
    (void)state;
    assert_unordered(other_thread_produces, 0, 0);
}

/* ---- Host memory ------------------------------------------------------------------------------------------------- */

/* The host's bytes change after the copy was enqueued, and before anything waited for it. */
static int changed_too_early(fixture *f, uint8_t *host) {
    memset(host, NEW, BYTES);
    expect_cu(CU_OK, driver.cuMemcpyHtoDAsync(f->to, host, BYTES, f->b));
    memset(host, OLD, BYTES);
    expect_cu(CU_OK, driver.cuStreamSynchronize(f->b));
    return seen(f);
}

static int pinned_source(fixture *f) {
    void *host;
    expect_cu(CU_OK, driver.cuMemHostAlloc(&host, BYTES, 0));
    int result = changed_too_early(f, host);
    expect_cu(CU_OK, driver.cuMemFreeHost(host));
    return result;
}

static int pageable_source(fixture *f) {
    uint8_t host[BYTES];
    return changed_too_early(f, host);
}

static int pinned_destination(fixture *f) {
    void *host;
    expect_cu(CU_OK, driver.cuMemHostAlloc(&host, BYTES, 0));
    memset(host, OLD, BYTES);
    produce(f, f->a);
    expect_cu(CU_OK, driver.cuMemcpyDtoHAsync(host, f->from, BYTES, f->a));
    int result = *(volatile uint8_t *)host;
    expect_cu(CU_OK, driver.cuMemFreeHost(host));
    return result;
}

static void pinned_memory_is_copied_when_its_turn_comes(void **state) {
    (void)state;
    assert_unordered(pinned_source, 0, 0);
    assert_unordered(pinned_destination, 0, 0);
    assert_ordered(pageable_source, 0, 0);
}

/* ---- Calls without a stream: work of the legacy one ---------------------------------------------------------------
 */

static int host_reads(fixture *f) {
    uint8_t bytes[BYTES];
    produce(f, f->a);
    expect_cu(CU_OK, driver.cuMemcpyDtoH(bytes, f->from, BYTES));
    return bytes[0];
}

static int host_reads_by_any_copy(fixture *f) {
    uint8_t bytes[BYTES];
    produce(f, f->a);
    expect_cu(CU_OK, driver.cuMemcpy((uintptr_t)bytes, f->from, BYTES));
    return bytes[0];
}

/* What the host's memory has at the call arrives, whatever it has later. */
static int host_writes(fixture *f, uint8_t *host) {
    memset(host, NEW, BYTES);
    expect_cu(CU_OK, driver.cuMemcpyHtoD(f->to, host, BYTES));
    memset(host, OLD, BYTES);
    return seen(f);
}

static int host_writes_pageable(fixture *f) {
    uint8_t host[BYTES];
    return host_writes(f, host);
}

static int host_writes_pinned(fixture *f) {
    void *host;
    expect_cu(CU_OK, driver.cuMemAllocHost(&host, BYTES));
    int result = host_writes(f, host);
    expect_cu(CU_OK, driver.cuMemFreeHost(host));
    return result;
}

static int device_copies(fixture *f) {
    expect_cu(CU_OK, driver.cuMemsetD8(f->from, NEW, BYTES));
    expect_cu(CU_OK, driver.cuMemcpyDtoD(f->to, f->from, BYTES));
    return seen(f);
}

static void calls_without_a_stream_are_ordered_as_the_legacy_one(void **state) {
    (void)state;
    const unsigned apart = KILN__CU_STREAM_NON_BLOCKING;
    assert_ordered(host_reads, 0, 0);
    assert_ordered(host_reads_by_any_copy, 0, 0);
    assert_ordered(host_writes_pageable, 0, 0);
    assert_ordered(device_copies, 0, 0);
    assert_unordered(host_reads, apart, 0);
    assert_unordered(host_reads_by_any_copy, apart, 0);
}

/* Nothing waits for a copy between device memory, for a fill, nor until bytes of pageable memory arrive. */
static void only_some_copies_are_done_when_they_return(void **state) {
    (void)state;
    const unsigned apart = KILN__CU_STREAM_NON_BLOCKING;
    assert_ordered(host_writes_pinned, apart, apart);
    assert_unordered(host_writes_pageable, apart, apart);
    assert_unordered(device_copies, apart, apart);
}

/* ---- Times and faults -------------------------------------------------------------------------------------------- */

static int times_before_the_end(fixture *f) {
    kiln__cu_event end;
    float milliseconds;
    expect_cu(CU_OK, driver.cuEventCreate(&end, 0));
    expect_cu(CU_OK, driver.cuEventRecord(f->event, f->a));
    produce(f, f->a);
    expect_cu(CU_OK, driver.cuEventRecord(end, f->a));
    const int early = (int)driver.cuEventElapsedTime(&milliseconds, f->event, end);
    expect_cu(CU_OK, driver.cuStreamSynchronize(f->a));
    expect_cu(CU_OK, driver.cuEventElapsedTime(&milliseconds, f->event, end));
    assert_true(milliseconds > 0);
    expect_cu(CU_OK, driver.cuEventElapsedTime_v2(&milliseconds, f->event, end));
    assert_true(milliseconds > 0);
    expect_cu(CU_OK, driver.cuEventDestroy(end));
    assert_true(early == CU_OK || early == CU_NOT_READY);
    return early == CU_OK ? NEW : OLD;
}

static void times_are_known_when_both_events_were_reached(void **state) {
    (void)state;
    assert_unordered(times_before_the_end, 0, 0);
}

static void an_event_has_the_timing_that_it_was_created_with(void **state) {
    (void)state;
    enum { DISABLE_TIMING = 2, INTERPROCESS = 4, CU_INVALID_HANDLE = 400 };
    kiln__cu_event timed, plain;
    float milliseconds = 0;
    expect_cu(CU_OK, driver.cuEventCreate(&timed, 0));
    expect_cu(CU_OK, driver.cuEventCreate(&plain, DISABLE_TIMING));
    expect_cu(CU_OK, driver.cuEventRecord(timed, NULL));
    expect_cu(CU_OK, driver.cuEventRecord(plain, NULL));
    expect_cu(CU_OK, driver.cuCtxSynchronize());
    expect_cu(CU_OK, driver.cuEventElapsedTime(&milliseconds, timed, timed));
    expect_cu(CU_INVALID_HANDLE, driver.cuEventElapsedTime(&milliseconds, timed, plain));
    expect_cu(CU_INVALID_HANDLE, driver.cuEventElapsedTime_v2(&milliseconds, plain, timed));
    assert_non_null(strstr(sim.violation(), "timing disabled"));
    expect_cu(CU_OK, driver.cuEventDestroy(plain));
    expect_cu(CU_OK, driver.cuEventDestroy(timed));
    expect_cu(CU_INVALID_VALUE, driver.cuEventCreate(&plain, INTERPROCESS));
    expect_cu(CU_OK, driver.cuEventCreate(&plain, INTERPROCESS | DISABLE_TIMING));
    expect_cu(CU_OK, driver.cuEventDestroy(plain));
    sim.reset();
}

/* A store far outside, by a kernel on one stream, is the error of every later call in its context. */
static void a_fault_ends_the_work_of_every_stream(void **state) {
    (void)state;
    static const char text[] = ".version 6.3\n.target sm_75\n.address_size 64\n.visible .entry wild() {\n"
                               ".reg .b64 %rd<2>;\nmov.u64 %rd1, 4096;\nst.global.u64 [%rd1], %rd1;\nret;\n}\n";
    kiln__cu_context old, context;
    kiln__cu_module module;
    kiln__cu_function function;
    fixture f;
    size_t none = 0;
    void *extra[] = {KILN__CU_LAUNCH_PARAM_BUFFER_POINTER, NULL, KILN__CU_LAUNCH_PARAM_BUFFER_SIZE, &none,
                     KILN__CU_LAUNCH_PARAM_END};
    expect_cu(CU_OK, driver.cuCtxGetCurrent(&old));
    expect_cu(CU_OK, driver.cuCtxCreate(&context, 0, 0));
    fixture_open(&f, 0, 0);
    expect_cu(CU_OK, driver.cuModuleLoadDataEx(&module, text, 0, NULL, NULL));
    expect_cu(CU_OK, driver.cuModuleGetFunction(&function, module, "wild"));
    expect_cu(CU_OK, driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, f.a, NULL, extra));
    expect_cu(CU_ILLEGAL_ADDRESS, driver.cuStreamSynchronize(f.a));
    expect_cu(CU_ILLEGAL_ADDRESS, driver.cuStreamSynchronize(f.b));
    expect_cu(CU_ILLEGAL_ADDRESS, driver.cuMemsetD8Async(f.from, NEW, BYTES, f.b));
    expect_cu(CU_OK, driver.cuCtxDestroy(context));
    expect_cu(CU_OK, driver.cuCtxSetCurrent(old));
}

static int setup(void **state) {
    (void)state;
    kiln__cu_context context;
    return cuda_driver_enter(&driver, &context);
}

static int teardown(void **state) {
    (void)state;
    return cuda_driver_leave(&driver) || sim.violations() || sim.live("*");
}

int main(int argc, char **argv) {
    (void)argc;
    cuda_driver_start(argv, "sm_90", &sim, &driver);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_are_ordered_by_events_alone),
        cmocka_unit_test(a_forgotten_wait_shows_under_some_seed),
        cmocka_unit_test(queries_tell_what_is_done),
        cmocka_unit_test(the_legacy_stream_and_blocking_ones_wait_for_each_other),
        cmocka_unit_test(non_blocking_streams_and_the_legacy_one_do_not),
        cmocka_unit_test(the_thread_s_default_stream_is_like_any_blocking_one),
        cmocka_unit_test(each_thread_has_its_own_default_stream),
        cmocka_unit_test(pinned_memory_is_copied_when_its_turn_comes),
        cmocka_unit_test(calls_without_a_stream_are_ordered_as_the_legacy_one),
        cmocka_unit_test(only_some_copies_are_done_when_they_return),
        cmocka_unit_test(times_are_known_when_both_events_were_reached),
        cmocka_unit_test(an_event_has_the_timing_that_it_was_created_with),
        cmocka_unit_test(a_fault_ends_the_work_of_every_stream),
    };
    return cmocka_run_group_tests_name("cuda_streams", tests, setup, teardown);
}
