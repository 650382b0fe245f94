#include "tests/sim/amdgcn/wave/amd_hazard.h"
#include "tests/sim/amdgcn/matrix/amd_matrix.h"
#include <string.h>

enum { LONGEST = 19, /* wait states that any rule asks for */ GFX90A = 0x90a, GFX942 = 0x942, C = 3 };

/* A taken branch empties the wave's instruction buffer. How long the next instruction takes to come is not documented;
 * LLVM's model of costs has twice as much. LLVM 19 does miss the shortest of several ways through a loop, by less than
 * this. */
enum { BRANCH_TAKEN = 4 };

static const amd_matrix *matrix_of(const amd_op *op) {
    return op->class == AMD_CLASS_MATRIX ? &amd_matrices[op->mode] : NULL;
}

static bool is_vector_alu(const amd_op *op) {
    return op->class == AMD_CLASS_VECTOR || op->class == AMD_CLASS_DOT || op->class == AMD_CLASS_LANE;
}

bool amd_hazard_has(const amd_target *target, const amd_op *op) {
    bool newer = target->version == GFX90A || target->version == GFX942;
    return op->class == AMD_CLASS_MATRIX || (newer && op->class == AMD_CLASS_DOT);
}

static bool overlap(const amd_operand *a, const amd_operand *b) {
    return a->kind == AMD_OPERAND_VECTOR && b->kind == AMD_OPERAND_VECTOR && a->index < b->index + b->count &&
           b->index < a->index + a->count;
}

static bool same(const amd_operand *a, const amd_operand *b) {
    return a->index == b->index && a->count == b->count;
}

/* What gfx942 makes in its longer pipeline: all but f32 and f64. gfx90a makes all in one. */
static bool is_long(const amd_target *target, const amd_matrix *m) {
    return target->version != GFX90A && m->a != AMD_MATRIX_f32 && m->a != AMD_MATRIX_f64;
}

static uint32_t after_f64(const amd_target *target, const amd_op *before, const amd_op *op, uint32_t number) {
    const amd_matrix *next = matrix_of(op);
    bool small = matrix_of(before)->rows == 4;
    if (op->class == AMD_CLASS_MEMORY && number != 0) return small ? 9 : 18;
    if (!next || number != C) return small ? 6 : 11;
    bool next_f64 = next->a == AMD_MATRIX_f64;
    if (same(&before->operand[0], &op->operand[C])) return small && next_f64 && next->rows == 4 ? 4 : 0;
    if (!next_f64 && (target->version == GFX90A || is_long(target, next))) return 0;
    return small ? 4 : 9;
}

/* C of an MFMA behind another. */
static uint32_t after_in_c(const amd_target *target, const amd_matrix *m, const amd_op *before, const amd_op *op) {
    const amd_matrix *next = matrix_of(op);
    bool older = target->version == GFX90A;
    if (same(&before->operand[0], &op->operand[C])) return !older && m->passes == 2 ? 2 : 0;
    if (older) return m->passes + (next->a == AMD_MATRIX_f64 ? 1u : 0u);
    if (is_long(target, next) && !is_long(target, m)) return 0;
    return m->passes + (is_long(target, m) ? 1u : 0u);
}

/* Wait states between an MFMA and an instruction of which this operand overlaps its result. */
static uint32_t after_mfma(const amd_target *target, const amd_op *before, const amd_op *op, uint32_t number) {
    const amd_matrix *m = matrix_of(before);
    if (matrix_of(op) && number == 0) return 0; /* one result over another is waited for */
    if (m->a == AMD_MATRIX_f64) return after_f64(target, before, op, number);
    if (matrix_of(op) && number == C) return after_in_c(target, m, before, op);
    return m->passes + (target->version == GFX90A || is_long(target, m) ? 3u : 2u);
}

/* Wait states until C of an MFMA may be overwritten. */
static uint32_t until_overwritten(const amd_target *target, const amd_op *before) {
    const amd_matrix *m = matrix_of(before);
    bool read_late = m->a != AMD_MATRIX_f64 && (target->version == GFX90A || is_long(target, m));
    return read_late ? m->passes - 1u : 0;
}

