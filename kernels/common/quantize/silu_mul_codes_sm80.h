/* The kernel of silu_mul_fp8 and silu_mul_int8 for sm_80 and later: silu_mul_codes_eights.h for SiLU of aligned rows
 * with a scale each that shared memory can keep, silu_mul_codes_gpu.h for the others. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_SILU_MUL_CODES_SM80_H
#define KILN_KERNELS_COMMON_QUANTIZE_SILU_MUL_CODES_SM80_H

#include "kernels/common/quantize/silu_mul_codes_eights.h"
#include "kernels/common/tuned.h"

#undef KILN_ENTRY_HEAD
#define KILN_ENTRY_HEAD extern "C" __global__ __launch_bounds__(KILN_BLOCK, KILN_SILU_MUL_RESIDENT) void

#define KILN_SILU_MUL_CODES_SM80(op, format)                         \
    KILN_ENTRY(op, kiln_silu_mul_codes_args) {                       \
        KILN_SHARED kiln_codes_exchange exchange;                    \
        KILN_DYNAMIC_SHARED(kiln_codes_kept, kept);                  \
        if (!kiln_silu_mul_eights(&args, kept, &exchange, format))   \
            kiln_silu_mul_codes(&args, kept, exchange.sums, format); \
    }

#endif
