/* The kernel of rmsnorm_fp8 and rmsnorm_int8 for sm_80 and later: rmsnorm_codes_eights.h for rows of up to 6144 and of
 * 8192 columns with a scale each, of f32 for rows of 8192 alone, rmsnorm_codes_gpu.h for the others. Four blocks are
 * resident, as many as have room for the shared memory of the latter; of f32, whose rows take more registers, three. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_RMSNORM_CODES_SM80_H
#define KILN_KERNELS_COMMON_QUANTIZE_RMSNORM_CODES_SM80_H

#include "kernels/common/quantize/rmsnorm_codes_eights.h"
#include "kernels/common/tuned.h"

#undef KILN_ENTRY_HEAD
#define KILN_ENTRY_HEAD extern "C" __global__ __launch_bounds__(KILN_BLOCK, KILN_VECTOR > 4 ? 4 : 3) void

#define KILN_RMSNORM_CODES_SM80(op, format)                                                                         \
    KILN_ENTRY(op, kiln_rmsnorm_codes_args) {                                                                       \
        KILN_SHARED kiln_codes_exchange exchange;                                                                   \
        KILN_DYNAMIC_SHARED(kiln_codes_kept, kept);                                                                 \
        if (!kiln_rmsnorm_eights(&args, &exchange, format)) kiln_rmsnorm_codes(&args, kept, exchange.sums, format); \
    }

#endif
