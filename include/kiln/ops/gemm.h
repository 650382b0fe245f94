/* Matrix products, and the 4-bit weights of one of them. ops.h has the rules for every operator. */
#ifndef KILN_OPS_GEMM_H
#define KILN_OPS_GEMM_H

#include <kiln/ops/operator.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- gemm: d = activation(scale * a * b^T + c + bias) ------------------------------------------------------------ */

/* The function applied to each element of the result. */
typedef enum kiln_gemm_activation {
    KILN_GEMM_NONE,
    KILN_GEMM_GELU_ERF,
    KILN_GEMM_GELU_TANH,
    KILN_GEMM_GELU_QUICK,
    KILN_GEMM_SILU,
} kiln_gemm_activation;

/* The tile of d that a block computes, if the image has kernels for several tiles. Kernels that use matrix units
 * (tensor cores) require the rows of a and b to be aligned to 16 bytes. */
typedef enum kiln_gemm_tile {
    KILN_GEMM_TILE_AUTO,     /* the tile with the shortest predicted time */
    KILN_GEMM_TILE_PORTABLE, /* 64 x 64, in f32 arithmetic; available in every image */
    KILN_GEMM_TILE_SMALL,    /* NVIDIA: 64 x 128, on sm_90 128 x 64; AMD, and gemm_nvfp4: 64 x 64 */
    KILN_GEMM_TILE_LARGE,    /* sm_80 and later: 128 x 256; AMD: 128 x 128 (gemm on CDNA: 256 x 128); gemm_nvfp4 and,
                              * except on sm_90, gemm_fp8: 128 x 128 */
    KILN_GEMM_TILE_MEDIUM,   /* sm_90: 128 x 128; gemm_nvfp4 and other images lack it and use the portable tile */
} kiln_gemm_tile;

/* The accuracy that gemm may trade for speed, if the device has the instructions. */
typedef enum kiln_gemm_compute {
    KILN_GEMM_COMPUTE_F32,  /* none: f32 factors are multiplied in f32 */
    KILN_GEMM_COMPUTE_TF32, /* gemm_f32: round factors to TF32, 10 bits of fraction, where the image has matrix units */
    KILN_GEMM_COMPUTE_DOT,  /* gemm_f16 and gemm_bf16 on a CPU: use dot products of 16-bit numbers, see gemm_f32 */
} kiln_gemm_compute;

/* How gemm_fp8 accumulates products if neither a nor b has scales per 128 columns. */
typedef enum kiln_gemm_accumulation {
    KILN_GEMM_ACCUMULATION_TWO_LEVEL, /* NVIDIA's matrix units sum at most 128 columns; the partial sums are added in
                                       * f32 */
    KILN_GEMM_ACCUMULATION_FAST,      /* they may sum all columns, if that is faster: see gemm_fp8 */
} kiln_gemm_accumulation;

typedef struct kiln_gemm_params {
    void *d;          /* [batch, m, n]; may be c, with the same strides */
    const void *a;    /* [batch, m, k] */
    const void *b;    /* [batch, n, k]: the layout in which a linear layer stores its weights, [out, in];
                       * [batch, 2 * n, k] if gated */
    const void *c;    /* [batch, m, n]; NULL: 0 */
    const void *bias; /* [n], [2 * n] if gated; NULL: 0 */
    int64_t batch;    /* number of products, 1 for a single one; 0 computes nothing, as for any size */
    int64_t m;        /* batch, m, n and k are at most 2^31 - 1 */
    int64_t n;
    int64_t k;              /* 0: the product is 0, and a and b may be NULL */
    int64_t d_stride;       /* 0: n */
    int64_t a_stride;       /* 0: k */
    int64_t b_stride;       /* 0: k */
    int64_t c_stride;       /* 0: n */
    int64_t d_batch_stride; /* elements between matrices; 0: packed. At least the size of a row: matrices may be
                             * interleaved */
    int64_t a_batch_stride; /* this field and the next two: as d_batch_stride */
    int64_t b_batch_stride;
    int64_t c_batch_stride;
    void *workspace;       /* device memory, 16-byte aligned; NULL if workspace_size is 0 */
    size_t workspace_size; /* 0, or at least kiln_gemm_<precision>_workspace_size() */
    float scale;           /* BLAS's alpha; finite; 0: 1 */
    int32_t activation;    /* kiln_gemm_activation */
    int32_t tile;    /* kiln_gemm_tile; falls back to the portable one if the image or tensors do not support it */
    int32_t compute; /* kiln_gemm_compute; ignored if the value applies to another precision or device */
    const void *norm_weight; /* [k]: the rows of a are first normalised as by kiln_rmsnorm; NULL: no normalisation */
    float norm_eps;          /* 0: 1e-6; else from 1e-30 to 1e30 */
    int32_t gated; /* 1: gated product: d has n columns, c must be NULL, and n is at most 2^30 - 1; 0: plain product */
} kiln_gemm_params;

