/* gemm: the argument of the kernels that normalise or gate, which begins with that of the others. */
#ifndef KILN_KERNELS_GEMM_FUSED_ARGS_H
#define KILN_KERNELS_GEMM_FUSED_ARGS_H

#include "kernels/gemm/gemm_args.h"

KILN_ARGS_BEGIN
typedef struct kiln_gemm_fused_args {
    kiln_gemm_args plain;
    void *packed;            /* [batch, m, k], written by gemm_norm; [batch, m, 2 n], read by gemm_gate */
    const void *norm_weight; /* [k]; NULL: rows of a are not normalised */
    float mean;              /* 1 / k */
    float eps;
    uint32_t halves; /* non-zero: b has n rows for gates and then n for what they are multiplied with */
    uint32_t padding;
} kiln_gemm_fused_args;
KILN_ARGS_END

#endif
