/* tree_verify_sampled on the CPU: the operator's definition, with walk.h and residual.h. tree_verify_sampled_gpu.c says
 * what its blocks do.
 *
 * Floor: two reads of the last accepted node's rows, and one more for each rejected sibling.
 * Test: build/tests/ops/tree_verify_sampled_test. Bench: build/kiln bench tree_verify_sampled --device cpu */
#include "kernels/tree_verify_sampled/walk_cpu.h"

_Static_assert(KILN_TREE_VERIFY_NODES * sizeof(uint32_t) <= KILN_CPU_SCRATCH, "fits");

KILN_OUTLINED void tree_verify_sampled(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_tree_verify_sampled_args args = *(const kiln_tree_verify_sampled_args *)arguments;
    for (uint64_t number = span->begin; number < span->end && number < (uint64_t)args.batch; number++)
        verify_sequence(&args, (uint32_t)number, dtype, span->scratch);
}
KILN_CPU_KERNEL(tree_verify_sampled)
