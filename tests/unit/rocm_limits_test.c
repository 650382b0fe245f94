/* What a kernel may ask of the ROCm backend: 32 KiB of arguments, a stack of known size, and not too many threads. The
 * images are what the compiler makes of tests/unit/images/limits.hip. */
#include "loader/rocm/rocm_backend.h"
#include "tests/kernel_bundle.h"
#include "tests/unit/rocm_sim.h"
#include <kiln/ops.h>

ROCM_INCLUDE(limits, "gfx1030", 5)

enum { ARGUMENTS_MAX = 512 };

static kernel_bundle bundles[2];

/* Loads one kernel of the image, whose bytes are data. */
static kiln_status load_into(kernel_bundle *bundle, kiln_device *device, const char *name, const uint8_t *data,
                             const kiln_kernel **out_kernel) {
    kernel_bundle_make(bundle, (kiln_kernel_info){.name = name},
                       (kiln_image){.target = "gfx1030",
                                    .kind = KILN_IMAGE_HSACO,
                                    .format_version = 5,
                                    .data = data,
                                    .size = (size_t)(rocm_limits_end - rocm_limits)});
    return kernel_bundle_load(bundle, device, out_kernel);
}

static kiln_status load(kiln_device *device, const char *name, const uint8_t *data, const kiln_kernel **out_kernel) {
    return load_into(&bundles[0], device, name, data, out_kernel);
}

/* Slot by slot through the ring: nothing of one launch's arguments reaches another's. */
static void arguments_of_512_bytes_arrive_whole(void **state) {
    (void)state;
    enum { LAUNCHES = 200 };
    kiln_device *device = rocm_open(0);
    kiln_stream stream = rocm_stream(device, 0);
    const kiln_kernel *kernel = NULL;
    const kiln_launch_config config = {.grid = {1}, .block = {64}};
    uint32_t arguments[ARGUMENTS_MAX / 4];
    sim_launch launch;
    assert_ok(load(device, "whole", rocm_limits, &kernel));
    for (uint32_t i = 0; i < LAUNCHES; i++) {
        for (uint32_t word = 0; word < ARGUMENTS_MAX / 4; word++)
            arguments[word] = i << 16 | word;
        assert_ok(kiln_launch(&stream, kernel, &config, arguments, sizeof arguments));
    }
    assert_ok(kiln_stream_sync(&stream));
    for (uint32_t i = 0; i < LAUNCHES; i++) {
        assert_true(sim.launch(i, &launch));
        assert_int_equal(launch.arguments_size, ARGUMENTS_MAX);
        for (uint32_t word = 0; word < ARGUMENTS_MAX / 4; word++)
            arguments[word] = i << 16 | word;
        assert_memory_equal(launch.arguments, arguments, sizeof arguments);
    }
    assert_error(kiln_launch(&stream, kernel, &config, arguments, ARGUMENTS_MAX - 1), KILN_ERROR_INVALID_ARGUMENT,
                 "arguments_size is 511");
    kiln_stream_close(&stream);
    kiln_device_close(device);
    rocm_assert_clean();
}

/* Two slots of the ring, which an odd number before them keeps from its parts' ends: so some begin the next part. The
 * processor is slower than the host, which comes round more than three times. */
static void larger_arguments_take_more_of_the_ring(void **state) {
    (void)state;
    enum { LAUNCHES = 2 * KILN__ROCM_RING_SLOTS, WIDE = 513, KEPT = 256 };
    sim.configure("KILN_SIM_DELAY", "20");
    kiln_device *device = rocm_open(0);
    kiln_stream stream = rocm_stream(device, 0);
    const kiln_kernel *kernels[2] = {NULL};
    const kiln_launch_config config = {.grid = {1}, .block = {64}};
    const size_t sizes[2] = {ARGUMENTS_MAX, WIDE};
    uint8_t arguments[WIDE];
    assert_ok(load_into(&bundles[0], device, "whole", rocm_limits, &kernels[0]));
    assert_ok(load_into(&bundles[1], device, "wide", rocm_limits, &kernels[1]));
    for (uint32_t i = 0; i < LAUNCHES; i++) {
        memset(arguments, (uint8_t)i, sizeof arguments);
        assert_ok(kiln_launch(&stream, kernels[i % 5 != 0], &config, arguments, sizes[i % 5 != 0]));
    }
    assert_ok(kiln_stream_sync(&stream));
    assert_int_equal(sim.launches(), LAUNCHES);
    for (uint32_t i = 0; i < KEPT; i++) {
        sim_launch launch;
        assert_true(sim.launch(i, &launch));
        memset(arguments, (uint8_t)i, sizeof arguments);
        assert_string_equal(launch.kernel, i % 5 ? "wide" : "whole");
        assert_memory_equal(launch.arguments, arguments, sizes[i % 5 != 0]);
    }
    kiln_stream_close(&stream);
    kiln_device_close(device);
    rocm_assert_clean();
}

