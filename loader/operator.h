/* What the host sides of all operators share: finding their loaded kernels with one acquire load, and params that may
 * grow. */
#ifndef KILN_LOADER_OPERATOR_H
#define KILN_LOADER_OPERATOR_H

#include "loader/module.h"

/* Loads a part of an operator's bundle on the stream's device and publishes it in the slot for kiln__operator_get. */
kiln_status kiln__operator_load(kiln_stream *stream, unsigned slot, const kiln_bundle *bundle, const char *part)
    __attribute__((cold));

/* What is loaded in the slot on the stream's device, its kernels in the part's order; NULL before. */
static inline const kiln_module *kiln__operator_get(kiln_stream *stream, unsigned slot) {
    return atomic_load_explicit(&stream->device->operators[slot], memory_order_acquire);
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

/* Whether this kernel, launched on the stream, may begin before the preceding one has ended. */
bool kiln__operator_overlaps(const kiln_stream *stream, const kiln_kernel *kernel);

/* Whether the device takes a launch of this shape, else KILN_ERROR_INVALID_ARGUMENT under the function's name: for the
 * second launch of a call, before the first one goes out. */
static inline kiln_status kiln__operator_fits(const kiln_stream *stream, const char *name,
                                              const kiln_launch_config *config) {
    const uint64_t columns = (uint64_t)config->grid[0] * config->block[0];
    uint64_t threads;
    const bool overflow = __builtin_mul_overflow(columns, (uint64_t)config->grid[1] * config->grid[2], &threads);
    KILN__REQUIRE(!overflow && threads <= stream->device->threads_most,
                  "%s: its sizes are too large for one launch: %u x %u x %u blocks of %u threads, at most %llu threads",
                  name, config->grid[0], config->grid[1], config->grid[2], config->block[0],
                  (unsigned long long)stream->device->threads_most);
    return KILN_OK;
}

/* Copies params of a caller that was compiled against another version: a short struct gets a zero tail, a long one must
 * have one. name is the function's and argument what it calls the struct, for the text. */
kiln_status kiln__params_copy(const char *name, const char *argument, void *copy, size_t size, const void *params,
                              size_t params_size) __attribute__((cold));

#endif
