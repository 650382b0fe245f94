/* Queues that the runtime has stopped, borrowed ones above all: of these it tells the application alone, and that tells
 * kiln with kiln_device_mark_lost. Each wait ends, each call says by what, and nothing is left but what a copy may use.
 */
#include "loader/rocm/rocm_queue.h"
#include "tests/unit/rocm_sim.h"
#include <pthread.h>
#include <time.h>

enum { BYTES = 128 << 10, NO_TYPE = 4 /* of packets */, FORMAT = 0x1009 };
static const char lost[] = "rocm:0 is lost: HSA_STATUS_ERROR_INVALID_PACKET_FORMAT (0x1009)";

/* ---- The application, with a queue that kiln borrows ---- */

typedef struct world {
    kiln_device *device;
    kiln__hsa_queue *queue;
    kiln_stream stream;
    kiln_event *event;
    void *memory;
} world;

static void on_error(kiln__hsa_status status, kiln__hsa_queue *queue, void *data) {
    const world *w = data;
    kiln_device_mark_lost(queue == w->queue ? w->device : NULL, status);
}

static void world_make(world *w, uint32_t queue_size) {
    w->device = rocm_open(0);
    const kiln__rocm_device *rocm = w->device->native;
    assert_int_equal(
        kiln__rocm.queue_create(rocm->agent, queue_size, 0, on_error, w, UINT32_MAX, UINT32_MAX, &w->queue), 0);
    assert_ok(kiln_stream_borrow(w->device, w->queue, &w->stream));
    assert_ok(kiln_event_create(w->device, 0, &w->event));
    assert_ok(kiln_memory_alloc(w->device, BYTES, &w->memory));
}

/* left: objects of the runtime's that stay. */
static void world_free(world *w, uint64_t left) {
    kiln_memory_free(w->device, w->memory);
    kiln_event_destroy(w->event);
    kiln_stream_close(&w->stream);
    kiln_device_close(w->device);
    assert_int_equal(kiln__rocm.queue_destroy(w->queue), 0);
    assert_int_equal(sim.live("*"), left);
}

/* Of a device that is lost each call here says so. */
static kiln_status launch(kiln_stream *stream) {
    const scale_arguments arguments = {.x = (void *)0x1000, .y = (void *)0x2000, .count = 1};
    const kiln_launch_config config = {.grid = {1}, .block = {64}};
    const kiln_module *module;
    const kiln_kernel *kernel;
    KILN__TRY(kiln_module_get(stream->device, &rocm_bundle, "f32", &module));
    KILN__TRY(kiln_module_find_kernel(module, "scale", &kernel));
    return kiln_launch(stream, kernel, &config, &arguments, sizeof arguments);
}

/* The packet that a queue refuses. */
static void submit_wrong(kiln__hsa_queue *queue) {
    const uint64_t index = kiln__rocm.queue_add_write_index(queue, 1);
    uint32_t *packet = (uint32_t *)queue->base_address + index % queue->size * 16;
    memset(packet + 1, 0, 60);
    __atomic_store_n(packet, KILN__ROCM_HEADER | NO_TYPE, __ATOMIC_RELEASE);
    kiln__rocm.signal_store_release(queue->doorbell_signal, (kiln__hsa_signal_value)index);
}

/* ---- Waits ---- */

static kiln_status wait_for_stream(world *w) {
    KILN__TRY(launch(&w->stream));
    return kiln_stream_sync(&w->stream);
}

static kiln_status wait_for_event(world *w) {
    KILN__TRY(launch(&w->stream));
    KILN__TRY(kiln_event_record(w->event, &w->stream));
    return kiln_event_sync(w->event);
}

/* For room in the queue if that is short, for that in the ring of arguments if it is long. */
static kiln_status wait_for_room(world *w) {
    kiln_status status = KILN_OK;
    for (int i = 0; status == KILN_OK && i < 2000; i++)
        status = launch(&w->stream);
    return status;
}

static kiln_status wait_for_copy(world *w) {
    static char pageable[BYTES];
    return kiln_copy(&w->stream, w->memory, pageable, BYTES, KILN_COPY_TO_DEVICE);
}

