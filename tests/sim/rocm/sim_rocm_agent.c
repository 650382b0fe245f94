/* Start, system clock, agents, instruction sets and memory pools. */
#include "tests/sim/rocm/sim_rocm.h"
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pid_t started_by; /* 0: hsa_init was not called */
static bool shared;      /* the application started the runtime, and kiln has not yet */
static bool has_threads; /* as KILN_SIM_THREADS was at the start */
static uint32_t starts;  /* that hsa_shut_down was not called for */

/* Every handler that was registered, as the real runtime keeps them. */
enum { HANDLER_ROOM = 4 };
static struct {
    kiln__hsa_event_callback callback;
    void *data;
} handlers[HANDLER_ROOM];
static uint32_t handler_count;
static bool fault_told; /* once: then they are forgotten, as by the real runtime, which aborts no more either */

/* ---- Lock, clock, chance ---- */

void sim_rocm_lock(void) {
    pthread_mutex_lock(&lock);
}
void sim_rocm_unlock(void) {
    pthread_mutex_unlock(&lock);
}
void sim_rocm_changed(void) {
    pthread_cond_broadcast(&changed);
}

bool sim_rocm_has_threads(void) {
    return has_threads;
}

void sim_rocm_wait_change(uint64_t nanoseconds) {
    struct timespec until;
    if (!sim_rocm_has_threads() && sim_rocm_turn_step()) return;
    clock_gettime(CLOCK_REALTIME, &until);
    nanoseconds += (uint64_t)until.tv_nsec;
    if (nanoseconds > UINT64_C(3600000000000)) nanoseconds = UINT64_C(3600000000000);
    until.tv_sec += (time_t)(nanoseconds / 1000000000);
    until.tv_nsec = (long)(nanoseconds % 1000000000);
    pthread_cond_timedwait(&changed, &lock, &until);
}

