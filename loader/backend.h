/* The interface between the loader and a backend: one table of functions, none of them optional.
 *
 * The loader checks arguments for NULL, sizes and states before it calls; a backend checks what only it can know. Each
 * function returns a status and sets the error text. Vendor errors are mapped once, in <name>_status.c; the text keeps
 * the call, the vendor's name of the error and its number. */
#ifndef KILN_LOADER_BACKEND_H
#define KILN_LOADER_BACKEND_H

#include "loader/device.h"
#include "loader/module.h"
#include "loader/tensor_map.h"

struct kiln__backend {
    kiln_backend_id id;
    const char *name;

    /* Finds the driver (once per process, thread safe) and counts its devices. *out_count = 0 with the reason in this
     * thread's error text and KILN_OK if it is absent (no library, a stub, no device); a driver that is there and does
     * not work is a failure. No lock of the registry's is held, here and below: a driver may fork. */
    kiln_status (*count)(int32_t *out_count);

    /* Sets the UUID, PCI address and NUMA node in info of the device of its ordinal, as far as the driver tells; the
     * others stay. The device need not be open. */
    kiln_status (*identify)(kiln_device_info *info);
    /* Opens device->info.ordinal: sets device->native, ->key_context and ->info. options has its full size. One
     * call at a time. On failure nothing is kept. */
    kiln_status (*device_open)(kiln_device *device, const kiln_device_options *options);
    /* Releases device->native. Never fails; quiet on a driver that is shutting down. Not called in a forked child. */
    void (*device_close)(kiln_device *device);
    /* peer is another device of this backend. */
    kiln_status (*device_enable_peer)(kiln_device *device, kiln_device *peer);
    /* The driver told the application of an error, by its number, which is not 0. */
    void (*device_lose)(kiln_device *device, uint32_t error);

    /* Loads module->image: sets module->native and, for each kernel, function, arguments_size, info from the driver.
     * A refusal of this image alone is KILN_ERROR_NO_IMAGE (the next candidate is tried); anything else ends the load.
     */
    kiln_status (*module_load)(kiln_module *module);
    void (*module_unload)(kiln_module *module);
    kiln_status (*module_variable)(const kiln_module *module, const char *name, void **out_address, size_t *out_size);
    /* Sets *out_capturing if the stream is being captured: nothing is loaded on it then. */
    kiln_status (*stream_capturing)(kiln_stream *stream, bool *out_capturing);

    kiln__launch_function launch;
    kiln__launch_function launch_plain; /* need not look for zero dimensions and clusters: there are none */
    kiln_status (*kernel_attributes)(const kiln_kernel *kernel, kiln_kernel_attributes *out_attributes);
    kiln_status (*kernel_occupancy)(const kiln_kernel *kernel, uint32_t threads, uint32_t dynamic_shared_bytes,
                                    uint32_t *out_blocks);
    /* Writes the map of a tensor and a box of it, of so many elements in each dimension: 128 bytes aligned to 64. */
    kiln_status (*tensor_map_encode)(const kiln_kernel *kernel, const kiln__tensor_layout *tensor, const uint16_t *box,
                                     void *out_map);

    kiln_status (*stream_open)(kiln_device *device, uint32_t flags, kiln_stream *out_stream);
    kiln_status (*stream_borrow)(kiln_device *device, void *native, kiln_stream *out_stream);
    kiln_status (*stream_set_programmatic)(kiln_stream *stream, bool on);
    kiln_status (*stream_sync)(kiln_stream *stream);
    kiln_status (*stream_query)(kiln_stream *stream, bool *out_done);
    void (*stream_close)(kiln_stream *stream);
    kiln_status (*stream_wait_event)(kiln_stream *stream, kiln_event *event);

    kiln_status (*memory_alloc)(kiln_device *device, size_t size, void **out_memory);
    void (*memory_free)(kiln_device *device, void *memory);
    kiln_status (*memory_alloc_async)(kiln_stream *stream, size_t size, void **out_memory);
    kiln_status (*memory_free_async)(kiln_stream *stream, void *memory);
    kiln_status (*host_alloc)(kiln_device *device, size_t size, void **out_memory);
    void (*host_free)(kiln_device *device, void *memory);
    kiln_status (*host_register)(kiln_device *device, void *memory, size_t size, void **out_device_memory);
    void (*host_unregister)(kiln_device *device, void *memory);
    kiln_status (*memory_info)(kiln_device *device, uint64_t *out_free, uint64_t *out_total);
    kiln_status (*copy)(kiln_stream *stream, void *destination, const void *source, size_t size,
                        kiln_copy_direction direction);
    kiln_status (*fill)(kiln_stream *stream, void *destination, uint8_t value, size_t size);

    /* event->device and ->flags are set; the backend keeps its own in event->native. */
    kiln_status (*event_create)(kiln_event *event);
    kiln_status (*event_borrow)(kiln_event *event, void *native);
    void (*event_destroy)(kiln_event *event);
    kiln_status (*event_record)(kiln_event *event, kiln_stream *stream);
    kiln_status (*event_sync)(kiln_event *event);
    kiln_status (*event_query)(kiln_event *event, bool *out_done);
    kiln_status (*event_elapsed)(kiln_event *start, kiln_event *end, double *out_nanoseconds);
};

/* The status of a count that found no driver, or no device: there are none, which is no failure. The text says why. */
static inline kiln_status kiln__absent_is_none(kiln_status status) {
    return status == KILN_ERROR_NO_DRIVER ? KILN_OK : status;
}

/* A dimension of a launch, of which 0 means 1. */
static inline uint32_t kiln__at_least_one(uint32_t dimension) {
    return dimension + !dimension;
}

/* device->launch with arguments of the given size: a kernel whose image does not state their size takes any. */
kiln_status kiln__launch(kiln_stream *stream, const kiln_kernel *kernel, const kiln_launch_config *config,
                         const void *arguments, size_t arguments_size) __attribute__((cold));

/* Refuses a launch's flags: unknown ones, and all of a backend that has none. KILN_OK without flags. */
kiln_status kiln__launch_flags_refuse(const kiln_kernel *kernel, const kiln_launch_config *config)
    __attribute__((cold));
/* The same for unknown ones alone. */
kiln_status kiln__launch_flags_check(const kiln_kernel *kernel, const kiln_launch_config *config) __attribute__((cold));

/* stream_set_programmatic of a backend that has no such launches. */
kiln_status kiln__stream_programmatic_refuse(kiln_stream *stream, bool on) __attribute__((cold));

/* tensor_map_encode of a backend that has none. */
kiln_status kiln__tensor_map_refuse(const kiln_kernel *kernel, const kiln__tensor_layout *tensor, const uint16_t *box,
                                    void *out_map) __attribute__((cold));

struct kiln_event {
    kiln_device *device;
    void *native;
    uint64_t stamp; /* free for the backend */
    uint32_t flags; /* KILN_EVENT_ bits */
    bool borrowed;  /* by event_borrow; this and the next are kept by the loader */
    bool recorded;
};

#define KILN_BACKEND(id, name) extern const kiln__backend kiln__backend_##name;
#include "loader/backends.def"
#undef KILN_BACKEND

/* The backend's table, or NULL for KILN_BACKEND_ANY and numbers that are none. */
const kiln__backend *kiln__backend_find(kiln_backend_id id);

#endif
