/* LDS, and the exchanges between lanes that go through its crossbar. */
#include "tests/sim/amdgcn/memory/amd_memory.h"
#include <string.h>

enum { BANKS = 32, SEVERAL = 0xff };

/* ---- Checks ---- */

/* Another wave that did to a byte what must not meet this access before a barrier: 0 if none did, SEVERAL if several.
 */
static uint8_t conflict(uint8_t writer, uint8_t reader, uint8_t own, amd_access access) {
    if (writer == own) writer = 0;
    if (reader == own) reader = 0;
    return access == AMD_READ || writer ? writer : reader;
}

static uint8_t join(uint8_t before, uint8_t own) {
    return !before || before == own ? own : SEVERAL;
}

/* A byte of a shadow's dword, where waves may have met. */
static bool byte_check(amd_wave *wave, const amd_op *op, uint32_t lane, uint32_t address, uint32_t size,
                       amd_access access) {
    amd_shadow *shadow = &wave->group->shadow[address / 4];
    uint8_t own = (uint8_t)(wave->number + 1), bit = (uint8_t)(1u << address % 4);
    uint8_t *writer = (uint8_t *)&shadow->writers + address % 4, *reader = (uint8_t *)&shadow->readers + address % 4;
    uint8_t other = conflict(*writer, *reader, own, access);
    if (other && access != AMD_WRITE && shadow->atomic & bit) {
        if (shadow->loaders) wave->group->doubted = shadow->doubted = true;
    } else if (other) {
        if (other == SEVERAL)
            amd_fault(wave, op, SIM_FAULT_RACE, lane, address, "other waves touched it since the last barrier");
        else
            amd_fault(wave, op, SIM_FAULT_RACE, lane, address, "wave %u touched it since the last barrier", other - 1);
        return false;
    }
    if (access != AMD_WRITE && shadow->landing) {
        amd_fault(wave, op, SIM_FAULT_WAIT, lane, address, "a load into LDS is not waited for");
        return false;
    }
    if (access != AMD_WRITE && !(shadow->written & bit)) {
        amd_fault(wave, op, SIM_FAULT_UNINITIALISED, lane, address, "LDS load of %u bytes", size);
        return false;
    }
    if (access == AMD_READ) {
        *reader = join(*reader, own);
    } else {
        if (access == AMD_WRITE) shadow->atomic &= (uint8_t)~bit;
        *writer = join(*writer, own);
        shadow->written |= bit;
    }
    return true;
}

/* A whole dword that no other wave touched, or waves do no more than read, which is most of them. False: look at each
 * byte. */
static inline bool dword_check(amd_shadow *shadow, uint32_t own, amd_access access) {
    if ((shadow->writers && shadow->writers != own) || (access != AMD_WRITE && shadow->written != 0xf)) return false;
    if (access == AMD_READ) {
        if (shadow->readers != (shadow->readers & 0xff) * 0x01010101u) return false;
        shadow->readers = !shadow->readers || shadow->readers == own ? own : SEVERAL * 0x01010101u;
        return true;
    }
    if (shadow->readers && shadow->readers != own) return false;
    shadow->writers = own;
    shadow->written = 0xf;
    if (access == AMD_WRITE) shadow->atomic = 0;
    return true;
}

static inline void load_note(const amd_wave *wave, amd_shadow *shadow, amd_access access) {
    const uint32_t own = 1u << wave->number;
    if (access == AMD_READ) shadow->load = wave->pc;
    shadow->loaders = access == AMD_READ ? shadow->loaders | own : shadow->loaders & ~own;
}

/* The shadow of a dword that a wave touches now. */
static inline amd_shadow *shadow_of(const amd_wave *wave, uint32_t address, amd_access access) {
    amd_shadow *shadow = &wave->group->shadow[address / 4];
    if (shadow->epoch != wave->group->epoch)
        *shadow = (amd_shadow){
            .epoch = wave->group->epoch, .written = shadow->written, .atomic = 0xf, .landing = shadow->landing};
    load_note(wave, shadow, access);
    return shadow;
}

