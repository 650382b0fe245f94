/* sample: the one argument of its kernel, on every backend. */
#ifndef KILN_KERNELS_SAMPLE_ARGS_H
#define KILN_KERNELS_SAMPLE_ARGS_H

#include "kernels/common/geometry.h"

typedef struct kiln_sample_args {
    int32_t *y;
    const void *x;
    /* [rows]; NULL: what all rows have, below */
    const float *row_temperature;
    const int32_t *row_top_k;
    const float *row_top_p;
    const float *row_min_p;
    const int64_t *row_seed;
    const void *row_position;
    int64_t rows;
    int64_t x_stride;
    uint64_t seed;
    uint64_t position;
    uint32_t cols;
    int32_t top_k;
    float temperature;
    float top_p;
    float min_p;
    uint32_t wide_positions; /* non-zero: row_position is of 64 bits, else of 32 */
} kiln_sample_args;

KILN_ARGS_SIZE(kiln_sample_args, 120);
KILN_ARGS_OFFSET(kiln_sample_args, y, 0);
KILN_ARGS_OFFSET(kiln_sample_args, x, 8);
KILN_ARGS_OFFSET(kiln_sample_args, row_temperature, 16);
KILN_ARGS_OFFSET(kiln_sample_args, row_top_k, 24);
KILN_ARGS_OFFSET(kiln_sample_args, row_top_p, 32);
KILN_ARGS_OFFSET(kiln_sample_args, row_min_p, 40);
KILN_ARGS_OFFSET(kiln_sample_args, row_seed, 48);
KILN_ARGS_OFFSET(kiln_sample_args, row_position, 56);
KILN_ARGS_OFFSET(kiln_sample_args, rows, 64);
KILN_ARGS_OFFSET(kiln_sample_args, x_stride, 72);
KILN_ARGS_OFFSET(kiln_sample_args, seed, 80);
KILN_ARGS_OFFSET(kiln_sample_args, position, 88);
KILN_ARGS_OFFSET(kiln_sample_args, cols, 96);
KILN_ARGS_OFFSET(kiln_sample_args, top_k, 100);
KILN_ARGS_OFFSET(kiln_sample_args, temperature, 104);
KILN_ARGS_OFFSET(kiln_sample_args, top_p, 108);
KILN_ARGS_OFFSET(kiln_sample_args, min_p, 112);
KILN_ARGS_OFFSET(kiln_sample_args, wide_positions, 116);

#endif
