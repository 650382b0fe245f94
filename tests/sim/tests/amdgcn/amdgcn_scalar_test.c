/* Every instruction of the scalar ALU, on every processor that has it, against amdgcn_scalar_rows.def; and those that
 * branch, tell the time or change MODE. */
#include "tests/sim/amdgcn/wave/amd_wave.h"
#include "tests/sim/tests/amdgcn/amdgcn_assembler.h"
#include "tests/sim/tests/amdgcn/amdgcn_reference.h"
#include "tests/sim/tests/amdgcn/amdgcn_variants.h"
#include "tests/sim/tests/ptx/ptx_harness.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct machine {
    const char *processor;
    bool wave64;
    uint32_t major;
} machine;

static const machine machines[] = {{"gfx906", true, 9},    {"gfx90a", true, 9},   {"gfx942", true, 9},
                                   {"gfx1010", false, 10}, {"gfx1030", true, 10}, {"gfx1100", false, 11},
                                   {"gfx1200", true, 12},  {"gfx1201", false, 12}};
enum { MACHINES = sizeof machines / sizeof *machines, ROUNDS = 8 };
/* Where operands stand. */
enum { D = 40, A = 20, B = 22 };

static amdgcn_registers before, expected, registers;
static uint64_t random_state;

/* ---- References ---- */

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* Bits [from, from + count), sign-extended or not. */
static uint64_t bits_of(uint64_t a, uint64_t from, uint64_t count, bool sign) {
    uint64_t value = 0;
    for (uint64_t i = 0; i < 64; i++) {
        uint64_t at = i < count || !sign || !count ? i : count - 1;
        if (i < count || sign) value |= count && from + at < 64 ? (a >> (from + at) & 1) << i : 0;
    }
    return value;
}

static uint64_t mirrored(uint64_t a, int width) {
    uint64_t value = 0;
    for (int i = 0; i < width; i++)
        value = value * 2 + (a >> i & 1);
    return value;
}

static uint64_t ones(uint64_t a) {
    uint64_t count = 0;
    for (; a; a &= a - 1)
        count++;
    return count;
}

static uint64_t first_one(uint64_t a, int width) {
    for (int i = 0; i < width; i++)
        if (a >> i & 1) return (uint64_t)i;
    return UINT64_MAX;
}

static uint64_t spread(uint64_t a, int times) {
    uint64_t value = 0;
    for (int i = 64 / times * times - 1; i >= 0; i--)
        value = value * 2 + (a >> i / times & 1);
    return value;
}

static uint64_t quads(uint64_t a, bool whole) {
    uint64_t value = 0;
    for (int i = 0; i < 64; i++) {
        bool any = (a >> i / 4 * 4) % 16 != 0;
        if (any) value |= whole ? (uint64_t)1 << i : (uint64_t)1 << i / 4;
    }
    return value;
}

static uint64_t to_integral(const ref_format *f, ref_mode mode, uint64_t a, double (*rounded)(double)) {
    a = ref_in(f, mode, a);
    if (ref_is_nan(f, a)) return ref_quieted(f, mode, a);
    if (ref_is_infinite(f, a)) return a;
    return (ref_bits(f, rounded(ref_value(f, a)), ref_rounding(f, mode)) & ~ref_sign(f)) | (a & ref_sign(f));
}

static ref_mode towards_zero(ref_mode mode) {
    mode.bits |= 0xc;
    return mode;
}

typedef enum operands { DAB, DA, DK, AB, AK } operands;

/* An instruction's inputs, and what it makes of them. */
typedef struct state {
    uint64_t a, b, old, exec;
    int64_t k;
    bool in;
    ref_mode mode;
    uint64_t d, left; /* left: the new EXEC */
    bool out;
} state;

typedef struct row {
    const char *mnemonic;
    operands form;
    int bits, a_bits, b_bits;
    bool masks; /* EXEC is written */
    void (*reference)(state *s);
} row;

static uint64_t cut(uint64_t value, int bits) {
    return bits >= 64 ? value : value & (((uint64_t)1 << bits) - 1);
}

static int64_t as_signed(uint64_t value, int bits) {
    return (int64_t)bits_of(value, 0, (uint64_t)(bits ? bits : 1), true);
}

