/* silu_mul_int8 for sm_90a: silu_mul_codes_eights.h for SiLU of aligned rows with a scale each that shared memory can
 * keep, silu_mul_codes_sm90a.h for groups, GELU and other scales, silu_mul_int8_gpu.c for the others. Its kernel may
 * begin before the preceding kernel has ended.
 *
 * By the model of docs/kernel-report.md rows of clusters issue for 0.62 of the memory's time in f16, for 0.61 in bf16:
 * of a thread's 35 instructions an element 25 are its arithmetic, and the others the exchange and the scale, which a
 * thread's two eights share.
 *
 * Measured on an H100 (driver 580.159.04, 2026-11-26), by silu_mul_codes_sm90a.h alone, of which five blocks were
 * resident and which had 46 instructions an element instead of 31, 16384 x 4096 in bf16: 111 us with a scale for each
 * row, where a copy of as many bytes takes 112 and silu_mul_int8_gpu.c took 140; 111 with scales of 128 columns, where
 * that took 131. */
#include "kernels/arch/sm90a_programmatic.h"
#include "kernels/common/quantize/silu_mul_codes_cluster.h"
#include "kernels/common/quantize/silu_mul_codes_sm90a.h"
#include "kernels/common/tuned.h"

#undef KILN_ENTRY_HEAD
#define KILN_ENTRY_HEAD extern "C" __global__ __launch_bounds__(KILN_BLOCK, KILN_SILU_MUL_RESIDENT) void

KILN_ENTRY(silu_mul_int8, kiln_silu_mul_codes_args) {
    KILN_SHARED kiln_codes_exchange exchange;
    KILN_DYNAMIC_SHARED(kiln_codes_kept, kept);
    if (kiln_silu_mul_eights(&args, kept, &exchange, KILN_CODES_INT8)) return;
    if (!kiln_silu_mul_held(&args, kept, &exchange, KILN_CODES_INT8))
        kiln_silu_mul_codes(&args, kept, exchange.sums, KILN_CODES_INT8);
}

KILN_TUNED_PARTS(f16 bf16)
KILN_PROGRAMMATIC(silu_mul_int8)

#undef KILN_ENTRY_HEAD
#define KILN_ENTRY_HEAD KILN_SILU_MUL_CLUSTER_HEAD

KILN_ENTRY(silu_mul_int8_cluster, kiln_silu_mul_codes_args) {
    KILN_SHARED kiln_silu_mul_told told;
    kiln_silu_mul_of_cluster(&args, &told, KILN_CODES_INT8);
}
KILN_PROGRAMMATIC(silu_mul_int8_cluster)
