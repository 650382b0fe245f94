/* setmaxnreg: the warps of a block hand registers on to each other. A block has those that it was launched with, for
 * each thread as many as the machine code has, in whole granules. setmaxnreg.dec gives some of a warp's back;
 * setmaxnreg.inc waits until as many as it lacks are there (PTX ISA, "setmaxnreg"; that a sum of more than there are
 * waits for ever was seen on an H200). What a warp has that ends is not given back. Numbers are of one thread, since
 * all lanes of a warp have as many. */
#include "tests/sim/ptx/matrix/ptx_wgmma.h"
#include "tests/sim/ptx/warp/ptx_warp.h"

enum { GRANULE = 8 };

void ptx_registers_start(ptx_block *block) {
    block->registers = 0;
    for (uint32_t w = 0; w < block->warp_count; w++) {
        block->warps[w].registers = (block->launch->registers + GRANULE - 1) / GRANULE * GRANULE;
        block->warps[w].registers_wanted = 0;
    }
}

void ptx_registers_run(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    const bool more = op->mode;
    ptx_wgmma_run_together(warp, op, mask);
    if (!warp->block->launch->registers || warp->block->report->kind != SIM_FAULT_NONE) return;
    if (more ? op->count < warp->registers : op->count > warp->registers) {
        ptx_fault(warp, op, SIM_FAULT_ILLEGAL, 0, op->count, "setmaxnreg.%s to %u registers of a warp that has %u",
                  more ? "inc" : "dec", op->count, warp->registers);
        return;
    }
    if (more) {
        warp->registers_wanted = op->count - warp->registers;
        if (warp->registers_wanted) warp->group->state = PTX_AT_REGISTERS;
        return;
    }
    warp->block->registers += warp->registers - op->count;
    warp->registers = op->count;
}

/* The group of a warp that waits, behind the instruction; NULL: none. */
static ptx_group *waiting(ptx_warp *warp) {
    for (uint32_t g = 0; warp->registers_wanted && g < warp->group_count; g++)
        if (warp->groups[g].state == PTX_AT_REGISTERS) return &warp->groups[g];
    return NULL;
}

bool ptx_registers_release(ptx_block *block) {
    bool any = false;
    for (uint32_t w = 0; w < block->warp_count; w++) {
        ptx_warp *warp = &block->warps[w];
        ptx_group *group = waiting(warp);
        if (!group || warp->registers_wanted > block->registers) continue;
        block->registers -= warp->registers_wanted;
        warp->registers += warp->registers_wanted;
        warp->registers_wanted = 0;
        group->state = PTX_READY;
        any = true;
    }
    return any;
}

bool ptx_registers_report(ptx_block *block) {
    for (uint32_t w = 0; w < block->warp_count; w++) {
        ptx_warp *warp = &block->warps[w];
        const ptx_group *group = waiting(warp);
        if (!group) continue;
        ptx_fault(warp, &group->frame->code->ops[group->op - 1], SIM_FAULT_REGISTERS, 0, warp->registers_wanted,
                  "the warp lacks %u registers of each lane, and %u of one warp are free in the block",
                  warp->registers_wanted, block->registers);
        return true;
    }
    return false;
}
