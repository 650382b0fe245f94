#include "loader/cuda/cuda_backend.h"

/* The swizzle for a box whose rows have the given number of bytes. */
static kiln__cu_enum swizzle_of(uint32_t row_bytes) {
    switch (row_bytes) {
    case 32:
        return KILN__CU_TENSOR_MAP_SWIZZLE_32B;
    case 64:
        return KILN__CU_TENSOR_MAP_SWIZZLE_64B;
    case 128:
        return KILN__CU_TENSOR_MAP_SWIZZLE_128B;
    default:
        return KILN__CU_TENSOR_MAP_SWIZZLE_NONE;
    }
}

/* Copies move bits, unless they are to round them: the type of an element is that of its bytes. */
static kiln__cu_enum type_of(const kiln__tensor_layout *tensor) {
    if (tensor->tf32) return KILN__CU_TENSOR_MAP_DATA_TYPE_TFLOAT32;
    return tensor->element_bytes == 1   ? KILN__CU_TENSOR_MAP_DATA_TYPE_UINT8
           : tensor->element_bytes == 2 ? KILN__CU_TENSOR_MAP_DATA_TYPE_UINT16
                                        : KILN__CU_TENSOR_MAP_DATA_TYPE_UINT32;
}

kiln_status kiln__cuda_tensor_map_encode(const kiln_kernel *kernel, const kiln__tensor_layout *tensor,
                                         const uint16_t *box, void *out_map) {
    /* A dimension of one element has any stride. */
    enum { ANY_STRIDE = 16 };
    uint64_t strides[KILN_KERNEL_MAP_RANK];
    uint32_t boxes[KILN_KERNEL_MAP_RANK], steps[KILN_KERNEL_MAP_RANK];
    for (uint32_t i = 0; i < tensor->rank; i++) {
        boxes[i] = box[i];
        steps[i] = 1;
        if (i) strides[i - 1] = tensor->sizes[i] > 1 ? tensor->strides[i] : ANY_STRIDE;
    }
    KILN__CUDA_CALL(kernel->device, cuTensorMapEncodeTiled, out_map, type_of(tensor), tensor->rank,
                    (void *)(uintptr_t)tensor->data, tensor->sizes, strides, boxes, steps,
                    KILN__CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle_of(boxes[0] * tensor->element_bytes),
                    KILN__CU_TENSOR_MAP_L2_PROMOTION_L2_256B, KILN__CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return KILN_OK;
}
