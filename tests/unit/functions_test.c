/* The elementary functions of the operators keep the error bounds that their headers state, here without fused
 * multiply-add, which is the worse case. */
#include "kernels/common/cpu.h"
#include "kernels/common/math/logarithm.h"
#include "kernels/common/math/root.h"
#include "kernels/common/reduce/total_order.h"
#include "kernels/common/rotary/turn.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Every so many-th float. */
enum { STEP = 1009 };

static void expect_within(const char *function, float x, double got, double expected, double allowed) {
    if (!(fabs(got - expected) <= allowed))
        fail_msg("%s of %a is %a: off by %g, %g is allowed", function, (double)x, got, fabs(got - expected), allowed);
}

static void test_exp(void **state) {
    (void)state;
    for (uint32_t bits = 0; bits < 0x42aeac50u; bits += STEP) { /* to 87.3 */
        float x = -kiln_float(bits);
        double expected = exp((double)x);
        expect_within("kiln_exp", x, (double)kiln_exp(x), expected, 1.0e-7 * expected);
    }
    assert_true(kiln_exp(-88.0f) == 0.0f && kiln_exp(-KILN_INFINITY) == 0.0f);
    assert_true(isnan(kiln_exp(NAN)));
}

static void test_reciprocal(void **state) {
    (void)state;
    for (uint32_t bits = 0x03800000u; bits < 0x7b800000u; bits += STEP) { /* 2^-120 to 2^120 */
        float x = kiln_float(bits);
        expect_within("kiln_reciprocal", x, (double)kiln_reciprocal(x), 1 / (double)x, 1.2e-7 / (double)x);
    }
}

static void test_rsqrt(void **state) {
    (void)state;
    for (uint32_t bits = 0x03800000u; bits < 0x7f800000u; bits += STEP) {
        float x = kiln_float(bits);
        double expected = 1 / sqrt((double)x);
        expect_within("kiln_rsqrt", x, (double)kiln_rsqrt(x), expected, 1.1e-7 * expected);
    }
    assert_true(kiln_rsqrt(KILN_INFINITY) == 0.0f);
    assert_true(isnan(kiln_rsqrt(NAN)));
}

static void test_log(void **state) {
    (void)state;
    for (uint32_t bits = 0x00800000u; bits < 0x7f800000u; bits += STEP) {
        float x = kiln_float(bits);
        double expected = log((double)x);
        expect_within("kiln_log", x, (double)kiln_log(x), expected, 1.4e-7 * fmax(1, fabs(expected)));
    }
    assert_true(isnan(kiln_log(NAN)));
}

static void test_direction(void **state) {
    (void)state;
    for (uint64_t angle = 0; angle < 1ull << 32; angle += 10007) {
        double radians = 2 * acos(-1) * ldexp((double)angle, -32);
        kiln_direction d = kiln_direction_of(angle << 32);
        expect_within("the cosine", (float)radians, (double)d.cosine, cos(radians), 1.2e-7);
        expect_within("the sine", (float)radians, (double)d.sine, sin(radians), 1.2e-7);
    }
}

/* Keys are in the order of the numbers, and stand for them. */
static void test_order(void **state) {
    (void)state;
    static const float ordered[] = {-INFINITY, -3e38f, -1.0f, -1e-40f, 0.0f, 1e-45f, 0.5f, 3e38f, INFINITY};
    for (size_t i = 0; i + 1 < sizeof ordered / sizeof *ordered; i++)
        assert_true(kiln_order_key(ordered[i]) < kiln_order_key(ordered[i + 1]));
    for (size_t i = 0; i < sizeof ordered / sizeof *ordered; i++)
        assert_true(kiln_order_value(kiln_order_key(ordered[i])) == ordered[i]);
    assert_int_equal(kiln_order_key(-0.0f), kiln_order_key(0.0f));
    assert_true(kiln_order_key(-INFINITY) > 0);
    assert_int_equal(kiln_order_key(NAN), UINT32_MAX);
    assert_int_equal(kiln_order_key(-NAN), UINT32_MAX);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exp), cmocka_unit_test(test_reciprocal), cmocka_unit_test(test_rsqrt),
        cmocka_unit_test(test_log), cmocka_unit_test(test_direction),  cmocka_unit_test(test_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
