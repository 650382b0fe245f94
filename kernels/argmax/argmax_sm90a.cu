/* argmax for sm_90a: argmax_gpu.c, whose kernel may begin before the preceding kernel has ended. Not measured. */
#include "kernels/arch/sm90a_programmatic.h"
#include "kernels/common/tuned.h"

#include "kernels/argmax/argmax_gpu.c"

KILN_TUNED_PARTS(f32 f16 bf16)
KILN_PROGRAMMATIC(argmax)
