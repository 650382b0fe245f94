/* rmsnorm_fp8 for sm_100 and later, in bf16: rmsnorm_fp8_gpu.c, and rmsnorm_codes_sm90a.h where that applies, of whose
 * instructions they have all. Five blocks are resident: left to itself the assembler spills for sm_120. Not measured
 * there. */
#include "kernels/common/rmsnorm_codes_sm90a.h"
#include "kernels/common/tuned.h"

#undef KILN_ENTRY_HEAD
#define KILN_ENTRY_HEAD extern "C" __global__ __launch_bounds__(KILN_BLOCK, 5) void

KILN_ENTRY(rmsnorm_fp8, kiln_rmsnorm_codes_args) {
    KILN_SHARED kiln_codes_exchange exchange;
    KILN_DYNAMIC_SHARED(kiln_codes_kept, kept);
    if (!kiln_rmsnorm_held(&args, kept, &exchange, KILN_CODES_E4M3))
        kiln_rmsnorm_codes(&args, kept, exchange.sums, KILN_CODES_E4M3);
}

KILN_TUNED_PARTS(bf16)