/* Computes d = activation(scale * a * b^T + c + bias) for each matrix of the batch. Products are accumulated in f32,
 * one at a time or in the order of the device's matrix units. With TF32 each factor is first rounded to nearest, with a
 * relative error of 2^-11; sums remain f32. sm_80 and later have matrix units for TF32; the kernels for few rows do not
 * use them. For up to 8 rows of a there is a kernel that reads b only once; for up to 16 rows there is one if the image
 * uses matrix units, the rows of a and b are aligned to 16 bytes and k is a multiple of 8. The matrix units of gfx90a
 * treat subnormal f16 and bf16 numbers as zero.
 *
 * A CPU multiplies f16 and bf16 in f32 arithmetic at every level, unless KILN_GEMM_COMPUTE_DOT requests the dot-product
 * instructions that processors of level x86-64-v4 may have: AVX-512 BF16 for bf16, or AMX if the device was opened with
 * allow_amx; AMX-FP16 only for f16. These instructions add the products of even and of odd k, or of each pair of k, in
 * f32 with rounding to nearest, so that the last bits of a sum differ, and treat subnormal bf16 numbers and sums as 0.
 *
 * With norm_weight the first factor is a[i][k] / sqrt(mean of a[i]^2 + norm_eps) * norm_weight[k], rounded to the
 * precision at most once. Some kernels instead multiply by the rounded a[i][k] * norm_weight[k] and divide the sum by
 * the square root; none does so in f16, where that factor might overflow. A row whose sum of squares overflows f32
 * produces zeros or NaN.
 *
 * A gated product has 2 * n rows of b and 2 * n elements of bias, those of the gate first:
 *
 *     d[i][j] = activation(scale * a[i] b[j]^T + bias[j]) * (scale * a[i] b[n + j]^T + bias[n + j])
 *
 * Either factor may be rounded to the precision once before the activation. With KILN_GEMM_SILU this is SwiGLU
 * (Shazeer, arXiv 2002.05202).
 *
 * Calls with norm_weight or gated need one launch and no workspace for up to 8 rows of a, and for up to 16 rows if gemm
 * has kernels for that many; the exception is f16 with norm_weight, if matrix units compute products of few rows. All
 * other such calls fail with KILN_ERROR_INVALID_ARGUMENT without a workspace: one launch normalises the rows first, and
 * another applies the gate to the product if no kernel does both. */
KILN_OPERATOR_FUNCTION(gemm_f32, kiln_gemm_params)
KILN_OPERATOR_FUNCTION(gemm_f16, kiln_gemm_params)
KILN_OPERATOR_FUNCTION(gemm_bf16, kiln_gemm_params)

/* Computes the workspace size in bytes: the memory that gemm needs to split a long k among several blocks when d has
 * too few tiles to occupy the device, and the memory that calls with norm_weight or gated need between their launches;
 * 0 if neither applies. The pointers are ignored, except for whether norm_weight is NULL: the size is sufficient for
 * any alignment. It depends on the kernels of the image for the stream's device, which this function loads unless it is
 * already loaded. Without a workspace k is not split: the product is slower and may differ in the last bits. Returns
 * KILN_OK, KILN_ERROR_INVALID_ARGUMENT, and the same statuses as kiln_module_get. */
KILN_WORKSPACE_FUNCTION(gemm_f32, kiln_gemm_params)
KILN_WORKSPACE_FUNCTION(gemm_f16, kiln_gemm_params)
KILN_WORKSPACE_FUNCTION(gemm_bf16, kiln_gemm_params)

