/* rmsnorm: the one argument of its kernel, on every backend. */
#ifndef KILN_KERNELS_RMSNORM_ARGS_H
#define KILN_KERNELS_RMSNORM_ARGS_H

#include "kernels/common/geometry.h"

KILN_ARGS_BEGIN
typedef struct kiln_rmsnorm_args {
    void *y;
    const void *x;
    const void *weight; /* NULL: 1 */
    kiln_shape shape;
    int64_t y_stride;
    int64_t x_stride;
    float mean; /* 1 / cols */
    float eps;
} kiln_rmsnorm_args;
KILN_ARGS_END

#endif
