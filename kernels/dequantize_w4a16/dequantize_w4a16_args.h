/* The one argument of dequantize_w4a16's kernel. */
#ifndef KILN_KERNELS_DEQUANTIZE_W4A16_ARGS_H
#define KILN_KERNELS_DEQUANTIZE_W4A16_ARGS_H

#include "kernels/common/geometry.h"

enum { KILN_DEQUANTIZE_W4A16_ONE_GROUP = 31 }; /* group_log2 if all of a row is one group */

KILN_ARGS_BEGIN
typedef struct kiln_dequantize_w4a16_args {
    void *y;
    const uint8_t *weights;
    const void *scales;
    const void *zeros; /* NULL: 0 */
    kiln_shape shape;  /* wide: vectors of weights are aligned too, and none crosses a group */
    int64_t y_stride;
    int64_t scale_row_step;   /* elements between the scales, and between the zeros, of neighbouring rows */
    int64_t scale_group_step; /* and of neighbouring groups */
    uint32_t group_log2;
    uint32_t padding;
} kiln_dequantize_w4a16_args;
KILN_ARGS_END

#endif
