/* cvt of PTX against exact integer arithmetic: types of up to 16 bits exhaustively, wider ones over edge values and
 * random ones. */
#include "tests/sim/exact.h"
#include "tests/sim/ptx_harness.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { COUNT = 1 << 16 };

static uint64_t seed;
static size_t count = COUNT; /* of the present operands */

/* ---- Formats, read by their definitions ---- */

typedef struct format {
    const char *name;
    uint32_t bits;
    int exponent, mantissa;
    uint64_t nan;
} format;

static const format f16 = {"f16", 16, 5, 10, 0x7fff}, bf16 = {"bf16", 16, 8, 7, 0x7fff},
                    f32 = {"f32", 32, 8, 23, 0x7fffffff}, f64 = {"f64", 64, 11, 52, 0x7ff8000000000000};
static const format *const formats[] = {&f16, &bf16, &f32, &f64};

static const char *const rounding_names[] = {"rn", "rz", "rm", "rp", "rna"};

static uint64_t infinity_of(const format *f) {
    return ((1ull << f->exponent) - 1) << f->mantissa;
}

static uint64_t sign_of(const format *f) {
    return 1ull << (f->exponent + f->mantissa);
}

/* Of a format whose upper exponent is like the others if finite. */
static double value_in(uint64_t bits, int exponent_bits, int mantissa_bits) {
    uint64_t sign = 1ull << (exponent_bits + mantissa_bits), magnitude = bits & (sign - 1);
    uint64_t exponent = magnitude >> mantissa_bits, mantissa = magnitude & ((1ull << mantissa_bits) - 1);
    int power = (exponent ? (int)exponent : 1) - ((1 << (exponent_bits - 1)) - 1) - mantissa_bits;
    double value = ldexp((double)(mantissa + (exponent ? 1ull << mantissa_bits : 0)), power);
    return bits & sign ? -value : value;
}

static double value_of(const format *f, uint64_t bits) {
    uint64_t magnitude = bits & (sign_of(f) - 1);
    if (magnitude > infinity_of(f)) return NAN;
    if (magnitude == infinity_of(f)) return bits & sign_of(f) ? -INFINITY : INFINITY;
    return value_in(bits, f->exponent, f->mantissa);
}

/* A value rounded to an IEEE format, NaN as the format has it. */
static uint64_t rounded(const format *f, double value, exact_rounding rounding) {
    uint64_t sign = signbit(value) ? sign_of(f) : 0;
    if (isnan(value)) return f->nan;
    if (isinf(value)) return infinity_of(f) | sign;
    if (value == 0) return sign;
    exact sum = {{0}};
    exact_add_product(&sum, value, 1);
    return exact_round(&sum, f->exponent, f->mantissa, rounding);
}

static uint64_t one_of(const format *f) {
    return infinity_of(f) / 2 >> f->mantissa << f->mantissa;
}

/* ---- Operands ---- */

/* All patterns of 16 bits; of wider ones edges around every power of two, and random numbers of all sizes. */
static void fill(uint64_t *raw, uint32_t bits, int mantissa) {
    uint64_t state = seed;
    count = bits <= 16 ? COUNT : COUNT / 8;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t number = sim_random(&state);
        raw[i] = i;
        if (bits <= 16) continue;
        raw[i] = number >> (64 - bits);
        if (i % 4 == 1)
            raw[i] = (number >> (64 - bits) >> mantissa << mantissa) + number % 5 - 2; /* about a power of two */
        if (i % 4 == 2) raw[i] = number >> (64 - bits) >> number % bits;               /* a small integer */
        if (i % 4 == 3) { /* digits that end soon after where a narrower format ends */
            uint32_t zeros = (uint32_t)(number >> 8) % (uint32_t)(mantissa + 1);
            raw[i] = number >> (64 - bits) >> zeros << zeros;
        }
        if (bits < 64) raw[i] &= (1ull << bits) - 1;
    }
}

static void *pack(const uint64_t *raw, uint32_t bits) {
    uint8_t *bytes = malloc(count * bits / 8);
    assert_non_null(bytes);
    for (size_t i = 0; i < count; i++)
        memcpy(bytes + i * bits / 8, &raw[i], bits / 8);
    return bytes;
}