uint64_t sim_rocm_ticks(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return ((uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec) / SIM_TICK_NANOSECONDS;
}

uint32_t sim_rocm_random(uint32_t below) {
    return below ? (uint32_t)(sim_chance() >> 32) % below : 0;
}

uint32_t sim_rocm_delay(void) {
    const uint32_t most = (uint32_t)sim_setting_number("KILN_SIM_DELAY", 0);
    return most ? sim_rocm_random(most + 1) : 0;
}

/* ---- Start ---- */

static void start(bool by_application) {
    shared = by_application;
    started_by = getpid();
    has_threads = sim_threads() > 0;
}

/* As the real runtime on a machine without /dev/kfd: no simulated GPU, no driver. */
kiln__hsa_status hsa_init(void) {
    int32_t planned = sim_enter(__func__);
    if (planned && planned != SIM_LIE) return (kiln__hsa_status)planned;
    SIM_HSA_LOCK();
    if (started_by && started_by != getpid()) sim_violation("hsa_init in a forked child");
    if (!sim_device_count("gfx")) return SIM_HSA_ERROR_OUT_OF_RESOURCES;
    starts++;
    start(false);
    return KILN__HSA_STATUS_SUCCESS;
}

/* The last one ends the runtime; what still lives then is a leak, and until the next hsa_init every call is an error.
 */
kiln__hsa_status hsa_shut_down(void) {
    SIM_HSA_ENTER();
    SIM_HSA_RULE(starts, SIM_HSA_ERROR_NOT_INITIALIZED, "hsa_shut_down: more often than hsa_init");
    if (--starts == 0 && !shared) started_by = 0;
    return KILN__HSA_STATUS_SUCCESS;
}

void kiln_sim_rocm_start(void) {
    SIM_HSA_LOCK();
    start(true);
}

bool sim_rocm_standard(void) {
    return sim_setting_number("KILN_SIM_STANDARD", 0);
}

bool sim_rocm_started(const char *function) {
    if (started_by && started_by != getpid()) sim_violation("%s in a forked child", function);
    if (!started_by) sim_violation("%s before hsa_init", function);
    return started_by == getpid();
}

/* Of AMD's, beside the standard's that kiln asks for. */
enum { SYSTEM_SVM_SUPPORTED = 0x201, SYSTEM_SVM_ACCESSIBLE = 0x202 };

kiln__hsa_status hsa_system_get_info(uint32_t attribute, void *value) {
    SIM_HSA_ENTER();
    switch (attribute) {
    case KILN__HSA_SYSTEM_INFO_VERSION_MAJOR:
    case KILN__HSA_SYSTEM_INFO_VERSION_MINOR:
        memcpy(value, &(uint16_t){1}, sizeof(uint16_t));
        return KILN__HSA_STATUS_SUCCESS;
    case KILN__HSA_SYSTEM_INFO_TIMESTAMP:
        memcpy(value, &(uint64_t){sim_rocm_ticks()}, sizeof(uint64_t));
        return KILN__HSA_STATUS_SUCCESS;
    case KILN__HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY:
        memcpy(value, &(uint64_t){1000000000 / SIM_TICK_NANOSECONDS}, sizeof(uint64_t));
        return KILN__HSA_STATUS_SUCCESS;
    case SYSTEM_SVM_SUPPORTED:
    case SYSTEM_SVM_ACCESSIBLE:
        memcpy(value, &(bool){false}, sizeof(bool));
        return KILN__HSA_STATUS_SUCCESS;
    default:
        sim_violation("hsa_system_get_info: attribute 0x%x", attribute);
        return SIM_HSA_ERROR_INVALID_ARGUMENT;
    }
}

kiln__hsa_status hsa_amd_register_system_event_handler(kiln__hsa_event_callback callback, void *data) {
    SIM_HSA_ENTER();
    SIM_HSA_RULE(callback, SIM_HSA_ERROR_INVALID_ARGUMENT, "hsa_amd_register_system_event_handler: no callback");
    if (handler_count == HANDLER_ROOM) return SIM_HSA_ERROR;
    handlers[handler_count].data = data;
    handlers[handler_count++].callback = callback;
    return KILN__HSA_STATUS_SUCCESS;
}

void kiln_sim_rocm_rearm(void) {
    SIM_HSA_LOCK();
    fault_told = false;
}

void kiln_sim_rocm_page_fault(int32_t device) {
    sim_rocm_page_fault(device, 0xdead0000);
}

void sim_rocm_page_fault(int32_t device, uint64_t address) {
    const kiln__hsa_event event = {
        .agent = {SIM_GPU_AGENT + (uint64_t)device}, .virtual_address = address, .fault_reason_mask = 1};
    sim_rocm_stop_queues(device, 0);
    if (fault_told) return;
    bool handled = false;
    for (uint32_t i = 0; i < handler_count; i++)
        handled |= handlers[i].callback(&event, handlers[i].data) == KILN__HSA_STATUS_SUCCESS;
    fault_told = true;
    if (handled) return;
    sim_violation("a page fault of GPU %d at 0x%llx that no event handler took: the runtime aborts the process", device,
                  (unsigned long long)address);
    abort();
}

/* ---- Targets ---- */

static const struct {
    const char *name;
    uint32_t machine;
    const char *generic;
    bool xnack, sramecc;
} rows[] = {
#define KILN_AMD(name, machine, generic, xnack, sramecc, code_object, fired) {name, machine, generic, xnack, sramecc},
#include "loader/targets.def"
#undef KILN_AMD
};

static const sim_unit units[] = {
#define SIM_UNIT(prefix, lanes, simds, waves) {prefix, lanes, simds, waves},
#include "tests/sim/rocm/units.def"
#undef SIM_UNIT
};

static uint32_t machine_of(const char *name) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(rows[i].name, name)) return rows[i].machine;
    return 0;
}

