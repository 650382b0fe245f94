/* Every call that a scenario makes to the HSA runtime fails in turn, with each error that the runtime's manual names
 * for it (tests/sim/rocm/errors.def). After each fault: a status with a text came back or the scenario did not need the
 * call, nothing leaked, no rule of the runtime's was broken, and the whole scenario succeeds the next time. */
#include "loader/rocm/rocm_abi.h"
#include "tests/unit/rocm_sim.h"

enum {
#define KILN_ROCM_ERROR(name, number, status) NUMBER_##name = (number),
#include "loader/rocm/rocm_errors.def"
#undef KILN_ROCM_ERROR
};

static const struct {
    const char *function;
    int32_t error;
} errors[] = {
#define SIM_HSA_ERROR(function, error) {#function, NUMBER_##error},
#include "tests/sim/rocm/errors.def"
#undef SIM_HSA_ERROR
};
enum { ERROR_COUNT = sizeof errors / sizeof *errors };

static bool covered[ERROR_COUNT];
static uint32_t injected, survived;

#define STEP(call)                                   \
    do {                                             \
        kiln_status step_status = (call);            \
        if (status == KILN_OK) status = step_status; \
        if (status != KILN_OK) goto end;             \
    } while (0)

typedef struct resources {
    kiln_device *device, *peer;
    kiln_stream stream, other;
    kiln_event *start, *end;
    void *memory, *host;
    kiln__hsa_queue *queue;
} resources;

static void release(resources *r) {
    uint32_t (*destroy)(kiln__hsa_queue *);
    kiln_event_destroy(r->start);
    kiln_event_destroy(r->end);
    /* Steps before the one that failed may be in flight: a stream waits for them, and then its memory can go. */
    kiln_stream_close(&r->stream);
    kiln_stream_close(&r->other);
    if (r->device) kiln_memory_free(r->device, r->memory);
    if (r->device) kiln_host_free(r->device, r->host);
    if (r->queue) {
        *(void **)&destroy = dlsym(sim_library, "hsa_queue_destroy");
        destroy(r->queue);
    }
    kiln_device_close(r->peer);
    kiln_device_close(r->device);
}

static kiln_status open_device(resources *r) {
    const kiln_device_options options = {.backend = KILN_BACKEND_ROCM};
    return kiln_device_open(&options, &r->device);
}

static kiln_status launch_scale(resources *r, kiln_stream *stream) {
    const kiln_module *module;
    const kiln_kernel *kernel;
    const scale_arguments arguments = {.count = 1};
    const kiln_launch_config config = {.grid = {2}, .block = {64}};
    kiln_status status = kiln_module_get(r->device, &rocm_bundle, "f32", &module);
    if (status == KILN_OK) status = kiln_module_find_kernel(module, "scale", &kernel);
    if (status == KILN_OK) status = kiln_launch(stream, kernel, &config, &arguments, sizeof arguments);
    return status;
}

static kiln_status scenario_open(resources *r) {
    int32_t count;
    kiln_status status = kiln_device_count(KILN_BACKEND_ROCM, &count);
    return status == KILN_OK ? open_device(r) : status;
}

static kiln_status scenario_load(resources *r) {
    const kiln_module *module;
    kiln_status status = open_device(r);
    return status == KILN_OK ? kiln_module_get(r->device, &rocm_bundle, "f32", &module) : status;
}

static kiln_status scenario_launch(resources *r) {
    kiln_status status = open_device(r);
    if (status == KILN_OK) status = kiln_stream_open(r->device, 0, &r->stream);
    if (status == KILN_OK) status = launch_scale(r, &r->stream);
    if (status == KILN_OK) status = kiln_stream_sync(&r->stream);
    return status;
}

