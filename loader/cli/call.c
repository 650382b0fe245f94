/* A call: its fields by name, the params struct, the device's side. call_shape.c has the shapes. */
#include "loader/cli/call.h"
#include <errno.h>
#include <math.h>
#include <string.h>

bool call_is_tensor(const kiln_field *field) {
    return field->role == KILN_FIELD_INPUT || field->role == KILN_FIELD_OUTPUT || field->role == KILN_FIELD_UPDATE;
}

/* ---- Fields by name ---------------------------------------------------------------------------------------------- */

call_field *call_find(const operator_call *call, const char *name) {
    for (uint32_t i = 0; i < call->op->field_count; i++)
        if (strcmp(call->op->fields[i].name, name) == 0) return &call->fields[i];
    return NULL;
}

/* ---- Dtypes ------------------------------------------------------------------------------------------------------ */

/* One of several words between commas: "i64" of "i32,i64". NULL if there are fewer. */
static const char *choice(const char *choices, int64_t number, int *out_length) {
    for (; number; number--) {
        choices += strcspn(choices, ",");
        if (!*choices++) return NULL;
    }
    *out_length = (int)strcspn(choices, ",");
    return choices;
}

static npy_dtype dtype_of(const operator_call *call, const char *name, int length) {
    char text[16];
    snprintf(text, sizeof text, "%.*s", length, name);
    return npy_dtype_find(strcmp(text, "part") == 0 ? call->function->part : text);
}

npy_dtype call_dtype(const operator_call *call, const kiln_field *field) {
    const call_field *option = call_find(call, field->dtype);
    int length = (int)strlen(field->dtype);
    if (!option) return dtype_of(call, field->dtype, length);
    const char *name = choice(option->description->choices, option->value, &length);
    return dtype_of(call, name, length);
}

char *call_dtype_names(const operator_call *call, const kiln_field *field) {
    const call_field *option = call_find(call, field->dtype);
    if (!option) return cli_format("%s", npy_dtype_name(call_dtype(call, field)));
    char *names = NULL;
    const char *name;
    int length;
    for (int64_t i = 0; (name = choice(option->description->choices, i, &length)); i++) {
        const char *one = npy_dtype_name(dtype_of(call, name, length));
        if (names && strcmp(names, one) == 0) continue; /* "part" of f32 and f32 */
        char *longer = names ? cli_format("%s or %s", names, one) : cli_format("%s", one);
        free(names);
        names = longer;
    }
    return names;
}

/* Where an option says what a tensor's dtype is, and was not given: the first choice that an array has. */
static void choose_dtype(operator_call *call, const kiln_field *field, const npy_header *array) {
    call_field *option = call_find(call, field->dtype);
    const char *name;
    int length;
    if (!option || option->given) return;
    for (int64_t i = 0; (name = choice(option->description->choices, i, &length)); i++) {
        npy_dtype dtype = dtype_of(call, name, length);
        if (dtype != array->dtype && !(dtype == NPY_BF16 && array->dtype == NPY_U16)) continue;
        option->given = true;
        option->value = i;
        return;
    }
}

char *call_choice(const call_field *option) {
    int length;
    const char *name = choice(option->description->choices, option->value, &length);
    return name ? cli_format("%.*s", length, name) : NULL;
}

/* ---- What is given ----------------------------------------------------------------------------------------------- */

/* A field's roles, as bits. */
enum {
    INPUTS = 1 << KILN_FIELD_INPUT | 1 << KILN_FIELD_UPDATE,
    OUTPUTS = 1 << KILN_FIELD_OUTPUT | 1 << KILN_FIELD_UPDATE,
    SETTABLE = 1 << KILN_FIELD_SIZE | 1 << KILN_FIELD_OPTION | 1 << KILN_FIELD_INTEGER | 1 << KILN_FIELD_REAL,
};

static bool has_role(const kiln_field *field, unsigned roles) {
    return roles >> field->role & 1;
}

/* The field of that name, if it has one of the roles and was not given before; else NULL, after a line that lists those
 * that there are. */
