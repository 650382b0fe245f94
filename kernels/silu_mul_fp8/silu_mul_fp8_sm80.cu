/* silu_mul_fp8 for sm_80 and later (silu_mul_codes_sm80.h).
 *
 * By the model of docs/kernel-report.md it issues for 0.67 to 0.69 of the memory's time in 16 bits, 0.41 in f32: E4M3
 * takes 6 of 37 instructions an element, without an instruction for it, SiLU and its product 15. Not measured. */
#include "kernels/common/quantize/silu_mul_codes_sm80.h"

KILN_SILU_MUL_CODES_SM80(silu_mul_fp8, KILN_CODES_E4M3)

KILN_TUNED_PARTS(f32 f16 bf16)
