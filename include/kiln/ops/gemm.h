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

/* The tile of d that a block computes, where the image has kernels for several tiles. Those that use matrix units
 * (tensor cores) need the rows of a and b aligned to 16 bytes. */
typedef enum kiln_gemm_tile {
    KILN_GEMM_TILE_AUTO,     /* the tile with the shortest predicted time */
    KILN_GEMM_TILE_PORTABLE, /* 64 x 64, in f32 arithmetic; every image has it */
    KILN_GEMM_TILE_SMALL,    /* on NVIDIA 64 x 128, on sm_90 128 x 64; on AMD, and gemm_nvfp4's, 64 x 64 */
    KILN_GEMM_TILE_LARGE,    /* on sm_80 and later 128 x 256; on AMD 128 x 128 (gemm, CDNA: 256 x 128), as gemm_nvfp4's
                              * and, except on sm_90, gemm_fp8's */
    KILN_GEMM_TILE_MEDIUM,   /* on sm_90 128 x 128; gemm_nvfp4 and other images have none and use the portable tile */
} kiln_gemm_tile;

/* What gemm may trade for speed, if the device has the instructions. */
typedef enum kiln_gemm_compute {
    KILN_GEMM_COMPUTE_F32,  /* nothing: f32 factors are multiplied in f32 */
    KILN_GEMM_COMPUTE_TF32, /* gemm_f32: round factors to TF32, 10 bits of fraction, where the image has matrix units */
    KILN_GEMM_COMPUTE_DOT,  /* gemm_f16 and gemm_bf16 on a CPU: sum by dot products of 16-bit numbers, see gemm_f32 */
} kiln_gemm_compute;

/* How gemm_fp8 adds up products if no scale is for 128 columns. */
typedef enum kiln_gemm_accumulation {
    KILN_GEMM_ACCUMULATION_TWO_LEVEL, /* NVIDIA's matrix units sum at most 128 columns; these sums are added in f32 */
    KILN_GEMM_ACCUMULATION_FAST,      /* they may sum all columns, where that is faster: see gemm_fp8 */
} kiln_gemm_accumulation;

typedef struct kiln_gemm_params {
    void *d;          /* [batch, m, n]; may be c, with the same strides */
    const void *a;    /* [batch, m, k] */
    const void *b;    /* [batch, n, k]: the layout in which a linear layer stores its weights, [out, in];
                       * [batch, 2 * n, k] if gated */
    const void *c;    /* [batch, m, n]; NULL: 0 */
    const void *bias; /* [n], [2 * n] if gated; NULL: 0 */
    int64_t batch;    /* 1 for a single product; 0 computes nothing, as for any size */
    int64_t m;        /* batch, m, n and k are at most 2^31 - 1 */
    int64_t n;
    int64_t k;              /* 0: the product is 0, and a and b may be NULL */
    int64_t d_stride;       /* 0: n */
    int64_t a_stride;       /* 0: k */
    int64_t b_stride;       /* 0: k */
    int64_t c_stride;       /* 0: n */
    int64_t d_batch_stride; /* elements between matrices; 0: packed. At least a row: matrices may be interleaved */
    int64_t a_batch_stride; /* this field and the next two: likewise */
    int64_t b_batch_stride;
    int64_t c_batch_stride;
    void *workspace;         /* of the device, 16-byte aligned; NULL if workspace_size is 0 */
    size_t workspace_size;   /* 0, or at least kiln_gemm_<precision>_workspace_size() */
    float scale;             /* BLAS's alpha; finite; 0: 1 */
    int32_t activation;      /* kiln_gemm_activation */
    int32_t tile;            /* kiln_gemm_tile; the portable one where the image or the tensors do not allow it */
    int32_t compute;         /* kiln_gemm_compute; what is for another precision or device changes nothing */
    const void *norm_weight; /* [k]: rows of a are normalised first, as kiln_rmsnorm does; NULL: they are not */
    float norm_eps;          /* 0: 1e-6; else from 1e-30 to 1e30 */
    int32_t gated;           /* 1: d is a gated product of n columns, and c is NULL; n is at most 2^30 - 1 */
} kiln_gemm_params;

