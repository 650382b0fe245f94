/* rmsnorm_nvfp4: s = x + residual, stored as sum, rounded; r = s / sqrt(mean of s^2 + eps) * weight over each row, in
 * f32 and not stored; codes = E2M1 of r over its block's scale and g, and the E4M3 scales of 16 columns and g = amax /
 * 2688 of rows.
 *
 * A thread does 8 columns at a time; 16 or 32 threads share a row of up to 512 columns, and a block a longer one. The
 * two threads of a block find its scale by shuffles. A loop over passes finds the squares, the greatest magnitude where
 * that makes a row's scale, and the codes, so that the code is there once; each pass reads the row again, from a cache,
 * and rows may be of any length.
 *
 * Every sum has its order (fused.h), whatever the alignment: bits are the CPU's.
 *
 * Floor: without a residual one read of x and one write of the codes at memory bandwidth, 4.56 bytes an element of f32,
 * 2.56 of 16 bits; the residual and the sum add one element each. docs/kernel-report.md has the instructions counted,
 * and their time beside it. Tried: 16 columns at a time, the first kept in registers between the passes: 64 registers
 * and spills with 16 bits, and images twice as large.
 * Not measured.
 *
 * Test: build/tests/ops/codes_test. Bench: build/kiln bench rmsnorm_nvfp4 */
#include "kernels/common/rmsnorm_codes_gpu.h"

KILN_ENTRY(rmsnorm_nvfp4, kiln_rmsnorm_codes_args) {
    KILN_SHARED float exchange[KILN_SUBGROUPS];
    kiln_rmsnorm_codes(&args, exchange, KILN_CODES_NVFP4);
}
