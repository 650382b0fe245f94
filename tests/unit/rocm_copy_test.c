/* Copies, fills and events through HSA: their order with launches and across streams, pageable memory, timing, and what
 * is left of a device whose copy, queue or memory access failed. */
#include "loader/rocm/rocm_abi.h"
#include "tests/unit/rocm_sim.h"
#include <pthread.h>
#include <sched.h>

enum { WORDS = 20000 }; /* more bytes than go through a stream's buffer */

typedef struct fixture {
    kiln_device *device;
    kiln_stream stream;
    uint32_t *host, *near, *far; /* pinned, and two buffers of the device's */
} fixture;

static int setup(void **state) {
    static fixture shared;
    rocm_reset(state);
    sim.configure("KILN_SIM_DELAY", "300");
    shared.device = rocm_open(0);
    shared.stream = rocm_stream(shared.device, KILN_STREAM_TIMING);
    assert_ok(kiln_host_alloc(shared.device, WORDS * 4, (void **)&shared.host));
    assert_ok(kiln_memory_alloc(shared.device, WORDS * 4, (void **)&shared.near));
    assert_ok(kiln_memory_alloc(shared.device, WORDS * 4, (void **)&shared.far));
    *state = &shared;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    kiln_host_free(f->device, f->host);
    kiln_memory_free(f->device, f->near);
    kiln_memory_free(f->device, f->far);
    kiln_stream_close(&f->stream);
    kiln_device_close(f->device);
    rocm_assert_clean();
    return 0;
}

static void launch(fixture *f, kiln_stream *stream, uint32_t count) {
    const scale_arguments arguments = {.x = (void *)f->near, .y = (void *)f->far, .count = count};
    const kiln_launch_config config = {.grid = {1}, .block = {64}};
    assert_ok(kiln_launch(stream, rocm_kernel(f->device, "scale"), &config, &arguments, sizeof arguments));
}

/* Each step reads what the step before wrote. The engine runs copies in an order of its own, so that one which did not
 * wait for its turn moves old bytes. */
static void copies_run_in_stream_order(void **state) {
    fixture *f = *state;
    for (uint32_t round = 1; round <= 20; round++) {
        for (uint32_t i = 0; i < WORDS; i++)
            f->host[i] = round * WORDS + i;
        assert_ok(kiln_copy(&f->stream, f->near, f->host, WORDS * 4, KILN_COPY_TO_DEVICE));
        launch(f, &f->stream, round);
        assert_ok(kiln_copy(&f->stream, f->far, f->near, WORDS * 4, KILN_COPY_ON_DEVICE));
        assert_ok(kiln_fill(&f->stream, f->near, 0, WORDS * 4));
        assert_ok(kiln_copy(&f->stream, f->host, f->far, WORDS * 4, KILN_COPY_TO_HOST));
        assert_ok(kiln_stream_sync(&f->stream));
        assert_int_equal(sim.launches(), round);
        for (uint32_t i = 0; i < WORDS; i++)
            assert_int_equal(f->host[i], round * WORDS + i);
    }
}

static void a_copy_of_pinned_memory_does_not_wait(void **state) {
    fixture *f = *state;
    memset(f->near, 0, WORDS * 4);
    memset(f->host, 7, WORDS * 4);
    sim_rocm.hold(1);
    assert_ok(kiln_copy(&f->stream, f->near, f->host, WORDS * 4, KILN_COPY_TO_DEVICE));
    assert_int_equal(f->near[0], 0);
    sim_rocm.hold(0);
    assert_ok(kiln_stream_sync(&f->stream));
    assert_memory_equal(f->near, f->host, WORDS * 4);
    assert_int_equal(sim.calls("hsa_amd_memory_lock"), 0);
}

/* Little goes through the stream's pinned buffer, which is made once. */
static void a_small_pageable_copy_locks_nothing(void **state) {
    fixture *f = *state;
    char there[1000], back[1000] = "";
    memset(there, 5, sizeof there);
    sim.reset();
    for (int i = 0; i < 5; i++) {
        there[i] = (char)i;
        assert_ok(kiln_copy(&f->stream, f->near, there, sizeof there, KILN_COPY_TO_DEVICE));
        assert_ok(kiln_copy(&f->stream, back, f->near, sizeof back, KILN_COPY_TO_HOST));
        assert_memory_equal(there, back, sizeof back);
    }
    assert_int_equal(sim.calls("hsa_amd_memory_lock"), 0);
    assert_int_equal(sim.calls("hsa_amd_memory_pool_allocate"), 1);
}