/* Stated features win; otherwise xnack is off and sramecc on where supported, the driver's defaults. */
bool sim_rocm_target(int32_t device, sim_target *out_target) {
    char text[64];
    *out_target = (sim_target){0};
    if (device < 0 || !sim_device_name("gfx", (size_t)device, text, sizeof text)) return false;
    snprintf(out_target->processor, sizeof out_target->processor, "%.*s", (int)strcspn(text, ":"), text);
    out_target->unit = units;
    while (strncmp(text, out_target->unit->prefix, strlen(out_target->unit->prefix)) != 0)
        out_target->unit++;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(rows[i].name, out_target->processor) != 0) continue;
        out_target->machine = rows[i].machine;
        out_target->generic_name = rows[i].generic;
        out_target->generic = machine_of(rows[i].generic);
        out_target->xnack = rows[i].xnack ? (strstr(text, "xnack+") ? 2 : 1) : 0;
        out_target->sramecc = rows[i].sramecc ? (strstr(text, "sramecc-") ? 1 : 2) : 0;
    }
    snprintf(out_target->name, sizeof out_target->name, "%s%s%s", out_target->processor,
             !out_target->sramecc       ? ""
             : out_target->sramecc == 2 ? ":sramecc+"
                                        : ":sramecc-",
             !out_target->xnack       ? ""
             : out_target->xnack == 2 ? ":xnack+"
                                      : ":xnack-");
    return true;
}

/* ---- Agents ---- */

int32_t sim_rocm_device(kiln__hsa_agent agent) {
    const uint64_t index = agent.handle - SIM_GPU_AGENT;
    return index < sim_device_count("gfx") ? (int32_t)index : -1;
}

static uint64_t host_count(void) {
    return sim_setting_number("KILN_SIM_HOSTS", 1);
}

static bool is_host(kiln__hsa_agent agent) {
    return agent.handle - SIM_CPU_AGENT < host_count();
}

bool sim_rocm_is_agent(kiln__hsa_agent agent) {
    return is_host(agent) || sim_rocm_device(agent) >= 0;
}

/* A lie: a million agents, none of which is one. */
static kiln__hsa_status iterate_lies(kiln__hsa_agent_callback callback, void *data) {
    for (uint64_t i = 0; i < 1000000; i++) {
        kiln__hsa_status status = callback((kiln__hsa_agent){i % SIM_GPU_AGENT + SIM_GPU_AGENT}, data);
        if (status != KILN__HSA_STATUS_SUCCESS) return status;
    }
    return KILN__HSA_STATUS_SUCCESS;
}

kiln__hsa_status hsa_iterate_agents(kiln__hsa_agent_callback callback, void *data) {
    int32_t planned = sim_enter(__func__);
    if (planned == SIM_LIE) return iterate_lies(callback, data);
    if (planned) return (kiln__hsa_status)planned;
    sim_rocm_lock();
    const bool started = sim_rocm_started(__func__);
    const size_t gpus = sim_device_count("gfx");
    sim_rocm_unlock();
    if (!started) return SIM_HSA_ERROR_NOT_INITIALIZED;
    kiln__hsa_status status = KILN__HSA_STATUS_SUCCESS;
    for (uint64_t i = 0; i < host_count() && status == KILN__HSA_STATUS_SUCCESS; i++)
        status = callback((kiln__hsa_agent){SIM_CPU_AGENT + i}, data);
    for (size_t i = 0; i < gpus && status == KILN__HSA_STATUS_SUCCESS; i++)
        status = callback((kiln__hsa_agent){SIM_GPU_AGENT + i}, data);
    return status;
}

static kiln__hsa_status give(void *value, const void *bytes, size_t size) {
    memcpy(value, bytes, size);
    return KILN__HSA_STATUS_SUCCESS;
}
#define GIVE(type, ...) give(value, &(type){__VA_ARGS__}, sizeof(type))

