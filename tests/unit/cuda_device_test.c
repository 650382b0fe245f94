/* Finding the CUDA driver, opening its devices, borrowing contexts, and every way in which they can go. */
#include "tests/unit/cuda_fixture.h"
#include <pthread.h>
#include <sys/wait.h>

static int32_t count_devices(void) {
    int32_t count = -1;
    assert_ok(kiln_device_count(KILN_BACKEND_CUDA, &count));
    return count;
}

/* ---- What is found, and what is not. These run before the driver is initialised, which it stays. ---- */

static void test_no_call_before_the_first_question(void **state) {
    (void)state;
    assert_int_equal(sim.calls("*"), 0);
}

static void test_a_stub_is_no_driver(void **state) {
    (void)state;
    sim.fault("cuInit", 1, 34);
    assert_int_equal(count_devices(), 0);
    assert_told("libcuda.so.1 is the toolkit's stub");
    assert_told("CUDA_ERROR_STUB_LIBRARY");
}

static void test_no_device_is_not_a_failure(void **state) {
    (void)state;
    sim.configure("KILN_SIM_DEVICES", "gfx942");
    assert_int_equal(count_devices(), 0);
    assert_told("cuInit: CUDA_ERROR_NO_DEVICE (100)");
    kiln_device *device;
    assert_status(kiln_device_open(&(kiln_device_options){.backend = KILN_BACKEND_CUDA}, &device),
                  KILN_ERROR_NO_DRIVER);
    assert_told("CUDA_ERROR_NO_DEVICE");
    assert_null(device);
    sim.configure("KILN_SIM_DEVICES", "sm_90,sm_120");
}

static void test_a_driver_initialised_before_a_fork_is_told(void **state) {
    (void)state;
    int32_t count;
    sim.fault("cuInit", 1, 3);
    assert_status(kiln_device_count(KILN_BACKEND_CUDA, &count), KILN_ERROR_FORKED);
    assert_told("before this process was forked");
}

static void test_no_memory_to_initialise(void **state) {
    (void)state;
    int32_t count;
    sim.fault("cuInit", 1, 2);
    assert_status(kiln_device_count(KILN_BACKEND_CUDA, &count), KILN_ERROR_OUT_OF_MEMORY);
}

/* A driver that is there and does not work: neither zero devices nor another backend. */
static void test_a_broken_driver_is_no_fallback(void **state) {
    (void)state;
    static const struct {
        int32_t error;
        kiln_status status;
        const char *name;
    } errors[] = {{46, KILN_ERROR_DRIVER, "CUDA_ERROR_DEVICE_UNAVAILABLE (46)"},
                  {101, KILN_ERROR_DRIVER, "CUDA_ERROR_INVALID_DEVICE (101)"},
                  {802, KILN_ERROR_DRIVER, "CUDA_ERROR_SYSTEM_NOT_READY (802)"},
                  {803, KILN_ERROR_DRIVER_TOO_OLD, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803)"},
                  {804, KILN_ERROR_DRIVER_TOO_OLD, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE (804)"},
                  {805, KILN_ERROR_DRIVER, "CUDA_ERROR_MPS_CONNECTION_FAILED (805)"},
                  {806, KILN_ERROR_DRIVER, "CUDA_ERROR_MPS_RPC_FAILURE (806)"},
                  {807, KILN_ERROR_DRIVER, "CUDA_ERROR_MPS_SERVER_NOT_READY (807)"},
                  {808, KILN_ERROR_DRIVER, "CUDA_ERROR_MPS_MAX_CLIENTS_REACHED (808)"},
                  {809, KILN_ERROR_DRIVER, "CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED (809)"},
                  {999, KILN_ERROR_DRIVER, "CUDA_ERROR_UNKNOWN (999)"}};
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        kiln_device *device;
        int32_t count;
        sim.fault("cuInit", 1, errors[i].error);
        assert_status(kiln_device_count(KILN_BACKEND_CUDA, &count), errors[i].status);
        assert_told(errors[i].name);
        sim.fault("cuInit", 1, errors[i].error);
        assert_status(kiln_device_open(NULL, &device), errors[i].status);
        assert_told(errors[i].name);
        assert_null(device);
    }
}

