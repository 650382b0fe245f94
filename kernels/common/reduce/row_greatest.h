/* The greatest magnitude of a row, among the threads that share it: half a subgroup, or a power of two of subgroups.
 * Bits are compared, which magnitudes have the order of. */
#ifndef KILN_KERNELS_COMMON_REDUCE_ROW_GREATEST_H
#define KILN_KERNELS_COMMON_REDUCE_ROW_GREATEST_H

#include "kernels/common/device.h"
#include "kernels/common/reduce/row_reduce.h"

/* The greater of the magnitudes of both halves of each 2 << step threads. */
KILN_INLINE float kiln_greater_of_halves(float value, uint32_t step) {
    const uint32_t own = kiln_bits(value), other = kiln_bits(kiln_of_other_half(value, step));
    return kiln_float(own > other ? own : other);
}

/* exchange is shared memory that nothing else is in, before and after, but for other barriers. */
KILN_INLINE float kiln_row_greatest(float value, uint32_t lanes_log2, float exchange[KILN_SUBGROUPS]) {
    KILN_UNROLL
    for (uint32_t i = 0; i + 1 < KILN_SUBGROUP_LOG2; i++)
        value = kiln_greater_of_halves(value, i);
    if (lanes_log2 < KILN_SUBGROUP_LOG2) return value;
    value = kiln_greater_of_halves(value, KILN_SUBGROUP_LOG2 - 1);
    if (lanes_log2 == KILN_SUBGROUP_LOG2) return value;
    if (kiln_thread() % KILN_SUBGROUP == 0) exchange[kiln_thread() / KILN_SUBGROUP] = value;
    kiln_barrier();
    value = exchange[kiln_row_subgroup(lanes_log2)];
    value = kiln_greater_of_halves(value, 0);
    if (lanes_log2 == KILN_SUBGROUP_LOG2 + 1) return value;
    value = kiln_greater_of_halves(value, 1);
    return lanes_log2 < KILN_BLOCK_LOG2 ? value : kiln_greater_of_halves(value, 2);
}

#endif
