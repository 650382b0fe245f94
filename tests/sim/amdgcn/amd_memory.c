/* Scalar loads and global memory. */
#include "tests/sim/amdgcn/amd_memory.h"
#include <string.h>

/* ---- Checks ---- */

static bool image_find(const amd_program *program, uint64_t address, sim_region *region) {
    uint64_t base = (uint64_t)(uintptr_t)program->image;
    *region = (sim_region){base, program->image_size, NULL, true};
    return address >= base && address - base < program->image_size;
}

/* The region of an address: kernel arguments end where the kernel's do, whatever lies behind them. */
static bool region_find(amd_group *group, uint64_t address) {
    const amd_launch *launch = group->launch;
    sim_region *region = &group->region;
    if (address - region->base < region->size) return true;
    if (address - launch->kernarg < launch->kernel->kernarg_bytes) {
        *region = (sim_region){launch->kernarg, launch->kernel->kernarg_bytes, NULL, true};
        return true;
    }
    enum { PACKET_BYTES = 64 };
    if (address - launch->dispatch_packet < PACKET_BYTES) {
        *region = (sim_region){launch->dispatch_packet, PACKET_BYTES, NULL, true};
        return true;
    }
    return image_find(launch->program, address, region) || launch->find(launch->find_context, address, region);
}

static bool all_written(const uint8_t *written, uint64_t at, uint64_t size) {
    for (uint64_t end = at + size; at < end;) {
        if (at % 8 == 0 && end - at >= 8) {
            if (__atomic_load_n(&written[at / 8], __ATOMIC_RELAXED) != 0xff) return false;
            at += 8;
        } else {
            if (!(__atomic_load_n(&written[at / 8], __ATOMIC_RELAXED) >> at % 8 & 1)) return false;
            at++;
        }
    }
    return true;
}

static void mark_written(uint8_t *written, uint64_t at, uint64_t size) {
    for (uint64_t end = at + size; at < end;) {
        uint64_t bits = 8 - at % 8 < end - at ? 8 - at % 8 : end - at;
        uint8_t mask = (uint8_t)(((1u << bits) - 1) << at % 8);
        if ((__atomic_load_n(&written[at / 8], __ATOMIC_RELAXED) & mask) != mask)
            __atomic_fetch_or(&written[at / 8], mask, __ATOMIC_RELAXED);
        at += bits;
    }
}

uint8_t *amd_global_at(amd_wave *wave, const amd_op *op, uint32_t lane, uint64_t address, uint32_t size, bool store) {
    amd_group *group = wave->group;
    sim_region *region = &group->region;
    if (!region_find(group, address) || size > region->size - (address - region->base)) {
        amd_fault(wave, op, SIM_FAULT_OUT_OF_BOUNDS, lane, address, "%s of %u bytes", store ? "store" : "load", size);
        return NULL;
    }
    uint64_t offset = address - region->base;
    if (store && region->constant) {
        amd_fault(wave, op, SIM_FAULT_STORE_TO_CONSTANT, lane, address, "store of %u bytes", size);
        return NULL;
    }
    if (!store && region->written && !all_written(region->written, offset, size)) {
        amd_fault(wave, op, SIM_FAULT_UNINITIALISED, lane, address, "load of %u bytes", size);
        return NULL;
    }
    if (store && region->written) mark_written(region->written, offset, size);
    return (uint8_t *)(uintptr_t)address;
}

static bool aligned(amd_wave *wave, const amd_op *op, uint32_t lane, uint64_t address, uint32_t size) {
    uint32_t alignment = size >= 4 ? 4 : size;
    if (address % alignment == 0) return true;
    amd_fault(wave, op, SIM_FAULT_MISALIGNED, lane, address, "%u bytes", size);
    return false;
}

/* ---- Scalar loads ---- */

