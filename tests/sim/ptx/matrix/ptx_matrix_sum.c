#include "tests/sim/ptx/alu/ptx_float.h"
#include "tests/sim/ptx/matrix/ptx_matrix.h"
#include <math.h>
#include <string.h>

static const ptx_matrix_unit units[] = {
#define PTX_MATRIX_UNIT(capability, type, terms, fraction, kept) {capability, PTX_##type, terms, fraction, kept},
#include "tests/sim/ptx/matrix/ptx_matrix_units.def"
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

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* A number of 16 or 8 bits without its sign: its bits, moved up to those of an f32, are off by a power of two. */
static inline float widened(uint32_t magnitude, uint32_t infinite, int shift, float power) {
    if (magnitude > infinite) return NAN;
    return magnitude == infinite ? INFINITY : float_of(magnitude << shift) * power;
}

static inline float value_of_half(uint32_t bits) {
    const float value = widened(bits & 0x7fff, 0x7c00, 13, 0x1p112f);
    return bits >> 15 ? -value : value;
}

static inline __attribute__((always_inline)) float value_of(sim_format format, uint32_t bits) {
    float value;
    switch (format) {
    case SIM_f16:
        return value_of_half(bits);
    case SIM_e5m2:
        return value_of_half(bits << 8);
    case SIM_e4m3: /* it has no infinity */
        value = (bits & 0x7f) == 0x7f ? NAN : widened(bits & 0x7f, 0x80, 20, 0x1p120f);
        return bits >> 7 ? -value : value;
    case SIM_bf16:
        return float_of(bits << 16);
    case SIM_tf32: /* the upper part of a register of 32 bits, whatever stands below */
        return float_of(bits & ~0x1fffu);
    default:
        return float_of(bits);
    }
}

static inline __attribute__((always_inline)) ptx_matrix_number number_of(sim_format format, uint32_t bits) {
    ptx_matrix_number number = {.value = (double)value_of(format, bits)};
    uint64_t wide;
    memcpy(&wide, &number.value, sizeof wide);
    number.exponent = (int)(wide >> 52 & 0x7ff) - 1023;
    if (number.exponent < least_exponent(format)) number.exponent = least_exponent(format);
    if (number.value == 0) number.exponent = PTX_MATRIX_NO_EXPONENT;
    return number;
}

ptx_matrix_number ptx_matrix_number_of(sim_format format, uint32_t bits) {
    return number_of(format, bits);
}

void ptx_matrix_numbers_of(sim_format format, const uint64_t *bits, ptx_matrix_number *numbers, uint32_t count) {
    switch (format) { /* a loop for each of those that operators multiply */
    case SIM_f16:
        for (uint32_t i = 0; i < count; i++)
            numbers[i] = number_of(SIM_f16, (uint32_t)bits[i]);
        break;
    case SIM_bf16:
        for (uint32_t i = 0; i < count; i++)
            numbers[i] = number_of(SIM_bf16, (uint32_t)bits[i]);
        break;
    case SIM_f32:
        for (uint32_t i = 0; i < count; i++)
            numbers[i] = number_of(SIM_f32, (uint32_t)bits[i]);
        break;
    case SIM_e4m3:
        for (uint32_t i = 0; i < count; i++)
            numbers[i] = number_of(SIM_e4m3, (uint32_t)bits[i]);
        break;
    default:
        for (uint32_t i = 0; i < count; i++)
            numbers[i] = number_of(format, (uint32_t)bits[i]);
    }
}

/* The number in f16, where its exponent may be less than its own format's least. */
static ptx_matrix_number widened_exponent(ptx_matrix_number number) {
    if (number.value == 0) return number;
    uint64_t wide;
    memcpy(&wide, &number.value, sizeof wide);
    int exponent = (int)(wide >> 52 & 0x7ff) - 1023;
    number.exponent = exponent > least_exponent(SIM_f16) ? exponent : least_exponent(SIM_f16);
    return number;
}

/* ---- Truncating ---- */

/* An f32 or f16 of a sum in units of 2^scale. */
static uint32_t cut(const ptx_matrix_unit *unit, sim_format result, double value) {
    if (result == SIM_f16) {
        uint32_t bits = ptx_narrow_store(SIM_f16, value, SIM_ROUND_NEAREST_EVEN, 0);
        return bits == 0x8000 ? 0 : bits; /* a zero is +0 */
    }
    const float nearest = (float)value;
    uint32_t bits;
    memcpy(&bits, &nearest, sizeof bits);
    if (fabs((double)nearest) > fabs(value) && fabs(value) < 0x1p128) bits--;
    return bits & ~((1u << (23 - unit->kept)) - 1);
}

/* The accumulator and products, aligned to the largest exponent, cut off, and added. */
static double aligned_sum(const ptx_matrix_unit *unit, ptx_matrix_number c, const ptx_matrix_number *a,
                          const ptx_matrix_number *b, uint32_t count, int most) {
    if (most < PTX_MATRIX_LEAST_EXPONENT) return 0;
    /* In units of the last bit that is kept. A product is below 4 times the power of its exponent. */
    double per_unit = sim_power_of_two(unit->fraction - most);
    int64_t sum = (int64_t)(c.value * per_unit);
    for (uint32_t i = 0; i < count; i++)
        sum += (int64_t)(a[i].value * b[i].value * per_unit);
    return (double)sum * sim_power_of_two(most - unit->fraction);
}

/* The largest exponent of the accumulator and the products. *out_finite: none of the numbers is an infinity or a NaN.
 */
static int largest_exponent(ptx_matrix_number c, const ptx_matrix_number *a, const ptx_matrix_number *b, uint32_t count,
                            bool *out_finite) {
    enum { INFINITE = 1024 };
    int most = c.exponent, of_one = c.exponent;
    for (uint32_t i = 0; i < count; i++) {
        const int x = a[i].exponent, y = b[i].exponent, larger = x > y ? x : y;
        most = x + y > most ? x + y : most;
        of_one = larger > of_one ? larger : of_one;
    }
    *out_finite = of_one < INFINITE;
    return most;
}

static uint32_t sum_truncating(const ptx_matrix_unit *unit, sim_format result, ptx_matrix_number c,
                               const ptx_matrix_number *a, const ptx_matrix_number *b, uint32_t count) {
    uint32_t bits = 0;
    for (uint32_t first = 0; first < count; first += unit->terms) {
        uint32_t terms = count - first < unit->terms ? count - first : unit->terms;
        bool finite;
        const int most = largest_exponent(c, a + first, b + first, terms, &finite);
        double sum = c.value;
        for (uint32_t i = first; i < first + terms && !finite; i++)
            sum += a[i].value * b[i].value;
        if (finite) sum = aligned_sum(unit, c, a + first, b + first, terms, most);
        bits = isnan(sum) ? ptx_narrow_nan(result) : cut(unit, result, sum);
        if (first + terms < count) c = ptx_matrix_number_of(result, bits);
    }
    return bits;
}

/* ---- As an H100 ---- */

/* mma.sync of 8-bit numbers is not made by the unit that has them (wgmma's): they are converted to f16, of whose
 * exponents two steps of f16 cut off: products k with k % 4 < 2 first, from zero, then the others. C is added to that,
 * rounded to nearest. So it was recorded for f32 results; f16 ones are made alike, with steps that round to f16. */
static uint32_t sum_of_bytes(const ptx_matrix_unit *unit, sim_format result, ptx_matrix_number c,
                             const ptx_matrix_number *a, const ptx_matrix_number *b, uint32_t count) {
    ptx_matrix_number x[PTX_MATRIX_BYTES_K], y[PTX_MATRIX_BYTES_K];
    ptx_matrix_number sum = ptx_matrix_number_of(result, 0);
    for (uint32_t step = 0; step < 2; step++) {
        uint32_t terms = 0;
        for (uint32_t i = 0; i < count; i++) {
            if (i % 4 / 2 != step) continue;
            x[terms] = widened_exponent(a[i]);
            y[terms++] = widened_exponent(b[i]);
        }
        sum = ptx_matrix_number_of(result, sum_truncating(unit, result, sum, x, y, terms));
    }
    double total = sum.value + c.value;
    if (isnan(total)) return ptx_narrow_nan(result);
    return ptx_narrow_store(result, sim_add_odd(sum.value, c.value), SIM_ROUND_NEAREST_EVEN, 0);
}

/* mma of m8n8k4, which no unit has since sm_75: the code that ptxas 13 puts in its place adds in f32, an f32 result as
 * c + (((p0 + p1) + p2) + p3) of fused multiply-adds, an f16 one as (c + (p0 + p1)) + (p2 + p3). */
static uint32_t sum_of_four(sim_format result, ptx_matrix_number c, const ptx_matrix_number *a,
                            const ptx_matrix_number *b) {
    float x[4], y[4], first = (float)c.value;
    for (int i = 0; i < 4; i++) {
        x[i] = (float)a[i].value;
        y[i] = (float)b[i].value;
    }
    float low = fmaf(x[1], y[1], x[0] * y[0]), sum = first + fmaf(x[3], y[3], fmaf(x[2], y[2], low));
    if (result == SIM_f16) sum = (first + low) + fmaf(x[3], y[3], x[2] * y[2]);
    return isnan(sum) ? ptx_narrow_nan(result) : ptx_narrow_store(result, (double)sum, SIM_ROUND_NEAREST_EVEN, 0);
}

static bool is_bytes(const ptx_matrix_unit *unit) {
    return unit->type == PTX_e4m3 || unit->type == PTX_e5m2;
}

/* ---- The other ways ---- */

/* One after the other the products are added in f32, whatever the result is; all operands are numbers of f32. */
static double sum_sequential(ptx_matrix_number c, const ptx_matrix_number *a, const ptx_matrix_number *b,
                             uint32_t count) {
    float sum = (float)c.value;
    for (uint32_t i = 0; i < count; i++)
        sum = fmaf((float)a[i].value, (float)b[i].value, sum);
    return (double)sum;
}

static double sum_exact(sim_format result, ptx_matrix_number c, const ptx_matrix_number *a, const ptx_matrix_number *b,
                        uint32_t count) {
    double x[SIM_SUM_COUNT_MAX], y[SIM_SUM_COUNT_MAX];
    for (uint32_t i = 0; i < count; i++) {
        x[i] = a[i].value;
        y[i] = b[i].value;
    }
    return sim_decode(result, sim_sum(SIM_SUM_EXACT, result, c.value, x, y, (int)count));
}

uint32_t ptx_matrix_sum_at_once(sim_sum_mode mode, const ptx_matrix_unit *unit, sim_format result, ptx_matrix_number c,
                                const ptx_matrix_number *a, const ptx_matrix_number *b, uint32_t count) {
    bool recorded = mode == SIM_SUM_HOPPER && unit->capability >= 90;
    if (recorded || mode == SIM_SUM_TRUNCATING) return sum_truncating(unit, result, c, a, b, count);
    double sum = mode == SIM_SUM_SEQUENTIAL ? sum_sequential(c, a, b, count) : sum_exact(result, c, a, b, count);
    float narrow = (float)sum;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    if (isnan(sum)) return ptx_narrow_nan(result);
    return result == SIM_f32 ? bits : ptx_narrow_store(result, sum, SIM_ROUND_NEAREST_EVEN, 0);
}

uint32_t ptx_matrix_sum(sim_sum_mode mode, const ptx_matrix_unit *unit, sim_format result, ptx_matrix_number c,
                        const ptx_matrix_number *a, const ptx_matrix_number *b, uint32_t count) {
    bool recorded = mode == SIM_SUM_HOPPER && unit->capability >= 90;
    if (recorded && unit->type == PTX_f16 && count == 4) return sum_of_four(result, c, a, b);
    if (recorded && is_bytes(unit)) return sum_of_bytes(unit, result, c, a, b, count);
    return ptx_matrix_sum_at_once(mode, unit, result, c, a, b, count);
}
