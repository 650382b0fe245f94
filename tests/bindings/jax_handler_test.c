/* The handlers of kiln.jax, called as XLA calls them: on the CPU, and on a simulated sm_90, where JAX itself cannot
 * run. */
#include "loader/bindings/python/xla_ffi.h"
#include "tests/sim/core/sim_client.h"

#include <kiln/ops.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 2, COLUMNS = 20000, BUFFERS = 2 };

xla_error *kiln_jax_cpu(xla_frame *frame);
xla_error *kiln_jax_cuda(xla_frame *frame);

struct xla_error {
    char text[256];
    xla_error_code code;
};

static sim_control sim;
static kiln_device *device;
static kiln_stream stream;

/* ---- What XLA has ---- */

static xla_error last;
static size_t allocated, freed;
static bool memory_is_short;

static xla_error *error_create(xla_error_arguments *arguments) {
    assert_int_equal(arguments->struct_size, sizeof *arguments);
    snprintf(last.text, sizeof last.text, "%s", arguments->message);
    last.code = arguments->code;
    return &last;
}

static xla_error *stream_get(xla_stream_arguments *arguments) {
    assert_int_equal(arguments->struct_size, sizeof *arguments);
    arguments->stream = stream.native;
    return NULL;
}

static xla_error *device_ordinal(xla_ordinal_arguments *arguments) {
    arguments->ordinal = 0;
    return NULL;
}

static xla_error *memory_allocate(xla_allocate_arguments *arguments) {
    if (memory_is_short) {
        last = (xla_error){"no memory left", XLA_RESOURCE_EXHAUSTED};
        return &last;
    }
    allocated += arguments->size;
    assert_int_equal(kiln_memory_alloc(device, arguments->size, &arguments->data), KILN_OK);
    return NULL;
}

static xla_error *memory_free(xla_free_arguments *arguments) {
    assert_int_equal(kiln_stream_sync(&stream), KILN_OK);
    freed += arguments->size;
    kiln_memory_free(device, arguments->data);
    return NULL;
}

static const xla_api api = {.struct_size = sizeof api,
                            .error_create = error_create,
                            .stream_get = stream_get,
                            .memory_allocate = memory_allocate,
                            .memory_free = memory_free,
                            .device_ordinal = device_ordinal};

/* ---- A call ---- */

/* One of an argument and a result. */
typedef struct call {
    xla_frame frame;
    xla_buffer input, output;
    xla_buffer *inputs[1], *outputs[1];
    xla_text names[3], function;
    xla_text *name_list[3];
    xla_array params, offsets;
    int types[3];
    void *values[3];
    int64_t places[BUFFERS];
} call;

static void make_call(call *made, const char *function, void *x, void *y, void *params, size_t size, size_t x_offset,
                      size_t y_offset) {
    *made = (call){.input.data = x,
                   .output.data = y,
                   .names = {{"function", 8}, {"offsets", 7}, {"params", 6}},
                   .function = {function, strlen(function)},
                   .params = {.count = size / sizeof(int64_t), .data = params},
                   .types = {XLA_ATTRIBUTE_STRING, XLA_ATTRIBUTE_ARRAY, XLA_ATTRIBUTE_ARRAY},
                   .places = {(int64_t)x_offset, (int64_t)y_offset}};
    made->inputs[0] = &made->input;
    made->outputs[0] = &made->output;
    made->offsets = (xla_array){.count = BUFFERS, .data = made->places};
    for (size_t i = 0; i < 3; i++)
        made->name_list[i] = &made->names[i];
    made->values[0] = &made->function;
    made->values[1] = &made->offsets;
    made->values[2] = &made->params;
    made->frame =
        (xla_frame){.struct_size = sizeof made->frame,
                    .api = &api,
                    .arguments = {.count = 1, .buffers = made->inputs},
                    .results = {.count = 1, .buffers = made->outputs},
                    .attributes = {.count = 3, .types = made->types, .names = made->name_list, .values = made->values}};
}

static void make_argmax(call *made, kiln_argmax_params *params, void *x, void *y) {
    *params = (kiln_argmax_params){.rows = ROWS, .cols = COLUMNS};
    make_call(made, "argmax_f32", x, y, params, sizeof *params, offsetof(kiln_argmax_params, x),
              offsetof(kiln_argmax_params, y));
}

static xla_error *run(xla_frame *frame, bool on_cuda) {
    return on_cuda ? kiln_jax_cuda(frame) : kiln_jax_cpu(frame);
}

/* Memory of the device, or the test's own. */
static void *put(const void *data, size_t size, bool on_cuda) {
    void *memory = NULL;
    if (!on_cuda) {
        memory = malloc(size);
        return memory ? memcpy(memory, data, size) : NULL;
    }
    assert_int_equal(kiln_memory_alloc(device, size, &memory), KILN_OK);
    assert_int_equal(kiln_copy(&stream, memory, data, size, KILN_COPY_TO_DEVICE), KILN_OK);
    return memory;
}

static void take(void *data, void *memory, size_t size, bool on_cuda) {
    if (!on_cuda) {
        if (data) memcpy(data, memory, size);
        free(memory);
        return;
    }
    if (data) assert_int_equal(kiln_copy(&stream, data, memory, size, KILN_COPY_TO_HOST), KILN_OK);
    assert_int_equal(kiln_stream_sync(&stream), KILN_OK);
    kiln_memory_free(device, memory);
}