/* Products are accumulated in f32, one by one or in the order of the chip's matrix units. With TF32 each factor is
 * first rounded to nearest, with a relative error of 2^-11; sums remain f32. sm_80 and later have matrix units for
 * TF32; the kernels for few rows do not use them. For up to 8 rows of a there is a kernel that reads b only once; for
 * up to 16 if the image uses matrix units, the rows of a and b are aligned to 16 bytes and k is a multiple of 8. The
 * matrix units of gfx90a treat subnormal f16 and bf16 numbers as zeros.
 *
 * A CPU multiplies f16 and bf16 in f32 arithmetic, as every level does it, unless KILN_GEMM_COMPUTE_DOT asks for the
 * dot products that processors of level x86-64-v4 may have: of bf16 by AVX-512 BF16, or by AMX where the device was
 * opened with allow_amx; of f16 by AMX-FP16 alone. They add the products of even and of odd k, or of each pair of k, in
 * f32 and to nearest, so that the last bits of a sum differ, and treat subnormal bf16 numbers and sums as 0.
 *
 * With norm_weight the first factor is a[i][k] / sqrt(mean of a[i]^2 + norm_eps) * norm_weight[k], rounded to the
 * precision at most once. Some kernels multiply with a[i][k] * norm_weight[k], rounded, and divide the sum by the root
 * instead; none does in f16, where that factor might overflow. A row whose sum of squares overflows f32 gives zeros or
 * NaN.
 *
 * A gated product has 2 * n rows of b and elements of bias, those of the gates first:
 *
 *     d[i][j] = activation(scale * a[i] b[j]^T + bias[j]) * (scale * a[i] b[n + j]^T + bias[n + j])
 *
 * Either factor may be rounded to the precision once before the activation. KILN_GEMM_SILU makes it SwiGLU (Shazeer,
 * arXiv 2002.05202).
 *
 * Such calls take one launch and no workspace for up to 8 rows of a, and for up to 16 where gemm has kernels for so
 * many; f16 with norm_weight does not if matrix units do few rows. All others are refused without a workspace: one
 * launch normalises the rows first, and another gates the product if no kernel does both. */
KILN_OPERATOR_FUNCTION(gemm_f32, kiln_gemm_params)
KILN_OPERATOR_FUNCTION(gemm_f16, kiln_gemm_params)
KILN_OPERATOR_FUNCTION(gemm_bf16, kiln_gemm_params)

/* The bytes of workspace that let gemm divide a long k among several blocks where d has too few tiles to occupy the
 * device, and what calls with norm_weight or gated need between their launches; 0 where neither is so. The pointers are
 * ignored, except whether norm_weight is NULL: the size is sufficient whatever their alignment. It depends on the
 * kernels of the image for the stream's device, which this function loads unless it is already loaded. Without
 * workspace k is not divided: the product is slower and may differ in the last bits. Returns KILN_OK,
 * KILN_ERROR_INVALID_ARGUMENT, and what loading can return. */
KILN_WORKSPACE_FUNCTION(gemm_f32, kiln_gemm_params)
KILN_WORKSPACE_FUNCTION(gemm_f16, kiln_gemm_params)
KILN_WORKSPACE_FUNCTION(gemm_bf16, kiln_gemm_params)

/* ---- gemm_fp8: d = activation(scale * (a * a_scales) (b * b_scales)^T + bias), a and b E4M3 ---------------------- */

typedef struct kiln_gemm_fp8_params {
    void *d;               /* [m, n], of the precision */
    const uint8_t *a;      /* [m, k], OCP E4M3 on every device */
    const uint8_t *b;      /* [n, k]: the weights of a linear layer as they are stored, [out, in] */
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
    void *workspace;       /* of the device, 16-byte aligned; NULL if workspace_size is 0 */
    size_t workspace_size; /* 0, or at least kiln_gemm_fp8_<precision>_workspace_size() */
    float scale;           /* finite; 0: 1 */
    int32_t activation;    /* kiln_gemm_activation */
    int32_t tile;          /* kiln_gemm_tile; the portable one where the image or the tensors do not allow it */
    int32_t accumulation;  /* kiln_gemm_accumulation */
} kiln_gemm_fp8_params;

