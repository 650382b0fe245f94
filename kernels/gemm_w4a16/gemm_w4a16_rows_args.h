/* gemm_w4a16: the argument of the kernels for few rows of weights in sm80_v1, which begins with that of the others. */
#ifndef KILN_KERNELS_GEMM_W4A16_ROWS_ARGS_H
#define KILN_KERNELS_GEMM_W4A16_ROWS_ARGS_H

#include "kernels/gemm_w4a16/gemm_w4a16_args.h"

KILN_ARGS_BEGIN
typedef struct kiln_gemm_w4a16_rows_args {
    kiln_gemm_w4a16_args plain;
    uint32_t panels; /* non-zero: scales and zeros pass through shared memory, 16 bytes at a time */
    uint32_t early;  /* non-zero: the kernel may begin before the preceding one has ended */
} kiln_gemm_w4a16_rows_args;
KILN_ARGS_END

#endif