/* Attributes beside those that kiln asks for. */
enum {
    AGENT_VENDOR_NAME = 1,
    AGENT_FEATURE = 2,
    AGENT_MACHINE_MODEL = 3,
    AGENT_PROFILE = 4,
    AGENT_ROUNDING = 5,
    AGENT_QUEUES_MAX = 12,
    AGENT_QUEUE_TYPE = 15,
    AGENT_CACHE_SIZE = 18,
    AGENT_ISA = 19,
    AGENT_EXTENSIONS = 20,
    AGENT_VERSION_MAJOR = 21,
    AGENT_VERSION_MINOR = 22,
    AGENT_FAST_F16 = 24,
    AGENT_CHIP_ID = 0xa000,
    AGENT_CACHELINE_SIZE = 0xa001,
    AGENT_CLOCK_FREQUENCY = 0xa003,
    AGENT_DRIVER_NODE = 0xa004,
    AGENT_MEMORY_WIDTH = 0xa007,
    AGENT_MEMORY_FREQUENCY = 0xa008,
    AGENT_HDP_FLUSH = 0xa00e,
    AGENT_COOPERATIVE_QUEUES = 0xa010,
    AGENT_ASIC_REVISION = 0xa012,
    AGENT_SVM_HOST_ACCESS = 0xa013,
    AGENT_COOPERATIVE_UNITS = 0xa014,
    FEATURE_DISPATCHES = 1,
    MODEL_LARGE = 1,
    ROUNDING_NEAR = 2,
    QUEUES_MAX = 128
};

static kiln__hsa_status cpu_info(uint32_t host, uint32_t attribute, void *value) {
    char name[64] = "kiln simulated host";
    switch (attribute) {
    case KILN__HSA_AGENT_INFO_NAME:
    case KILN__HSA_AMD_AGENT_INFO_PRODUCT_NAME:
        return give(value, name, sizeof name);
    case AGENT_FEATURE:
    case AGENT_QUEUES_MAX:
    case KILN__HSA_AGENT_INFO_QUEUE_MIN_SIZE:
    case KILN__HSA_AGENT_INFO_QUEUE_MAX_SIZE:
    case KILN__HSA_AGENT_INFO_WAVEFRONT_SIZE:
    case KILN__HSA_AGENT_INFO_WORKGROUP_MAX_SIZE:
        return GIVE(uint32_t, 0);
    case KILN__HSA_AGENT_INFO_NODE:
    case AGENT_DRIVER_NODE:
        return GIVE(uint32_t, host);
    default:
        sim_violation("hsa_agent_get_info: attribute 0x%x of the host's agent", attribute);
        return SIM_HSA_ERROR_INVALID_ARGUMENT;
    }
}

/* What depends on which GPU it is; false: the attribute does not. */
static bool place_info(uint32_t device, uint32_t attribute, void *value) {
    enum { FIRST_BUS = 3, UUID_SIZE = 21 }; /* with its prefix and the NUL byte */
    const uint32_t place = (uint32_t)sim_device_place(device);
    char uuid[UUID_SIZE];
    switch (attribute) {
    case KILN__HSA_AGENT_INFO_NODE:
    case AGENT_DRIVER_NODE:
        return GIVE(uint32_t, place + (uint32_t)host_count()) == KILN__HSA_STATUS_SUCCESS; /* behind the hosts */
    case KILN__HSA_AMD_AGENT_INFO_BDFID:
        return GIVE(uint32_t, (place + FIRST_BUS) << 8) == KILN__HSA_STATUS_SUCCESS; /* bus, device and function */
    case KILN__HSA_AMD_AGENT_INFO_NEAREST_CPU:
        return GIVE(kiln__hsa_agent, SIM_CPU_AGENT + place % host_count()) == KILN__HSA_STATUS_SUCCESS;
    case KILN__HSA_AMD_AGENT_INFO_DOMAIN:
        return GIVE(uint32_t, 0) == KILN__HSA_STATUS_SUCCESS;
    case KILN__HSA_AMD_AGENT_INFO_UUID:
        snprintf(uuid, sizeof uuid, "GPU-51a0000000000%03x", place & 0xfff);
        return give(value, uuid, sizeof uuid) == KILN__HSA_STATUS_SUCCESS;
    case AGENT_ISA:
        return GIVE(kiln__hsa_isa, SIM_ISA + 2 * (uint64_t)device) == KILN__HSA_STATUS_SUCCESS;
    default:
        return false;
    }
}

