/* The one argument of amax's kernel. */
#ifndef KILN_KERNELS_AMAX_ARGS_H
#define KILN_KERNELS_AMAX_ARGS_H

#include "kernels/common/geometry.h"

KILN_ARGS_BEGIN
typedef struct kiln_amax_args {
    float *y;
    float *partials; /* [partial_rows, partial_cols]; where nothing is to be joined, y */
    const void *x;
    kiln_shape shape;
    int64_t x_stride;
    int64_t partial_rows;
    int64_t partial_cols; /* tiles of a row */
    int64_t join_rows;    /* partials of a result */
    int64_t join_cols;
    int64_t scale_cols;
    uint32_t block_rows; /* that a block does */
    uint32_t shared;     /* non-zero: a partial is of the block's rows; else of each */
    uint32_t joining;    /* non-zero: the launch that makes results of partials */
    uint32_t padding;
} kiln_amax_args;
KILN_ARGS_END

#endif
