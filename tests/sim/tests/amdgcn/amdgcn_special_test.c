/* Approximate instructions of AMD within their documented bounds, division as compilers write it, and conversions of 8
 * bits, the last exhaustively. */
#include "tests/sim/amdgcn/wave/amd_wave.h"
#include "tests/sim/core/sim_float.h"
#include "tests/sim/tests/amdgcn/amdgcn_variants.h"
#include "tests/sim/tests/common/special_reference.h"
#include "tests/sim/tests/ptx/ptx_harness.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char *const processors[] = {"gfx906", "gfx90a", "gfx942", "gfx1010", "gfx1030", "gfx1100", "gfx1201"};
enum { PROCESSORS = sizeof processors / sizeof *processors };

static amdgcn_registers before, registers;
static uint64_t random_state;

static void run(amd_program *program, uint64_t seed) {
    const amdgcn_setting setting = {.seed = seed};
    registers = before;
    amdgcn_run(program, &setting, &registers);
}

/* ---- Approximations ---- */

typedef struct approximation {
    const char *mnemonic;
    const ref_format *format;
    special_function function;
    double ulp, absolute; /* the bound */
} approximation;

/* Angles are in revolutions, of at most 256. */
static long double right_value(special_function function, double a) {
    bool angle = function == SPECIAL_SINE_OF_TURNS || function == SPECIAL_COSINE_OF_TURNS;
    if (angle && isfinite(a) && fabs(a) > 256) return function == SPECIAL_COSINE_OF_TURNS;
    return special_reference(function, a, 0);
}

static const approximation approximations[] = {
    {"v_rcp_f32", F32, SPECIAL_RECIPROCAL, 1, 0},
    {"v_rcp_iflag_f32", F32, SPECIAL_RECIPROCAL, 0.51, 0},
    {"v_rsq_f32", F32, SPECIAL_RECIPROCAL_ROOT, 1, 0},
    {"v_sqrt_f32", F32, SPECIAL_ROOT, 1, 0},
    {"v_exp_f32", F32, SPECIAL_POWER, 1, 0},
    {"v_log_f32", F32, SPECIAL_LOGARITHM, 1, 0},
    {"v_sin_f32", F32, SPECIAL_SINE_OF_TURNS, 0, 0x1p-20},
    {"v_cos_f32", F32, SPECIAL_COSINE_OF_TURNS, 0, 0x1p-20},
    {"v_rcp_f16", F16, SPECIAL_RECIPROCAL, 0.51, 0},
    {"v_rsq_f16", F16, SPECIAL_RECIPROCAL_ROOT, 0.51, 0},
    {"v_sqrt_f16", F16, SPECIAL_ROOT, 0.51, 0},
    {"v_exp_f16", F16, SPECIAL_POWER, 0.51, 0},
    {"v_log_f16", F16, SPECIAL_LOGARITHM, 0.51, 0},
    {"v_sin_f16", F16, SPECIAL_SINE_OF_TURNS, 0, 0x1p-10},
    {"v_cos_f16", F16, SPECIAL_COSINE_OF_TURNS, 0, 0x1p-10},
    {"v_rcp_f64", F64, SPECIAL_RECIPROCAL, 0x1p29, 0},
    {"v_rsq_f64", F64, SPECIAL_RECIPROCAL_ROOT, 0x1p29, 0},
    {"v_sqrt_f64", F64, SPECIAL_ROOT, 0x1p29, 0},
};

static uint64_t lane_value(uint32_t (*v)[AMD_LANES], int at, uint32_t lane, const ref_format *f) {
    uint64_t value = v[at][lane] | (uint64_t)v[at + 1][lane] << 32;
    return f->mantissa == 52 ? value : value & (2 * ref_sign(f) - 1);
}

/* f32 takes and gives no denormals. A result may be as far off as the bound, and is exact where the function has no
 * value near. */
