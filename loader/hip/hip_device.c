#include "loader/hip/hip_backend.h"
#include "loader/target.h"
#include <stdio.h>
#include <string.h>

/* More devices than any machine has. A HIP that reports more is broken. */
enum { DEVICE_MAX = 1024 };

kiln_status kiln__hip_enter(kiln_device *device, kiln__hip_scope *out_scope) {
    *out_scope = (kiln__hip_scope){.previous = -1};
    KILN__HIP_TRY(device, hipGetDevice, &out_scope->previous);
    if (out_scope->previous == device->info.ordinal) return KILN_OK;
    KILN__HIP_TRY(device, hipSetDevice, device->info.ordinal);
    out_scope->changed = true;
    return KILN_OK;
}

kiln_status kiln__hip_enter_relaxed(kiln_device *device, kiln__hip_scope *out_scope) {
    KILN__TRY(kiln__hip_enter(device, out_scope));
    if (!kiln__hip.hipThreadExchangeStreamCaptureMode) return KILN_OK;
    out_scope->capture_mode = KILN__hipStreamCaptureModeRelaxed;
    kiln__hip_error result = kiln__hip.hipThreadExchangeStreamCaptureMode(&out_scope->capture_mode);
    out_scope->relaxed = !result;
    if (!result) return KILN_OK;
    kiln__hip_leave(out_scope);
    return kiln__hip_fail(device, "hipThreadExchangeStreamCaptureMode", result);
}

void kiln__hip_leave(kiln__hip_scope *scope) {
    /* What was asked for is done; a HIP that cannot go back says so again at the application's next call. */
    if (scope->relaxed) (void)kiln__hip.hipThreadExchangeStreamCaptureMode(&scope->capture_mode);
    if (scope->changed) (void)kiln__hip.hipSetDevice(scope->previous);
}

kiln_status kiln__hip_count(int32_t *out_count) {
    int count = 0;
    *out_count = 0;
    kiln_status status = kiln__hip_driver_ready();
    if (status != KILN_OK) return kiln__absent_is_none(status);
    kiln__hip_error result = kiln__hip.hipGetDeviceCount(&count);
    if (result) return kiln__absent_is_none(kiln__hip_fail(NULL, "hipGetDeviceCount", result));
    if (count < 0 || count > DEVICE_MAX)
        return kiln__fail(KILN_ERROR_DRIVER, "hipGetDeviceCount: %d devices: not believed", count);
    if (count == 0) kiln__fail(KILN_ERROR_NO_DRIVER, "%s has no device", kiln__hip_driver_text());
    *out_count = count;
    return KILN_OK;
}

/* Which device it is, among those of the machine. The UUID is text, as the HSA runtime's. */
kiln_status kiln__hip_identify(kiln_device_info *info) {
    enum { TEXT_SIZE = 32, WANTED = 3 };
    char text[TEXT_SIZE] = "";
    uint8_t uuid[sizeof info->uuid];
    unsigned domain = 0, bus = 0, device = 0, function = 0;
    if (kiln__hip.hipDeviceGetUuid) {
        kiln__hip_error result = kiln__hip.hipDeviceGetUuid((struct hipUUID_t *)uuid, info->ordinal);
        if (result == KILN__hipErrorNotSupported)
            kiln__hip_forget();
        else if (result)
            return kiln__hip_fail(NULL, "hipDeviceGetUuid", result);
        else
            memcpy(info->uuid, uuid, sizeof uuid);
    }
    KILN__HIP_TRY(NULL, hipDeviceGetPCIBusId, text, TEXT_SIZE, info->ordinal);
    text[TEXT_SIZE - 1] = 0;
    if (sscanf(text, "%x:%x:%x.%x", &domain, &bus, &device, &function) < WANTED)
        return kiln__fail(KILN_ERROR_DRIVER, "hipDeviceGetPCIBusId: %s is no PCI address", text);
    info->pci_domain = (int32_t)domain;
    info->pci_bus = (int32_t)bus;
    info->pci_device = (int32_t)device;
    info->pci_function = (int32_t)function;
    return KILN_OK;
}

