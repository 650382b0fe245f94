/* Launches, streams, events and memory of the CUDA backend, as a recording driver sees them. */
#include "loader/module.h"
#include "tests/unit/cuda_fixture.h"
#include <pthread.h>

static const kiln_launch_config one_group = {.grid = {1}, .block = {256}};

static void test_launch_passes_shape_and_arguments(void **state) {
    (void)state;
    kiln_device *device = fixture_open(0);
    const kiln_kernel *kernel = fixture_kernel(device, "scale");
    kiln_stream stream;
    assert_ok(kiln_stream_open(device, 0, &stream));
    scale_arguments arguments = {.n = 77, .rest = {1, 2, 3}};
    kiln_launch_config config = {.grid = {3, 0, 2}, .block = {64, 2, 0}, .dynamic_shared_bytes = 100};
    assert_ok(kiln_launch(&stream, kernel, &config, &arguments, sizeof arguments));
    sim_launch seen;
    assert_int_equal(sim.launches(), 1);
    assert_true(sim.launch(0, &seen));
    assert_string_equal(seen.kernel, "scale");
    assert_memory_equal(seen.grid, ((uint32_t[]){3, 1, 2}), sizeof seen.grid);
    assert_memory_equal(seen.group, ((uint32_t[]){64, 2, 1}), sizeof seen.group);
    assert_int_equal(seen.shared_bytes, 100);
    assert_int_equal(seen.stream, (uintptr_t)stream.native);
    assert_int_equal(seen.arguments_size, sizeof arguments);
    assert_memory_equal(seen.arguments, &arguments, sizeof arguments);
    kiln_stream_close(&stream);
    kiln_device_close(device);
}

static void test_flags_reach_the_driver(void **state) {
    (void)state;
    kiln_device *device = fixture_open(0);
    const kiln_kernel *kernel = fixture_kernel(device, "scale");
    kiln_stream stream;
    sim_launch seen;
    scale_arguments arguments = {.n = 79};
    assert_ok(kiln_stream_open(device, 0, &stream));
    kiln_launch_config config = {.grid = {2}, .block = {32}, .flags = KILN_LAUNCH_COOPERATIVE};
    assert_ok(kiln_launch(&stream, kernel, &config, &arguments, sizeof arguments));
    assert_true(sim.launch(0, &seen));
    assert_int_equal(seen.cooperative, 1);
    assert_int_equal(seen.overlap, 0);
    config = (kiln_launch_config){.grid = {2, 1, 1},
                                  .block = {32, 1, 1},
                                  .cluster = {2},
                                  .flags = KILN_LAUNCH_PROGRAMMATIC | KILN_LAUNCH_PRIORITY,
                                  .priority = -1};
    assert_ok(kiln_launch(&stream, kernel, &config, &arguments, sizeof arguments));
    assert_true(sim.launch(1, &seen));
    assert_int_equal(seen.cooperative, 0);
    assert_int_equal(seen.overlap, 1);
    assert_int_equal(seen.priority, -1);
    assert_int_equal(seen.cluster[0], 2);
    assert_memory_equal(seen.arguments, &arguments, sizeof arguments);
    config = (kiln_launch_config){.grid = {1, 1, 1}, .block = {32, 1, 1}, .flags = 8};
    assert_status(kiln_launch(&stream, kernel, &config, &arguments, sizeof arguments), KILN_ERROR_INVALID_ARGUMENT);
    assert_told("flags is 0x8: has unknown bits");
    config = (kiln_launch_config){.grid = {1 << 20, 1, 1}, .block = {32, 1, 1}, .flags = KILN_LAUNCH_COOPERATIVE};
    assert_status(kiln_launch(&stream, kernel, &config, &arguments, sizeof arguments), KILN_ERROR_INVALID_ARGUMENT);
    assert_told("CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE (720)");
    kiln_stream_close(&stream);
    kiln_device_close(device);
}

