/* softmax for sm_80 and later, in bf16: softmax_gpu.c, with their conversion of two numbers to bf16, which takes five
 * instructions for each on sm_75. Not measured. */
#include "kernels/common/tuned.h"
#include "kernels/softmax/softmax_gpu.c"

KILN_TUNED_PARTS(bf16)
