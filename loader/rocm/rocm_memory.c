#include "loader/rocm/rocm_backend.h"

kiln_status kiln__rocm_pool_alloc(kiln_device *device, kiln__hsa_pool pool, const kiln__hsa_agent *agents,
                                  uint32_t count, size_t size, void **out_memory) {
    void *memory = NULL;
    KILN__ROCM_TRY(device, pool_allocate, pool, size, 0, &memory);
    if (!memory) return kiln__rocm_fail_empty(kiln__rocm_names.pool_allocate);
    kiln__hsa_status status = kiln__rocm.agents_allow_access(count, agents, NULL, memory);
    if (status != KILN__HSA_STATUS_SUCCESS) {
        kiln__rocm.pool_free(memory);
        return kiln__rocm_fail(device, kiln__rocm_names.agents_allow_access, status);
    }
    *out_memory = memory;
    return KILN_OK;
}

/* Grants access to the device and to the devices that have it as a peer. */
static kiln_status device_alloc(kiln__rocm_device *rocm, size_t size, void **out_memory) {
    pthread_mutex_lock(&rocm->peers_lock);
    const kiln_status status =
        kiln__rocm_pool_alloc(rocm->device, rocm->device_pool, rocm->peers, rocm->peer_count, size, out_memory);
    pthread_mutex_unlock(&rocm->peers_lock);
    return status;
}

kiln_status kiln__rocm_memory_alloc(kiln_device *device, size_t size, void **out_memory) {
    kiln__rocm_device *rocm = device->native;
    const kiln_status status = device_alloc(rocm, size, out_memory);
    if (status != KILN_ERROR_OUT_OF_MEMORY || !kiln__rocm_freed_release(rocm)) return status;
    return device_alloc(rocm, size, out_memory);
}

void kiln__rocm_memory_free(kiln_device *device, void *memory) {
    (void)device;
    kiln__rocm.pool_free(memory);
}

/* Older runtimes do not know the attribute, and newer ones have no number of an older kernel driver. */
kiln_status kiln__rocm_memory_info(kiln_device *device, uint64_t *out_free, uint64_t *out_total) {
    const kiln__rocm_device *rocm = device->native;
    const uint64_t total = device->info.memory_bytes;
    uint64_t available = UINT64_MAX;
    const kiln__hsa_status status =
        kiln__rocm.agent_get_info(rocm->agent, KILN__HSA_AMD_AGENT_INFO_MEMORY_AVAIL, &available);
    if (status == KILN__HSA_STATUS_ERROR_INVALID_ARGUMENT)
        return kiln__fail(KILN_ERROR_UNSUPPORTED,
                          "kiln_memory_get_info: %s: this runtime or its kernel driver does "
                          "not tell how much memory is available",
                          kiln__rocm_names.agent_get_info);
    if (status != KILN__HSA_STATUS_SUCCESS) return kiln__rocm_fail(device, kiln__rocm_names.agent_get_info, status);
    if (available == UINT64_MAX) return kiln__rocm_fail_empty(kiln__rocm_names.agent_get_info);
    *out_free = available < total ? available : total; /* what the runtime keeps for itself counts, too */
    *out_total = total;
    return KILN_OK;
}

kiln_status kiln__rocm_host_alloc(kiln_device *device, size_t size, void **out_memory) {
    kiln__rocm_device *rocm = device->native;
    return kiln__rocm_pool_alloc(rocm->device, rocm->host_pool, rocm->gpus, (uint32_t)rocm->gpu_count, size,
                                 out_memory);
}

void kiln__rocm_host_free(kiln_device *device, void *memory) {
    kiln__rocm_memory_free(device, memory);
}

kiln_status kiln__rocm_host_register(kiln_device *device, void *memory, size_t size, void **out_device_memory) {
    kiln__rocm_device *rocm = device->native;
    KILN__ROCM_TRY(device, memory_lock, memory, size, rocm->gpus, rocm->gpu_count, out_device_memory);
    return *out_device_memory ? KILN_OK : kiln__rocm_fail_empty(kiln__rocm_names.memory_lock);
}

void kiln__rocm_host_unregister(kiln_device *device, void *memory) {
    (void)device;
    kiln__rocm.memory_unlock(memory);
}
