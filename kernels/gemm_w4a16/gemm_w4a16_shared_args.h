/* gemm_w4a16: the argument of the kernels for few rows in shared memory, which begins with that of the others. */
#ifndef KILN_KERNELS_GEMM_W4A16_SHARED_ARGS_H
#define KILN_KERNELS_GEMM_W4A16_SHARED_ARGS_H

#include "kernels/gemm_w4a16/gemm_w4a16_args.h"

KILN_ARGS_BEGIN
typedef struct kiln_gemm_w4a16_shared_args {
    kiln_gemm_w4a16_args plain; /* split: of k, of each of a cluster's two blocks */
    uint32_t tiles;             /* of 32 rows of weights, of a cluster */
    uint32_t depth;             /* of k, that a block has of a's rows at once */
    uint32_t factor_rows;       /* 1: columns of a have factors, a row before a's; else 0 */
    uint32_t early;             /* non-zero: the kernel may begin before the preceding one has ended */
} kiln_gemm_w4a16_shared_args;
KILN_ARGS_END

#endif
