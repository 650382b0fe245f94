/* argmax: the one argument of its kernel, on every backend. */
#ifndef KILN_KERNELS_ARGMAX_ARGS_H
#define KILN_KERNELS_ARGMAX_ARGS_H

#include "kernels/common/geometry.h"

/* The best element so far: a key that orders elements as their numbers are ordered, and its column. */
typedef struct kiln_argmax_best {
    uint32_t key;
    uint32_t col;
} kiln_argmax_best;

/* What a launch does: whole short rows, or one of the two launches over the chunks of long rows. */
typedef enum kiln_argmax_phase { KILN_ARGMAX_ROWS, KILN_ARGMAX_PARTIAL, KILN_ARGMAX_FINISH } kiln_argmax_phase;

KILN_ARGS_BEGIN
typedef struct kiln_argmax_args {
    int32_t *y;
    const void *x;
    kiln_argmax_best *partials; /* [rows, chunks]; NULL if rows are short */
    kiln_shape shape;           /* rows of up to a tile, which is a chunk, are short */
    int64_t x_stride;
    uint32_t chunks; /* of a row */
    uint32_t phase;  /* kiln_argmax_phase */
} kiln_argmax_args;
KILN_ARGS_END

#endif