static kiln_status scenario_copy(resources *r) {
    enum { SMALL = 1000, FILLED = 9000 };
    static char pageable[100000]; /* more than goes through the stream's buffer */
    static char registered[SMALL];
    kiln_status status = KILN_OK;
    STEP(open_device(r));
    STEP(kiln_stream_open(r->device, 0, &r->stream));
    STEP(kiln_memory_alloc(r->device, sizeof pageable, &r->memory));
    STEP(kiln_host_alloc(r->device, SMALL, &r->host));
    STEP(kiln_copy(&r->stream, r->memory, r->host, SMALL, KILN_COPY_TO_DEVICE));
    STEP(kiln_copy(&r->stream, r->memory, pageable, SMALL, KILN_COPY_TO_DEVICE));
    STEP(kiln_fill(&r->stream, (char *)r->memory + 1, 3, FILLED));
    STEP(kiln_host_register(r->device, registered, sizeof registered, NULL));
    kiln_host_unregister(r->device, registered);
    STEP(kiln_copy(&r->stream, pageable, r->memory, sizeof pageable, KILN_COPY_TO_HOST));
    STEP(kiln_stream_sync(&r->stream));
end:
    return status;
}

static kiln_status scenario_order(resources *r) {
    kiln_status status = KILN_OK;
    STEP(open_device(r));
    STEP(kiln_device_open(&(kiln_device_options){.backend = KILN_BACKEND_ROCM, .ordinal = 1}, &r->peer));
    STEP(kiln_device_enable_peer(r->peer, r->device));
    STEP(kiln_stream_open(r->device, 0, &r->stream));
    STEP(kiln_memory_alloc_async(&r->stream, 64, &r->memory));
    STEP(kiln_memory_free_async(&r->stream, r->memory));
    r->memory = NULL;
    STEP(kiln_memory_alloc_async(&r->stream, 1024, &r->memory));
end:
    return status;
}

static kiln_status scenario_event(resources *r) {
    double nanoseconds;
    kiln_status status = KILN_OK;
    STEP(open_device(r));
    STEP(kiln_stream_open(r->device, KILN_STREAM_TIMING, &r->stream));
    STEP(kiln_stream_open(r->device, 0, &r->other));
    STEP(kiln_event_create(r->device, 0, &r->start));
    STEP(kiln_event_create(r->device, 0, &r->end));
    STEP(kiln_event_record(r->start, &r->stream));
    STEP(kiln_stream_wait_event(&r->other, r->start));
    STEP(kiln_event_record(r->end, &r->stream));
    STEP(kiln_stream_sync(&r->other));
    STEP(kiln_event_sync(r->end));
    STEP(kiln_event_elapsed(r->start, r->end, &nanoseconds));
end:
    return status;
}

static kiln_status scenario_borrow(resources *r) {
    kiln__hsa_agent agent = {0x2000};
    uint32_t (*create)(kiln__hsa_agent, uint32_t, uint32_t, kiln__hsa_queue_callback, void *, uint32_t, uint32_t,
                       kiln__hsa_queue **);
    kiln_status status = open_device(r);
    if (status != KILN_OK) return status;
    *(void **)&create = dlsym(sim_library, "hsa_queue_create");
    if (create(agent, 64, 0, NULL, NULL, UINT32_MAX, UINT32_MAX, &r->queue))
        return KILN_OK; /* the application's call */
    status = kiln_stream_borrow(r->device, r->queue, &r->stream);
    if (status == KILN_OK) status = launch_scale(r, &r->stream);
    return status;
}

/* Teardown while work is in flight: nothing in it can fail, whatever the runtime says. */
static kiln_status scenario_close(resources *r) {
    kiln_status status = scenario_event(r);
    if (status == KILN_OK) status = kiln_memory_alloc(r->device, 64, &r->memory);
    if (status == KILN_OK) status = launch_scale(r, &r->stream);
    if (status == KILN_OK) status = launch_scale(r, &r->other);
    return status;
}

/* Teardown of a lost device. */
static kiln_status scenario_lost(resources *r) {
    const kiln_status status = scenario_close(r);
    kiln_device_mark_lost(r->device, 0x1009);
    return status;
}

typedef kiln_status (*scenario)(resources *r);

static kiln_status run(scenario body) {
    resources r = {0};
    const kiln_status status = body(&r);
    release(&r);
    return status;
}

/* Calls of a function that one run of a scenario makes. */
static uint64_t calls_of(scenario body, const char *function) {
    sim.reset();
    assert_ok(run(body));
    return sim.calls(function);
}

