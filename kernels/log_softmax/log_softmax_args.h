/* log_softmax: the one argument of its kernel, on every backend. */
#ifndef KILN_KERNELS_LOG_SOFTMAX_ARGS_H
#define KILN_KERNELS_LOG_SOFTMAX_ARGS_H

#include "kernels/common/geometry.h"

/* The sum of exp(x - origin) of one chunk of a row; the origin is its maximum where that is finite, else 0. Devices
 * keep the maximum in its place. */
typedef struct kiln_log_softmax_partial {
    float origin;
    float sum;
} kiln_log_softmax_partial;

/* What a launch does: whole short rows, or one of the two launches over the chunks of long rows. */
typedef enum kiln_log_softmax_phase {
    KILN_LOG_SOFTMAX_ROWS,
    KILN_LOG_SOFTMAX_PARTIAL,
    KILN_LOG_SOFTMAX_FINISH
} kiln_log_softmax_phase;

KILN_ARGS_BEGIN
typedef struct kiln_log_softmax_args {
    void *y; /* NULL: not wanted */
    float *lse;
    const void *x;
    kiln_log_softmax_partial *partials; /* [rows, chunks]; NULL if rows are short */
    kiln_shape shape;                   /* its tile is a chunk of a long row, or a short row */
    int64_t y_stride;
    int64_t x_stride;
    uint32_t chunks; /* of a row */
    uint32_t phase;  /* kiln_log_softmax_phase */
} kiln_log_softmax_args;
KILN_ARGS_END

#endif