#define SCALAR(mnemonic, form, bits, a_bits, b_bits, result, scc)                                        \
    static void reference_##mnemonic(state *s) {                                                         \
        const uint64_t a = s->a, b = s->b, old = s->old;                                                 \
        const int64_t sa = as_signed(a, a_bits), sb = as_signed(b, b_bits), sold = as_signed(old, bits); \
        const int64_t k = s->k;                                                                          \
        const bool in = s->in;                                                                           \
        const ref_mode mode = s->mode;                                                                   \
        (void)a, (void)b, (void)old, (void)sa, (void)sb, (void)sold, (void)k, (void)in, (void)mode;      \
        const uint64_t d = cut((uint64_t)(result), bits);                                                \
        s->d = d;                                                                                        \
        s->out = (scc) != 0;                                                                             \
    }
#define EXEC(mnemonic, bits, new_exec, result)     \
    static void reference_##mnemonic(state *s) {   \
        const uint64_t a = s->a, e = s->exec;      \
        const uint64_t left = cut(new_exec, bits); \
        (void)e;                                   \
        s->left = left;                            \
        s->d = result;                             \
        s->out = left != 0;                        \
    }
#include "tests/sim/tests/amdgcn/amdgcn_scalar_rows.def"

static const row rows[] = {
#define SCALAR(mnemonic, form, bits, a_bits, b_bits, result, scc) \
    {#mnemonic, form, bits, a_bits, b_bits, false, reference_##mnemonic},
#define EXEC(mnemonic, bits, new_exec, result) {#mnemonic, DA, bits, bits, 0, true, reference_##mnemonic},
#include "tests/sim/tests/amdgcn/amdgcn_scalar_rows.def"
};
enum { ROWS = sizeof rows / sizeof *rows };

/* ---- Running ---- */

static const char *register_name(char *room, uint32_t index, int bits) {
    if (bits == 64)
        sprintf(room, "s[%u:%u]", index, index + 1);
    else
        sprintf(room, "s%u", index);
    return room;
}

/* What stands in an instruction besides its registers: the 16-bit constant, and constants in place of its sources. */
typedef struct constants {
    int64_t k;
    const char *a, *b; /* NULL: a register */
} constants;

/* Its bits to a source of a size: a literal has 32, and i64 takes it with its sign. */
static uint64_t constant_bits(const row *r, const char *constant, int bits) {
    const ref_format *format = bits == 64 ? F64 : bits == 16 ? F16 : F32;
    bool literal = !strncmp(constant, "0x", 2);
    if (!strcmp(constant, "0.15915494")) return bits == 64 ? 0x3fc45f306dc9c882 : bits == 16 ? 0x3118 : 0x3e22f983;
    if (strchr(constant, '.')) return ref_bits(format, strtod(constant, NULL), EXACT_RN);
    int64_t value = strtoll(constant, NULL, 0);
    return cut(literal && strstr(r->mnemonic, "_i64") ? (uint64_t)(int32_t)value : (uint64_t)value, bits);
}

static void text_make(const row *r, const constants *c, char *text, size_t size) {
    char d[16], a[16], b[16];
    register_name(d, D, r->bits);
    register_name(a, A, r->a_bits);
    register_name(b, B, r->b_bits);
    if (c->a) snprintf(a, sizeof a, "%s", c->a);
    if (c->b) snprintf(b, sizeof b, "%s", c->b);
    static const char *const forms[] = {[DAB] = "%s %s, %s, %s", [DA] = "%s %s, %s", [AB] = "%s %s, %s"};
    if (r->form == DK || r->form == AK)
        snprintf(text, size, "%s %s, 0x%x", r->mnemonic, r->form == DK ? d : a, (unsigned)(c->k & 0xffff));
    else if (r->form == AB)
        snprintf(text, size, forms[AB], r->mnemonic, a, b);
    else
        snprintf(text, size, forms[r->form], r->mnemonic, d, a, b);
}

static uint64_t read_pair(const amdgcn_registers *from, uint32_t index, int bits) {
    return cut(from->s[index] | (uint64_t)from->s[index + 1] << 32, bits);
}

static void write_pair(amdgcn_registers *to, uint32_t index, int bits, uint64_t value) {
    if (bits) to->s[index] = (uint32_t)value;
    if (bits == 64) to->s[index + 1] = (uint32_t)(value >> 32);
}

static void operands_draw(const row *r, const amd_program *program) {
    static const uint32_t modes[] = {0x3f0, 0x3c0, 0x330, 0x0f0, 0x3f5, 0x3fa, 0x3ff};
    bool is_float = strstr(r->mnemonic, "_f32") || strstr(r->mnemonic, "_f16");
    amdgcn_registers_fill(&before, program, &random_state);
    for (uint32_t at = A; at <= D; at += at == A ? 2 : D - B) {
        int bits = at == A ? r->a_bits : at == B ? r->b_bits : r->bits;
        variant_type type = {is_float ? 'f' : 'i', bits ? bits : 32 /* nobody's */};
        uint64_t value = draw_value(type, &random_state);
        write_pair(&before, at, 64, bits == 64 ? value : (value & 0xffffffff) | sim_random(&random_state) << 32);
    }
    before.scc = draw(&random_state, 2);
    before.mode = is_float ? modes[draw(&random_state, 7)] : AMDGCN_MODE;
    before.s[AMD_EXEC] = draw(&random_state, 3) ? (uint32_t)sim_random(&random_state) : 0;
    before.s[AMD_EXEC + 1] = program->kernels[0].wave32 ? 0 : (uint32_t)sim_random(&random_state);
}

static void row_run(const row *r, const machine *m, const amd_program *program, const char *text, const constants *c) {
    operands_draw(r, program);
    state s = {.a = c->a ? constant_bits(r, c->a, r->a_bits) : read_pair(&before, A, r->a_bits),
               .b = c->b ? constant_bits(r, c->b, r->b_bits) : read_pair(&before, B, r->b_bits),
               .old = read_pair(&before, D, r->bits),
               .exec = read_pair(&before, AMD_EXEC, r->bits),
               .k = c->k,
               .in = before.scc,
               .mode = {before.mode, m->major}};
    expected = before;
    r->reference(&s);
    bool writes = r->form == DAB || r->form == DA || r->form == DK;
    if (writes) write_pair(&expected, D, r->bits, s.d);
    if (r->masks) write_pair(&expected, AMD_EXEC, r->bits, s.left);
    expected.scc = s.out;
    registers = before;
    amdgcn_run(program, NULL, &registers);
    if (!memcmp(registers.s, expected.s, sizeof expected.s) && registers.scc == expected.scc) return;
    fail_msg("%s, mode 0x%x: %s: a 0x%llx, b 0x%llx, old 0x%llx, scc %d: result 0x%llx, SCC %d, exec 0x%llx; expected "
             "0x%llx, %d, 0x%llx",
             m->processor, before.mode, text, (unsigned long long)s.a, (unsigned long long)s.b,
             (unsigned long long)s.old, before.scc, (unsigned long long)read_pair(&registers, D, r->bits),
             registers.scc, (unsigned long long)read_pair(&registers, AMD_EXEC, 64), (unsigned long long)s.d, s.out,
             (unsigned long long)read_pair(&expected, AMD_EXEC, 64));
}

/* ---- Tests ---- */

/* False if the processor does not have the instruction. */
static bool text_run(const row *r, const machine *m, const constants *c, unsigned rounds) {
    char text[160], why[256];
    size_t size;
    text_make(r, c, text, sizeof text);
    uint8_t *code = amdgcn_assemble(m->processor, m->wave64, text, &size, why, sizeof why);
    if (!code) return false;
    free(code);
    amd_program *program = amdgcn_load(m->processor, m->wave64, text);
    for (unsigned round = 0; round < rounds; round++)
        row_run(r, m, program, text, c);
    amd_program_free(program);
    return true;
}

static void test_every_instruction_of_the_scalar_unit(void **cmocka_state) {
    (void)cmocka_state;
    for (size_t i = 0; i < ROWS; i++) {
        const row *r = &rows[i];
        bool constant = r->form == DK || r->form == AK, found = false;
        for (size_t j = 0; j < MACHINES; j++) {
            for (unsigned round = 0; round < (constant ? ROUNDS : 1); round++) {
                const constants c = {.k = (int16_t)sim_random(&random_state)};
                found |= text_run(r, &machines[j], &c, constant ? 2 : ROUNDS * 2);
            }
        }
        if (!found) fail_msg("no processor has %s", r->mnemonic);
    }
}

/* What a constant is goes by the size of the source that it stands for, not by the instruction's. */
static void test_every_source_as_a_constant(void **cmocka_state) {
    (void)cmocka_state;
    static const char *const texts[] = {"-7", "37", "0x98765432", "0.5", "-4.0", "0.15915494"};
    for (size_t i = 0; i < ROWS; i++) {
        const row *r = &rows[i];
        bool found = r->form == DK || r->form == AK;
        for (size_t n = 0; n < 2 * sizeof texts / sizeof *texts && r->form != DK && r->form != AK; n++) {
            const char *text = texts[n / 2];
            const constants c = {.a = n % 2 ? NULL : text, .b = n % 2 ? text : NULL};
            if (c.b && r->form == DA) continue;
            bool taken = false;
            for (size_t j = 0; j < MACHINES && !taken; j++)
                taken = text_run(r, &machines[j], &c, 2);
            found |= taken;
        }
        if (!found) fail_msg("no processor has %s with a constant", r->mnemonic);
    }
}

/* A new row of the simulator needs one here, too, but for other names of the same and what the tests below run. */
static void test_every_row_has_a_reference(void **cmocka_state) {
    (void)cmocka_state;
    static const char *const simulated[] = {
#define AMD_SALU(mnemonic, bits, a_bits, b_bits, result, scc)     #mnemonic,
#define AMD_SALU_UPDATE(mnemonic, bits, a_bits, result, scc)      #mnemonic,
#define AMD_SALU_K(mnemonic, result, scc)                         #mnemonic,
#define AMD_SALU_COMPARE(mnemonic, a_bits, b_bits, condition)     #mnemonic,
#define AMD_SALU_COMPARE_K(mnemonic, condition)                   #mnemonic,
#define AMD_SALU_FLOAT(mnemonic, bits, result)                    #mnemonic,
#define AMD_SALU_FLOAT_COMPARE(mnemonic, bits, format, condition) #mnemonic,
#define AMD_SALU_SAVEEXEC(mnemonic, bits, result)                 #mnemonic,
#define AMD_SALU_WREXEC(mnemonic, bits, result)                   #mnemonic,
#define AMD_SALU_OTHER(mnemonic, handler, mode)
#include "tests/sim/amdgcn/alu/amd_scalar.def"
    };
    static const char *const elsewhere[] = {"s_fmaak_f32", "s_fmamk_f32"};
    for (size_t i = 0; i < sizeof simulated / sizeof *simulated; i++) {
        bool found = false;
        for (size_t j = 0; j < ROWS; j++)
            found |= !strcmp(simulated[i], rows[j].mnemonic);
        for (size_t j = 0; j < sizeof elsewhere / sizeof *elsewhere; j++)
            found |= !strcmp(simulated[i], elsewhere[j]);
        if (!found) fail_msg("%s is simulated and has no row in amdgcn_scalar_rows.def", simulated[i]);
    }
}

/* Runs a text on random registers, which stay in before. */
static void run(const char *processor, bool wave64, const char *text) {
    amd_program *program = amdgcn_load(processor, wave64, text);
    amdgcn_registers_fill(&before, program, &random_state);
    registers = before;
    amdgcn_run(program, NULL, &registers);
    amd_program_free(program);
}

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void test_literals_and_constants(void **cmocka_state) {
    (void)cmocka_state;
    run("gfx1201", false,
        "s_mov_b32 s1, 3.0\ns_fmaak_f32 s0, s1, 2.0, 0x40490fdb\ns_fmamk_f32 s2, s1, 0x40490fdb, 1.0\n"
        "s_add_f16 s3, 0.5, 1.0\ns_mov_b64 s[4:5], -3\ns_mov_b32 s6, 0.15915494");
    assert_true(float_of(registers.s[0]) == fmaf(3, 2, float_of(0x40490fdb)));
    assert_true(float_of(registers.s[2]) == fmaf(3, float_of(0x40490fdb), 1));
    assert_int_equal(registers.s[3], 0x3e00);
    assert_int_equal(registers.s[4], (uint32_t)-3);
    assert_int_equal(registers.s[5], (uint32_t)-1);
    assert_int_equal(registers.s[6], 0x3e22f983);
}

static void test_branches_and_calls(void **cmocka_state) {
    (void)cmocka_state;
    for (size_t j = 0; j < MACHINES; j++) {
        run(machines[j].processor, machines[j].wave64,
            "s_mov_b32 s0, 0\ns_call_b64 s[2:3], one\ns_addk_i32 s0, 100\ns_getpc_b64 s[4:5]\nhere:\n"
            "s_add_u32 s4, s4, two-here\ns_addc_u32 s5, s5, 0\ns_swappc_b64 s[6:7], s[4:5]\ns_addk_i32 s0, 1000\n"
            "s_cmp_eq_u32 s0, 1111\ns_cbranch_scc0 one\ns_cbranch_scc1 end\none:\ns_addk_i32 s0, 1\n"
            "s_setpc_b64 s[2:3]\ntwo:\ns_addk_i32 s0, 10\ns_setpc_b64 s[6:7]\nend:");
        assert_int_equal(registers.s[0], 1111);
    }
}

static void test_a_branch_to_nowhere(void **cmocka_state) {
    (void)cmocka_state;
    sim_report report;
    amd_program *program = amdgcn_load("gfx942", true, "s_mov_b64 s[0:1], 64\ns_setpc_b64 s[0:1]");
    amdgcn_registers_fill(&registers, program, &random_state);
    assert_false(amdgcn_try(program, NULL, &registers, &report));
    assert_int_equal(report.kind, SIM_FAULT_ILLEGAL);
    assert_non_null(strstr(report.text, "no instruction"));
    amd_program_free(program);
}

static void test_mode(void **cmocka_state) {
    (void)cmocka_state;
    run("gfx942", true,
        "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 1\ns_mov_b32 s1, 0x2\n"
        "s_setreg_b32 hwreg(HW_REG_MODE, 2, 2), s1\ns_getreg_b32 s0, hwreg(HW_REG_MODE)\n"
        "s_getreg_b32 s2, hwreg(HW_REG_MODE, 4, 4)\ns_getreg_b32 s3, hwreg(HW_REG_SH_MEM_BASES)");
    assert_int_equal(registers.s[0], (AMDGCN_MODE & ~0x3cu) | 1 << 4 | 2 << 2);
    assert_int_equal(registers.s[2], 0xd);
    assert_int_equal(registers.mode, registers.s[0]);
    run("gfx1030", false, "s_round_mode 0x6\ns_denorm_mode 0x9\ns_mov_b64 s[0:1], src_shared_base");
    assert_int_equal(registers.mode, (AMDGCN_MODE & ~0xffu) | 0x96);
    assert_int_equal(registers.s[0], 0);
    assert_true(registers.s[1] != 0);
}

static void test_bits_that_do_nothing(void **cmocka_state) {
    (void)cmocka_state;
    static const char *const texts[] = {"s_setreg_imm32_b32 hwreg(HW_REG_MODE, 12, 1), 1",
                                        "s_setreg_imm32_b32 hwreg(HW_REG_SH_MEM_BASES), 1"};
    for (int i = 0; i < 2; i++) {
        sim_report report;
        amd_program *program = amdgcn_load("gfx942", true, texts[i]);
        amdgcn_registers_fill(&registers, program, &random_state);
        assert_false(amdgcn_try(program, NULL, &registers, &report));
        assert_int_equal(report.kind, SIM_FAULT_ILLEGAL);
        amd_program_free(program);
    }
}

static void test_clocks_go_up(void **cmocka_state) {
    (void)cmocka_state;
    static const struct {
        const char *processor, *text;
    } clocks[] = {
        {"gfx942", "s_memtime s[0:1]\ns_waitcnt lgkmcnt(0)\ns_nop 0\ns_memrealtime s[2:3]\ns_waitcnt lgkmcnt(0)"},
        {"gfx1030", "s_memtime s[0:1]\ns_waitcnt lgkmcnt(0)\ns_getreg_b32 s2, hwreg(HW_REG_SHADER_CYCLES, 0, 20)\n"
                    "s_mov_b32 s3, 0"},
        {"gfx1100", "s_sendmsg_rtn_b64 s[0:1], sendmsg(MSG_RTN_GET_REALTIME)\ns_waitcnt lgkmcnt(0)\n"
                    "s_sendmsg_rtn_b64 s[2:3], sendmsg(MSG_RTN_GET_REALTIME)\ns_waitcnt lgkmcnt(0)"},
        {"gfx1201", "s_getreg_b32 s0, hwreg(HW_REG_SHADER_CYCLES_LO)\ns_getreg_b32 s1, hwreg(HW_REG_SHADER_CYCLES_HI)\n"
                    "s_getreg_b32 s2, hwreg(HW_REG_SHADER_CYCLES_LO)\ns_getreg_b32 s3, hwreg(HW_REG_SHADER_CYCLES_HI)"},
    };
    for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++) {
        run(clocks[i].processor, clocks[i].processor[3] == '9', clocks[i].text);
        assert_true(read_pair(&registers, 2, 64) > read_pair(&registers, 0, 64));
    }
}

