#include "model_config.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#define JSMN_STATIC
#include <jsmn.h>

typedef struct json_text {
    const char *text;
    jsmntok_t *tokens;
    int count;
} json_text;

/* The number of the token behind one and all that is in it. */
static int behind(const json_text *json, int token) {
    int end = json->tokens[token].end;
    while (++token < json->count && json->tokens[token].start < end)
        ;
    return token;
}

static bool is_word(const json_text *json, int token, const char *word) {
    const jsmntok_t *t = &json->tokens[token];
    return strlen(word) == (size_t)(t->end - t->start) && !memcmp(json->text + t->start, word, strlen(word));
}

/* The value of an object's key, or -1. */
static int find(const json_text *json, int object, const char *key) {
    if (object < 0 || json->tokens[object].type != JSMN_OBJECT) return -1;
    int token = object + 1;
    for (int i = 0; i < json->tokens[object].size; i++) {
        if (is_word(json, token, key)) return token + 1;
        token = behind(json, token + 1);
    }
    return -1;
}

/* A string without its escapes, which the caller frees. NULL: there is no memory, or it has an escape of a character
 * beyond ASCII, which the server does not write. */
static char *unescape(const json_text *json, int token) {
    static const char names[] = "bfnrt", characters[] = "\b\f\n\r\t";
    const char *from = json->text + json->tokens[token].start, *end = json->text + json->tokens[token].end;
    char *text = malloc((size_t)(end - from) + 1), *to = text;
    while (text && from < end) {
        const char *name;
        char digits[5] = "";
        if (*from != '\\') {
            *to++ = *from++;
        } else if (from[1] == 'u') {
            memcpy(digits, from + 2, 4);
            long point = strtol(digits, NULL, 16);
            from += 6;
            if (point < 1 || point > 127) {
                free(text);
                return NULL;
            }
            *to++ = (char)point;
        } else {
            name = strchr(names, from[1]);
            *to++ = name ? characters[name - names] : from[1];
            from += 2;
        }
    }
    if (text) *to = '\0';
    return text;
}

static TRITONSERVER_Error *read_parameters(const json_text *json, model_config *out) {
    int object = find(json, 0, "parameters");
    int size = object < 0 ? 0 : json->tokens[object].size;
    out->parameters = calloc((size_t)size + 1, sizeof *out->parameters);
    if (!out->parameters) return triton_error(TRITONSERVER_ERROR_INTERNAL, "no memory for the parameters");
    for (int i = 0, key = object + 1; i < size; i++, key = behind(json, key + 1)) {
        int value = find(json, key + 1, "string_value");
        config_parameter *parameter = &out->parameters[out->count++];
        parameter->name = unescape(json, key);
        parameter->value = value < 0 ? NULL : unescape(json, value);
        if (!parameter->name || !parameter->value)
            return triton_error(TRITONSERVER_ERROR_INVALID_ARG, "parameter %s has no string_value of plain text",
                                parameter->name ? parameter->name : "of an unreadable name");
    }
    return NULL;
}

static TRITONSERVER_Error *read_config(const json_text *json, model_config *out) {
    int size = find(json, 0, "max_batch_size"), decoupled;
    if (size >= 0) out->max_batch_size = strtoll(json->text + json->tokens[size].start, NULL, 10);
    decoupled = find(json, find(json, 0, "model_transaction_policy"), "decoupled");
    out->decoupled = decoupled >= 0 && is_word(json, decoupled, "true");
    return read_parameters(json, out);
}

static TRITONSERVER_Error *parse(const char *text, size_t size, model_config *out) {
    jsmn_parser parser;
    json_text json = {.text = text};
    *out = (model_config){0};
    jsmn_init(&parser);
    json.count = jsmn_parse(&parser, text, size, NULL, 0);
    if (json.count > 0) json.tokens = calloc((size_t)json.count, sizeof *json.tokens);
    if (!json.tokens) return triton_error(TRITONSERVER_ERROR_INTERNAL, "the model's configuration is no JSON");
    jsmn_init(&parser);
    json.count = jsmn_parse(&parser, text, size, json.tokens, (unsigned)json.count);
    TRITONSERVER_Error *error = read_config(&json, out);
    free(json.tokens);
    if (error) model_config_free(out);
    return error;
}

