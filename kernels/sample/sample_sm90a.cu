/* sample for sm_90a: sample_gpu.c, whose kernel may begin before the preceding kernel has ended, and sample_cluster for
 * a few long rows, each of which a cluster of eight blocks shares: so 64 rows take all multiprocessors instead of half
 * of them with a block each. Not measured. */
#include "kernels/arch/sm90a_programmatic.h"
#include "kernels/arch/sm90a_shared.h"
#include "kernels/common/tuned.h"

#define KILN_TEAM_RANK()                kiln_sm90a_cluster_rank()
#define KILN_TEAM_SYNC()                kiln_sm90a_cluster_sync()
#define KILN_TEAM_SHARED(pointer, rank) kiln_sm90a_shared_of(pointer, rank)

/* Three blocks of a multiprocessor, since the assembler spills for four. */
#undef KILN_ENTRY_HEAD
#define KILN_ENTRY_HEAD extern "C" __global__ __launch_bounds__(KILN_BLOCK, 3) void

#include "kernels/sample/sample_gpu.c"

KILN_TUNED_PARTS(f32 f16 bf16)
KILN_PROGRAMMATIC(sample)

#undef KILN_ENTRY_HEAD
#define KILN_ENTRY_HEAD \
    extern "C" __global__ __cluster_dims__(KILN_SAMPLE_CLUSTER, 1, 1) __launch_bounds__(KILN_BLOCK, 4) void

KILN_ENTRY(sample_cluster, kiln_sample_args) {
    KILN_SHARED exchange shared;
    kiln_sm90a_cluster_sync(); /* a block's shared memory may be written once it has begun */
    int32_t col = sample_row(&args, &shared, KILN_SAMPLE_CLUSTER, kiln_block());
    if (kiln_thread() == 0 && kiln_sm90a_cluster_rank() == 0) args.y[kiln_block()] = col;
}
KILN_PROGRAMMATIC(sample_cluster)
