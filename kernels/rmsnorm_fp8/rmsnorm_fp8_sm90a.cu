/* rmsnorm_fp8 for sm_90a: rmsnorm_fp8_gpu.c, and rmsnorm_codes_sm90a.h where that applies. Its kernel may begin before
 * the preceding kernel has ended.
 *
 * Measured on an H100 (driver 580.159.04, 2026-11-26), 16384 x 4096 in bf16, by prototypes of this text: 69.6 us with a
 * scale for each row, where a copy of as many bytes takes 67.3 and rmsnorm_fp8_gpu.c took 148; 75.0 with scales of 128
 * columns, where that took 135. Five blocks resident instead of six took 73.1 us, the loops for longer rows 77.8, which
 * take 8192 x 8192 in 77.2 where rmsnorm_fp8_gpu.c took 137. Four eights of a thread in registers took that in 69.8,
 * but left room for four blocks. */
#include "kernels/arch/sm90a_programmatic.h"
#include "kernels/common/quantize/rmsnorm_codes_sm90a.h"
#include "kernels/common/tuned.h"

#undef KILN_ENTRY_HEAD
#define KILN_ENTRY_HEAD extern "C" __global__ __launch_bounds__(KILN_BLOCK, 6) void

KILN_ENTRY(rmsnorm_fp8, kiln_rmsnorm_codes_args) {
    KILN_SHARED kiln_codes_exchange exchange;
    KILN_DYNAMIC_SHARED(kiln_codes_kept, kept);
    if (!kiln_rmsnorm_held(&args, kept, &exchange, KILN_CODES_E4M3))
        kiln_rmsnorm_codes(&args, kept, exchange.sums, KILN_CODES_E4M3);
}

KILN_TUNED_PARTS(f16 bf16)
KILN_PROGRAMMATIC(rmsnorm_fp8)
