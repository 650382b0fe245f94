/* softmax_update: the one argument of its kernel, on every backend. */
#ifndef KILN_KERNELS_SOFTMAX_UPDATE_ARGS_H
#define KILN_KERNELS_SOFTMAX_UPDATE_ARGS_H

#include "kernels/common/geometry.h"

enum { KILN_SOFTMAX_UPDATE_VECTORS_LOG2 = 3 }; /* vectors of a row that a thread holds at once */

KILN_ARGS_BEGIN
typedef struct kiln_softmax_update_args {
    float *states; /* [3, rows]: maxima, sums, compensations; before and other likewise */
    float *scale;  /* NULL: not wanted */
    float *lse;    /* NULL: not wanted */
    const void *x;
    const float *before; /* NULL: empty states */
    const float *other;  /* NULL: none */
    kiln_shape shape;    /* a row is a tile */
    int64_t x_stride;
} kiln_softmax_update_args;
KILN_ARGS_END

#endif
