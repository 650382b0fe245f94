/* rope_kv_store for sm_90a: rope_kv_store_gpu.c, whose kernel may begin before the preceding kernel has ended and
 * prefetches its frequencies before it waits. Not measured. */
#include "kernels/arch/sm90a_programmatic.h"
#include "kernels/common/tuned.h"
#include "kernels/rope_kv_store/rope_kv_store_args.h"

KILN_SM90A void kiln_sm90a_early(const kiln_rope_kv_store_args &args) {
    if (args.source == KILN_TURN_BY_FREQUENCY) kiln_sm90a_prefetch(args.frequencies, (uint64_t)args.pairs * 8);
}

#include "kernels/rope_kv_store/rope_kv_store_gpu.c"

KILN_TUNED_PARTS(f32 f16 bf16)
KILN_PROGRAMMATIC(rope_kv_store)
