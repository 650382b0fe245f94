/* Loading on CUDA: which image the driver is given, what follows a refusal, residency, and captures left in peace. */
#include "tests/unit/cuda_fixture.h"

#include "loader/backend.h"
#include "loader/tensor_map.h"
#include <pthread.h>

static kiln_status load(kiln_device *device, const kiln_image *images, uint32_t count, kiln_image *out_image) {
    /* A module keeps its bundle, so each load of a test has a bundle of its own. */
    static fixture_bundle bundles[64];
    static size_t used;
    const kiln_module *module;
    assert_true(used < sizeof bundles / sizeof *bundles);
    fixture_bundle *made = &bundles[used++];
    fixture_bundle_init(made, images, count);
    kiln_status status = kiln_module_get(device, &made->bundle, "f32", &module);
    if (status == KILN_OK) assert_ok(kiln_module_get_image(module, out_image));
    return status;
}

/* ---- The retry rule ---- */

static void test_a_refused_image_gives_way_to_the_next(void **state) {
    (void)state;
    static const int32_t refusals[] = {200, 209, 218, 221, 222, 223};
    kiln_device *device = fixture_open(0);
    fixture_cubin cubin = fixture_make_cubin(90);
    const kiln_image images[] = {fixture_image("sm_75", KILN_IMAGE_PTX, fixture_ptx, sizeof fixture_ptx - 1),
                                 fixture_image("sm_90", KILN_IMAGE_CUBIN, &cubin, sizeof cubin)};
    kiln_image chosen;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        sim.fault("cuModuleLoadDataEx", 1, refusals[i]);
        assert_ok(load(device, images, 2, &chosen));
        assert_int_equal(sim.faulted(), 1);
        assert_string_equal(chosen.target, "sm_75");
    }
    sim.fault("cuFuncLoad", 1, 209); /* a lazy driver can refuse as late as that */
    assert_ok(load(device, images, 2, &chosen));
    assert_string_equal(chosen.target, "sm_75");
    kiln_device_close(device);
}

enum { LEVELS = KILN_LOG_ERROR + 1 };

typedef struct log_seen {
    int lines[LEVELS];
    char last[LEVELS][256];
} log_seen;

static void see_log(void *user, kiln_log_level level, const char *text) {
    log_seen *seen = user;
    assert_null(strchr(text, '\n'));
    seen->lines[level]++;
    snprintf(seen->last[level], sizeof seen->last[level], "%s", text);
}

static void test_refusals_and_choices_are_logged(void **state) {
    (void)state;
    kiln_device *device = fixture_open(0);
    fixture_cubin cubin = fixture_make_cubin(90);
    const kiln_image images[] = {fixture_image("sm_75", KILN_IMAGE_PTX, fixture_ptx, sizeof fixture_ptx - 1),
                                 fixture_image("sm_90", KILN_IMAGE_CUBIN, &cubin, sizeof cubin)};
    kiln_image chosen;
    log_seen seen = {0};
    kiln_set_log(see_log, &seen);
    sim.fault("cuModuleLoadDataEx", 1, 209);
    assert_ok(load(device, images, 2, &chosen));
    assert_int_equal(seen.lines[KILN_LOG_WARNING], 2);
    assert_non_null(strstr(seen.last[KILN_LOG_WARNING], "sm_90 cubin: was refused by the driver"));
    assert_non_null(strstr(seen.last[KILN_LOG_WARNING], "CUDA_ERROR_NO_BINARY_FOR_GPU (209)"));
    assert_int_equal(seen.lines[KILN_LOG_INFO], 1);
    assert_non_null(strstr(seen.last[KILN_LOG_INFO], ": sm_75 ptx"));
    assert_int_equal(seen.lines[KILN_LOG_ERROR], 0);
    sim.fault("cuModuleLoadDataEx", 1, 209);
    assert_status(load(device, images + 1, 1, &chosen), KILN_ERROR_NO_IMAGE);
    assert_int_equal(seen.lines[KILN_LOG_ERROR], 2);
    assert_non_null(strstr(seen.last[KILN_LOG_ERROR], "sm_90 cubin: was refused by the driver"));
    kiln_set_log(NULL, NULL);
    kiln_device_close(device);
}

