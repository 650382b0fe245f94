#include "tests/sim/amdgcn/wave/amd_undefined.h"
#include "tests/sim/amdgcn/memory/amd_memory.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The account ---- */

enum { VECTORS = AMD_VECTORS + AMD_SPARE_VECTORS };

amd_undefined *amd_undefined_new(size_t scratch_size) {
    amd_undefined *undefined = calloc(1, sizeof *undefined);
    if (!undefined) return NULL;
    undefined->v = calloc(VECTORS, sizeof *undefined->v);
    undefined->scratch = malloc(scratch_size);
    if (undefined->v && undefined->scratch) {
        amd_undefined_begin(undefined, scratch_size, false);
        return undefined;
    }
    amd_undefined_free(undefined);
    return NULL;
}

void amd_undefined_begin(amd_undefined *undefined, size_t scratch_used, bool had_undefined) {
    memset(undefined->scratch, 0xff, scratch_used);
    if (!had_undefined) return;
    memset(undefined->v, 0, VECTORS * sizeof *undefined->v);
    *undefined = (amd_undefined){.v = undefined->v, .scratch = undefined->scratch};
}

void amd_undefined_free(amd_undefined *undefined) {
    if (!undefined) return;
    free(undefined->v);
    free(undefined->scratch);
    free(undefined);
}

void amd_undefined_swap(amd_wave *wave) {
    amd_undefined *undefined = wave->undefined;
    uint32_t(*vectors)[AMD_LANES] = wave->v;
    uint8_t *scratch = wave->scratch;
    wave->v = undefined->v;
    wave->scratch = undefined->scratch;
    undefined->v = vectors;
    undefined->scratch = scratch;
}

/* ---- Operands ---- */

static uint64_t row_lanes(const uint32_t *row, uint64_t lanes) {
    uint64_t found = 0;
    uint32_t any = 0;
    for (uint32_t l = 0; l < AMD_LANES; l++)
        any |= row[l];
    for (uint32_t l = 0; any && l < AMD_LANES; l++)
        found |= (uint64_t)(row[l] != 0) << l;
    return found & lanes;
}

static bool vcc_undefined(const amd_wave *wave) {
    return wave->undefined->s[AMD_VCC] | wave->undefined->s[AMD_VCC + 1];
}

uint64_t amd_undefined_lanes(const amd_wave *wave, const amd_operand *operand, uint64_t lanes) {
    const amd_undefined *undefined = wave->undefined;
    uint64_t found = 0;
    uint32_t bits = 0;
    switch (operand->kind) {
    case AMD_OPERAND_VECTOR:
        for (uint32_t i = 0; i < operand->count; i++)
            found |= row_lanes(undefined->v[operand->index + i], lanes);
        return found;
    case AMD_OPERAND_SCALAR:
        for (uint32_t i = 0; i < operand->count; i++)
            bits |= undefined->s[operand->index + i];
        return bits ? wave->all : 0;
    case AMD_OPERAND_SCC:
        return undefined->scc ? wave->all : 0;
    case AMD_OPERAND_VCCZ:
        return vcc_undefined(wave) ? wave->all : 0;
    default:
        return 0;
    }
}

/* The first register of an operand that is undefined in a lane. */
static uint32_t register_of(const amd_undefined *undefined, const amd_operand *operand, uint32_t lane) {
    for (uint32_t i = 0; i < operand->count; i++) {
        bool vector = operand->kind == AMD_OPERAND_VECTOR;
        if (vector ? undefined->v[operand->index + i][lane] : undefined->s[operand->index + i])
            return operand->index + i;
    }
    return operand->index;
}

