/* gemm_w4a16: the argument of the kernels for 9 to 16 rows in shared memory, which begins with that of the others. */
#ifndef KILN_KERNELS_GEMM_W4A16_SHARED_ARGS_H
#define KILN_KERNELS_GEMM_W4A16_SHARED_ARGS_H

#include "kernels/gemm_w4a16/gemm_w4a16_args.h"

/* Bytes behind the barriers, where columns of a have factors: squares of 16 rows, of the block and of 14 warps. */
enum { KILN_W4A16_SHARED_SQUARES = 1024 };

KILN_ARGS_BEGIN
typedef struct kiln_gemm_w4a16_shared_args {
    kiln_gemm_w4a16_args plain; /* split: of k, of each of the two blocks */
    uint32_t tiles;             /* of 32 rows of weights, of a cluster */
    uint32_t early;             /* non-zero: the kernel may begin before the preceding one has ended */
} kiln_gemm_w4a16_shared_args;
KILN_ARGS_END

#endif
