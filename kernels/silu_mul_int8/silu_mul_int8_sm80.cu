/* silu_mul_int8 for sm_80 and later: silu_mul_codes_eights.h for SiLU of aligned rows with a scale each that shared
 * memory can keep, silu_mul_int8_gpu.c for the others.
 *
 * By the model of docs/kernel-report.md it issues for 0.63 to 0.66 of the memory's time in 16 bits: of 34 instructions
 * an element SiLU and its product are 16. Not measured. */
#include "kernels/common/silu_mul_codes_eights.h"
#include "kernels/common/tuned.h"

#undef KILN_ENTRY_HEAD
#define KILN_ENTRY_HEAD extern "C" __global__ __launch_bounds__(KILN_BLOCK, 5) void

KILN_ENTRY(silu_mul_int8, kiln_silu_mul_codes_args) {
    KILN_SHARED kiln_codes_exchange exchange;
    KILN_DYNAMIC_SHARED(kiln_codes_kept, kept);
    if (!kiln_silu_mul_eights(&args, kept, &exchange, KILN_CODES_INT8))
        kiln_silu_mul_codes(&args, kept, exchange.sums, KILN_CODES_INT8);
}

KILN_TUNED_PARTS(f32 f16 bf16)