/* ---- Tests: *state is non-NULL on CUDA ---- */

static int greatest[ROWS];
static float x[ROWS][COLUMNS];

static void fill(void) {
    for (int row = 0; row < ROWS; row++) {
        for (int i = 0; i < COLUMNS; i++)
            x[row][i] = (float)(rand() % 10000);
        greatest[row] = rand() % COLUMNS;
        x[row][greatest[row]] = 20000;
    }
}

static void long_rows_get_workspace(void **state) {
    bool on_cuda = *state;
    int32_t y[ROWS] = {-1, -1};
    kiln_argmax_params params;
    call made;
    fill();
    void *input = put(x, sizeof x, on_cuda), *output = put(y, sizeof y, on_cuda);
    make_argmax(&made, &params, input, output);
    allocated = freed = 0;
    xla_error *error = run(&made.frame, on_cuda);
    if (error) fail_msg("%s", error->text);
    take(y, output, sizeof y, on_cuda);
    take(NULL, input, sizeof x, on_cuda);
    for (int row = 0; row < ROWS; row++)
        assert_int_equal(y[row], greatest[row]);
    assert_int_equal(allocated > 0, on_cuda);
    assert_int_equal(allocated, freed);
    assert_null(params.x);
}

static void what_kiln_refuses_xla_is_told(void **state) {
    bool on_cuda = *state;
    kiln_argmax_params params;
    call made;
    make_argmax(&made, &params, NULL, NULL);
    assert_ptr_equal(run(&made.frame, on_cuda), &last);
    assert_int_equal(last.code, XLA_INVALID_ARGUMENT);
    assert_non_null(strstr(last.text, "argmax_f32: "));

    make_argmax(&made, &params, NULL, NULL);
    made.function = (xla_text){"argmax_f64", 10};
    assert_ptr_equal(run(&made.frame, on_cuda), &last);
    assert_string_equal(last.text, "kiln: the call names no operator");

    make_argmax(&made, &params, NULL, NULL);
    made.function.size--; /* a name that is another's beginning */
    assert_ptr_equal(run(&made.frame, on_cuda), &last);
    assert_string_equal(last.text, "kiln: the call names no operator");

    static const int64_t outside[] = {sizeof params, sizeof params - 4};
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
        make_argmax(&made, &params, NULL, NULL);
        made.places[1] = outside[i];
        assert_ptr_equal(run(&made.frame, on_cuda), &last);
        assert_string_equal(last.text, "kiln: offsets are not those of the arguments and results");
    }
    make_argmax(&made, &params, NULL, NULL);
    made.offsets.count = 1;
    assert_ptr_equal(run(&made.frame, on_cuda), &last);
    assert_string_equal(last.text, "kiln: offsets are not those of the arguments and results");
}

static void no_memory_for_workspace(void **state) {
    (void)state;
    kiln_argmax_params params;
    call made;
    void *input = put(x, sizeof x, true), *output = put(greatest, sizeof greatest, true);
    make_argmax(&made, &params, input, output);
    memory_is_short = true;
    assert_ptr_equal(kiln_jax_cuda(&made.frame), &last);
    memory_is_short = false;
    assert_string_equal(last.text, "no memory left");
    take(NULL, output, sizeof greatest, true);
    take(NULL, input, sizeof x, true);
}

static void metadata_is_answered(void **state) {
    xla_metadata metadata = {.version = {.major = -1, .minor = -1}};
    xla_metadata_extension extension = {.base.type = XLA_EXTENSION_METADATA, .metadata = &metadata};
    xla_frame frame = {.extensions = &extension.base};
    assert_null(run(&frame, *state));
    assert_int_equal(metadata.version.major, XLA_VERSION_MAJOR);
    assert_int_equal(metadata.version.minor, XLA_VERSION_MINOR);
}

int main(int argc, char **argv) {
    (void)argc;
    const struct CMUnitTest on_both[] = {cmocka_unit_test(long_rows_get_workspace),
                                         cmocka_unit_test(what_kiln_refuses_xla_is_told),
                                         cmocka_unit_test(metadata_is_answered)};
    const struct CMUnitTest on_cuda[] = {cmocka_unit_test_prestate(long_rows_get_workspace, &sim),
                                         cmocka_unit_test_prestate(what_kiln_refuses_xla_is_told, &sim),
                                         cmocka_unit_test_prestate(no_memory_for_workspace, &sim),
                                         cmocka_unit_test_prestate(metadata_is_answered, &sim)};
    setenv("KILN_SIM_RECORD", "0", 1);
    setenv("KILN_SIM_DEVICES", "sm_90", 1);
    sim_client_start(argv, NULL);
    int failed = cmocka_run_group_tests_name("CPU", on_both, NULL, NULL);
    sim_client_open("libcuda.so.1", &sim);
    const kiln_device_options options = {.backend = KILN_BACKEND_CUDA};
    if (kiln_device_open(&options, &device) || kiln_stream_open(device, 0, &stream)) return 1;
    failed += cmocka_run_group_tests_name("sm_90", on_cuda, NULL, NULL);
    kiln_stream_close(&stream);
    kiln_device_close(device);
    return failed;
}
