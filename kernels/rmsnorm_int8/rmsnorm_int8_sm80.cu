/* rmsnorm_int8 for sm_80 and later (rmsnorm_codes_sm80.h). Not measured. */
#include "kernels/common/quantize/rmsnorm_codes_sm80.h"

KILN_RMSNORM_CODES_SM80(rmsnorm_int8, KILN_CODES_INT8)

KILN_TUNED_PARTS(f16 bf16)
