#include "loader/cuda/cuda_backend.h"

kiln_status kiln__cuda_memory_alloc(kiln_device *device, size_t size, void **out_memory) {
    kiln__cu_address address = 0;
    KILN__CUDA_CALL(device, cuMemAlloc, &address, size);
    if (!address) return kiln__cuda_fail_empty("cuMemAlloc");
    *out_memory = (void *)(uintptr_t)address;
    return KILN_OK;
}

void kiln__cuda_memory_free(kiln_device *device, void *memory) {
    KILN__CUDA_RELEASE(device, cuMemFree, (uintptr_t)memory);
}

static kiln_status no_pools(const char *function) {
    return kiln__fail(KILN_ERROR_UNSUPPORTED, "%s: the driver is older than CUDA 11.2", function);
}

kiln_status kiln__cuda_memory_alloc_async(kiln_stream *stream, size_t size, void **out_memory) {
    kiln__cu_address address = 0;
    if (!kiln__cuda.cuMemAllocAsync) return no_pools("kiln_memory_alloc_async");
    KILN__CUDA_CALL(stream->device, cuMemAllocAsync, &address, size, stream->native);
    if (!address) return kiln__cuda_fail_empty("cuMemAllocAsync");
    *out_memory = (void *)(uintptr_t)address;
    return KILN_OK;
}

kiln_status kiln__cuda_memory_free_async(kiln_stream *stream, void *memory) {
    if (!kiln__cuda.cuMemFreeAsync) return no_pools("kiln_memory_free_async");
    KILN__CUDA_CALL(stream->device, cuMemFreeAsync, (uintptr_t)memory, stream->native);
    return KILN_OK;
}

kiln_status kiln__cuda_memory_info(kiln_device *device, uint64_t *out_free, uint64_t *out_total) {
    size_t available = 0, total = 0;
    KILN__CUDA_CALL(device, cuMemGetInfo, &available, &total);
    *out_free = available;
    *out_total = total;
    return KILN_OK;
}

kiln_status kiln__cuda_host_alloc(kiln_device *device, size_t size, void **out_memory) {
    void *memory = NULL;
    KILN__CUDA_CALL(device, cuMemHostAlloc, &memory, size, KILN__CU_MEMHOSTALLOC_PORTABLE);
    if (!memory) return kiln__cuda_fail_empty("cuMemHostAlloc");
    *out_memory = memory;
    return KILN_OK;
}

void kiln__cuda_host_free(kiln_device *device, void *memory) {
    KILN__CUDA_RELEASE(device, cuMemFreeHost, memory);
}

kiln_status kiln__cuda_host_register(kiln_device *device, void *memory, size_t size, void **out_device_memory) {
    kiln__cu_address address = 0;
    KILN__CUDA_CALL(device, cuMemHostRegister, memory, size, KILN__CU_MEMHOSTREGISTER_PORTABLE);
    kiln__cuda_scope here;
    kiln_status status = kiln__cuda_enter(device, &here);
    if (status == KILN_OK) {
        kiln__cu_result result = kiln__cuda.cuMemHostGetDevicePointer(&address, memory, 0);
        kiln__cuda_leave(&here);
        if (result) status = kiln__cuda_fail(device, "cuMemHostGetDevicePointer", result);
        if (!result && !address) status = kiln__cuda_fail_empty("cuMemHostGetDevicePointer");
    }
    if (status != KILN_OK) kiln__cuda_host_unregister(device, memory);
    *out_device_memory = (void *)(uintptr_t)address;
    return status;
}

void kiln__cuda_host_unregister(kiln_device *device, void *memory) {
    KILN__CUDA_RELEASE(device, cuMemHostUnregister, memory);
}

kiln_status kiln__cuda_copy(kiln_stream *stream, void *destination, const void *source, size_t size,
                            kiln_copy_direction direction) {
    kiln_device *device = stream->device;
    kiln__cu_address to = (uintptr_t)destination, from = (uintptr_t)source;
    switch (direction) {
    case KILN_COPY_TO_DEVICE:
        KILN__CUDA_CALL(device, cuMemcpyHtoDAsync, to, source, size, stream->native);
        break;
    case KILN_COPY_TO_HOST:
        KILN__CUDA_CALL(device, cuMemcpyDtoHAsync, destination, from, size, stream->native);
        break;
    case KILN_COPY_ON_DEVICE:
        KILN__CUDA_CALL(device, cuMemcpyDtoDAsync, to, from, size, stream->native);
        break;
    }
    return KILN_OK;
}

kiln_status kiln__cuda_fill(kiln_stream *stream, void *destination, uint8_t value, size_t size) {
    KILN__CUDA_CALL(stream->device, cuMemsetD8Async, (uintptr_t)destination, value, size, stream->native);
    return KILN_OK;
}