static call_field *take_field(operator_call *call, const char *option, const char *name, unsigned roles) {
    const char *function = call->function->name;
    call_field *field = call_find(call, name);
    if (field && has_role(field->description, roles)) {
        if (!(roles == OUTPUTS ? field->wanted : field->given)) return field;
        cli_error(CLI_USAGE, "%s: %s%s is given twice", function, option, name);
        return NULL;
    }
    char *names = cli_format("%s", "");
    for (uint32_t i = 0; i < call->op->field_count; i++) {
        const kiln_field *other = &call->op->fields[i];
        if (!has_role(other, roles)) continue;
        char *longer = cli_format("%s%s%s", names, *names ? ", " : "", other->name);
        free(names);
        names = longer;
    }
    cli_error(CLI_USAGE, "%s: %s%s: the name must be one of %s", function, option, name, names);
    free(names);
    return NULL;
}

static const char *function_name(const void *names, size_t index) {
    const kiln_operator *const *operators = names;
    for (; index >= (*operators)->function_count; operators++)
        index -= (*operators)->function_count;
    return (*operators)->functions[index].name;
}

int call_begin(operator_call *call, const char *command, const char *function) {
    const kiln_operator *const *operators;
    size_t count, functions = 0;
    *call = (operator_call){.bf16 = NPY_BF16};
    kiln_status status = kiln_all_operators(&operators, &count);
    if (status != KILN_OK) return cli_fail(status, "%s", command);
    for (size_t i = 0; i < count; i++) {
        for (uint32_t f = 0; f < operators[i]->function_count; f++) {
            if (strcmp(operators[i]->functions[f].name, function) != 0) continue;
            call->op = operators[i];
            call->function = &operators[i]->functions[f];
        }
        functions += operators[i]->function_count;
    }
    for (size_t i = 0; i < count && !call->op; i++) {
        if (strcmp(operators[i]->name, function) != 0) continue;
        char *names = NULL;
        for (uint32_t f = 0; f < operators[i]->function_count; f++) {
            const char *before = !names ? "" : f + 1 < operators[i]->function_count ? ", " : " or ";
            char *longer = cli_format("%s%s%s", names ? names : "", before, operators[i]->functions[f].name);
            free(names);
            names = longer;
        }
        int code = cli_error(CLI_USAGE, "%s: %s is an operator: which function of it, %s?", command, function, names);
        free(names);
        return code;
    }
    if (!call->op) {
        const char *nearest = cli_nearest(function, function_name, operators, functions);
        return cli_error(CLI_USAGE, "%s: no function %s; %s%s%s", command, function, nearest ? "did you mean " : "",
                         nearest ? nearest : "see kiln run --help", nearest ? "?" : "");
    }
    call->fields = cli_allocate(call->op->field_count, sizeof *call->fields);
    for (uint32_t i = 0; i < call->op->field_count; i++)
        call->fields[i].description = &call->op->fields[i];
    call->params = cli_allocate(1, call->op->params_size);
    return CLI_OK;
}

int call_bind(operator_call *call, const char *name, const npy_header *array, void *data) {
    call_field *field = take_field(call, "--in ", name, INPUTS);
    if (!field) return CLI_USAGE;
    choose_dtype(call, field->description, array);
    npy_dtype wanted = call_dtype(call, field->description);
    bool bits = wanted == NPY_BF16 && array->dtype == NPY_U16;
    if (array->dtype != wanted && !bits) {
        const call_field *option = call_find(call, field->description->dtype);
        char *names = option && !option->given ? call_dtype_names(call, field->description)
                                               : cli_format("%s", npy_dtype_name(wanted));
        int code = cli_error(CLI_USAGE, "%s: %s is %s: must be %s", call->function->name, name,
                             npy_dtype_name(array->dtype), names);
        free(names);
        return code;
    }
    if (bits) call->bf16 = NPY_U16;
    field->given = true;
    field->array = *array;
    field->host = data;
    return CLI_OK;
}

int call_want(operator_call *call, const char *name, const call_field **out_field) {
    call_field *field = take_field(call, "--out ", name, OUTPUTS);
    if (!field) return CLI_USAGE;
    field->wanted = true;
    if (field->description->role == KILN_FIELD_OUTPUT) field->given = true;
    *out_field = field;
    return CLI_OK;
}

