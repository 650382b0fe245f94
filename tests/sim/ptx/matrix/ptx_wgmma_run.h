/* What the executor of warps and shared memory ask of products in flight (ptx_wgmma.h). */
#ifndef KILN_TESTS_SIM_PTX_WGMMA_RUN_H
#define KILN_TESTS_SIM_PTX_WGMMA_RUN_H

#include "tests/sim/ptx/warp/ptx_warp.h"

/* An instruction that touches registers of products is about to run. false after a fault: one is in flight. */
bool ptx_wgmma_touch(ptx_warp *warp, const ptx_op *op);
/* Whether a product in flight reads the byte at an address of shared memory. */
bool ptx_wgmma_reads(const ptx_block *block, uint64_t address);
/* All threads of a block have ended: a fault if a warp did not come to what the others of its warpgroup ran. */
void ptx_wgmma_check(ptx_block *block);
/* Forgets what a block has in flight. */
void ptx_wgmma_end(ptx_block *block);

#endif
