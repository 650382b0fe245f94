#include "operator_model.h"
#include "device_choice.h"
#include "server_request.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Parameters beside those that are fields of the function: (name, what stands for it where it is absent). */
#define OPERATOR_PARAMETERS(PARAMETER)                     \
    PARAMETER(function, NULL)                              \
    PARAMETER(device, "")      /* as of a model of text */ \
    PARAMETER(max_bytes, NULL) /* of all tensors of a request; 2^30 */

struct operator_model {
    model_config config;
    const char *function, *device;
    int64_t max_bytes;
    int32_t instances; /* opened so far */
};

/* Memory that is kept from call to call, and grows. */
typedef struct buffer {
    void *memory, *host;
    uint64_t room;
} buffer;

struct operator_instance {
    operator_model *model;
    TRITONBACKEND_ModelInstance *handle;
    kiln_device_options options;
    operator_call call;
    kiln_device *device; /* NULL: it is lost */
    kiln_stream stream;
    buffer *buffers; /* of each field; the last one is the workspace's */
};

/* ---- The model ---- */

/* A call with everything set that the configuration sets. */
static TRITONSERVER_Error *make_call(const operator_model *m, operator_call *out) {
    static const char *const own[] = {
#define NAME(name, absent) #name,
        OPERATOR_PARAMETERS(NAME)
#undef NAME
    };
    TRITON_TRY(operator_call_create(m->function, out));
    TRITONSERVER_Error *error = NULL;
    for (size_t i = 0; i < m->config.count && !error; i++) {
        bool field = true;
        for (size_t n = 0; n < sizeof own / sizeof *own; n++)
            field &= strcmp(m->config.parameters[i].name, own[n]) != 0;
        if (field) error = operator_call_set(out, m->config.parameters[i].name, m->config.parameters[i].value);
    }
    if (error) operator_call_free(out);
    return error;
}

static void describe(void *user, json_writer *json) {
    operator_call_describe(user, json);
}

static TRITONSERVER_Error *open_model(operator_model *m, TRITONBACKEND_Model *handle) {
    operator_call call;
    m->function = model_config_find(&m->config, "function");
    m->device = model_config_find(&m->config, "device");
    if (!m->device) m->device = "";
    TRITON_TRY(model_config_integer(&m->config, "max_bytes", 1 << 30, 1, INT64_MAX, &m->max_bytes));
    TRITON_TRY(make_call(m, &call));
    TRITONSERVER_Error *error = model_config_complete(handle, &m->config, false, describe, &call);
    operator_call_free(&call);
    return error;
}

TRITONSERVER_Error *operator_model_open(TRITONBACKEND_Model *handle, model_config *config, operator_model **out) {
    operator_model *m = calloc(1, sizeof *m);
    if (!m) return triton_error(TRITONSERVER_ERROR_INTERNAL, "no memory for the model");
    m->config = *config;
    *config = (model_config){0};
    TRITONSERVER_Error *error = open_model(m, handle);
    if (error)
        operator_model_close(m);
    else
        *out = m;
    return error;
}

void operator_model_close(operator_model *m) {
    model_config_free(&m->config);
    free(m);
}

/* ---- The device ---- */

static TRITONSERVER_Error *failed(const operator_instance *i, kiln_status status) {
    return triton_error(status == KILN_ERROR_INVALID_ARGUMENT ? TRITONSERVER_ERROR_INVALID_ARG
                                                              : TRITONSERVER_ERROR_INTERNAL,
                        "%s: %s: %s", i->model->function, kiln_status_text(status), kiln_last_error());
}

static void close_device(operator_instance *i) {
    if (!i->device) return;
    kiln_stream_sync(&i->stream);
    for (uint32_t b = 0; b <= i->call.op->field_count; b++) {
        kiln_memory_free(i->device, i->buffers[b].memory);
        kiln_host_free(i->device, i->buffers[b].host);
        i->buffers[b] = (buffer){0};
    }
    kiln_stream_close(&i->stream);
    kiln_device_close(i->device);
    i->device = NULL;
}

static kiln_status open_device(operator_instance *i) {
    const kiln_module *module;
    if (i->device) return KILN_OK;
    kiln_status status = kiln_device_open(&i->options, &i->device);
    if (status != KILN_OK) return status;
    status = kiln_stream_open(i->device, 0, &i->stream);
    if (status == KILN_OK) status = kiln_module_get(i->device, i->call.op->bundle, i->call.function->part, &module);
    if (status != KILN_OK) close_device(i);
    return status;
}