void amd_undefined_fault(amd_wave *wave, const amd_op *op, uint32_t lane, const amd_operand *operand) {
    const amd_undefined *undefined = wave->undefined;
    const bool vector = operand->kind == AMD_OPERAND_VECTOR, scalar = operand->kind == AMD_OPERAND_SCALAR;
    const uint32_t number = register_of(undefined, operand, lane);
    const amd_origin *from = vector   ? &undefined->vector_from[number]
                             : scalar ? &undefined->scalar_from[number]
                                      : &undefined->scc_from;
    char name[16] = "SCC";
    if (!from->load) from = &undefined->latest;
    if (vector)
        snprintf(name, sizeof name, "%c%u", number < AMD_ACCUMULATORS ? 'v' : 'a', number % AMD_ACCUMULATORS);
    else if (scalar && (number == AMD_VCC || number == AMD_VCC + 1))
        snprintf(name, sizeof name, "VCC");
    else if (scalar && (number == AMD_EXEC || number == AMD_EXEC + 1))
        snprintf(name, sizeof name, "EXEC");
    else if (scalar)
        snprintf(name, sizeof name, "s%u", number);
    amd_fault(wave, op, SIM_FAULT_UNINITIALISED, lane, from->offset, "%s depends on scratch that 0x%x loaded: %s", name,
              from->load->address, from->load->text);
}

bool amd_undefined_none(amd_wave *wave, const amd_op *op, const amd_operand *operand, uint64_t lanes) {
    uint64_t found = amd_undefined_lanes(wave, operand, lanes);
    if (!found) return true;
    bool vector = operand->kind == AMD_OPERAND_VECTOR;
    amd_undefined_fault(wave, op, vector ? (uint32_t)__builtin_ctzll(found) : AMD_LANES, operand);
    return false;
}

void amd_undefined_set(amd_wave *wave, const amd_operand *result, uint64_t lanes, bool undefined) {
    for (uint32_t i = 0; i < result->count; i++) {
        if (result->kind == AMD_OPERAND_SCALAR) wave->undefined->s[result->index + i] = undefined ? ~0u : 0;
        if (result->kind != AMD_OPERAND_VECTOR) continue;
        for (uint64_t rest = lanes; rest; rest &= rest - 1)
            wave->undefined->v[result->index + i][__builtin_ctzll(rest)] = undefined ? ~0u : 0;
    }
}

/* ---- Memory ---- */

void amd_undefined_came(amd_wave *wave, const amd_op *op, uint64_t lanes, const uint32_t *offsets,
                        const amd_operand *registers) {
    for (uint32_t i = 0; i < registers->count; i++) {
        uint64_t found = row_lanes(wave->undefined->v[registers->index + i], lanes);
        if (!found) continue;
        wave->has_undefined = true;
        wave->undefined->latest = (amd_origin){op, offsets[__builtin_ctzll(found)] + i * 4};
        wave->undefined->vector_from[registers->index + i] = wave->undefined->latest;
    }
}

static bool is_load(amd_run run) {
    static const amd_run loads[] = {
        amd_run_s_load,       amd_run_s_buffer_load, amd_run_s_memtime,   amd_run_global_load, amd_run_flat_load,
        amd_run_scratch_load, amd_run_buffer_load,   amd_run_ds_read,     amd_run_ds_read2,    amd_run_ds_exchange2,
        amd_run_ds_append,    amd_run_ds_consume,    amd_run_ds_bpermute, amd_run_ds_permute,  amd_run_ds_swizzle};
    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++)
        if (loads[i] == run) return true;
    return false;
}

/* The data of a store, a bit for each operand; of what else changes memory, nothing may be undefined. */
static uint32_t stored(amd_run run) {
    if (run == amd_run_buffer_store) return 1;
    if (run == amd_run_ds_write2) return 6;
    bool other = run == amd_run_global_store || run == amd_run_flat_store || run == amd_run_scratch_store ||
                 run == amd_run_ds_write;
    return other ? 2 : 0;
}

/* Whether the first operand is a result and nothing else. */
static bool has_result(const amd_op *op) {
    if (is_load(op->run)) return true;
    if (stored(op->run)) return false;
    if (!strncmp(op->text, "ds_", 3)) return op->mode & AMD_MEMORY_RETURNS;
    if (!strncmp(op->text, "global_atomic", 13)) return op->operand_count > 3;
    return !strncmp(op->text, "flat_atomic", 11) && op->operand_count > 2;
}

