/* Global memory: the checks of an access, and the requests of a whole wave. */
#include "tests/sim/amdgcn/memory/amd_memory.h"
#include <string.h>

/* ---- Checks ---- */

static const sim_region *segment_find(const amd_program *program, uint64_t address) {
    for (uint32_t i = 0; i < program->segment_count; i++)
        if (address - program->segments[i].base < program->segments[i].size) return &program->segments[i];
    return NULL;
}

/* Narrows a region to the variable at an address, or to what lies between two: there are variables without symbols. */
static void narrow(const amd_program *program, uint64_t address, sim_region *region) {
    uint32_t low = 0, high = program->variable_count;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (program->variables[middle].base <= address)
            low = middle + 1;
        else
            high = middle;
    }
    uint64_t begin = region->base, end = region->base + region->size;
    if (low) {
        const sim_region *last = &program->variables[low - 1];
        const uint64_t last_end = last->base + last->size;
        if (address < last_end && last_end < end) end = last_end;
        const uint64_t from = address < last_end ? last->base : last_end;
        if (from > begin) begin = from;
    }
    if (low < program->variable_count && program->variables[low].base < end) end = program->variables[low].base;
    region->base = begin;
    region->size = end - begin;
}

static bool image_find(const amd_program *program, uint64_t address, sim_region *region) {
    const sim_region *segment = segment_find(program, address);
    if (!segment) return false;
    *region = *segment;
    narrow(program, address, region);
    return true;
}

/* Compilers load an aligned dword, or four, where they need less of a variable that they know to be aligned. */
static bool is_widened(const amd_program *program, uint64_t address, uint32_t size) {
    return address % 4 == 0 && address / 16 == (address + size - 1) / 16 && segment_find(program, address);
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
    if (launch->dispatch_packet && address - launch->dispatch_packet < PACKET_BYTES) {
        *region = (sim_region){launch->dispatch_packet, PACKET_BYTES, NULL, true};
        return true;
    }
    return image_find(launch->program, address, region) || launch->find(launch->find_context, address, region);
}

/* A bit for each of 64 bytes at once where the bits are aligned for it. */
static bool is_whole_word(const uint8_t *written, uint64_t at, uint64_t end) {
    return at % 64 == 0 && end - at >= 64 && (uintptr_t)(written + at / 8) % 8 == 0;
}

static bool all_written(const uint8_t *written, uint64_t at, uint64_t size) {
    for (uint64_t end = at + size; at < end;) {
        uint64_t bits = 8 - at % 8 < end - at ? 8 - at % 8 : end - at;
        if (is_whole_word(written, at, end)) {
            bits = 64;
            const uint64_t *word = (const uint64_t *)(const void *)(written + at / 8);
            if (__atomic_load_n(word, __ATOMIC_RELAXED) != ~0ull) return false;
        } else {
            uint8_t mask = (uint8_t)(((1u << bits) - 1) << at % 8);
            if ((__atomic_load_n(&written[at / 8], __ATOMIC_RELAXED) & mask) != mask) return false;
        }
        at += bits;
    }
    return true;
}

