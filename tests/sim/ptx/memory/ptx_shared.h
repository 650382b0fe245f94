/* The shared memory of a block, and who may touch a byte of it. */
#ifndef KILN_TESTS_SIM_PTX_SHARED_H
#define KILN_TESTS_SIM_PTX_SHARED_H

#include "tests/sim/ptx/warp/ptx_warp.h"

/* Who read, or wrote, a byte in an epoch. What a warp did before it last synchronised counts for the other warps alone.
 */
typedef struct ptx_touches {
    uint32_t moment; /* of its warp at the last of them */
    uint16_t thread; /* that did it */
    uint32_t line;   /* of the instruction */
    uint8_t count;   /* 0, 1, 2: several threads of that warp; 3: of several warps */
    bool strong;     /* all of them were (PTX_F_STRONG) */
} ptx_touches;

/* One byte of shared memory, or a word of four that no access has told apart. */
struct ptx_shadow {
    uint32_t epoch; /* of the block when it was last touched; what is older is forgotten */
    ptx_touches reads, writes;
    uint32_t readers; /* warps with reads before those, which are behind: ptx_block.reads */
    bool written;     /* ever */
    bool in_flight;   /* an asynchronous copy fills it: no access before that lands */
    bool split;       /* of a word: its bytes have shadows of their own */
};

/* A block's shadows: of its words, then of its bytes, which mean nothing before their word is split. */
static inline size_t ptx_shadow_words(const ptx_block *block) {
    return (block->shared_room + 3) / 4;
}

static inline size_t ptx_shadow_count(const ptx_block *block) {
    return ptx_shadow_words(block) * 5;
}

/* The bytes that a lane reads, writes or (both) changes atomically. NULL after a fault. A load whose registers may
 * become undefined leaves a bit in warp->unwritten for a lane that reads what was never written. */
uint8_t *ptx_shared_bytes(ptx_warp *warp, const ptx_op *op, uint32_t lane, uint64_t address, uint32_t size, bool read,
                          bool write);

/* Bytes that other lanes of the warp wrote last, by the same instruction, after the warp's last .sync. NULL: they were
 * not, or not all of them. */
uint8_t *ptx_shared_written(const ptx_warp *warp, const ptx_op *op, uint64_t address, uint32_t size);

/* Bytes that another warp has written since the last barrier, and of which nothing else is wrong but that a write of
 * the thread would race with that one. NULL: it is not so of all of them. */
uint8_t *ptx_shared_contested(const ptx_warp *warp, const ptx_op *op, uint32_t lane, uint64_t address, uint32_t size);

/* Which of these bytes were never written: 0xff of those, else 0. */
void ptx_shared_undefined(const ptx_block *block, uint64_t address, uint32_t size, uint8_t *out_bits);

/* A lane starts an asynchronous copy into these bytes. false after a fault. */
bool ptx_shared_send(ptx_warp *warp, const ptx_op *op, uint32_t lane, uint64_t address, uint32_t size);
/* That copy lands: a write of the lane, to the bytes that are returned. */
uint8_t *ptx_shared_land(ptx_warp *warp, const ptx_op *op, uint32_t lane, uint64_t address, uint32_t size);

/* All asynchronous copies of a lane land: ptx_async.c. */
void ptx_async_land(ptx_warp *warp, const ptx_op *op, uint32_t lane);

/* Order by flags, of programs that release words: ptx_flag.c. */
void ptx_flag_prepare(ptx_block *block);
/* No word was released yet. */
void ptx_flag_start(ptx_block *block);
void ptx_flag_end(ptx_block *block);
void ptx_flag_release(ptx_warp *warp, uint32_t lane, uint64_t address);
/* A lane acquires a word: its warp comes after what was handed on by it. */
void ptx_flag_acquire(ptx_warp *warp, uint64_t address);
/* Something else was written there: what other warps released is gone. */
void ptx_flag_forget(const ptx_warp *warp, uint64_t address, uint32_t size);
/* Whether what a thread did at a moment of its warp was handed on to this warp. */
bool ptx_flag_orders(const ptx_warp *warp, uint32_t thread, uint32_t moment);

#endif