static void approximation_check(const approximation *row, uint64_t a, uint64_t d) {
    const ref_format *f = row->format;
    ref_mode mode = {f->mantissa == 23 ? 0x3c0 : 0x3f0, 9};
    a = ref_in(f, mode, a);
    if (ref_is_nan(f, a)) {
        if (d != (a | ref_quiet(f)))
            fail_msg("%s(NaN %llx) is %llx", row->mnemonic, (unsigned long long)a, (unsigned long long)d);
        return;
    }
    long double right = right_value(row->function, ref_value(f, a)), least = ldexpl(1, 2 - (1 << (f->exponent - 1)));
    if (isnan(right)) {
        if (d != ref_default_nan(f))
            fail_msg("%s(%llx) is %llx, no NaN", row->mnemonic, (unsigned long long)a, (unsigned long long)d);
        return;
    }
    if (ref_is_nan(f, d)) fail_msg("%s(%llx) is a NaN", row->mnemonic, (unsigned long long)a);
    long double value = ref_value(f, d), size = fabsl(right) < least ? least : fabsl(right);
    long double bound = row->absolute != 0 ? row->absolute : row->ulp * ldexpl(1, ilogbl(size) - f->mantissa);
    long double largest = ref_value(f, ref_infinity(f) - 1);
    if (f->mantissa == 23 && fabsl(right) < least * (1 + 0x1p-23L) && value == 0) return;
    if (fabsl(right) + bound > largest && isinf(value) && (value > 0) == (right > 0)) return;
    if (value == right || fabsl(value - right) <= bound) return;
    fail_msg("%s(%llx) is %llx: %.20Lg, expected %.20Lg within %.3Lg", row->mnemonic, (unsigned long long)a,
             (unsigned long long)d, value, right, bound);
}

/* Of 16 bits all operands, else edge and random ones. */
static void approximation_run(const approximation *row, const char *processor) {
    const ref_format *f = row->format;
    char text[80];
    bool wide = f->mantissa == 52;
    snprintf(text, sizeof text, wide ? "%s v[10:11], v[2:3]" : "%s v10, v2", row->mnemonic);
    amd_program *program = amdgcn_load(processor, true, text);
    amdgcn_registers_fill(&before, program, &random_state);
    uint32_t blocks = f == F16 ? 65536 / AMD_LANES : 64, seed = draw(&random_state, 1000);
    for (uint32_t block = 0; block < blocks; block++) {
        for (uint32_t l = 0; l < AMD_LANES; l++) {
            variant_type type = {'f', f == F16 ? 16 : wide ? 64 : 32};
            uint64_t value = f == F16 ? block * AMD_LANES + l : draw_value(type, &random_state);
            before.v[2][l] = (uint32_t)value;
            before.v[3][l] = (uint32_t)(value >> 32);
        }
        run(program, seed);
        for (uint32_t l = 0; l < AMD_LANES; l++)
            approximation_check(row, lane_value(before.v, 2, l, f), lane_value(registers.v, 10, l, f));
    }
    amd_program_free(program);
}

static void test_approximations(void **state) {
    (void)state;
    if (!special_reference_ready()) skip();
    for (size_t i = 0; i < sizeof approximations / sizeof *approximations; i++)
        approximation_run(&approximations[i], processors[i % PROCESSORS]);
}

static const approximation scalar_approximations[] = {
    {"v_s_rcp_f32", F32, SPECIAL_RECIPROCAL, 1, 0},
    {"v_s_rsq_f32", F32, SPECIAL_RECIPROCAL_ROOT, 1, 0},
    {"v_s_sqrt_f32", F32, SPECIAL_ROOT, 1, 0},
    {"v_s_exp_f32", F32, SPECIAL_POWER, 1, 0},
    {"v_s_log_f32", F32, SPECIAL_LOGARITHM, 1, 0},
    {"v_s_rcp_f16", F16, SPECIAL_RECIPROCAL, 0.51, 0},
    {"v_s_rsq_f16", F16, SPECIAL_RECIPROCAL_ROOT, 0.51, 0},
    {"v_s_sqrt_f16", F16, SPECIAL_ROOT, 0.51, 0},
    {"v_s_exp_f16", F16, SPECIAL_POWER, 0.51, 0},
    {"v_s_log_f16", F16, SPECIAL_LOGARITHM, 0.51, 0},
};

