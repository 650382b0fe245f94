/* Mutants of machine code: an instruction that some of them alter is watched. A comparison runs as it is and as each
 * has it; what is to be removed makes a difference as soon as it is come to. */
#include "tests/sim/amdgcn/wave/amd_wave.h"
#include "tests/sim/core/sim_mutants.h"
#include "tests/sim/rocm/sim_rocm.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The instruction as a mutant has it. */
typedef struct variant {
    struct variant *next;
    sim_mutant *mutant;
    amd_op op;
    char text[64];
} variant;

struct amd_watch {
    amd_watch *next;
    amd_op *op;
    amd_run run; /* the op's own */
    variant *variants;
};

/* What a comparison may write. */
typedef struct scalars {
    uint32_t s[AMD_SCALARS];
    bool scc;
} scalars;

static scalars scalars_of(const amd_wave *wave) {
    scalars taken = {.scc = wave->scc};
    memcpy(taken.s, wave->s, sizeof taken.s);
    return taken;
}

static void scalars_set(amd_wave *wave, const scalars *from) {
    memcpy(wave->s, from->s, sizeof wave->s);
    wave->scc = from->scc;
}

static bool same(const scalars *a, const scalars *b) {
    return a->scc == b->scc && !memcmp(a->s, b->s, sizeof a->s);
}

/* The mutant's process has begun, and this is it. */
static bool begin(amd_watch *watch, const variant *v) {
    if (!sim_mutant_waits(v->mutant) || !sim_mutant_begin(v->mutant)) return false;
    *watch->op = v->op;
    return true;
}

/* All mutants have begun: it runs unwatched. */
static void settle(amd_watch *watch) {
    for (const variant *v = watch->variants; v; v = v->next)
        if (sim_mutant_waits(v->mutant)) return;
    watch->op->run = watch->run;
}

static void run_comparison(amd_wave *wave, const amd_op *op) {
    amd_watch *watch = op->watch;
    const scalars before = scalars_of(wave);
    watch->run(wave, op);
    const scalars after = scalars_of(wave);
    for (const variant *v = watch->variants; v; v = v->next) {
        if (!sim_mutant_waits(v->mutant)) continue;
        scalars_set(wave, &before);
        v->op.run(wave, &v->op);
        const scalars altered = scalars_of(wave);
        if (!same(&altered, &after) && begin(watch, v)) return;
    }
    scalars_set(wave, &after);
    settle(watch);
}

/* A wait with nothing on its way makes no difference, nor does what has no effect here, as what is about caches. */
static bool has_effect(const amd_wave *wave, const amd_op *op) {
    return op->watch->run != amd_run_nothing && (strncmp(op->text, "s_wait", 6) != 0 || wave->flight_count);
}

static void run_removed(amd_wave *wave, const amd_op *op) {
    amd_watch *watch = op->watch;
    if (has_effect(wave, op) && begin(watch, watch->variants)) {
        watch->op->run(wave, watch->op);
        return;
    }
    watch->run(wave, op);
    settle(watch);
}

/* The text of a comparison of two zeros that is written where op writes. */
static void compare_zeros(const amd_op *op, bool holds, char *text, size_t size) {
    if (op->class == AMD_CLASS_SCALAR) {
        snprintf(text, size, "s_cmp_%s_u32 0, 0", holds ? "eq" : "lg");
        return;
    }
    const char *sources = strchr(op->text, ' '), *comma = strchr(op->text, ',');
    const bool writes_exec = !strncmp(op->text, "v_cmpx", 6);
    /* On gfx10 and later v_cmpx writes EXEC alone and has no result among its operands. */
    const int result = op->operand_count > 2 && sources && comma ? (int)(comma - sources) + 1 : 0;
    snprintf(text, size, "v_cmp%s_%s_u32_e64%.*s 0, 0", writes_exec ? "x" : "", holds ? "eq" : "ne", result, sources);
}

static bool alter(const amd_op *op, variant *v) {
    char why[256];
    amd_op second = {0};
    const bool compares =
        !strncmp(op->text, "s_cmp", 5) || !strncmp(op->text, "s_bitcmp", 8) || !strncmp(op->text, "v_cmp", 5);
    if (compares == (v->mutant->edit == SIM_EDIT_REMOVED)) return false;
    if (compares)
        compare_zeros(op, v->mutant->edit == SIM_EDIT_ALWAYS, v->text, sizeof v->text);
    else
        snprintf(v->text, sizeof v->text, "s_nop 0");
    v->op = (amd_op){.address = op->address, .size = op->size};
    return amd_decode(v->text, &v->op, &second, why, sizeof why);
}

static amd_watch *watch_of(amd_program *program, amd_op *op) {
    if (op->watch) return op->watch;
    amd_watch *watch = calloc(1, sizeof *watch);
    if (!watch) return NULL;
    *watch = (amd_watch){.next = program->watches, .op = op, .run = op->run};
    program->watches = watch;
    op->watch = watch;
    return watch;
}

static bool found(void *context, sim_mutant *mutant) {
    amd_program *program = context;
    const uint64_t place = mutant->place;
    const bool inside = place >= program->text_begin && place < program->text_end && place % 4 == 0;
    const uint32_t index = inside ? program->op_at[(place - program->text_begin) / 4] : AMD_NO_OP;
    amd_op *op = index == AMD_NO_OP ? NULL : &program->ops[index];
    amd_watch *watch = op ? watch_of(program, op) : NULL;
    variant *v = watch ? calloc(1, sizeof *v) : NULL;
    if (!v) return false;
    v->mutant = mutant;
    v->next = watch->variants;
    watch->variants = v;
    if (!alter(op, v)) return false;
    if (sim_mutant_applies(mutant))
        *op = v->op;
    else
        op->run = mutant->edit == SIM_EDIT_REMOVED ? run_removed : run_comparison;
    return true;
}

void sim_rocm_mutants_watch(const sim_executable *executable) {
    sim_mutants_of(executable->reader->bytes, executable->reader->size, found, executable->program);
}

void sim_rocm_mutants_forget(amd_program *program) {
    while (program->watches) {
        amd_watch *watch = program->watches;
        while (watch->variants) {
            variant *v = watch->variants;
            watch->variants = v->next;
            free(v);
        }
        program->watches = watch->next;
        free(watch);
    }
}
