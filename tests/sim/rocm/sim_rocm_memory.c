/* Allocations, access and locked host memory. */
#include "tests/sim/rocm/sim_rocm.h"
#include <string.h>

enum { ALIGNMENT = SIM_POOL_ALIGNMENT, POINTER_LOCKED = 2 };

static bool grant_matches(const void *object, const void *context) {
    const sim_grant *grant = object, *wanted = context;
    return grant->memory == wanted->memory && (wanted->device < 0 || grant->device == wanted->device);
}

static void grants_end(const void *memory) {
    sim_grant *grant;
    while ((grant = sim_object_find(".grant", grant_matches, &(sim_grant){memory, -1})))
        sim_object_delete(".grant", grant);
}

bool sim_rocm_reaches(int32_t device, const void *address, size_t size) {
    const sim_memory *memory = sim_memory_find(address, size);
    if (!memory) return false;
    if (!strcmp(memory->kind, SIM_DEVICE_MEMORY) && memory->device == device) return true;
    return sim_object_find(".grant", grant_matches, &(sim_grant){memory->bytes, device});
}

static bool locks(const void *object, const void *context) {
    const sim_lock_range *range = object, *wanted = context;
    return wanted->host >= range->host && (size_t)(wanted->host - range->host) <= range->size &&
           wanted->size <= range->size - (size_t)(wanted->host - range->host);
}

const sim_lock_range *sim_rocm_locked(const void *host, size_t size) {
    return sim_object_find("lock", locks, &(sim_lock_range){(uint8_t *)(uintptr_t)host, size});
}

uint8_t *sim_rocm_resolve(int32_t device, const void *address, size_t size) {
    uint8_t *host = sim_host_bytes((uintptr_t)address);
    if ((uintptr_t)address & SIM_ALIAS) return sim_rocm_locked(host, size) ? host : NULL;
    const bool reached = sim_rocm_reaches(device, address, size) || sim_rocm_variable_at(device, address, size);
    return reached ? host : NULL;
}

kiln__hsa_status hsa_amd_memory_pool_allocate(kiln__hsa_pool pool, size_t size, uint32_t flags, void **out_memory) {
    static const char *const kinds[SIM_POOL_KINDS] = {[SIM_POOL_DEVICE] = SIM_DEVICE_MEMORY,
                                                      [SIM_POOL_HOST] = SIM_HOST_MEMORY,
                                                      [SIM_POOL_KERNARG] = SIM_KERNARG_MEMORY};
    SIM_HSA_ENTER();
    const kiln__hsa_agent agent = {(pool.handle - SIM_POOL) / SIM_POOL_KINDS};
    const char *kind = kinds[(pool.handle - SIM_POOL) % SIM_POOL_KINDS];
    if (!sim_rocm_is_agent(agent) || !kind) return SIM_HSA_ERROR_INVALID_MEMORY_POOL;
    SIM_HSA_RULE(out_memory && size && !flags, SIM_HSA_ERROR_INVALID_ARGUMENT,
                 "hsa_amd_memory_pool_allocate: size %zu, flags 0x%x", size, flags);
    if (size > sim_memory_bytes()) return SIM_HSA_ERROR_INVALID_ALLOCATION;
    *out_memory = sim_memory_new(kind, sim_rocm_device(agent), size, ALIGNMENT, pool.handle);
    if (*out_memory && !strcmp(kind, SIM_DEVICE_MEMORY)) sim_memory_track(*out_memory);
    return *out_memory ? KILN__HSA_STATUS_SUCCESS : SIM_HSA_ERROR_OUT_OF_RESOURCES;
}

kiln__hsa_status hsa_amd_memory_pool_free(void *memory) {
    SIM_HSA_ENTER_RELEASE();
    if (!memory && sim_rocm_standard()) SIM_HSA_RELEASED();
    const sim_memory *found = sim_memory_find(memory, 0);
    SIM_HSA_RULE(found && found->bytes == memory, SIM_HSA_ERROR_INVALID_ALLOCATION,
                 "hsa_amd_memory_pool_free: %p is no live allocation", memory);
    if (sim_rocm_kernargs_in_flight(memory, found->size))
        sim_violation("hsa_amd_memory_pool_free: packets in flight have their kernargs there");
    if (sim_rocm_copy_uses(memory, found->size))
        sim_violation("hsa_amd_memory_pool_free: a copy in flight uses %zu bytes at %p", found->size, memory);
    sim_rocm_kernels_wait();
    grants_end(memory);
    sim_memory_delete(found->kind, memory);
    SIM_HSA_RELEASED();
}

