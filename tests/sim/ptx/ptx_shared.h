/* The shared memory of a block, and who may touch a byte of it. */
#ifndef KILN_TESTS_SIM_PTX_SHARED_H
#define KILN_TESTS_SIM_PTX_SHARED_H

#include "tests/sim/ptx/ptx_warp.h"

/* One byte of shared memory: who wrote and who read it since the last barrier, and how often the warp of that thread
 * had synchronised by then. Threads count from 1; 0 is no one. */
struct ptx_shadow {
    uint32_t epoch; /* of the block when it was last touched; what is older does not count */
    uint16_t writer, reader;
    uint16_t writer_sync, reader_sync;
    uint8_t readers; /* 0, 1, or 2: several, all of reader's warp; 3: of several warps */
    bool written;    /* ever */
    bool in_flight;  /* an asynchronous copy fills it: no access before that lands */
};

/* The bytes that a lane reads, writes or (both) changes atomically. NULL after a fault. */
uint8_t *ptx_shared_bytes(ptx_warp *warp, const ptx_op *op, uint32_t lane, uint64_t address, uint32_t size, bool read,
                          bool write);

/* A lane starts an asynchronous copy into these bytes. false after a fault. */
bool ptx_shared_send(ptx_warp *warp, const ptx_op *op, uint32_t lane, uint64_t address, uint32_t size);
/* That copy lands: a write of the lane, to the bytes that are returned. */
uint8_t *ptx_shared_land(ptx_warp *warp, uint32_t lane, uint64_t address, uint32_t size);

#endif
