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
    uint32_t stages; /* of k in shared memory: gemm_mma_* */
} kiln_gemm_args;

KILN_ARGS_SIZE(kiln_gemm_args, 208);
KILN_ARGS_OFFSET(kiln_gemm_args, d, 0);
KILN_ARGS_OFFSET(kiln_gemm_args, a, 8);
KILN_ARGS_OFFSET(kiln_gemm_args, b, 16);
KILN_ARGS_OFFSET(kiln_gemm_args, c, 24);
KILN_ARGS_OFFSET(kiln_gemm_args, bias, 32);
KILN_ARGS_OFFSET(kiln_gemm_args, partials, 40);
KILN_ARGS_OFFSET(kiln_gemm_args, m, 48);
KILN_ARGS_OFFSET(kiln_gemm_args, n, 56);
KILN_ARGS_OFFSET(kiln_gemm_args, k, 64);
KILN_ARGS_OFFSET(kiln_gemm_args, d_stride, 72);
KILN_ARGS_OFFSET(kiln_gemm_args, a_stride, 80);
KILN_ARGS_OFFSET(kiln_gemm_args, b_stride, 88);
KILN_ARGS_OFFSET(kiln_gemm_args, c_stride, 96);
KILN_ARGS_OFFSET(kiln_gemm_args, d_batch_stride, 104);
KILN_ARGS_OFFSET(kiln_gemm_args, a_batch_stride, 112);
KILN_ARGS_OFFSET(kiln_gemm_args, b_batch_stride, 120);
KILN_ARGS_OFFSET(kiln_gemm_args, c_batch_stride, 128);
KILN_ARGS_OFFSET(kiln_gemm_args, batch, 136);
KILN_ARGS_OFFSET(kiln_gemm_args, splits, 140);
KILN_ARGS_OFFSET(kiln_gemm_args, split, 144);
KILN_ARGS_OFFSET(kiln_gemm_args, tile_rows, 148);
KILN_ARGS_OFFSET(kiln_gemm_args, wide, 152);
KILN_ARGS_OFFSET(kiln_gemm_args, scale, 156);
KILN_ARGS_OFFSET(kiln_gemm_args, gated, 160);
KILN_ARGS_OFFSET(kiln_gemm_args, bound, 164);
KILN_ARGS_OFFSET(kiln_gemm_args, coefficients, 168);
KILN_ARGS_OFFSET(kiln_gemm_args, stages, 204);

#endif
