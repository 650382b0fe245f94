/* Memory: allocations, at once or in the order of a stream. */
#include "tests/sim/cuda/sim_cuda.h"
#include <string.h>

static const char device_memory[] = "device memory";
static const char host_memory[] = "host memory";
static const char registered_memory[] = "registered host memory";

const sim_memory *sim_cuda_on_device(kiln__cu_address address, size_t size) {
    const sim_memory *found = sim_memory_find(sim_cuda_pointer(address), size);
    return found && !strstr(found->kind, host_memory) ? found : NULL;
}

bool sim_cuda_on_host(const void *address) {
    const sim_memory *found = sim_memory_find(address, 1);
    return address && (!found || strstr(found->kind, host_memory));
}

/* ---- At once ---- */

static void *device_memory_new(sim_context *context, size_t size) {
    void *bytes = sim_memory_new(device_memory, context->device, size, 256, (uintptr_t)context);
    if (bytes) sim_memory_track(bytes);
    return bytes;
}

kiln__cu_result cuMemAlloc_v2(kiln__cu_address *out_memory, size_t size) {
    SIM_CUDA_ENTER_CONTEXT(context);
    SIM_CUDA_RULE(out_memory && size, SIM_CUDA_INVALID_VALUE, "cuMemAlloc: %s", size ? "the result is NULL" : "size 0");
    kiln__cu_result result = sim_cuda_unsafe();
    if (result) return result;
    void *bytes = device_memory_new(context, size);
    if (!bytes) return SIM_CUDA_OUT_OF_MEMORY;
    *out_memory = (uintptr_t)bytes;
    return SIM_CUDA_SUCCESS;
}

/* Freeing waits for the work that may use the memory. */
kiln__cu_result cuMemFree_v2(kiln__cu_address memory) {
    SIM_CUDA_ENTER_CONTEXT(context);
    kiln__cu_result result = sim_cuda_unsafe();
    if (!result) result = sim_cuda_finish_all(context);
    if (result) return result;
    return sim_memory_delete(device_memory, sim_cuda_pointer(memory)) ? SIM_CUDA_SUCCESS : SIM_CUDA_INVALID_VALUE;
}

static kiln__cu_result host_memory_new(sim_context *context, void **out_memory, size_t size) {
    kiln__cu_result result = sim_cuda_unsafe();
    if (result) return result;
    *out_memory = sim_memory_new(host_memory, context->device, size, 4096, (uintptr_t)context);
    return *out_memory ? SIM_CUDA_SUCCESS : SIM_CUDA_OUT_OF_MEMORY;
}

kiln__cu_result cuMemHostAlloc(void **out_memory, size_t size, unsigned int flags) {
    SIM_CUDA_ENTER_CONTEXT(context);
    SIM_CUDA_RULE(out_memory && size && flags < 8, SIM_CUDA_INVALID_VALUE, "cuMemHostAlloc: size %zu, flags %u", size,
                  flags);
    return host_memory_new(context, out_memory, size);
}

kiln__cu_result cuMemAllocHost_v2(void **out_memory, size_t size) {
    SIM_CUDA_ENTER_CONTEXT(context);
    SIM_CUDA_RULE(out_memory && size, SIM_CUDA_INVALID_VALUE, "cuMemAllocHost: size %zu, or the result is NULL", size);
    return host_memory_new(context, out_memory, size);
}

kiln__cu_result cuMemFreeHost(void *memory) {
    SIM_CUDA_ENTER_CONTEXT(context);
    kiln__cu_result result = sim_cuda_unsafe();
    if (!result) result = sim_cuda_finish_all(context);
    if (result) return result;
    return sim_memory_delete(host_memory, memory) ? SIM_CUDA_SUCCESS : SIM_CUDA_INVALID_VALUE;
}

kiln__cu_result cuMemHostRegister_v2(void *memory, size_t size, unsigned int flags) {
    SIM_CUDA_ENTER_CONTEXT(context);
    SIM_CUDA_RULE(memory && size && flags < 16, SIM_CUDA_INVALID_VALUE, "cuMemHostRegister: size %zu at %p, flags %u",
                  size, memory, flags);
    kiln__cu_result result = sim_cuda_unsafe();
    if (result) return result;
    if (sim_memory_find(memory, 1) || sim_memory_find((char *)memory + size - 1, 1))
        return SIM_CUDA_HOST_MEMORY_ALREADY_REGISTERED;
    return sim_memory_adopt(registered_memory, context->device, memory, size, (uintptr_t)context)
               ? SIM_CUDA_SUCCESS
               : SIM_CUDA_OUT_OF_MEMORY;
}

kiln__cu_result cuMemHostUnregister(void *memory) {
    SIM_CUDA_ENTER_CONTEXT(context);
    kiln__cu_result result = sim_cuda_unsafe();
    if (!result) result = sim_cuda_finish_all(context);
    if (result) return result;
    const sim_memory *found = sim_memory_find(memory, 1);
    if (!found || found->kind != registered_memory || found->bytes != memory)
        return SIM_CUDA_HOST_MEMORY_NOT_REGISTERED;
    sim_memory_delete(registered_memory, memory);
    return SIM_CUDA_SUCCESS;
}

