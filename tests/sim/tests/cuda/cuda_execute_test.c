/* The simulated CUDA driver as a program meets it through kiln: kernels run, a kernel's fault is the driver's error
 * from then on, cubins are taken only where their PTX is known. */
#include "tests/assert_ok.h"
#include "tests/kernel_bundle.h"
#include "tests/sim/tests/cuda/cuda_driver.h"
#include <kiln/ops.h>
#include <math.h>

static sim_control sim;
static cuda_driver driver;

/* Writes 3 * i + table[i % 4] to out[i]; or, as told by how, goes wrong, or (5) writes an element of a product of
 * matrices: 1 + 1.5 * 2^-24 + seven times 2^-26. */
static const char text[] =
    ".version 6.5\n.target sm_75\n.address_size 64\n"
    ".global .align 4 .u32 table[4] = {10, 20, 30, 40};\n"
    ".visible .entry work(.param .align 8 .b8 args[16]) {\n"
    ".reg .pred %p<3>;\n.reg .b32 %r<8>;\n.reg .b64 %rd<8>;\n"
    "ld.param.u64 %rd1, [args];\nld.param.u32 %r7, [args+8];\n"
    "cvta.to.global.u64 %rd1, %rd1;\nmov.u32 %r1, %tid.x;\n"
    "mul.wide.u32 %rd2, %r1, 4;\nadd.s64 %rd3, %rd1, %rd2;\n"
    "setp.eq.u32 %p1, %r7, 1;\n@%p1 add.s64 %rd3, %rd3, 65536;\n"
    "setp.eq.u32 %p1, %r7, 2;\n@%p1 add.s64 %rd3, %rd3, 2;\n"
    "AGAIN:\nsetp.eq.u32 %p1, %r7, 3;\n@%p1 bra AGAIN;\n"
    "setp.eq.u32 %p1, %r7, 4;\n@%p1 trap;\n"
    "setp.ne.u32 %p1, %r7, 5;\n@%p1 bra PLAIN;\n"
    "and.b32 %r2, %r1, 3;\nsetp.eq.u32 %p2, %r2, 0;\nselp.b32 %r3, 0x08001200, 0x08000800, %p2;\n"
    "mov.b32 %r2, 0x08000800;\nmov.b32 %r4, 0x3f800000;\n"
    "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%r4, _, _, _}, {%r3, %r3}, {%r2}, "
    "{%r4, %r4, %r4, %r4};\n"
    "st.global.u32 [%rd3], %r4;\nret;\nPLAIN:\n"
    "and.b32 %r2, %r1, 3;\nmul.wide.u32 %rd4, %r2, 4;\nmov.u64 %rd5, table;\n"
    "add.s64 %rd5, %rd5, %rd4;\nld.global.u32 %r3, [%rd5];\n"
    "mad.lo.u32 %r4, %r1, 3, %r3;\nst.global.u32 [%rd3], %r4;\nret;\n}\n";

typedef struct work_args {
    void *out;
    uint32_t how;
    uint32_t padding;
} work_args;

static kernel_bundle bundle;

static kiln_device *device_open(void) {
    kiln_device *device;
    kiln_device_options options = {.backend = KILN_BACKEND_CUDA};
    assert_ok(kiln_device_open(&options, &device));
    return device;
}

/* Launches work on 64 threads and reads back what it wrote. */
static kiln_status run(kiln_device *device, uint32_t how, uint32_t *out) {
    kiln_stream stream = {0};
    const kiln_kernel *kernel;
    void *memory = NULL;
    kiln_launch_config config = {.grid = {1}, .block = {64}};
    kiln_status status = kiln_stream_open(device, 0, &stream);
    if (!status) status = kernel_bundle_load(&bundle, device, &kernel);
    if (!status) status = kiln_memory_alloc(device, 256, &memory);
    work_args args = {memory, how, 0};
    if (!status) status = kiln_launch(&stream, kernel, &config, &args, sizeof args);
    if (!status) status = kiln_copy(&stream, out, memory, 256, KILN_COPY_TO_HOST);
    if (!status) status = kiln_stream_sync(&stream);
    kiln_memory_free(device, memory);
    kiln_stream_close(&stream);
    return status;
}

static void a_kernel_runs_with_its_module_s_variables(void **state) {
    (void)state;
    uint32_t out[64];
    kiln_device *device = device_open();
    assert_ok(run(device, 0, out));
    for (uint32_t i = 0; i < 64; i++)
        assert_int_equal(out[i], 3 * i + 10 * (i % 4 + 1));
    kiln_device_close(device);
}

