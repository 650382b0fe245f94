/* What tells devices apart, and what they are to each other: each has its own memory, and reaches another's where
 * KILN_SIM_PEERS=1 lets it and its context asked for it. */
#include "tests/sim/cuda/sim_cuda.h"
#include <stdio.h>
#include <string.h>

enum { UUID_SIZE = 16 };

struct CUuuid_st {
    char bytes[UUID_SIZE];
};

static kiln__cu_result uuid(const char *function, struct CUuuid_st *out_uuid, kiln__cu_device device) {
    char bytes[UUID_SIZE + 1] = "kiln simulated ";
    SIM_CUDA_RULE(out_uuid, SIM_CUDA_INVALID_VALUE, "%s: the result is NULL", function);
    SIM_CUDA_RULE(sim_cuda_capability(device), SIM_CUDA_INVALID_DEVICE, "%s: no device %d", function, device);
    bytes[UUID_SIZE - 1] = (char)sim_device_place((size_t)device);
    memcpy(out_uuid->bytes, bytes, UUID_SIZE);
    return SIM_CUDA_SUCCESS;
}

kiln__cu_result cuDeviceGetUuid(struct CUuuid_st *out_uuid, kiln__cu_device device) {
    SIM_CUDA_ENTER();
    return uuid(__func__, out_uuid, device);
}

kiln__cu_result cuDeviceGetUuid_v2(struct CUuuid_st *out_uuid, kiln__cu_device device) {
    SIM_CUDA_ENTER();
    return uuid(__func__, out_uuid, device);
}

/* As the attributes PCI_DOMAIN_ID, PCI_BUS_ID and PCI_DEVICE_ID have it. */
kiln__cu_result cuDeviceGetPCIBusId(char *out_text, int size, kiln__cu_device device) {
    SIM_CUDA_ENTER();
    SIM_CUDA_RULE(sim_cuda_capability(device), SIM_CUDA_INVALID_DEVICE, "cuDeviceGetPCIBusId: no device %d", device);
    SIM_CUDA_RULE(out_text && size > 0, SIM_CUDA_INVALID_VALUE, "cuDeviceGetPCIBusId: no room for the text");
    snprintf(out_text, (size_t)size, "0000:%02X:00.0", (unsigned int)sim_device_place((size_t)device) + 1);
    return SIM_CUDA_SUCCESS;
}

kiln__cu_result cuDeviceCanAccessPeer(int *out_can, kiln__cu_device device, kiln__cu_device peer) {
    SIM_CUDA_ENTER();
    SIM_CUDA_RULE(out_can, SIM_CUDA_INVALID_VALUE, "cuDeviceCanAccessPeer: the result is NULL");
    SIM_CUDA_RULE(sim_cuda_capability(device) && sim_cuda_capability(peer), SIM_CUDA_INVALID_DEVICE,
                  "cuDeviceCanAccessPeer: no device %d, or no device %d", device, peer);
    *out_can = device != peer && sim_setting_number("KILN_SIM_PEERS", 0);
    return SIM_CUDA_SUCCESS;
}

/* Where a context has its peer; where the first free place is, without one. SIM_CUDA_PEERS: nowhere. */
static int place_of(const sim_context *context, const sim_context *peer) {
    int place = 0;
    while (place < SIM_CUDA_PEERS && context->peers[place] != peer)
        place++;
    return place;
}

kiln__cu_result cuCtxEnablePeerAccess(kiln__cu_context peer, unsigned int flags) {
    SIM_CUDA_ENTER_CONTEXT(context);
    SIM_CUDA_RULE(!flags, SIM_CUDA_INVALID_VALUE, "cuCtxEnablePeerAccess: flags is %u: must be 0", flags);
    SIM_CUDA_RULE(sim_object_live("context", peer) && peer != context, SIM_CUDA_INVALID_CONTEXT,
                  "cuCtxEnablePeerAccess: %p is no other context", (void *)peer);
    if (peer->device == context->device || !sim_setting_number("KILN_SIM_PEERS", 0))
        return SIM_CUDA_PEER_ACCESS_UNSUPPORTED;
    if (place_of(context, peer) < SIM_CUDA_PEERS) return SIM_CUDA_PEER_ACCESS_ALREADY_ENABLED;
    const int free_place = place_of(context, NULL);
    if (free_place == SIM_CUDA_PEERS) return SIM_CUDA_TOO_MANY_PEERS;
    context->peers[free_place] = peer;
    return SIM_CUDA_SUCCESS;
}

kiln__cu_result cuCtxDisablePeerAccess(kiln__cu_context peer) {
    SIM_CUDA_ENTER_CONTEXT(context);
    SIM_CUDA_RULE(sim_object_live("context", peer) && peer != context, SIM_CUDA_INVALID_CONTEXT,
                  "cuCtxDisablePeerAccess: %p is no other context", (void *)peer);
    const int place = place_of(context, peer);
    if (place == SIM_CUDA_PEERS) return SIM_CUDA_PEER_ACCESS_NOT_ENABLED;
    context->peers[place] = NULL;
    return SIM_CUDA_SUCCESS;
}