static const struct {
    kiln_status (*wait)(world *w);
    uint32_t queue_size;
    uint64_t left; /* of the copy: a lock, and two signals that its engine looks at */
} waits[] = {
    {wait_for_stream, 64, 0}, {wait_for_event, 64, 0}, {wait_for_room, 64, 0},
    {wait_for_room, 2048, 0}, {wait_for_copy, 64, 3},
};

/* A while later, so that the wait is under way. */
static void *stop_the_queues(void *unused) {
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    sim_rocm.queue_error(0, FORMAT);
    return unused;
}

static void each_wait_on_a_stopped_borrowed_queue_ends(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
        world w;
        pthread_t thread;
        world_make(&w, waits[i].queue_size);
        rocm_kernel(w.device, "scale");
        sim_rocm.hold(1);
        assert_int_equal(pthread_create(&thread, NULL, stop_the_queues, NULL), 0);
        assert_error(waits[i].wait(&w), KILN_ERROR_DEVICE_LOST, lost);
        pthread_join(thread, NULL);
        sim_rocm.hold(0);
        world_free(&w, waits[i].left);
        if (sim.violations()) fail_msg("wait %zu: %s", i, sim.violation());
    }
}

/* ---- Afterwards ---- */

static void assert_each_call_says_so(const world *w) {
    const kiln_device_options options = {.backend = KILN_BACKEND_ROCM};
    const kiln_module *module;
    kiln_device *device;
    kiln_stream stream, *used = (kiln_stream *)&w->stream;
    kiln_event *event;
    void *memory;
    double nanoseconds;
    assert_error(kiln_device_open(&options, &device), KILN_ERROR_DEVICE_LOST, lost);
    assert_error(kiln_stream_open(w->device, 0, &stream), KILN_ERROR_DEVICE_LOST, lost);
    assert_error(kiln_stream_borrow(w->device, w->queue, &stream), KILN_ERROR_DEVICE_LOST, lost);
    assert_error(kiln_stream_sync(used), KILN_ERROR_DEVICE_LOST, lost);
    assert_error(kiln_memory_alloc(w->device, BYTES, &memory), KILN_ERROR_DEVICE_LOST, lost);
    assert_error(kiln_host_alloc(w->device, BYTES, &memory), KILN_ERROR_DEVICE_LOST, lost);
    assert_error(kiln_copy(used, w->memory, (char *)w->memory + 64, 64, KILN_COPY_ON_DEVICE), KILN_ERROR_DEVICE_LOST,
                 lost);
    assert_error(kiln_fill(used, w->memory, 1, BYTES), KILN_ERROR_DEVICE_LOST, lost);
    assert_error(kiln_module_get(w->device, &rocm_bundle, "f32", &module), KILN_ERROR_DEVICE_LOST, lost);
    assert_error(kiln_event_create(w->device, 0, &event), KILN_ERROR_DEVICE_LOST, lost);
    assert_error(kiln_event_record(w->event, used), KILN_ERROR_DEVICE_LOST, lost);
    assert_error(kiln_event_sync(w->event), KILN_ERROR_DEVICE_LOST, lost);
    assert_error(kiln_stream_wait_event(used, w->event), KILN_ERROR_DEVICE_LOST, lost);
    assert_error(kiln_event_elapsed(w->event, w->event, &nanoseconds), KILN_ERROR_DEVICE_LOST, lost);
    assert_error(kiln_trace_start(w->device, 0), KILN_ERROR_DEVICE_LOST, lost);
}

