/* Rows of results: columns side by side, as many as the host's vectors have. */
#include "tests/sim/amdgcn/matrix/amd_matrix_row.h"
#include <math.h>
#include <string.h>

/* Numbers that are added up in the order of k. */
static inline __attribute__((always_inline)) void sums_make(const amd_row *row, uint32_t first, const float *c,
                                                            double *sums) {
    for (uint32_t i = 0; i < AMD_ROW_STEP; i++)
        sums[i] = (double)c[first + i];
    for (uint32_t k = 0; k < row->k; k++) {
        const double a = row->a[k], *b = row->b + k * row->columns + first;
        for (uint32_t i = 0; i < AMD_ROW_STEP; i++)
            sums[i] += a * b[i];
    }
}

/* More than all roundings of a sum of 33 numbers in f64 can make, of magnitudes that add up to this. */
static inline __attribute__((always_inline)) void errors_bound(const amd_row *row, uint32_t first, const float *c,
                                                               double *errors) {
    for (uint32_t i = 0; i < AMD_ROW_STEP; i++)
        errors[i] = fabs((double)c[first + i]);
    for (uint32_t k = 0; k < row->k; k++) {
        const double a = fabs(row->a[k]), *b = row->b + k * row->columns + first;
        for (uint32_t i = 0; i < AMD_ROW_STEP; i++)
            errors[i] += a * fabs(b[i]);
    }
    for (uint32_t i = 0; i < AMD_ROW_STEP; i++)
        errors[i] *= 0x1p-46;
}

/* Rounds what the sum may be at least and at most: mostly to one number. */
static inline __attribute__((always_inline)) uint32_t singles_between(const double *sums, const double *errors,
                                                                      uint32_t *results) {
    float least[AMD_ROW_STEP], most[AMD_ROW_STEP];
    uint32_t other[AMD_ROW_STEP], doubts = 0;
    for (uint32_t i = 0; i < AMD_ROW_STEP; i++) {
        least[i] = (float)(sums[i] - errors[i]);
        most[i] = (float)(sums[i] + errors[i]);
    }
    memcpy(results, least, sizeof least);
    memcpy(other, most, sizeof most);
    for (uint32_t i = 0; i < AMD_ROW_STEP; i++)
        doubts |= (uint32_t)(results[i] != other[i] || isnan(least[i])) << i;
    return doubts;
}

/* Whether f64 holds every sum, and all on the way to it. Each c is a multiple of its last place. */
static inline __attribute__((always_inline)) bool is_whole(const amd_row *row, const float *c) {
    enum { DIGITS = 53, BIAS = 127, MANTISSA = 23, DOUBLINGS = 6 /* 2^6 is more than 33 */ };
    int32_t least = 255, most = 0;
    uint32_t bits[AMD_ROW_MAX];
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

static inline __attribute__((always_inline)) uint32_t singles_make(const amd_row *row, const float *c,
                                                                   uint32_t *results) {
    const bool whole = is_whole(row, c);
    uint32_t doubts = 0;
    for (uint32_t first = 0; first < row->columns; first += AMD_ROW_STEP) {
        double sums[AMD_ROW_STEP], errors[AMD_ROW_STEP];
        float rounded[AMD_ROW_STEP];
        sums_make(row, first, c, sums);
        if (whole) {
            for (uint32_t i = 0; i < AMD_ROW_STEP; i++)
                rounded[i] = (float)sums[i];
            memcpy(results + first, rounded, sizeof rounded);
        } else {
            errors_bound(row, first, c, errors);
            doubts |= singles_between(sums, errors, results + first) << first;
        }
    }
    return doubts;
}

static inline __attribute__((always_inline)) void integers_make(uint32_t columns, uint32_t count, const int32_t *a,
                                                                const int32_t *b, int32_t *sums) {
    for (uint32_t first = 0; first < columns; first += AMD_ROW_STEP) {
        int32_t part[AMD_ROW_STEP] = {0};
        for (uint32_t k = 0; k < count; k++)
            for (uint32_t i = 0; i < AMD_ROW_STEP; i++)
                part[i] += a[k] * b[k * columns + first + i];
        memcpy(sums + first, part, sizeof part);
    }
}

#ifdef __x86_64__
/* Twice as many side by side as a baseline x86-64 has. */
__attribute__((target("avx2"))) static uint32_t singles_make_avx2(const amd_row *row, const float *c,
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

uint32_t amd_row_singles(const amd_row *row, const float *c, uint32_t *results) {
    TRY_WIDE(singles_make_avx2(row, c, results));
    return singles_make(row, c, results);
}

void amd_row_integers(uint32_t columns, uint32_t k, const int32_t *a, const int32_t *b, int32_t *sums) {
    TRY_WIDE(integers_make_avx2(columns, k, a, b, sums));
    integers_make(columns, k, a, b, sums);
}
