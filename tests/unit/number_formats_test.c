/* The number formats of 8 and 4 bits against tables made here from the definition of each format: from every number of
 * f16 and bf16, and from f32 around every number of a format and every tie between two. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define KILN_INLINE       static inline
#define KILN_FMA(a, b, c) ((a) * (b) + (c))
#include "kernels/common/formats/exponent8.h"
#include "kernels/common/formats/float4.h"
#include "kernels/common/formats/float8.h"
#include "kernels/common/formats/small_integer.h"

/* A format as its definition says it: what each code without its sign stands for, in order, up to the greatest. */
typedef struct format {
    const char *name;
    int fraction_bits, bias, count; /* count: codes of finite numbers, without those of the other sign */
    uint8_t sign, nan;              /* nan: what encodes NaN */
    bool negative_zero;
    uint8_t (*of)(float value);
    float (*value)(uint8_t code);
} format;

static const format formats[] = {
    {"E4M3", 3, 7, 0x7f, 0x80, 0x7f, true, kiln_e4m3_of, kiln_e4m3_value},
    {"E4M3 FNUZ", 3, 8, 0x80, 0x80, 0x80, false, kiln_e4m3_fnuz_of, kiln_e4m3_fnuz_value},
    {"E5M2", 2, 15, 0x7c, 0x80, 0x7f, true, kiln_e5m2_of, kiln_e5m2_value},
    {"E2M1", 1, 1, 8, 8, 7, true, kiln_e2m1_of, kiln_e2m1_value},
};
enum { FORMATS = sizeof formats / sizeof *formats };

static double number_of(const format *f, int code) {
    int field = code >> f->fraction_bits, fraction = code & ((1 << f->fraction_bits) - 1);
    double significand = (field ? 1.0 : 0.0) + ldexp(fraction, -f->fraction_bits);
    return ldexp(significand, (field ? field : 1) - f->bias);
}

/* The nearest number by search, of two as near the one with the even code. */
static uint8_t expected_of(const format *f, const double *numbers, float value) {
    if (isnan(value)) return f->nan;
    double magnitude = fabs((double)value);
    int below = 0;
    for (int step = 128; step; step /= 2) /* the last number that is not greater */
        if (below + step < f->count && numbers[below + step] <= magnitude) below += step;
    int code = below;
    if (below + 1 < f->count) {
        double down = magnitude - numbers[below], up = numbers[below + 1] - magnitude;
        code = up < down || (up == down && below % 2 != 0) ? below + 1 : below;
    }
    bool negative = signbit(value) && (code || f->negative_zero);
    return (uint8_t)(code | (negative ? f->sign : 0));
}

static void expect_code(const format *f, const double *numbers, float value) {
    uint8_t expected = expected_of(f, numbers, value), found = f->of(value);
    if (found != expected) fail_msg("%s of %a: 0x%02x, not 0x%02x", f->name, (double)value, found, expected);
}

static void each_code_has_its_number(void **state) {
    (void)state;
    for (const format *f = formats; f < formats + FORMATS; f++)
        for (int code = 0; code < f->count; code++) {
            uint8_t negative = (uint8_t)(code | f->sign);
            assert_true((double)f->value((uint8_t)code) == number_of(f, code));
            assert_false(signbit(f->value((uint8_t)code)));
            if (!code && !f->negative_zero) continue;
            assert_true((double)f->value(negative) == -number_of(f, code));
            assert_true(signbit(f->value(negative)));
        }
    static const uint8_t e5m2_nans[] = {0x7d, 0x7e, 0x7f, 0xfd, 0xfe, 0xff};
    assert_true(isnan(kiln_e4m3_value(0x7f)) && isnan(kiln_e4m3_value(0xff)) && isnan(kiln_e4m3_fnuz_value(0x80)));
    for (size_t i = 0; i < sizeof e5m2_nans; i++)
        assert_true(isnan(kiln_e5m2_value(e5m2_nans[i])));
    assert_true(kiln_e5m2_value(0x7c) == INFINITY && kiln_e5m2_value(0xfc) == -INFINITY);
    assert_true(kiln_e4m3_value(0x7e) == KILN_E4M3_GREATEST && kiln_e4m3_fnuz_value(0x7f) == KILN_E4M3_FNUZ_GREATEST);
    assert_true(kiln_e5m2_value(0x7b) == KILN_E5M2_GREATEST && kiln_e2m1_value(7) == KILN_E2M1_GREATEST);
}

