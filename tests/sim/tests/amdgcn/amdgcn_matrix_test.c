/* Matrix instructions of AMD: where the elements are, by two derivations; what comes of them, against sums in C. */
#include "tests/sim/amdgcn/matrix/amd_matrix.h"
#include "tests/sim/tests/amdgcn/amdgcn_harness.h"
#include "tests/sim/tests/amdgcn/amdgcn_numbers.h"
#include "tests/sim/tests/amdgcn/amdgcn_problem.h"
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- Layouts ---- */

static place first_place(const amd_places *places, uint32_t block, uint32_t row, uint32_t other) {
    return (place){(uint32_t)places->lane[0][row] | places->lane[1][other] | places->lane[2][block],
                   (uint32_t)places->element[0][row] | places->element[1][other] | places->element[2][block]};
}

/* Which k each derivation has at one place: on gfx12 they may differ by an order, the same in all rows. */
static void layout_of_inputs(const shape *s) {
    enum { UNKNOWN = 0xff };
    const amd_matrix *m = s->matrix;
    amd_places places;
    amd_places_of((amd_layout)m->in[s->variant], &places);
    uint8_t order[AMD_COORDINATE_MAX], owner[AMD_LANES][AMD_COORDINATE_MAX][3];
    memset(order, UNKNOWN, sizeof order);
    memset(owner, UNKNOWN, sizeof owner);
    for (uint32_t block = 0; block < m->blocks; block++) {
        for (uint32_t i = 0; i < m->rows; i++) {
            for (uint32_t k = 0; k < m->k; k++) {
                place p = first_place(&places, block, i, k);
                assert_true(p.lane < AMD_LANES && p.element < places.elements);
                uint8_t *own = owner[p.lane][p.element];
                if (own[0] != UNKNOWN) fail_msg("%s: two elements in one place", m->mnemonic);
                own[0] = (uint8_t)block, own[1] = (uint8_t)i, own[2] = (uint8_t)k;
            }
        }
    }
    bool any_order = s->variant == AMD_VARIANT_12 || s->variant == AMD_VARIANT_12_W64;
    for (uint32_t block = 0; block < m->blocks; block++) {
        for (uint32_t i = 0; i < m->rows; i++) {
            for (uint32_t k = 0; k < m->k; k++) {
                place p = problem_input(s, block, i, k);
                const uint8_t *own = owner[p.lane][p.element];
                if (order[k] == UNKNOWN) order[k] = any_order ? own[2] : (uint8_t)k;
                if (own[0] != block || own[1] != i || own[2] != order[k])
                    fail_msg("%s on %s: lane %u, element %u: block %u, row %u, k %u; the second derivation has %u, %u, "
                             "%u",
                             m->mnemonic, s->processor, p.lane, p.element, own[0], own[1], own[2], block, i, k);
            }
        }
    }
}

static void layout_of_outputs(const shape *s) {
    const amd_matrix *m = s->matrix;
    amd_places places;
    amd_places_of((amd_layout)m->out[s->variant], &places);
    for (uint32_t block = 0; block < m->blocks; block++) {
        for (uint32_t i = 0; i < m->rows; i++) {
            for (uint32_t j = 0; j < m->rows; j++) {
                place p = first_place(&places, block, i, j), q = problem_output(s, block, i, j);
                if (p.lane != q.lane || p.element != q.element)
                    fail_msg("%s on %s: D[%u][%u] of block %u: lane %u, element %u; the second derivation has %u, %u",
                             m->mnemonic, s->processor, i, j, block, p.lane, p.element, q.lane, q.element);
            }
        }
    }
}

static void test_layouts(void **state) {
    (void)state;
    problem_each_shape(layout_of_inputs);
    problem_each_shape(layout_of_outputs);
}

/* ---- One-hot matrices ---- */

/* Each row of A has a single 1, which moves on from run to run, and B has unique numbers: each row of D is one of B. Of
 * numbers of 8 bits there are too few: the second time round they count another way. */
