#include "loader/hip/hip_backend.h"

kiln_status kiln__hip_memory_alloc(kiln_device *device, size_t size, void **out_memory) {
    void *memory = NULL;
    KILN__HIP_CALL(device, hipMalloc, &memory, size);
    if (!memory) return kiln__hip_fail_empty("hipMalloc");
    *out_memory = memory;
    return KILN_OK;
}

void kiln__hip_memory_free(kiln_device *device, void *memory) {
    KILN__HIP_RELEASE(device, hipFree, memory);
}

static kiln_status check_pools(const char *function) {
    if (kiln__hip.hipMallocAsync && kiln__hip.hipFreeAsync && kiln__hip_driver_is_recent()) return KILN_OK;
    return kiln__fail(KILN_ERROR_UNSUPPORTED, "%s: needs HIP 5.6, this is %s", function, kiln__hip_driver_text());
}

kiln_status kiln__hip_memory_alloc_async(kiln_stream *stream, size_t size, void **out_memory) {
    void *memory = NULL;
    KILN__TRY(check_pools("kiln_memory_alloc_async"));
    KILN__HIP_CALL(stream->device, hipMallocAsync, &memory, size, stream->native);
    if (!memory) return kiln__hip_fail_empty("hipMallocAsync");
    *out_memory = memory;
    return KILN_OK;
}

kiln_status kiln__hip_memory_free_async(kiln_stream *stream, void *memory) {
    KILN__TRY(check_pools("kiln_memory_free_async"));
    KILN__HIP_CALL(stream->device, hipFreeAsync, memory, stream->native);
    return KILN_OK;
}

kiln_status kiln__hip_memory_info(kiln_device *device, uint64_t *out_free, uint64_t *out_total) {
    size_t available = 0, total = 0;
    KILN__HIP_CALL(device, hipMemGetInfo, &available, &total);
    *out_free = available;
    *out_total = total;
    return KILN_OK;
}

kiln_status kiln__hip_host_alloc(kiln_device *device, size_t size, void **out_memory) {
    void *memory = NULL;
    KILN__HIP_CALL(device, hipHostMalloc, &memory, size, KILN__hipHostMallocPortable);
    if (!memory) return kiln__hip_fail_empty("hipHostMalloc");
    *out_memory = memory;
    return KILN_OK;
}

void kiln__hip_host_free(kiln_device *device, void *memory) {
    KILN__HIP_RELEASE(device, hipHostFree, memory);
}

kiln_status kiln__hip_host_register(kiln_device *device, void *memory, size_t size, void **out_device_memory) {
    void *address = NULL;
    KILN__HIP_CALL(device, hipHostRegister, memory, size, KILN__hipHostRegisterPortable);
    kiln__hip_scope here;
    kiln_status status = kiln__hip_enter(device, &here);
    if (status == KILN_OK) {
        kiln__hip_error result = kiln__hip.hipHostGetDevicePointer(&address, memory, 0);
        kiln__hip_leave(&here);
        if (result) status = kiln__hip_fail(device, "hipHostGetDevicePointer", result);
        if (!result && !address) status = kiln__hip_fail_empty("hipHostGetDevicePointer");
    }
    if (status != KILN_OK) kiln__hip_host_unregister(device, memory);
    *out_device_memory = address;
    return status;
}

void kiln__hip_host_unregister(kiln_device *device, void *memory) {
    KILN__HIP_RELEASE(device, hipHostUnregister, memory);
}

kiln_status kiln__hip_copy(kiln_stream *stream, void *destination, const void *source, size_t size,
                           kiln_copy_direction direction) {
    void *from = (void *)(uintptr_t)source; /* HIP before 6.0 declares no const */
    switch (direction) {
    case KILN_COPY_TO_DEVICE:
        KILN__HIP_CALL(stream->device, hipMemcpyHtoDAsync, destination, from, size, stream->native);
        break;
    case KILN_COPY_TO_HOST:
        KILN__HIP_CALL(stream->device, hipMemcpyDtoHAsync, destination, from, size, stream->native);
        break;
    case KILN_COPY_ON_DEVICE:
        KILN__HIP_CALL(stream->device, hipMemcpyDtoDAsync, destination, from, size, stream->native);
        break;
    }
    return KILN_OK;
}

kiln_status kiln__hip_fill(kiln_stream *stream, void *destination, uint8_t value, size_t size) {
    KILN__HIP_CALL(stream->device, hipMemsetAsync, destination, value, size, stream->native);
    return KILN_OK;
}