/* ---- gemm_fp8: d = activation(scale * (a * a_scales) (b * b_scales)^T + bias), a and b E4M3 ---------------------- */

typedef struct kiln_gemm_fp8_params {
    void *d;               /* [m, n], of the precision */
    const uint8_t *a;      /* [m, k], OCP E4M3 on every device */
    const uint8_t *b;      /* [n, k]: the weights of a linear layer in their stored layout, [out, in] */
    const float *a_scales; /* [a_scale_rows, a_scale_cols] */
    const float *b_scales; /* [b_scale_rows, b_scale_cols] */
    const void *bias;      /* [n], of the precision; NULL: 0 */
    int64_t m;             /* m, n and k are at most 2^31 - 1 */
    int64_t n;
    int64_t k;             /* 0: the product is 0, and a, b and their scales may be NULL */
    int64_t a_scale_rows;  /* 1, m / 128 rounded up, or m (0: m): determines how many rows share a scale */
    int64_t a_scale_cols;  /* 1 (0: 1), or k / 128 rounded up: determines how many columns do */
    int64_t b_scale_rows;  /* 1, n / 128 rounded up, or n (0: n) */
    int64_t b_scale_cols;  /* 1 (0: 1), or k / 128 rounded up */
    int64_t d_stride;      /* 0: n */
    int64_t a_stride;      /* 0: k */
    int64_t b_stride;      /* 0: k */
    void *workspace;       /* device memory, 16-byte aligned; NULL if workspace_size is 0 */
    size_t workspace_size; /* 0, or at least kiln_gemm_fp8_<precision>_workspace_size() */
    float scale;           /* finite; 0: 1 */
    int32_t activation;    /* kiln_gemm_activation */
    int32_t tile;         /* kiln_gemm_tile; falls back to the portable one if the image or tensors do not support it */
    int32_t accumulation; /* kiln_gemm_accumulation */
} kiln_gemm_fp8_params;

/* The product of two tensors quantised by quantize_fp8, with codes and scales in the format and number that it writes.
 * There is a scale per tensor, per row (a token of a, a channel of b), per 128 columns of a row, or per block of 128 x
 * 128; a and b may differ in this. With p the sum of the products of codes over a group of 128 columns of k,
 *
 *     d = activation(scale * (the sum over k's groups of 128 of a_scale * b_scale * p) + bias)
 *
 * in f32, with one rounding to the precision at the end. The products in p are added one at a time, or in the order of
 * the device's matrix units. On NVIDIA, matrix units sum at most 128 columns before the result is added in f32
 * (two-level accumulation: these units truncate, which biases sums toward 0, the more so the larger k is, if all
 * products have one sign). Fast accumulation omits this on sm_90 if there are no scales per 128 columns. Its error is
 * then 7 % at k = 4096 and 13 % at k = 8192 if all products have one sign, and 0.2 % if signs are mixed (relative
 * norms, measured on an H100). AMD's units accumulate in f32, over all of k if there are no scales per 128 columns;
 * gfx942's use E4M3 FNUZ, to which codes convert exactly, and those of gfx90a and gfx11 use f16, which represents E4M3
 * exactly. A code that is NaN makes its row or column of d NaN. For up to 16 rows of a there are kernels that read b
 * once, or twice if the image has no matrix-unit kernel for that many rows. */
KILN_OPERATOR_FUNCTION(gemm_fp8_f32, kiln_gemm_fp8_params)
KILN_OPERATOR_FUNCTION(gemm_fp8_f16, kiln_gemm_fp8_params)
KILN_OPERATOR_FUNCTION(gemm_fp8_bf16, kiln_gemm_fp8_params)

/* Computes the workspace size in bytes needed to split a long k among several blocks, as for gemm; 0 if splitting is
 * not faster. Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT, and the same statuses as kiln_module_get. */
KILN_WORKSPACE_FUNCTION(gemm_fp8_f32, kiln_gemm_fp8_params)
KILN_WORKSPACE_FUNCTION(gemm_fp8_f16, kiln_gemm_fp8_params)
KILN_WORKSPACE_FUNCTION(gemm_fp8_bf16, kiln_gemm_fp8_params)

