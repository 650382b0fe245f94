/* Texts of instructions and what is made of them; what is not known is refused by name. */
#include "tests/sim/amdgcn/decode/amd_llvm.h"
#include "tests/sim/amdgcn/wave/amd_wave.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static amd_op decoded, second;

static const amd_op *decode(const char *text) {
    char why[256];
    memset(&decoded, 0, sizeof decoded);
    memset(&second, 0, sizeof second);
    if (!amd_decode(text, &decoded, &second, why, sizeof why)) fail_msg("%s: %s", text, why);
    return &decoded;
}

static void refused(const char *text, const char *says) {
    char why[256] = "";
    memset(&decoded, 0, sizeof decoded);
    assert_false(amd_decode(text, &decoded, &second, why, sizeof why));
    if (!strstr(why, says)) fail_msg("%s: refused with \"%s\"", text, why);
}

static void test_registers(void **state) {
    (void)state;
    const amd_op *op = decode("s_and_b64 vcc, exec, s[20:21]");
    assert_int_equal(op->class, AMD_CLASS_SCALAR);
    assert_int_equal(op->operand_count, 3);
    assert_int_equal(op->operand[0].index, AMD_VCC);
    assert_int_equal(op->operand[0].count, 2);
    assert_int_equal(op->operand[1].index, AMD_EXEC);
    assert_int_equal(op->operand[2].index, 20);
    assert_int_equal(decode("s_mov_b32 s2, ttmp9")->operand[1].index, AMD_TTMP + 9);
    assert_int_equal(decode("s_mov_b32 m0, s2")->operand[0].index, AMD_M0);
    op = decode("global_load_dwordx4 v[0:3], v[4:5], off offset:-16");
    assert_int_equal(op->operand[0].kind, AMD_OPERAND_VECTOR);
    assert_int_equal(op->operand[0].count, 4);
    assert_int_equal(op->operand[2].kind, AMD_OPERAND_NULL);
    assert_int_equal(op->offset, -16);
    assert_int_equal(decode("v_mov_b32_e32 v1, v255")->operand[1].index, 255);
}

static void test_constants(void **state) {
    (void)state;
    assert_int_equal(decode("s_mov_b32 s0, -1")->operand[1].value, UINT64_MAX);
    assert_int_equal(decode("s_mov_b32 s0, 0x80000000")->operand[1].value, 0x80000000u);
    assert_int_equal(decode("v_ashrrev_i64 v[0:1], 4, 0x80000000")->operand[2].value, 0xffffffff80000000u);
    static const struct {
        const char *text;
        uint64_t bits_64;
        uint32_t bits_32, bits_16;
    } reals[] = {
        {"0.5", 0x3fe0000000000000, 0x3f000000, 0x3800},       {"1.0", 0x3ff0000000000000, 0x3f800000, 0x3c00},
        {"2.0", 0x4000000000000000, 0x40000000, 0x4000},       {"4.0", 0x4010000000000000, 0x40800000, 0x4400},
        {"-0.5", 0xbfe0000000000000, 0xbf000000, 0xb800},      {"-1.0", 0xbff0000000000000, 0xbf800000, 0xbc00},
        {"-2.0", 0xc000000000000000, 0xc0000000, 0xc000},      {"-4.0", 0xc010000000000000, 0xc0800000, 0xc400},
        {"0.15915494", 0x3fc45f306dc9c882, 0x3e22f983, 0x3118}};
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++) {
        char text[64];
        snprintf(text, sizeof text, "v_add_f32_e32 v0, %s, v1", reals[i].text);
        const amd_operand *operand = &decode(text)->operand[1];
        assert_int_equal(operand->value, reals[i].bits_64);
        assert_int_equal(operand->value_32, reals[i].bits_32);
        assert_int_equal(operand->value_16, reals[i].bits_16);
    }
}

