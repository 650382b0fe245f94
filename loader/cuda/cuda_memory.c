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
