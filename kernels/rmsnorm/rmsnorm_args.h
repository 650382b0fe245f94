/* rmsnorm: the one argument of its kernel, on every backend. */
#ifndef KILN_KERNELS_RMSNORM_ARGS_H
#define KILN_KERNELS_RMSNORM_ARGS_H

#include "kernels/common/geometry.h"

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

KILN_ARGS_SIZE(kiln_rmsnorm_args, 80);
KILN_ARGS_OFFSET(kiln_rmsnorm_args, y, 0);
KILN_ARGS_OFFSET(kiln_rmsnorm_args, x, 8);
KILN_ARGS_OFFSET(kiln_rmsnorm_args, weight, 16);
KILN_ARGS_OFFSET(kiln_rmsnorm_args, shape, 24);
KILN_ARGS_OFFSET(kiln_rmsnorm_args, y_stride, 56);
KILN_ARGS_OFFSET(kiln_rmsnorm_args, x_stride, 64);
KILN_ARGS_OFFSET(kiln_rmsnorm_args, mean, 72);
KILN_ARGS_OFFSET(kiln_rmsnorm_args, eps, 76);

#endif
