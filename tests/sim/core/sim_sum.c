#include "tests/sim/core/sim_sum.h"
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool sim_sum_mode_named(const char *text, sim_sum_mode *out_mode) {
    static const char *const names[] = {"exact", "sequential", "truncating", "hopper"};
    if (!text) return true;
    for (int i = 0; i < SIM_SUM_MODES; i++) {
        if (strcmp(text, names[i]) != 0) continue;
        *out_mode = (sim_sum_mode)i;
        return true;
    }
    return false;
}

/* What a sum rounds away: a + b = sum + error, exactly. */
static double add_error(double a, double b, double sum) {
    double part = sum - a;
    return (a - (sum - part)) + (b - part);
}

/* ---- Exact ---- */

/* Numbers whose sum is meant, of growing magnitude, no two of them with a bit in the same place. */
typedef struct expansion {
    double parts[2 * SIM_SUM_COUNT_MAX + 1];
    int count;
} expansion;

static void expansion_add(expansion *x, double value) {
    int kept = 0;
    for (int i = 0; i < x->count; i++) {
        double sum = value + x->parts[i], error = add_error(value, x->parts[i], sum);
        if (error != 0) x->parts[kept++] = error;
        value = sum;
    }
    if (value != 0 || !kept) x->parts[kept++] = value;
    x->count = kept;
}

/* The sum rounded to odd: any narrower rounding of it is that of the sum. */
static double expansion_odd(const expansion *x) {
    double sum = 0;
    for (int i = 0; i < x->count; i++)
        sum = sim_add_odd(sum, x->parts[i]);
    return sum;
}

/* The sum rounded to nearest even. */
static double expansion_nearest(const expansion *x) {
    int i = x->count - 1;
    double high = x->parts[i], low = 0;
    while (i > 0 && low == 0) {
        double before = high;
        high = before + x->parts[--i];
        low = add_error(before, x->parts[i], high);
    }
    /* A tie that was rounded to even, but the rest says which way it should have gone. */
    if (i > 0 && low != 0 && (low < 0) == (x->parts[i - 1] < 0)) {
        double moved = high + 2 * low;
        if (moved - high == 2 * low) high = moved;
    }
    return high;
}

/* The sum if f64 holds it, step by step; *out_inexact says that it does not. */
static double sum_plain(double addend, const double *a, const double *b, int count, bool *out_inexact) {
    double sum = addend;
    uint64_t lost = 0; /* the bits of all errors: but for the sign, 0 has none */
    for (int i = 0; i < count; i++) {
        double product = a[i] * b[i], next = sum + product, error = add_error(sum, product, next);
        uint64_t bits;
        memcpy(&bits, &error, sizeof bits);
        lost |= bits;
        sum = next;
    }
    *out_inexact = lost << 1 != 0;
    return sum;
}

static double sum_exact(double addend, const double *a, const double *b, int count) {
    bool inexact;
    double sum = sum_plain(addend, a, b, count, &inexact);
    if (!inexact || !isfinite(sum)) return sum;
    expansion x = {.parts = {addend}, .count = 1};
    for (int i = 0; i < count; i++)
        expansion_add(&x, a[i] * b[i]);
    return expansion_odd(&x);
}

/* ---- Truncating ---- */

static int exponent_of(double value) {
    if (value == 0) return -5000;
    int exponent;
    frexp(value, &exponent);
    return exponent;
}

/* 2^scale times a value: by a factor of 2^scale where f64 has that. */
static double scaled(double value, int scale, double factor) {
    return factor != 0 ? value * factor : ldexp(value, scale);
}

/* A product cut off to a multiple of 2^-scale, in those units. */
static double units(double a, double b, int scale, double factor) {
    double product = a * b, exact = scaled(product, scale, factor), whole = trunc(exact);
    /* Of f64 the product was rounded: what it is too large by must not make a unit. */
    double error = whole == exact ? fma(a, b, -product) : 0;
    return error != 0 && (error < 0) == (product > 0) ? whole - copysign(1, product) : whole;
}

/* The sum in units of 2^*out_scale, a whole number. */
static double sum_units(int bits, double addend, const double *a, const double *b, int count, int *out_scale) {
    int most = exponent_of(addend);
    for (int i = 0; i < count; i++) {
        int exponent = exponent_of(a[i] * b[i]);
        if (exponent > most) most = exponent;
    }
    int scale = bits - most;
    double factor = abs(scale) < 1000 ? sim_power_of_two(scale) : 0, sum = units(addend, 1, scale, factor);
    for (int i = 0; i < count; i++)
        sum += units(a[i], b[i], scale, factor);
    *out_scale = -scale;
    return sum;
}

/* ---- All ---- */

static uint32_t single(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return isnan(value) ? 0x7fc00000 : bits;
}