static bool shadow_check(amd_wave *wave, const amd_op *op, uint32_t lane, uint32_t address, uint32_t size,
                         amd_access access) {
    uint32_t own = (wave->number + 1) * 0x01010101u;
    for (uint32_t i = address, end = address + size; i < end;) {
        amd_shadow *shadow = shadow_of(wave, i, access);
        uint32_t next = i / 4 * 4 + 4 < end ? i / 4 * 4 + 4 : end;
        if (next - i == 4 && dword_check(shadow, own, access)) {
            i = next;
            continue;
        }
        for (; i < next; i++)
            if (!byte_check(wave, op, lane, i, size, access)) return false;
    }
    return true;
}

/* Whether a lane touches whole dwords alone, within bounds, and dword_check has nothing against it. If not, the same is
 * asked again and dword by dword by amd_shared_at. */
static inline __attribute__((always_inline)) bool is_quiet(const amd_wave *wave, uint32_t address, uint32_t size,
                                                           amd_access access) {
    const uint32_t own = (wave->number + 1) * 0x01010101u, has = wave->group->shared_bytes;
    if ((address | size) % 4 || address > has || size > has - address) return false;
    for (uint32_t i = 0; i < size; i += 4)
        if (!dword_check(shadow_of(wave, address + i, access), own, access)) return false;
    return true;
}

/* Machine code does not tell an atomic load from another. One of what other waves change by atomics is the beginning of
 * a compare-and-swap loop if the wave does an atomic of its own before the barrier, else a race. */
void amd_shared_settle(amd_group *group) {
    for (uint32_t i = 0; group->doubted && i < group->shared_bytes / 4; i++) {
        const amd_shadow *shadow = &group->shadow[i];
        if (shadow->epoch != group->epoch || !shadow->doubted || !shadow->loaders) continue;
        amd_wave *wave = &group->waves[__builtin_ctz(shadow->loaders)];
        amd_fault(wave, &wave->program->ops[shadow->load], SIM_FAULT_RACE, AMD_LANES, i * 4,
                  "other waves change it by atomics with no barrier between");
        return;
    }
    group->doubted = false;
}

uint8_t *amd_shared_at(amd_wave *wave, const amd_op *op, uint32_t lane, uint32_t address, uint32_t size,
                       amd_access access) {
    amd_group *group = wave->group;
    if (address > group->shared_bytes || size > group->shared_bytes - address) {
        amd_fault(wave, op, SIM_FAULT_OUT_OF_BOUNDS, lane, address, "LDS %s of %u bytes, there are %u",
                  access == AMD_READ ? "load" : "store", size, group->shared_bytes);
        return NULL;
    }
    if (!amd_aligned(wave, op, lane, address, size)) return NULL;
    return shadow_check(wave, op, lane, address, size, access) ? group->shared + address : NULL;
}

/* Whether every lane takes part, with addresses that are step apart. */
static bool is_regular(const amd_wave *wave, const uint32_t *addresses, uint32_t step) {
    uint32_t wrong = 0;
    for (uint32_t l = 0; l < wave->lanes; l++)
        wrong |= addresses[l] ^ (addresses[0] + l * step);
    return !wrong && amd_exec(wave) == wave->all;
}

/* Whether each lane of a phase has the address of the one before it or the next: no two words are then in one bank. */
static bool are_neighbours(const uint32_t *addresses, uint64_t lanes, uint32_t size) {
    if (!lanes) return true;
    uint32_t last = addresses[__builtin_ctzll(lanes)];
    for (uint64_t rest = lanes & (lanes - 1); rest; rest &= rest - 1) {
        uint32_t address = addresses[__builtin_ctzll(rest)];
        if (address != last && address != last + size) return false;
        last = address;
    }
    return true;
}

