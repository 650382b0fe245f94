/* Generic addresses: the windows that shared memory, local memory and a kernel's parameters have among them; cvta and
 * isspacep. */
#include "tests/sim/ptx/decode/ptx_decode.h"
#include "tests/sim/ptx/warp/ptx_cluster.h"
#include "tests/sim/ptx/warp/ptx_lanes.h"
#include <string.h>

ptx_space ptx_generic_space(uint64_t address) {
    switch (address & PTX_WINDOW_MASK) {
    case PTX_WINDOW_SHARED:
        return PTX_SPACE_SHARED;
    case PTX_WINDOW_LOCAL:
        return PTX_SPACE_LOCAL;
    case PTX_WINDOW_PARAM:
        return PTX_SPACE_PARAM;
    default:
        return PTX_SPACE_GLOBAL;
    }
}

uint64_t ptx_to_generic(ptx_space space, uint64_t address) {
    switch (space) {
    case PTX_SPACE_SHARED:
    case PTX_SPACE_CLUSTER:
        return PTX_WINDOW_SHARED | address;
    case PTX_SPACE_LOCAL:
        return PTX_WINDOW_LOCAL | address;
    default:
        return address;
    }
}

static void run_from_generic(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    uint64_t *d = PTX_ARRAY(uint64_t, op->d[0]);
    const uint64_t *a = PTX_ARRAY(uint64_t, op->s[0]);
    bool window = op->space == PTX_SPACE_SHARED || op->space == PTX_SPACE_CLUSTER || op->space == PTX_SPACE_LOCAL;
    PTX_LANES(d[l] = window ? a[l] & ~PTX_WINDOW_MASK : a[l]);
}

static void run_to_generic(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    uint64_t *d = PTX_ARRAY(uint64_t, op->d[0]);
    const uint64_t *a = PTX_ARRAY(uint64_t, op->s[0]);
    PTX_LANES(d[l] = ptx_to_generic(op->space, a[l]));
}

/* Constant memory has no window, so that the region tells. */
static ptx_space space_of(const ptx_warp *warp, uint64_t address) {
    const ptx_launch *launch = warp->block->launch;
    ptx_space space = ptx_generic_space(address);
    sim_region region;
    bool constant = space == PTX_SPACE_GLOBAL && ptx_region_find(launch, address, &region) && region.constant;
    return constant ? PTX_SPACE_CONST : space;
}

/* The block's own shared memory is of its cluster's. */
static bool is_in(const ptx_warp *warp, uint64_t address, ptx_space space) {
    const ptx_space is = space_of(warp, address);
    if (is != PTX_SPACE_SHARED) return is == space;
    return space == PTX_SPACE_CLUSTER ||
           (space == PTX_SPACE_SHARED && ptx_address_rank(warp->block, address) == warp->block->rank);
}

static void run_is_space(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    const uint64_t *a = PTX_ARRAY(uint64_t, op->s[0]);
    uint32_t result = 0;
    PTX_LANES(result |= (uint32_t)is_in(warp, a[l], op->space) << l);
    PTX_MASK(op->d[0]) = (PTX_MASK(op->d[0]) & ~mask) | result;
}

void ptx_decode_address(ptx_decoder *decoder) {
    ptx_op *op = decoder->op;
    const ptx_operand *operands = decoder->statement->operands;
    bool to = ptx_take(decoder, PTX_M_TO);
    if (ptx_take(decoder, PTX_M_PARAM_FUNC)) ptx_refuse(decoder, "a function's parameters have no generic address");
    op->space = ptx_take_space(decoder);
    if (op->space == PTX_SPACE_GENERIC) ptx_refuse(decoder, "it names no state space");
    if (op->space == PTX_SPACE_PARAM) ptx_need(decoder, 0, 77);
    ptx_expect_operands(decoder, 2, 2);
    if (strcmp(decoder->statement->opcode, "isspacep") == 0) {
        ptx_expect_types(decoder, 0);
        op->run = run_is_space;
        op->d[0] = ptx_result(decoder, &operands[0], PTX_pred);
    } else {
        ptx_expect_types(decoder, 1);
        if (ptx_type_at(decoder, 0) != PTX_u64) ptx_refuse(decoder, "only 64-bit addresses are simulated");
        op->run = to ? run_from_generic : run_to_generic;
        op->d[0] = ptx_result(decoder, &operands[0], PTX_u64);
    }
    op->s[0] = ptx_source(decoder, &operands[1], PTX_u64);
}
