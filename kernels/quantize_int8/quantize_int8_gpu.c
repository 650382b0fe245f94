/* quantize_int8: codes = int8 of x / scale, and the decode scales amax / smax.
 *
 * Rows, and groups of 128 of their columns, have their scales for themselves: threads that share one reduce by shuffles
 * alone, or take the block. Where the scales or the greatest magnitudes are known before, a launch goes element by
 * element. A scale of 128 rows of 128 columns takes a block. Each thread keeps the vector that it reads first, which is
 * all of a group; the rest of a longer row is read twice, the second time from a cache: so few bytes cost nothing, and
 * code for more in registers would be as long again for each vector.
 *
 * Floor: one read of x and one write of a byte for each element at memory bandwidth, 5 bytes an element of f32, 3 of 16
 * bits; docs/kernel-report.md has the instructions counted, and their time beside it.
 * Test: build/tests/ops/quantize_test. Bench: build/kiln bench quantize_int8 */
#include "kernels/common/device.h"
#include "kernels/common/small_integer.h"
#define KILN_QUANTIZE_CODE(value, bound) kiln_int8_within(value, bound)
#include "kernels/common/quantize_gpu.h"

KILN_ENTRY(quantize_int8, kiln_quantize_args) {
    KILN_SHARED float exchange[KILN_SUBGROUPS];
    kiln_quantize(&args, exchange);
}
