/* Blocks that only wait: each of their warps asks for what others may write, comes back to where it asked with the same
 * in all its registers, and nothing but its own local memory is written meanwhile. Such a block goes on when another
 * writes, and never else. Most of that is looked at now and then. */
#include "tests/sim/ptx/warp/ptx_warp.h"
#include <string.h>

static uint64_t mixed(uint64_t state, uint64_t word) {
    state = (state ^ word) * 0x9e3779b97f4a7c15u;
    return state ^ state >> 32;
}

/* In several sums side by side, which the processor makes at once: registers of large kernels are 30 KB. */
static uint64_t state_of(const ptx_warp *warp, const ptx_op *op) {
    enum { SUMS = 4 };
    uint64_t state = (uintptr_t)op;
    for (const ptx_frame *frame = warp->group->frame; frame; frame = frame->parent) {
        uint64_t sums[SUMS] = {0}, words[SUMS];
        uint32_t i = 0;
        for (; i + sizeof words <= frame->code->frame_bytes; i += (uint32_t)sizeof words) {
            memcpy(words, frame->bytes + i, sizeof words);
            for (int s = 0; s < SUMS; s++)
                sums[s] = mixed(sums[s], words[s]);
        }
        for (int s = 0; s < SUMS; s++)
            state = mixed(state, sums[s]);
        for (; i + 4 <= frame->code->frame_bytes; i += 4) {
            uint32_t word;
            memcpy(&word, frame->bytes + i, sizeof word);
            state = mixed(state, word);
        }
    }
    return state;
}

void ptx_wait_ask(ptx_warp *warp, const ptx_op *op) {
    enum { EACH = 256 };
    ptx_block *block = warp->block;
    warp->asks = true;
    if (++block->polls % EACH) return;
    uint64_t state = state_of(warp, op);
    for (int i = 0; i < PTX_ASKED; i++)
        if (warp->asked_in[i] == state) return;
    memmove(warp->asked_in + 1, warp->asked_in, sizeof warp->asked_in - sizeof *warp->asked_in);
    warp->asked_in[0] = state;
    block->moved = true;
}

bool ptx_wait_moved(ptx_block *block) {
    enum { FEW = 4096 }; /* instructions: a loop that asks is sometimes stopped before it does */
    bool moved = block->moved;
    for (uint32_t w = 0; w < block->warp_count; w++) {
        if (block->warps[w].unasked <= FEW) continue;
        block->warps[w].unasked = 0;
        moved = true;
    }
    block->moved = false;
    return moved;
}
