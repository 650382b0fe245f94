/* The records of a trace, shared by the code that makes and writes them. */
#ifndef KILN_LOADER_TRACE_RECORD_H
#define KILN_LOADER_TRACE_RECORD_H

#include "loader/trace.h"

typedef enum kiln__trace_kind {
    KILN__TRACE_LAUNCH,
    KILN__TRACE_COPY,
    KILN__TRACE_FILL,
    KILN__TRACE_LOAD
} kiln__trace_kind;

typedef struct kiln__trace_record {
    kiln__trace_kind kind;
    kiln_status status;
    int64_t begin, end;              /* on the host, ns of CLOCK_MONOTONIC */
    double device_begin, device_end; /* ns on the same clock; both 0 if unknown */
    uint64_t thread;
    const void *stream;        /* the native handle; NULL for loads */
    const kiln_kernel *kernel; /* launches */
    const kiln_module *module; /* launches and loads */
    kiln_launch_config config; /* launches */
    kiln_copy_direction direction;
    uint64_t bytes;
    kiln_event *started, *finished; /* while recording */
} kiln__trace_record;

struct kiln__trace {
    kiln__trace_record *records;
    size_t capacity, count;
    size_t dropped;
    int64_t origin;   /* host time of the start */
    kiln_event *base; /* the trace's first event; base_time is the host time just after recording it */
    int64_t base_time;
};

/* Writes a finished trace. Returns KILN_OK, or KILN_ERROR_DRIVER if the callback aborted it. */
kiln_status kiln__trace_write(const kiln_device *device, const kiln__trace *trace, kiln_trace_format format,
                              kiln_write_callback write, void *user);

#endif
