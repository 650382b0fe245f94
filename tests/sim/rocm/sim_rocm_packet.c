/* What a packet must be when its doorbell rings. kiln's rules are stricter than the standard's: every packet has the
 * barrier bit, a barrier packet system scope on both sides, since the host and other devices look behind it, and a
 * dispatch the agent's at least; kernargs are in memory of their own pool. KILN_SIM_STANDARD=1 lets these be. Each rule
 * has the status that the runtime would give for a packet that breaks it, or INVALID_PACKET_FORMAT if its hardware
 * would not notice. */
#include "tests/sim/rocm/sim_rocm.h"
#include <string.h>

enum { GROUP_MAX = 1024, LDS_BYTES = 65536, KERNARG_ALIGNMENT = 16 };

#define PACKET_RULE_OR(status, rule, ...)          \
    do {                                           \
        if (!(rule)) {                             \
            sim_violation("packet: " __VA_ARGS__); \
            return status;                         \
        }                                          \
    } while (0)
#define PACKET_RULE(...) PACKET_RULE_OR(SIM_HSA_ERROR_INVALID_PACKET_FORMAT, __VA_ARGS__)

static kiln__hsa_status completion_check(kiln__hsa_signal completion) {
    const sim_signal *signal = completion.handle ? sim_rocm_signal(completion) : NULL;
    PACKET_RULE(!completion.handle || signal, "its completion signal is not live");
    PACKET_RULE(!signal || signal->value >= 1, "its completion signal is %lld: must be what is to be done with it",
                (long long)signal->value);
    return KILN__HSA_STATUS_SUCCESS;
}

static kiln__hsa_status barrier_check(const kiln__hsa_barrier_packet *packet) {
    bool depends = false;
    PACKET_RULE(!packet->reserved0 && !packet->reserved1 && !packet->reserved2, "a barrier's reserved field is not 0");
    for (int i = 0; i < 5; i++) {
        PACKET_RULE(!packet->dep_signal[i].handle || sim_rocm_signal(packet->dep_signal[i]),
                    "dependency %d is no live signal", i);
        depends |= packet->dep_signal[i].handle != 0;
    }
    PACKET_RULE(depends || (packet->header & 0xff) == KILN__HSA_PACKET_TYPE_BARRIER_AND,
                "a barrier-OR has no dependency: none is ever met");
    return completion_check(packet->completion_signal);
}

static kiln__hsa_status shape_check(const kiln__hsa_dispatch_packet *packet) {
    const unsigned dimensions = packet->setup & 3;
    const uint32_t group[3] = {packet->workgroup_size_x, packet->workgroup_size_y, packet->workgroup_size_z};
    const uint32_t grid[3] = {packet->grid_size_x, packet->grid_size_y, packet->grid_size_z};
    const uint32_t grid_max[3] = {INT32_MAX, 65535, 65535};
    PACKET_RULE_OR(SIM_HSA_ERROR_INCOMPATIBLE_ARGUMENTS, !(packet->setup & ~3) && dimensions, "setup is 0x%x",
                   packet->setup);
    for (unsigned i = 0; i < 3; i++) {
        PACKET_RULE_OR(SIM_HSA_ERROR_INCOMPATIBLE_ARGUMENTS, group[i] >= 1 && group[i] <= GROUP_MAX,
                       "group size %u of dimension %u", group[i], i);
        PACKET_RULE_OR(SIM_HSA_ERROR_INCOMPATIBLE_ARGUMENTS, grid[i] >= 1 && grid[i] <= grid_max[i],
                       "grid size %u of dimension %u", grid[i], i);
        PACKET_RULE_OR(SIM_HSA_ERROR_INCOMPATIBLE_ARGUMENTS, i < dimensions || (group[i] == 1 && grid[i] == 1),
                       "a size beyond the last dimension is not 1");
    }
    PACKET_RULE_OR(SIM_HSA_ERROR_INVALID_ARGUMENT, group[0] * group[1] * group[2] <= GROUP_MAX,
                   "a group of more than %d threads", GROUP_MAX);
    return KILN__HSA_STATUS_SUCCESS;
}