static void one_hot(const shape *s) {
    static problem p;
    const amd_matrix *m = s->matrix;
    uint64_t one = amdgcn_encode((amd_matrix_type)m->a, 1);
    memset(&p, 0, sizeof p);
    p.s = *s;
    amd_program *program = problem_load(&p);
    int limit = m->b == AMD_MATRIX_iu4                                   ? 15
                : m->b == AMD_MATRIX_e5m2 || m->b == AMD_MATRIX_e5m2fnuz ? 7
                : s->b_bits == 8                                         ? 15
                : s->b_bits == 16                                        ? 127
                                                                         : 2000;
    bool is_signed = m->b != AMD_MATRIX_iu4 && m->b != AMD_MATRIX_iu8 && m->b != AMD_MATRIX_i8;
    uint64_t digit = (uint64_t)(is_signed ? 2 * limit + 1 : limit + 1);
    for (uint32_t moved = 0; moved < m->k; moved++) {
        for (uint64_t scale = 1; scale < PROBLEM_INPUTS; scale *= digit) {
            int numbers[PROBLEM_INPUTS];
            EACH_INPUT(m) {
                p.a[at] = k == (i + moved) % m->k ? one : 0;
                numbers[at] = (int)(at / scale % digit) - (is_signed ? limit : 0);
                p.b[at] = amdgcn_encode((amd_matrix_type)m->b, numbers[at]);
            }
            problem_run(&p, program);
            EACH_OUTPUT(m) {
                int number = numbers[(block * m->rows + j) * m->k + (i + moved) % m->k];
                uint64_t expected = amdgcn_encode((amd_matrix_type)m->d, number);
                if (p.d[at] != expected) problem_differs(&p, at, expected);
            }
        }
    }
    amd_program_free(program);
}

static void test_one_hot(void **state) {
    (void)state;
    problem_each_shape(one_hot);
}

static void random_matrices(const shape *s) {
    enum { TRIES = 6 };
    static problem p;
    memset(&p, 0, sizeof p);
    p.s = *s;
    amd_program *program = problem_load(&p);
    for (int i = 0; i < TRIES; i++) {
        problem_draw(&p);
        p.sums = (sim_sum_mode)(i % SIM_SUM_MODES);
        problem_run(&p, program);
        if (amdgcn_is_integer((amd_matrix_type)s->matrix->d))
            problem_check_integer(&p, false, false, false);
        else
            problem_check_real(&p);
    }
    amd_program_free(program);
}

static void test_random_matrices(void **state) {
    (void)state;
    problem_each_shape(random_matrices);
    assert_int_equal(problem_inexact[SIM_SUM_EXACT], 0);
    assert_true(problem_inexact[SIM_SUM_SEQUENTIAL] > 1000 &&
                problem_inexact[SIM_SUM_TRUNCATING] > problem_inexact[SIM_SUM_SEQUENTIAL]);
}

/* ---- Special values ---- */

static uint32_t corner_mode = AMDGCN_MODE; /* MODE */

/* The first row of A and column of B are given, the rest is 1. Returns D[0][0]. */
static uint64_t corner(const shape *s, sim_sum_mode sums, double c, uint64_t a0, uint64_t b0, uint64_t a1,
                       uint64_t b1) {
    static problem p;
    const amd_matrix *m = s->matrix;
    memset(&p, 0, sizeof p);
    p.s = *s;
    p.sums = sums;
    amd_program *program = problem_load(&p);
    p.a[0] = a0, p.a[1] = a1, p.b[0] = b0, p.b[1] = b1;
    float narrow = (float)c;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    if (m->d == AMD_MATRIX_f32) p.c[0] = bits;
    problem_before.mode = corner_mode;
    problem_run(&p, program);
    amd_program_free(program);
    return p.d[0];
}

