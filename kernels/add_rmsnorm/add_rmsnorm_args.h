/* add_rmsnorm: the one argument of its kernel, on every backend. */
#ifndef KILN_KERNELS_ADD_RMSNORM_ARGS_H
#define KILN_KERNELS_ADD_RMSNORM_ARGS_H

#include "kernels/common/geometry.h"

typedef struct kiln_add_rmsnorm_args {
    void *y;
    void *sum;
    const void *x;
    const void *residual;
    const void *weight; /* NULL: 1 */
    kiln_shape shape;
    int64_t y_stride;
    int64_t sum_stride;
    int64_t x_stride;
    int64_t residual_stride;
    float mean; /* 1 / cols */
    float eps;
} kiln_add_rmsnorm_args;

KILN_ARGS_SIZE(kiln_add_rmsnorm_args, 112);
KILN_ARGS_OFFSET(kiln_add_rmsnorm_args, y, 0);
KILN_ARGS_OFFSET(kiln_add_rmsnorm_args, sum, 8);
KILN_ARGS_OFFSET(kiln_add_rmsnorm_args, x, 16);
KILN_ARGS_OFFSET(kiln_add_rmsnorm_args, residual, 24);
KILN_ARGS_OFFSET(kiln_add_rmsnorm_args, weight, 32);
KILN_ARGS_OFFSET(kiln_add_rmsnorm_args, shape, 40);
KILN_ARGS_OFFSET(kiln_add_rmsnorm_args, y_stride, 72);
KILN_ARGS_OFFSET(kiln_add_rmsnorm_args, sum_stride, 80);
KILN_ARGS_OFFSET(kiln_add_rmsnorm_args, x_stride, 88);
KILN_ARGS_OFFSET(kiln_add_rmsnorm_args, residual_stride, 96);
KILN_ARGS_OFFSET(kiln_add_rmsnorm_args, mean, 104);
KILN_ARGS_OFFSET(kiln_add_rmsnorm_args, eps, 108);

#endif