/* What tells of the chip's make: no GPU's, since nothing is timed. False: the attribute is none of these. */
static bool make_info(uint32_t attribute, void *value) {
    enum { CHIP = 0x51a0, CACHELINE = 128, MEGAHERTZ = 1000, BITS = 4096, CACHES = 4 };
    switch (attribute) {
    case AGENT_CHIP_ID:
        return GIVE(uint32_t, CHIP) == KILN__HSA_STATUS_SUCCESS;
    case AGENT_CACHE_SIZE:
        return give(value, (uint32_t[CACHES]){16 << 10, 8 << 20}, CACHES * sizeof(uint32_t)) ==
               KILN__HSA_STATUS_SUCCESS;
    case AGENT_CACHELINE_SIZE:
        return GIVE(uint32_t, CACHELINE) == KILN__HSA_STATUS_SUCCESS;
    case AGENT_CLOCK_FREQUENCY:
    case AGENT_MEMORY_FREQUENCY:
        return GIVE(uint32_t, MEGAHERTZ) == KILN__HSA_STATUS_SUCCESS;
    case AGENT_MEMORY_WIDTH:
        return GIVE(uint32_t, BITS) == KILN__HSA_STATUS_SUCCESS;
    case AGENT_HDP_FLUSH: /* two registers: it has none */
        memset(value, 0, 2 * sizeof(void *));
        return true;
    case AGENT_ASIC_REVISION:
        return GIVE(uint32_t, 0) == KILN__HSA_STATUS_SUCCESS;
    case AGENT_COOPERATIVE_QUEUES:
    case AGENT_SVM_HOST_ACCESS:
        return GIVE(bool, false) == KILN__HSA_STATUS_SUCCESS;
    default:
        return false;
    }
}

static kiln__hsa_status gpu_info(const sim_target *target, uint32_t attribute, void *value) {
    char name[64] = "";
    switch (attribute) {
    case AGENT_VENDOR_NAME:
        memcpy(name, "AMD", sizeof "AMD");
        return give(value, name, sizeof name);
    case AGENT_FEATURE:
        return GIVE(uint32_t, FEATURE_DISPATCHES);
    case AGENT_MACHINE_MODEL:
        return GIVE(uint32_t, MODEL_LARGE);
    case AGENT_ROUNDING:
        return GIVE(uint32_t, ROUNDING_NEAR);
    case AGENT_PROFILE:
    case AGENT_QUEUE_TYPE: /* base; of several producers */
        return GIVE(uint32_t, 0);
    case AGENT_QUEUES_MAX:
        return GIVE(uint32_t, QUEUES_MAX);
    case AGENT_EXTENSIONS:
        memset(value, 0, 128);
        return KILN__HSA_STATUS_SUCCESS;
    case AGENT_VERSION_MAJOR:
    case AGENT_VERSION_MINOR:
        return GIVE(uint16_t, 1);
    case AGENT_FAST_F16:
        return GIVE(bool, true);
    case KILN__HSA_AGENT_INFO_NAME:
        memcpy(name, target->processor, sizeof target->processor);
        return give(value, name, sizeof name);
    case KILN__HSA_AMD_AGENT_INFO_PRODUCT_NAME:
        snprintf(name, sizeof name, "kiln simulated %s", target->processor);
        return give(value, name, sizeof name);
    case KILN__HSA_AGENT_INFO_WAVEFRONT_SIZE:
        return GIVE(uint32_t, target->unit->lanes);
    case KILN__HSA_AGENT_INFO_WORKGROUP_MAX_DIM:
        return give(value, (uint16_t[3]){1024, 1024, 1024}, 3 * sizeof(uint16_t));
    case KILN__HSA_AGENT_INFO_WORKGROUP_MAX_SIZE:
        return GIVE(uint32_t, 1024);
    case KILN__HSA_AGENT_INFO_GRID_MAX_DIM:
        return GIVE(kiln__hsa_dim3, INT32_MAX, 65535, 65535);
    case KILN__HSA_AGENT_INFO_GRID_MAX_SIZE:
        return GIVE(uint32_t, UINT32_MAX);
    case KILN__HSA_AGENT_INFO_QUEUE_MIN_SIZE:
        return GIVE(uint32_t, 64);
    case KILN__HSA_AGENT_INFO_QUEUE_MAX_SIZE:
        return GIVE(uint32_t, 131072);
    case KILN__HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT:
    case AGENT_COOPERATIVE_UNITS:
        return GIVE(uint32_t, sim_multiprocessors(110));
    case KILN__HSA_AMD_AGENT_INFO_MAX_WAVES_PER_CU:
        return GIVE(uint32_t, target->unit->simds * target->unit->waves);
    case KILN__HSA_AMD_AGENT_INFO_NUM_SIMDS_PER_CU:
        return GIVE(uint32_t, target->unit->simds);
    default:
        sim_violation("hsa_agent_get_info: attribute 0x%x", attribute);
        return SIM_HSA_ERROR_INVALID_ARGUMENT;
    }
}

