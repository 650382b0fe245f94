/* top_k on the CPU: the operator's definition. top_k_gpu.c says what its blocks do.
 *
 * The k greatest elements so far are a heap whose root is the least of them. A tile whose greatest key does not exceed
 * the root's has none of the k, which is true of nearly all tiles of a long row; the keys of a tile are found in loops
 * that the compiler vectorises.
 *
 * Floor: one read of the tensor at memory bandwidth.
 * Test: build/tests/ops/top_k_test. Bench: build/kiln bench top_k --device cpu */
#include "kernels/common/cpu.h"
#include "kernels/common/reduce/rank_heap.h"
#include "kernels/top_k/top_k_args.h"

typedef struct top_k_scratch {
    kiln_rank_heap heap;
    float values[KILN_TILE];
    uint32_t keys[KILN_TILE];
} top_k_scratch;
_Static_assert(sizeof(top_k_scratch) <= KILN_CPU_SCRATCH, "fits");

/* Columns ascend, so an element equal to the root is not a candidate. */
KILN_INLINE void offer_elements(top_k_scratch *scratch, const void *x, uint32_t col, size_t count,
                                kiln_cpu_dtype dtype) {
    kiln_rank_heap *h = &scratch->heap;
    for (size_t start = 0; start < count; start += KILN_TILE) {
        size_t n = kiln_min(count - start, KILN_TILE);
        const float *values = kiln_tile_read(scratch->values, kiln_at(x, start, dtype), n, dtype);
        uint32_t greatest = 0;
        KILN_INDEPENDENT
        for (size_t i = 0; i < n; i++)
            scratch->keys[i] = kiln_order_key(values[i]);
        for (size_t i = 0; i < n; i++)
            greatest = scratch->keys[i] > greatest ? scratch->keys[i] : greatest;
        if (h->count == h->most && greatest <= h->ranks[0] >> 32) continue;
        for (size_t i = 0; i < n; i++)
            kiln_rank_offer(h, kiln_rank_of(scratch->keys[i], col + (uint32_t)(start + i)));
    }
}

KILN_OUTLINED void top_k(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_top_k_args args = *(const kiln_top_k_args *)arguments; /* a copy, which no store can change */
    top_k_scratch *scratch = span->scratch;
    kiln_rank_heap *h = &scratch->heap;
    for (uint64_t block = span->begin; block < span->end; block++)
        for (kiln_cpu_work work = kiln_work_of(&args.shape, span, block); work.row < work.row_end; work.row++) {
            const void *x = kiln_at(args.x, work.row * (uint64_t)args.x_stride, dtype);
            size_t count = work.col_end - work.col;
            h->count = 0;
            h->most = count < args.k ? (uint32_t)count : args.k;
            if (args.from) {
                const kiln_top_k_candidate *from = args.from + work.row * (uint64_t)args.shape.cols + work.col;
                for (size_t i = 0; i < count; i++)
                    kiln_rank_offer(h, kiln_rank_of(from[i].key, from[i].col));
            } else {
                offer_elements(scratch, kiln_at(x, work.col, dtype), (uint32_t)work.col, count, dtype);
            }
            if (args.to) {
                kiln_top_k_candidate *to = args.to + work.row * args.to_count + work.tile * args.k;
                for (uint32_t i = 0; i < h->most; i++)
                    to[i] = (kiln_top_k_candidate){kiln_rank_key(h->ranks[i]), kiln_rank_place(h->ranks[i])};
                continue;
            }
            kiln_rank_order(h);
            for (uint32_t i = 0; i < args.k; i++) {
                uint32_t col = kiln_rank_place(h->ranks[i]);
                uint64_t at = work.row * args.k + i;
                args.indices[at] = (int32_t)col;
                if (args.values)
                    memcpy(kiln_at_mut(args.values, at, dtype), kiln_at(x, col, dtype), kiln_dtype_size(dtype));
            }
        }
}
KILN_CPU_KERNEL(top_k)
