#include "text_input.h"
#include "server_request.h"
#include "utf8.h"
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* Numbers that a request may set, as inputs of one element or as parameters: (name, type, least, most, rule). */
#define TEXT_NUMBERS(NUMBER)                                                                                \
    NUMBER(max_tokens, INT32, 1, INT32_MAX, "1 or more") /* absent: as many as the model's length allows */ \
    NUMBER(temperature, FP32, 0, 1e6, "from 0 to 1e6")                                                      \
    NUMBER(top_k, INT32, 0, INT32_MAX, "0 or more")                                                         \
    NUMBER(top_p, FP32, 0, 1, "from 0 to 1")                                                                \
    NUMBER(min_p, FP32, 0, 1, "from 0 to 1")                                                                \
    NUMBER(seed, INT64, -0x1p63, 0x1p63, "a whole number of 64 bits") /* absent: another each time */       \
    NUMBER(stream, BOOL, 0, 1, "true or false")

typedef enum text_number {
#define NUMBER(name, type, least, most, rule) TEXT_##name,
    TEXT_NUMBERS(NUMBER) TEXT_NUMBER_COUNT
#undef NUMBER
} text_number;

static const struct number_rule {
    const char *name;
    TRITONSERVER_DataType type;
    double least, most;
    const char *rule;
} rules[] = {
#define NUMBER(name, type, least, most, rule) {#name, TRITONSERVER_TYPE_##type, least, most, rule},
    TEXT_NUMBERS(NUMBER)
#undef NUMBER
};

/* A value in both forms: a real number cut, a whole one rounded. */
typedef struct number {
    bool given;
    int64_t integer;
    double real;
} number;

static TRITONSERVER_Error *check(text_number which, number value, number *out) {
    const struct number_rule *rule = &rules[which];
    value.given = true;
    *out = value;
    if (value.real >= rule->least && value.real <= rule->most) return NULL;
    return triton_error(TRITONSERVER_ERROR_INVALID_ARG, "%s must be %s", rule->name, rule->rule);
}

static TRITONSERVER_Error *read_input_number(text_number which, TRITONBACKEND_Input *input, const input_tensor *tensor,
                                             number *out) {
    number value = {0};
    union {
        bool boolean;
        int32_t i32;
        int64_t i64;
        float f32;
    } bytes;
    const struct number_rule *rule = &rules[which];
    const size_t size = rule->type == TRITONSERVER_TYPE_BOOL ? 1 : rule->type == TRITONSERVER_TYPE_INT64 ? 8 : 4;
    if (tensor->type != rule->type || tensor->size != size)
        return triton_error(TRITONSERVER_ERROR_INVALID_ARG, "%s must be one element of its type", rule->name);
    TRITON_TRY(input_read(input, rule->name, size, &bytes));
    if (rule->type == TRITONSERVER_TYPE_FP32) {
        value.real = (double)bytes.f32;
    } else {
        value.integer = size == 1 ? bytes.boolean : size == 4 ? bytes.i32 : bytes.i64;
        value.real = (double)value.integer;
    }
    return check(which, value, out);
}

static TRITONSERVER_Error *read_parameter(text_number which, TRITONSERVER_ParameterType type, const void *parameter,
                                          number *out) {
    number value = {0};
    TRITONSERVER_DataType wanted = rules[which].type;
    bool fits = true;
    if (type == TRITONSERVER_PARAMETER_DOUBLE && wanted == TRITONSERVER_TYPE_FP32) {
        value.real = *(const double *)parameter;
    } else if (type == TRITONSERVER_PARAMETER_BOOL && wanted == TRITONSERVER_TYPE_BOOL) {
        value.integer = *(const bool *)parameter;
        value.real = (double)value.integer;
    } else if (type == TRITONSERVER_PARAMETER_INT && wanted != TRITONSERVER_TYPE_BOOL) {
        value.integer = *(const int64_t *)parameter;
        value.real = (double)value.integer;
    } else {
        fits = false;
    }
    if (fits) return check(which, value, out);
    return triton_error(TRITONSERVER_ERROR_INVALID_ARG, "parameter %s must be %s", rules[which].name,
                        rules[which].rule);
}

static TRITONSERVER_Error *read_parameters(TRITONBACKEND_Request *request, number numbers[TEXT_NUMBER_COUNT]) {
    uint32_t count;
    TRITON_TRY(TRITONBACKEND_RequestParameterCount(request, &count));
    for (uint32_t i = 0; i < count; i++) {
        const char *name;
        TRITONSERVER_ParameterType type;
        const void *value;
        TRITON_TRY(TRITONBACKEND_RequestParameter(request, i, &name, &type, &value));
        for (text_number which = 0; which < TEXT_NUMBER_COUNT; which++)
            if (!strcmp(name, rules[which].name)) TRITON_TRY(read_parameter(which, type, value, &numbers[which]));
    }
    return NULL;
}