kiln__hsa_status hsa_amd_agents_allow_access(uint32_t count, const kiln__hsa_agent *agents, const uint32_t *flags,
                                             const void *memory) {
    SIM_HSA_ENTER();
    SIM_HSA_RULE(count && agents && !flags && memory, SIM_HSA_ERROR_INVALID_ARGUMENT,
                 "hsa_amd_agents_allow_access: no agents, flags that are not NULL or no memory");
    const sim_memory *found = sim_memory_find(memory, 0);
    SIM_HSA_RULE(found && found->bytes == memory, SIM_HSA_ERROR_INVALID_ARGUMENT,
                 "hsa_amd_agents_allow_access: %p is no live allocation", memory);
    for (uint32_t i = 0; i < count; i++)
        if (!sim_rocm_is_agent(agents[i])) return SIM_HSA_ERROR_INVALID_AGENT;
    grants_end(memory); /* those that are not listed have none any more */
    for (uint32_t i = 0; i < count; i++) {
        sim_grant *grant = sim_object_new(".grant", sizeof *grant);
        if (!grant) return SIM_HSA_ERROR_INVALID_ARGUMENT;
        *grant = (sim_grant){memory, sim_rocm_device(agents[i])};
    }
    return KILN__HSA_STATUS_SUCCESS;
}

static bool locks_byte(const void *object, const void *context) {
    const sim_lock_range *range = object;
    return (uintptr_t)context - (uintptr_t)range->host < range->size;
}

/* A variable is of the allocation that its code object is in. */
static void tell_variable(const sim_variable *variable, kiln__hsa_pointer_info *info) {
    const kiln__hsa_agent owner = {SIM_GPU_AGENT + (uint64_t)variable->device};
    const kiln__hsa_pool pool = {SIM_POOL + owner.handle * SIM_POOL_KINDS + SIM_POOL_DEVICE};
    info->type = KILN__HSA_EXT_POINTER_TYPE_HSA;
    info->agent_base_address = variable->object;
    info->host_base_address = variable->object;
    info->size_in_bytes = variable->object_size;
    info->agent_owner = owner;
    info->global_flags = sim_rocm_pool_flags(pool);
}

/* What an address is of: an allocation, or a range that is locked, by its address for the host or for agents. */
static const sim_memory *tell(const void *pointer, kiln__hsa_pointer_info *info) {
    void *host = sim_host_bytes((uintptr_t)pointer);
    const sim_lock_range *range = sim_object_find("lock", locks_byte, host);
    const sim_memory *found = range ? NULL : sim_memory_find(pointer, 1);
    if (range) {
        info->type = POINTER_LOCKED;
        info->host_base_address = range->host;
        info->agent_base_address = (void *)((uintptr_t)range->host | SIM_ALIAS);
        info->size_in_bytes = range->size;
        info->agent_owner.handle = SIM_CPU_AGENT;
    } else if (found) {
        const kiln__hsa_agent owner = {(found->owner - SIM_POOL) / SIM_POOL_KINDS};
        info->type = KILN__HSA_EXT_POINTER_TYPE_HSA;
        info->agent_base_address = found->bytes;
        info->host_base_address = found->bytes;
        info->size_in_bytes = found->size;
        info->agent_owner = owner;
        info->global_flags = sim_rocm_pool_flags((kiln__hsa_pool){found->owner});
    } else {
        const sim_variable *variable = sim_rocm_variable_at(-1, pointer, 1);
        if (variable) tell_variable(variable, info);
    }
    return found;
}

/* The agents that reach an address: its allocation's own, and those that were granted access. */
static kiln__hsa_status list_agents(const void *pointer, const sim_memory *memory, void *(*allocate)(size_t),
                                    uint32_t *out_count, kiln__hsa_agent **out_agents) {
    const size_t gpus = sim_device_count("gfx");
    const bool known = memory || sim_rocm_variable_at(-1, pointer, 1);
    kiln__hsa_agent *agents = known ? allocate((gpus + 1) * sizeof *agents) : NULL;
    *out_count = 0;
    *out_agents = agents;
    if (!known) return KILN__HSA_STATUS_SUCCESS;
    if (!agents) return SIM_HSA_ERROR_OUT_OF_RESOURCES;
    if (memory && strcmp(memory->kind, SIM_DEVICE_MEMORY) != 0) agents[(*out_count)++].handle = SIM_CPU_AGENT;
    for (size_t i = 0; i < gpus; i++)
        if (sim_rocm_resolve((int32_t)i, pointer, 1)) agents[(*out_count)++].handle = SIM_GPU_AGENT + i;
    return KILN__HSA_STATUS_SUCCESS;
}

/* The caller's structure may be of an older runtime or of a newer one; it is told the part that is written. */
kiln__hsa_status hsa_amd_pointer_info(const void *pointer, kiln__hsa_pointer_info *info, void *(*allocate)(size_t),
                                      uint32_t *out_agent_count, kiln__hsa_agent **out_agents) {
    SIM_HSA_ENTER();
    SIM_HSA_RULE(pointer && info && info->size >= offsetof(kiln__hsa_pointer_info, user_data),
                 SIM_HSA_ERROR_INVALID_ARGUMENT, "hsa_amd_pointer_info: NULL, or a struct of a wrong size");
    SIM_HSA_RULE(!allocate || (out_agent_count && out_agents), SIM_HSA_ERROR_INVALID_ARGUMENT,
                 "hsa_amd_pointer_info: an allocator, and no place for what it allocates");
    kiln__hsa_pointer_info told = {.size = info->size < sizeof told ? info->size : (uint32_t)sizeof told};
    const sim_memory *memory = tell(pointer, &told);
    memcpy(info, &told, told.size);
    return allocate ? list_agents(pointer, memory, allocate, out_agent_count, out_agents) : KILN__HSA_STATUS_SUCCESS;
}

