/* The part of Triton Inference Server's C interface that the backend uses, in our own words: no header of the server is
 * needed. The server's process has the TRITONBACKEND_ and TRITONSERVER_ functions that are declared here, and calls
 * those of backend.c. Handles point to the server's own incomplete structs. A function returns NULL, or an error that
 * is its caller's. Checked against tritonbackend.h and tritonserver.h of triton-inference-server/core, interface 1.19.
 */
#ifndef KILN_TRITON_ABI_H
#define KILN_TRITON_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct TRITONSERVER_Error TRITONSERVER_Error;
typedef struct TRITONSERVER_Message TRITONSERVER_Message;
typedef struct TRITONSERVER_Parameter TRITONSERVER_Parameter;
typedef struct TRITONSERVER_Metric TRITONSERVER_Metric;
typedef struct TRITONSERVER_MetricFamily TRITONSERVER_MetricFamily;
typedef struct TRITONBACKEND_Backend TRITONBACKEND_Backend;
typedef struct TRITONBACKEND_Model TRITONBACKEND_Model;
typedef struct TRITONBACKEND_ModelInstance TRITONBACKEND_ModelInstance;
typedef struct TRITONBACKEND_Request TRITONBACKEND_Request;
typedef struct TRITONBACKEND_Response TRITONBACKEND_Response;
typedef struct TRITONBACKEND_Input TRITONBACKEND_Input;
typedef struct TRITONBACKEND_Output TRITONBACKEND_Output;

/* ---- Numbers ---- */

typedef enum TRITONSERVER_Error_Code {
    TRITONSERVER_ERROR_INTERNAL = 1,
    TRITONSERVER_ERROR_INVALID_ARG = 3,
    TRITONSERVER_ERROR_UNAVAILABLE = 4,
    TRITONSERVER_ERROR_UNSUPPORTED = 5,
    TRITONSERVER_ERROR_CANCELLED = 7,
} TRITONSERVER_Error_Code;

typedef enum TRITONSERVER_LogLevel {
    TRITONSERVER_LOG_INFO = 0,
    TRITONSERVER_LOG_WARN = 1,
    TRITONSERVER_LOG_ERROR = 2,
} TRITONSERVER_LogLevel;

typedef enum TRITONSERVER_DataType {
    TRITONSERVER_TYPE_INVALID = 0,
    TRITONSERVER_TYPE_BOOL = 1,
    TRITONSERVER_TYPE_UINT8 = 2,
    TRITONSERVER_TYPE_INT8 = 6,
    TRITONSERVER_TYPE_INT32 = 8,
    TRITONSERVER_TYPE_INT64 = 9,
    TRITONSERVER_TYPE_FP16 = 10,
    TRITONSERVER_TYPE_FP32 = 11,
    TRITONSERVER_TYPE_BYTES = 13, /* each element: its length in 4 bytes, little-endian, then its bytes */
    TRITONSERVER_TYPE_BF16 = 14,
} TRITONSERVER_DataType;

typedef enum TRITONSERVER_MemoryType {
    TRITONSERVER_MEMORY_CPU = 0,
    TRITONSERVER_MEMORY_CPU_PINNED = 1,
    TRITONSERVER_MEMORY_GPU = 2,
} TRITONSERVER_MemoryType;

typedef enum TRITONSERVER_ParameterType {
    TRITONSERVER_PARAMETER_STRING = 0,
    TRITONSERVER_PARAMETER_INT = 1,    /* int64_t */
    TRITONSERVER_PARAMETER_BOOL = 2,   /* bool */
    TRITONSERVER_PARAMETER_DOUBLE = 3, /* double */
} TRITONSERVER_ParameterType;

typedef enum TRITONSERVER_InstanceGroupKind { TRITONSERVER_INSTANCEGROUPKIND_GPU = 2 } TRITONSERVER_InstanceGroupKind;

typedef enum TRITONSERVER_MetricKind {
    TRITONSERVER_METRIC_KIND_COUNTER = 0,
    TRITONSERVER_METRIC_KIND_GAUGE = 1,
} TRITONSERVER_MetricKind;

typedef enum TRITONBACKEND_ArtifactType { TRITONBACKEND_ARTIFACT_FILESYSTEM = 0 } TRITONBACKEND_ArtifactType;

enum {
    TRITONSERVER_REQUEST_RELEASE_ALL = 1,
    TRITONSERVER_RESPONSE_COMPLETE_FINAL = 1,
};

