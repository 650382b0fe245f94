/* Bulk copies: what of shared memory they read is not to be written before the thread has waited for them. */
#ifndef KILN_TESTS_SIM_PTX_BULK_H
#define KILN_TESTS_SIM_PTX_BULK_H

#include "tests/sim/ptx/warp/ptx_warp.h"

/* Whether a bulk copy that was not waited for reads a byte of shared memory. */
bool ptx_bulk_reads(const ptx_block *block, uint64_t address);
/* The block has ended: each of its bulk copies must have been waited for. */
void ptx_bulk_check(ptx_block *block);
void ptx_bulk_clear(ptx_block *block);
void ptx_bulk_free(ptx_block *block);

#endif