/* Every f16 and bf16; the neighbours in f32 of every number and tie; what is beyond the greatest. */
static void each_value_has_the_nearest_code(void **state) {
    (void)state;
    for (const format *f = formats; f < formats + FORMATS; f++) {
        double numbers[128];
        for (int code = 0; code < f->count; code++)
            numbers[code] = number_of(f, code);
        for (uint32_t half = 0; half < 0x10000; half++) {
            expect_code(f, numbers, kiln_f16_to_f32_soft((uint16_t)half));
            expect_code(f, numbers, kiln_bf16_to_f32((uint16_t)half));
        }
        for (int code = 0; code + 1 < f->count; code++) {
            float places[] = {(float)numbers[code], (float)((numbers[code] + numbers[code + 1]) / 2)};
            for (int i = 0; i < 6; i++) {
                float place = places[i / 3], value = i % 3 ? nextafterf(place, i % 3 == 1 ? INFINITY : 0.0f) : place;
                expect_code(f, numbers, value);
                expect_code(f, numbers, -value);
            }
        }
        assert_int_equal(f->of(INFINITY), f->count - 1);
        assert_int_equal(f->of(-INFINITY), (f->count - 1) | f->sign);
        assert_int_equal(f->of(kiln_float(0x7f7fffffu)), f->count - 1);
        assert_int_equal(f->of(kiln_float(0xffc00001u)), f->nan);
        assert_int_equal(f->of(kiln_float(0x7f800001u)), f->nan);
    }
}

static void fnuz_codes_are_half(void **state) {
    (void)state;
    for (int code = 0; code < 256; code++) {
        float whole = kiln_e4m3_value((uint8_t)code),
              half = kiln_e4m3_fnuz_value(kiln_e4m3_fnuz_of_half((uint8_t)code));
        assert_true(isnan(whole) ? isnan(half) : half == whole / 2);
    }
}

/* What gfx942's instruction for FNUZ is used for: all ties between codes, and the numbers beside them. */
static void codes_are_those_of_halves(void **state) {
    (void)state;
    static const uint32_t beside[] = {0, 1, 0xfff};
    for (uint32_t high = 0; high <= kiln_bits(KILN_E4M3_GREATEST) >> 12; high++)
        for (int i = 0; i < 3 && (high << 12 | beside[i]) <= kiln_bits(KILN_E4M3_GREATEST); i++) {
            const float value = kiln_float(high << 12 | beside[i]);
            assert_int_equal(kiln_e4m3_fnuz_of(value / 2), kiln_e4m3_of(value));
            assert_int_equal(kiln_e4m3_fnuz_of(-value / 2) | 0x80, kiln_e4m3_of(-value));
        }
}

static void pairs_have_the_first_low(void **state) {
    (void)state;
    float values[2];
    for (int pair = 0; pair < 256; pair++) {
        kiln_e2m1_pair_values(values, (uint8_t)pair);
        assert_true(values[0] == kiln_e2m1_value((uint8_t)(pair % 16)) &&
                    values[1] == kiln_e2m1_value((uint8_t)(pair / 16)));
        assert_int_equal(kiln_e2m1_pair_of(values[0], values[1]), pair);
        kiln_int4_pair_values(values, (uint8_t)pair);
        assert_true((int)values[0] == (pair % 16 < 8 ? pair % 16 : pair % 16 - 16));
        assert_true((int)values[1] == (pair / 16 < 8 ? pair / 16 : pair / 16 - 16));
        assert_int_equal(kiln_int4_pair_of(values[0], values[1]), pair);
    }
}

static void exponents_round_up(void **state) {
    (void)state;
    for (int code = 0; code < 255; code++) {
        float power = (float)ldexp(1, code - 127);
        assert_true(kiln_ue8m0_value((uint8_t)code) == power);
        assert_int_equal(kiln_ue8m0_of(power), code);
        assert_int_equal(kiln_ue8m0_of(-power), code);
        assert_int_equal(kiln_ue8m0_of(nextafterf(power, INFINITY)), code < 254 ? code + 1 : 254);
        assert_int_equal(kiln_ue8m0_of(nextafterf(power, 0)), code);
    }
    assert_int_equal(kiln_ue8m0_of(0), 0);
    assert_int_equal(kiln_ue8m0_of(INFINITY), 254);
    assert_int_equal(kiln_ue8m0_of(NAN), 255);
    assert_true(isnan(kiln_ue8m0_value(255)));
}

static double nearest(double value, double least, double greatest) {
    double bounded = fmin(fmax(value, least), greatest), whole = floor(bounded), rest = bounded - whole;
    return rest > 0.5 || (rest == 0.5 && fmod(whole, 2) != 0) ? whole + 1 : whole;
}

static void expect_integer(float value) {
    int eight = isnan(value) ? 0 : (int)nearest((double)value, -127, 127);
    int four = isnan(value) ? 0 : (int)nearest((double)value, -8, 7);
    assert_int_equal(kiln_int8_of(value), eight);
    assert_int_equal(kiln_int4_pair_of(value, value), (four & 15) * 17);
}

static void integers_round_to_even(void **state) {
    (void)state;
    for (uint32_t half = 0; half < 0x10000; half++) {
        expect_integer(kiln_f16_to_f32_soft((uint16_t)half));
        expect_integer(kiln_bf16_to_f32((uint16_t)half));
    }
    for (int i = -260; i <= 260; i++) {
        float place = (float)i / 2;
        expect_integer(nextafterf(place, INFINITY));
        expect_integer(nextafterf(place, -INFINITY));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_code_has_its_number), cmocka_unit_test(each_value_has_the_nearest_code),
        cmocka_unit_test(fnuz_codes_are_half),      cmocka_unit_test(codes_are_those_of_halves),

        cmocka_unit_test(pairs_have_the_first_low), cmocka_unit_test(exponents_round_up),
        cmocka_unit_test(integers_round_to_even),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