/* On a programmatic stream, owned or borrowed, kernels that say that they wait may begin early, and others not. */
static void test_streams_may_be_programmatic(void **state) {
    (void)state;
    kiln_device *device = fixture_open(0);
    const kiln_kernel *kernel = fixture_kernel(device, "scale");
    kiln_kernel waiting = *kernel;
    const scale_arguments arguments = {.n = 80};
    const kiln_launch_config plain = {.grid = {2, 1, 1}, .block = {32, 1, 1}};
    waiting.info.programmatic = 1;
    for (uint64_t borrowed = 0; borrowed < 2; borrowed++) {
        kiln_stream stream;
        sim_launch seen;
        const uint64_t first = sim.launches();
        if (borrowed)
            assert_ok(kiln_stream_borrow(device, NULL, &stream));
        else
            assert_ok(kiln_stream_open(device, 0, &stream));
        for (int32_t on = 0; on < 3; on++) { /* off, on, off */
            assert_ok(kiln_stream_set_programmatic(&stream, on == 1));
            assert_ok(kiln_launch(&stream, &waiting, &plain, &arguments, sizeof arguments));
            assert_ok(kiln_launch(&stream, kernel, &plain, &arguments, sizeof arguments));
            assert_ok(kiln_launch(&stream, &waiting, &one_group, &arguments, sizeof arguments));
        }
        for (uint64_t i = 0; i < 9; i++) {
            assert_true(sim.launch(first + i, &seen));
            assert_int_equal(seen.overlap, i / 3 == 1 && i % 3 != 1);
            assert_memory_equal(seen.arguments, &arguments, sizeof arguments);
        }
        kiln_stream_close(&stream);
    }
    assert_status(kiln_stream_set_programmatic(NULL, 1), KILN_ERROR_INVALID_ARGUMENT);
    kiln_device_close(device);
}

static void test_queries_do_not_wait(void **state) {
    (void)state;
    kiln_device *device = fixture_open(0);
    kiln_stream stream;
    kiln_event *event;
    int32_t done = 0;
    uint64_t available, total;
    assert_ok(kiln_stream_open(device, 0, &stream));
    assert_ok(kiln_event_create(device, 0, &event));
    assert_ok(kiln_event_query(event, &done));
    assert_int_equal(done, 1); /* never recorded */
    assert_ok(kiln_event_record(event, &stream));
    sim.fault("cuStreamQuery", 1, 600);
    assert_ok(kiln_stream_query(&stream, &done));
    assert_int_equal(done, 0);
    sim.fault("cuEventQuery", 1, 600);
    assert_ok(kiln_event_query(event, &done));
    assert_int_equal(done, 0);
    assert_ok(kiln_stream_sync(&stream));
    assert_ok(kiln_stream_query(&stream, &done));
    assert_int_equal(done, 1);
    assert_ok(kiln_event_query(event, &done));
    assert_int_equal(done, 1);
    assert_ok(kiln_memory_get_info(device, &available, &total));
    assert_int_equal(total, 1 << 30);
    assert_true(available <= total);
    kiln_event_destroy(event);
    kiln_stream_close(&stream);
    kiln_device_close(device);
}

static void test_a_whole_shape_is_passed_as_it_is(void **state) {
    (void)state;
    kiln_device *device = fixture_open(0);
    const kiln_kernel *kernel = fixture_kernel(device, "scale");
    kiln_stream stream;
    sim_launch seen;
    scale_arguments arguments = {.n = 78};
    kiln_launch_config config = {.grid = {65536, 256, 256},
                                 .block = {4, 5, 6}}; /* whose product is a multiple of 2^32 */
    kiln__cu_context context;
    assert_ok(kiln_stream_borrow(device, NULL, &stream));
    assert_int_equal(cuda.cuDevicePrimaryCtxRetain(&context, 0), 0);
    for (uint64_t i = 0; i < 4; i++) {
        assert_int_equal(cuda.cuCtxSetCurrent(i < 2 ? NULL : context), 0);
        config.grid[0] = i % 2 ? 7 : 65536;
        assert_ok(kiln_launch(&stream, kernel, &config, &arguments, sizeof arguments));
        assert_true(sim.launch(i, &seen));
        assert_memory_equal(seen.grid, config.grid, sizeof seen.grid);
        assert_memory_equal(seen.group, config.block, sizeof seen.group);
        assert_memory_equal(seen.arguments, &arguments, sizeof arguments);
    }
    config.block[0] = 40;
    assert_status(kiln_launch(&stream, kernel, &config, &arguments, sizeof arguments), KILN_ERROR_INVALID_ARGUMENT);
    assert_told("kernel scale, grid 7x256x256, block 40x5x6, 0 bytes of dynamic shared memory: a block has 1200 "
                "threads, at most "
                "256: cuLaunchKernel: "
                "CUDA_ERROR_INVALID_VALUE (1)");
    assert_int_equal(cuda.cuCtxSetCurrent(NULL), 0);
    assert_int_equal(cuda.cuDevicePrimaryCtxRelease(0), 0);
    kiln_device_close(device);
}

