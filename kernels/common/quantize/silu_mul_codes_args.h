/* silu_mul_fp8, silu_mul_int8 and silu_mul_nvfp4: the one argument of their kernels, on every backend. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_SILU_MUL_CODES_ARGS_H
#define KILN_KERNELS_COMMON_QUANTIZE_SILU_MUL_CODES_ARGS_H

#include "kernels/common/quantize/codes_args.h"

enum { KILN_SILU_MUL_CODES_COEFFICIENTS = 2 };

KILN_ARGS_BEGIN
typedef struct kiln_silu_mul_codes_args {
    kiln_codes_args out;
    const void *gate;
    const void *up;
    int64_t gate_stride;
    int64_t up_stride;
    float bound; /* the bound and the coefficients that kiln_glu_exactly takes */
    float coefficients[KILN_SILU_MUL_CODES_COEFFICIENTS];
    uint32_t four; /* non-zero: rows for codes_four_gpu.h on AMD, for silu_mul_codes_eights.h on NVIDIA */
} kiln_silu_mul_codes_args;
KILN_ARGS_END

#endif
