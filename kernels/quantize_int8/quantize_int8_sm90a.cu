/* quantize_int8 for sm_90a: quantize_int8_gpu.c, and quantize_sm90a.h where that applies. Its kernel may begin before
 * the preceding kernel has ended. Rows of x whose columns are not adjacent are for clusters of blocks
 * (quantize_transposed_cluster.h).
 *
 * Measured on an H100 (driver 580.159.04, 2026-11-26), 16384 x 4096 in bf16: 68.9 us with a scale for each row, where a
 * copy of as many bytes takes 67.3 and quantize_int8_gpu.c took 77.4; 71.6 us with scales of 128 columns, where that
 * took 90.9. */
#include "kernels/arch/sm90a_programmatic.h"
#include "kernels/common/quantize/codes_sm90a.h"
#include "kernels/common/tuned.h"

KILN_INLINE kiln_eight_bytes bounded(float *values, float bound) {
    return bound == 127.0f ? kiln_int8_eight_bounded(values) : kiln_int8_eight(values, bound);
}
#define KILN_QUANTIZE_EIGHT(values, bound)   kiln_int8_eight(values, bound)
#define KILN_QUANTIZE_BOUNDED(values, bound) bounded(values, bound)
#define KILN_QUANTIZE_MOST                   127.0f
#define KILN_QUANTIZE_UNIT                   1.0f
#define KILN_QUANTIZE_FINITE(values)         kiln_int8_finite(values)
#include "kernels/common/quantize/quantize_held.h"
#include "kernels/common/quantize/quantize_transposed_cluster.h"
#include "kernels/common/quantize/quantize_transposed_tile.h"

KILN_ENTRY(quantize_int8_transposed, kiln_quantize_transposed_args) {
    KILN_SHARED kiln_quantize_transposed_shared shared;
    KILN_DYNAMIC_SHARED(kiln_vector, tiles);
    if (!kiln_quantize_transposed_tile(&args, tiles)) kiln_quantize_transposed(&args, tiles, &shared);
}

#undef KILN_ENTRY_HEAD
#define KILN_ENTRY_HEAD extern "C" __global__ __launch_bounds__(KILN_BLOCK, 5) void

#include "kernels/common/quantize/quantize_sm90a.h"

KILN_ENTRY(quantize_int8, kiln_quantize_args) {
    KILN_SHARED kiln_codes_exchange exchange;
    KILN_DYNAMIC_SHARED(kiln_vector, tile);
    if (kiln_quantize_held(&args, exchange.greatest)) return;
    if (!kiln_quantize_of_block(&args, exchange.greatest, tile)) kiln_quantize(&args, exchange.sums);
}

KILN_TUNED_PARTS(f16 bf16)
KILN_PROGRAMMATIC(quantize_int8)
KILN_PROGRAMMATIC(quantize_int8_transposed)

#undef KILN_ENTRY_HEAD
#define KILN_ENTRY_HEAD KILN_QUANTIZE_CLUSTER_HEAD

KILN_ENTRY(quantize_int8_transposed_cluster, kiln_quantize_transposed_args) {
    KILN_SHARED kiln_quantize_cluster_shared shared;
    KILN_DYNAMIC_SHARED(kiln_vector, tiles);
    kiln_quantize_transposed_of_cluster(&args, tiles, &shared);
}
KILN_PROGRAMMATIC(quantize_int8_transposed_cluster)
