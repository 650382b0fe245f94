/* Atomics on global memory, flat addresses, buffers and LDS: each row of amd_atomic.def becomes a function of each. */
#include "tests/sim/amdgcn/alu/amd_float.h"
#include "tests/sim/amdgcn/memory/amd_memory.h"

/* What memory holds after an operation, of m, what it held, d, the data, and c, the data behind it. */
typedef uint64_t (*operation)(uint32_t mode, uint64_t m, uint64_t d, uint64_t c);

/* Atomic floating point is rounded to nearest even, whatever MODE says. LDS keeps denormals as MODE says; memory keeps
 * them but for f32 sums on the targets that LLVM knows to flush them. */
static uint32_t shared_mode(const amd_wave *wave) {
    return wave->mode & ~(uint32_t)(3u << AMD_MODE_ROUND_32 | 3u << AMD_MODE_ROUND_64);
}

static uint32_t memory_mode(const amd_wave *wave) {
    const amd_target *target = wave->program->target;
    const bool flushes = target->version == 0x90a || target->major == 11;
    const uint32_t ieee = target->major >= 12 ? AMD_MODE_IEEE : wave->mode & AMD_MODE_IEEE;
    return ieee | 3u << AMD_MODE_DENORMAL_64 | (flushes ? 0 : 3u << AMD_MODE_DENORMAL_32);
}

/* Comparisons and choices flush nothing. */
static uint32_t keep(uint32_t mode) {
    return mode | 3u << AMD_MODE_DENORMAL_32 | 3u << AMD_MODE_DENORMAL_64;
}

static uint32_t add_bf16(uint32_t a, uint32_t b) {
    const double x = sim_decode(SIM_bf16, a & 0xffff), y = sim_decode(SIM_bf16, b & 0xffff);
    return sim_encode(SIM_bf16, sim_add_odd(x, y), SIM_ROUND_NEAREST_EVEN, false);
}

/* Where an atomic's operands stand, and the words that its lanes mean. */
typedef struct atomic {
    const amd_operand *result, *data, *second; /* result: NULL if the old value is not asked for */
    amd_request made;
    amd_flat_lanes lanes;
} atomic;

static uint64_t lane_read(const amd_wave *wave, uint32_t index, uint32_t lane, uint32_t size) {
    return wave->v[index][lane] | (size == 8 ? (uint64_t)wave->v[index + 1][lane] << 32 : 0);
}

static void lane_write(amd_wave *wave, uint32_t index, uint32_t lane, uint32_t size, uint64_t value) {
    wave->v[index][lane] = (uint32_t)value;
    if (size == 8) wave->v[index + 1][lane] = (uint32_t)(value >> 32);
}

/* The word of a lane: aligned to its size, alive, written. */
static void *word_of(amd_wave *wave, const amd_op *op, const atomic *at, uint32_t lane) {
    const uint32_t size = at->made.size;
    const uint64_t address = at->made.address[lane];
    if (address % size) {
        amd_fault(wave, op, SIM_FAULT_MISALIGNED, lane, address, "atomic of %u bytes", size);
        return NULL;
    }
    if (at->lanes.scratch >> lane & 1) {
        amd_fault(wave, op, SIM_FAULT_ILLEGAL, lane, address, "atomic on scratch");
        return NULL;
    }
    if (at->lanes.shared >> lane & 1) return amd_shared_at(wave, op, lane, (uint32_t)address, size, AMD_UPDATE);
    if (!amd_global_at(wave, op, lane, address, size, false)) return NULL;
    sim_counters *counters = &wave->group->counters;
    counters->global_read_bytes += size;
    counters->global_written_bytes += size;
    return amd_global_at(wave, op, lane, address, size, true);
}

