/* The one argument of the kernels of dequantize_fp8 and dequantize_int8. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_DEQUANTIZE_ARGS_H
#define KILN_KERNELS_COMMON_QUANTIZE_DEQUANTIZE_ARGS_H

#include "kernels/common/geometry.h"

enum { KILN_DEQUANTIZE_GROUP_LOG2 = 7 };

KILN_ARGS_BEGIN
typedef struct kiln_dequantize_args {
    void *y;
    const uint8_t *codes;
    const float *scales;
    kiln_shape shape; /* wide: vectors of codes are aligned too */
    int64_t y_stride;
    int64_t codes_stride;
    int64_t scale_cols;
    uint32_t rows_log2; /* rows that share a scale, as a logarithm: 0, 7, or 63 for all */
    uint32_t grouped;   /* non-zero: a scale is for 128 columns; else for the whole row */
} kiln_dequantize_args;
KILN_ARGS_END

#endif
