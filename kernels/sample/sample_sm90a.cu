/* sample for sm_90a: sample_gpu.c, whose kernel may begin before the preceding kernel has ended, and sample_cluster for
 * a few long rows, each of which is in the shared memory of a cluster of eight blocks: resident_sm90a.h. Without
 * top-k and min-p, elements of bf16 are counted by their numbers: counted_sm90a.h. Of 64 rows of up to 132,000 elements
 * of 16 bits a multiprocessor has four blocks. It copies their shares one after the other, so that the blocks whose
 * shares come first compute while it waits for those of others.
 *
 * Measured on an H200 (141 GB, driver 580.159.04, 2026-11-27; bf16, [64, 128256], graphs, cold), in us, of normal
 * logits and of five times those: 10.9 and 10.1 with temperature 0, 31.2 and 37.1 without filters, 44.9 and 45.5 with
 * top_p 0.9, 19.3 and 18.5 with top_k 50 too, 33.9 and 16.1 with min_p 0.05, 91.5 and 92.3 with top_k 1000; reading
 * the rows takes 3.7. By samples of the program counter blocks waited for each other most of the time: without filters
 * 3 us were the counts of eight blocks, which were read one after the other and twice, and are asked for at once since,
 * and 4 the exchange of what they weigh. An H100 took 34.9 without filters and 144 with top_p, when rows were read
 * again from L2 (2026-11-26). */
#include "kernels/arch/sm89.h"
#include "kernels/arch/sm90a.h"
#include "kernels/arch/sm90a_programmatic.h"
#include "kernels/common/element.h"
#include "kernels/common/tuned.h"

#define KILN_TEAM_RESIDENT
#define KILN_TEAM_VECTORS()             resident_vectors()
#define KILN_TEAM_RANK()                kiln_sm90a_cluster_rank()
#define KILN_TEAM_SYNC()                kiln_sm90a_cluster_sync()
#define KILN_TEAM_SHARED(pointer, rank) kiln_sm90a_shared_of(pointer, rank)
#define KILN_TEAM_SEND(pointer, rank, barrier, value)                       \
    kiln_sm90a_send_64(kiln_sm90a_remote(kiln_sm90a_shared(pointer), rank), \
                       kiln_sm90a_remote(kiln_sm90a_shared(barrier), rank), value)
#define KILN_TEAM_SEND_VECTOR(pointer, rank, barrier, from)                 \
    kiln_sm90a_send_v4(kiln_sm90a_remote(kiln_sm90a_shared(pointer), rank), \
                       kiln_sm90a_remote(kiln_sm90a_shared(barrier), rank), *(const uint4 *)(from))
#define KILN_TEAM_EXPECT(barrier, bytes) kiln_sm90a_mbarrier_arrive_expect_tx(kiln_sm90a_shared(barrier), bytes)
#define KILN_TEAM_WAIT(barrier, parity)  kiln_sm90a_mbarrier_wait(kiln_sm90a_shared(barrier), parity)

static __device__ __forceinline__ kiln_vector *resident_vectors(void) {
    KILN_DYNAMIC_SHARED(kiln_vector, vectors);
    return vectors;
}

/* Three blocks of a multiprocessor, since the assembler spills for four. */
#undef KILN_ENTRY_HEAD
#define KILN_ENTRY_HEAD extern "C" __global__ __launch_bounds__(KILN_BLOCK, 3) void

#include "kernels/sample/resident_sm90a.h"
#include "kernels/sample/sample_gpu.c"

KILN_TUNED_PARTS(f32 f16 bf16)
KILN_TUNED_ASSEMBLER(12.4.131)
KILN_PROGRAMMATIC(sample)

#undef KILN_ENTRY_HEAD
#define KILN_ENTRY_HEAD \
    extern "C" __global__ __cluster_dims__(KILN_SAMPLE_CLUSTER, 1, 1) __launch_bounds__(KILN_BLOCK, 4) void

KILN_ENTRY(sample_cluster, kiln_sample_args) {
    KILN_SHARED exchange shared;
    KILN_SHARED __align__(16) meeting met;
    if (kiln_thread() == 0) {
        kiln_sm90a_mbarrier_init(kiln_sm90a_shared(&met.shared[0]), 1);
        kiln_sm90a_mbarrier_init(kiln_sm90a_shared(&met.shared[1]), 1);
        kiln_sm90a_mbarrier_init(kiln_sm90a_shared(&met.told), 1);
        kiln_sm90a_mbarrier_init(kiln_sm90a_shared(&met.gathered), 1);
        kiln_sm90a_fence_mbarrier_init();
    }
    __syncwarp();
    kiln_sm90a_cluster_arrive();
    sample_resident(&args, &shared, &met);
}
KILN_PROGRAMMATIC(sample_cluster)