/* gfx12's of scalar registers, with signs; an f16 stands alone in its register. */
static void test_scalar_approximations(void **state) {
    (void)state;
    if (!special_reference_ready()) skip();
    for (size_t i = 0; i < sizeof scalar_approximations / sizeof *scalar_approximations; i++) {
        const approximation *row = &scalar_approximations[i];
        const ref_format *f = row->format;
        char text[80];
        snprintf(text, sizeof text, "%s s9, %s", row->mnemonic, i % 2 ? "s4" : "-|s4|");
        amd_program *program = amdgcn_load("gfx1201", i % 3, text);
        amdgcn_registers_fill(&before, program, &random_state);
        before.s[AMD_EXEC] = 0;
        for (int round = 0; round < 200; round++) {
            uint64_t a = draw_value((variant_type){'f', f == F16 ? 16 : 32}, &random_state);
            before.s[4] = (uint32_t)a;
            run(program, 5);
            a &= 2 * ref_sign(f) - 1;
            approximation_check(row, i % 2 ? a : a | ref_sign(f), registers.s[9]);
        }
        amd_program_free(program);
    }
}

/* Another seed gives other results, else nothing was perturbed. */
static void test_seed_perturbs(void **state) {
    (void)state;
    amd_program *program = amdgcn_load("gfx942", true, "v_rcp_f32 v10, v2");
    amdgcn_registers_fill(&before, program, &random_state);
    uint32_t first[AMD_LANES];
    run(program, 1);
    memcpy(first, registers.v[10], sizeof first);
    run(program, 1);
    assert_memory_equal(first, registers.v[10], sizeof first);
    run(program, 2);
    assert_memory_not_equal(first, registers.v[10], sizeof first);
    amd_program_free(program);
}

/* ---- Halves that the text does not name ---- */

/* LLVM 19 writes v_add_f16 of gfx11 and gfx12 without op_sel: here the first source's upper half, 2, and the second's
 * lower, 1. An instruction that has no halves is refused with the bit. */
static void test_halves_of_the_encoding(void **state) {
    (void)state;
    static const char *const targets[] = {"gfx1100", "gfx1201"};
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        amd_program *program = amdgcn_load(targets[i], false, ".long 0xd5320801, 0x00020100");
        amdgcn_registers_fill(&before, program, &random_state);
        before.v[0][0] = 0x40003c00;
        before.v[1][0] = 0;
        run(program, 1);
        assert_int_equal(registers.v[1][0], 0x4200);
        amd_program_free(program);
        const char *refusal = amdgcn_refusal(targets[i], false, ".long 0xd5030801, 0x00020100"); /* v_add_f32 */
        if (!refusal || !strstr(refusal, "its encoding has op_sel")) fail_msg("%s: %s", targets[i], refusal);
    }
}

/* The code of compilers that know real true16, with upper halves in 32-bit encodings: the first source, the second and
 * the result, the source of a conversion, and those of moves. */
static void test_halves_of_registers(void **state) {
    (void)state;
    static const struct {
        const char *text; /* of v1 = {1, 2} and v2 = {1, 4}, the lower half first, to v0 = {-1, -1} */
        uint32_t result;
    } rows[] = {
        {".long 0x64000581", 0xbc004200}, /* v_add_f16_e32 v0.l, v1.h, v2.l */
        {".long 0x65010501", 0x4500bc00}, /* v_add_f16_e32 v0.h, v1.l, v2.h */
        {".long 0x7e001781", 0x40000000}, /* v_cvt_f32_f16_e32 v0, v1.h */
        {".long 0x7f003901", 0x3c00bc00}, /* v_mov_b16_e32 v0.h, v1.l */
        {".long 0x7e003981", 0xbc004000}, /* v_mov_b16_e32 v0.l, v1.h */
    };
    static const char *const targets[] = {"gfx1100", "gfx1201"};
    for (size_t t = 0; t < sizeof targets / sizeof *targets; t++) {
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            amd_program *program = amdgcn_load(targets[t], false, rows[i].text);
            amdgcn_registers_fill(&before, program, &random_state);
            before.v[0][0] = 0xbc00bc00;
            before.v[1][0] = 0x40003c00;
            before.v[2][0] = 0x44003c00;
            run(program, 1);
            if (registers.v[0][0] != rows[i].result)
                fail_msg("%s: %s: 0x%08x", targets[t], rows[i].text, registers.v[0][0]);
            amd_program_free(program);
        }
        const char *refusal =
            amdgcn_refusal(targets[t], false, ".long 0x6d000501"); /* v_fmac_f16_e32 v0.h, v1.l, v2.l */
        if (!refusal || !strstr(refusal, "its encoding has op_sel")) fail_msg("%s: %s", targets[t], refusal);
    }
}

