/* Divisions, roots and transcendental functions of PTX: those with IEEE rounding are the nearest number by exact
 * comparison, the others within the error that the ISA states, moved by the seed, and as its tables say at the edges.
 */
#include "tests/sim/tests/common/exact.h"
#include "tests/sim/tests/common/special_reference.h"
#include "tests/sim/tests/ptx/ptx_harness.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { COUNT = 1 << 14 };

static uint64_t seed;

static double single(uint64_t bits) {
    uint32_t word = (uint32_t)bits;
    float value;
    memcpy(&value, &word, sizeof value);
    return (double)value;
}

static double number(uint64_t bits, bool wide) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return wide ? value : single(bits);
}

static const uint32_t edges[] = {0,          1,          0x007fffff, 0x00800000, 0x00800001, 0x3f7fffff,
                                 0x3f800000, 0x3f800001, 0x40000000, 0x40400000, 0x7e800000, 0x7e800001,
                                 0x7f000000, 0x7f7fffff, 0x7f800000, 0x7fc00000, 0x3effffff, 0x42000000};
enum { EDGES = 2 * sizeof edges / sizeof *edges };

static uint64_t edge(size_t i, bool wide) {
    uint32_t bits = edges[i / 2 % (EDGES / 2)] | (i & 1 ? 0x80000000u : 0);
    if (!wide) return bits;
    double value = single(bits);
    if (isfinite(value) && i % 3 == 0) value *= 0x1p-900; /* as small as f64 gets */
    uint64_t result;
    memcpy(&result, &value, sizeof result);
    return result;
}

/* Pairs of edges, then random ones. */
static void operands(uint64_t *a, uint64_t *b, bool wide) {
    uint64_t state = seed, mask = wide ? ~0ull : 0xffffffffu;
    for (size_t i = 0; i < COUNT; i++) {
        bool edged = i < EDGES * EDGES;
        a[i] = edged ? edge(i % EDGES, wide) : sim_random(&state) & mask;
        b[i] = edged ? edge(i / EDGES, wide) : sim_random(&state) & mask;
    }
}

static uint64_t a[COUNT], b[COUNT], results[COUNT];

/* allows and its context are those of a harness_case. */
static void run_allowing(const char *code, uint32_t bits, bool binary, uint64_t launch_seed, uint64_t *out,
                         bool (*allows)(const void *context, size_t i, const void *result), const void *context) {
    static uint8_t first[COUNT * 8], second[COUNT * 8], bytes[COUNT * 8];
    harness_case test = {.code = code,
                         .result_bits = bits,
                         .source_bits = {bits, binary ? bits : 0},
                         .seed = launch_seed,
                         .allows = allows,
                         .context = context};
    for (size_t i = 0; i < COUNT; i++) {
        memcpy(first + i * bits / 8, &a[i], bits / 8);
        memcpy(second + i * bits / 8, &b[i], bits / 8);
    }
    const void *sources[HARNESS_SOURCES] = {first, second};
    harness_run(&test, COUNT, bytes, sources);
    memset(out, 0, COUNT * sizeof *out);
    for (size_t i = 0; i < COUNT; i++)
        memcpy(&out[i], bytes + i * bits / 8, bits / 8);
}

static void run_bits(const char *code, uint32_t bits, bool binary, uint64_t launch_seed, uint64_t *out) {
    run_allowing(code, bits, binary, launch_seed, out, NULL, NULL);
}

static void fail_at(const char *code, size_t i, const char *what) {
    fail_msg("%s of 0x%llx 0x%llx is 0x%llx: %s", code, (unsigned long long)a[i], (unsigned long long)b[i],
             (unsigned long long)results[i], what);
}

/* ---- IEEE rounding ---- */

/* The sign of |x / y| - q or of sqrt(x) - q, where q is (low + high) / 2. */
static int compare(double x, double y, bool root, double low, double high) {
    exact difference = {{0}};
    if (root) {
        for (int i = 0; i < 4; i++)
            exact_add_product(&difference, x, 1);
        exact_add_product(&difference, -low, low);
        exact_add_product(&difference, -low, high);
        exact_add_product(&difference, -low, high);
        exact_add_product(&difference, -high, high);
    } else {
        exact_add_product(&difference, fabs(x), 1);
        exact_add_product(&difference, fabs(x), 1);
        exact_add_product(&difference, -low, fabs(y));
        exact_add_product(&difference, -high, fabs(y));
    }
    return exact_sign(&difference);
}

