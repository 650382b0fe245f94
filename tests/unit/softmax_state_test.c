/* States of online softmax: against sums in long double, block by block, merged in any order; sums that f64 alone would
 * lose; masked blocks, infinities, NaN; and the functions of libm that it does without. */
#include "loader/elementary.h"
#include "tests/assert_ok.h"
#include <kiln/softmax_state.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static uint64_t random_state;

static double uniform(void) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (double)(random_state >> 11) * 0x1p-53;
}

static void expect_near(const char *what, double got, double expected, double relative) {
    if (!(fabs(got - expected) <= relative * fabs(expected)))
        fail_msg("%s is %.17g: off by %g of %.17g, %g is allowed", what, got, got / expected - 1, expected, relative);
}

static kiln_softmax_state empty(void) {
    kiln_softmax_state state;
    assert_ok(kiln_softmax_state_init(&state));
    return state;
}

static double sum_of(const kiln_softmax_state *state) {
    return state->sum + state->compensation;
}

static double lse_of(const kiln_softmax_state *state) {
    double lse;
    assert_ok(kiln_softmax_state_lse(state, &lse));
    return lse;
}

/* ---- Elementary functions ---------------------------------------------------------------------------------------- */

static void test_functions(void **unused) {
    (void)unused;
    for (int i = 0; i < 100000; i++) {
        double x = -690 * uniform() * uniform(), y = exp(300 * (uniform() - uniform())), z = 1 + uniform() * 0.01;
        expect_near("exp", kiln__exp(x), (double)expl((long double)x), 3e-16);
        expect_near("ln", kiln__ln(y), (double)logl((long double)y), 6e-16);
        expect_near("ln near 1", kiln__ln(z), (double)logl((long double)z), 6e-16);
    }
    assert_true(kiln__exp(0) == 1 && kiln__exp(-701) == 0 && kiln__exp(-INFINITY) == 0 && isnan(kiln__exp(NAN)));
    assert_true(kiln__ln(1) == 0 && kiln__ln(0) == -INFINITY && kiln__ln(INFINITY) == INFINITY && isnan(kiln__ln(NAN)));
}

static void test_log_add_exp(void **unused) {
    (void)unused;
    for (int i = 0; i < 100000; i++) {
        double a = 80 * (uniform() - uniform()), b = uniform() < 0.1 ? a : a + 40 * (uniform() - uniform());
        long double expected = logl(expl((long double)a) + expl((long double)b));
        double got = kiln_log_add_exp(a, b), allowed = 4e-16 * fmax(1, fabs(a)) + 4e-16 * fabs((double)expected);
        if (!(fabs(got - (double)expected) <= allowed)) fail_msg("of %g and %g: %.17g", a, b, got);
        assert_true(got == kiln_log_add_exp(b, a));
    }
    assert_true(kiln_log_add_exp(0, -50) == exp(-50)); /* what 1 + e^-50 would lose */
    assert_true(kiln_log_add_exp(1000, 1000) == 1000 + log(2));
    assert_true(kiln_log_add_exp(-INFINITY, 3) == 3 && kiln_log_add_exp(3, -INFINITY) == 3);
    assert_true(kiln_log_add_exp(-INFINITY, -INFINITY) == -INFINITY);
    assert_true(kiln_log_add_exp(INFINITY, 3) == INFINITY && kiln_log_add_exp(INFINITY, INFINITY) == INFINITY);
    assert_true(kiln_log_add_exp(-INFINITY, INFINITY) == INFINITY);
    assert_true(isnan(kiln_log_add_exp(NAN, 3)) && isnan(kiln_log_add_exp(3, NAN)));
}

/* ---- Sums -------------------------------------------------------------------------------------------------------- */

/* If the compiler took the compensation for nothing, the sum would be as far off as the plain one. */
static void test_small_terms(void **unused) {
    (void)unused;
    kiln_softmax_state state = empty();
    volatile double plain = 0;
    for (int i = 0; i < 1000000; i++) {
        assert_ok(kiln_softmax_state_add(&state, 0, 1e-8, NULL));
        plain = plain + 1e-8;
    }
    double expected = (double)(1e6L * (long double)1e-8), error = fabs(sum_of(&state) / expected - 1);
    double plain_error = fabs(plain / expected - 1);
    print_message("a million of 1e-8: off by %g, plain by %g\n", error, plain_error);
    assert_true(error < 1e-10 && error < plain_error / 10);
}

