/* gemm_fp8, host side. */
#include <kiln/ops/gemm.h>
#define KILN_HOST gemm_fp8
#define KILN_HOST_KEEPS_CALLS
#include "kernels/common/operator.h"

static kiln_status check_own_option(const char *name, const kiln_gemm_fp8_params *params) {
    KILN__REQUIRE((uint32_t)params->accumulation <= KILN_GEMM_ACCUMULATION_FAST,
                  "%s: accumulation is %d: must be two_level (0) or fast (1)", name, params->accumulation);
    return KILN_OK;
}

static bool asks_fast(const kiln_gemm_fp8_params *params) {
    return params->accumulation == KILN_GEMM_ACCUMULATION_FAST;
}

#define W8A8_EXACT 0
#include "kernels/common/matmul/w8a8_host.h"