/* The bytes of text_input, with a NUL behind; the caller frees them. */
static TRITONSERVER_Error *read_text(TRITONBACKEND_Input *input, const input_tensor *tensor, char **out_text) {
    uint32_t length;
    if (tensor->type != TRITONSERVER_TYPE_BYTES || tensor->size < sizeof length)
        return triton_error(TRITONSERVER_ERROR_INVALID_ARG, "text_input must be one text");
    char *bytes = malloc(tensor->size + 1);
    if (!bytes) return triton_error(TRITONSERVER_ERROR_INTERNAL, "no memory for text_input");
    TRITONSERVER_Error *error = input_read(input, "text_input", tensor->size, bytes);
    memcpy(&length, bytes, sizeof length);
    if (!error && length != tensor->size - sizeof length)
        error = triton_error(TRITONSERVER_ERROR_INVALID_ARG, "text_input must be one text");
    memmove(bytes, bytes + sizeof length, tensor->size - sizeof length);
    bytes[tensor->size - sizeof length] = '\0';
    size_t wrong = error ? 0 : utf8_wrong_byte(bytes, length);
    if (!error && wrong < length)
        error = triton_error(TRITONSERVER_ERROR_INVALID_ARG, "text_input is no UTF-8: byte %zu is wrong", wrong);
    if (!error && strlen(bytes) < length)
        error = triton_error(TRITONSERVER_ERROR_INVALID_ARG, "text_input has a NUL character, which no token has");
    if (error)
        free(bytes);
    else
        *out_text = bytes;
    return error;
}

/* Everything that a request says. *out_text is the caller's, also after an error. */
static TRITONSERVER_Error *read_tensors(TRITONBACKEND_Request *request, number numbers[TEXT_NUMBER_COUNT],
                                        char **out_text) {
    uint32_t count;
    TRITON_TRY(read_parameters(request, numbers));
    TRITON_TRY(TRITONBACKEND_RequestInputCount(request, &count));
    for (uint32_t i = 0; i < count; i++) {
        TRITONBACKEND_Input *input;
        input_tensor tensor;
        TRITON_TRY(TRITONBACKEND_RequestInputByIndex(request, i, &input));
        TRITON_TRY(input_properties(input, &tensor));
        if (!strcmp(tensor.name, "text_input") && !*out_text) TRITON_TRY(read_text(input, &tensor, out_text));
        for (text_number which = 0; which < TEXT_NUMBER_COUNT; which++)
            if (!strcmp(tensor.name, rules[which].name))
                TRITON_TRY(read_input_number(which, input, &tensor, &numbers[which]));
    }
    if (*out_text) return NULL;
    return triton_error(TRITONSERVER_ERROR_INVALID_ARG, "text_input is missing");
}

TRITONSERVER_Error *text_input_read(TRITONBACKEND_Request *request, text_input *out) {
    number numbers[TEXT_NUMBER_COUNT] = {0};
    *out = (text_input){0};
    TRITONSERVER_Error *error = read_tensors(request, numbers, &out->text);
    if (!error && !numbers[TEXT_seed].given &&
        getrandom(&numbers[TEXT_seed].integer, sizeof(int64_t), 0) != (ssize_t)sizeof(int64_t))
        error = triton_error(TRITONSERVER_ERROR_INTERNAL, "the system gives no random numbers");
    if (error) {
        free(out->text);
        *out = (text_input){0};
        return error;
    }
    out->max_tokens = numbers[TEXT_max_tokens].given ? (int32_t)numbers[TEXT_max_tokens].integer : INT32_MAX;
    out->stream = numbers[TEXT_stream].integer;
    out->sampling = (sampling){.temperature = (float)numbers[TEXT_temperature].real,
                               .top_p = (float)numbers[TEXT_top_p].real,
                               .min_p = (float)numbers[TEXT_min_p].real,
                               .top_k = (int32_t)numbers[TEXT_top_k].integer,
                               .seed = numbers[TEXT_seed].integer};
    return NULL;
}

static const char *type_name(TRITONSERVER_DataType type) {
    switch (type) {
    case TRITONSERVER_TYPE_BOOL:
        return "TYPE_BOOL";
    case TRITONSERVER_TYPE_INT32:
        return "TYPE_INT32";
    case TRITONSERVER_TYPE_INT64:
        return "TYPE_INT64";
    default:
        return "TYPE_FP32";
    }
}

void text_describe_tensors(json_writer *json) {
    json_array(json, "input");
    model_config_tensor(json, "text_input", "TYPE_STRING", "1", false);
    for (text_number which = 0; which < TEXT_NUMBER_COUNT; which++)
        model_config_tensor(json, rules[which].name, type_name(rules[which].type), "1", true);
    json_close(json);
    json_array(json, "output");
    model_config_tensor(json, "text_output", "TYPE_STRING", "1", false);
    model_config_tensor(json, "token_ids", "TYPE_INT32", "-1", false);
    model_config_tensor(json, "finish_reason", "TYPE_STRING", "1", false);
    json_close(json);
}
