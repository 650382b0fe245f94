/* What is in flight: loads that have no result yet, stores that have not arrived. */
#include "tests/sim/amdgcn/amd_wave.h"
#include <string.h>

static bool overlaps(const amd_operand *operand, const amd_flight *flight) {
    return operand->kind == flight->kind && operand->index < flight->index + flight->count &&
           flight->index < operand->index + operand->count;
}

static bool is_vector_memory(amd_counter counter) {
    return counter == AMD_COUNTER_VM_LOAD || counter == AMD_COUNTER_VM_STORE;
}

/* Instructions whose results come in the order of issue. Scalar loads are in order with nothing. */
static bool in_order(const amd_flight *a, const amd_flight *b) {
    amd_counter first = (amd_counter)a->counter, second = (amd_counter)b->counter;
    if (a->alone || b->alone || first == AMD_COUNTER_SM) return false;
    return first == second || (is_vector_memory(first) && is_vector_memory(second));
}

static void issue(amd_wave *wave, const amd_op *op, amd_counter counter, const amd_operand *result, uint64_t lanes,
                  bool alone) {
    if (wave->flight_count == AMD_FLIGHTS) {
        /* More than the counters hold: the hardware waits for the oldest. */
        memmove(wave->flights, wave->flights + 1, (AMD_FLIGHTS - 1) * sizeof *wave->flights);
        wave->flight_count--;
    }
    wave->flights[wave->flight_count++] = (amd_flight){
        .op = op,
        .counter = (uint8_t)counter,
        .kind = result ? result->kind : (uint8_t)AMD_OPERAND_NONE,
        .index = result ? result->index : 0,
        .count = result ? result->count : 0,
        .lanes = lanes,
        .alone = alone,
    };
}

void amd_issue(amd_wave *wave, const amd_op *op, amd_counter counter, const amd_operand *result, uint64_t lanes) {
    issue(wave, op, counter, result, lanes, false);
}

void amd_issue_flat(amd_wave *wave, const amd_op *op, const amd_operand *result, uint64_t lanes) {
    bool alone = wave->program->target->major == 9;
    issue(wave, op, result ? AMD_COUNTER_VM_LOAD : AMD_COUNTER_VM_STORE, result, lanes, alone);
    issue(wave, op, AMD_COUNTER_DS, result, lanes, alone);
}

/* An instruction is surely done if even with all others done that may be, so many would be left that the counter could
 * not be at the limit. */
void amd_wait(amd_wave *wave, uint32_t counters, uint32_t limit) {
    uint32_t kept = 0;
    bool stays[AMD_FLIGHTS];
    for (uint32_t i = 0; i < wave->flight_count; i++) {
        amd_counter counter = (amd_counter)wave->flights[i].counter;
        uint32_t left = 1;
        for (uint32_t j = i + 1; j < wave->flight_count; j++)
            left += (counters >> wave->flights[j].counter & 1) && in_order(&wave->flights[i], &wave->flights[j]);
        stays[i] = !(counters >> counter & 1) || left <= limit;
    }
    for (uint32_t i = 0; i < wave->flight_count; i++) {
        if (stays[i]) wave->flights[kept++] = wave->flights[i];
    }
    wave->flight_count = kept;
}

/* Whether an operand may touch a result in flight after all: other lanes, or a later load into the same register, which
 * arrives later. */
static bool harmless(const amd_wave *wave, const amd_op *op, const amd_operand *operand, const amd_flight *flight) {
    bool across = op->dpp || op->class == AMD_CLASS_LANE || op->operand[0].kind == AMD_OPERAND_SCALAR;
    if (flight->kind == AMD_OPERAND_VECTOR && !across && !(flight->lanes & amd_exec(wave))) return true;
    return op->class == AMD_CLASS_MEMORY && operand == op->operand && op->run == flight->op->run &&
           in_order(flight, flight);
}

void amd_check_flights(amd_wave *wave, const amd_op *op) {
    for (const amd_op *half = op; half; half = half->dual) {
        for (uint32_t i = 0; i < half->operand_count; i++) {
            const amd_operand *operand = &half->operand[i];
            if (operand->kind != AMD_OPERAND_SCALAR && operand->kind != AMD_OPERAND_VECTOR) continue;
            for (uint32_t j = 0; j < wave->flight_count; j++) {
                const amd_flight *flight = &wave->flights[j];
                if (!overlaps(operand, flight) || harmless(wave, half, operand, flight)) continue;
                amd_fault(wave, op, SIM_FAULT_WAIT, AMD_LANES, flight->op->address,
                          "operand %u is the result of \"%s\"", i, flight->op->text);
                return;
            }
        }
    }
}