/* The host's own atomics, since other groups run on other threads. */
static uint64_t word_change(void *word, uint32_t size, operation compute, uint32_t mode, uint64_t d, uint64_t c) {
    if (size == 4) {
        uint32_t *memory = word, m = __atomic_load_n(memory, __ATOMIC_RELAXED);
        while (!__atomic_compare_exchange_n(memory, &m, (uint32_t)compute(mode, m, d, c), true, __ATOMIC_ACQ_REL,
                                            __ATOMIC_RELAXED))
            ;
        return m;
    }
    uint64_t *memory = word, m = __atomic_load_n(memory, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(memory, &m, compute(mode, m, d, c), true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        ;
    return m;
}

static uint32_t mode_of(const amd_wave *wave, const atomic *at, uint32_t lane) {
    return at->lanes.shared >> lane & 1 ? shared_mode(wave) : memory_mode(wave);
}

/* False after a fault. */
static bool change(amd_wave *wave, const amd_op *op, const atomic *at, operation compute) {
    const uint32_t size = at->made.size;
    for (uint64_t rest = at->made.exec; rest; rest &= rest - 1) {
        const uint32_t lane = (uint32_t)__builtin_ctzll(rest);
        void *word = word_of(wave, op, at, lane);
        if (!word) return false;
        const uint64_t d = lane_read(wave, at->data->index, lane, size);
        const uint64_t c = at->second                   ? lane_read(wave, at->second->index, lane, size)
                           : at->data->count * 4 > size ? lane_read(wave, at->data->index + size / 4, lane, size)
                                                        : 0;
        const uint64_t m = word_change(word, size, compute, mode_of(wave, at, lane), d, c);
        if (at->result) lane_write(wave, at->result->index, lane, size, m);
    }
    return true;
}

static void global_atomic(amd_wave *wave, const amd_op *op, operation compute) {
    const bool returns = op->operand_count > 3;
    const amd_operand *first = op->operand + returns;
    atomic at = {.result = returns ? op->operand : NULL, .data = &first[1]};
    amd_request_make(wave, op, &first[0], &first[2], &at.made);
    amd_request_fill(&at.made);
    if (change(wave, op, &at, compute))
        amd_issue(wave, op, returns ? AMD_COUNTER_VM_LOAD : AMD_COUNTER_VM_STORE, at.result, at.made.exec);
}

static void flat_atomic(amd_wave *wave, const amd_op *op, operation compute) {
    const bool returns = op->operand_count > 2;
    const amd_operand *first = op->operand + returns;
    atomic at = {.result = returns ? op->operand : NULL, .data = &first[1]};
    amd_request_make(wave, op, &first[0], NULL, &at.made);
    amd_request_fill(&at.made);
    at.lanes = amd_flat_split(&at.made);
    if (change(wave, op, &at, compute)) amd_issue_flat(wave, op, at.result, at.made.exec);
}

/* Its result takes the place of the data. */
static void buffer_atomic(amd_wave *wave, const amd_op *op, operation compute) {
    amd_operand result = op->operand[0];
    atomic at = {.result = op->glc ? &result : NULL, .data = &op->operand[0]};
    bool is_scratch;
    if (!amd_buffer_make(wave, op, &op->operand[1], &at.made, &is_scratch)) return;
    if (is_scratch) at.lanes.scratch = at.made.exec;
    result.count = (uint8_t)(at.made.size / 4);
    if (change(wave, op, &at, compute))
        amd_issue(wave, op, at.result ? AMD_COUNTER_VM_LOAD : AMD_COUNTER_VM_STORE, at.result, at.made.exec);
}

static void ds_atomic(amd_wave *wave, const amd_op *op, operation compute) {
    const bool returns = op->mode & AMD_MEMORY_RETURNS;
    const amd_operand *first = op->operand + returns;
    atomic at = {.result = returns ? op->operand : NULL,
                 .data = &first[1],
                 .second = op->mode & AMD_MEMORY_TWO ? &first[2] : NULL};
    at.made.exec = at.lanes.shared = amd_exec(wave);
    at.made.size = amd_memory_bytes(op);
    for (uint32_t l = 0; l < AMD_LANES; l++)
        at.made.address[l] = wave->v[first[0].index][l] + (uint32_t)op->offset;
    if (change(wave, op, &at, compute)) amd_issue(wave, op, AMD_COUNTER_DS, at.result, at.made.exec);
}

#define AMD_ATOMIC(operation, bits, result)                                                            \
    static uint64_t compute_##operation(uint32_t mode, uint64_t old, uint64_t data, uint64_t behind) { \
        const uint##bits##_t m = (uint##bits##_t)old, d = (uint##bits##_t)data;                        \
        const uint##bits##_t c = (uint##bits##_t)behind;                                               \
        (void)mode, (void)m, (void)c;                                                                  \
        return (uint##bits##_t)(result);                                                               \
    }                                                                                                  \
    void amd_run_global_atomic_##operation(amd_wave *wave, const amd_op *op) {                         \
        global_atomic(wave, op, compute_##operation);                                                  \
    }                                                                                                  \
    void amd_run_flat_atomic_##operation(amd_wave *wave, const amd_op *op) {                           \
        flat_atomic(wave, op, compute_##operation);                                                    \
    }                                                                                                  \
    void amd_run_buffer_atomic_##operation(amd_wave *wave, const amd_op *op) {                         \
        buffer_atomic(wave, op, compute_##operation);                                                  \
    }                                                                                                  \
    void amd_run_ds_atomic_##operation(amd_wave *wave, const amd_op *op) {                             \
        ds_atomic(wave, op, compute_##operation);                                                      \
    }
#define AMD_ATOMIC_NAME(operation, bits, mnemonic)
#define AMD_ATOMIC_DS(operation, bits, mnemonic, mode)
#include "tests/sim/amdgcn/memory/amd_atomic.def"
