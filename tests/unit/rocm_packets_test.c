/* Dispatch packets that break a rule: the simulated runtime names it, stops the queue and tells the queue's error
 * callback, which for kiln's own queues is the loss of the device. */
#include "loader/rocm/rocm_backend.h"
#include "loader/rocm/rocm_driver.h"
#include "tests/unit/rocm_sim.h"

enum { QUEUE_SIZE = 64, THREADS = 64, SIGNAL_EQUALS = 0, SIGNAL_DIFFERS = 1 };

/* Ticks of 10 ns: ten seconds. */
static const uint64_t A_WHILE = 1000000000;

/* HSA_STATUS_ERROR_..., as the specification numbers them. */
enum { ARGUMENT = 0x1001, ALLOCATION = 0x1003, FORMAT = 0x1009, INCOMPATIBLE = 0x100d, CODE_OBJECT = 0x1010 };

/* What is wrong with a packet: a number that is added to a field of a right one. */
#define FIELD(field) #field, offsetof(kiln__hsa_dispatch_packet, field), sizeof((kiln__hsa_dispatch_packet *)0)->field
#define WRONG(field, added, status, says) \
    { FIELD(field), added, status, says }
static const struct {
    const char *field;
    size_t offset, size;
    uint64_t added;
    kiln__hsa_status status; /* that the error callback is told; 0: it is not */
    const char *says;        /* the violation; NULL: none */
} rows[] = {
    WRONG(header, 0, 0, NULL),
    WRONG(header, (uint64_t)-0x100, FORMAT, "no barrier bit"),
    WRONG(header, 0x2000, FORMAT, "unknown bits"),
    WRONG(header, (uint64_t)-0x200, 0, NULL), /* acquires at the agent's scope */
    WRONG(header, (uint64_t)-0x400, FORMAT, "agent or system scope"),
    WRONG(header, (uint64_t)-0x1000, FORMAT, "agent or system scope"),
    WRONG(header, 2, FORMAT, "type 4"),
    WRONG(header, 5, FORMAT, "type 7"),
    WRONG(setup, 4, INCOMPATIBLE, "setup is"),
    WRONG(workgroup_size_x, 1000, INCOMPATIBLE, "group size 1064 of dimension 0"),
    WRONG(workgroup_size_x, (uint64_t)-THREADS, INCOMPATIBLE, "group size 0 of dimension 0"),
    WRONG(workgroup_size_y, 3, 0, NULL), /* partial groups */
    WRONG(grid_size_x, 1, 0, NULL),
    WRONG(workgroup_size_y, 16, ARGUMENT, "a group of more than 1024 threads"),
    WRONG(grid_size_z, (uint64_t)-1, INCOMPATIBLE, "grid size 0 of dimension 2"),
    WRONG(reserved0, 1, FORMAT, "reserved field"),
    WRONG(group_segment_size, 65537, ALLOCATION, "bytes of LDS"),
    WRONG(kernel_object, 8, CODE_OBJECT, "not of a loaded executable"),
    WRONG(kernarg_address, 8, FORMAT, "not 16-byte aligned"),
    WRONG(kernarg_address, 1ull << 40, FORMAT, "bytes of live kernarg memory"),
    WRONG(completion_signal, 8, FORMAT, "completion signal is not live"),
};

typedef struct world {
    kiln_device *device;
    kiln_stream stream;              /* its arguments stay while it is open */
    kiln__hsa_queue *queue;          /* that is stopped */
    kiln__hsa_signal told;           /* what its error callback was told; 0: nothing */
    kiln__hsa_dispatch_packet right; /* as kiln wrote it, and done */
} world;

static void on_error(kiln__hsa_status status, kiln__hsa_queue *queue, void *data) {
    const world *w = data;
    kiln__rocm.signal_store_release(w->told, queue == w->queue ? (kiln__hsa_signal_value)status : -1);
}