static void test_any_other_error_ends_the_load(void **state) {
    (void)state;
    static const struct {
        int32_t error;
        kiln_status status;
    } ends[] = {{2, KILN_ERROR_OUT_OF_MEMORY}, {1, KILN_ERROR_DRIVER},       {300, KILN_ERROR_CORRUPT_IMAGE},
                {303, KILN_ERROR_DRIVER},      {900, KILN_ERROR_CAPTURING},  {999, KILN_ERROR_DRIVER},
                {12345, KILN_ERROR_DRIVER},    {719, KILN_ERROR_DEVICE_LOST}};
    kiln_device *device = fixture_open(0);
    fixture_cubin cubin = fixture_make_cubin(90);
    const kiln_image images[] = {fixture_image("sm_75", KILN_IMAGE_PTX, fixture_ptx, sizeof fixture_ptx - 1),
                                 fixture_image("sm_90", KILN_IMAGE_CUBIN, &cubin, sizeof cubin)};
    kiln_image chosen;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        sim.reset();
        sim.fault("cuModuleLoadDataEx", 1, ends[i].error);
        assert_status(load(device, images, 2, &chosen), ends[i].status);
        assert_int_equal(sim.calls("cuModuleLoadDataEx"), 1);
        assert_told("cuModuleLoadDataEx: ");
    }
    kiln_device_close(device);
}

static void test_the_compilers_log_is_in_the_text(void **state) {
    (void)state;
    static const char newer[] = ".version 9.9\n.target sm_75\n" FIXTURE_KERNELS;
    kiln_device *device = fixture_open(0);
    const kiln_image images[] = {fixture_image("sm_75", KILN_IMAGE_PTX, newer, sizeof newer - 1)};
    kiln_image chosen;
    assert_status(load(device, images, 1, &chosen), KILN_ERROR_NO_IMAGE);
    assert_told("CUDA_ERROR_UNSUPPORTED_PTX_VERSION (222): Unsupported .version 9.9; current version is '9.0'");
    kiln_device_close(device);
}

static void test_a_refusal_by_all_is_told_for_each_and_kept(void **state) {
    (void)state;
    kiln_device *device = fixture_open(0);
    /* The tables say sm_90 and sm_75; the images are for another chip. */
    static const char other[] = ".version 6.3\n.target sm_120\n" FIXTURE_KERNELS;
    fixture_cubin cubin = fixture_make_cubin(120);
    const kiln_image images[] = {fixture_image("sm_75", KILN_IMAGE_PTX, other, sizeof other - 1),
                                 fixture_image("sm_90", KILN_IMAGE_CUBIN, &cubin, sizeof cubin)};
    fixture_bundle made;
    const kiln_module *module;
    fixture_bundle_init(&made, images, 2);
    for (int i = 0; i < 2; i++) {
        assert_status(kiln_module_get(device, &made.bundle, "f32", &module), KILN_ERROR_NO_IMAGE);
        assert_told("sm_90 cubin");
        assert_told("cubin of sm_120 on a device of sm_90");
        assert_told("target sm_120 on a device of sm_90");
    }
    assert_int_equal(sim.calls("cuModuleLoadDataEx"), 2);
    kiln_device_close(device);
}

/* ---- Images that are not what they say ---- */

static void test_ptx_must_end_with_its_only_nul(void **state) {
    (void)state;
    kiln_device *device = fixture_open(0);
    kiln_image chosen;
    kiln_image cut = fixture_image("sm_75", KILN_IMAGE_PTX, fixture_ptx, sizeof fixture_ptx - 5);
    assert_status(load(device, &cut, 1, &chosen), KILN_ERROR_CORRUPT_IMAGE);
    assert_told("sm_75 PTX: must end with its only NUL byte");
    kiln_image counted = fixture_image("sm_75", KILN_IMAGE_PTX, fixture_ptx, sizeof fixture_ptx);
    assert_status(load(device, &counted, 1, &chosen), KILN_ERROR_CORRUPT_IMAGE);
    assert_int_equal(sim.calls("cuModuleLoadDataEx"), 0);
    kiln_device_close(device);
}