/* A large block, and then small ones, each of which is below half an ulp of it. */
static void test_beside_large(void **unused) {
    (void)unused;
    kiln_softmax_state state = empty();
    assert_ok(kiln_softmax_state_add(&state, 0, 1e10, NULL));
    for (int i = 0; i < 1000; i++)
        assert_ok(kiln_softmax_state_add(&state, 0, 1, NULL));
    assert_true(fabs(sum_of(&state) - 10000001000) < 1e-5);

    kiln_softmax_state tiny = empty();
    double plain = 1e10;
    assert_ok(kiln_softmax_state_add(&tiny, 0, 1e10, NULL));
    for (int i = 0; i < 1000; i++) {
        assert_ok(kiln_softmax_state_add(&tiny, 0, 0x1p-21, NULL));
        plain += 0x1p-21;
    }
    assert_true(plain == 1e10);                                           /* all are lost */
    assert_true(tiny.sum == 1e10 && tiny.compensation == 1000 * 0x1p-21); /* none is */
    assert_ok(kiln_softmax_state_add(&tiny, log(2), 0, NULL));            /* both are halved */
    expect_near("the sum", tiny.sum, 5e9, 4e-16);
    expect_near("the compensation", tiny.compensation, 500 * 0x1p-21, 4e-16);
}

/* ---- Blocks ------------------------------------------------------------------------------------------------------ */

enum { SCORES = 3000 };

/* Blocks of any sizes give what one gives; the scales take an accumulator to the last maximum; and log space agrees. */
static void test_blocks(void **unused) {
    (void)unused;
    for (int round = 0; round < 100; round++) {
        double scores[SCORES], max = -INFINITY, accumulator = 0, whole;
        int count = 1 + (int)(uniform() * (double)SCORES), done = 0;
        long double sum = 0;
        for (int i = 0; i < count; i++) {
            scores[i] = round % 3 ? 60 * (uniform() - uniform()) : 0.01 * i + uniform();
            if (uniform() < 0.2) scores[i] = -INFINITY;
            max = fmax(max, scores[i]);
        }
        for (int i = 0; i < count; i++)
            sum += max == -INFINITY ? 0 : expl((long double)scores[i] - (long double)max);
        kiln_softmax_state state = empty();
        double log_space = -INFINITY;
        while (done < count) {
            int block = (int)(uniform() * 100);
            if (block > count - done) block = count - done;
            double scale;
            assert_ok(kiln_softmax_state_update(&state, block ? scores + done : NULL, (size_t)block, &scale));
            accumulator *= scale;
            for (int i = done; i < done + block; i++) {
                accumulator += state.max == -INFINITY ? 0 : exp(scores[i] - state.max);
                log_space = kiln_log_add_exp(log_space, scores[i]);
            }
            done += block;
        }
        if (max == -INFINITY) continue;
        double lse = max + (double)logl(sum);
        assert_true(state.max == max);
        expect_near("the sum", sum_of(&state), (double)sum, 1e-13);
        expect_near("what was scaled", accumulator, (double)sum, 1e-12);
        assert_ok(kiln_log_sum_exp(scores, (size_t)count, &whole));
        assert_true(fabs(whole - lse) < 1e-13 * fmax(1, fabs(lse)) && fabs(lse_of(&state) - lse) < 1e-12);
        assert_true(fabs(log_space - lse) < 1e-10 * fmax(1, fabs(lse)));
    }
}

/* 2^21 scores against the sum in long double, and in log space. */
static void test_long(void **unused) {
    (void)unused;
    kiln_softmax_state state = empty();
    long double sum = 0;
    double log_space = -INFINITY;
    for (int i = 0; i < 1 << 21; i++) {
        double score = 8 * (uniform() - uniform());
        sum += expl((long double)score);
        log_space = kiln_log_add_exp(log_space, score);
        assert_ok(kiln_softmax_state_update(&state, &score, 1, NULL));
    }
    double lse = (double)logl(sum);
    expect_near("the lse", lse_of(&state), lse, 1e-14);
    expect_near("the lse of log space", log_space, lse, 1e-10);
}

static void test_merge(void **unused) {
    (void)unused;
    for (int round = 0; round < 1000; round++) {
        kiln_softmax_state parts[5], whole = empty(), backwards = empty();
        for (int i = 0; i < 5; i++) {
            parts[i] = empty();
            for (int j = (int)(uniform() * 20); j > 0; j--) {
                double score = 50 * (uniform() - uniform());
                assert_ok(kiln_softmax_state_update(&parts[i], &score, 1, NULL));
                assert_ok(kiln_softmax_state_update(&whole, &score, 1, NULL));
            }
        }
        kiln_softmax_state ab = parts[0], ba = parts[1], forwards = empty();
        assert_ok(kiln_softmax_state_merge(&ab, &parts[1], NULL));
        assert_ok(kiln_softmax_state_merge(&ba, &parts[0], NULL));
        assert_true(ab.max == ba.max && ab.sum == ba.sum && ab.compensation == ba.compensation);
        for (int i = 0; i < 5; i++) {
            assert_ok(kiln_softmax_state_merge(&forwards, &parts[i], NULL));
            assert_ok(kiln_softmax_state_merge(&backwards, &parts[4 - i], NULL));
        }
        if (whole.max == -INFINITY) continue;
        assert_true(forwards.max == whole.max && backwards.max == whole.max);
        expect_near("the sum", sum_of(&forwards), sum_of(&whole), 1e-14);
        expect_near("the sum backwards", sum_of(&backwards), sum_of(&whole), 1e-14);
    }
}

