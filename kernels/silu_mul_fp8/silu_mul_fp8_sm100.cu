/* silu_mul_fp8 for sm_100 and later, in bf16: silu_mul_fp8_gpu.c, and silu_mul_codes_sm90a.h where that applies, of
 * whose instructions they have all. Not measured there. */
#include "kernels/common/silu_mul_codes_sm90a.h"
#include "kernels/common/tuned.h"

KILN_ENTRY(silu_mul_fp8, kiln_silu_mul_codes_args) {
    KILN_SHARED kiln_codes_exchange exchange;
    KILN_DYNAMIC_SHARED(kiln_codes_kept, kept);
    if (!kiln_silu_mul_held(&args, kept, &exchange, KILN_CODES_E4M3))
        kiln_silu_mul_codes(&args, kept, exchange.sums, KILN_CODES_E4M3);
}

KILN_TUNED_PARTS(bf16)
