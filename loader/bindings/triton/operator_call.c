#include "operator_call.h"
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Dtypes ---- */

static const struct dtype {
    const char *name, *type_name; /* kiln's, and the configuration's */
    TRITONSERVER_DataType type;
    uint32_t size;
} dtypes[] = {
    {"f32", "TYPE_FP32", TRITONSERVER_TYPE_FP32, 4},   {"f16", "TYPE_FP16", TRITONSERVER_TYPE_FP16, 2},
    {"bf16", "TYPE_BF16", TRITONSERVER_TYPE_BF16, 2},  {"i32", "TYPE_INT32", TRITONSERVER_TYPE_INT32, 4},
    {"i64", "TYPE_INT64", TRITONSERVER_TYPE_INT64, 8}, {"u8", "TYPE_UINT8", TRITONSERVER_TYPE_UINT8, 1},
    {"i8", "TYPE_INT8", TRITONSERVER_TYPE_INT8, 1},
};

static const struct dtype *find_dtype(const char *name, size_t length) {
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (strlen(dtypes[i].name) == length && !memcmp(dtypes[i].name, name, length)) return &dtypes[i];
    return NULL;
}

static bool is_word(const char *text, size_t length, const char *word) {
    return strlen(word) == length && !memcmp(text, word, length);
}

/* One of several words between commas. */
static const char *choice(const char *choices, int64_t number, size_t *out_length) {
    for (; number; number--)
        choices += strcspn(choices, ",") + 1;
    *out_length = strcspn(choices, ",");
    return choices;
}

/* A tensor's dtype, which an option of the call may name; NULL: one that the server does not have. */
static const struct dtype *dtype_of(const operator_call *call, const kiln_field *field) {
    const char *name = field->dtype;
    size_t length = strlen(name);
    for (uint32_t i = 0; i < call->op->field_count; i++)
        if (!strcmp(call->op->fields[i].name, field->dtype))
            name = choice(call->op->fields[i].choices, call->fields[i].value, &length);
    if (is_word(name, length, "part")) return find_dtype(call->function->part, strlen(call->function->part));
    return find_dtype(name, length);
}

/* ---- Shapes ---- */

/* One name of a shape, with its factor, "2*cols", or with what is added to it, "batch+1". */
typedef struct shape_term {
    int64_t factor, more;
    uint32_t size; /* field */
} shape_term;

/* The field of a name, or field_count. */
static uint32_t find_field(const kiln_operator *op, const char *name, size_t length) {
    uint32_t i = 0;
    while (i < op->field_count && !is_word(name, length, op->fields[i].name))
        i++;
    return i;
}

/* The dimensions of a tensor that hold: those behind a bar do where the option before a colon has not its first choice,
 * or, without such an option, where an optional input is not given. */
static const char *dimensions_that_hold(const operator_call *call, const kiln_field *tensor) {
    const kiln_operator *op = call->op;
    const char *colon = strchr(tensor->shape, ':'), *first = colon ? colon + 1 : tensor->shape,
               *bar = strchr(first, '|');
    bool second = false;
    if (colon) {
        uint32_t option = find_field(op, tensor->shape, (size_t)(colon - tensor->shape));
        second = option < op->field_count && call->fields[option].value != 0;
    } else {
        for (uint32_t i = 0; i < op->field_count; i++)
            second |= operator_call_is_input(call, i) && op->fields[i].optional && !call->fields[i].given;
    }
    return bar && second ? bar + 1 : first;
}

/* The terms of a tensor's shape. Returns how many, or 0 if the shape is of another form. */
static uint32_t parse_shape(const operator_call *call, const kiln_field *tensor, shape_term terms[CALL_DIMENSIONS]) {
    const kiln_operator *op = call->op;
    const char *at = dimensions_that_hold(call, tensor);
    uint32_t count = 0;
    while (*at && *at != '|' && count < CALL_DIMENSIONS) {
        char *end;
        shape_term term = {.factor = 1};
        int64_t factor = strtoll(at, &end, 10);
        if (end != at && *end == '*') {
            term.factor = factor;
            at = end + 1;
        }
        size_t length = strcspn(at, "+,|");
        term.size = find_field(op, at, length);
        at += length;
        if (*at == '+') {
            term.more = strtoll(at + 1, &end, 10);
            at = end;
        }
        if (term.size == op->field_count || term.factor < 1) return 0;
        terms[count++] = term;
        at += *at == ',';
    }
    return count;
}