/* The product of tensors that quantize_fp8 made: codes and scales are as it writes them, with the same numbers of
 * scales. So there is a scale for the tensor, for each row (a token of a, a channel of b), for 128 columns of a row or
 * for each block of 128 x 128; a and b may differ in this. With p the sum of the products of codes over a group of 128
 * columns of k,
 *
 *     d = activation(scale * (the sum over k's groups of 128 of a_scale * b_scale * p) + bias)
 *
 * in f32, with one rounding to the precision at the end. p is added one by one, or as the chip's matrix units add it.
 * On NVIDIA, matrix units sum at most 128 columns before the result is added in f32 (two-level accumulation: these
 * units truncate, which biases sums toward 0, the more the larger k is, if all products have one sign). Fast
 * accumulation skips that on sm_90 if no scale is for 128 columns. Its error is then 7 % at k = 4096 and 13 % at
 * k = 8192 if all products have one sign, and 0.2 % if signs are mixed (relative norms, measured on an H100). AMD's
 * units add in f32, over all of k if no scale is for 128 columns; gfx942's take E4M3 FNUZ, to which codes convert
 * exactly, and those of gfx90a and gfx11 take f16, in which E4M3 is exact. A code that is NaN makes its row or column
 * of d NaN. For up to 16 rows of a there are kernels that read b once, or twice if the image has no matrix units for
 * them. */
KILN_OPERATOR_FUNCTION(gemm_fp8_f32, kiln_gemm_fp8_params)
KILN_OPERATOR_FUNCTION(gemm_fp8_f16, kiln_gemm_fp8_params)
KILN_OPERATOR_FUNCTION(gemm_fp8_bf16, kiln_gemm_fp8_params)

/* The bytes of workspace that let a long k be divided among several blocks, as for gemm; 0 where that does not pay.
 * Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT, and what loading can return. */
KILN_WORKSPACE_FUNCTION(gemm_fp8_f32, kiln_gemm_fp8_params)
KILN_WORKSPACE_FUNCTION(gemm_fp8_f16, kiln_gemm_fp8_params)
KILN_WORKSPACE_FUNCTION(gemm_fp8_bf16, kiln_gemm_fp8_params)

/* ---- gemm_int8: d = activation(scale * (a * a_scales) (b * b_scales)^T + bias), a and b int8 --------------------- */

typedef struct kiln_gemm_int8_params {
    void *d;               /* [m, n], of the precision */
    const int8_t *a;       /* [m, k] */
    const int8_t *b;       /* [n, k]: the weights of a linear layer as they are stored, [out, in] */
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
    void *workspace;       /* of the device, 16-byte aligned; NULL if workspace_size is 0 */
    size_t workspace_size; /* 0, or at least kiln_gemm_int8_<precision>_workspace_size() */
    float scale;           /* finite; 0: 1 */
    int32_t activation;    /* kiln_gemm_activation */
    int32_t tile;          /* kiln_gemm_tile; the portable one where the image or the tensors do not allow it */
    int32_t reserved;      /* must be 0 */
} kiln_gemm_int8_params;

/* As gemm_fp8, for tensors that quantize_int8 made; -128 is a valid code. Products of codes are added exactly, in
 * int32, over 128 columns if a or b has scales for these or k is more than 2^16, and otherwise over all of k, or over a
 * block's part of it. The sums are then converted to f32 and multiplied by the scales. */
KILN_OPERATOR_FUNCTION(gemm_int8_f32, kiln_gemm_int8_params)
KILN_OPERATOR_FUNCTION(gemm_int8_f16, kiln_gemm_int8_params)
KILN_OPERATOR_FUNCTION(gemm_int8_bf16, kiln_gemm_int8_params)

/* As for gemm_fp8. */
KILN_WORKSPACE_FUNCTION(gemm_int8_f32, kiln_gemm_int8_params)
KILN_WORKSPACE_FUNCTION(gemm_int8_f16, kiln_gemm_int8_params)
KILN_WORKSPACE_FUNCTION(gemm_int8_bf16, kiln_gemm_int8_params)

