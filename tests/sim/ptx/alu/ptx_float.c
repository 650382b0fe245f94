/* add sub mul fma mad min max neg abs of floating-point types. */
#include "tests/sim/ptx/alu/ptx_float.h"
#include <fenv.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Decoding ---- */

sim_rounding ptx_take_rounding(ptx_decoder *decoder, int missing) {
    static const int modifiers[] = {PTX_M_RN, PTX_M_RZ, PTX_M_RM, PTX_M_RP};
    static const sim_rounding roundings[] = {SIM_ROUND_NEAREST_EVEN, SIM_ROUND_ZERO, SIM_ROUND_DOWN, SIM_ROUND_UP};
    int found = ptx_take_one(decoder, modifiers, 4);
    if (found >= 0) return roundings[found];
    if (missing < 0) ptx_refuse(decoder, "it has no rounding");
    return (sim_rounding)missing;
}

void ptx_take_flag(ptx_decoder *decoder, int modifier, uint32_t flag) {
    if (ptx_take(decoder, modifier)) decoder->op->flags |= flag;
}

/* ---- Values ---- */

sim_format ptx_format_of(ptx_type type) {
    switch (type) {
    case PTX_f16:
    case PTX_f16x2:
        return SIM_f16;
    case PTX_bf16:
    case PTX_bf16x2:
        return SIM_bf16;
    default:
        return SIM_f32;
    }
}

uint32_t ptx_elements_of(ptx_type type) {
    return type == PTX_f16x2 || type == PTX_bf16x2 || type == PTX_f32x2 ? 2 : 1;
}

uint32_t ptx_narrow_nan(sim_format format) {
    return format == SIM_f32 ? 0x7fffffffu : 0x7fffu;
}

static uint32_t sign_of(sim_format format) {
    return format == SIM_f32 ? 0x80000000u : 0x8000u;
}

static uint32_t least_normal(sim_format format) {
    return format == SIM_f32 ? 0x00800000u : format == SIM_f16 ? 0x0400u : 0x0080u;
}

/* With .ftz it is the exact result that counts: one below the least normal number that would round to it is a zero, as
 * was recorded on an H100. */
static double flush_exact(sim_format format, double value) {
    return fabs(value) < (format == SIM_f16 ? 0x1p-14 : 0x1p-126) ? copysign(0, value) : value;
}

/* A product that is less than half of the last place of what it is added to is no more than a sticky bit beside that,
 * whose own magnitude then counts: an H200 keeps a sum that is rounded to the least normal number. */
static bool is_sticky(sim_format format, double product, double addend) {
    return fabs(product) < fabs(addend) * (format == SIM_f16 ? 0x1p-11 : format == SIM_f32 ? 0x1p-24 : 0x1p-8);
}

static uint32_t flush(sim_format format, uint32_t bits) {
    return (bits & ~sign_of(format)) < least_normal(format) ? bits & sign_of(format) : bits;
}

/* The exponent moves by a multiplication, which is exact and takes care of subnormals. */
static double decode_half(uint32_t bits) {
    uint32_t magnitude = bits & 0x7fff;
    uint64_t wide = (uint64_t)magnitude << 42;
    double value;
    memcpy(&value, &wide, sizeof value);
    value = magnitude > 0x7c00 ? NAN : magnitude == 0x7c00 ? INFINITY : value * 0x1p1008;
    return bits & 0x8000 ? -value : value;
}

