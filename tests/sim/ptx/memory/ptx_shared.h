/* The shared memory of a block, and who may touch a byte of it. */
#ifndef KILN_TESTS_SIM_PTX_SHARED_H
#define KILN_TESTS_SIM_PTX_SHARED_H

#include "tests/sim/ptx/warp/ptx_warp.h"

/* Who read, or wrote, a byte in an epoch. What a warp did before it last synchronised counts for the other warps alone.
 */
typedef struct ptx_touches {
    uint32_t moment;   /* of its warp at the last of them */
    uint32_t line;     /* of the instruction */
    uint16_t thread;   /* that did it */
    uint8_t count;     /* 0, 1, 2: several threads of that warp; 3: of several warps */
    bool strong : 1;   /* all of them were (PTX_F_STRONG) */
    bool together : 1; /* they are of all lanes of that warp (PTX_F_TOGETHER) */
    bool async : 1;    /* the last was by an asynchronous operation of that thread */
} ptx_touches;

/* One byte of shared memory, or a word of four that no access has told apart. */
struct ptx_shadow {
    uint32_t epoch; /* of the block when it was last touched; what is older is forgotten */
    ptx_touches reads, writes;
    uint32_t readers; /* warps with reads before those, which are behind: ptx_block.reads */
    bool written;     /* ever */
    bool in_flight;   /* an asynchronous copy fills it: no access before that lands */
    bool split;       /* of a word: its bytes have shadows of their own */
    bool generic;     /* last written by the generic proxy: by this thread, then */
    uint16_t writer;
    uint32_t wrote, wrote_epoch;
};

/* A block's shadows: of its words, then of its bytes, which mean nothing before their word is split. */
static inline size_t ptx_shadow_words(const ptx_block *block) {
    return (block->shared_room + 3) / 4;
}

static inline size_t ptx_shadow_count(const ptx_block *block) {
    return ptx_shadow_words(block) * 5;
}

/* Words that are cleared together, when a block comes to the first of them: most touch a part of their memory only. */
enum { PTX_SHADOW_CHUNK = 64 };

static inline size_t ptx_shadow_chunks(const ptx_block *block) {
    return ptx_shadow_words(block) / PTX_SHADOW_CHUNK + 1;
}

/* The bytes that a lane reads, writes or (both) changes atomically. NULL after a fault. A load whose registers may
 * become undefined leaves a bit in warp->unwritten for a lane that reads what was never written. */
uint8_t *ptx_shared_bytes(ptx_warp *warp, const ptx_op *op, uint32_t lane, uint64_t address, uint32_t size, bool read,
                          bool write);
/* The same of another block of the cluster. */
uint8_t *ptx_shared_bytes_of(ptx_block *block, ptx_warp *warp, const ptx_op *op, uint32_t lane, uint64_t address,
                             uint32_t size, bool read, bool write);
/* What each lane of mask loads of the block's own. false after a fault. */
bool ptx_shared_lanes(ptx_warp *warp, const ptx_op *op, const uint64_t *addresses, uint32_t mask, uint32_t size,
                      uint8_t **out_bytes);

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

/* Whether a lane may read these bytes of its block by the async proxy: no generic store to them comes without a proxy
 * fence behind it. false after a fault. */
bool ptx_shared_fenced(ptx_warp *warp, const ptx_op *op, uint32_t lane, uint64_t address, uint32_t size);

/* A lane sends these bytes of a block's memory, which nothing may touch before they arrive. false after a fault. */
bool ptx_shared_send_to(ptx_block *block, ptx_warp *warp, const ptx_op *op, uint32_t lane, uint64_t address,
                        uint32_t size);
/* They arrive: where they are to be put. */
uint8_t *ptx_shared_arrive(ptx_block *block, uint64_t address, uint32_t size);
/* What a lane just did to these bytes was an asynchronous operation. */
void ptx_shared_detach(ptx_block *block, uint64_t address, uint32_t size);

/* All asynchronous copies of a lane land: ptx_async.c. */
void ptx_async_land(ptx_warp *warp, const ptx_op *op, uint32_t lane);

/* Order by flags, of programs that release words: ptx_flag.c. */
void ptx_flag_prepare(ptx_block *block);
/* No word was released yet. */
void ptx_flag_start(ptx_block *block);
void ptx_flag_end(ptx_block *block);
/* A lane of a warp releases a word of a block of its cluster. */
void ptx_flag_release(ptx_block *block, ptx_warp *warp, uint32_t lane, uint64_t address);
/* An asynchronous operation of a lane completes at a barrier: it hands on itself, and what was read before it. */
void ptx_flag_complete(ptx_block *block, ptx_warp *warp, uint32_t lane, uint64_t barrier);
/* A lane acquires a word: its warp comes after what was handed on by it. */
void ptx_flag_acquire(ptx_block *block, ptx_warp *warp, uint64_t address);
/* Something else was written there: what other warps released is gone. */
void ptx_flag_forget(ptx_block *block, const ptx_warp *warp, uint64_t address, uint32_t size);
/* Lanes fence: what they did until now is handed on by relaxed arrivals at the cluster's barrier. */
void ptx_flag_fence(ptx_warp *warp, uint32_t lanes);
/* Lanes arrive at the cluster's barrier: known gets what they hand on, and reading what they have read. */
void ptx_flag_arrive(ptx_warp *warp, uint32_t lanes, bool relaxed, struct ptx_known *known, struct ptx_known *reading);
/* A warp comes after what is known, and after those reads. */
void ptx_flag_take(ptx_warp *warp, const struct ptx_known *known, const struct ptx_known *read);
/* What nobody knows anything of yet, for the warps of a block's cluster: to be freed. */
struct ptx_known *ptx_flag_known(const ptx_block *block);
void ptx_flag_clear(const ptx_block *block, struct ptx_known *known);
/* Moves it, and clears what it was moved from. */
void ptx_flag_move(const ptx_block *block, struct ptx_known *to, struct ptx_known *from);
/* Whether what a thread did, or a warp together, was handed on to this warp. */
bool ptx_flag_orders(const ptx_warp *warp, const ptx_touches *touches);
/* The same of what a thread read, which the cluster's barrier orders too. */
bool ptx_flag_orders_read(const ptx_warp *warp, const ptx_touches *reads);

#endif
