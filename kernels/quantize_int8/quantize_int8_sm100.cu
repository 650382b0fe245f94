/* quantize_int8 for sm_100 and later: quantize_eights_sm100.h for rows of 4096 and 8192 columns with a scale each,
 * quantize_sm90a.h where that applies, of whose instructions they have all, quantize_int8_gpu.c for the others. Not
 * measured there. */
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
#include "kernels/common/quantize/quantize_transposed_tile.h"

KILN_ENTRY(quantize_int8_transposed, kiln_quantize_transposed_args) {
    KILN_SHARED kiln_quantize_transposed_shared shared;
    KILN_DYNAMIC_SHARED(kiln_vector, tiles);
    if (!kiln_quantize_transposed_tile(&args, tiles)) kiln_quantize_transposed(&args, tiles, &shared);
}

#undef KILN_ENTRY_HEAD
#define KILN_ENTRY_HEAD extern "C" __global__ __launch_bounds__(KILN_BLOCK, 5) void

#include "kernels/common/quantize/quantize_eights_sm100.h"
#include "kernels/common/quantize/quantize_sm90a.h"

KILN_ENTRY(quantize_int8, kiln_quantize_args) {
    KILN_SHARED kiln_codes_exchange exchange;
    KILN_DYNAMIC_SHARED(kiln_vector, tile);
    if (kiln_quantize_of_block(&args, exchange.greatest, tile)) return;
    if (kiln_quantize_even_rows(&args, &exchange)) return;
    kiln_barrier(); /* all have read what was exchanged */
    if (!kiln_quantize_held(&args, exchange.greatest)) kiln_quantize(&args, exchange.sums);
}

KILN_TUNED_PARTS(f16 bf16)
