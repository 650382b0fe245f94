/* What an address is of. */
#include "tests/sim/cuda/sim_cuda.h"
#include <string.h>

enum { TYPE_HOST = 1, TYPE_DEVICE = 2 };
enum { HOST_POINTER = 4 };

/* Writes one attribute of an address in some memory, or in none; false if it is not presented. */
static bool tell(const sim_memory *memory, kiln__cu_address address, kiln__cu_enum attribute, void *out_value) {
    const bool on_device = sim_cuda_on_device(address, 1) != NULL;
    switch (attribute) {
#define SIM_CUDA_POINTER_ATTRIBUTE(name, number, type, value) \
    case number: {                                            \
        const type told = memory ? (type)(value) : (type)0;   \
        memcpy(out_value, &told, sizeof told);                \
        return true;                                          \
    }
#include "tests/sim/cuda/pointer_attributes.def"
#undef SIM_CUDA_POINTER_ATTRIBUTE
    default:
        return false;
    }
}

/* To ask whether an address is the driver's is no mistake, and the error is the answer. */
kiln__cu_result cuPointerGetAttribute(void *out_value, kiln__cu_enum attribute, kiln__cu_address address) {
    SIM_CUDA_ENTER_CONTEXT(context);
    (void)context;
    SIM_CUDA_RULE(out_value, SIM_CUDA_INVALID_VALUE, "cuPointerGetAttribute: the result is NULL");
    const sim_memory *memory = sim_memory_find(sim_cuda_pointer(address), 1);
    if (!memory || (attribute == HOST_POINTER && sim_cuda_on_device(address, 1))) return SIM_CUDA_INVALID_VALUE;
    SIM_CUDA_RULE(tell(memory, address, attribute, out_value), SIM_CUDA_INVALID_VALUE,
                  "cuPointerGetAttribute: attribute %u is not presented", attribute);
    return SIM_CUDA_SUCCESS;
}

kiln__cu_result cuPointerGetAttributes(unsigned int count, kiln__cu_enum *attributes, void **out_values,
                                       kiln__cu_address address) {
    SIM_CUDA_ENTER_CONTEXT(context);
    (void)context;
    SIM_CUDA_RULE(!count || (attributes && out_values), SIM_CUDA_INVALID_VALUE,
                  "cuPointerGetAttributes: attributes or results are NULL");
    const sim_memory *memory = sim_memory_find(sim_cuda_pointer(address), 1);
    for (unsigned int i = 0; i < count; i++)
        SIM_CUDA_RULE(out_values[i] && tell(memory, address, attributes[i], out_values[i]), SIM_CUDA_INVALID_VALUE,
                      "cuPointerGetAttributes: attribute %u is not presented, or its result is NULL", attributes[i]);
    return SIM_CUDA_SUCCESS;
}

/* Pinned memory has one address for all. */
kiln__cu_result cuMemHostGetDevicePointer_v2(kiln__cu_address *out_address, void *host, unsigned int flags) {
    SIM_CUDA_ENTER_CONTEXT(context);
    (void)context;
    SIM_CUDA_RULE(out_address && !flags, SIM_CUDA_INVALID_VALUE,
                  "cuMemHostGetDevicePointer: flags is %u, or the result is NULL", flags);
    SIM_CUDA_RULE(sim_memory_find(host, 1) && sim_cuda_on_host(host), SIM_CUDA_INVALID_VALUE,
                  "cuMemHostGetDevicePointer: %p is not pinned memory", host);
    *out_address = (uintptr_t)host;
    return SIM_CUDA_SUCCESS;
}

kiln__cu_result cuMemGetAddressRange_v2(kiln__cu_address *out_base, size_t *out_size, kiln__cu_address address) {
    SIM_CUDA_ENTER_CONTEXT(context);
    (void)context;
    const sim_memory *memory = sim_memory_find(sim_cuda_pointer(address), 1);
    if (!memory) return SIM_CUDA_NOT_FOUND;
    if (out_base) *out_base = (uintptr_t)memory->bytes;
    if (out_size) *out_size = memory->size;
    return SIM_CUDA_SUCCESS;
}
