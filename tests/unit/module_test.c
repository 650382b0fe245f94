/* Modules, kernels, launches, memory and events through the CPU backend: what the loader itself promises. */
#include "tests/kernel_bundle.h"
#include "tests/unit/cpu_bundle.h"
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/documented.h"

static int bare_calls;

typedef struct fixture {
    kiln_device *device;
    kiln_stream stream;
    const kiln_module *module;
    const kiln_kernel *set, *add;
} fixture;

static int setup(void **state) {
    static fixture shared;
    fixture *f = &shared;
    kiln_device_options options = {.backend = KILN_BACKEND_CPU, .threads = 2};
    memset(f, 0, sizeof *f);
    if (kiln_device_open(&options, &f->device) != KILN_OK) return -1;
    if (kiln_stream_open(f->device, 0, &f->stream) != KILN_OK) return -1;
    if (kiln_module_get(f->device, &cpu_bundle, "f32", &f->module) != KILN_OK) return -1;
    if (kiln_module_find_kernel(f->module, "set", &f->set) != KILN_OK) return -1;
    if (kiln_module_find_kernel(f->module, "add", &f->add) != KILN_OK) return -1;
    *state = f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    kiln_stream_close(&f->stream);
    kiln_device_close(f->device);
    return 0;
}

static void a_part_is_loaded_once(void **state) {
    fixture *f = *state;
    const kiln_module *again;
    assert_int_equal(kiln_module_get(f->device, &cpu_bundle, "f32", &again), KILN_OK);
    assert_ptr_equal(again, f->module);
    kiln_image image;
    assert_int_equal(kiln_module_get_image(again, &image), KILN_OK);
    assert_string_equal(image.target, CPU_BUNDLE_LEVEL);
}

static void no_image_gives_every_reason_each_time(void **state) {
    fixture *f = *state;
    for (int i = 0; i < 2; i++) {
        const kiln_module *module = f->module;
        assert_int_equal(kiln_module_get(f->device, &cpu_bundle, "gpu only", &module), KILN_ERROR_NO_IMAGE);
        assert_null(module);
        assert_non_null(strstr(kiln_last_error(), "user gpu only: no image for cpu:0"));
        assert_non_null(strstr(kiln_last_error(), "sm_90a cubin: is for another backend, device is on cpu"));
    }
}

static void a_part_without_images_is_told(void **state) {
    fixture *f = *state;
    static const kiln_part part = {.name = "bare", .image_size = sizeof(kiln_image)};
    static const kiln_bundle bundle = {
        .version = KILN_BUNDLE_VERSION, .part_size = sizeof part, .name = "none", .parts = &part, .part_count = 1};
    const kiln_module *module;
    assert_int_equal(kiln_module_get(f->device, &bundle, "bare", &module), KILN_ERROR_NO_IMAGE);
    assert_non_null(strstr(kiln_last_error(), "none bare: no image for cpu:0"));
    assert_non_null(strstr(kiln_last_error(), "the part has no images"));
}

static void names_that_are_not_there_are_listed(void **state) {
    fixture *f = *state;
    const kiln_module *module;
    const kiln_kernel *kernel;
    assert_int_equal(kiln_module_get(f->device, &cpu_bundle, "f8", &module), KILN_ERROR_NOT_FOUND);
    assert_non_null(strstr(kiln_last_error(), "\"f8\"; it has f32 gpu only"));
    assert_int_equal(kiln_module_find_kernel(f->module, "sub", &kernel), KILN_ERROR_NOT_FOUND);
    assert_non_null(strstr(kiln_last_error(), "\"sub\"; it has set add"));
    assert_int_equal(kiln_module_get(f->device, NULL, "f32", &module), KILN_ERROR_INVALID_ARGUMENT);
    assert_int_equal(kiln_module_get(f->device, &cpu_bundle, NULL, &module), KILN_ERROR_INVALID_ARGUMENT);
    assert_int_equal(kiln_module_get(f->device, &cpu_bundle, "f32", NULL), KILN_ERROR_INVALID_ARGUMENT);
    assert_int_equal(kiln_module_get(NULL, &cpu_bundle, "f32", &module), KILN_ERROR_INVALID_ARGUMENT);
    kiln_bundle foreign = cpu_bundle;
    foreign.version = 77;
    assert_int_equal(kiln_module_get(f->device, &foreign, "f32", &module), KILN_ERROR_INVALID_ARGUMENT);
}

static void a_launch_covers_its_grid(void **state) {
    fixture *f = *state;
    uint32_t words[1000] = {0};
    cpu_arguments arguments = {words, 7, 1000};
    kiln_launch_config config = {.grid = {10, 20, 5}};
    assert_int_equal(kiln_launch(&f->stream, f->set, &config, &arguments, sizeof arguments), KILN_OK);
    arguments.value = 1;
    assert_int_equal(kiln_launch(&f->stream, f->add, &config, &arguments, sizeof arguments), KILN_OK);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(words[i], 8);
}

