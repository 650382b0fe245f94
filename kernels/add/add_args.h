/* add: the one argument of its kernel, on every backend. */
#ifndef KILN_KERNELS_ADD_ARGS_H
#define KILN_KERNELS_ADD_ARGS_H

#include "kernels/common/geometry.h"

typedef struct kiln_add_args {
    void *y;
    const void *a;
    const void *b;
    kiln_shape shape; /* one row */
} kiln_add_args;

KILN_ARGS_SIZE(kiln_add_args, 56);
KILN_ARGS_OFFSET(kiln_add_args, y, 0);
KILN_ARGS_OFFSET(kiln_add_args, a, 8);
KILN_ARGS_OFFSET(kiln_add_args, b, 16);
KILN_ARGS_OFFSET(kiln_add_args, shape, 24);

#endif
