/* Ranks, by which elements are chosen: an element's ordering key and its place as one number, no two of which are
 * equal. One text for host C and both device compilers; the includer (device.h, cpu.h) defines KILN_INLINE. */
#ifndef KILN_KERNELS_COMMON_REDUCE_RANK_H
#define KILN_KERNELS_COMMON_REDUCE_RANK_H

#include "kernels/common/reduce/total_order.h"

enum { KILN_RANKS = 1024 }; /* the most that can be chosen */

/* Greater ranks come first: greater keys, and lower places among equal keys. No element has the rank 0. */
KILN_INLINE uint64_t kiln_rank_of(uint32_t key, uint32_t place) {
    return (uint64_t)key << 32 | (uint32_t)~place;
}

KILN_INLINE uint32_t kiln_rank_key(uint64_t rank) {
    return (uint32_t)(rank >> 32);
}

KILN_INLINE uint32_t kiln_rank_place(uint64_t rank) {
    return (uint32_t)~rank;
}

#endif
