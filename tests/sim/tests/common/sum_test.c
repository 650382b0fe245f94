/* Sums of products in the ways of KILN_SIM_MATRIX, against integers wide enough for all of them. */
#include "tests/sim/core/sim_random.h"
#include "tests/sim/core/sim_sum.h"
#include "tests/sim/tests/common/exact.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SUMS = 20000, COUNT_MAX = 32 };

static uint64_t random_state;

static uint64_t draw(void) {
    return sim_random(&random_state);
}

/* bits of mantissa, and an exponent of at most this range. */
static double number(int bits, int range) {
    double whole = (double)((draw() & ((1ull << bits) - 1)) | 1ull << (bits - 1));
    return ldexp(draw() & 1 ? whole : -whole, (int)(draw() % (unsigned)(2 * range + 1)) - range - bits);
}

typedef struct terms {
    double addend, a[COUNT_MAX], b[COUNT_MAX];
    int count;
} terms;

/* Some of them cancel, so that what others leave behind decides. */
static void terms_draw(terms *t, int bits, int addend_bits, int range) {
    t->count = 1 + (int)(draw() % COUNT_MAX);
    t->addend = draw() % 8 ? number(addend_bits, 2 * range) : 0;
    for (int i = 0; i < t->count; i++) {
        t->a[i] = number(bits, range);
        t->b[i] = draw() % 8 ? number(bits, range) : 0;
        if (i && draw() % 4 == 0) {
            t->a[i] = -t->a[i - 1];
            t->b[i] = t->b[i - 1];
        }
    }
}

static void terms_sum(const terms *t, exact *sum) {
    memset(sum, 0, sizeof *sum);
    exact_add_product(sum, t->addend, 1);
    for (int i = 0; i < t->count; i++)
        exact_add_product(sum, t->a[i], t->b[i]);
}