/* ---- What the server has ---- */

TRITONSERVER_Error *TRITONSERVER_ErrorNew(TRITONSERVER_Error_Code code, const char *text);
void TRITONSERVER_ErrorDelete(TRITONSERVER_Error *error);
const char *TRITONSERVER_ErrorMessage(TRITONSERVER_Error *error);

TRITONSERVER_Error *TRITONSERVER_LogMessage(TRITONSERVER_LogLevel level, const char *file, int line, const char *text);

TRITONSERVER_Error *TRITONSERVER_MessageNewFromSerializedJson(TRITONSERVER_Message **out, const char *json,
                                                              size_t size);
TRITONSERVER_Error *TRITONSERVER_MessageDelete(TRITONSERVER_Message *message);
/* The text is the message's. */
TRITONSERVER_Error *TRITONSERVER_MessageSerializeToJson(TRITONSERVER_Message *message, const char **out_json,
                                                        size_t *out_size);

TRITONSERVER_Parameter *TRITONSERVER_ParameterNew(const char *name, TRITONSERVER_ParameterType type, const void *value);
void TRITONSERVER_ParameterDelete(TRITONSERVER_Parameter *parameter);

/* A family is deleted after its metrics. */
TRITONSERVER_Error *TRITONSERVER_MetricFamilyNew(TRITONSERVER_MetricFamily **out, TRITONSERVER_MetricKind kind,
                                                 const char *name, const char *text);
TRITONSERVER_Error *TRITONSERVER_MetricFamilyDelete(TRITONSERVER_MetricFamily *family);
TRITONSERVER_Error *TRITONSERVER_MetricNew(TRITONSERVER_Metric **out, TRITONSERVER_MetricFamily *family,
                                           const TRITONSERVER_Parameter **labels, uint64_t count);
TRITONSERVER_Error *TRITONSERVER_MetricDelete(TRITONSERVER_Metric *metric);
TRITONSERVER_Error *TRITONSERVER_MetricIncrement(TRITONSERVER_Metric *metric, double by);
TRITONSERVER_Error *TRITONSERVER_MetricSet(TRITONSERVER_Metric *metric, double value);

TRITONSERVER_Error *TRITONBACKEND_ApiVersion(uint32_t *out_major, uint32_t *out_minor);

TRITONSERVER_Error *TRITONBACKEND_ModelName(TRITONBACKEND_Model *model, const char **out_name);
TRITONSERVER_Error *TRITONBACKEND_ModelVersion(TRITONBACKEND_Model *model, uint64_t *out_version);
/* The model's folder, in which a version has one of its own. */
TRITONSERVER_Error *TRITONBACKEND_ModelRepository(TRITONBACKEND_Model *model, TRITONBACKEND_ArtifactType *out_type,
                                                  const char **out_location);
/* The message is the caller's, here and in ModelSetConfig. config_version: 1. */
TRITONSERVER_Error *TRITONBACKEND_ModelConfig(TRITONBACKEND_Model *model, uint32_t config_version,
                                              TRITONSERVER_Message **out_config);
TRITONSERVER_Error *TRITONBACKEND_ModelAutoCompleteConfig(TRITONBACKEND_Model *model, bool *out_complete);
TRITONSERVER_Error *TRITONBACKEND_ModelSetConfig(TRITONBACKEND_Model *model, uint32_t config_version,
                                                 TRITONSERVER_Message *config);
TRITONSERVER_Error *TRITONBACKEND_ModelState(TRITONBACKEND_Model *model, void **out_state);
TRITONSERVER_Error *TRITONBACKEND_ModelSetState(TRITONBACKEND_Model *model, void *state);

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceName(TRITONBACKEND_ModelInstance *instance, const char **out_name);
TRITONSERVER_Error *TRITONBACKEND_ModelInstanceKind(TRITONBACKEND_ModelInstance *instance,
                                                    TRITONSERVER_InstanceGroupKind *out_kind);
TRITONSERVER_Error *TRITONBACKEND_ModelInstanceDeviceId(TRITONBACKEND_ModelInstance *instance, int32_t *out_id);
TRITONSERVER_Error *TRITONBACKEND_ModelInstanceModel(TRITONBACKEND_ModelInstance *instance,
                                                     TRITONBACKEND_Model **out_model);
