/* rmsnorm_nvfp4 for sm_120a and its family (RTX 50): rmsnorm_nvfp4_held for aligned rows of up to 8192 columns, with
 * their conversion to E2M1, rmsnorm_nvfp4_gpu.c for the others. Not measured. */
#include "kernels/common/tuned.h"
#include "kernels/rmsnorm_nvfp4/rmsnorm_nvfp4_gpu.c"
#include "kernels/rmsnorm_nvfp4/rmsnorm_nvfp4_held.h"

KILN_TUNED_PARTS(f32 f16 bf16)
