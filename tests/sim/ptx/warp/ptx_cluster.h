/* The blocks of a cluster, which run together, reach each other's shared memory, and meet at a barrier. */
#ifndef KILN_TESTS_SIM_PTX_CLUSTER_H
#define KILN_TESTS_SIM_PTX_CLUSTER_H

#include "tests/sim/ptx/warp/ptx_warp.h"

struct ptx_cluster {
    ptx_block *blocks; /* by rank */
    uint32_t count;
    struct ptx_known *given;          /* by those who have arrived at the barrier, */
    struct ptx_known *known;          /* and when it last went */
    struct ptx_known *reading, *read; /* the same of what they read */
};

/* Addresses of shared memory in a cluster: the rank of the block, + 1, above the offset; a block's own have 0 there,
 * too. */
enum { PTX_RANK_SHIFT = 24 };

static inline uint32_t ptx_address_rank(const ptx_block *block, uint64_t address) {
    uint32_t rank = (uint32_t)address >> PTX_RANK_SHIFT;
    return rank ? rank - 1 : block->rank;
}

/* The block whose shared memory an address is in, and its offset there. NULL after a fault: there is none, or it has
 * ended. */
ptx_block *ptx_cluster_block(ptx_warp *warp, const ptx_op *op, uint32_t lane, uint64_t address, uint64_t *out_offset);

/* A cluster begins. */
void ptx_cluster_start(ptx_cluster *cluster);
/* Lets those of a block go who need not wait at the cluster's barrier any longer. true if there was one. */
bool ptx_cluster_release(ptx_block *block);

#endif
