/* Reductions over the threads that share a row. All threads of the block take part and get the result. */
#ifndef KILN_KERNELS_COMMON_REDUCE_REDUCE_H
#define KILN_KERNELS_COMMON_REDUCE_REDUCE_H

#include "kernels/common/device.h"

enum { KILN_SUBGROUPS = KILN_BLOCK / KILN_SUBGROUP };

typedef enum kiln_reduction { KILN_REDUCE_MAX, KILN_REDUCE_SUM } kiln_reduction;

KILN_INLINE float kiln_combine(float a, float b, kiln_reduction reduction) {
    return reduction == KILN_REDUCE_MAX ? kiln_max(a, b) : a + b;
}

/* lanes_log2 is at most KILN_SUBGROUP_LOG2, or KILN_BLOCK_LOG2; the same in the whole block. exchange is shared memory
 * of KILN_SUBGROUPS floats. */
KILN_INLINE float kiln_reduce(float value, uint32_t lanes_log2, float *exchange, kiln_reduction reduction) {
    if (lanes_log2 <= KILN_SUBGROUP_LOG2) {
        KILN_LOOP
        for (uint32_t mask = 1; mask < 1u << lanes_log2; mask *= 2)
            value = kiln_combine(value, kiln_shuffle_xor(value, mask), reduction);
        return value;
    }
    KILN_UNROLL
    for (uint32_t mask = 1; mask < KILN_SUBGROUP; mask *= 2)
        value = kiln_combine(value, kiln_shuffle_xor(value, mask), reduction);

    kiln_barrier(); /* the last reduction has been read by all */
    if (kiln_thread() % KILN_SUBGROUP == 0) exchange[kiln_thread() / KILN_SUBGROUP] = value;
    kiln_barrier();
    value = exchange[0];
    KILN_UNROLL
    for (int i = 1; i < KILN_SUBGROUPS; i++)
        value = kiln_combine(value, exchange[i], reduction);
    return value;
}

#endif