/* Locked for the time of the copy, or through the pinned buffer where locking is refused. */
static void pageable_memory_is_copied_both_ways(void **state) {
    fixture *f = *state;
    enum { BYTES = (3 << 20) + 5 };
    char *there = malloc(BYTES), *back = malloc(BYTES);
    void *memory;
    assert_non_null(there);
    assert_non_null(back);
    assert_ok(kiln_memory_alloc(f->device, BYTES, &memory));
    for (size_t i = 0; i < BYTES; i++)
        there[i] = (char)(i * 31 >> 3);
    for (uint64_t refused = 0; refused < 2; refused++) {
        memset(back, 0, BYTES);
        if (refused) sim.fault("hsa_amd_memory_lock", 1, 0x1008);
        assert_ok(kiln_copy(&f->stream, memory, there, BYTES, KILN_COPY_TO_DEVICE));
        assert_int_equal(sim.faulted(), refused);
        if (refused) sim.fault("hsa_amd_memory_lock", 1, 0x1008);
        assert_ok(kiln_copy(&f->stream, back, memory, BYTES, KILN_COPY_TO_HOST));
        assert_memory_equal(back, there, BYTES);
        assert_int_equal(sim.live("lock"), 0);
        assert_ok(kiln_fill(&f->stream, memory, 0xee, BYTES));
    }
    assert_ok(kiln_stream_sync(&f->stream));
    kiln_memory_free(f->device, memory);
    free(there);
    free(back);
}

static void fills_of_any_size_and_alignment_touch_their_bytes_alone(void **state) {
    fixture *f = *state;
    uint8_t expected[64], *bytes = (uint8_t *)f->near;
    sim.configure("KILN_SIM_DELAY", NULL);
    for (size_t at = 0; at < 9; at++)
        for (size_t size = 1; size < 20; size++) {
            assert_ok(kiln_fill(&f->stream, bytes, 0x11, sizeof expected));
            assert_ok(kiln_fill(&f->stream, bytes + at, 0xab, size));
            assert_ok(kiln_stream_sync(&f->stream));
            memset(expected, 0x11, sizeof expected);
            memset(expected + at, 0xab, size);
            assert_memory_equal(bytes, expected, sizeof expected);
        }
}

/* The engine copies a page, and then what is filled behind itself. */
static void fills_of_many_pages_are_whole(void **state) {
    fixture *f = *state;
    static const size_t sizes[] = {4095, 4096, 4097, 8192, 3 * 4096 + 5, WORDS * 4 - 2};
    uint8_t *bytes = (uint8_t *)f->near;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        assert_ok(kiln_fill(&f->stream, bytes, 0, WORDS * 4));
        assert_ok(kiln_fill(&f->stream, bytes + 1, (uint8_t)(0xa0 + i), sizes[i]));
        assert_ok(kiln_stream_sync(&f->stream));
        for (size_t at = 0; at < WORDS * 4; at++)
            assert_int_equal(bytes[at], at >= 1 && at < 1 + sizes[i] ? 0xa0 + i : 0);
    }
}

static void a_fill_does_not_wait(void **state) {
    fixture *f = *state;
    memset(f->near, 1, WORDS * 4);
    sim_rocm.hold(1);
    launch(f, &f->stream, 1);
    assert_ok(kiln_fill(&f->stream, f->near, 9, WORDS * 4));
    assert_ok(kiln_fill(&f->stream, f->near, 7, 4));
    assert_int_equal(f->near[0], 0x01010101);
    sim_rocm.hold(0);
    assert_ok(kiln_stream_sync(&f->stream));
    assert_int_equal(f->near[0], 0x07070707);
    assert_int_equal(f->near[1], 0x09090909);
}

