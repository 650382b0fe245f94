/* Operators that quantise their result and store only the codes and scales: in serving they produce the inputs of
 * gemm_fp8, gemm_int8 and gemm_nvfp4. ops.h has the rules for every operator.
 *
 * The result r, in f32 before any rounding to the precision, is quantised by the formulas of quantize_fp8,
 * quantize_int8 and quantize_nvfp4 (quantize.h), including special values. These operators are therefore equivalent to
 * rmsnorm or silu_mul followed by the quantising operator, with an intermediate tensor in f32. The last bits of r may
 * differ, because rmsnorm and silu_mul use hardware approximations and a different order of summation.
 *
 * In this header every operation is defined to the bit: codes and scales are bit-identical on every device with fused
 * multiply-add (all but x86-64-v2, whose r differs in the last bits), for any alignment. */
#ifndef KILN_OPS_FUSED_H
#define KILN_OPS_FUSED_H

#include <kiln/ops/elementwise.h>
#include <kiln/ops/operator.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- rmsnorm_fp8: rmsnorm or add_rmsnorm, and quantize_fp8 ------------------------------------------------------- */

typedef struct kiln_rmsnorm_fp8_params {
    uint8_t *codes; /* [rows, cols], OCP E4M3 on every device */
    float *scales;  /* [rows, scale_cols]; NULL: not written */
    void *sum; /* [rows, cols]: x + residual, output; may be x or residual, with the same stride; NULL: not written */
    const void *x;        /* [rows, cols] */
    const void *residual; /* [rows, cols]; NULL: none is added */
    const void *weight;   /* [cols]; NULL: 1 */
    int64_t rows;
    int64_t cols;            /* at most 2^31 - 2^13 */
    int64_t scale_cols;      /* 1 (0: 1): a scale for each row; or cols / 128, rounded up */
    int64_t codes_stride;    /* 0: cols */
    int64_t sum_stride;      /* 0: cols; must be 0 without sum */
    int64_t x_stride;        /* 0: cols */
    int64_t residual_stride; /* 0: cols; must be 0 without residual */
    float smax;              /* magnitude to which the greatest element is scaled: from 1 to 448; 0: 448 */
    float eps;               /* 0: 1e-6; else from 1e-30 to 1e30 */
    float static_scale;      /* one scale for all elements, a normal number; 0: amax / smax for each group */
    int32_t reserved;        /* must be 0 */
} kiln_rmsnorm_fp8_params;

/* s = x + residual, or x if residual is NULL; r = s * (1 / sqrt(mean of s^2 + eps)) * weight over each row; codes and
 * scales are those of r.
 *
 * s is not rounded to the precision before it is normalised; sum is. The squares of each 8 columns are added in halves:
 * those of columns i and i + 4, then sums i and i + 2, then the last two. The results are added in turn to 16 sums
 * (rows of up to 128 columns), 32 sums (up to 512) or 256 sums, which are added pairwise within each 32; those results
 * are added in order. 1 / sqrt is computed by two cubic steps of Newton's method, with a relative error of 7.5e-8. */
KILN_OPERATOR_FUNCTION(rmsnorm_fp8_f32, kiln_rmsnorm_fp8_params)
KILN_OPERATOR_FUNCTION(rmsnorm_fp8_f16, kiln_rmsnorm_fp8_params)
KILN_OPERATOR_FUNCTION(rmsnorm_fp8_bf16, kiln_rmsnorm_fp8_params)

/* ---- rmsnorm_int8: rmsnorm or add_rmsnorm, and quantize_int8 ----------------------------------------------------- */

typedef struct kiln_rmsnorm_int8_params {
    int8_t *codes; /* [rows, cols], from -127 to 127 */
    float *scales; /* [rows, scale_cols]; NULL: not written */
    void *sum; /* [rows, cols]: x + residual, output; may be x or residual, with the same stride; NULL: not written */
    const void *x;        /* [rows, cols] */
    const void *residual; /* [rows, cols]; NULL: none is added */
    const void *weight;   /* [cols]; NULL: 1 */
    int64_t rows;
    int64_t cols;            /* at most 2^31 - 2^13 */
    int64_t scale_cols;      /* 1 (0: 1): a scale for each row; or cols / 128, rounded up */
    int64_t codes_stride;    /* 0: cols */
    int64_t sum_stride;      /* 0: cols; must be 0 without sum */
    int64_t x_stride;        /* 0: cols */
    int64_t residual_stride; /* 0: cols; must be 0 without residual */
    float smax;              /* magnitude to which the greatest element is scaled: from 1 to 127; 0: 127 */
    float eps;               /* 0: 1e-6; else from 1e-30 to 1e30 */
    float static_scale;      /* one scale for all elements, a normal number; 0: amax / smax for each group */
    int32_t reserved;        /* must be 0 */
} kiln_rmsnorm_int8_params;

