/* Reductions over the threads that share a row, which may be several subgroups of a block: any power of two of threads.
 * All threads of the block take part, and get the result of their row. */
#ifndef KILN_KERNELS_COMMON_REDUCE_ROW_REDUCE_H
#define KILN_KERNELS_COMMON_REDUCE_ROW_REDUCE_H

#include "kernels/common/device.h"
#include "kernels/common/reduce/reduce.h"

#if defined(__HIP__)
#include "kernels/arch/gfx.h"
#endif

/* What a thread in the other half of each 2 << step threads has, where all threads of a half have the same. */
KILN_INLINE float kiln_of_other_half(float value, uint32_t step) {
#if defined(__HIP__)
    return kiln_gfx_of_other_half(value, step);
#else
    return kiln_shuffle_xor(value, 1u << step);
#endif
}

/* Over 1 << lanes_log2 threads of a subgroup. */
KILN_INLINE float kiln_subgroup_reduce(float value, uint32_t lanes_log2, kiln_reduction reduction) {
    KILN_UNROLL
    for (uint32_t i = 0; i < KILN_SUBGROUP_LOG2; i++)
        if (i < lanes_log2) value = kiln_combine(value, kiln_of_other_half(value, i), reduction);
    return value;
}

/* How many subgroups share a row, as a logarithm, if there are several. */
KILN_INLINE uint32_t kiln_row_subgroups_log2(uint32_t lanes_log2) {
    return lanes_log2 - KILN_SUBGROUP_LOG2;
}

/* Which of the block's subgroups has the result that this thread takes part in the reduction of the results with. */
KILN_INLINE uint32_t kiln_row_subgroup(uint32_t lanes_log2) {
    uint32_t count_log2 = kiln_row_subgroups_log2(lanes_log2), own = kiln_thread() >> KILN_SUBGROUP_LOG2;
    return (own >> count_log2 << count_log2) + (kiln_thread() & ((1u << count_log2) - 1));
}

/* Whether the reduction of a row that a whole block has is a copy without tests of the number of threads, which AMD's
 * compiler makes a comparison and a branch for each step of. */
#if defined(__HIP__)
enum { KILN_ROW_OF_BLOCK = 1 };
#else
enum { KILN_ROW_OF_BLOCK = 0 };
#endif

KILN_INLINE float kiln_row_reduce_of(float value, uint32_t lanes_log2, float exchange[KILN_SUBGROUPS],
                                     kiln_reduction reduction) {
    value = kiln_subgroup_reduce(value, lanes_log2, reduction);
    if (lanes_log2 <= KILN_SUBGROUP_LOG2) return value;
    if (kiln_thread() % KILN_SUBGROUP == 0) exchange[kiln_thread() / KILN_SUBGROUP] = value;
    kiln_barrier();
    return kiln_subgroup_reduce(exchange[kiln_row_subgroup(lanes_log2)], kiln_row_subgroups_log2(lanes_log2),
                                reduction);
}

/* exchange is shared memory that nothing else is in, before and after, but for other barriers. */
KILN_INLINE float kiln_row_reduce(float value, uint32_t lanes_log2, float exchange[KILN_SUBGROUPS],
                                  kiln_reduction reduction) {
    if (KILN_ROW_OF_BLOCK && lanes_log2 == KILN_BLOCK_LOG2)
        return kiln_row_reduce_of(value, KILN_BLOCK_LOG2, exchange, reduction);
    return kiln_row_reduce_of(value, lanes_log2, exchange, reduction);
}

#endif
