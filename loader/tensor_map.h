/* Tensor maps: descriptions of tensors in global memory for a kernel's asynchronous copies. */
#ifndef KILN_LOADER_TENSOR_MAP_H
#define KILN_LOADER_TENSOR_MAP_H

#include "loader/module.h"

enum { KILN__TENSOR_MAP_BYTES = 128, KILN__TENSOR_MAP_ALIGN = 64 };

#define KILN__TENSOR_MAP_STRIDE_MOST ((int64_t)1 << 40) /* bytes, and less than these */

/* A tensor whose innermost dimension, the first, is without gaps. Elements beyond it are zeros to a copy. */
typedef struct kiln__tensor_layout {
    const void *data;       /* 16-byte aligned */
    uint32_t element_bytes; /* 1, 2 or 4 */
    bool tf32;              /* elements are f32, which copies round to TF32, to nearest even */
    uint32_t rank;          /* 1 to KILN_KERNEL_MAP_RANK */
    uint64_t sizes[KILN_KERNEL_MAP_RANK];
    uint64_t strides[KILN_KERNEL_MAP_RANK]; /* in bytes, multiples of 16; that of the innermost dimension and those of
                                             * dimensions of one element are not looked at */
} kiln__tensor_layout;

/* How many tensor maps the kernel takes. */
static inline unsigned kiln__tensor_map_count(const kiln_kernel_info *info) {
    unsigned count = 0;
    while (count < KILN_KERNEL_MAPS && info->boxes[count][0])
        count++;
    return count;
}

/* Encodes the kernel's tensor maps, tensors[i] with its box i, into its arguments, which have room for them. Copies lay
 * a box out in shared memory with its rows swizzled by their length: 128, 64 or 32 bytes; others plainly. Allocates
 * nothing. Returns KILN_OK, KILN_ERROR_UNSUPPORTED (the backend has none), KILN_ERROR_INVALID_ARGUMENT or
 * KILN_ERROR_DRIVER. */
kiln_status kiln__tensor_maps_encode(const kiln_kernel *kernel, const kiln__tensor_layout *tensors, void *arguments);

#endif