static void inject(scenario body, size_t error, uint64_t nth) {
    sim.reset();
    sim.fault(errors[error].function, nth, errors[error].error);
    const kiln_status status = run(body);
    if (!sim.faulted()) { /* how many signals are made depends on how far the device has come: this time fewer */
        assert_memory_equal(errors[error].function, "hsa_signal_", strlen("hsa_signal_"));
        assert_ok(status);
        return;
    }
    injected++;
    covered[error] = true;
    if (status != KILN_OK && !kiln_last_error()[0]) fail_msg("%s: no error text", errors[error].function);
    if (sim.violations()) fail_msg("%s %d: %s", errors[error].function, errors[error].error, sim.violation());
    if (sim.live("*")) fail_msg("%s call %d: leaks %d objects", errors[error].function, (int)nth, (int)sim.live("*"));
    sim.reset();
    assert_ok(run(body));
    survived++;
}

static void sweep(scenario body) {
    uint64_t calls = 0;
    for (size_t i = 0; i < ERROR_COUNT; i++) {
        if (!i || strcmp(errors[i].function, errors[i - 1].function) != 0) calls = calls_of(body, errors[i].function);
        for (uint64_t nth = 1; nth <= calls; nth++)
            inject(body, i, nth);
    }
}

/* The process's only start of the runtime comes first, so that it can fail here. */
static void start(void **state) {
    (void)state;
    for (size_t i = 0; i < ERROR_COUNT; i++) {
        if (strcmp(errors[i].function, "hsa_init") != 0) continue;
        kiln_device *device;
        const kiln_device_options options = {.backend = KILN_BACKEND_ROCM};
        sim.reset();
        sim.fault("hsa_init", 1, errors[i].error);
        assert_error(kiln_device_open(&options, &device), KILN_ERROR_NO_DRIVER, "no device");
        assert_int_equal(sim.faulted(), 1);
        injected++;
        survived++;
        covered[i] = true;
    }
    for (size_t i = 0; i < ERROR_COUNT; i++) {
        if (strcmp(errors[i].function, "hsa_amd_register_system_event_handler") != 0) continue;
        kiln_device *device;
        const kiln_device_options options = {.backend = KILN_BACKEND_ROCM, .take_faults = 1};
        sim.reset();
        sim.fault(errors[i].function, 1, errors[i].error);
        assert_error(kiln_device_open(&options, &device), KILN_ERROR_DRIVER, errors[i].function);
        assert_int_equal(sim.faulted(), 1);
        injected++;
        survived++;
        covered[i] = true;
    }
}

#define SCENARIO_TEST(name)                      \
    static void faults_of_##name(void **state) { \
        (void)state;                             \
        sweep(scenario_##name);                  \
    }
SCENARIO_TEST(open)
SCENARIO_TEST(load)
SCENARIO_TEST(launch)
SCENARIO_TEST(copy)
SCENARIO_TEST(order)
SCENARIO_TEST(event)
SCENARIO_TEST(borrow)
SCENARIO_TEST(close)
SCENARIO_TEST(lost)

/* Functions of errors.def that were made to fail, and all of them. Rows of one function stand together. */
static void every_function_failed(void **state) {
    (void)state;
    int functions = 0, failed = 0;
    for (size_t i = 0; i < ERROR_COUNT;) {
        bool any = false;
        size_t next = i;
        for (; next < ERROR_COUNT && !strcmp(errors[next].function, errors[i].function); next++)
            any |= covered[next];
        if (!any) print_message("%s never failed\n", errors[i].function);
        functions++;
        failed += any;
        i = next;
    }
    print_message("faults %u/%u, functions %d/%d\n", survived, injected, failed, functions);
    assert_int_equal(survived, injected);
    assert_int_equal(failed, functions);
}

int main(int argc, char **argv) {
    (void)argc;
    rocm_sim_start(argv, "gfx90a,gfx942");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(start),
        cmocka_unit_test(faults_of_open),
        cmocka_unit_test(faults_of_load),
        cmocka_unit_test(faults_of_launch),
        cmocka_unit_test(faults_of_copy),
        cmocka_unit_test(faults_of_order),
        cmocka_unit_test(faults_of_event),
        cmocka_unit_test(faults_of_borrow),
        cmocka_unit_test(faults_of_close),
        cmocka_unit_test(faults_of_lost),
        cmocka_unit_test(every_function_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
