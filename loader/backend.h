/* The interface between the loader and a backend: one table of functions, none of them optional.
 *
 * Before calling, the loader checks arguments for NULL, sizes and states; a backend checks only what the loader cannot.
 * Each function returns a status and sets the error text. Vendor errors are mapped once, in <name>_status.c; the text
 * keeps the failed call and the vendor's error name and number. */
#ifndef KILN_LOADER_BACKEND_H
#define KILN_LOADER_BACKEND_H

#include "loader/device.h"
#include "loader/module.h"
#include "loader/tensor_map.h"

struct kiln__backend {
    kiln_backend_id id;
    const char *name;

    /* Finds the driver (once per process, thread safe) and counts its devices. If it is absent (no library, a stub, no
     * device), *out_count is 0, the reason is in this thread's error text, and the result is KILN_OK; a driver that is
     * present but does not work is a failure. Neither this nor any function below is called with a registry lock held:
     * a driver may fork. */
    kiln_status (*count)(int32_t *out_count);

    /* Fills in the UUID, PCI address and NUMA node of the device with info's ordinal, as far as the driver reports
     * them, and leaves other fields alone. The device need not be open. */
    kiln_status (*identify)(kiln_device_info *info);
    /* Opens device->info.ordinal: sets device->native, ->key_context and ->info. options has its full size. Calls are
     * serialised. On failure nothing is retained. */
    kiln_status (*device_open)(kiln_device *device, const kiln_device_options *options);
    /* Releases device->native. Never fails, even if the driver is shutting down. Not called in a forked child. */
    void (*device_close)(kiln_device *device);
    /* peer is another device of this backend. */
    kiln_status (*device_enable_peer)(kiln_device *device, kiln_device *peer);
    /* Handles an error that the driver reported to the application. error is the driver's number, never 0. */
    void (*device_lose)(kiln_device *device, uint32_t error);

    /* Loads module->image: sets module->native and each kernel's function, arguments_size, and the parts of info that
     * the driver supplies. KILN_ERROR_NO_IMAGE means that only this image was refused and the next candidate is tried;
     * any other error ends the load. */
    kiln_status (*module_load)(kiln_module *module);
    void (*module_unload)(kiln_module *module);
    kiln_status (*module_variable)(const kiln_module *module, const char *name, void **out_address, size_t *out_size);
    /* Whether the stream is being captured; if so, nothing is loaded on it. */
    kiln_status (*stream_capturing)(kiln_stream *stream, bool *out_capturing);

    kiln__launch_function launch;
    kiln__launch_function launch_plain; /* called only if no dimension is 0 and there is no cluster */
    kiln_status (*kernel_attributes)(const kiln_kernel *kernel, kiln_kernel_attributes *out_attributes);
    kiln_status (*kernel_occupancy)(const kiln_kernel *kernel, uint32_t threads, uint32_t dynamic_shared_bytes,
                                    uint32_t *out_blocks);
    /* Encodes a tensor map into out_map, 128 bytes aligned to 64. box has the box's size in each dimension, in
     * elements. */
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

    /* event->device and ->flags are set by the caller; event->native is the backend's. */
    kiln_status (*event_create)(kiln_event *event);
    kiln_status (*event_borrow)(kiln_event *event, void *native);
    void (*event_destroy)(kiln_event *event);
    kiln_status (*event_record)(kiln_event *event, kiln_stream *stream);
    kiln_status (*event_sync)(kiln_event *event);
    kiln_status (*event_query)(kiln_event *event, bool *out_done);
    kiln_status (*event_elapsed)(kiln_event *start, kiln_event *end, double *out_nanoseconds);
};

/* Maps KILN_ERROR_NO_DRIVER to KILN_OK for count: having no driver or device is no failure. Keeps the error text. */
static inline kiln_status kiln__absent_is_none(kiln_status status) {
    return status == KILN_ERROR_NO_DRIVER ? KILN_OK : status;
}

/* A launch dimension, with 0 replaced by 1. */
static inline uint32_t kiln__at_least_one(uint32_t dimension) {
    return dimension + !dimension;
}

/* Calls device->launch with arguments_size in place of the kernel's, which its image may not state. */
kiln_status kiln__launch(kiln_stream *stream, const kiln_kernel *kernel, const kiln_launch_config *config,
                         const void *arguments, size_t arguments_size) __attribute__((cold));

/* For backends without launch flags: refuses any flag. Returns KILN_OK if none is set. */
kiln_status kiln__launch_flags_refuse(const kiln_kernel *kernel, const kiln_launch_config *config)
    __attribute__((cold));
/* Refuses unknown launch flags only. */
kiln_status kiln__launch_flags_check(const kiln_kernel *kernel, const kiln_launch_config *config) __attribute__((cold));

/* stream_set_programmatic for backends without programmatic launches. */
kiln_status kiln__stream_programmatic_refuse(kiln_stream *stream, bool on) __attribute__((cold));

/* tensor_map_encode for backends without tensor maps. */
kiln_status kiln__tensor_map_refuse(const kiln_kernel *kernel, const kiln__tensor_layout *tensor, const uint16_t *box,
                                    void *out_map) __attribute__((cold));

struct kiln_event {
    kiln_device *device;
    void *native;
    uint64_t stamp; /* for the backend's use */
    uint32_t flags; /* KILN_EVENT_ bits */
    bool borrowed;  /* from event_borrow; this and the next are the loader's */
    bool recorded;
};

#define KILN_BACKEND(id, name) extern const kiln__backend kiln__backend_##name;
#include "loader/backends.def"
#undef KILN_BACKEND

/* The backend's table; NULL for KILN_BACKEND_ANY and invalid ids. */
const kiln__backend *kiln__backend_find(kiln_backend_id id);

#endif
