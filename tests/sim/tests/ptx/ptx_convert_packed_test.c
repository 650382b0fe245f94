/* cvt of PTX to and from packed types, against exact integer arithmetic: 16 bits exhaustively, wider operands over edge
 * values and random ones. What is refused: ptx_convert_test.c. */
#include "tests/sim/tests/ptx/ptx_conversion.h"

static uint64_t other[COUNT]; /* the second operands */

/* Of a format whose upper exponent is like the others if finite. */
static double value_in(uint64_t bits, int exponent_bits, int mantissa_bits) {
    uint64_t sign = 1ull << (exponent_bits + mantissa_bits), magnitude = bits & (sign - 1);
    uint64_t exponent = magnitude >> mantissa_bits, mantissa = magnitude & ((1ull << mantissa_bits) - 1);
    int power = (exponent ? (int)exponent : 1) - ((1 << (exponent_bits - 1)) - 1) - mantissa_bits;
    double value = ldexp((double)(mantissa + (exponent ? 1ull << mantissa_bits : 0)), power);
    return bits & sign ? -value : value;
}

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
            double value = float_value(&float_f16, i);
            raw[i] =
                rounded(&float_f32, isinf(value) ? value * 2 : value, EXACT_RN) ^ (i & 1 ? 0 : sim_random(&random) % 2);
            other[i] = sim_random(&random) >> 32;
        }
        run("sm_100a", code, f->bits * 2, 32, raw, other, results);
        for (size_t i = 0; i < count; i++) {
            uint32_t high = nearest(f, float_value(&float_f32, raw[i]), relu),
                     low = nearest(f, float_value(&float_f32, other[i]), relu);
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
            uint32_t high = nearest(f, float_value(&float_f16, raw[i] >> 16), relu);
            uint32_t low = nearest(f, float_value(&float_f16, raw[i] & 0xffff), relu);
            expect(code, raw[i], 0, results[i], high << f->bits | low);
        }
    }
}

static uint64_t widened(const small *f, uint32_t bits) {
    uint32_t magnitude = bits & ((1u << (f->exponent + f->mantissa)) - 1);
    bool minus = bits >> (f->exponent + f->mantissa) & 1;
    if (magnitude > f->largest) {
        bool infinite = f == &e5m2 && magnitude == 0x7c;
        return infinite ? 0x7c00 | (minus ? 0x8000 : 0) : float_f16.nan;
    }
    return rounded(&float_f16, value_in(bits, f->exponent, f->mantissa), EXACT_RN);
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
                {"rn.relu", EXACT_RN, FLOAT_RELU},
                {"rn.satfinite", EXACT_RN, FLOAT_SATFINITE},
                {"rz.relu.satfinite", EXACT_RZ, FLOAT_RELU | FLOAT_SATFINITE}};
    fill(raw, 32, 23);
    for (size_t i = 0; i < count; i++)
        other[i] = raw[count - 1 - i];
    for (size_t n = 0; n < 2 * sizeof rows / sizeof *rows; n++) {
        const float_format *f = n % 2 ? &float_bf16 : &float_f16;
        char code[96];
        snprintf(code, sizeof code, "cvt.%s.%sx2.f32 %%d, %%a, %%b;", rows[n / 2].modifiers, f->name);
        run("sm_90", code, 32, 32, raw, other, results);
        for (size_t i = 0; i < count; i++) {
            uint64_t high =
                float_finish(f, rounded(f, float_value(&float_f32, raw[i]), rows[n / 2].rounding), rows[n / 2].flags);
            uint64_t low =
                float_finish(f, rounded(f, float_value(&float_f32, other[i]), rows[n / 2].rounding), rows[n / 2].flags);
            expect(code, raw[i], other[i], results[i], high << 16 | low);
        }
    }
}

/* .rs: random bits are added where the digits that go begin, and what is left of those digits goes. */
static uint64_t rounded_randomly(const float_format *f, uint32_t bits, uint32_t random, bool relu, bool finite) {
    uint32_t magnitude = bits & 0x7fffffff, count_of_random = f == &float_f16 ? 13 : 16;
    uint64_t sign = bits >> 31 ? float_sign(f) : 0;
    if (magnitude > 0x7f800000) return f->nan;
    if (relu && sign) return 0;
    if (magnitude == 0x7f800000) return sign | (float_infinity(f) - finite);
    int exponent = (int)(magnitude >> 23 ? magnitude >> 23 : 1), least_normal = f == &float_f16 ? 113 : 1;
    uint64_t digits = magnitude >> 23 ? (magnitude & 0x7fffff) | 0x800000 : magnitude;
    uint32_t gone = count_of_random + (uint32_t)(exponent < least_normal ? least_normal - exponent : 0);
    if (gone > 40) return sign; /* less than any random number reaches */
    digits += (uint64_t)(random & ((1u << count_of_random) - 1)) << (gone - count_of_random);
    digits >>= gone;
    uint64_t above = exponent > least_normal ? (uint64_t)(exponent - least_normal) << f->mantissa : 0;
    uint64_t result = digits + above; /* the leading digit counts as a step of the exponent */
    return sign | (result < float_infinity(f) ? result : float_infinity(f) - finite);
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
        const float_format *f = n & 1 ? &float_bf16 : &float_f16;
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

int main(void) {
    seed = harness_seed();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(f32_pairs_to_small_types),   cmocka_unit_test(f16_pairs_to_small_types),
        cmocka_unit_test(small_types_to_f16_pairs),   cmocka_unit_test(f32_pairs_to_16_bits),
        cmocka_unit_test(f32_pairs_rounded_randomly), cmocka_unit_test(powers_of_two),
    };
    return cmocka_run_group_tests_name("ptx_convert_packed", tests, NULL, NULL);
}