/* ---- gemm_nvfp4: d = activation(scale * a * b^T + bias), a and b in NVFP4 ---------------------------------------- */

typedef struct kiln_gemm_nvfp4_params {
    void *d;                 /* [m, n], of the precision */
    const uint8_t *a;        /* [m, 8 * a_scale_cols], two columns to a byte, the first of them in its low half */
    const uint8_t *b;        /* [n, 8 * b_scale_cols]: the weights of a linear layer as they are stored, [out, in] */
    const uint8_t *a_scales; /* [a_scale_rows, a_scale_cols], OCP E4M3 on every device, without its sign, in the order
                              * of a_scale_layout */
    const uint8_t *b_scales; /* [b_scale_rows, b_scale_cols] */
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
    void *workspace;        /* of the device, 16-byte aligned; NULL if workspace_size is 0 */
    size_t workspace_size;  /* 0, or at least kiln_gemm_nvfp4_<precision>_workspace_size() */
    float scale;            /* finite; 0: 1 */
    int32_t a_scale_layout; /* kiln_scale_layout */
    int32_t b_scale_layout; /* kiln_scale_layout */
    int32_t activation;     /* kiln_gemm_activation */
    int32_t tile;           /* kiln_gemm_tile; the portable one where the image or the tensors do not allow it */
    int32_t reserved;       /* must be 0 */
} kiln_gemm_nvfp4_params;

/* The product of matrices that quantize_nvfp4 made: codes and scales are as it writes them, in either order of scales.
 * With an element of a or b the product of its code, E2M1, and of its block's scale, E4M3, which is exact,
 *
 *     d = activation(scale * ((the sum over k of a * b) * a_global_scale * b_global_scale) + bias)
 *
 * in f32, with one rounding to the precision at the end. Products are added one by one, or as the chip's matrix units
 * add them. Codes and scales beyond k do not affect the result, whatever they are. A scale that is NaN makes its row or
 * column of d NaN. For up to 16 rows of a there are kernels that read b once, or twice if the image has no matrix
 * units for them. */
KILN_OPERATOR_FUNCTION(gemm_nvfp4_f32, kiln_gemm_nvfp4_params)
KILN_OPERATOR_FUNCTION(gemm_nvfp4_f16, kiln_gemm_nvfp4_params)
KILN_OPERATOR_FUNCTION(gemm_nvfp4_bf16, kiln_gemm_nvfp4_params)

/* As for gemm_fp8. */
KILN_WORKSPACE_FUNCTION(gemm_nvfp4_f32, kiln_gemm_nvfp4_params)
KILN_WORKSPACE_FUNCTION(gemm_nvfp4_f16, kiln_gemm_nvfp4_params)
KILN_WORKSPACE_FUNCTION(gemm_nvfp4_bf16, kiln_gemm_nvfp4_params)

/* ---- gemm_w4a16: d = activation(scale * (a * pre_scale) * w^T + c + bias), w of 4-bit integers ------------------ */

/* The order of the scales, and of the zeros. */
typedef enum kiln_w4a16_scales {
    KILN_W4A16_SCALES_N_K, /* [n, k / group] */
    KILN_W4A16_SCALES_K_N, /* [k / group, n] */
} kiln_w4a16_scales;

/* The order of the weights' bytes; kiln/w4a16.h converts between layouts. */
typedef enum kiln_w4a16_layout {
    KILN_W4A16_CANONICAL, /* [n, k / 2]: the element of even k in the low half of a byte */
    KILN_W4A16_SM80_V1,   /* tiles of 16 x 64, in the order that the matrix units of sm_75 and later read */
} kiln_w4a16_layout;

