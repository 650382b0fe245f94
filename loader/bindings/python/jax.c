/* Any operator as a foreign function of XLA: kiln/_jax.so of the Python package, which kiln/jax.py registers with JAX.
 *
 * The attributes of a call say what it is: "function" the name, as "softmax_f16"; "params" the bytes of its params
 * struct, without pointers; "offsets" where in it the pointer of each argument and then of each result belongs, -1:
 * nowhere. XLA owns all buffers. On CUDA the stream is XLA's, borrowed for the call; on the CPU each thread has one. */
#include "loader/bindings/python/xla_ffi.h"

#include <kiln/ops.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { PARAMS_MAX = 1024, DEVICES_MAX = 64, WORKSPACE_ALIGNMENT = 256 };

EXPORT xla_error *kiln_jax_cpu(xla_frame *frame);
EXPORT xla_error *kiln_jax_cuda(xla_frame *frame);

static xla_error *fail(const xla_frame *frame, xla_error_code code, const char *message) {
    xla_error_arguments arguments = {.struct_size = sizeof arguments, .message = message, .code = code};
    return frame->api->error_create(&arguments);
}

static xla_error *fail_status(const xla_frame *frame, kiln_status status) {
    xla_error_code code = XLA_INTERNAL;
    if (status == KILN_ERROR_INVALID_ARGUMENT) code = XLA_INVALID_ARGUMENT;
    if (status == KILN_ERROR_OUT_OF_MEMORY) code = XLA_RESOURCE_EXHAUSTED;
    if (status == KILN_ERROR_UNSUPPORTED) code = XLA_UNIMPLEMENTED;
    return fail(frame, code, kiln_last_error());
}

/* ---- What the call is ---- */

static const void *attribute(const xla_frame *frame, const char *name, int type) {
    const xla_attributes *all = &frame->attributes;
    for (int64_t i = 0; i < all->count; i++)
        if (all->types[i] == type && all->names[i]->size == strlen(name) &&
            !memcmp(all->names[i]->bytes, name, all->names[i]->size))
            return all->values[i];
    return NULL;
}

static bool same(const char *name, const xla_text *text) {
    return !strncmp(name, text->bytes, text->size) && !name[text->size];
}

static const kiln_operator_function *find(const xla_text *name, const kiln_operator **out_operator) {
    const kiln_operator *const *operators;
    size_t count;
    if (kiln_all_operators(&operators, &count)) return NULL;
    for (size_t i = 0; i < count; i++)
        for (uint32_t j = 0; j < operators[i]->function_count; j++)
            if (same(operators[i]->functions[j].name, name)) {
                *out_operator = operators[i];
                return &operators[i]->functions[j];
            }
    return NULL;
}

/* The pointers of arguments and results go into params. */
static bool put_pointers(const xla_frame *frame, const xla_array *offsets, unsigned char *params, size_t size) {
    const xla_buffers *sides[] = {&frame->arguments, &frame->results};
    const int64_t *offset = offsets->data;
    if (offsets->count != (size_t)(sides[0]->count + sides[1]->count)) return false;
    for (size_t side = 0; side < 2; side++)
        for (int64_t i = 0; i < sides[side]->count; i++, offset++) {
            if (*offset < 0) continue;
            if ((size_t)*offset + sizeof(void *) > size) return false;
            memcpy(params + *offset, &sides[side]->buffers[i]->data, sizeof(void *));
        }
    return true;
}

/* ---- Workspace ---- */

typedef struct workspace {
    void *data;
    size_t size;
    bool of_device; /* XLA's; else the process's */
} workspace;

static xla_error *workspace_open(const xla_frame *frame, size_t size, bool of_device, workspace *out) {
    *out = (workspace){.size = size, .of_device = of_device};
    if (of_device) {
        xla_allocate_arguments arguments = {
            .struct_size = sizeof arguments, .context = frame->context, .size = size, .alignment = WORKSPACE_ALIGNMENT};
        xla_error *error = frame->api->memory_allocate(&arguments);
        out->data = arguments.data;
        return error;
    }
    return posix_memalign(&out->data, WORKSPACE_ALIGNMENT, size)
               ? fail(frame, XLA_RESOURCE_EXHAUSTED, "kiln: no memory for workspace")
               : NULL;
}

/* What is on the stream may still use device memory: XLA gives it to no other stream. */
static xla_error *workspace_close(const xla_frame *frame, const workspace *space) {
    if (!space->of_device) {
        free(space->data);
        return NULL;
    }
    xla_free_arguments arguments = {
        .struct_size = sizeof arguments, .context = frame->context, .size = space->size, .data = space->data};
    return frame->api->memory_free(&arguments);
}

/* Where the operator wants workspace: into params. */
static void put_workspace(const kiln_operator *op, const workspace *space, unsigned char *params) {
    for (uint32_t i = 0; i < op->field_count; i++) {
        const kiln_field *field = &op->fields[i];
        if (field->role == KILN_FIELD_WORKSPACE) memcpy(params + field->offset, &space->data, sizeof space->data);
        if (field->role == KILN_FIELD_WORKSPACE_SIZE) memcpy(params + field->offset, &space->size, sizeof space->size);
    }
}

