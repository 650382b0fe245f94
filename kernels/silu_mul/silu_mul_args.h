/* silu_mul: the one argument of its kernel, on every backend. */
#ifndef KILN_KERNELS_SILU_MUL_ARGS_H
#define KILN_KERNELS_SILU_MUL_ARGS_H

#include "kernels/common/geometry.h"

enum { KILN_SILU_MUL_COEFFICIENTS = 2 };

KILN_ARGS_BEGIN
typedef struct kiln_silu_mul_args {
    void *y;
    const void *gate;
    const void *up;
    kiln_shape shape;
    int64_t y_stride;
    int64_t gate_stride;
    int64_t up_stride;
    float bound; /* the bound and the coefficients that kiln_gated takes */
    float coefficients[KILN_SILU_MUL_COEFFICIENTS];
    uint32_t padding;
} kiln_silu_mul_args;
KILN_ARGS_END

#endif
