/* A model's config.pbtxt, as the server hands it over: in JSON, of which the backend reads the parameters. */
#ifndef KILN_TRITON_MODEL_CONFIG_H
#define KILN_TRITON_MODEL_CONFIG_H

#include "loader/cli/json.h"
#include "triton_error.h"

typedef struct config_parameter {
    char *name, *value;
} config_parameter;

typedef struct model_config {
    config_parameter *parameters;
    size_t count;
    int64_t max_batch_size;
    bool decoupled; /* model_transaction_policy */
} model_config;

/* Reads a model's configuration. */
TRITONSERVER_Error *model_config_read(TRITONBACKEND_Model *model, model_config *out);

/* A zeroed one is accepted. */
void model_config_free(model_config *config);

/* A parameter's value, or NULL. */
const char *model_config_find(const model_config *config, const char *name);

/* A parameter that is a whole number, or what stands for it where it is absent. */
TRITONSERVER_Error *model_config_integer(const model_config *config, const char *name, int64_t absent, int64_t least,
                                         int64_t most, int64_t *out);

/* Completes a model's configuration with its inputs and outputs, which `describe` writes as the members "input" and
 * "output" of an object, where the server is to complete it; else checks what the backend relies on: max_batch_size 0,
 * and whether responses are decoupled from requests. */
TRITONSERVER_Error *model_config_complete(TRITONBACKEND_Model *model, const model_config *config, bool decoupled,
                                          void (*describe)(void *user, json_writer *json), void *user);

/* Writes an element of the array "input" or "output". dimensions: "1", "-1" or several with commas. */
void model_config_tensor(json_writer *json, const char *name, const char *type, const char *dimensions, bool optional);

#endif
