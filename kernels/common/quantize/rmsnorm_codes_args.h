/* rmsnorm_fp8, rmsnorm_int8 and rmsnorm_nvfp4: the one argument of their kernels, on every backend. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_RMSNORM_CODES_ARGS_H
#define KILN_KERNELS_COMMON_QUANTIZE_RMSNORM_CODES_ARGS_H

#include "kernels/common/quantize/codes_args.h"

KILN_ARGS_BEGIN
typedef struct kiln_rmsnorm_codes_args {
    kiln_codes_args out;
    void *sum; /* NULL: not wanted */
    const void *x;
    const void *residual; /* NULL: none */
    const void *weight;   /* NULL: 1 */
    int64_t sum_stride;
    int64_t x_stride;
    int64_t residual_stride;
    float mean; /* 1 / cols */
    float eps;
} kiln_rmsnorm_codes_args;
KILN_ARGS_END

#endif
