/* Every call that kiln makes to the CUDA driver fails once with every error that its documentation names.
 *
 * A scenario is prepared, worked and released. A run without a fault counts the driver calls of the last two; then, for
 * each call in turn and each of its errors, a child process runs the scenario again with that one fault. Afterwards a
 * status must have come back with the error's name in its text, nothing may be left of what the driver gave, no rule of
 * the driver's may be broken, and the same scenario must pass. */
#include "tests/unit/cuda_fixture.h"

#include "loader/tensor_map.h"
#include <sys/mman.h>
#include <sys/wait.h>

/* The load of every operator's first call. */
#define kiln__module_get_on(...) documented("kiln_module_get", (kiln__module_get_on)(__VA_ARGS__))

/* ---- The errors of each function ---- */

typedef struct fault_error {
    const char *name;
    int32_t number;
} fault_error;

enum {
#define KILN_CUDA_ERROR(name, number, status) ERROR_##name = number,
#include "loader/cuda/cuda_errors.def"
#undef KILN_CUDA_ERROR
};

#define E(name)                           {#name, ERROR_##name},
#define SIM_CUDA_ERRORS(function, errors) static const fault_error errors_of_##function[] = {errors{NULL, 0}};
#include "tests/sim/cuda/errors.def"
#undef SIM_CUDA_ERRORS
#undef E

static const struct {
    const char *name;
    const fault_error *errors;
} functions[] = {
#define SIM_CUDA_ERRORS(function, errors) {#function, errors_of_##function},
#include "tests/sim/cuda/errors.def"
#undef SIM_CUDA_ERRORS
};
enum { FUNCTION_COUNT = sizeof functions / sizeof *functions };

/* Every function that kiln calls has its row. */
enum {
#define KILN_CUDA(field, name, requirement, result, parameters) SYMBOL_##field,
#include "loader/cuda/symbols.def"
#undef KILN_CUDA
    SYMBOL_COUNT
};
_Static_assert((int)FUNCTION_COUNT == (int)SYMBOL_COUNT, "errors.def and symbols.def differ");

static size_t function_number(const char *name) {
    size_t number = 0;
    while (number < FUNCTION_COUNT && strcmp(functions[number].name, name))
        number++;
    return number;
}

/* ---- Scenarios ---- */

/* All that a scenario may hold; what is NULL is not held. */
typedef struct session {
    kiln__cu_context context; /* the application's */
    kiln_device *device, *peer;
    kiln_stream stream;
    kiln_event *start, *end;
    void *memory, *other, *host, *registered;
    const kiln_kernel *kernel;
    const kiln_module *text;
} session;

#define TRY(expression)                               \
    do {                                              \
        kiln_status try_status = (expression);        \
        if (try_status != KILN_OK) return try_status; \
    } while (0)

static kiln_status nothing(session *held) {
    (void)held;
    return KILN_OK;
}

static kiln_status open_device(session *held) {
    TRY(kiln_device_open(&(kiln_device_options){.backend = KILN_BACKEND_CUDA, .context = held->context},
                         &held->device));
    return kiln_stream_open(held->device, 0, &held->stream);
}

/* A context of the application's, not current, as a library finds it on a thread of its own. */
static kiln_status create_context(session *held) {
    kiln__cu_context popped;
    bool created = !cuda.cuInit(0) && !cuda.cuCtxCreate(&held->context, 0, 0) && !cuda.cuCtxPopCurrent(&popped);
    return created ? KILN_OK : KILN_ERROR_DRIVER;
}

static kiln_status borrow(session *held) {
    TRY(open_device(held));
    kiln_stream legacy;
    TRY(kiln_stream_borrow(held->device, NULL, &legacy));
    TRY(kiln_stream_sync(&legacy));
    kiln_stream_close(&legacy);
    return KILN_OK;
}

static kiln_status load(session *held) {
    const kiln_module *module;
    TRY(kiln__module_get_on(&held->stream, fixture_whole(), "f32", &module));
    return kiln_module_find_kernel(module, "scale", &held->kernel);
}