static uint32_t sum_sequential(sim_format format, double addend, const double *a, const double *b, int count) {
    if (format == SIM_f32) {
        float sum = (float)addend;
        for (int i = 0; i < count; i++)
            sum = (float)sim_add_odd(sum, a[i] * b[i]);
        return single(sum);
    }
    uint32_t bits = sim_encode(format, addend, SIM_ROUND_NEAREST_EVEN, false);
    for (int i = 0; i < count; i++) {
        double sum = sim_add_odd(sim_decode(format, bits), a[i] * b[i]);
        bits = sim_encode(format, sum, SIM_ROUND_NEAREST_EVEN, false);
    }
    return bits;
}

static uint32_t sum_truncating(sim_format format, double addend, const double *a, const double *b, int count) {
    static const int bits[] = {[SIM_f32] = 24, [SIM_f16] = 11, [SIM_bf16] = 8};
    bool inexact;
    double sum = sum_plain(addend, a, b, count, &inexact);
    int scale;
    if (!isfinite(sum)) return sim_encode(format, sum, SIM_ROUND_ZERO, false);
    if (inexact || sum != 0) {
        double whole = sum_units(bits[format], addend, a, b, count, &scale);
        sum = ldexp(whole, scale);
    }
    const double limit = format == SIM_f16 ? 65536.0 : 0x1p128;
    if (fabs(sum) >= limit) sum = copysign(INFINITY, sum);
    return sim_encode(format, sum, SIM_ROUND_ZERO, false);
}

uint32_t sim_sum(sim_sum_mode mode, sim_format format, double addend, const double *a, const double *b, int count) {
    assert(count <= SIM_SUM_COUNT_MAX);
    if (mode == SIM_SUM_TRUNCATING) return sum_truncating(format, addend, a, b, count);
    if (mode == SIM_SUM_SEQUENTIAL) return sum_sequential(format, addend, a, b, count);
    double sum = sum_exact(addend, a, b, count);
    return format == SIM_f32 ? single((float)sum) : sim_encode(format, sum, SIM_ROUND_NEAREST_EVEN, false);
}

enum { SPAN_MOST = 4096 }; /* far beyond any exponent */

static inline sim_span span_with(sim_span span, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    const int exponent = (int)(bits >> 52 & 0x7ff);
    if (bits << 1 == 0) return span;
    if (exponent == 0 || exponent == 0x7ff) return (sim_span){-3 * SPAN_MOST, 3 * SPAN_MOST};
    const uint64_t whole = (bits & ((1ull << 52) - 1)) | 1ull << 52;
    const int low = exponent - 1075 + __builtin_ctzll(whole), high = exponent - 1022;
    return (sim_span){low < span.low ? low : span.low, high > span.high ? high : span.high};
}

sim_span sim_span_of(const double *values, int count) {
    sim_span span = {SPAN_MOST, -SPAN_MOST};
    for (int i = 0; i < count; i++)
        span = span_with(span, values[i]);
    return span;
}

/* The sum of what is not rounded, in whatever order. */
static double sum_whole(double addend, const double *a, const double *b, int count) {
    double even = addend, odd = 0;
    for (int i = 0; i + 1 < count; i += 2) {
        even += a[i] * b[i];
        odd += a[i + 1] * b[i + 1];
    }
    return even + odd + (count % 2 ? a[count - 1] * b[count - 1] : 0);
}

uint32_t sim_sum_spanned(sim_format format, double addend, const double *a, const double *b, int count, sim_span of_a,
                         sim_span of_b) {
    enum { DIGITS = 53 };
    const int doublings = 64 - __builtin_clzll((unsigned long long)count | 1); /* 2^doublings is more than count */
    const sim_span of_addend = span_with((sim_span){SPAN_MOST, -SPAN_MOST}, addend);
    const int product_low = of_a.low + of_b.low, product_high = of_a.high + of_b.high;
    const int low = product_low < of_addend.low ? product_low : of_addend.low;
    const int high = product_high > of_addend.high ? product_high : of_addend.high;
    if (high + doublings - low <= DIGITS && low > -1000) {
        const double sum = sum_whole(addend, a, b, count);
        if (sum != 0 && format == SIM_f32) return single((float)sum);
        if (sum != 0) return sim_encode(format, sum, SIM_ROUND_NEAREST_EVEN, false);
    }
    return sim_sum(SIM_SUM_EXACT, format, addend, a, b, count);
}

double sim_sum_f64(sim_sum_mode mode, double addend, const double *a, const double *b, int count) {
    assert(count <= SIM_SUM_COUNT_MAX);
    double sum = addend;
    for (int i = 0; i < count; i++)
        sum = fma(a[i], b[i], sum);
    if (mode == SIM_SUM_SEQUENTIAL || !isfinite(sum)) return sum;
    if (mode == SIM_SUM_TRUNCATING) {
        int scale;
        /* Three bits less than f64 has, so that the sum of eight whole numbers is exact. */
        double whole = sum_units(50, addend, a, b, count, &scale);
        return sum == 0 ? sum : ldexp(whole, scale);
    }
    expansion x = {.parts = {addend}, .count = 1};
    for (int i = 0; i < count; i++) {
        double product = a[i] * b[i];
        expansion_add(&x, product);
        expansion_add(&x, fma(a[i], b[i], -product));
    }
    double nearest = expansion_nearest(&x);
    return nearest == 0 && sum == 0 ? sum : nearest;
}