/* The second stream's copy may not start before the first's event, and the other way round. */
static void events_order_two_streams(void **state) {
    fixture *f = *state;
    kiln_stream other = rocm_stream(f->device, 0);
    kiln_event *filled, *read;
    assert_ok(kiln_event_create(f->device, 0, &filled));
    assert_ok(kiln_event_create(f->device, 0, &read));
    assert_ok(kiln_event_sync(filled)); /* never recorded: has happened */
    for (uint32_t round = 1; round <= 50; round++) {
        uint32_t *answer = f->host + 1;
        f->host[0] = round;
        assert_ok(kiln_copy(&f->stream, f->near, f->host, 4, KILN_COPY_TO_DEVICE));
        assert_ok(kiln_event_record(filled, &f->stream));
        assert_ok(kiln_stream_wait_event(&other, filled));
        assert_ok(kiln_copy(&other, answer, f->near, 4, KILN_COPY_TO_HOST));
        assert_ok(kiln_event_record(read, &other));
        assert_ok(kiln_stream_wait_event(&f->stream, read));
        assert_ok(kiln_copy(&f->stream, f->near, f->host + 2, 4, KILN_COPY_TO_DEVICE));
        assert_ok(kiln_event_sync(read));
        assert_int_equal(*answer, round);
        assert_ok(kiln_stream_sync(&f->stream));
    }
    kiln_event_destroy(filled);
    kiln_event_destroy(read);
    kiln_stream_close(&other);
}

/* The application's signal takes the place of each event in turn: once it tells of the application's work, once of
 * kiln's. */
static void a_signal_of_the_applications_orders_both(void **state) {
    fixture *f = *state;
    kiln__hsa_status (*create)(kiln__hsa_signal_value, uint32_t, const kiln__hsa_agent *, kiln__hsa_signal *);
    kiln__hsa_status (*destroy)(kiln__hsa_signal);
    void (*store)(kiln__hsa_signal, kiln__hsa_signal_value);
    *(void **)&create = dlsym(sim_library, "hsa_signal_create");
    *(void **)&destroy = dlsym(sim_library, "hsa_signal_destroy");
    *(void **)&store = dlsym(sim_library, "hsa_signal_store_screlease");
    kiln__hsa_signal native = {0};
    kiln_event *event, *untimed;
    double nanoseconds;
    int32_t done;
    assert_int_equal(create(1, 0, NULL, &native), KILN__HSA_STATUS_SUCCESS);
    assert_ok(kiln_event_borrow(f->device, (void *)(uintptr_t)native.handle, &event));
    assert_ok(kiln_event_query(event, &done));
    assert_int_equal(done, 0);
    f->host[0] = 5;
    assert_ok(kiln_stream_wait_event(&f->stream, event));
    assert_ok(kiln_copy(&f->stream, f->near, f->host, 4, KILN_COPY_TO_DEVICE));
    f->host[0] = 6; /* the copy has not begun */
    store(native, 0);
    assert_ok(kiln_stream_sync(&f->stream));
    assert_ok(kiln_copy(&f->stream, f->host + 1, f->near, 4, KILN_COPY_TO_HOST));
    assert_ok(kiln_event_record(event, &f->stream));
    assert_ok(kiln_event_sync(event));
    assert_int_equal(f->host[1], 6);
    assert_ok(kiln_event_create(f->device, KILN_EVENT_NO_TIMING, &untimed));
    assert_ok(kiln_event_record(untimed, &f->stream));
    assert_ok(kiln_event_sync(untimed));
    assert_error(kiln_event_elapsed(untimed, untimed, &nanoseconds), KILN_ERROR_INVALID_ARGUMENT,
                 "start was created with KILN_EVENT_NO_TIMING");
    assert_error(kiln_event_elapsed(event, event, &nanoseconds), KILN_ERROR_INVALID_ARGUMENT, "start is borrowed");
    kiln_event_destroy(untimed);
    kiln_event_destroy(event);
    assert_int_equal(destroy(native), KILN__HSA_STATUS_SUCCESS);
    assert_error(kiln_event_borrow(f->device, NULL, &event), KILN_ERROR_INVALID_ARGUMENT,
                 "native is NULL: must be the handle of an hsa_signal_t");
}

static void the_applications_memory_is_locked(void **state) {
    fixture *f = *state;
    static uint32_t own[WORDS];
    void *seen = NULL;
    assert_ok(kiln_host_register(f->device, own, sizeof own, &seen));
    assert_non_null(seen);
    kiln_host_unregister(f->device, own);
    assert_int_equal(sim.live("lock"), 0);
}

/* Signals come back into use: thousands of events do not need thousands of them. */
static void signals_are_used_again(void **state) {
    fixture *f = *state;
    kiln_stream other = rocm_stream(f->device, 0);
    kiln_event *event;
    sim.configure("KILN_SIM_DELAY", NULL);
    assert_ok(kiln_event_create(f->device, 0, &event));
    for (int i = 0; i < 2000; i++) {
        assert_ok(kiln_event_record(event, &f->stream));
        assert_ok(kiln_stream_wait_event(&other, event));
        if (i % 10 == 0) assert_ok(kiln_stream_sync(&other));
    }
    assert_ok(kiln_stream_sync(&other));
    assert_true(sim.live("signal") < 200);
    kiln_event_destroy(event);
    kiln_stream_close(&other);
}

