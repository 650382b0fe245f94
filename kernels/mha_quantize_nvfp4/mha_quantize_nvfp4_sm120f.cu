/* mha_quantize_nvfp4 for sm_120a and its family (RTX 50): mha_quantize_nvfp4_gpu.c, with their conversion to E2M1. Not
 * measured. */
#include "kernels/common/tuned.h"
#include "kernels/mha_quantize_nvfp4/mha_quantize_nvfp4_gpu.c"

KILN_TUNED_PARTS(f16 bf16)
