/* Sorting ranks by a block, in shared memory. */
#ifndef KILN_KERNELS_COMMON_REDUCE_RANK_SORT_H
#define KILN_KERNELS_COMMON_REDUCE_RANK_SORT_H

#include "kernels/common/device.h"

/* Sorts count ranks, the greatest first (bitonic sort). No two are equal, except for zeros. There must be room for the
 * next power of two. All threads take part, and are synchronised at the end. */
KILN_INLINE void kiln_rank_sort(uint64_t *ranks, uint32_t count) {
    uint32_t size = 1;
    KILN_LOOP
    while (size < count)
        size *= 2;
    KILN_LOOP
    for (uint32_t i = count + kiln_thread(); i < size; i += KILN_BLOCK)
        ranks[i] = 0;
    kiln_barrier();
    KILN_LOOP
    for (uint32_t width = 2; width <= size; width *= 2) {
        KILN_LOOP
        for (uint32_t step = width / 2; step; step /= 2) {
            KILN_LOOP
            for (uint32_t i = kiln_thread(); i < size / 2; i += KILN_BLOCK) {
                uint32_t a = 2 * i - (i & (step - 1)), b = a + step;
                uint64_t first = ranks[a], second = ranks[b];
                bool swap = (first < second) == ((a & width) == 0);
                ranks[a] = swap ? second : first;
                ranks[b] = swap ? first : second;
            }
            kiln_barrier();
        }
    }
}

#endif
