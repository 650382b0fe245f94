/* The registers of products in flight. The ISA lets nothing touch them before a wait_group, and asks for a wgmma.fence
 * between any other access to a register and a product that has it, but for products of one shape that add to the same
 * accumulators. */
#include "tests/sim/ptx/matrix/ptx_wgmma.h"
#include "tests/sim/ptx/matrix/ptx_wgmma_run.h"
#include <stdlib.h>
#include <string.h>

/* ---- Which instructions touch such registers ---- */

struct ptx_wgmma_touched {
    uint32_t count;
    uint32_t numbers[];
};

static void mark_products(const ptx_code *code, bool *of_products) {
    for (uint32_t i = 0; i < code->function->statement_count; i++) {
        const ptx_wgmma *x = code->ops[i].product;
        for (uint32_t r = 0; x && r < x->a_count; r++)
            of_products[x->a[r].number] = true;
        for (uint32_t r = 0; x && r < x->d_count; r++)
            of_products[x->d[r].number] = true;
    }
}

static void mark_operand(const ptx_operand *operand, bool *touched) {
    if (operand->kind == PTX_OPERAND_REGISTER || (operand->kind == PTX_OPERAND_ADDRESS && operand->has_register))
        touched[operand->number] = true;
    for (uint32_t i = 0; i < operand->element_count; i++)
        mark_operand(&operand->elements[i], touched);
}

static const ptx_wgmma_touched *both(ptx_arena *arena, const bool *a, const bool *b, uint32_t registers) {
    uint32_t count = 0;
    for (uint32_t r = 0; r < registers; r++)
        count += a[r] && b[r];
    if (!count) return NULL;
    ptx_wgmma_touched *touched = ptx_arena_take(arena, sizeof *touched + count * sizeof *touched->numbers);
    for (uint32_t r = 0; r < registers; r++)
        if (a[r] && b[r]) touched->numbers[touched->count++] = r;
    return touched;
}

void ptx_wgmma_note(ptx_decoder *decoder) {
    const ptx_code *code = decoder->code;
    const ptx_function *function = code->function;
    ptx_arena *arena = decoder->program->module->arena;
    uint32_t registers = function->register_count;
    bool *of_products = ptx_arena_take(arena, registers), *touched = ptx_arena_take(arena, registers);
    memset(of_products, 0, registers);
    mark_products(code, of_products);
    for (uint32_t i = 0; i < function->statement_count; i++) {
        const ptx_statement *statement = &function->statements[i];
        ptx_op *op = &code->ops[i];
        if (op->product) continue;
        memset(touched, op->flow == PTX_FLOW_RETURN, registers); /* the frame ends */
        for (uint32_t o = 0; o < statement->operand_count; o++)
            mark_operand(&statement->operands[o], touched);
        op->touched = both(arena, of_products, touched, registers);
    }
    if (!function->is_entry)
        code->ops[function->statement_count].touched = both(arena, of_products, of_products, registers);
}

/* ---- What became of them ---- */

typedef enum use { UNUSED, OF_A, OF_D } use;

struct ptx_wgmma_use {
    use use;                /* by the last product that had it */
    const ptx_op *op;       /* that product */
    uint32_t group, fences; /* the product's group, and wgmma.fence before it */
    uint32_t touched;       /* 1 + wgmma.fence before the last other access; 0: none */
};

static ptx_wgmma_use *uses_of(ptx_warp *warp) {
    ptx_frame *frame = warp->group->frame;
    if (!frame->uses) frame->uses = calloc(frame->code->function->register_count + 1, sizeof *frame->uses);
    if (!frame->uses) abort();
    return frame->uses;
}

static const char *name_of(const ptx_warp *warp, uint32_t number) {
    return warp->group->frame->code->function->registers[number].name;
}

bool ptx_wgmma_touch(ptx_warp *warp, const ptx_op *op) {
    const ptx_wgmma_account *account = ptx_wgmma_account_of(warp);
    ptx_wgmma_use *uses = uses_of(warp);
    for (uint32_t i = 0; i < op->touched->count; i++) {
        ptx_wgmma_use *of = &uses[op->touched->numbers[i]];
        if (of->use && of->group >= account->done) {
            ptx_fault(warp, op, SIM_FAULT_WAIT, 0, 0, "register %s of the wgmma.mma_async in line %u",
                      name_of(warp, op->touched->numbers[i]), of->op->line);
            return false;
        }
        *of = (ptx_wgmma_use){.touched = account->fences + 1};
    }
    return true;
}

static bool same_shape(const ptx_wgmma *x, const ptx_wgmma *y) {
    return x->n == y->n && x->k == y->k && x->d_type == y->d_type;
}

/* A register for D, or for A. */
static bool take(ptx_warp *warp, const ptx_op *op, uint32_t number, use wanted) {
    const ptx_wgmma_account *account = ptx_wgmma_account_of(warp);
    ptx_wgmma_use *of = &uses_of(warp)[number];
    bool flies = of->use && of->group >= account->done;
    bool goes_on = of->use == wanted && (wanted == OF_A || same_shape(of->op->product, op->product));
    if (flies && !goes_on) {
        ptx_fault(warp, op, SIM_FAULT_WAIT, 0, 0, "register %s of another kind of wgmma.mma_async, in line %u",
                  name_of(warp, number), of->op->line);
        return false;
    }
    bool unfenced =
        of->touched == account->fences + 1 || (of->use == OF_D && !goes_on && of->fences == account->fences);
    if (unfenced || !account->fences) {
        ptx_fault(warp, op, SIM_FAULT_ILLEGAL, 0, 0, "no wgmma.fence since register %s was accessed",
                  name_of(warp, number));
        return false;
    }
    *of = (ptx_wgmma_use){wanted, op, account->committed, account->fences, 0};
    return true;
}

bool ptx_wgmma_take(ptx_warp *warp, const ptx_op *op) {
    const ptx_wgmma *x = op->product;
    for (uint32_t r = 0; r < x->a_count; r++)
        if (!take(warp, op, x->a[r].number, OF_A)) return false;
    for (uint32_t r = 0; r < x->d_count; r++)
        if (!take(warp, op, x->d[r].number, OF_D)) return false;
    return true;
}