kiln__hsa_status hsa_agent_get_info(kiln__hsa_agent agent, uint32_t attribute, void *value) {
    SIM_HSA_ENTER();
    sim_target target;
    if (attribute == KILN__HSA_AGENT_INFO_DEVICE && sim_rocm_is_agent(agent))
        return GIVE(uint32_t, is_host(agent) ? KILN__HSA_DEVICE_TYPE_CPU : KILN__HSA_DEVICE_TYPE_GPU);
    if (is_host(agent)) return cpu_info((uint32_t)(agent.handle - SIM_CPU_AGENT), attribute, value);
    if (!sim_rocm_target(sim_rocm_device(agent), &target)) return SIM_HSA_ERROR_INVALID_AGENT;
    if (attribute == KILN__HSA_AMD_AGENT_INFO_NEAREST_CPU && !sim_setting_number("KILN_SIM_NEAREST", 1))
        return SIM_HSA_ERROR_INVALID_ARGUMENT;
    if (attribute == KILN__HSA_AMD_AGENT_INFO_MEMORY_AVAIL)
        return GIVE(uint64_t, sim_memory_bytes() - sim_memory_used(SIM_DEVICE_MEMORY, sim_rocm_device(agent)));
    if (place_info((uint32_t)sim_rocm_device(agent), attribute, value)) return KILN__HSA_STATUS_SUCCESS;
    if (make_info(attribute, value)) return KILN__HSA_STATUS_SUCCESS;
    return gpu_info(&target, attribute, value);
}

/* ---- Instruction sets: the processor's own, then its generic family's if the runtime knows generic targets ---- */

kiln__hsa_status hsa_agent_iterate_isas(kiln__hsa_agent agent, kiln__hsa_isa_callback callback, void *data) {
    int32_t planned = sim_enter(__func__);
    if (planned) return planned == SIM_LIE ? KILN__HSA_STATUS_SUCCESS : (kiln__hsa_status)planned;
    sim_target target;
    sim_rocm_lock();
    const int32_t device = sim_rocm_device(agent);
    const bool known = sim_rocm_target(device, &target);
    sim_rocm_unlock();
    if (!known) return SIM_HSA_ERROR_INVALID_AGENT;
    kiln__hsa_status status = callback((kiln__hsa_isa){SIM_ISA + 2 * (uint64_t)device}, data);
    if (status == KILN__HSA_STATUS_SUCCESS && target.generic && sim_setting_number("KILN_SIM_GENERIC", 1))
        status = callback((kiln__hsa_isa){SIM_ISA + 2 * (uint64_t)device + 1}, data);
    return status;
}

kiln__hsa_status hsa_isa_get_info_alt(kiln__hsa_isa isa, uint32_t attribute, void *value) {
    SIM_HSA_ENTER();
    sim_target target;
    char name[128];
    const uint64_t index = isa.handle - SIM_ISA;
    if (!sim_rocm_target(index < 0x1000 ? (int32_t)(index / 2) : -1, &target)) return SIM_HSA_ERROR_INVALID_ISA;
    snprintf(name, sizeof name, "amdgcn-amd-amdhsa--%s", index % 2 ? target.generic_name : target.name);
    if (attribute == KILN__HSA_ISA_INFO_NAME_LENGTH) return GIVE(uint32_t, (uint32_t)strlen(name));
    SIM_HSA_RULE(attribute == KILN__HSA_ISA_INFO_NAME, SIM_HSA_ERROR_INVALID_ARGUMENT,
                 "hsa_isa_get_info_alt: attribute 0x%x", attribute);
    return give(value, name, strlen(name));
}

