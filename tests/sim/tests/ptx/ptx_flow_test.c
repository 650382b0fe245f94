/* Branches, guards and calls of PTX, one at a time. */
#include "tests/sim/tests/ptx/ptx_rows.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(rows) (sizeof(rows) / sizeof *(rows))

static uint64_t seed;

static uint64_t expect_choice(const row_values *x) {
    static const uint64_t values[4] = {10, 11, 12, 13};
    return values[x->raw[0] & 3];
}

static uint64_t expect_guarded(const row_values *x) {
    return x->raw[0] & 1 ? x->raw[1] : x->raw[0];
}

static uint64_t expect_product(const row_values *x) {
    return (x->raw[0] & 15) * x->raw[1];
}

static uint64_t expect_least(const row_values *x) {
    return x->raw[0] < x->raw[1] ? x->raw[0] : x->raw[1];
}

static void branches_and_guards(void **state) {
    (void)state;
    static const ptx_row rows[] = {
        {"and.$ %t0, %a, 3;\nWAYS: .branchtargets L0, L1, L2, L3;\nbrx.idx %t0, WAYS;\n"
         "L3: mov.$ %d, 13;\nbra END;\nL2: mov.$ %d, 12;\nbra END;\nL1: mov.$ %d, 11;\nbra END;\nL0: mov.$ %d, "
         "10;\nEND:",
         "b32",
         SAME,
         1,
         {0},
         expect_choice,
         0},
        {"and.$ %t0, %a, 1;\nsetp.eq.u32 %q, %t0, 1;\n@%q mov.$ %d, %b;\n@!%q mov.$ %d, %a;",
         "b32",
         SAME,
         2,
         {0},
         expect_guarded,
         0},
        {"and.$ %t0, %a, 1;\nsetp.eq.u32 %q, %t0, 1;\nmov.$ %d, %a;\n@!%q bra OVER;\nmov.$ %d, %b;\nOVER:",
         "b32",
         SAME,
         2,
         {0},
         expect_guarded,
         0},
        {"and.$ %t0, %a, 15;\nmov.$ %d, 0;\nAGAIN:\nsetp.eq.u32 %q, %t0, 0;\n@%q bra DONE;\nadd.u32 %d, %d, %b;\n"
         "sub.u32 %t0, %t0, 1;\nbra AGAIN;\nDONE:",
         "b32",
         SAME,
         2,
         {0},
         expect_product,
         0},
        {"setp.lt.u32 %q, %a, %b;\n@%q bra FIRST;\n{\n.reg .b32 %own;\nmov.$ %own, %b;\nmov.$ %d, %own;\n}\nbra.uni "
         "END;\n"
         "FIRST: mov.$ %d, %a;\nEND:",
         "b32",
         SAME,
         2,
         {0},
         expect_least,
         0},
        /* Labels are a block's own: of the same name in two, of a name outside of it, and seen from within. */
        {"and.$ %t0, %a, 1;\nsetp.eq.u32 %q, %t0, 1;\nmov.$ %d, %a;\n"
         "{\n@!%q bra OVER;\nmov.$ %d, %b;\nOVER:\n}\n{\n@%q bra OVER;\nmov.$ %d, %a;\n{\nbra OVER;\n}\n"
         "OVER:\n}\n{\nbra OUT;\n}\nOVER: mov.$ %d, 77;\nOUT:",
         "b32",
         SAME,
         2,
         {0},
         expect_guarded,
         0},
    };
    ptx_rows_check(rows, COUNT(rows), &seed);
}

static void wrong_targets_are_refused(void **state) {
    (void)state;
    harness_case test = {.code = "WAYS: .branchtargets L0, L1;\nbrx.idx 1, NOWHERE;\nL0:\nL1:", .result_bits = 32};
    test.source_bits[0] = 32;
    assert_non_null(strstr(harness_refusal(&test), "NOWHERE"));
    test.code = "brx.idx %a, L0;\nL0:";
    assert_non_null(strstr(harness_refusal(&test), "list"));
    test.code = "brx %a, L0;\nL0:";
    assert_non_null(strstr(harness_refusal(&test), "idx"));
    test.code = "bra L0;\nL0:\nL0:";
    assert_non_null(strstr(harness_refusal(&test), "label L0 is defined twice"));
    test.code = "bra L0;\n{\nL0:\n}";
    assert_non_null(strstr(harness_refusal(&test), "L0 is not declared"));
    test.code = "call %x0;";
    assert_non_null(strstr(harness_refusal(&test), "prototype"));
    test.code = "P: .callprototype _ (.param .b32 _);\ncall %x0, P;";
    assert_non_null(strstr(harness_refusal(&test), "not given"));
    test.code = "P: .callprototype _ ();\ncall %x0, P, P;";
    assert_non_null(strstr(harness_refusal(&test), "(results), function"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(branches_and_guards),
        cmocka_unit_test(wrong_targets_are_refused),
    };
    seed = harness_seed();
    return cmocka_run_group_tests_name("ptx_flow", tests, NULL, NULL);
}