/* ---- The call ---- */

/* Whether the frame asks what the handler is, instead of calling it; and the answer. */
static bool answers_metadata(const xla_frame *frame) {
    xla_extension *extension = frame->extensions;
    if (!extension || extension->type != XLA_EXTENSION_METADATA) return false;
    xla_metadata *metadata = ((xla_metadata_extension *)extension)->metadata;
    metadata->version.major = XLA_VERSION_MAJOR;
    metadata->version.minor = XLA_VERSION_MINOR;
    metadata->traits = 0;
    return true;
}

static xla_error *call(const xla_frame *frame, kiln_stream *stream, bool of_device) {
    const xla_text *name = attribute(frame, "function", XLA_ATTRIBUTE_STRING);
    const xla_array *bytes = attribute(frame, "params", XLA_ATTRIBUTE_ARRAY);
    const xla_array *offsets = attribute(frame, "offsets", XLA_ATTRIBUTE_ARRAY);
    const kiln_operator *op = NULL;
    const kiln_operator_function *function = name ? find(name, &op) : NULL;
    if (!function || !bytes || !offsets) return fail(frame, XLA_INVALID_ARGUMENT, "kiln: the call names no operator");
    size_t size = bytes->count * sizeof(int64_t);
    union {
        unsigned char bytes[PARAMS_MAX];
        int64_t aligned;
    } params;
    if (size > sizeof params) return fail(frame, XLA_INVALID_ARGUMENT, "kiln: params are larger than any operator's");
    memcpy(params.bytes, bytes->data, size);
    if (!put_pointers(frame, offsets, params.bytes, size))
        return fail(frame, XLA_INVALID_ARGUMENT, "kiln: offsets are not those of the arguments and results");

    size_t needed = 0;
    kiln_status status = KILN_OK;
    if (function->workspace_size) status = function->workspace_size(stream, params.bytes, size, &needed);
    if (status) return fail_status(frame, status);
    if (!needed) {
        status = function->call(stream, params.bytes, size);
        return status ? fail_status(frame, status) : NULL;
    }
    workspace space;
    xla_error *error = workspace_open(frame, needed, of_device, &space);
    if (error) return error;
    put_workspace(op, &space, params.bytes);
    status = function->call(stream, params.bytes, size);
    error = status ? fail_status(frame, status) : NULL;
    xla_error *freeing = workspace_close(frame, &space);
    return error ? error : freeing;
}

/* ---- Devices: opened at first use, for the life of the process ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static kiln_status open_device(kiln_backend_id backend, int32_t ordinal, kiln_device **place) {
    pthread_mutex_lock(&lock);
    kiln_status status = KILN_OK;
    if (!*place) {
        const kiln_device_options options = {.backend = backend, .ordinal = ordinal};
        status = kiln_device_open(&options, place);
    }
    pthread_mutex_unlock(&lock);
    return status;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t streams; /* of threads: allocated by cpu_stream */

static void close_stream(void *stream) {
    kiln_stream_close(stream);
    free(stream);
}
static void make_streams(void) {
    pthread_key_create(&streams, close_stream);
}

static kiln_status cpu_stream(kiln_stream **out_stream) {
    static kiln_device *device;
    pthread_once(&once, make_streams);
    *out_stream = pthread_getspecific(streams);
    if (*out_stream) return KILN_OK;
    kiln_status status = open_device(KILN_BACKEND_CPU, 0, &device);
    kiln_stream *made = status ? NULL : calloc(1, sizeof *made);
    if (!status && !made) return KILN_ERROR_OUT_OF_MEMORY;
    if (!status) status = kiln_stream_open(device, 0, made);
    if (status || pthread_setspecific(streams, made)) {
        free(made);
        return status ? status : KILN_ERROR_OUT_OF_MEMORY;
    }
    *out_stream = made;
    return KILN_OK;
}

xla_error *kiln_jax_cpu(xla_frame *frame) {
    if (answers_metadata(frame)) return NULL;
    kiln_stream *stream;
    kiln_status status = cpu_stream(&stream);
    return status ? fail_status(frame, status) : call(frame, stream, false);
}

xla_error *kiln_jax_cuda(xla_frame *frame) {
    static kiln_device *devices[DEVICES_MAX];
    if (answers_metadata(frame)) return NULL;
    xla_stream_arguments native = {.struct_size = sizeof native, .context = frame->context};
    xla_ordinal_arguments place = {.struct_size = sizeof place, .context = frame->context};
    xla_error *error = frame->api->stream_get(&native);
    if (!error) error = frame->api->device_ordinal(&place);
    if (error) return error;
    if (place.ordinal < 0 || place.ordinal >= DEVICES_MAX) return fail(frame, XLA_INTERNAL, "kiln: too many devices");
    kiln_status status = open_device(KILN_BACKEND_CUDA, place.ordinal, &devices[place.ordinal]);
    kiln_stream stream = {0};
    if (!status) status = kiln_stream_borrow(devices[place.ordinal], native.stream, &stream);
    if (status) return fail_status(frame, status);
    error = call(frame, &stream, true);
    kiln_stream_close(&stream);
    return error;
}
