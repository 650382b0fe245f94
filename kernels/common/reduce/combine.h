/* Sums and maxima of 64-bit integers over a block. All threads take part and get the result, which does not depend on
 * their order. */
#ifndef KILN_KERNELS_COMMON_REDUCE_COMBINE_H
#define KILN_KERNELS_COMMON_REDUCE_COMBINE_H

#include "kernels/common/device.h"
#include "kernels/common/reduce/reduce.h"

KILN_INLINE uint64_t kiln_shuffle_xor_64(uint64_t value, uint32_t mask) {
    uint32_t low = kiln_bits(kiln_shuffle_xor(kiln_float((uint32_t)value), mask));
    uint32_t high = kiln_bits(kiln_shuffle_xor(kiln_float((uint32_t)(value >> 32)), mask));
    return (uint64_t)high << 32 | low;
}

KILN_INLINE uint64_t kiln_join_64(uint64_t a, uint64_t b, kiln_reduction reduction) {
    return reduction == KILN_REDUCE_SUM ? a + b : a > b ? a : b;
}

/* subgroups is shared memory, in which the results of the subgroups remain. */
KILN_INLINE uint64_t kiln_combine_64(uint64_t subgroups[KILN_SUBGROUPS], uint64_t value, kiln_reduction reduction) {
    KILN_LOOP
    for (uint32_t mask = 1; mask < KILN_SUBGROUP; mask *= 2)
        value = kiln_join_64(value, kiln_shuffle_xor_64(value, mask), reduction);
    kiln_barrier(); /* the last values have been read by all */
    if (kiln_thread() % KILN_SUBGROUP == 0) subgroups[kiln_thread() / KILN_SUBGROUP] = value;
    kiln_barrier();
    uint64_t result = 0;
    KILN_LOOP
    for (uint32_t i = 0; i < KILN_SUBGROUPS; i++)
        result = kiln_join_64(result, subgroups[i], reduction);
    return result;
}

#endif
