#include "server_request.h"
#include <inttypes.h>
#include <string.h>
#include <time.h>

TRITONSERVER_Error *input_properties(TRITONBACKEND_Input *input, input_tensor *out) {
    uint32_t buffers;
    return TRITONBACKEND_InputProperties(input, &out->name, &out->type, &out->shape, &out->dimensions, &out->size,
                                         &buffers);
}

TRITONSERVER_Error *input_read(TRITONBACKEND_Input *input, const char *name, uint64_t size, void *out) {
    uint32_t buffers;
    uint64_t done = 0;
    TRITON_TRY(TRITONBACKEND_InputProperties(input, NULL, NULL, NULL, NULL, NULL, &buffers));
    for (uint32_t i = 0; i < buffers; i++) {
        const void *buffer;
        uint64_t some;
        TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
        int64_t memory_id = 0;
        TRITON_TRY(TRITONBACKEND_InputBuffer(input, i, &buffer, &some, &memory, &memory_id));
        if (memory == TRITONSERVER_MEMORY_GPU)
            return triton_error(TRITONSERVER_ERROR_UNSUPPORTED, "%s must be in the host's memory", name);
        if (some > size - done) break;
        if (some) memcpy((char *)out + done, buffer, some);
        done += some;
    }
    if (done == size) return NULL;
    return triton_error(TRITONSERVER_ERROR_INVALID_ARG, "%s has %" PRIu64 " bytes of data: must be %" PRIu64, name,
                        done, size);
}

bool output_is_wanted(TRITONBACKEND_Request *request, const char *name) {
    uint32_t count = 0;
    triton_log_error(TRITONBACKEND_RequestOutputCount(request, &count), "a request's outputs");
    for (uint32_t i = 0; i < count; i++) {
        const char *wanted = "";
        triton_log_error(TRITONBACKEND_RequestOutputName(request, i, &wanted), "a request's outputs");
        if (!strcmp(wanted, name)) return true;
    }
    return !count;
}

TRITONSERVER_Error *output_add(TRITONBACKEND_Response *response, const char *name, TRITONSERVER_DataType type,
                               const int64_t *shape, uint32_t dimensions, uint64_t size, void **out_memory) {
    TRITONBACKEND_Output *output;
    TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
    int64_t memory_id = 0;
    TRITON_TRY(TRITONBACKEND_ResponseOutput(response, &output, name, type, shape, dimensions));
    TRITON_TRY(TRITONBACKEND_OutputBuffer(output, out_memory, size, &memory, &memory_id));
    if (memory != TRITONSERVER_MEMORY_GPU) return NULL;
    return triton_error(TRITONSERVER_ERROR_UNSUPPORTED, "%s must be in the host's memory", name);
}

void request_refuse(TRITONBACKEND_Request *request, TRITONSERVER_Error *error) {
    TRITONBACKEND_Response *response;
    TRITONSERVER_Error *failure = TRITONBACKEND_ResponseNew(&response, request);
    if (!failure) failure = TRITONBACKEND_ResponseSend(response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, error);
    triton_log_error(failure, "a response");
    TRITONSERVER_ErrorDelete(error);
    triton_log_error(TRITONBACKEND_RequestRelease(request, TRITONSERVER_REQUEST_RELEASE_ALL), "a request");
}

uint64_t server_time(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}
