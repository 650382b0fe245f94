/* kiln inside a program that lives in HIP: a device in HIP's own context, the program's streams, events and memory, and
 * graphs of what kiln launches. KILN_HIP_LIBRARY is the libamdhip64 to load, which finds two devices of one kind;
 * without it, only what kiln says where there is none is tested. hip_test.sh has the real one on the simulated driver.
 */
#include "tests/assert_ok.h"
#include <dlfcn.h>
#include <kiln/kiln.h>
#include <kiln/ops.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROWS = 3, COLS = 100, COUNT = ROWS * COLS, BYTES = COUNT * 4 };
enum { NON_BLOCKING = 1, CAPTURE_GLOBAL = 0, NO_TIMING = 2, FIRST_RECENT = 50600000 };

typedef void *handle;

/* What the program itself calls, declared as HIP's documentation has it. */
#define HIP_FUNCTIONS(X)                                                                                   \
    X(hipRuntimeGetVersion, (int *version))                                                                \
    X(hipSetDevice, (int ordinal))                                                                         \
    X(hipGetDevice, (int *ordinal))                                                                        \
    X(hipGetLastError, (void))                                                                             \
    X(hipMalloc, (void **memory, size_t size))                                                             \
    X(hipFree, (void *memory))                                                                             \
    X(hipMemcpyHtoDAsync, (void *to, void *from, size_t size, handle stream))                              \
    X(hipMemcpyDtoHAsync, (void *to, void *from, size_t size, handle stream))                              \
    X(hipStreamCreateWithFlags, (handle * stream, unsigned flags))                                         \
    X(hipStreamDestroy, (handle stream))                                                                   \
    X(hipStreamSynchronize, (handle stream))                                                               \
    X(hipStreamWaitEvent, (handle stream, handle event, unsigned flags))                                   \
    X(hipStreamBeginCapture, (handle stream, unsigned mode))                                               \
    X(hipStreamEndCapture, (handle stream, handle * graph))                                                \
    X(hipGraphGetNodes, (handle graph, handle * nodes, size_t * count))                                    \
    X(hipGraphInstantiate, (handle * executable, handle graph, handle * node, char *log, size_t log_size)) \
    X(hipGraphLaunch, (handle executable, handle stream))                                                  \
    X(hipGraphExecDestroy, (handle executable))                                                            \
    X(hipGraphDestroy, (handle graph))                                                                     \
    X(hipEventCreateWithFlags, (handle * event, unsigned flags))                                           \
    X(hipEventRecord, (handle event, handle stream))                                                       \
    X(hipEventSynchronize, (handle event))                                                                 \
    X(hipEventDestroy, (handle event))

static struct {
#define HIP_FIELD(name, parameters) int(*name) parameters;
    HIP_FUNCTIONS(HIP_FIELD)
#undef HIP_FIELD
} hip;

#define HIP(call) assert_int_equal(hip.call, 0)

extern const kiln_bundle kiln__bundle_softmax;
static const char *library;
static kiln_device *device, *cpu;
static float inputs[COUNT], wanted[COUNT];

static void assert_told(const char *words) {
    if (strstr(kiln_last_error(), words)) return;
    print_error("\"%s\" is not in \"%s\"\n", words, kiln_last_error());
    fail();
}

/* A call of kiln's that fails leaves nothing to be found in HIP's last error. */
static void assert_refused(kiln_status status, kiln_status wanted_status, const char *words) {
    assert_int_equal(status, wanted_status);
    assert_told(words);
    if (library) HIP(hipGetLastError());
}

static void fill_inputs(unsigned seed) {
    for (int i = 0; i < COUNT; i++)
        inputs[i] = (float)((i * 37 + (int)seed * 11) % 101) / 16;
    kiln_stream stream;
    assert_ok(kiln_stream_open(cpu, 0, &stream));
    const kiln_softmax_params params = {.y = wanted, .x = inputs, .rows = ROWS, .cols = COLS};
    assert_ok(kiln_softmax_f32(&stream, &params));
    assert_ok(kiln_stream_sync(&stream));
    kiln_stream_close(&stream);
}