/* What went wrong is said where the driver would say it; the next open of the device works. */
static void a_fault_is_the_driver_s_error_until_the_device_is_opened_again(void **state) {
    (void)state;
    static const struct {
        uint32_t how;
        const char *name;
    } rows[] = {{1, "CUDA_ERROR_ILLEGAL_ADDRESS"},
                {2, "CUDA_ERROR_MISALIGNED_ADDRESS"},
                {3, "CUDA_ERROR_LAUNCH_TIMEOUT"},
                {4, "CUDA_ERROR_LAUNCH_FAILED"}};
    sim.configure("KILN_SIM_BUDGET", "100000");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint32_t out[64];
        kiln_device *device = device_open();
        assert_int_equal(run(device, rows[i].how, out), KILN_ERROR_DEVICE_LOST);
        if (!strstr(kiln_last_error(), rows[i].name)) fail_msg("%s: %s", rows[i].name, kiln_last_error());
        assert_int_equal(run(device, 0, out), KILN_ERROR_DEVICE_LOST);
        kiln_device_close(device);
        device = device_open();
        if (run(device, 0, out) != KILN_OK) fail_msg("after %s: %s", rows[i].name, kiln_last_error());
        kiln_device_close(device);
    }
    sim.configure("KILN_SIM_BUDGET", NULL);
}

/* Until its context goes, the driver answers every call with the error: nothing can be released by itself. */
static void a_context_at_fault_is_closed_without_a_leak(void **state) {
    (void)state;
    enum { TRAPS = 4, FOR_STREAM = 0, FOR_EVENT, FOR_ANOTHER_STREAM, FOR_MEMORY, WAITS };
    const char *lost = "cuda:0 is lost: ";
    for (int how = 0; how < WAITS; how++) {
        kiln_device *device = device_open();
        kiln_stream stream, other;
        kiln_event *event;
        const kiln_kernel *kernel;
        void *memory, *host;
        const kiln_launch_config config = {.grid = {1}, .block = {64}};
        assert_ok(kiln_stream_open(device, 0, &stream));
        assert_ok(kiln_stream_open(device, 0, &other));
        assert_ok(kiln_event_create(device, 0, &event));
        assert_ok(kiln_memory_alloc(device, 256, &memory));
        assert_ok(kiln_host_alloc(device, 256, &host));
        assert_ok(kernel_bundle_load(&bundle, device, &kernel));
        const work_args args = {memory, TRAPS, 0};
        kiln_status status = kiln_launch(&stream, kernel, &config, &args, sizeof args);
        if (!status) status = kiln_event_record(event, &stream);
        if (!status && how == FOR_EVENT) status = kiln_event_sync(event);
        if (!status && how == FOR_ANOTHER_STREAM) status = kiln_stream_wait_event(&other, event);
        if (!status && how == FOR_ANOTHER_STREAM) status = kiln_stream_sync(&other);
        if (!status && how == FOR_MEMORY) status = kiln_copy(&stream, host, memory, 256, KILN_COPY_TO_HOST);
        if (!status) status = kiln_stream_sync(&stream);
        assert_int_equal(status, KILN_ERROR_DEVICE_LOST);
        assert_int_equal(kiln_stream_sync(&stream), KILN_ERROR_DEVICE_LOST);
        if (strncmp(kiln_last_error(), lost, strlen(lost)) ||
            !strstr(kiln_last_error(), "CUDA_ERROR_LAUNCH_FAILED (719)"))
            fail_msg("%s", kiln_last_error());
        kiln_host_free(device, host);
        kiln_memory_free(device, memory);
        kiln_event_destroy(event);
        kiln_stream_close(&other);
        kiln_stream_close(&stream);
        kiln_device_close(device);
        assert_int_equal(sim.live("*"), 0);
        assert_int_equal(sim.violations(), 0);
    }
}

/* The sum of such a product depends on how it is made. */
static void matrices_are_multiplied_as_the_variable_says(void **state) {
    (void)state;
    static const struct {
        const char *mode;
        uint32_t bits;
    } rows[] = {{NULL, 0x3f800000},
                {"exact", 0x3f800002},
                {"sequential", 0x3f800001},
                {"truncating", 0x3f800000},
                {"hopper", 0x3f800000}};
    kiln_device *device = device_open();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint32_t out[64];
        sim.configure("KILN_SIM_MATRIX", rows[i].mode);
        assert_ok(run(device, 5, out));
        for (uint32_t l = 0; l < 64; l++)
            assert_int_equal(out[l], rows[i].bits);
    }
    sim.configure("KILN_SIM_MATRIX", NULL);
    kiln_device_close(device);
}

