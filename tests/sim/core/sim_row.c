/* Rows of results: columns side by side, as many as the host's vectors have. */
#include "tests/sim/core/sim_row.h"
#include <math.h>
#include <string.h>

enum { WIDE = 2 * SIM_ROW_STEP };

/* Numbers that are added up in the order of k: as many columns as step, from first on. */
static inline __attribute__((always_inline)) void sums_make(const sim_row *row, uint32_t first, uint32_t step,
                                                            const float *c, double *sums) {
    for (uint32_t i = 0; i < step; i++)
        sums[i] = (double)c[first + i];
    for (uint32_t k = 0; k < row->k; k++) {
        const double a = row->a[k], *b = row->b + k * row->columns + first;
        for (uint32_t i = 0; i < step; i++)
            sums[i] += a * b[i];
    }
}

/* More than all roundings of a sum of 33 numbers in f64 can make, of magnitudes that add up to this. */
static inline __attribute__((always_inline)) void errors_bound(const sim_row *row, uint32_t first, uint32_t step,
                                                               const float *c, double *errors) {
    for (uint32_t i = 0; i < step; i++)
        errors[i] = fabs((double)c[first + i]);
    for (uint32_t k = 0; k < row->k; k++) {
        const double a = fabs(row->a[k]), *b = row->b + k * row->columns + first;
        for (uint32_t i = 0; i < step; i++)
            errors[i] += a * fabs(b[i]);
    }
    for (uint32_t i = 0; i < step; i++)
        errors[i] *= 0x1p-46;
}

/* Rounds what the sum may be at least and at most: mostly to one number. */
static inline __attribute__((always_inline)) uint32_t singles_between(const double *sums, const double *errors,
                                                                      uint32_t step, uint32_t *results) {
    float least[WIDE], most[WIDE];
    uint32_t other[WIDE], doubts = 0;
    for (uint32_t i = 0; i < step; i++) {
        least[i] = (float)(sums[i] - errors[i]);
        most[i] = (float)(sums[i] + errors[i]);
    }
    memcpy(results, least, step * sizeof *least);
    memcpy(other, most, step * sizeof *most);
    for (uint32_t i = 0; i < step; i++)
        doubts |= (uint32_t)(results[i] != other[i] || isnan(least[i])) << i;
    return doubts;
}

/* Whether f64 holds every sum, and all on the way to it. Each c is a multiple of its last place. */
static inline __attribute__((always_inline)) bool is_whole(const sim_row *row, const float *c) {
    enum { DIGITS = 53, BIAS = 127, MANTISSA = 23, DOUBLINGS = 6 /* 2^6 is more than 33 */ };
    int32_t least = 255, most = 0;
    uint32_t bits[SIM_ROW_MAX];
    memcpy(bits, c, row->columns * sizeof *bits);
    for (uint32_t i = 0; i < row->columns; i++) {
        const int32_t exponent = bits[i] << 1 ? (int32_t)(bits[i] >> MANTISSA & 255) : -1;
        const int32_t low = exponent < 0 ? 255 : exponent;
        least = low < least ? low : least;
        most = exponent > most ? exponent : most;
    }
    int low = row->span_a.low + row->span_b.low, high = row->span_a.high + row->span_b.high;
    if (least == 0 || most == 255) return false; /* a subnormal number, or none */
    if (least < 255 && least - BIAS - MANTISSA < low) low = least - BIAS - MANTISSA;
    if (least < 255 && most - BIAS + 1 > high) high = most - BIAS + 1;
    return high + DOUBLINGS - low <= DIGITS && low > -1000;
}

static inline __attribute__((always_inline)) uint32_t step_make(const sim_row *row, uint32_t first, uint32_t step,
                                                                bool whole, const float *c, uint32_t *results) {
    double sums[WIDE], errors[WIDE];
    float rounded[WIDE];
    sums_make(row, first, step, c, sums);
    if (whole) {
        for (uint32_t i = 0; i < step; i++)
            rounded[i] = (float)sums[i];
        memcpy(results + first, rounded, step * sizeof *rounded);
        return 0;
    }
    errors_bound(row, first, step, c, errors);
    return singles_between(sums, errors, step, results + first) << first;
}

static inline __attribute__((always_inline)) uint32_t singles_make(const sim_row *row, const float *c,
                                                                   uint32_t *results) {
    const bool whole = is_whole(row, c);
    uint32_t doubts = 0, first = 0;
    for (; first + WIDE <= row->columns; first += WIDE)
        doubts |= step_make(row, first, WIDE, whole, c, results);
    if (first < row->columns) doubts |= step_make(row, first, SIM_ROW_STEP, whole, c, results);
    return doubts;
}

static inline __attribute__((always_inline)) void integers_make(uint32_t columns, uint32_t count, const int32_t *a,
                                                                const int32_t *b, int32_t *sums) {
    for (uint32_t first = 0; first < columns; first += SIM_ROW_STEP) {
        int32_t part[SIM_ROW_STEP] = {0};
        for (uint32_t k = 0; k < count; k++)
            for (uint32_t i = 0; i < SIM_ROW_STEP; i++)
                part[i] += a[k] * b[k * columns + first + i];
        memcpy(sums + first, part, sizeof part);
    }
}

#ifdef __x86_64__
/* Twice as many side by side as a baseline x86-64 has. */
__attribute__((target("avx2"))) static uint32_t singles_make_avx2(const sim_row *row, const float *c,
                                                                  uint32_t *results) {
    return singles_make(row, c, results);
}

__attribute__((target("avx2"))) static void integers_make_avx2(uint32_t columns, uint32_t k, const int32_t *a,
                                                               const int32_t *b, int32_t *sums) {
    integers_make(columns, k, a, b, sums);
}
#define TRY_WIDE(call) \
    if (__builtin_cpu_supports("avx2")) return call
#else
#define TRY_WIDE(call)
#endif

uint32_t sim_row_singles(const sim_row *row, const float *c, uint32_t *results) {
    TRY_WIDE(singles_make_avx2(row, c, results));
    return singles_make(row, c, results);
}

void sim_row_integers(uint32_t columns, uint32_t k, const int32_t *a, const int32_t *b, int32_t *sums) {
    TRY_WIDE(integers_make_avx2(columns, k, a, b, sums));
    integers_make(columns, k, a, b, sums);
}