static void mark_written(uint8_t *written, uint64_t at, uint64_t size) {
    if (all_written(written, at, size)) return;
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
    const bool found = region_find(group, address);
    if (!found || size > region->size - (address - region->base)) {
        if (found && !store && is_widened(group->launch->program, address, size)) return (uint8_t *)(uintptr_t)address;
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
    return sim_host_bytes(address);
}

bool amd_aligned(amd_wave *wave, const amd_op *op, uint32_t lane, uint64_t address, uint32_t size) {
    uint32_t alignment = size >= 4 ? 4 : size;
    if (!(address & (alignment - 1)) || wave->group->launch->unaligned) return true;
    amd_fault(wave, op, SIM_FAULT_MISALIGNED, lane, address, "%u bytes", size);
    return false;
}

/* ---- Requests ---- */

void amd_request_settle(const amd_wave *wave, amd_request *made) {
    uint64_t apart = 0;
    made->contiguous = made->exec == wave->all;
    if (!made->contiguous) return;
    for (uint32_t l = 0; l < wave->lanes; l++)
        apart |= made->address[l] ^ (made->address[0] + (uint64_t)l * made->size);
    made->contiguous = !apart;
}

void amd_request_fill(amd_request *made) {
    for (uint32_t l = 1; made->contiguous && l < AMD_LANES; l++)
        made->address[l] = made->address[0] + (uint64_t)l * made->size;
}

/* The same by offsets of 32 bits, which do not wrap. */
static bool are_contiguous(const amd_wave *wave, const uint32_t *offsets, uint32_t size) {
    uint32_t apart = offsets[0] > ~0u - AMD_LANES * 64;
    for (uint32_t base = 0; base < wave->lanes; base += 32) {
        const uint32_t *part = offsets + base, first = offsets[0] + base * size;
        for (uint32_t i = 0; i < 32; i++)
            apart |= part[i] ^ (first + i * size);
    }
    return !apart;
}

static bool are_equal(const amd_wave *wave, const uint32_t *words) {
    uint32_t apart = 0;
    for (uint32_t l = 0; l < wave->lanes; l++)
        apart |= words[l] ^ words[0];
    return !apart;
}

void amd_request_make(const amd_wave *wave, const amd_op *op, const amd_operand *vector, const amd_operand *base,
                      amd_request *made) {
    bool scalar = base && base->kind == AMD_OPERAND_SCALAR, wide = !scalar;
    uint64_t constant = (scalar ? amd_read64(wave, base) : 0) + (uint64_t)(int64_t)op->offset;
    made->exec = amd_exec(wave);
    made->size = amd_memory_bytes(op);
    made->contiguous = false;
    if (vector->kind != AMD_OPERAND_VECTOR) {
        for (uint32_t l = 0; l < AMD_LANES; l++)
            made->address[l] = constant;
        return;
    }
    const uint32_t *low = wave->v[vector->index], *high = wave->v[vector->index + wide];
    made->contiguous = made->exec == wave->all && are_contiguous(wave, low, made->size);
    if (wide && made->contiguous) made->contiguous = are_equal(wave, high);
    made->address[0] = constant + (low[0] | (wide ? (uint64_t)high[0] << 32 : 0));
    for (uint32_t l = 1; !made->contiguous && l < AMD_LANES; l++)
        made->address[l] = constant + (low[l] | (wide ? (uint64_t)high[l] << 32 : 0));
}

/* The 32-byte sectors that a request touches. Lanes mostly go upwards, so a sector is looked for from the last back. */
static uint32_t sectors_count(const amd_wave *wave, const amd_request *made) {
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

void amd_request_count(amd_wave *wave, const amd_request *made, bool store) {
    sim_counters *counters = &wave->group->counters;
    uint64_t bytes = (uint64_t)__builtin_popcountll(made->exec) * made->size;
    if (!made->exec) return;
    counters->global_requests++;
    counters->global_sectors += sectors_count(wave, made);
    *(store ? &counters->global_written_bytes : &counters->global_read_bytes) += bytes;
}

/* Checks a contiguous request as one access. False without a fault: look at each lane. */
static bool whole_fits(amd_wave *wave, const amd_op *op, const amd_request *made, bool store) {
    amd_group *group = wave->group;
    uint64_t size = (uint64_t)made->size * wave->lanes, alignment = made->size >= 4 ? 4 : made->size;
    if (!made->contiguous || made->address[0] % alignment || !region_find(group, made->address[0])) return false;
    const sim_region *region = &group->region;
    uint64_t offset = made->address[0] - region->base;
    if (size > region->size - offset || (store && region->constant)) return false;
    if (!store && region->written && !all_written(region->written, offset, size)) return false;
    return amd_global_at(wave, op, 0, made->address[0], (uint32_t)size, store) != NULL;
}

/* The bytes of a lane, after every check; NULL after a fault. */
static uint8_t *lane_at(amd_wave *wave, const amd_op *op, const amd_request *made, uint32_t lane, bool store) {
    if (!amd_aligned(wave, op, lane, made->address[lane], made->size)) return NULL;
    return amd_global_at(wave, op, lane, made->address[lane], made->size, store);
}

const uint8_t *amd_request_lane(amd_wave *wave, const amd_op *op, const amd_request *made, uint32_t lane) {
    return lane_at(wave, op, made, lane, false);
}

/* Whole dwords of all lanes, which lie one behind the other. */
static void rows_load(amd_wave *wave, const amd_request *made, const amd_operand *to) {
    const uint32_t count = made->size / 4;
    const uint8_t *from = sim_host_bytes(made->address[0]);
    if (count == 1) {
        memcpy(wave->v[to->index], from, wave->lanes * sizeof(uint32_t));
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t *row = wave->v[to->index + i];
        for (uint32_t l = 0; l < wave->lanes; l++)
            memcpy(&row[l], from + (l * count + i) * 4, 4);
    }
}

static void rows_store(const amd_wave *wave, const amd_request *made, const amd_operand *from) {
    const uint32_t count = made->size / 4;
    uint8_t *to = sim_host_bytes(made->address[0]);
    if (count == 1) {
        memcpy(to, wave->v[from->index], wave->lanes * sizeof(uint32_t));
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t *row = wave->v[from->index + i];
        for (uint32_t l = 0; l < wave->lanes; l++)
            memcpy(to + (l * count + i) * 4, &row[l], 4);
    }
}

bool amd_request_load(amd_wave *wave, const amd_op *op, amd_request *made, const amd_operand *to) {
    amd_request_count(wave, made, false);
    const bool checked = whole_fits(wave, op, made, false);
    if (checked && made->size >= 4) {
        rows_load(wave, made, to);
        return true;
    }
    amd_request_fill(made);
    for (uint64_t rest = made->exec; rest; rest &= rest - 1) {
        uint32_t l = (uint32_t)__builtin_ctzll(rest);
        const uint8_t *bytes = sim_host_bytes(made->address[l]);
        if (!checked) bytes = lane_at(wave, op, made, l, false);
        if (!bytes) return false;
        amd_lane_put(wave, op, to, l, bytes);
    }
    return true;
}

bool amd_request_store(amd_wave *wave, const amd_op *op, amd_request *made, const amd_operand *from) {
    amd_request_count(wave, made, true);
    const bool checked = whole_fits(wave, op, made, true);
    if (checked && made->size >= 4) {
        rows_store(wave, made, from);
        return true;
    }
    amd_request_fill(made);
    for (uint64_t rest = made->exec; rest; rest &= rest - 1) {
        uint32_t l = (uint32_t)__builtin_ctzll(rest);
        uint8_t *bytes = sim_host_bytes(made->address[l]);
        if (!checked) bytes = lane_at(wave, op, made, l, true);
        if (!bytes) return false;
        amd_lane_get(wave, op, from, l, bytes);
    }
    return true;
}
