/* The part of XLA's C interface for foreign functions that the handlers use, in our own words: no header of XLA is
 * needed. XLA calls a handler with a frame, whose structs and functions are XLA's; a function returns NULL, or an error
 * that its caller owns. Version 0.3, that of xla/ffi/api/c_api.h in jaxlib 0.10, with which tests/bindings/jax_test.py
 * compares these structs. */
#ifndef KILN_XLA_FFI_H
#define KILN_XLA_FFI_H

#include <stddef.h>
#include <stdint.h>

enum {
    XLA_VERSION_MAJOR = 0,
    XLA_VERSION_MINOR = 3,
    XLA_EXTENSION_METADATA = 1,
    XLA_ATTRIBUTE_ARRAY = 1,
    XLA_ATTRIBUTE_STRING = 4,
};

typedef enum xla_error_code {
    XLA_INVALID_ARGUMENT = 3,
    XLA_RESOURCE_EXHAUSTED = 8,
    XLA_UNIMPLEMENTED = 12,
    XLA_INTERNAL = 13,
} xla_error_code;

typedef struct xla_error xla_error;
typedef struct xla_context xla_context; /* of one execution */

/* What a frame may ask besides execution. */
typedef struct xla_extension {
    size_t struct_size;
    int type;
    struct xla_extension *next;
} xla_extension;

typedef struct xla_version {
    size_t struct_size;
    xla_extension *extensions;
    int major;
    int minor;
} xla_version;

typedef struct xla_metadata {
    size_t struct_size;
    xla_version version; /* written by the handler: that which it was built for */
    uint32_t traits;
    int64_t state_type;
} xla_metadata;

typedef struct xla_metadata_extension {
    xla_extension base;
    xla_metadata *metadata;
} xla_metadata_extension;

typedef struct xla_buffer {
    size_t struct_size;
    xla_extension *extensions;
    int dtype;
    void *data;
    int64_t rank;
    int64_t *dimensions;
} xla_buffer;

/* Arguments or results. */
typedef struct xla_buffers {
    size_t struct_size;
    xla_extension *extensions;
    int64_t count;
    int *types;
    xla_buffer **buffers;
} xla_buffers;

typedef struct xla_text {
    const char *bytes; /* not terminated */
    size_t size;
} xla_text;

typedef struct xla_array {
    int dtype;
    size_t count;
    const void *data;
} xla_array;

/* By name. */
typedef struct xla_attributes {
    size_t struct_size;
    xla_extension *extensions;
    int64_t count;
    int *types;
    xla_text **names;
    void **values; /* xla_text or xla_array */
} xla_attributes;

typedef struct xla_error_arguments {
    size_t struct_size;
    xla_extension *extensions;
    const char *message;
    xla_error_code code;
} xla_error_arguments;

typedef struct xla_stream_arguments {
    size_t struct_size;
    xla_extension *extensions;
    xla_context *context;
    void *stream; /* out: a CUstream */
} xla_stream_arguments;

typedef struct xla_ordinal_arguments {
    size_t struct_size;
    xla_extension *extensions;
    xla_context *context;
    int32_t ordinal; /* out */
} xla_ordinal_arguments;

typedef struct xla_allocate_arguments {
    size_t struct_size;
    xla_extension *extensions;
    xla_context *context;
    size_t size;
    size_t alignment;
    void *data; /* out */
} xla_allocate_arguments;

typedef struct xla_free_arguments {
    size_t struct_size;
    xla_extension *extensions;
    xla_context *context;
    size_t size;
    void *data;
} xla_free_arguments;

typedef void (*xla_unused)(void);

/* What XLA has, in its order. */
typedef struct xla_api {
    size_t struct_size;
    xla_extension *extensions;
    xla_version version;
    const void *internal;
    xla_error *(*error_create)(xla_error_arguments *arguments);
    xla_unused error_message;
    void (*error_destroy)(void *arguments);
    xla_unused handler_register;
    xla_error *(*stream_get)(xla_stream_arguments *arguments);
    xla_unused type_register;
    xla_unused context_get;
    xla_unused state_set;
    xla_unused state_get;
    xla_error *(*memory_allocate)(xla_allocate_arguments *arguments);
    xla_error *(*memory_free)(xla_free_arguments *arguments);
    xla_unused pool_schedule;
    xla_unused pool_threads;
    xla_unused future_create;
    xla_unused future_available;
    xla_unused future_error;
    xla_unused run_id;
    xla_error *(*device_ordinal)(xla_ordinal_arguments *arguments);
} xla_api;

typedef struct xla_frame {
    size_t struct_size;
    xla_extension *extensions;
    const xla_api *api;
    xla_context *context;
    int stage;
    xla_buffers arguments;
    xla_buffers results;
    xla_attributes attributes;
    void *future;
} xla_frame;

#endif