/* ---- Mixed sums ---- */

/* 1 * (1 + 2^-11) + 2^-40 is above the middle of two f16; as an f32 it is the middle. The instruction rounds to f32, by
 * that rounding of MODE, and the f32 to f16, by the other, as its expression in the ISA documents says and compilers
 * count on when they put it for a sum and a conversion. */
static void test_mixed_sums_round_twice(void **state) {
    (void)state;
    static const struct {
        uint32_t mode, result;
    } rows[] = {{0x3f0, 0x3c00}, {0x3f1, 0x3c01}, {0x3f4, 0x3c01}, {0x3f2, 0x3c00}, {0x3fc, 0x3c00}, {0x3ff, 0x3c00}};
    static const char *const mixing[] = {"gfx906", "gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201"};
    for (size_t i = 0; i < sizeof mixing / sizeof *mixing; i++) {
        amd_program *program =
            amdgcn_load(mixing[i], true, "v_fma_mixlo_f16 v10, v2, v3, v4\nv_fma_mixhi_f16 v10, v2, v3, v4");
        amdgcn_registers_fill(&before, program, &random_state);
        for (uint32_t l = 0; l < AMD_LANES; l++) {
            before.v[2][l] = 0x3f800000;
            before.v[3][l] = 0x3f801000;
            before.v[4][l] = 0x2b800000;
        }
        for (size_t n = 0; n < sizeof rows / sizeof *rows; n++) {
            before.mode = rows[n].mode;
            run(program, 1);
            if (registers.v[10][5] != rows[n].result * 0x10001)
                fail_msg("%s, mode 0x%x: 0x%x", mixing[i], rows[n].mode, registers.v[10][5]);
        }
        amd_program_free(program);
    }
}

/* ---- Division ---- */

static const char divide_f32[] = "v_div_scale_f32 v10, s[20:21], v4, v4, v2\n"
                                 "v_div_scale_f32 v11, vcc, v2, v4, v2\n"
                                 "v_rcp_f32 v12, v10\n"
                                 "v_fma_f32 v13, -v10, v12, 1.0\n"
                                 "v_fma_f32 v12, v13, v12, v12\n"
                                 "v_mul_f32 v14, v11, v12\n"
                                 "v_fma_f32 v15, -v10, v14, v11\n"
                                 "v_fma_f32 v14, v15, v12, v14\n"
                                 "v_fma_f32 v15, -v10, v14, v11\n"
                                 "v_div_fmas_f32 v15, v15, v12, v14\n"
                                 "v_div_fixup_f32 v20, v15, v4, v2\n";
static const char divide_f64[] = "v_div_scale_f64 v[10:11], s[20:21], v[4:5], v[4:5], v[2:3]\n"
                                 "v_rcp_f64 v[12:13], v[10:11]\n"
                                 "v_fma_f64 v[14:15], -v[10:11], v[12:13], 1.0\n"
                                 "v_fma_f64 v[12:13], v[12:13], v[14:15], v[12:13]\n"
                                 "v_fma_f64 v[14:15], -v[10:11], v[12:13], 1.0\n"
                                 "v_fma_f64 v[12:13], v[12:13], v[14:15], v[12:13]\n"
                                 "v_div_scale_f64 v[14:15], vcc, v[2:3], v[4:5], v[2:3]\n"
                                 "v_mul_f64 v[16:17], v[14:15], v[12:13]\n"
                                 "v_fma_f64 v[10:11], -v[10:11], v[16:17], v[14:15]\n"
                                 "v_div_fmas_f64 v[10:11], v[10:11], v[12:13], v[16:17]\n"
                                 "v_div_fixup_f64 v[20:21], v[10:11], v[4:5], v[2:3]\n";

