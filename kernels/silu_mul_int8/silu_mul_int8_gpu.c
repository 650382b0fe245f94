/* silu_mul_int8: r = activation(gate) * up, in f32 and not stored; codes = int8 of r / scale, and the decode scales
 * amax / smax of rows or groups of 128 columns.
 *
 * A thread does 8 columns at a time; 16 or 32 threads share a row of up to 512 columns, and a block a longer one. The
 * threads of a group of 128 columns find its scale by shuffles. Where the scale is a whole row's, a pass before that of
 * the codes finds its greatest magnitude, and the results are computed twice, of what is in a cache.
 *
 * The activation is that of math.h and not of hardware, which takes a third of its instructions but differs in the last
 * bits from target to target: bits are the CPU's.
 *
 * Floor: one read of gate and up and one write of the codes at memory bandwidth, 9 bytes an element of f32, 5 of 16
 * bits; docs/kernel-report.md has the instructions counted, and their time beside it. Tried: 16 columns at a time, the
 * first kept in registers between the passes: 64 registers and spills with 16 bits, and images twice as large.
 * Not measured.
 *
 * Test: build/tests/ops/codes_test. Bench: build/kiln bench silu_mul_int8 */
#include "kernels/common/silu_mul_codes_gpu.h"

KILN_ENTRY(silu_mul_int8, kiln_silu_mul_codes_args) {
    KILN_SHARED float exchange[KILN_SUBGROUPS];
    kiln_silu_mul_codes(&args, exchange, KILN_CODES_INT8);
}