/* ---- gemm_int8: d = activation(scale * (a * a_scales) (b * b_scales)^T + bias), a and b int8 --------------------- */

typedef struct kiln_gemm_int8_params {
    void *d;               /* [m, n], of the precision */
    const int8_t *a;       /* [m, k] */
    const int8_t *b;       /* [n, k]: the weights of a linear layer in their stored layout, [out, in] */
    const float *a_scales; /* [a_scale_rows, a_scale_cols] */
    const float *b_scales; /* [b_scale_rows, b_scale_cols] */
    const void *bias;      /* [n], of the precision; NULL: 0 */
    int64_t m;             /* m, n and k are at most 2^31 - 1 */
    int64_t n;
    int64_t k;             /* 0: the product is 0, and a, b and their scales may be NULL */
    int64_t a_scale_rows;  /* 1, m / 128 rounded up, or m (0: m): determines how many rows share a scale */
    int64_t a_scale_cols;  /* 1 (0: 1), or k / 128 rounded up: determines how many columns do */
    int64_t b_scale_rows;  /* 1, n / 128 rounded up, or n (0: n) */
    int64_t b_scale_cols;  /* 1 (0: 1), or k / 128 rounded up */
    int64_t d_stride;      /* 0: n */
    int64_t a_stride;      /* 0: k */
    int64_t b_stride;      /* 0: k */
    void *workspace;       /* device memory, 16-byte aligned; NULL if workspace_size is 0 */
    size_t workspace_size; /* 0, or at least kiln_gemm_int8_<precision>_workspace_size() */
    float scale;           /* finite; 0: 1 */
    int32_t activation;    /* kiln_gemm_activation */
    int32_t tile;     /* kiln_gemm_tile; falls back to the portable one if the image or tensors do not support it */
    int32_t reserved; /* must be 0 */
} kiln_gemm_int8_params;

/* The same as gemm_fp8, for tensors quantised by quantize_int8; -128 is a valid code. Products of codes are accumulated
 * exactly, in int32: over 128 columns if a or b has scales per 128 columns or k is more than 2^16, and otherwise over
 * all of k, or a block's part of it. The sums are then converted to f32 and multiplied by the scales. */
KILN_OPERATOR_FUNCTION(gemm_int8_f32, kiln_gemm_int8_params)
KILN_OPERATOR_FUNCTION(gemm_int8_f16, kiln_gemm_int8_params)
KILN_OPERATOR_FUNCTION(gemm_int8_bf16, kiln_gemm_int8_params)

/* Computes the workspace size in bytes, as for gemm_fp8. */
KILN_WORKSPACE_FUNCTION(gemm_int8_f32, kiln_gemm_int8_params)
KILN_WORKSPACE_FUNCTION(gemm_int8_f16, kiln_gemm_int8_params)
KILN_WORKSPACE_FUNCTION(gemm_int8_bf16, kiln_gemm_int8_params)

/* ---- gemm_nvfp4: d = activation(scale * a * b^T + bias), a and b in NVFP4 ---------------------------------------- */