static void test_a_cut_cubin_never_reaches_the_driver(void **state) {
    (void)state;
    kiln_device *device = fixture_open(0);
    fixture_cubin cubin = fixture_make_cubin(90);
    kiln_image chosen;
    for (size_t size = 1; size < sizeof cubin; size += 7) {
        kiln_image image = fixture_image("sm_90", KILN_IMAGE_CUBIN, &cubin, size);
        static fixture_bundle made;
        const kiln_module *module;
        fixture_bundle_init(&made, &image, 1);
        assert_status(kiln_module_get(device, &made.bundle, "f32", &module), KILN_ERROR_CORRUPT_IMAGE);
    }
    assert_int_equal(sim.calls("cuModuleLoadDataEx"), 0);
    kiln_image whole = fixture_image("sm_90", KILN_IMAGE_CUBIN, &cubin, sizeof cubin);
    assert_ok(load(device, &whole, 1, &chosen));
    kiln_device_close(device);
}

static void test_a_variable_is_found_by_its_name(void **state) {
    (void)state;
    kiln_device *device = fixture_open(0);
    const kiln_module *module;
    kiln_stream stream;
    void *address;
    size_t size;
    uint32_t values[3] = {3, 1, 4};
    assert_ok(fixture_load_text(device, &module));
    assert_ok(kiln_module_find_variable(module, "tally", &address, &size));
    assert_int_equal(size, sizeof values);
    assert_ok(kiln_stream_open(device, 0, &stream));
    assert_ok(kiln_copy(&stream, address, values, size, KILN_COPY_TO_DEVICE));
    assert_ok(kiln_stream_sync(&stream));
    kiln_stream_close(&stream);
    assert_status(kiln_module_find_variable(module, "scale", &address, &size), KILN_ERROR_NOT_FOUND);
    assert_told("kiln_module_find_variable: scale: cuModuleGetGlobal: CUDA_ERROR_NOT_FOUND (500)");
    assert_null(address);
    assert_int_equal(size, 0);
    assert_status(kiln_module_find_variable(NULL, "tally", &address, &size), KILN_ERROR_INVALID_ARGUMENT);
    assert_status(kiln_module_find_variable(module, NULL, &address, &size), KILN_ERROR_INVALID_ARGUMENT);
    assert_status(kiln_module_find_variable(module, "tally", &address, NULL), KILN_ERROR_INVALID_ARGUMENT);
    kiln_device_close(device);
}

static void test_a_kernel_that_is_missing(void **state) {
    (void)state;
    static const char one[] = ".version 6.3\n.target sm_75\n.address_size 64\n.visible .entry pair(\n.param .u64 p0,\n"
                              ".param .u32 p1\n)\n{\nret;\n}\n";
    kiln_device *device = fixture_open(0);
    kiln_image chosen, image = fixture_image("sm_75", KILN_IMAGE_PTX, one, sizeof one - 1);
    assert_status(load(device, &image, 1, &chosen), KILN_ERROR_NOT_FOUND);
    assert_told("sm_75 ptx has no kernel scale");
    assert_int_equal(sim.live("module"), 0);
    kiln_device_close(device);
}

static void test_a_table_that_is_wrong_about_the_arguments(void **state) {
    (void)state;
    static const kiln_kernel_info wrong[] = {{.name = "scale", .arguments_size = 40}, {.name = "pair"}};
    kiln_device *device = fixture_open(0);
    kiln_image chosen, image = fixture_image("sm_75", KILN_IMAGE_PTX, fixture_ptx, sizeof fixture_ptx - 1);
    image.kernels = wrong;
    assert_status(load(device, &image, 1, &chosen), KILN_ERROR_CORRUPT_IMAGE);
    assert_told("kernel scale takes 48 bytes of arguments, its bundle says 40");
    assert_int_equal(sim.live("module"), 0);
    kiln_device_close(device);
}

/* ---- Residency and captures ---- */

/* ---- Tensor maps ---- */

