/* Atomics on global memory and LDS: each row of amd_atomic.def becomes two functions. */
#include "tests/sim/amdgcn/amd_memory.h"

/* Where an atomic's operands stand: with a result in front, one further. */
typedef struct operands {
    const amd_operand *result, *address, *data, *base;
} operands;

static operands operands_of(const amd_op *op, uint32_t count_without_result) {
    bool returns = op->operand_count > count_without_result;
    const amd_operand *first = op->operand + returns;
    return (operands){returns ? op->operand : NULL, first, first + 1, first + 2};
}

static uint64_t register_read(const amd_wave *wave, uint32_t index, uint32_t lane, uint32_t bits) {
    return wave->v[index][lane] | (bits == 64 ? (uint64_t)wave->v[index + 1][lane] << 32 : 0);
}

static void register_write(amd_wave *wave, uint32_t index, uint32_t lane, uint32_t bits, uint64_t value) {
    wave->v[index][lane] = (uint32_t)value;
    if (bits == 64) wave->v[index + 1][lane] = (uint32_t)(value >> 32);
}

/* The word of a lane: aligned to its size, alive, written. */
static void *global_word(amd_wave *wave, const amd_op *op, const operands *at, uint32_t lane) {
    uint32_t size = amd_memory_bytes(op);
    uint64_t address = amd_global_address(wave, op, at->address, at->base, lane);
    if (address % size) {
        amd_fault(wave, op, SIM_FAULT_MISALIGNED, lane, address, "atomic of %u bytes", size);
        return NULL;
    }
    if (!amd_global_at(wave, op, lane, address, size, false)) return NULL;
    sim_counters *counters = &wave->group->counters;
    counters->global_read_bytes += size;
    counters->global_written_bytes += size;
    return amd_global_at(wave, op, lane, address, size, true);
}

static void *shared_word(amd_wave *wave, const amd_op *op, const operands *at, uint32_t lane) {
    uint32_t address = wave->v[at->address->index][lane] + (uint32_t)op->offset;
    return amd_shared_at(wave, op, lane, address, amd_memory_bytes(op), AMD_UPDATE);
}

/* The host's own atomics, since other groups run on other threads. */
#define ATOMIC_FUNCTION(name, bits, plain_count, word, counter, store_counter, new_value)                         \
    void amd_run_##name(amd_wave *wave, const amd_op *op) {                                                       \
        const operands at = operands_of(op, plain_count);                                                         \
        const uint64_t exec = amd_exec(wave);                                                                     \
        for (uint64_t rest = exec; rest; rest &= rest - 1) {                                                      \
            const uint32_t lane = (uint32_t)__builtin_ctzll(rest);                                                \
            uint##bits##_t *memory = word(wave, op, &at, lane);                                                   \
            if (!memory) return;                                                                                  \
            const uint##bits##_t d = (uint##bits##_t)register_read(wave, at.data->index, lane, bits);             \
            const uint##bits##_t c =                                                                              \
                at.data->count * 32 > bits                                                                        \
                    ? (uint##bits##_t)register_read(wave, at.data->index + bits / 32u, lane, bits)                \
                    : 0;                                                                                          \
            uint##bits##_t m = __atomic_load_n(memory, __ATOMIC_RELAXED);                                         \
            (void)c;                                                                                              \
            while (!__atomic_compare_exchange_n(memory, &m, new_value, true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) \
                ;                                                                                                 \
            if (at.result) register_write(wave, at.result->index, lane, bits, m);                                 \
        }                                                                                                         \
        amd_issue(wave, op, at.result ? counter : store_counter, at.result, exec);                                \
    }
#define AMD_ATOMIC_GLOBAL(operation, bits, old_name, new_name, result) \
    ATOMIC_FUNCTION(global_atomic_##operation, bits, 3, global_word, AMD_COUNTER_VM_LOAD, AMD_COUNTER_VM_STORE, result)
#define AMD_ATOMIC(operation, bits, old_name, new_name, returning_name, result) \
    AMD_ATOMIC_GLOBAL(operation, bits, old_name, new_name, result)              \
    ATOMIC_FUNCTION(ds_##operation, bits, 2, shared_word, AMD_COUNTER_DS, AMD_COUNTER_DS, result)
#include "tests/sim/amdgcn/amd_atomic.def"