static void test_launch_wants_the_kernels_size(void **state) {
    (void)state;
    kiln_device *device = fixture_open(0);
    kiln_stream stream;
    assert_ok(kiln_stream_borrow(device, NULL, &stream));
    scale_arguments arguments = {0};
    assert_status(kiln_launch(&stream, fixture_kernel(device, "scale"), &one_group, &arguments, 40),
                  KILN_ERROR_INVALID_ARGUMENT);
    assert_told("takes 48 bytes");
    assert_int_equal(sim.launches(), 0);
    kiln_device_close(device);
}

static void test_default_streams_keep_their_numbers(void **state) {
    (void)state;
    kiln_device *device = fixture_open(0);
    const kiln_kernel *kernel = fixture_kernel(device, "scale");
    scale_arguments arguments = {0};
    for (uintptr_t number = 0; number < 3; number++) {
        kiln_stream stream;
        sim_launch seen;
        assert_ok(kiln_stream_borrow(device, (void *)number, &stream));
        assert_ok(kiln_launch(&stream, kernel, &one_group, &arguments, sizeof arguments));
        assert_true(sim.launch(number, &seen));
        assert_int_equal(seen.stream, number);
        kiln_stream_close(&stream);
    }
    kiln_device_close(device);
}

static void test_shapes_beyond_the_device_are_invalid(void **state) {
    (void)state;
    static const struct {
        kiln_launch_config config;
        const char *told;
    } shapes[] = {
        {{.grid = {1, 65536}, .block = {1}},
         "grid 1x65536x1, block 1x1x1, 0 bytes of dynamic shared memory: grid y is 65536, at most 65535"},
        {{.grid = {1}, .block = {1025}}, ": block x is 1025, at most 1024"},
        {{.grid = {1}, .block = {512}}, ": a block has 512 threads, at most 256"}, /* what the kernel was built for */
        {{.grid = {1}, .block = {1, 1, 65}}, ": block z is 65, at most 64"},
        {{.grid = {1}, .block = {1}, .dynamic_shared_bytes = 1 << 20},
         ": dynamic shared memory is 1048576 bytes, at most 232448"},
    };
    kiln_device *device = fixture_open(0);
    const kiln_kernel *kernel = fixture_kernel(device, "scale");
    kiln_stream stream;
    assert_ok(kiln_stream_borrow(device, NULL, &stream));
    scale_arguments arguments = {0};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        assert_status(kiln_launch(&stream, kernel, &shapes[i].config, &arguments, sizeof arguments),
                      KILN_ERROR_INVALID_ARGUMENT);
        assert_told("kernel scale, grid 1x");
        assert_told(shapes[i].told);
        assert_told("CUDA_ERROR_");
    }
    assert_ok(kiln_launch(&stream, kernel, &one_group, &arguments, sizeof arguments));
    kiln_device_close(device);
}

static void test_dynamic_shared_memory_is_opted_in_when_loaded(void **state) {
    (void)state;
    kiln_device *device = fixture_open(0);
    const kiln_kernel *kernel = fixture_kernel(device, "scale");
    kiln_kernel_attributes attributes;
    kiln_stream stream;
    assert_ok(kiln_kernel_get_attributes(kernel, &attributes));
    assert_int_equal(attributes.max_dynamic_shared_bytes + attributes.shared_bytes, 227 << 10);
    assert_int_equal(attributes.max_threads, 256);
    assert_int_equal(attributes.arguments_size, 48);
    assert_ok(kiln_stream_borrow(device, NULL, &stream));
    sim.reset();
    scale_arguments arguments = {0};
    kiln_launch_config config = {.block = {32}, .dynamic_shared_bytes = attributes.max_dynamic_shared_bytes};
    assert_ok(kiln_launch(&stream, kernel, &config, &arguments, sizeof arguments));
    assert_int_equal(sim.calls("cuFuncSetAttribute"), 0);
    kiln_device_close(device);
}

