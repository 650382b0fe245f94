/* Launches through HSA: packets, kernargs, hidden arguments, limits, the ring's laps, shared and borrowed queues. */
#include "loader/rocm/rocm_abi.h"
#include "loader/rocm/rocm_backend.h"
#include "tests/unit/rocm_sim.h"
#include <pthread.h>

enum { GFX90A, GFX1030 };

static scale_arguments arguments_of(uint32_t count) {
    return (scale_arguments){.x = (void *)0x1000, .y = (void *)0x2000, .count = count};
}

static sim_launch recorded(uint64_t index) {
    sim_launch launch = {0};
    assert_int_equal(sim.launch(index, &launch), 1);
    return launch;
}

static void a_launch_is_a_packet_with_its_arguments(void **state) {
    (void)state;
    kiln_device *device = rocm_open(GFX90A);
    kiln_stream stream = rocm_stream(device, 0);
    const kiln_kernel *scale = rocm_kernel(device, "scale");
    const scale_arguments arguments = arguments_of(77);
    const kiln_launch_config config = {.grid = {10, 3}, .block = {64, 2}, .dynamic_shared_bytes = 512};
    assert_ok(kiln_launch(&stream, scale, &config, &arguments, sizeof arguments));
    assert_ok(kiln_stream_sync(&stream));
    const sim_launch launch = recorded(0);
    assert_string_equal(launch.kernel, "scale");
    assert_int_equal(launch.grid[0], 640);
    assert_int_equal(launch.grid[1], 6);
    assert_int_equal(launch.grid[2], 1);
    assert_int_equal(launch.group[0], 64);
    assert_int_equal(launch.group[1], 2);
    assert_int_equal(launch.shared_bytes, 512);
    assert_int_equal(launch.arguments_size, sizeof arguments);
    assert_memory_equal(launch.arguments, &arguments, sizeof arguments);
    assert_int_equal(launch.stream, (uintptr_t)stream.native);
    kiln_stream_close(&stream);
    kiln_device_close(device);
    rocm_assert_clean();
}

/* COV5 puts 2-byte group sizes among the hidden arguments; turn uses them. */
static void hidden_arguments_are_where_the_metadata_says(void **state) {
    (void)state;
    kiln_device *device = rocm_open(GFX1030);
    kiln_stream stream = rocm_stream(device, 0);
    const kiln_kernel *turn = rocm_kernel(device, "turn");
    const kiln__rocm_kernel *function = turn->function;
    struct {
        float *x;
        int32_t factor;
    } arguments = {(void *)0x1000, 5};
    const kiln_launch_config config = {.grid = {7, 2, 3}, .block = {32, 4, 2}, .dynamic_shared_bytes = 96};
    assert_true(function->hidden_count > 0);
    assert_ok(kiln_launch(&stream, turn, &config, &arguments, 12));
    assert_ok(kiln_stream_sync(&stream));
    const sim_launch launch = recorded(0);
    assert_int_equal(launch.shared_bytes, 256 + 96);
    assert_memory_equal(launch.arguments, &arguments, 12);
    const uint64_t expected[KILN__HIDDEN_KIND_COUNT] = {
        [KILN__HIDDEN_BLOCK_COUNT_X] = 7, [KILN__HIDDEN_BLOCK_COUNT_Y] = 2,     [KILN__HIDDEN_BLOCK_COUNT_Z] = 3,
        [KILN__HIDDEN_GROUP_SIZE_X] = 32, [KILN__HIDDEN_GROUP_SIZE_Y] = 4,      [KILN__HIDDEN_GROUP_SIZE_Z] = 2,
        [KILN__HIDDEN_GRID_DIMS] = 3,     [KILN__HIDDEN_DYNAMIC_LDS_SIZE] = 96,
    };
    uint8_t image[KILN__ROCM_SLOT_BYTES] = {0};
    memcpy(image, &arguments, 12);
    for (uint32_t i = 0; i < function->hidden_count; i++)
        memcpy(image + function->hidden[i].offset, &expected[function->hidden[i].kind], function->hidden[i].size);
    assert_int_equal(launch.arguments_size, function->kernarg_bytes);
    assert_memory_equal(launch.arguments, image, function->kernarg_bytes);
    kiln_stream_close(&stream);
    kiln_device_close(device);
    rocm_assert_clean();
}