/* ---- Masks, infinities, NaN, refusals ---------------------------------------------------------------------------- */

static void test_special(void **unused) {
    (void)unused;
    const double masked[] = {-INFINITY, -INFINITY}, some[] = {1, -INFINITY, 1}, infinite[] = {INFINITY, 3, INFINITY};
    const double nan[] = {NAN};
    double scale = 7, lse;
    kiln_softmax_state state = empty();
    assert_true(lse_of(&state) == -INFINITY);
    assert_ok(kiln_softmax_state_update(&state, masked, 2, &scale));
    assert_true(scale == 0 && state.max == -INFINITY && state.sum == 0 && state.compensation == 0);
    assert_true(lse_of(&state) == -INFINITY);
    assert_ok(kiln_softmax_state_update(&state, some, 3, &scale));
    assert_true(scale == 0 && state.max == 1 && sum_of(&state) == 2);
    assert_ok(kiln_softmax_state_update(&state, masked, 2, &scale));
    assert_true(scale == 1 && state.max == 1 && sum_of(&state) == 2);
    assert_ok(kiln_softmax_state_add(&state, -INFINITY, NAN, &scale));
    assert_true(scale == 1 && state.max == 1 && sum_of(&state) == 2);
    assert_ok(kiln_softmax_state_update(&state, infinite, 3, &scale));
    assert_true(scale == 0 && sum_of(&state) == 2 && lse_of(&state) == INFINITY);
    assert_ok(kiln_softmax_state_update(&state, some, 3, &scale));
    assert_true(scale == 1 && sum_of(&state) == 2 && lse_of(&state) == INFINITY);
    assert_ok(kiln_softmax_state_update(&state, nan, 1, &scale));
    assert_true(isnan(lse_of(&state)));
    assert_ok(kiln_softmax_state_update(&state, some, 3, &scale));
    assert_true(isnan(lse_of(&state)));
    assert_ok(kiln_log_sum_exp(NULL, 0, &lse));
    assert_true(lse == -INFINITY);
    assert_ok(kiln_log_sum_exp(masked, 2, &lse));
    assert_true(lse == -INFINITY);
    assert_ok(kiln_log_sum_exp(infinite, 3, &lse));
    assert_true(lse == INFINITY);
}

static void expect_refusal(kiln_status status, const char *text) {
    assert_int_equal(status, KILN_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(kiln_last_error(), text));
}

static void test_refusals(void **unused) {
    (void)unused;
    kiln_softmax_state state = empty();
    double lse;
    expect_refusal(kiln_softmax_state_init(NULL), "state is NULL");
    expect_refusal(kiln_softmax_state_update(NULL, &lse, 1, NULL), "state is NULL");
    expect_refusal(kiln_softmax_state_update(&state, NULL, 1, NULL), "scores is NULL");
    expect_refusal(kiln_softmax_state_add(NULL, 0, 1, NULL), "state is NULL");
    expect_refusal(kiln_softmax_state_add(&state, 0, -1, NULL), "sum is -1: must not be negative");
    expect_refusal(kiln_softmax_state_merge(NULL, &state, NULL), "state is NULL");
    expect_refusal(kiln_softmax_state_merge(&state, NULL, NULL), "other is NULL");
    expect_refusal(kiln_softmax_state_lse(NULL, &lse), "state is NULL");
    expect_refusal(kiln_softmax_state_lse(&state, NULL), "out_lse is NULL");
    expect_refusal(kiln_log_sum_exp(NULL, 1, &lse), "values is NULL");
    expect_refusal(kiln_log_sum_exp(&lse, 1, NULL), "out_lse is NULL");
    assert_true(state.max == -INFINITY && state.sum == 0);
}

int main(void) {
    const char *given = getenv("KILN_TEST_SEED");
    random_state = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    printf("# seed %llu\n", (unsigned long long)random_state);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_functions),    cmocka_unit_test(test_log_add_exp), cmocka_unit_test(test_small_terms),
        cmocka_unit_test(test_beside_large), cmocka_unit_test(test_blocks),      cmocka_unit_test(test_long),
        cmocka_unit_test(test_merge),        cmocka_unit_test(test_special),     cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