static void test_an_absent_driver_is_a_fallback(void **state) {
    (void)state;
    static const int32_t errors[] = {34, 100};
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        kiln_device *device;
        kiln_device_info info;
        sim.fault("cuInit", 1, errors[i]);
        assert_ok(kiln_device_open(NULL, &device));
        assert_ok(kiln_device_get_info(device, &info));
        assert_int_equal(info.backend, KILN_BACKEND_CPU);
        kiln_device_close(device);
    }
}

/* ---- A fork while the driver is initialised, by the driver itself: what a child forked by another thread meanwhile
 * finds is the same. ---- */

static bool during_initialisation;

/* Runs in the child that cuInit forks, behind kiln's own handlers. Each call must come back. */
static void child_of_initialisation(void) {
    kiln_device *device;
    if (!during_initialisation) return;
    if (kiln_device_open(&(kiln_device_options){.backend = KILN_BACKEND_CUDA}, &device) != KILN_ERROR_FORKED) _exit(1);
    if (kiln_device_open(NULL, &device) != KILN_ERROR_FORKED) _exit(2);
    if (kiln_device_open(&(kiln_device_options){.backend = KILN_BACKEND_CPU}, &device) != KILN_OK) _exit(3);
    kiln_device_close(device);
    _exit(0);
}

static void test_a_driver_that_forks_to_initialise(void **state) {
    (void)state;
    kiln_device *cpu;
    assert_ok(kiln_device_open(&(kiln_device_options){.backend = KILN_BACKEND_CPU}, &cpu));
    assert_int_equal(pthread_atfork(NULL, NULL, child_of_initialisation), 0);
    sim.configure("KILN_SIM_INIT_FORKS", "1");
    sim.fault("cuInit", 1, 999); /* so that the driver stays uninitialised for the next test */
    during_initialisation = true;
    kiln_device *device;
    assert_status(kiln_device_open(&(kiln_device_options){.backend = KILN_BACKEND_CUDA}, &device), KILN_ERROR_DRIVER);
    during_initialisation = false;
    assert_int_equal(sim.calls("cuInit"), 1);
    sim.configure("KILN_SIM_INIT_FORKS", NULL);
    kiln_device_close(cpu);
}

static void test_a_driver_without_a_version(void **state) {
    (void)state;
    int32_t count;
    sim.fault("cuDriverGetVersion", 1, SIM_LIE);
    assert_status(kiln_device_count(KILN_BACKEND_CUDA, &count), KILN_ERROR_DRIVER);
    assert_int_equal(count, 0);
    assert_told("cuDriverGetVersion: the version is 0");
}

static void test_a_failure_is_not_kept(void **state) {
    (void)state;
    assert_int_equal(count_devices(), 2);
    assert_int_equal(sim.calls("cuInit"), 1);
    assert_int_equal(count_devices(), 2);
    assert_int_equal(sim.calls("cuInit"), 1);
}

static void test_devices_that_cannot_be_counted(void **state) {
    (void)state;
    int32_t count;
    sim.fault("cuDeviceGetCount", 1, 999);
    assert_status(kiln_device_count(KILN_BACKEND_CUDA, &count), KILN_ERROR_DRIVER);
    assert_told("cuDeviceGetCount: CUDA_ERROR_UNKNOWN (999)");
    sim.fault("cuDeviceGetCount", 1, 100);
    assert_int_equal(count_devices(), 0);
    sim.fault("cuDeviceGetCount", 1, 2);
    assert_status(kiln_device_count(KILN_BACKEND_CUDA, &count), KILN_ERROR_OUT_OF_MEMORY);
}

/* ---- An open device ---- */

