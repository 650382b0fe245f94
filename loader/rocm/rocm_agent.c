#include "loader/rocm/rocm_backend.h"
#include "loader/target.h"
#include <string.h>

enum { TEXT_MAX = 64, ISA_NAME_MAX = 256 }; /* texts of an agent have 64 bytes by the runtime's contract */

static kiln__hsa_status stop_at_first(kiln__hsa_isa isa, void *data) {
    *(kiln__hsa_isa *)data = isa;
    return KILN__HSA_STATUS_INFO_BREAK;
}

/* An iteration that a callback ended is a success. */
static bool failed(kiln__hsa_status status) {
    return status != KILN__HSA_STATUS_SUCCESS && status != KILN__HSA_STATUS_INFO_BREAK;
}

/* ---- Finding the GPU ---- */

typedef struct gpu_search {
    kiln__hsa_agent *agents;
    int32_t room, count;
} gpu_search;

/* GPUs count if they have an instruction set: others (display only, too new) cannot run code objects. */
static kiln__hsa_status visit_gpu(kiln__hsa_agent agent, void *data) {
    gpu_search *search = data;
    uint32_t type = KILN__HSA_DEVICE_TYPE_CPU;
    kiln__hsa_status status = kiln__rocm.agent_get_info(agent, KILN__HSA_AGENT_INFO_DEVICE, &type);
    if (failed(status)) return status;
    if (type != KILN__HSA_DEVICE_TYPE_GPU) return KILN__HSA_STATUS_SUCCESS;
    kiln__hsa_isa isa = {0};
    status = kiln__rocm.agent_iterate_isas(agent, stop_at_first, &isa);
    if (failed(status)) return status;
    if (!isa.handle) return KILN__HSA_STATUS_SUCCESS;
    if (search->count < search->room) search->agents[search->count] = agent;
    search->count++;
    return KILN__HSA_STATUS_SUCCESS;
}

kiln_status kiln__rocm_agents(kiln__hsa_agent *agents, int32_t room, int32_t *out_count) {
    gpu_search search = {.agents = agents, .room = room};
    *out_count = 0;
    kiln__hsa_status status = kiln__rocm.iterate_agents(visit_gpu, &search);
    if (failed(status)) return kiln__rocm_fail(NULL, kiln__rocm_names.iterate_agents, status);
    *out_count = search.count;
    return KILN_OK;
}

/* ---- Memory pools ---- */

typedef struct pool_search {
    uint32_t segment;
    uint32_t with, without; /* flags of a global pool */
    kiln__hsa_pool found;
    uint64_t size;
} pool_search;

static kiln__hsa_status visit_pool(kiln__hsa_pool pool, void *data) {
    pool_search *search = data;
    uint32_t segment = UINT32_MAX, flags = 0;
    bool allowed = false;
    size_t size = 0;
    kiln__hsa_status status = kiln__rocm.pool_get_info(pool, KILN__HSA_AMD_MEMORY_POOL_INFO_SEGMENT, &segment);
    if (failed(status)) return status;
    if (segment != search->segment) return KILN__HSA_STATUS_SUCCESS;
    if (segment == KILN__HSA_AMD_SEGMENT_GLOBAL) {
        status = kiln__rocm.pool_get_info(pool, KILN__HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, &flags);
        if (!failed(status))
            status = kiln__rocm.pool_get_info(pool, KILN__HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED, &allowed);
        if (failed(status)) return status;
        if (!allowed || (flags & search->with) != search->with || (flags & search->without))
            return KILN__HSA_STATUS_SUCCESS;
    }
    status = kiln__rocm.pool_get_info(pool, KILN__HSA_AMD_MEMORY_POOL_INFO_SIZE, &size);
    if (failed(status)) return status;
    search->found = pool;
    search->size = size;
    return KILN__HSA_STATUS_INFO_BREAK;
}

static kiln__hsa_status pool_find(kiln__hsa_agent agent, pool_search *search) {
    return kiln__rocm.agent_iterate_pools(agent, visit_pool, search);
}

/* A CPU agent with memory that a GPU can reach, the nearest one or else the first: fine-grained for the host, and for
 * kernargs. */
