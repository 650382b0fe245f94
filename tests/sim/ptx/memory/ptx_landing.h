/* What is on its way into shared memory and will be told to a barrier there: nothing may touch its bytes before a
 * thread has seen the barrier's phase end. */
#ifndef KILN_TESTS_SIM_PTX_LANDING_H
#define KILN_TESTS_SIM_PTX_LANDING_H

#include "tests/sim/ptx/warp/ptx_warp.h"

/* Bytes that a lane sends to an offset of a block's shared memory; they are copied. false after a fault. */
bool ptx_landing_send(ptx_block *block, ptx_warp *warp, const ptx_op *op, uint32_t lane, uint64_t barrier, uint64_t to,
                      const void *bytes, uint32_t size);
/* The phase of a barrier has ended. */
void ptx_landing_end_phase(ptx_block *block, uint64_t barrier);
/* A thread has seen that. */
void ptx_landing_land(ptx_block *block, uint64_t barrier);
/* The block starts, or has ended: what is on its way is forgotten. */
void ptx_landing_clear(ptx_block *block);
void ptx_landing_free(ptx_block *block);

/* The barrier at an offset of a block's shared memory has so many bytes more: ptx_mbarrier.c. false after a fault. */
bool ptx_mbarrier_complete(ptx_block *block, ptx_warp *warp, const ptx_op *op, uint32_t lane, uint64_t barrier,
                           uint32_t bytes);

#endif