/* Room for so many bytes; there is always some, since an operator may ask for a pointer even to nothing. */
static kiln_status reserve(operator_instance *i, buffer *b, uint64_t size, bool host) {
    if (b->memory && size <= b->room) return KILN_OK;
    kiln_memory_free(i->device, b->memory);
    kiln_host_free(i->device, b->host);
    *b = (buffer){.room = size ? size : 1};
    kiln_status status = kiln_memory_alloc(i->device, b->room, &b->memory);
    if (status == KILN_OK && host) status = kiln_host_alloc(i->device, b->room, &b->host);
    if (status != KILN_OK) {
        kiln_memory_free(i->device, b->memory);
        *b = (buffer){0};
    }
    return status;
}

/* ---- A request ---- */

/* Binds the inputs and finds the outputs that are wanted. input_of: of each field. */
static TRITONSERVER_Error *bind(operator_instance *i, TRITONBACKEND_Request *request, TRITONBACKEND_Input **input_of) {
    operator_call *call = &i->call;
    uint32_t count, field;
    operator_call_begin(call);
    TRITON_TRY(TRITONBACKEND_RequestInputCount(request, &count));
    for (uint32_t n = 0; n < count; n++) {
        TRITONBACKEND_Input *input;
        input_tensor tensor;
        TRITON_TRY(TRITONBACKEND_RequestInputByIndex(request, n, &input));
        TRITON_TRY(input_properties(input, &tensor));
        TRITON_TRY(operator_call_bind(call, tensor.name, tensor.type, tensor.shape, tensor.dimensions, &field));
        input_of[field] = input;
    }
    for (uint32_t f = 0; f < call->op->field_count; f++)
        if (operator_call_is_output(call, f))
            call->fields[f].given =
                !call->op->fields[f].optional || output_is_wanted(request, call->op->fields[f].name);
    return operator_call_resolve(call);
}

static TRITONSERVER_Error *check_size(const operator_instance *i) {
    uint64_t left = (uint64_t)i->model->max_bytes;
    for (uint32_t f = 0; f < i->call.op->field_count; f++) {
        if (i->call.fields[f].size > left)
            return triton_error(TRITONSERVER_ERROR_INVALID_ARG,
                                "the request's tensors are larger than max_bytes of the model, %" PRId64,
                                i->model->max_bytes);
        left -= i->call.fields[f].size;
    }
    return NULL;
}

static bool is_tensor(const operator_call *call, uint32_t field) {
    return (operator_call_is_input(call, field) || operator_call_is_output(call, field)) && call->fields[field].given;
}

/* Puts the inputs on the device, and the pointers into the params. */
static TRITONSERVER_Error *upload(operator_instance *i, TRITONBACKEND_Input **input_of) {
    operator_call *call = &i->call;
    for (uint32_t f = 0; f < call->op->field_count; f++) {
        const kiln_field *field = &call->op->fields[f];
        buffer *b = &i->buffers[f];
        uint64_t size = call->fields[f].size;
        if (!is_tensor(call, f)) continue;
        kiln_status status = reserve(i, b, size, true);
        if (status != KILN_OK) return failed(i, status);
        memcpy(call->params + field->offset, &b->memory, sizeof b->memory);
        if (!operator_call_is_input(call, f)) continue;
        TRITON_TRY(input_read(input_of[f], field->name, size, b->host));
        status = kiln_copy(&i->stream, b->memory, b->host, size, KILN_COPY_TO_DEVICE);
        if (status != KILN_OK) return failed(i, status);
    }
    return NULL;
}

static kiln_status reserve_workspace(operator_instance *i) {
    const operator_call *call = &i->call;
    const kiln_operator *op = call->op;
    buffer *b = &i->buffers[op->field_count];
    size_t size = 0;
    if (!call->function->workspace_size) return KILN_OK;
    kiln_status status = call->function->workspace_size(&i->stream, call->params, op->params_size, &size);
    if (status == KILN_OK && size) status = reserve(i, b, size, false);
    for (uint32_t f = 0; f < op->field_count && status == KILN_OK && size; f++) {
        if (op->fields[f].role == KILN_FIELD_WORKSPACE)
            memcpy(call->params + op->fields[f].offset, &b->memory, sizeof b->memory);
        if (op->fields[f].role == KILN_FIELD_WORKSPACE_SIZE)
            memcpy(call->params + op->fields[f].offset, &size, sizeof size);
    }
    return status;
}