static void elapsed_is_the_devices_time(void **state) {
    fixture *f = *state;
    kiln_stream untimed = rocm_stream(f->device, 0);
    kiln_event *start, *end, *plain;
    double nanoseconds;
    assert_ok(kiln_event_create(f->device, 0, &start));
    assert_ok(kiln_event_create(f->device, 0, &end));
    assert_ok(kiln_event_create(f->device, 0, &plain));
    assert_ok(kiln_event_record(start, &f->stream));
    for (uint32_t i = 0; i < 20; i++)
        launch(f, &f->stream, i);
    assert_ok(kiln_event_record(end, &f->stream));
    assert_ok(kiln_event_record(plain, &untimed));
    assert_ok(kiln_event_sync(end));
    assert_ok(kiln_event_sync(plain));
    assert_ok(kiln_event_elapsed(start, end, &nanoseconds));
    assert_true(nanoseconds > 0);
    double backwards;
    assert_ok(kiln_event_elapsed(end, start, &backwards));
    assert_true(backwards == -nanoseconds);
    assert_error(kiln_event_elapsed(start, plain, &nanoseconds), KILN_ERROR_INVALID_ARGUMENT,
                 "end was recorded on a stream opened without KILN_STREAM_TIMING");
    sim_rocm.hold(1);
    assert_ok(kiln_event_record(end, &f->stream));
    assert_error(kiln_event_elapsed(start, end, &nanoseconds), KILN_ERROR_INVALID_ARGUMENT, "end has not happened yet");
    sim_rocm.hold(0);
    sim.fault("hsa_amd_profiling_get_dispatch_time", 1, SIM_LIE);
    assert_error(kiln_event_elapsed(start, start, &nanoseconds), KILN_ERROR_DRIVER, "recorded no time for start");
    assert_ok(kiln_stream_sync(&f->stream));
    sim_rocm.untimed(1);
    assert_ok(kiln_event_record(end, &f->stream));
    assert_ok(kiln_event_sync(end));
    assert_error(kiln_event_elapsed(start, end, &nanoseconds), KILN_ERROR_DRIVER, "recorded no time for end");
    kiln_event_destroy(start);
    kiln_event_destroy(end);
    kiln_event_destroy(plain);
    kiln_stream_close(&untimed);
}

/* The engine is slow and refuses the second copy of a fill, or the only one of a copy. */
static void after_an_error_nothing_is_in_flight(void **state) {
    fixture *f = *state;
    enum { BYTES = (1 << 20) + 8 };
    char *pageable = calloc(1, BYTES);
    void *memory;
    assert_non_null(pageable);
    assert_ok(kiln_memory_alloc(f->device, BYTES, &memory));
    sim.configure("KILN_SIM_DELAY", "20000");
    for (int round = 0; round < 5; round++) {
        sim.fault("hsa_amd_memory_async_copy", 2, 0x1000);
        assert_error(kiln_fill(&f->stream, (char *)memory + 1, 7, BYTES - 1), KILN_ERROR_DRIVER,
                     "hsa_amd_memory_async_copy");
        assert_int_equal(sim.faulted(), 1);
        assert_int_equal(sim_rocm.copies(), 0);
    }
    assert_ok(kiln_fill(&f->stream, memory, 9, BYTES));
    assert_ok(kiln_stream_sync(&f->stream));
    assert_int_equal(((const char *)memory)[BYTES - 1], 9);
    sim.configure("KILN_SIM_DELAY", "300");
    sim.fault("hsa_amd_memory_async_copy", 1, 0x1000);
    assert_error(kiln_copy(&f->stream, memory, pageable, BYTES, KILN_COPY_TO_DEVICE), KILN_ERROR_DRIVER,
                 "hsa_amd_memory_async_copy");
    assert_int_equal(sim_rocm.copies(), 0);
    assert_int_equal(sim.live("lock"), 0);
    kiln_memory_free(f->device, memory);
    free(pageable);
}

static void assert_lost(fixture *f) {
    void *memory;
    assert_error(kiln_stream_sync(&f->stream), KILN_ERROR_DEVICE_LOST, "rocm:0 is lost");
    assert_error(kiln_memory_alloc(f->device, 64, &memory), KILN_ERROR_DEVICE_LOST, "rocm:0 is lost");
    kiln_stream stream;
    assert_error(kiln_stream_open(f->device, 0, &stream), KILN_ERROR_DEVICE_LOST, "rocm:0 is lost");
}