static kiln__hsa_status visit_host(kiln__hsa_agent agent, void *data) {
    kiln__rocm_device *rocm = data;
    uint32_t type = KILN__HSA_DEVICE_TYPE_GPU;
    kiln__hsa_status status = kiln__rocm.agent_get_info(agent, KILN__HSA_AGENT_INFO_DEVICE, &type);
    if (failed(status)) return status;
    if (type != KILN__HSA_DEVICE_TYPE_CPU) return KILN__HSA_STATUS_SUCCESS;
    enum {
        FINE = KILN__HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED,
        KERNARG = KILN__HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT
    };
    pool_search host = {.segment = KILN__HSA_AMD_SEGMENT_GLOBAL, .with = FINE, .without = KERNARG};
    pool_search kernarg = {.segment = KILN__HSA_AMD_SEGMENT_GLOBAL, .with = KERNARG};
    status = pool_find(agent, &host);
    if (failed(status)) return status;
    status = pool_find(agent, &kernarg);
    if (failed(status)) return status;
    if (!kernarg.found.handle) return KILN__HSA_STATUS_SUCCESS;
    rocm->host = agent;
    rocm->kernarg_pool = kernarg.found;
    rocm->host_pool = host.found.handle ? host.found : kernarg.found; /* one pool may serve both */
    return KILN__HSA_STATUS_INFO_BREAK;
}

static kiln_status describe_memory(kiln__rocm_device *rocm, kiln_device_info *info) {
    kiln__hsa_agent nearest = {0};
    kiln__hsa_status status = KILN__HSA_STATUS_SUCCESS;
    /* Older runtimes do not know which that is. */
    if (kiln__rocm.agent_get_info(rocm->agent, KILN__HSA_AMD_AGENT_INFO_NEAREST_CPU, &nearest) !=
        KILN__HSA_STATUS_SUCCESS)
        nearest.handle = 0;
    if (nearest.handle) visit_host(nearest, rocm);
    if (!rocm->host.handle) status = kiln__rocm.iterate_agents(visit_host, rocm);
    if (failed(status)) return kiln__rocm_fail(NULL, kiln__rocm_names.iterate_agents, status);
    pool_search device = {.segment = KILN__HSA_AMD_SEGMENT_GLOBAL,
                          .with = KILN__HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED};
    pool_search lds = {.segment = KILN__HSA_AMD_SEGMENT_GROUP};
    status = pool_find(rocm->agent, &device);
    if (!failed(status)) status = pool_find(rocm->agent, &lds);
    if (failed(status)) return kiln__rocm_fail(NULL, kiln__rocm_names.agent_iterate_pools, status);
    if (!rocm->host.handle || !device.found.handle || !lds.found.handle)
        return kiln__fail(KILN_ERROR_DRIVER, "%s: no pool of %s", kiln__rocm_names.agent_iterate_pools,
                          !rocm->host.handle     ? "kernargs"
                          : !device.found.handle ? "device memory"
                                                 : "LDS");
    rocm->device_pool = device.found;
    info->memory_bytes = device.size;
    info->max_shared_bytes = lds.size < INT32_MAX ? (int32_t)lds.size : INT32_MAX;
    return KILN_OK;
}

/* ---- Instruction sets ---- */

typedef struct isa_search {
    kiln_target *target;
    bool first_seen, malformed;
} isa_search;

/* The first instruction set is the processor's own. A runtime that knows generic targets lists them behind it, which
 * tells the family of a processor that this version of kiln does not know. */
static kiln__hsa_status visit_isa(kiln__hsa_isa isa, void *data) {
    isa_search *search = data;
    char name[ISA_NAME_MAX] = "";
    uint32_t length = 0;
    kiln_target target;
    kiln__hsa_status status = kiln__rocm.isa_get_info_alt(isa, KILN__HSA_ISA_INFO_NAME_LENGTH, &length);
    if (failed(status)) return status;
    if (length < sizeof name) status = kiln__rocm.isa_get_info_alt(isa, KILN__HSA_ISA_INFO_NAME, name);
    if (failed(status)) return status;
    const bool parsed = length < sizeof name && kiln__amd_parse(name, &target);
    if (!search->first_seen) {
        search->first_seen = true;
        search->malformed = !parsed;
        if (parsed) *search->target = target;
    } else if (parsed && !search->target->generic[0] && strstr(target.processor, "-generic")) {
        memcpy(search->target->generic, target.processor, sizeof target.processor);
    }
    return KILN__HSA_STATUS_SUCCESS;
}

static kiln_status describe_isas(const kiln__rocm_device *rocm, kiln_device_info *info) {
    isa_search search = {.target = &info->target};
    kiln__hsa_status status = kiln__rocm.agent_iterate_isas(rocm->agent, visit_isa, &search);
    if (failed(status)) return kiln__rocm_fail(NULL, kiln__rocm_names.agent_iterate_isas, status);
    if (!search.first_seen || search.malformed)
        return kiln__fail(KILN_ERROR_DRIVER, "%s: the agent's instruction set has no name that kiln can read",
                          kiln__rocm_names.agent_iterate_isas);
    return KILN_OK;
}

/* ---- Limits ---- */

