/* top_k on the CPU, and its definition: see top_k_gpu.c for the meaning of its blocks.
 *
 * The k greatest elements so far are a heap whose root is the least of them. A tile whose greatest key is no more than
 * the root's has none of the k, and of a long row nearly all tiles are so: their keys are found in loops of vectors.
 *
 * Floor: one read of the tensor at memory bandwidth.
 * Test: build/tests/ops/top_k_test. Bench: build/kiln bench top_k --device cpu */
#include "kernels/common/cpu.h"
#include "kernels/common/total_order.h"
#include "kernels/top_k/top_k_args.h"

/* Ranks are key << 32 | ~column: greater ones come first, and of equal elements the lower column. */
typedef struct heap {
    uint64_t ranks[KILN_TOP_K_RANKS]; /* each no more than those at 2i + 1 and 2i + 2 */
    uint32_t count, most;
} heap;

typedef struct top_k_scratch {
    heap heap;
    float values[KILN_TILE];
    uint32_t keys[KILN_TILE];
} top_k_scratch;
_Static_assert(sizeof(top_k_scratch) <= KILN_CPU_SCRATCH, "fits");

static void sink(heap *h, uint32_t at, uint64_t rank) {
    for (uint32_t child; (child = 2 * at + 1) < h->count; at = child) {
        child += child + 1 < h->count && h->ranks[child + 1] < h->ranks[child];
        if (rank <= h->ranks[child]) break;
        h->ranks[at] = h->ranks[child];
    }
    h->ranks[at] = rank;
}

static void offer(heap *h, uint64_t rank) {
    if (h->count == h->most) {
        if (rank > h->ranks[0]) sink(h, 0, rank);
        return;
    }
    uint32_t at = h->count++;
    for (; at && h->ranks[(at - 1) / 2] > rank; at = (at - 1) / 2)
        h->ranks[at] = h->ranks[(at - 1) / 2];
    h->ranks[at] = rank;
}

/* Leaves the ranks in descending order. */
static void sort(heap *h) {
    while (h->count > 1) {
        uint64_t least = h->ranks[0], last = h->ranks[--h->count];
        sink(h, 0, last);
        h->ranks[h->count] = least;
    }
}

static uint64_t rank_of(uint32_t key, uint32_t col) {
    return (uint64_t)key << 32 | (uint32_t)~col;
}

/* Columns ascend, so that an element equal to the root is no candidate. */
KILN_INLINE void offer_elements(top_k_scratch *scratch, const void *x, uint32_t col, size_t count, kiln_cpu_part part) {
    heap *h = &scratch->heap;
    for (size_t start = 0; start < count; start += KILN_TILE) {
        size_t n = kiln_min(count - start, KILN_TILE);
        const float *values = kiln_tile_read(scratch->values, kiln_at(x, start, part), n, part);
        uint32_t greatest = 0;
        KILN_INDEPENDENT
        for (size_t i = 0; i < n; i++)
            scratch->keys[i] = kiln_order_key(values[i]);
        for (size_t i = 0; i < n; i++)
            greatest = scratch->keys[i] > greatest ? scratch->keys[i] : greatest;
        if (h->count == h->most && greatest <= h->ranks[0] >> 32) continue;
        for (size_t i = 0; i < n; i++)
            offer(h, rank_of(scratch->keys[i], col + (uint32_t)(start + i)));
    }
}

KILN_INLINE void top_k(const void *arguments, const kiln_cpu_span *span, kiln_cpu_part part) {
    const kiln_top_k_args args = *(const kiln_top_k_args *)arguments; /* what no store can change */
    top_k_scratch *scratch = span->scratch;
    heap *h = &scratch->heap;
    for (uint64_t block = span->begin; block < span->end; block++)
        for (kiln_cpu_work work = kiln_work_of(&args.shape, span, block); work.row < work.row_end; work.row++) {
            const void *x = kiln_at(args.x, work.row * (uint64_t)args.x_stride, part);
            size_t count = work.col_end - work.col;
            h->count = 0;
            h->most = count < args.k ? (uint32_t)count : args.k;
            if (args.from) {
                const kiln_top_k_candidate *from = args.from + work.row * (uint64_t)args.shape.cols + work.col;
                for (size_t i = 0; i < count; i++)
                    offer(h, rank_of(from[i].key, from[i].col));
            } else {
                offer_elements(scratch, kiln_at(x, work.col, part), (uint32_t)work.col, count, part);
            }
            if (args.to) {
                kiln_top_k_candidate *to = args.to + work.row * args.to_count + work.tile * args.k;
                for (uint32_t i = 0; i < h->most; i++)
                    to[i] = (kiln_top_k_candidate){(uint32_t)(h->ranks[i] >> 32), (uint32_t)~h->ranks[i]};
                continue;
            }
            sort(h);
            for (uint32_t i = 0; i < args.k; i++) {
                uint32_t col = (uint32_t)~h->ranks[i];
                uint64_t at = work.row * args.k + i;
                args.indices[at] = (int32_t)col;
                if (args.values)
                    memcpy(kiln_at_mut(args.values, at, part), kiln_at(x, col, part), kiln_part_size(part));
            }
        }
}
KILN_CPU_KERNEL(top_k)