/* Computes r as rmsnorm_fp8 does. */
KILN_OPERATOR_FUNCTION(rmsnorm_int8_f32, kiln_rmsnorm_int8_params)
KILN_OPERATOR_FUNCTION(rmsnorm_int8_f16, kiln_rmsnorm_int8_params)
KILN_OPERATOR_FUNCTION(rmsnorm_int8_bf16, kiln_rmsnorm_int8_params)

/* ---- rmsnorm_nvfp4: rmsnorm or add_rmsnorm, and quantize_nvfp4 --------------------------------------------------- */

typedef struct kiln_rmsnorm_nvfp4_params {
    uint8_t *codes;      /* [rows, 8 * scale_cols], two columns per byte, the first in the low half */
    uint8_t *scales;     /* [scale_rows, scale_cols], OCP E4M3 on every device, laid out as scale_layout states */
    float *global_scale; /* [rows]; NULL: not written */
    void *sum; /* [rows, cols]: x + residual, output; may be x or residual, with the same stride; NULL: not written */
    const void *x;        /* [rows, cols] */
    const void *residual; /* [rows, cols]; NULL: none is added */
    const void *weight;   /* [cols]; NULL: 1 */
    int64_t rows;
    int64_t cols;            /* at most 2^31 - 2^13 */
    int64_t scale_rows;      /* at least rows; with KILN_SCALES_128X4 a multiple of 128 */
    int64_t scale_cols;      /* at least cols / 16 rounded up; with KILN_SCALES_128X4 a multiple of 4 */
    int64_t codes_stride;    /* in bytes; 0: 8 * scale_cols */
    int64_t sum_stride;      /* 0: cols; must be 0 without sum */
    int64_t x_stride;        /* 0: cols */
    int64_t residual_stride; /* 0: cols; must be 0 without residual */
    int32_t scale_layout;    /* kiln_scale_layout */
    float eps;               /* 0: 1e-6; else from 1e-30 to 1e30 */
    float static_scale;      /* the global scale of all rows, at least 2^-116; 0: each row has its amax / 2688 */
    int32_t reserved;        /* must be 0 */
} kiln_rmsnorm_nvfp4_params;

/* Computes r as rmsnorm_fp8 does. Codes beyond cols, up to 16 * scale_cols, and scales beyond the rows and columns are
 * 0. */
KILN_OPERATOR_FUNCTION(rmsnorm_nvfp4_f32, kiln_rmsnorm_nvfp4_params)
KILN_OPERATOR_FUNCTION(rmsnorm_nvfp4_f16, kiln_rmsnorm_nvfp4_params)
KILN_OPERATOR_FUNCTION(rmsnorm_nvfp4_bf16, kiln_rmsnorm_nvfp4_params)

/* ---- silu_mul_fp8: silu_mul and quantize_fp8 --------------------------------------------------------------------- */

typedef struct kiln_silu_mul_fp8_params {
    uint8_t *codes;   /* [rows, cols], OCP E4M3 on every device */
    float *scales;    /* [rows, scale_cols]; NULL: not written */
    const void *gate; /* [rows, cols]; if up is NULL, [rows, 2 * cols]: each row contains gate, then up */
    const void *up;   /* [rows, cols] or NULL */
    int64_t rows;
    int64_t cols;         /* of codes; at most 2^31 - 2^13 */
    int64_t scale_cols;   /* 1 (0: 1): a scale for each row; or cols / 128, rounded up */
    int64_t codes_stride; /* 0: cols */
    int64_t gate_stride;  /* 0: packed */
    int64_t up_stride;    /* 0: cols; must be 0 if up is NULL */
    float smax;           /* magnitude to which the greatest element is scaled: from 1 to 448; 0: 448 */
    int32_t activation;   /* kiln_glu */
    float static_scale;   /* one scale for all elements, a normal number; 0: amax / smax for each group */
    int32_t reserved;     /* must be 0 */
} kiln_silu_mul_fp8_params;