/* Calls the function and waits for its outputs. */
static kiln_status launch(operator_instance *i) {
    const operator_call *call = &i->call;
    kiln_status status = reserve_workspace(i);
    if (status == KILN_OK) status = call->function->call(&i->stream, call->params, call->op->params_size);
    for (uint32_t f = 0; f < call->op->field_count && status == KILN_OK; f++)
        if (operator_call_is_output(call, f) && call->fields[f].given)
            status = kiln_copy(&i->stream, i->buffers[f].host, i->buffers[f].memory, call->fields[f].size,
                               KILN_COPY_TO_HOST);
    kiln_status waited = kiln_stream_sync(&i->stream); /* the host's buffers are the copies' until then */
    return status == KILN_OK ? waited : status;
}

static TRITONSERVER_Error *fill(const operator_instance *i, TRITONBACKEND_Request *request,
                                TRITONBACKEND_Response *response) {
    const operator_call *call = &i->call;
    for (uint32_t f = 0; f < call->op->field_count; f++) {
        const call_field *field = &call->fields[f];
        const char *name = call->op->fields[f].name;
        void *memory;
        if (!operator_call_is_output(call, f) || !field->given || !output_is_wanted(request, name)) continue;
        TRITON_TRY(output_add(response, name, field->type, field->shape, field->dimensions, field->size, &memory));
        if (field->size) memcpy(memory, i->buffers[f].host, field->size);
    }
    return NULL;
}

static TRITONSERVER_Error *compute(operator_instance *i, TRITONBACKEND_Request *request) {
    TRITONBACKEND_Input **input_of = calloc(i->call.op->field_count, sizeof(TRITONBACKEND_Input *));
    if (!input_of) return triton_error(TRITONSERVER_ERROR_INTERNAL, "no memory for the request");
    TRITONSERVER_Error *error = bind(i, request, input_of);
    if (!error) error = check_size(i);
    kiln_status status = error ? KILN_OK : open_device(i);
    if (status != KILN_OK) error = failed(i, status);
    if (!error) error = upload(i, input_of);
    free(input_of);
    if (error) return error;
    status = launch(i);
    if (status != KILN_OK) error = failed(i, status);
    if (status == KILN_ERROR_DEVICE_LOST) close_device(i); /* the next request opens it anew */
    return error;
}

static void report(const operator_instance *i, TRITONBACKEND_Request *request, bool success, uint64_t began) {
    uint64_t now = server_time();
    triton_log_error(TRITONBACKEND_ModelInstanceReportStatistics(i->handle, request, success, began, began, now, now),
                     "statistics");
}

void operator_instance_execute(operator_instance *i, TRITONBACKEND_Request *request) {
    TRITONBACKEND_Response *response;
    uint64_t began = server_time();
    TRITONSERVER_Error *error = compute(i, request);
    report(i, request, !error, began);
    if (!error) error = TRITONBACKEND_ResponseNew(&response, request);
    if (error) {
        request_refuse(request, error);
        return;
    }
    TRITONSERVER_Error *wrong = fill(i, request, response);
    triton_log_error(TRITONBACKEND_ResponseSend(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, wrong), "a response");
    if (wrong) TRITONSERVER_ErrorDelete(wrong);
    triton_log_error(TRITONBACKEND_RequestRelease(request, TRITONSERVER_REQUEST_RELEASE_ALL), "a request");
}

/* ---- An instance ---- */

static TRITONSERVER_Error *open_instance(operator_instance *i) {
    TRITON_TRY(make_call(i->model, &i->call));
    i->buffers = calloc((size_t)i->call.op->field_count + 1, sizeof *i->buffers);
    if (!i->buffers) return triton_error(TRITONSERVER_ERROR_INTERNAL, "no memory for the instance");
    TRITON_TRY(device_choose(i->model->device, i->model->instances++, i->handle, &i->options));
    kiln_status status = open_device(i);
    return status == KILN_OK ? NULL : failed(i, status);
}

TRITONSERVER_Error *operator_instance_open(operator_model *model, TRITONBACKEND_ModelInstance *handle,
                                           operator_instance **out) {
    operator_instance *i = calloc(1, sizeof *i);
    if (!i) return triton_error(TRITONSERVER_ERROR_INTERNAL, "no memory for the instance");
    i->model = model;
    i->handle = handle;
    TRITONSERVER_Error *error = open_instance(i);
    if (error)
        operator_instance_close(i);
    else
        *out = i;
    return error;
}

void operator_instance_close(operator_instance *i) {
    close_device(i);
    free(i->buffers);
    operator_call_free(&i->call);
    free(i);
}