static void test_info_is_the_drivers(void **state) {
    (void)state;
    kiln_device *device = fixture_open(1);
    kiln_device_info info;
    assert_ok(kiln_device_get_info(device, &info));
    assert_int_equal(info.backend, KILN_BACKEND_CUDA);
    assert_int_equal(info.ordinal, 1);
    assert_int_equal(info.target.compute_capability, 120);
    assert_int_equal(info.target.driver_version, 13000);
    assert_string_equal(info.name, "kiln simulated sm_120");
    assert_string_equal(info.driver, "libcuda.so.1, CUDA 13.0");
    assert_int_equal(info.memory_bytes, 1 << 30);
    assert_memory_equal(info.uuid, "kiln simulated \1", sizeof info.uuid);
    assert_int_equal(info.pci_domain, 0);
    assert_int_equal(info.pci_bus, 2);
    assert_int_equal(info.pci_device, 0);
    assert_int_equal(info.pci_function, 0);
    assert_int_equal(info.numa_node, 1);
    assert_int_equal(info.wave_size, 32);
    assert_int_equal(info.max_threads, 1024);
    assert_int_equal(info.max_shared_bytes, 99 << 10);
    assert_non_null(strstr(kiln_device_selection_log(device), "cuda: chosen"));
    kiln_device_close(device);
}

/* The simulated UUID is "kiln simulated " and the device's number. */
static void test_a_gpu_opens_by_its_id(void **state) {
    static const char *const ids[] = {"GPU-6b696c6e-2073-696d-756c-617465642001",
                                      "6B696C6E-2073-696D-756C-617465642001",
                                      "0000:02:00.0",
                                      "00000000:02:00.0",
                                      "02:00.0",
                                      "2:0"};
    (void)state;
    kiln_device *second = fixture_open(1), *device;
    kiln_device_info info;
    char text[64], cut[5];
    assert_ok(kiln_device_get_info(second, &info));
    assert_int_equal(kiln_device_uuid_text(&info, text, sizeof text), strlen(ids[0]));
    assert_string_equal(text, ids[0]);
    assert_int_equal(kiln_device_uuid_text(&info, cut, sizeof cut), strlen(ids[0]));
    assert_string_equal(cut, "GPU-");
    assert_int_equal(kiln_device_pci_text(&info, text, sizeof text), strlen(ids[2]));
    assert_string_equal(text, ids[2]);
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        const kiln_device_options options = {.id = ids[i], .backend = i % 2 ? KILN_BACKEND_ANY : KILN_BACKEND_CUDA};
        assert_ok(kiln_device_open(&options, &device));
        assert_ptr_equal(device, second);
        kiln_device_close(device);
    }
    kiln_device_close(second);
}

static void test_an_id_of_no_gpu_is_not_found(void **state) {
    static const char *const ids[] = {"",      "GPU-", "GPU-6b696c6e", "1:02:00.0", "02:00.1",   "02:00.", "02:00.0 ",
                                      ":00.0", "02:",  "02:00.0.0",    "-2:00.0",   "0x02:00.0", "cuda:1"};
    (void)state;
    kiln_device *device;
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        const kiln_device_options options = {.id = ids[i], .backend = i % 2 ? KILN_BACKEND_ANY : KILN_BACKEND_CUDA};
        assert_status(kiln_device_open(&options, &device), KILN_ERROR_NOT_FOUND);
        assert_told("cuda:1 is GPU-6b696c6e-2073-696d-756c-617465642001 at 0000:02:00.0");
    }
    assert_status(kiln_device_open(&(kiln_device_options){.id = "02:00.0", .ordinal = 1}, &device),
                  KILN_ERROR_INVALID_ARGUMENT);
    assert_told("ordinal is 1: must be 0 beside id 02:00.0");
    assert_status(kiln_device_open(&(kiln_device_options){.id = "02:00.0", .backend = KILN_BACKEND_CPU}, &device),
                  KILN_ERROR_INVALID_ARGUMENT);
    assert_told("id is 02:00.0: the CPU has none");
}

