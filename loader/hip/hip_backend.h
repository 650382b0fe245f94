/* The functions of the HIP backend, one source file per noun. hip_backend.c has their table; loader/backend.h documents
 * them. They are those of the CUDA backend with HIP's names: HIP mirrors the CUDA driver, except for contexts. What is
 * current on a thread is a device, identified by its ordinal alone. A stream's native is the hipStream_t; its state is
 * not NULL if kiln owns it. */
#ifndef KILN_LOADER_HIP_BACKEND_H
#define KILN_LOADER_HIP_BACKEND_H

#include "loader/backend.h"
#include "loader/hip/hip_driver.h"
#include "loader/hip/hip_status.h"

/* Makes a HIP call and, on failure, returns its status from the calling function. */
#define KILN__HIP_TRY(device, call, ...)                                                              \
    do {                                                                                              \
        kiln__hip_error kiln__hip_result = kiln__hip.call(__VA_ARGS__);                               \
        if (KILN__UNLIKELY(kiln__hip_result)) return kiln__hip_fail(device, #call, kiln__hip_result); \
    } while (0)

/* The device is current on this thread from enter to leave. The current device is queried each time and never cached,
 * because the application may change it between two calls. */
typedef struct kiln__hip_scope {
    int previous;
    kiln__hip_enum capture_mode; /* the thread's, if relaxed */
    bool changed, relaxed;
} kiln__hip_scope;

kiln_status kiln__hip_enter(kiln_device *device, kiln__hip_scope *out_scope);
/* The same in relaxed capture mode, in which loading and freeing do not disturb a capture of this or another thread. */
kiln_status kiln__hip_enter_relaxed(kiln_device *device, kiln__hip_scope *out_scope);
void kiln__hip_leave(kiln__hip_scope *scope);

/* KILN__HIP_TRY with the device current. */
#define KILN__HIP_CALL(device, call, ...)                                                             \
    do {                                                                                              \
        kiln__hip_scope kiln__hip_here;                                                               \
        KILN__TRY(kiln__hip_enter(device, &kiln__hip_here));                                          \
        kiln__hip_error kiln__hip_result = kiln__hip.call(__VA_ARGS__);                               \
        kiln__hip_leave(&kiln__hip_here);                                                             \
        if (KILN__UNLIKELY(kiln__hip_result)) return kiln__hip_fail(device, #call, kiln__hip_result); \
    } while (0)

/* Releases something with one HIP call, without disturbing a capture. Failures are ignored: the process may be exiting,
 * or the device may be gone, and the thing with it. */
#define KILN__HIP_RELEASE(device, call, thing)                                  \
    do {                                                                        \
        kiln__hip_scope kiln__hip_here;                                         \
        if (kiln__hip_enter_relaxed(device, &kiln__hip_here) != KILN_OK) break; \
        if (kiln__hip.call(thing)) kiln__hip_forget();                          \
        kiln__hip_leave(&kiln__hip_here);                                       \
    } while (0)

kiln_status kiln__hip_count(int32_t *out_count);
kiln_status kiln__hip_identify(kiln_device_info *info);
kiln_status kiln__hip_device_open(kiln_device *device, const kiln_device_options *options);
void kiln__hip_device_close(kiln_device *device);
kiln_status kiln__hip_device_enable_peer(kiln_device *device, kiln_device *peer);

kiln_status kiln__hip_module_load(kiln_module *module);
void kiln__hip_module_unload(kiln_module *module);
kiln_status kiln__hip_module_variable(const kiln_module *module, const char *name, void **out_address,
                                      size_t *out_size);

kiln_status kiln__hip_launch(kiln_stream *stream, const kiln_kernel *kernel, const kiln_launch_config *config,
                             const void *arguments);
kiln_status kiln__hip_kernel_attributes(const kiln_kernel *kernel, kiln_kernel_attributes *out_attributes);
kiln_status kiln__hip_kernel_occupancy(const kiln_kernel *kernel, uint32_t threads, uint32_t dynamic_shared_bytes,
                                       uint32_t *out_blocks);

kiln_status kiln__hip_stream_open(kiln_device *device, uint32_t flags, kiln_stream *out_stream);
kiln_status kiln__hip_stream_borrow(kiln_device *device, void *native, kiln_stream *out_stream);
kiln_status kiln__hip_stream_capturing(kiln_stream *stream, bool *out_capturing);
kiln_status kiln__hip_stream_sync(kiln_stream *stream);
kiln_status kiln__hip_stream_query(kiln_stream *stream, bool *out_done);
void kiln__hip_stream_close(kiln_stream *stream);
kiln_status kiln__hip_stream_wait_event(kiln_stream *stream, kiln_event *event);

kiln_status kiln__hip_memory_alloc(kiln_device *device, size_t size, void **out_memory);
void kiln__hip_memory_free(kiln_device *device, void *memory);
kiln_status kiln__hip_memory_alloc_async(kiln_stream *stream, size_t size, void **out_memory);
kiln_status kiln__hip_memory_free_async(kiln_stream *stream, void *memory);
kiln_status kiln__hip_memory_info(kiln_device *device, uint64_t *out_free, uint64_t *out_total);
kiln_status kiln__hip_host_alloc(kiln_device *device, size_t size, void **out_memory);
void kiln__hip_host_free(kiln_device *device, void *memory);
kiln_status kiln__hip_host_register(kiln_device *device, void *memory, size_t size, void **out_device_memory);
void kiln__hip_host_unregister(kiln_device *device, void *memory);
kiln_status kiln__hip_copy(kiln_stream *stream, void *destination, const void *source, size_t size,
                           kiln_copy_direction direction);
kiln_status kiln__hip_fill(kiln_stream *stream, void *destination, uint8_t value, size_t size);

kiln_status kiln__hip_event_create(kiln_event *event);
kiln_status kiln__hip_event_borrow(kiln_event *event, void *native);
void kiln__hip_event_destroy(kiln_event *event);
kiln_status kiln__hip_event_record(kiln_event *event, kiln_stream *stream);
kiln_status kiln__hip_event_sync(kiln_event *event);
kiln_status kiln__hip_event_query(kiln_event *event, bool *out_done);
kiln_status kiln__hip_event_elapsed(kiln_event *start, kiln_event *end, double *out_nanoseconds);

#endif
