/* Tensor maps: descriptors of tensors in global memory for a kernel's asynchronous bulk copies. */
#ifndef KILN_LOADER_TENSOR_MAP_H
#define KILN_LOADER_TENSOR_MAP_H

#include "loader/module.h"

enum { KILN__TENSOR_MAP_BYTES = 128, KILN__TENSOR_MAP_ALIGN = 64 };

#define KILN__TENSOR_MAP_STRIDE_MOST ((int64_t)1 << 40) /* in bytes; strides must be below this */

/* A tensor whose first dimension is innermost and contiguous. Copies read elements out of bounds as zeros. */
typedef struct kiln__tensor_layout {
    const void *data;       /* 16-byte aligned */
    uint32_t element_bytes; /* 1, 2 or 4 */
    bool tf32;              /* copies round f32 elements to TF32, to nearest even */
    uint32_t rank;          /* 1 to KILN_KERNEL_MAP_RANK */
    uint64_t sizes[KILN_KERNEL_MAP_RANK];
    uint64_t strides[KILN_KERNEL_MAP_RANK]; /* bytes, multiples of 16; ignored for the first and for sizes of 1 */
} kiln__tensor_layout;

/* The number of tensor maps among the kernel's arguments. */
static inline unsigned kiln__tensor_map_count(const kiln_kernel_info *info) {
    unsigned count = 0;
    while (count < KILN_KERNEL_MAPS && info->boxes[count][0])
        count++;
    return count;
}

/* Encodes the kernel's tensor maps, tensors[i] with the kernel's box i, into the space that arguments has for them. In
 * shared memory, boxes with rows of 128, 64 or 32 bytes are swizzled by that length; others are not. Allocates nothing.
 * Returns KILN_OK, KILN_ERROR_UNSUPPORTED (no tensor maps on this backend), KILN_ERROR_INVALID_ARGUMENT or
 * KILN_ERROR_DRIVER. */
kiln_status kiln__tensor_maps_encode(const kiln_kernel *kernel, const kiln__tensor_layout *tensors, void *arguments);

#endif