static void test_modifiers(void **state) {
    (void)state;
    const amd_op *op = decode("v_cndmask_b32_e64 v4, -|v4|, 0, s[2:3]");
    assert_int_equal(op->encoding, AMD_ENCODING_E64);
    assert_true(op->operand[1].negate && op->operand[1].absolute);
    op = decode("v_or_b32_sdwa v2, v19, v2 dst_sel:BYTE_1 dst_unused:UNUSED_PRESERVE src0_sel:DWORD src1_sel:WORD_1");
    assert_int_equal(op->encoding, AMD_ENCODING_SDWA);
    assert_int_equal(op->dst_select, AMD_SELECT_BYTE_1);
    assert_int_equal(op->dst_unused, 2);
    assert_int_equal(op->operand[2].select, AMD_SELECT_WORD_1);
    op = decode("v_add_f32_dpp v0, v1, v2 quad_perm:[3,2,1,0] row_mask:0xa bank_mask:0xf bound_ctrl:1");
    assert_int_equal(op->dpp, AMD_DPP_QUAD_PERM);
    assert_int_equal(op->dpp_argument, 3 | 2 << 2 | 1 << 4);
    assert_int_equal(op->row_mask, 0xa);
    assert_true(op->bound_ctrl);
    op = decode("v_pk_fma_f32 v[0:1], v[2:3], s[4:5], 1.0 op_sel_hi:[1,0,0] neg_lo:[1,0,0] neg_hi:[0,0,1]");
    assert_int_equal(op->op_sel_hi, 1);
    assert_int_equal(op->neg_lo, 1);
    assert_int_equal(op->neg_hi, 4);
    op = decode("v_mul_f32_e64 v0, v1, v2 clamp mul:4");
    assert_true(op->clamp);
    assert_int_equal(op->omod, 4);
    op = decode("ds_read2_b32 v[0:1], v2 offset0:3 offset1:255");
    assert_int_equal(op->offset, 3);
    assert_int_equal(op->offset1, 255);
}

static void test_dual_instructions(void **state) {
    (void)state;
    const amd_op *op = decode("v_dual_fmaak_f32 v26, s7, v2, 0x4b40007f :: v_dual_lshlrev_b32 v1, 2, v4");
    assert_int_equal(op->operand_count, 4);
    assert_int_equal(op->operand[3].value, 0x4b40007f);
    assert_ptr_equal(op->dual, &second);
    assert_true(second.run == amd_run_v_lshlrev_b32);
    assert_int_equal(second.operand[2].index, 4);
}

static void test_refusals(void **state) {
    (void)state;
    refused("v_smfmac_f32_16x16x32_f16 v[0:3], v[4:5], v[6:9], v10", "v_smfmac_f32_16x16x32_f16 is not simulated");
    refused("v_swmmac_f32_16x16x32_f16 v[0:7], v[8:11], v[12:19], v20", "v_swmmac_f32_16x16x32_f16 is not simulated");
    refused("image_load v0, v1, s[0:7] dmask:0x1", "image_load is not simulated");
    refused("flat_load_dword v0, v[2:3] lds", "\"lds\"");
    refused("s_getreg_b32 s0, hwreg(HW_REG_GPR_ALLOC)", "HW_REG_GPR_ALLOC");
    refused("v_add_f32_e32 v0, v1, xnack_mask", "\"xnack_mask\"");
    refused("v_add_f32_e64 v0, v1, v2 novel:1", "\"novel\"");
    refused("s_mov_b32 s106, 0", "\"s106\"");
    refused("v_mov_b32_e32 v0, 3.5", "\"3.5\"");
}

