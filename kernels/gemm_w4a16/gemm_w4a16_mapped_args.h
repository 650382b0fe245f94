/* gemm_w4a16: the argument of kernels that copy by tensor maps, which begins with that of the others. */
#ifndef KILN_KERNELS_GEMM_W4A16_MAPPED_ARGS_H
#define KILN_KERNELS_GEMM_W4A16_MAPPED_ARGS_H

#include "kernels/common/tensor_map.h"
#include "kernels/gemm_w4a16/gemm_w4a16_args.h"

KILN_ARGS_BEGIN
typedef struct kiln_gemm_w4a16_mapped_args {
    kiln_gemm_w4a16_args plain;
    uint32_t early; /* non-zero: the kernel may begin before the preceding one has ended */
    uint32_t padding[3];
    kiln_tensor_map a;       /* [1, m, k] */
    kiln_tensor_map weights; /* [1, n / 16, k / 64 * 128], words of the layout's tiles */
} kiln_gemm_w4a16_mapped_args;
KILN_ARGS_END

#endif
