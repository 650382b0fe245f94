/* cvt of PTX against exact integer arithmetic: types of up to 16 bits exhaustively, wider ones over edge values and
 * random ones. Packed types: ptx_convert_packed_test.c. */
#include "tests/sim/tests/ptx/ptx_conversion.h"

static const float_format *const formats[] = {&float_f16, &float_bf16, &float_f32, &float_f64};

static const char *const rounding_names[] = {"rn", "rz", "rm", "rp", "rna"};

/* ---- Floating point to floating point ---- */

/* .ftz is of f32 alone. */
static uint32_t flags_of(const float_format *f, uint32_t flags) {
    return f == &float_f32 ? flags : flags & ~(uint32_t)FLOAT_FTZ;
}

static void check_real(const float_format *to, const float_format *from, int rounding, uint32_t flags) {
    char code[128];
    snprintf(code, sizeof code, "cvt%s%s%s%s%s%s.%s.%s %%d, %%a;", rounding < 0 ? "" : ".",
             rounding < 0 ? "" : rounding_names[rounding], flags & FLOAT_FTZ ? ".ftz" : "",
             flags & FLOAT_SAT ? ".sat" : "", flags & FLOAT_RELU ? ".relu" : "",
             flags & FLOAT_SATFINITE ? ".satfinite" : "", to->name, from->name);
    fill(raw, from->bits, from->mantissa);
    run("sm_90", code, to->bits, from->bits, raw, NULL, results);
    for (size_t i = 0; i < count; i++) {
        bool kept = to == &float_f16; /* an f32 that becomes an f16 is not flushed on an H100 */
        uint64_t a = flags_of(from, flags) & FLOAT_FTZ && !kept ? float_flushed(from, raw[i]) : raw[i];
        uint64_t wanted = rounded(to, float_value(from, a), rounding < 0 ? EXACT_RN : (exact_rounding)rounding);
        expect(code, raw[i], 0, results[i], float_finish(to, wanted, flags_of(to, flags)));
    }
}

static void between_floating_point_types(void **state) {
    (void)state;
    for (int t = 0; t < 4; t++) {
        for (int s = 0; s < 4; s++) {
            const float_format *to = formats[t], *from = formats[s];
            bool narrows = to != from && to->mantissa < 52 && (to->bits < from->bits || to->bits == 16);
            bool brain = to == &float_bf16 || from == &float_bf16, single = to == &float_f32 || from == &float_f32;
            for (int r = narrows ? 0 : -1; r < (narrows ? 4 : 0); r++) {
                for (uint32_t flags = 0; flags < 4; flags++) {
                    if ((flags & FLOAT_SAT && brain) || (flags & FLOAT_FTZ && !single)) continue;
                    check_real(to, from, r, flags);
                }
                if (from != &float_f32 || to->bits != 16 || r > EXACT_RZ) continue;
                check_real(to, from, r, FLOAT_RELU);
                check_real(to, from, r, FLOAT_SATFINITE);
                check_real(to, from, r, FLOAT_RELU | FLOAT_SATFINITE);
            }
        }
    }
}

static double whole(double value, int rounding) {
    double down = floor(value), rest = value - down;
    switch (rounding) {
    case EXACT_RN:
        return rest > 0.5 || (rest == 0.5 && floor(down / 2) * 2 != down) ? down + 1 : down;
    case EXACT_RZ:
        return value < 0 ? ceil(value) : down;
    case EXACT_RM:
        return down;
    default:
        return ceil(value);
    }
}

static void to_integral_values(void **state) {
    (void)state;
    for (int n = 0; n < 4 * 4 * 2; n++) {
        const float_format *f = formats[n / 8];
        int r = n % 4;
        bool sat = n & 4;
        if (sat && f == &float_bf16) continue;
        char code[96];
        snprintf(code, sizeof code, "cvt.%si%s.%s.%s %%d, %%a;", rounding_names[r], sat ? ".sat" : "", f->name,
                 f->name);
        fill(raw, f->bits, f->mantissa);
        run("sm_90", code, f->bits, f->bits, raw, NULL, results);
        for (size_t i = 0; i < count; i++) {
            double value = float_value(f, raw[i]);
            if (isfinite(value)) value = copysign(whole(value, r), value);
            expect(code, raw[i], 0, results[i], float_finish(f, rounded(f, value, EXACT_RN), sat ? FLOAT_SAT : 0));
        }
    }
}

