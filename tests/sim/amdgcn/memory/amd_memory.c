/* Scalar loads, and the loads and stores of the global, flat, buffer and scratch classes. */
#include "tests/sim/amdgcn/memory/amd_memory.h"
#include <string.h>

/* ---- Scalar loads ---- */

/* The bytes of a scalar load in its registers: less than a register is extended to one. */
static void scalar_put(amd_wave *wave, const amd_op *op, const uint8_t *bytes, uint32_t size) {
    uint32_t *to = &wave->s[op->operand[0].index], value = 0;
    if (size >= 4) {
        memcpy(to, bytes, size);
        return;
    }
    memcpy(&value, bytes, size);
    if (op->mode & AMD_MEMORY_SIGNED) value = (uint32_t)(size == 1 ? (int8_t)value : (int16_t)value);
    *to = value;
}

/* The scalar unit cuts the lowest bits of an address off, whatever the driver lets the others do. */
static bool scalar_aligned(amd_wave *wave, const amd_op *op, uint64_t address, uint32_t size) {
    if (address % (size >= 4 ? 4 : size) == 0) return true;
    amd_fault(wave, op, SIM_FAULT_MISALIGNED, AMD_LANES, address, "%u bytes", size);
    return false;
}

/* Arguments are no data of the kernel's: reading them is not counted. */
static bool in_kernarg(const amd_wave *wave, uint64_t address) {
    const amd_launch *launch = wave->group->launch;
    return address - launch->kernarg < launch->kernel->kernarg_bytes;
}

void amd_run_s_load(amd_wave *wave, const amd_op *op) {
    uint32_t size = amd_memory_bytes(op);
    uint64_t address = amd_read64(wave, &op->operand[1]) + (uint64_t)(int64_t)op->offset;
    const amd_operand *offset = &op->operand[2];
    bool constant = offset->kind == AMD_OPERAND_CONSTANT;
    address += constant ? offset->value : amd_read32(wave, offset);
    if (!scalar_aligned(wave, op, address, size)) return;
    const uint8_t *bytes = amd_global_at(wave, op, AMD_LANES, address, size, false);
    if (!bytes) return;
    scalar_put(wave, op, bytes, size);
    if (!in_kernarg(wave, address)) wave->group->counters.global_read_bytes += size;
    amd_issue(wave, op, AMD_COUNTER_SM, &op->operand[0], ~0ull);
}

/* Through a descriptor of four registers; beyond its end there are zeros. */
void amd_run_s_buffer_load(amd_wave *wave, const amd_op *op) {
    static const uint8_t zeros[64];
    uint32_t size = amd_memory_bytes(op);
    const amd_operand *offset = &op->operand[2];
    bool constant = offset->kind == AMD_OPERAND_CONSTANT;
    uint64_t at = (uint64_t)(int64_t)op->offset + (constant ? offset->value : amd_read32(wave, offset)), address;
    bool outside;
    if (!amd_buffer_scalar(wave, op, &op->operand[1], at, &address, &outside)) return;
    const uint8_t *bytes = zeros;
    if (!outside) {
        if (!scalar_aligned(wave, op, address, size)) return;
        bytes = amd_global_at(wave, op, AMD_LANES, address, size, false);
        wave->group->counters.global_read_bytes += size;
    }
    if (!bytes) return;
    scalar_put(wave, op, bytes, size);
    amd_issue(wave, op, AMD_COUNTER_SM, &op->operand[0], ~0ull);
}

/* ---- Lanes ---- */

void amd_lane_put(amd_wave *wave, const amd_op *op, const amd_operand *to, uint32_t lane, const uint8_t *bytes) {
    uint32_t size = amd_memory_bytes(op), value = 0;
    if (size >= 4) {
        for (uint32_t i = 0; i < size / 4; i++)
            memcpy(&wave->v[to->index + i][lane], bytes + i * 4, 4);
        return;
    }
    memcpy(&value, bytes, size);
    if (op->mode & AMD_MEMORY_SIGNED) value = (uint32_t)(size == 1 ? (int8_t)value : (int16_t)value);
    uint32_t *place = &wave->v[to->index][lane];
    if (!(op->mode & AMD_MEMORY_D16))
        *place = value;
    else if (op->mode & AMD_MEMORY_HIGH)
        *place = (*place & 0xffff) | value << 16;
    else
        *place = (*place & 0xffff0000) | (value & 0xffff);
}

void amd_lane_get(const amd_wave *wave, const amd_op *op, const amd_operand *from, uint32_t lane, uint8_t *bytes) {
    uint32_t size = amd_memory_bytes(op);
    if (size >= 4) {
        for (uint32_t i = 0; i < size / 4; i++)
            memcpy(bytes + i * 4, &wave->v[from->index + i][lane], 4);
        return;
    }
    uint32_t value = wave->v[from->index][lane] >> (op->mode & AMD_MEMORY_HIGH ? 16 : 0);
    memcpy(bytes, &value, size);
}

