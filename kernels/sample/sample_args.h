/* sample: the one argument of its kernel, on every backend. */
#ifndef KILN_KERNELS_SAMPLE_ARGS_H
#define KILN_KERNELS_SAMPLE_ARGS_H

#include "kernels/common/geometry.h"

typedef struct kiln_sample_args {
    int32_t *y;
    const void *x;
    const int64_t *draws; /* NULL: 0 */
    int64_t rows;
    int64_t x_stride;
    uint64_t seed;
    uint32_t cols;
    uint32_t top_k;            /* 0: all */
    float inverse_temperature; /* 0: the greatest */
    float top_p;               /* 1 or more: all */
} kiln_sample_args;

KILN_ARGS_SIZE(kiln_sample_args, 64);
KILN_ARGS_OFFSET(kiln_sample_args, y, 0);
KILN_ARGS_OFFSET(kiln_sample_args, x, 8);
KILN_ARGS_OFFSET(kiln_sample_args, draws, 16);
KILN_ARGS_OFFSET(kiln_sample_args, rows, 24);
KILN_ARGS_OFFSET(kiln_sample_args, x_stride, 32);
KILN_ARGS_OFFSET(kiln_sample_args, seed, 40);
KILN_ARGS_OFFSET(kiln_sample_args, cols, 48);
KILN_ARGS_OFFSET(kiln_sample_args, top_k, 52);
KILN_ARGS_OFFSET(kiln_sample_args, inverse_temperature, 56);
KILN_ARGS_OFFSET(kiln_sample_args, top_p, 60);

#endif