static kiln_status enable_peer(session *held) {
    TRY(kiln_device_open(&(kiln_device_options){.backend = KILN_BACKEND_CUDA, .ordinal = 1}, &held->peer));
    return kiln_device_enable_peer(held->device, held->peer);
}

static kiln_status open_and_load_text(session *held) {
    TRY(open_device(held));
    return fixture_load_text(held->device, &held->text);
}

static kiln_status find_variable(session *held) {
    void *address;
    size_t size;
    return kiln_module_find_variable(held->text, "tally", &address, &size);
}

/* In stream order, and the application's own. */
static kiln_status allocate(session *held) {
    static char pages[4][256]; /* what could not be unregistered stays so */
    static unsigned runs;
    char *own = pages[runs++ % 4];
    void *memory;
    TRY(kiln_memory_alloc_async(&held->stream, 256, &memory));
    held->memory = memory;
    TRY(kiln_fill(&held->stream, memory, 3, 256));
    TRY(kiln_host_register(held->device, own, sizeof *pages, NULL));
    held->registered = own;
    TRY(kiln_memory_free_async(&held->stream, memory));
    held->memory = NULL;
    return kiln_stream_sync(&held->stream);
}

static kiln_status open_and_load(session *held) {
    TRY(open_device(held));
    return load(held);
}

static kiln_status launch(session *held) {
    scale_arguments arguments = {0};
    kiln_launch_config config = {.grid = {4}, .block = {64}};
    kiln_kernel_attributes attributes;
    uint32_t groups;
    TRY(kiln_kernel_get_attributes(held->kernel, &attributes));
    TRY(kiln_kernel_get_occupancy(held->kernel, 64, 0, &groups));
    TRY(kiln_launch(&held->stream, held->kernel, &config, &arguments, sizeof arguments));
    config.cluster[0] = 2;
    TRY(kiln_launch(&held->stream, held->kernel, &config, &arguments, sizeof arguments));
    return kiln_stream_sync(&held->stream);
}

static kiln_status encode(session *held) {
    const kiln__tensor_layout tensor = {.data = (void *)4096, .element_bytes = 2, .rank = 2, .sizes = {8, 1}};
    char map[KILN__TENSOR_MAP_BYTES];
    kiln_kernel kernel = *held->kernel;
    kernel.info.boxes[0][0] = kernel.info.boxes[0][1] = 8;
    return kiln__tensor_maps_encode(&kernel, &tensor, map);
}

static kiln_status copy(session *held) {
    uint64_t available, total;
    TRY(kiln_memory_get_info(held->device, &available, &total));
    TRY(kiln_memory_alloc(held->device, 256, &held->memory));
    TRY(kiln_memory_alloc(held->device, 256, &held->other));
    TRY(kiln_host_alloc(held->device, 256, &held->host));
    TRY(kiln_fill(&held->stream, held->memory, 3, 256));
    TRY(kiln_copy(&held->stream, held->other, held->memory, 256, KILN_COPY_ON_DEVICE));
    TRY(kiln_copy(&held->stream, held->host, held->other, 256, KILN_COPY_TO_HOST));
    TRY(kiln_copy(&held->stream, held->memory, held->host, 256, KILN_COPY_TO_DEVICE));
    return kiln_stream_sync(&held->stream);
}

static kiln_status event(session *held) {
    double nanoseconds;
    int32_t done;
    TRY(kiln_event_create(held->device, 0, &held->start));
    TRY(kiln_event_create(held->device, 0, &held->end));
    TRY(kiln_event_record(held->start, &held->stream));
    TRY(kiln_event_record(held->end, &held->stream));
    TRY(kiln_stream_wait_event(&held->stream, held->end));
    TRY(kiln_event_query(held->end, &done));
    TRY(kiln_stream_query(&held->stream, &done));
    TRY(kiln_event_sync(held->end));
    return kiln_event_elapsed(held->start, held->end, &nanoseconds);
}

static kiln_status everything(session *held) {
    TRY(open_and_load(held));
    TRY(copy(held));
    return event(held);
}