/* A modifier that an instruction does not heed is refused, and the same one is taken where it means something. */
static void test_modifiers_without_meaning(void **state) {
    (void)state;
    refused("v_and_b32_e64 v0, v1, v2 clamp", "\"clamp\"");
    refused("v_cmp_lt_f32_e64 vcc, v1, v2 clamp", "\"clamp\"");
    refused("v_mul_lo_u32 v0, v1, v2 clamp", "\"clamp\"");
    decode("v_add_u32_e64 v0, v1, v2 clamp");
    refused("v_add_u32_e64 v0, v1, v2 mul:2", "\"mul\"");
    refused("v_pk_add_f32 v[0:1], v[2:3], v[4:5] div:2", "\"div\"");
    decode("v_add_f64 v[0:1], v[2:3], v[4:5] mul:2");
    refused("v_add_u32_e64 v0, -v1, v2", "\"-\"");
    refused("v_lshlrev_b32_e64 v0, 1, |v2|", "\"| |\"");
    refused("v_mad_u64_u32 v[0:1], vcc, v2, -v3, v[4:5]", "\"-\"");
    decode("v_cmp_lt_f32_e64 vcc, -v1, |v2|");
    refused("v_add_f32_sdwa v0, sext(v1), v2 dst_sel:DWORD", "\"sext\"");
    decode("v_add_u32_sdwa v0, sext(v1), v2 dst_sel:DWORD");
    refused("v_add_f32_e64 v0, v1, v2 op_sel:[1,0,0]", "\"op_sel\"");
    refused("v_mad_u32_u16 v0, v1, v2, v3 op_sel:[0,0,1,0]", "\"op_sel\"");
    decode("v_mad_u32_u16 v0, v1, v2, v3 op_sel:[1,1,0,0]");
    decode("v_add_f16_e64 v0, v1, v2 op_sel:[1,0,1]");
    refused("v_fmac_f16_e64 v0, v1, v2 op_sel:[0,0,1]", "\"op_sel\"");
    refused("v_add_f16_e64 v0, v1, v2 op_sel_hi:[1,0]", "\"op_sel_hi\"");
    refused("v_pk_add_u16 v0, v1, v2 neg_lo:[1,0]", "\"neg_lo\"");
    decode("v_pk_add_f16 v0, v1, v2 neg_hi:[1,0]");
    refused("v_cvt_f32_ubyte0_e64 v0, v1 byte_sel:1", "\"byte_sel\"");
    decode("v_cvt_f32_fp8_e64 v0, v1 byte_sel:1");
    refused("v_mov_b32_e32 v0, v1 offset:4", "\"offset\"");
    refused("s_add_u32 s0, s1, s2 clamp", "\"clamp\"");
    refused("global_load_dword v0, v[2:3], off clamp", "\"clamp\"");
}

/* As later versions of LLVM write them for gfx10 and later: sources that an instruction does not have are the constant
 * 0. One that it has is left as it is. */
static void test_sources_without_meaning(void **state) {
    (void)state;
    static const struct {
        uint32_t code[3]; /* with s_endpgm */
        const char *text;
    } rows[] = {
        {{0xd73c0002, 0x00020c84, 0xbfb00000}, "v_lshlrev_b64 v[2:3], 4, v[6:7]"},
        {{0xd73c0002, 0x02020c84, 0xbfb00000}, "v_lshlrev_b64 v[2:3], 4, v[6:7]"},
        {{0xd73c0002, 0x02020c80, 0xbfb00000}, "v_lshlrev_b64 v[2:3], 0, v[6:7]"},
        {{0xcc0f4005, 0x1a020501, 0xbfb00000}, "v_pk_add_f16 v5, v1, v2"},
    };
    const char *absent;
    if (!amd_llvm_present(&absent)) skip();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char why[256] = "";
        const amd_kernel kernel = {.name = "rows", .wave32 = true};
        amd_program *program =
            amd_program_of_code(rows[i].code, sizeof rows[i].code, "gfx1100", &kernel, why, sizeof why);
        if (!program) fail_msg("row %zu: %s", i, why);
        assert_string_equal(program->ops[0].text, rows[i].text);
        amd_program_free(program);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_registers),
        cmocka_unit_test(test_constants),
        cmocka_unit_test(test_modifiers),
        cmocka_unit_test(test_dual_instructions),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_modifiers_without_meaning),
        cmocka_unit_test(test_sources_without_meaning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
