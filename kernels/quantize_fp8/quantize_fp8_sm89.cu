/* quantize_fp8 for sm_89 and later: quantize_fp8_gpu.c, with the hardware's conversion to E4M3. */
#include "kernels/arch/sm89.h"
#include "kernels/common/tuned.h"

#include "kernels/quantize_fp8/quantize_fp8_gpu.c"

KILN_TUNED_PARTS(f32 f16 bf16)
KILN_TUNED_ASSEMBLER(12.4.131)