static void a_kernel_without_arguments_is_launched_with_null(void **state) {
    (void)state;
    kiln_device *device = rocm_open(0);
    kiln_stream stream = rocm_stream(device, 0);
    const kiln_kernel *kernel = NULL;
    const kiln_launch_config config = {.grid = {1}, .block = {64}};
    sim_launch launch;
    assert_ok(load(device, "bare", rocm_limits, &kernel));
    assert_ok(kiln_launch(&stream, kernel, &config, NULL, 0));
    assert_ok(kiln_stream_sync(&stream));
    assert_true(sim.launch(0, &launch));
    assert_string_equal(launch.kernel, "bare");
    assert_int_equal(launch.arguments_size, 0);
    kiln_stream_close(&stream);
    kiln_device_close(device);
    rocm_assert_clean();
}

static void assert_refused(const char *name, const uint8_t *data, const char *text) {
    kiln_device *device = rocm_open(0);
    const kiln_kernel *kernel;
    assert_error(load(device, name, data, &kernel), KILN_ERROR_UNSUPPORTED, text);
    assert_int_equal(sim.live("executable"), 0);
    kiln_device_close(device);
    rocm_assert_clean();
}

/* wide, whose metadata says one more than there is room for. */
static void more_than_32_kib_are_refused_at_load(void **state) {
    (void)state;
    static const char key[] = ".kernarg_segment_size\xcd\x02\x04"; /* 516, as msgpack has it */
    const size_t size = (size_t)(rocm_limits_end - rocm_limits);
    uint8_t *bytes = malloc(size);
    assert_non_null(bytes);
    memcpy(bytes, rocm_limits, size);
    uint8_t *found = memmem(bytes, size, key, sizeof key - 1);
    assert_non_null(found);
    found[sizeof key - 3] = 0x80;
    found[sizeof key - 2] = 0x01;
    assert_refused("wide", bytes, "kernel wide takes 32769 bytes of arguments: at most 32768");
    free(bytes);
}

/* Said by the metadata, and by the kernel's descriptor alone. */
static void a_stack_of_unknown_size_is_refused_at_load(void **state) {
    (void)state;
    static const char key[] = ".uses_dynamic_stack\xc3"; /* true, as msgpack has it */
    const size_t size = (size_t)(rocm_limits_end - rocm_limits);
    assert_refused("recursive", rocm_limits,
                   "kernel recursive has a stack of unknown size (recursion or calls by pointer)");
    uint8_t *bytes = malloc(size);
    assert_non_null(bytes);
    memcpy(bytes, rocm_limits, size);
    uint8_t *found = memmem(bytes, size, key, sizeof key - 1);
    assert_non_null(found);
    found[sizeof key - 2] = 0xc2;
    assert_refused("recursive", bytes, "kernel recursive has a stack of unknown size");
    free(bytes);
}

/* 2^24 queries, of which no sequence has more than one: few blocks attend, and 2^32 threads would join their parts. The
 * addresses are never looked at. */
static void an_operators_second_launch_is_checked_before_its_first(void **state) {
    (void)state;
    kiln_device *device = rocm_open(0);
    kiln_stream stream = rocm_stream(device, 0);
    void *const any = (void *)0x10000;
    kiln_mha_params params = {
        .out = any,
        .q = any,
        .k = any,
        .v = any,
        .cu_seqlens_q = any,
        .tokens = 1 << 24,
        .max_seqlen_q = 1,
        .kv_tokens = 1024,
        .batch = 1,
        .heads = 1,
        .kv_heads = 1,
        .head_dim = 1,
    };
    assert_ok(kiln_mha_f32_workspace_size(&stream, &params, &params.workspace_size));
    assert_true(params.workspace_size > 0);
    params.workspace = any;
    assert_error(kiln_mha_f32(&stream, &params), KILN_ERROR_INVALID_ARGUMENT,
                 "mha_f32: its sizes are too large for one launch");
    assert_ok(kiln_stream_sync(&stream));
    assert_int_equal(sim.launches(), 0);
    kiln_stream_close(&stream);
    kiln_device_close(device);
    rocm_assert_clean();
}

int main(int argc, char **argv) {
    (void)argc;
    rocm_sim_start(argv, "gfx1030");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(arguments_of_512_bytes_arrive_whole, rocm_reset),
        cmocka_unit_test_setup(a_kernel_without_arguments_is_launched_with_null, rocm_reset),
        cmocka_unit_test_setup(larger_arguments_take_more_of_the_ring, rocm_reset),
        cmocka_unit_test_setup(more_than_32_kib_are_refused_at_load, rocm_reset),
        cmocka_unit_test_setup(an_operators_second_launch_is_checked_before_its_first, rocm_reset),
        cmocka_unit_test_setup(a_stack_of_unknown_size_is_refused_at_load, rocm_reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