static void to_tf32(void **state) {
    (void)state;
    static const float_format tf32 = {"tf32", 19, 8, 10, 0x3ffff};
    static const struct {
        const char *code;
        exact_rounding rounding;
        uint32_t flags;
    } rows[] = {{"cvt.rna.tf32.f32 %d, %a;", EXACT_RNA, 0},
                {"cvt.rna.satfinite.tf32.f32 %d, %a;", EXACT_RNA, FLOAT_SATFINITE},
                {"cvt.rn.tf32.f32 %d, %a;", EXACT_RN, 0},
                {"cvt.rz.relu.tf32.f32 %d, %a;", EXACT_RZ, FLOAT_RELU},
                {"cvt.rn.relu.satfinite.tf32.f32 %d, %a;", EXACT_RN, FLOAT_RELU | FLOAT_SATFINITE}};
    fill(raw, 32, 23);
    for (size_t n = 0; n < sizeof rows / sizeof *rows; n++) {
        run("sm_100", rows[n].code, 32, 32, raw, NULL, results);
        for (size_t i = 0; i < count; i++) {
            uint64_t wanted =
                float_finish(&tf32, rounded(&tf32, float_value(&float_f32, raw[i]), rows[n].rounding), rows[n].flags);
            bool away = rows[n].rounding == EXACT_RNA, saturates = rows[n].flags & FLOAT_SATFINITE;
            uint64_t nan = away ? (raw[i] & ~0x1fffull) - (saturates ? 0x2000 : 0) : 0x7fffe000; /* of an H100 */
            expect(rows[n].code, raw[i], 0, results[i], isnan(float_value(&float_f32, raw[i])) ? nan : wanted << 13);
        }
    }
}

/* ---- Integers ---- */

typedef struct integer {
    const char *name;
    uint32_t bits;
    bool is_signed;
} integer;

static const integer integers[] = {{"u8", 8, false}, {"u16", 16, false}, {"u32", 32, false}, {"u64", 64, false},
                                   {"s8", 8, true},  {"s16", 16, true},  {"s32", 32, true},  {"s64", 64, true}};

static __int128 integer_of(const integer *t, uint64_t bits) {
    uint64_t cut = t->bits < 64 ? bits & ((1ull << t->bits) - 1) : bits;
    bool minus = t->is_signed && cut >> (t->bits - 1);
    return minus ? (__int128)cut - ((__int128)1 << t->bits) : (__int128)cut;
}

static __int128 least(const integer *t) {
    return t->is_signed ? -((__int128)1 << (t->bits - 1)) : 0;
}

static __int128 greatest(const integer *t) {
    return ((__int128)1 << (t->bits - t->is_signed)) - 1;
}

static uint64_t in_register(const integer *t, __int128 value, uint32_t register_bits) {
    uint64_t bits = (uint64_t)integer_of(t, (uint64_t)value);
    return register_bits < 64 ? bits & ((1ull << register_bits) - 1) : bits;
}

/* 8-bit integers live in wider registers, and so may others. */
static uint32_t register_of(const integer *t, bool wide) {
    uint32_t least_bits = t->bits == 8 ? 16 : t->bits;
    return wide && least_bits < 64 ? least_bits * 2 : least_bits;
}

