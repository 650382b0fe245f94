/* softmax of f32 for sm_90a: softmax_gpu.c, whose kernel may begin before the preceding kernel has ended. */
#include "kernels/arch/sm90a_programmatic.h"
#include "kernels/common/tuned.h"

#include "kernels/softmax/softmax_gpu.c"

KILN_TUNED_PARTS(f32)
KILN_PROGRAMMATIC(softmax_rows)