bool operator_call_is_input(const operator_call *call, uint32_t field) {
    return call->op->fields[field].role == KILN_FIELD_INPUT;
}

bool operator_call_is_output(const operator_call *call, uint32_t field) {
    return call->op->fields[field].role == KILN_FIELD_OUTPUT;
}

/* ---- Making ---- */

/* Whether the server can have each tensor. */
static TRITONSERVER_Error *check_tensors(const operator_call *call) {
    shape_term terms[CALL_DIMENSIONS];
    for (uint32_t i = 0; i < call->op->field_count; i++) {
        const kiln_field *field = &call->op->fields[i];
        if (field->role == KILN_FIELD_UPDATE)
            return triton_error(TRITONSERVER_ERROR_INVALID_ARG,
                                "function %s updates %s in place: no model can be made of it", call->function->name,
                                field->name);
        if (!operator_call_is_input(call, i) && !operator_call_is_output(call, i)) continue;
        if (!dtype_of(call, field) || !parse_shape(call, field, terms))
            return triton_error(TRITONSERVER_ERROR_UNSUPPORTED,
                                "function %s: %s has a type or a shape that the server has not", call->function->name,
                                field->name);
    }
    return NULL;
}

TRITONSERVER_Error *operator_call_create(const char *function, operator_call *out) {
    const kiln_operator *const *operators;
    size_t count;
    *out = (operator_call){0};
    if (kiln_all_operators(&operators, &count) != KILN_OK)
        return triton_error(TRITONSERVER_ERROR_INTERNAL, "%s", kiln_last_error());
    for (size_t i = 0; i < count; i++)
        for (uint32_t f = 0; f < operators[i]->function_count; f++)
            if (!strcmp(operators[i]->functions[f].name, function))
                *out = (operator_call){.op = operators[i], .function = &operators[i]->functions[f]};
    if (!out->op)
        return triton_error(TRITONSERVER_ERROR_INVALID_ARG,
                            "parameter function is \"%s\": `kiln run --help` lists those there are", function);
    out->fields = calloc(out->op->field_count, sizeof *out->fields);
    out->params = calloc(1, out->op->params_size);
    out->set_params = calloc(1, out->op->params_size);
    TRITONSERVER_Error *error = out->fields && out->params && out->set_params
                                    ? check_tensors(out)
                                    : triton_error(TRITONSERVER_ERROR_INTERNAL, "no memory for the model");
    if (error) operator_call_free(out);
    return error;
}

void operator_call_free(operator_call *call) {
    free(call->fields);
    free(call->params);
    free(call->set_params);
    *call = (operator_call){0};
}

/* The number of a word among the choices, or -1. */
static int64_t find_choice(const char *choices, const char *value) {
    for (int64_t number = 0; *choices; number++) {
        size_t length = strcspn(choices, ",");
        if (is_word(choices, length, value)) return number;
        choices += length + (choices[length] == ',');
    }
    return -1;
}

TRITONSERVER_Error *operator_call_set(operator_call *call, const char *name, const char *value) {
    for (uint32_t i = 0; i < call->op->field_count; i++) {
        const kiln_field *description = &call->op->fields[i];
        call_field *field = &call->fields[i];
        const kiln_field_role role = description->role;
        float real = 0;
        char *end = NULL;
        bool good = false;
        if (strcmp(description->name, name) != 0) continue;
        errno = 0;
        if (role == KILN_FIELD_OPTION) {
            field->value = find_choice(description->choices, value);
            good = field->value >= 0;
        } else if (role == KILN_FIELD_INTEGER || role == KILN_FIELD_SIZE) {
            field->value = strtoll(value, &end, 10);
            good = end != value && !*end && !errno && (role == KILN_FIELD_INTEGER || field->value >= 0);
        } else if (role == KILN_FIELD_REAL) {
            real = strtof(value, &end);
            good = end != value && !*end && isfinite(real);
        }
        if (!good)
            return triton_error(TRITONSERVER_ERROR_INVALID_ARG, "parameter %s is \"%s\": must be %s%s", name, value,
                                role == KILN_FIELD_OPTION                               ? "one of "
                                : role == KILN_FIELD_REAL                               ? "a finite number"
                                : role == KILN_FIELD_INTEGER || role == KILN_FIELD_SIZE ? "a whole number"
                                                                                        : "left to the requests",
                                role == KILN_FIELD_OPTION ? description->choices : "");
        field->set = true;
        if (role == KILN_FIELD_REAL)
            memcpy(call->set_params + description->offset, &real, description->size);
        else /* little-endian: the low bytes are the narrower integer */
            memcpy(call->set_params + description->offset, &field->value, description->size);
        return NULL;
    }
    return triton_error(TRITONSERVER_ERROR_INVALID_ARG, "parameter %s: function %s has no field of that name", name,
                        call->function->name);
}