static void assert_wanted(handle stream, void *results) {
    static float found[COUNT];
    memset(found, 0xff, sizeof found);
    HIP(hipMemcpyDtoHAsync(found, results, BYTES, stream));
    HIP(hipStreamSynchronize(stream));
    for (int i = 0; i < COUNT; i++)
        if (!(found[i] - wanted[i] < 1e-6F && wanted[i] - found[i] < 1e-6F))
            fail_msg("element %d is %g, the CPU's is %g", i, (double)found[i], (double)wanted[i]);
}

/* ---- Before the program has loaded HIP, and when it does ---- */

static void without_hip_in_the_process_there_is_no_device(void **state) {
    (void)state;
    int32_t count = -1;
    kiln_device *none = NULL;
    const kiln_device_options options = {.backend = KILN_BACKEND_HIP};
    assert_ok(kiln_device_count(KILN_BACKEND_HIP, &count));
    assert_int_equal(count, 0);
    assert_told("HIP is not loaded in this process");
    assert_int_equal(kiln_device_open(&options, &none), KILN_ERROR_NO_DRIVER);
    assert_told("kiln does not load it");
    assert_string_equal(kiln_backend_name(KILN_BACKEND_HIP), "hip");
    assert_null(dlopen("libamdhip64.so.5", RTLD_LAZY | RTLD_NOLOAD));
}

static void load_hip(void) {
    void *loaded = dlopen(library, RTLD_NOW);
    if (!loaded) fail_msg("%s", dlerror());
#define HIP_FIND(name, parameters) *(void **)&hip.name = dlsym(loaded, #name);
    HIP_FUNCTIONS(HIP_FIND)
#undef HIP_FIND
}

static void a_device_is_opened_in_hips_own_context(void **state) {
    (void)state;
    kiln_device_info info, same;
    kiln_device *rocm = NULL;
    int32_t count = 0;
    char uuid[64], other[64];
    load_hip();
    assert_ok(kiln_device_count(KILN_BACKEND_HIP, &count));
    assert_int_equal(count, 2);
    assert_ok(kiln_device_open(&(kiln_device_options){.backend = KILN_BACKEND_HIP}, &device));
    assert_ok(kiln_device_open(&(kiln_device_options){.backend = KILN_BACKEND_CPU}, &cpu));
    assert_ok(kiln_device_get_info(device, &info));
    assert_int_equal(info.backend, KILN_BACKEND_HIP);
    assert_int_equal(info.target.backend, KILN_BACKEND_ROCM);
    assert_non_null(strstr(info.driver, "libamdhip64.so"));
    /* The same device through HSA: what images are selected by, and who it is, must not differ. */
    assert_ok(kiln_device_open(&(kiln_device_options){.backend = KILN_BACKEND_ROCM}, &rocm));
    assert_ok(kiln_device_get_info(rocm, &same));
    print_message("# %s, %s; HSA's: %d of %d units, waves of %d\n", info.name, info.driver, info.multiprocessors,
                  same.multiprocessors, info.wave_size);
    assert_string_equal(info.target.processor, same.target.processor);
    assert_int_equal(info.target.xnack, same.target.xnack);
    assert_int_equal(info.target.sramecc, same.target.sramecc);
    assert_int_equal(info.wave_size, same.wave_size);
    assert_int_equal(info.max_threads, same.max_threads);
    assert_int_equal(info.max_shared_bytes, same.max_shared_bytes);
    assert_int_equal(info.pci_bus, same.pci_bus);
    kiln_device_uuid_text(&info, uuid, sizeof uuid);
    kiln_device_uuid_text(&same, other, sizeof other);
    assert_string_equal(uuid, other);
    kiln_device_close(rocm);
    /* By its id, too. */
    assert_ok(kiln_device_open(&(kiln_device_options){.backend = KILN_BACKEND_HIP, .id = uuid}, &rocm));
    assert_ptr_equal(rocm, device);
    kiln_device_close(rocm);
}

/* ---- The program's streams ---- */

typedef struct program {
    handle stream;
    void *x, *y;
    kiln_stream borrowed;
} program;

static void program_begin(program *p) {
    HIP(hipSetDevice(0));
    HIP(hipStreamCreateWithFlags(&p->stream, NON_BLOCKING));
    HIP(hipMalloc(&p->x, BYTES));
    HIP(hipMalloc(&p->y, BYTES));
    assert_ok(kiln_stream_borrow(device, p->stream, &p->borrowed));
}

