/* The one argument of dequantize_nvfp4's kernel. */
#ifndef KILN_KERNELS_DEQUANTIZE_NVFP4_ARGS_H
#define KILN_KERNELS_DEQUANTIZE_NVFP4_ARGS_H

#include "kernels/common/geometry.h"

KILN_ARGS_BEGIN
typedef struct kiln_dequantize_nvfp4_args {
    void *y;
    const uint8_t *codes;
    const uint8_t *scales;
    const float *global_scale;
    kiln_shape shape; /* wide: vectors of codes are aligned too */
    int64_t y_stride;
    int64_t codes_stride;
    int64_t scale_cols;
    uint32_t swizzled;
    uint32_t each; /* non-zero: each row has a global scale */
} kiln_dequantize_nvfp4_args;
KILN_ARGS_END

#endif
