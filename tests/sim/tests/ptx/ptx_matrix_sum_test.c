/* What mma computes: random operands, special values, rounding, saturation, and the ways to add. */
#include "tests/sim/tests/common/exact.h"
#include "tests/sim/tests/ptx/ptx_harness.h"
#include "tests/sim/tests/ptx/ptx_mma_harness.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TRIALS = 10 };

static uint64_t seed;
static mma_operands operands[TRIALS];
static uint64_t results[TRIALS][MMA_RESULTS];

/* ---- Random operands ---- */

/* The bits of a number whose exponent is within spread of 1's; spread 0: any bits at all. */
static uint64_t random_bits(const mma_type *type, uint32_t spread) {
    uint64_t bits = sim_random(&seed);
    if (type->bits < 64) bits &= (1ull << type->bits) - 1;
    if (!spread || (type->kind != MMA_FLOAT && type->kind != MMA_DOUBLE)) return bits;
    /* A tf32 stands in the upper bits of a register. */
    int low = (int)type->bits - 1 - type->exponent_bits;
    uint64_t bias = (1ull << (type->exponent_bits - 1)) - 1;
    uint64_t exponent = bias - spread / 2 + sim_random(&seed) % spread;
    return (bits & ~(((1ull << type->exponent_bits) - 1) << low)) | exponent << low;
}

/* Every third trial has any bits, with few numbers that are not finite; the others have numbers of like size. */
static void fill(const mma_form *f) {
    for (uint32_t t = 0; t < TRIALS; t++) {
        uint32_t spread = t % 3 == 2 ? 0 : t % 3 == 1 ? 6 : 1;
        for (uint32_t i = 0; i < f->matrices * f->m * f->k; i++)
            operands[t].a[i] = random_bits(f->a, sim_random(&seed) % 8 ? spread | 1 : spread);
        for (uint32_t i = 0; i < f->matrices * f->k * f->n; i++)
            operands[t].b[i] = random_bits(f->b, sim_random(&seed) % 8 ? spread | 1 : spread);
        for (uint32_t i = 0; i < f->matrices * f->m * f->n; i++)
            operands[t].c[i] = random_bits(f->c, spread);
    }
}

/* ---- References ---- */

/* The numbers that make one element. */
typedef struct sum {
    double a[256], b[256], c;
    uint32_t count;
} sum;

static sum sum_of(const mma_form *f, const mma_operands *x, uint32_t i) {
    uint32_t matrix = i / (f->m * f->n), row = i / f->n, column = i % f->n;
    sum s = {.c = mma_number(f->c, x->c[i]), .count = f->k};
    for (uint32_t l = 0; l < f->k; l++) {
        s.a[l] = mma_number(f->a, x->a[row * f->k + l]);
        s.b[l] = mma_number(f->b, x->b[(matrix * f->k + l) * f->n + column]);
        if (f->a->kind == MMA_BIT) {
            s.a[l] = f->exclusive ? s.a[l] != s.b[l] : s.a[l] * s.b[l];
            s.b[l] = 1;
        }
    }
    return s;
}

/* The sum in f64, which says whether it is finite: no product of narrower formats overflows there. */
static double plain(const sum *s) {
    double value = s->c;
    for (uint32_t l = 0; l < s->count; l++)
        value += s->a[l] * s->b[l];
    return value;
}

static uint64_t rounded(const mma_type *d, double value, exact_rounding rounding) {
    exact x = {{0}};
    exact_add_product(&x, value, 1);
    return exact_round(&x, d->exponent_bits, d->mantissa_bits, rounding);
}

/* What a NaN or an infinity gives. */
static uint64_t special_bits(const mma_type *d, double value) {
    uint64_t infinity = ((1ull << d->exponent_bits) - 1) << d->mantissa_bits;
    if (isnan(value)) return (1ull << (d->bits - 1)) - 1;
    return infinity | (uint64_t)(value < 0) << (d->bits - 1);
}

static uint64_t exact_bits(const mma_form *f, const sum *s) {
    double value = plain(s);
    exact x = {{0}};
    if (!isfinite(value)) return special_bits(f->d, value);
    exact_add_product(&x, s->c, 1);
    for (uint32_t l = 0; l < s->count; l++)
        exact_add_product(&x, s->a[l], s->b[l]);
    return exact_round(&x, f->d->exponent_bits, f->d->mantissa_bits, EXACT_RN);
}

