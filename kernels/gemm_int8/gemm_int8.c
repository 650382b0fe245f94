/* gemm_int8, host side. int32 holds the products of 2^17 pairs of codes, and those of one more share of k. */
#include <kiln/ops/gemm.h>
#define KILN_HOST gemm_int8
#define KILN_HOST_KEEPS_CALLS
#include "kernels/common/operator.h"

static kiln_status check_own_option(const char *name, const kiln_gemm_int8_params *params) {
    KILN__REQUIRE(params->reserved == 0, "%s: reserved is %d: must be 0", name, params->reserved);
    return KILN_OK;
}

/* Sums of integers are exact. */
static bool asks_fast(const kiln_gemm_int8_params *params) {
    (void)params;
    return false;
}

#define W8A8_EXACT (1 << 16)
#include "kernels/common/matmul/w8a8_host.h"