static void test_a_device_reaches_its_peer(void **state) {
    (void)state;
    kiln_device *device = fixture_open(0), *peer = fixture_open(1), *cpu;
    assert_status(kiln_device_enable_peer(device, peer), KILN_ERROR_UNSUPPORTED);
    assert_told("cuda:0 cannot reach cuda:1's memory");
    sim.configure("KILN_SIM_PEERS", "1");
    for (int i = 0; i < 2; i++) /* the second time it is so already */
        assert_ok(kiln_device_enable_peer(device, peer));
    assert_int_equal(sim.calls("cuCtxEnablePeerAccess"), 2);
    assert_ok(kiln_device_enable_peer(device, device));
    sim.configure("KILN_SIM_PEERS", NULL);
    assert_ok(kiln_device_open(&(kiln_device_options){.backend = KILN_BACKEND_CPU}, &cpu));
    assert_status(kiln_device_enable_peer(device, cpu), KILN_ERROR_INVALID_ARGUMENT);
    assert_told("device is of cuda, peer of cpu");
    assert_status(kiln_device_enable_peer(device, NULL), KILN_ERROR_INVALID_ARGUMENT);
    assert_ok(kiln_device_enable_peer(cpu, cpu));
    kiln_device_close(cpu);
    kiln_device_close(peer);
    kiln_device_close(device);
}

/* ---- Memory and events ---- */

static void test_memory_comes_and_goes_in_stream_order(void **state) {
    (void)state;
    kiln_device *device = fixture_open(0);
    kiln_stream stream;
    void *memory = &stream;
    char bytes[64];
    assert_ok(kiln_stream_open(device, 0, &stream));
    assert_ok(kiln_memory_alloc_async(&stream, 0, &memory));
    assert_null(memory);
    assert_ok(kiln_memory_alloc_async(&stream, sizeof bytes, &memory));
    assert_ok(kiln_fill(&stream, memory, 7, sizeof bytes));
    assert_ok(kiln_copy(&stream, bytes, memory, sizeof bytes, KILN_COPY_TO_HOST));
    assert_ok(kiln_memory_free_async(&stream, memory));
    assert_ok(kiln_memory_free_async(&stream, NULL));
    assert_ok(kiln_stream_sync(&stream));
    assert_int_equal(bytes[63], 7);
    assert_int_equal(sim.live("device memory"), 0);
    assert_status(kiln_memory_alloc_async(&stream, SIZE_MAX, &memory), KILN_ERROR_OUT_OF_MEMORY);
    assert_status(kiln_memory_alloc_async(NULL, 1, &memory), KILN_ERROR_INVALID_ARGUMENT);
    assert_status(kiln_memory_alloc_async(&stream, 1, NULL), KILN_ERROR_INVALID_ARGUMENT);
    assert_status(kiln_memory_free_async(NULL, bytes), KILN_ERROR_INVALID_ARGUMENT);
    kiln_stream_close(&stream);
    kiln_device_close(device);
}

static void test_the_applications_memory_is_pinned(void **state) {
    (void)state;
    kiln_device *device = fixture_open(0);
    char bytes[100];
    void *seen;
    assert_ok(kiln_host_register(device, bytes, sizeof bytes, &seen));
    assert_ptr_equal(seen, bytes);
    assert_status(kiln_host_register(device, bytes, sizeof bytes, &seen), KILN_ERROR_DRIVER);
    assert_told("CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED (712)");
    assert_null(seen);
    kiln_host_unregister(device, bytes);
    kiln_host_unregister(device, NULL);
    assert_int_equal(sim.live("registered host memory"), 0);
    assert_status(kiln_host_register(device, NULL, 1, NULL), KILN_ERROR_INVALID_ARGUMENT);
    assert_status(kiln_host_register(device, bytes, 0, NULL), KILN_ERROR_INVALID_ARGUMENT);
    assert_status(kiln_host_register(device, bytes, SIZE_MAX, NULL), KILN_ERROR_INVALID_ARGUMENT);
    kiln_device_close(device);
}

