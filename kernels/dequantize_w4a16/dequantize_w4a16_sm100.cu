/* dequantize_w4a16 for sm_100 and later, in bf16: dequantize_w4a16_gpu.c. Its text takes fewer instructions than that
 * of dequantize_w4a16_sm80.cu, which would otherwise be used. Not measured. */
#include "kernels/common/tuned.h"
#include "kernels/dequantize_w4a16/dequantize_w4a16_gpu.c"

KILN_TUNED_PARTS(bf16)
