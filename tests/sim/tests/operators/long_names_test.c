/* A kernel with a mangled C++ name of more than 300 bytes (tests/unit/images/long_name.cu): its images are inspected,
 * verified, loaded and launched on the simulated drivers as any other's. */
#include "tests/assert_ok.h"
#include "tests/sim/core/sim_client.h"
#include <kiln/inspect.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* As the compilers mangled it: N, E, S_, I: nested names, a substitution, template arguments. */
#define NAME                                                                                        \
    "_ZN90a_namespace_with_a_name_that_says_all_that_there_is_to_say_about_its_purpose_and_some_"   \
    "more5scaleINS_84a_policy_that_wraps_another_policy_and_says_so_in_full_for_every_reader_of_a_" \
    "profileINS_84a_policy_that_wraps_no_other_and_is_therefore_the_innermost_of_all_the_policies_" \
    "hereEEEEEvNS_9argumentsE"

#define INCLUDE(symbol, file)                                                                        \
    __asm__(".pushsection .rodata\n.balign 4096\n.global " #symbol "\n" #symbol ":\n.incbin \"" file \
            "\"\n.global " #symbol "_end\n" #symbol "_end:\n.byte 0\n.popsection\n");                \
    extern const uint8_t symbol[], symbol##_end[];
INCLUDE(long_ptx, "tests/unit/images/long_name.ptx")
INCLUDE(long_cubin, "tests/unit/images/long_name.cubin")
INCLUDE(long_hsaco, "tests/unit/images/long_name.hsaco")

typedef struct scale_arguments {
    const float *x;
    float *y;
    uint32_t count, reserved;
} scale_arguments;

static const kiln_kernel_info kernels[] = {{.name = NAME, .arguments_size = sizeof(scale_arguments)}};
static const char *const kernel_names[] = {NAME};

enum { PTX, CUBIN, HSACO, IMAGE_COUNT };
static kiln_image images[IMAGE_COUNT] = {
    [PTX] =
        {.target = "sm_75", .kind = KILN_IMAGE_PTX, .data = long_ptx, .format_version = 63, .driver_version = 10000},
    [CUBIN] = {.target = "sm_90", .kind = KILN_IMAGE_CUBIN, .data = long_cubin},
    [HSACO] = {.target = "gfx942", .kind = KILN_IMAGE_HSACO, .data = long_hsaco, .format_version = 4},
};
static const kiln_part part = {.name = "f32",
                               .images = images,
                               .kernel_names = kernel_names,
                               .image_count = IMAGE_COUNT,
                               .image_size = sizeof *images,
                               .kernel_count = 1};
static const kiln_bundle bundle = {
    .version = KILN_BUNDLE_VERSION, .part_size = sizeof part, .name = "long", .parts = &part, .part_count = 1};

static sim_control cuda, rocm;

static void fill_images(void) {
    const uint8_t *const ends[IMAGE_COUNT] = {long_ptx_end, long_cubin_end, long_hsaco_end};
    for (int i = 0; i < IMAGE_COUNT; i++) {
        images[i].size = (uint64_t)(ends[i] - (const uint8_t *)images[i].data);
        images[i].kernel_size = sizeof *kernels;
        images[i].kernels = kernels;
        kiln_sha256(images[i].data, images[i].size, images[i].sha256);
    }
}

static void every_format_gives_the_whole_name(void **state) {
    (void)state;
    assert_true(strlen(NAME) > 300);
    for (int i = 0; i < IMAGE_COUNT; i++) {
        kiln_image_facts facts;
        kiln_kernel_facts kernel;
        assert_ok(kiln_image_inspect(images[i].data, images[i].size, &facts, &kernel, 1));
        assert_int_equal(facts.kernel_count, 1);
        assert_int_equal(kernel.name_size, strlen(NAME));
        assert_memory_equal(kernel.name, NAME, strlen(NAME));
        assert_int_equal(kernel.info.arguments_size, sizeof(scale_arguments));
        const uint8_t *bytes = images[i].data;
        assert_true((const uint8_t *)kernel.name >= bytes && (const uint8_t *)kernel.name < bytes + images[i].size);
    }
}

/* The last byte counts. */
static void a_table_with_another_name_is_not_verified(void **state) {
    (void)state;
    static const char *const other_names[] = {NAME "x"};
    kiln_part other = part;
    other.kernel_names = other_names;
    for (int i = 0; i < IMAGE_COUNT; i++) {
        assert_ok(kiln_image_verify(&part, &images[i]));
        assert_int_equal(kiln_image_verify(&other, &images[i]), KILN_ERROR_CORRUPT_IMAGE);
        assert_non_null(strstr(kiln_last_error(), "it is not in the file"));
    }
}

/* Loads the image on the device, launches it on four numbers and gives what the driver saw. */
static void scale_four(kiln_backend_id backend, int32_t ordinal, int image, const sim_control *sim, float out_y[4]) {
    const float x[4] = {1, -2, 3.5f, 0};
    kiln_device *device;
    kiln_stream stream;
    const kiln_module *module;
    const kiln_kernel *kernel;
    kiln_image chosen;
    void *memory;
    sim_launch launch;
    assert_ok(kiln_device_open(&(kiln_device_options){.backend = backend, .ordinal = ordinal}, &device));
    assert_ok(kiln_module_get(device, &bundle, "f32", &module));
    assert_ok(kiln_module_get_image(module, &chosen));
    assert_ptr_equal(chosen.data, images[image].data);
    assert_ok(kiln_module_find_kernel(module, NAME, &kernel));
    assert_int_equal(kiln_module_find_kernel(module, NAME "x", &kernel), KILN_ERROR_NOT_FOUND);
    assert_ok(kiln_module_find_kernel(module, NAME, &kernel));

    assert_ok(kiln_stream_open(device, 0, &stream));
    assert_ok(kiln_memory_alloc(device, 2 * sizeof x, &memory));
    assert_ok(kiln_fill(&stream, memory, 0xff, 2 * sizeof x));
    assert_ok(kiln_copy(&stream, memory, x, sizeof x, KILN_COPY_TO_DEVICE));
    const scale_arguments arguments = {.x = memory, .y = (float *)memory + 4, .count = 4};
    sim->reset();
    assert_ok(
        kiln_launch(&stream, kernel, &(kiln_launch_config){.grid = {1}, .block = {64}}, &arguments, sizeof arguments));
    assert_ok(kiln_copy(&stream, out_y, arguments.y, sizeof x, KILN_COPY_TO_HOST));
    assert_ok(kiln_stream_sync(&stream));
    assert_int_equal(sim->launches(), 1);
    assert_true(sim->launch(0, &launch));
    assert_string_equal(launch.kernel, NAME);

    kiln_memory_free(device, memory);
    kiln_stream_close(&stream);
    kiln_device_close(device);
    assert_int_equal(sim->violations(), 0);
    assert_int_equal(sim->live("*"), 0);
}

static void expect_scaled(const float y[4]) {
    static const float wanted[4] = {2, -4, 7, 0};
    assert_memory_equal(y, wanted, sizeof wanted);
}

static void text_runs(void **state) {
    (void)state;
    float y[4];
    scale_four(KILN_BACKEND_CUDA, 0, PTX, &cuda, y);
    expect_scaled(y);
}

/* The simulated driver has no PTX of this cubin to run: its launch is recorded. */
static void a_cubin_is_launched(void **state) {
    (void)state;
    float y[4];
    cuda.configure("KILN_SIM_RECORD", "1");
    scale_four(KILN_BACKEND_CUDA, 1, CUBIN, &cuda, y);
    cuda.configure("KILN_SIM_RECORD", "0");
}

static void a_code_object_runs(void **state) {
    (void)state;
    float y[4];
    scale_four(KILN_BACKEND_ROCM, 0, HSACO, &rocm, y);
    expect_scaled(y);
}

int main(int argc, char **argv) {
    (void)argc;
    setenv("KILN_SIM_RECORD", "0", 1);
    sim_client_start(argv, "sm_75,sm_90,gfx942");
    sim_client_open("libcuda.so.1", &cuda);
    sim_client_open("libhsa-runtime64.so.1", &rocm);
    fill_images();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_format_gives_the_whole_name),
        cmocka_unit_test(a_table_with_another_name_is_not_verified),
        cmocka_unit_test(text_runs),
        cmocka_unit_test(a_cubin_is_launched),
        cmocka_unit_test(a_code_object_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
