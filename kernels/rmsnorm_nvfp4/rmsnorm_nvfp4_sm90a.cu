/* rmsnorm_nvfp4 for sm_90a: rmsnorm_nvfp4_held for aligned rows of up to 8192 columns, rmsnorm_nvfp4_gpu.c for the
 * others. The kernels may begin before the preceding kernel has ended.
 *
 * Measured on an H100 (driver 580.159.04, 2026-11-26), 16384 x 4096 in bf16, before there was rmsnorm_nvfp4_held, with
 * 256 threads for a row: 87.0 us, where a copy of as many bytes takes 57.4. It issued nearly all the time, 33
 * instructions of machine code an element. */
#include "kernels/arch/sm89.h"
#include "kernels/arch/sm90a_programmatic.h"
#include "kernels/common/tuned.h"
#include "kernels/rmsnorm_nvfp4/rmsnorm_nvfp4_gpu.c"
#include "kernels/rmsnorm_nvfp4/rmsnorm_nvfp4_held.h"

KILN_TUNED_PARTS(bf16)
KILN_PROGRAMMATIC(rmsnorm_nvfp4)
KILN_PROGRAMMATIC(rmsnorm_nvfp4_held)
KILN_TUNED_ASSEMBLER(12.4.131)
