/* rope3d: the one argument of its kernel, on every backend. */
#ifndef KILN_KERNELS_ROPE3D_ARGS_H
#define KILN_KERNELS_ROPE3D_ARGS_H

#include "kernels/common/geometry.h"

KILN_ARGS_BEGIN
typedef struct kiln_rope3d_args {
    void *y;
    const void *x;
    const int32_t *grids;
    const uint64_t *frequencies;
    int64_t y_stride;
    int64_t y_head_stride;
    int64_t x_stride;
    int64_t x_head_stride;
    uint32_t batch;
    uint32_t tokens; /* per sequence */
    uint32_t heads;
    uint32_t pairs;
    uint32_t first;  /* pairs before it are rotated by the frame, */
    uint32_t second; /* pairs before it by the row, and the others by the column */
    uint32_t lanes_log2;
    uint32_t step; /* elements from the first to the second of a pair: 1, or pairs */
    uint32_t wide; /* non-zero: heads and their halves are 16-byte aligned */
    uint32_t padding;
} kiln_rope3d_args;
KILN_ARGS_END

#endif