/* The tile of d that a block computes, if the image has kernels for several. */
typedef enum kiln_w4a16_tile {
    KILN_W4A16_TILE_AUTO,     /* the tile with the shortest predicted time */
    KILN_W4A16_TILE_PORTABLE, /* 64 x 64, in f32 arithmetic: in every image; canonical weights only */
    KILN_W4A16_TILE_64,       /* 64 x 64 (sm_90: 64 x 256), on matrix units; NVIDIA: weights in sm80_v1 only */
    KILN_W4A16_TILE_128,      /* 128 x 128 (sm_90: 128 x 256; gfx90a, gfx942: 256 x 128), likewise */
    KILN_W4A16_TILE_256,      /* sm_90: 256 x 128, likewise; in other images the same as AUTO */
} kiln_w4a16_tile;

typedef struct kiln_gemm_w4a16_params {
    void *d;                /* [m, n] */
    const void *a;          /* [m, k] */
    const uint8_t *weights; /* [n, k / 2]: two integers q from -8 to 7 per byte, in weight_layout */
    const void *scales;     /* [n, k / group], or [k / group, n] by scale_layout */
    const void *zeros;      /* the shape of scales: added to q * scale, so not integer zero points; NULL: 0 */
    const void *bias;       /* [n]; NULL: 0 */
    const void *pre_scale;  /* [k]: factors of the columns of a; NULL: 1 */
    int64_t m;              /* m, n and k are at most 2^31 - 1 */
    int64_t n;
    int64_t k;               /* even. 0: the product is 0, and a, weights, scales and zeros may be NULL */
    int64_t group;           /* elements of a row that share a scale: 32, 64, 128, 256 or k; divides k; 0: k */
    int64_t d_stride;        /* 0: n */
    int64_t a_stride;        /* 0: k */
    void *workspace;         /* of the device, 16-byte aligned; NULL if workspace_size is 0 */
    size_t workspace_size;   /* 0, or at least kiln_gemm_w4a16_<precision>_workspace_size() */
    float scale;             /* finite; 0: 1 */
    int32_t scale_layout;    /* kiln_w4a16_scales */
    int32_t weight_layout;   /* kiln_w4a16_layout */
    int32_t tile;            /* kiln_w4a16_tile; without a kernel for it, as AUTO */
    const void *c;           /* [m, n]: added to the product; may be d, with the same stride; NULL: 0 */
    int64_t c_stride;        /* 0: n */
    const void *norm_weight; /* [k]: rows of a are normalised first, as by kiln_rmsnorm; NULL: they are not */
    float norm_eps;          /* 0: 1e-6; else from 1e-30 to 1e30 */
    int32_t activation;      /* kiln_gemm_activation */
    int32_t gated;           /* 0 or 1: whether weights, scales, zeros and bias are of 2n rows of weights, see below */
    int32_t reserved;        /* must be 0 */
} kiln_gemm_w4a16_params;

/* d[i][j] = activation(scale * sum over k of a[i][k] * pre_scale[k] * (q[j][k] * scales[j][k / group] +
 * zeros[j][k / group]) + c[i][j] + bias[j]). All tensors but the weights have the precision of the function. Zeros are
 * added after scaling: the integer zero points of AWQ (Lin et al., arXiv 2306.00978) and GPTQ (Frantar et al., arXiv
 * 2210.17323) are converted by kiln/w4a16.h.
 *
 * Products are added in f32. A product of at most 8 rows of a reads the weights once. Every image takes canonical
 * weights. AMD's matrix units (gfx90a, gfx942, gfx11, gfx12; f16 and bf16) multiply more than 8 rows of a if k is a
 * multiple of 32, and up to 16, which then read the weights once, if it is one of 128, where rows of a, the weights,
 * pre_scale and norm_weight are 16-byte aligned and the portable tile is not asked for. They round a * pre_scale to the
 * precision, and with more than 8 rows they may round q * scale + zero; those of gfx90a take subnormal numbers as 0.
 * For few rows of a integers may be multiplied before they are scaled: the result of an infinity in a may then be NaN,
 * and sums of numbers above 1e37 may overflow, where q * scale + zero would give neither.
 * NVIDIA's chips multiply canonical weights by the portable kernels alone. An image with matrix units for sm80_v1 is
 * faster with weights in that layout; other images refuse them. In sm80_v1, n must be a multiple of 16 and k of 64, and
 * rows of a, the weights and pre_scale must be 16-byte aligned; up to 16 rows then read the weights once. There, a *
 * pre_scale is rounded to the precision before it is multiplied, and so is q * scale + zero in a product of more than
 * 16 rows, which on sm_90 is then multiplied with pre_scale, and rounded, instead of a.
 *
 * With norm_weight, a[i][k] * norm_weight[k] / sqrt(mean of a[i]^2 + norm_eps) takes the place of a[i][k]. Calls of up
 * to 8 rows of a without pre_scale multiply with a * norm_weight and divide the sum by the root, if the weights are
 * canonical, or if they are sm80_v1, k is at most 16384 and the precision is bf16, to which the factor is then rounded.
 * AMD's matrix units multiply up to 16 rows with normalised ones, rounded to the precision, which are in the workspace
 * if there is one and they are long. All others need the workspace, which holds such rows.
 *
 * A gated product has 2 * n rows of weights, scales and zeros, and elements of bias, those of the gates first: d[i][j]
 * = activation(the result of row j) * (the result of row n + j), and c must be NULL. It needs the workspace, which
 * holds both results in f32, with canonical weights for more than 8 rows of a (16 by AMD's matrix units), and with
 * sm80_v1 for more than 16 or if a tile is asked for. An activation needs it with canonical weights and so many rows of
 * a, too. */
