/* gemm_fp8, host side. */
#include <kiln/ops/gemm.h>
#define KILN_HOST gemm_fp8
#include "kernels/common/operator.h"
#define W8A8_EXACT 0
#include "kernels/common/w8a8_host.h"
