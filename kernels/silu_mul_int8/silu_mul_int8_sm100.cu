/* silu_mul_int8 for sm_100 and later: silu_mul_codes_eights.h for SiLU of aligned rows with a scale each that shared
 * memory can keep, silu_mul_int8_gpu.c for the others.
 *
 * By the model of docs/kernel-report.md it issues for 0.99 to 1.03 of the memory's time in 16 bits: 27 instructions an
 * element, of which 16 would be 0.6, and SiLU alone, two at a time, is 10. Not measured. */
#include "kernels/common/quantize/silu_mul_codes_eights.h"
#include "kernels/common/tuned.h"

KILN_ENTRY(silu_mul_int8, kiln_silu_mul_codes_args) {
    KILN_SHARED kiln_codes_exchange exchange;
    KILN_DYNAMIC_SHARED(kiln_codes_kept, kept);
    if (!kiln_silu_mul_eights(&args, kept, &exchange, KILN_CODES_INT8))
        kiln_silu_mul_codes(&args, kept, exchange.sums, KILN_CODES_INT8);
}

KILN_TUNED_PARTS(f32 f16 bf16)
