/* quantize_fp8 for sm_100 and later: quantize_fp8_gpu.c, and quantize_sm90a.h where that applies, of whose instructions
 * they have all. Rows of up to 4096 columns are processed as those of up to 8192, for the size of the images. Not
 * measured there. */
#include "kernels/common/quantize/codes_sm90a.h"
#include "kernels/common/tuned.h"

#define KILN_QUANTIZE_EIGHT(values, bound)   kiln_e4m3_eight(values, bound)
#define KILN_QUANTIZE_BOUNDED(values, bound) kiln_e4m3_eight(values, bound)
#define KILN_QUANTIZE_MOST                   448.0f
#define KILN_QUANTIZE_UNIT                   1.0f
#define KILN_QUANTIZE_FINITE(values)         kiln_e4m3_word(values)
#include "kernels/common/quantize/quantize_held.h"
#include "kernels/common/quantize/quantize_transposed_tile.h"

KILN_ENTRY(quantize_fp8_transposed, kiln_quantize_transposed_args) {
    KILN_SHARED kiln_quantize_transposed_shared shared;
    KILN_DYNAMIC_SHARED(kiln_vector, tiles);
    if (!kiln_quantize_transposed_tile(&args, tiles)) kiln_quantize_transposed(&args, tiles, &shared);
}

#undef KILN_ENTRY_HEAD
#define KILN_ENTRY_HEAD extern "C" __global__ __launch_bounds__(KILN_BLOCK, 5) void

#define KILN_QUANTIZE_LEAST 4
#include "kernels/common/quantize/quantize_sm90a.h"

KILN_ENTRY(quantize_fp8, kiln_quantize_args) {
    KILN_SHARED kiln_codes_exchange exchange;
    KILN_DYNAMIC_SHARED(kiln_vector, tile);
    if (kiln_quantize_of_block(&args, exchange.greatest, tile)) return;
    if (!kiln_quantize_held(&args, exchange.greatest)) kiln_quantize(&args, exchange.sums);
}

KILN_TUNED_PARTS(f16 bf16)
