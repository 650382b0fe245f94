/* gemm_int8, host side. int32 holds the products of 2^17 pairs of codes, and those of one more part of k. */
#include <kiln/ops/gemm.h>
#define KILN_HOST gemm_int8
#include "kernels/common/operator.h"
#define W8A8_EXACT (1 << 16)
#include "kernels/common/w8a8_host.h"