static const struct shape {
    sim_format format;
    int exponent, mantissa, input_bits, range;
} shapes[] = {
    {SIM_f32, 8, 23, 11, 8},  {SIM_f32, 8, 23, 8, 60},  {SIM_f32, 8, 23, 24, 30},
    {SIM_f32, 8, 23, 24, 90}, {SIM_f16, 5, 10, 11, 10}, {SIM_bf16, 8, 7, 8, 40},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* Zeros are compared without their signs: the integers have none. */
static void same(const terms *t, const struct shape *shape, uint32_t got, uint64_t expected) {
    uint32_t magnitude = (1u << (shape->exponent + shape->mantissa)) - 1;
    if (got == expected || !((got | expected) & magnitude)) return;
    fail_msg("%d terms of %d bits: 0x%x, expected 0x%llx", t->count, shape->input_bits, got,
             (unsigned long long)expected);
}

static void test_exact(void **state) {
    (void)state;
    for (int n = 0; n < SUMS; n++) {
        const struct shape *shape = &shapes[n % SHAPES];
        terms t;
        exact sum;
        terms_draw(&t, shape->input_bits, shape->mantissa + 1, shape->range);
        terms_sum(&t, &sum);
        same(&t, shape, sim_sum(SIM_SUM_EXACT, shape->format, t.addend, t.a, t.b, t.count),
             exact_round(&sum, shape->exponent, shape->mantissa, EXACT_RN));
    }
}

static void test_sequential(void **state) {
    (void)state;
    for (int n = 0; n < SUMS; n++) {
        const struct shape *shape = &shapes[n % SHAPES];
        terms t;
        terms_draw(&t, shape->input_bits, shape->mantissa + 1, shape->range);
        uint32_t bits = sim_encode(shape->format, t.addend, SIM_ROUND_NEAREST_EVEN, false);
        for (int i = 0; i < t.count && isfinite(sim_decode(shape->format, bits)); i++) {
            exact sum = {0};
            exact_add_product(&sum, sim_decode(shape->format, bits), 1);
            exact_add_product(&sum, t.a[i], t.b[i]);
            bits = (uint32_t)exact_round(&sum, shape->exponent, shape->mantissa, EXACT_RN);
        }
        if (isfinite(sim_decode(shape->format, bits)))
            same(&t, shape, sim_sum(SIM_SUM_SEQUENTIAL, shape->format, t.addend, t.a, t.b, t.count), bits);
    }
}

/* In 128-bit integers of units of 2^-POINT, which numbers of moderate size fit. */
static void test_truncating(void **state) {
    (void)state;
    enum { POINT = 48, RANGE = 8, BITS = 11, KEPT = 24 };
    for (int n = 0; n < SUMS; n++) {
        terms t;
        terms_draw(&t, BITS, KEPT, RANGE);
        __int128 addends[COUNT_MAX + 1], most = 0, sum = 0;
        for (int i = 0; i <= t.count; i++) {
            double value = i < t.count ? t.a[i] * t.b[i] : t.addend;
            addends[i] = (__int128)ldexp(value, POINT);
            assert_true(ldexp((double)addends[i], -POINT) == value);
            __int128 magnitude = addends[i] < 0 ? -addends[i] : addends[i];
            if (magnitude > most) most = magnitude;
        }
        int shift = 0;
        while (most >> shift >> KEPT)
            shift++;
        for (int i = 0; i <= t.count; i++)
            sum += addends[i] / ((__int128)1 << shift); /* C divides towards zero */
        exact whole = {0};
        exact_add_product(&whole, (double)sum, ldexp(1, shift - POINT));
        const struct shape f32 = shapes[0];
        same(&t, &f32, sim_sum(SIM_SUM_TRUNCATING, SIM_f32, t.addend, t.a, t.b, t.count),
             exact_round(&whole, 8, 23, EXACT_RZ));
    }
}

static void test_f64(void **state) {
    (void)state;
    for (int n = 0; n < SUMS; n++) {
        terms t;
        exact sum;
        terms_draw(&t, 53, 53, n % 2 ? 20 : 200);
        t.count = t.count > 4 ? 4 : t.count;
        terms_sum(&t, &sum);
        double nearest, got = sim_sum_f64(SIM_SUM_EXACT, t.addend, t.a, t.b, t.count), chain = t.addend;
        uint64_t bits = exact_round(&sum, 11, 52, EXACT_RN);
        memcpy(&nearest, &bits, sizeof nearest);
        if (got != nearest) fail_msg("%d terms: %a, expected %a", t.count, got, nearest);
        double most = fabs(t.addend);
        for (int i = 0; i < t.count; i++) {
            chain = fma(t.a[i], t.b[i], chain);
            most = fmax(most, fabs(t.a[i] * t.b[i]));
        }
        assert_true(sim_sum_f64(SIM_SUM_SEQUENTIAL, t.addend, t.a, t.b, t.count) == chain);
        double cut = sim_sum_f64(SIM_SUM_TRUNCATING, t.addend, t.a, t.b, t.count);
        if (fabs(cut - nearest) > 5 * most * 0x1p-49)
            fail_msg("%d terms: %a, expected about %a", t.count, cut, nearest);
    }
}

static void test_special(void **state) {
    (void)state;
    for (int m = 0; m < SIM_SUM_MODES; m++) {
        sim_sum_mode mode = (sim_sum_mode)m;
        const double one[] = {1, 1}, infinite[] = {INFINITY, 1}, opposed[] = {INFINITY, -INFINITY}, zero[] = {0, 0};
        const double nan[] = {1, NAN}, minus_zero[] = {-0.0, -0.0}, large[] = {0x1p127, 0x1p127};
        assert_int_equal(sim_sum(mode, SIM_f32, 1, one, infinite, 2), 0x7f800000);
        assert_int_equal(sim_sum(mode, SIM_f32, -INFINITY, one, one, 2), 0xff800000);
        assert_int_equal(sim_sum(mode, SIM_f32, 0, one, opposed, 2), 0x7fc00000);
        assert_int_equal(sim_sum(mode, SIM_f32, 0, zero, infinite, 2), 0x7fc00000);
        assert_int_equal(sim_sum(mode, SIM_f32, 0, one, nan, 2), 0x7fc00000);
        assert_int_equal(sim_sum(mode, SIM_f16, NAN, one, one, 2), 0x7e00);
        assert_int_equal(sim_sum(mode, SIM_f32, 0, large, one, 2), 0x7f800000);
        assert_int_equal(sim_sum(mode, SIM_f32, -0.0, minus_zero, one, 2), 0x80000000);
        assert_int_equal(sim_sum(mode, SIM_f32, -2, one, one, 2), 0);
        assert_true(isnan(sim_sum_f64(mode, 0, one, opposed, 2)));
        assert_true(sim_sum_f64(mode, 0, one, infinite, 2) == INFINITY);
    }
}

static void test_names(void **state) {
    (void)state;
    sim_sum_mode mode = SIM_SUM_MODES;
    assert_true(sim_sum_mode_named(NULL, &mode) && mode == SIM_SUM_MODES);
    assert_true(sim_sum_mode_named("hopper", &mode) && mode == SIM_SUM_HOPPER);
    assert_true(sim_sum_mode_named("sequential", &mode) && mode == SIM_SUM_SEQUENTIAL);
    assert_true(sim_sum_mode_named("truncating", &mode) && mode == SIM_SUM_TRUNCATING);
    assert_true(sim_sum_mode_named("exact", &mode) && mode == SIM_SUM_EXACT);
    assert_false(sim_sum_mode_named("", &mode) || sim_sum_mode_named("exactly", &mode));
}

int main(void) {
    const char *text = getenv("KILN_TEST_SEED");
    random_state = text ? strtoull(text, NULL, 0) : 1;
    print_message("# seed %llu (KILN_TEST_SEED sets it)\n", (unsigned long long)random_state);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact), cmocka_unit_test(test_sequential), cmocka_unit_test(test_truncating),
        cmocka_unit_test(test_f64),   cmocka_unit_test(test_special),    cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests_name("sum", tests, NULL, NULL);
}
