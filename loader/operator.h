/* What every operator's host side shares: its loaded kernels in one acquire load, and params that may grow. */
#ifndef KILN_LOADER_OPERATOR_H
#define KILN_LOADER_OPERATOR_H

#include "loader/module.h"
#include <kiln/ops.h>

/* Loads an operator on the stream's device and publishes it for kiln__operator_get. */
kiln_status kiln__operator_load(kiln_stream *stream, unsigned operator_number, unsigned part, const kiln_bundle *bundle)
    __attribute__((cold));

/* The operator on the stream's device, its kernels in the part's order; NULL before it is loaded. */
static inline const kiln_module *kiln__operator_get(kiln_stream *stream, unsigned operator_number, unsigned part) {
    return atomic_load_explicit(&stream->device->operators[operator_number][part], memory_order_acquire);
}

/* kiln_launch for an operator's own kernel on its own stream, in a plain shape: of the launch's checks only the
 * device's state is left. */
static inline kiln_status kiln__operator_launch(kiln_stream *stream, const kiln_kernel *kernel,
                                                const kiln_launch_config *config, const void *arguments,
                                                size_t arguments_size) {
    kiln_device *device = stream->device;
    if (KILN__LIKELY(atomic_load_explicit(device->state, memory_order_relaxed) == KILN__READY))
        return device->launch_plain(stream, kernel, config, arguments);
    return kiln_launch(stream, kernel, config, arguments, arguments_size);
}

/* Copies params of a caller that was compiled against another version: a short struct gets a zero tail, a long one must
 * have one. name is the function's and argument what it calls the struct, for the text. */
kiln_status kiln__params_copy(const char *name, const char *argument, void *copy, size_t size, const void *params,
                              size_t params_size) __attribute__((cold));

#endif