static void world_make(world *w) {
    const kiln_launch_config config = {.grid = {1}, .block = {THREADS}};
    const scale_arguments arguments = {.x = (void *)0x1000, .y = (void *)0x2000, .count = 1};
    w->device = rocm_open(0);
    const kiln__rocm_device *rocm = w->device->native;
    assert_int_equal(kiln__rocm.signal_create(0, 0, NULL, &w->told), 0);
    assert_int_equal(
        kiln__rocm.queue_create(rocm->agent, QUEUE_SIZE, 0, on_error, w, UINT32_MAX, UINT32_MAX, &w->queue), 0);
    w->stream = rocm_stream(w->device, 0);
    const kiln_kernel *scale = rocm_kernel(w->device, "scale");
    assert_ok(kiln_launch(&w->stream, scale, &config, &arguments, sizeof arguments));
    assert_ok(kiln_stream_sync(&w->stream));
    w->right = *(const kiln__hsa_dispatch_packet *)((const kiln__hsa_queue *)w->stream.native)->base_address;
    w->right.header = KILN__HSA_PACKET_TYPE_KERNEL_DISPATCH | 1u << KILN__HSA_PACKET_HEADER_BARRIER |
                      KILN__HSA_FENCE_SCOPE_SYSTEM << KILN__HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE |
                      KILN__HSA_FENCE_SCOPE_SYSTEM << KILN__HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE;
    w->right.setup = 3; /* dimensions */
    assert_int_equal(kiln__rocm.signal_create(1, 0, NULL, &w->right.completion_signal), 0);
}

static void world_free(world *w) {
    assert_int_equal(kiln__rocm.queue_destroy(w->queue), 0);
    assert_int_equal(kiln__rocm.signal_destroy(w->right.completion_signal), 0);
    assert_int_equal(kiln__rocm.signal_destroy(w->told), 0);
    kiln_stream_close(&w->stream);
    kiln_device_close(w->device);
}

static void submit(const world *w, kiln__hsa_queue *queue, size_t row) {
    const uint64_t index = kiln__rocm.queue_add_write_index(queue, 1);
    kiln__hsa_dispatch_packet *packet = (kiln__hsa_dispatch_packet *)queue->base_address + index % queue->size;
    kiln__hsa_dispatch_packet wrong = w->right;
    uint8_t *field = (uint8_t *)&wrong + rows[row].offset;
    uint64_t value = 0;
    memcpy(&value, field, rows[row].size);
    value += rows[row].added;
    memcpy(field, &value, rows[row].size);
    memcpy((uint8_t *)packet + 4, (const uint8_t *)&wrong + 4, sizeof wrong - 4);
    uint32_t first;
    memcpy(&first, &wrong, sizeof first);
    __atomic_store_n((uint32_t *)(void *)packet, first, __ATOMIC_RELEASE);
    kiln__rocm.signal_store_release(queue->doorbell_signal, (kiln__hsa_signal_value)index);
}

static void each_wrong_packet_is_named_and_its_queue_told(void **state) {
    (void)state;
    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
        world w;
        world_make(&w);
        sim.reset();
        submit(&w, w.queue, row);
        if (!rows[row].says)
            assert_int_equal(kiln__rocm.signal_wait(w.right.completion_signal, SIGNAL_EQUALS, 0, UINT64_MAX, 0), 0);
        else
            kiln__rocm.signal_wait(w.told, SIGNAL_DIFFERS, 0, A_WHILE, 0);
        const kiln__hsa_signal_value status = kiln__rocm.signal_load(w.told);
        if (status != rows[row].status)
            fail_msg("row %zu, %s: the callback was told 0x%x, not 0x%x", row, rows[row].field, (unsigned)status,
                     rows[row].status);
        const char *told = sim.violations() ? sim.violation() : "";
        if (rows[row].says ? !strstr(told, rows[row].says) : *told)
            fail_msg("row %zu, %s: \"%s\" is not in \"%s\"", row, rows[row].field,
                     rows[row].says ? rows[row].says : "nothing", told);
        world_free(&w);
    }
}

static void a_wrong_packet_in_its_own_queue_loses_the_device(void **state) {
    (void)state;
    enum { TYPE_4 = 6 }; /* the row */
    world w;
    world_make(&w);
    kiln_event *event;
    assert_ok(kiln_event_create(w.device, 0, &event));
    submit(&w, w.stream.native, TYPE_4);
    /* It waits for what is never done, until the callback comes: perhaps it has come already. */
    const kiln_status status = kiln_event_record(event, &w.stream);
    if (status != KILN_ERROR_DEVICE_LOST) assert_ok(status);
    assert_error(kiln_stream_sync(&w.stream), KILN_ERROR_DEVICE_LOST, "rocm:0 is lost");
    assert_int_equal(kiln__rocm.signal_load(w.told), 0);
    kiln_event_destroy(event);
    world_free(&w);
}

/* ---- Scopes ---- */

