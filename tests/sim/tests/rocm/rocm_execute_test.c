/* The simulated HSA driver as a program meets it through kiln: queues and copies go on while a kernel runs. */
#include "loader/rocm/rocm_abi.h"
#include "tests/assert_ok.h"
#include "tests/kernel_bundle.h"
#include "tests/sim/core/sim_client.h"
#include "tests/sim/tests/amdgcn/amdgcn_harness.h"
#include "tests/sim/tests/common/programs_host.h"
#include <kiln/kiln.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static sim_control sim;

/* What an application with a queue of its own calls. */
static struct {
    kiln__hsa_status (*queue_create)(kiln__hsa_agent, uint32_t, uint32_t, kiln__hsa_queue_callback, void *, uint32_t,
                                     uint32_t, kiln__hsa_queue **);
    kiln__hsa_status (*queue_destroy)(kiln__hsa_queue *);
} driver;

typedef struct meet_args {
    uint32_t *flag, *out;
    uint32_t raises, padding;
} meet_args;

static kernel_bundle bundle;

/* A device with the kernel loaded, a stream that works and another, and two words, both zero. */
typedef struct world {
    kiln_device *device;
    kiln_stream works, other;
    const kiln_kernel *kernel;
    uint32_t *flag, *out;
} world;

static void world_make(world *w) {
    const kiln_device_options options = {.backend = KILN_BACKEND_ROCM, .take_faults = 1};
    void *memory;
    assert_ok(kiln_device_open(&options, &w->device));
    assert_ok(kiln_stream_open(w->device, 0, &w->works));
    assert_ok(kiln_stream_open(w->device, 0, &w->other));
    assert_ok(kernel_bundle_load(&bundle, w->device, &w->kernel));
    assert_ok(kiln_memory_alloc(w->device, 256, &memory));
    assert_ok(kiln_fill(&w->works, memory, 0, 256));
    assert_ok(kiln_stream_sync(&w->works));
    w->flag = memory;
    w->out = w->flag + 32;
}

static void launch(const world *w, kiln_stream *stream, uint32_t raises) {
    const kiln_launch_config config = {.grid = {1}, .block = {1}};
    const meet_args args = {w->flag, w->out, raises, 0};
    assert_ok(kiln_launch(stream, w->kernel, &config, &args, sizeof args));
}

static void world_check(world *w, uint32_t expected) {
    uint32_t out = 0;
    assert_ok(kiln_copy(&w->works, &out, w->out, sizeof out, KILN_COPY_TO_HOST));
    assert_ok(kiln_stream_sync(&w->works));
    assert_ok(kiln_stream_sync(&w->other));
    assert_int_equal(out, expected);
    kiln_memory_free(w->device, w->flag);
    kiln_stream_close(&w->works);
    kiln_stream_close(&w->other);
    kiln_device_close(w->device);
}

/* Kernels that meet others, or copies, in memory do so by the GPU's atomic accesses, which no ThreadSanitizer sees. */
static void skip_with_thread_sanitizer(void) {
#ifdef __SANITIZE_THREAD__
    skip();
#endif
}

static void a_kernel_waits_for_one_of_another_queue(void **state) {
    (void)state;
    world w;
    skip_with_thread_sanitizer();
    world_make(&w);
    launch(&w, &w.works, 0);
    launch(&w, &w.other, 7);
    world_check(&w, 7);
}

static void a_kernel_waits_for_a_copy(void **state) {
    (void)state;
    const uint32_t raised = 9;
    world w;
    skip_with_thread_sanitizer();
    world_make(&w);
    launch(&w, &w.works, 0);
    assert_ok(kiln_copy(&w.other, w.flag, &raised, sizeof raised, KILN_COPY_TO_DEVICE));
    assert_ok(kiln_stream_sync(&w.other));
    world_check(&w, 9);
}

/* As ROCm sets the hardware up; with KILN_SIM_UNALIGNED=0 it is a fault. */
static void a_store_at_any_address(void **state) {
    (void)state;
    for (int faults = 0; faults < 2; faults++) {
        world w;
        world_make(&w);
        if (faults) setenv("KILN_SIM_UNALIGNED", "0", 1);
        uint32_t *flag = w.flag, out = 0;
        w.flag = (void *)((uint8_t *)flag + 1);
        launch(&w, &w.works, 0x12345678);
        if (faults) {
            assert_int_equal(kiln_stream_sync(&w.works), KILN_ERROR_DEVICE_LOST);
            assert_non_null(strstr(sim.violation(), "misaligned"));
        } else {
            assert_ok(kiln_copy(&w.works, &out, flag, sizeof out, KILN_COPY_TO_HOST));
            assert_ok(kiln_stream_sync(&w.works));
            assert_int_equal(out, 0x34567800);
        }
        unsetenv("KILN_SIM_UNALIGNED");
        kiln_memory_free(w.device, flag);
        kiln_stream_close(&w.works);
        kiln_stream_close(&w.other);
        kiln_device_close(w.device);
    }
}