typedef struct kiln_gemm_nvfp4_params {
    void *d;          /* [m, n], of the precision */
    const uint8_t *a; /* [m, 8 * a_scale_cols], two columns per byte, the first in the low half */
    const uint8_t *b; /* [n, 8 * b_scale_cols]: the weights of a linear layer in their stored layout, [out, in] */
    const uint8_t *a_scales;     /* [a_scale_rows, a_scale_cols], OCP E4M3 on every device, without its sign, laid out
                                  * as a_scale_layout states */
    const uint8_t *b_scales;     /* [b_scale_rows, b_scale_cols] */
    const float *a_global_scale; /* [a_global_rows], decode scales */
    const float *b_global_scale; /* [b_global_rows] */
    const void *bias;            /* [n], of the precision; NULL: 0 */
    int64_t m;                   /* m, n and k are at most 2^31 - 1 */
    int64_t n;
    int64_t k;              /* 0: the product is 0, and a, b and all scales may be NULL */
    int64_t a_scale_rows;   /* at least m (0: m); with KILN_SCALES_128X4 a multiple of 128 */
    int64_t a_scale_cols;   /* at least k / 16 rounded up (0: that); with KILN_SCALES_128X4 a multiple of 4 */
    int64_t b_scale_rows;   /* at least n (0: n); with KILN_SCALES_128X4 a multiple of 128 */
    int64_t b_scale_cols;   /* at least k / 16 rounded up (0: that); with KILN_SCALES_128X4 a multiple of 4 */
    int64_t a_global_rows;  /* 1 (0: 1): one global scale for the matrix; m: one for each row */
    int64_t b_global_rows;  /* 1 (0: 1): one global scale for the matrix; n: one for each row */
    int64_t d_stride;       /* 0: n */
    int64_t a_stride;       /* in bytes; 0: 8 * a_scale_cols */
    int64_t b_stride;       /* in bytes; 0: 8 * b_scale_cols */
    void *workspace;        /* device memory, 16-byte aligned; NULL if workspace_size is 0 */
    size_t workspace_size;  /* 0, or at least kiln_gemm_nvfp4_<precision>_workspace_size() */
    float scale;            /* finite; 0: 1 */
    int32_t a_scale_layout; /* kiln_scale_layout */
    int32_t b_scale_layout; /* kiln_scale_layout */
    int32_t activation;     /* kiln_gemm_activation */
    int32_t tile;     /* kiln_gemm_tile; falls back to the portable one if the image or tensors do not support it */
    int32_t reserved; /* must be 0 */
} kiln_gemm_nvfp4_params;

/* The product of two matrices quantised by quantize_nvfp4, with codes and scales in the format that it writes, in
 * either scale layout. An element of a or b is the product of its E2M1 code and its block's E4M3 scale, which is exact,
 * and
 *
 *     d = activation(scale * ((the sum over k of a * b) * a_global_scale * b_global_scale) + bias)
 *
 * in f32, with one rounding to the precision at the end. Products are added one at a time, or in the order of the
 * device's matrix units. Codes and scales beyond k do not affect the result, whatever their values. A scale that is NaN
 * makes its row or column of d NaN. For up to 16 rows of a there are kernels that read b once, or twice if the image
 * has no matrix-unit kernel for that many rows. */
KILN_OPERATOR_FUNCTION(gemm_nvfp4_f32, kiln_gemm_nvfp4_params)
KILN_OPERATOR_FUNCTION(gemm_nvfp4_f16, kiln_gemm_nvfp4_params)
KILN_OPERATOR_FUNCTION(gemm_nvfp4_bf16, kiln_gemm_nvfp4_params)

/* Computes the workspace size in bytes, as for gemm_fp8. */
KILN_WORKSPACE_FUNCTION(gemm_nvfp4_f32, kiln_gemm_nvfp4_params)
KILN_WORKSPACE_FUNCTION(gemm_nvfp4_f16, kiln_gemm_nvfp4_params)
KILN_WORKSPACE_FUNCTION(gemm_nvfp4_bf16, kiln_gemm_nvfp4_params)

/* ---- gemm_w4a16: d = activation(scale * (a * pre_scale) * w^T + c + bias), w of 4-bit integers ------------------ */

/* The layout of the scales and the zeros. */
typedef enum kiln_w4a16_scales {
    KILN_W4A16_SCALES_N_K, /* [n, k / group] */
    KILN_W4A16_SCALES_K_N, /* [k / group, n] */
} kiln_w4a16_scales;

/* The layout of the weights; kiln/w4a16.h converts between layouts. */
typedef enum kiln_w4a16_layout {
    KILN_W4A16_CANONICAL, /* [n, k / 2]: the low half of a byte holds the element of even k */
    KILN_W4A16_SM80_V1,   /* tiles of 16 x 64, in the order in which the matrix units of sm_75 and later read them */
} kiln_w4a16_layout;