static void program_end(program *p) {
    assert_ok(kiln_stream_sync(&p->borrowed));
    kiln_stream_close(&p->borrowed);
    HIP(hipFree(p->x));
    HIP(hipFree(p->y));
    HIP(hipStreamDestroy(p->stream)); /* kiln has left it alone */
}

static kiln_status softmax(program *p) {
    const kiln_softmax_params params = {.y = p->y, .x = p->x, .rows = ROWS, .cols = COLS};
    return kiln_softmax_f32(&p->borrowed, &params);
}

static void operators_run_on_the_programs_stream_and_memory(void **state) {
    (void)state;
    program p;
    int current = -1;
    program_begin(&p);
    fill_inputs(1);
    HIP(hipSetDevice(1)); /* another device is current: kiln launches on its own and puts this one back */
    HIP(hipMemcpyHtoDAsync(p.x, inputs, BYTES, p.stream));
    assert_ok(softmax(&p));
    HIP(hipGetDevice(&current));
    assert_int_equal(current, 1);
    assert_wanted(p.stream, p.y);
    program_end(&p);
    HIP(hipSetDevice(0));
}

static void the_default_stream_can_be_borrowed(void **state) {
    (void)state;
    program p;
    program_begin(&p);
    fill_inputs(2);
    HIP(hipMemcpyHtoDAsync(p.x, inputs, BYTES, NULL));
    assert_ok(kiln_stream_borrow(device, NULL, &p.borrowed));
    assert_ok(softmax(&p));
    assert_wanted(NULL, p.y);
    program_end(&p);
}

static void a_stream_of_another_device_is_refused(void **state) {
    (void)state;
    static char nothing[4096];
    handle other;
    kiln_stream stream;
    HIP(hipSetDevice(1));
    HIP(hipStreamCreateWithFlags(&other, NON_BLOCKING));
    HIP(hipSetDevice(0));
    assert_refused(kiln_stream_borrow(device, other, &stream), KILN_ERROR_INVALID_ARGUMENT,
                   "native is a stream of HIP device 1, the device is hip:0");
    assert_refused(kiln_stream_borrow(device, nothing, &stream), KILN_ERROR_INVALID_ARGUMENT,
                   "native is no hipStream_t");
    HIP(hipStreamDestroy(other));
}

/* ---- Graphs ---- */

/* Launches the graph of a softmax three times, each on other inputs. */
static void run_graph(program *p, handle graph) {
    handle executable;
    size_t nodes = 0;
    HIP(hipGraphGetNodes(graph, NULL, &nodes));
    assert_int_equal(nodes, 1);
    HIP(hipGraphInstantiate(&executable, graph, NULL, NULL, 0));
    for (unsigned run = 0; run < 3; run++) {
        fill_inputs(4 + run);
        HIP(hipMemcpyHtoDAsync(p->x, inputs, BYTES, p->stream));
        HIP(hipGraphLaunch(executable, p->stream));
        assert_wanted(p->stream, p->y);
    }
    HIP(hipGraphExecDestroy(executable));
}

/* HIP before 5.6 launches at once what it should capture, so that kiln refuses. */
static void what_kiln_launches_is_captured_or_refused(void **state) {
    (void)state;
    program p;
    handle graph;
    int version = 0;
    HIP(hipRuntimeGetVersion(&version));
    program_begin(&p);
    fill_inputs(3);
    HIP(hipMemcpyHtoDAsync(p.x, inputs, BYTES, p.stream));
    assert_ok(softmax(&p)); /* what is captured must be loaded */
    assert_wanted(p.stream, p.y);
    HIP(hipStreamBeginCapture(p.stream, CAPTURE_GLOBAL));
    if (version < FIRST_RECENT)
        assert_refused(softmax(&p), KILN_ERROR_UNSUPPORTED, "captures of launches need HIP 5.6, this is libamdhip64");
    else
        assert_ok(softmax(&p));
    HIP(hipStreamEndCapture(p.stream, &graph));
    if (version >= FIRST_RECENT) run_graph(&p, graph);
    HIP(hipGraphDestroy(graph));
    program_end(&p);
}

