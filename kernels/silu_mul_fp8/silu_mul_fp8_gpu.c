/* silu_mul_fp8: r = activation(gate) * up, in f32, which is not stored; codes = E4M3 of r / scale, and the decode
 * scales amax / smax of rows or groups of 128 columns.
 *
 * A thread processes 8 columns at a time; 16 or 32 threads share a row of up to 512 columns, and a whole block shares a
 * longer one. The threads that share a group of 128 columns find its scale by shuffles. Where a whole row has one
 * scale, a first pass finds the row's greatest magnitude; the results are then computed a second time, from inputs that
 * are in a cache.
 *
 * The activation is that of math.h. The hardware's functions take a third of its instructions, but differ in the last
 * bits from target to target; with math.h the result has the CPU's bits.
 *
 * Floor: one read of gate and up and one write of the codes at memory bandwidth, 9 bytes an element of f32, 5 of 16
 * bits; docs/kernel-report.md has the instruction counts and the time that they take. Tried: 16 columns at a time, the
 * first of them kept in registers between the passes, which took 64 registers, spilled with 16 bits and doubled the
 * images. Not measured.
 *
 * Test: build/tests/ops/codes_test. Bench: build/kiln bench silu_mul_fp8 */
#include "kernels/common/silu_mul_codes_gpu.h"

KILN_ENTRY(silu_mul_fp8, kiln_silu_mul_codes_args) {
    KILN_SHARED float exchange[KILN_SUBGROUPS];
    kiln_silu_mul_codes(&args, exchange, KILN_CODES_E4M3);
}