/* Cycles beyond the first: 32 banks of 4 bytes, a cycle serves as many lanes as fill them, and the same word once. */
static void conflicts_count(amd_wave *wave, const amd_op *op, const uint32_t *addresses) {
    uint64_t exec = amd_exec(wave);
    uint32_t size = amd_memory_bytes(op), words = (size + 3) / 4, together = BANKS / words;
    sim_counters *counters = &wave->group->counters;
    counters->shared_requests++;
    if (addresses[0] % 4 == 0 && (is_regular(wave, addresses, size) || is_regular(wave, addresses, 0))) return;
    for (uint32_t first = 0; first < wave->lanes; first += together) {
        if (are_neighbours(addresses, exec & ((1ull << together) - 1) << first, size)) continue;
        uint32_t seen[BANKS][BANKS], counts[BANKS] = {0}, most = 1;
        for (uint32_t l = first; l < first + together && l < wave->lanes; l++) {
            for (uint32_t i = 0; i < words && exec >> l & 1; i++) {
                uint32_t word = addresses[l] / 4 + i, bank = word % BANKS, at = counts[bank];
                while (at && seen[bank][at - 1] != word)
                    at--;
                if (!at) seen[bank][counts[bank]++] = word;
                if (counts[bank] > most) most = counts[bank];
            }
        }
        counters->shared_conflicts += most - 1;
    }
}

static void addresses_make(const amd_wave *wave, const amd_operand *vector, int32_t offset, uint32_t *addresses) {
    for (uint32_t l = 0; l < wave->lanes; l++)
        addresses[l] = wave->v[vector->index][l] + (uint32_t)offset;
}

/* ---- Loads and stores ---- */

/* The elements of all lanes of exec: whole dwords a register at a time. */
static void lanes_move(amd_wave *wave, const amd_op *op, uint64_t exec, const amd_operand *registers,
                       uint8_t *const *bytes, bool store) {
    const uint32_t dwords = amd_memory_bytes(op) / 4;
    for (uint32_t i = 0; i < dwords; i++) {
        uint32_t *row = wave->v[registers->index + i];
        if (exec == wave->all && store) {
            for (uint32_t l = 0; l < wave->lanes; l++)
                memcpy(bytes[l] + i * 4, &row[l], 4);
        } else if (exec == wave->all) {
            for (uint32_t l = 0; l < wave->lanes; l++)
                memcpy(&row[l], bytes[l] + i * 4, 4);
        }
        for (uint64_t rest = exec == wave->all ? 0 : exec; rest; rest &= rest - 1) {
            const uint32_t l = (uint32_t)__builtin_ctzll(rest);
            if (store)
                memcpy(bytes[l] + i * 4, &row[l], 4);
            else
                memcpy(&row[l], bytes[l] + i * 4, 4);
        }
    }
    for (uint64_t rest = dwords ? 0 : exec; rest; rest &= rest - 1) {
        const uint32_t l = (uint32_t)__builtin_ctzll(rest);
        if (store)
            amd_lane_get(wave, op, registers, l, bytes[l]);
        else
            amd_lane_put(wave, op, registers, l, bytes[l]);
    }
}

/* The bytes of each lane of exec, after every check. False after a fault. */
static inline __attribute__((always_inline)) bool lanes_check(amd_wave *wave, const amd_op *op, uint64_t exec,
                                                              const uint32_t *addresses, amd_access access,
                                                              uint8_t **bytes) {
    const uint32_t size = amd_memory_bytes(op), shift = (uint32_t)__builtin_ctz(size);
    uint8_t last[AMD_LANES] = {0}; /* by address: the lane, + 1, that loaded last from one such */
    for (uint64_t rest = exec; rest; rest &= rest - 1) {
        uint32_t l = (uint32_t)__builtin_ctzll(rest);
        uint8_t *other = &last[(addresses[l] >> shift) % AMD_LANES];
        bool again = access == AMD_READ && *other && addresses[l] == addresses[*other - 1];
        if (again) /* checks know waves alone */
            bytes[l] = bytes[*other - 1];
        else if (is_quiet(wave, addresses[l], size, access))
            bytes[l] = wave->group->shared + addresses[l];
        else
            bytes[l] = amd_shared_at(wave, op, l, addresses[l], size, access);
        if (!bytes[l]) return false;
        *other = (uint8_t)(l + 1);
    }
    return true;
}

