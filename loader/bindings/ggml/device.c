/* A ggml device: a kiln device, opened. */
#include "loader/bindings/ggml/backend.h"
#include <stdio.h>

extern const kiln_bundle ggml_kiln_map_images, ggml_kiln_mul_vec_images; /* written by kiln pack */

bool ggml_kiln_on_cpu(const ggml_kiln_device *device) {
    return device->info.backend == KILN_BACKEND_CPU;
}

static ggml_kiln_device *of(ggml_backend_dev_t base) {
    return base->context;
}

/* ---- What it is -------------------------------------------------------------------------------------------------- */

static const char *get_name(ggml_backend_dev_t base) {
    return of(base)->name;
}

static const char *get_description(ggml_backend_dev_t base) {
    return of(base)->info.name;
}

static void get_memory(ggml_backend_dev_t base, size_t *free, size_t *total) {
    uint64_t left, all;
    if (kiln_memory_get_info(of(base)->device, &left, &all)) left = all = of(base)->info.memory_bytes;
    *free = (size_t)left;
    *total = (size_t)all;
}

/* The CPU's device computes in the host's memory, as an integrated GPU does: ggml then offloads layers to it where
 * there is no GPU of another backend. */
static enum ggml_backend_dev_type get_type(ggml_backend_dev_t base) {
    return ggml_kiln_on_cpu(of(base)) ? GGML_BACKEND_DEVICE_TYPE_IGPU : GGML_BACKEND_DEVICE_TYPE_GPU;
}

static void get_props(ggml_backend_dev_t base, struct ggml_backend_dev_props *props) {
    bool on_gpu = !ggml_kiln_on_cpu(of(base));
    *props = (struct ggml_backend_dev_props){
        .name = get_name(base),
        .description = get_description(base),
        .type = get_type(base),
        .device_id = of(base)->id[0] ? of(base)->id : NULL,
        .caps = {.async = on_gpu,
                 .host_buffer = on_gpu,
                 .buffer_from_host_ptr = !on_gpu,
                 .events = on_gpu,
                 .mmap_support = true},
    };
    get_memory(base, &props->memory_free, &props->memory_total);
}

/* ---- What it has ------------------------------------------------------------------------------------------------- */

static ggml_backend_t init_backend(ggml_backend_dev_t base, const char *params) {
    GGML_UNUSED(params);
    return ggml_kiln_backend_create(of(base));
}

static ggml_backend_buffer_type_t get_buffer_type(ggml_backend_dev_t base) {
    return &of(base)->memory;
}

static ggml_backend_buffer_type_t get_host_buffer_type(ggml_backend_dev_t base) {
    return ggml_kiln_on_cpu(of(base)) ? NULL : &of(base)->host;
}

static ggml_backend_buffer_t buffer_from_host_ptr(ggml_backend_dev_t base, void *memory, size_t size,
                                                  size_t max_tensor_size) {
    GGML_UNUSED(max_tensor_size);
    return ggml_kiln_on_cpu(of(base)) ? ggml_kiln_buffer_from_host(of(base), memory, size) : NULL;
}

static ggml_backend_event_t event_new(ggml_backend_dev_t base) {
    ggml_backend_event_t event = calloc(1, sizeof *event);
    kiln_event *own;
    if (!event) return NULL;
    if (kiln_event_create(of(base)->device, KILN_EVENT_NO_TIMING, &own)) {
        GGML_LOG_ERROR("%s: %s\n", of(base)->name, kiln_last_error());
        free(event);
        return NULL;
    }
    *event = (struct ggml_backend_event){.device = base, .context = own};
    return event;
}

static void event_free(ggml_backend_dev_t base, ggml_backend_event_t event) {
    GGML_UNUSED(base);
    kiln_event_destroy(event->context);
    free(event);
}

static void event_synchronize(ggml_backend_dev_t base, ggml_backend_event_t event) {
    GGML_UNUSED(base);
    GGML_KILN_MUST(kiln_event_sync(event->context));
}

/* ---- What it can do ---------------------------------------------------------------------------------------------- */

static bool supports_op(ggml_backend_dev_t base, const struct ggml_tensor *op) {
    GGML_UNUSED(base);
    return !ggml_kiln_computes(op) || ggml_kiln_operator_of(op);
}

/* The CPU's device reads and writes whatever is in the host's memory. */
static bool supports_buft(ggml_backend_dev_t base, ggml_backend_buffer_type_t type) {
    return type == &of(base)->memory || (ggml_kiln_on_cpu(of(base)) && ggml_backend_buft_is_host(type));
}

/* Products of many rows are worth the copy of their weights. */
static bool offload_op(ggml_backend_dev_t base, const struct ggml_tensor *op) {
    const int64_t rows_worth = 32;
    return !ggml_kiln_on_cpu(of(base)) && op->op == GGML_OP_MUL_MAT && op->ne[1] >= rows_worth;
}

static const struct ggml_backend_device_i device_interface = {
    .get_name = get_name,
    .get_description = get_description,
    .get_memory = get_memory,
    .get_type = get_type,
    .get_props = get_props,
    .init_backend = init_backend,
    .get_buffer_type = get_buffer_type,
    .get_host_buffer_type = get_host_buffer_type,
    .buffer_from_host_ptr = buffer_from_host_ptr,
    .supports_op = supports_op,
    .supports_buft = supports_buft,
    .offload_op = offload_op,
    .event_new = event_new,
    .event_free = event_free,
    .event_synchronize = event_synchronize,
};

/* ---- Opening ----------------------------------------------------------------------------------------------------- */

static kiln_status find_kernel(ggml_kiln_device *device, const kiln_bundle *bundle, const char *name,
                               const kiln_kernel **out_kernel) {
    const kiln_module *module;
    GGML_KILN_TRY(kiln_module_get(device->device, bundle, bundle->name, &module));
    return kiln_module_find_kernel(module, name, out_kernel);
}

static kiln_status open_parts(ggml_kiln_device *device, const kiln_device_options *options) {
    GGML_KILN_TRY(kiln_device_open(options, &device->device));
    GGML_KILN_TRY(kiln_device_get_info(device->device, &device->info));
    GGML_KILN_TRY(kiln_stream_open(device->device, 0, &device->stream));
    GGML_KILN_TRY(find_kernel(device, &ggml_kiln_map_images, "ggml_kiln_map", &device->map));
    return find_kernel(device, &ggml_kiln_mul_vec_images, "ggml_kiln_mul_vec", &device->mul_vec);
}

bool ggml_kiln_device_open(ggml_kiln_device *device, kiln_backend_id backend, int ordinal, int number,
                           ggml_backend_reg_t reg) {
    *device = (ggml_kiln_device){.base = {.iface = device_interface, .reg = reg, .context = device}};
    if (open_parts(device, &(kiln_device_options){.backend = backend, .ordinal = ordinal})) {
        GGML_LOG_ERROR("kiln: %s device %d is left out: %s\n", kiln_backend_name(backend), ordinal, kiln_last_error());
        kiln_stream_close(&device->stream);
        kiln_device_close(device->device);
        return false;
    }
    snprintf(device->name, sizeof device->name, "kiln%d", number);
    kiln_device_pci_text(&device->info, device->id, sizeof device->id);
    pthread_mutex_init(&device->lock, NULL);
    ggml_kiln_buffers_describe(device);
    return true;
}
