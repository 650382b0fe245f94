/* silu_mul_fp8_cluster and silu_mul_int8_cluster: how a cluster divides its row, for the host sides as well. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_SILU_MUL_CODES_CLUSTER_ARGS_H
#define KILN_KERNELS_COMMON_QUANTIZE_SILU_MUL_CODES_CLUSTER_ARGS_H

enum {
    KILN_SILU_MUL_CLUSTER = 8,   /* blocks, which have a row */
    KILN_SILU_MUL_THREADS = 256, /* of a block at most: whole warps */
    KILN_SILU_MUL_EIGHTS = 2     /* of a thread, one behind those of all threads' first ones */
};

#endif