/* Whether bits are the rounding of the exact value, which has the given sign; neighbours of a magnitude are next to it.
 */
static bool is_rounded(uint64_t bits, bool wide, double x, double y, bool root, bool minus, char rounding) {
    uint64_t sign = wide ? 1ull << 63 : 0x80000000u, magnitude = bits & (sign - 1);
    uint64_t infinity = wide ? 0x7ffull << 52 : 0x7f800000u;
    if (((bits & sign) != 0) != minus) return false;
    bool outward = (rounding == 'm' && minus) || (rounding == 'p' && !minus);
    /* The magnitude behind the greatest is what it would be with a wider exponent. */
    double at = magnitude == infinity ? (wide ? INFINITY : 0x1p128) : number(magnitude, wide);
    double below = magnitude ? number(magnitude - 1, wide) : 0;
    double above = magnitude + 1 >= infinity ? (wide ? INFINITY : 0x1p128) : number(magnitude + 1, wide);
    if (isinf(at) || (magnitude != infinity && isinf(above))) return true; /* f64 at its end: not decided here */
    int here = compare(x, y, root, at, at);
    if (here == 0) return magnitude != infinity || rounding == 'n' || outward;
    if (rounding == 'n') {
        int low = magnitude ? compare(x, y, root, below, at) : 1;
        int high = magnitude == infinity ? -1 : compare(x, y, root, at, above);
        return (low > 0 || (low == 0 && magnitude % 2 == 0)) && (high < 0 || (high == 0 && magnitude % 2 == 0));
    }
    if (outward) return (here < 0 || magnitude == infinity) && magnitude && compare(x, y, root, below, below) > 0;
    if (here <= 0 || magnitude == infinity) return false;
    return magnitude + 1 == infinity || compare(x, y, root, above, above) < 0;
}

static void check_rounded(const char *opcode, char rounding, bool wide) {
    bool root = strcmp(opcode, "sqrt") == 0, binary = strcmp(opcode, "div") == 0;
    char code[96];
    snprintf(code, sizeof code, "%s.r%c.f%d %%d, %%a%s;", opcode, rounding, wide ? 64 : 32, binary ? ", %b" : "");
    operands(a, b, wide);
    run_bits(code, wide ? 64 : 32, binary, 0, results);
    for (size_t i = 0; i < COUNT; i++) {
        double x = binary || root ? number(a[i], wide) : 1, y = binary ? number(b[i], wide) : number(a[i], wide);
        double is = number(results[i], wide);
        bool minus = root ? signbit(x) : signbit(x) != signbit(y);
        bool invalid = root ? x < 0 : (x == 0 && y == 0) || (isinf(x) && isinf(y));
        if (isnan(x) || isnan(y) || invalid) {
            if (results[i] != (wide ? 0x7ff8000000000000 : 0x7fffffff)) fail_at(code, i, "not the canonical NaN");
        } else if (isinf(x) || (!root && y == 0)) {
            if (!isinf(is) || (signbit(is) != 0) != minus) fail_at(code, i, "not infinite");
        } else if (x == 0 || isinf(y)) {
            if (is != 0 || (signbit(is) != 0) != minus) fail_at(code, i, "not zero");
        } else if (!is_rounded(results[i], wide, x, y, root, minus, rounding)) {
            fail_at(code, i, "not correctly rounded");
        }
    }
}

static void correctly_rounded(void **state) {
    (void)state;
    static const char *const opcodes[] = {"div", "rcp", "sqrt"};
    for (int n = 0; n < 3 * 4 * 2; n++)
        check_rounded(opcodes[n / 8], "nzmp"[n % 4], n / 4 % 2);
}

