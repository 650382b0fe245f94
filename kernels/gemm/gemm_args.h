/* gemm: the one argument of its kernels, on every backend. */
#ifndef KILN_KERNELS_GEMM_ARGS_H
#define KILN_KERNELS_GEMM_ARGS_H

#include "kernels/common/geometry.h"

enum {
    KILN_GEMM_COEFFICIENTS = 9,
    KILN_GEMM_TILE = 64,   /* rows and columns of d that a block does in gemm_tiles */
    KILN_GEMM_ROWS = 8,    /* the most rows of a in gemm_rows */
    KILN_GEMM_COLUMNS = 4, /* rows of b that a subgroup does in gemm_rows */
    KILN_GEMM_BLOCK_COLUMNS = KILN_GEMM_COLUMNS * (KILN_BLOCK / KILN_SUBGROUP),
    KILN_GEMM_DEPTH = 32 /* elements of a row that are in shared memory at a time: a split is a multiple of it */
};

KILN_ARGS_BEGIN
typedef struct kiln_gemm_args {
    void *d;
    const void *a;
    const void *b;
    const void *c;    /* NULL: 0 */
    const void *bias; /* NULL: 0 */
    float *partials;  /* [splits, batch, m, n]; NULL with one split */
    int64_t m;
    int64_t n;
    int64_t k;
    int64_t d_stride;
    int64_t a_stride;
    int64_t b_stride;
    int64_t c_stride;
    int64_t d_batch_stride;
    int64_t a_batch_stride;
    int64_t b_batch_stride;
    int64_t c_batch_stride;
    uint32_t batch;
    uint32_t splits;    /* how many blocks share the columns of a and b */
    uint32_t split;     /* columns of each */
    uint32_t tile_rows; /* tiles of d's height */
    uint32_t wide;      /* non-zero: the rows of a and b are 16-byte aligned */
    float scale;
    uint32_t gated; /* non-zero: there is an activation, kiln_gated with these: */
    float bound;
    float coefficients[KILN_GEMM_COEFFICIENTS];
    uint32_t stages; /* of k in shared memory: gemm_mma_*; on a CPU, which has none, kiln_gemm_compute */
} kiln_gemm_args;
KILN_ARGS_END

#endif
