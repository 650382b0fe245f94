/* Functions of PTX: parameters and results in registers, calls with registers and constants, and variables that a
 * function declares. */
#include "tests/sim/ptx/warp/ptx_warp.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { LANES = 32, OUT = 3 };

#define HEAD ".version 9.0\n.target sm_90\n.address_size 64\n"
/* The kernel: %a is the lane, out[OUT * lane + i] what the code stores at [%out + 4 i]. */
#define KERNEL_BEGIN                                                                             \
    ".visible .entry kernel(.param .u64 out)\n{\n.reg .pred %p;\n.reg .b32 %a, %r<8>;\n"         \
    ".reg .b16 %h<8>;\n.reg .b64 %out, %x<4>;\nmov.u32 %a, %tid.x;\nld.param.u64 %out, [out];\n" \
    "mul.wide.u32 %x0, %a, 12;\nadd.u64 %out, %out, %x0;\n"
#define KERNEL_END "ret;\n}\n"

enum { OUTPUT, GLOBALS, REGIONS };

static bool find(void *context, uint64_t address, sim_region *out_region) {
    const sim_region *regions = context;
    for (int i = 0; i < REGIONS; i++) {
        *out_region = regions[i];
        if (address - out_region->base < out_region->size) return true;
    }
    return false;
}

static void run(const char *text, uint32_t out[LANES][OUT]) {
    char why[512];
    ptx_program *program = ptx_program_load(text, strlen(text), 90, why, sizeof why);
    if (!program) fail_msg("%s", why);
    uint64_t parameters[] = {(uintptr_t)out};
    uint8_t *globals = aligned_alloc(256, program->global_bytes + 256u - program->global_bytes % 256);
    assert_non_null(globals);
    ptx_program_initialise(program, globals);
    sim_region regions[REGIONS] = {[OUTPUT] = {.base = (uintptr_t)out, .size = LANES * OUT * 4},
                                   [GLOBALS] = {.base = (uintptr_t)globals, .size = program->global_bytes}};
    ptx_launch launch = {.program = program,
                         .code = ptx_program_find(program, "kernel"),
                         .grid = {1, 1, 1},
                         .block = {LANES, 1, 1},
                         .parameters = (const uint8_t *)parameters,
                         .globals = (uintptr_t)globals,
                         .find = find,
                         .find_context = regions,
                         .seed = 1,
                         .budget = 1 << 20,
                         .threads = 1};
    sim_counters counters = {0};
    sim_report report;
    if (!ptx_launch_run(&launch, &counters, &report)) fail_msg("%s", report.text);
    free(globals);
    ptx_program_free(program);
}

static void parameters_may_be_registers(void **state) {
    (void)state;
    static const char text[] = HEAD
        ".func (.reg .u32 r) product (.reg .u32 x, .reg .u32 y)\n{\nmul.lo.u32 r, x, y;\nret;\n}\n"
        /* Ends without a return, and keeps a guard before one. */
        ".func (.reg .u32 r) small (.reg .u32 x)\n{\n.reg .pred %p;\nmov.u32 r, 100;\nsetp.gt.u32 %p, x, 15;\n"
        "@%p ret;\nmov.u32 r, x;\n}\n"
        ".func (.reg .u64 r, .reg .f32 s) both (.reg .v4 .u16 x)\n{\n.reg .b32 %a, %b;\n"
        "mov.b32 %a, {x.x, x.y};\nmov.b32 %b, {x.z, x.w};\nmov.b64 r, {%b, %a};\nmov.f32 s, 0f3F800000;\nret;\n}\n"
        /* A recursion: registers are each call's own. */
        ".func (.reg .u32 r) sum (.reg .u32 n)\n{\n.reg .pred %p;\n.reg .u32 %less, %rest;\nmov.u32 r, 0;\n"
        "setp.eq.u32 %p, n, 0;\n@%p ret;\nsub.u32 %less, n, 1;\ncall (%rest), sum, (%less);\nadd.u32 r, n, %rest;\n"
        "ret;\n}\n" KERNEL_BEGIN "call (%r0), product, (%a, 7);\ncall (%r1), small, (%a);\nadd.u32 %r0, %r0, %r1;\n"
        "st.global.u32 [%out], %r0;\n"
        ".reg .v4 .u16 %v;\n.reg .f32 %f;\nmov.b16 %v.x, 1;\nmov.b16 %v.y, 2;\nmov.b16 %v.z, 3;\ncvt.u16.u32 %v.w, "
        "%a;\n"
        "call.uni (%x1, %f), both, (%v);\nmov.b64 {%r2, %r3}, %x1;\nmov.b32 %r4, %f;\nadd.u32 %r2, %r2, %r4;\n"
        "xor.b32 %r2, %r2, %r3;\nst.global.u32 [%out+4], %r2;\n"
        "mov.u32 %r5, 77;\nsetp.lt.u32 %p, %a, 8;\n@%p call (%r5), sum, (%a);\nst.global.u32 [%out+8], "
        "%r5;\n" KERNEL_END;
    uint32_t out[LANES][OUT];
    run(text, out);
    for (uint32_t l = 0; l < LANES; l++) {
        assert_int_equal(out[l][0], l * 7 + (l > 15 ? 100 : l));
        assert_int_equal(out[l][1], ((3 | l << 16) + 0x3f800000u) ^ 0x20001u);
        assert_int_equal(out[l][2], l < 8 ? l * (l + 1) / 2 : 77);
    }
}

