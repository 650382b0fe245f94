/* Mutants of a text: an instruction that some of them alter is watched. A comparison runs as it is, and its predicate
 * is compared with what each has in its place; what is to be removed makes a difference as soon as it is come to. */
#include "tests/sim/core/sim_mutants.h"
#include "tests/sim/cuda/sim_cuda.h"
#include "tests/sim/ptx/decode/ptx_decode.h"
#include "tests/sim/ptx/parse/ptx_arena.h"
#include "tests/sim/ptx/warp/ptx_warp.h"
#include <string.h>

enum { EDITS = 3 };

struct ptx_watch {
    ptx_op *op;
    ptx_op original;
    sim_mutant *mutants[EDITS]; /* by edit */
};

static uint32_t *predicate_of(const ptx_warp *warp, const ptx_op *op) {
    return (uint32_t *)(void *)(warp->frame + op->d[0]);
}

/* ---- The instruction as mutants have it ---- */

static void run_always(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    *predicate_of(warp, op) |= mask;
}

static void run_never(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    *predicate_of(warp, op) &= ~mask;
}

static void alter(ptx_watch *watch, sim_edit edit) {
    *watch->op = watch->original;
    watch->op->flow = PTX_FLOW_NEXT;
    watch->op->run = edit == SIM_EDIT_REMOVED ? ptx_run_nothing : edit == SIM_EDIT_ALWAYS ? run_always : run_never;
}

/* ---- Watching ---- */

static bool begin(ptx_watch *watch, sim_edit edit) {
    sim_mutant *mutant = watch->mutants[edit];
    if (!mutant || !sim_mutant_waits(mutant) || !sim_mutant_begin(mutant)) return false;
    alter(watch, edit);
    return true;
}

/* All mutants have begun: it runs unwatched. */
static void settle(ptx_watch *watch) {
    for (int edit = 0; edit < EDITS; edit++)
        if (watch->mutants[edit] && sim_mutant_waits(watch->mutants[edit])) return;
    *watch->op = watch->original;
}

static void run_comparison(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    ptx_watch *watch = op->watch;
    watch->original.run(warp, op, mask);
    const uint32_t holds = *predicate_of(warp, op) & mask;
    if (holds != mask && begin(watch, SIM_EDIT_ALWAYS))
        run_always(warp, op, mask);
    else if (holds && begin(watch, SIM_EDIT_NEVER))
        run_never(warp, op, mask);
    else
        settle(watch);
}

/* Both processes come to the instruction once more: as it is, and without. */
static void run_removed(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    (void)mask;
    if (!begin(op->watch, SIM_EDIT_REMOVED)) settle(op->watch);
    warp->group->op--;
}

static bool is_removable(const ptx_statement *statement) {
    static const char *const opcodes[] = {"bar", "barrier", "membar", "fence", "wgmma"};
    for (size_t i = 0; i < sizeof opcodes / sizeof *opcodes; i++)
        if (!strcmp(statement->opcode, opcodes[i])) return true;
    return false;
}

static bool watch_op(ptx_program *program, ptx_op *op, sim_mutant *mutant) {
    if (!op->watch) {
        ptx_watch *watch = ptx_arena_take(program->module->arena, sizeof *watch);
        watch->op = op;
        op->watch = watch;
        watch->original = *op;
    }
    op->watch->mutants[mutant->edit] = mutant;
    const bool has_effect = op->flow != PTX_FLOW_NEXT || op->watch->original.run != ptx_run_nothing;
    if (sim_mutant_applies(mutant)) {
        alter(op->watch, mutant->edit);
    } else if (has_effect) {
        op->flow = PTX_FLOW_NEXT;
        op->run = mutant->edit == SIM_EDIT_REMOVED ? run_removed : run_comparison;
    }
    return true;
}

static bool found(void *context, sim_mutant *mutant) {
    ptx_program *program = context;
    const bool removes = mutant->edit == SIM_EDIT_REMOVED;
    for (uint32_t number = 0; number < program->code_count; number++) {
        const ptx_code *code = &program->codes[number];
        for (uint32_t i = 0; i < code->function->statement_count; i++) {
            const ptx_statement *statement = &code->function->statements[i];
            if (statement->line != mutant->place) continue;
            if (removes ? is_removable(statement) : !strcmp(statement->opcode, "setp"))
                return watch_op(program, &code->ops[i], mutant);
        }
    }
    return false;
}

void sim_cuda_mutants_watch(ptx_program *program, const char *text, size_t size) {
    sim_mutants_of(text, size, found, program);
}
