/* gemm_fp8 and gemm_int8: the argument of kernels that copy by tensor maps, which begins with that of the others. */
#ifndef KILN_KERNELS_COMMON_MATMUL_W8A8_MAPPED_ARGS_H
#define KILN_KERNELS_COMMON_MATMUL_W8A8_MAPPED_ARGS_H

#include "kernels/common/matmul/w8a8_args.h"
#include "kernels/common/tensor_map.h"

KILN_ARGS_BEGIN
typedef struct kiln_w8a8_mapped_args {
    kiln_w8a8_args plain;
    uint32_t fast;  /* non-zero: sums of matrix units are taken as they are, over all of k */
    uint32_t early; /* non-zero: the kernel may begin before the preceding one has ended */
    uint32_t padding[6];
    kiln_tensor_map a; /* [1, m, k] */
    kiln_tensor_map b; /* [1, n, k] */
} kiln_w8a8_mapped_args;
KILN_ARGS_END

#endif