static void describe_tensors(const operator_call *call, json_writer *json, kiln_field_role role) {
    for (uint32_t i = 0; i < call->op->field_count; i++) {
        const kiln_field *field = &call->op->fields[i];
        shape_term terms[CALL_DIMENSIONS];
        char dimensions[3 * CALL_DIMENSIONS + 1] = "";
        if (field->role != role) continue;
        uint32_t count = parse_shape(call, field, terms);
        for (uint32_t d = 0; d < count; d++)
            strcat(dimensions, d ? ",-1" : "-1");
        model_config_tensor(json, field->name, dtype_of(call, field)->type_name, dimensions,
                            role == KILN_FIELD_INPUT && field->optional);
    }
}

void operator_call_describe(const operator_call *call, json_writer *json) {
    json_array(json, "input");
    describe_tensors(call, json, KILN_FIELD_INPUT);
    json_close(json);
    json_array(json, "output");
    describe_tensors(call, json, KILN_FIELD_OUTPUT);
    json_close(json);
}

/* ---- Binding ---- */

void operator_call_begin(operator_call *call) {
    for (uint32_t i = 0; i < call->op->field_count; i++) {
        call_field *field = &call->fields[i];
        field->given = field->set;
        field->size = 0;
    }
    memcpy(call->params, call->set_params, call->op->params_size);
}

TRITONSERVER_Error *operator_call_bind(operator_call *call, const char *name, TRITONSERVER_DataType type,
                                       const int64_t *shape, uint32_t dimensions, uint32_t *out_field) {
    for (uint32_t i = 0; i < call->op->field_count; i++) {
        call_field *field = &call->fields[i];
        if (!operator_call_is_input(call, i) || strcmp(call->op->fields[i].name, name) != 0) continue;
        const struct dtype *dtype = dtype_of(call, &call->op->fields[i]);
        if (type != dtype->type)
            return triton_error(TRITONSERVER_ERROR_INVALID_ARG, "%s must be of %s", name, dtype->type_name);
        int64_t bytes = dtype->size;
        bool good = dimensions <= CALL_DIMENSIONS;
        for (uint32_t d = 0; d < dimensions && good; d++)
            good = shape[d] >= 0 && !__builtin_mul_overflow(bytes, shape[d], &bytes);
        if (!good) return triton_error(TRITONSERVER_ERROR_INVALID_ARG, "%s has a shape that is too large", name);
        field->given = true;
        field->type = type;
        field->dimensions = dimensions;
        field->size = (uint64_t)bytes;
        memcpy(field->shape, shape, dimensions * sizeof *shape);
        *out_field = i;
        return NULL;
    }
    return triton_error(TRITONSERVER_ERROR_INVALID_ARG, "%s is no input of %s", name, call->function->name);
}

/* ---- Resolving ---- */