/* ---- Global memory ---- */

void amd_run_global_load(amd_wave *wave, const amd_op *op) {
    amd_request made;
    amd_request_make(wave, op, &op->operand[1], &op->operand[2], &made);
    if (amd_request_load(wave, op, &made, &op->operand[0]))
        amd_issue(wave, op, AMD_COUNTER_VM_LOAD, &op->operand[0], made.exec);
}

/* Eight rows of eight halves in eight lanes, whose columns the lanes get: of each lane the element that has the lane's
 * number (ROCm, "RDNA4 WMMA transpose load builtins"). All lanes must be on, as for WMMA. Of waves of 64, which load
 * half as much, that says nothing. */
void amd_run_global_load_tr(amd_wave *wave, const amd_op *op) {
    enum { SIDE = 8 };
    const amd_operand *to = &op->operand[0];
    uint16_t rows[AMD_LANES][SIDE], column[SIDE];
    amd_request made;
    if (amd_exec(wave) != wave->all || wave->lanes != 32) {
        amd_fault(wave, op, SIM_FAULT_ILLEGAL, AMD_LANES, op->address,
                  "a load that transposes in a wave of 64, or with lanes off");
        return;
    }
    amd_request_make(wave, op, &op->operand[1], &op->operand[2], &made);
    amd_request_count(wave, &made, false);
    amd_request_fill(&made);
    for (uint32_t l = 0; l < wave->lanes; l++) {
        const uint8_t *bytes = amd_request_lane(wave, op, &made, l);
        if (!bytes) return;
        memcpy(rows[l], bytes, sizeof *rows);
    }
    for (uint32_t l = 0; l < wave->lanes; l++) {
        for (uint32_t i = 0; i < SIDE; i++)
            column[i] = rows[l / SIDE * SIDE + i][l % SIDE];
        amd_lane_put(wave, op, to, l, (const uint8_t *)column);
    }
    amd_issue(wave, op, AMD_COUNTER_VM_LOAD, to, made.exec);
}

void amd_run_global_store(amd_wave *wave, const amd_op *op) {
    amd_request made;
    amd_request_make(wave, op, &op->operand[0], &op->operand[2], &made);
    if (amd_request_store(wave, op, &made, &op->operand[1])) amd_issue(wave, op, AMD_COUNTER_VM_STORE, NULL, made.exec);
}

/* ---- Flat addresses ---- */

amd_flat_lanes amd_flat_split(const amd_request *made) {
    amd_flat_lanes lanes = {0, 0, 0};
    for (uint64_t rest = made->exec; rest; rest &= rest - 1) {
        uint32_t l = (uint32_t)__builtin_ctzll(rest);
        lanes.shared |= (uint64_t)(made->address[l] >> 32 == AMD_APERTURE_SHARED) << l;
        lanes.scratch |= (uint64_t)(made->address[l] >> 32 == AMD_APERTURE_PRIVATE) << l;
    }
    lanes.global = made->exec & ~(lanes.shared | lanes.scratch);
    return lanes;
}

static bool flat_shared(amd_wave *wave, const amd_op *op, const amd_request *made, uint64_t lanes,
                        const amd_operand *registers, bool store) {
    for (uint64_t rest = lanes; rest; rest &= rest - 1) {
        uint32_t l = (uint32_t)__builtin_ctzll(rest);
        uint8_t *bytes =
            amd_shared_at(wave, op, l, (uint32_t)made->address[l], made->size, store ? AMD_WRITE : AMD_READ);
        if (!bytes) return false;
        if (store)
            amd_lane_get(wave, op, registers, l, bytes);
        else
            amd_lane_put(wave, op, registers, l, bytes);
    }
    return true;
}

static bool flat_scratch(amd_wave *wave, const amd_op *op, const amd_request *made, uint64_t lanes,
                         const amd_operand *registers, bool store) {
    uint32_t offsets[AMD_LANES];
    for (uint32_t l = 0; l < AMD_LANES; l++)
        offsets[l] = (uint32_t)made->address[l];
    return !lanes || (amd_scratch_ready(wave, op) && amd_scratch_move(wave, op, lanes, offsets, registers, store));
}

/* The lanes may each mean another space, so that the instruction is done when all of them are. */
static bool flat_move(amd_wave *wave, const amd_op *op, const amd_operand *address, const amd_operand *registers,
                      bool store) {
    amd_request made;
    amd_request_make(wave, op, address, NULL, &made);
    amd_request_fill(&made);
    const uint64_t exec = made.exec;
    const amd_flat_lanes lanes = amd_flat_split(&made);
    made.exec = lanes.global;
    made.contiguous &= lanes.global == exec;
    bool good = flat_shared(wave, op, &made, lanes.shared, registers, store) &&
                flat_scratch(wave, op, &made, lanes.scratch, registers, store);
    if (good && lanes.global)
        good = store ? amd_request_store(wave, op, &made, registers) : amd_request_load(wave, op, &made, registers);
    if (good) amd_issue_flat(wave, op, store ? NULL : registers, exec);
    return good;
}

