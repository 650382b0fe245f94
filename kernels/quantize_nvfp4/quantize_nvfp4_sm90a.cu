/* quantize_nvfp4 for sm_90a: quantize_nvfp4_gpu.c, whose kernel may begin before the preceding kernel has ended, in so
 * few registers that five blocks are resident.
 *
 * Measured on an H100 (driver 580.159.04, 2026-11-26), 16384 x 4096 in bf16: 61.9 us, where a copy of as many bytes
 * takes 57.4 and the portable kernel took 64.7. Tried: loading a block ahead, 64.5; six blocks resident, which
 * spilled, 65.8; two blocks of NVFP4 for each thread, 71.4, and one, 64.1. */
#include "kernels/arch/sm89.h"
#include "kernels/arch/sm90a_programmatic.h"
#include "kernels/common/tuned.h"

#undef KILN_ENTRY_HEAD
#define KILN_ENTRY_HEAD extern "C" __global__ __launch_bounds__(KILN_BLOCK, 5) void

#include "kernels/quantize_nvfp4/quantize_nvfp4_gpu.c"

KILN_TUNED_PARTS(f16 bf16)
KILN_PROGRAMMATIC(quantize_nvfp4)
KILN_PROGRAMMATIC(quantize_nvfp4_transposed)
KILN_TUNED_ASSEMBLER(12.4.131)