static void freed_memory_is_not_for_kernels(void **state) {
    (void)state;
    world w;
    void *freed;
    world_make(&w);
    assert_ok(kiln_memory_alloc(w.device, 256, &freed));
    kiln_memory_free(w.device, freed);
    uint32_t *flag = w.flag;
    w.flag = freed;
    launch(&w, &w.works, 7);
    assert_int_equal(kiln_stream_sync(&w.works), KILN_ERROR_DEVICE_LOST);
    assert_non_null(strstr(sim.violation(), "access outside of every live allocation: store of 4 bytes"));
    kiln_memory_free(w.device, flag);
    kiln_stream_close(&w.works);
    kiln_stream_close(&w.other);
    kiln_device_close(w.device);
}

static _Atomic uint32_t told;

static void on_error(kiln__hsa_status status, kiln__hsa_queue *queue, void *data) {
    (void)queue;
    (void)data;
    told = status;
}

/* The runtime tells its error callback alone, and other queues go on: kiln knows of nothing until it is told. */
static void a_kernel_at_fault_on_a_borrowed_queue(void **state) {
    (void)state;
    enum { EXCEPTION = 0x1016 };
    world w;
    kiln_stream borrowed;
    kiln__hsa_queue *queue;
    world_make(&w);
    assert_int_equal(
        driver.queue_create((kiln__hsa_agent){0x2000}, 64, 0, on_error, NULL, UINT32_MAX, UINT32_MAX, &queue), 0);
    assert_ok(kiln_stream_borrow(w.device, queue, &borrowed));
    setenv("KILN_SIM_UNALIGNED", "0", 1);
    uint32_t *flag = w.flag;
    w.flag = (void *)((uint8_t *)flag + 1);
    launch(&w, &borrowed, 7);
    while (!told)
        assert_ok(kiln_stream_sync(&w.other));
    assert_ok(kiln_stream_sync(&w.other));
    unsetenv("KILN_SIM_UNALIGNED");
    assert_int_equal(told, EXCEPTION);
    kiln_device_mark_lost(w.device, told);
    assert_int_equal(kiln_stream_sync(&borrowed), KILN_ERROR_DEVICE_LOST);
    assert_string_equal(kiln_last_error(), "rocm:0 is lost: HSA_STATUS_ERROR_EXCEPTION (0x1016)");
    kiln_memory_free(w.device, flag);
    kiln_stream_close(&borrowed);
    kiln_stream_close(&w.works);
    kiln_stream_close(&w.other);
    kiln_device_close(w.device);
    assert_int_equal(driver.queue_destroy(queue), 0);
    assert_int_equal(sim.live("*"), 0);
}

int main(int argc, char **argv) {
    (void)argc;
    size_t size;
    setenv("KILN_SIM_RECORD", "0", 1);
    sim_client_start(argv, "gfx942");
    if (!amdgcn_harness_ready()) return 0;
    void *library = sim_client_open("libhsa-runtime64.so.1", &sim);
    *(void **)&driver.queue_create = dlsym(library, "hsa_queue_create");
    *(void **)&driver.queue_destroy = dlsym(library, "hsa_queue_destroy");
    char *bytes = programs_read("tests/sim/tests/programs/meet.gfx942.hsaco", &size);
    kernel_bundle_make(
        &bundle, (kiln_kernel_info){.name = "meet", .arguments_size = sizeof(meet_args)},
        (kiln_image){.target = "gfx942", .data = bytes, .size = size, .kind = KILN_IMAGE_HSACO, .format_version = 5});
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kernel_waits_for_one_of_another_queue),
        cmocka_unit_test(a_kernel_waits_for_a_copy),
        cmocka_unit_test(a_store_at_any_address),
        cmocka_unit_test(a_kernel_at_fault_on_a_borrowed_queue),
        cmocka_unit_test(freed_memory_is_not_for_kernels), /* last: the runtime tells of one page fault */
    };
    int failed = cmocka_run_group_tests_name("rocm_execute", tests, NULL, NULL);
    free(bytes);
    return failed;
}