void amd_run_flat_load(amd_wave *wave, const amd_op *op) {
    flat_move(wave, op, &op->operand[1], &op->operand[0], false);
}

void amd_run_flat_store(amd_wave *wave, const amd_op *op) {
    flat_move(wave, op, &op->operand[0], &op->operand[1], true);
}

/* ---- Scratch ---- */

static bool scratch_move(amd_wave *wave, const amd_op *op, const amd_operand *vector, const amd_operand *base,
                         const amd_operand *registers, bool store) {
    uint32_t offsets[AMD_LANES];
    uint32_t constant = (base->kind == AMD_OPERAND_SCALAR ? amd_read32(wave, base) : 0) + (uint32_t)op->offset;
    bool adds = vector->kind == AMD_OPERAND_VECTOR;
    for (uint32_t l = 0; l < AMD_LANES; l++)
        offsets[l] = constant + (adds ? wave->v[vector->index][l] : 0);
    return amd_scratch_ready(wave, op) && amd_scratch_move(wave, op, amd_exec(wave), offsets, registers, store);
}

void amd_run_scratch_load(amd_wave *wave, const amd_op *op) {
    if (scratch_move(wave, op, &op->operand[1], &op->operand[2], &op->operand[0], false))
        amd_issue(wave, op, AMD_COUNTER_VM_LOAD, &op->operand[0], amd_exec(wave));
}

void amd_run_scratch_store(amd_wave *wave, const amd_op *op) {
    if (scratch_move(wave, op, &op->operand[0], &op->operand[2], &op->operand[1], true))
        amd_issue(wave, op, AMD_COUNTER_VM_STORE, NULL, amd_exec(wave));
}

/* ---- Buffers ---- */

/* What lanes outside of the buffer load. */
static void zeros_put(amd_wave *wave, const amd_op *op, const amd_operand *to, uint64_t lanes) {
    static const uint8_t zeros[64];
    for (uint64_t rest = lanes; rest; rest &= rest - 1)
        amd_lane_put(wave, op, to, (uint32_t)__builtin_ctzll(rest), zeros);
}

/* Lanes that reach beyond the end: the dwords that do not. */
static bool parts_move(amd_wave *wave, const amd_op *op, const amd_request *made, const amd_operand *registers,
                       bool store) {
    sim_counters *counters = &wave->group->counters;
    for (uint64_t rest = made->partly; rest; rest &= rest - 1) {
        uint32_t l = (uint32_t)__builtin_ctzll(rest), size = made->dwords[l] * 4u;
        if (!amd_aligned(wave, op, l, made->address[l], size)) return false;
        uint8_t *bytes = amd_global_at(wave, op, l, made->address[l], size, store);
        if (!bytes) return false;
        *(store ? &counters->global_written_bytes : &counters->global_read_bytes) += size;
        for (uint32_t i = 0; i < made->dwords[l]; i++) {
            uint32_t *word = &wave->v[registers->index + i][l];
            if (store)
                memcpy(bytes + i * 4, word, 4);
            else
                memcpy(word, bytes + i * 4, 4);
        }
    }
    return true;
}

static bool buffer_move(amd_wave *wave, const amd_op *op, bool store) {
    const amd_operand *registers = &op->operand[0];
    amd_request made;
    bool is_scratch;
    if (!amd_buffer_make(wave, op, &op->operand[1], &made, &is_scratch)) return false;
    if (is_scratch) {
        uint32_t offsets[AMD_LANES];
        for (uint32_t l = 0; l < AMD_LANES; l++)
            offsets[l] = (uint32_t)made.address[l];
        return amd_scratch_move(wave, op, made.exec, offsets, registers, store);
    }
    if (!store) zeros_put(wave, op, registers, amd_exec(wave) & ~made.exec);
    if (!parts_move(wave, op, &made, registers, store)) return false;
    return store ? amd_request_store(wave, op, &made, registers) : amd_request_load(wave, op, &made, registers);
}

void amd_run_buffer_load(amd_wave *wave, const amd_op *op) {
    if (buffer_move(wave, op, false)) amd_issue(wave, op, AMD_COUNTER_VM_LOAD, &op->operand[0], amd_exec(wave));
}

void amd_run_buffer_store(amd_wave *wave, const amd_op *op) {
    if (buffer_move(wave, op, true)) amd_issue(wave, op, AMD_COUNTER_VM_STORE, NULL, amd_exec(wave));
}
