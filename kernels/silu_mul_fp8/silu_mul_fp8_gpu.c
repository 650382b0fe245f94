/* silu_mul_fp8: r = activation(gate) * up, in f32, which is not stored; codes = E4M3 of r / scale, and the decode
 * scales amax / smax of rows or groups of 128 columns.
 *
 * A thread processes 8 columns at a time; 16 or 32 threads share a row of up to 512 columns, and a whole block shares a
 * longer one. The threads that share a group of 128 columns find its scale by shuffles. Where a whole row has one
 * scale, a first pass finds the row's greatest magnitude, and the results stay in shared memory until the second, of
 * which a block takes at most a quarter; what is beyond (8192 columns on sm_80, 14336 on sm_90, 4096 on sm_75 and AMD's
 * devices) is computed again from inputs that are in a cache.
 *
 * On AMD, for f32 only where a wave has 64 threads, SiLU's results of aligned rows of up to 8192 columns stay in the
 * registers of as many threads as have three or four eights of them each (codes_four_gpu.h). By the model of
 * docs/kernel-report.md that issues for 0.7 of the memory's time in 16 bits on gfx90a, where E4M3 takes 6 of 29
 * instructions an element, and for nearly as long as it on gfx9-generic, which has none for two f32. Not measured.
 *
 * The activation is that of glu_exactly.h, with the CPU's bits: 18 instructions an element for SiLU in machine code
 * of sm_90. The hardware's functions would take half of them, but differ in the last bits from target to target.
 *
 * Floor: one read of gate and up and one write of the codes at memory bandwidth, 9 bytes an element of f32, 5 of
 * 16 bits. docs/kernel-report.md has the instructions of the texts and the time that they take by its model. Rows of
 * 8192 columns of 16 bits take about 51 instructions of machine code an element on sm_90: predicted, 1.5 ps on an H100,
 * 0.9 of the memory's time. Measured on an H200
 * (driver 580.159.04, 2026-11-26): 147 us for 16384 x 4096 in bf16, 136 with scales of 128 columns. Tried: 16 columns
 * at a time, the first of them kept in registers between the passes, which took 64 registers, spilled with 16 bits and
 * doubled the images; loops of their own for results that were kept, which exceeded 256 KiB of images.
 *
 * Test: build/tests/ops/codes_test. Bench: build/kiln bench silu_mul_fp8 */
#if defined(__HIP__) && (defined(__GFX9__) || !defined(KILN_PART_f32))
#include "kernels/common/quantize/silu_mul_codes_four_gpu.h"
#else
#include "kernels/common/quantize/silu_mul_codes_gpu.h"
#endif

KILN_ENTRY(silu_mul_fp8, kiln_silu_mul_codes_args) {
    KILN_SHARED float exchange[KILN_SUBGROUPS];
    KILN_DYNAMIC_SHARED(kiln_codes_kept, kept);
#if defined(KILN_KERNELS_COMMON_QUANTIZE_CODES_FOUR_GPU_H)
    if (args.four) {
        kiln_silu_mul_four(&args, exchange, KILN_CODES_E4M3);
        return;
    }
#endif
    kiln_silu_mul_codes(&args, kept, exchange, KILN_CODES_E4M3);
}
