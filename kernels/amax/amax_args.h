/* The one argument of amax's kernel. */
#ifndef KILN_KERNELS_AMAX_ARGS_H
#define KILN_KERNELS_AMAX_ARGS_H

#include "kernels/common/geometry.h"

KILN_ARGS_BEGIN
typedef struct kiln_amax_args {
    float *y;
    float *partials; /* [partial_rows, partial_cols]; y where there is only one launch */
    const void *x;
    kiln_shape shape;
    int64_t x_stride;
    int64_t partial_rows;
    int64_t partial_cols; /* tiles per row */
    int64_t join_rows;    /* partial results per result */
    int64_t join_cols;
    int64_t scale_cols;
    uint32_t block_rows; /* of a block */
    uint32_t shared;     /* non-zero: a partial result is of all rows of a block; else of each row */
    uint32_t joining;    /* non-zero: this is the launch that reduces the partial results */
    uint32_t padding;
} kiln_amax_args;
KILN_ARGS_END

#endif
