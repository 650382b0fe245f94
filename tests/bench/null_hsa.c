/* A libhsa-runtime64.so.1 that does nothing, for counting what a dispatch costs before the device: a host, four GPUs
 * that are always done, and queues whose packets nobody reads. null_others.c has the functions that just return 0. */
#include "loader/rocm/rocm_abi.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { HOST = 1, GPU = 2, GPUS = 4 };                        /* agents */
enum { POOL_HOST = 1, POOL_KERNARG, POOL_DEVICE, POOL_LDS }; /* pools */
enum { A_HANDLE = 1, SUCCESS = KILN__HSA_STATUS_SUCCESS };

#define EXPORT __attribute__((visibility("default")))

static const char isa_name[] = "amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-";

EXPORT kiln__hsa_status hsa_system_get_info(uint32_t attribute, void *value) {
    if (attribute == KILN__HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY)
        *(uint64_t *)value = 100000000;
    else
        *(uint16_t *)value = 1;
    return SUCCESS;
}

EXPORT kiln__hsa_status hsa_iterate_agents(kiln__hsa_agent_callback callback, void *data) {
    kiln__hsa_status status = SUCCESS;
    for (uint64_t agent = HOST; agent < GPU + GPUS && status == SUCCESS; agent++)
        status = callback((kiln__hsa_agent){agent}, data);
    return status;
}

EXPORT kiln__hsa_status hsa_agent_get_info(kiln__hsa_agent agent, uint32_t attribute, void *value) {
    switch (attribute) {
    case KILN__HSA_AGENT_INFO_DEVICE:
        *(uint32_t *)value = agent.handle == HOST ? KILN__HSA_DEVICE_TYPE_CPU : KILN__HSA_DEVICE_TYPE_GPU;
        break;
    case KILN__HSA_AGENT_INFO_NAME:
    case KILN__HSA_AMD_AGENT_INFO_PRODUCT_NAME:
        strcpy(value, "null agent");
        break;
    case KILN__HSA_AGENT_INFO_WORKGROUP_MAX_DIM:
        memcpy(value, (const uint16_t[3]){1024, 1024, 1024}, 6);
        break;
    case KILN__HSA_AGENT_INFO_GRID_MAX_DIM:
        memcpy(value, (const uint32_t[3]){INT32_MAX, 65535, 65535}, 12);
        break;
    case KILN__HSA_AGENT_INFO_WORKGROUP_MAX_SIZE:
        *(uint32_t *)value = 1024;
        break;
    case KILN__HSA_AGENT_INFO_WAVEFRONT_SIZE:
        *(uint32_t *)value = 64;
        break;
    case KILN__HSA_AGENT_INFO_QUEUE_MIN_SIZE:
        *(uint32_t *)value = 64;
        break;
    case KILN__HSA_AGENT_INFO_QUEUE_MAX_SIZE:
        *(uint32_t *)value = 131072;
        break;
    case KILN__HSA_AGENT_INFO_GRID_MAX_SIZE:
        *(uint32_t *)value = UINT32_MAX;
        break;
    default:
        *(uint32_t *)value = 4;
    }
    return SUCCESS;
}

EXPORT kiln__hsa_status hsa_agent_iterate_isas(kiln__hsa_agent agent, kiln__hsa_isa_callback callback, void *data) {
    (void)agent;
    return callback((kiln__hsa_isa){A_HANDLE}, data);
}

EXPORT kiln__hsa_status hsa_isa_get_info_alt(kiln__hsa_isa isa, uint32_t attribute, void *value) {
    (void)isa;
    if (attribute == KILN__HSA_ISA_INFO_NAME)
        strcpy(value, isa_name);
    else
        *(uint32_t *)value = sizeof isa_name;
    return SUCCESS;
}

EXPORT kiln__hsa_status hsa_amd_agent_iterate_memory_pools(kiln__hsa_agent agent, kiln__hsa_pool_callback callback,
                                                           void *data) {
    uint64_t first = agent.handle == HOST ? POOL_HOST : POOL_DEVICE;
    kiln__hsa_status status = callback((kiln__hsa_pool){first}, data);
    return status == SUCCESS ? callback((kiln__hsa_pool){first + 1}, data) : status;
}

