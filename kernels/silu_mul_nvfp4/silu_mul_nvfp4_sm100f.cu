/* silu_mul_nvfp4 for sm_100a and its family (B200, B300): silu_mul_nvfp4_held for aligned rows of up to 16384 columns,
 * with their conversion to E2M1, silu_mul_nvfp4_gpu.c for the others. Not measured. */
#include "kernels/common/tuned.h"
#include "kernels/silu_mul_nvfp4/silu_mul_nvfp4_gpu.c"
#include "kernels/silu_mul_nvfp4/silu_mul_nvfp4_held.h"

KILN_TUNED_PARTS(f32 f16 bf16)