static void run(const char *target, const char *code, uint32_t result_bits, uint32_t source_bits, const uint64_t *a,
                const uint64_t *b, uint64_t *results) {
    harness_case test = {.target = target, .code = code, .result_bits = result_bits, .source_bits = {source_bits}};
    if (b) test.source_bits[1] = source_bits;
    void *first = pack(a, source_bits), *second = b ? pack(b, source_bits) : NULL;
    const void *sources[HARNESS_SOURCES] = {first, second};
    uint8_t *bytes = malloc(count * result_bits / 8);
    assert_non_null(bytes);
    harness_run(&test, count, bytes, sources);
    memset(results, 0, count * sizeof *results);
    for (size_t i = 0; i < count; i++)
        memcpy(&results[i], bytes + i * result_bits / 8, result_bits / 8);
    free(first);
    free(second);
    free(bytes);
}

static void expect(const char *code, uint64_t a, uint64_t b, uint64_t is, uint64_t wanted) {
    if (is == wanted) return;
    fail_msg("%s of 0x%llx 0x%llx is 0x%llx, not 0x%llx", code, (unsigned long long)a, (unsigned long long)b,
             (unsigned long long)is, (unsigned long long)wanted);
}

static uint64_t raw[COUNT], other[COUNT], results[COUNT];

/* ---- Floating point to floating point ---- */

enum { FTZ = 1, SAT = 2, RELU = 4, SATFINITE = 8 };

static uint64_t flushed(const format *f, uint64_t bits) {
    return f != &f32 || (bits & (sign_of(f) - 1)) >> f->mantissa ? bits : bits & sign_of(f);
}

static uint64_t finished(const format *f, uint64_t bits, uint32_t flags) {
    bool minus = bits & sign_of(f), nan = (bits & (sign_of(f) - 1)) > infinity_of(f);
    if (flags & FTZ) bits = flushed(f, bits);
    if (flags & SAT) return nan || minus ? 0 : bits > one_of(f) ? one_of(f) : bits;
    if (nan) return bits;
    if (flags & SATFINITE && (bits & (sign_of(f) - 1)) == infinity_of(f)) bits--;
    return flags & RELU && minus ? 0 : bits;
}

static void check_real(const format *to, const format *from, int rounding, uint32_t flags) {
    char code[128];
    snprintf(code, sizeof code, "cvt%s%s%s%s%s%s.%s.%s %%d, %%a;", rounding < 0 ? "" : ".",
             rounding < 0 ? "" : rounding_names[rounding], flags & FTZ ? ".ftz" : "", flags & SAT ? ".sat" : "",
             flags & RELU ? ".relu" : "", flags & SATFINITE ? ".satfinite" : "", to->name, from->name);
    fill(raw, from->bits, from->mantissa);
    run("sm_90", code, to->bits, from->bits, raw, NULL, results);
    for (size_t i = 0; i < count; i++) {
        uint64_t a = flags & FTZ ? flushed(from, raw[i]) : raw[i];
        uint64_t wanted = rounded(to, value_of(from, a), rounding < 0 ? EXACT_RN : (exact_rounding)rounding);
        expect(code, raw[i], 0, results[i], finished(to, wanted, flags));
    }
}

static void between_floating_point_types(void **state) {
    (void)state;
    for (int t = 0; t < 4; t++) {
        for (int s = 0; s < 4; s++) {
            const format *to = formats[t], *from = formats[s];
            bool narrows = to != from && to->mantissa < 52 && (to->bits < from->bits || to->bits == 16);
            bool brain = to == &bf16 || from == &bf16, single = to == &f32 || from == &f32;
            for (int r = narrows ? 0 : -1; r < (narrows ? 4 : 0); r++) {
                for (uint32_t flags = 0; flags < 4; flags++) {
                    if ((flags & SAT && brain) || (flags & FTZ && !single)) continue;
                    check_real(to, from, r, flags);
                }
                if (from != &f32 || to->bits != 16 || r > EXACT_RZ) continue;
                check_real(to, from, r, RELU);
                check_real(to, from, r, SATFINITE);
                check_real(to, from, r, RELU | SATFINITE);
            }
        }
    }
}