static void release(session *held) {
    kiln_host_unregister(held->device, held->registered);
    kiln_host_free(held->device, held->host);
    kiln_memory_free(held->device, held->other);
    kiln_memory_free(held->device, held->memory);
    kiln_event_destroy(held->end);
    kiln_event_destroy(held->start);
    kiln_stream_close(&held->stream);
    kiln_device_close(held->peer);
    kiln_device_close(held->device);
}

typedef kiln_status (*step)(session *held);

static const struct scenario {
    const char *name;
    step prepare, work;
} scenarios[] = {
    {"open", nothing, open_device},        {"load", open_device, load},
    {"launch", open_and_load, launch},     {"copy", open_device, copy},
    {"event", open_device, event},         {"borrow", create_context, borrow},
    {"close", everything, nothing},        {"variable", open_and_load_text, find_variable},
    {"allocate", open_device, allocate},   {"peer", open_device, enable_peer},
    {"tensor map", open_and_load, encode},
};
enum { SCENARIO_COUNT = sizeof scenarios / sizeof *scenarios, CALL_ROOM = 512 };

/* ---- One run, in a child ---- */

/* What the fault-free run of a scenario called, in memory that the child shares. */
typedef struct call_list {
    uint32_t work, total; /* the first are the work's, the rest the release's */
    uint8_t function[CALL_ROOM];
} call_list;

typedef struct fault {
    uint64_t nth; /* 0: none */
    const fault_error *error;
    const char *function;
    bool in_release;
    bool may_pass;
} fault;

/* Prepares, works and releases; the fault, if there is one, is set after the preparation. */
static kiln_status run(const struct scenario *scenario, const fault *planned, call_list *out_calls) {
    session held = {0};
    kiln_status status = scenario->prepare(&held);
    sim.reset();
    if (planned) sim.fault("*", planned->nth, planned->error->number);
    if (status == KILN_OK) status = scenario->work(&held);
    if (out_calls) out_calls->work = (uint32_t)sim.calls("*");
    release(&held);
    if (out_calls) {
        out_calls->total = (uint32_t)sim.calls("*");
        for (uint32_t i = 0; i < out_calls->total && i < CALL_ROOM; i++)
            out_calls->function[i] = (uint8_t)function_number(sim.call(i));
    }
    return status;
}

static int complain(const struct scenario *scenario, const fault *planned, const char *what) {
    fprintf(stderr, "%s: call %d, %s = CUDA_ERROR_%s%s: %s\n  last error: %s\n", scenario->name, (int)planned->nth,
            planned->function, planned->error->name, planned->in_release ? " (releasing)" : "", what,
            kiln_last_error());
    return 1;
}

static int run_fault(const struct scenario *scenario, const fault *planned) {
    char name[64];
    snprintf(name, sizeof name, "CUDA_ERROR_%s", planned->error->name);
    kiln_status status = run(scenario, planned, NULL);
    uint64_t live = sim.live("*");
    bool is_borrowed = scenario->prepare == create_context; /* the context itself is the application's */
    if (sim.faulted() != 1) return complain(scenario, planned, "the fault did not strike");
    if (sim.violations()) return complain(scenario, planned, sim.violation());
    if (!planned->in_release && !planned->may_pass && status == KILN_OK)
        return complain(scenario, planned, "no status came back");
    if (status != KILN_OK && status != KILN_ERROR_CAPTURING && !strstr(kiln_last_error(), name))
        return complain(scenario, planned, "the text does not name the error");
    /* A release that the driver refuses leaves that one thing; everything else must be gone. */
    if (live > (uint64_t)is_borrowed + planned->in_release) return complain(scenario, planned, "something leaked");
    sim.fault(NULL, 0, 0);
    if (run(scenario, NULL, NULL) != KILN_OK) return complain(scenario, planned, "the next run failed");
    if (sim.live("*") > live + is_borrowed) return complain(scenario, planned, "the next run leaked");
    return 0;
}

