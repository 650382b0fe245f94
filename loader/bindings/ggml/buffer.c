/* Buffers: memory of a kiln device, and pinned memory of the host for copies to and from it. Whoever calls here has
 * waited for the backends that use the tensors; so each copy is waited for, on a stream that the buffers of a device
 * share under its lock. */
#include "loader/bindings/ggml/backend.h"

enum { ALIGNMENT = 256 };

static ggml_kiln_device *device_of(ggml_backend_buffer_t buffer) {
    return buffer->buft->device->context;
}

static void *get_base(ggml_backend_buffer_t buffer) {
    return buffer->context;
}

static void forget(ggml_backend_buffer_t buffer) {
    ggml_kiln_w4a16_forget(device_of(buffer), buffer->context, buffer->size);
}

static void free_memory(ggml_backend_buffer_t buffer) {
    forget(buffer);
    kiln_memory_free(device_of(buffer)->device, buffer->context);
}

static void free_host(ggml_backend_buffer_t buffer) {
    kiln_host_free(device_of(buffer)->device, buffer->context);
}

/* ---- Copies ------------------------------------------------------------------------------------------------------ */

static void copy(ggml_kiln_device *device, void *to, const void *from, size_t size, kiln_copy_direction direction) {
    pthread_mutex_lock(&device->lock);
    GGML_KILN_MUST(kiln_copy(&device->stream, to, from, size, direction));
    GGML_KILN_MUST(kiln_stream_sync(&device->stream));
    pthread_mutex_unlock(&device->lock);
}

static void fill(ggml_kiln_device *device, void *memory, uint8_t value, size_t size) {
    pthread_mutex_lock(&device->lock);
    GGML_KILN_MUST(kiln_fill(&device->stream, memory, value, size));
    GGML_KILN_MUST(kiln_stream_sync(&device->stream));
    pthread_mutex_unlock(&device->lock);
}

static void memset_tensor(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor, uint8_t value, size_t offset,
                          size_t size) {
    ggml_kiln_w4a16_forget(device_of(buffer), (char *)tensor->data + offset, size);
    fill(device_of(buffer), (char *)tensor->data + offset, value, size);
}

static void set_tensor(ggml_backend_buffer_t buffer, struct ggml_tensor *tensor, const void *data, size_t offset,
                       size_t size) {
    ggml_kiln_w4a16_forget(device_of(buffer), (char *)tensor->data + offset, size);
    copy(device_of(buffer), (char *)tensor->data + offset, data, size, KILN_COPY_TO_DEVICE);
}

static void get_tensor(ggml_backend_buffer_t buffer, const struct ggml_tensor *tensor, void *data, size_t offset,
                       size_t size) {
    copy(device_of(buffer), data, (const char *)tensor->data + offset, size, KILN_COPY_TO_HOST);
}

/* Within the device; of all else ggml makes a copy by way of the host. */
static bool cpy_tensor(ggml_backend_buffer_t buffer, const struct ggml_tensor *source, struct ggml_tensor *target) {
    ggml_kiln_device *device = device_of(buffer);
    const struct ggml_backend_buffer *from = source->view_src ? source->view_src->buffer : source->buffer;
    if (!ggml_kiln_buffer_is_of(from, device)) return false;
    ggml_kiln_w4a16_forget(device, target->data, ggml_nbytes(source));
    copy(device, target->data, source->data, ggml_nbytes(source), KILN_COPY_ON_DEVICE);
    return true;
}

static void clear(ggml_backend_buffer_t buffer, uint8_t value) {
    forget(buffer);
    fill(device_of(buffer), buffer->context, value, buffer->size);
}

static const struct ggml_backend_buffer_i memory_buffer = {
    .free_buffer = free_memory,
    .get_base = get_base,
    .memset_tensor = memset_tensor,
    .set_tensor = set_tensor,
    .get_tensor = get_tensor,
    .cpy_tensor = cpy_tensor,
    .clear = clear,
};

/* ---- Types of buffers -------------------------------------------------------------------------------------------- */

static const char *memory_name(ggml_backend_buffer_type_t type) {
    return ((ggml_kiln_device *)type->context)->name;
}

static const char *host_name(ggml_backend_buffer_type_t type) {
    GGML_UNUSED(type);
    return "kiln_Host";
}

static size_t get_alignment(ggml_backend_buffer_type_t type) {
    GGML_UNUSED(type);
    return ALIGNMENT;
}

static bool memory_is_host(ggml_backend_buffer_type_t type) {
    return ggml_kiln_on_cpu(type->context);
}

static bool host_is_host(ggml_backend_buffer_type_t type) {
    GGML_UNUSED(type);
    return true;
}

static ggml_backend_buffer_t alloc_memory(ggml_backend_buffer_type_t type, size_t size) {
    ggml_kiln_device *device = type->context;
    void *memory;
    if (kiln_memory_alloc(device->device, size ? size : 1, &memory)) {
        GGML_LOG_ERROR("%s: %zu bytes: %s\n", device->name, size, kiln_last_error());
        return NULL;
    }
    return ggml_backend_buffer_init(type, memory_buffer, memory, size);
}

/* What the host does with its memory ggml's own functions do. Memory that cannot be pinned serves as well. */
static ggml_backend_buffer_t alloc_host(ggml_backend_buffer_type_t type, size_t size) {
    ggml_kiln_device *device = type->context;
    void *memory;
    if (kiln_host_alloc(device->device, size ? size : 1, &memory)) {
        GGML_LOG_WARN("%s: %zu bytes are not pinned: %s\n", device->name, size, kiln_last_error());
        return ggml_backend_buft_alloc_buffer(ggml_backend_cpu_buffer_type(), size);
    }
    ggml_backend_buffer_t buffer = ggml_backend_cpu_buffer_from_ptr(memory, size);
    buffer->buft = type;
    buffer->iface.free_buffer = free_host;
    return buffer;
}

/* The host's own memory, as a mapped file of weights; it is not freed. */
ggml_backend_buffer_t ggml_kiln_buffer_from_host(ggml_kiln_device *device, void *memory, size_t size) {
    struct ggml_backend_buffer_i interface = memory_buffer;
    interface.free_buffer = forget;
    return ggml_backend_buffer_init(&device->memory, interface, memory, size);
}

void ggml_kiln_buffers_describe(ggml_kiln_device *device) {
    device->memory = (struct ggml_backend_buffer_type){
        .iface = {.get_name = memory_name,
                  .alloc_buffer = alloc_memory,
                  .get_alignment = get_alignment,
                  .is_host = memory_is_host},
        .device = &device->base,
        .context = device,
    };
    device->host = (struct ggml_backend_buffer_type){
        .iface = {.get_name = host_name,
                  .alloc_buffer = alloc_host,
                  .get_alignment = get_alignment,
                  .is_host = host_is_host},
        .device = &device->base,
        .context = device,
    };
}

bool ggml_kiln_buffer_is_of(const struct ggml_backend_buffer *buffer, const ggml_kiln_device *device) {
    return buffer && buffer->buft == &device->memory;
}