static void shapes_beyond_the_limits_are_refused(void **state) {
    (void)state;
    kiln_device *device = rocm_open(GFX90A);
    kiln_stream stream = rocm_stream(device, 0);
    const kiln_kernel *scale = rocm_kernel(device, "scale");
    const scale_arguments arguments = arguments_of(1);
    const struct {
        kiln_launch_config config;
        kiln_status status;
        const char *text;
    } cases[] = {
        {{.block = {512}}, KILN_ERROR_INVALID_ARGUMENT, "block has 512 threads: kernel scale takes at most 256"},
        {{.block = {16, 16, 2}}, KILN_ERROR_INVALID_ARGUMENT, "block has 512 threads"},
        {{.block = {1, 2048}}, KILN_ERROR_INVALID_ARGUMENT, "block[1] is 2048: at most 1024"},
        {{.block = {UINT32_MAX, UINT32_MAX, UINT32_MAX}}, KILN_ERROR_INVALID_ARGUMENT, "block[0] is 4294967295"},
        {{.grid = {1u << 24}, .block = {256}}, KILN_ERROR_INVALID_ARGUMENT, "grid[0] of 16777216 blocks is 4294967296"},
        {{.grid = {1, 65536}},
         KILN_ERROR_INVALID_ARGUMENT,
         "grid[1] of 65536 blocks is 65536 work-items: at most 65535"},
        {{.grid = {UINT32_MAX, UINT32_MAX, UINT32_MAX}}, KILN_ERROR_INVALID_ARGUMENT, "grid[0]"},
        {{.grid = {INT32_MAX, 65535, 65535}}, KILN_ERROR_INVALID_ARGUMENT, "too large: at most 4294967295 work-items"},
        {{.dynamic_shared_bytes = 65537}, KILN_ERROR_INVALID_ARGUMENT, "dynamic_shared_bytes is 65537"},
        {{.cluster = {2, 1, 1}}, KILN_ERROR_UNSUPPORTED, "cluster[0] is 2: rocm has no clusters"},
        {{.flags = KILN_LAUNCH_COOPERATIVE}, KILN_ERROR_UNSUPPORTED, "rocm has no cooperative launch"},
        {{.flags = KILN_LAUNCH_PRIORITY}, KILN_ERROR_UNSUPPORTED, "rocm has no priority of a launch"},
        {{.flags = 8}, KILN_ERROR_INVALID_ARGUMENT, "flags is 0x8: has unknown bits"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_error(kiln_launch(&stream, scale, &cases[i].config, &arguments, sizeof arguments), cases[i].status,
                     cases[i].text);
    const kiln_launch_config plain = {.grid = {1}};
    assert_error(kiln_launch(&stream, scale, &plain, &arguments, 16), KILN_ERROR_INVALID_ARGUMENT,
                 "arguments_size is 16");
    assert_ok(kiln_stream_sync(&stream));
    assert_int_equal(sim.launches(), 0);
    kiln_stream_close(&stream);
    kiln_device_close(device);
    rocm_assert_clean();
}

/* Five laps of the ring with a processor that is slower than the host, and packets enough to fill the queue: the
 * recording runtime compares each kernarg when its doorbell rings and when it is done. */
static void kernargs_live_until_their_kernel_is_done(void **state) {
    (void)state;
    enum { LAUNCHES = 5 * KILN__ROCM_RING_SLOTS + 17 };
    sim.configure("KILN_SIM_DELAY", "40");
    kiln_device *device = rocm_open(GFX90A);
    kiln_stream stream = rocm_stream(device, 0);
    const kiln_kernel *scale = rocm_kernel(device, "scale");
    const kiln_launch_config config = {.grid = {1}, .block = {64}};
    for (uint32_t i = 0; i < LAUNCHES; i++) {
        const scale_arguments arguments = arguments_of(i);
        assert_ok(kiln_launch(&stream, scale, &config, &arguments, sizeof arguments));
    }
    assert_ok(kiln_stream_sync(&stream));
    assert_int_equal(sim.launches(), LAUNCHES);
    for (uint32_t i = 0; i < 256; i++) {
        const sim_launch launch = recorded(i);
        scale_arguments arguments;
        memcpy(&arguments, launch.arguments, sizeof arguments);
        assert_int_equal(arguments.count, i);
    }
    kiln_stream_close(&stream);
    kiln_device_close(device);
    rocm_assert_clean();
}

/* Barrier packets take no kernargs, so that they alone can fill a queue. */
static void a_full_queue_is_waited_for(void **state) {
    (void)state;
    kiln_device *device = rocm_open(GFX90A);
    kiln_stream stream = rocm_stream(device, 0);
    kiln_event *event;
    const uint32_t packets = ((kiln__hsa_queue *)stream.native)->size;
    assert_ok(kiln_event_create(device, 0, &event));
    for (uint32_t i = 0; i < 3 * packets; i++)
        assert_ok(kiln_event_record(event, &stream));
    assert_ok(kiln_event_sync(event));
    kiln_event_destroy(event);
    kiln_stream_close(&stream);
    kiln_device_close(device);
    rocm_assert_clean();
}

typedef struct worker {
    kiln_device *device;
    const kiln_kernel *kernel;
    kiln_stream stream;
    uint32_t number;
    kiln_status status;
} worker;

static void *launch_many(void *argument) {
    worker *w = argument;
    const kiln_launch_config config = {.grid = {1}, .block = {64}};
    for (uint32_t i = 0; i < 1200 && w->status == KILN_OK; i++) {
        const scale_arguments arguments = arguments_of(w->number << 16 | i);
        w->status = kiln_launch(&w->stream, w->kernel, &config, &arguments, sizeof arguments);
    }
    if (w->status == KILN_OK) w->status = kiln_stream_sync(&w->stream);
    return NULL;
}

static void six_streams_share_four_queues(void **state) {
    (void)state;
    enum { STREAMS = 6 };
    kiln_device *device = rocm_open(GFX90A);
    const kiln_kernel *scale = rocm_kernel(device, "scale");
    worker workers[STREAMS];
    pthread_t threads[STREAMS];
    for (uint32_t i = 0; i < STREAMS; i++)
        workers[i] = (worker){device, scale, rocm_stream(device, 0), i, KILN_OK};
    assert_int_equal(sim.live("queue"), KILN__ROCM_QUEUES);
    assert_int_equal(sim.calls("hsa_queue_create"), KILN__ROCM_QUEUES);
    for (int i = 0; i < STREAMS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, launch_many, &workers[i]), 0);
    for (int i = 0; i < STREAMS; i++)
        pthread_join(threads[i], NULL);
    uint32_t next[STREAMS] = {0};
    for (uint64_t i = 0; i < 256; i++) {
        const sim_launch launch = recorded(i);
        scale_arguments arguments;
        memcpy(&arguments, launch.arguments, sizeof arguments);
        assert_int_equal(arguments.count & 0xffff, next[arguments.count >> 16]++);
    }
    assert_int_equal(sim.launches(), STREAMS * 1200);
    for (int i = 0; i < STREAMS; i++) {
        assert_int_equal(workers[i].status, KILN_OK);
        kiln_stream_close(&workers[i].stream);
    }
    assert_int_equal(sim.live("queue"), 0);
    kiln_device_close(device);
    rocm_assert_clean();
}

/* The application's own queue. */
static kiln__hsa_queue *queue_create(const kiln_device *device) {
    kiln__hsa_status (*create)(kiln__hsa_agent, uint32_t, uint32_t, kiln__hsa_queue_callback, void *, uint32_t,
                               uint32_t, kiln__hsa_queue **);
    kiln__hsa_queue *queue = NULL;
    *(void **)&create = dlsym(sim_library, "hsa_queue_create");
    const kiln__rocm_device *rocm = device->native;
    assert_int_equal(create(rocm->agent, 64, 0, NULL, NULL, UINT32_MAX, UINT32_MAX, &queue), 0);
    return queue;
}

static void queue_destroy(kiln__hsa_queue *queue) {
    kiln__hsa_status (*destroy)(kiln__hsa_queue *);
    *(void **)&destroy = dlsym(sim_library, "hsa_queue_destroy");
    assert_int_equal(destroy(queue), 0);
}

static void a_borrowed_queue_is_left_as_it_was(void **state) {
    (void)state;
    kiln_device *device = rocm_open(GFX90A);
    const kiln_kernel *scale = rocm_kernel(device, "scale");
    const scale_arguments arguments = arguments_of(3);
    const kiln_launch_config config = {.grid = {4}, .block = {64}};
    kiln__hsa_queue *queue = queue_create(device);
    kiln_stream stream;

    assert_error(kiln_stream_borrow(device, NULL, &stream), KILN_ERROR_INVALID_ARGUMENT, "native is NULL");
    kiln__hsa_queue broken = *queue;
    broken.size = 63;
    assert_error(kiln_stream_borrow(device, &broken, &stream), KILN_ERROR_INVALID_ARGUMENT, "not a queue");

    sim.configure("KILN_SIM_DELAY", "200");
    assert_ok(kiln_stream_borrow(device, queue, &stream));
    for (int i = 0; i < 200; i++)
        assert_ok(kiln_launch(&stream, scale, &config, &arguments, sizeof arguments));
    kiln_stream_close(&stream);
    assert_int_equal(sim.launches(), 200);
    assert_int_equal(sim.calls("hsa_amd_profiling_set_profiler_enabled"), 0);
    assert_int_equal(sim.live("queue"), 1);
    queue_destroy(queue);
    kiln_device_close(device);
    rocm_assert_clean();
}

static void a_queue_of_another_agent_is_no_queue_of_the_device(void **state) {
    (void)state;
    kiln_device *device = rocm_open(GFX90A), *other = rocm_open(GFX1030);
    kiln__hsa_queue *queue = queue_create(other);
    kiln_stream stream;
    assert_error(kiln_stream_borrow(device, queue, &stream), KILN_ERROR_INVALID_ARGUMENT,
                 "kiln_stream_borrow: native is a queue of another agent: must be of rocm:0's");
    assert_null(stream.device);
    assert_ok(kiln_stream_borrow(other, queue, &stream));
    kiln_stream_close(&stream);
    queue_destroy(queue);
    kiln_device_close(other);
    kiln_device_close(device);
    rocm_assert_clean();
}

int main(int argc, char **argv) {
    (void)argc;
    rocm_sim_start(argv, "gfx90a,gfx1030");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_launch_is_a_packet_with_its_arguments, rocm_reset),
        cmocka_unit_test_setup(hidden_arguments_are_where_the_metadata_says, rocm_reset),
        cmocka_unit_test_setup(shapes_beyond_the_limits_are_refused, rocm_reset),
        cmocka_unit_test_setup(kernargs_live_until_their_kernel_is_done, rocm_reset),
        cmocka_unit_test_setup(a_full_queue_is_waited_for, rocm_reset),
        cmocka_unit_test_setup(six_streams_share_four_queues, rocm_reset),
        cmocka_unit_test_setup(a_borrowed_queue_is_left_as_it_was, rocm_reset),
        cmocka_unit_test_setup(a_queue_of_another_agent_is_no_queue_of_the_device, rocm_reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
