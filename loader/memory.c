#include "loader/backend.h"
#include "loader/trace.h"

/* No object is larger than PTRDIFF_MAX; such sizes are refused before a driver's own arithmetic can overflow. */
static kiln_status size_check(const kiln_device *device, const char *function, size_t size) {
    KILN__TRY(kiln__device_argument_check(function, device));
    if (size <= PTRDIFF_MAX) return KILN_OK;
    return kiln__fail(KILN_ERROR_OUT_OF_MEMORY, "%s: size %zu is more than any memory has", function, size);
}

kiln_status kiln_memory_alloc(kiln_device *device, size_t size, void **out_memory) {
    KILN__REQUIRE(out_memory, "kiln_memory_alloc: out_memory is NULL");
    *out_memory = NULL;
    KILN__TRY(size_check(device, "kiln_memory_alloc", size));
    return size ? device->backend->memory_alloc(device, size, out_memory) : KILN_OK;
}

/* Releases fail silently: nothing can be released on a forked child's device, and NULL is allowed. */
static bool can_release(const kiln_device *device, const void *memory) {
    return device && memory && (atomic_load(device->state) & KILN__READY);
}

void kiln_memory_free(kiln_device *device, void *memory) {
    if (can_release(device, memory)) device->backend->memory_free(device, memory);
}

kiln_status kiln_memory_alloc_async(kiln_stream *stream, size_t size, void **out_memory) {
    KILN__REQUIRE(out_memory, "kiln_memory_alloc_async: out_memory is NULL");
    *out_memory = NULL;
    KILN__REQUIRE(stream && stream->device, "kiln_memory_alloc_async: stream is NULL or closed");
    KILN__TRY(size_check(stream->device, "kiln_memory_alloc_async", size));
    return size ? stream->device->backend->memory_alloc_async(stream, size, out_memory) : KILN_OK;
}

kiln_status kiln_memory_free_async(kiln_stream *stream, void *memory) {
    KILN__REQUIRE(stream && stream->device, "kiln_memory_free_async: stream is NULL or closed");
    KILN__TRY(kiln__device_check(stream->device));
    return memory ? stream->device->backend->memory_free_async(stream, memory) : KILN_OK;
}

kiln_status kiln_host_register(kiln_device *device, void *memory, size_t size, void **out_device_memory) {
    void *seen = NULL;
    if (out_device_memory) *out_device_memory = NULL;
    KILN__TRY(kiln__device_argument_check("kiln_host_register", device));
    KILN__REQUIRE(memory, "kiln_host_register: memory is NULL");
    KILN__REQUIRE(size, "kiln_host_register: size is 0");
    KILN__REQUIRE((uintptr_t)memory <= UINTPTR_MAX - size, "kiln_host_register: size %zu is beyond memory's end", size);
    KILN__TRY(device->backend->host_register(device, memory, size, &seen));
    if (out_device_memory) *out_device_memory = seen;
    return KILN_OK;
}

void kiln_host_unregister(kiln_device *device, void *memory) {
    if (can_release(device, memory)) device->backend->host_unregister(device, memory);
}

kiln_status kiln_memory_get_info(kiln_device *device, uint64_t *out_free, uint64_t *out_total) {
    KILN__REQUIRE(out_free && out_total, "kiln_memory_get_info: %s is NULL", out_free ? "out_total" : "out_free");
    *out_free = *out_total = 0;
    KILN__TRY(kiln__device_argument_check("kiln_memory_get_info", device));
    return device->backend->memory_info(device, out_free, out_total);
}

kiln_status kiln_host_alloc(kiln_device *device, size_t size, void **out_memory) {
    KILN__REQUIRE(out_memory, "kiln_host_alloc: out_memory is NULL");
    *out_memory = NULL;
    KILN__TRY(size_check(device, "kiln_host_alloc", size));
    return size ? device->backend->host_alloc(device, size, out_memory) : KILN_OK;
}

void kiln_host_free(kiln_device *device, void *memory) {
    if (can_release(device, memory)) device->backend->host_free(device, memory);
}

static bool tracing(const kiln_stream *stream) {
    return atomic_load_explicit(stream->device->state, memory_order_relaxed) & KILN__TRACING;
}

kiln_status kiln_copy(kiln_stream *stream, void *destination, const void *source, size_t size,
                      kiln_copy_direction direction) {
    KILN__REQUIRE(stream && stream->device, "kiln_copy: stream is NULL or closed");
    KILN__TRY(kiln__device_check(stream->device));
    KILN__REQUIRE((unsigned)direction <= KILN_COPY_ON_DEVICE, "kiln_copy: direction is %d: not a kiln_copy_direction",
                  (int)direction);
    if (!size) return KILN_OK;
    KILN__REQUIRE(destination && source, "kiln_copy: %s is NULL", destination ? "source" : "destination");
    uintptr_t to = (uintptr_t)destination, from = (uintptr_t)source;
    KILN__REQUIRE(to <= UINTPTR_MAX - size && from <= UINTPTR_MAX - size, "kiln_copy: size %zu is beyond memory's end",
                  size);
    KILN__REQUIRE(to >= from + size || from >= to + size, "kiln_copy: destination and source overlap");
    if (KILN__UNLIKELY(tracing(stream))) return kiln__trace_copy(stream, destination, source, size, direction);
    return stream->device->backend->copy(stream, destination, source, size, direction);
}

kiln_status kiln_fill(kiln_stream *stream, void *destination, uint8_t value, size_t size) {
    KILN__REQUIRE(stream && stream->device, "kiln_fill: stream is NULL or closed");
    KILN__TRY(kiln__device_check(stream->device));
    if (!size) return KILN_OK;
    KILN__REQUIRE(destination, "kiln_fill: destination is NULL");
    KILN__REQUIRE((uintptr_t)destination <= UINTPTR_MAX - size, "kiln_fill: size %zu is beyond memory's end", size);
    if (KILN__UNLIKELY(tracing(stream))) return kiln__trace_fill(stream, destination, value, size);
    return stream->device->backend->fill(stream, destination, value, size);
}
