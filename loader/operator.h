/* Shared by the host sides of all operators: finding loaded kernels with one acquire load, and extensible params
 * structs. */
#ifndef KILN_LOADER_OPERATOR_H
#define KILN_LOADER_OPERATOR_H

#include "loader/module.h"

/* Loads a part of an operator's bundle on the stream's device and publishes it in the slot for kiln__operator_get. */
kiln_status kiln__operator_load(kiln_stream *stream, unsigned slot, const kiln_bundle *bundle, const char *part)
    __attribute__((cold));

/* The module in the slot on the stream's device, with its kernels in the part's order; NULL if not loaded yet. */
static inline const kiln_module *kiln__operator_get(kiln_stream *stream, unsigned slot) {
    return atomic_load_explicit(&stream->device->operators[slot], memory_order_acquire);
}

/* kiln_launch for an operator's own kernel, on a stream of its device, without zero dimensions or clusters. Of the
 * checks of a launch only that of the device's state is needed. */
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

/* Checks that the device allows a launch of this shape; if not, KILN_ERROR_INVALID_ARGUMENT with name, the function's,
 * in the text. Lets a call check its second launch before making the first. */
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

/* Copies params from a caller compiled against another version: a shorter struct is padded with zeros; the excess of a
 * longer one must be zero. name (of the function) and argument (of its parameter) are for the error text. */
kiln_status kiln__params_copy(const char *name, const char *argument, void *copy, size_t size, const void *params,
                              size_t params_size) __attribute__((cold));

#endif