static void test_an_event_of_the_applications(void **state) {
    (void)state;
    kiln_device *device = fixture_open(0);
    kiln_stream stream;
    kiln_event *event, *untimed;
    kiln__cu_event native;
    kiln__cu_context context;
    double nanoseconds;
    int32_t done;
    assert_ok(kiln_stream_open(device, 0, &stream));
    assert_int_equal(cuda.cuDevicePrimaryCtxRetain(&context, 0), 0);
    assert_int_equal(cuda.cuCtxSetCurrent(context), 0);
    assert_int_equal(cuda.cuEventCreate(&native, 0), 0);
    assert_ok(kiln_event_borrow(device, native, &event));
    assert_ok(kiln_stream_wait_event(&stream, event));
    assert_ok(kiln_event_record(event, &stream));
    assert_ok(kiln_event_sync(event));
    assert_ok(kiln_event_query(event, &done));
    assert_int_equal(done, 1);
    assert_ok(kiln_event_elapsed(event, event, &nanoseconds));
    assert_ok(kiln_event_create(device, KILN_EVENT_NO_TIMING, &untimed));
    assert_ok(kiln_event_record(untimed, &stream));
    assert_ok(kiln_event_sync(untimed));
    assert_status(kiln_event_elapsed(event, untimed, &nanoseconds), KILN_ERROR_INVALID_ARGUMENT);
    assert_told("end was created with KILN_EVENT_NO_TIMING");
    kiln_event_destroy(untimed);
    kiln_event_destroy(event);
    assert_int_equal(cuda.cuEventDestroy(native), 0);
    assert_status(kiln_event_borrow(device, NULL, &event), KILN_ERROR_INVALID_ARGUMENT);
    assert_told("native is NULL: must be a CUevent of the device's context");
    assert_null(event);
    assert_status(kiln_event_create(device, 2, &event), KILN_ERROR_INVALID_ARGUMENT);
    assert_told("flags is 0x2: has unknown bits");
    assert_int_equal(cuda.cuCtxSetCurrent(NULL), 0);
    assert_int_equal(cuda.cuDevicePrimaryCtxRelease(0), 0);
    kiln_stream_close(&stream);
    kiln_device_close(device);
}

static void test_options_of_the_cpu_are_ignored(void **state) {
    (void)state;
    kiln_device *device;
    const kiln_device_options options = {.backend = KILN_BACKEND_CUDA, .threads = -1, .cpu_level = "none"};
    assert_ok(kiln_device_open(&options, &device));
    kiln_device_close(device);
}

static void test_an_ordinal_beyond_the_last(void **state) {
    (void)state;
    kiln_device *device;
    assert_status(kiln_device_open(&(kiln_device_options){.backend = KILN_BACKEND_CUDA, .ordinal = 2}, &device),
                  KILN_ERROR_NOT_FOUND);
    assert_told("cuda has 2 devices");
}

static void test_opening_twice_retains_once(void **state) {
    (void)state;
    kiln_device *first = fixture_open(0), *second = fixture_open(0);
    assert_ptr_equal(first, second);
    assert_int_equal(sim.calls("cuDevicePrimaryCtxRetain"), 1);
    kiln_device_close(first);
    assert_int_equal(sim.calls("cuDevicePrimaryCtxRelease_v2"), 0);
    kiln_device_close(second);
    assert_int_equal(sim.calls("cuDevicePrimaryCtxRelease_v2"), 1);
}

/* ---- A driver that lies ---- */

static void test_a_million_devices_are_not_believed(void **state) {
    (void)state;
    int32_t count;
    sim.fault("cuDeviceGetCount", 1, SIM_LIE);
    assert_status(kiln_device_count(KILN_BACKEND_CUDA, &count), KILN_ERROR_DRIVER);
    assert_told("1000000 devices: not believed");
}

static void test_success_with_nothing_is_not_believed(void **state) {
    (void)state;
    static const char *const calls[] = {"cuDevicePrimaryCtxRetain", "cuDeviceGetAttribute"};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        kiln_device *device;
        sim.fault(calls[i], 1, SIM_LIE);
        assert_status(kiln_device_open(&(kiln_device_options){.backend = KILN_BACKEND_CUDA}, &device),
                      KILN_ERROR_DRIVER);
        assert_told(calls[i]);
        assert_null(device);
    }
    kiln_device *device = fixture_open(0);
    kiln_stream stream;
    kiln_event *event;
    void *memory;
    sim.fault("cuStreamCreate", 1, SIM_LIE);
    assert_status(kiln_stream_open(device, 0, &stream), KILN_ERROR_DRIVER);
    sim.fault("cuEventCreate", 1, SIM_LIE);
    assert_status(kiln_event_create(device, 0, &event), KILN_ERROR_DRIVER);
    sim.fault("cuMemAlloc_v2", 1, SIM_LIE);
    assert_status(kiln_memory_alloc(device, 16, &memory), KILN_ERROR_DRIVER);
    sim.fault("cuMemHostAlloc", 1, SIM_LIE);
    assert_status(kiln_host_alloc(device, 16, &memory), KILN_ERROR_DRIVER);
    const kiln_module *module;
    sim.fault("cuModuleLoadDataEx", 1, SIM_LIE);
    assert_status(kiln_module_get(device, fixture_whole(), "f32", &module), KILN_ERROR_DRIVER);
    sim.fault("cuModuleGetFunction", 1, SIM_LIE);
    assert_status(kiln_module_get(device, fixture_whole(), "f32", &module), KILN_ERROR_DRIVER);
    assert_told("cuModuleGetFunction: the driver reports success and gives nothing");
    kiln_device_close(device);
}