static void test_clusters_go_through_the_extended_launch(void **state) {
    (void)state;
    kiln_device *device = fixture_open(0);
    kiln_stream stream;
    assert_ok(kiln_stream_borrow(device, NULL, &stream));
    scale_arguments arguments = {.n = 5};
    kiln_launch_config config = {.grid = {8}, .block = {64}, .cluster = {4}};
    assert_ok(kiln_launch(&stream, fixture_kernel(device, "scale"), &config, &arguments, sizeof arguments));
    sim_launch seen;
    assert_true(sim.launch(0, &seen));
    assert_memory_equal(seen.cluster, ((uint32_t[]){4, 1, 1}), sizeof seen.cluster);
    assert_memory_equal(seen.arguments, &arguments, sizeof arguments);
    assert_int_equal(sim.calls("cuLaunchKernel"), 0);
    config.cluster[0] = 3;
    assert_status(kiln_launch(&stream, fixture_kernel(device, "scale"), &config, &arguments, sizeof arguments),
                  KILN_ERROR_INVALID_ARGUMENT);
    assert_told("CUDA_ERROR_INVALID_CLUSTER_SIZE (912)");
    kiln_device_close(device);
}

/* 8 blocks a cluster are every device's, 16 are a non-portable size, which the launch asks for. */
static void test_clusters_of_non_portable_size(void **state) {
    (void)state;
    kiln_device *device = fixture_open(0);
    const kiln_kernel *kernel = fixture_kernel(device, "scale");
    scale_arguments arguments = {0};
    kiln_stream stream;
    kiln_launch_config config = {.grid = {34}, .block = {64}, .cluster = {17}};
    assert_ok(kiln_stream_open(device, 0, &stream));
    assert_status(kiln_launch(&stream, kernel, &config, &arguments, sizeof arguments), KILN_ERROR_INVALID_ARGUMENT);
    assert_told("CUDA_ERROR_INVALID_CLUSTER_SIZE (912)");
    config = (kiln_launch_config){.grid = {8, 4}, .block = {64}, .cluster = {8, 2}};
    assert_ok(kiln_launch(&stream, kernel, &config, &arguments, sizeof arguments));
    kiln_stream_close(&stream);
    kiln_device_close(device);
}

static void test_clusters_need_compute_capability_9(void **state) {
    (void)state;
    kiln_device *device = fixture_open(2);
    kiln_stream stream;
    assert_ok(kiln_stream_borrow(device, NULL, &stream));
    scale_arguments arguments = {0};
    kiln_launch_config config = {.grid = {8}, .block = {64}, .cluster = {4}};
    assert_status(kiln_launch(&stream, fixture_kernel(device, "scale"), &config, &arguments, sizeof arguments),
                  KILN_ERROR_UNSUPPORTED);
    assert_told("the device has 8.0");
    kiln_device_close(device);
}

static void test_occupancy(void **state) {
    (void)state;
    kiln_device *device = fixture_open(0);
    uint32_t groups;
    assert_ok(kiln_kernel_get_occupancy(fixture_kernel(device, "scale"), 128, 0, &groups));
    assert_int_equal(groups, 16);
    assert_ok(kiln_kernel_get_occupancy(fixture_kernel(device, "scale"), 512, 0, &groups));
    assert_int_equal(groups, 0);
    kiln_device_close(device);
}

/* ---- The context of the calling thread ---- */

static void test_launch_leaves_the_current_context(void **state) {
    (void)state;
    kiln_device *device = fixture_open(0);
    const kiln_kernel *kernel = fixture_kernel(device, "scale");
    kiln__cu_context own, current;
    kiln_stream stream;
    assert_int_equal(cuda.cuCtxCreate(&own, 0, 1), 0);
    assert_ok(kiln_stream_open(device, 0, &stream));
    scale_arguments arguments = {0};
    assert_ok(kiln_launch(&stream, kernel, &one_group, &arguments, sizeof arguments));
    assert_ok(kiln_stream_sync(&stream));
    kiln_stream_close(&stream);
    kiln_device_close(device);
    assert_int_equal(cuda.cuCtxGetCurrent(&current), 0);
    assert_ptr_equal(current, own);
    assert_int_equal(cuda.cuCtxDestroy(own), 0);
}