/* .ftz: subnormal operands are zeros, subnormal results become zeros. */
static void flushed(void **state) {
    (void)state;
    static const struct {
        const char *code;
        uint32_t a, b, wanted;
    } rows[] = {{"div.rn.ftz.f32 %d, %a, %b;", 0x3f800000, 0x80000001, 0xff800000},
                {"div.rn.ftz.f32 %d, %a, %b;", 0x80800000, 0x40000000, 0x80000000},
                {"div.rn.f32 %d, %a, %b;", 0x80800000, 0x40000000, 0x80400000},
                {"rcp.rz.ftz.f32 %d, %a;", 0x7f000000, 0, 0x00000000},
                {"rcp.rz.f32 %d, %a;", 0x7f000000, 0, 0x00400000},
                {"sqrt.rn.ftz.f32 %d, %a;", 0x807fffff, 0, 0x80000000},
                {"rsqrt.approx.ftz.f32 %d, %a;", 0x007fffff, 0, 0x7f800000},
                {"lg2.approx.ftz.f32 %d, %a;", 0x007fffff, 0, 0xff800000},
                {"sin.approx.ftz.f32 %d, %a;", 0x807fffff, 0, 0x80000000},
                {"ex2.approx.ftz.f32 %d, %a;", 0xc3000000, 0, 0x00000000},
                {"div.approx.f32 %d, %a, %b;", 0x7f800000, 0x7e800001, 0x7fffffff},
                {"div.approx.f32 %d, %a, %b;", 0xff7fffff, 0x7e800001, 0x80000000}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool binary = strstr(rows[i].code, "%b");
        harness_case test = {
            .code = rows[i].code, .result_bits = 32, .source_bits = {32, binary ? 32 : 0}, .seed = seed};
        const void *sources[HARNESS_SOURCES] = {&rows[i].a, &rows[i].b};
        uint32_t is;
        harness_run(&test, 1, &is, sources);
        if (is != rows[i].wanted) fail_msg("%s of 0x%x 0x%x is 0x%x", rows[i].code, rows[i].a, rows[i].b, is);
    }
}

/* ---- Approximations ---- */

/* What the ISA states: relative (ulp is of the result's mantissa), absolute, or by the operand's range. */
typedef struct row {
    const char *code;
    uint32_t bits, mantissa; /* of an f32, f16, bf16 operand */
    special_function exact;
    long double ulp, relative, absolute;
    double least, most; /* of the operand's magnitude; random ones are drawn from here */
} row;

static const row rows[] = {
    {"rcp.approx.f32 %d, %a;", 32, 23, SPECIAL_RECIPROCAL, 1, 0, 0, 0x1p-126, 0x1p126},
    {"div.approx.f32 %d, %a, %b;", 32, 23, SPECIAL_QUOTIENT, 2, 0, 0, 0x1p-60, 0x1p60},
    {"div.full.f32 %d, %a, %b;", 32, 23, SPECIAL_QUOTIENT, 2, 0, 0, 0x1p-60, 0x1p60},
    {"sqrt.approx.f32 %d, %a;", 32, 23, SPECIAL_ROOT, 0, 0x1p-23L, 0, 0x1p-149, 0x1p127},
    {"rsqrt.approx.f32 %d, %a;", 32, 23, SPECIAL_RECIPROCAL_ROOT, 0, 0x1.125fbee25p-23L, 0, 0x1p-149, 0x1p127},
    {"sin.approx.f32 %d, %a;", 32, 23, SPECIAL_SINE, 0, 0, 0x1.6a09e668p-21L, 0x1p-10, 6.28},
    {"sin.approx.f32 %d, %a;", 32, 23, SPECIAL_SINE, 0, 0, 0x1.3b2c47cp-15L, 6.29, 314.1},
    {"cos.approx.f32 %d, %a;", 32, 23, SPECIAL_COSINE, 0, 0, 0x1.6a09e668p-21L, 0x1p-10, 6.28},
    {"cos.approx.f32 %d, %a;", 32, 23, SPECIAL_COSINE, 0, 0, 0x1.3b2c47cp-15L, 6.29, 314.1},
    {"lg2.approx.f32 %d, %a;", 32, 23, SPECIAL_LOGARITHM, 0, 0, 0x1p-22L, 0.5001, 1.9999},
    {"lg2.approx.f32 %d, %a;", 32, 23, SPECIAL_LOGARITHM, 0, 0x1p-22L, 0, 2, 0x1p127},
    {"ex2.approx.f32 %d, %a;", 32, 23, SPECIAL_POWER, 2, 0, 0, 0x1p-20, 126},
    {"tanh.approx.f32 %d, %a;", 32, 23, SPECIAL_TANGENT, 0, 0x1p-11L, 0, 0x1p-120, 20},
    {"ex2.approx.f16 %d, %a;", 16, 10, SPECIAL_POWER, 0, 0x1.125fbee25p-10L, 0, 0x1p-8, 14},
    {"tanh.approx.f16 %d, %a;", 16, 10, SPECIAL_TANGENT, 0, 0, 0x1.02513538p-11L, 0x1p-14, 10},
    {"ex2.approx.ftz.bf16 %d, %a;", 16, 7, SPECIAL_POWER, 0, 0x1p-7L, 0, 0x1p-8, 120},
    {"tanh.approx.bf16 %d, %a;", 16, 7, SPECIAL_TANGENT, 0, 0, 0x1p-8L, 0x1p-14, 10},
};

