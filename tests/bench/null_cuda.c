/* A libcuda.so.1 that does nothing, for counting what a launch costs before the driver: four devices, handles, and the
 * current context of each thread. null_others.c has the functions that just return 0. */
#include "loader/cuda/cuda_abi.h"
#include <stdio.h>

enum { DEVICES = 4 };

#define EXPORT __attribute__((visibility("default")))

/* Something to point handles at. */
static char contexts[DEVICES], a_module, a_function, a_stream;

static _Thread_local kiln__cu_context current __attribute__((tls_model("initial-exec")));

EXPORT kiln__cu_result cuDriverGetVersion(int *out_version) {
    *out_version = 13000;
    return 0;
}

EXPORT kiln__cu_result cuDeviceGetCount(int *out_count) {
    *out_count = DEVICES;
    return 0;
}

EXPORT kiln__cu_result cuDeviceGet(kiln__cu_device *out_device, int ordinal) {
    *out_device = ordinal;
    return 0;
}

EXPORT kiln__cu_result cuDeviceGetName(char *out_name, int size, kiln__cu_device device) {
    snprintf(out_name, (size_t)size, "null device %d", device);
    return 0;
}

EXPORT kiln__cu_result cuDeviceGetAttribute(int *out_value, kiln__cu_enum attribute, kiln__cu_device device) {
    (void)device;
    switch (attribute) {
    case KILN__CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        *out_value = 9;
        break;
    case KILN__CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        *out_value = 0;
        break;
    case KILN__CU_DEVICE_ATTRIBUTE_WARP_SIZE:
        *out_value = 32;
        break;
    case KILN__CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *out_value = 1024;
        break;
    case KILN__CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
        *out_value = 227 * 1024;
        break;
    default:
        *out_value = 1;
    }
    return 0;
}

EXPORT kiln__cu_result cuDevicePrimaryCtxRetain(kiln__cu_context *out_context, kiln__cu_device device) {
    *out_context = (kiln__cu_context)(void *)&contexts[device];
    return 0;
}

EXPORT kiln__cu_result cuCtxGetCurrent(kiln__cu_context *out_context) {
    *out_context = current;
    return 0;
}

EXPORT kiln__cu_result cuCtxSetCurrent(kiln__cu_context context) {
    current = context;
    return 0;
}

EXPORT kiln__cu_result cuModuleLoadDataEx(kiln__cu_module *out_module, const void *image, unsigned int option_count,
                                          kiln__cu_enum *options, void **option_values) {
    (void)image;
    (void)option_count;
    (void)options;
    (void)option_values;
    *out_module = (kiln__cu_module)(void *)&a_module;
    return 0;
}

EXPORT kiln__cu_result cuModuleGetFunction(kiln__cu_function *out_function, kiln__cu_module module, const char *name) {
    (void)module;
    (void)name;
    *out_function = (kiln__cu_function)(void *)&a_function;
    return 0;
}

EXPORT kiln__cu_result cuFuncGetAttribute(int *out_value, kiln__cu_enum attribute, kiln__cu_function function) {
    (void)function;
    *out_value = attribute == KILN__CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 1024 : 0;
    return 0;
}

/* There is no first parameter: the driver does not say, and the bundle's table counts. */
EXPORT kiln__cu_result cuFuncGetParamInfo(kiln__cu_function function, size_t index, size_t *out_offset,
                                          size_t *out_size) {
    enum { INVALID_VALUE = 1 };
    (void)function;
    (void)index;
    (void)out_offset;
    (void)out_size;
    return INVALID_VALUE;
}

EXPORT kiln__cu_result cuStreamCreate(kiln__cu_stream *out_stream, unsigned int flags) {
    (void)flags;
    *out_stream = (kiln__cu_stream)(void *)&a_stream;
    return 0;
}
