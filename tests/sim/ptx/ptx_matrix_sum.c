#include "tests/sim/ptx/ptx_float.h"
#include "tests/sim/ptx/ptx_matrix.h"
#include <math.h>
#include <string.h>

static const ptx_matrix_unit units[] = {
#define PTX_MATRIX_UNIT(capability, type, terms, fraction, kept) {capability, PTX_##type, terms, fraction, kept},
#include "tests/sim/ptx/ptx_matrix_units.def"
#undef PTX_MATRIX_UNIT
};

const ptx_matrix_unit *ptx_matrix_unit_find(int32_t capability, ptx_type type) {
    const ptx_matrix_unit *found = NULL;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (units[i].type == type && (int32_t)units[i].capability <= capability) found = &units[i];
    return found;
}

sim_format ptx_matrix_format(ptx_type type) {
    switch (type) {
    case PTX_f16:
        return SIM_f16;
    case PTX_bf16:
        return SIM_bf16;
    case PTX_tf32:
        return SIM_tf32;
    case PTX_e4m3:
        return SIM_e4m3;
    case PTX_e5m2:
        return SIM_e5m2;
    default:
        return SIM_f32;
    }
}

/* The exponent of the least normal number. */
static int least_exponent(sim_format format) {
    return format == SIM_e4m3 ? -6 : format == SIM_f16 || format == SIM_e5m2 ? -14 : -126;
}

ptx_matrix_number ptx_matrix_number_of(sim_format format, uint32_t bits) {
    /* A tf32 is the upper part of a register of 32 bits, whatever stands below. */
    ptx_matrix_number number = {.value = sim_decode(format, format == SIM_tf32 ? bits >> 13 : bits)};
    frexp(number.value, &number.exponent);
    number.exponent--;
    if (number.exponent < least_exponent(format)) number.exponent = least_exponent(format);
    return number;
}

/* ---- Truncating ---- */

/* An f32 or f16 of a sum in units of 2^scale. */
static uint32_t cut(const ptx_matrix_unit *unit, sim_format result, double value) {
    if (result == SIM_f16) return ptx_narrow_store(SIM_f16, value, SIM_ROUND_NEAREST_EVEN, 0);
    if (fabs(value) >= 0x1p128) value = copysign(INFINITY, value);
    return ptx_narrow_store(SIM_f32, value, SIM_ROUND_ZERO, 0) & ~((1u << (23 - unit->kept)) - 1);
}

/* The accumulator and products, aligned to the largest exponent, cut off, and added. */
static double aligned_sum(const ptx_matrix_unit *unit, ptx_matrix_number c, const ptx_matrix_number *a,
                          const ptx_matrix_number *b, uint32_t count) {
    bool any = c.value != 0;
    int most = c.exponent;
    for (uint32_t i = 0; i < count; i++) {
        int exponent = a[i].exponent + b[i].exponent;
        if (a[i].value == 0 || b[i].value == 0 || (any && exponent <= most)) continue;
        most = exponent;
        any = true;
    }
    double sum = trunc(ldexp(c.value, unit->fraction - most));
    for (uint32_t i = 0; i < count; i++)
        sum += trunc(ldexp(a[i].value * b[i].value, unit->fraction - most));
    return ldexp(sum, most - unit->fraction);
}

static uint32_t sum_truncating(const ptx_matrix_unit *unit, sim_format result, ptx_matrix_number c,
                               const ptx_matrix_number *a, const ptx_matrix_number *b, uint32_t count) {
    uint32_t bits = 0;
    for (uint32_t first = 0; first < count; first += unit->terms) {
        uint32_t terms = count - first < unit->terms ? count - first : unit->terms;
        double sum = c.value;
        for (uint32_t i = first; i < first + terms; i++)
            sum += a[i].value * b[i].value;
        if (isfinite(sum)) sum = aligned_sum(unit, c, a + first, b + first, terms);
        bits = isnan(sum) ? ptx_narrow_nan(result) : cut(unit, result, sum);
        c = ptx_matrix_number_of(result, bits);
    }
    return bits;
}

/* ---- All modes ---- */

uint32_t ptx_matrix_sum(sim_sum_mode mode, const ptx_matrix_unit *unit, sim_format result, ptx_matrix_number c,
                        const ptx_matrix_number *a, const ptx_matrix_number *b, uint32_t count) {
    if (mode == SIM_SUM_TRUNCATING) return sum_truncating(unit, result, c, a, b, count);
    double x[SIM_SUM_COUNT_MAX], y[SIM_SUM_COUNT_MAX];
    for (uint32_t i = 0; i < count; i++) {
        x[i] = a[i].value;
        y[i] = b[i].value;
    }
    /* One after the other the products are added in f32, whatever the result is. */
    sim_format format = mode == SIM_SUM_SEQUENTIAL ? SIM_f32 : result;
    double sum = sim_decode(format, sim_sum(mode, format, c.value, x, y, (int)count));
    return isnan(sum) ? ptx_narrow_nan(result) : ptx_narrow_store(result, sum, SIM_ROUND_NEAREST_EVEN, 0);
}