static void a_wrong_launch_says_what_is_wrong(void **state) {
    fixture *f = *state;
    uint32_t word = 0;
    cpu_arguments arguments = {&word, 7, 1};
    kiln_launch_config config = {.grid = {1}};
    kiln_stream closed = {0};
    assert_int_equal(kiln_launch(NULL, f->set, &config, &arguments, sizeof arguments), KILN_ERROR_INVALID_ARGUMENT);
    assert_int_equal(kiln_launch(&closed, f->set, &config, &arguments, sizeof arguments), KILN_ERROR_INVALID_ARGUMENT);
    assert_int_equal(kiln_launch(&f->stream, NULL, &config, &arguments, sizeof arguments), KILN_ERROR_INVALID_ARGUMENT);
    assert_int_equal(kiln_launch(&f->stream, f->set, NULL, &arguments, sizeof arguments), KILN_ERROR_INVALID_ARGUMENT);
    assert_int_equal(kiln_launch(&f->stream, f->set, &config, NULL, sizeof arguments), KILN_ERROR_INVALID_ARGUMENT);
    assert_int_equal(kiln_launch(&f->stream, f->set, &config, &arguments, 12), KILN_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(kiln_last_error(), "arguments_size is 12, kernel set takes 16 bytes"));
    assert_int_equal(word, 0);
}

/* Parameters (uint32_t *out, uint32_t a, uint32_t b, uint32_t c) take 20 bytes, and their struct 24. */
typedef struct several {
    uint32_t *out;
    uint32_t a, b, c;
} several;

static void sum_several(const void *bytes, const kiln_cpu_span *span) {
    const several *arguments = bytes;
    *arguments->out += (uint32_t)(span->end - span->begin) * (arguments->a + arguments->b + arguments->c);
}

static void several_parameters_are_a_struct_with_its_padding_or_without(void **state) {
    fixture *f = *state;
    static const struct {
        size_t size;
        kiln_status status;
    } rows[] = {{20, KILN_OK},
                {sizeof(several), KILN_OK},
                {12, KILN_ERROR_INVALID_ARGUMENT},
                {19, KILN_ERROR_INVALID_ARGUMENT},
                {21, KILN_ERROR_INVALID_ARGUMENT},
                {28, KILN_ERROR_INVALID_ARGUMENT},
                {40, KILN_ERROR_INVALID_ARGUMENT}};
    kernel_bundle made;
    const kiln_kernel *kernel;
    kernel_bundle_make(&made,
                       (kiln_kernel_info){.name = "several",
                                          .arguments_size = offsetof(several, c) + sizeof(uint32_t),
                                          .function = sum_several},
                       (kiln_image){.target = CPU_BUNDLE_LEVEL, .kind = KILN_IMAGE_CPU});
    assert_int_equal(kernel_bundle_load(&made, f->device, &kernel), KILN_OK);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint32_t out = 1;
        const several arguments[2] = {{&out, 100, 20, 3}, {&out, 0, 0, 0}};
        const kiln_launch_config config = {.grid = {1}};
        assert_int_equal(kiln_launch(&f->stream, kernel, &config, arguments, rows[i].size), rows[i].status);
        assert_int_equal(kiln_stream_sync(&f->stream), KILN_OK);
        assert_int_equal(out, rows[i].status == KILN_OK ? 124 : 1);
    }
}

/* The function gets a place, though there is nothing there. */
static void count_if_placed(const void *bytes, const kiln_cpu_span *span) {
    (void)span;
    bare_calls += bytes ? 1 : 100;
}

static void a_kernel_without_arguments_is_launched_with_null(void **state) {
    fixture *f = *state;
    static const kiln_kernel_info info = {.name = "bare", .function = count_if_placed};
    static const char *const name = "bare";
    static const kiln_image image = {
        .target = CPU_BUNDLE_LEVEL, .kind = KILN_IMAGE_CPU, .kernel_size = sizeof info, .kernels = &info};
    static const kiln_part part = {.name = "f32",
                                   .images = &image,
                                   .kernel_names = &name,
                                   .image_count = 1,
                                   .image_size = sizeof image,
                                   .kernel_count = 1};
    static const kiln_bundle bundle = {
        .version = KILN_BUNDLE_VERSION, .part_size = sizeof part, .name = "bare", .parts = &part, .part_count = 1};
    const kiln_launch_config config = {.grid = {1}};
    const kiln_module *module;
    const kiln_kernel *bare;
    assert_int_equal(kiln_module_get(f->device, &bundle, "f32", &module), KILN_OK);
    assert_int_equal(kiln_module_find_kernel(module, "bare", &bare), KILN_OK);
    assert_int_equal(kiln_launch(&f->stream, bare, &config, NULL, 0), KILN_OK);
    assert_int_equal(kiln_launch(&f->stream, bare, &config, NULL, 8), KILN_ERROR_INVALID_ARGUMENT);
    assert_int_equal(bare_calls, 1);
}

