/* silu_mul_nvfp4 for sm_90a: silu_mul_nvfp4_held for aligned rows of up to 16384 columns, silu_mul_nvfp4_gpu.c for the
 * others. The kernels may begin before the preceding kernel has ended.
 *
 * Measured on an H100 (driver 580.159.04, 2026-11-26), 16384 x 4096 in bf16, before there was silu_mul_nvfp4_held, with
 * 256 threads for a row and two eights for each: 123.0 us, where a copy of as many bytes takes 102; four such blocks
 * resident instead of five, 129. It issued most of the time, some 47 instructions of machine code an element. Tried:
 * one loop for SiLU in all ranges and GELU, which has five instructions more. */
#include "kernels/arch/sm89.h"
#include "kernels/arch/sm90a_programmatic.h"
#include "kernels/common/tuned.h"

#undef KILN_ENTRY_HEAD /* four blocks are resident; ptxas would spill for five */
#define KILN_ENTRY_HEAD extern "C" __global__ __launch_bounds__(KILN_BLOCK, 4) void

#include "kernels/silu_mul_nvfp4/silu_mul_nvfp4_gpu.c"
#include "kernels/silu_mul_nvfp4/silu_mul_nvfp4_held.h"

KILN_TUNED_PARTS(f16 bf16)
KILN_PROGRAMMATIC(silu_mul_nvfp4)
KILN_PROGRAMMATIC(silu_mul_nvfp4_held)
KILN_TUNED_ASSEMBLER(12.4.131)