TRITONSERVER_Error *TRITONBACKEND_ModelInstanceState(TRITONBACKEND_ModelInstance *instance, void **out_state);
TRITONSERVER_Error *TRITONBACKEND_ModelInstanceSetState(TRITONBACKEND_ModelInstance *instance, void *state);
/* Times in nanoseconds of CLOCK_MONOTONIC. Before the request is released. */
TRITONSERVER_Error *TRITONBACKEND_ModelInstanceReportStatistics(TRITONBACKEND_ModelInstance *instance,
                                                                TRITONBACKEND_Request *request, bool success,
                                                                uint64_t exec_start, uint64_t compute_start,
                                                                uint64_t compute_end, uint64_t exec_end);

TRITONSERVER_Error *TRITONBACKEND_RequestIsCancelled(TRITONBACKEND_Request *request, bool *out_cancelled);
TRITONSERVER_Error *TRITONBACKEND_RequestParameterCount(TRITONBACKEND_Request *request, uint32_t *out_count);
/* Name and value are the request's. */
TRITONSERVER_Error *TRITONBACKEND_RequestParameter(TRITONBACKEND_Request *request, uint32_t index,
                                                   const char **out_name, TRITONSERVER_ParameterType *out_type,
                                                   const void **out_value);
TRITONSERVER_Error *TRITONBACKEND_RequestInputCount(TRITONBACKEND_Request *request, uint32_t *out_count);
TRITONSERVER_Error *TRITONBACKEND_RequestInputByIndex(TRITONBACKEND_Request *request, uint32_t index,
                                                      TRITONBACKEND_Input **out_input);
TRITONSERVER_Error *TRITONBACKEND_RequestOutputCount(TRITONBACKEND_Request *request, uint32_t *out_count);
TRITONSERVER_Error *TRITONBACKEND_RequestOutputName(TRITONBACKEND_Request *request, uint32_t index,
                                                    const char **out_name);
TRITONSERVER_Error *TRITONBACKEND_RequestRelease(TRITONBACKEND_Request *request, uint32_t flags);

/* Each out_ may be NULL; what they give is the input's. */
TRITONSERVER_Error *TRITONBACKEND_InputProperties(TRITONBACKEND_Input *input, const char **out_name,
                                                  TRITONSERVER_DataType *out_type, const int64_t **out_shape,
                                                  uint32_t *out_dimensions, uint64_t *out_size, uint32_t *out_buffers);
/* memory: in, which is wished for; out, which it is. */
TRITONSERVER_Error *TRITONBACKEND_InputBuffer(TRITONBACKEND_Input *input, uint32_t index, const void **out_buffer,
                                              uint64_t *out_size, TRITONSERVER_MemoryType *memory, int64_t *memory_id);

TRITONSERVER_Error *TRITONBACKEND_ResponseNew(TRITONBACKEND_Response **out, TRITONBACKEND_Request *request);
TRITONSERVER_Error *TRITONBACKEND_ResponseDelete(TRITONBACKEND_Response *response);
TRITONSERVER_Error *TRITONBACKEND_ResponseOutput(TRITONBACKEND_Response *response, TRITONBACKEND_Output **out,
                                                 const char *name, TRITONSERVER_DataType type, const int64_t *shape,
                                                 uint32_t dimensions);
TRITONSERVER_Error *TRITONBACKEND_OutputBuffer(TRITONBACKEND_Output *output, void **out_buffer, uint64_t size,
                                               TRITONSERVER_MemoryType *memory, int64_t *memory_id);
/* Takes the response, and sends the error in its place if it is not NULL; the error stays the caller's. */
TRITONSERVER_Error *TRITONBACKEND_ResponseSend(TRITONBACKEND_Response *response, uint32_t flags,
                                               TRITONSERVER_Error *error);

/* ---- What the backend has ---- */

#define TRITON_ENTRY __attribute__((visibility("default"))) TRITONSERVER_Error *

TRITON_ENTRY TRITONBACKEND_Initialize(TRITONBACKEND_Backend *backend);
TRITON_ENTRY TRITONBACKEND_Finalize(TRITONBACKEND_Backend *backend);
TRITON_ENTRY TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model *model);
TRITON_ENTRY TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model *model);
TRITON_ENTRY TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance *instance);
TRITON_ENTRY TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance *instance);
/* Takes the requests if it returns NULL. Not called again for an instance before it returns. */
TRITON_ENTRY TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request **requests,
                                                uint32_t count);

#endif