static kiln_image_kind softmax_image(kiln_device *device) {
    const kiln_bundle *const *bundles;
    size_t count;
    kiln_image image = {0};
    assert_ok(kiln_linked_bundles(&bundles, &count));
    for (size_t i = 0; i < count; i++) {
        const kiln_module *module;
        if (strcmp(bundles[i]->name, "softmax")) continue;
        assert_ok(kiln_module_get(device, bundles[i], "f16", &module));
        assert_ok(kiln_module_get_image(module, &image));
    }
    return image.kind;
}

static void cubins_are_known_or_refused(void **state) {
    (void)state;
    kiln_device *device = device_open();
    assert_int_equal(softmax_image(device), KILN_IMAGE_CUBIN);
    kiln_device_close(device);
    sim.configure("KILN_SIM_NO_CUBIN", "1");
    device = device_open();
    assert_int_equal(softmax_image(device), KILN_IMAGE_PTX);
    kiln_device_close(device);
    sim.configure("KILN_SIM_NO_CUBIN", NULL);
}

/* A kernel of the first device writes into the second one's memory, which is a fault before it may. */
static void a_kernel_reaches_its_peer_s_memory(void **state) {
    (void)state;
    for (int enabled = 0; enabled < 2; enabled++) {
        kiln_device *device = device_open(), *peer;
        kiln_stream stream, of_peer;
        const kiln_kernel *kernel;
        uint32_t *memory, out[64] = {0};
        const kiln_launch_config config = {.grid = {1}, .block = {64}};
        assert_ok(kiln_device_open(&(kiln_device_options){.backend = KILN_BACKEND_CUDA, .ordinal = 1}, &peer));
        assert_ok(kiln_stream_open(device, 0, &stream));
        assert_ok(kiln_stream_open(peer, 0, &of_peer));
        assert_ok(kiln_memory_alloc(peer, sizeof out, (void **)&memory));
        assert_ok(kernel_bundle_load(&bundle, device, &kernel));
        sim.configure("KILN_SIM_PEERS", "1");
        if (enabled) assert_ok(kiln_device_enable_peer(device, peer));
        sim.configure("KILN_SIM_PEERS", NULL);
        const work_args args = {memory, 0, 0};
        kiln_status status = kiln_launch(&stream, kernel, &config, &args, sizeof args);
        if (!status) status = kiln_stream_sync(&stream);
        assert_int_equal(status, enabled ? KILN_OK : KILN_ERROR_DEVICE_LOST);
        if (enabled) {
            assert_ok(kiln_copy(&of_peer, out, memory, sizeof out, KILN_COPY_TO_HOST));
            assert_ok(kiln_stream_sync(&of_peer));
            assert_int_equal(out[63], 3 * 63 + 40);
        }
        kiln_memory_free(peer, memory);
        kiln_stream_close(&of_peer);
        kiln_stream_close(&stream);
        kiln_device_close(peer);
        kiln_device_close(device);
    }
}

static void an_operator_links_and_runs(void **state) {
    (void)state;
    kiln_device *device = device_open();
    kiln_stream stream;
    void *memory;
    float values[4] = {1, 2, 3, 4}, sum = 0;
    assert_ok(kiln_stream_open(device, 0, &stream));
    assert_ok(kiln_memory_alloc(device, sizeof values, &memory));
    assert_ok(kiln_copy(&stream, memory, values, sizeof values, KILN_COPY_TO_DEVICE));
    kiln_softmax_params params = {.y = memory, .x = memory, .rows = 1, .cols = 4};
    assert_ok(kiln_softmax_f32(&stream, &params));
    assert_ok(kiln_copy(&stream, values, memory, sizeof values, KILN_COPY_TO_HOST));
    assert_ok(kiln_stream_sync(&stream));
    for (int i = 0; i < 4; i++)
        sum += values[i];
    assert_true(sum > 0.999999f && sum < 1.000001f && values[3] > 0.6439f && values[3] < 0.6440f);
    kiln_memory_free(device, memory);
    kiln_stream_close(&stream);
    kiln_device_close(device);
}

