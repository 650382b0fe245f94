/* Softmax, log-softmax and online softmax of rows. ops.h has the rules for every operator. */
#ifndef KILN_OPS_SOFTMAX_H
#define KILN_OPS_SOFTMAX_H

#include <kiln/ops/operator.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- softmax: y = exp(x - max x) / sum exp(x - max x) over each row ---------------------------------------------- */

typedef struct kiln_softmax_params {
    void *y;       /* [rows, cols]; may be x, with the same stride */
    const void *x; /* [rows, cols] */
    int64_t rows;
    int64_t cols;
    int64_t y_stride;      /* 0: cols */
    int64_t x_stride;      /* 0: cols */
    void *workspace;       /* device memory, 16-byte aligned; NULL if workspace_size is 0 */
    size_t workspace_size; /* at least kiln_softmax_<precision>_workspace_size() */
} kiln_softmax_params;

/* Rows of up to 32 KiB are read once and need no workspace; longer rows are read twice, by many blocks. A row of -inf
 * produces zeros; a +inf or NaN makes its row NaN. Results below the smallest normal f32, 1.2e-38, are 0, even in bf16,
 * which has subnormals of that size. The result does not depend on the size of the device. */
KILN_OPERATOR_FUNCTION(softmax_f32, kiln_softmax_params)
KILN_OPERATOR_FUNCTION(softmax_f16, kiln_softmax_params)
KILN_OPERATOR_FUNCTION(softmax_bf16, kiln_softmax_params)

/* Computes the workspace size in bytes, which depends only on rows and cols; the pointers are ignored. 0 for rows of up
 * to 32 KiB. Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT. */
KILN_WORKSPACE_FUNCTION(softmax_f32, kiln_softmax_params)
KILN_WORKSPACE_FUNCTION(softmax_f16, kiln_softmax_params)
KILN_WORKSPACE_FUNCTION(softmax_bf16, kiln_softmax_params)

/* ---- log_softmax: y = x - lse, lse = log sum exp(x) over each row ----------------------------------------------- */

typedef struct kiln_log_softmax_params {
    void *y;       /* [rows, cols]; may be x, with the same stride; NULL: not written */
    float *lse;    /* [rows] */
    const void *x; /* [rows, cols] */
    int64_t rows;
    int64_t cols;          /* rows and cols are at most 2^31 - 1 */
    int64_t y_stride;      /* 0: cols */
    int64_t x_stride;      /* 0: cols */
    void *workspace;       /* device memory, 16-byte aligned; NULL if workspace_size is 0 */
    size_t workspace_size; /* at least kiln_log_softmax_<precision>_workspace_size() */
} kiln_log_softmax_params;

/* Computes the natural logarithm of softmax and the log-sum-exp of each row; if y is NULL, only the latter. A row of
 * -inf has an lse of -inf and a y of -inf; a row with +inf has an lse of +inf and a y of NaN; in a row with NaN both
 * are NaN. The result does not depend on the size of the device. */
KILN_OPERATOR_FUNCTION(log_softmax_f32, kiln_log_softmax_params)
KILN_OPERATOR_FUNCTION(log_softmax_f16, kiln_log_softmax_params)
KILN_OPERATOR_FUNCTION(log_softmax_bf16, kiln_log_softmax_params)

/* Computes the workspace size in bytes, which depends only on rows and cols; the pointers are ignored. 0 for rows of up
 * to 32 KiB. Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT. */
KILN_WORKSPACE_FUNCTION(log_softmax_f32, kiln_log_softmax_params)
KILN_WORKSPACE_FUNCTION(log_softmax_f16, kiln_log_softmax_params)
KILN_WORKSPACE_FUNCTION(log_softmax_bf16, kiln_log_softmax_params)

/* ---- softmax_update: adds a block of scores, or other states, to the states of an online softmax ----------------- */

typedef struct kiln_softmax_update_params {
    float *states;       /* [3, rows]: see below; may be before, or other */
    float *scale;        /* [rows]: exp(m before - m now), the factor that rescales sums computed with the old maximum;
                          * 0 if there was no score before; NULL: not written */
    float *lse;          /* [rows]: log sum exp of all scores so far, as in log_softmax; NULL: not written */
    const void *x;       /* [rows, cols], scores; may be NULL if other is given */
    const float *before; /* [3, rows], the states so far; NULL: empty states */
    const float *other;  /* [3, rows], states to merge with those; NULL: none */
    int64_t rows;
    int64_t cols;     /* at most 2^31 - 1; 0 if x is NULL */
    int64_t x_stride; /* 0: cols */
} kiln_softmax_update_params;

/* Accumulates the sum of exp(x) over scores that arrive block by block (Milakov and Gimelshein, arXiv 1805.02867). The
 * state of a row is its greatest score m, the sum l of exp(x - m), and the rounding error c of that sum; states
 * contains m of all rows, then l, then c. The sum is l + c: two floats, both rescaled to a new maximum, so that the
 * contributions of small blocks are not lost beside large ones, however many there are. An empty state is -inf, 0, 0.
 * Merging is commutative to the bit.
 *
 * Scores of -inf do not contribute, and a block that contains only -inf leaves the state unchanged. A score of +inf
 * makes lse +inf and the sum the number of infinite scores; NaN makes sum and lse NaN. The relative error of a row's
 * sum is below 1e-6, or below 1.3e-6 for more than 65536 scores, and each later block that raises the maximum adds at
 * most 1.2e-7. <kiln/softmax_state.h> does the same in f64 on the host. */
KILN_OPERATOR_FUNCTION(softmax_update_f32, kiln_softmax_update_params)
KILN_OPERATOR_FUNCTION(softmax_update_f16, kiln_softmax_update_params)
KILN_OPERATOR_FUNCTION(softmax_update_bf16, kiln_softmax_update_params)

#ifdef __cplusplus
}
#endif

#endif
