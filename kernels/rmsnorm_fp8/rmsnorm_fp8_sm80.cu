/* rmsnorm_fp8 for sm_80 and later (rmsnorm_codes_sm80.h). Not measured. */
#include "kernels/common/quantize/rmsnorm_codes_sm80.h"

KILN_RMSNORM_CODES_SM80(rmsnorm_fp8, KILN_CODES_E4M3)

KILN_TUNED_PARTS(f32 f16 bf16)