static void between_integers(void **state) {
    (void)state;
    for (int n = 0; n < 8 * 8 * 4; n++) {
        const integer *to = &integers[n / 32], *from = &integers[n / 4 % 8];
        bool sat = n & 1, wide = n & 2;
        if (sat && least(from) >= least(to) && greatest(from) <= greatest(to)) continue; /* which is refused */
        uint32_t source_bits = register_of(from, wide), result_bits = register_of(to, wide);
        char code[96];
        snprintf(code, sizeof code, "cvt%s.%s.%s %%d, %%a;", sat ? ".sat" : "", to->name, from->name);
        fill(raw, source_bits, (int)source_bits / 2);
        run("sm_90", code, result_bits, source_bits, raw, NULL, results);
        for (size_t i = 0; i < count; i++) {
            __int128 value = integer_of(from, raw[i]);
            if (sat && value < least(to)) value = least(to);
            if (sat && value > greatest(to)) value = greatest(to);
            expect(code, raw[i], 0, results[i], in_register(to, value, result_bits));
        }
    }
}

static void integers_to_floating_point(void **state) {
    (void)state;
    for (int n = 0; n < 8 * 4 * 4; n++) {
        const integer *from = &integers[n / 16];
        const float_format *to = formats[n / 4 % 4];
        uint32_t source_bits = to == &float_bf16 ? from->bits : register_of(from, false);
        char code[96];
        snprintf(code, sizeof code, "cvt.%s.%s.%s %%d, %%a;", rounding_names[n % 4], to->name, from->name);
        fill(raw, source_bits, (int)source_bits / 2);
        run("sm_90", code, to->bits, source_bits, raw, NULL, results);
        for (size_t i = 0; i < count; i++) {
            __int128 value = integer_of(from, raw[i]);
            exact sum = {{0}};
            uint64_t magnitude = (uint64_t)(value < 0 ? -value : value);
            exact_add_product(&sum, (double)(magnitude >> 32), value < 0 ? -0x1p32 : 0x1p32);
            exact_add_product(&sum, (double)(uint32_t)magnitude, value < 0 ? -1 : 1);
            expect(code, raw[i], 0, results[i], exact_round(&sum, to->exponent, to->mantissa, (exact_rounding)(n % 4)));
        }
    }
}

static void floating_point_to_integers(void **state) {
    (void)state;
    for (int n = 0; n < 8 * 4 * 4; n++) {
        const integer *to = &integers[n / 16];
        const float_format *from = formats[n / 4 % 4];
        uint32_t result_bits = from == &float_bf16 ? to->bits : register_of(to, false);
        char code[96];
        snprintf(code, sizeof code, "cvt.%si.%s.%s %%d, %%a;", rounding_names[n % 4], to->name, from->name);
        fill(raw, from->bits, from->mantissa);
        run("sm_90", code, result_bits, from->bits, raw, NULL, results);
        for (size_t i = 0; i < count; i++) {
            double value = float_value(from, raw[i]);
            __int128 wanted;
            if (isnan(value)) {
                wanted = from == &float_f64 || to->bits == 64 ? (__int128)1 << (to->bits - 1) : 0;
            } else {
                double limited = fmax(fmin(value, 0x1p70), -0x1p70);
                wanted = (__int128)whole(limited, n % 4);
                if (wanted < least(to)) wanted = least(to);
                if (wanted > greatest(to)) wanted = greatest(to);
            }
            expect(code, raw[i], 0, results[i], in_register(to, wanted, result_bits));
        }
    }
}

/* ---- What is refused ---- */

