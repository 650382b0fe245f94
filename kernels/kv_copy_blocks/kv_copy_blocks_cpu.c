/* kv_copy_blocks on the CPU: the operator's definition. kv_copy_blocks_gpu.c says what its blocks do.
 *
 * Floor: one read and one write of both caches' blocks at memory bandwidth.
 * Test: build/tests/ops/kv_copy_blocks_test. Bench: build/kiln bench kv_copy_blocks --device cpu */
#include "kernels/common/cpu.h"

#include "kernels/common/index.h"
#include "kernels/kv_copy_blocks/kv_copy_blocks_args.h"

KILN_OUTLINED void kv_copy_blocks(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_kv_copy_blocks_args args =
        *(const kiln_kv_copy_blocks_args *)arguments; /* a copy, which no store can change */
    for (uint64_t block = span->begin; block < span->end; block++)
        for (kiln_cpu_work work = kiln_work_of(&args.shape, span, block); work.row < work.row_end; work.row++) {
            uint64_t from = kiln_index(args.pairs, args.pairs_64, 2 * work.row);
            uint64_t to = kiln_index(args.pairs, args.pairs_64, 2 * work.row + 1);
            if (from >= (uint64_t)args.blocks || to >= (uint64_t)args.blocks) continue;
            from = from * (uint64_t)args.shape.cols + work.col;
            to = to * (uint64_t)args.shape.cols + work.col;
            size_t size = (work.col_end - work.col) * kiln_dtype_size(dtype);
            memmove(kiln_at_mut(args.key_cache, to, dtype), kiln_at(args.key_cache, from, dtype), size);
            memmove(kiln_at_mut(args.value_cache, to, dtype), kiln_at(args.value_cache, from, dtype), size);
        }
}
KILN_CPU_KERNEL(kv_copy_blocks)
