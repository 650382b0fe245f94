#include "loader/tensor_map.h"
#include "loader/backend.h"
#include <string.h>

kiln_status kiln__tensor_maps_encode(const kiln_kernel *kernel, const kiln__tensor_layout *tensors, void *arguments) {
    _Alignas(KILN__TENSOR_MAP_ALIGN) unsigned char map[KILN__TENSOR_MAP_BYTES];
    const kiln_kernel_info *info = &kernel->info;
    char *at = (char *)arguments + info->map_offset;
    if (kernel->device->plan) return KILN_OK;
    for (unsigned i = 0; i < kiln__tensor_map_count(info); i++, at += sizeof map) {
        KILN__TRY(kernel->device->backend->tensor_map_encode(kernel, &tensors[i], info->boxes[i], map));
        memcpy(at, map, sizeof map);
    }
    return KILN_OK;
}

kiln_status kiln__tensor_map_refuse(const kiln_kernel *kernel, const kiln__tensor_layout *tensor, const uint16_t *box,
                                    void *out_map) {
    (void)tensor;
    (void)box;
    (void)out_map;
    return kiln__fail(KILN_ERROR_UNSUPPORTED, "kernel %s: %s has no tensor maps", kernel->name,
                      kernel->device->backend->name);
}
