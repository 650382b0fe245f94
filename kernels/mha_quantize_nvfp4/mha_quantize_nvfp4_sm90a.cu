/* mha_quantize_nvfp4 for sm_90a: mha_quantize_nvfp4_gpu.c, whose kernels may begin before the preceding kernel has
 * ended, with the target's comparisons of pairs and its conversion to E4M3. Not measured. */
#include "kernels/arch/sm90a_programmatic.h"
#include "kernels/common/tuned.h"
#include "kernels/mha_quantize_nvfp4/mha_quantize_nvfp4_gpu.c"

KILN_TUNED_PARTS(f16 bf16)
KILN_PROGRAMMATIC(mha_quantize_nvfp4_channels)
KILN_PROGRAMMATIC(mha_quantize_nvfp4_join)
KILN_PROGRAMMATIC(mha_quantize_nvfp4_codes)