/* The f16 or bf16 nearest to a value in its normal range, and back. */
static uint64_t encode(double value, uint32_t mantissa) {
    uint64_t bits;
    float narrow = (float)value;
    uint32_t word;
    memcpy(&word, &narrow, sizeof word);
    if (mantissa == 23) return word;
    if (mantissa == 7) return word >> 16;
    memcpy(&bits, &value, sizeof bits);
    uint64_t magnitude = (bits & ~(1ull << 63)) >> 42;
    return (magnitude < (1008u << 10) ? 0 : magnitude - (1008u << 10)) | (bits >> 48 & 0x8000);
}

static double decode(uint64_t bits, uint32_t mantissa) {
    if (mantissa == 23) return single(bits);
    if (mantissa == 7) return single(bits << 16);
    double magnitude = ldexp((double)((bits & 0x3ff) | (bits & 0x7c00 ? 0x400 : 0)),
                             (bits >> 10 & 31 ? (int)(bits >> 10 & 31) : 1) - 25);
    return bits & 0x8000 ? -magnitude : magnitude;
}

static double draw(uint64_t *state, const row *r, bool positive) {
    double share = (double)(sim_random(state) >> 11) * 0x1p-53;
    double spread =
        r->most / r->least > 4096 ? r->least * pow(r->most / r->least, share) : r->least + (r->most - r->least) * share;
    return positive || sim_random(state) & 1 ? spread : -spread;
}

/* Whether a result of element i is as near as the ISA says. */
static bool is_near(const void *context, size_t i, const void *result) {
    const row *r = context;
    uint64_t bits = 0;
    memcpy(&bits, result, r->bits / 8);
    long double ideal = special_reference(r->exact, decode(a[i], r->mantissa), decode(b[i], r->mantissa));
    int exponent;
    frexpl(ideal, &exponent);
    int last = exponent - 1 < -126 && r->mantissa == 23 ? -149 : exponent - 1 - (int)r->mantissa;
    long double bound = r->ulp * ldexpl(1, last) + r->relative * fabsl(ideal) + r->absolute;
    return fabsl((long double)decode(bits, r->mantissa) - ideal) <= bound * 1.0000001L;
}

static void approximations_stay_within_their_bound(void **state) {
    (void)state;
    if (!special_reference_ready()) skip();
    for (size_t n = 0; n < sizeof rows / sizeof *rows; n++) {
        const row *r = &rows[n];
        bool positive =
            r->exact == SPECIAL_ROOT || r->exact == SPECIAL_RECIPROCAL_ROOT || r->exact == SPECIAL_LOGARITHM;
        bool moved = false;
        uint64_t random = seed + n;
        static uint64_t others[COUNT];
        for (size_t i = 0; i < COUNT; i++) {
            a[i] = encode(draw(&random, r, positive), r->mantissa);
            b[i] = encode(draw(&random, r, positive), r->mantissa);
        }
        bool binary = r->exact == SPECIAL_QUOTIENT;
        run_allowing(r->code, r->bits, binary, seed, results, is_near, r);
        run_allowing(r->code, r->bits, binary, seed, others, is_near, r);
        assert_memory_equal(results, others, sizeof results);
        run_allowing(r->code, r->bits, binary, seed + 1, others, is_near, r);
        for (size_t i = 0; i < COUNT; i++) {
            if (!is_near(r, i, &results[i])) fail_at(r->code, i, "beyond the stated error");
            moved = moved || results[i] != others[i];
        }
        if (!moved) fail_msg("%s: the seed moves nothing", r->code);
    }
}