/* One element for each lane, from or to registers. False after a fault. */
static bool move(amd_wave *wave, const amd_op *op, const amd_operand *vector, int32_t offset,
                 const amd_operand *registers, bool store) {
    const uint64_t exec = amd_exec(wave);
    uint32_t addresses[AMD_LANES];
    uint8_t *bytes[AMD_LANES];
    addresses_make(wave, vector, offset, addresses);
    conflicts_count(wave, op, addresses);
    const bool good = store ? lanes_check(wave, op, exec, addresses, AMD_WRITE, bytes)
                            : lanes_check(wave, op, exec, addresses, AMD_READ, bytes);
    if (good) lanes_move(wave, op, exec, registers, bytes, store);
    return good;
}

void amd_run_ds_read(amd_wave *wave, const amd_op *op) {
    if (move(wave, op, &op->operand[1], op->offset, &op->operand[0], false))
        amd_issue(wave, op, AMD_COUNTER_DS, &op->operand[0], amd_exec(wave));
}

void amd_run_ds_write(amd_wave *wave, const amd_op *op) {
    if (move(wave, op, &op->operand[0], op->offset, &op->operand[1], true))
        amd_issue(wave, op, AMD_COUNTER_DS, NULL, amd_exec(wave));
}

static int32_t pair_offset(const amd_op *op, int32_t offset) {
    return offset * (int32_t)amd_memory_bytes(op) * (op->mode & AMD_MEMORY_STRIDE64 ? 64 : 1);
}

/* The first result may be the address register: the second address is kept. */
void amd_run_ds_read2(amd_wave *wave, const amd_op *op) {
    uint32_t kept[AMD_LANES];
    const amd_operand *vector = &op->operand[1];
    amd_operand first = op->operand[0], second = op->operand[0];
    first.count = second.count = (uint8_t)(first.count / 2);
    second.index = (uint16_t)(second.index + second.count);
    memcpy(kept, wave->v[vector->index], sizeof kept);
    if (!move(wave, op, vector, pair_offset(op, op->offset), &first, false)) return;
    uint32_t loaded[AMD_LANES];
    memcpy(loaded, wave->v[vector->index], sizeof loaded);
    memcpy(wave->v[vector->index], kept, sizeof kept);
    if (!move(wave, op, vector, pair_offset(op, op->offset1), &second, false)) return;
    bool in_first = vector->index >= first.index && vector->index < first.index + first.count;
    if (in_first) memcpy(wave->v[vector->index], loaded, sizeof loaded);
    amd_issue(wave, op, AMD_COUNTER_DS, &op->operand[0], amd_exec(wave));
}

void amd_run_ds_write2(amd_wave *wave, const amd_op *op) {
    const amd_operand *vector = &op->operand[0];
    if (move(wave, op, vector, pair_offset(op, op->offset), &op->operand[1], true) &&
        move(wave, op, vector, pair_offset(op, op->offset1), &op->operand[2], true))
        amd_issue(wave, op, AMD_COUNTER_DS, NULL, amd_exec(wave));
}

/* Both words of a lane at once: the old values come back, the new ones stay. */
void amd_run_ds_exchange2(amd_wave *wave, const amd_op *op) {
    const uint32_t size = amd_memory_bytes(op);
    const int32_t offsets[2] = {pair_offset(op, op->offset), pair_offset(op, op->offset1)};
    for (uint64_t rest = amd_exec(wave); rest; rest &= rest - 1) {
        uint32_t l = (uint32_t)__builtin_ctzll(rest), address = wave->v[op->operand[1].index][l];
        uint8_t old[2][8];
        for (uint32_t i = 0; i < 2; i++) {
            uint8_t *bytes = amd_shared_at(wave, op, l, address + (uint32_t)offsets[i], size, AMD_UPDATE);
            if (!bytes) return;
            memcpy(old[i], bytes, size);
            amd_lane_get(wave, op, &op->operand[2 + i], l, bytes);
        }
        for (uint32_t i = 0; i < 2; i++) {
            amd_operand to = op->operand[0];
            to.index = (uint16_t)(to.index + i * size / 4);
            amd_lane_put(wave, op, &to, l, old[i]);
        }
    }
    amd_issue(wave, op, AMD_COUNTER_DS, &op->operand[0], amd_exec(wave));
}

