/* dequantize_fp8 for sm_100 and later, in bf16: dequantize_fp8_gpu.c. Its text takes fewer instructions than that of
 * dequantize_fp8_sm80.cu, which would otherwise be used. Not measured. */
#include "kernels/common/tuned.h"
#include "kernels/dequantize_fp8/dequantize_fp8_gpu.c"

KILN_TUNED_PARTS(bf16)
