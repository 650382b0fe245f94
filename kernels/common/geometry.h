/* How work is divided into blocks, the same on every backend: host sides launch it, device kernels and CPU functions
 * carry it out.
 *
 * A block is KILN_BLOCK threads: a thread block in CUDA, a work-group in HSA and OpenCL. Where an operator processes
 * rows, 1 << lanes_log2 threads share a row, and a block has KILN_BLOCK >> lanes_log2 rows. Grids are {tiles of a row,
 * blocks for the rows, blocks beyond KILN_GRID_BLOCKS}. */
#ifndef KILN_KERNELS_COMMON_GEOMETRY_H
#define KILN_KERNELS_COMMON_GEOMETRY_H

#include "kernels/common/args.h"

enum {
    KILN_BLOCK_LOG2 = 8,
    KILN_BLOCK = 1 << KILN_BLOCK_LOG2, /* threads */
    KILN_SUBGROUP_LOG2 = 5,            /* threads that shuffle: a warp, a wave32, or half a wave64 */
    KILN_SUBGROUP = 1 << KILN_SUBGROUP_LOG2,
    KILN_THREAD_VECTORS = 4,    /* per thread, in elementwise operators */
    KILN_VECTOR_BYTES = 16,     /* one access of one thread */
    KILN_GRID_BLOCKS_LOG2 = 15, /* y of a grid: at most 65535 everywhere */
    KILN_GRID_BLOCKS = 1 << KILN_GRID_BLOCKS_LOG2,
    KILN_GRID_LIMIT_Z = 65535,
    KILN_GRID_LIMIT_X = (1 << 23) - 1 /* HSA counts threads: 2^31 - 1 of them */
};

/* The rows of an operator and how a launch divides them, as a member of its arguments. */
KILN_ARGS_BEGIN
typedef struct kiln_shape {
    int64_t rows;
    int64_t cols;
    uint32_t tile;       /* elements of a row per block */
    uint32_t lanes_log2; /* of the threads that share a row */
    uint32_t wide;       /* non-zero: the rows of all tensors are 16-byte aligned */
    uint32_t padding;
} kiln_shape;
KILN_ARGS_END

#endif