/* Each tensor with its box, at the offset that the table says; swizzled by the length of a box's rows. */
static void test_tensor_maps_are_encoded_into_the_arguments(void **state) {
    (void)state;
    enum { OFFSET = 48, UINT8 = 0, UINT16 = 1, SWIZZLE_32 = 1, SWIZZLE_128 = 3, PROMOTE_256 = 3 };
    kiln_device *device = fixture_open(0);
    kiln_kernel kernel = *fixture_kernel(device, "scale");
    kernel.info.map_offset = OFFSET;
    const uint16_t boxes[2][KILN_KERNEL_MAP_RANK] = {{64, 128}, {32, 1, 16}};
    memcpy(kernel.info.boxes, boxes, sizeof boxes);
    const kiln__tensor_layout tensors[] = {
        {.data = (void *)4096, .element_bytes = 2, .rank = 2, .sizes = {100, 7}, .strides = {0, 208}},
        {.data = (void *)8192, .element_bytes = 1, .rank = 3, .sizes = {40, 1, 9}, .strides = {1, 3, 48}}};
    unsigned char arguments[OFFSET + 2 * KILN__TENSOR_MAP_BYTES + 1];
    memset(arguments, 0xee, sizeof arguments);
    assert_ok(kiln__tensor_maps_encode(&kernel, tensors, arguments));
    _Alignas(64) unsigned char expected[2][KILN__TENSOR_MAP_BYTES];
    kiln__cu_context context;
    assert_int_equal(cuda.cuDevicePrimaryCtxRetain(&context, 0), 0);
    assert_int_equal(cuda.cuCtxSetCurrent(context), 0);
    assert_int_equal(cuda.cuTensorMapEncodeTiled((void *)expected[0], UINT16, 2, (void *)4096, (uint64_t[]){100, 7},
                                                 (uint64_t[]){208}, (uint32_t[]){64, 128}, (uint32_t[]){1, 1}, 0,
                                                 SWIZZLE_128, PROMOTE_256, 0),
                     0);
    assert_int_equal(cuda.cuTensorMapEncodeTiled((void *)expected[1], UINT8, 3, (void *)8192, (uint64_t[]){40, 1, 9},
                                                 (uint64_t[]){16, 48}, (uint32_t[]){32, 1, 16}, (uint32_t[]){1, 1, 1},
                                                 0, SWIZZLE_32, PROMOTE_256, 0),
                     0);
    assert_int_equal(cuda.cuCtxSetCurrent(NULL), 0);
    assert_int_equal(cuda.cuDevicePrimaryCtxRelease(0), 0);
    assert_memory_equal(arguments + OFFSET, expected, sizeof expected);
    assert_int_equal(arguments[OFFSET - 1], 0xee);
    assert_int_equal(arguments[sizeof arguments - 1], 0xee);
    const kiln__tensor_layout unaligned = {.data = (void *)4100, .element_bytes = 2, .rank = 2, .sizes = {100, 7}};
    assert_status(kiln__tensor_maps_encode(&kernel, &unaligned, arguments), KILN_ERROR_DRIVER);
    assert_told("cuTensorMapEncodeTiled: CUDA_ERROR_INVALID_VALUE");
    kiln_device_close(device);
}

/* A kernel of one map, of which the tests name the box. */
static kiln_kernel mapped_kernel(kiln_device *device) {
    kiln_kernel kernel = *fixture_kernel(device, "scale");
    memset(kernel.info.boxes, 0, sizeof kernel.info.boxes);
    kernel.info.map_offset = 0;
    kernel.info.boxes[0][0] = 64;
    kernel.info.boxes[0][1] = 8;
    return kernel;
}