/* The tile of d that a block computes, if the image has kernels for several. */
typedef enum kiln_w4a16_tile {
    KILN_W4A16_TILE_AUTO,     /* the tile with the shortest predicted time */
    KILN_W4A16_TILE_PORTABLE, /* 64 x 64, in f32 arithmetic; available in every image; canonical weights only */
    KILN_W4A16_TILE_64,       /* 64 x 64 (sm_90: 64 x 256), on matrix units; NVIDIA: weights in sm80_v1 only */
    KILN_W4A16_TILE_128,      /* 128 x 128 (sm_90: 128 x 256; gfx90a, gfx942: 256 x 128), with the same conditions */
    KILN_W4A16_TILE_256,      /* sm_90: 256 x 128, with the same conditions; other images: the same as AUTO */
} kiln_w4a16_tile;

typedef struct kiln_gemm_w4a16_params {
    void *d;                /* [m, n] */
    const void *a;          /* [m, k] */
    const uint8_t *weights; /* [n, k / 2]: two integers q from -8 to 7 per byte, in weight_layout */
    const void *scales;     /* [n, k / group] or [k / group, n], as scale_layout states */
    const void *zeros;      /* the same shape as scales: added to q * scale, so not integer zero points; NULL: 0 */
    const void *bias;       /* [n]; NULL: 0 */
    const void *pre_scale;  /* [k]: factors of the columns of a; NULL: 1 */
    int64_t m;              /* m, n and k are at most 2^31 - 1 */
    int64_t n;
    int64_t k;               /* even. 0: the product is 0, and a, weights, scales and zeros may be NULL */
    int64_t group;           /* elements of a row that share a scale: 32, 64, 128, 256 or k; divides k; 0: k */
    int64_t d_stride;        /* 0: n */
    int64_t a_stride;        /* 0: k */
    void *workspace;         /* device memory, 16-byte aligned; NULL if workspace_size is 0 */
    size_t workspace_size;   /* 0, or at least kiln_gemm_w4a16_<precision>_workspace_size() */
    float scale;             /* finite; 0: 1 */
    int32_t scale_layout;    /* kiln_w4a16_scales */
    int32_t weight_layout;   /* kiln_w4a16_layout */
    int32_t tile;            /* kiln_w4a16_tile; the same as AUTO if there is no kernel for it */
    const void *c;           /* [m, n]: added to the product; may be d, with the same stride; NULL: 0 */
    int64_t c_stride;        /* 0: n */
    const void *norm_weight; /* [k]: the rows of a are first normalised as by kiln_rmsnorm; NULL: no normalisation */
    float norm_eps;          /* 0: 1e-6; else from 1e-30 to 1e30 */
    int32_t activation;      /* kiln_gemm_activation */
    int32_t gated;    /* 0 or 1. 1: gated product, with weights, scales, zeros and bias for 2 * n rows, see below */
    int32_t reserved; /* must be 0 */
} kiln_gemm_w4a16_params;

/* d[i][j] = activation(scale * sum over k of a[i][k] * pre_scale[k] * (q[j][k] * scales[j][k / group] +
 * zeros[j][k / group]) + c[i][j] + bias[j]). All tensors but the weights have the precision of the function. Zeros are
 * added after scaling; kiln/w4a16.h converts the integer zero points of AWQ (Lin et al., arXiv 2306.00978) and GPTQ
 * (Frantar et al., arXiv 2210.17323).
 *
 * Products are accumulated in f32. A product with at most 8 rows of a reads the weights once. Every image accepts
 * canonical weights. AMD's matrix units (gfx90a, gfx942, gfx11, gfx12; f16 and bf16) compute products with more than 8
 * rows of a if k is a multiple of 32, and products with up to 16 rows, which then read the weights once, if k is a
 * multiple of 128. Both require that the rows of a, the weights, pre_scale and norm_weight are 16-byte aligned and that
 * the portable tile is not requested. They round a * pre_scale to the precision, and with more than 8 rows they may
 * round q * scale + zero; those of gfx90a treat subnormal numbers as 0. For few rows of a the integers may be
 * multiplied before they are scaled: an infinity in a may then produce NaN, and sums of numbers above 1e37 may
 * overflow, where multiplying by q * scale + zero would do neither.
 *
 * On NVIDIA, only the portable kernels multiply canonical weights. An image with matrix-unit kernels for sm80_v1 is
 * faster with weights in that layout; other images reject them. With sm80_v1, n must be a multiple of 16 and k a
 * multiple of 64, and the rows of a, the weights and pre_scale must be 16-byte aligned; a product with up to 16 rows
 * then reads the weights once. In that layout a * pre_scale is rounded to the precision before the multiplication, and
 * in a product with more than 16 rows so is q * scale + zero. On sm_90 such a product multiplies q * scale + zero,
 * instead of a, by pre_scale, and rounds the result.
 *
 * With norm_weight, a[i][k] * norm_weight[k] / sqrt(mean of a[i]^2 + norm_eps) replaces a[i][k]. Calls with up to 8
 * rows of a and without pre_scale multiply by a * norm_weight and divide the sum by the square root, if the weights are
 * canonical, or if they are sm80_v1, k is at most 16384 and the precision is bf16, to which the factor is then rounded.
 * AMD's matrix units compute up to 16 rows from normalised rows rounded to the precision, which are stored in the
 * workspace if there is one and the rows are long. All other calls need the workspace, which holds the normalised rows.
 *
 * A gated product has 2 * n rows of weights, scales and zeros, and 2 * n elements of bias, those of the gate first:
 * d[i][j] = activation(the result of row j) * (the result of row n + j), and c must be NULL. It needs the workspace,
 * which holds both results in f32: with canonical weights for more than 8 rows of a (16 on AMD's matrix units), and
 * with sm80_v1 for more than 16 rows or if a tile is requested. With canonical weights and that many rows of a, an
 * activation needs the workspace too. */
