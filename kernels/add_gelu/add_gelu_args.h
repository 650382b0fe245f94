/* add_gelu: the one argument of its kernel, on every backend. */
#ifndef KILN_KERNELS_ADD_GELU_ARGS_H
#define KILN_KERNELS_ADD_GELU_ARGS_H

#include "kernels/common/geometry.h"

enum { KILN_ADD_GELU_COEFFICIENTS = 9 };

typedef struct kiln_add_gelu_args {
    void *y;
    const void *x;
    const void *bias; /* NULL: 0 */
    kiln_shape shape;
    int64_t y_stride;
    int64_t x_stride;
    float bound; /* of kiln_gated, and its coefficients */
    float coefficients[KILN_ADD_GELU_COEFFICIENTS];
} kiln_add_gelu_args;

KILN_ARGS_SIZE(kiln_add_gelu_args, 112);
KILN_ARGS_OFFSET(kiln_add_gelu_args, y, 0);
KILN_ARGS_OFFSET(kiln_add_gelu_args, x, 8);
KILN_ARGS_OFFSET(kiln_add_gelu_args, bias, 16);
KILN_ARGS_OFFSET(kiln_add_gelu_args, shape, 24);
KILN_ARGS_OFFSET(kiln_add_gelu_args, y_stride, 56);
KILN_ARGS_OFFSET(kiln_add_gelu_args, x_stride, 64);
KILN_ARGS_OFFSET(kiln_add_gelu_args, bound, 72);
KILN_ARGS_OFFSET(kiln_add_gelu_args, coefficients, 76);

#endif