/* The quotient that C computes: IEEE's, in every case that is not a NaN. Of f64 a denormal may be one off. */
static void quotient_check(const ref_format *f, uint64_t a, uint64_t b, uint64_t d) {
    float narrow = (float)ref_value(f, a) / (float)ref_value(f, b);
    double value = f == F32 ? (double)narrow : ref_value(f, a) / ref_value(f, b);
    if (ref_is_nan(f, a) || ref_is_nan(f, b) || isnan(value)) {
        if (!ref_is_nan(f, d)) fail_msg("%llx / %llx is no NaN", (unsigned long long)a, (unsigned long long)b);
        return;
    }
    uint64_t expected = ref_bits(f, value, EXACT_RN);
    bool near = f == F64 && ref_is_denormal(f, expected) && (d - expected + 1) <= 2;
    if (d != expected && !near)
        fail_msg("%llx / %llx is %llx, expected %llx", (unsigned long long)a, (unsigned long long)b,
                 (unsigned long long)d, (unsigned long long)expected);
}

static void test_division(void **state) {
    (void)state;
    const ref_format *const formats[] = {F32, F64};
    for (int i = 0; i < 2 * PROCESSORS; i++) {
        const ref_format *f = formats[i % 2];
        variant_type type = {'f', f == F32 ? 32 : 64};
        amd_program *program = amdgcn_load(processors[i / 2], true, f == F32 ? divide_f32 : divide_f64);
        amdgcn_registers_fill(&before, program, &random_state);
        for (int round = 0; round < 40; round++) {
            for (uint32_t l = 0; l < AMD_LANES; l++) {
                uint64_t a = draw_value(type, &random_state), b = draw_value(type, &random_state);
                before.v[2][l] = (uint32_t)a;
                before.v[3][l] = (uint32_t)(a >> 32);
                before.v[4][l] = (uint32_t)b;
                before.v[5][l] = (uint32_t)(b >> 32);
            }
            run(program, (uint64_t)round);
            for (uint32_t l = 0; l < AMD_LANES; l++) {
                uint64_t a = lane_value(before.v, 2, l, f), b = lane_value(before.v, 4, l, f);
                if (!ref_is_nan(f, a) && !ref_is_nan(f, b)) quotient_check(f, a, b, lane_value(registers.v, 20, l, f));
            }
        }
        amd_program_free(program);
    }
}

/* ---- Conversions of 8 bits ---- */

/* The value of a byte in a format given by its parts, from the formats' definitions. */
static double byte_value(uint32_t byte, int exponent_bits, int bias, bool finite) {
    int mantissa_bits = 7 - exponent_bits, exponent = (int)(byte >> mantissa_bits) & ((1 << exponent_bits) - 1);
    int mantissa = (int)(byte & ((1u << mantissa_bits) - 1)), top = (1 << exponent_bits) - 1;
    double value =
        ldexp(mantissa + (exponent ? 1 << mantissa_bits : 0), (exponent ? exponent : 1) - bias - mantissa_bits);
    if (finite && byte == 0x80) return NAN;                                                  /* FNUZ */
    if (!finite && mantissa_bits == 3 && (byte & 0x7f) == 0x7f) return NAN;                  /* OCP e4m3 */
    if (!finite && mantissa_bits == 2 && exponent == top) value = mantissa ? NAN : INFINITY; /* OCP e5m2 */
    return byte & 0x80 ? -value : value;
}

typedef struct byte_format {
    const char *processor, *name;
    int exponent, bias;
    bool finite;
} byte_format;

static const byte_format byte_formats[] = {{"gfx942", "fp8", 4, 8, true},
                                           {"gfx942", "bf8", 5, 16, true},
                                           {"gfx1201", "fp8", 4, 7, false},
                                           {"gfx1201", "bf8", 5, 15, false}};
enum { BYTE_FORMATS = sizeof byte_formats / sizeof *byte_formats };

static double format_value(const byte_format *f, uint32_t byte) {
    return byte_value(byte, f->exponent, f->bias, f->finite);
}

