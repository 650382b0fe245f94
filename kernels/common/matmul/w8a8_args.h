/* Products of codes of 8 bits with scales, W8A8: the one argument of the kernels of gemm_fp8 and gemm_int8, on every
 * backend. */
#ifndef KILN_KERNELS_COMMON_MATMUL_W8A8_ARGS_H
#define KILN_KERNELS_COMMON_MATMUL_W8A8_ARGS_H

#include "kernels/common/geometry.h"

enum {
    KILN_W8A8_COEFFICIENTS = 9,
    KILN_W8A8_GROUP_LOG2 = 7, /* columns that may have a scale of their own */
    KILN_W8A8_GROUP = 1 << KILN_W8A8_GROUP_LOG2,
    KILN_W8A8_TILE = 64,      /* rows and columns of d that a block does in tiles */
    KILN_W8A8_ROWS = 8,       /* rows of a that a block does in rows */
    KILN_W8A8_ROWS_MOST = 16, /* for how many that kernel is */
    KILN_W8A8_COLUMNS = 4,    /* rows of b that a subgroup does there */
    KILN_W8A8_BLOCK_COLUMNS = KILN_W8A8_COLUMNS * (KILN_BLOCK / KILN_SUBGROUP)
};

/* Which scale a code has: that of row >> rows_log2 and, if step is 1, of its group of columns; step is 0 where a scale
 * is of all columns. */
KILN_ARGS_BEGIN
typedef struct kiln_w8a8_scales {
    const float *values;
    int64_t cols;
    uint32_t rows_log2; /* 0, KILN_W8A8_GROUP_LOG2, or 63 for all */
    uint32_t step;
} kiln_w8a8_scales;
KILN_ARGS_END

KILN_ARGS_BEGIN
typedef struct kiln_w8a8_args {
    void *d;
    const uint8_t *a;
    const uint8_t *b;
    const void *bias; /* NULL: 0 */
    float *partials;  /* [splits, m, n]; NULL with one split */
    kiln_w8a8_scales a_scales;
    kiln_w8a8_scales b_scales;
    int64_t m;
    int64_t n;
    int64_t k;
    int64_t d_stride;
    int64_t a_stride;
    int64_t b_stride;
    uint32_t grouped;   /* non-zero: products of each group of columns are scaled and added for themselves */
    uint32_t splits;    /* how many blocks share the columns of a and b */
    uint32_t split;     /* columns of each: whole groups */
    uint32_t tile_rows; /* tiles of d's height */
    uint32_t wide;      /* non-zero: the rows of a and b are 16-byte aligned */
    float scale;
    uint32_t gated; /* non-zero: there is an activation, kiln_gated with these: */
    float bound;
    float coefficients[KILN_W8A8_COEFFICIENTS];
    uint32_t stages; /* of k in shared memory: kernels of matrix instructions */
} kiln_w8a8_args;
KILN_ARGS_END

#endif
