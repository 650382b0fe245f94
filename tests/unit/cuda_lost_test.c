/* What a CUDA device was lost by: every error after which its context is of no more use, met by each call that hands
 * work over or waits. Later calls repeat it without asking the driver again, and everything can be released. */
#include "tests/unit/cuda_fixture.h"
#include <stdio.h>

enum { BYTES = 64 };

typedef struct world {
    kiln_device *device;
    kiln_stream stream;
    kiln_event *event;
    const kiln_kernel *kernel;
    void *memory, *host;
} world;

static world world_make(void) {
    world made = {.device = fixture_open(0)};
    made.kernel = fixture_kernel(made.device, "scale");
    assert_ok(kiln_stream_open(made.device, 0, &made.stream));
    assert_ok(kiln_event_create(made.device, 0, &made.event));
    assert_ok(kiln_event_record(made.event, &made.stream));
    assert_ok(kiln_memory_alloc(made.device, BYTES, &made.memory));
    assert_ok(kiln_host_alloc(made.device, BYTES, &made.host));
    return made;
}

static void world_free(world *w) {
    kiln_host_free(w->device, w->host);
    kiln_memory_free(w->device, w->memory);
    kiln_event_destroy(w->event);
    kiln_stream_close(&w->stream);
    kiln_device_close(w->device);
    assert_int_equal(sim.live("*"), 0);
}

/* ---- Calls ---- */

static kiln_status sync_stream(world *w) {
    return kiln_stream_sync(&w->stream);
}
static kiln_status sync_event(world *w) {
    return kiln_event_sync(w->event);
}
static kiln_status launch(world *w) {
    const kiln_launch_config config = {.grid = {1}, .block = {64}};
    const scale_arguments arguments = {0};
    return kiln_launch(&w->stream, w->kernel, &config, &arguments, sizeof arguments);
}
static kiln_status copy(world *w) {
    return kiln_copy(&w->stream, w->host, w->memory, BYTES, KILN_COPY_TO_HOST);
}
static kiln_status fill(world *w) {
    return kiln_fill(&w->stream, w->memory, 1, BYTES);
}
static kiln_status allocate(world *w) {
    void *memory;
    return kiln_memory_alloc(w->device, BYTES, &memory);
}
static kiln_status allocate_on_host(world *w) {
    void *memory;
    return kiln_host_alloc(w->device, BYTES, &memory);
}
static kiln_status record(world *w) {
    return kiln_event_record(w->event, &w->stream);
}
static kiln_status wait_event(world *w) {
    return kiln_stream_wait_event(&w->stream, w->event);
}
static kiln_status elapsed(world *w) {
    double nanoseconds;
    return kiln_event_elapsed(w->event, w->event, &nanoseconds);
}
static kiln_status open_stream(world *w) {
    kiln_stream stream;
    return kiln_stream_open(w->device, 0, &stream);
}
static kiln_status create_event(world *w) {
    kiln_event *event;
    return kiln_event_create(w->device, 0, &event);
}
static kiln_status attributes(world *w) {
    kiln_kernel_attributes found;
    return kiln_kernel_get_attributes(w->kernel, &found);
}
static kiln_status open_again(world *w) {
    (void)w;
    kiln_device *device;
    return kiln_device_open(&(kiln_device_options){.backend = KILN_BACKEND_CUDA}, &device);
}

static const struct {
    kiln_status (*make)(world *w);
    const char *exported; /* the driver's function that it meets an error at; NULL: it would find none there */
    const char *name;     /* by which it is told */
} calls[] = {
    {sync_stream, "cuStreamSynchronize", "cuStreamSynchronize"},
    {sync_event, "cuEventSynchronize", "cuEventSynchronize"},
    {launch, "cuLaunchKernel", "cuLaunchKernel"},
    {copy, "cuMemcpyDtoHAsync_v2", "cuMemcpyDtoHAsync"},
    {fill, "cuMemsetD8Async", "cuMemsetD8Async"},
    {allocate, "cuMemAlloc_v2", "cuMemAlloc"},
    {allocate_on_host, "cuMemHostAlloc", "cuMemHostAlloc"},
    {record, "cuEventRecord", "cuEventRecord"},
    {wait_event, "cuStreamWaitEvent", "cuStreamWaitEvent"},
    {elapsed, "cuEventElapsedTime", "cuEventElapsedTime"},
    {open_stream, "cuStreamCreate", "cuStreamCreate"},
    {create_event, "cuEventCreate", "cuEventCreate"},
    {attributes, "cuFuncGetAttribute", "cuFuncGetAttribute"},
    {open_again, NULL, NULL},
};
enum { CALLS = sizeof calls / sizeof *calls };

static const struct {
    const char *name;
    int32_t number;
    kiln_status status;
} errors[] = {
#define KILN_CUDA_ERROR(name, number, status) {"CUDA_ERROR_" #name, number, KILN_##status},
#include "loader/cuda/cuda_errors.def"
#undef KILN_CUDA_ERROR
};

/* ---- Tests ---- */

static void assert_repeated(world *w, const char *text) {
    char lost[256];
    snprintf(lost, sizeof lost, "cuda:0 is lost: %s", text);
    const uint64_t before = sim.calls("cuCtxGetCurrent");
    for (size_t i = 0; i < CALLS; i++) {
        assert_status(calls[i].make(w), KILN_ERROR_DEVICE_LOST);
        assert_string_equal(kiln_last_error(), lost);
    }
    assert_int_equal(sim.calls("cuCtxGetCurrent"), before);
}

static void test_each_call_names_the_error_and_everything_closes(void **state) {
    (void)state;
    int losses = 0;
    for (size_t e = 0; e < sizeof errors / sizeof *errors; e++) {
        if (errors[e].status != KILN_ERROR_DEVICE_LOST) continue;
        losses++;
        for (size_t i = 0; i < CALLS && calls[i].exported; i++) {
            char text[128];
            world w = world_make();
            snprintf(text, sizeof text, "%s: %s (%d)", calls[i].name, errors[e].name, errors[e].number);
            sim.fault(calls[i].exported, 1, errors[e].number);
            assert_status(calls[i].make(&w), KILN_ERROR_DEVICE_LOST);
            assert_told(text);
            assert_repeated(&w, text);
            world_free(&w);
        }
    }
    assert_in_range(losses, 10, 30);
}

static void test_an_application_may_tell_of_an_error(void **state) {
    (void)state;
    world w = world_make();
    kiln_device_mark_lost(w.device, 0);
    assert_ok(kiln_stream_sync(&w.stream));
    kiln_device_mark_lost(w.device, 709);
    kiln_device_mark_lost(w.device, 700); /* the first counts */
    assert_repeated(&w, "CUDA_ERROR_CONTEXT_IS_DESTROYED (709)");
    world_free(&w);
}

int main(int argc, char **argv) {
    (void)argc;
    fixture_start(argv, "sm_90");
    const struct CMUnitTest tests[] = {
        fixture_test(test_each_call_names_the_error_and_everything_closes),
        fixture_test(test_an_application_may_tell_of_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
