/* silu_mul: the one argument of its kernel, on every backend. */
#ifndef KILN_KERNELS_SILU_MUL_ARGS_H
#define KILN_KERNELS_SILU_MUL_ARGS_H

#include "kernels/common/geometry.h"

enum { KILN_SILU_MUL_COEFFICIENTS = 2 };

typedef struct kiln_silu_mul_args {
    void *y;
    const void *gate;
    const void *up;
    kiln_shape shape;
    int64_t y_stride;
    int64_t gate_stride;
    int64_t up_stride;
    float bound; /* of kiln_gated, and its coefficients */
    float coefficients[KILN_SILU_MUL_COEFFICIENTS];
    uint32_t padding;
} kiln_silu_mul_args;

KILN_ARGS_SIZE(kiln_silu_mul_args, 96);
KILN_ARGS_OFFSET(kiln_silu_mul_args, y, 0);
KILN_ARGS_OFFSET(kiln_silu_mul_args, gate, 8);
KILN_ARGS_OFFSET(kiln_silu_mul_args, up, 16);
KILN_ARGS_OFFSET(kiln_silu_mul_args, shape, 24);
KILN_ARGS_OFFSET(kiln_silu_mul_args, y_stride, 56);
KILN_ARGS_OFFSET(kiln_silu_mul_args, gate_stride, 64);
KILN_ARGS_OFFSET(kiln_silu_mul_args, up_stride, 72);
KILN_ARGS_OFFSET(kiln_silu_mul_args, bound, 80);
KILN_ARGS_OFFSET(kiln_silu_mul_args, coefficients, 84);
KILN_ARGS_OFFSET(kiln_silu_mul_args, padding, 92);

#endif
