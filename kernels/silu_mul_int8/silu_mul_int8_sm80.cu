/* silu_mul_int8 for sm_80 and later (silu_mul_codes_sm80.h). Not measured. */
#include "kernels/common/quantize/silu_mul_codes_sm80.h"

KILN_SILU_MUL_CODES_SM80(silu_mul_int8, KILN_CODES_INT8)

KILN_TUNED_PARTS(f32 f16 bf16)
