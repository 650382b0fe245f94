/* kv_compact on the CPU: the operator's definition. kv_compact_gpu.c says what its blocks do.
 *
 * Floor: one read and one write of the accepted tokens' keys and values at memory bandwidth.
 * Test: build/tests/ops/kv_compact_test. Bench: build/kiln bench kv_compact --device cpu */
#include "kernels/common/cpu.h"

#include "kernels/kv_compact/moves.h"

KILN_OUTLINED void kv_compact(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_kv_compact_args args = *(const kiln_kv_compact_args *)arguments; /* a copy, which no store can change */
    for (uint64_t block = span->begin; block < span->end; block++)
        for (kiln_cpu_work work = kiln_work_of(&args.shape, span, block); work.row < work.row_end; work.row++) {
            size_t size = (work.col_end - work.col) * kiln_dtype_size(dtype);
            uint32_t accepted = kiln_accepted(&args, work.row);
            for (uint32_t i = 0; i < accepted; i++) {
                kiln_move move = kiln_move_of(&args, work.row, i);
                if (move.from == move.to) continue;
                uint64_t stride = (uint64_t)args.key_cache_stride;
                memcpy(kiln_at_mut(args.key_cache, move.to * stride + work.col, dtype),
                       kiln_at(args.key_cache, move.from * stride + work.col, dtype), size);
                stride = (uint64_t)args.value_cache_stride;
                memcpy(kiln_at_mut(args.value_cache, move.to * stride + work.col, dtype),
                       kiln_at(args.value_cache, move.from * stride + work.col, dtype), size);
            }
        }
}
KILN_CPU_KERNEL(kv_compact)
