/* softmax: the one argument of its kernels, on every backend. */
#ifndef KILN_KERNELS_SOFTMAX_ARGS_H
#define KILN_KERNELS_SOFTMAX_ARGS_H

#include "kernels/common/args.h"

/* The maximum and the sum of exp(x - maximum) of one chunk of a row. */
typedef struct kiln_softmax_partial {
    float max;
    float sum;
} kiln_softmax_partial;

/* What a launch does: short rows whole, or chunks of long rows in two launches. */
typedef enum kiln_softmax_phase { KILN_SOFTMAX_ROWS, KILN_SOFTMAX_PARTIAL, KILN_SOFTMAX_FINISH } kiln_softmax_phase;

typedef struct kiln_softmax_args {
    void *y;
    const void *x;
    kiln_softmax_partial *partials; /* [rows, chunks]; NULL if rows are short */
    int64_t rows;
    int64_t cols;
    int64_t y_stride;
    int64_t x_stride;
    uint32_t chunk;      /* elements of a row that a group does; rows of up to chunk are short */
    uint32_t chunks;     /* of a row */
    uint32_t lanes_log2; /* of the threads on a short row */
    uint32_t wide;       /* non-zero: all rows are 16-byte aligned */
    uint32_t phase;      /* kiln_softmax_phase */
    uint32_t padding;
} kiln_softmax_args;

KILN_ARGS_SIZE(kiln_softmax_args, 80);
KILN_ARGS_OFFSET(kiln_softmax_args, y, 0);
KILN_ARGS_OFFSET(kiln_softmax_args, x, 8);
KILN_ARGS_OFFSET(kiln_softmax_args, partials, 16);
KILN_ARGS_OFFSET(kiln_softmax_args, rows, 24);
KILN_ARGS_OFFSET(kiln_softmax_args, cols, 32);
KILN_ARGS_OFFSET(kiln_softmax_args, y_stride, 40);
KILN_ARGS_OFFSET(kiln_softmax_args, x_stride, 48);
KILN_ARGS_OFFSET(kiln_softmax_args, chunk, 56);
KILN_ARGS_OFFSET(kiln_softmax_args, chunks, 60);
KILN_ARGS_OFFSET(kiln_softmax_args, lanes_log2, 64);
KILN_ARGS_OFFSET(kiln_softmax_args, wide, 68);
KILN_ARGS_OFFSET(kiln_softmax_args, phase, 72);
KILN_ARGS_OFFSET(kiln_softmax_args, padding, 76);

#endif