/* Every operator in one graph, replayed on new contents of the same memory. */
static void operators_are_captured_and_replayed(void **state) {
    (void)state;
    kiln_device *device = device_open();
    kiln_stream stream;
    void *x, *y;
    float in[8], out[8];
    struct CUgraph_st *graph;
    struct CUgraphExec_st *executable;
    kiln__cu_context context;
    expect_cu(CU_OK, driver.cuDevicePrimaryCtxRetain(&context, 0));
    expect_cu(CU_OK, driver.cuCtxSetCurrent(context));
    assert_ok(kiln_stream_open(device, 0, &stream));
    assert_ok(kiln_memory_alloc(device, sizeof in, &x));
    assert_ok(kiln_memory_alloc(device, sizeof in, &y));
    assert_ok(kiln_fill(&stream, x, 0, sizeof in));
    kiln_mul_add_params mul_add = {.y = y, .a = x, .b = x, .c = x, .count = 8};
    kiln_add_gelu_params add_gelu = {.y = y, .x = y, .rows = 1, .cols = 8, .approx = KILN_GELU_TANH};
    kiln_silu_mul_params silu_mul = {.y = y, .gate = y, .up = x, .rows = 1, .cols = 8};
    kiln_softmax_params softmax = {.y = y, .x = y, .rows = 2, .cols = 4};
    for (int pass = 0; pass < 2; pass++) { /* the first loads, the second is captured */
        if (pass) expect_cu(CU_OK, driver.cuStreamBeginCapture(stream.native, 0));
        if (kiln_mul_add_f32(&stream, &mul_add) || kiln_add_gelu_f32(&stream, &add_gelu) ||
            kiln_silu_mul_f32(&stream, &silu_mul) || kiln_softmax_f32(&stream, &softmax))
            fail_msg("%s", kiln_last_error());
    }
    expect_cu(CU_OK, driver.cuStreamEndCapture(stream.native, &graph));
    expect_cu(CU_OK, driver.cuGraphInstantiateWithFlags(&executable, graph, 0));
    for (int round = 0; round < 3; round++) {
        float sums[2] = {0, 0};
        for (int i = 0; i < 8; i++)
            in[i] = (float)(i - round) * 0.25f;
        assert_ok(kiln_copy(&stream, x, in, sizeof in, KILN_COPY_TO_DEVICE));
        expect_cu(CU_OK, driver.cuGraphLaunch(executable, stream.native));
        assert_ok(kiln_copy(&stream, out, y, sizeof out, KILN_COPY_TO_HOST));
        assert_ok(kiln_stream_sync(&stream));
        for (int i = 0; i < 8; i++) {
            double a = in[i], v = a * a + a, t = v + 0.044715 * v * v * v;
            double g = 0.5 * v * (1 + tanh(0.7978845608028654 * t));
            in[i] = (float)(g / (1 + exp(-g)) * a);
            sums[i / 4] += expf(in[i]);
        }
        for (int i = 0; i < 8; i++)
            assert_true(fabsf(out[i] - expf(in[i]) / sums[i / 4]) < 1e-5f);
    }
    expect_cu(CU_OK, driver.cuGraphExecDestroy(executable));
    expect_cu(CU_OK, driver.cuGraphDestroy(graph));
    kiln_memory_free(device, x);
    kiln_memory_free(device, y);
    kiln_stream_close(&stream);
    kiln_device_close(device);
    expect_cu(CU_OK, driver.cuCtxSetCurrent(NULL));
    expect_cu(CU_OK, driver.cuDevicePrimaryCtxRelease(0));
}

int main(int argc, char **argv) {
    (void)argc;
    cuda_driver_start(argv, "sm_90,sm_90", &sim, &driver);
    kernel_bundle_make(
        &bundle, (kiln_kernel_info){.name = "work", .arguments_size = sizeof(work_args)},
        (kiln_image){
            .target = "sm_75", .data = text, .size = sizeof text - 1, .kind = KILN_IMAGE_PTX, .format_version = 65});
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kernel_runs_with_its_module_s_variables),
        cmocka_unit_test(a_fault_is_the_driver_s_error_until_the_device_is_opened_again),
        cmocka_unit_test(a_context_at_fault_is_closed_without_a_leak),
        cmocka_unit_test(matrices_are_multiplied_as_the_variable_says),
        cmocka_unit_test(cubins_are_known_or_refused),
        cmocka_unit_test(a_kernel_reaches_its_peer_s_memory),
        cmocka_unit_test(an_operator_links_and_runs),
        cmocka_unit_test(operators_are_captured_and_replayed),
    };
    return cmocka_run_group_tests_name("cuda_execute", tests, NULL, NULL);
}
