/* mha_quantize for sm_90a: mha_quantize_gpu.c, whose kernels may begin before the preceding kernel has ended, and whose
 * codes of E4M3 an instruction makes. */
#include "kernels/arch/sm90a_programmatic.h"
#include "kernels/common/tuned.h"

#include "kernels/mha_quantize/mha_quantize_gpu.c"

KILN_TUNED_PARTS(f16 bf16)
KILN_PROGRAMMATIC(mha_quantize_channels)
KILN_PROGRAMMATIC(mha_quantize_join)
KILN_PROGRAMMATIC(mha_quantize_codes)