KILN_OPERATOR_FUNCTION(gemm_w4a16_f32, kiln_gemm_w4a16_params)
KILN_OPERATOR_FUNCTION(gemm_w4a16_f16, kiln_gemm_w4a16_params)
KILN_OPERATOR_FUNCTION(gemm_w4a16_bf16, kiln_gemm_w4a16_params)

/* Computes the workspace size in bytes: the memory needed to split a long k among several blocks, and the memory that
 * calls with norm_weight, gated or an activation need, as described above; 0 if neither applies. The pointers are
 * ignored, except for whether zeros, pre_scale and norm_weight are NULL: the size is sufficient for any alignment. It
 * depends on the kernels of the image for the stream's device, which this function loads unless it is already loaded.
 * Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT (also for a weight_layout that the image does not accept), and the same
 * statuses as kiln_module_get. */
KILN_WORKSPACE_FUNCTION(gemm_w4a16_f32, kiln_gemm_w4a16_params)
KILN_WORKSPACE_FUNCTION(gemm_w4a16_f16, kiln_gemm_w4a16_params)
KILN_WORKSPACE_FUNCTION(gemm_w4a16_bf16, kiln_gemm_w4a16_params)

/* ---- dequantize_w4a16: y = weights * scales + zeros, of 4-bit integers ------------------------------------------- */

typedef struct kiln_dequantize_w4a16_params {
    void *y;                /* [n, k] */
    const uint8_t *weights; /* [n, k / 2], canonical; this and the following fields are as in kiln_gemm_w4a16_params */
    const void *scales;     /* [n, k / group] or [k / group, n], as scale_layout states */
    const void *zeros;      /* the shape of scales; NULL: 0 */
    int64_t n;              /* n and k are at most 2^31 - 1 */
    int64_t k;              /* even */
    int64_t group;          /* elements of a row that share a scale: 32, 64, 128, 256 or k; divides k; 0: k */
    int64_t y_stride;       /* 0: k */
    int32_t scale_layout;   /* kiln_w4a16_scales */
    int32_t reserved;       /* must be 0 */
} kiln_dequantize_w4a16_params;

/* y = q * scale + zero for canonical weights: the elements by which kiln_gemm_w4a16 multiplies, rounded once to the
 * precision. Without a fused multiply-add (x86-64-v2), q * scale is rounded first, which is visible only in f32. */
KILN_OPERATOR_FUNCTION(dequantize_w4a16_f32, kiln_dequantize_w4a16_params)
KILN_OPERATOR_FUNCTION(dequantize_w4a16_f16, kiln_dequantize_w4a16_params)
KILN_OPERATOR_FUNCTION(dequantize_w4a16_bf16, kiln_dequantize_w4a16_params)

#ifdef __cplusplus
}
#endif

#endif