static void copies_and_fills_are_captured(void **state) {
    (void)state;
    program p;
    handle graph, executable;
    program_begin(&p);
    fill_inputs(8);
    memcpy(wanted, inputs, sizeof wanted);
    memset(wanted, 0, COLS * sizeof *wanted);
    HIP(hipStreamBeginCapture(p.stream, CAPTURE_GLOBAL));
    assert_ok(kiln_copy(&p.borrowed, p.y, p.x, BYTES, KILN_COPY_ON_DEVICE));
    assert_ok(kiln_fill(&p.borrowed, p.y, 0, COLS * sizeof *wanted));
    HIP(hipStreamEndCapture(p.stream, &graph));
    HIP(hipGraphInstantiate(&executable, graph, NULL, NULL, 0));
    HIP(hipMemcpyHtoDAsync(p.x, inputs, BYTES, p.stream));
    HIP(hipGraphLaunch(executable, p.stream));
    assert_wanted(p.stream, p.y);
    HIP(hipGraphExecDestroy(executable));
    HIP(hipGraphDestroy(graph));
    program_end(&p);
}

static void nothing_is_loaded_during_a_capture(void **state) {
    (void)state;
    program p;
    handle graph;
    program_begin(&p);
    HIP(hipStreamBeginCapture(p.stream, CAPTURE_GLOBAL));
    const kiln_softmax_params params = {.y = p.y, .x = p.x, .rows = ROWS, .cols = COLS};
    assert_refused(kiln_softmax_f16(&p.borrowed, &params), KILN_ERROR_CAPTURING, "captured");
    HIP(hipStreamEndCapture(p.stream, &graph));
    HIP(hipGraphDestroy(graph));
    program_end(&p);
}

/* ---- Events ---- */

static void events_go_both_ways(void **state) {
    (void)state;
    program p;
    handle before, after;
    kiln_event *start, *end;
    kiln_stream own;
    program_begin(&p);
    fill_inputs(7);
    assert_ok(kiln_stream_open(device, 0, &own));
    HIP(hipEventCreateWithFlags(&before, NO_TIMING));
    HIP(hipEventCreateWithFlags(&after, NO_TIMING));
    assert_ok(kiln_event_borrow(device, before, &start));
    assert_ok(kiln_event_borrow(device, after, &end));
    /* kiln's stream waits for the program's copy, and the program's stream for kiln's work. */
    HIP(hipMemcpyHtoDAsync(p.x, inputs, BYTES, p.stream));
    HIP(hipEventRecord(before, p.stream));
    assert_ok(kiln_stream_wait_event(&own, start));
    const kiln_softmax_params params = {.y = p.y, .x = p.x, .rows = ROWS, .cols = COLS};
    assert_ok(kiln_softmax_f32(&own, &params));
    assert_ok(kiln_event_record(end, &own));
    HIP(hipStreamWaitEvent(p.stream, after, 0));
    assert_wanted(p.stream, p.y);
    HIP(hipEventSynchronize(after));
    kiln_event_destroy(start);
    kiln_event_destroy(end);
    HIP(hipEventDestroy(before));
    HIP(hipEventDestroy(after));
    kiln_stream_close(&own);
    program_end(&p);
}

static void kilns_own_events_are_timed(void **state) {
    (void)state;
    program p;
    kiln_event *start, *end;
    double nanoseconds = -1;
    int32_t done = 0;
    program_begin(&p);
    HIP(hipMemcpyHtoDAsync(p.x, inputs, BYTES, p.stream));
    assert_ok(kiln_event_create(device, 0, &start));
    assert_ok(kiln_event_create(device, 0, &end));
    assert_ok(kiln_event_record(start, &p.borrowed));
    assert_ok(softmax(&p));
    assert_ok(kiln_event_record(end, &p.borrowed));
    assert_ok(kiln_event_sync(end));
    assert_ok(kiln_event_query(end, &done));
    assert_int_equal(done, 1);
    assert_ok(kiln_event_elapsed(start, end, &nanoseconds));
    assert_true(nanoseconds > 0);
    kiln_event_destroy(start);
    kiln_event_destroy(end);
    program_end(&p);
}

/* ---- Memory, kernels and errors ---- */

