#include "tests/sim/amdgcn/wave/amd_wave.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void amd_fault(amd_wave *wave, const amd_op *op, sim_fault_kind kind, uint32_t lane, uint64_t address,
               const char *format, ...) {
    const amd_group *group = wave->group;
    sim_report *report = group->report;
    if (report->kind != SIM_FAULT_NONE) return;
    char detail[160], who[32] = "";
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(detail, sizeof detail, format, arguments);
    va_end(arguments);
    if (lane < AMD_LANES) snprintf(who, sizeof who, ", lane %u", lane);
    report->kind = kind;
    report->address = address;
    snprintf(report->text, sizeof report->text,
             "%s: %s: kernel %s, 0x%x: %s; group (%u,%u,%u), wave %u%s, address 0x%llx", sim_fault_text(kind), detail,
             group->launch->kernel->name, op->address, op->text, group->id[0], group->id[1], group->id[2], wave->number,
             who, (unsigned long long)address);
}

/* ---- Registers ---- */

uint64_t amd_read64(const amd_wave *wave, const amd_operand *operand) {
    switch (operand->kind) {
    case AMD_OPERAND_SCALAR:
        if (operand->count < 2) return wave->s[operand->index];
        return wave->s[operand->index] | (uint64_t)wave->s[operand->index + 1] << 32;
    case AMD_OPERAND_CONSTANT:
        return operand->value;
    case AMD_OPERAND_SCC:
        return wave->scc;
    case AMD_OPERAND_VCCZ:
        return amd_vcc(wave) == 0;
    case AMD_OPERAND_EXECZ:
        return amd_exec(wave) == 0;
    default:
        return 0;
    }
}

uint32_t amd_read32(const amd_wave *wave, const amd_operand *operand) {
    if (operand->kind == AMD_OPERAND_CONSTANT) return operand->value_32;
    return operand->kind == AMD_OPERAND_SCALAR ? wave->s[operand->index] : (uint32_t)amd_read64(wave, operand);
}

uint32_t amd_read16(const amd_wave *wave, const amd_operand *operand) {
    return operand->kind == AMD_OPERAND_CONSTANT ? operand->value_16 : amd_read32(wave, operand) & 0xffff;
}

void amd_write32(amd_wave *wave, const amd_operand *operand, uint32_t value) {
    if (operand->kind == AMD_OPERAND_SCALAR) wave->s[operand->index] = value;
}

void amd_write64(amd_wave *wave, const amd_operand *operand, uint64_t value) {
    if (operand->kind != AMD_OPERAND_SCALAR) return;
    wave->s[operand->index] = (uint32_t)value;
    wave->s[operand->index + 1] = (uint32_t)(value >> 32);
}

uint64_t amd_read_mask(const amd_wave *wave, const amd_operand *operand) {
    return wave->lanes == 32 ? amd_read32(wave, operand) : amd_read64(wave, operand);
}

void amd_write_mask(amd_wave *wave, const amd_operand *operand, uint64_t mask) {
    if (wave->lanes == 32)
        amd_write32(wave, operand, (uint32_t)mask);
    else
        amd_write64(wave, operand, mask);
}

/* ---- Dual instructions ---- */

/* Each half writes one vector register, and they differ: the first result is held back until the second has read. */
void amd_run_dual(amd_wave *wave, const amd_op *op) {
    uint32_t *result = wave->v[op->operand[0].index];
    uint32_t before[AMD_LANES], after[AMD_LANES];
    memcpy(before, result, sizeof before);
    op->run(wave, op);
    memcpy(after, result, sizeof after);
    memcpy(result, before, sizeof before);
    op->dual->run(wave, op->dual);
    memcpy(result, after, sizeof after);
}
