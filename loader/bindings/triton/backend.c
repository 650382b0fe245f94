/* The functions that the server calls: docs/serving.md. */
#include "metrics.h"
#include "operator_model.h"
#include "text_model.h"
#include <stdlib.h>

/* The interface of the server that this was run with; a later minor version has all of it. */
enum { API_MAJOR = 1, API_MINOR = 19 };

static void log_line(void *user, kiln_log_level level, const char *text) {
    static const TRITONSERVER_LogLevel levels[] = {[KILN_LOG_INFO] = TRITONSERVER_LOG_INFO,
                                                   [KILN_LOG_WARNING] = TRITONSERVER_LOG_WARN,
                                                   [KILN_LOG_ERROR] = TRITONSERVER_LOG_ERROR};
    (void)user;
    TRITONSERVER_Error *error = TRITONSERVER_LogMessage(levels[level], __FILE__, __LINE__, text);
    if (error) TRITONSERVER_ErrorDelete(error);
}

TRITONSERVER_Error *TRITONBACKEND_Initialize(TRITONBACKEND_Backend *backend) {
    (void)backend;
    uint32_t major, minor;
    TRITON_TRY(TRITONBACKEND_ApiVersion(&major, &minor));
    if (major != API_MAJOR || minor < API_MINOR)
        return triton_error(TRITONSERVER_ERROR_UNSUPPORTED,
                            "the server's backend interface is %u.%u: kiln needs %d.%d or a later minor version", major,
                            minor, API_MAJOR, API_MINOR);
    kiln_set_log(log_line, NULL);
    metrics_open();
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_Finalize(TRITONBACKEND_Backend *backend) {
    (void)backend;
    metrics_close();
    kiln_set_log(NULL, NULL);
    return NULL;
}

/* A model, or an instance of one: of an operator, or of text. */
typedef struct model_state {
    operator_model *of_operator;
    text_model *of_text;
} model_state;

typedef struct instance_state {
    operator_instance *of_operator;
    text_instance *of_text;
} instance_state;

static void close_model(model_state *m) {
    if (m->of_operator) operator_model_close(m->of_operator);
    if (m->of_text) text_model_close(m->of_text);
    free(m);
}

static void close_instance(instance_state *i) {
    if (i->of_operator) operator_instance_close(i->of_operator);
    if (i->of_text) text_instance_close(i->of_text);
    free(i);
}

TRITONSERVER_Error *TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model *model) {
    model_config config;
    TRITON_TRY(model_config_read(model, &config));
    model_state *m = calloc(1, sizeof *m);
    TRITONSERVER_Error *error;
    if (!m)
        error = triton_error(TRITONSERVER_ERROR_INTERNAL, "no memory for the model");
    else if (model_config_find(&config, "function"))
        error = operator_model_open(model, &config, &m->of_operator);
    else
        error = text_model_open(model, &config, &m->of_text);
    model_config_free(&config);
    if (!error) error = TRITONBACKEND_ModelSetState(model, m);
    if (error && m) close_model(m);
    return error;
}

TRITONSERVER_Error *TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model *model) {
    void *state;
    TRITON_TRY(TRITONBACKEND_ModelState(model, &state));
    if (state) close_model(state);
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance *instance) {
    TRITONBACKEND_Model *model;
    void *state;
    TRITON_TRY(TRITONBACKEND_ModelInstanceModel(instance, &model));
    TRITON_TRY(TRITONBACKEND_ModelState(model, &state));
    const model_state *m = state;
    instance_state *i = calloc(1, sizeof *i);
    if (!i) return triton_error(TRITONSERVER_ERROR_INTERNAL, "no memory for the instance");
    TRITONSERVER_Error *error = m->of_operator ? operator_instance_open(m->of_operator, instance, &i->of_operator)
                                               : text_instance_open(m->of_text, instance, &i->of_text);
    if (!error) error = TRITONBACKEND_ModelInstanceSetState(instance, i);
    if (error) close_instance(i);
    return error;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance *instance) {
    void *state;
    TRITON_TRY(TRITONBACKEND_ModelInstanceState(instance, &state));
    if (state) close_instance(state);
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
                                                       TRITONBACKEND_Request **requests, uint32_t count) {
    void *state;
    TRITON_TRY(TRITONBACKEND_ModelInstanceState(instance, &state));
    const instance_state *i = state;
    for (uint32_t r = 0; r < count; r++) {
        if (i->of_operator)
            operator_instance_execute(i->of_operator, requests[r]);
        else
            text_instance_execute(i->of_text, requests[r]);
    }
    return NULL;
}
