/* silu_mul_nvfp4 for sm_80 and later: silu_mul_nvfp4_held for aligned rows of up to 16384 columns, silu_mul_nvfp4_gpu.c
 * for the others. Not in f32, where by the model memory takes longer than the portable kernel issues. Not measured. */
#include "kernels/common/tuned.h"
#include "kernels/silu_mul_nvfp4/silu_mul_nvfp4_gpu.c"
#include "kernels/silu_mul_nvfp4/silu_mul_nvfp4_held.h"

KILN_TUNED_PARTS(f16 bf16)
