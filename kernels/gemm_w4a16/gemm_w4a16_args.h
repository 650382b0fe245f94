/* gemm_w4a16: the one argument of its kernels, on every backend. */
#ifndef KILN_KERNELS_GEMM_W4A16_ARGS_H
#define KILN_KERNELS_GEMM_W4A16_ARGS_H

#include "kernels/common/geometry.h"

enum {
    KILN_W4A16_TILE = 64,   /* rows and columns of d that a block does in gemm_w4a16_tiles */
    KILN_W4A16_ROWS = 8,    /* the most rows of a in gemm_w4a16_rows */
    KILN_W4A16_COLUMNS = 4, /* rows of weights that a subgroup does there */
    KILN_W4A16_BLOCK_COLUMNS = KILN_W4A16_COLUMNS * (KILN_BLOCK / KILN_SUBGROUP),
    KILN_W4A16_COEFFICIENTS = 9,
    KILN_W4A16_CHUNK = 32,     /* elements of k: 16 bytes of weights, all of one group */
    KILN_W4A16_ONE_GROUP = 31, /* group_log2 where all of k is a group */
    /* gemm_w4a16_mma_few: of k, of a wave at a time; elements of a that a block has in shared memory, where what it
     * does of k at a time are not more. */
    KILN_W4A16_STEP = 128,
    KILN_W4A16_KEPT = 8192
};

KILN_ARGS_BEGIN
typedef struct kiln_gemm_w4a16_args {
    void *d;
    const void *a;
    const uint8_t *weights;
    const void *scales;
    const void *zeros;     /* NULL: 0 */
    const void *bias;      /* NULL: 0 */
    const void *pre_scale; /* NULL: 1 */
    float *partials;       /* [splits, m, n]; NULL with one split, unless rows of weights are paired */
    int64_t m;
    int64_t n;
    int64_t k;
    int64_t d_stride;
    int64_t a_stride;
    int64_t scale_row_step;   /* elements between the scales of neighbouring rows of weights, as between zeros */
    int64_t scale_group_step; /* and of neighbouring groups */
    uint32_t group_log2;
    uint32_t splits;    /* how many blocks share k */
    uint32_t split;     /* of k, of each: a multiple of 64; in gemm_w4a16_mma_few that in shared memory */
    uint32_t tile_rows; /* tiles of d's height */
    uint32_t wide;      /* non-zero: rows of a and of weights, and pre_scale, are 16-byte aligned */
    float scale;
    const void *c;           /* NULL: 0 */
    const void *norm_weight; /* NULL: none; gemm_w4a16_fused_rows has it as pre_scale too */
    int64_t c_stride;
    float norm_eps;
    float mean; /* 1 / k */
    /* Non-zero: there are rows of weights n below those of d's columns, and their results are factors of d. */
    uint32_t paired;
    uint32_t activated; /* non-zero: there is an activation, kiln_gated with these: */
    float bound;
    float coefficients[KILN_W4A16_COEFFICIENTS];
} kiln_gemm_w4a16_args;
KILN_ARGS_END

#endif
