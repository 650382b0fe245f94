/* add_gelu for sm_100 and later, in bf16: add_gelu_gpu.c. Its text takes fewer instructions than that of
 * add_gelu_sm80.cu, which would otherwise be used. Not measured. */
#include "kernels/add_gelu/add_gelu_gpu.c"
#include "kernels/common/tuned.h"

KILN_TUNED_PARTS(bf16)
