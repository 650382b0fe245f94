/* softmax for sm_100 and later, in bf16: softmax_gpu.c. Its text takes fewer instructions than that of softmax_sm80.cu,
 * which would otherwise be used. Not measured. */
#include "kernels/common/tuned.h"
#include "kernels/softmax/softmax_gpu.c"

KILN_TUNED_PARTS(bf16)
