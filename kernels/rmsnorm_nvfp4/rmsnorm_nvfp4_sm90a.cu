/* rmsnorm_nvfp4 for sm_90a: rmsnorm_nvfp4_held for aligned rows of up to 8192 columns, rmsnorm_codes_sm90a.h for longer
 * ones of which all fits into shared memory, rmsnorm_nvfp4_gpu.c for the others. The kernels may begin before the
 * preceding kernel has ended.
 *
 * Measured on an H100 (driver 580.159.04, 2026-11-26), 16384 x 4096 in bf16, before there was rmsnorm_nvfp4_held, with
 * 256 threads for a row: 87.0 us, where a copy of as many bytes takes 57.4. It issued nearly all the time, 33
 * instructions of machine code an element. */
#include "kernels/arch/sm89.h"
#include "kernels/arch/sm90a_programmatic.h"
#include "kernels/common/rmsnorm_codes_sm90a.h"
#include "kernels/common/tuned.h"

#undef KILN_ENTRY_HEAD
#define KILN_ENTRY_HEAD extern "C" __global__ __launch_bounds__(KILN_BLOCK, 6) void

KILN_ENTRY(rmsnorm_nvfp4, kiln_rmsnorm_codes_args) {
    KILN_SHARED kiln_codes_exchange exchange;
    KILN_DYNAMIC_SHARED(kiln_codes_kept, kept);
    if (!kiln_rmsnorm_held(&args, kept, &exchange, KILN_CODES_NVFP4))
        kiln_rmsnorm_codes(&args, kept, exchange.sums, KILN_CODES_NVFP4);
}

#include "kernels/rmsnorm_nvfp4/rmsnorm_nvfp4_held.h"

KILN_TUNED_PARTS(bf16)
KILN_PROGRAMMATIC(rmsnorm_nvfp4)
KILN_PROGRAMMATIC(rmsnorm_nvfp4_held)
KILN_TUNED_ASSEMBLER(12.4.131)