/* The number of a choice in "erf,tanh,quick"; -1 if it is none. */
static int64_t find_choice(const char *choices, const char *value) {
    for (int64_t number = 0; *choices; number++) {
        size_t length = strcspn(choices, ",");
        if (strlen(value) == length && memcmp(choices, value, length) == 0) return number;
        choices += length + (choices[length] == ',');
    }
    return -1;
}

static bool read_integer(const char *text, int64_t *out_value) {
    char *end;
    errno = 0;
    *out_value = strtoll(text, &end, 10);
    return end != text && !*end && !errno;
}

/* The bits of a float. */
static bool read_real(const char *text, int64_t *out_value) {
    char *end;
    float value = strtof(text, &end);
    *out_value = 0;
    memcpy(out_value, &value, sizeof value);
    return end != text && !*end && isfinite(value);
}

int call_set(operator_call *call, const char *option, const char *name, const char *value) {
    call_field *field = take_field(call, option, name, SETTABLE);
    const char *function = call->function->name;
    if (!field) return CLI_USAGE;
    field->given = true;
    switch (field->description->role) {
    case KILN_FIELD_OPTION:
        field->value = find_choice(field->description->choices, value);
        if (field->value >= 0) return CLI_OK;
        return cli_error(CLI_USAGE, "%s: %s%s=%s: must be one of %s", function, option, name, value,
                         field->description->choices);
    case KILN_FIELD_INTEGER:
        if (read_integer(value, &field->value)) return CLI_OK;
        return cli_error(CLI_USAGE, "%s: %s%s=%s: must be a number from -2^63 to 2^63 - 1", function, option, name,
                         value);
    case KILN_FIELD_REAL:
        if (read_real(value, &field->value)) return CLI_OK;
        return cli_error(CLI_USAGE, "%s: %s%s=%s: must be a finite number", function, option, name, value);
    default:
        if (cli_number(value, INT64_MAX, &field->value)) return CLI_OK;
        return cli_error(CLI_USAGE, "%s: %s%s=%s: must be a number from 0 to 2^63 - 1", function, option, name, value);
    }
}

bool call_give(operator_call *call, const char *name) {
    call_field *field = call_find(call, name);
    if (!field || !call_is_tensor(field->description) || !field->description->optional) return false;
    return field->given = true;
}

int call_leave_out(operator_call *call, const char *name) {
    call_field *field = take_field(call, "--without ", name, INPUTS | OUTPUTS);
    if (!field) return CLI_USAGE;
    if (!field->description->optional)
        return cli_error(CLI_USAGE, "%s: --without %s: it is not optional", call->function->name, name);
    field->left_out = true;
    return CLI_OK;
}

/* ---- The device's side ------------------------------------------------------------------------------------------- */

/* Puts a value into the params struct; this machine is little-endian, so the low bytes are the narrower integer. */
static void put(operator_call *call, const kiln_field *field, const void *value) {
    memcpy((uint8_t *)call->params + field->offset, value, field->size);
}

static kiln_status upload_tensor(operator_call *call, call_field *tensor, kiln_stream *stream) {
    size_t size = (size_t)tensor->array.data_size;
    /* An operator may ask for a pointer even where there is no element. */
    kiln_status status = kiln_memory_alloc(stream->device, size ? size : 1, &tensor->device);
    if (status == KILN_OK && tensor->host)
        status = kiln_copy(stream, tensor->device, tensor->host, size, KILN_COPY_TO_DEVICE);
    put(call, tensor->description, &tensor->device);
    return status;
}

