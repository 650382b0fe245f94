/* gemm_nvfp4: the one argument of its kernels, on every backend, and where a factor has its scales. */
#ifndef KILN_KERNELS_GEMM_NVFP4_ARGS_H
#define KILN_KERNELS_GEMM_NVFP4_ARGS_H

#include "kernels/common/geometry.h"

enum {
    KILN_NVFP4_COEFFICIENTS = 9,
    KILN_NVFP4_TILE = 64,      /* rows and columns of d that a block does in gemm_nvfp4_tiles */
    KILN_NVFP4_ROWS = 8,       /* rows of a that a block does in gemm_nvfp4_rows */
    KILN_NVFP4_ROWS_MOST = 16, /* for how many that kernel is */
    KILN_NVFP4_COLUMNS = 4,    /* rows of b that a subgroup does there */
    KILN_NVFP4_BLOCK_COLUMNS = KILN_NVFP4_COLUMNS * (KILN_BLOCK / KILN_SUBGROUP),
    KILN_NVFP4_CHUNK = 32 /* elements of k: 16 bytes of a row's codes, two blocks */
};

/* A matrix in NVFP4. */
KILN_ARGS_BEGIN
typedef struct kiln_nvfp4_operand {
    const uint8_t *codes;
    const uint8_t *scales;
    const float *global_scale;
    int64_t stride; /* bytes between rows of codes */
    int64_t scale_cols;
    uint32_t swizzled;
    uint32_t each; /* non-zero: each row has a global scale */
} kiln_nvfp4_operand;
KILN_ARGS_END

KILN_ARGS_BEGIN
typedef struct kiln_gemm_nvfp4_args {
    void *d;
    const void *bias; /* NULL: 0 */
    float *partials;  /* [splits, m, n]; NULL with one split */
    kiln_nvfp4_operand a;
    kiln_nvfp4_operand b;
    int64_t m;
    int64_t n;
    int64_t k;
    int64_t d_stride;
    uint32_t splits;    /* how many blocks share k */
    uint32_t split;     /* of k, of each: a multiple of 128 */
    uint32_t tile_rows; /* tiles of d's height */
    uint32_t wide;      /* non-zero: rows of codes are 16-byte aligned, their scales 4-byte, k is of whole chunks */
    float scale;
    uint32_t gated; /* non-zero: there is an activation, kiln_gated with these: */
    float bound;
    float coefficients[KILN_NVFP4_COEFFICIENTS];
} kiln_gemm_nvfp4_args;
KILN_ARGS_END

#endif
