/* The one argument of quantize_nvfp4's kernel. */
#ifndef KILN_KERNELS_QUANTIZE_NVFP4_ARGS_H
#define KILN_KERNELS_QUANTIZE_NVFP4_ARGS_H

#include "kernels/common/geometry.h"

KILN_ARGS_BEGIN
typedef struct kiln_quantize_nvfp4_args {
    uint8_t *codes;
    uint8_t *scales;
    float *global_scale; /* NULL: not wanted */
    const void *x;
    const float *values; /* the global scales, or the greatest magnitudes */
    kiln_shape shape;    /* of the scales' rows and columns; wide: each 16 elements and their codes are aligned */
    int64_t rows;        /* of x */
    int64_t cols;
    int64_t codes_stride;
    int64_t x_stride;
    uint32_t given;
    uint32_t swizzled;
    uint32_t each; /* non-zero: each row has a value */
    uint32_t padding;
} kiln_quantize_nvfp4_args;
KILN_ARGS_END

#endif