static kiln_status get_attribute(int32_t ordinal, kiln__hip_enum attribute, int32_t *out_value) {
    int value = 0;
    KILN__HIP_TRY(NULL, hipDeviceGetAttribute, &value, attribute, ordinal);
    *out_value = value;
    return KILN_OK;
}

/* The one thing that HIP tells in a struct alone, which has two layouts. */
static kiln_status get_target(kiln_device_info *info) {
    kiln__hip_properties properties;
    memset(&properties, 0, sizeof properties);
    const bool later = kiln__hip.hipGetDevicePropertiesR0600;
    if (later)
        KILN__HIP_TRY(NULL, hipGetDevicePropertiesR0600, &properties, info->ordinal);
    else
        KILN__HIP_TRY(NULL, hipGetDeviceProperties, &properties, info->ordinal);
    char *arch = properties.bytes + (later ? KILN__HIP_ARCH_AT_R0600 : KILN__HIP_ARCH_AT_R0000);
    arch[KILN__HIP_ARCH_SIZE - 1] = 0;
    if (!kiln__amd_parse(arch, &info->target))
        return kiln__fail(KILN_ERROR_DRIVER, "hipGetDeviceProperties: gcnArchName is \"%.64s\": not believed", arch);
    return KILN_OK;
}

static kiln_status get_info(kiln_device_info *info) {
    size_t memory = 0;
    KILN__HIP_TRY(NULL, hipDeviceGetName, info->name, (int)sizeof info->name, info->ordinal);
    info->name[sizeof info->name - 1] = 0;
    KILN__HIP_TRY(NULL, hipDeviceTotalMem, &memory, info->ordinal);
    info->memory_bytes = memory;
    KILN__TRY(get_target(info));
    /* On processors of waves of 32 HIP counts pairs of compute units, which are what a block runs on. */
    KILN__TRY(get_attribute(info->ordinal, KILN__hipDeviceAttributeMultiprocessorCount, &info->multiprocessors));
    KILN__TRY(get_attribute(info->ordinal, KILN__hipDeviceAttributeWarpSize, &info->wave_size));
    KILN__TRY(get_attribute(info->ordinal, KILN__hipDeviceAttributeMaxThreadsPerBlock, &info->max_threads));
    KILN__TRY(get_attribute(info->ordinal, KILN__hipDeviceAttributeMaxSharedMemoryPerBlock, &info->max_shared_bytes));
    snprintf(info->driver, sizeof info->driver, "%s", kiln__hip_driver_text());
    return kiln__hip_identify(info);
}

/* HIP counts the work-items of a grid in 32 bits, as the packets do that it writes. */
kiln_status kiln__hip_device_open(kiln_device *device, const kiln_device_options *options) {
    (void)options;
    device->threads_most = UINT32_MAX;
    return get_info(&device->info);
}

/* The context is HIP's own, which nobody has to give back. */
void kiln__hip_device_close(kiln_device *device) {
    (void)device;
}

kiln_status kiln__hip_device_enable_peer(kiln_device *device, kiln_device *peer) {
    int can = 0;
    KILN__HIP_TRY(device, hipDeviceCanAccessPeer, &can, device->info.ordinal, peer->info.ordinal);
    if (!can)
        return kiln__fail(KILN_ERROR_UNSUPPORTED, "kiln_device_enable_peer: hip:%d cannot reach hip:%d's memory",
                          device->info.ordinal, peer->info.ordinal);
    kiln__hip_scope here;
    KILN__TRY(kiln__hip_enter(device, &here));
    kiln__hip_error result = kiln__hip.hipDeviceEnablePeerAccess(peer->info.ordinal, 0);
    kiln__hip_leave(&here);
    if (!result) return KILN_OK;
    /* The application may have enabled it before. */
    if (result != KILN__hipErrorPeerAccessAlreadyEnabled)
        return kiln__hip_fail(device, "hipDeviceEnablePeerAccess", result);
    kiln__hip_forget();
    return KILN_OK;
}