KILN_OPERATOR_FUNCTION(gemm_w4a16_f32, kiln_gemm_w4a16_params)
KILN_OPERATOR_FUNCTION(gemm_w4a16_f16, kiln_gemm_w4a16_params)
KILN_OPERATOR_FUNCTION(gemm_w4a16_bf16, kiln_gemm_w4a16_params)

/* The bytes of workspace that let a long k be divided among several blocks, and what calls with norm_weight, gated or
 * an activation need, as said above; 0 where neither is so. Of the pointers only whether zeros, pre_scale and
 * norm_weight are NULL matters: the size is sufficient whatever their alignment. It depends on the kernels of the image
 * for the stream's device, which this function loads unless it is already loaded. Returns KILN_OK,
 * KILN_ERROR_INVALID_ARGUMENT (also for a weight_layout that the image does not take), and what loading can return. */
KILN_WORKSPACE_FUNCTION(gemm_w4a16_f32, kiln_gemm_w4a16_params)
KILN_WORKSPACE_FUNCTION(gemm_w4a16_f16, kiln_gemm_w4a16_params)
KILN_WORKSPACE_FUNCTION(gemm_w4a16_bf16, kiln_gemm_w4a16_params)

/* ---- dequantize_w4a16: y = weights * scales + zeros, of 4-bit integers ------------------------------------------- */

typedef struct kiln_dequantize_w4a16_params {
    void *y;                /* [n, k] */
    const uint8_t *weights; /* [n, k / 2]: kiln_gemm_w4a16_params has the meaning of this and what follows */
    const void *scales;     /* [n, k / group], or [k / group, n] by scale_layout */
    const void *zeros;      /* the shape of scales; NULL: 0 */
    int64_t n;              /* n and k are at most 2^31 - 1 */
    int64_t k;              /* even */
    int64_t group;          /* elements of a row that share a scale: 32, 64, 128, 256 or k; divides k; 0: k */
    int64_t y_stride;       /* 0: k */
    int32_t scale_layout;   /* kiln_w4a16_scales */
    int32_t reserved;       /* must be 0 */
} kiln_dequantize_w4a16_params;

/* y = q * scale + zero of canonical weights, the elements that kiln_gemm_w4a16 multiplies with, rounded once to the
 * precision. Without a fused multiply-add (x86-64-v2), q * scale is rounded first, which only f32 shows. */
KILN_OPERATOR_FUNCTION(dequantize_w4a16_f32, kiln_dequantize_w4a16_params)
KILN_OPERATOR_FUNCTION(dequantize_w4a16_f16, kiln_dequantize_w4a16_params)
KILN_OPERATOR_FUNCTION(dequantize_w4a16_bf16, kiln_dequantize_w4a16_params)

#ifdef __cplusplus
}
#endif

#endif
