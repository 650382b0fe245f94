/* The default pool of each device, from which memory in the order of a stream comes. It keeps nothing that was freed,
 * so that what its attributes ask for changes nothing but them. */
#include "tests/sim/cuda/sim_cuda.h"
#include <string.h>

enum { POOLS = 64 };
enum { FOLLOW_EVENTS = 1, OPPORTUNISTIC, INTERNAL_DEPENDENCIES, RELEASE_THRESHOLD };
enum { RESERVED = 5, RESERVED_HIGH, USED, USED_HIGH };

typedef struct CUmemPoolHandle_st {
    bool given; /* its handle */
    int32_t reuse[INTERNAL_DEPENDENCIES + 1];
    uint64_t threshold;
} pool;

static pool pools[POOLS];

static kiln__cu_result give(const char *function, pool **out_pool, kiln__cu_device device) {
    SIM_CUDA_RULE(out_pool, SIM_CUDA_INVALID_VALUE, "%s: the result is NULL", function);
    SIM_CUDA_RULE(sim_cuda_capability(device) && device < POOLS, SIM_CUDA_INVALID_DEVICE, "%s: no device %d", function,
                  device);
    *out_pool = &pools[device];
    if (!(*out_pool)->given) **out_pool = (pool){.given = true, .reuse = {0, 1, 1, 1}};
    return SIM_CUDA_SUCCESS;
}

kiln__cu_result cuDeviceGetDefaultMemPool(pool **out_pool, kiln__cu_device device) {
    SIM_CUDA_ENTER();
    return give(__func__, out_pool, device);
}

kiln__cu_result cuDeviceGetMemPool(pool **out_pool, kiln__cu_device device) {
    SIM_CUDA_ENTER();
    return give(__func__, out_pool, device);
}

static bool is_pool(const pool *asked) {
    for (size_t i = 0; i < POOLS; i++)
        if (asked == &pools[i]) return asked->given;
    return false;
}

kiln__cu_result cuMemPoolGetAttribute(pool *asked, kiln__cu_enum attribute, void *out_value) {
    SIM_CUDA_ENTER();
    SIM_CUDA_RULE(is_pool(asked) && out_value, SIM_CUDA_INVALID_VALUE,
                  "cuMemPoolGetAttribute: %p is no pool, or the result is NULL", (void *)asked);
    SIM_CUDA_RULE(attribute >= FOLLOW_EVENTS && attribute <= USED && attribute != RESERVED_HIGH, SIM_CUDA_INVALID_VALUE,
                  "cuMemPoolGetAttribute: attribute %u is not presented", attribute);
    const uint64_t used = sim_cuda_memory_used((kiln__cu_device)(asked - pools));
    if (attribute < RELEASE_THRESHOLD)
        memcpy(out_value, &asked->reuse[attribute], sizeof(int32_t));
    else
        memcpy(out_value, attribute == RELEASE_THRESHOLD ? &asked->threshold : &used, sizeof(uint64_t));
    return SIM_CUDA_SUCCESS;
}

kiln__cu_result cuMemPoolSetAttribute(pool *asked, kiln__cu_enum attribute, void *value) {
    SIM_CUDA_ENTER();
    SIM_CUDA_RULE(is_pool(asked) && value, SIM_CUDA_INVALID_VALUE,
                  "cuMemPoolSetAttribute: %p is no pool, or the value is NULL", (void *)asked);
    SIM_CUDA_RULE(attribute >= FOLLOW_EVENTS && attribute <= RELEASE_THRESHOLD, SIM_CUDA_INVALID_VALUE,
                  "cuMemPoolSetAttribute: attribute %u is not presented, or cannot be set", attribute);
    if (attribute == RELEASE_THRESHOLD)
        memcpy(&asked->threshold, value, sizeof asked->threshold);
    else
        memcpy(&asked->reuse[attribute], value, sizeof(int32_t));
    return SIM_CUDA_SUCCESS;
}

kiln__cu_result cuMemPoolTrimTo(pool *asked, size_t kept) {
    SIM_CUDA_ENTER();
    (void)kept;
    SIM_CUDA_RULE(is_pool(asked), SIM_CUDA_INVALID_VALUE, "cuMemPoolTrimTo: %p is no pool", (void *)asked);
    return SIM_CUDA_SUCCESS;
}

kiln__cu_result cuMemAllocFromPoolAsync(kiln__cu_address *out_memory, size_t size, pool *asked,
                                        kiln__cu_stream stream) {
    SIM_CUDA_ENTER_CONTEXT(context);
    SIM_CUDA_RULE(is_pool(asked), SIM_CUDA_INVALID_VALUE, "cuMemAllocFromPoolAsync: %p is no pool", (void *)asked);
    SIM_CUDA_RULE(asked == &pools[context->device], SIM_CUDA_INVALID_VALUE,
                  "cuMemAllocFromPoolAsync: a pool of another device is not presented");
    return sim_cuda_memory_enqueue(__func__, context, stream, size, out_memory);
}
