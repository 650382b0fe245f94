/* mul_add: the one argument of its kernel, on every backend. */
#ifndef KILN_KERNELS_MUL_ADD_ARGS_H
#define KILN_KERNELS_MUL_ADD_ARGS_H

#include "kernels/common/geometry.h"

KILN_ARGS_BEGIN
typedef struct kiln_mul_add_args {
    void *y;
    const void *a;
    const void *b;
    const void *c;
    kiln_shape shape; /* one row */
} kiln_mul_add_args;
KILN_ARGS_END

#endif