/* ---- Borrowed contexts ---- */

static kiln__cu_context create_context(int ordinal) {
    kiln__cu_context context = NULL, popped;
    assert_int_equal(cuda.cuCtxCreate(&context, 0, ordinal), 0);
    assert_int_equal(cuda.cuCtxPopCurrent(&popped), 0);
    return context;
}

static void test_a_borrowed_context_is_its_own_device(void **state) {
    (void)state;
    kiln__cu_context context = create_context(1);
    kiln_device *borrowed = NULL, *own = fixture_open(1);
    assert_ok(kiln_device_open(&(kiln_device_options){.backend = KILN_BACKEND_CUDA, .ordinal = 1, .context = context},
                               &borrowed));
    assert_ptr_not_equal(borrowed, own);
    fixture_kernel(borrowed, "scale");
    assert_int_equal(sim.live("module"), 1);
    kiln_device_close(borrowed);
    assert_int_equal(sim.live("module"), 0);
    kiln_device_close(own);
    kiln__cu_context current;
    assert_int_equal(cuda.cuCtxGetCurrent(&current), 0);
    assert_null(current);
    assert_int_equal(cuda.cuCtxDestroy(context), 0);
}

static void test_a_context_of_another_device_is_refused(void **state) {
    (void)state;
    kiln__cu_context context = create_context(1);
    kiln_device *device;
    assert_status(kiln_device_open(&(kiln_device_options){.backend = KILN_BACKEND_CUDA, .context = context}, &device),
                  KILN_ERROR_INVALID_ARGUMENT);
    assert_told("context is of CUDA device 1, ordinal is 0");
    assert_int_equal(cuda.cuCtxDestroy(context), 0);
}

/* ---- Teardown in any order is quiet ---- */

typedef struct things {
    kiln_stream stream;
    kiln_event *event;
    void *memory, *host;
} things;

static things make_things(kiln_device *device) {
    things made;
    fixture_kernel(device, "scale");
    assert_ok(kiln_stream_open(device, 0, &made.stream));
    assert_ok(kiln_event_create(device, 0, &made.event));
    assert_ok(kiln_event_record(made.event, &made.stream));
    assert_ok(kiln_memory_alloc(device, 64, &made.memory));
    assert_ok(kiln_host_alloc(device, 64, &made.host));
    return made;
}

static void release_things(kiln_device *device, things *made) {
    kiln_stream_close(&made->stream);
    kiln_event_destroy(made->event);
    kiln_memory_free(device, made->memory);
    kiln_host_free(device, made->host);
}

static void test_the_application_destroys_its_context_first(void **state) {
    (void)state;
    kiln__cu_context context = create_context(0);
    kiln_device *device = NULL;
    assert_ok(kiln_device_open(&(kiln_device_options){.backend = KILN_BACKEND_CUDA, .context = context}, &device));
    things made = make_things(device);
    assert_int_equal(cuda.cuCtxDestroy(context), 0);
    assert_status(kiln_stream_sync(&made.stream), KILN_ERROR_DEVICE_LOST);
    assert_told("CUDA_ERROR_CONTEXT_IS_DESTROYED (709)");
    release_things(device, &made);
    kiln_device_close(device);
}