/* Rows of a width, each at a multiple of the pitch. */
kiln__cu_result cuMemAllocPitch_v2(kiln__cu_address *out_memory, size_t *out_pitch, size_t width, size_t height,
                                   unsigned int element_size) {
    SIM_CUDA_ENTER_CONTEXT(context);
    SIM_CUDA_RULE(out_memory && out_pitch && width && height && width <= SIZE_MAX / 2 &&
                      (element_size == 4 || element_size == 8 || element_size == 16),
                  SIM_CUDA_INVALID_VALUE, "cuMemAllocPitch: %zu rows of %zu bytes, elements of %u", height, width,
                  element_size);
    const size_t pitch = (width + SIM_CUDA_PITCH - 1) / SIM_CUDA_PITCH * SIM_CUDA_PITCH;
    kiln__cu_result result = sim_cuda_unsafe();
    if (result) return result;
    void *bytes = height <= SIZE_MAX / pitch ? device_memory_new(context, pitch * height) : NULL;
    if (!bytes) return SIM_CUDA_OUT_OF_MEMORY;
    *out_pitch = pitch;
    *out_memory = (uintptr_t)bytes;
    return SIM_CUDA_SUCCESS;
}

uint64_t sim_cuda_memory_used(kiln__cu_device device) {
    return sim_memory_used(device_memory, device);
}

kiln__cu_result cuMemGetInfo_v2(size_t *out_free, size_t *out_total) {
    SIM_CUDA_ENTER_CONTEXT(context);
    SIM_CUDA_RULE(out_free && out_total, SIM_CUDA_INVALID_VALUE, "cuMemGetInfo: a result is NULL");
    *out_total = sim_memory_bytes();
    *out_free = *out_total - sim_cuda_memory_used(context->device);
    return SIM_CUDA_SUCCESS;
}

/* ---- In the order of a stream, from the device's default pool ----
 *
 * An allocation has its address from the call on, and bytes from its turn on; so it is with its end. */

/* The stream on which memory begins or ends. */
static kiln__cu_result stream_of_turn(const char *function, sim_context *context, kiln__cu_stream handle,
                                      sim_stream **out_stream) {
    *out_stream = sim_cuda_stream(function, context, handle);
    if (!*out_stream) return SIM_CUDA_INVALID_HANDLE;
    kiln__cu_result result = sim_cuda_stream_use(*out_stream);
    if (result) return result;
    SIM_CUDA_RULE(!(*out_stream)->capture, SIM_CUDA_STREAM_CAPTURE_UNSUPPORTED, "%s: memory of graphs is not presented",
                  function);
    return SIM_CUDA_SUCCESS;
}

kiln__cu_result sim_cuda_memory_enqueue(const char *function, sim_context *context, kiln__cu_stream handle, size_t size,
                                        kiln__cu_address *out_memory) {
    SIM_CUDA_RULE(out_memory && size, SIM_CUDA_INVALID_VALUE, "%s: %s", function,
                  size ? "the result is NULL" : "size 0");
    sim_stream *stream;
    kiln__cu_result result = stream_of_turn(function, context, handle, &stream);
    if (result) return result;
    void *bytes = device_memory_new(context, size);
    if (!bytes) { /* a pool waits for what is being freed */
        result = sim_cuda_finish_all(context);
        if (result) return result;
        bytes = device_memory_new(context, size);
    }
    if (!bytes) return SIM_CUDA_OUT_OF_MEMORY;
    sim_memory_set_absent(bytes, true);
    result = sim_cuda_submit(stream, &(sim_node){.to = bytes, .turn = SIM_TURN_BEGIN});
    if (result)
        sim_memory_delete(device_memory, bytes);
    else
        *out_memory = (uintptr_t)bytes;
    return result;
}

kiln__cu_result cuMemAllocAsync(kiln__cu_address *out_memory, size_t size, kiln__cu_stream stream) {
    SIM_CUDA_ENTER_CONTEXT(context);
    return sim_cuda_memory_enqueue(__func__, context, stream, size, out_memory);
}

/* Of memory that was allocated either way. */
kiln__cu_result cuMemFreeAsync(kiln__cu_address memory, kiln__cu_stream handle) {
    SIM_CUDA_ENTER_CONTEXT(context);
    sim_stream *stream;
    kiln__cu_result result = stream_of_turn(__func__, context, handle, &stream);
    if (result) return result;
    void *bytes = sim_cuda_pointer(memory);
    const sim_memory *found = sim_memory_find(bytes, 1);
    SIM_CUDA_RULE(found && found->bytes == bytes && !strcmp(found->kind, device_memory) && !found->leaving,
                  SIM_CUDA_INVALID_VALUE, "cuMemFreeAsync: %p is no device memory, or is being freed", bytes);
    sim_memory_set_leaving(bytes);
    return sim_cuda_submit(stream, &(sim_node){.to = bytes, .turn = SIM_TURN_END});
}

/* The end on a stream that does not come after the beginning is as wrong as any other use of memory that is not there.
 */
void sim_cuda_memory_turn(const sim_node *node) {
    const sim_memory *found = sim_memory_find(node->to, 1);
    if (node->turn == SIM_TURN_BEGIN) {
        if (found) sim_memory_set_absent(node->to, false);
        return;
    }
    if (found && found->absent) sim_violation("cuMemFreeAsync: %p is freed before it is allocated", node->to);
    sim_memory_delete(device_memory, node->to);
}

void sim_cuda_memory_sweep(const sim_context *context) {
    sim_memory_sweep(device_memory, (uintptr_t)context);
    sim_memory_sweep(host_memory, (uintptr_t)context);
    sim_memory_sweep(registered_memory, (uintptr_t)context);
}
