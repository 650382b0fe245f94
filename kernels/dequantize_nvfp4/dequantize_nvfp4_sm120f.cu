/* dequantize_nvfp4 for sm_120a and its family (RTX 50): dequantize_nvfp4_gpu.c, with their conversion of E2M1. Not
 * measured. */
#include "kernels/common/tuned.h"
#include "kernels/dequantize_nvfp4/dequantize_nvfp4_gpu.c"

KILN_TUNED_PARTS(f32 f16 bf16)