static void *get_module(void *device) {
    const kiln_module *module = NULL;
    return kiln_module_get(device, &cpu_bundle, "f32", &module) == KILN_OK ? (void *)module : NULL;
}

static void threads_that_load_at_once_get_one_module(void **state) {
    (void)state;
    kiln_device_options options = {.backend = KILN_BACKEND_CPU};
    kiln_device *device;
    assert_int_equal(kiln_device_open(&options, &device), KILN_OK);
    pthread_t threads[8];
    for (int i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, get_module, device), 0);
    void *first = NULL;
    for (int i = 0; i < 8; i++) {
        void *module;
        pthread_join(threads[i], &module);
        assert_non_null(module);
        if (!first) first = module;
        assert_ptr_equal(module, first);
    }
    kiln_device_close(device);
}

static void memory_is_copied_and_filled(void **state) {
    fixture *f = *state;
    unsigned char there[64], back[64];
    void *memory, *pinned, *nothing = &there;
    assert_int_equal(kiln_memory_alloc(f->device, 0, &nothing), KILN_OK);
    assert_null(nothing);
    assert_int_equal(kiln_memory_alloc(f->device, 64, &memory), KILN_OK);
    assert_int_equal((uintptr_t)memory % 256, 0);
    assert_int_equal(kiln_host_alloc(f->device, 64, &pinned), KILN_OK);
    memset(there, 0x5a, sizeof there);
    assert_int_equal(kiln_copy(&f->stream, memory, there, 64, KILN_COPY_TO_DEVICE), KILN_OK);
    assert_int_equal(kiln_fill(&f->stream, (char *)memory + 3, 0x11, 5), KILN_OK);
    assert_int_equal(kiln_copy(&f->stream, pinned, memory, 64, KILN_COPY_ON_DEVICE), KILN_OK);
    assert_int_equal(kiln_copy(&f->stream, back, pinned, 64, KILN_COPY_TO_HOST), KILN_OK);
    memset(there + 3, 0x11, 5);
    assert_memory_equal(there, back, 64);
    assert_int_equal(kiln_copy(&f->stream, memory, (char *)memory + 1, 8, KILN_COPY_ON_DEVICE),
                     KILN_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(kiln_last_error(), "overlap"));
    assert_int_equal(kiln_copy(&f->stream, memory, NULL, 8, KILN_COPY_TO_DEVICE), KILN_ERROR_INVALID_ARGUMENT);
    assert_int_equal(kiln_copy(&f->stream, NULL, NULL, 0, KILN_COPY_TO_DEVICE), KILN_OK);
    assert_int_equal(kiln_copy(&f->stream, memory, there, SIZE_MAX, KILN_COPY_TO_DEVICE), KILN_ERROR_INVALID_ARGUMENT);
    assert_int_equal(kiln_copy(&f->stream, memory, there, 8, (kiln_copy_direction)5), KILN_ERROR_INVALID_ARGUMENT);
    assert_int_equal(kiln_fill(&f->stream, NULL, 1, 8), KILN_ERROR_INVALID_ARGUMENT);
    assert_int_equal(kiln_fill(&f->stream, NULL, 1, 0), KILN_OK);
    assert_int_equal(kiln_fill(&f->stream, memory, 1, SIZE_MAX), KILN_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(kiln_last_error(), "beyond memory's end"));
    assert_int_equal(kiln_memory_alloc(f->device, SIZE_MAX - 4096, &nothing), KILN_ERROR_OUT_OF_MEMORY);
    assert_null(nothing);
    kiln_memory_free(f->device, memory);
    kiln_host_free(f->device, pinned);
    kiln_memory_free(f->device, NULL);
    kiln_memory_free(NULL, NULL);
}

