/* The greatest of many numbers, on the CPU: a heap whose root is the least of them. */
#ifndef KILN_KERNELS_COMMON_RANK_HEAP_H
#define KILN_KERNELS_COMMON_RANK_HEAP_H

#include "kernels/common/cpu.h"
#include "kernels/common/rank.h"

typedef struct kiln_rank_heap {
    uint64_t ranks[KILN_RANKS]; /* each no more than those at 2i + 1 and 2i + 2 */
    uint32_t count, most;
} kiln_rank_heap;

/* Puts a rank in the place of the one there, and below those that are less. */
static void kiln_rank_sink(kiln_rank_heap *h, uint32_t at, uint64_t rank) {
    for (uint32_t child; (child = 2 * at + 1) < h->count; at = child) {
        child += child + 1 < h->count && h->ranks[child + 1] < h->ranks[child];
        if (rank <= h->ranks[child]) break;
        h->ranks[at] = h->ranks[child];
    }
    h->ranks[at] = rank;
}

/* Keeps a rank, if it is among the most. */
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

/* Leaves the ranks in descending order: a heap no more. */
static void kiln_rank_order(kiln_rank_heap *h) {
    while (h->count > 1) {
        uint64_t least = h->ranks[0], last = h->ranks[--h->count];
        kiln_rank_sink(h, 0, last);
        h->ranks[h->count] = least;
    }
}

#endif
