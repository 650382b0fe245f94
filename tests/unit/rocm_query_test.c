/* What is asked of a device without waiting: whether a stream or an event is done, and how much memory there is. */
#include "loader/rocm/rocm_queue.h"
#include "tests/unit/rocm_sim.h"
#include <sched.h>

enum { MEMORY = 1 << 30, SOME = 1 << 20, INVALID_ARGUMENT = 0x1001, OUT_OF_RESOURCES = 0x1008 };

static void launch(kiln_stream *stream) {
    const kiln_launch_config config = {.grid = {1}, .block = {64}};
    const scale_arguments arguments = {.count = 1};
    assert_ok(kiln_launch(stream, rocm_kernel(stream->device, "scale"), &config, &arguments, sizeof arguments));
}

static bool is_done(kiln_stream *stream) {
    int32_t done = 7;
    assert_ok(kiln_stream_query(stream, &done));
    assert_in_range(done, 0, 1);
    return done;
}

static void wait_by_asking(kiln_stream *stream) {
    while (!is_done(stream))
        sched_yield();
}

/* Each launch is new work: that what was before it is done does not answer for it. */
static void a_stream_is_done_when_its_work_is(void **state) {
    (void)state;
    kiln_device *device = rocm_open(0);
    kiln_stream stream = rocm_stream(device, 0);
    assert_true(is_done(&stream));
    for (uint64_t round = 1; round <= 3; round++) {
        sim_rocm.hold(1);
        launch(&stream);
        for (int i = 0; i < 100; i++)
            assert_false(is_done(&stream));
        launch(&stream); /* behind the mark */
        assert_false(is_done(&stream));
        sim_rocm.hold(0);
        wait_by_asking(&stream);
        assert_int_equal(sim.launches(), 2 * round);
    }
    kiln_stream_close(&stream);
    kiln_device_close(device);
    rocm_assert_clean();
}

static void what_was_waited_for_is_done_at_once(void **state) {
    (void)state;
    kiln_device *device = rocm_open(0);
    kiln_stream stream = rocm_stream(device, 0);
    launch(&stream);
    assert_ok(kiln_stream_sync(&stream));
    const uint64_t completed = sim_rocm.completed();
    for (int i = 0; i < 3; i++)
        assert_true(is_done(&stream));
    assert_int_equal(sim_rocm.completed(), completed);
    kiln_stream_close(&stream);
    kiln_device_close(device);
    rocm_assert_clean();
}

/* As behind kiln_stream_sync: the host may have written what the launch reads. */
static void a_launch_behind_the_answer_acquires_from_the_host(void **state) {
    (void)state;
    kiln_device *device = rocm_open(0);
    kiln_stream stream = rocm_stream(device, 0);
    for (uint32_t i = 0; i < 2; i++)
        launch(&stream);
    assert_int_equal(sim_rocm.header(0) >> KILN__HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE & 3,
                     KILN__HSA_FENCE_SCOPE_AGENT);
    wait_by_asking(&stream);
    launch(&stream);
    assert_int_equal(sim_rocm.header(0) >> KILN__HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE & 3,
                     KILN__HSA_FENCE_SCOPE_SYSTEM);
    kiln_stream_close(&stream);
    kiln_device_close(device);
    rocm_assert_clean();
}

/* The application's packets are the stream's work, too, and none of kiln's counts tells of them. */
static void a_borrowed_queue_has_the_applications_work(void **state) {
    (void)state;
    kiln_device *device = rocm_open(0);
    const kiln__rocm_device *rocm = device->native;
    kiln__hsa_queue *queue;
    kiln_stream stream, application;
    assert_int_equal(kiln__rocm.queue_create(rocm->agent, 64, 0, NULL, NULL, UINT32_MAX, UINT32_MAX, &queue), 0);
    assert_ok(kiln_stream_borrow(device, queue, &stream));
    assert_ok(kiln_stream_borrow(device, queue, &application));
    launch(&stream);
    assert_ok(kiln_stream_sync(&stream));
    assert_true(is_done(&stream));
    sim_rocm.hold(1);
    launch(&application);
    assert_false(is_done(&stream));
    sim_rocm.hold(0);
    wait_by_asking(&stream);
    assert_int_equal(sim.launches(), 2);
    kiln_stream_close(&application);
    kiln_stream_close(&stream);
    assert_int_equal(kiln__rocm.queue_destroy(queue), 0);
    kiln_device_close(device);
    rocm_assert_clean();
}

