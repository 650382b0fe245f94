/* Registers whose number is in M0: how compilers index arrays that they keep in registers. gfx10 and later have moves
 * for it; gfx9 has a mode in which the registers of vector instructions are counted from M0, and what compilers put
 * there is v_mov_b32, so that nothing else is simulated in it. */
#include "tests/sim/amdgcn/decode/amd_registers.h"
#include "tests/sim/amdgcn/wave/amd_wave.h"

enum { MODE_SOURCE_0 = 1, MODE_RESULT = 8, MODE_SHIFT = 12, M0_INDEX = 0xff };

static uint32_t index_of(const amd_wave *wave) {
    return wave->s[AMD_M0];
}

/* An operand so many registers further on. false after a fault: the kernel has no such register. */
static bool move_on(amd_wave *wave, const amd_op *op, amd_operand *operand, uint32_t by) {
    uint32_t has = AMD_VCC;
    if (operand->kind == AMD_OPERAND_VECTOR) {
        const amd_registers all = amd_registers_of(wave->program->target, wave->group->launch->kernel);
        has = all.vectors;
    } else if (operand->kind != AMD_OPERAND_SCALAR) {
        return true;
    }
    if (by < has && operand->index + by + operand->count <= has) {
        operand->index = (uint16_t)(operand->index + by);
        return true;
    }
    amd_fault(wave, op, SIM_FAULT_ILLEGAL, AMD_LANES, by, "register %u of %u", operand->index + by, has);
    return false;
}

/* The move with its operands so many registers further on. */
static void move(amd_wave *wave, const amd_op *op, uint32_t result_by, uint32_t source_by) {
    amd_op moved = *op;
    amd_operand *to = &moved.operand[0], *from = &moved.operand[1];
    if (!move_on(wave, op, to, result_by) || !move_on(wave, op, from, source_by)) return;
    if (wave->results_in_flight) amd_check_flights(wave, &moved);
    if (to->kind == AMD_OPERAND_SCALAR && to->count == 2)
        amd_write64(wave, to, amd_read64(wave, from));
    else if (to->kind == AMD_OPERAND_SCALAR)
        amd_write32(wave, to, amd_read32(wave, from));
    for (uint64_t rest = to->kind == AMD_OPERAND_VECTOR ? amd_exec(wave) : 0; rest; rest &= rest - 1) {
        uint32_t l = (uint32_t)__builtin_ctzll(rest);
        wave->v[to->index][l] = from->kind == AMD_OPERAND_VECTOR ? wave->v[from->index][l] : amd_read32(wave, from);
    }
}

void amd_run_v_movrels_b32(amd_wave *wave, const amd_op *op) {
    move(wave, op, 0, index_of(wave));
}

void amd_run_v_movreld_b32(amd_wave *wave, const amd_op *op) {
    move(wave, op, index_of(wave), 0);
}

void amd_run_v_movrelsd_b32(amd_wave *wave, const amd_op *op) {
    move(wave, op, index_of(wave), index_of(wave));
}

/* ---- gfx9's mode ---- */

void amd_run_relative(amd_wave *wave, const amd_op *op) {
    uint32_t by = index_of(wave) & M0_INDEX, which = index_of(wave) >> MODE_SHIFT;
    bool vector = op->operand_count == 2 && op->operand[0].kind == AMD_OPERAND_VECTOR;
    if (op->run != amd_run_v_mov_b32 || !vector || op->dpp || op->encoding == AMD_ENCODING_SDWA) {
        amd_fault(wave, op, SIM_FAULT_ILLEGAL, AMD_LANES, 0,
                  "only v_mov_b32 is simulated while s_set_gpr_idx_on holds");
        return;
    }
    bool source = which & MODE_SOURCE_0 && op->operand[1].kind == AMD_OPERAND_VECTOR;
    move(wave, op, which & MODE_RESULT ? by : 0, source ? by : 0);
}

static void set_which(amd_wave *wave, uint32_t which) {
    wave->s[AMD_M0] = (wave->s[AMD_M0] & ~(15u << MODE_SHIFT)) | (which & 15) << MODE_SHIFT;
}

void amd_run_s_set_gpr_idx_idx(amd_wave *wave, const amd_op *op) {
    wave->s[AMD_M0] = (wave->s[AMD_M0] & ~(uint32_t)M0_INDEX) | (amd_read32(wave, &op->operand[0]) & M0_INDEX);
}

void amd_run_s_set_gpr_idx_on(amd_wave *wave, const amd_op *op) {
    amd_run_s_set_gpr_idx_idx(wave, op);
    set_which(wave, op->immediate >> 8);
    wave->relative = true;
}

void amd_run_s_set_gpr_idx_mode(amd_wave *wave, const amd_op *op) {
    set_which(wave, op->immediate);
}

void amd_run_s_set_gpr_idx_off(amd_wave *wave, const amd_op *op) {
    (void)op;
    wave->relative = false;
}
