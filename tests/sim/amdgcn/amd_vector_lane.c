/* Between lanes and scalar registers. EXEC has no say in it, but for the choice of the first lane. */
#include "tests/sim/amdgcn/amd_wave.h"

static uint32_t lane_of(const amd_wave *wave, const amd_operand *operand) {
    return amd_read32(wave, operand) & (wave->lanes - 1);
}

/* A lane of a register; a scalar is the same in all. */
static uint32_t lane_read(const amd_wave *wave, const amd_operand *from, uint32_t lane) {
    return from->kind == AMD_OPERAND_VECTOR ? wave->v[from->index][lane] : amd_read32(wave, from);
}

void amd_run_v_readlane_b32(amd_wave *wave, const amd_op *op) {
    amd_write32(wave, &op->operand[0], lane_read(wave, &op->operand[1], lane_of(wave, &op->operand[2])));
}

/* With no lane on, it is lane 0. */
void amd_run_v_readfirstlane_b32(amd_wave *wave, const amd_op *op) {
    uint64_t exec = amd_exec(wave);
    uint32_t lane = exec ? (uint32_t)__builtin_ctzll(exec) : 0;
    amd_write32(wave, &op->operand[0], lane_read(wave, &op->operand[1], lane));
}

void amd_run_v_writelane_b32(amd_wave *wave, const amd_op *op) {
    wave->v[op->operand[0].index][lane_of(wave, &op->operand[2])] = amd_read32(wave, &op->operand[1]);
}

void amd_run_v_nop(amd_wave *wave, const amd_op *op) {
    (void)wave;
    (void)op;
}