static void test_special_values(void **state) {
    (void)state;
    const uint64_t infinity = 0x7c00, nan = 0x7c01, one = 0x3c00, minus = 0xbc00;
    for (int n = 0; n < SIM_SUM_MODES * 3; n++) {
        sim_sum_mode sums = (sim_sum_mode)(n % SIM_SUM_MODES);
        shape s = n / 3 == 0   ? problem_shape_of("v_mfma_f32_16x16x16_f16", "gfx942", true)
                  : n / 3 == 1 ? problem_shape_of("v_wmma_f32_16x16x16_f16", "gfx1100", false)
                               : problem_shape_of("v_wmma_f32_16x16x16_f16", "gfx1201", true);
        assert_int_equal(corner(&s, sums, 0, infinity, one, 0, 0), 0x7f800000);
        assert_int_equal(corner(&s, sums, 0, infinity, minus, one, one), 0xff800000);
        assert_int_equal(corner(&s, sums, 0, infinity, one, infinity, minus), 0x7fc00000);
        assert_int_equal(corner(&s, sums, 0, infinity, 0, one, one), 0x7fc00000);
        assert_int_equal(corner(&s, sums, 0, nan, one, one, one), 0x7fc00000);
        assert_int_equal(corner(&s, sums, NAN, one, one, one, one), 0x7fc00000);
        assert_int_equal(corner(&s, sums, -INFINITY, infinity, one, 0, 0), 0x7fc00000);
        assert_int_equal(corner(&s, sums, FLT_MAX, 0x7bff, 0x7bff, 0x7bff, 0x7bff), 0x7f7fffff);
        /* Subnormal f16: 2^-24 * 1. */
        assert_int_equal(corner(&s, sums, 0, 1, one, 0, 0), 0x33800000);
        assert_int_equal(corner(&s, sums, -1, one, one, 0, 0), 0);
    }
    /* gfx90a makes zeros of subnormal numbers of f16 and bf16, but not of f32. */
    shape s = problem_shape_of("v_mfma_f32_16x16x16f16", "gfx90a", true);
    assert_int_equal(corner(&s, SIM_SUM_EXACT, 0, 0x3ff, one, one, one), 0x3f800000);
    assert_int_equal(corner(&s, SIM_SUM_EXACT, 0x1p-130, 0x3ff, one, 0, 0), 0);
    s = problem_shape_of("v_mfma_f32_16x16x16bf16_1k", "gfx90a", true);
    assert_int_equal(corner(&s, SIM_SUM_EXACT, 0, 0x1, 0x7f00, 0, 0), 0);
    assert_int_equal(corner(&s, SIM_SUM_EXACT, 0, 0x80, 0x3f00, 0, 0), 0); /* 2^-127 */
    s = problem_shape_of("v_mfma_f32_16x16x16_bf16", "gfx942", true);
    assert_int_equal(corner(&s, SIM_SUM_EXACT, 0, 0x80, 0x3f00, 0, 0), 0x00400000);
    s = problem_shape_of("v_mfma_f32_16x16x4f32", "gfx90a", true);
    assert_int_equal(corner(&s, SIM_SUM_EXACT, 0x1p-140, 0x00800000, 0x3f000000, 0, 0), 0x00400200);
    /* WMMA goes by MODE: bits 4 and 5 keep those of f32, in and out, 6 and 7 those of f16. */
    s = problem_shape_of("v_wmma_f32_16x16x16_f16", "gfx1100", false);
    corner_mode = AMDGCN_MODE & ~0x40u;
    assert_int_equal(corner(&s, SIM_SUM_EXACT, 0, 0x83ff, one, one, one), 0x3f800000);
    corner_mode = AMDGCN_MODE & ~0x10u;
    assert_int_equal(corner(&s, SIM_SUM_EXACT, 0x1p-130, 0, one, 0, 0), 0);
    corner_mode = AMDGCN_MODE & ~0x20u;
    assert_int_equal(corner(&s, SIM_SUM_EXACT, -0x1p-130, 0, one, 0, 0), 0x80000000);
    s = problem_shape_of("v_wmma_f16_16x16x16_f16", "gfx1201", false);
    assert_int_equal(corner(&s, SIM_SUM_EXACT, 0, 0x0800, 0x3400, 0, 0), 0x0200);
    corner_mode = AMDGCN_MODE & ~0x80u;
    assert_int_equal(corner(&s, SIM_SUM_EXACT, 0, 0x0800, 0x3400, 0, 0), 0);
    corner_mode = AMDGCN_MODE;
    /* fp8: NaN of FNUZ is where -0 would be, of OCP all ones; e5m2 has infinities only in OCP's form. */
    s = problem_shape_of("v_mfma_f32_16x16x32_fp8_bf8", "gfx942", true);
    assert_int_equal(corner(&s, SIM_SUM_EXACT, 0, 0x80, 0x40, 0, 0), 0x7fc00000);
    assert_int_equal(corner(&s, SIM_SUM_EXACT, 0, 0x40, 0x80, 0, 0), 0x7fc00000);
    assert_int_equal(corner(&s, SIM_SUM_EXACT, 0, 0x7f, 0x40, 0, 0), 0x43700000); /* 240 */
    assert_int_equal(corner(&s, SIM_SUM_EXACT, 0, 0x40, 0x7f, 0, 0), 0x47600000); /* 57344 */
    s = problem_shape_of("v_wmma_f32_16x16x16_fp8_bf8", "gfx1201", false);
    assert_int_equal(corner(&s, SIM_SUM_EXACT, 0, 0x7f, 0x3c, 0, 0), 0x7fc00000);
    assert_int_equal(corner(&s, SIM_SUM_EXACT, 0, 0x7e, 0x3c, 0, 0), 0x43e00000); /* 448 */
    assert_int_equal(corner(&s, SIM_SUM_EXACT, 0, 0x38, 0x7c, 0, 0), 0x7f800000);
    assert_int_equal(corner(&s, SIM_SUM_EXACT, 0, 0x38, 0x7b, 0, 0), 0x47600000);
}

int main(void) {
    const char *text = getenv("KILN_TEST_SEED");
    problem_random_state = text ? strtoull(text, NULL, 0) : 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layouts),
        cmocka_unit_test(test_one_hot),
        cmocka_unit_test(test_random_matrices),
        cmocka_unit_test(test_special_values),
    };
    if (!amdgcn_harness_ready()) return 0;
    print_message("# seed %llu (KILN_TEST_SEED sets it)\n", (unsigned long long)problem_random_state);
    return cmocka_run_group_tests_name("amdgcn_matrix", tests, NULL, NULL);
}
