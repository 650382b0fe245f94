/* Between lanes, and between lanes and scalar registers. EXEC has no say in the latter, but for the choice of the first
 * lane. */
#include "tests/sim/amdgcn/wave/amd_wave.h"

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

/* ---- Permutations of rows of 16 lanes ---- */

/* Each lane takes from the one of its row, or of the row beside it, that select names. op_sel stands for DPP's fi and
 * bound_ctrl: a lane that is off gives its data (fi), 0 (bound_ctrl), or leaves the result as it was. */
static void permute(amd_wave *wave, const amd_op *op, const uint8_t select[AMD_LANES], uint32_t other_row) {
    uint32_t *result = wave->v[op->operand[0].index], from[AMD_LANES];
    bool fetch_inactive = op->op_sel & 1, bound_ctrl = op->op_sel & 2;
    uint64_t exec = amd_exec(wave);
    for (uint32_t l = 0; l < wave->lanes; l++)
        from[l] = lane_read(wave, &op->operand[1], l);
    for (uint64_t rest = exec; rest; rest &= rest - 1) {
        uint32_t l = (uint32_t)__builtin_ctzll(rest), source = ((l & ~15u) ^ other_row) | select[l];
        if (fetch_inactive || (exec >> source & 1))
            result[l] = from[source];
        else if (bound_ctrl)
            result[l] = 0;
    }
}

/* The selects of all rows: 16 numbers of 4 bits in two scalars. */
static void permute_by_scalars(amd_wave *wave, const amd_op *op, uint32_t other_row) {
    uint64_t numbers = amd_read32(wave, &op->operand[2]) | (uint64_t)amd_read32(wave, &op->operand[3]) << 32;
    uint8_t select[AMD_LANES];
    for (uint32_t l = 0; l < AMD_LANES; l++)
        select[l] = numbers >> (l & 15) * 4 & 15;
    permute(wave, op, select, other_row);
}

static void permute_by_vector(amd_wave *wave, const amd_op *op, uint32_t other_row) {
    uint8_t select[AMD_LANES] = {0};
    for (uint32_t l = 0; l < wave->lanes; l++)
        select[l] = lane_read(wave, &op->operand[2], l) & 15;
    permute(wave, op, select, other_row);
}

void amd_run_v_permlane16_b32(amd_wave *wave, const amd_op *op) {
    permute_by_scalars(wave, op, 0);
}

void amd_run_v_permlanex16_b32(amd_wave *wave, const amd_op *op) {
    permute_by_scalars(wave, op, 16);
}

void amd_run_v_permlane16_var_b32(amd_wave *wave, const amd_op *op) {
    permute_by_vector(wave, op, 0);
}

void amd_run_v_permlanex16_var_b32(amd_wave *wave, const amd_op *op) {
    permute_by_vector(wave, op, 16);
}

/* The halves of a wave of 64 change places; of lanes that are off, too. A wave of 32 has one half, and nothing happens.
 */
void amd_run_v_permlane64_b32(amd_wave *wave, const amd_op *op) {
    uint32_t from[AMD_LANES];
    for (uint32_t l = 0; l < wave->lanes; l++)
        from[l] = lane_read(wave, &op->operand[1], l);
    for (uint64_t rest = wave->lanes == 64 ? amd_exec(wave) : 0; rest; rest &= rest - 1) {
        uint32_t l = (uint32_t)__builtin_ctzll(rest);
        wave->v[op->operand[0].index][l] = from[l ^ 32];
    }
}

/* Two registers change places. */
void amd_run_v_swap_b32(amd_wave *wave, const amd_op *op) {
    uint32_t *a = wave->v[op->operand[0].index], *b = wave->v[op->operand[1].index];
    for (uint64_t rest = amd_exec(wave); rest; rest &= rest - 1) {
        uint32_t l = (uint32_t)__builtin_ctzll(rest), held = a[l];
        a[l] = b[l];
        b[l] = held;
    }
}

void amd_run_v_nop(amd_wave *wave, const amd_op *op) {
    (void)wave;
    (void)op;
}