/* r = act(gate) * up; codes and scales are those of r. The sigmoid in the activation is computed with a polynomial and
 * a reciprocal rounded to nearest, with a relative error of 4e-6, which is small compared with the rounding to a code.
 * With gelu_tanh the rounding error of its argument adds to this. */
KILN_OPERATOR_FUNCTION(silu_mul_fp8_f32, kiln_silu_mul_fp8_params)
KILN_OPERATOR_FUNCTION(silu_mul_fp8_f16, kiln_silu_mul_fp8_params)
KILN_OPERATOR_FUNCTION(silu_mul_fp8_bf16, kiln_silu_mul_fp8_params)

/* ---- silu_mul_int8: silu_mul and quantize_int8 ------------------------------------------------------------------- */

typedef struct kiln_silu_mul_int8_params {
    int8_t *codes;    /* [rows, cols], from -127 to 127 */
    float *scales;    /* [rows, scale_cols]; NULL: not written */
    const void *gate; /* [rows, cols]; if up is NULL, [rows, 2 * cols]: each row contains gate, then up */
    const void *up;   /* [rows, cols] or NULL */
    int64_t rows;
    int64_t cols;         /* of codes; at most 2^31 - 2^13 */
    int64_t scale_cols;   /* 1 (0: 1): a scale for each row; or cols / 128, rounded up */
    int64_t codes_stride; /* 0: cols */
    int64_t gate_stride;  /* 0: packed */
    int64_t up_stride;    /* 0: cols; must be 0 if up is NULL */
    float smax;           /* magnitude to which the greatest element is scaled: from 1 to 127; 0: 127 */
    int32_t activation;   /* kiln_glu */
    float static_scale;   /* one scale for all elements, a normal number; 0: amax / smax for each group */
    int32_t reserved;     /* must be 0 */
} kiln_silu_mul_int8_params;

/* Computes r as silu_mul_fp8 does. */
KILN_OPERATOR_FUNCTION(silu_mul_int8_f32, kiln_silu_mul_int8_params)
KILN_OPERATOR_FUNCTION(silu_mul_int8_f16, kiln_silu_mul_int8_params)
KILN_OPERATOR_FUNCTION(silu_mul_int8_bf16, kiln_silu_mul_int8_params)

/* ---- silu_mul_nvfp4: silu_mul and quantize_nvfp4 ----------------------------------------------------------------- */

typedef struct kiln_silu_mul_nvfp4_params {
    uint8_t *codes;      /* [rows, 8 * scale_cols], two columns per byte, the first in the low half */
    uint8_t *scales;     /* [scale_rows, scale_cols], OCP E4M3 on every device, laid out as scale_layout states */
    float *global_scale; /* [rows]; NULL: not written */
    const void *gate;    /* [rows, cols]; if up is NULL, [rows, 2 * cols]: each row contains gate, then up */
    const void *up;      /* [rows, cols] or NULL */
    int64_t rows;
    int64_t cols;         /* of the result; at most 2^31 - 2^13 */
    int64_t scale_rows;   /* at least rows; with KILN_SCALES_128X4 a multiple of 128 */
    int64_t scale_cols;   /* at least cols / 16 rounded up; with KILN_SCALES_128X4 a multiple of 4 */
    int64_t codes_stride; /* in bytes; 0: 8 * scale_cols */
    int64_t gate_stride;  /* 0: packed */
    int64_t up_stride;    /* 0: cols; must be 0 if up is NULL */
    int32_t scale_layout; /* kiln_scale_layout */
    int32_t activation;   /* kiln_glu */
    float static_scale;   /* the global scale of all rows, at least 2^-116; 0: each row has its amax / 2688 */
    int32_t reserved;     /* must be 0 */
} kiln_silu_mul_nvfp4_params;

/* Computes r as silu_mul_fp8 does. Codes beyond cols, up to 16 * scale_cols, and scales beyond the rows and columns are
 * 0. */
KILN_OPERATOR_FUNCTION(silu_mul_nvfp4_f32, kiln_silu_mul_nvfp4_params)
KILN_OPERATOR_FUNCTION(silu_mul_nvfp4_f16, kiln_silu_mul_nvfp4_params)
KILN_OPERATOR_FUNCTION(silu_mul_nvfp4_bf16, kiln_silu_mul_nvfp4_params)

#ifdef __cplusplus
}
#endif

#endif
