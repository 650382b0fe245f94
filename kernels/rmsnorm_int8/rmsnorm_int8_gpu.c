/* rmsnorm_int8: s = x + residual, which is rounded and stored as sum; r = s / sqrt(mean of s^2 + eps) * weight over
 * each row, in f32, which is not stored; codes = int8 of r / scale, and the decode scales amax / smax of rows or groups
 * of 128 columns.
 *
 * A thread processes 8 columns at a time; 16 or 32 threads share a row of up to 512 columns, and a whole block shares a
 * longer one. The threads that share a group of 128 columns find its scale by shuffles. The passes over a row are
 * the squares, the greatest magnitude where it determines the row's scale, and the codes. The sums, and then the
 * results, stay in shared memory between the passes, of which a block takes at most a quarter; what is beyond (8192
 * columns on sm_80, 14336 on sm_90, 4096 on sm_75 and AMD's devices) is computed again from inputs that are in a cache,
 * so a row may have any length. With 16 bits on gfx9 and gfx10-1 rows of whole, aligned eights have loops of their
 * own, and others are processed column by column; the images of all targets would be too large with them.
 *
 * The order of each sum is fixed (codes_scale.h), whatever the alignment, so that the result has the CPU's bits.
 *
 * Floor: without a residual one read of x and one write of the codes at memory bandwidth, 5 bytes an element of f32, 3
 * of 16 bits; the residual and the sum add one element each. docs/kernel-report.md has the instruction counts and the
 * time that they take. Tried: 16 columns at a time, the first of them kept in registers between the passes, which took
 * 64 registers, spilled with 16 bits and doubled the images. Measured on an H200
 * (driver 580.159.04, 2026-11-26): 138 us for 16384 x 4096 in bf16, 126
 * with scales of 128 columns.
 *
 * Test: build/tests/ops/codes_test. Bench: build/kiln bench rmsnorm_int8 */
#if (defined(__GFX9__) || defined(__gfx10_1_generic__)) && !defined(KILN_PART_f32)
#include "kernels/common/quantize/rmsnorm_codes_rows_gpu.h"
#define RMSNORM_CODES kiln_rmsnorm_codes_rows
#else
#include "kernels/common/quantize/rmsnorm_codes_gpu.h"
#define RMSNORM_CODES kiln_rmsnorm_codes
#endif

KILN_ENTRY(rmsnorm_int8, kiln_rmsnorm_codes_args) {
    KILN_SHARED float exchange[KILN_SUBGROUPS];
    KILN_DYNAMIC_SHARED(kiln_codes_kept, kept);
    RMSNORM_CODES(&args, kept, exchange, KILN_CODES_INT8);
}
