/* dequantize_w4a16 for sm_80 and later, in bf16: dequantize_w4a16_gpu.c, with their conversion of two numbers to bf16,
 * which takes five instructions for each on sm_75. Not measured. */
#include "kernels/common/tuned.h"
#include "kernels/dequantize_w4a16/dequantize_w4a16_gpu.c"

KILN_TUNED_PARTS(bf16)