/* The lanes that store to scratch, whose account goes there with the data. */
static uint64_t lanes_to_scratch(const amd_wave *wave, const amd_op *op) {
    uint64_t lanes = 0;
    if (op->run == amd_run_scratch_store) return wave->all;
    if (op->run == amd_run_buffer_store) return wave->s[op->operand[2].index + 1] >> 31 ? wave->all : 0;
    for (uint32_t l = 0; l < wave->lanes && op->run == amd_run_flat_store; l++)
        lanes |= (uint64_t)(wave->v[op->operand[0].index + 1][l] == AMD_APERTURE_PRIVATE) << l;
    return lanes;
}

/* Lanes store an element for others to see. false after a fault: it is more than a byte, and all of it undefined. */
static bool shown(amd_wave *wave, const amd_op *op, const amd_operand *data, uint64_t lanes) {
    const uint32_t size = amd_memory_bytes(op);
    for (uint64_t rest = amd_undefined_lanes(wave, data, lanes); rest && size > 1; rest &= rest - 1) {
        uint32_t l = (uint32_t)__builtin_ctzll(rest), whole = 0;
        uint8_t bits[64];
        amd_undefined_swap(wave);
        amd_lane_get(wave, op, data, l, bits);
        amd_undefined_swap(wave);
        while (whole < size && bits[whole] == 0xff)
            whole++;
        if (whole < size) continue;
        amd_undefined_fault(wave, op, l, data);
        return false;
    }
    return true;
}

/* What a load puts into a half of a register leaves the other as it is. What it puts there is defined; from scratch, as
 * far as the account says, which follows. */
static void loaded(amd_wave *wave, const amd_op *op, uint64_t lanes) {
    const amd_operand *to = &op->operand[0];
    if (!(op->mode & AMD_MEMORY_D16) || to->kind != AMD_OPERAND_VECTOR) {
        amd_undefined_set(wave, to, lanes, false);
        return;
    }
    for (uint64_t rest = lanes; rest; rest &= rest - 1)
        wave->undefined->v[to->index][__builtin_ctzll(rest)] &= op->mode & AMD_MEMORY_HIGH ? 0xffff : 0xffff0000;
}

static bool memory_step(amd_wave *wave, const amd_op *op) {
    const uint64_t exec = amd_exec(wave);
    const uint32_t data = stored(op->run);
    const bool result = has_result(op);
    for (uint32_t i = result; i < op->operand_count; i++) {
        const amd_operand *operand = &op->operand[i];
        bool good = data >> i & 1 ? shown(wave, op, operand, exec & ~lanes_to_scratch(wave, op))
                                  : amd_undefined_none(wave, op, operand, exec);
        if (!good) return false;
    }
    if (result) loaded(wave, op, exec);
    return true;
}

/* ---- Instructions ---- */

/* Whether an instruction, or its half, touches anything undefined: most do not. */
static bool touches(const amd_wave *wave, const amd_op *op) {
    if (wave->relative || wave->undefined->scc || vcc_undefined(wave)) return true;
    for (const amd_op *half = op; half; half = half->dual)
        for (uint32_t i = 0; i < half->operand_count; i++)
            if (amd_undefined_lanes(wave, &half->operand[i], ~0ull)) return true;
    return op->run == amd_run_v_movrels_b32 || op->run == amd_run_v_movreld_b32 || op->run == amd_run_v_movrelsd_b32;
}

static bool half_step(amd_wave *wave, const amd_op *op) {
    return op->class == AMD_CLASS_MEMORY ? memory_step(wave, op) : amd_undefined_alu(wave, op);
}

bool amd_undefined_step(amd_wave *wave, const amd_op *op) {
    if (!touches(wave, op)) return true;
    if (!op->dual) return half_step(wave, op);
    /* As amd_run_dual. */
    uint32_t *result = wave->undefined->v[op->operand[0].index];
    uint32_t before[AMD_LANES], after[AMD_LANES];
    memcpy(before, result, sizeof before);
    if (!half_step(wave, op)) return false;
    memcpy(after, result, sizeof after);
    memcpy(result, before, sizeof before);
    if (!half_step(wave, op->dual)) return false;
    memcpy(result, after, sizeof after);
    return true;
}