enum { AGENT = KILN__HSA_FENCE_SCOPE_AGENT, SYSTEM = KILN__HSA_FENCE_SCOPE_SYSTEM };
enum { DISPATCH = KILN__HSA_PACKET_TYPE_KERNEL_DISPATCH, BARRIER = KILN__HSA_PACKET_TYPE_BARRIER_AND };

/* Of the packet that was taken so many before the last. */
static void assert_packet(uint32_t back, uint32_t type, uint32_t acquire, uint32_t release) {
    const uint32_t header = sim_rocm.header(back);
    assert_int_equal(header & 0xff, type);
    assert_int_equal(header >> KILN__HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE & 3, acquire);
    assert_int_equal(header >> KILN__HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE & 3, release);
}

static void launch(kiln_stream *stream) {
    const kiln_launch_config config = {.grid = {1}, .block = {THREADS}};
    const scale_arguments arguments = {.count = 1};
    assert_ok(kiln_launch(stream, rocm_kernel(stream->device, "scale"), &config, &arguments, sizeof arguments));
}

/* What the host or another device sees lies behind a barrier packet of system scope, and the first launch behind a wait
 * sees what the host wrote meanwhile; from launch to launch the L2 cache is kept. */
static void launches_are_of_agent_scope_up_to_what_others_see(void **state) {
    (void)state;
    kiln_device *device = rocm_open(0);
    kiln_stream stream = rocm_stream(device, 0);
    kiln_event *event;
    void *host, *memory;
    assert_ok(kiln_event_create(device, 0, &event));
    assert_ok(kiln_host_alloc(device, 64, &host));
    assert_ok(kiln_memory_alloc(device, 64, &memory));
    for (int round = 0; round < 2; round++) {
        launch(&stream);
        launch(&stream);
        assert_ok(kiln_stream_sync(&stream));
        assert_packet(2, DISPATCH, SYSTEM, AGENT);
        assert_packet(1, DISPATCH, AGENT, AGENT);
        assert_packet(0, BARRIER, SYSTEM, SYSTEM);
    }
    launch(&stream);
    assert_ok(kiln_event_record(event, &stream));
    launch(&stream);
    assert_ok(kiln_stream_wait_event(&stream, event));
    launch(&stream);
    assert_ok(kiln_copy(&stream, host, memory, 64, KILN_COPY_TO_HOST));
    assert_ok(kiln_stream_sync(&stream));
    const uint32_t types[] = {BARRIER, BARRIER, BARRIER, DISPATCH, BARRIER, DISPATCH, BARRIER};
    for (uint32_t back = 0; back < sizeof types / sizeof *types; back++)
        assert_packet(back, types[back], types[back] == BARRIER ? SYSTEM : AGENT,
                      types[back] == BARRIER ? SYSTEM : AGENT);
    kiln_event_destroy(event);
    kiln_host_free(device, host);
    kiln_memory_free(device, memory);
    kiln_stream_close(&stream);
    kiln_device_close(device);
    rocm_assert_clean();
}

/* The application may look behind each launch by means of its own. */
static void launches_on_a_borrowed_queue_are_of_system_scope(void **state) {
    (void)state;
    kiln_device *device = rocm_open(0);
    const kiln__rocm_device *rocm = device->native;
    kiln__hsa_queue *queue;
    kiln_stream stream;
    assert_int_equal(kiln__rocm.queue_create(rocm->agent, QUEUE_SIZE, 0, NULL, NULL, UINT32_MAX, UINT32_MAX, &queue),
                     0);
    assert_ok(kiln_stream_borrow(device, queue, &stream));
    launch(&stream);
    launch(&stream);
    assert_ok(kiln_stream_sync(&stream));
    for (uint32_t back = 1; back <= 2; back++)
        assert_packet(back, DISPATCH, SYSTEM, SYSTEM);
    kiln_stream_close(&stream);
    kiln_device_close(device);
    assert_int_equal(kiln__rocm.queue_destroy(queue), 0);
    rocm_assert_clean();
}

int main(int argc, char **argv) {
    (void)argc;
    rocm_sim_start(argv, "gfx90a");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(each_wrong_packet_is_named_and_its_queue_told, rocm_reset),
        cmocka_unit_test_setup(launches_are_of_agent_scope_up_to_what_others_see, rocm_reset),
        cmocka_unit_test_setup(launches_on_a_borrowed_queue_are_of_system_scope, rocm_reset),
        cmocka_unit_test_setup(a_wrong_packet_in_its_own_queue_loses_the_device, rocm_reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