/* Of a function whose parameters are in memory; and one called through a register. */
static void arguments_may_be_registers(void **state) {
    (void)state;
    static const char text[] =
        HEAD ".func (.param .b32 r) difference (.param .b32 x, .param .b32 y)\n{\n.reg .b32 %a, %b;\n"
             "ld.param.b32 %a, [x];\nld.param.b32 %b, [y];\nsub.u32 %a, %a, %b;\nst.param.b32 [r], %a;\nret;\n}\n"
             ".func (.reg .b32 r) next (.reg .b32 x)\n{\nadd.u32 r, x, 1;\nret;\n}\n" KERNEL_BEGIN
             "call (%r0), difference, (%a, 5);\nst.global.u32 [%out], %r0;\n"
             "{\n.param .b32 %y;\nst.param.b32 [%y], 3;\ncall (%r0), difference, (%a, %y);\n}\nst.global.u32 [%out+4], "
             "%r0;\n"
             "mov.u64 %x1, next;\nNEXT: .callprototype (.reg .b32 _) _ (.reg .b32 _);\n"
             "call (%r0), %x1, (%a), NEXT;\nst.global.u32 [%out+8], %r0;\n" KERNEL_END;
    uint32_t out[LANES][OUT];
    run(text, out);
    for (uint32_t l = 0; l < LANES; l++) {
        assert_int_equal(out[l][0], l - 5);
        assert_int_equal(out[l][1], l - 3);
        assert_int_equal(out[l][2], l + 1);
    }
}

/* A global variable within a function is the module's, of a name that the block alone knows. */
static void functions_have_global_variables(void **state) {
    (void)state;
    static const char text[] = HEAD
        ".global .u32 t[2] = {1000, 2000};\n" KERNEL_BEGIN ".shared .align 16 .b8 s[512];\n"
        "st.global.u32 [%out], 0;\n{\n.global .align 16 .u32 t[4] = {10, 20, 30, 40};\n"
        "and.b32 %r0, %a, 3;\nmul.wide.u32 %x1, %r0, 4;\nmov.u64 %x2, t;\nadd.u64 %x2, %x2, %x1;\n"
        "ld.global.u32 %r1, [%x2];\nst.global.u32 [%out], %r1;\n"
        "mul.lo.u32 %r2, %a, 16;\nmov.u32 %r3, s;\nadd.u32 %r2, %r2, %r3;\ncp.async.ca.shared.global [%r2], [t], 16;\n"
        "cp.async.wait_all;\nld.shared.u32 %r1, [%r2+8];\nst.global.u32 [%out+4], %r1;\n}\n"
        "ld.global.u32 %r1, [t+4];\nst.global.u32 [%out+8], %r1;\n" KERNEL_END;
    uint32_t out[LANES][OUT];
    run(text, out);
    for (uint32_t l = 0; l < LANES; l++) {
        assert_int_equal(out[l][0], 10 * (l % 4 + 1));
        assert_int_equal(out[l][1], 30);
        assert_int_equal(out[l][2], 2000);
    }
}

/* ptxas takes a register and a number for a sum wherever a register may stand. */
static void operands_may_be_sums(void **state) {
    (void)state;
    static const char text[] = HEAD KERNEL_BEGIN
        "st.global.u32 [%out], %a + 7;\nadd.u32 %r0, %a + 1, %a + 0x100;\nst.global.u32 [%out+4], %r0;\n"
        "setp.lt.u32 %p, %a, 4;\nmov.u32 %r1, 3;\n@%p mov.u32 %r1, %r1 + 2;\nst.global.u32 [%out + 8], "
        "%r1;\n" KERNEL_END;
    uint32_t out[LANES][OUT];
    run(text, out);
    for (uint32_t l = 0; l < LANES; l++) {
        assert_int_equal(out[l][0], l + 7);
        assert_int_equal(out[l][1], 2 * l + 0x101);
        assert_int_equal(out[l][2], l < 4 ? 5 : 3);
    }
}

static void what_makes_no_sense_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *word;
    } rows[] = {
        {HEAD ".visible .entry kernel(.reg .u64 out)\n{\nret;\n}\n", "must be .param"},
        {HEAD ".func f (.reg .pred p)\n{\nret;\n}\n", "predicate"},
        {HEAD ".func f (.local .b32 p)\n{\nret;\n}\n", "neither .param nor .reg"},
        {HEAD ".func f (.reg .u32 x)\n{\nret;\n}\n" KERNEL_BEGIN "call f, (%x1);\n" KERNEL_END,
         "takes 32 bits, %x1 has 64"},
        {HEAD KERNEL_BEGIN ".reg .f32 %f;\nst.global.f32 [%out], %f + 1;\n" KERNEL_END, "no sum"},
        {HEAD KERNEL_BEGIN "st.global.v2.u32 [%out], {%a + 1, %a};\n" KERNEL_END, "may not be a sum"},
        {HEAD ".func f (.reg .u32 x)\n{\nret;\n}\n" KERNEL_BEGIN "call f;\n" KERNEL_END, "x is not given"},
        {HEAD ".func f (.reg .u32 x)\n{\nret;\n}\n" KERNEL_BEGIN "call f, (%a, %a);\n" KERNEL_END, "more is given"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char why[512] = "it is taken";
        ptx_program *program = ptx_program_load(rows[i].text, strlen(rows[i].text), 90, why, sizeof why);
        if (program || !strstr(why, rows[i].word)) fail_msg("row %zu: %s", i, why);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_may_be_registers),     cmocka_unit_test(arguments_may_be_registers),
        cmocka_unit_test(functions_have_global_variables), cmocka_unit_test(operands_may_be_sums),
        cmocka_unit_test(what_makes_no_sense_is_refused),
    };
    return cmocka_run_group_tests_name("ptx_function", tests, NULL, NULL);
}
