/* rmsnorm_int8 for sm_80 and later: rmsnorm_codes_eights.h for rows of up to 6144 and of 8192 columns with a scale
 * each, rmsnorm_int8_gpu.c for the others. Four blocks are resident, as many as have room for the shared memory of the
 * latter. Not measured. */
#include "kernels/common/rmsnorm_codes_eights.h"
#include "kernels/common/tuned.h"

#undef KILN_ENTRY_HEAD
#define KILN_ENTRY_HEAD extern "C" __global__ __launch_bounds__(KILN_BLOCK, 4) void

KILN_ENTRY(rmsnorm_int8, kiln_rmsnorm_codes_args) {
    KILN_SHARED kiln_codes_exchange exchange;
    KILN_DYNAMIC_SHARED(kiln_codes_kept, kept);
    if (!kiln_rmsnorm_eights(&args, &exchange, KILN_CODES_INT8))
        kiln_rmsnorm_codes(&args, kept, exchange.sums, KILN_CODES_INT8);
}

KILN_TUNED_PARTS(f16 bf16)
