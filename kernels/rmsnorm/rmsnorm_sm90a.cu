/* rmsnorm for sm_90a: rmsnorm_gpu.c, whose kernel may begin before the preceding kernel has ended and prefetches
 * its weights before it waits. Not measured. */
#include "kernels/arch/sm90a_programmatic.h"
#include "kernels/common/tuned.h"
#include "kernels/rmsnorm/rmsnorm_args.h"

KILN_SM90A void kiln_sm90a_early(const kiln_rmsnorm_args &args) {
    kiln_sm90a_prefetch(args.weight, (uint64_t)args.shape.cols * sizeof(kiln_element));
}

#include "kernels/rmsnorm/rmsnorm_gpu.c"

KILN_TUNED_PARTS(f32 f16 bf16)
KILN_PROGRAMMATIC(rmsnorm)
