/* The CPU as a backend. Streams are synchronous: every call has done its work when it returns. So there is nothing to
 * wait for, nothing is ever captured, and an event is the time at which it was recorded. */
#include "loader/backend.h"
#include "loader/cpu/cpu_device.h"
#include "loader/cpu/cpu_scratch.h"
#include <stdlib.h>
#include <sys/sysinfo.h>
#include <time.h>

/* The loader has set what the table says of each kernel. */
static kiln_status module_load(kiln_module *module) {
    for (uint32_t i = 0; i < module->part.kernel_count; i++) {
        kiln_kernel *kernel = &module->kernels[i];
        if (!kernel->info.function && !kernel->info.absent)
            return kiln__fail(KILN_ERROR_CORRUPT_IMAGE, "the %s image has no function for kernel %s",
                              module->image.target, kernel->name);
        kernel->function = (void *)kernel->info.function;
    }
    return KILN_OK;
}

static void module_unload(kiln_module *module) {
    (void)module;
}

static kiln_status module_variable(const kiln_module *module, const char *name, void **out_address, size_t *out_size) {
    (void)module;
    (void)out_address;
    (void)out_size;
    return kiln__fail(KILN_ERROR_UNSUPPORTED,
                      "kiln_module_find_variable: %s: CPU images are linked in, where it is found by its name", name);
}

/* All memory is the host's. */
static kiln_status device_enable_peer(kiln_device *device, kiln_device *peer) {
    (void)device;
    (void)peer;
    return KILN_OK;
}

/* There is no driver below the CPU that could fail. */
static void device_lose(kiln_device *device, uint32_t error) {
    (void)device;
    (void)error;
}

static kiln_status stream_capturing(kiln_stream *stream, bool *out_capturing) {
    (void)stream;
    *out_capturing = false;
    return KILN_OK;
}

static kiln_status kernel_attributes(const kiln_kernel *kernel, kiln_kernel_attributes *out_attributes) {
    *out_attributes = (kiln_kernel_attributes){.arguments_size = (uint32_t)kernel->arguments_size,
                                               .max_threads = (uint32_t)kernel->device->info.max_threads};
    return KILN_OK;
}

/* A thread runs one block at a time. */
static kiln_status kernel_occupancy(const kiln_kernel *kernel, uint32_t threads, uint32_t dynamic_shared_bytes,
                                    uint32_t *out_blocks) {
    (void)kernel;
    (void)threads;
    (void)dynamic_shared_bytes;
    *out_blocks = 1;
    return KILN_OK;
}

static kiln_status stream_open(kiln_device *device, uint32_t flags, kiln_stream *out_stream) {
    (void)flags;
    void *scratch;
    KILN__TRY(kiln__cpu_scratch_alloc(1, &scratch));
    *out_stream = (kiln_stream){device, NULL, scratch};
    return KILN_OK;
}

static kiln_status stream_borrow(kiln_device *device, void *native, kiln_stream *out_stream) {
    KILN__REQUIRE(!native, "kiln_stream_borrow: native is %p: must be NULL, since the CPU has no queues", native);
    return stream_open(device, 0, out_stream);
}

static kiln_status stream_sync(kiln_stream *stream) {
    (void)stream;
    return KILN_OK;
}

static kiln_status stream_query(kiln_stream *stream, bool *out_done) {
    (void)stream;
    *out_done = true;
    return KILN_OK;
}

static void stream_close(kiln_stream *stream) {
    free(stream->state);
}

static kiln_status stream_wait_event(kiln_stream *stream, kiln_event *event) {
    (void)stream;
    (void)event;
    return KILN_OK;
}

static kiln_status memory_alloc_async(kiln_stream *stream, size_t size, void **out_memory) {
    return kiln__cpu_memory_alloc(stream->device, size, out_memory);
}

static kiln_status memory_free_async(kiln_stream *stream, void *memory) {
    kiln__cpu_memory_free(stream->device, memory);
    return KILN_OK;
}

static kiln_status host_register(kiln_device *device, void *memory, size_t size, void **out_device_memory) {
    (void)device;
    (void)size;
    *out_device_memory = memory;
    return KILN_OK;
}

static void host_unregister(kiln_device *device, void *memory) {
    (void)device;
    (void)memory;
}

static kiln_status memory_info(kiln_device *device, uint64_t *out_free, uint64_t *out_total) {
    (void)device;
    struct sysinfo machine;
    if (sysinfo(&machine) != 0) return kiln__fail(KILN_ERROR_DRIVER, "sysinfo: the memory of the machine is not told");
    *out_free = (uint64_t)machine.freeram * machine.mem_unit;
    *out_total = (uint64_t)machine.totalram * machine.mem_unit;
    return KILN_OK;
}

static kiln_status event_create(kiln_event *event) {
    (void)event;
    return KILN_OK;
}

static kiln_status event_borrow(kiln_event *event, void *native) {
    (void)event;
    KILN__REQUIRE(!native, "kiln_event_borrow: native is %p: must be NULL, since the CPU has no events", native);
    return KILN_OK;
}

static void event_destroy(kiln_event *event) {
    (void)event;
}

static kiln_status event_record(kiln_event *event, kiln_stream *stream) {
    (void)stream;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    event->stamp = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    return KILN_OK;
}

static kiln_status event_sync(kiln_event *event) {
    (void)event;
    return KILN_OK;
}

static kiln_status event_query(kiln_event *event, bool *out_done) {
    (void)event;
    *out_done = true;
    return KILN_OK;
}

static kiln_status event_elapsed(kiln_event *start, kiln_event *end, double *out_nanoseconds) {
    *out_nanoseconds = (double)(int64_t)(end->stamp - start->stamp);
    return KILN_OK;
}

const kiln__backend kiln__backend_cpu = {
    .id = KILN_BACKEND_CPU,
    .name = "cpu",
    .count = kiln__cpu_device_count,
    .identify = kiln__cpu_identify,
    .device_open = kiln__cpu_device_open,
    .device_close = kiln__cpu_device_close,
    .device_enable_peer = device_enable_peer,
    .device_lose = device_lose,
    .module_load = module_load,
    .module_unload = module_unload,
    .module_variable = module_variable,
    .stream_capturing = stream_capturing,
    .launch = kiln__cpu_launch,
    .launch_plain = kiln__cpu_launch,
    .kernel_attributes = kernel_attributes,
    .kernel_occupancy = kernel_occupancy,
    .tensor_map_encode = kiln__tensor_map_refuse,
    .stream_open = stream_open,
    .stream_borrow = stream_borrow,
    .stream_set_programmatic = kiln__stream_programmatic_refuse,
    .stream_sync = stream_sync,
    .stream_query = stream_query,
    .stream_close = stream_close,
    .stream_wait_event = stream_wait_event,
    .memory_alloc = kiln__cpu_memory_alloc,
    .memory_free = kiln__cpu_memory_free,
    .memory_alloc_async = memory_alloc_async,
    .memory_free_async = memory_free_async,
    .host_alloc = kiln__cpu_memory_alloc,
    .host_free = kiln__cpu_memory_free,
    .host_register = host_register,
    .host_unregister = host_unregister,
    .memory_info = memory_info,
    .copy = kiln__cpu_copy,
    .fill = kiln__cpu_fill,
    .event_create = event_create,
    .event_borrow = event_borrow,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_sync = event_sync,
    .event_query = event_query,
    .event_elapsed = event_elapsed,
};