static kiln_status upload(operator_call *call, kiln_stream *stream) {
    kiln_status status = KILN_OK;
    for (uint32_t i = 0; i < call->op->field_count && status == KILN_OK; i++) {
        call_field *field = &call->fields[i];
        if (call_is_tensor(field->description) && field->given)
            status = upload_tensor(call, field, stream);
        else if (has_role(field->description, SETTABLE))
            put(call, field->description, &field->value);
    }
    if (status == KILN_OK && call->function->workspace_size)
        status = call->function->workspace_size(stream, call->params, call->op->params_size, &call->workspace_size);
    if (status == KILN_OK) status = kiln_memory_alloc(stream->device, call->workspace_size, &call->workspace);
    for (uint32_t i = 0; i < call->op->field_count && status == KILN_OK; i++) {
        const kiln_field *field = &call->op->fields[i];
        if (field->role == KILN_FIELD_WORKSPACE) put(call, field, &call->workspace);
        if (field->role == KILN_FIELD_WORKSPACE_SIZE) put(call, field, &call->workspace_size);
    }
    return status;
}

int call_upload(operator_call *call, kiln_stream *stream) {
    kiln_status status = upload(call, stream);
    return status == KILN_OK ? CLI_OK : cli_fail(status, "%s", call->function->name);
}

/* What is typical, or follows from what is; 0 if it is of no tensor. */
static int plan_sizes(operator_call *call) {
    char *missing = NULL;
    for (uint32_t i = 0; i < call->op->field_count; i++) {
        call_field *field = &call->fields[i];
        if (field->description->role != KILN_FIELD_SIZE || field->given) continue;
        if (!*field->description->shape && call_size_is_unused(call, field)) continue;
        field->given = true;
        field->value = field->description->typical;
        field->follows = field->description->follows != NULL;
        if (field->value || field->follows) continue;
        char *longer = cli_format("%s %s=NUMBER", missing ? missing : "", field->description->name);
        free(missing);
        missing = longer;
    }
    call_follow(call);
    if (!missing) return CLI_OK;
    cli_error(CLI_USAGE, "%s: missing:%s", call->function->name, missing);
    free(missing);
    return CLI_USAGE;
}

int call_plan(operator_call *call, kiln_stream *stream) {
    /* Each tensor has its own quarter of a terabyte, so that no two overlap. */
    const uint64_t step = (uint64_t)1 << 38;
    uint64_t address = step;
    int code = plan_sizes(call);
    if (code != CLI_OK) return code;
    for (uint32_t i = 0; i < call->op->field_count; i++, address += step) {
        const call_field *field = &call->fields[i];
        const kiln_field *description = field->description;
        if (call_is_tensor(description) && (field->given || !description->optional)) put(call, description, &address);
        if (has_role(description, SETTABLE)) put(call, description, &field->value);
    }
    kiln_status status = KILN_OK;
    if (call->function->workspace_size)
        status = call->function->workspace_size(stream, call->params, call->op->params_size, &call->workspace_size);
    for (uint32_t i = 0; i < call->op->field_count && call->workspace_size; i++) {
        const kiln_field *field = &call->op->fields[i];
        if (field->role == KILN_FIELD_WORKSPACE) put(call, field, &address);
        if (field->role == KILN_FIELD_WORKSPACE_SIZE) put(call, field, &call->workspace_size);
    }
    return status == KILN_OK ? CLI_OK : cli_fail(status, "%s", call->function->name);
}

kiln_status call_launch(operator_call *call, kiln_stream *stream) {
    return call->function->call(stream, call->params, call->op->params_size);
}

int call_download(operator_call *call, kiln_stream *stream) {
    kiln_status status = kiln_stream_sync(stream);
    for (uint32_t i = 0; i < call->op->field_count && status == KILN_OK; i++) {
        call_field *field = &call->fields[i];
        if (!field->wanted) continue;
        if (!field->host) field->host = cli_allocate((size_t)field->array.data_size, 1);
        status = kiln_copy(stream, field->host, field->device, (size_t)field->array.data_size, KILN_COPY_TO_HOST);
    }
    if (status == KILN_OK) status = kiln_stream_sync(stream);
    return status == KILN_OK ? CLI_OK : cli_fail(status, "%s", call->function->name);
}

void call_free(operator_call *call, kiln_device *device) {
    for (uint32_t i = 0; call->fields && i < call->op->field_count; i++) {
        if (device) kiln_memory_free(device, call->fields[i].device);
        free(call->fields[i].host);
    }
    if (device) kiln_memory_free(device, call->workspace);
    free(call->fields);
    free(call->params);
    *call = (operator_call){0};
}
