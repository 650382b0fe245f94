/* Loads from memory into LDS, which pass the registers by: each lane's dword goes to M0 + the offset + 4 times its
 * number. They land no sooner than a wait says, though the barrier may come before: until then nobody may read there.
 */
#include "tests/sim/amdgcn/memory/amd_memory.h"
#include <string.h>

static uint32_t extended(const amd_op *op, const uint8_t *bytes, uint32_t size) {
    uint32_t value = 0;
    memcpy(&value, bytes, size);
    if (!(op->mode & AMD_MEMORY_SIGNED)) return value;
    return (uint32_t)(size == 1 ? (int8_t)value : (int16_t)value);
}

static void load(amd_wave *wave, const amd_op *op, amd_request *made) {
    static const uint8_t outside[4];
    const uint32_t shared = (wave->s[AMD_M0] & 0xffff) + (uint32_t)op->offset;
    const uint64_t exec = amd_exec(wave);
    if (shared % 4) {
        amd_fault(wave, op, SIM_FAULT_MISALIGNED, AMD_LANES, shared, "M0 and the offset");
        return;
    }
    amd_request_count(wave, made, false);
    amd_request_fill(made);
    for (uint64_t rest = exec; rest; rest &= rest - 1) {
        const uint32_t l = (uint32_t)__builtin_ctzll(rest), address = shared + l * 4;
        const uint8_t *from = made->exec >> l & 1 ? amd_request_lane(wave, op, made, l) : outside;
        uint8_t *to = from ? amd_shared_at(wave, op, l, address, 4, AMD_WRITE) : NULL;
        if (!to) return;
        const uint32_t value = extended(op, from, made->size);
        memcpy(to, &value, sizeof value);
        wave->group->shadow[address / 4].landing = true;
        wave->group->shadow[address / 4].written = 0;
    }
    amd_issue_landing(wave, op, shared, exec);
}

/* Others may not have touched it since the last barrier: it might have landed before. */
void amd_shared_landed(amd_wave *wave, const amd_flight *flight) {
    for (uint64_t rest = flight->lanes; rest; rest &= rest - 1) {
        const uint32_t l = (uint32_t)__builtin_ctzll(rest), address = flight->shared + l * 4;
        wave->group->shadow[address / 4].landing = false;
        if (!amd_shared_at(wave, flight->op, l, address, 4, AMD_WRITE)) return;
    }
}

void amd_run_global_load_lds(amd_wave *wave, const amd_op *op) {
    amd_request made;
    amd_request_make(wave, op, &op->operand[0], &op->operand[1], &made);
    load(wave, op, &made);
}

void amd_run_buffer_load_lds(amd_wave *wave, const amd_op *op) {
    amd_request made;
    bool is_scratch;
    if (!amd_buffer_make(wave, op, &op->operand[0], &made, &is_scratch)) return;
    if (is_scratch)
        amd_fault(wave, op, SIM_FAULT_ILLEGAL, AMD_LANES, op->address, "a load from scratch into LDS");
    else
        load(wave, op, &made);
}
