/* Memory: allocations, copies that copy and fills that fill. */
#include "tests/sim/cuda/sim_cuda.h"
#include <string.h>

static const char device_memory[] = "device memory";
static const char host_memory[] = "host memory";

static void *pointer(kiln__cu_address address) {
    return (void *)(uintptr_t)address;
}

/* The live device allocation, or the variables of a module, that hold a range; or NULL. */
static const sim_memory *on_device(kiln__cu_address address, size_t size) {
    const sim_memory *found = sim_memory_find(pointer(address), size);
    return found && strcmp(found->kind, host_memory) ? found : NULL;
}

static bool on_host(const void *address) {
    const sim_memory *found = sim_memory_find(address, 1);
    return address && (!found || !strcmp(found->kind, host_memory));
}

kiln__cu_result cuMemAlloc_v2(kiln__cu_address *out_memory, size_t size) {
    SIM_CUDA_ENTER_CONTEXT(context);
    SIM_CUDA_RULE(out_memory && size, SIM_CUDA_INVALID_VALUE, "cuMemAlloc: %s", size ? "the result is NULL" : "size 0");
    kiln__cu_result result = sim_cuda_unsafe();
    if (result) return result;
    void *bytes = sim_memory_new(device_memory, context->device, size, 256, (uintptr_t)context);
    if (!bytes) return SIM_CUDA_OUT_OF_MEMORY;
    sim_memory_track(bytes);
    *out_memory = (uintptr_t)bytes;
    return SIM_CUDA_SUCCESS;
}

/* Freeing waits for the work that may use the memory. */
kiln__cu_result cuMemFree_v2(kiln__cu_address memory) {
    SIM_CUDA_ENTER_CONTEXT(context);
    kiln__cu_result result = sim_cuda_unsafe();
    if (!result) result = sim_cuda_finish_all(context);
    if (result) return result;
    return sim_memory_delete(device_memory, pointer(memory)) ? SIM_CUDA_SUCCESS : SIM_CUDA_INVALID_VALUE;
}

kiln__cu_result cuMemHostAlloc(void **out_memory, size_t size, unsigned int flags) {
    SIM_CUDA_ENTER_CONTEXT(context);
    SIM_CUDA_RULE(out_memory && size && flags < 8, SIM_CUDA_INVALID_VALUE, "cuMemHostAlloc: size %zu, flags %u", size,
                  flags);
    kiln__cu_result result = sim_cuda_unsafe();
    if (result) return result;
    *out_memory = sim_memory_new(host_memory, context->device, size, 4096, (uintptr_t)context);
    return *out_memory ? SIM_CUDA_SUCCESS : SIM_CUDA_OUT_OF_MEMORY;
}

kiln__cu_result cuMemFreeHost(void *memory) {
    SIM_CUDA_ENTER_CONTEXT(context);
    kiln__cu_result result = sim_cuda_unsafe();
    if (!result) result = sim_cuda_finish_all(context);
    if (result) return result;
    return sim_memory_delete(host_memory, memory) ? SIM_CUDA_SUCCESS : SIM_CUDA_INVALID_VALUE;
}

/* A copy inside a capture is part of the graph and happens when that is launched. Else pageable memory is read before
 * the call returns, and written before it returns; pinned memory when the copy's turn comes. */
static kiln__cu_result copy(const char *function, sim_context *context, kiln__cu_stream handle, void *to,
                            const void *from, size_t size) {
    sim_stream *stream = sim_cuda_stream(function, context, handle);
    if (!stream) return SIM_CUDA_INVALID_HANDLE;
    kiln__cu_result result = sim_cuda_stream_use(stream);
    if (result) return result;
    sim_node node = {.to = to, .from = from, .size = size};
    if (!stream->capture && !sim_memory_find(from, 1)) node.staged = (void *)(uintptr_t)from;
    result = sim_cuda_submit(stream, &node);
    return result || stream->capture || sim_memory_find(to, 1) ? result : sim_cuda_finish(stream);
}

kiln__cu_result cuMemcpyHtoDAsync_v2(kiln__cu_address destination, const void *source, size_t size,
                                     kiln__cu_stream stream) {
    SIM_CUDA_ENTER_CONTEXT(context);
    SIM_CUDA_RULE(on_device(destination, size), SIM_CUDA_INVALID_VALUE,
                  "cuMemcpyHtoDAsync: %zu bytes at %p are not device memory", size, pointer(destination));
    SIM_CUDA_RULE(on_host(source), SIM_CUDA_INVALID_VALUE, "cuMemcpyHtoDAsync: %p is not host memory", source);
    return copy(__func__, context, stream, pointer(destination), source, size);
}

kiln__cu_result cuMemcpyDtoHAsync_v2(void *destination, kiln__cu_address source, size_t size, kiln__cu_stream stream) {
    SIM_CUDA_ENTER_CONTEXT(context);
    SIM_CUDA_RULE(on_device(source, size), SIM_CUDA_INVALID_VALUE,
                  "cuMemcpyDtoHAsync: %zu bytes at %p are not device memory", size, pointer(source));
    SIM_CUDA_RULE(on_host(destination), SIM_CUDA_INVALID_VALUE, "cuMemcpyDtoHAsync: %p is not host memory",
                  destination);
    return copy(__func__, context, stream, destination, pointer(source), size);
}

kiln__cu_result cuMemcpyDtoDAsync_v2(kiln__cu_address destination, kiln__cu_address source, size_t size,
                                     kiln__cu_stream stream) {
    SIM_CUDA_ENTER_CONTEXT(context);
    SIM_CUDA_RULE(on_device(source, size) && on_device(destination, size), SIM_CUDA_INVALID_VALUE,
                  "cuMemcpyDtoDAsync: %zu bytes at %p or %p are not device memory", size, pointer(source),
                  pointer(destination));
    return copy(__func__, context, stream, pointer(destination), pointer(source), size);
}

kiln__cu_result cuMemsetD8Async(kiln__cu_address destination, unsigned char value, size_t size,
                                kiln__cu_stream handle) {
    SIM_CUDA_ENTER_CONTEXT(context);
    SIM_CUDA_RULE(on_device(destination, size), SIM_CUDA_INVALID_VALUE,
                  "cuMemsetD8Async: %zu bytes at %p are not device memory", size, pointer(destination));
    sim_stream *stream = sim_cuda_stream(__func__, context, handle);
    if (!stream) return SIM_CUDA_INVALID_HANDLE;
    kiln__cu_result result = sim_cuda_stream_use(stream);
    if (result) return result;
    return sim_cuda_submit(stream, &(sim_node){.to = pointer(destination), .value = value, .size = size});
}

void sim_cuda_memory_sweep(const sim_context *context) {
    sim_memory_sweep(device_memory, (uintptr_t)context);
    sim_memory_sweep(host_memory, (uintptr_t)context);
}
