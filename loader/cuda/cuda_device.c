#include "loader/cuda/cuda_backend.h"
#include <stdio.h>

/* More devices than any machine has. A driver that reports more is broken. */
enum { DEVICE_MAX = 1024 };

kiln_status kiln__cuda_enter(kiln_device *device, kiln__cuda_scope *out_scope) {
    *out_scope = (kiln__cuda_scope){0};
    KILN__CUDA_TRY(device, cuCtxGetCurrent, &out_scope->previous);
    if (out_scope->previous == device->native) return KILN_OK;
    KILN__CUDA_TRY(device, cuCtxSetCurrent, device->native);
    out_scope->changed = true;
    return KILN_OK;
}

kiln_status kiln__cuda_enter_relaxed(kiln_device *device, kiln__cuda_scope *out_scope) {
    KILN__TRY(kiln__cuda_enter(device, out_scope));
    out_scope->capture_mode = KILN__CU_STREAM_CAPTURE_MODE_RELAXED;
    kiln__cu_result result = kiln__cuda.cuThreadExchangeStreamCaptureMode(&out_scope->capture_mode);
    out_scope->relaxed = !result;
    if (!result) return KILN_OK;
    kiln__cuda_leave(out_scope);
    return kiln__cuda_fail(device, "cuThreadExchangeStreamCaptureMode", result);
}

void kiln__cuda_leave(kiln__cuda_scope *scope) {
    /* What was asked for is done; a driver that cannot go back says so again at the application's next call. */
    if (scope->relaxed) (void)kiln__cuda.cuThreadExchangeStreamCaptureMode(&scope->capture_mode);
    if (scope->changed) (void)kiln__cuda.cuCtxSetCurrent(scope->previous);
}

kiln_status kiln__cuda_count(int32_t *out_count) {
    int count = 0;
    *out_count = 0;
    kiln_status status = kiln__cuda_driver_ready();
    if (status != KILN_OK) return kiln__absent_is_none(status);
    kiln__cu_result result = kiln__cuda.cuDeviceGetCount(&count);
    if (result) return kiln__absent_is_none(kiln__cuda_fail(NULL, "cuDeviceGetCount", result));
    if (count < 0 || count > DEVICE_MAX)
        return kiln__fail(KILN_ERROR_DRIVER, "cuDeviceGetCount: %d devices: not believed", count);
    if (count == 0) kiln__fail(KILN_ERROR_NO_DRIVER, "%s has no device", kiln__cuda_driver_library());
    *out_count = count;
    return KILN_OK;
}

static kiln_status get_attribute(kiln__cu_device number, kiln__cu_enum attribute, int32_t *out_value) {
    int value = 0;
    KILN__CUDA_TRY(NULL, cuDeviceGetAttribute, &value, attribute, number);
    *out_value = value;
    return KILN_OK;
}

/* Which device it is, among those of the machine. */
static kiln_status get_identity(kiln__cu_device number, kiln_device_info *info) {
    if (kiln__cuda.cuDeviceGetUuid_v2) KILN__CUDA_TRY(NULL, cuDeviceGetUuid_v2, (struct CUuuid_st *)info->uuid, number);
    KILN__TRY(get_attribute(number, KILN__CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, &info->pci_domain));
    KILN__TRY(get_attribute(number, KILN__CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, &info->pci_bus));
    KILN__TRY(get_attribute(number, KILN__CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, &info->pci_device));
    info->pci_function = 0; /* a GPU's first, as the driver's own text of the address has it */
    int node = -1;
    kiln__cu_result result = kiln__cuda.cuDeviceGetAttribute(&node, KILN__CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, number);
    /* Drivers before CUDA 12 do not know the attribute. */
    if (result && result != KILN__CU_ERROR_INVALID_VALUE) return kiln__cuda_fail(NULL, "cuDeviceGetAttribute", result);
    info->numa_node = result ? -1 : node;
    return KILN_OK;
}

kiln_status kiln__cuda_identify(kiln_device_info *info) {
    kiln__cu_device number = -1;
    KILN__CUDA_TRY(NULL, cuDeviceGet, &number, info->ordinal);
    return get_identity(number, info);
}