static uint64_t sequential_bits(const mma_form *f, const sum *s) {
    double value = s->c;
    for (uint32_t l = 0; l < s->count; l++) {
        exact x = {{0}};
        double product = s->a[l] * s->b[l];
        if (!isfinite(value) || !isfinite(product)) {
            value += product;
            continue;
        }
        exact_add_product(&x, value, 1);
        exact_add_product(&x, s->a[l], s->b[l]);
        value = sim_decode(SIM_f32, (uint32_t)exact_round(&x, 8, 23, EXACT_RN));
    }
    return isfinite(value) ? rounded(f->d, value, EXACT_RN) : special_bits(f->d, value);
}

static bool same(const mma_type *d, uint64_t got, uint64_t wanted) {
    uint64_t sign = 1ull << (d->bits - 1);
    return got == wanted || (!(got & ~sign) && !(wanted & ~sign)); /* the ISA says nothing of the sign of a zero */
}

static void check(const mma_form *f, const char *mode, uint32_t trial, uint32_t i, uint64_t wanted) {
    if (!same(f->d, results[trial][i], wanted))
        fail_msg("%s %s, trial %u, element %u: 0x%llx, must be 0x%llx", f->name, mode, trial, i,
                 (unsigned long long)results[trial][i], (unsigned long long)wanted);
}

/* ---- Floats ---- */

/* Cut off, a sum is off by no more than so many units of its largest addend. What may overflow on the way is left out.
 */
static void check_cut(const mma_form *f, uint32_t trial, uint32_t i, const sum *s) {
    double value = plain(s), largest = isfinite(s->c) ? fabs(s->c) : 0, got = mma_number(f->d, results[trial][i]);
    bool narrow = f->d->bits == 16;
    for (uint32_t l = 0; l < s->count; l++)
        if (isfinite(s->a[l] * s->b[l])) largest = fmax(largest, fabs(s->a[l] * s->b[l]));
    /* Fractions of at least 13 bits for 8-bit numbers, else 23; partial sums may be as large as all addends. */
    double most = largest * (s->count + 1), unit = ldexp(most, f->a->bits == 8 ? -13 : -23);
    double bound = unit * 2 * (s->count + 2) + (narrow ? ldexp(most, -9) + 0x1p-23 : 0);
    if (most >= (narrow ? 65504.0 : 0x1.fffffep127)) return;
    if (!isfinite(value)) {
        check(f, "truncating", trial, i, special_bits(f->d, value));
    } else if (!(fabs(got - value) <= bound)) {
        fail_msg("%s truncating, trial %u, element %u: %a, must be within %a of %a", f->name, trial, i, got, bound,
                 value);
    }
}

static void check_floats(const mma_form *f) {
    if (f->d->kind != MMA_FLOAT) return;
    for (int mode = 0; mode < SIM_SUM_MODES; mode++) {
        fill(f);
        mma_run(f, NULL, "", (sim_sum_mode)mode, operands, results, TRIALS);
        for (uint32_t t = 0; t < TRIALS; t++) {
            for (uint32_t i = 0; i < f->matrices * f->m * f->n; i++) {
                sum s = sum_of(f, &operands[t], i);
                if (mode == SIM_SUM_EXACT) check(f, "exact", t, i, exact_bits(f, &s));
                if (mode == SIM_SUM_SEQUENTIAL) check(f, "sequential", t, i, sequential_bits(f, &s));
                /* Each form is for the oldest target that has it, none of which is an H100's. */
                if (mode == SIM_SUM_HOPPER) check(f, "hopper", t, i, exact_bits(f, &s));
                if (mode == SIM_SUM_TRUNCATING) check_cut(f, t, i, &s);
            }
        }
    }
}

static void sums_of_floats_are_made_as_they_are_named(void **state) {
    (void)state;
    mma_each_form(check_floats);
}

/* ---- f64 ---- */

static void check_doubles(const mma_form *f) {
    static const struct {
        const char *name;
        exact_rounding rounding;
    } roundings[] = {{"", EXACT_RN}, {".rn", EXACT_RN}, {".rz", EXACT_RZ}, {".rm", EXACT_RM}, {".rp", EXACT_RP}};
    if (f->d->kind != MMA_DOUBLE) return;
    for (size_t r = 0; r < sizeof roundings / sizeof *roundings; r++) {
        fill(f);
        for (uint32_t t = 0; t < TRIALS; t++)
            for (uint32_t i = 0; i < f->m * f->k; i++)
                operands[t].a[i] = random_bits(f->a, 9);
        for (uint32_t t = 0; t < TRIALS; t++)
            for (uint32_t i = 0; i < f->k * f->n; i++)
                operands[t].b[i] = random_bits(f->b, 9);
        for (uint32_t t = 0; t < TRIALS; t++)
            for (uint32_t i = 0; i < f->m * f->n; i++)
                operands[t].c[i] = random_bits(f->c, 60);
        mma_run(f, NULL, roundings[r].name, (sim_sum_mode)(r % SIM_SUM_MODES), operands, results, TRIALS);
        for (uint32_t t = 0; t < TRIALS; t++) {
            for (uint32_t i = 0; i < f->m * f->n; i++) {
                sum s = sum_of(f, &operands[t], i);
                double value = s.c;
                for (uint32_t l = 0; l < s.count; l++) {
                    exact x = {{0}};
                    exact_add_product(&x, value, 1);
                    exact_add_product(&x, s.a[l], s.b[l]);
                    uint64_t bits = exact_round(&x, 11, 52, roundings[r].rounding);
                    memcpy(&value, &bits, sizeof value);
                }
                uint64_t wanted;
                memcpy(&wanted, &value, sizeof wanted);
                check(f, roundings[r].name, t, i, wanted);
            }
        }
    }
}