void amd_run_s_load(amd_wave *wave, const amd_op *op) {
    uint32_t size = amd_memory_bytes(op);
    uint64_t address = amd_read64(wave, &op->operand[1]) + (uint64_t)(int64_t)op->offset;
    const amd_operand *offset = &op->operand[2];
    bool constant = offset->kind == AMD_OPERAND_CONSTANT;
    address += constant ? offset->value : amd_read32(wave, offset);
    if (!aligned(wave, op, AMD_LANES, address, size)) return;
    const uint8_t *bytes = amd_global_at(wave, op, AMD_LANES, address, size, false);
    if (!bytes) return;
    memcpy(&wave->s[op->operand[0].index], bytes, size);
    wave->group->counters.global_read_bytes += size;
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

/* A request of a wave: each lane's address, and whether they follow one another without a gap. */
typedef struct request {
    uint64_t exec;
    uint64_t address[AMD_LANES];
    uint32_t size;
    bool contiguous;
} request;

uint64_t amd_global_address(const amd_wave *wave, const amd_op *op, const amd_operand *vector, const amd_operand *base,
                            uint32_t lane) {
    bool scalar = base->kind == AMD_OPERAND_SCALAR;
    uint64_t address = (scalar ? amd_read64(wave, base) : 0) + (uint64_t)(int64_t)op->offset;
    if (vector->kind != AMD_OPERAND_VECTOR) return address;
    return address + (wave->v[vector->index][lane] | (scalar ? 0 : (uint64_t)wave->v[vector->index + 1][lane] << 32));
}

static void request_make(const amd_wave *wave, const amd_op *op, const amd_operand *vector, const amd_operand *base,
                         request *made) {
    uint64_t apart = 0;
    made->exec = amd_exec(wave);
    made->size = amd_memory_bytes(op);
    for (uint32_t l = 0; l < wave->lanes; l++) {
        made->address[l] = amd_global_address(wave, op, vector, base, l);
        apart |= made->address[l] ^ (made->address[0] + (uint64_t)l * made->size);
    }
    made->contiguous = !apart && made->exec == wave->all;
}

/* The 32-byte sectors that a request touches. Lanes mostly go upwards, so a sector is looked for from the last back. */
static uint32_t sectors_count(const amd_wave *wave, const request *made) {
    uint64_t seen[AMD_LANES * 2];
    uint32_t count = 0;
    if (made->contiguous) {
        uint64_t end = made->address[0] + (uint64_t)made->size * wave->lanes - 1;
        return (uint32_t)(end / 32 - made->address[0] / 32 + 1);
    }
    for (uint64_t rest = made->exec; rest; rest &= rest - 1) {
        uint64_t at = made->address[__builtin_ctzll(rest)];
        for (uint64_t sector = at / 32; sector <= (at + made->size - 1) / 32; sector++) {
            uint32_t i = count;
            while (i && seen[i - 1] != sector)
                i--;
            if (!i) seen[count++] = sector;
        }
    }
    return count;
}

static void request_count(amd_wave *wave, const request *made, bool store) {
    sim_counters *counters = &wave->group->counters;
    uint64_t bytes = (uint64_t)__builtin_popcountll(made->exec) * made->size;
    if (!made->exec) return;
    counters->global_requests++;
    counters->global_sectors += sectors_count(wave, made);
    *(store ? &counters->global_written_bytes : &counters->global_read_bytes) += bytes;
}

/* Checks a contiguous request as one access. False without a fault: look at each lane. */
static bool whole_fits(amd_wave *wave, const amd_op *op, const request *made, bool store) {
    amd_group *group = wave->group;
    uint64_t size = (uint64_t)made->size * wave->lanes, alignment = made->size >= 4 ? 4 : made->size;
    if (!made->contiguous || made->address[0] % alignment || !region_find(group, made->address[0])) return false;
    const sim_region *region = &group->region;
    uint64_t offset = made->address[0] - region->base;
    if (size > region->size - offset || (store && region->constant)) return false;
    if (!store && region->written && !all_written(region->written, offset, size)) return false;
    return amd_global_at(wave, op, 0, made->address[0], (uint32_t)size, store) != NULL;
}

void amd_run_global_load(amd_wave *wave, const amd_op *op) {
    request made;
    const amd_operand *to = &op->operand[0];
    request_make(wave, op, &op->operand[1], &op->operand[2], &made);
    request_count(wave, &made, false);
    bool checked = whole_fits(wave, op, &made, false);
    if (checked && made.size == 4) {
        memcpy(wave->v[to->index], (const void *)(uintptr_t)made.address[0], (size_t)wave->lanes * 4);
    } else {
        for (uint64_t rest = made.exec; rest; rest &= rest - 1) {
            uint32_t l = (uint32_t)__builtin_ctzll(rest);
            const uint8_t *bytes = (const uint8_t *)(uintptr_t)made.address[l];
            if (!checked) {
                if (!aligned(wave, op, l, made.address[l], made.size)) return;
                bytes = amd_global_at(wave, op, l, made.address[l], made.size, false);
            }
            if (!bytes) return;
            amd_lane_put(wave, op, to, l, bytes);
        }
    }
    amd_issue(wave, op, AMD_COUNTER_VM_LOAD, to, made.exec);
}

void amd_run_global_store(amd_wave *wave, const amd_op *op) {
    request made;
    request_make(wave, op, &op->operand[0], &op->operand[2], &made);
    request_count(wave, &made, true);
    bool checked = whole_fits(wave, op, &made, true);
    for (uint64_t rest = made.exec; rest; rest &= rest - 1) {
        uint32_t l = (uint32_t)__builtin_ctzll(rest);
        uint8_t *bytes = (uint8_t *)(uintptr_t)made.address[l];
        if (!checked) {
            if (!aligned(wave, op, l, made.address[l], made.size)) return;
            bytes = amd_global_at(wave, op, l, made.address[l], made.size, true);
        }
        if (!bytes) return;
        amd_lane_get(wave, op, &op->operand[1], l, bytes);
    }
    amd_issue(wave, op, AMD_COUNTER_VM_STORE, NULL, made.exec);
}