static void events_happen_in_order(void **state) {
    fixture *f = *state;
    kiln_event *start, *end;
    double nanoseconds = -1;
    assert_int_equal(kiln_event_create(f->device, 0, &start), KILN_OK);
    assert_int_equal(kiln_event_create(f->device, 0, &end), KILN_OK);
    assert_int_equal(kiln_event_elapsed(start, end, &nanoseconds), KILN_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(kiln_last_error(), "never recorded"));
    assert_int_equal(kiln_event_elapsed(NULL, end, &nanoseconds), KILN_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(kiln_last_error(), "start is NULL"));
    assert_int_equal(kiln_event_elapsed(start, NULL, &nanoseconds), KILN_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(kiln_last_error(), "end is NULL"));
    assert_int_equal(kiln_event_sync(start), KILN_OK);
    assert_int_equal(kiln_stream_wait_event(&f->stream, start), KILN_OK);
    assert_int_equal(kiln_event_record(start, &f->stream), KILN_OK);
    assert_int_equal(kiln_event_record(end, &f->stream), KILN_OK);
    assert_int_equal(kiln_event_sync(end), KILN_OK);
    assert_int_equal(kiln_stream_wait_event(&f->stream, end), KILN_OK);
    assert_int_equal(kiln_event_elapsed(start, end, &nanoseconds), KILN_OK);
    assert_true(nanoseconds >= 0);
    kiln_event_destroy(start);
    kiln_event_destroy(end);
    kiln_event_destroy(NULL);
}

static void collect(void *user, const kiln_preload_result *result) {
    char *text = user;
    strcat(text, result->part);
    strcat(text, ": ");
    strcat(text, result->status == KILN_OK ? result->text : kiln_status_text(result->status));
    strcat(text, "\n");
}

/* A callback whose own call fails. */
static void ask_wrongly(void *user, const kiln_preload_result *result) {
    (void)result;
    assert_int_equal(kiln_device_get_info(NULL, user), KILN_ERROR_INVALID_ARGUMENT);
}

static void a_check_tells_of_its_first_failure(void **state) {
    fixture *f = *state;
    static kiln_bundle other;
    other = cpu_bundle;
    other.name = "other";
    const kiln_bundle *bundles[] = {&cpu_bundle, &other};
    kiln_device_info info;
    assert_int_equal(kiln_preload(&f->device, 1, bundles, 2, ask_wrongly, &info), KILN_ERROR_NO_IMAGE);
    const char *first = cpu_bundle.name;
    if (strncmp(kiln_last_error(), first, strlen(first)) != 0) fail_msg("not of %s: %s", first, kiln_last_error());
}

static void a_check_tries_everything_and_reports_each(void **state) {
    fixture *f = *state;
    char text[512] = "";
    const kiln_bundle *bundles[] = {&cpu_bundle};
    assert_int_equal(kiln_preload(&f->device, 1, bundles, 1, collect, text), KILN_ERROR_NO_IMAGE);
    assert_string_equal(text, "f32: " CPU_BUNDLE_LEVEL " cpu\ngpu only: no image for this device\n");
    assert_int_equal(kiln_preload(NULL, 0, NULL, 0, NULL, NULL), KILN_OK);
    assert_int_equal(kiln_preload(NULL, 1, bundles, 1, NULL, NULL), KILN_ERROR_INVALID_ARGUMENT);
    bundles[0] = NULL;
    assert_int_equal(kiln_preload(&f->device, 1, bundles, 1, NULL, NULL), KILN_ERROR_INVALID_ARGUMENT);
}

static void attributes_and_occupancy_are_told(void **state) {
    fixture *f = *state;
    kiln_kernel_attributes attributes;
    uint32_t groups;
    assert_int_equal(kiln_kernel_get_attributes(f->set, &attributes), KILN_OK);
    assert_int_equal(attributes.arguments_size, sizeof(cpu_arguments));
    assert_int_equal(kiln_kernel_get_occupancy(f->set, 1, 0, &groups), KILN_OK);
    assert_true(groups >= 1);
    assert_int_equal(kiln_kernel_get_occupancy(f->set, 0, 0, &groups), KILN_ERROR_INVALID_ARGUMENT);
    assert_int_equal(kiln_kernel_get_attributes(NULL, &attributes), KILN_ERROR_INVALID_ARGUMENT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_part_is_loaded_once),
        cmocka_unit_test(no_image_gives_every_reason_each_time),
        cmocka_unit_test(a_part_without_images_is_told),
        cmocka_unit_test(names_that_are_not_there_are_listed),
        cmocka_unit_test(a_launch_covers_its_grid),
        cmocka_unit_test(a_wrong_launch_says_what_is_wrong),
        cmocka_unit_test(several_parameters_are_a_struct_with_its_padding_or_without),
        cmocka_unit_test(a_kernel_without_arguments_is_launched_with_null),
        cmocka_unit_test(threads_that_load_at_once_get_one_module),
        cmocka_unit_test(memory_is_copied_and_filled),
        cmocka_unit_test(events_happen_in_order),
        cmocka_unit_test(a_check_tries_everything_and_reports_each),
        cmocka_unit_test(a_check_tells_of_its_first_failure),
        cmocka_unit_test(attributes_and_occupancy_are_told),
    };
    return cmocka_run_group_tests_name("module", tests, setup, teardown);
}
