#include "tests/sim/amdgcn/decode/amd_registers.h"
#include <stdio.h>

enum { RSRC1_WGP_MODE = 29 };

/* The descriptor counts by 4, by 8 in waves of 32 and where there are accumulators, which it counts, too. */
amd_registers amd_registers_of(const amd_target *target, const amd_kernel *kernel) {
    const uint32_t all = ((kernel->rsrc1 & 63) + 1) * (target->accumulates || kernel->wave32 ? 8 : 4);
    const uint32_t first = target->accumulates ? ((kernel->rsrc3 & 63) + 1) * 4 : all;
    return first < all ? (amd_registers){first, all - first} : (amd_registers){all, 0};
}

/* VCC and the like are among those of gfx9; later targets give all to every wave. */
static uint32_t scalars_of(const amd_target *target, const amd_kernel *kernel) {
    const uint32_t given = ((kernel->rsrc1 >> 6 & 15) / 2 + 1) * 16;
    return target->major == 9 && given < AMD_SGPR_COUNT ? given : AMD_SGPR_COUNT;
}

static bool op_check(const amd_program *program, const amd_kernel *kernel, const amd_op *op, char *why,
                     size_t why_size) {
    const amd_registers has = amd_registers_of(program->target, kernel);
    for (uint32_t i = 0; i < op->operand_count; i++) {
        const amd_operand *operand = &op->operand[i];
        const bool accumulator = operand->index >= AMD_ACCUMULATORS;
        const uint32_t first = accumulator ? operand->index - AMD_ACCUMULATORS : operand->index;
        uint32_t limit = accumulator ? has.accumulators : has.vectors;
        if (operand->kind == AMD_OPERAND_SCALAR && operand->index < AMD_SGPR_COUNT)
            limit = scalars_of(program->target, kernel);
        else if (operand->kind != AMD_OPERAND_VECTOR)
            continue;
        if (first + operand->count <= limit) continue;
        snprintf(why, why_size, "kernel %s, 0x%x: %s: operand %u is beyond the %u registers that the descriptor gives",
                 kernel->name, op->address, op->text, i, limit);
        return false;
    }
    return true;
}

bool amd_registers_check(const amd_program *program, const amd_kernel *kernel, char *why, size_t why_size) {
    for (uint32_t i = 0; i < program->op_count; i++) {
        const amd_op *op = &program->ops[i];
        if (op->address < kernel->code_begin || op->address >= kernel->code_end || !op->run) continue;
        if (!op_check(program, kernel, op, why, why_size)) return false;
        if (op->dual && !op_check(program, kernel, op->dual, why, why_size)) return false;
    }
    return true;
}

/* A group's waves are spread over the SIMDs of a compute unit, or of two in WGP mode; the registers of one are those of
 * its waves. */
bool amd_registers_fit(const amd_target *target, const amd_kernel *kernel, uint32_t work_items) {
    const uint32_t half = kernel->wave32 ? 2 : 1, lanes = 64 / half;
    const uint32_t granule = target->register_granule * half, pool = target->registers * half;
    const uint32_t simds = target->major == 9 || (kernel->rsrc1 >> RSRC1_WGP_MODE & 1) ? 4 : 2;
    const uint32_t waves = (work_items + lanes - 1) / lanes;
    const amd_registers has = amd_registers_of(target, kernel);
    const uint32_t taken = (has.vectors + has.accumulators + granule - 1) / granule * granule;
    return (waves + simds - 1) / simds * taken <= pool;
}
