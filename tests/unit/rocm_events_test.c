/* The runtime's system events, page faults above all: kiln's handler beside the application's own, registered before or
 * after it. A process has one runtime and a handler stays registered, so each case is a process of its own. */
#include "loader/rocm/rocm_abi.h"
#include "tests/unit/rocm_sim.h"
#include <sys/wait.h>
#include <unistd.h>

enum { GFX90A, GFX1030 };
enum { GPU_AGENT = 0x2000 }; /* the first; the handles are the simulated runtime's */
enum { NOT_TAKEN = 0x1000 }; /* HSA_STATUS_ERROR: not my event */
enum { MEMORY_FAULT = 43 };  /* HSA_STATUS_ERROR_MEMORY_FAULT */

/* In a child cmocka's assertions would go on with the parent's tests. */
#define CHECK(condition)                                                                                    \
    do {                                                                                                    \
        if (!(condition)) {                                                                                 \
            fprintf(stderr, "%s:%d: not so: %s (%s)\n", __FILE__, __LINE__, #condition, kiln_last_error()); \
            exit(1);                                                                                        \
        }                                                                                                   \
    } while (0)

static int run_process(void (*body)(void)) {
    int status = -1;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        body();
        exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

/* ---- The application ---- */

static uint64_t told_of; /* the agent of the last event; 0: none */
static kiln__hsa_status answer;

static kiln__hsa_status on_event(const kiln__hsa_event *event, void *data) {
    CHECK(data == &told_of);
    told_of = event->agent.handle;
    return answer;
}

static void register_handler(void) {
    kiln__hsa_status (*enroll)(kiln__hsa_event_callback, void *);
    *(void **)&enroll = dlsym(sim_library, "hsa_amd_register_system_event_handler");
    CHECK(enroll(on_event, &told_of) == 0);
}

/* ---- kiln ---- */

static kiln_device *open_gpu(int32_t ordinal, int32_t take_faults) {
    kiln_device *device;
    const kiln_device_options options = {.backend = KILN_BACKEND_ROCM, .ordinal = ordinal, .take_faults = take_faults};
    CHECK(kiln_device_open(&options, &device) == KILN_OK);
    return device;
}

static bool is_lost(kiln_device *device) {
    void *memory;
    const kiln_status status = kiln_memory_alloc(device, 64, &memory);
    CHECK(status == KILN_OK || status == KILN_ERROR_DEVICE_LOST);
    kiln_memory_free(device, status == KILN_OK ? memory : NULL);
    return status == KILN_ERROR_DEVICE_LOST;
}

/* Both are told, whoever came first. The runtime tells of one fault, so the other device is lost with the faulty one
 * and none can be opened any more. */
static void tell_both(kiln_device *faulty, kiln_device *other) {
    CHECK(sim.calls("hsa_amd_register_system_event_handler") == 2);
    answer = NOT_TAKEN;
    sim_rocm.page_fault(GFX1030);
    CHECK(told_of == GPU_AGENT + GFX1030);
    CHECK(is_lost(faulty) &&
          strstr(kiln_last_error(), "rocm:1 is lost: a page fault at 0xdead0000 (HSA's reasons 0x1)"));
    CHECK(is_lost(other) && strstr(kiln_last_error(), "rocm:0 is lost: a fault of another GPU"));
    kiln_device_close(faulty);
    kiln_device_close(other);
    told_of = 0;
    sim_rocm.page_fault(GFX90A);
    CHECK(!told_of && !sim.violations());
    const kiln_device_options options = {.backend = KILN_BACKEND_ROCM};
    CHECK(kiln_device_open(&options, &other) == KILN_ERROR_DEVICE_LOST);
    CHECK(strstr(kiln_last_error(), "tells of no second one") && !sim.live("*"));
}

static void application_first(void) {
    sim_rocm.start();
    register_handler();
    tell_both(open_gpu(GFX1030, 1), open_gpu(GFX90A, 1));
}

static void kiln_first(void) {
    kiln_device *faulty = open_gpu(GFX1030, 1), *other = open_gpu(GFX90A, 0);
    register_handler();
    tell_both(faulty, other);
}

/* Each wait ends, without a word from the application. */
static void a_page_fault_needs_no_telling(void) {
    kiln_device *device = open_gpu(GFX90A, 1);
    kiln_stream stream;
    CHECK(kiln_stream_open(device, 0, &stream) == KILN_OK);
    sim_rocm.hold(1);
    const kiln_kernel *scale = rocm_kernel(device, "scale");
    const kiln_launch_config config = {.grid = {1}, .block = {64}};
    const scale_arguments arguments = {.count = 1};
    CHECK(kiln_launch(&stream, scale, &config, &arguments, sizeof arguments) == KILN_OK);
    sim_rocm.page_fault(GFX90A);
    CHECK(kiln_stream_sync(&stream) == KILN_ERROR_DEVICE_LOST && strstr(kiln_last_error(), "a page fault"));
    kiln_stream_close(&stream);
    kiln_device_close(device);
    CHECK(!sim.violations() && !sim.live("*"));
}

/* kiln has no handler then, and the application may tell it. */
static void by_default_the_application_alone_is_told(void) {
    kiln_device *device = open_gpu(GFX90A, 0);
    CHECK(!sim.calls("hsa_amd_register_system_event_handler"));
    register_handler();
    sim_rocm.page_fault(GFX90A);
    CHECK(told_of == GPU_AGENT && !is_lost(device) && !sim.violations());
    kiln_device_mark_lost(device, MEMORY_FAULT);
    CHECK(is_lost(device) && strstr(kiln_last_error(), "lost: HSA_STATUS_ERROR_MEMORY_FAULT (0x2b)"));
    kiln_device_close(device);
}

/* A runtime that keeps one handler and has the application's. */
static void a_handler_that_is_refused_is_an_error(void) {
    kiln_device *device;
    const kiln_device_options options = {.backend = KILN_BACKEND_ROCM, .take_faults = 1};
    sim.fault("hsa_amd_register_system_event_handler", 1, NOT_TAKEN);
    CHECK(kiln_device_open(&options, &device) == KILN_ERROR_DRIVER);
    CHECK(strstr(kiln_last_error(), "hsa_amd_register_system_event_handler: HSA_STATUS_ERROR"));
    device = open_gpu(GFX90A, 1);
    sim_rocm.page_fault(GFX90A);
    CHECK(is_lost(device));
    kiln_device_close(device);
}

/* ---- The end of the process: faults that are nobody's, as they end it without kiln ---- */

static void default_fault(void) {
    open_gpu(GFX90A, 0);
    sim_rocm.page_fault(GFX90A);
}

static void fault_of_a_device_without_the_option(void) {
    open_gpu(GFX90A, 1);
    open_gpu(GFX1030, 0);
    sim_rocm.page_fault(GFX1030);
}

static void fault_of_a_closed_device(void) {
    kiln_device_close(open_gpu(GFX90A, 1));
    sim_rocm.page_fault(GFX90A);
}

static void strangers_faults_are_not_taken(void **state) {
    (void)state;
    void (*const bodies[])(void) = {default_fault, fault_of_a_device_without_the_option, fault_of_a_closed_device};
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
        assert_true(WIFSIGNALED(run_process(bodies[i])));
}

/* ---- Tests ---- */

#define PROCESS_TEST(name)                      \
    static void test_##name(void **state) {     \
        (void)state;                            \
        assert_int_equal(run_process(name), 0); \
    }
PROCESS_TEST(application_first)
PROCESS_TEST(kiln_first)
PROCESS_TEST(a_page_fault_needs_no_telling)
PROCESS_TEST(by_default_the_application_alone_is_told)
PROCESS_TEST(a_handler_that_is_refused_is_an_error)

int main(int argc, char **argv) {
    (void)argc;
    rocm_sim_start(argv, "gfx90a,gfx1030");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_application_first),
        cmocka_unit_test(test_kiln_first),
        cmocka_unit_test(test_a_page_fault_needs_no_telling),
        cmocka_unit_test(test_by_default_the_application_alone_is_told),
        cmocka_unit_test(test_a_handler_that_is_refused_is_an_error),
        cmocka_unit_test(strangers_faults_are_not_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
