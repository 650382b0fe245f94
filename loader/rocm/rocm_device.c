#include "loader/rocm/rocm_backend.h"
#include <stdio.h>
#include <stdlib.h>

kiln_status kiln__rocm_count(int32_t *out_count) {
    *out_count = 0;
    kiln_status status = kiln__rocm_driver_ready();
    if (status != KILN_OK) return kiln__absent_is_none(status);
    KILN__TRY(kiln__rocm_agents(NULL, 0, out_count));
    if (!*out_count) kiln__fail(KILN_ERROR_NO_DRIVER, "no device: %s lists no GPU", kiln__rocm_driver_library());
    return KILN_OK;
}

static kiln_status describe_driver(kiln_device_info *info) {
    uint16_t major = 0, minor = 0;
    KILN__ROCM_TRY(NULL, system_get_info, KILN__HSA_SYSTEM_INFO_VERSION_MAJOR, &major);
    KILN__ROCM_TRY(NULL, system_get_info, KILN__HSA_SYSTEM_INFO_VERSION_MINOR, &minor);
    snprintf(info->driver, sizeof info->driver, "%s, HSA %u.%u", kiln__rocm_driver_library(), major, minor);
    return KILN_OK;
}

/* Stores the agents of all GPUs, and the one of the ordinal, in rocm. */
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
    KILN__TRY(kiln__rocm_driver_ready());
    KILN__TRY(find_agent(rocm, device->info.ordinal));
    KILN__TRY(describe_driver(&device->info));
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
    pthread_mutex_init(&rocm->freed_lock, NULL);
    pthread_mutex_init(&rocm->peers_lock, NULL);
    rocm->peers[rocm->peer_count++] = rocm->agent;
    device->native = rocm;
    device->threads_most = rocm->grid_size_max;
    return KILN_OK;
}

void kiln__rocm_device_close(kiln_device *device) {
    kiln__rocm_device *rocm = device->native;
    kiln__rocm_faults_leave(rocm);
    kiln__rocm_freed_close(rocm);
    pthread_mutex_destroy(&rocm->peers_lock);
    /* What a copy may still read stays, as its signals do. */
    if (!kiln__rocm_signals_close(&rocm->signals) && rocm->pages) kiln__rocm.pool_free(rocm->pages);
    pthread_mutex_destroy(&rocm->pages_lock);
    pthread_mutex_destroy(&rocm->queue_lock);
    free(rocm);
}

static kiln_status peer_add(kiln__rocm_device *peer, kiln__hsa_agent agent) {
    for (uint32_t i = 0; i < peer->peer_count; i++)
        if (peer->peers[i].handle == agent.handle) return KILN_OK;
    if (peer->peer_count == KILN__ROCM_GPUS)
        return kiln__fail(KILN_ERROR_UNSUPPORTED, "kiln_device_enable_peer: rocm:%d has %d peers: at most as many",
                          peer->device->info.ordinal, KILN__ROCM_GPUS);
    peer->peers[peer->peer_count++] = agent;
    return KILN_OK;
}

/* The runtime grants access to one allocation at a time, so the device reaches those that are made from now on. */
kiln_status kiln__rocm_device_enable_peer(kiln_device *device, kiln_device *peer) {
    const kiln__rocm_device *rocm = device->native;
    kiln__rocm_device *other = peer->native;
    uint32_t access = KILN__HSA_AMD_MEMORY_POOL_ACCESS_NEVER_ALLOWED;
    KILN__ROCM_TRY(device, agent_pool_get_info, rocm->agent, other->device_pool,
                   KILN__HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS, &access);
    if (access == KILN__HSA_AMD_MEMORY_POOL_ACCESS_NEVER_ALLOWED)
        return kiln__fail(KILN_ERROR_UNSUPPORTED, "kiln_device_enable_peer: rocm:%d cannot reach the memory of rocm:%d",
                          device->info.ordinal, peer->info.ordinal);
    pthread_mutex_lock(&other->peers_lock);
    const kiln_status status = peer_add(other, rocm->agent);
    pthread_mutex_unlock(&other->peers_lock);
    return status;
}
