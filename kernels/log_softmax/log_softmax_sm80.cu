/* log_softmax for sm_80 and later, in bf16: log_softmax_gpu.c, with their conversion of two numbers to bf16, which
 * takes five instructions for each on sm_75. Not measured. */
#include "kernels/common/tuned.h"
#include "kernels/log_softmax/log_softmax_gpu.c"

KILN_TUNED_PARTS(bf16)
