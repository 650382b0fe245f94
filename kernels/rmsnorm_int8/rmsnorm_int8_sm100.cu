/* rmsnorm_int8 for sm_100 and later: rmsnorm_codes_eights.h for rows of up to 8192 columns with a scale each,
 * rmsnorm_int8_gpu.c for the others. Three blocks are resident: with more of them ptxas spills. Not measured. */
#include "kernels/common/quantize/rmsnorm_codes_eights.h"
#include "kernels/common/tuned.h"

#undef KILN_ENTRY_HEAD
#define KILN_ENTRY_HEAD extern "C" __global__ __launch_bounds__(KILN_BLOCK, 3) void

KILN_ENTRY(rmsnorm_int8, kiln_rmsnorm_codes_args) {
    KILN_SHARED kiln_codes_exchange exchange;
    KILN_DYNAMIC_SHARED(kiln_codes_kept, kept);
    if (!kiln_rmsnorm_eights(&args, &exchange, KILN_CODES_INT8))
        kiln_rmsnorm_codes(&args, kept, exchange.sums, KILN_CODES_INT8);
}

KILN_TUNED_PARTS(f32 f16 bf16)