static void a_refused_packet_is_what_each_call_names(void **state) {
    (void)state;
    world w;
    world_make(&w, 64);
    const kiln_kernel *scale = rocm_kernel(w.device, "scale");
    const kiln_launch_config config = {.grid = {1}, .block = {64}};
    const scale_arguments arguments = {.count = 1};
    kiln_stream other = rocm_stream(w.device, 0);
    assert_ok(kiln_event_record(w.event, &w.stream));
    submit_wrong(w.queue);
    kiln_status status = KILN_OK;
    for (int i = 0; status == KILN_OK && i < 1000; i++) {
        status = kiln_stream_sync(&other);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    assert_error(status, KILN_ERROR_DEVICE_LOST, lost);
    assert_error(kiln_launch(&other, scale, &config, &arguments, sizeof arguments), KILN_ERROR_DEVICE_LOST, lost);
    assert_each_call_says_so(&w);
    kiln_stream_close(&other);
    world_free(&w, 0);
    assert_int_equal(sim.violations(), 1); /* the packet */
    world_make(&w, 64);
    assert_ok(wait_for_stream(&w));
    world_free(&w, 0);
}

/* The waiter's signal is never done, and what it waits for not in use by anybody. */
static void events_of_a_lost_device_leave_nothing(void **state) {
    (void)state;
    world w;
    world_make(&w, 64);
    sim_rocm.hold(1);
    assert_ok(launch(&w.stream));
    assert_ok(kiln_event_record(w.event, &w.stream));
    assert_ok(kiln_stream_wait_event(&w.stream, w.event));
    sim_rocm.queue_error(0, FORMAT);
    world_free(&w, 0);
    rocm_assert_clean();
}

/* One of kiln's two queues was stopped; the other's packets are still to come when its arguments are freed. */
static void kilns_own_queues_stop_with_their_device(void **state) {
    (void)state;
    kiln_device *device = rocm_open(0);
    kiln_stream refuses = rocm_stream(device, 0), works = rocm_stream(device, 0);
    sim_rocm.hold(1);
    assert_ok(launch(&works));
    submit_wrong(refuses.native);
    assert_error(kiln_stream_sync(&refuses), KILN_ERROR_DEVICE_LOST, lost);
    sim.reset();
    kiln_stream_close(&works);
    kiln_stream_close(&refuses);
    kiln_device_close(device);
    rocm_assert_clean();
}

/* A call may bring the first news of a fault. */
static void a_call_that_tells_of_a_fault_loses_the_device(void **state) {
    (void)state;
    enum { MEMORY_FAULT = 43 };
    kiln_device *device = rocm_open(0);
    void *memory;
    sim.fault("hsa_amd_memory_pool_allocate", 1, MEMORY_FAULT);
    assert_error(kiln_memory_alloc(device, BYTES, &memory), KILN_ERROR_DEVICE_LOST,
                 "hsa_amd_memory_pool_allocate: HSA_STATUS_ERROR_MEMORY_FAULT (0x2b)");
    assert_error(kiln_memory_alloc(device, BYTES, &memory), KILN_ERROR_DEVICE_LOST,
                 "rocm:0 is lost: hsa_amd_memory_pool_allocate: HSA_STATUS_ERROR_MEMORY_FAULT (0x2b)");
    kiln_device_close(device);
    rocm_assert_clean();
}

static void the_first_reason_counts(void **state) {
    (void)state;
    kiln_device *device = rocm_open(0);
    void *memory;
    kiln_device_mark_lost(NULL, FORMAT);
    kiln_device_mark_lost(device, 0);
    assert_ok(kiln_memory_alloc(device, BYTES, &memory));
    kiln_memory_free(device, memory);
    kiln_device_mark_lost(device, 0x2345);
    kiln_device_mark_lost(device, FORMAT);
    assert_error(kiln_memory_alloc(device, BYTES, &memory), KILN_ERROR_DEVICE_LOST,
                 "rocm:0 is lost: an error that kiln does not know (0x2345)");
    kiln_device_close(device);
    rocm_assert_clean();
}

int main(int argc, char **argv) {
    (void)argc;
    rocm_sim_start(argv, "gfx90a");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_refused_packet_is_what_each_call_names, rocm_reset),
        cmocka_unit_test_setup(events_of_a_lost_device_leave_nothing, rocm_reset),
        cmocka_unit_test_setup(kilns_own_queues_stop_with_their_device, rocm_reset),
        cmocka_unit_test_setup(the_first_reason_counts, rocm_reset),
        cmocka_unit_test_setup(a_call_that_tells_of_a_fault_loses_the_device, rocm_reset),
        cmocka_unit_test_setup(each_wait_on_a_stopped_borrowed_queue_ends, rocm_reset), /* last: a copy's things stay */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
