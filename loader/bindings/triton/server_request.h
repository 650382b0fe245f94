/* A request of the server's: its inputs, its parameters, its responses. */
#ifndef KILN_TRITON_SERVER_REQUEST_H
#define KILN_TRITON_SERVER_REQUEST_H

#include "triton_error.h"

typedef struct input_tensor {
    const char *name;
    TRITONSERVER_DataType type;
    const int64_t *shape; /* the request's */
    uint32_t dimensions;
    uint64_t size; /* bytes */
} input_tensor;

/* The properties of an input. */
TRITONSERVER_Error *input_properties(TRITONBACKEND_Input *input, input_tensor *out);

/* Copies an input's bytes, of which there are so many, into memory of the caller's. */
TRITONSERVER_Error *input_read(TRITONBACKEND_Input *input, const char *name, uint64_t size, void *out);

/* Whether a request wants an output of that name. */
bool output_is_wanted(TRITONBACKEND_Request *request, const char *name);

/* Adds an output to a response, and gives its memory, of so many bytes, to be filled. */
TRITONSERVER_Error *output_add(TRITONBACKEND_Response *response, const char *name, TRITONSERVER_DataType type,
                               const int64_t *shape, uint32_t dimensions, uint64_t size, void **out_memory);

/* Answers a request with an error, which is taken, and releases it. */
void request_refuse(TRITONBACKEND_Request *request, TRITONSERVER_Error *error);

/* Nanoseconds of CLOCK_MONOTONIC. */
uint64_t server_time(void);

#endif
