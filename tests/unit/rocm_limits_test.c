/* What a kernel may ask of the ROCm backend: 512 bytes of arguments and a stack of known size. The images are what the
 * compiler makes of tests/unit/images/limits.hip. */
#include "tests/kernel_bundle.h"
#include "tests/unit/rocm_sim.h"

ROCM_INCLUDE(limits, "gfx1030", 5)

enum { ARGUMENTS_MAX = 512 };

/* Loads one kernel of the image, whose bytes are data. */
static kiln_status load(kiln_device *device, const char *name, const uint8_t *data, const kiln_kernel **out_kernel) {
    static kernel_bundle bundle;
    kernel_bundle_make(&bundle, (kiln_kernel_info){.name = name},
                       (kiln_image){.target = "gfx1030",
                                    .kind = KILN_IMAGE_HSACO,
                                    .format_version = 5,
                                    .data = data,
                                    .size = (size_t)(rocm_limits_end - rocm_limits)});
    return kernel_bundle_load(&bundle, device, out_kernel);
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

static void more_than_512_bytes_are_refused_at_load(void **state) {
    (void)state;
    assert_refused("wide", rocm_limits, "kernel wide takes 516 bytes of arguments: at most 512");
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

int main(int argc, char **argv) {
    (void)argc;
    rocm_sim_start(argv, "gfx1030");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(arguments_of_512_bytes_arrive_whole, rocm_reset),
        cmocka_unit_test_setup(a_kernel_without_arguments_is_launched_with_null, rocm_reset),
        cmocka_unit_test_setup(more_than_512_bytes_are_refused_at_load, rocm_reset),
        cmocka_unit_test_setup(a_stack_of_unknown_size_is_refused_at_load, rocm_reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
