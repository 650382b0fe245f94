/* The CPU backend's device, in device->native, and the backend's functions. */
#ifndef KILN_LOADER_CPU_DEVICE_H
#define KILN_LOADER_CPU_DEVICE_H

#include "loader/backend.h"
#include "loader/cpu/cpu_pool.h"

typedef struct kiln__cpu_device {
    kiln__cpu_pool *pool;
} kiln__cpu_device;

kiln_status kiln__cpu_device_count(int32_t *out_count);
kiln_status kiln__cpu_identify(kiln_device_info *info);
kiln_status kiln__cpu_device_open(kiln_device *device, const kiln_device_options *options);
void kiln__cpu_device_close(kiln_device *device);

kiln_status kiln__cpu_launch(kiln_stream *stream, const kiln_kernel *kernel, const kiln_launch_config *config,
                             const void *arguments);

kiln_status kiln__cpu_memory_alloc(kiln_device *device, size_t size, void **out_memory);
void kiln__cpu_memory_free(kiln_device *device, void *memory);
kiln_status kiln__cpu_copy(kiln_stream *stream, void *destination, const void *source, size_t size,
                           kiln_copy_direction direction);
kiln_status kiln__cpu_fill(kiln_stream *stream, void *destination, uint8_t value, size_t size);

#endif