static double whole(double value, int rounding) {
    double down = floor(value), rest = value - down;
    switch (rounding) {
    case EXACT_RN:
        return rest > 0.5 || (rest == 0.5 && floor(down / 2) * 2 != down) ? down + 1 : down;
    case EXACT_RZ:
        return value < 0 ? ceil(value) : down;
    case EXACT_RM:
        return down;
    default:
        return ceil(value);
    }
}

static void to_integral_values(void **state) {
    (void)state;
    for (int n = 0; n < 4 * 4 * 2; n++) {
        const format *f = formats[n / 8];
        int r = n % 4;
        bool sat = n & 4;
        if (sat && f == &bf16) continue;
        char code[96];
        snprintf(code, sizeof code, "cvt.%si%s.%s.%s %%d, %%a;", rounding_names[r], sat ? ".sat" : "", f->name,
                 f->name);
        fill(raw, f->bits, f->mantissa);
        run("sm_90", code, f->bits, f->bits, raw, NULL, results);
        for (size_t i = 0; i < count; i++) {
            double value = value_of(f, raw[i]);
            if (isfinite(value)) value = copysign(whole(value, r), value);
            expect(code, raw[i], 0, results[i], finished(f, rounded(f, value, EXACT_RN), sat ? SAT : 0));
        }
    }
}

static void to_tf32(void **state) {
    (void)state;
    static const format tf32 = {"tf32", 19, 8, 10, 0x3ffff};
    static const struct {
        const char *code;
        exact_rounding rounding;
        uint32_t flags;
    } rows[] = {{"cvt.rna.tf32.f32 %d, %a;", EXACT_RNA, 0},
                {"cvt.rna.satfinite.tf32.f32 %d, %a;", EXACT_RNA, SATFINITE},
                {"cvt.rn.tf32.f32 %d, %a;", EXACT_RN, 0},
                {"cvt.rz.relu.tf32.f32 %d, %a;", EXACT_RZ, RELU},
                {"cvt.rn.relu.satfinite.tf32.f32 %d, %a;", EXACT_RN, RELU | SATFINITE}};
    fill(raw, 32, 23);
    for (size_t n = 0; n < sizeof rows / sizeof *rows; n++) {
        run("sm_100", rows[n].code, 32, 32, raw, NULL, results);
        for (size_t i = 0; i < count; i++) {
            uint64_t wanted = finished(&tf32, rounded(&tf32, value_of(&f32, raw[i]), rows[n].rounding), rows[n].flags);
            expect(rows[n].code, raw[i], 0, results[i], wanted == tf32.nan ? 0x7fffffff : wanted << 13);
        }
    }
}

/* ---- Integers ---- */

typedef struct integer {
    const char *name;
    uint32_t bits;
    bool is_signed;
} integer;

static const integer integers[] = {{"u8", 8, false}, {"u16", 16, false}, {"u32", 32, false}, {"u64", 64, false},
                                   {"s8", 8, true},  {"s16", 16, true},  {"s32", 32, true},  {"s64", 64, true}};

static __int128 integer_of(const integer *t, uint64_t bits) {
    uint64_t cut = t->bits < 64 ? bits & ((1ull << t->bits) - 1) : bits;
    bool minus = t->is_signed && cut >> (t->bits - 1);
    return minus ? (__int128)cut - ((__int128)1 << t->bits) : (__int128)cut;
}

static __int128 least(const integer *t) {
    return t->is_signed ? -((__int128)1 << (t->bits - 1)) : 0;
}

static __int128 greatest(const integer *t) {
    return ((__int128)1 << (t->bits - t->is_signed)) - 1;
}

static uint64_t in_register(const integer *t, __int128 value, uint32_t register_bits) {
    uint64_t bits = (uint64_t)integer_of(t, (uint64_t)value);
    return register_bits < 64 ? bits & ((1ull << register_bits) - 1) : bits;
}

/* 8-bit integers live in wider registers, and so may others. */
static uint32_t register_of(const integer *t, bool wide) {
    uint32_t least_bits = t->bits == 8 ? 16 : t->bits;
    return wide && least_bits < 64 ? least_bits * 2 : least_bits;
}