/* The ISA's tables: -inf, -0, +0, +inf, NaN. */
static void edges_are_as_the_tables_say(void **state) {
    (void)state;
    enum { NAN32 = 0x7fffffff, INF = 0x7f800000, ONE = 0x3f800000 };
    static const struct {
        const char *code;
        uint32_t wanted[5];
    } tables[] = {
        {"rcp.approx.f32 %d, %a;", {0x80000000, 0xff800000, INF, 0, NAN32}},
        {"sqrt.approx.f32 %d, %a;", {NAN32, 0x80000000, 0, INF, NAN32}},
        {"rsqrt.approx.f32 %d, %a;", {NAN32, 0xff800000, INF, 0, NAN32}},
        {"sin.approx.f32 %d, %a;", {NAN32, 0x80000000, 0, NAN32, NAN32}},
        {"cos.approx.f32 %d, %a;", {NAN32, ONE, ONE, NAN32, NAN32}},
        {"lg2.approx.f32 %d, %a;", {NAN32, 0xff800000, 0xff800000, INF, NAN32}},
        {"ex2.approx.f32 %d, %a;", {0, ONE, ONE, INF, NAN32}},
        {"tanh.approx.f32 %d, %a;", {0xbf800000, 0x80000000, 0, ONE, NAN32}},
    };
    static const uint32_t inputs[5] = {0xff800000, 0x80000000, 0, INF, 0xffc12345};
    for (size_t n = 0; n < sizeof tables / sizeof *tables; n++) {
        harness_case test = {.code = tables[n].code, .result_bits = 32, .source_bits = {32}, .seed = seed};
        const void *sources[HARNESS_SOURCES] = {inputs};
        uint32_t is[5];
        harness_run(&test, 5, is, sources);
        for (int i = 0; i < 5; i++)
            if (is[i] != tables[n].wanted[i]) fail_msg("%s of 0x%x is 0x%x", tables[n].code, inputs[i], is[i]);
    }
}

/* What libdevice's functions of f64 scale by. */
static void whole_powers_of_two_are_exact(void **state) {
    (void)state;
    enum { LEAST = -126, POWERS = 254, SEEDS = 8 };
    float powers[POWERS];
    uint32_t is[POWERS];
    for (int i = 0; i < POWERS; i++)
        powers[i] = (float)(LEAST + i);
    for (uint64_t s = 1; s <= SEEDS; s++) {
        harness_case test = {.code = "ex2.approx.ftz.f32 %d, %a;", .result_bits = 32, .source_bits = {32}, .seed = s};
        const void *sources[HARNESS_SOURCES] = {powers};
        harness_run(&test, POWERS, is, sources);
        for (uint32_t i = 0; i < POWERS; i++)
            assert_int_equal(is[i], (i + 1) << 23);
    }
}

/* Only its upper half is there, and within 2^-20; where the ISA promises less, any device may be as it is. */
static bool is_gross(const void *context, size_t i, const void *result) {
    special_function function = *(const special_function *)context;
    uint64_t bits;
    memcpy(&bits, result, sizeof bits);
    double x = number(a[i] & ~0xffffffffull, true), is = number(bits, true);
    if (bits & 0xffffffff) return false;
    if (!isnormal(x) || (function == SPECIAL_RECIPROCAL_ROOT && x < 0)) return true;
    long double ideal = special_reference(function, x, 0);
    return fabsl(ideal) < 0x1p-1022L || fabsl(is - ideal) <= fabsl(ideal) * 0x1p-20L;
}

/* rcp and rsqrt.approx.ftz.f64 read and write the upper half of their registers. */
static void gross_approximations_of_f64(void **state) {
    (void)state;
    if (!special_reference_ready()) skip();
    for (int reciprocal_of_root = 0; reciprocal_of_root < 2; reciprocal_of_root++) {
        const char *code = reciprocal_of_root ? "rsqrt.approx.ftz.f64 %d, %a;" : "rcp.approx.ftz.f64 %d, %a;";
        const special_function function = reciprocal_of_root ? SPECIAL_RECIPROCAL_ROOT : SPECIAL_RECIPROCAL;
        operands(a, b, true);
        a[0] = 0xfffull << 51 | 5;
        run_allowing(code, 64, false, seed, results, is_gross, &function);
        assert_true(results[0] == 0x7fffffff00000000);
        for (size_t i = 1; i < COUNT; i++)
            if (!is_gross(&function, i, &results[i]))
                fail_at(code, i, "its lower half is not zero, or it is too far off");
    }
}

int main(void) {
    seed = harness_seed();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(correctly_rounded),
        cmocka_unit_test(flushed),
        cmocka_unit_test(approximations_stay_within_their_bound),
        cmocka_unit_test(edges_are_as_the_tables_say),
        cmocka_unit_test(whole_powers_of_two_are_exact),
        cmocka_unit_test(gross_approximations_of_f64),
    };
    return cmocka_run_group_tests_name("ptx_special", tests, NULL, NULL);
}
