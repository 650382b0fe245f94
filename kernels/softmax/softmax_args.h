/* softmax: the one argument of its kernels, on every backend. */
#ifndef KILN_KERNELS_SOFTMAX_ARGS_H
#define KILN_KERNELS_SOFTMAX_ARGS_H

#include "kernels/common/geometry.h"

/* The maximum and the sum of exp(x - maximum) of one chunk of a row. */
typedef struct kiln_softmax_partial {
    float max;
    float sum;
} kiln_softmax_partial;

/* What a launch does: whole short rows, or one of the two launches over the chunks of long rows. */
typedef enum kiln_softmax_phase { KILN_SOFTMAX_ROWS, KILN_SOFTMAX_PARTIAL, KILN_SOFTMAX_FINISH } kiln_softmax_phase;

KILN_ARGS_BEGIN
typedef struct kiln_softmax_args {
    void *y;
    const void *x;
    kiln_softmax_partial *partials; /* [rows, chunks]; NULL if rows are short */
    kiln_shape shape;               /* its tile is a chunk of a long row, or a short row */
    int64_t y_stride;
    int64_t x_stride;
    uint32_t chunks; /* of a row */
    uint32_t phase;  /* kiln_softmax_phase */
} kiln_softmax_args;
KILN_ARGS_END

#endif