static void test_a_map_of_before_is_not_encoded_again(void **state) {
    (void)state;
    kiln_device *device = fixture_open(0);
    kiln_kernel kernel = mapped_kernel(device);
    const kiln__tensor_layout first = {
        .data = (void *)(1 << 20), .element_bytes = 2, .rank = 2, .sizes = {96, 5}, .strides = {0, 192}};
    kiln__tensor_layout others[7];
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        others[i] = first;
    others[0].data = (void *)(1 << 21);
    others[1].sizes[0] = 88;
    others[2].sizes[1] = 6;
    others[3].strides[1] = 208;
    others[4].element_bytes = 1;
    others[5].rank = 3, others[5].sizes[2] = 2, others[5].strides[2] = 1024;
    others[6].element_bytes = 4, others[6].tf32 = true, others[6].strides[1] = 384;
    unsigned char maps[9][KILN__TENSOR_MAP_BYTES], again[KILN__TENSOR_MAP_BYTES];
    const uint64_t before = sim.calls("cuTensorMapEncodeTiled");
    assert_ok(kiln__tensor_maps_encode(&kernel, &first, maps[0]));
    assert_ok(kiln__tensor_maps_encode(&kernel, &first, again));
    assert_memory_equal(again, maps[0], sizeof again);
    assert_int_equal(sim.calls("cuTensorMapEncodeTiled"), before + 1);
    kiln_kernel boxed = kernel;
    boxed.info.boxes[0][1] = 16;
    assert_ok(kiln__tensor_maps_encode(&boxed, &first, maps[8]));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        kernel.info.boxes[0][0] = others[i].element_bytes == 4 ? 32 : 64;
        kernel.info.boxes[0][2] = others[i].rank == 3;
        assert_ok(kiln__tensor_maps_encode(&kernel, &others[i], maps[i + 1]));
    }
    assert_int_equal(sim.calls("cuTensorMapEncodeTiled"), before + 9);
    for (size_t i = 0; i < 9; i++)
        for (size_t k = 0; k < i; k++)
            assert_memory_not_equal(maps[i], maps[k], sizeof maps[i]);
    kiln_device_close(device);
}

enum { MAPPED = 700, MAP_ROUNDS = 20, MAP_THREADS = 4 }; /* more tensors than are kept */

typedef struct mapper {
    pthread_t thread;
    const kiln_kernel *kernel;
    const unsigned char (*expected)[KILN__TENSOR_MAP_BYTES];
    uint32_t step; /* which tensor follows which */
    bool passed;
} mapper;

static kiln__tensor_layout nth_tensor(uint32_t i) {
    return (kiln__tensor_layout){.data = (void *)(4096 * (uintptr_t)(i + 1)),
                                 .element_bytes = 2,
                                 .rank = 2,
                                 .sizes = {64 + i, 7},
                                 .strides = {0, 2048}};
}

static void *encode_many(void *self) {
    mapper *mine = self;
    mine->passed = true;
    for (uint32_t i = 0, at = 0; i < MAPPED * MAP_ROUNDS && mine->passed; i++, at = (at + mine->step) % MAPPED) {
        const kiln__tensor_layout tensor = nth_tensor(i % 3 ? at % 4 : at);
        unsigned char map[KILN__TENSOR_MAP_BYTES];
        mine->passed = kiln__tensor_maps_encode(mine->kernel, &tensor, map) == KILN_OK &&
                       !memcmp(map, mine->expected[i % 3 ? at % 4 : at], sizeof map);
    }
    return NULL;
}

static void test_threads_that_encode_at_once_get_their_own_maps(void **state) {
    (void)state;
    static unsigned char expected[MAPPED][KILN__TENSOR_MAP_BYTES];
    kiln_device *device = fixture_open(0);
    const kiln_kernel kernel = mapped_kernel(device);
    for (uint32_t i = 0; i < MAPPED; i++) {
        const kiln__tensor_layout tensor = nth_tensor(i);
        _Alignas(KILN__TENSOR_MAP_ALIGN) unsigned char map[KILN__TENSOR_MAP_BYTES];
        assert_ok(device->backend->tensor_map_encode(&kernel, &tensor, kernel.info.boxes[0], map));
        memcpy(expected[i], map, sizeof map);
    }
    static const uint32_t steps[MAP_THREADS] = {1, 3, 11, 13};
    mapper mappers[MAP_THREADS];
    for (int i = 0; i < MAP_THREADS; i++) {
        mappers[i] = (mapper){.kernel = &kernel, .expected = expected, .step = steps[i]};
        assert_int_equal(pthread_create(&mappers[i].thread, NULL, encode_many, &mappers[i]), 0);
    }
    for (int i = 0; i < MAP_THREADS; i++) {
        assert_int_equal(pthread_join(mappers[i].thread, NULL), 0);
        assert_true(mappers[i].passed);
    }
    kiln_device_close(device);
}

