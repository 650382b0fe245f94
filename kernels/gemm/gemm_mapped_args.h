/* gemm: the argument of kernels that copy by tensor maps, which begins with that of the others. */
#ifndef KILN_KERNELS_GEMM_MAPPED_ARGS_H
#define KILN_KERNELS_GEMM_MAPPED_ARGS_H

#include "kernels/common/tensor_map.h"
#include "kernels/gemm/gemm_args.h"

KILN_ARGS_BEGIN
typedef struct kiln_gemm_mapped_args {
    kiln_gemm_args plain;
    uint32_t early; /* non-zero: the kernel may begin before the preceding one has ended */
    uint32_t padding[7];
    kiln_tensor_map a; /* [batch, m, k] */
    kiln_tensor_map b; /* [batch, n, k] */
} kiln_gemm_mapped_args;
KILN_ARGS_END

#endif