static void test_launch_sets_no_context_that_is_current(void **state) {
    (void)state;
    kiln__cu_context own;
    kiln_device *device = NULL;
    assert_int_equal(cuda.cuInit(0), 0);
    assert_int_equal(cuda.cuCtxCreate(&own, 0, 0), 0);
    assert_ok(kiln_device_open(&(kiln_device_options){.backend = KILN_BACKEND_CUDA, .context = own}, &device));
    const kiln_kernel *kernel = fixture_kernel(device, "scale");
    kiln_stream stream;
    assert_ok(kiln_stream_borrow(device, NULL, &stream));
    sim.reset();
    scale_arguments arguments = {0};
    assert_ok(kiln_launch(&stream, kernel, &one_group, &arguments, sizeof arguments));
    assert_int_equal(sim.calls("cuCtxSetCurrent"), 0);
    assert_int_equal(sim.calls("*"), 2); /* cuCtxGetCurrent, cuLaunchKernel */
    kiln_device_close(device);
    assert_int_equal(cuda.cuCtxDestroy(own), 0);
}

/* ---- Memory, streams, events ---- */

static void test_copies_copy_and_fills_fill(void **state) {
    (void)state;
    enum { SIZE = 1000 };
    kiln_device *device = fixture_open(0);
    kiln_stream stream;
    void *a, *b;
    uint8_t *host;
    assert_ok(kiln_stream_open(device, 0, &stream));
    assert_ok(kiln_memory_alloc(device, SIZE, &a));
    assert_ok(kiln_memory_alloc(device, SIZE, &b));
    assert_ok(kiln_host_alloc(device, SIZE, (void **)&host));
    assert_int_equal((uintptr_t)a % 256, 0);
    for (size_t i = 0; i < SIZE; i++)
        host[i] = (uint8_t)(i * 7);
    assert_ok(kiln_copy(&stream, a, host, SIZE, KILN_COPY_TO_DEVICE));
    assert_ok(kiln_copy(&stream, b, a, SIZE, KILN_COPY_ON_DEVICE));
    assert_ok(kiln_fill(&stream, b, 9, 10));
    uint8_t back[SIZE];
    assert_ok(kiln_copy(&stream, back, b, SIZE, KILN_COPY_TO_HOST));
    assert_ok(kiln_stream_sync(&stream));
    for (size_t i = 0; i < SIZE; i++)
        assert_int_equal(back[i], i < 10 ? 9 : (uint8_t)(i * 7));
    kiln_host_free(device, host);
    kiln_memory_free(device, a);
    kiln_memory_free(device, b);
    kiln_stream_close(&stream);
    kiln_device_close(device);
}

static void test_memory_ends(void **state) {
    (void)state;
    kiln_device *device = fixture_open(0);
    void *memory;
    assert_status(kiln_memory_alloc(device, (size_t)2 << 30, &memory), KILN_ERROR_OUT_OF_MEMORY);
    assert_null(memory);
    assert_told("cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (2)");
    kiln_device_close(device);
}

static void test_events_order_and_time(void **state) {
    (void)state;
    kiln_device *device = fixture_open(0);
    kiln_stream stream, other;
    kiln_event *start, *end;
    double nanoseconds;
    assert_ok(kiln_stream_open(device, 0, &stream));
    assert_ok(kiln_stream_open(device, 0, &other));
    assert_ok(kiln_event_create(device, 0, &start));
    assert_ok(kiln_event_create(device, 0, &end));
    assert_status(kiln_event_elapsed(start, end, &nanoseconds), KILN_ERROR_INVALID_ARGUMENT);
    assert_ok(kiln_event_record(start, &stream));
    assert_ok(kiln_event_record(end, &stream));
    assert_ok(kiln_stream_wait_event(&other, end));
    assert_int_equal(sim.calls("cuStreamWaitEvent"), 1);
    assert_ok(kiln_event_sync(end));
    assert_ok(kiln_event_elapsed(start, end, &nanoseconds));
    assert_true(nanoseconds == 500000);
    kiln_event_destroy(start);
    kiln_event_destroy(end);
    kiln_stream_close(&stream);
    kiln_stream_close(&other);
    kiln_device_close(device);
}

/* ---- A device that is lost ---- */