static void refusals(void **state) {
    (void)state;
    static const struct {
        const char *target, *version, *code, *word;
        uint32_t result_bits, source_bits;
    } rows[] = {
        {"sm_90", "9.0", "cvt.f16.f32 %d, %a;", "rounding", 16, 32},
        {"sm_90", "9.0", "cvt.s32.f32 %d, %a;", "rounding", 32, 32},
        {"sm_90", "9.0", "cvt.f32.s32 %d, %a;", "rounding", 32, 32},
        {"sm_90", "9.0", "cvt.rn.f32.f32 %d, %a;", ".rn", 32, 32},
        {"sm_90", "9.0", "cvt.rni.f32.f64 %d, %a;", "rounding", 32, 64},
        {"sm_90", "9.0", "cvt.ftz.s32.s32 %d, %a;", ".ftz", 32, 32},
        {"sm_90", "9.0", "cvt.rn.sat.bf16.f32 %d, %a;", ".sat", 16, 32},
        {"sm_90", "9.0", "cvt.relu.f32.f16 %d, %a;", ".relu", 32, 16},
        {"sm_75", "9.0", "cvt.rn.bf16.f32 %d, %a;", "sm_80", 16, 32},
        {"sm_80", "9.0", "cvt.rn.bf16.s32 %d, %a;", "sm_90", 16, 32},
        {"sm_80", "9.0", "cvt.ftz.f32.bf16 %d, %a;", "sm_90", 32, 16},
        {"sm_90", "9.0", "cvt.rn.bf16.u8 %d, %a;", "16 bits", 16, 16},
        {"sm_80", "7.0", "cvt.rn.satfinite.f16.f32 %d, %a;", "PTX 8.1", 16, 32},
        {"sm_90", "9.0", "cvt.rp.satfinite.f16.f32 %d, %a;", ".rp", 16, 32},
        {"sm_90", "9.0", "cvt.rm.relu.bf16.f32 %d, %a;", ".rm", 16, 32},
        {"sm_75", "9.0", "cvt.rn.f16x2.f32 %d, %a, %a;", "sm_80", 32, 32},
        {"sm_86", "9.0", "cvt.rn.satfinite.e4m3x2.f32 %d, %a, %a;", "sm_89", 16, 32},
        {"sm_89", "7.8", "cvt.rn.satfinite.e4m3x2.f32 %d, %a, %a;", "PTX 8.1", 16, 32},
        {"sm_90", "9.0", "cvt.rn.e4m3x2.f32 %d, %a, %a;", "satfinite", 16, 32},
        {"sm_90", "9.0", "cvt.rn.satfinite.e4m3x2.bf16x2 %d, %a;", "not simulated", 16, 32},
        {"sm_100", "9.0", "cvt.rn.satfinite.e2m1x2.f32 %d, %a, %a;", "sm_100a", 8, 32},
        {"sm_90a", "9.0", "cvt.rn.f16x2.e2m1x2 %d, %a;", "sm_100", 32, 8},
        {"sm_120", "9.0", "cvt.rz.ue8m0x2.f32 %d, %a, %a;", "sm_100a", 16, 32},
        {"sm_120a", "9.0", "cvt.rn.ue8m0x2.f32 %d, %a, %a;", "rounding", 16, 32},
        {"sm_100a", "9.0", "cvt.rs.satfinite.e4m3x4.f32 %d, {%a, %a, %a, %a}, %a;", "e4m3x4", 32, 32},
        {"sm_120a", "9.0", "cvt.rs.f16x2.f32 %d, %a, %a, %a;", "sm_100a", 32, 32},
        {"sm_90", "9.0", "cvt.sat.s32.s16 %d, %a;", "saturate", 32, 16},
        {"sm_90", "9.0", "cvt.pack.s16.s32 %d, %a, %a;", ".sat", 32, 32},
        {"sm_90", "9.0", "cvt.pack.sat.u8.u32.b32 %d, %a, %a, %a;", "s32", 32, 32},
        {"sm_80", "9.0", "cvt.rn.tf32.f32 %d, %a;", "sm_90", 32, 32},
        {"sm_90", "9.0", "cvt.rm.tf32.f32 %d, %a;", "tf32", 32, 32},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        harness_case test = {.target = rows[i].target,
                             .version = rows[i].version,
                             .code = rows[i].code,
                             .result_bits = rows[i].result_bits,
                             .source_bits = {rows[i].source_bits}};
        const char *why = harness_refusal(&test);
        if (!strstr(why, rows[i].word) || !strstr(why, "cvt.")) fail_msg("%s: \"%s\"", rows[i].code, why);
    }
}

int main(void) {
    seed = harness_seed();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(between_floating_point_types),
        cmocka_unit_test(to_integral_values),
        cmocka_unit_test(to_tf32),
        cmocka_unit_test(between_integers),
        cmocka_unit_test(integers_to_floating_point),
        cmocka_unit_test(floating_point_to_integers),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests_name("ptx_convert", tests, NULL, NULL);
}
