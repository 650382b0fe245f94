/* add_gelu for sm_80 and later, in bf16: add_gelu_gpu.c, with their conversion of two numbers to bf16, which takes five
 * instructions for each on sm_75. Not measured. */
#include "kernels/add_gelu/add_gelu_gpu.c"
#include "kernels/common/tuned.h"

KILN_TUNED_PARTS(bf16)
