/* sample for sm_90a: sample_gpu.c, whose kernel may begin before the preceding kernel has ended. */
#include "kernels/arch/sm90a_programmatic.h"
#include "kernels/common/tuned.h"

/* Four blocks of a multiprocessor, which the assembler reaches only if it is told. */
#undef KILN_ENTRY_HEAD
#define KILN_ENTRY_HEAD extern "C" __global__ __launch_bounds__(KILN_BLOCK, 4) void

#include "kernels/sample/sample_gpu.c"

KILN_TUNED_PARTS(f32 f16 bf16)
KILN_PROGRAMMATIC(sample)
