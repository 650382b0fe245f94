/* exp_sum.h on sm_90a, for rows that a cluster of eight blocks holds in registers, so that a row is read once: each
 * block has an eighth of it, each thread up to eight vectors. A block has 256 threads, or 512 or 1024 for longer rows:
 * up to 262144 elements of f32, and twice as many of 16 bits. The blocks meet once, by the cluster's barrier: each
 * gives its maximum and its sum to all. KILN_CLUSTER_ENTRY_HEAD is the head of the kernel. */
#ifndef KILN_KERNELS_COMMON_REDUCE_EXP_SUM_SM90A_H
#define KILN_KERNELS_COMMON_REDUCE_EXP_SUM_SM90A_H

#include "kernels/arch/sm90a.h"
#include "kernels/common/device.h"
#include "kernels/common/reduce/exp_sum.h"
#include "kernels/common/reduce/exp_sum_args.h"

#define KILN_CLUSTER_ENTRY_HEAD                                        \
    extern "C" __global__ __cluster_dims__(KILN_EXP_SUM_CLUSTER, 1, 1) \
        __launch_bounds__(KILN_EXP_SUM_THREADS_MOST, 1) void

/* Calls body<threads>(...) for the block's threads. */
#define KILN_CLUSTER_OF(body, ...)     \
    if (blockDim.x == KILN_BLOCK)      \
        body<KILN_BLOCK>(__VA_ARGS__); \
    else if (blockDim.x == 512)        \
        body<512>(__VA_ARGS__);        \
    else                               \
        body<1024>(__VA_ARGS__)

/* The unrolled loop over a thread's vectors, of which those at or beyond `whole` are to be left out; THREADS is the
 * template's. */
#define KILN_FOR_CLUSTER_HELD(s, vector, k) \
    KILN_UNROLL                             \
    for (uint32_t k = 0, vector = (s).first; k < KILN_EXP_SUM_HELD; k++, vector += THREADS)

/* A block's part of its cluster's row, which is one of the tensor's and of whole vectors; no part is empty. */
KILN_INLINE kiln_span kiln_cluster_span(const kiln_shape *shape) {
    const uint64_t start = (uint64_t)kiln_tile() * shape->tile, left = (uint64_t)shape->cols - start;
    const uint32_t count = left < shape->tile ? (uint32_t)left : shape->tile;
    return {kiln_block(), start, count, count / KILN_VECTOR, kiln_thread(), blockDim.x};
}

/* Reads the thread's vectors. */
template <uint32_t THREADS> KILN_INLINE void kiln_cluster_hold(kiln_vector *held, kiln_span s, const kiln_element *x) {
    kiln_sm90a_cluster_arrive();
    KILN_FOR_CLUSTER_HELD(s, vector, k)
    if (vector < s.whole) held[k] = kiln_vector_load(x + vector * KILN_VECTOR);
}

/* The shared memory of a block. */
typedef struct kiln_cluster_exchange {
    float4 parts[KILN_EXP_SUM_CLUSTER];
    kiln_exp_sum subgroups[KILN_EXP_SUM_THREADS_MOST / KILN_SUBGROUP];
} kiln_cluster_exchange;

/* The sum over the row, of which kiln_cluster_hold has read the thread's part. */
template <uint32_t THREADS>
KILN_INLINE kiln_exp_sum kiln_exp_sum_cluster(const kiln_vector *held, kiln_span s, kiln_cluster_exchange *exchange) {
    float values[KILN_VECTOR];
    kiln_exp_sum own = {-KILN_INFINITY, 0.0f};
    KILN_FOR_CLUSTER_HELD(s, vector, k) {
        if (vector >= s.whole) break;
        kiln_vector_values(values, held[k]);
        own.max = kiln_greatest_value(values, own.max);
    }
    float origin = kiln_exp_origin(own.max);
    KILN_FOR_CLUSTER_HELD(s, vector, k) {
        if (vector >= s.whole) break;
        kiln_vector_values(values, held[k]);
        own.sum = kiln_add_exponentials(own.sum, values, origin);
    }
    own = kiln_exp_sum_subgroup(own, KILN_SUBGROUP_LOG2);
    if (kiln_thread() % KILN_SUBGROUP == 0) exchange->subgroups[kiln_thread() / KILN_SUBGROUP] = own;
    kiln_barrier();
    own = kiln_thread() % KILN_SUBGROUP < THREADS / KILN_SUBGROUP ? exchange->subgroups[kiln_thread() % KILN_SUBGROUP]
                                                                  : (kiln_exp_sum){-KILN_INFINITY, 0.0f};
    own = kiln_exp_sum_subgroup(own, KILN_SUBGROUP_LOG2);

    kiln_sm90a_cluster_wait(); /* a block's shared memory may be written once it has begun */
    if (kiln_thread() < KILN_EXP_SUM_CLUSTER) {
        const float part[4] = {own.max, own.sum, 0.0f, 0.0f};
        kiln_sm90a_store_remote_v4(
            kiln_sm90a_remote(kiln_sm90a_shared(&exchange->parts[kiln_sm90a_cluster_rank()]), kiln_thread()), part);
    }
    __syncwarp();
    kiln_sm90a_cluster_sync();
    kiln_exp_sum row = {-KILN_INFINITY, 0.0f}; /* unrolled, its sum would take the registers of a further block */
    KILN_UNROLL
    for (uint32_t i = 0; i < KILN_EXP_SUM_CLUSTER; i++)
        row.max = kiln_fast_max(row.max, exchange->parts[i].x);
    KILN_LOOP
    for (uint32_t i = 0; i < KILN_EXP_SUM_CLUSTER; i++)
        row.sum += kiln_exp_sum_moved((kiln_exp_sum){exchange->parts[i].x, exchange->parts[i].y}, row.max);
    return row;
}

#endif
