/* dequantize_int8 for sm_80 and later, in bf16: dequantize_int8_gpu.c, with their conversion of two numbers to bf16,
 * which takes five instructions for each on sm_75. Not measured. */
#include "kernels/common/tuned.h"
#include "kernels/dequantize_int8/dequantize_int8_gpu.c"

KILN_TUNED_PARTS(bf16)