static void between_integers(void **state) {
    (void)state;
    for (int n = 0; n < 8 * 8 * 4; n++) {
        const integer *to = &integers[n / 32], *from = &integers[n / 4 % 8];
        bool sat = n & 1, wide = n & 2;
        if (sat && least(from) >= least(to) && greatest(from) <= greatest(to)) continue; /* which is refused */
        uint32_t source_bits = register_of(from, wide), result_bits = register_of(to, wide);
        char code[96];
        snprintf(code, sizeof code, "cvt%s.%s.%s %%d, %%a;", sat ? ".sat" : "", to->name, from->name);
        fill(raw, source_bits, (int)source_bits / 2);
        run("sm_90", code, result_bits, source_bits, raw, NULL, results);
        for (size_t i = 0; i < count; i++) {
            __int128 value = integer_of(from, raw[i]);
            if (sat && value < least(to)) value = least(to);
            if (sat && value > greatest(to)) value = greatest(to);
            expect(code, raw[i], 0, results[i], in_register(to, value, result_bits));
        }
    }
}

static void integers_to_floating_point(void **state) {
    (void)state;
    for (int n = 0; n < 8 * 4 * 4; n++) {
        const integer *from = &integers[n / 16];
        const format *to = formats[n / 4 % 4];
        uint32_t source_bits = to == &bf16 ? from->bits : register_of(from, false);
        char code[96];
        snprintf(code, sizeof code, "cvt.%s.%s.%s %%d, %%a;", rounding_names[n % 4], to->name, from->name);
        fill(raw, source_bits, (int)source_bits / 2);
        run("sm_90", code, to->bits, source_bits, raw, NULL, results);
        for (size_t i = 0; i < count; i++) {
            __int128 value = integer_of(from, raw[i]);
            exact sum = {{0}};
            uint64_t magnitude = (uint64_t)(value < 0 ? -value : value);
            exact_add_product(&sum, (double)(magnitude >> 32), value < 0 ? -0x1p32 : 0x1p32);
            exact_add_product(&sum, (double)(uint32_t)magnitude, value < 0 ? -1 : 1);
            expect(code, raw[i], 0, results[i], exact_round(&sum, to->exponent, to->mantissa, (exact_rounding)(n % 4)));
        }
    }
}

static void floating_point_to_integers(void **state) {
    (void)state;
    for (int n = 0; n < 8 * 4 * 4; n++) {
        const integer *to = &integers[n / 16];
        const format *from = formats[n / 4 % 4];
        uint32_t result_bits = from == &bf16 ? to->bits : register_of(to, false);
        char code[96];
        snprintf(code, sizeof code, "cvt.%si.%s.%s %%d, %%a;", rounding_names[n % 4], to->name, from->name);
        fill(raw, from->bits, from->mantissa);
        run("sm_90", code, result_bits, from->bits, raw, NULL, results);
        for (size_t i = 0; i < count; i++) {
            double value = value_of(from, raw[i]);
            __int128 wanted;
            if (isnan(value)) {
                wanted = from == &f64 || to->bits == 64 ? (__int128)1 << (to->bits - 1) : 0;
            } else {
                double limited = fmax(fmin(value, 0x1p70), -0x1p70);
                wanted = (__int128)whole(limited, n % 4);
                if (wanted < least(to)) wanted = least(to);
                if (wanted > greatest(to)) wanted = greatest(to);
            }
            expect(code, raw[i], 0, results[i], in_register(to, wanted, result_bits));
        }
    }
}

/* ---- Packed types ---- */

/* A format of 8 bits or fewer by the list of its finite values: which of them is nearest, the even one of two. */
typedef struct small {
    const char *name;
    uint32_t bits; /* with the zeros above an element */
    int exponent, mantissa;
    uint32_t largest, nan; /* nan of FP4 and FP6: their largest */
} small;

static const small e4m3 = {"e4m3x2", 8, 4, 3, 0x7e, 0x7f}, e5m2 = {"e5m2x2", 8, 5, 2, 0x7b, 0x7f},
                   e2m1 = {"e2m1x2", 4, 2, 1, 0x7, 0x7}, e2m3 = {"e2m3x2", 8, 2, 3, 0x1f, 0x1f},
                   e3m2 = {"e3m2x2", 8, 3, 2, 0x1f, 0x1f};