TRITONSERVER_Error *model_config_read(TRITONBACKEND_Model *model, model_config *out) {
    TRITONSERVER_Message *message;
    const char *json;
    size_t size;
    TRITON_TRY(TRITONBACKEND_ModelConfig(model, 1, &message));
    TRITONSERVER_Error *error = TRITONSERVER_MessageSerializeToJson(message, &json, &size);
    if (!error) error = parse(json, size, out);
    triton_log_error(TRITONSERVER_MessageDelete(message), "a configuration");
    return error;
}

void model_config_free(model_config *config) {
    for (size_t i = 0; i < config->count; i++) {
        free(config->parameters[i].name);
        free(config->parameters[i].value);
    }
    free(config->parameters);
    *config = (model_config){0};
}

const char *model_config_find(const model_config *config, const char *name) {
    for (size_t i = 0; i < config->count; i++)
        if (!strcmp(config->parameters[i].name, name)) return config->parameters[i].value;
    return NULL;
}

TRITONSERVER_Error *model_config_integer(const model_config *config, const char *name, int64_t absent, int64_t least,
                                         int64_t most, int64_t *out) {
    const char *text = model_config_find(config, name);
    char *end;
    *out = absent;
    if (!text) return NULL;
    errno = 0;
    *out = strtoll(text, &end, 10);
    if (end != text && !*end && !errno && *out >= least && *out <= most) return NULL;
    return triton_error(TRITONSERVER_ERROR_INVALID_ARG,
                        "parameter %s is \"%s\": must be a whole number from %" PRId64 " to %" PRId64, name, text,
                        least, most);
}

/* ---- Completing ---- */

void model_config_tensor(json_writer *json, const char *name, const char *type, const char *dimensions, bool optional) {
    json_object(json, NULL);
    json_string(json, "name", name);
    json_string(json, "data_type", type);
    json_array(json, "dims");
    for (const char *at = dimensions; *at; at += *at == ',') {
        char *end;
        json_integer(json, NULL, strtoll(at, &end, 10));
        at = end;
    }
    json_close(json);
    if (optional) json_bool(json, "optional", true);
    json_close(json);
}

/* What is to be set, as JSON that the caller frees; NULL: there is no memory. */
static char *write_config(bool decoupled, void (*describe)(void *user, json_writer *json), void *user,
                          size_t *out_size) {
    char *text = NULL;
    FILE *file = open_memstream(&text, out_size);
    json_writer json = {.file = file};
    if (!file) return NULL;
    json_object(&json, NULL);
    json_integer(&json, "max_batch_size", 0);
    json_object(&json, "model_transaction_policy");
    json_bool(&json, "decoupled", decoupled);
    json_close(&json);
    describe(user, &json);
    json_close(&json);
    fclose(file);
    return text;
}

TRITONSERVER_Error *model_config_complete(TRITONBACKEND_Model *model, const model_config *config, bool decoupled,
                                          void (*describe)(void *user, json_writer *json), void *user) {
    bool complete;
    size_t size;
    TRITONSERVER_Message *message;
    if (config->max_batch_size)
        return triton_error(TRITONSERVER_ERROR_INVALID_ARG,
                            "max_batch_size must be 0: the backend batches by itself, or not at all");
    TRITON_TRY(TRITONBACKEND_ModelAutoCompleteConfig(model, &complete));
    if (!complete && config->decoupled != decoupled)
        return triton_error(TRITONSERVER_ERROR_INVALID_ARG, "model_transaction_policy must have decoupled: %s",
                            decoupled ? "true" : "false");
    if (!complete) return NULL;
    char *text = write_config(decoupled, describe, user, &size);
    if (!text) return triton_error(TRITONSERVER_ERROR_INTERNAL, "no memory for the configuration");
    TRITONSERVER_Error *error = TRITONSERVER_MessageNewFromSerializedJson(&message, text, size);
    if (!error) {
        error = TRITONBACKEND_ModelSetConfig(model, 1, message);
        triton_log_error(TRITONSERVER_MessageDelete(message), "a configuration");
    }
    free(text);
    return error;
}
