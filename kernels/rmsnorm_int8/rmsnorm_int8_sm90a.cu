/* rmsnorm_int8 for sm_90a: rmsnorm_int8_gpu.c, and rmsnorm_codes_sm90a.h where that applies. Its kernel may begin
 * before the preceding kernel has ended.
 *
 * Measured on an H100 (driver 580.159.04, 2026-11-26), 16384 x 4096 in bf16, by prototypes of this text with five
 * blocks resident: 74.8 us with a scale for each row, where a copy of as many bytes takes 67.3 and rmsnorm_int8_gpu.c
 * took 138; 76.4 with scales of 128 columns, where that took 126. */
#include "kernels/arch/sm89.h"
#include "kernels/arch/sm90a_programmatic.h"
#include "kernels/common/quantize/rmsnorm_codes_sm90a.h"
#include "kernels/common/tuned.h"

#undef KILN_ENTRY_HEAD
#define KILN_ENTRY_HEAD extern "C" __global__ __launch_bounds__(KILN_BLOCK, 6) void

KILN_ENTRY(rmsnorm_int8, kiln_rmsnorm_codes_args) {
    KILN_SHARED kiln_codes_exchange exchange;
    KILN_DYNAMIC_SHARED(kiln_codes_kept, kept);
    if (!kiln_rmsnorm_held(&args, kept, &exchange, KILN_CODES_INT8))
        kiln_rmsnorm_codes(&args, kept, exchange.sums, KILN_CODES_INT8);
}

KILN_TUNED_PARTS(f16 bf16)
KILN_PROGRAMMATIC(rmsnorm_int8)
KILN_TUNED_ASSEMBLER(12.8.93)
