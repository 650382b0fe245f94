/* sample: the one argument of its kernel, on every backend. */
#ifndef KILN_KERNELS_SAMPLE_ARGS_H
#define KILN_KERNELS_SAMPLE_ARGS_H

#include "kernels/common/geometry.h"

/* The blocks that share a row in sample_cluster, and which rows it is for: so many at most, of so many columns at
 * least. */
enum { KILN_SAMPLE_CLUSTER = 8, KILN_SAMPLE_CLUSTER_ROWS = 64, KILN_SAMPLE_CLUSTER_COLS = 1 << 14 };

/* Rows that subgroups choose from: so many at least, of so many columns at most. */
enum { KILN_SAMPLE_SHORT_ROWS = 512, KILN_SAMPLE_SHORT_COLS = 1 << 13 };

KILN_ARGS_BEGIN
typedef struct kiln_sample_args {
    int32_t *y;
    const void *x;
    /* [rows]; NULL: the value for all rows, below */
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
    uint32_t positions_64; /* non-zero: row_position has 64 bits, else 32 */
    uint32_t each;         /* rows of a block: 1, or as many as it has subgroups, which then choose */
    uint32_t padding;
} kiln_sample_args;
KILN_ARGS_END

#endif