EXPORT kiln__hsa_status hsa_amd_memory_pool_get_info(kiln__hsa_pool pool, uint32_t attribute, void *value) {
    static const uint32_t flags[] = {
        [POOL_HOST] = KILN__HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED,
        [POOL_KERNARG] = KILN__HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT,
        [POOL_DEVICE] = KILN__HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED,
        [POOL_LDS] = 0,
    };
    switch (attribute) {
    case KILN__HSA_AMD_MEMORY_POOL_INFO_SEGMENT:
        *(uint32_t *)value = pool.handle == POOL_LDS ? KILN__HSA_AMD_SEGMENT_GROUP : KILN__HSA_AMD_SEGMENT_GLOBAL;
        break;
    case KILN__HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS:
        *(uint32_t *)value = flags[pool.handle];
        break;
    case KILN__HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED:
        *(bool *)value = true;
        break;
    default:
        *(size_t *)value = 64 * 1024;
    }
    return SUCCESS;
}

EXPORT kiln__hsa_status hsa_amd_memory_pool_allocate(kiln__hsa_pool pool, size_t size, uint32_t flags,
                                                     void **out_memory) {
    (void)pool;
    (void)flags;
    *out_memory = calloc(1, size);
    return SUCCESS;
}

EXPORT kiln__hsa_status hsa_amd_memory_pool_free(void *memory) {
    free(memory);
    return SUCCESS;
}

/* A queue and how many packets were reserved in it. */
typedef struct null_queue {
    kiln__hsa_queue queue;
    uint64_t write_index;
} null_queue;

EXPORT kiln__hsa_status hsa_queue_create(kiln__hsa_agent agent, uint32_t size, uint32_t type,
                                         kiln__hsa_queue_callback callback, void *data, uint32_t private_segment_size,
                                         uint32_t group_segment_size, kiln__hsa_queue **out_queue) {
    (void)agent;
    (void)callback;
    (void)data;
    (void)private_segment_size;
    (void)group_segment_size;
    null_queue *queue = calloc(1, sizeof *queue);
    queue->queue = (kiln__hsa_queue){.type = type,
                                     .base_address = calloc(size, sizeof(kiln__hsa_dispatch_packet)),
                                     .doorbell_signal = {A_HANDLE},
                                     .size = size};
    *out_queue = &queue->queue;
    return SUCCESS;
}

EXPORT kiln__hsa_status hsa_queue_destroy(kiln__hsa_queue *queue) {
    free(queue->base_address);
    free(queue);
    return SUCCESS;
}

EXPORT uint64_t hsa_queue_add_write_index_relaxed(const kiln__hsa_queue *queue, uint64_t value) {
    return __atomic_fetch_add(&((null_queue *)(uintptr_t)queue)->write_index, value, __ATOMIC_RELAXED);
}

/* All but the last packet reserved, which may not have been published. */
EXPORT uint64_t hsa_queue_load_read_index_scacquire(const kiln__hsa_queue *queue) {
    return __atomic_load_n(&((const null_queue *)(const void *)queue)->write_index, __ATOMIC_ACQUIRE) - 1;
}

EXPORT kiln__hsa_status hsa_signal_create(kiln__hsa_signal_value initial, uint32_t consumer_count,
                                          const kiln__hsa_agent *consumers, kiln__hsa_signal *out_signal) {
    (void)initial;
    (void)consumer_count;
    (void)consumers;
    out_signal->handle = A_HANDLE;
    return SUCCESS;
}

EXPORT kiln__hsa_status hsa_code_object_reader_create_from_memory(const void *bytes, size_t size,
                                                                  kiln__hsa_reader *out_reader) {
    (void)bytes;
    (void)size;
    out_reader->handle = A_HANDLE;
    return SUCCESS;
}

EXPORT kiln__hsa_status hsa_executable_create_alt(uint32_t profile, uint32_t rounding, const char *options,
                                                  kiln__hsa_executable *out_executable) {
    (void)profile;
    (void)rounding;
    (void)options;
    out_executable->handle = A_HANDLE;
    return SUCCESS;
}

EXPORT kiln__hsa_status hsa_executable_get_symbol_by_name(kiln__hsa_executable executable, const char *name,
                                                          const kiln__hsa_agent *agent, kiln__hsa_symbol *out_symbol) {
    (void)executable;
    (void)name;
    (void)agent;
    out_symbol->handle = A_HANDLE;
    return SUCCESS;
}

EXPORT kiln__hsa_status hsa_executable_symbol_get_info(kiln__hsa_symbol symbol, uint32_t attribute, void *value) {
    (void)symbol;
    switch (attribute) {
    case KILN__HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT:
        *(uint64_t *)value = A_HANDLE;
        break;
    case KILN__HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_DYNAMIC_CALLSTACK:
        *(bool *)value = false;
        break;
    default:
        *(uint32_t *)value = 0;
    }
    return SUCCESS;
}