static void sums_of_f64_are_chains_of_fma(void **state) {
    (void)state;
    mma_each_form(check_doubles);
}

/* ---- Integers ---- */

static void check_integers(const mma_form *f) {
    if (f->d->kind != MMA_SIGNED) return;
    for (int saturates = 0; saturates < (f->a->kind == MMA_BIT ? 1 : 2); saturates++) {
        fill(f);
        for (uint32_t i = 0; i < f->m * f->n; i++) { /* so near the ends that sums go beyond */
            operands[0].c[i] = 0x7fffffff - sim_random(&seed) % 1000;
            operands[1].c[i] = 0x80000000 + sim_random(&seed) % 1000;
        }
        mma_run(f, NULL, saturates ? ".satfinite" : "", SIM_SUM_EXACT, operands, results, TRIALS);
        for (uint32_t t = 0; t < TRIALS; t++) {
            for (uint32_t i = 0; i < f->m * f->n; i++) {
                sum s = sum_of(f, &operands[t], i);
                double value = plain(&s);
                if (saturates) value = fmin(fmax(value, -0x1p31), 0x1p31 - 1);
                check(f, saturates ? "saturated" : "wrapped", t, i, (uint32_t)(int64_t)value);
            }
        }
    }
}

static void sums_of_integers_are_exact(void **state) {
    (void)state;
    mma_each_form(check_integers);
}

/* ---- Vectors that tell matrix units apart ---- */