double ptx_narrow_load(sim_format format, uint32_t bits, uint32_t flags) {
    if (flags & PTX_F_FTZ) bits = flush(format, bits);
    if (format == SIM_f16) return decode_half(bits);
    if (format == SIM_bf16) bits <<= 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* To nearest even by the digits that go: in integers where the result is normal, by a sum where it is not. As
 * sim_encode, which has every rounding. */
static uint32_t encode_nearest(sim_format format, double value) {
    int mantissa = format == SIM_f16 ? 10 : 7, bias = format == SIM_f16 ? 15 : 127, drop = 52 - mantissa;
    uint64_t sign = signbit(value) ? 0x8000 : 0, infinity = 0x7fffull >> mantissa << mantissa, bits, base;
    double magnitude = fabs(value),
           unit = format == SIM_f16 ? 0x1p28 : 0x1p-81; /* its last place is the least number */
    if (magnitude < (format == SIM_f16 ? 0x1p-14 : 0x1p-126)) {
        double sum = magnitude + unit;
        memcpy(&bits, &sum, sizeof bits);
        memcpy(&base, &unit, sizeof base);
        return (uint32_t)((bits - base) | sign);
    }
    memcpy(&bits, &magnitude, sizeof bits);
    bits = (bits + (1ull << (drop - 1)) - 1 + (bits >> drop & 1)) >> drop;
    bits -= (uint64_t)(1023 - bias) << mantissa;
    return (uint32_t)((bits < infinity ? bits : infinity) | sign);
}

uint32_t ptx_narrow_store(sim_format format, double value, sim_rounding rounding, uint32_t flags) {
    if (isnan(value)) return flags & PTX_F_SAT ? 0 : ptx_narrow_nan(format);
    if (flags & PTX_F_SAT) value = value > 0 ? fmin(value, 1) : 0;
    if (flags & PTX_F_RELU && !(value > 0)) return 0;
    uint32_t bits;
    if (rounding != SIM_ROUND_NEAREST_EVEN || flags & PTX_F_SATFINITE) {
        bits = sim_encode(format, value, rounding, flags & PTX_F_SATFINITE);
    } else if (format == SIM_f32) {
        float nearest = (float)value;
        memcpy(&bits, &nearest, sizeof bits);
    } else {
        bits = encode_nearest(format, value);
    }
    return flags & PTX_F_FTZ ? flush(format, bits) : bits;
}

void ptx_store_f32(ptx_warp *warp, uint32_t place, const float *results, uint32_t mask) {
    uint32_t bits[PTX_WARP], *d = PTX_ARRAY(uint32_t, place);
    memcpy(bits, results, sizeof bits);
    for (int l = 0; l < PTX_WARP; l++)
        bits[l] = (bits[l] & 0x7fffffffu) > 0x7f800000u ? 0x7fffffffu : bits[l];
    PTX_LANES(d[l] = bits[l]);
}

void ptx_host_rounding(sim_rounding rounding) {
    static const int modes[] = {[SIM_ROUND_NEAREST_EVEN] = FE_TONEAREST,
                                [SIM_ROUND_ZERO] = FE_TOWARDZERO,
                                [SIM_ROUND_DOWN] = FE_DOWNWARD,
                                [SIM_ROUND_UP] = FE_UPWARD};
    fesetround(modes[rounding]);
}

/* The ISA leaves open which NaN an f64 instruction gives. */
double ptx_double_nan(void) {
    return NAN;
}

/* ---- The common case: f32, to nearest, neither .ftz nor .sat. All lanes are computed, those of mask are stored. ----
 */

#define FAST_BINARY(name, operator)                                                   \
    static void name(ptx_warp *warp, const ptx_op *op, uint32_t mask) {               \
        const float *a = PTX_ARRAY(float, op->s[0]), *b = PTX_ARRAY(float, op->s[1]); \
        float results[PTX_WARP];                                                      \
        for (int l = 0; l < PTX_WARP; l++)                                            \
            results[l] = a[l] operator b[l];                                          \
        ptx_store_f32(warp, op->d[0], results, mask);                                 \
    }
FAST_BINARY(run_add_f32, +)
FAST_BINARY(run_sub_f32, -)
FAST_BINARY(run_mul_f32, *)

/* Orders numbers as their values are, -0 before +0. */
static inline int32_t order(uint32_t bits) {
    return (int32_t)(bits & 0x80000000u ? bits ^ 0x7fffffffu : bits);
}

static inline void choose_lanes(ptx_warp *warp, const ptx_op *op, uint32_t mask, bool largest) {
    const uint32_t *a = PTX_ARRAY(uint32_t, op->s[0]), *b = PTX_ARRAY(uint32_t, op->s[1]);
    uint32_t bits[PTX_WARP];
    float results[PTX_WARP];
    for (int l = 0; l < PTX_WARP; l++) {
        bool a_nan = (a[l] & 0x7fffffffu) > 0x7f800000u, b_nan = (b[l] & 0x7fffffffu) > 0x7f800000u;
        bool first = (order(a[l]) > order(b[l])) == largest;
        bits[l] = b_nan | (!a_nan & first) ? a[l] : b[l];
    }
    memcpy(results, bits, sizeof results);
    ptx_store_f32(warp, op->d[0], results, mask);
}

static void run_min_f32(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    choose_lanes(warp, op, mask, false);
}

static void run_max_f32(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    choose_lanes(warp, op, mask, true);
}

static inline __attribute__((always_inline)) void fma_lanes(const ptx_warp *warp, const ptx_op *op, float *results) {
    const float *a = PTX_ARRAY(float, op->s[0]), *b = PTX_ARRAY(float, op->s[1]), *c = PTX_ARRAY(float, op->s[2]);
    for (int l = 0; l < PTX_WARP; l++)
        results[l] = __builtin_fmaf(a[l], b[l], c[l]);
}

static void run_fma_f32(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    float results[PTX_WARP];
    fma_lanes(warp, op, results);
    ptx_store_f32(warp, op->d[0], results, mask);
}

#ifdef __x86_64__
/* A baseline x86-64 has no fused multiply-add, and would call the C library's for each lane. */
__attribute__((target("avx2,fma"))) static void run_fma_f32_avx2(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    float results[PTX_WARP];
    fma_lanes(warp, op, results);
    ptx_store_f32(warp, op->d[0], results, mask);
}
#endif

/* The same with .ftz: subnormal operands and results are zeros of their sign. */
static inline __attribute__((always_inline)) void flush_lanes(const uint32_t *bits, float *out) {
    uint32_t flushed[PTX_WARP];
    for (int l = 0; l < PTX_WARP; l++)
        flushed[l] = bits[l] & 0x7f800000u ? bits[l] : bits[l] & 0x80000000u;
    memcpy(out, flushed, sizeof flushed);
}

static void run_narrow(ptx_warp *warp, const ptx_op *op, uint32_t mask);

/* A result of the least normal number may have been rounded up to it, which run_narrow knows. */
static inline __attribute__((always_inline)) void store_flushed(ptx_warp *warp, const ptx_op *op, uint32_t mask,
                                                                const float *results) {
    uint32_t bits[PTX_WARP];
    float flushed[PTX_WARP];
    bool least = false;
    memcpy(bits, results, sizeof bits);
    for (int l = 0; l < PTX_WARP; l++)
        least |= (bits[l] & 0x7fffffffu) == 0x00800000u;
    if (least) {
        run_narrow(warp, op, mask);
        return;
    }
    flush_lanes(bits, flushed);
    ptx_store_f32(warp, op->d[0], flushed, mask);
}

#define FLUSHING_BINARY(name, operator)                                 \
    static void name(ptx_warp *warp, const ptx_op *op, uint32_t mask) { \
        float a[PTX_WARP], b[PTX_WARP];                                 \
        flush_lanes(PTX_ARRAY(uint32_t, op->s[0]), a);                  \
        flush_lanes(PTX_ARRAY(uint32_t, op->s[1]), b);                  \
        for (int l = 0; l < PTX_WARP; l++)                              \
            a[l] = a[l] operator b[l];                                  \
        store_flushed(warp, op, mask, a);                               \
    }
FLUSHING_BINARY(run_add_ftz, +)
FLUSHING_BINARY(run_sub_ftz, -)
FLUSHING_BINARY(run_mul_ftz, *)

static inline __attribute__((always_inline)) void fma_ftz_lanes(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    float a[PTX_WARP], b[PTX_WARP], c[PTX_WARP];
    flush_lanes(PTX_ARRAY(uint32_t, op->s[0]), a);
    flush_lanes(PTX_ARRAY(uint32_t, op->s[1]), b);
    flush_lanes(PTX_ARRAY(uint32_t, op->s[2]), c);
    for (int l = 0; l < PTX_WARP; l++)
        a[l] = __builtin_fmaf(a[l], b[l], c[l]);
    store_flushed(warp, op, mask, a);
}

static void run_fma_ftz(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    fma_ftz_lanes(warp, op, mask);
}

#ifdef __x86_64__
__attribute__((target("avx2,fma"))) static void run_fma_ftz_avx2(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    fma_ftz_lanes(warp, op, mask);
}
#endif

/* neg and abs work on the sign bit, of a NaN too. */
PTX_UNARY(run_neg_16, uint16_t, a ^ 0x8000u)
PTX_UNARY(run_neg_32, uint32_t, a ^ 0x80000000u)
PTX_UNARY(run_neg_64, uint64_t, a ^ 1ull << 63)
PTX_UNARY(run_neg_x2, uint32_t, a ^ 0x80008000u)
PTX_UNARY(run_abs_16, uint16_t, a & 0x7fffu)
PTX_UNARY(run_abs_32, uint32_t, a & 0x7fffffffu)
PTX_UNARY(run_abs_64, uint64_t, a & ~(1ull << 63))
PTX_UNARY(run_abs_x2, uint32_t, a & 0x7fff7fffu)

static void run_sign_ftz(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    sim_format format = ptx_format_of(op->type);
    uint32_t elements = ptx_elements_of(op->type), sign = sign_of(format);
    void *d = PTX_ARRAY(void, op->d[0]);
    const void *a = PTX_ARRAY(void, op->s[0]);
    PTX_LANES({
        for (uint32_t i = (uint32_t)l * elements; i < ((uint32_t)l + 1) * elements; i++) {
            uint32_t bits = flush(format, ptx_element(a, format, i));
            ptx_element_set(d, format, i, op->mode ? bits & ~sign : bits ^ sign);
        }
    });
}

/* ---- Any other form ---- */

enum { ADD, SUB, MUL, FMA, MIN, MAX, MAD, NEG, ABS, DIV, OPERATIONS };
/* What op->mode holds. */
enum { MODE_OPERATION = 7, MODE_ROUNDING_SHIFT = 3, MODE_XORSIGN = 64, MODE_OOB = 128, MODE_ABS = 256 };

static sim_rounding rounding_of(const ptx_op *op) {
    return (sim_rounding)(op->mode >> MODE_ROUNDING_SHIFT & 7);
}

/* A sum of exactly zero, of numbers that are not both -0, is -0 when rounding down. */
static double sum(double a, double b, sim_rounding rounding) {
    double result = sim_add_odd(a, b);
    return result == 0 && rounding == SIM_ROUND_DOWN && (signbit(a) || signbit(b)) ? -0.0 : result;
}

/* -0 is less than +0; of a NaN and a number the number is taken, unless .NaN was written. */
static double choose(const ptx_op *op, double a, double b) {
    bool largest = (op->mode & MODE_OPERATION) == MAX, negative = signbit(a) != signbit(b);
    if (op->mode & MODE_XORSIGN) {
        a = fabs(a);
        b = fabs(b);
    }
    double result;
    if (isnan(a) || isnan(b))
        result = op->flags & PTX_F_NAN || (isnan(a) && isnan(b)) ? NAN : isnan(a) ? b : a;
    else if (a == b)
        result = signbit(a) == largest ? b : a;
    else
        result = (a < b) == largest ? b : a;
    return op->mode & MODE_XORSIGN ? copysign(result, negative ? -1 : 1) : result;
}

/* The NaN with which a tensor copy fills what lies outside, of 16 bits; an fma.oob that has it as a factor is 0,
 * and NaN where it is what the product is added to (recorded on an H200). */
static bool is_oob(const void *array, uint32_t index) {
    return ((const uint16_t *)array)[index] == 0x7ff7;
}

static void run_narrow(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    sim_format format = ptx_format_of(op->type);
    uint32_t elements = ptx_elements_of(op->type), operation = op->mode & MODE_OPERATION;
    sim_rounding rounding = rounding_of(op);
    void *d = PTX_ARRAY(void, op->d[0]);
    const void *first = PTX_ARRAY(void, op->s[0]), *second = PTX_ARRAY(void, op->s[1]);
    const void *third = operation == FMA ? PTX_ARRAY(void, op->s[2]) : first;
    PTX_LANES({
        for (uint32_t i = (uint32_t)l * elements; i < ((uint32_t)l + 1) * elements; i++) {
            double a = ptx_narrow_load(format, ptx_element(first, format, i), op->flags);
            double b = ptx_narrow_load(format, ptx_element(second, format, i), op->flags);
            double c = ptx_narrow_load(format, ptx_element(third, format, i), op->flags);
            double result = operation == ADD   ? sum(a, b, rounding)
                            : operation == SUB ? sum(a, -b, rounding)
                            : operation == MUL ? a * b
                            : operation == FMA ? sum(a * b, c, rounding)
                                               : choose(op, a, b);
            if (op->flags & PTX_F_FTZ && !(operation == FMA && is_sticky(format, a * b, c)))
                result = flush_exact(format, result);
            if (op->mode & MODE_OOB && (is_oob(first, i) || is_oob(second, i))) result = 0;
            ptx_element_set(d, format, i, ptx_narrow_store(format, result, rounding, op->flags));
        }
    });
}

/* f32 from factors or a summand of 16 bits: a product of two is exact. */
static void run_mixed(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    sim_format narrow = ptx_format_of(op->from);
    uint32_t operation = op->mode & MODE_OPERATION;
    sim_rounding rounding = rounding_of(op);
    uint32_t *d = PTX_ARRAY(uint32_t, op->d[0]);
    const uint16_t *first = PTX_ARRAY(uint16_t, op->s[0]), *second = PTX_ARRAY(uint16_t, op->s[1]);
    const uint32_t *last = PTX_ARRAY(uint32_t, op->s[operation == FMA ? 2 : 1]);
    PTX_LANES({
        double product = ptx_narrow_load(narrow, first[l], 0);
        double summand = ptx_narrow_load(SIM_f32, last[l], 0);
        if (operation == FMA) product *= ptx_narrow_load(narrow, second[l], 0);
        double result = sum(product, operation == SUB ? -summand : summand, rounding);
        d[l] = ptx_narrow_store(SIM_f32, result, rounding, op->flags);
    });
}

/* min and max of three, of which .abs takes the magnitudes. */
static void run_choice_of_three(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    uint32_t *d = PTX_ARRAY(uint32_t, op->d[0]);
    PTX_LANES({
        double values[3];
        for (int i = 0; i < 3; i++) {
            values[i] = ptx_narrow_load(SIM_f32, PTX_ARRAY(uint32_t, op->s[i])[l], op->flags);
            if (op->mode & MODE_ABS) values[i] = fabs(values[i]);
        }
        double result = choose(op, choose(op, values[0], values[1]), values[2]);
        d[l] = ptx_narrow_store(SIM_f32, result, SIM_ROUND_NEAREST_EVEN, op->flags);
    });
}

static void run_double(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    double *d = PTX_ARRAY(double, op->d[0]);
    const double *first = PTX_ARRAY(double, op->s[0]), *second = PTX_ARRAY(double, op->s[1]);
    uint32_t operation = op->mode & MODE_OPERATION;
    const double *third = operation == FMA ? PTX_ARRAY(double, op->s[2]) : first;
    sim_rounding rounding = rounding_of(op);
    if (rounding != SIM_ROUND_NEAREST_EVEN) ptx_host_rounding(rounding);
    PTX_LANES({
        double a = first[l];
        double b = second[l];
        double result = operation == ADD   ? a + b
                        : operation == SUB ? a - b
                        : operation == MUL ? a * b
                        : operation == FMA ? fma(a, b, third[l])
                                           : choose(op, a, b);
        d[l] = isnan(result) ? ptx_double_nan() : result;
    });
    if (rounding != SIM_ROUND_NEAREST_EVEN) ptx_host_rounding(SIM_ROUND_NEAREST_EVEN);
}

static void decode_sign(ptx_decoder *decoder, ptx_type type, bool absolute) {
    static const ptx_run runs[2][4] = {{run_neg_16, run_neg_32, run_neg_64, run_neg_x2},
                                       {run_abs_16, run_abs_32, run_abs_64, run_abs_x2}};
    uint32_t bits = ptx_type_bits(type);
    ptx_op *op = decoder->op;
    if (type == PTX_bf16 || type == PTX_bf16x2)
        ptx_need(decoder, 80, 70);
    else if (type != PTX_f64)
        ptx_take_flag(decoder, PTX_M_FTZ, PTX_F_FTZ);
    if (absolute && (type == PTX_f16 || type == PTX_f16x2)) ptx_need(decoder, 53, 65);
    ptx_decode_same(decoder, type, 1);
    op->mode = absolute;
    op->run = runs[absolute][ptx_elements_of(type) == 2 ? 3 : bits == 16 ? 0 : bits == 32 ? 1 : 2];
    if (op->flags & PTX_F_FTZ) op->run = run_sign_ftz;
}

static void decode_choice(ptx_decoder *decoder, ptx_type type, uint32_t operation) {
    ptx_op *op = decoder->op;
    if (type != PTX_f32 && type != PTX_f64) ptx_need(decoder, 80, 70);
    if (type == PTX_f32 || ptx_format_of(type) == SIM_f16) ptx_take_flag(decoder, PTX_M_FTZ, PTX_F_FTZ);
    op->mode = operation;
    if (type != PTX_f64) {
        ptx_take_flag(decoder, PTX_M_NAN, PTX_F_NAN);
        if (op->flags & PTX_F_NAN) ptx_need(decoder, 80, 70);
        bool xorsign = ptx_take(decoder, PTX_M_XORSIGN), absolute = ptx_take(decoder, PTX_M_ABS);
        bool three = type == PTX_f32 && decoder->statement->operand_count == 4;
        if (!three && xorsign != absolute) ptx_refuse(decoder, ".xorsign and .abs go together");
        if (three && absolute && !xorsign) op->mode |= MODE_ABS;
        if (xorsign) ptx_need(decoder, 86, 72);
        if (xorsign) op->mode |= MODE_XORSIGN;
    }
    if (type == PTX_f32 && !(op->mode & MODE_XORSIGN) && decoder->statement->operand_count == 4) {
        ptx_need(decoder, 100, 88);
        ptx_decode_same(decoder, type, 3);
        op->run = run_choice_of_three;
        return;
    }
    ptx_decode_same(decoder, type, 2);
    op->run = type == PTX_f64 ? run_double : run_narrow;
    if (type == PTX_f32 && !op->flags && op->mode == operation) op->run = operation == MIN ? run_min_f32 : run_max_f32;
}

/* What the type allows beside the rounding. */
static void decode_flags(ptx_decoder *decoder, ptx_type type, bool fused) {
    bool half = ptx_format_of(type) == SIM_f16, brain = ptx_format_of(type) == SIM_bf16;
    if (type == PTX_f64) return;
    if (brain) ptx_need(decoder, fused ? 80 : 90, fused ? 70 : 78);
    if (!brain) ptx_take_flag(decoder, PTX_M_FTZ, PTX_F_FTZ);
    if (!brain && type != PTX_f32x2) ptx_take_flag(decoder, PTX_M_SAT, PTX_F_SAT);
    if (!fused || !(half || brain)) return;
    ptx_take_flag(decoder, PTX_M_RELU, PTX_F_RELU);
    if (decoder->op->flags & PTX_F_RELU) ptx_need(decoder, 80, 70);
    if (decoder->op->flags & PTX_F_RELU && decoder->op->flags & PTX_F_SAT)
        ptx_refuse(decoder, ".relu and .sat exclude each other");
}

static ptx_run fast_run(uint32_t operation, bool flushes) {
    static const ptx_run runs[2][4] = {{run_add_f32, run_sub_f32, run_mul_f32, run_fma_f32},
                                       {run_add_ftz, run_sub_ftz, run_mul_ftz, run_fma_ftz}};
#ifdef __x86_64__
    bool fuses = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (operation == FMA && fuses) return flushes ? run_fma_ftz_avx2 : run_fma_f32_avx2;
#endif
    return runs[flushes][operation];
}

static void decode_rounded(ptx_decoder *decoder, ptx_type type, uint32_t operation) {
    bool fused = operation == FMA;
    ptx_op *op = decoder->op;
    sim_rounding rounding = ptx_take_rounding(decoder, fused ? -1 : SIM_ROUND_NEAREST_EVEN);
    if (ptx_type_bits(type) / ptx_elements_of(type) == 16 && rounding != SIM_ROUND_NEAREST_EVEN)
        ptx_refuse(decoder, "%s is rounded to nearest only", ptx_type_name(type));
    if (type == PTX_f32x2) ptx_need(decoder, 100, 86);
    decode_flags(decoder, type, fused);
    ptx_decode_same(decoder, type, fused ? 3 : 2);
    op->mode = operation | (uint32_t)rounding << MODE_ROUNDING_SHIFT;
    if (fused && ptx_type_bits(type) / ptx_elements_of(type) == 16 && ptx_take(decoder, PTX_M_OOB)) {
        ptx_need(decoder, 90, 81);
        if (op->flags & (PTX_F_FTZ | PTX_F_SAT)) ptx_refuse(decoder, ".oob excludes .ftz and .sat");
        op->mode |= MODE_OOB;
    }
    bool plain = type == PTX_f32 && rounding == SIM_ROUND_NEAREST_EVEN && !(op->flags & ~(uint32_t)PTX_F_FTZ);
    op->run = plain ? fast_run(operation, op->flags) : type == PTX_f64 ? run_double : run_narrow;
}

/* add, sub: d, a of 16 bits, c; fma: d, a and b of 16 bits, c. */
static void decode_mixed(ptx_decoder *decoder, uint32_t operation) {
    const ptx_operand *operands = decoder->statement->operands;
    ptx_op *op = decoder->op;
    bool fused = operation == FMA;
    uint32_t last = fused ? 2 : 1;
    op->type = ptx_type_at(decoder, 0);
    op->from = ptx_type_at(decoder, 1);
    ptx_expect_types(decoder, 2);
    if ((operation != ADD && operation != SUB && !fused) || op->type != PTX_f32 ||
        (op->from != PTX_f16 && op->from != PTX_bf16))
        ptx_refuse(decoder, "it does not take these types");
    ptx_need(decoder, 100, 86);
    sim_rounding rounding = ptx_take_rounding(decoder, fused ? -1 : SIM_ROUND_NEAREST_EVEN);
    ptx_take_flag(decoder, PTX_M_SAT, PTX_F_SAT);
    ptx_expect_operands(decoder, last + 2, last + 2);
    op->mode = operation | (uint32_t)rounding << MODE_ROUNDING_SHIFT;
    op->run = run_mixed;
    op->d[0] = ptx_result(decoder, &operands[0], PTX_f32);
    for (uint32_t i = 0; i <= last; i++)
        op->s[i] = ptx_source(decoder, &operands[i + 1], i == last ? PTX_f32 : op->from);
}

void ptx_decode_float_arithmetic(ptx_decoder *decoder) {
    static const char *const names[OPERATIONS] = {
        [ADD] = "add", [SUB] = "sub", [MUL] = "mul", [FMA] = "fma", [MIN] = "min",
        [MAX] = "max", [MAD] = "mad", [NEG] = "neg", [ABS] = "abs", [DIV] = "div"};
    uint32_t operation = 0;
    while (operation < OPERATIONS && strcmp(names[operation], decoder->statement->opcode) != 0)
        operation++;
    if (decoder->type_count == 2) {
        decode_mixed(decoder, operation);
        return;
    }
    ptx_expect_types(decoder, 1);
    ptx_type type = ptx_type_at(decoder, 0);
    bool full = type == PTX_f32 || type == PTX_f64 || (type == PTX_f32x2 && (operation <= FMA));
    if (operation == OPERATIONS || (!full && (ptx_format_of(type) == SIM_f32 || operation == MAD)))
        ptx_refuse(decoder, "it has no type %s", ptx_type_name(type));
    switch (operation) {
    case DIV:
        ptx_decode_float_divide(decoder);
        break;
    case NEG:
    case ABS:
        decode_sign(decoder, type, operation == ABS);
        break;
    case MIN:
    case MAX:
        decode_choice(decoder, type, operation);
        break;
    default:
        decode_rounded(decoder, type, operation == MAD ? FMA : operation);
    }
}