/* The parent never initialises the driver, so that each child has a fresh one. */
static bool in_child(const struct scenario *scenario, const fault *planned, call_list *out_calls) {
    fflush(NULL);
    pid_t child = fork();
    if (!child) _exit(planned ? run_fault(scenario, planned) : run(scenario, NULL, out_calls) != KILN_OK);
    int status;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* ---- The sweep ---- */

static uint32_t faults, faults_passed;
static bool covered[FUNCTION_COUNT];

static uint32_t calls_before(const call_list *calls, uint32_t index) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < index; i++)
        count += calls->function[i] == calls->function[index];
    return count;
}

static bool is_last_of_its_kind(const call_list *calls, uint32_t index) {
    for (uint32_t i = index + 1; i < calls->total; i++)
        if (calls->function[i] == calls->function[index]) return false;
    return true;
}

/* Faults of the work that need not end it: going back to the thread's own context or capture mode, every second call of
 * its kind; an image that gives way to the next; the end of a kernel's parameters, which is an invalid value, and so is
 * the last attribute to an older driver, which does not know it. */
static bool may_pass(const call_list *calls, uint32_t index, int32_t error) {
    static const int32_t refusals[] = {200, 209, 218, 221, 222, 223};
    const char *function = functions[calls->function[index]].name;
    if (!strcmp(function, "cuCtxSetCurrent") || !strcmp(function, "cuThreadExchangeStreamCaptureMode"))
        return calls_before(calls, index) % 2;
    if (!strcmp(function, "cuFuncGetParamInfo")) return error == ERROR_INVALID_VALUE;
    if (!strcmp(function, "cuDeviceGetAttribute"))
        return error == ERROR_INVALID_VALUE && is_last_of_its_kind(calls, index);
    if (strncmp(function, "cuModule", 8) && strcmp(function, "cuFuncLoad")) return false;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
        if (refusals[i] == error) return true;
    return false;
}

static void sweep_call(const struct scenario *scenario, const call_list *calls, uint32_t index) {
    size_t function = calls->function[index];
    for (const fault_error *error = functions[function].errors; error->name; error++) {
        fault planned = {.nth = index + 1,
                         .error = error,
                         .function = functions[function].name,
                         .in_release = index >= calls->work,
                         .may_pass = may_pass(calls, index, error->number)};
        faults++;
        faults_passed += in_child(scenario, &planned, NULL);
    }
    covered[function] = true;
}

static void sweep(void **state) {
    const struct scenario *scenario = *state;
    call_list *calls = mmap(NULL, sizeof *calls, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(calls, MAP_FAILED);
    assert_true(in_child(scenario, NULL, calls));
    assert_in_range(calls->total, 1, CALL_ROOM);
    uint32_t before = faults, passed_before = faults_passed;
    for (uint32_t i = 0; i < calls->total; i++) {
        assert_in_range(calls->function[i], 0, FUNCTION_COUNT - 1);
        sweep_call(scenario, calls, i);
    }
    munmap(calls, sizeof *calls);
    assert_int_equal(faults_passed - passed_before, faults - before);
}

static void test_every_function_was_made_to_fail(void **state) {
    (void)state;
    unsigned count = 0;
    for (size_t i = 0; i < FUNCTION_COUNT; i++) {
        count += covered[i];
        if (!covered[i]) print_error("%s was never made to fail\n", functions[i].name);
    }
    print_message("# faults %u/%u, functions %u/%u\n", faults_passed, faults, count, (unsigned)FUNCTION_COUNT);
    assert_int_equal(faults_passed, faults);
    assert_int_equal(count, FUNCTION_COUNT);
}

int main(int argc, char **argv) {
    (void)argc;
    setenv("KILN_SIM_PEERS", "1", 0);
    fixture_start(argv, "sm_90,sm_90");
    struct CMUnitTest tests[SCENARIO_COUNT + 1];
    for (size_t i = 0; i < SCENARIO_COUNT; i++)
        tests[i] = (struct CMUnitTest){scenarios[i].name, sweep, NULL, NULL, (void *)(uintptr_t)&scenarios[i]};
    tests[SCENARIO_COUNT] = (struct CMUnitTest)cmocka_unit_test(test_every_function_was_made_to_fail);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