/* Adds to a word the number of lanes that are on, or takes it off; M0 says where it is, as LLVM sets it. */
static void count_lanes(amd_wave *wave, const amd_op *op, bool up) {
    const uint64_t exec = amd_exec(wave);
    const uint32_t lanes = (uint32_t)__builtin_popcountll(exec),
                   address = (wave->s[AMD_M0] & 0xffff) + (uint32_t)op->offset;
    uint8_t *bytes = exec ? amd_shared_at(wave, op, (uint32_t)__builtin_ctzll(exec), address, 4, AMD_UPDATE) : NULL;
    uint32_t old;
    if (!bytes) return;
    memcpy(&old, bytes, sizeof old);
    const uint32_t count = up ? old + lanes : old - lanes;
    memcpy(bytes, &count, sizeof count);
    for (uint64_t rest = exec; rest; rest &= rest - 1)
        wave->v[op->operand[0].index][__builtin_ctzll(rest)] = old;
    amd_issue(wave, op, AMD_COUNTER_DS, &op->operand[0], exec);
}

void amd_run_ds_append(amd_wave *wave, const amd_op *op) {
    count_lanes(wave, op, true);
}

void amd_run_ds_consume(amd_wave *wave, const amd_op *op) {
    count_lanes(wave, op, false);
}

/* ---- Exchanges ---- */

/* Each lane takes from, or gives to, the lane that its address names; lanes that are off give 0. On gfx10 and gfx11
 * lanes exchange within halves of 32; on gfx12 LLVM takes ds_bpermute for as wide as the wave again. */
static void exchange(amd_wave *wave, const amd_op *op, bool pull) {
    const uint32_t *address = wave->v[op->operand[1].index], *data = wave->v[op->operand[2].index];
    uint32_t result[AMD_LANES] = {0};
    uint64_t exec = amd_exec(wave);
    const uint32_t major = wave->program->target->major, span = major == 10 || major == 11 ? 32 : wave->lanes;
    for (uint64_t rest = exec; rest; rest &= rest - 1) {
        uint32_t l = (uint32_t)__builtin_ctzll(rest);
        uint32_t other = (l & ~(span - 1)) | ((address[l] + (uint32_t)op->offset) / 4 & (span - 1));
        if (pull)
            result[l] = exec >> other & 1 ? data[other] : 0;
        else
            result[other] = data[l];
    }
    for (uint64_t rest = exec; rest; rest &= rest - 1) {
        uint32_t l = (uint32_t)__builtin_ctzll(rest);
        wave->v[op->operand[0].index][l] = result[l];
    }
    amd_issue(wave, op, AMD_COUNTER_DS, &op->operand[0], exec);
}

void amd_run_ds_bpermute(amd_wave *wave, const amd_op *op) {
    exchange(wave, op, true);
}

void amd_run_ds_permute(amd_wave *wave, const amd_op *op) {
    exchange(wave, op, false);
}

/* The offset field is the pattern: bit 15 set, two bits for each lane of four; else and, or and xor masks of 5 bits. */
void amd_run_ds_swizzle(amd_wave *wave, const amd_op *op) {
    uint32_t pattern = op->immediate, result[AMD_LANES];
    const uint32_t *data = wave->v[op->operand[1].index];
    uint64_t exec = amd_exec(wave);
    if (pattern >= 0xc000) {
        amd_fault(wave, op, SIM_FAULT_ILLEGAL, AMD_LANES, op->address, "swizzle pattern 0x%x is not simulated",
                  pattern);
        return;
    }
    for (uint32_t l = 0; l < wave->lanes; l++) {
        uint32_t masked = ((l & pattern & 31) | (pattern >> 5 & 31)) ^ (pattern >> 10 & 31);
        uint32_t other = (l & 32) | masked;
        if (pattern & 0x8000) other = (l & ~3u) | (pattern >> (l & 3) * 2 & 3);
        result[l] = exec >> other & 1 ? data[other] : 0;
    }
    for (uint64_t rest = exec; rest; rest &= rest - 1) {
        uint32_t l = (uint32_t)__builtin_ctzll(rest);
        wave->v[op->operand[0].index][l] = result[l];
    }
    amd_issue(wave, op, AMD_COUNTER_DS, &op->operand[0], exec);
}