static kiln_status get_info(kiln__cu_device number, kiln_device_info *info) {
    size_t memory = 0;
    int32_t major = 0, minor = 0;
    int32_t version = kiln__cuda_driver_version();
    KILN__CUDA_TRY(NULL, cuDeviceGetName, info->name, (int)sizeof info->name, number);
    info->name[sizeof info->name - 1] = 0;
    KILN__CUDA_TRY(NULL, cuDeviceTotalMem, &memory, number);
    KILN__TRY(get_attribute(number, KILN__CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major));
    KILN__TRY(get_attribute(number, KILN__CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor));
    KILN__TRY(get_attribute(number, KILN__CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &info->multiprocessors));
    KILN__TRY(get_attribute(number, KILN__CU_DEVICE_ATTRIBUTE_WARP_SIZE, &info->wave_size));
    KILN__TRY(get_attribute(number, KILN__CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &info->max_threads));
    KILN__TRY(
        get_attribute(number, KILN__CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &info->max_shared_bytes));
    if (major <= 0 || major > 99 || minor < 0 || minor > 9)
        return kiln__fail(KILN_ERROR_DRIVER, "cuDeviceGetAttribute: compute capability %d.%d: not believed", major,
                          minor);
    KILN__TRY(get_identity(number, info));
    info->memory_bytes = memory;
    info->target = (kiln_target){
        .backend = KILN_BACKEND_CUDA, .compute_capability = major * 10 + minor, .driver_version = version};
    snprintf(info->driver, sizeof info->driver, "%s, CUDA %d.%d", kiln__cuda_driver_library(), version / 1000,
             version % 1000 / 10);
    return KILN_OK;
}

/* A borrowed context must be of the device that the ordinal names. */
static kiln_status borrow_context(kiln_device *device, kiln__cu_device number) {
    kiln__cu_device owner = -1;
    KILN__CUDA_CALL(device, cuCtxGetDevice, &owner);
    KILN__REQUIRE(owner == number, "kiln_device_open: context is of CUDA device %d, ordinal is %d", owner,
                  device->info.ordinal);
    return KILN_OK;
}

static kiln_status retain_context(kiln_device *device, kiln__cu_device number) {
    kiln__cu_context context = NULL;
    KILN__CUDA_TRY(NULL, cuDevicePrimaryCtxRetain, &context, number);
    if (!context) return kiln__cuda_fail_empty("cuDevicePrimaryCtxRetain");
    device->native = context;
    return KILN_OK;
}

kiln_status kiln__cuda_device_open(kiln_device *device, const kiln_device_options *options) {
    kiln__cu_device number = -1;
    KILN__CUDA_TRY(NULL, cuDeviceGet, &number, device->info.ordinal);
    KILN__TRY(get_info(number, &device->info));
    device->key_context = options->context;
    device->native = options->context;
    return options->context ? borrow_context(device, number) : retain_context(device, number);
}

void kiln__cuda_device_close(kiln_device *device) {
    kiln__cu_device number = -1;
    if (device->key_context || kiln__cuda.cuDeviceGet(&number, device->info.ordinal)) return;
    (void)kiln__cuda.cuDevicePrimaryCtxRelease(number);
}

kiln_status kiln__cuda_device_enable_peer(kiln_device *device, kiln_device *peer) {
    kiln__cu_device from = -1, to = -1;
    int can = 0;
    KILN__CUDA_TRY(device, cuDeviceGet, &from, device->info.ordinal);
    KILN__CUDA_TRY(device, cuDeviceGet, &to, peer->info.ordinal);
    KILN__CUDA_TRY(device, cuDeviceCanAccessPeer, &can, from, to);
    if (!can)
        return kiln__fail(KILN_ERROR_UNSUPPORTED, "kiln_device_enable_peer: cuda:%d cannot reach cuda:%d's memory",
                          device->info.ordinal, peer->info.ordinal);
    kiln__cuda_scope here;
    KILN__TRY(kiln__cuda_enter(device, &here));
    kiln__cu_result result = kiln__cuda.cuCtxEnablePeerAccess(peer->native, 0);
    kiln__cuda_leave(&here);
    /* The application may have enabled it before. */
    return !result || result == KILN__CU_ERROR_PEER_ACCESS_ALREADY_ENABLED
               ? KILN_OK
               : kiln__cuda_fail(device, "cuCtxEnablePeerAccess", result);
}