static uint32_t nearest(const small *f, double value, bool relu) {
    static const small *listed;
    static double values[128];
    uint32_t sign = 1u << (f->exponent + f->mantissa), best = 0;
    for (uint32_t bits = 0; listed != f && bits <= f->largest; bits++)
        values[bits] = value_in(bits, f->exponent, f->mantissa);
    listed = f;
    if (isnan(value)) return f->nan;
    if (relu && signbit(value)) return 0;
    for (uint32_t bits = 1; bits <= f->largest; bits++) {
        double above = values[bits] - fabs(value), below = fabs(value) - values[bits - 1];
        if (below > above || (below == above && bits % 2 == 0)) best = bits;
    }
    return signbit(value) ? best | sign : best;
}

static void f32_pairs_to_small_types(void **state) {
    (void)state;
    count = COUNT;
    static const small *const types[] = {&e4m3, &e5m2, &e2m1, &e2m3, &e3m2};
    for (int n = 0; n < 10; n++) {
        const small *f = types[n / 2];
        bool relu = n & 1;
        char code[96];
        snprintf(code, sizeof code, "cvt.rn.satfinite%s.%s.f32 %%d, %%a, %%b;", relu ? ".relu" : "", f->name);
        uint64_t random = seed;
        for (size_t i = 0; i < count; i++) {
            /* Every f16 value is among them, moved by the f32's last place now and then. */
            double value = value_of(&f16, i);
            raw[i] = rounded(&f32, isinf(value) ? value * 2 : value, EXACT_RN) ^ (i & 1 ? 0 : sim_random(&random) % 2);
            other[i] = sim_random(&random) >> 32;
        }
        run("sm_100a", code, f->bits * 2, 32, raw, other, results);
        for (size_t i = 0; i < count; i++) {
            uint32_t high = nearest(f, value_of(&f32, raw[i]), relu), low = nearest(f, value_of(&f32, other[i]), relu);
            expect(code, raw[i], other[i], results[i], high << f->bits | low);
        }
    }
}

static void f16_pairs_to_small_types(void **state) {
    (void)state;
    count = COUNT;
    static const small *const types[] = {&e4m3, &e5m2, &e2m1};
    for (int n = 0; n < 6; n++) {
        const small *f = types[n / 2];
        bool relu = n & 1;
        char code[96];
        snprintf(code, sizeof code, "cvt.rn.satfinite%s.%s.f16x2 %%d, %%a;", relu ? ".relu" : "", f->name);
        for (size_t i = 0; i < count; i++)
            raw[i] = i << 16 | (0xffff & (i * 40503));
        run("sm_100a", code, f->bits * 2, 32, raw, NULL, results);
        for (size_t i = 0; i < count; i++) {
            uint32_t high = nearest(f, value_of(&f16, raw[i] >> 16), relu);
            uint32_t low = nearest(f, value_of(&f16, raw[i] & 0xffff), relu);
            expect(code, raw[i], 0, results[i], high << f->bits | low);
        }
    }
}

static uint64_t widened(const small *f, uint32_t bits) {
    uint32_t magnitude = bits & ((1u << (f->exponent + f->mantissa)) - 1);
    bool minus = bits >> (f->exponent + f->mantissa) & 1;
    if (magnitude > f->largest) {
        bool infinite = f == &e5m2 && magnitude == 0x7c;
        return infinite ? 0x7c00 | (minus ? 0x8000 : 0) : f16.nan;
    }
    return rounded(&f16, value_in(bits, f->exponent, f->mantissa), EXACT_RN);
}

static void small_types_to_f16_pairs(void **state) {
    (void)state;
    count = COUNT;
    static const small *const types[] = {&e4m3, &e5m2, &e2m1, &e2m3, &e3m2};
    for (int n = 0; n < 5; n++) {
        const small *f = types[n];
        char code[96];
        uint32_t half = (2u << (f->exponent + f->mantissa)) - 1;
        snprintf(code, sizeof code, "cvt.rn.f16x2.%s %%d, %%a;", f->name);
        for (size_t i = 0; i < count; i++)
            raw[i] = i & (half | half << f->bits);
        run("sm_100a", code, 32, f->bits * 2, raw, NULL, results);
        for (size_t i = 0; i < count; i++) {
            uint64_t high = widened(f, (uint32_t)raw[i] >> f->bits & half), low = widened(f, (uint32_t)raw[i] & half);
            expect(code, raw[i], 0, results[i], high << 16 | low);
        }
    }
}

