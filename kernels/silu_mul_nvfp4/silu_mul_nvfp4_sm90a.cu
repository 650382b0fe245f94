/* silu_mul_nvfp4 for sm_90a: silu_mul_nvfp4_gpu.c, and silu_mul_codes_sm90a.h where that applies. Its kernel may begin
 * before the preceding kernel has ended.
 *
 * Measured on an H100 (driver 580.159.04, 2026-11-26), 16384 x 4096 in bf16: 122 us, where a copy of as many bytes
 * takes 102 and silu_mul_nvfp4_gpu.c took 166. Four blocks resident instead of five: 129 us. f16 would exceed the room
 * for the operator's images. */
#include "kernels/arch/sm89.h"
#include "kernels/arch/sm90a_programmatic.h"
#include "kernels/common/silu_mul_codes_sm90a.h"
#include "kernels/common/tuned.h"

#undef KILN_ENTRY_HEAD
#define KILN_ENTRY_HEAD extern "C" __global__ __launch_bounds__(KILN_BLOCK, 5) void

KILN_ENTRY(silu_mul_nvfp4, kiln_silu_mul_codes_args) {
    KILN_SHARED kiln_codes_exchange exchange;
    KILN_DYNAMIC_SHARED(kiln_codes_kept, kept);
    if (!kiln_silu_mul_held(&args, kept, &exchange, KILN_CODES_NVFP4))
        kiln_silu_mul_codes(&args, kept, exchange.sums, KILN_CODES_NVFP4);
}

KILN_TUNED_PARTS(bf16)
KILN_PROGRAMMATIC(silu_mul_nvfp4)
KILN_TUNED_ASSEMBLER(12.4.131)
