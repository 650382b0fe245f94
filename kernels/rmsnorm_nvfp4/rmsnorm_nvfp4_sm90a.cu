/* rmsnorm_nvfp4 for sm_90a: rmsnorm_nvfp4_gpu.c, and rmsnorm_codes_sm90a.h where that applies. Its kernel may begin
 * before the preceding kernel has ended.
 *
 * Measured on an H100 (driver 580.159.04, 2026-11-26), 16384 x 4096 in bf16, by a prototype of this text: 90.8 us,
 * where a copy of as many bytes takes 57.4 and rmsnorm_nvfp4_gpu.c took 166. It issues all the time: 41 instructions an
 * element with the loops for longer rows. f16 would exceed the room for the operator's images. */
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

KILN_TUNED_PARTS(bf16)
KILN_PROGRAMMATIC(rmsnorm_nvfp4)
KILN_TUNED_ASSEMBLER(12.4.131)