/* ---- Pools: their number is the agent's handle times SIM_POOL_KINDS and the kind ---- */

static kiln__hsa_pool pool_of(kiln__hsa_agent agent, uint64_t kind) {
    return (kiln__hsa_pool){SIM_POOL + agent.handle * SIM_POOL_KINDS + kind};
}

kiln__hsa_status hsa_amd_agent_iterate_memory_pools(kiln__hsa_agent agent, kiln__hsa_pool_callback callback,
                                                    void *data) {
    int32_t planned = sim_enter(__func__);
    if (planned) return planned == SIM_LIE ? KILN__HSA_STATUS_SUCCESS : (kiln__hsa_status)planned;
    sim_rocm_lock();
    const bool known = sim_rocm_is_agent(agent);
    sim_rocm_unlock();
    if (!known) return SIM_HSA_ERROR_INVALID_AGENT;
    const bool cpu = is_host(agent);
    kiln__hsa_status status = callback(pool_of(agent, cpu ? SIM_POOL_HOST : SIM_POOL_DEVICE), data);
    if (status == KILN__HSA_STATUS_SUCCESS)
        status = callback(pool_of(agent, cpu ? SIM_POOL_KERNARG : SIM_POOL_LDS), data);
    return status;
}

enum {
    POOL_ALLOC_GRANULE = 6,
    POOL_ALLOC_ALIGNMENT = 7,
    POOL_ACCESSIBLE_BY_ALL = 15,
    POOL_ALLOC_MAX_SIZE = 16,
    POOL_RECOMMENDED_GRANULE = 18
};

static uint64_t kind_of(kiln__hsa_pool pool) {
    return (pool.handle - SIM_POOL) % SIM_POOL_KINDS;
}

static kiln__hsa_agent agent_of(kiln__hsa_pool pool) {
    return (kiln__hsa_agent){(pool.handle - SIM_POOL) / SIM_POOL_KINDS};
}

uint32_t sim_rocm_pool_flags(kiln__hsa_pool pool) {
    static const uint32_t flags[SIM_POOL_KINDS] = {
        [SIM_POOL_DEVICE] = KILN__HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED,
        [SIM_POOL_HOST] = KILN__HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED,
        [SIM_POOL_KERNARG] =
            KILN__HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED | KILN__HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT};
    return flags[kind_of(pool)];
}

kiln__hsa_status hsa_amd_memory_pool_get_info(kiln__hsa_pool pool, uint32_t attribute, void *value) {
    SIM_HSA_ENTER();
    const bool lds = kind_of(pool) == SIM_POOL_LDS;
    if (!sim_rocm_is_agent(agent_of(pool))) return SIM_HSA_ERROR_INVALID_MEMORY_POOL;
    switch (attribute) {
    case KILN__HSA_AMD_MEMORY_POOL_INFO_SEGMENT:
        return GIVE(uint32_t, lds ? KILN__HSA_AMD_SEGMENT_GROUP : KILN__HSA_AMD_SEGMENT_GLOBAL);
    case KILN__HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS:
        SIM_HSA_RULE(!lds, SIM_HSA_ERROR_INVALID_ARGUMENT, "global flags of a pool of LDS");
        return GIVE(uint32_t, sim_rocm_pool_flags(pool));
    case KILN__HSA_AMD_MEMORY_POOL_INFO_SIZE:
        return GIVE(size_t, lds ? 65536 : sim_memory_bytes());
    case KILN__HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED:
        return GIVE(bool, !lds);
    case POOL_ALLOC_GRANULE:
    case POOL_ALLOC_ALIGNMENT:
    case POOL_RECOMMENDED_GRANULE:
        return GIVE(size_t, lds ? 0 : SIM_POOL_ALIGNMENT);
    case POOL_ACCESSIBLE_BY_ALL:
        return GIVE(bool, false);
    case POOL_ALLOC_MAX_SIZE:
        return GIVE(size_t, lds ? 0 : sim_memory_bytes());
    default:
        sim_violation("hsa_amd_memory_pool_get_info: attribute 0x%x", attribute);
        return SIM_HSA_ERROR_INVALID_ARGUMENT;
    }
}

