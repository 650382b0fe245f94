/* What the device sources and host sides of softmax and log_softmax agree on for rows that a cluster of blocks holds in
 * registers (exp_sum_sm90a.h): its blocks, the vectors that a thread of theirs has, and a block's threads, which are a
 * power of two of at least KILN_BLOCK. */
#ifndef KILN_KERNELS_COMMON_REDUCE_EXP_SUM_ARGS_H
#define KILN_KERNELS_COMMON_REDUCE_EXP_SUM_ARGS_H

enum { KILN_EXP_SUM_CLUSTER = 8, KILN_EXP_SUM_HELD = 8, KILN_EXP_SUM_THREADS_MOST = 1024 };

#endif
