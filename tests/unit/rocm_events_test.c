/* The runtime's system events, page faults above all: kiln's handler beside the application's own, registered before or
 * after it. A process has one runtime and a handler stays registered, so each case is a process of its own. */
#include "loader/rocm/hsa_abi.h"
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

static void in_a_process(void (*body)(void)) {
    int status = -1;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        body();
        exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
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

static kiln_device *open_gpu(int32_t ordinal) {
    kiln_device *device;
    const kiln_device_options options = {.backend = KILN_BACKEND_ROCM, .ordinal = ordinal};
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

/* Both are told, whoever came first and whatever the application answers, and the process goes on. */
static void tell_both(kiln_device *faulty, kiln_device *other) {
    CHECK(sim.calls("hsa_amd_register_system_event_handler") == 2);
    for (answer = 0; answer <= NOT_TAKEN; answer += NOT_TAKEN) {
        told_of = 0;
        sim_rocm.page_fault(GFX1030);
        CHECK(told_of == GPU_AGENT + GFX1030);
        CHECK(is_lost(faulty) && !is_lost(other));
        CHECK(!sim.violations());
    }
    kiln_device_close(faulty);
    kiln_device_close(other);
}

static void application_first(void) {
    sim_rocm.start();
    register_handler();
    tell_both(open_gpu(GFX1030), open_gpu(GFX90A));
}

static void kiln_first(void) {
    kiln_device *faulty = open_gpu(GFX1030), *other = open_gpu(GFX90A);
    register_handler();
    tell_both(faulty, other);
}

/* A runtime that keeps one handler: kiln works without, and the application may tell it. */
static void one_handler_only(void) {
    sim_rocm.start();
    register_handler();
    sim.fault("hsa_amd_register_system_event_handler", 1, NOT_TAKEN);
    kiln_device *device = open_gpu(GFX90A);
    CHECK(sim.faulted() == 1);
    sim_rocm.page_fault(GFX90A);
    CHECK(told_of == GPU_AGENT && !is_lost(device) && !sim.violations());
    kiln_device_mark_lost(device, MEMORY_FAULT);
    CHECK(is_lost(device) && strstr(kiln_last_error(), "lost: HSA_STATUS_ERROR_MEMORY_FAULT (0x2b)"));
    kiln_device_close(device);
}

/* A fault of a device that kiln has not open, or not any more, ends the process as it would without kiln: nobody else
 * would hear of it. */
static void strangers_faults_are_not_taken(void) {
    kiln_device *device = open_gpu(GFX90A);
    sim_rocm.page_fault(GFX1030);
    CHECK(sim.violations() == 1 && strstr(sim.violation(), "the runtime would abort the process"));
    CHECK(!is_lost(device));
    kiln_device_close(device);
    sim_rocm.page_fault(GFX90A);
    CHECK(sim.violations() == 2);
}

#define PROCESS_TEST(name)                  \
    static void test_##name(void **state) { \
        (void)state;                        \
        in_a_process(name);                 \
    }
PROCESS_TEST(application_first)
PROCESS_TEST(kiln_first)
PROCESS_TEST(one_handler_only)
PROCESS_TEST(strangers_faults_are_not_taken)

int main(int argc, char **argv) {
    (void)argc;
    rocm_sim_start(argv, "gfx90a,gfx1030");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_application_first),
        cmocka_unit_test(test_kiln_first),
        cmocka_unit_test(test_one_handler_only),
        cmocka_unit_test(test_strangers_faults_are_not_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
