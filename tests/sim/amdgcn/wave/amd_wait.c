/* What is in flight: loads that have no result yet, stores that have not arrived. */
#include "tests/sim/amdgcn/wave/amd_wave.h"
#include <string.h>

static bool overlaps(const amd_operand *operand, const amd_flight *flight) {
    return operand->kind == flight->kind && operand->index < flight->index + flight->count &&
           flight->index < operand->index + operand->count;
}

static bool is_vector_memory(amd_counter counter) {
    return counter == AMD_COUNTER_VM_LOAD || counter == AMD_COUNTER_VM_STORE;
}

/* Whether it comes in the order of issue with others of its kind: vector memory, or LDS. */
static bool is_ordered(const amd_flight *flight) {
    return !flight->alone && flight->counter != AMD_COUNTER_SM;
}

/* ---- The registers in flight: a bit for each, so that most operands are done with at a glance ---- */

static uint64_t *bits_of(amd_wave *wave, uint8_t kind) {
    return kind == AMD_OPERAND_VECTOR ? wave->vectors_in_flight : wave->scalars_in_flight;
}

static void note(amd_wave *wave, const amd_flight *flight) {
    if (flight->kind == AMD_OPERAND_NONE || flight->kind == AMD_OPERAND_NULL) return;
    uint64_t *bits = bits_of(wave, flight->kind);
    for (uint32_t i = flight->index; i < flight->index + flight->count; i++)
        bits[i / 64] |= 1ull << i % 64;
    wave->results_in_flight = true;
}

static void note_all(amd_wave *wave) {
    memset(wave->vectors_in_flight, 0, sizeof wave->vectors_in_flight);
    memset(wave->scalars_in_flight, 0, sizeof wave->scalars_in_flight);
    wave->results_in_flight = false;
    for (uint32_t i = 0; i < wave->flight_count; i++)
        note(wave, &wave->flights[i]);
}

static bool is_noted(amd_wave *wave, const amd_operand *operand) {
    const uint64_t *bits = bits_of(wave, operand->kind);
    for (uint32_t i = operand->index; i < (uint32_t)operand->index + operand->count; i++)
        if (bits[i / 64] >> i % 64 & 1) return true;
    return false;
}

/* ---- Issues and waits ---- */

static amd_flight *issue(amd_wave *wave, const amd_op *op, amd_counter counter, const amd_operand *result,
                         uint64_t lanes, bool alone) {
    /* From gfx10 on stores have a counter to themselves, and nothing that is checked depends on it. */
    if (counter == AMD_COUNTER_VM_STORE && wave->program->target->major >= 10) return NULL;
    if (wave->flight_count == AMD_FLIGHTS) {
        /* More than the counters hold: the hardware waits for the oldest. */
        if (wave->flights[0].lands) amd_shared_landed(wave, &wave->flights[0]);
        memmove(wave->flights, wave->flights + 1, (AMD_FLIGHTS - 1) * sizeof *wave->flights);
        wave->flight_count--;
        note_all(wave);
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
    note(wave, &wave->flights[wave->flight_count - 1]);
    return &wave->flights[wave->flight_count - 1];
}

void amd_issue(amd_wave *wave, const amd_op *op, amd_counter counter, const amd_operand *result, uint64_t lanes) {
    issue(wave, op, counter, result, lanes, false);
}

void amd_issue_flat(amd_wave *wave, const amd_op *op, const amd_operand *result, uint64_t lanes) {
    bool alone = wave->program->target->major == 9;
    issue(wave, op, result ? AMD_COUNTER_VM_LOAD : AMD_COUNTER_VM_STORE, result, lanes, alone);
    issue(wave, op, AMD_COUNTER_DS, result, lanes, alone);
}

void amd_issue_landing(amd_wave *wave, const amd_op *op, uint32_t shared, uint64_t lanes) {
    amd_flight *flight = issue(wave, op, AMD_COUNTER_VM_LOAD, NULL, lanes, false);
    flight->lands = true;
    flight->shared = shared;
}

/* An instruction is surely done if even with all others done that may be, so many would be left that the counter could
 * not be at the limit. Those issued after it in order are left, too: counted from the last back. */
void amd_wait(amd_wave *wave, uint32_t counters, uint32_t limit) {
    uint32_t vector_memory = 0, shared = 0, kept = 0;
    bool stays[AMD_FLIGHTS];
    for (uint32_t i = wave->flight_count; i-- > 0;) {
        const amd_flight *flight = &wave->flights[i];
        amd_counter counter = (amd_counter)flight->counter;
        bool waited = counters >> counter & 1, ordered = is_ordered(flight);
        uint32_t *behind = is_vector_memory(counter) ? &vector_memory : &shared;
        uint32_t left = 1 + (ordered ? *behind : 0);
        if (waited && ordered) ++*behind;
        stays[i] = !waited || left <= limit;
    }
    for (uint32_t i = 0; i < wave->flight_count; i++) {
        if (!stays[i] && wave->flights[i].lands) amd_shared_landed(wave, &wave->flights[i]);
        if (stays[i]) wave->flights[kept++] = wave->flights[i];
    }
    if (kept == wave->flight_count) return;
    wave->flight_count = kept;
    note_all(wave);
}

/* Whether an operand may touch a result in flight after all: other lanes, or a later load into the same register, which
 * arrives later. */
static bool harmless(const amd_wave *wave, const amd_op *op, const amd_operand *operand, const amd_flight *flight) {
    bool across = op->dpp || op->class == AMD_CLASS_LANE || op->operand[0].kind == AMD_OPERAND_SCALAR;
    if (flight->kind == AMD_OPERAND_VECTOR && !across && !(flight->lanes & amd_exec(wave))) return true;
    return op->class == AMD_CLASS_MEMORY && operand == op->operand && op->run == flight->op->run && is_ordered(flight);
}

void amd_check_flights(amd_wave *wave, const amd_op *op) {
    for (const amd_op *half = op; half; half = half->dual) {
        for (uint32_t i = 0; i < half->operand_count; i++) {
            const amd_operand *operand = &half->operand[i];
            if (operand->kind != AMD_OPERAND_SCALAR && operand->kind != AMD_OPERAND_VECTOR) continue;
            if (!is_noted(wave, operand)) continue;
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
