#include "loader/rocm/rocm.h"
#include <stdio.h>
#include <stdlib.h>

/* Open devices, for the fault handler, which the runtime calls on a thread of its own. */
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static kiln__rocm_device *open_devices;

static void list_add(kiln__rocm_device *rocm) {
    pthread_mutex_lock(&open_lock);
    rocm->next = open_devices;
    open_devices = rocm;
    pthread_mutex_unlock(&open_lock);
}

static void list_remove(kiln__rocm_device *rocm) {
    pthread_mutex_lock(&open_lock);
    for (kiln__rocm_device **link = &open_devices; *link; link = &(*link)->next) {
        if (*link != rocm) continue;
        *link = rocm->next;
        break;
    }
    pthread_mutex_unlock(&open_lock);
}

void kiln__rocm_device_lose(kiln_device *device, uint32_t status) {
    kiln__device_lose(device, "%s (0x%x)", kiln__hsa_status_name(status), (unsigned)status);
}

static void lose_by_event(kiln_device *device, const kiln__hsa_event *event) {
    if (event->event_type == KILN__HSA_AMD_GPU_MEMORY_FAULT_EVENT)
        kiln__device_lose(device, "a page fault at 0x%llx (HSA's reasons 0x%x)",
                          (unsigned long long)event->virtual_address, (unsigned)event->fault_reason_mask);
    else
        kiln__device_lose(device, "a hardware exception or memory error (HSA's event %u)", (unsigned)event->event_type);
}

/* Every event that there is (page fault, hardware exception, memory error) leaves the agent's queues stopped. The
 * runtime asks each handler that was registered and aborts the process unless one of them answers with success: which
 * is kiln's answer for its own devices alone, since nobody else would be told of the loss of another. */
kiln__hsa_status kiln__rocm_on_event(const kiln__hsa_event *event, void *data) {
    (void)data;
    kiln__hsa_status status = KILN__HSA_STATUS_ERROR;
    pthread_mutex_lock(&open_lock);
    for (kiln__rocm_device *rocm = open_devices; rocm; rocm = rocm->next) {
        if (rocm->agent.handle != event->agent.handle) continue;
        lose_by_event(rocm->device, event);
        status = KILN__HSA_STATUS_SUCCESS;
    }
    pthread_mutex_unlock(&open_lock);
    return status;
}

kiln_status kiln__rocm_count(int32_t *out_count) {
    const char *library;
    kiln__hsa_agent agent;
    *out_count = 0;
    KILN__TRY(kiln__hsa_open(&library));
    if (!library) return KILN_OK;
    kiln_status status = kiln__rocm_agents(-1, &agent, out_count);
    if (status == KILN_ERROR_OUT_OF_MEMORY) return status;
    if (status == KILN_OK && !*out_count) kiln__fail(KILN_ERROR_NO_DRIVER, "no device: %s lists no GPU", library);
    return KILN_OK;
}

static kiln_status describe_driver(const char *library, kiln_device_info *info) {
    uint16_t major = 0, minor = 0;
    KILN__HSA_TRY(system_get_info, KILN__HSA_SYSTEM_INFO_VERSION_MAJOR, &major);
    KILN__HSA_TRY(system_get_info, KILN__HSA_SYSTEM_INFO_VERSION_MINOR, &minor);
    snprintf(info->driver, sizeof info->driver, "%s, HSA %u.%u", library, major, minor);
    return KILN_OK;
}

static kiln_status open_agent(kiln__rocm_device *rocm, kiln_device *device) {
    const char *library;
    int32_t count;
    KILN__TRY(kiln__hsa_open(&library));
    if (!library) return KILN_ERROR_NO_DRIVER; /* the text says why */
    KILN__TRY(kiln__rocm_agents(device->info.ordinal, &rocm->agent, &count));
    if (!rocm->agent.handle)
        return kiln__fail(KILN_ERROR_NOT_FOUND, "rocm: ordinal is %d: the runtime lists %d GPUs", device->info.ordinal,
                          count);
    KILN__TRY(describe_driver(library, &device->info));
    return kiln__rocm_agent_describe(rocm, &device->info);
}

kiln_status kiln__rocm_device_open(kiln_device *device, const kiln_device_options *options) {
    (void)options;
    kiln__rocm_device *rocm = calloc(1, sizeof *rocm);
    if (!rocm) return kiln__fail(KILN_ERROR_OUT_OF_MEMORY, "rocm: no memory for the device");
    rocm->device = device;
    kiln_status status = open_agent(rocm, device);
    if (status != KILN_OK) {
        free(rocm);
        return status;
    }
    kiln__rocm_signals_open(&rocm->signals);
    pthread_mutex_init(&rocm->queue_lock, NULL);
    device->native = rocm;
    list_add(rocm);
    return KILN_OK;
}

void kiln__rocm_device_close(kiln_device *device) {
    kiln__rocm_device *rocm = device->native;
    list_remove(rocm);
    kiln__rocm_signals_close(&rocm->signals);
    pthread_mutex_destroy(&rocm->queue_lock);
    free(rocm);
}
