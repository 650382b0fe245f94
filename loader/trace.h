/* Traces of a device's operations. While tracing is off, a launch pays nothing for it: every launch tests the state
 * word anyway. */
#ifndef KILN_LOADER_TRACE_H
#define KILN_LOADER_TRACE_H

#include "loader/module.h"

/* CLOCK_MONOTONIC in nanoseconds, the trace's time base. */
int64_t kiln__trace_now(void);

/* Call the backend's function and record the call. */
kiln_status kiln__trace_launch(kiln_stream *stream, const kiln_kernel *kernel, const kiln_launch_config *config,
                               const void *arguments, size_t arguments_size);
kiln_status kiln__trace_copy(kiln_stream *stream, void *destination, const void *source, size_t size,
                             kiln_copy_direction direction);
kiln_status kiln__trace_fill(kiln_stream *stream, void *destination, uint8_t value, size_t size);

/* Records the load of a module from begin until now, if its device is traced. */
void kiln__trace_load(const kiln_module *module, int64_t begin);

/* Discards the trace of a device that is being closed. */
void kiln__trace_discard(kiln_device *device);

#endif