/* In A all elements of a line are a, but the first two are first and second; in B all are b. */
static const struct vector {
    const char *target, *form; /* the form's name has this */
    double c, first, second, a, b;
    double truncating, exact;
} vectors[] = {
    /* 24 bits of fraction and 8 terms: products of 2^-24 count, those of 2^-25 are cut off. */
    {"sm_80", "m16n8k16.row.col%s.f32.f16.f16.f32", 1, 0x1p-12, 0x1p-12, 0x1p-12, 0x1p-12, 1 + 0x1p-20, 1 + 0x1p-20},
    {"sm_80", "m16n8k16.row.col%s.f32.f16.f16.f32", 1, 0x1p-12, 0x1p-12, 0x1p-12, 0x1p-13, 1, 1 + 0x1p-21},
    {"sm_75", "m16n8k8.row.col%s.f32.f16.f16.f32", 1, 0x1p-12, 0x1p-12, 0x1p-12, 0x1p-13, 1, 1 + 0x1p-22},
    /* 25 bits and 16 terms. */
    {"sm_90", "m16n8k16.row.col%s.f32.f16.f16.f32", 1, 0x1p-12, 0x1p-12, 0x1p-12, 0x1p-13, 1 + 0x1p-21, 1 + 0x1p-21},
    {"sm_90", "m16n8k16.row.col%s.f32.f16.f16.f32", 1, 0x1p-12, 0x1p-12, 0x1p-12, 0x1p-14, 1, 1 + 0x1p-22},
    {"sm_120", "m16n8k16.row.col%s.f32.bf16.bf16.f32", 1, 0x1p-12, 0x1p-12, 0x1p-12, 0x1p-14, 1, 1 + 0x1p-22},
    /* The result is cut off as well. */
    {"sm_90", "m16n8k16.row.col%s.f32.f16.f16.f32", 1, 0x1.8p-12, 0, 0, 0x1p-12, 1, 1 + 0x1p-23},
    {"sm_90", "m16n8k8.row.col%s.f32.tf32.tf32.f32", -1, -0x1.8p-12, 0, 0, 0x1p-12, -1, -1 - 0x1p-23},
    /* What cancels takes the small ones of its block with it. */
    {"sm_80", "m16n8k16.row.col%s.f32.f16.f16.f32", 0, 0x1p13, -0x1p13, 0x1p-12, 0x1p12, 8, 14},
    {"sm_90", "m16n8k16.row.col%s.f32.f16.f16.f32", 0, 0x1p13, -0x1p13, 0x1p-12, 0x1p12, 14, 14},
    {"sm_80", "m16n8k8.row.col%s.f32.tf32.tf32.f32", 0, 0x1p13, -0x1p13, 0x1p-12, 0x1p12, 4, 6},
    /* 13 bits, in results too: 8-bit numbers on sm_89. */
    {"sm_89", "m16n8k32.row.col%s.f32.e4m3.e4m3.f32", 1, 0x1p-6, 0x1p-6, 0x1p-6, 0x1p-7, 1 + 0x1p-8, 1 + 0x1p-8},
    {"sm_89", "m16n8k32.row.col%s.f32.e4m3.e4m3.f32", 1, 0x1p-6, 0x1p-6, 0x1p-6, 0x1p-8, 1, 1 + 0x1p-9},
    {"sm_90", "m16n8k32.row.col%s.f32.e4m3.e4m3.f32", 1, 0x1p-6, 0x1p-6, 0x1p-6, 0x1p-8, 1 + 0x1p-9, 1 + 0x1p-9},
    {"sm_89", "m16n8k32.row.col%s.f32.e5m2.e5m2.f32", 1 + 0x1p-20, 0, 0, 0, 0, 1, 1 + 0x1p-20},
    /* A subnormal number has the exponent of the least normal one, so that more is cut off beside it. */
    {"sm_89", "m16n8k32.row.col%s.f32.e4m3.e4m3.f32", 0x1p-22, 0x1p-9, 0, 0, 1, 0x1p-9, 0x1p-9 + 0x1p-22},
    {"sm_89", "m16n8k32.row.col%s.f32.e4m3.e4m3.f32", 0x1p-19, 0x1p-6, 0, 0, 1, 0x1p-6 + 0x1p-19, 0x1p-6 + 0x1p-19},
    {"sm_80", "m16n8k16.row.col%s.f32.f16.f16.f32", 0x1p-40, 0x1p-16, 0, 0, 1, 0x1p-16, 0x1p-16 + 0x1p-40},
    /* A result of f16 is rounded to nearest even. */
    {"sm_80", "m16n8k16.row.col%s.f16.f16.f16.f16", 1, 0x1.8p-11, 0, 0, 1, 1 + 0x1p-10, 1 + 0x1p-10},
    {"sm_80", "m16n8k16.row.col%s.f16.f16.f16.f16", 65504, 16, 0, 0, 1, INFINITY, INFINITY},
};

static uint64_t encoded(const mma_type *type, double value) {
    return (uint64_t)sim_encode(type->format, value, SIM_ROUND_NEAREST_EVEN, false) << (type->format == SIM_tf32) * 13;
}

static uint32_t vectors_run;

static void check_vectors(const mma_form *f) {
    for (size_t v = 0; v < sizeof vectors / sizeof *vectors; v++) {
        const struct vector *x = &vectors[v];
        if (!strstr(f->name, x->form)) continue;
        vectors_run++;
        for (uint32_t i = 0; i < f->m * f->k; i++)
            operands[0].a[i] = encoded(f->a, i % f->k == 0 ? x->first : i % f->k == 1 ? x->second : x->a);
        for (uint32_t i = 0; i < f->k * f->n; i++)
            operands[0].b[i] = encoded(f->b, x->b);
        for (uint32_t i = 0; i < f->m * f->n; i++)
            operands[0].c[i] = encoded(f->c, x->c);
        for (int mode = 0; mode < SIM_SUM_MODES; mode += 2) {
            mma_run(f, x->target, "", (sim_sum_mode)mode, operands, results, 1);
            double wanted = mode == SIM_SUM_EXACT ? x->exact : x->truncating;
            for (uint32_t i = 0; i < f->m * f->n; i++)
                if (results[0][i] != encoded(f->d, wanted))
                    fail_msg("%s on %s, vector %zu, mode %d: %a, must be %a", f->name, x->target, v, mode,
                             mma_number(f->d, results[0][i]), wanted);
        }
    }
}

static void matrix_units_cut_off_as_studies_found(void **state) {
    (void)state;
    mma_each_form(check_vectors);
    assert_int_equal(vectors_run, sizeof vectors / sizeof *vectors);
}

int main(void) {
    seed = harness_seed();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_of_floats_are_made_as_they_are_named),
        cmocka_unit_test(sums_of_f64_are_chains_of_fma),
        cmocka_unit_test(sums_of_integers_are_exact),
        cmocka_unit_test(matrix_units_cut_off_as_studies_found),
    };
    return cmocka_run_group_tests_name("ptx_matrix_sum", tests, NULL, NULL);
}
