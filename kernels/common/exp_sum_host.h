/* Which rows a cluster of blocks holds (exp_sum_sm90a.h), for the host sides of softmax and log_softmax. */
#ifndef KILN_KERNELS_COMMON_EXP_SUM_HOST_H
#define KILN_KERNELS_COMMON_EXP_SUM_HOST_H

#include "kernels/common/exp_sum_args.h"
#include "kernels/common/host.h"

/* Whether the image has the kernel and a cluster holds a row, which is then divided among its blocks in *shape. */
static inline bool kiln__cluster_holds(const kiln_kernel *kernel, unsigned size_log2, kiln_shape *shape) {
    uint64_t vector = KILN_VECTOR_BYTES >> size_log2, vectors = (uint64_t)shape->cols / vector;
    if (kernel->info.absent || !shape->wide || (uint64_t)shape->cols % vector ||
        vectors > KILN_EXP_SUM_CLUSTER * KILN_EXP_SUM_HELD * KILN_BLOCK)
        return false;
    shape->tile = (uint32_t)((vectors + KILN_EXP_SUM_CLUSTER - 1) / KILN_EXP_SUM_CLUSTER * vector);
    shape->lanes_log2 = KILN_BLOCK_LOG2;
    return true;
}

#endif
