/* The greatest of many ranks, on the CPU: a heap whose root is the least of those that are kept. */
#ifndef KILN_KERNELS_COMMON_REDUCE_RANK_HEAP_H
#define KILN_KERNELS_COMMON_REDUCE_RANK_HEAP_H

#include "kernels/common/cpu.h"
#include "kernels/common/reduce/rank.h"

typedef struct kiln_rank_heap {
    uint64_t ranks[KILN_RANKS]; /* each no more than those at 2i + 1 and 2i + 2 */
    uint32_t count, most;
} kiln_rank_heap;

/* Replaces the rank at a place, and moves it down below lesser ones. */
static void kiln_rank_sink(kiln_rank_heap *h, uint32_t at, uint64_t rank) {
    for (uint32_t child; (child = 2 * at + 1) < h->count; at = child) {
        child += child + 1 < h->count && h->ranks[child + 1] < h->ranks[child];
        if (rank <= h->ranks[child]) break;
        h->ranks[at] = h->ranks[child];
    }
    h->ranks[at] = rank;
}

/* Keeps a rank if it is among the greatest so far. */
static void kiln_rank_offer(kiln_rank_heap *h, uint64_t rank) {
    if (h->count == h->most) {
        if (rank > h->ranks[0]) kiln_rank_sink(h, 0, rank);
        return;
    }
    uint32_t at = h->count++;
    for (; at && h->ranks[(at - 1) / 2] > rank; at = (at - 1) / 2)
        h->ranks[at] = h->ranks[(at - 1) / 2];
    h->ranks[at] = rank;
}

/* Sorts the ranks in descending order, after which they are no heap. */
static void kiln_rank_order(kiln_rank_heap *h) {
    while (h->count > 1) {
        uint64_t least = h->ranks[0], last = h->ranks[--h->count];
        kiln_rank_sink(h, 0, last);
        h->ranks[h->count] = least;
    }
}

#endif