/* The doorbell's number has 10 bits, and the answer as many registers as are written. */
static void test_doorbell(void **cmocka_state) {
    (void)cmocka_state;
    run("gfx1100", false, "s_sendmsg_rtn_b32 s2, sendmsg(MSG_RTN_GET_DOORBELL)\ns_waitcnt lgkmcnt(0)");
    assert_true(registers.s[2] < 1024);
    assert_int_equal(registers.s[3], before.s[3]);
}

/* Where a wave runs is anywhere, but always there. */
static void test_place(void **cmocka_state) {
    (void)cmocka_state;
    static const char *const places[][2] = {{"gfx942", "HW_ID"}, {"gfx1030", "HW_ID1"}, {"gfx1201", "HW_ID2"}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char text[128];
        snprintf(text, sizeof text, "s_getreg_b32 s0, hwreg(HW_REG_%s)\ns_getreg_b32 s1, hwreg(HW_REG_%s, 4, 8)",
                 places[i][1], places[i][1]);
        run(places[i][0], places[i][0][3] == '9', text);
        assert_int_equal(registers.s[1], registers.s[0] >> 4 & 255);
    }
}

static void test_refusals(void **cmocka_state) {
    (void)cmocka_state;
    static const struct {
        const char *processor, *text, *says;
    } bad[] = {{"gfx942", "s_store_dword s0, s[2:3], 0x0", "s_store_dword is not simulated"},
               {"gfx942", "s_rfe_b64 s[0:1]", "s_rfe_b64 is not simulated"},
               {"gfx942", "s_setvskip s0, s1", "s_setvskip is not simulated"},
               {"gfx942", "s_atomic_add s0, s[2:3], 0x0", "s_atomic_add is not simulated"},
               {"gfx942", "s_getreg_b32 s0, hwreg(HW_REG_TRAPSTS)", "HW_REG_TRAPSTS"},
               {"gfx1030", "s_subvector_loop_begin s0, 1", "s_subvector_loop_begin is not simulated"},
               {"gfx1100", "s_sendmsg_rtn_b64 s[0:1], sendmsg(MSG_RTN_GET_TMA)", "MSG_RTN_GET_TMA"},
               {"gfx1201", "s_barrier_leave", "s_barrier_leave is not simulated"},
               {"gfx1201", "s_get_barrier_state s0, -1", "s_get_barrier_state is not simulated"},
               {"gfx1201", "s_alloc_vgpr 1", "s_alloc_vgpr"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char why[256];
        size_t size;
        bool wave64 = bad[i].processor[3] == '9';
        uint8_t *code = amdgcn_assemble(bad[i].processor, wave64, bad[i].text, &size, why, sizeof why);
        free(code);
        if (!code) continue; /* not in this LLVM */
        const char *reason = amdgcn_refusal(bad[i].processor, wave64, bad[i].text);
        if (!strstr(reason, bad[i].says)) fail_msg("%s: \"%s\"", bad[i].text, reason);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_instruction_of_the_scalar_unit),
        cmocka_unit_test(test_every_source_as_a_constant),
        cmocka_unit_test(test_every_row_has_a_reference),
        cmocka_unit_test(test_literals_and_constants),
        cmocka_unit_test(test_branches_and_calls),
        cmocka_unit_test(test_a_branch_to_nowhere),
        cmocka_unit_test(test_mode),
        cmocka_unit_test(test_bits_that_do_nothing),
        cmocka_unit_test(test_clocks_go_up),
        cmocka_unit_test(test_doorbell),
        cmocka_unit_test(test_place),
        cmocka_unit_test(test_refusals),
    };
    if (!amdgcn_harness_ready()) return 0;
    random_state = harness_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
