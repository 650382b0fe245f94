/* add_gelu: the one argument of its kernel, on every backend. */
#ifndef KILN_KERNELS_ADD_GELU_ARGS_H
#define KILN_KERNELS_ADD_GELU_ARGS_H

#include "kernels/common/geometry.h"

enum { KILN_ADD_GELU_COEFFICIENTS = 9 };

KILN_ARGS_BEGIN
typedef struct kiln_add_gelu_args {
    void *y;
    const void *x;
    const void *bias; /* NULL: 0 */
    kiln_shape shape;
    int64_t y_stride;
    int64_t x_stride;
    float bound; /* the bound and the coefficients that kiln_gated takes */
    float coefficients[KILN_ADD_GELU_COEFFICIENTS];
} kiln_add_gelu_args;
KILN_ARGS_END

#endif