static void f32_pairs_to_16_bits(void **state) {
    (void)state;
    static const struct {
        const char *modifiers;
        exact_rounding rounding;
        uint32_t flags;
    } rows[] = {{"rn", EXACT_RN, 0},
                {"rz", EXACT_RZ, 0},
                {"rn.relu", EXACT_RN, RELU},
                {"rn.satfinite", EXACT_RN, SATFINITE},
                {"rz.relu.satfinite", EXACT_RZ, RELU | SATFINITE}};
    fill(raw, 32, 23);
    for (size_t i = 0; i < count; i++)
        other[i] = raw[count - 1 - i];
    for (size_t n = 0; n < 2 * sizeof rows / sizeof *rows; n++) {
        const format *f = formats[n % 2];
        char code[96];
        snprintf(code, sizeof code, "cvt.%s.%sx2.f32 %%d, %%a, %%b;", rows[n / 2].modifiers, f->name);
        run("sm_90", code, 32, 32, raw, other, results);
        for (size_t i = 0; i < count; i++) {
            uint64_t high = finished(f, rounded(f, value_of(&f32, raw[i]), rows[n / 2].rounding), rows[n / 2].flags);
            uint64_t low = finished(f, rounded(f, value_of(&f32, other[i]), rows[n / 2].rounding), rows[n / 2].flags);
            expect(code, raw[i], other[i], results[i], high << 16 | low);
        }
    }
}

/* .rs: random bits are added where the digits that go begin, and what is left of those digits goes. */
static uint64_t rounded_randomly(const format *f, uint32_t bits, uint32_t random, bool relu, bool finite) {
    uint32_t magnitude = bits & 0x7fffffff, count_of_random = f == &f16 ? 13 : 16;
    uint64_t sign = bits >> 31 ? sign_of(f) : 0;
    if (magnitude > 0x7f800000) return f->nan;
    if (relu && sign) return 0;
    if (magnitude == 0x7f800000) return sign | (infinity_of(f) - finite);
    int exponent = (int)(magnitude >> 23 ? magnitude >> 23 : 1), least_normal = f == &f16 ? 113 : 1;
    uint64_t digits = magnitude >> 23 ? (magnitude & 0x7fffff) | 0x800000 : magnitude;
    uint32_t gone = count_of_random + (uint32_t)(exponent < least_normal ? least_normal - exponent : 0);
    if (gone > 40) return sign; /* less than any random number reaches */
    digits += (uint64_t)(random & ((1u << count_of_random) - 1)) << (gone - count_of_random);
    digits >>= gone;
    uint64_t above = exponent > least_normal ? (uint64_t)(exponent - least_normal) << f->mantissa : 0;
    uint64_t result = digits + above; /* the leading digit counts as a step of the exponent */
    return sign | (result < infinity_of(f) ? result : infinity_of(f) - finite);
}

static void f32_pairs_rounded_randomly(void **state) {
    (void)state;
    static uint32_t first[COUNT], second[COUNT], random[COUNT], d[COUNT];
    fill(raw, 32, 23);
    uint64_t generator = seed;
    for (size_t i = 0; i < count; i++) {
        uint64_t word = sim_random(&generator);
        first[i] = (uint32_t)raw[i];
        second[i] = (uint32_t)raw[count - 1 - i];
        /* Half of them where f16 has few numbers, or none. */
        if (i & 1) second[i] = (second[i] & 0x807fffff) | (uint32_t)(80 + word % 66) << 23;
        random[i] = i % 5 == 0 ? 0 : i % 5 == 1 ? ~0u : (uint32_t)(word >> 32);
    }
    for (int n = 0; n < 8; n++) {
        const format *f = n & 1 ? &bf16 : &f16;
        bool relu = n & 2, finite = n & 4;
        char code[96];
        snprintf(code, sizeof code, "cvt.rs%s%s.%sx2.f32 %%d, %%a, %%b, %%c;", relu ? ".relu" : "",
                 finite ? ".satfinite" : "", f->name);
        harness_case test = {
            .target = "sm_100a", .code = code, .result_bits = 32, .source_bits = {32, 32, 32}, .seed = seed};
        harness_run(&test, count, d, (const void *[HARNESS_SOURCES]){first, second, random});
        for (size_t i = 0; i < count; i++) {
            uint64_t high = rounded_randomly(f, first[i], random[i] >> 16, relu, finite);
            uint64_t low = rounded_randomly(f, second[i], random[i], relu, finite);
            expect(code, first[i], second[i], d[i], high << 16 | low);
        }
    }
}