/* Wait states between a dot product and an instruction of which this operand overlaps its result. */
static uint32_t after_dot(const amd_op *before, const amd_op *op, uint32_t number) {
    bool adds_to_it = before->run == op->run && (number == 0 || number == C);
    return matrix_of(op) || adds_to_it ? 0 : 3;
}

static uint32_t needed_gfx9(const amd_wave *wave, const amd_op *before, const amd_op *op, uint32_t number) {
    const amd_target *target = wave->program->target;
    if (!overlap(&before->operand[0], &op->operand[number])) return 0;
    if (matrix_of(before)) return after_mfma(target, before, op, number);
    if (before->class == AMD_CLASS_DOT) return after_dot(before, op, number);
    return matrix_of(op) && number != 0 ? 2 : 0;
}

static void check_gfx9(amd_wave *wave, const amd_op *op, const amd_issued *before) {
    uint32_t elapsed = (uint32_t)(wave->wait_states - before->at);
    for (uint32_t i = 0; i < op->operand_count; i++) {
        uint32_t needed = needed_gfx9(wave, before->op, op, i);
        if (i == 0 && matrix_of(before->op) && is_vector_alu(op) && overlap(&before->op->operand[C], &op->operand[0])) {
            uint32_t until = until_overwritten(wave->program->target, before->op);
            if (until > needed) needed = until;
        }
        if (elapsed >= needed) continue;
        amd_fault(wave, op, SIM_FAULT_WAIT, AMD_LANES, before->op->address,
                  "operand %u is of \"%s\", %u wait states too early", i, before->op->text, needed - elapsed);
        return;
    }
}

/* WMMA: what is in the list is the last one, with no instruction of the vector ALU behind it. */
static void check_wmma(amd_wave *wave, const amd_op *op, const amd_issued *before) {
    for (uint32_t i = 1; matrix_of(op) && i < C; i++) {
        if (!overlap(&before->op->operand[0], &op->operand[i])) continue;
        amd_fault(wave, op, SIM_FAULT_WAIT, AMD_LANES, before->op->address,
                  "operand %u is of \"%s\", with no vector instruction between", i, before->op->text);
        return;
    }
}

void amd_hazard_check(amd_wave *wave, const amd_op *op) {
    uint32_t major = wave->program->target->major;
    for (uint32_t i = 0; i < wave->issued_count && op->class != AMD_CLASS_SCALAR; i++) {
        if (major == 9)
            check_gfx9(wave, op, &wave->issued[i]);
        else
            check_wmma(wave, op, &wave->issued[i]);
    }
}

/* The wait states that an instruction, which has been run, was itself. */
static uint32_t states_of(const amd_wave *wave, const amd_op *op) {
    if (op->run == amd_run_s_nop) return (uint32_t)op->operand[0].value + 1;
    return &wave->program->ops[wave->next] == op + 1 ? 1 : BRANCH_TAKEN;
}

/* How many wait states later an instruction still counts. */
static uint32_t longest(const amd_op *op) {
    return matrix_of(op) ? LONGEST : op->class == AMD_CLASS_DOT ? 3 : 2;
}

void amd_hazard_note(amd_wave *wave, const amd_op *op) {
    uint32_t kept = 0;
    bool gfx9 = wave->program->target->major == 9, vector = is_vector_alu(op) || matrix_of(op);
    wave->wait_states += states_of(wave, op);
    for (uint32_t i = 0; i < wave->issued_count; i++) {
        const amd_issued *one = &wave->issued[i];
        bool over = gfx9 ? wave->wait_states - one->at >= longest(one->op) : vector;
        if (!over) wave->issued[kept++] = *one;
    }
    if ((matrix_of(op) || (gfx9 && vector)) && kept < AMD_ISSUED)
        wave->issued[kept++] = (amd_issued){op, wave->wait_states};
    wave->issued_count = kept;
}
