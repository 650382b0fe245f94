/* alloca, stacksave, stackrestore: memory of a function's own that is as large as it turns out, and gone at its return.
 * It lies in local memory, from the end down: ptx_local.c. */
#include "tests/sim/ptx/decode/ptx_decode.h"
#include "tests/sim/ptx/warp/ptx_lanes.h"
#include <string.h>

enum { ALIGN = 8 };

static uint64_t read(const ptx_warp *warp, const ptx_op *op, uint32_t place, int lane) {
    return op->type == PTX_u64 ? PTX_ARRAY(uint64_t, place)[lane] : PTX_ARRAY(uint32_t, place)[lane];
}

static void write(const ptx_warp *warp, const ptx_op *op, int lane, uint32_t value) {
    if (op->type == PTX_u64)
        PTX_ARRAY(uint64_t, op->d[0])[lane] = value;
    else
        PTX_ARRAY(uint32_t, op->d[0])[lane] = value;
}

static void run_alloca(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    PTX_LANES({
        if (!ptx_local_take(warp, op, (uint32_t)l, read(warp, op, op->s[0], l), op->mode)) return;
        write(warp, op, l, warp->stack[l]);
    });
}

static void run_save(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    PTX_LANES(write(warp, op, l, warp->stack[l]));
}

/* To what was saved in this call of the function, and is still there. */
static void run_restore(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    PTX_LANES({
        uint64_t to = read(warp, op, op->s[0], l);
        if (to < warp->stack[l] || to > warp->group->frame->stack[l]) {
            ptx_fault(warp, op, SIM_FAULT_ILLEGAL, (uint32_t)l, to, "a stack that was not saved here");
            return;
        }
        warp->stack[l] = (uint32_t)to;
    });
}

/* alloca.type d, size {, align}; stacksave.type d; stackrestore.type a. */
void ptx_decode_stack(ptx_decoder *decoder) {
    const ptx_operand *operands = decoder->statement->operands;
    const char *opcode = decoder->statement->opcode;
    bool takes = strcmp(opcode, "alloca") == 0, saves = strcmp(opcode, "stacksave") == 0;
    ptx_op *op = decoder->op;
    ptx_need(decoder, 0, 73);
    ptx_expect_types(decoder, 1);
    ptx_expect_operands(decoder, takes ? 2 : 1, takes ? 3 : 1);
    op->type = ptx_type_at(decoder, 0);
    if (op->type != PTX_u32 && op->type != PTX_u64) ptx_refuse(decoder, "it has no type %s", ptx_type_name(op->type));
    op->run = takes ? run_alloca : saves ? run_save : run_restore;
    if (takes || saves) op->d[0] = ptx_result(decoder, &operands[0], op->type);
    if (takes) op->s[0] = ptx_source(decoder, &operands[1], op->type);
    if (!takes && !saves) {
        if (operands[0].kind != PTX_OPERAND_REGISTER) ptx_refuse(decoder, "it needs a register");
        op->s[0] = ptx_source(decoder, &operands[0], op->type);
    }
    op->mode = ALIGN;
    if (decoder->statement->operand_count < 3) return;
    uint64_t align = (uint64_t)operands[2].value;
    if (operands[2].kind != PTX_OPERAND_INTEGER || !align || align & (align - 1) || align > PTX_LOCAL_BYTES)
        ptx_refuse(decoder, "its alignment must be a power of 2");
    op->mode = (uint32_t)align;
}