/* The power of two that bounds a magnitude from below or above, by its f32 exponent. */
static uint64_t power(uint32_t bits, bool up, bool finite) {
    uint32_t magnitude = bits & 0x7fffffff, exponent = magnitude >> 23, mantissa = magnitude & 0x7fffff;
    if (magnitude > 0x7f800000) return 0xff;
    bool above = exponent == 0 ? mantissa > 0x400000 : mantissa != 0; /* than the bound from below */
    uint32_t result = exponent + (up && above && exponent < 255);
    return result == 255 && finite ? 254 : result;
}

static void powers_of_two(void **state) {
    (void)state;
    fill(raw, 32, 23);
    for (size_t i = 0; i < count; i++)
        other[i] = raw[count - 1 - i] & 0xffff0000; /* a bf16 */
    for (int n = 0; n < 8; n++) {
        bool up = n & 1, finite = n & 2, brain = n & 4;
        char code[96];
        snprintf(code, sizeof code, "cvt.%s%s.ue8m0x2.%s;", up ? "rp" : "rz", finite ? ".satfinite" : "",
                 brain ? "bf16x2 %d, %a" : "f32 %d, %a, %b");
        static uint64_t pairs[COUNT];
        for (size_t i = 0; i < count; i++)
            pairs[i] = (raw[i] & 0xffff0000) | other[i] >> 16;
        run("sm_120a", code, 16, 32, brain ? pairs : raw, brain ? NULL : other, results);
        for (size_t i = 0; i < count; i++) {
            uint64_t high = power((uint32_t)(brain ? raw[i] & 0xffff0000 : raw[i]), up, finite);
            expect(code, raw[i], other[i], results[i], high << 8 | power((uint32_t)other[i], up, finite));
        }
    }
    count = COUNT;
    const char *back = "cvt.rn.bf16x2.ue8m0x2 %d, %a;";
    for (size_t i = 0; i < count; i++)
        raw[i] = i;
    run("sm_100f", back, 32, 16, raw, NULL, results);
    for (size_t i = 0; i < count; i++) {
        uint64_t high = i >> 8, low = i & 0xff;
        high = high == 0xff ? 0x7fff : high ? high << 7 : 0x40;
        low = low == 0xff ? 0x7fff : low ? low << 7 : 0x40;
        expect(back, i, 0, results[i], high << 16 | low);
    }
}

/* ---- What is refused ---- */

