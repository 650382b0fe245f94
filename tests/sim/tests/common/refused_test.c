/* What is known and not simulated is refused when a module is loaded: with its place, its name and why. */
#include "tests/sim/amdgcn/decode/amd_code.h"
#include "tests/sim/ptx/decode/ptx_code.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

typedef struct refusal {
    const char *name, *why;
} refusal;

static const refusal ptx_refusals[] = {
#define PTX_REFUSED(name, why) {name, why},
#include "tests/sim/ptx/decode/ptx_refused.def"
#undef PTX_REFUSED
};

static const refusal amd_refusals[] = {
#define AMD_REFUSED(beginning, why) {beginning, why},
#include "tests/sim/amdgcn/decode/amd_refused.def"
#undef AMD_REFUSED
};

static void expect_words(const char *text, const char *words) {
    if (!strstr(text, words)) fail_msg("\"%s\" is not in \"%s\"", words, text);
}

/* The instruction in line 5 of a module that is otherwise right. */
static void ptx_names_line_instruction_and_reason(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof ptx_refusals / sizeof *ptx_refusals; i++) {
        char text[512], why[512] = "";
        int size = snprintf(text, sizeof text,
                            ".version 8.8\n.target sm_120\n.address_size 64\n.visible .entry k() {\n%s.b32;\nret;\n}\n",
                            ptx_refusals[i].name);
        assert_null(ptx_program_load(text, (size_t)size, 120, why, sizeof why));
        expect_words(why, ptx_refusals[i].name);
        expect_words(why, "is not simulated: ");
        expect_words(why, ptx_refusals[i].why);
        expect_words(why, "5");
    }
}

static void amd_names_instruction_and_reason(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof amd_refusals / sizeof *amd_refusals; i++) {
        char text[128], why[512] = "";
        amd_op op = {0}, second = {0};
        snprintf(text, sizeof text, "%ssome_b32 v0, v1", amd_refusals[i].name);
        assert_false(amd_decode(text, &op, &second, why, sizeof why));
        expect_words(why, amd_refusals[i].name);
        expect_words(why, "is not simulated: ");
        expect_words(why, amd_refusals[i].why);
    }
}

static void what_nobody_knows_is_refused_too(void **state) {
    (void)state;
    static const char text[] =
        ".version 8.8\n.target sm_120\n.address_size 64\n.visible .entry k() {\nfrobnicate.b32;\nret;\n}\n";
    char why[512] = "";
    amd_op op = {0}, second = {0};
    assert_null(ptx_program_load(text, sizeof text - 1, 120, why, sizeof why));
    expect_words(why, "frobnicate");
    assert_false(amd_decode("v_frobnicate_b32 v0, v1", &op, &second, why, sizeof why));
    expect_words(why, "v_frobnicate_b32 is not simulated");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ptx_names_line_instruction_and_reason),
        cmocka_unit_test(amd_names_instruction_and_reason),
        cmocka_unit_test(what_nobody_knows_is_refused_too),
    };
    return cmocka_run_group_tests_name("refused", tests, NULL, NULL);
}