static kiln__hsa_status dispatch_check(const kiln__hsa_dispatch_packet *packet, int32_t device,
                                       uint32_t *out_kernarg_size) {
    const sim_kernel *kernel = (const void *)(uintptr_t)packet->kernel_object;
    PACKET_RULE(!packet->reserved0 && !packet->reserved2, "a dispatch's reserved field is not 0");
    PACKET_RULE_OR(SIM_HSA_ERROR_INVALID_CODE_OBJECT, sim_object_live(".kernel", kernel),
                   "its kernel object is not of a loaded executable");
    PACKET_RULE_OR(SIM_HSA_ERROR_INVALID_CODE_OBJECT, kernel->device == device,
                   "its kernel %s is loaded on another device", kernel->symbol);
    PACKET_RULE_OR(SIM_HSA_ERROR_INVALID_ALLOCATION,
                   packet->group_segment_size >= kernel->group_bytes && packet->group_segment_size <= LDS_BYTES,
                   "%u bytes of LDS, kernel %s has %u", packet->group_segment_size, kernel->symbol,
                   kernel->group_bytes);
    PACKET_RULE(packet->private_segment_size >= kernel->private_bytes, "%u private bytes, kernel %s needs %u",
                packet->private_segment_size, kernel->symbol, kernel->private_bytes);
    PACKET_RULE((uintptr_t)packet->kernarg_address % KERNARG_ALIGNMENT == 0, "kernargs are not 16-byte aligned");
    const sim_memory *memory = sim_memory_find(packet->kernarg_address, kernel->kernarg_bytes);
    PACKET_RULE(!kernel->kernarg_bytes ||
                    (memory && (sim_rocm_standard() || !strcmp(memory->kind, SIM_KERNARG_MEMORY))),
                "kernargs are not %u bytes of live kernarg memory", kernel->kernarg_bytes);
    PACKET_RULE(!kernel->kernarg_bytes || sim_rocm_reaches(device, packet->kernarg_address, kernel->kernarg_bytes),
                "the device has no access to the kernargs");
    *out_kernarg_size = kernel->kernarg_bytes;
    const kiln__hsa_status status = shape_check(packet);
    return status ? status : completion_check(packet->completion_signal);
}

kiln__hsa_status sim_rocm_packet_check(const kiln__hsa_dispatch_packet *packet, int32_t device,
                                       uint32_t *out_kernarg_size) {
    const uint32_t type = packet->header & 0xff, header = packet->header;
    const uint32_t acquire = header >> KILN__HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE & 3;
    const uint32_t release = header >> KILN__HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE & 3;
    *out_kernarg_size = 0;
    PACKET_RULE(!(header >> 13), "header 0x%x has unknown bits", header);
    PACKET_RULE(sim_rocm_standard() || (header >> KILN__HSA_PACKET_HEADER_BARRIER & 1),
                "header 0x%x has no barrier bit", header);
    const bool dispatch = type == KILN__HSA_PACKET_TYPE_KERNEL_DISPATCH;
    const uint32_t scope = sim_rocm_standard() ? 0
                           : dispatch          ? KILN__HSA_FENCE_SCOPE_AGENT
                                               : KILN__HSA_FENCE_SCOPE_SYSTEM;
    PACKET_RULE(acquire >= scope && acquire <= KILN__HSA_FENCE_SCOPE_SYSTEM && release >= scope &&
                    release <= KILN__HSA_FENCE_SCOPE_SYSTEM,
                "header 0x%x is not of %s scope", header, dispatch ? "agent or system" : "system");
    if (type == KILN__HSA_PACKET_TYPE_BARRIER_AND || type == SIM_PACKET_BARRIER_OR)
        return barrier_check((const void *)packet);
    PACKET_RULE(dispatch, "type %u", type);
    return dispatch_check(packet, device, out_kernarg_size);
}

bool sim_rocm_packet_run(const kiln__hsa_dispatch_packet *packet, int32_t device, const kiln__hsa_queue *queue,
                         sim_report *out_report) {
    const sim_kernel *kernel = (const void *)(uintptr_t)packet->kernel_object;
    sim_launch launch = {
        .grid = {packet->grid_size_x, packet->grid_size_y, packet->grid_size_z},
        .group = {packet->workgroup_size_x, packet->workgroup_size_y, packet->workgroup_size_z},
        .shared_bytes = packet->group_segment_size,
        .stream = (uint64_t)(uintptr_t)queue,
        .device = device,
        .arguments_size = kernel->kernarg_bytes,
    };
    if (!sim_object_live(".kernel", kernel)) {
        sim_violation("an executable was destroyed before its kernel was done");
        return true;
    }
    const size_t name = strlen(kernel->symbol) - strlen(".kd");
    memcpy(launch.kernel, kernel->symbol, name < sizeof launch.kernel ? name : sizeof launch.kernel - 1);
    const size_t kept =
        launch.arguments_size < sizeof launch.arguments ? launch.arguments_size : sizeof launch.arguments;
    if (kept) memcpy(launch.arguments, packet->kernarg_address, kept);
    const bool good = !kernel->program || sim_rocm_execute(packet, queue, &launch, out_report);
    sim_launch_add(&launch);
    return good;
}
