/* The library's entry: the devices that kiln finds. */
#include "loader/bindings/ggml/backend.h"

static ggml_kiln_device devices[GGML_KILN_DEVICES];
static int device_count;

static const char *get_name(ggml_backend_reg_t reg) {
    GGML_UNUSED(reg);
    return "kiln";
}

static size_t get_device_count(ggml_backend_reg_t reg) {
    GGML_UNUSED(reg);
    return (size_t)device_count;
}

static ggml_backend_dev_t get_device(ggml_backend_reg_t reg, size_t index) {
    GGML_UNUSED(reg);
    GGML_ASSERT(index < (size_t)device_count);
    return &devices[index].base;
}

static struct ggml_backend_reg registry = {
    .api_version = GGML_BACKEND_API_VERSION,
    .iface = {.get_name = get_name, .get_device_count = get_device_count, .get_device = get_device},
};

static void open_all(kiln_backend_id backend) {
    int32_t count;
    if (kiln_device_count(backend, &count)) {
        GGML_LOG_ERROR("kiln: %s: %s\n", kiln_backend_name(backend), kiln_last_error());
        return;
    }
    for (int32_t i = 0; i < count && device_count < GGML_KILN_DEVICES; i++)
        if (ggml_kiln_device_open(&devices[device_count], backend, i, device_count, &registry)) device_count++;
}

static pthread_once_t opened = PTHREAD_ONCE_INIT;

/* All GPUs, or the CPU where there is none. */
static void open_devices(void) {
    open_all(KILN_BACKEND_CUDA);
    open_all(KILN_BACKEND_ROCM);
    if (!device_count) open_all(KILN_BACKEND_CPU);
}

static ggml_backend_reg_t reg(void) {
    pthread_once(&opened, open_devices);
    return &registry;
}

GGML_BACKEND_DL_IMPL(reg)