static void test_loaded_means_resident(void **state) {
    (void)state;
    kiln_device *device = fixture_open(0);
    fixture_kernel(device, "scale");
    assert_int_equal(sim.calls("cuFuncLoad"), 2);
    kiln_device_close(device);
}

typedef struct capture {
    kiln__cu_context context;
    kiln__cu_stream stream;
    struct CUgraph_st *graph;
} capture;

enum { CAPTURE_GLOBAL = 0 };

/* The application's own context and a capture of the strictest mode in it. */
static capture begin_capture_on(unsigned int stream_flags) {
    capture begun = {0};
    assert_int_equal(cuda.cuInit(0), 0);
    assert_int_equal(cuda.cuCtxCreate(&begun.context, 0, 0), 0);
    assert_int_equal(cuda.cuStreamCreate(&begun.stream, stream_flags), 0);
    assert_int_equal(cuda.cuStreamBeginCapture(begun.stream, CAPTURE_GLOBAL), 0);
    return begun;
}

static capture begin_capture(void) {
    return begin_capture_on(KILN__CU_STREAM_NON_BLOCKING);
}

/* The capture must have survived. */
static void end_capture(capture *begun) {
    assert_int_equal(cuda.cuStreamEndCapture(begun->stream, &begun->graph), 0);
    assert_int_equal(cuda.cuGraphDestroy(begun->graph), 0);
    assert_int_equal(cuda.cuStreamDestroy(begun->stream), 0);
    assert_int_equal(cuda.cuCtxDestroy(begun->context), 0);
}

static kiln_device *open_in(kiln__cu_context context) {
    kiln_device *device = NULL;
    assert_ok(kiln_device_open(&(kiln_device_options){.backend = KILN_BACKEND_CUDA, .context = context}, &device));
    return device;
}

static void *load_in_thread(void *device) {
    const kiln_module *module;
    return kiln_module_get(device, fixture_whole(), "f32", &module) == KILN_OK ? device : NULL;
}

static void test_a_load_leaves_captures_alone(void **state) {
    (void)state;
    capture begun = begin_capture();
    kiln_device *device = open_in(begun.context);
    fixture_kernel(device, "scale");
    kiln_device *other = fixture_open(1);
    pthread_t thread;
    void *loaded;
    assert_int_equal(pthread_create(&thread, NULL, load_in_thread, other), 0);
    pthread_join(thread, &loaded);
    assert_ptr_equal(loaded, other);
    end_capture(&begun);
    kiln_device_close(other);
    kiln_device_close(device);
}

static void test_releases_leave_captures_alone(void **state) {
    (void)state;
    kiln_device *device = fixture_open(1);
    kiln_stream stream;
    kiln_event *event;
    void *memory, *host;
    fixture_kernel(device, "scale");
    assert_ok(kiln_stream_open(device, 0, &stream));
    assert_ok(kiln_event_create(device, 0, &event));
    assert_ok(kiln_memory_alloc(device, 64, &memory));
    assert_ok(kiln_host_alloc(device, 64, &host));
    capture begun = begin_capture();
    kiln_host_free(device, host);
    kiln_memory_free(device, memory);
    kiln_event_destroy(event);
    kiln_stream_close(&stream);
    kiln_device_close(device);
    assert_int_equal(sim.live("module") + sim.live("device memory") + sim.live("host memory"), 0);
    end_capture(&begun);
}

static void test_a_launch_is_captured(void **state) {
    (void)state;
    capture begun = begin_capture();
    kiln_device *device = open_in(begun.context);
    const kiln_kernel *kernel = fixture_kernel(device, "scale");
    kiln_stream stream;
    assert_ok(kiln_stream_borrow(device, begun.stream, &stream));
    scale_arguments arguments = {0};
    kiln_launch_config config = {.block = {32}};
    assert_ok(kiln_launch(&stream, kernel, &config, &arguments, sizeof arguments));
    sim_launch seen;
    assert_true(sim.launch(0, &seen));
    assert_true(seen.captured);
    end_capture(&begun);
    kiln_device_close(device);
}

