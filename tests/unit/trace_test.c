/* Tracing: what is recorded, what is dropped, and what the two formats look like with hostile names. */
#include "tests/unit/cpu_bundle.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/documented.h"

typedef struct page {
    char bytes[65536];
    size_t length;
    size_t room; /* the callback ends the writing when it is full */
} page;

static int write_page(void *user, const char *bytes, size_t size) {
    page *to = user;
    if (to->length + size >= to->room) return 1;
    memcpy(to->bytes + to->length, bytes, size);
    to->length += size;
    to->bytes[to->length] = '\0';
    return 0;
}

static size_t count(const char *text, const char *word) {
    size_t found = 0;
    for (const char *at = text; (at = strstr(at, word)); at += strlen(word))
        found++;
    return found;
}

/* A bundle whose kernel's name would end a JSON string and move a terminal's cursor. */
static const char *const hostile_names[] = {"\"};\x1b[2J\\"};
static const kiln_part hostile_part = {.name = "f32",
                                       .images = &cpu_images[1],
                                       .kernel_names = hostile_names,
                                       .image_count = 1,
                                       .image_size = sizeof(kiln_image),
                                       .kernel_count = 1};
static const kiln_bundle hostile_bundle = {.version = KILN_BUNDLE_VERSION,
                                           .part_size = sizeof(kiln_part),
                                           .name = "hostile",
                                           .parts = &hostile_part,
                                           .part_count = 1};

typedef struct fixture {
    kiln_device *device;
    kiln_stream stream;
    page out;
} fixture;

static int setup(void **state) {
    fixture *f = calloc(1, sizeof *f);
    kiln_device_options options = {.backend = KILN_BACKEND_CPU};
    if (kiln_device_open(&options, &f->device) != KILN_OK || kiln_stream_open(f->device, 0, &f->stream) != KILN_OK)
        return -1;
    f->out.room = sizeof f->out.bytes;
    *state = f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    kiln_stream_close(&f->stream);
    kiln_device_close(f->device);
    free(f);
    return 0;
}

/* A load, two launches, a fill and a copy. */
static void work(fixture *f) {
    const kiln_module *module;
    uint32_t words[4];
    cpu_arguments arguments = {words, 1, 4};
    kiln_launch_config config = {.grid = {4}, .block = {32}};
    assert_int_equal(kiln_module_get(f->device, &hostile_bundle, "f32", &module), KILN_OK);
    const kiln_kernel *kernel;
    assert_int_equal(kiln_module_find_kernel(module, hostile_names[0], &kernel), KILN_OK);
    for (int i = 0; i < 2; i++)
        assert_int_equal(kiln_launch(&f->stream, kernel, &config, &arguments, sizeof arguments), KILN_OK);
    uint32_t back[4];
    assert_int_equal(kiln_fill(&f->stream, words, 0, sizeof words), KILN_OK);
    assert_int_equal(kiln_copy(&f->stream, back, words, sizeof words, KILN_COPY_TO_HOST), KILN_OK);
}

static void chrome_json_has_every_call_and_no_raw_bytes_of_names(void **state) {
    fixture *f = *state;
    assert_int_equal(kiln_trace_start(f->device, 0), KILN_OK);
    work(f);
    assert_int_equal(kiln_trace_stop(f->device, KILN_TRACE_CHROME_JSON, write_page, &f->out), KILN_OK);
    assert_int_equal(count(f->out.bytes, "\"cat\":\"load\""), 1);
    assert_true(count(f->out.bytes, "\"cat\":\"launch\"") >= 2);
    assert_true(count(f->out.bytes, "\"cat\":\"fill\"") >= 1);
    assert_true(count(f->out.bytes, "copy to host") >= 1);
    assert_true(count(f->out.bytes, "\"grid\":[4,1,1],\"block\":[32,1,1]") >= 2);
    assert_true(count(f->out.bytes, "\\u0022};\\u001b[2J\\u005c") >= 2);
    assert_int_equal(count(f->out.bytes, "\x1b"), 0);
    assert_int_equal(count(f->out.bytes, "{"), count(f->out.bytes, "}") - count(f->out.bytes, "\\u0022};"));
}

static void a_full_trace_counts_what_it_drops(void **state) {
    fixture *f = *state;
    assert_int_equal(kiln_trace_start(f->device, 2), KILN_OK);
    work(f);
    assert_int_equal(kiln_trace_stop(f->device, KILN_TRACE_TEXT, write_page, &f->out), KILN_OK);
    assert_non_null(strstr(f->out.bytes, "2 records, 3 dropped"));
    assert_int_equal(count(f->out.bytes, "\n"), 2 + 2);
}

static void tracing_starts_and_stops_once(void **state) {
    fixture *f = *state;
    assert_int_equal(kiln_trace_stop(f->device, KILN_TRACE_TEXT, write_page, &f->out), KILN_ERROR_INVALID_ARGUMENT);
    assert_int_equal(kiln_trace_start(f->device, 0), KILN_OK);
    assert_int_equal(kiln_trace_start(f->device, 0), KILN_ERROR_INVALID_ARGUMENT);
    assert_int_equal(kiln_trace_stop(f->device, KILN_TRACE_TEXT, NULL, NULL), KILN_ERROR_INVALID_ARGUMENT);
    assert_int_equal(kiln_trace_stop(f->device, (kiln_trace_format)7, write_page, &f->out),
                     KILN_ERROR_INVALID_ARGUMENT);
    f->out.room = 8;
    assert_int_equal(kiln_trace_stop(f->device, KILN_TRACE_TEXT, write_page, &f->out), KILN_ERROR_DRIVER);
    assert_int_equal(kiln_trace_stop(f->device, KILN_TRACE_TEXT, write_page, &f->out), KILN_ERROR_INVALID_ARGUMENT);
    assert_int_equal(kiln_trace_start(f->device, SIZE_MAX), KILN_ERROR_INVALID_ARGUMENT);
}

static void a_device_that_closes_forgets_its_trace(void **state) {
    fixture *f = *state;
    assert_int_equal(kiln_trace_start(f->device, 0), KILN_OK);
    work(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(chrome_json_has_every_call_and_no_raw_bytes_of_names, setup, teardown),
        cmocka_unit_test_setup_teardown(a_full_trace_counts_what_it_drops, setup, teardown),
        cmocka_unit_test_setup_teardown(tracing_starts_and_stops_once, setup, teardown),
        cmocka_unit_test_setup_teardown(a_device_that_closes_forgets_its_trace, setup, teardown),
    };
    return cmocka_run_group_tests_name("trace", tests, NULL, NULL);
}