static void same_value(const char *text, uint32_t byte, uint32_t bits, double expected) {
    if (isnan(expected) ? ref_is_nan(F32, bits) : bits == ref_bits(F32, expected, EXACT_RN)) return;
    fail_msg("%s of 0x%02x is 0x%08x, expected %g", text, byte, bits, expected);
}

/* All bytes, in each place of a register. */
static void test_widening_of_8_bits(void **state) {
    (void)state;
    for (unsigned i = 0; i < BYTE_FORMATS * 4; i++) {
        const byte_format *f = &byte_formats[i / 4];
        unsigned place = i % 4;
        char text[96];
        bool sdwa = f->finite;
        snprintf(text, sizeof text,
                 sdwa ? "v_cvt_f32_%s_sdwa v10, v2 src0_sel:BYTE_%u" : "v_cvt_f32_%s_e64 v10, v2 byte_sel:%u", f->name,
                 place);
        amd_program *program = amdgcn_load(f->processor, true, text);
        amdgcn_registers_fill(&before, program, &random_state);
        for (uint32_t block = 0; block < 256; block += AMD_LANES) {
            for (uint32_t l = 0; l < AMD_LANES; l++)
                before.v[2][l] = (before.v[2][l] & ~(0xffu << 8 * place)) | (block + l) << 8 * place;
            run(program, 0);
            for (uint32_t l = 0; l < AMD_LANES; l++)
                same_value(text, block + l, registers.v[10][l], format_value(f, block + l));
        }
        amd_program_free(program);
    }
}

static void test_widening_of_pairs(void **state) {
    (void)state;
    for (unsigned i = 0; i < BYTE_FORMATS * 2; i++) {
        const byte_format *f = &byte_formats[i / 2];
        unsigned half = i % 2;
        char text[96];
        if (f->finite)
            snprintf(text, sizeof text, "v_cvt_pk_f32_%s_sdwa v[10:11], v2 src0_sel:WORD_%u", f->name, half);
        else
            snprintf(text, sizeof text, "v_cvt_pk_f32_%s_e64 v[10:11], v2 op_sel:[%u,0]", f->name, half);
        amd_program *program = amdgcn_load(f->processor, true, text);
        amdgcn_registers_fill(&before, program, &random_state);
        run(program, 0);
        for (uint32_t l = 0; l < AMD_LANES; l++) {
            uint32_t pair = before.v[2][l] >> 16 * half;
            same_value(text, pair & 0xff, registers.v[10][l], format_value(f, pair & 0xff));
            same_value(text, pair >> 8 & 0xff, registers.v[11][l], format_value(f, pair >> 8 & 0xff));
        }
        amd_program_free(program);
    }
}

/* The byte that is nearest, of two the one with an even mantissa; beyond the largest, infinity or a NaN. */
static bool is_nearest(const byte_format *f, double value, uint32_t byte) {
    double got = format_value(f, byte), largest = 0;
    for (uint32_t b = 0; b < 128; b++)
        if (isfinite(format_value(f, b))) largest = fmax(largest, format_value(f, b));
    double beyond = largest + ldexp(1, ilogb(largest) - (7 - f->exponent)) / 2; /* from here on it overflows */
    if (isnan(value)) return isnan(got);
    if (fabs(value) >= beyond)
        return f->finite || f->exponent == 4 ? isnan(got) : isinf(got) && (got > 0) == (value > 0);
    if (!isfinite(got)) return false;
    if (signbit(got) != signbit(value) && !(f->finite && got == 0)) return false;
    for (uint32_t b = 0; b < 256; b++) {
        double other = format_value(f, b);
        if (!isfinite(other) || other == got) continue;
        double closer = fabs(other - value) - fabs(got - value);
        if (closer < 0 || (closer == 0 && (byte & 1))) return false;
    }
    return true;
}

