/* The functions of the CUDA backend, one source file per noun. cuda_backend.c has their table; loader/backend.h
 * documents them.
 *
 * A device's native is the CUcontext itself, so that a launch can compare it with one load: the device's primary
 * context, retained, or one borrowed from the application (then also key_context). A stream's native is the CUstream;
 * its state is a set of KILN__CUDA_STREAM_ bits. */
#ifndef KILN_LOADER_CUDA_BACKEND_H
#define KILN_LOADER_CUDA_BACKEND_H

#include "loader/backend.h"
#include "loader/cuda/cuda_driver.h"
#include "loader/cuda/cuda_status.h"

/* Makes a driver call and, on failure, returns its status from the calling function. */
#define KILN__CUDA_TRY(device, call, ...)                                                                \
    do {                                                                                                 \
        kiln__cu_result kiln__cuda_result = kiln__cuda.call(__VA_ARGS__);                                \
        if (KILN__UNLIKELY(kiln__cuda_result)) return kiln__cuda_fail(device, #call, kiln__cuda_result); \
    } while (0)

/* The device's context is current on this thread from enter to leave. The current context is queried each time and
 * never cached, because the application may change it between two calls. */
typedef struct kiln__cuda_scope {
    kiln__cu_context previous;
    kiln__cu_enum capture_mode; /* the thread's, if relaxed */
    bool changed, relaxed;
} kiln__cuda_scope;

kiln_status kiln__cuda_enter(kiln_device *device, kiln__cuda_scope *out_scope);
/* The same in relaxed capture mode, in which loading and freeing do not disturb a capture of this or another thread. */
kiln_status kiln__cuda_enter_relaxed(kiln_device *device, kiln__cuda_scope *out_scope);
void kiln__cuda_leave(kiln__cuda_scope *scope);

/* KILN__CUDA_TRY with the device's context current. */
#define KILN__CUDA_CALL(device, call, ...)                                                               \
    do {                                                                                                 \
        kiln__cuda_scope kiln__cuda_here;                                                                \
        KILN__TRY(kiln__cuda_enter(device, &kiln__cuda_here));                                           \
        kiln__cu_result kiln__cuda_result = kiln__cuda.call(__VA_ARGS__);                                \
        kiln__cuda_leave(&kiln__cuda_here);                                                              \
        if (KILN__UNLIKELY(kiln__cuda_result)) return kiln__cuda_fail(device, #call, kiln__cuda_result); \
    } while (0)

/* Releases something with one driver call, without disturbing a capture. Failures are ignored: the driver may be
 * shutting down, or the context may be gone, and the thing with it. */
#define KILN__CUDA_RELEASE(device, call, thing)                                   \
    do {                                                                          \
        kiln__cuda_scope kiln__cuda_here;                                         \
        if (kiln__cuda_enter_relaxed(device, &kiln__cuda_here) != KILN_OK) break; \
        (void)kiln__cuda.call(thing);                                             \
        kiln__cuda_leave(&kiln__cuda_here);                                       \
    } while (0)

kiln_status kiln__cuda_count(int32_t *out_count);
kiln_status kiln__cuda_identify(kiln_device_info *info);
kiln_status kiln__cuda_device_open(kiln_device *device, const kiln_device_options *options);
void kiln__cuda_device_close(kiln_device *device);
kiln_status kiln__cuda_device_enable_peer(kiln_device *device, kiln_device *peer);

kiln_status kiln__cuda_module_load(kiln_module *module);
void kiln__cuda_module_unload(kiln_module *module);
kiln_status kiln__cuda_module_variable(const kiln_module *module, const char *name, void **out_address,
                                       size_t *out_size);

kiln_status kiln__cuda_launch_plain(kiln_stream *stream, const kiln_kernel *kernel, const kiln_launch_config *config,
                                    const void *arguments);
kiln_status kiln__cuda_launch(kiln_stream *stream, const kiln_kernel *kernel, const kiln_launch_config *config,
                              const void *arguments);
kiln_status kiln__cuda_kernel_attributes(const kiln_kernel *kernel, kiln_kernel_attributes *out_attributes);
kiln_status kiln__cuda_kernel_occupancy(const kiln_kernel *kernel, uint32_t threads, uint32_t dynamic_shared_bytes,
                                        uint32_t *out_blocks);

kiln_status kiln__cuda_tensor_map_encode(const kiln_kernel *kernel, const kiln__tensor_layout *tensor,
                                         const uint16_t *box, void *out_map);

/* Bits of a stream's state. */
enum { KILN__CUDA_STREAM_OWNED = 1, KILN__CUDA_STREAM_PROGRAMMATIC = 2 };
static inline uintptr_t kiln__cuda_stream_bits(const kiln_stream *stream) {
    return (uintptr_t)stream->state;
}

kiln_status kiln__cuda_stream_open(kiln_device *device, uint32_t flags, kiln_stream *out_stream);
kiln_status kiln__cuda_stream_borrow(kiln_device *device, void *native, kiln_stream *out_stream);
kiln_status kiln__cuda_stream_capturing(kiln_stream *stream, bool *out_capturing);
kiln_status kiln__cuda_stream_set_programmatic(kiln_stream *stream, bool on);
kiln_status kiln__cuda_stream_sync(kiln_stream *stream);
kiln_status kiln__cuda_stream_query(kiln_stream *stream, bool *out_done);
void kiln__cuda_stream_close(kiln_stream *stream);
kiln_status kiln__cuda_stream_wait_event(kiln_stream *stream, kiln_event *event);

kiln_status kiln__cuda_memory_alloc(kiln_device *device, size_t size, void **out_memory);
void kiln__cuda_memory_free(kiln_device *device, void *memory);
kiln_status kiln__cuda_memory_alloc_async(kiln_stream *stream, size_t size, void **out_memory);
kiln_status kiln__cuda_memory_free_async(kiln_stream *stream, void *memory);
kiln_status kiln__cuda_memory_info(kiln_device *device, uint64_t *out_free, uint64_t *out_total);
kiln_status kiln__cuda_host_alloc(kiln_device *device, size_t size, void **out_memory);
void kiln__cuda_host_free(kiln_device *device, void *memory);
kiln_status kiln__cuda_host_register(kiln_device *device, void *memory, size_t size, void **out_device_memory);
void kiln__cuda_host_unregister(kiln_device *device, void *memory);
kiln_status kiln__cuda_copy(kiln_stream *stream, void *destination, const void *source, size_t size,
                            kiln_copy_direction direction);
kiln_status kiln__cuda_fill(kiln_stream *stream, void *destination, uint8_t value, size_t size);

kiln_status kiln__cuda_event_create(kiln_event *event);
kiln_status kiln__cuda_event_borrow(kiln_event *event, void *native);
void kiln__cuda_event_destroy(kiln_event *event);
kiln_status kiln__cuda_event_record(kiln_event *event, kiln_stream *stream);
kiln_status kiln__cuda_event_sync(kiln_event *event);
kiln_status kiln__cuda_event_query(kiln_event *event, bool *out_done);
kiln_status kiln__cuda_event_elapsed(kiln_event *start, kiln_event *end, double *out_nanoseconds);

#endif