static void test_a_sticky_error_loses_the_device(void **state) {
    (void)state;
    kiln_device *device = fixture_open(0);
    const kiln_kernel *kernel = fixture_kernel(device, "scale");
    kiln_stream stream;
    void *memory = NULL;
    assert_ok(kiln_stream_open(device, 0, &stream));
    sim.fault("cuStreamSynchronize", 1, 700);
    assert_status(kiln_stream_sync(&stream), KILN_ERROR_DEVICE_LOST);
    assert_told("cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS (700)");
    scale_arguments arguments = {0};
    assert_status(kiln_launch(&stream, kernel, &one_group, &arguments, sizeof arguments), KILN_ERROR_DEVICE_LOST);
    assert_status(kiln_memory_alloc(device, 16, &memory), KILN_ERROR_DEVICE_LOST);
    assert_told("lost");
    kiln_stream_close(&stream);
    kiln_device_close(device);
    device = fixture_open(0);
    kiln_device_close(device);
}

/* ---- Two devices of different architecture, several threads ---- */

typedef struct worker {
    pthread_t thread;
    const kiln_bundle *bundle;
    int32_t ordinal;
    const char *target;
    bool passed;
} worker;

enum { WORKERS = 6, ROUNDS = 20 };

static bool work(const worker *self) {
    for (int round = 0; round < ROUNDS; round++) {
        kiln_device *device;
        const kiln_module *module;
        const kiln_kernel *kernel;
        kiln_image image;
        kiln_stream stream;
        scale_arguments arguments = {.n = (uint64_t)self->ordinal};
        if (kiln_device_open(&(kiln_device_options){.backend = KILN_BACKEND_CUDA, .ordinal = self->ordinal}, &device))
            return false;
        bool passed = !kiln_module_get(device, self->bundle, "f32", &module) &&
                      !kiln_module_get_image(module, &image) && !strcmp(image.target, self->target) &&
                      !kiln_module_find_kernel(module, "scale", &kernel) && !kiln_stream_open(device, 0, &stream) &&
                      !kiln_launch(&stream, kernel, &one_group, &arguments, sizeof arguments) &&
                      !kiln_stream_sync(&stream);
        kiln_stream_close(&stream);
        kiln_device_close(device);
        if (!passed) return false;
    }
    return true;
}

static void *run_worker(void *self) {
    worker *mine = self;
    mine->passed = work(mine);
    return NULL;
}

static void test_each_device_gets_its_own_image_from_several_threads(void **state) {
    (void)state;
    static const char *const targets[] = {"sm_90", "sm_120", "sm_80"};
    worker workers[WORKERS];
    const kiln_bundle *bundle = fixture_whole();
    for (int i = 0; i < WORKERS; i++) {
        workers[i] = (worker){.bundle = bundle, .ordinal = i % 3, .target = targets[i % 3]};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, run_worker, &workers[i]), 0);
    }
    for (int i = 0; i < WORKERS; i++) {
        pthread_join(workers[i].thread, NULL);
        assert_true(workers[i].passed);
    }
    assert_int_equal(sim.launches(), WORKERS * ROUNDS);
    sim_launch seen;
    for (uint64_t i = 0; i < WORKERS * ROUNDS; i++) {
        assert_true(sim.launch(i, &seen));
        assert_int_equal(((const scale_arguments *)(const void *)seen.arguments)->n, seen.device);
    }
}

int main(int argc, char **argv) {
    (void)argc;
    fixture_start(argv, "sm_90,sm_120,sm_80,gfx942");
    const struct CMUnitTest tests[] = {
        fixture_test(test_launch_passes_shape_and_arguments),
        fixture_test(test_flags_reach_the_driver),
        fixture_test(test_streams_may_be_programmatic),
        fixture_test(test_queries_do_not_wait),
        fixture_test(test_a_whole_shape_is_passed_as_it_is),
        fixture_test(test_launch_wants_the_kernels_size),
        fixture_test(test_default_streams_keep_their_numbers),
        fixture_test(test_shapes_beyond_the_device_are_invalid),
        fixture_test(test_dynamic_shared_memory_is_opted_in_when_loaded),
        fixture_test(test_clusters_go_through_the_extended_launch),
        fixture_test(test_clusters_of_non_portable_size),
        fixture_test(test_clusters_need_compute_capability_9),
        fixture_test(test_occupancy),
        fixture_test(test_launch_leaves_the_current_context),
        fixture_test(test_launch_sets_no_context_that_is_current),
        fixture_test(test_copies_copy_and_fills_fill),
        fixture_test(test_memory_ends),
        fixture_test(test_events_order_and_time),
        fixture_test(test_a_sticky_error_loses_the_device),
        fixture_test(test_each_device_gets_its_own_image_from_several_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