static void memory_is_hips(void **state) {
    (void)state;
    enum { SIZE = 4096 };
    static uint8_t host[SIZE], back[SIZE];
    kiln_stream stream;
    uint64_t available = 0, total = 0;
    void *memory, *pinned, *seen;
    assert_ok(kiln_stream_open(device, 0, &stream));
    assert_ok(kiln_memory_alloc(device, SIZE, &memory));
    assert_ok(kiln_host_alloc(device, SIZE, &pinned));
    assert_ok(kiln_host_register(device, host, SIZE, &seen));
    assert_ok(kiln_fill(&stream, memory, 0x5a, SIZE));
    memset(host, 7, SIZE / 2);
    assert_ok(kiln_copy(&stream, memory, host, SIZE / 2, KILN_COPY_TO_DEVICE));
    assert_ok(kiln_copy(&stream, pinned, memory, SIZE, KILN_COPY_TO_HOST));
    assert_ok(kiln_stream_sync(&stream));
    memset(back, 7, SIZE / 2);
    memset(back + SIZE / 2, 0x5a, SIZE / 2);
    assert_memory_equal(pinned, back, SIZE);
    assert_ok(kiln_memory_get_info(device, &available, &total));
    assert_true(available > 0 && available <= total);
    kiln_host_unregister(device, host);
    kiln_host_free(device, pinned);
    kiln_memory_free(device, memory);
    kiln_stream_close(&stream);
}

/* HIP before 5.6 never ends the destruction of a stream after that. */
static void memory_comes_and_goes_with_a_stream_or_is_refused(void **state) {
    (void)state;
    enum { SIZE = 4096 };
    kiln_stream stream;
    void *memory;
    int version = 0;
    HIP(hipRuntimeGetVersion(&version));
    assert_ok(kiln_stream_open(device, 0, &stream));
    const kiln_status status = kiln_memory_alloc_async(&stream, SIZE, &memory);
    if (version < FIRST_RECENT) {
        assert_refused(status, KILN_ERROR_UNSUPPORTED, "kiln_memory_alloc_async: needs HIP 5.6, this is libamdhip64");
    } else {
        assert_int_equal(status, KILN_OK);
        assert_ok(kiln_fill(&stream, memory, 1, SIZE));
        assert_ok(kiln_memory_free_async(&stream, memory));
        assert_ok(kiln_stream_sync(&stream));
    }
    kiln_stream_close(&stream);
}

static const kiln_kernel *find_kernel(kiln_device *on) {
    const kiln_module *module;
    const kiln_kernel *kernel;
    assert_ok(kiln_module_get(on, &kiln__bundle_softmax, "f32", &module));
    assert_ok(kiln_module_find_kernel(module, "kiln_softmax_rows_f32", &kernel));
    return kernel;
}

/* The same image through HSA says the same, but for private memory, which HIP rounds. */
static void kernels_are_those_of_the_rocm_backend(void **state) {
    (void)state;
    kiln_device *rocm;
    kiln_kernel_attributes ours, theirs;
    uint32_t blocks = 0;
    assert_ok(kiln_device_open(&(kiln_device_options){.backend = KILN_BACKEND_ROCM}, &rocm));
    const kiln_kernel *kernel = find_kernel(device), *other = find_kernel(rocm);
    assert_ok(kiln_kernel_get_attributes(kernel, &ours));
    assert_ok(kiln_kernel_get_attributes(other, &theirs));
    assert_int_equal(ours.arguments_size, theirs.arguments_size);
    assert_int_equal(ours.registers, theirs.registers);
    assert_int_equal(ours.shared_bytes, theirs.shared_bytes);
    assert_int_equal(ours.max_threads, theirs.max_threads);
    assert_int_equal(ours.max_dynamic_shared_bytes, theirs.max_dynamic_shared_bytes);
    assert_ok(kiln_kernel_get_occupancy(kernel, 256, 0, &blocks));
    assert_true(blocks > 0);
    kiln_device_close(rocm);
}