kiln__hsa_status hsa_amd_memory_lock(void *host, size_t size, kiln__hsa_agent *agents, int agent_count,
                                     void **out_agent_pointer) {
    SIM_HSA_ENTER();
    SIM_HSA_RULE(host && size && out_agent_pointer && !agents == !agent_count, SIM_HSA_ERROR_INVALID_ARGUMENT,
                 "hsa_amd_memory_lock: NULL, no bytes, or agents that do not agree with their count");
    SIM_HSA_RULE(!sim_memory_find(host, 1), SIM_HSA_ERROR_INVALID_ARGUMENT,
                 "hsa_amd_memory_lock: memory of the runtime's own");
    sim_lock_range *range = sim_object_new("lock", sizeof *range);
    if (!range) return SIM_HSA_ERROR_OUT_OF_RESOURCES;
    *range = (sim_lock_range){host, size};
    *out_agent_pointer = (void *)((uintptr_t)host | SIM_ALIAS);
    return KILN__HSA_STATUS_SUCCESS;
}

static bool locked_at(const void *object, const void *context) {
    return ((const sim_lock_range *)object)->host == context;
}

kiln__hsa_status hsa_amd_memory_unlock(void *host) {
    SIM_HSA_ENTER_RELEASE();
    sim_lock_range *range = sim_object_find("lock", locked_at, host);
    SIM_HSA_RULE(range, SIM_HSA_ERROR_INVALID_ARGUMENT, "hsa_amd_memory_unlock: %p is not locked", host);
    if (sim_rocm_copy_uses(range->host, range->size))
        sim_violation("hsa_amd_memory_unlock: a copy in flight uses %zu bytes at %p", range->size, host);
    sim_object_delete("lock", range);
    SIM_HSA_RELEASED();
}

/* Outside every queue, as the real one: it writes at once, whatever is in flight. */
kiln__hsa_status hsa_amd_memory_fill(void *memory, uint32_t value, size_t count) {
    SIM_HSA_ENTER();
    SIM_HSA_RULE(memory && (uintptr_t)memory % sizeof value == 0, SIM_HSA_ERROR_INVALID_ARGUMENT,
                 "hsa_amd_memory_fill: %p is not 4-byte aligned", memory);
    SIM_HSA_RULE(sim_memory_find(memory, count * sizeof value) ||
                     sim_rocm_variable_at(-1, memory, count * sizeof value),
                 SIM_HSA_ERROR_INVALID_ALLOCATION, "hsa_amd_memory_fill: %zu words at %p are outside every allocation",
                 count, memory);
    for (size_t i = 0; i < count; i++)
        memcpy((uint8_t *)memory + i * sizeof value, &value, sizeof value);
    sim_memory_wrote(memory, count * sizeof value);
    return KILN__HSA_STATUS_SUCCESS;
}

/* At once, as hsa_amd_memory_fill. Whatever a GPU or the host has allocated, or the host's own memory. */
kiln__hsa_status hsa_memory_copy(void *destination, const void *source, size_t size) {
    SIM_HSA_ENTER();
    SIM_HSA_RULE(destination && source, SIM_HSA_ERROR_INVALID_ARGUMENT, "hsa_memory_copy: NULL");
    memmove(destination, source, size);
    if (sim_memory_find(destination, size)) sim_memory_wrote(destination, size);
    return KILN__HSA_STATUS_SUCCESS;
}

/* For agents of the full profile, which simulated GPUs are not: of no consequence. */
kiln__hsa_status hsa_memory_register(void *memory, size_t size) {
    SIM_HSA_ENTER();
    return memory || !size ? KILN__HSA_STATUS_SUCCESS : SIM_HSA_ERROR_INVALID_ARGUMENT;
}

kiln__hsa_status hsa_memory_deregister(void *memory, size_t size) {
    (void)memory, (void)size;
    SIM_HSA_ENTER();
    return KILN__HSA_STATUS_SUCCESS;
}

kiln__hsa_status hsa_amd_memory_lock_to_pool(void *host, size_t size, kiln__hsa_agent *agents, int agent_count,
                                             kiln__hsa_pool pool, uint32_t flags, void **out_agent_pointer) {
    const kiln__hsa_agent agent = {(pool.handle - SIM_POOL) / SIM_POOL_KINDS};
    SIM_HSA_RULE(!flags, SIM_HSA_ERROR_INVALID_ARGUMENT, "hsa_amd_memory_lock_to_pool: flags 0x%x", flags);
    if (agent.handle - SIM_CPU_AGENT >= SIM_GPU_AGENT - SIM_CPU_AGENT) return SIM_HSA_ERROR_INVALID_MEMORY_POOL;
    return hsa_amd_memory_lock(host, size, agents, agent_count, out_agent_pointer);
}
