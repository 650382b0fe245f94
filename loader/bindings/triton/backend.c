/* The functions that the server calls: docs/serving.md. */
#include "metrics.h"
#include "text_model.h"
#include <stdlib.h>

/* The interface that this was compiled for and run with; a later minor version has all of it. */
enum { API_MAJOR = 1, API_MINOR = 15 };

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

TRITONSERVER_Error *TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model *model) {
    model_config config;
    text_model *opened = NULL;
    TRITON_TRY(model_config_read(model, &config));
    TRITONSERVER_Error *error = text_model_open(model, &config, &opened);
    model_config_free(&config);
    return error ? error : TRITONBACKEND_ModelSetState(model, opened);
}

TRITONSERVER_Error *TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model *model) {
    void *state;
    TRITON_TRY(TRITONBACKEND_ModelState(model, &state));
    if (state) text_model_close(state);
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance *instance) {
    TRITONBACKEND_Model *model;
    text_instance *opened = NULL;
    void *state;
    TRITON_TRY(TRITONBACKEND_ModelInstanceModel(instance, &model));
    TRITON_TRY(TRITONBACKEND_ModelState(model, &state));
    TRITON_TRY(text_instance_open(state, instance, &opened));
    return TRITONBACKEND_ModelInstanceSetState(instance, opened);
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance *instance) {
    void *state;
    TRITON_TRY(TRITONBACKEND_ModelInstanceState(instance, &state));
    if (state) text_instance_close(state);
    return NULL;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
                                                       TRITONBACKEND_Request **requests, uint32_t count) {
    void *state;
    TRITON_TRY(TRITONBACKEND_ModelInstanceState(instance, &state));
    for (uint32_t i = 0; i < count; i++)
        text_instance_execute(state, requests[i]);
    return NULL;
}