static void test_narrowing_to_8_bits(void **state) {
    (void)state;
    for (unsigned i = 0; i < BYTE_FORMATS * 2; i++) {
        const byte_format *f = &byte_formats[i / 2];
        unsigned half = i % 2;
        char text[96];
        snprintf(text, sizeof text, "v_cvt_pk_%s_f32 v10, v2, v4 op_sel:[0,0,%u]", f->name, half);
        amd_program *program = amdgcn_load(f->processor, true, text);
        amdgcn_registers_fill(&before, program, &random_state);
        for (int round = 0; round < 20; round++) {
            for (int r = 2; r <= 4; r += 2) {
                for (uint32_t l = 0; l < AMD_LANES; l++) {
                    /* Values of the format, values half between two, and others. */
                    double a = format_value(f, draw(&random_state, 256)), b = format_value(f, draw(&random_state, 256));
                    uint64_t any = draw_value((variant_type){'f', 32}, &random_state);
                    bool made = draw(&random_state, 3) && isfinite(a + b);
                    before.v[r][l] =
                        (uint32_t)(made ? ref_bits(F32, draw(&random_state, 2) ? a : (a + b) / 2, EXACT_RN) : any);
                }
            }
            run(program, 0);
            for (uint32_t l = 0; l < AMD_LANES; l++) {
                uint32_t result = registers.v[10][l], other = half ? 0 : 16;
                assert_int_equal(result >> other & 0xffff, before.v[10][l] >> other & 0xffff);
                for (int k = 0; k < 2; k++) {
                    uint32_t a = before.v[2 + 2 * k][l], byte = result >> (16 * half + 8 * (unsigned)k) & 0xff;
                    double value = ref_is_nan(F32, a) ? NAN : ref_value(F32, a);
                    if (!is_nearest(f, value, byte))
                        fail_msg("%s: %s of %a is 0x%02x", f->processor, text, value, byte);
                }
            }
        }
        amd_program_free(program);
    }
}

/* With noise the mantissa is raised before it is rounded; without, it is the plain conversion. */
static void test_narrowing_with_noise(void **state) {
    (void)state;
    for (unsigned i = 0; i < BYTE_FORMATS * 4; i++) {
        const byte_format *f = &byte_formats[i / 4];
        unsigned place = i % 4;
        int unused = f->exponent == 4 ? 12 : 11; /* low bits of the noise */
        char text[96];
        if (f->finite)
            snprintf(text, sizeof text, "v_cvt_sr_%s_f32 v10, v2, v4 op_sel:[0,0,%u,%u]", f->name, place & 1,
                     place >> 1);
        else
            snprintf(text, sizeof text, "v_cvt_sr_%s_f32 v10, v2, v4 byte_sel:%u", f->name, place);
        amd_program *program = amdgcn_load(f->processor, true, text);
        amdgcn_registers_fill(&before, program, &random_state);
        for (uint32_t l = 0; l < AMD_LANES; l++)
            before.v[2][l] = (uint32_t)draw_value((variant_type){'f', 32}, &random_state);
        run(program, 0);
        for (uint32_t l = 0; l < AMD_LANES; l++) {
            uint32_t a = before.v[2][l], mantissa = (a + (before.v[4][l] >> unused)) & 0x7fffff;
            uint32_t noisy = (a & 0xff800000) | mantissa, field = 0xffu << 8 * place;
            double value = ref_is_nan(F32, noisy) ? NAN : ref_value(F32, noisy);
            assert_int_equal(registers.v[10][l] & ~field, before.v[10][l] & ~field);
            if (!is_nearest(f, value, registers.v[10][l] >> 8 * place & 0xff))
                fail_msg("%s: %s of %a is 0x%08x", f->processor, text, value, registers.v[10][l]);
        }
        amd_program_free(program);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_halves_of_the_encoding), cmocka_unit_test(test_halves_of_registers),
        cmocka_unit_test(test_approximations),         cmocka_unit_test(test_scalar_approximations),
        cmocka_unit_test(test_seed_perturbs),          cmocka_unit_test(test_division),
        cmocka_unit_test(test_widening_of_8_bits),     cmocka_unit_test(test_widening_of_pairs),
        cmocka_unit_test(test_narrowing_to_8_bits),    cmocka_unit_test(test_narrowing_with_noise),
        cmocka_unit_test(test_mixed_sums_round_twice),
    };
    if (!amdgcn_harness_ready()) return 0;
    random_state = harness_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