/* hsa_amd_memory_pool_link_info_t: one hop. */
typedef struct sim_link {
    uint32_t latency[2], bandwidth[2];
    bool atomics_32, atomics_64, coherent;
    uint32_t type, numa_distance;
} sim_link;

/* Any agent may be given access to memory that is not its own, but to no LDS; with the standard's rules alone the host
 * to no device memory, as on a machine without a large BAR: what it wrote itself the simulator would not know of. */
kiln__hsa_status hsa_amd_agent_memory_pool_get_info(kiln__hsa_agent agent, kiln__hsa_pool pool, uint32_t attribute,
                                                    void *value) {
    enum { ACCESS = 0, LINK_HOPS = 1, LINK = 2, TYPE_PCIE = 2, NUMA_DISTANCE = 20 };
    enum { NEVER_ALLOWED, ALLOWED_BY_DEFAULT, DISALLOWED_BY_DEFAULT };
    SIM_HSA_ENTER();
    if (!sim_rocm_is_agent(agent)) return SIM_HSA_ERROR_INVALID_AGENT;
    if (!sim_rocm_is_agent(agent_of(pool))) return SIM_HSA_ERROR_INVALID_MEMORY_POOL;
    const bool own = agent.handle == agent_of(pool).handle;
    const bool never = !own && (kind_of(pool) == SIM_POOL_LDS ||
                                (kind_of(pool) == SIM_POOL_DEVICE && is_host(agent) && sim_rocm_standard()));
    SIM_HSA_RULE(attribute <= LINK, SIM_HSA_ERROR_INVALID_ARGUMENT, "hsa_amd_agent_memory_pool_get_info: attribute %u",
                 attribute);
    if (attribute == LINK && (own || never)) return KILN__HSA_STATUS_SUCCESS;
    if (attribute == LINK)
        return GIVE(sim_link, .atomics_32 = true, .atomics_64 = true, .coherent = true, .type = TYPE_PCIE,
                    .numa_distance = NUMA_DISTANCE);
    if (attribute == LINK_HOPS) return GIVE(uint32_t, !own && !never);
    return GIVE(uint32_t, own ? ALLOWED_BY_DEFAULT : never ? NEVER_ALLOWED : DISALLOWED_BY_DEFAULT);
}

kiln__hsa_status hsa_amd_coherency_set_type(kiln__hsa_agent agent, uint32_t type) {
    SIM_HSA_ENTER();
    if (sim_rocm_device(agent) < 0) return SIM_HSA_ERROR_INVALID_AGENT;
    return type <= 1 ? KILN__HSA_STATUS_SUCCESS : SIM_HSA_ERROR_INVALID_ARGUMENT;
}

/* ---- Texts ---- */

kiln__hsa_status hsa_status_string(kiln__hsa_status status, const char **out_text) {
    static const struct {
        kiln__hsa_status number;
        const char *text;
    } texts[] = {
        {KILN__HSA_STATUS_SUCCESS, "HSA_STATUS_SUCCESS"},
#define KILN_ROCM_ERROR(name, number, status) {number, "HSA_STATUS_" #name},
#include "loader/rocm/rocm_errors.def"
#undef KILN_ROCM_ERROR
    };
    int32_t planned = sim_enter(__func__);
    if (planned) return planned == SIM_LIE ? KILN__HSA_STATUS_SUCCESS : (kiln__hsa_status)planned;
    SIM_HSA_RULE(out_text, SIM_HSA_ERROR_INVALID_ARGUMENT, "hsa_status_string: the result is NULL");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (texts[i].number != status) continue;
        *out_text = texts[i].text;
        return KILN__HSA_STATUS_SUCCESS;
    }
    return SIM_HSA_ERROR_INVALID_ARGUMENT;
}
