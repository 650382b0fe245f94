/* Recording what a device is asked to do. While it is off it costs a launch nothing beyond the state word, which every
 * launch tests anyway. */
#ifndef KILN_LOADER_TRACE_H
#define KILN_LOADER_TRACE_H

#include "loader/module.h"

/* Nanoseconds of CLOCK_MONOTONIC: the trace's time line. */
int64_t kiln__trace_now(void);

/* The traced forms of what the backend does: they call it and record it. */
kiln_status kiln__trace_launch(kiln_stream *stream, const kiln_kernel *kernel, const kiln_launch_config *config,
                               const void *arguments, size_t arguments_size);
kiln_status kiln__trace_copy(kiln_stream *stream, void *destination, const void *source, size_t size,
                             kiln_copy_direction direction);
kiln_status kiln__trace_fill(kiln_stream *stream, void *destination, uint8_t value, size_t size);

/* Records that a module was loaded between begin and now, if its device is traced. */
void kiln__trace_load(const kiln_module *module, int64_t begin);

/* Forgets the trace of a device that closes. */
void kiln__trace_discard(kiln_device *device);

#endif
