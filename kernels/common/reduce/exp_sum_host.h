/* Long rows that a cluster of blocks holds (exp_sum_sm90a.h), for the host sides of softmax and log_softmax. Included
 * after operator.h. */
#ifndef KILN_KERNELS_COMMON_REDUCE_EXP_SUM_HOST_H
#define KILN_KERNELS_COMMON_REDUCE_EXP_SUM_HOST_H

#include "kernels/common/host.h"
#include "kernels/common/reduce/exp_sum_args.h"

/* How many threads the blocks of a cluster have that holds a row, which is then divided among them in *shape: as few as
 * can. 0: none holds it, or the image has no such kernel. */
static inline uint32_t kiln__cluster_threads(const kiln_kernel *kernel, unsigned size_log2, kiln_shape *shape) {
    uint64_t vector = KILN_VECTOR_BYTES >> size_log2, vectors = (uint64_t)shape->cols / vector;
    if (kernel->info.absent || !shape->wide || (uint64_t)shape->cols % vector) return 0;
    uint32_t threads = KILN_BLOCK;
    while (threads <= KILN_EXP_SUM_THREADS_MOST && vectors > KILN_EXP_SUM_CLUSTER * KILN_EXP_SUM_HELD * threads)
        threads *= 2;
    if (threads > KILN_EXP_SUM_THREADS_MOST) return 0;
    shape->tile = (uint32_t)((vectors + KILN_EXP_SUM_CLUSTER - 1) / KILN_EXP_SUM_CLUSTER * vector);
    shape->lanes_log2 = KILN_BLOCK_LOG2;
    return threads;
}

/* Launches the operator's kernel of such rows, which reads each once. shape: of args. *out_launched: whether the image
 * has the kernel and it holds the rows; else shape is as it was. */
static inline kiln_status kiln__cluster_launch(kiln_stream *stream, const kiln_kernel *kernel, unsigned size_log2,
                                               const char *name, const void *args, size_t args_size, kiln_shape *shape,
                                               bool *out_launched) {
    const uint32_t threads = kiln__cluster_threads(kernel, size_log2, shape);
    *out_launched = threads != 0;
    if (!threads) return KILN_OK;
    kiln_launch_config config;
    KILN__TRY(kiln__grid(name, KILN_EXP_SUM_CLUSTER, (uint64_t)shape->rows, &config));
    config.block[0] = threads;
    return kiln__operator_launch(stream, kernel, &config, args, args_size);
}

#endif
