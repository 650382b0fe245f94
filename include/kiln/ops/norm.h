/* RMS normalisation of rows. ops.h has the rules for every operator. */
#ifndef KILN_OPS_NORM_H
#define KILN_OPS_NORM_H

#include <kiln/ops/operator.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- rmsnorm: y = x / sqrt(mean of x^2 + eps) * weight over each row --------------------------------------------- */

typedef struct kiln_rmsnorm_params {
    void *y;            /* [rows, cols]; may be x, with the same stride */
    const void *x;      /* [rows, cols] */
    const void *weight; /* [cols]; NULL: 1 */
    int64_t rows;
    int64_t cols;
    int64_t y_stride; /* 0: cols */
    int64_t x_stride; /* 0: cols */
    float eps;        /* 0: 1e-6; else from 1e-30 to 1e30 */
    int32_t reserved; /* must be 0 */
} kiln_rmsnorm_params;

/* Root mean square normalisation (Zhang and Sennrich, arXiv 1910.07467). Rows may have up to 2^32 - 2^13 elements. A
 * row whose sum of squares overflows f32 produces zeros; a row that contains a NaN produces NaN. */
KILN_OPERATOR_FUNCTION(rmsnorm_f32, kiln_rmsnorm_params)
KILN_OPERATOR_FUNCTION(rmsnorm_f16, kiln_rmsnorm_params)
KILN_OPERATOR_FUNCTION(rmsnorm_bf16, kiln_rmsnorm_params)

/* ---- add_rmsnorm: sum = x + residual; y = sum / sqrt(mean of sum^2 + eps) * weight over each row ----------------- */

typedef struct kiln_add_rmsnorm_params {
    void *y;              /* [rows, cols]; may be x or residual, with the same stride */
    void *sum;            /* [rows, cols]; may be x or residual, with the same stride, but not y */
    const void *x;        /* [rows, cols] */
    const void *residual; /* [rows, cols] */
    const void *weight;   /* [cols]; NULL: 1 */
    int64_t rows;
    int64_t cols;
    int64_t y_stride;        /* 0: cols */
    int64_t sum_stride;      /* 0: cols */
    int64_t x_stride;        /* 0: cols */
    int64_t residual_stride; /* 0: cols */
    float eps;               /* 0: 1e-6; else from 1e-30 to 1e30 */
    int32_t reserved;        /* must be 0 */
} kiln_add_rmsnorm_params;

/* Adds the residual and normalises the result. y is computed from the sum in f32, before the sum is rounded and stored.
 * Otherwise the same as rmsnorm. */
KILN_OPERATOR_FUNCTION(add_rmsnorm_f32, kiln_add_rmsnorm_params)
KILN_OPERATOR_FUNCTION(add_rmsnorm_f16, kiln_add_rmsnorm_params)
KILN_OPERATOR_FUNCTION(add_rmsnorm_bf16, kiln_add_rmsnorm_params)

#ifdef __cplusplus
}
#endif

#endif