static void a_queue_error_loses_the_device(void **state) {
    fixture *f = *state;
    sim_rocm.hold(1);
    launch(f, &f->stream, 1);
    sim_rocm.queue_error(0, 41);
    assert_lost(f);
}

/* The barrier packet behind a copy that failed waits for ever: found by the host's wait. */
static void a_failed_copy_loses_the_device(void **state) {
    fixture *f = *state;
    sim_rocm.copy_error(1);
    assert_ok(kiln_copy(&f->stream, f->near, f->host, WORDS * 4, KILN_COPY_TO_DEVICE));
    assert_error(kiln_stream_sync(&f->stream), KILN_ERROR_DRIVER, "a copy failed on the device");
    assert_lost(f);
}

/* Loses the device once there is a copy more than *data. */
static void *lose_the_device(void *data) {
    while (sim_rocm.copies() <= *(const uint64_t *)data)
        sched_yield();
    sim_rocm.queue_error(0, 41);
    return NULL;
}

static void lose_during_copy(fixture *f, kiln_copy_direction direction, size_t size) {
    static char pageable[WORDS * 4];
    uint64_t copies = sim_rocm.copies();
    pthread_t thread;
    const bool out = direction == KILN_COPY_TO_DEVICE;
    sim_rocm.hold(1);
    assert_int_equal(pthread_create(&thread, NULL, lose_the_device, &copies), 0);
    assert_error(
        kiln_copy(&f->stream, out ? (void *)f->near : pageable, out ? pageable : (void *)f->near, size, direction),
        KILN_ERROR_DEVICE_LOST, "rocm:0 is lost");
    pthread_join(thread, NULL);
}

static void close_lost(fixture *f) {
    kiln_host_free(f->device, f->host);
    kiln_memory_free(f->device, f->near);
    kiln_memory_free(f->device, f->far);
    kiln_stream_close(&f->stream);
    kiln_device_close(f->device);
    if (sim.violations()) fail_msg("%s", sim.violation());
}

/* The device is lost while the caller waits for a copy, which is never done then: what the engine may still touch
 * stays, be it locked pages, the pinned buffer, the pages that fills copy from, or the two signals that each copy looks
 * at. Last, since it stays. */
static void what_a_stuck_copy_uses_stays(void **state) {
    (void)state;
    enum { LOCKED, STAGED, FILL, KINDS };
    for (int kind = 0; kind < KINDS; kind++) {
        void *opened;
        setup(&opened);
        fixture *f = opened;
        if (kind == LOCKED) lose_during_copy(f, KILN_COPY_TO_DEVICE, WORDS * 4);
        if (kind == STAGED) lose_during_copy(f, KILN_COPY_TO_HOST, WORDS);
        if (kind == FILL) {
            sim_rocm.hold(1);
            assert_ok(kiln_fill(&f->stream, f->near, 1, 4));
            sim_rocm.queue_error(0, 41);
        }
        close_lost(f);
        assert_int_equal(sim.live("lock"), 1);
        assert_int_equal(sim.live("host memory"), kind);
        assert_int_equal(sim.live("signal"), 2 * (kind + 1));
        assert_int_equal(sim.live("*"), 1 + kind + 2 * (kind + 1));
    }
}

int main(int argc, char **argv) {
    (void)argc;
    rocm_sim_start(argv, "gfx90a");
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(copies_run_in_stream_order),
        TEST(a_copy_of_pinned_memory_does_not_wait),
        TEST(a_small_pageable_copy_locks_nothing),
        TEST(pageable_memory_is_copied_both_ways),
        TEST(fills_of_any_size_and_alignment_touch_their_bytes_alone),
        TEST(fills_of_many_pages_are_whole),
        TEST(a_fill_does_not_wait),
        TEST(events_order_two_streams),
        TEST(a_signal_of_the_applications_orders_both),
        TEST(the_applications_memory_is_locked),
        TEST(signals_are_used_again),
        TEST(elapsed_is_the_devices_time),
        TEST(after_an_error_nothing_is_in_flight),
        TEST(a_queue_error_loses_the_device),
        TEST(a_failed_copy_loses_the_device),
        cmocka_unit_test(what_a_stuck_copy_uses_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