static kiln_status describe_limits(kiln__rocm_device *rocm, kiln_device_info *info) {
    enum { QUEUE_PACKETS = 2 * KILN__ROCM_RING_SLOTS }; /* room for events and copies between a ring's launches */
    uint16_t block_max[3] = {0};
    uint32_t wave_size = 0, units = 0, queue_min = 0, queue_max = 0;
    kiln__hsa_dim3 grid_max = {0};
    char name[TEXT_MAX] = "";
    const struct {
        uint32_t attribute;
        void *value;
    } facts[] = {
        {KILN__HSA_AGENT_INFO_WORKGROUP_MAX_DIM, block_max},
        {KILN__HSA_AGENT_INFO_WORKGROUP_MAX_SIZE, &rocm->block_size_max},
        {KILN__HSA_AGENT_INFO_GRID_MAX_DIM, &grid_max},
        {KILN__HSA_AGENT_INFO_GRID_MAX_SIZE, &rocm->grid_size_max},
        {KILN__HSA_AGENT_INFO_WAVEFRONT_SIZE, &wave_size},
        {KILN__HSA_AGENT_INFO_QUEUE_MIN_SIZE, &queue_min},
        {KILN__HSA_AGENT_INFO_QUEUE_MAX_SIZE, &queue_max},
        {KILN__HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT, &units},
        {KILN__HSA_AMD_AGENT_INFO_MAX_WAVES_PER_CU, &rocm->waves_per_unit},
        {KILN__HSA_AMD_AGENT_INFO_NUM_SIMDS_PER_CU, &rocm->simds_per_unit},
        {KILN__HSA_AMD_AGENT_INFO_PRODUCT_NAME, name},
    };
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        KILN__ROCM_TRY(NULL, agent_get_info, rocm->agent, facts[i].attribute, facts[i].value);
    KILN__ROCM_TRY(NULL, system_get_info, KILN__HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY, &rocm->ticks_per_second);
    if (!rocm->block_size_max || !rocm->grid_size_max || !wave_size || !queue_max || !rocm->simds_per_unit)
        return kiln__rocm_fail_empty(kiln__rocm_names.agent_get_info);
    if (!rocm->ticks_per_second) return kiln__rocm_fail_empty(kiln__rocm_names.system_get_info);
    if (!name[0]) KILN__ROCM_TRY(NULL, agent_get_info, rocm->agent, KILN__HSA_AGENT_INFO_NAME, name);
    for (int i = 0; i < 3; i++)
        rocm->block_max[i] = block_max[i];
    rocm->grid_max[0] = grid_max.x;
    rocm->grid_max[1] = grid_max.y;
    rocm->grid_max[2] = grid_max.z;
    rocm->line_max = grid_max.x < rocm->grid_size_max ? grid_max.x : rocm->grid_size_max;
    rocm->queue_packets = queue_max < QUEUE_PACKETS ? queue_max : queue_min > QUEUE_PACKETS ? queue_min : QUEUE_PACKETS;
    name[TEXT_MAX - 1] = 0;
    memcpy(info->name, name, sizeof name);
    info->multiprocessors = (int32_t)units;
    info->wave_size = (int32_t)wave_size;
    info->max_threads = (int32_t)rocm->block_size_max;
    return KILN_OK;
}

/* Which device it is, among those of the machine. A runtime that does not know an attribute leaves what there was. */
void kiln__rocm_agent_identify(kiln__hsa_agent agent, kiln_device_info *info) {
    enum { PREFIX = sizeof "GPU-" - 1 };
    char uuid[TEXT_MAX] = "";
    uint32_t location = 0, domain = 0, node = 0;
    kiln__hsa_agent nearest = {0};
    if (!kiln__rocm.agent_get_info(agent, KILN__HSA_AMD_AGENT_INFO_UUID, uuid) &&
        strlen(uuid) == PREFIX + sizeof info->uuid) /* "GPU-XX": it has none */
        memcpy(info->uuid, uuid + PREFIX, sizeof info->uuid);
    if (!kiln__rocm.agent_get_info(agent, KILN__HSA_AMD_AGENT_INFO_BDFID, &location) &&
        !kiln__rocm.agent_get_info(agent, KILN__HSA_AMD_AGENT_INFO_DOMAIN, &domain)) {
        info->pci_domain = (int32_t)domain;
        info->pci_bus = (int32_t)(location >> 8 & 0xff);
        info->pci_device = (int32_t)(location >> 3 & 0x1f);
        info->pci_function = (int32_t)(location & 7);
    }
    if (!kiln__rocm.agent_get_info(agent, KILN__HSA_AMD_AGENT_INFO_NEAREST_CPU, &nearest) && nearest.handle &&
        !kiln__rocm.agent_get_info(nearest, KILN__HSA_AGENT_INFO_NODE, &node))
        info->numa_node = (int32_t)node;
}

kiln_status kiln__rocm_agent_describe(kiln__rocm_device *rocm, kiln_device_info *info) {
    KILN__TRY(describe_isas(rocm, info));
    KILN__TRY(describe_limits(rocm, info));
    return describe_memory(rocm, info);
}
