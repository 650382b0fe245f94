#include "loader/rocm/rocm_backend.h"
#include <stdio.h>
#include <stdlib.h>

void kiln__rocm_device_lose(kiln_device *device, uint32_t status) {
    kiln__device_lose(device, "%s (0x%x)", kiln__hsa_status_name(status), (unsigned)status);
}

kiln_status kiln__rocm_count(int32_t *out_count) {
    const char *library;
    *out_count = 0;
    KILN__TRY(kiln__hsa_open(&library));
    if (!library) return KILN_OK;
    KILN__TRY(kiln__rocm_agents(NULL, 0, out_count));
    if (!*out_count) kiln__fail(KILN_ERROR_NO_DRIVER, "no device: %s lists no GPU", library);
    return KILN_OK;
}

static kiln_status describe_driver(const char *library, kiln_device_info *info) {
    uint16_t major = 0, minor = 0;
    KILN__HSA_TRY(system_get_info, KILN__HSA_SYSTEM_INFO_VERSION_MAJOR, &major);
    KILN__HSA_TRY(system_get_info, KILN__HSA_SYSTEM_INFO_VERSION_MINOR, &minor);
    snprintf(info->driver, sizeof info->driver, "%s, HSA %u.%u", library, major, minor);
    return KILN_OK;
}

/* The agents of all GPUs into rocm, and the one of the ordinal. */
static kiln_status find_agent(kiln__rocm_device *rocm, int32_t ordinal) {
    int32_t count;
    KILN__TRY(kiln__rocm_agents(rocm->gpus, KILN__ROCM_GPUS, &count));
    rocm->gpu_count = count < KILN__ROCM_GPUS ? count : KILN__ROCM_GPUS;
    if (ordinal < rocm->gpu_count) rocm->agent = rocm->gpus[ordinal];
    if (!rocm->agent.handle)
        return kiln__fail(KILN_ERROR_NOT_FOUND, "rocm: ordinal is %d: the runtime lists %d GPUs", ordinal, count);
    return KILN_OK;
}

kiln_status kiln__rocm_identify(kiln_device_info *info) {
    kiln__rocm_device found = {0};
    KILN__TRY(find_agent(&found, info->ordinal));
    kiln__rocm_agent_identify(found.agent, info);
    return KILN_OK;
}

static kiln_status open_agent(kiln__rocm_device *rocm, kiln_device *device) {
    const char *library;
    KILN__TRY(kiln__hsa_open(&library));
    if (!library) return KILN_ERROR_NO_DRIVER; /* the text says why */
    KILN__TRY(find_agent(rocm, device->info.ordinal));
    KILN__TRY(describe_driver(library, &device->info));
    KILN__TRY(kiln__rocm_agent_describe(rocm, &device->info));
    kiln__rocm_agent_identify(rocm->agent, &device->info);
    return KILN_OK;
}

kiln_status kiln__rocm_device_open(kiln_device *device, const kiln_device_options *options) {
    kiln__rocm_device *rocm = calloc(1, sizeof *rocm);
    if (!rocm) return kiln__fail(KILN_ERROR_OUT_OF_MEMORY, "rocm: no memory for the device");
    rocm->device = device;
    rocm->takes_faults = options->take_faults;
    kiln_status status = open_agent(rocm, device);
    if (status == KILN_OK) status = kiln__rocm_faults_join(rocm);
    if (status != KILN_OK) {
        free(rocm);
        return status;
    }
    kiln__rocm_signals_open(&rocm->signals);
    pthread_mutex_init(&rocm->queue_lock, NULL);
    pthread_mutex_init(&rocm->pages_lock, NULL);
    device->native = rocm;
    device->threads_most = rocm->grid_size_max;
    return KILN_OK;
}

void kiln__rocm_device_close(kiln_device *device) {
    kiln__rocm_device *rocm = device->native;
    kiln__rocm_faults_leave(rocm);
    /* What a copy may still read stays, as its signals do. */
    if (!kiln__rocm_signals_close(&rocm->signals) && rocm->pages) kiln__hsa.pool_free(rocm->pages);
    pthread_mutex_destroy(&rocm->pages_lock);
    pthread_mutex_destroy(&rocm->queue_lock);
    free(rocm);
}

kiln_status kiln__rocm_device_enable_peer(kiln_device *device, kiln_device *peer) {
    return kiln__fail(
        KILN_ERROR_UNSUPPORTED,
        "kiln_device_enable_peer: rocm:%d on rocm:%d: the HSA runtime grants access to an allocation, and "
        "to no device's memory as a whole",
        device->info.ordinal, peer->info.ordinal);
}
