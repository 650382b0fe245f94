/* silu_mul_fp8 for sm_80 and later: silu_mul_codes_eights.h for SiLU of aligned rows with a scale each that shared
 * memory can keep, silu_mul_fp8_gpu.c for the others.
 *
 * By the model of docs/kernel-report.md it issues for 0.85 to 0.88 of the memory's time in 16 bits, 0.50 in f32: E4M3
 * takes 10 of 46 instructions an element, without an instruction for it, SiLU and its product 16. Not measured. */
#include "kernels/common/silu_mul_codes_eights.h"
#include "kernels/common/tuned.h"

#undef KILN_ENTRY_HEAD
#define KILN_ENTRY_HEAD extern "C" __global__ __launch_bounds__(KILN_BLOCK, 5) void

KILN_ENTRY(silu_mul_fp8, kiln_silu_mul_codes_args) {
    KILN_SHARED kiln_codes_exchange exchange;
    KILN_DYNAMIC_SHARED(kiln_codes_kept, kept);
    if (!kiln_silu_mul_eights(&args, kept, &exchange, KILN_CODES_E4M3))
        kiln_silu_mul_codes(&args, kept, exchange.sums, KILN_CODES_E4M3);
}

KILN_TUNED_PARTS(f32 f16 bf16)