/* There is room for 64 packets beside those that are taken: the call neither waits for it nor takes it. */
static void a_full_queue_is_not_waited_for(void **state) {
    (void)state;
    kiln_device *device = rocm_open(0);
    const kiln__rocm_device *rocm = device->native;
    kiln__hsa_queue *queue;
    kiln_stream stream;
    assert_int_equal(kiln__rocm.queue_create(rocm->agent, 64, 0, NULL, NULL, UINT32_MAX, UINT32_MAX, &queue), 0);
    assert_ok(kiln_stream_borrow(device, queue, &stream));
    sim_rocm.hold(1);
    while (kiln__rocm.queue_load_write_index(queue) - kiln__rocm.queue_load_read_index(queue) < 64)
        launch(&stream);
    const uint64_t written = kiln__rocm.queue_load_write_index(queue);
    assert_false(is_done(&stream));
    assert_int_equal(kiln__rocm.queue_load_write_index(queue), written);
    sim_rocm.hold(0);
    wait_by_asking(&stream);
    kiln_stream_close(&stream);
    assert_int_equal(kiln__rocm.queue_destroy(queue), 0);
    kiln_device_close(device);
    rocm_assert_clean();
}

/* What stands behind the copy is never done: to ask again and again ends all the same. */
static void asking_behind_a_failed_copy_ends(void **state) {
    (void)state;
    for (int by_event = 0; by_event < 2; by_event++) {
        kiln_device *device = rocm_open(0);
        kiln_stream stream = rocm_stream(device, 0);
        kiln_event *event;
        void *host, *memory;
        int32_t done = 0;
        kiln_status status = KILN_OK;
        assert_ok(kiln_event_create(device, 0, &event));
        assert_ok(kiln_host_alloc(device, 64, &host));
        assert_ok(kiln_memory_alloc(device, 64, &memory));
        sim_rocm.copy_error(1);
        assert_ok(kiln_copy(&stream, memory, host, 64, KILN_COPY_TO_DEVICE));
        assert_ok(kiln_event_record(event, &stream));
        while (status == KILN_OK && !done)
            status = by_event ? kiln_event_query(event, &done) : kiln_stream_query(&stream, &done);
        assert_int_equal(status, KILN_ERROR_DRIVER);
        assert_non_null(strstr(kiln_last_error(), "a copy failed on the device"));
        assert_int_equal(done, 0);
        assert_error(kiln_stream_query(&stream, &done), KILN_ERROR_DEVICE_LOST, "rocm:0 is lost");
        assert_error(kiln_event_query(event, &done), KILN_ERROR_DEVICE_LOST, "rocm:0 is lost");
        sim_rocm.copy_error(0);
        kiln_event_destroy(event);
        kiln_host_free(device, host);
        kiln_memory_free(device, memory);
        kiln_stream_close(&stream);
        kiln_device_close(device);
        rocm_assert_clean();
    }
}

static void memory_is_what_the_runtime_says(void **state) {
    (void)state;
    kiln_device *device = rocm_open(0);
    uint64_t before = 0, after = 0, total = 0;
    void *memory;
    assert_ok(kiln_memory_get_info(device, &before, &total));
    assert_int_equal(total, MEMORY);
    assert_true(before <= total);
    assert_ok(kiln_memory_alloc(device, SOME, &memory));
    assert_ok(kiln_memory_get_info(device, &after, &total));
    assert_int_equal(before - after, SOME);
    kiln_memory_free(device, memory);
    sim.fault("hsa_agent_get_info", 1, INVALID_ARGUMENT);
    assert_error(kiln_memory_get_info(device, &after, &total), KILN_ERROR_UNSUPPORTED,
                 "does not tell how much memory is available");
    sim.fault("hsa_agent_get_info", 1, OUT_OF_RESOURCES);
    assert_error(kiln_memory_get_info(device, &after, &total), KILN_ERROR_OUT_OF_MEMORY,
                 "HSA_STATUS_ERROR_OUT_OF_RESOURCES");
    sim.fault("hsa_agent_get_info", 1, SIM_LIE);
    assert_error(kiln_memory_get_info(device, &after, &total), KILN_ERROR_DRIVER, "reported success without a result");
    assert_int_equal(after, 0);
    kiln_device_close(device);
    rocm_assert_clean();
}

int main(int argc, char **argv) {
    (void)argc;
    rocm_sim_start(argv, "gfx90a");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_stream_is_done_when_its_work_is, rocm_reset),
        cmocka_unit_test_setup(what_was_waited_for_is_done_at_once, rocm_reset),
        cmocka_unit_test_setup(a_launch_behind_the_answer_acquires_from_the_host, rocm_reset),
        cmocka_unit_test_setup(a_borrowed_queue_has_the_applications_work, rocm_reset),
        cmocka_unit_test_setup(a_full_queue_is_not_waited_for, rocm_reset),
        cmocka_unit_test_setup(asking_behind_a_failed_copy_ends, rocm_reset),
        cmocka_unit_test_setup(memory_is_what_the_runtime_says, rocm_reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
