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

/* Registers, each once, in the order in which they were added. */
typedef struct register_set {
    bool *has;
    uint32_t *numbers, count;
} register_set;

static register_set set_of(ptx_arena *arena, uint32_t registers) {
    register_set set = {ptx_arena_take(arena, registers), ptx_arena_take(arena, registers * sizeof *set.numbers), 0};
    memset(set.has, 0, registers);
    return set;
}

static void set_add(register_set *set, uint32_t number) {
    if (set->has[number]) return;
    set->has[number] = true;
    set->numbers[set->count++] = number;
}

static void set_clear(register_set *set) {
    while (set->count)
        set->has[set->numbers[--set->count]] = false;
}

static void add_products(const ptx_code *code, register_set *of_products) {
    for (uint32_t i = 0; i < code->function->statement_count; i++) {
        const ptx_wgmma *x = code->ops[i].product;
        for (uint32_t r = 0; x && r < x->a_count; r++)
            set_add(of_products, x->a[r].number);
        for (uint32_t r = 0; x && r < x->d_count; r++)
            set_add(of_products, x->d[r].number);
    }
}

/* Those of an operand that products have. */
static void add_operand(const ptx_operand *operand, const register_set *of_products, register_set *touched) {
    bool is_register = operand->kind == PTX_OPERAND_REGISTER;
    is_register |= operand->kind == PTX_OPERAND_ADDRESS && operand->has_register;
    if (is_register && of_products->has[operand->number]) set_add(touched, operand->number);
    for (uint32_t i = 0; i < operand->element_count; i++)
        add_operand(&operand->elements[i], of_products, touched);
}

static const ptx_wgmma_touched *touched_of(ptx_arena *arena, const register_set *set) {
    if (!set->count) return NULL;
    const size_t bytes = set->count * sizeof *set->numbers;
    ptx_wgmma_touched *touched = ptx_arena_take(arena, sizeof *touched + bytes);
    touched->count = set->count;
    memcpy(touched->numbers, set->numbers, bytes);
    return touched;
}

void ptx_wgmma_note(ptx_decoder *decoder) {
    const ptx_code *code = decoder->code;
    const ptx_function *function = code->function;
    ptx_arena *arena = decoder->program->module->arena;
    register_set of_products = set_of(arena, function->register_count);
    register_set touched = set_of(arena, function->register_count);
    add_products(code, &of_products);
    for (uint32_t i = 0; i < function->statement_count; i++) {
        const ptx_statement *statement = &function->statements[i];
        ptx_op *op = &code->ops[i];
        if (op->product) continue;
        set_clear(&touched);
        for (uint32_t o = 0; o < statement->operand_count; o++)
            add_operand(&statement->operands[o], &of_products, &touched);
        /* Where the frame ends, all of them. */
        op->touched = touched_of(arena, op->flow == PTX_FLOW_RETURN ? &of_products : &touched);
    }
    if (!function->is_entry) code->ops[function->statement_count].touched = touched_of(arena, &of_products);
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