static void test_a_load_for_a_captured_stream_is_refused(void **state) {
    (void)state;
    capture begun = begin_capture();
    kiln_device *device = open_in(begun.context);
    const kiln_module *module = NULL;
    kiln_stream stream;
    assert_ok(kiln_stream_borrow(device, begun.stream, &stream));
    assert_status(kiln__module_get_on(&stream, fixture_whole(), "f32", &module), KILN_ERROR_CAPTURING);
    assert_told("load it before the capture");
    assert_int_equal(sim.calls("cuModuleLoadDataEx"), 0);
    end_capture(&begun);
    kiln_device_close(device);
}

/* The legacy stream waits for a blocking stream, so that its use would end that one's capture. */
static void test_a_load_for_the_legacy_stream_of_a_capture_is_refused(void **state) {
    (void)state;
    capture begun = begin_capture_on(0);
    kiln_device *device = open_in(begun.context);
    const kiln_module *module = NULL;
    kiln_stream legacy;
    assert_ok(kiln_stream_borrow(device, NULL, &legacy));
    assert_status(kiln__module_get_on(&legacy, fixture_whole(), "f32", &module), KILN_ERROR_CAPTURING);
    end_capture(&begun);
    kiln_device_close(device);
}

static void test_waiting_and_allocating_in_a_capture_are_refused(void **state) {
    (void)state;
    capture begun = begin_capture();
    kiln_device *device = open_in(begun.context);
    kiln_stream stream;
    void *memory;
    assert_ok(kiln_stream_borrow(device, begun.stream, &stream));
    assert_status(kiln_stream_sync(&stream), KILN_ERROR_CAPTURING);
    assert_told("cuStreamSynchronize: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (900)");
    assert_int_equal(cuda.cuStreamEndCapture(begun.stream, &begun.graph), 901);
    assert_int_equal(cuda.cuStreamBeginCapture(begun.stream, CAPTURE_GLOBAL), 0);
    assert_status(kiln_memory_alloc(device, 16, &memory), KILN_ERROR_CAPTURING);
    assert_int_equal(cuda.cuStreamEndCapture(begun.stream, &begun.graph), 901);
    assert_int_equal(cuda.cuStreamBeginCapture(begun.stream, CAPTURE_GLOBAL), 0);
    end_capture(&begun);
    kiln_device_close(device);
}

int main(int argc, char **argv) {
    (void)argc;
    fixture_start(argv, "sm_90,sm_120");
    const struct CMUnitTest tests[] = {
        fixture_test(test_a_refused_image_gives_way_to_the_next),
        fixture_test(test_refusals_and_choices_are_logged),
        fixture_test(test_any_other_error_ends_the_load),
        fixture_test(test_the_compilers_log_is_in_the_text),
        fixture_test(test_a_refusal_by_all_is_told_for_each_and_kept),
        fixture_test(test_ptx_must_end_with_its_only_nul),
        fixture_test(test_a_cut_cubin_never_reaches_the_driver),
        fixture_test(test_a_variable_is_found_by_its_name),
        fixture_test(test_a_kernel_that_is_missing),
        fixture_test(test_a_table_that_is_wrong_about_the_arguments),
        fixture_test(test_tensor_maps_are_encoded_into_the_arguments),
        fixture_test(test_a_map_of_before_is_not_encoded_again),
        fixture_test(test_threads_that_encode_at_once_get_their_own_maps),
        fixture_test(test_loaded_means_resident),
        fixture_test(test_a_load_leaves_captures_alone),
        fixture_test(test_releases_leave_captures_alone),
        fixture_test(test_a_launch_is_captured),
        fixture_test(test_a_load_for_a_captured_stream_is_refused),
        fixture_test(test_a_load_for_the_legacy_stream_of_a_capture_is_refused),
        fixture_test(test_waiting_and_allocating_in_a_capture_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