/* What a driver says to a program whose exit handlers have passed its own. The things that it holds go with it. */
static void test_a_driver_that_has_shut_down(void **state) {
    (void)state;
    kiln_device *device = fixture_open(0);
    things made = make_things(device);
    sim.fault("cuCtxGetCurrent", 1, 4);
    assert_status(kiln_stream_sync(&made.stream), KILN_ERROR_DEVICE_LOST);
    assert_told("CUDA_ERROR_DEINITIALIZED (4)");
    release_things(device, &made);
    kiln_device_close(device);
}

static void test_modules_go_with_their_device(void **state) {
    (void)state;
    kiln_device *device = fixture_open(0);
    fixture_kernel(device, "scale");
    assert_int_equal(sim.live("module"), 1);
    kiln_device_close(device);
    assert_int_equal(sim.live("*"), 0);
}

/* ---- Fork ---- */

static int child_of_open_device(kiln_device *device, kiln_stream *stream, const kiln_kernel *kernel) {
    scale_arguments arguments = {0};
    kiln_launch_config config = {.block = {32}};
    kiln_device *another;
    void *memory;
    int32_t count;
    uint64_t calls = sim.calls("*");
    if (kiln_launch(stream, kernel, &config, &arguments, sizeof arguments) != KILN_ERROR_FORKED) return 1;
    if (kiln_stream_sync(stream) != KILN_ERROR_FORKED) return 2;
    if (kiln_memory_alloc(device, 16, &memory) != KILN_ERROR_FORKED) return 3;
    if (kiln_device_count(KILN_BACKEND_CUDA, &count) != KILN_ERROR_FORKED) return 4;
    if (kiln_device_open(&(kiln_device_options){.backend = KILN_BACKEND_CUDA, .ordinal = 1}, &another) !=
        KILN_ERROR_FORKED)
        return 5;
    kiln_stream_close(stream);
    kiln_device_close(device);
    return sim.calls("*") == calls ? 0 : 6; /* the driver was left alone */
}

static void test_a_child_is_told_that_it_was_forked(void **state) {
    (void)state;
    kiln_device *device = fixture_open(0);
    const kiln_kernel *kernel = fixture_kernel(device, "scale");
    kiln_stream stream;
    assert_ok(kiln_stream_open(device, 0, &stream));
    pid_t child = fork();
    if (!child) _exit(child_of_open_device(device, &stream, kernel));
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_ok(kiln_stream_sync(&stream));
    kiln_stream_close(&stream);
    kiln_device_close(device);
}

int main(int argc, char **argv) {
    (void)argc;
    fixture_start(argv, "sm_90,sm_120");
    const struct CMUnitTest tests[] = {
        fixture_test(test_no_call_before_the_first_question),
        fixture_test(test_a_stub_is_no_driver),
        fixture_test(test_no_device_is_not_a_failure),
        fixture_test(test_a_driver_initialised_before_a_fork_is_told),
        fixture_test(test_no_memory_to_initialise),
        fixture_test(test_a_broken_driver_is_no_fallback),
        fixture_test(test_an_absent_driver_is_a_fallback),
        fixture_test(test_a_driver_that_forks_to_initialise),
        fixture_test(test_a_driver_without_a_version),
        fixture_test(test_a_failure_is_not_kept),
        fixture_test(test_devices_that_cannot_be_counted),
        fixture_test(test_info_is_the_drivers),
        fixture_test(test_a_gpu_opens_by_its_id),
        fixture_test(test_a_device_reaches_its_peer),
        fixture_test(test_memory_comes_and_goes_in_stream_order),
        fixture_test(test_the_applications_memory_is_pinned),
        fixture_test(test_an_event_of_the_applications),
        fixture_test(test_an_id_of_no_gpu_is_not_found),
        fixture_test(test_options_of_the_cpu_are_ignored),
        fixture_test(test_an_ordinal_beyond_the_last),
        fixture_test(test_opening_twice_retains_once),
        fixture_test(test_a_million_devices_are_not_believed),
        fixture_test(test_success_with_nothing_is_not_believed),
        fixture_test(test_a_borrowed_context_is_its_own_device),
        fixture_test(test_a_context_of_another_device_is_refused),
        fixture_test(test_the_application_destroys_its_context_first),
        fixture_test(test_a_driver_that_has_shut_down),
        fixture_test(test_modules_go_with_their_device),
        fixture_test(test_a_child_is_told_that_it_was_forked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