static void shapes_that_no_kernel_takes_are_refused(void **state) {
    (void)state;
    program p;
    static uint8_t arguments[256];
    kiln_kernel_attributes attributes;
    program_begin(&p);
    const kiln_kernel *kernel = find_kernel(device);
    assert_ok(kiln_kernel_get_attributes(kernel, &attributes));
    const kiln_launch_config too_many = {.grid = {1}, .block = {2048}};
    const kiln_launch_config clusters = {.grid = {2}, .block = {64}, .cluster = {2}};
    const kiln_launch_config flags = {.grid = {1}, .block = {64}, .flags = KILN_LAUNCH_COOPERATIVE};
    assert_refused(kiln_launch(&p.borrowed, kernel, &too_many, arguments, attributes.arguments_size),
                   KILN_ERROR_INVALID_ARGUMENT, "block 2048x1x1");
    assert_refused(kiln_launch(&p.borrowed, kernel, &clusters, arguments, attributes.arguments_size),
                   KILN_ERROR_UNSUPPORTED, "hip has no clusters");
    assert_refused(kiln_launch(&p.borrowed, kernel, &flags, arguments, attributes.arguments_size),
                   KILN_ERROR_UNSUPPORTED, "cooperative");
    program_end(&p);
}

static void peers_reach_each_others_memory(void **state) {
    (void)state;
    kiln_device *peer;
    assert_ok(kiln_device_open(&(kiln_device_options){.backend = KILN_BACKEND_HIP, .ordinal = 1}, &peer));
    assert_ok(kiln_device_enable_peer(device, peer));
    assert_ok(kiln_device_enable_peer(device, peer)); /* again is no error */
    HIP(hipGetLastError());
    kiln_device_close(peer);
}

static void a_forked_child_gets_a_status(void **state) {
    (void)state;
    int status = -1;
    const pid_t child = fork();
    if (!child) {
        int32_t count;
        void *memory;
        const bool told = kiln_device_count(KILN_BACKEND_HIP, &count) == KILN_ERROR_FORKED &&
                          kiln_memory_alloc(device, BYTES, &memory) == KILN_ERROR_FORKED;
        _exit(!told);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void errors_are_kilns_alone(void **state) {
    (void)state;
    program p;
    void *memory;
    program_begin(&p);
    assert_refused(kiln_memory_alloc(device, (size_t)1 << 46, &memory), KILN_ERROR_OUT_OF_MEMORY,
                   "hipMalloc: hipErrorOutOfMemory (2)");
    assert_refused(
        kiln_device_open(&(kiln_device_options){.backend = KILN_BACKEND_HIP, .ordinal = 2}, &(kiln_device *){0}),
        KILN_ERROR_NOT_FOUND, "ordinal is 2, hip has 2 devices");
    const kiln_softmax_params params = {.y = p.y, .x = NULL, .rows = ROWS, .cols = COLS};
    assert_refused(kiln_softmax_f32(&p.borrowed, &params), KILN_ERROR_INVALID_ARGUMENT, "x is NULL");
    program_end(&p);
}

static void the_rest_needs_libamdhip64(void **state) {
    (void)state;
    skip();
}

static int close_devices(void **state) {
    (void)state;
    kiln_device_close(device);
    kiln_device_close(cpu);
    return 0;
}

int main(void) {
    const struct CMUnitTest alone[] = {
        cmocka_unit_test(without_hip_in_the_process_there_is_no_device),
        cmocka_unit_test(the_rest_needs_libamdhip64),
    };
    const struct CMUnitTest tests[] = {
        alone[0],
        cmocka_unit_test(a_device_is_opened_in_hips_own_context),
        cmocka_unit_test(operators_run_on_the_programs_stream_and_memory),
        cmocka_unit_test(the_default_stream_can_be_borrowed),
        cmocka_unit_test(a_stream_of_another_device_is_refused),
        cmocka_unit_test(what_kiln_launches_is_captured_or_refused),
        cmocka_unit_test(copies_and_fills_are_captured),
        cmocka_unit_test(nothing_is_loaded_during_a_capture),
        cmocka_unit_test(events_go_both_ways),
        cmocka_unit_test(kilns_own_events_are_timed),
        cmocka_unit_test(memory_is_hips),
        cmocka_unit_test(memory_comes_and_goes_with_a_stream_or_is_refused),
        cmocka_unit_test(kernels_are_those_of_the_rocm_backend),
        cmocka_unit_test(shapes_that_no_kernel_takes_are_refused),
        cmocka_unit_test(peers_reach_each_others_memory),
        cmocka_unit_test(a_forked_child_gets_a_status),
        cmocka_unit_test(errors_are_kilns_alone),
    };
    library = getenv("KILN_HIP_LIBRARY");
    if (!library) return cmocka_run_group_tests(alone, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, close_devices);
}