static void refusals(void **state) {
    (void)state;
    static const struct {
        const char *target, *version, *code, *word;
        uint32_t result_bits, source_bits;
    } rows[] = {
        {"sm_90", "9.0", "cvt.f16.f32 %d, %a;", "rounding", 16, 32},
        {"sm_90", "9.0", "cvt.s32.f32 %d, %a;", "rounding", 32, 32},
        {"sm_90", "9.0", "cvt.f32.s32 %d, %a;", "rounding", 32, 32},
        {"sm_90", "9.0", "cvt.rn.f32.f32 %d, %a;", ".rn", 32, 32},
        {"sm_90", "9.0", "cvt.rni.f32.f64 %d, %a;", "rounding", 32, 64},
        {"sm_90", "9.0", "cvt.ftz.s32.s32 %d, %a;", ".ftz", 32, 32},
        {"sm_90", "9.0", "cvt.rn.sat.bf16.f32 %d, %a;", ".sat", 16, 32},
        {"sm_90", "9.0", "cvt.relu.f32.f16 %d, %a;", ".relu", 32, 16},
        {"sm_75", "9.0", "cvt.rn.bf16.f32 %d, %a;", "sm_80", 16, 32},
        {"sm_80", "9.0", "cvt.rn.bf16.s32 %d, %a;", "sm_90", 16, 32},
        {"sm_80", "9.0", "cvt.ftz.f32.bf16 %d, %a;", "sm_90", 32, 16},
        {"sm_90", "9.0", "cvt.rn.bf16.u8 %d, %a;", "16 bits", 16, 16},
        {"sm_80", "7.0", "cvt.rn.satfinite.f16.f32 %d, %a;", "PTX 8.1", 16, 32},
        {"sm_90", "9.0", "cvt.rp.satfinite.f16.f32 %d, %a;", ".rp", 16, 32},
        {"sm_90", "9.0", "cvt.rm.relu.bf16.f32 %d, %a;", ".rm", 16, 32},
        {"sm_75", "9.0", "cvt.rn.f16x2.f32 %d, %a, %a;", "sm_80", 32, 32},
        {"sm_86", "9.0", "cvt.rn.satfinite.e4m3x2.f32 %d, %a, %a;", "sm_89", 16, 32},
        {"sm_89", "7.8", "cvt.rn.satfinite.e4m3x2.f32 %d, %a, %a;", "PTX 8.1", 16, 32},
        {"sm_90", "9.0", "cvt.rn.e4m3x2.f32 %d, %a, %a;", "satfinite", 16, 32},
        {"sm_90", "9.0", "cvt.rn.satfinite.e4m3x2.bf16x2 %d, %a;", "not simulated", 16, 32},
        {"sm_100", "9.0", "cvt.rn.satfinite.e2m1x2.f32 %d, %a, %a;", "sm_100a", 8, 32},
        {"sm_90a", "9.0", "cvt.rn.f16x2.e2m1x2 %d, %a;", "sm_100", 32, 8},
        {"sm_120", "9.0", "cvt.rz.ue8m0x2.f32 %d, %a, %a;", "sm_100a", 16, 32},
        {"sm_120a", "9.0", "cvt.rn.ue8m0x2.f32 %d, %a, %a;", "rounding", 16, 32},
        {"sm_100a", "9.0", "cvt.rs.satfinite.e4m3x4.f32 %d, {%a, %a, %a, %a}, %a;", "e4m3x4", 32, 32},
        {"sm_120a", "9.0", "cvt.rs.f16x2.f32 %d, %a, %a, %a;", "sm_100a", 32, 32},
        {"sm_90", "9.0", "cvt.sat.s32.s16 %d, %a;", "saturate", 32, 16},
        {"sm_90", "9.0", "cvt.pack.s16.s32 %d, %a, %a;", ".sat", 32, 32},
        {"sm_90", "9.0", "cvt.pack.sat.u8.u32.b32 %d, %a, %a, %a;", "s32", 32, 32},
        {"sm_80", "9.0", "cvt.rn.tf32.f32 %d, %a;", "sm_90", 32, 32},
        {"sm_90", "9.0", "cvt.rm.tf32.f32 %d, %a;", "tf32", 32, 32},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        harness_case test = {.target = rows[i].target,
                             .version = rows[i].version,
                             .code = rows[i].code,
                             .result_bits = rows[i].result_bits,
                             .source_bits = {rows[i].source_bits}};
        const char *why = harness_refusal(&test);
        if (!strstr(why, rows[i].word) || !strstr(why, "cvt.")) fail_msg("%s: \"%s\"", rows[i].code, why);
    }
}

int main(void) {
    seed = harness_seed();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(between_floating_point_types),
        cmocka_unit_test(to_integral_values),
        cmocka_unit_test(to_tf32),
        cmocka_unit_test(between_integers),
        cmocka_unit_test(integers_to_floating_point),
        cmocka_unit_test(floating_point_to_integers),
        cmocka_unit_test(f32_pairs_to_small_types),
        cmocka_unit_test(f16_pairs_to_small_types),
        cmocka_unit_test(small_types_to_f16_pairs),
        cmocka_unit_test(f32_pairs_to_16_bits),
        cmocka_unit_test(f32_pairs_rounded_randomly),
        cmocka_unit_test(powers_of_two),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests_name("ptx_convert", tests, NULL, NULL);
}