/* Takes sizes from an input's dimensions, or checks these against what is known. */
static TRITONSERVER_Error *take_sizes(operator_call *call, uint32_t tensor) {
    shape_term terms[CALL_DIMENSIONS];
    call_field *field = &call->fields[tensor];
    const char *name = call->op->fields[tensor].name;
    uint32_t count = parse_shape(call, &call->op->fields[tensor], terms);
    if (field->dimensions != count)
        return triton_error(TRITONSERVER_ERROR_INVALID_ARG, "%s has %u dimensions: must be %u, [%s]", name,
                            field->dimensions, count, call->op->fields[tensor].shape);
    for (uint32_t i = 0; i < count; i++) {
        call_field *size = &call->fields[terms[i].size];
        const char *size_name = call->op->fields[terms[i].size].name;
        int64_t dimension = field->shape[i] - terms[i].more;
        if (dimension < 0 || dimension % terms[i].factor)
            return triton_error(TRITONSERVER_ERROR_INVALID_ARG,
                                "dimension %u of %s is %" PRId64 ": must be %" PRId64 " * %s + %" PRId64, i, name,
                                field->shape[i], terms[i].factor, size_name, terms[i].more);
        int64_t value = dimension / terms[i].factor;
        if (size->given && size->value != value)
            return triton_error(TRITONSERVER_ERROR_INVALID_ARG,
                                "dimension %u of %s says that %s is %" PRId64 ", and others %" PRId64, i, name,
                                size_name, value, size->value);
        size->given = true;
        size->value = value;
    }
    return NULL;
}

/* The shape of an output and its bytes. */
static TRITONSERVER_Error *shape_output(operator_call *call, uint32_t tensor) {
    shape_term terms[CALL_DIMENSIONS];
    const kiln_field *description = &call->op->fields[tensor];
    const struct dtype *dtype = dtype_of(call, description);
    call_field *field = &call->fields[tensor];
    int64_t bytes = dtype->size;
    bool overflow = false;
    field->type = dtype->type;
    field->dimensions = parse_shape(call, description, terms);
    for (uint32_t i = 0; i < field->dimensions; i++) {
        overflow |= __builtin_mul_overflow(call->fields[terms[i].size].value, terms[i].factor, &field->shape[i]);
        overflow |= __builtin_add_overflow(field->shape[i], terms[i].more, &field->shape[i]);
        overflow |= __builtin_mul_overflow(bytes, field->shape[i], &bytes);
    }
    field->size = (uint64_t)bytes;
    if (!overflow) return NULL;
    return triton_error(TRITONSERVER_ERROR_INVALID_ARG, "%s would have 2^63 bytes or more", description->name);
}

/* Whether a size is in the shape of a tensor that every call has. */
static bool is_needed(const operator_call *call, uint32_t size) {
    shape_term terms[CALL_DIMENSIONS];
    for (uint32_t i = 0; i < call->op->field_count; i++) {
        if (!operator_call_is_input(call, i) && !operator_call_is_output(call, i)) continue;
        if (call->op->fields[i].optional) continue;
        uint32_t count = parse_shape(call, &call->op->fields[i], terms);
        for (uint32_t t = 0; t < count; t++)
            if (terms[t].size == size) return true;
    }
    return false;
}

/* What no input says: 1 for a number of sequences, and 0 for what is of optional tensors alone. */
static TRITONSERVER_Error *complete_size(operator_call *call, uint32_t size) {
    call_field *field = &call->fields[size];
    if (field->given) return NULL;
    if (is_needed(call, size))
        return triton_error(TRITONSERVER_ERROR_INVALID_ARG, "no input says what %s is", call->op->fields[size].name);
    field->value = *call->op->fields[size].shape ? 1 : 0;
    return NULL;
}

TRITONSERVER_Error *operator_call_resolve(operator_call *call) {
    const kiln_operator *op = call->op;
    for (uint32_t i = 0; i < op->field_count; i++) {
        if (!operator_call_is_input(call, i)) continue;
        if (call->fields[i].given)
            TRITON_TRY(take_sizes(call, i));
        else if (!op->fields[i].optional)
            return triton_error(TRITONSERVER_ERROR_INVALID_ARG, "%s is missing", op->fields[i].name);
    }
    for (uint32_t i = 0; i < op->field_count; i++) {
        if (op->fields[i].role != KILN_FIELD_SIZE) continue;
        TRITON_TRY(complete_size(call, i));
        memcpy(call->params + op->fields[i].offset, &call->fields[i].value, op->fields[i].size);
    }
    for (uint32_t i = 0; i < op->field_count; i++)
        if (operator_call_is_output(call, i) && call->fields[i].given) TRITON_TRY(shape_output(call, i));
    return NULL;
}
