/* Scratch: the private memory of each lane. A wave's lies dword by dword: the first dword of every lane, then the
 * second of every lane, which is how the hardware spreads it, so that what scratch, flat and buffer instructions say of
 * it agree. */
#include "tests/sim/amdgcn/memory/amd_memory.h"
#include "tests/sim/amdgcn/wave/amd_undefined.h"
#include <string.h>

static bool fits(amd_wave *wave, const amd_op *op, uint32_t lane, uint32_t offset, uint32_t size) {
    uint32_t bytes = wave->group->launch->private_bytes;
    if (offset > bytes || size > bytes - offset) {
        amd_fault(wave, op, SIM_FAULT_STACK, lane, offset, "%u bytes of scratch of %u", size, bytes);
        return false;
    }
    return amd_aligned(wave, op, lane, offset, size);
}

static uint8_t *byte_at(const amd_wave *wave, uint32_t lane, uint32_t offset) {
    return wave->scratch + (size_t)(offset / 4) * 4 * wave->lanes + lane * 4 + offset % 4;
}

static void note_use(amd_wave *wave, uint32_t end) {
    size_t used = (size_t)(end + 3) / 4 * 4 * wave->lanes;
    if (used > wave->scratch_used) wave->scratch_used = used;
}

/* Every lane at the same offset, as spills are: each dword is a whole register. */
static bool uniform_move(amd_wave *wave, const amd_op *op, uint32_t offset, const amd_operand *registers, bool store) {
    uint32_t size = amd_memory_bytes(op);
    if (!fits(wave, op, 0, offset, size)) return false;
    if (store) note_use(wave, offset + size);
    for (uint32_t i = 0; i < size / 4; i++) {
        uint8_t *row = byte_at(wave, 0, offset + i * 4);
        uint32_t *lanes = wave->v[registers->index + i];
        memcpy(store ? (void *)row : (void *)lanes, store ? (void *)lanes : (void *)row, (size_t)wave->lanes * 4);
    }
    return true;
}

static void lane_move(amd_wave *wave, const amd_op *op, uint32_t lane, uint32_t offset, const amd_operand *registers,
                      bool store) {
    uint32_t size = amd_memory_bytes(op), part = offset % 4 ? 1 : size < 4 ? size : 4;
    uint8_t bytes[64];
    if (store) {
        note_use(wave, offset + size);
        amd_lane_get(wave, op, registers, lane, bytes);
    }
    for (uint32_t i = 0; i < size; i += part) {
        uint8_t *place = byte_at(wave, lane, offset + i);
        memcpy(store ? place : bytes + i, store ? bytes + i : place, part);
    }
    if (!store) amd_lane_put(wave, op, registers, lane, bytes);
}

static bool move(amd_wave *wave, const amd_op *op, uint64_t exec, const uint32_t *offsets, const amd_operand *registers,
                 bool store) {
    uint32_t apart = 0, size = amd_memory_bytes(op);
    for (uint32_t l = 0; l < wave->lanes; l++)
        apart |= offsets[l] ^ offsets[0];
    if (!apart && exec == wave->all && size >= 4 && offsets[0] % 4 == 0)
        return uniform_move(wave, op, offsets[0], registers, store);
    for (uint64_t rest = exec; rest; rest &= rest - 1) {
        uint32_t l = (uint32_t)__builtin_ctzll(rest);
        if (!fits(wave, op, l, offsets[l], size)) return false;
        lane_move(wave, op, l, offsets[l], registers, store);
    }
    return true;
}

/* Whether a bit is set in any of the dwords that the lanes access. */
static bool any_bit(const amd_wave *wave, const amd_op *op, uint64_t exec, const uint32_t *offsets) {
    for (uint64_t rest = exec; rest; rest &= rest - 1) {
        uint32_t l = (uint32_t)__builtin_ctzll(rest), end = offsets[l] + amd_memory_bytes(op);
        for (uint32_t at = offsets[l] / 4 * 4; at < end; at += 4) {
            uint32_t word;
            memcpy(&word, byte_at(wave, l, at), sizeof word);
            if (word) return true;
        }
    }
    return false;
}

/* The account of what is undefined is moved as the bytes are. */
bool amd_scratch_move(amd_wave *wave, const amd_op *op, uint64_t exec, const uint32_t *offsets,
                      const amd_operand *registers, bool store) {
    if (!move(wave, op, exec, offsets, registers, store)) return false;
    amd_undefined_swap(wave);
    if (wave->has_undefined || any_bit(wave, op, exec, offsets)) move(wave, op, exec, offsets, registers, store);
    amd_undefined_swap(wave);
    if (!store) amd_undefined_came(wave, op, exec, offsets, registers);
    return true;
}

bool amd_scratch_ready(amd_wave *wave, const amd_op *op) {
    uint64_t base = wave->s[AMD_FLAT_SCRATCH] | (uint64_t)wave->s[AMD_FLAT_SCRATCH + 1] << 32;
    if (wave->scratch && base == (uint64_t)(uintptr_t)wave->scratch) return true;
    amd_fault(wave, op, SIM_FAULT_STACK, AMD_LANES, base,
              wave->scratch ? "FLAT_SCRATCH is not the wave's" : "the kernel was launched with no scratch");
    return false;
}
