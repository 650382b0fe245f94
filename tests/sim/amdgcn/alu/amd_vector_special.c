/* Approximate instructions and the parts of a division.
 *
 * An approximate instruction is computed precisely and then moved, by an amount that the launch's seed and the operand
 * decide, within the error that is documented. The ISA documents say of v_div_scale when it scales, but not by which
 * exponents it tells that a quotient is denormal, and of v_div_fmas they give a factor that does not undo
 * v_div_scale's: both are as public measurements of RDNA 3 and RDNA 4 have them. */
#include "tests/sim/amdgcn/alu/amd_vector.h"
#include <math.h>
#include <string.h>

/* ---- Approximations ---- */

typedef enum function { AMD_RCP, AMD_RSQ, AMD_SQRT, AMD_EXP, AMD_LOG, AMD_SIN, AMD_COS } function;
typedef enum measure { AMD_ULP, AMD_ABSOLUTE } measure;

enum { REVOLUTIONS_MAX = 256 };

/* Angles are in revolutions; beyond the domain they count as 0. */
static double evaluate(function f, double a) {
    double turn = fabs(a) <= (double)REVOLUTIONS_MAX ? 2 * M_PI * (a - nearbyint(a)) : 0;
    switch (f) {
    case AMD_RCP:
        return 1 / a;
    case AMD_RSQ:
        return 1 / sqrt(a);
    case AMD_SQRT:
        return sqrt(a);
    case AMD_EXP:
        return exp2(a);
    case AMD_LOG:
        return log2(a);
    case AMD_SIN:
        return isinf(a) ? NAN : sin(turn);
    case AMD_COS:
        return isinf(a) ? NAN : cos(turn);
    }
    return NAN;
}

/* The last place of results next to a value. */
static double last_place(amd_format format, double value) {
    static const int digits[] = {[AMD_HALF] = 11, [AMD_SINGLE] = 24, [AMD_DOUBLE] = 53};
    static const int least[] = {[AMD_HALF] = -13, [AMD_SINGLE] = -125, [AMD_DOUBLE] = -1021};
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    const int exponent = (int)(bits >> 52 & 0x7ff) - 1022; /* of 0 and the least numbers less than that of any format */
    return sim_power_of_two((exponent > least[format] ? exponent : least[format]) - digits[format]);
}

/* The next number towards 0 from another. */
static double towards_zero(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits--;
    memcpy(&value, &bits, sizeof bits);
    return value;
}

/* A number in [-1, 1) that the seed, the instruction and the operand decide. */
static double deviation(const amd_wave *wave, function f, uint64_t a) {
    uint64_t state = wave->group->launch->seed;
    state = sim_random(&state) ^ a;
    state = sim_random(&state) ^ f;
    return (double)(sim_random(&state) >> 11) * 0x1p-52 - 1;
}

static uint64_t amd_approximate(const amd_wave *wave, uint32_t mode, amd_format format, function f, measure unit,
                                double bound, uint64_t a) {
    if (format == AMD_SINGLE) mode &= ~(3u << AMD_MODE_DENORMAL_32);
    a = amd_input(format, mode, a);
    uint64_t nan = amd_nan_of(format, mode, &a, 1);
    if (nan) return nan;
    double number = amd_value(format, a), value = evaluate(f, number);
    bool special = !isfinite(value) || !isfinite(number) || value == 0 || number == 0;
    /* With a reciprocal that is rounded wrong here the division that compilers write would be, too. */
    bool all_ones = f == AMD_RCP && !(~a & (amd_quiet(format) * 2 - 1));
    if (!special && !all_ones) {
        double place = last_place(format, towards_zero(value)), reach = last_place(format, fabs(value) + bound);
        double room = unit == AMD_ULP ? (bound - 0.5) * place : bound - reach / 2;
        value += deviation(wave, f, a) * fmax(room, 0) * 0.999;
    }
    mode &= ~(15u << AMD_MODE_ROUND_32); /* to nearest even, whatever MODE says */
    return amd_output(format, mode, amd_round(format, mode, value));
}

/* Of a scalar register; EXEC has no say. */
static void scalar_run(amd_wave *wave, const amd_op *op, amd_format format, function f, measure unit, double bound) {
    uint32_t mode = amd_alu_mode(wave), sign = (uint32_t)amd_sign(format);
    uint32_t a = format == AMD_HALF ? amd_read16(wave, &op->operand[1]) : amd_read32(wave, &op->operand[1]);
    if (op->operand[1].absolute) a &= ~sign;
    if (op->operand[1].negate) a ^= sign;
    uint64_t result = amd_approximate(wave, mode, format, f, unit, bound, a);
    amd_write32(wave, &op->operand[0], (uint32_t)amd_modify_output(format, mode, result, op->omod, op->clamp));
}

/* ---- Division ---- */

/* By how much v_div_scale scales, and the exponents that make it. */
typedef struct division {
    int mantissa, top, far, scale, tiny, underflow;
} division;

static const division divisions[] = {[AMD_HALF] = {10, 31, 0, 0, 0, 1 << 10},
                                     [AMD_SINGLE] = {23, 255, 96, 64, 23, 150},
                                     [AMD_DOUBLE] = {52, 2047, 768, 128, 53, 1075}};

static int exponent_of(amd_format format, uint64_t a) {
    return (int)(a >> divisions[format].mantissa) & divisions[format].top;
}

static bool is_zero(amd_format format, uint64_t a) {
    return !(a & (amd_sign(format) - 1));
}

/* Whether the quotient of c and b is so large or so small that it must be scaled. */
static bool amd_div_is_far(amd_format format, uint64_t b, uint64_t c) {
    int distance = exponent_of(format, c) - exponent_of(format, b);
    return distance >= divisions[format].far || distance <= -divisions[format].far;
}

static uint64_t scaled(amd_format format, uint32_t mode, uint64_t a, int by) {
    uint32_t kept = mode | 15u << AMD_MODE_DENORMAL_32; /* a denormal that it makes is kept */
    if (exponent_of(format, a) == divisions[format].top)
        return amd_is_nan(format, a) && mode & AMD_MODE_NUMBERS ? a | amd_quiet(format) : a;
    return amd_ldexp(format, kept, a, by);
}

/* Of denormals that are flushed it is known for f32 alone that they count as zeros. */
static uint64_t amd_div_scale(amd_format format, uint32_t mode, uint64_t a, uint64_t b, uint64_t c) {
    const division *d = &divisions[format];
    if (format == AMD_SINGLE) {
        a = amd_input(format, mode, a);
        b = amd_input(format, mode, b);
        c = amd_input(format, mode, c);
    }
    int exponent_b = exponent_of(format, b), exponent_c = exponent_of(format, c);
    int distance = exponent_c - exponent_b, by = 0;
    if (is_zero(format, b) || is_zero(format, c)) return amd_sign(format) | amd_infinity(format) | amd_quiet(format);
    if (distance >= d->far)
        by = a == b ? d->scale : 0;
    else if (exponent_b == 0)
        by = d->scale;
    else if (exponent_b >= d->top - 2) /* 1 / b may be denormal */
        by = distance <= -d->far && a != b ? 0 : -d->scale;
    else if (distance <= -d->far)
        by = a == b ? 0 : d->scale;
    else if (exponent_c <= d->tiny)
        by = d->scale;
    return scaled(format, mode, a, by);
}

static uint64_t amd_div_fmas(amd_format format, uint32_t mode, uint64_t a, uint64_t b, uint64_t c, uint32_t scales) {
    const division *d = &divisions[format];
    if (!scales || exponent_of(format, a) == d->top || exponent_of(format, b) == d->top ||
        exponent_of(format, c) == d->top)
        return amd_fma(format, mode, a, b, c);
    return amd_fma_scaled(format, mode, a, b, c, exponent_of(format, c) > d->top / 2 ? d->scale : -d->scale);
}

/* a with the sign of the quotient, or the quotient of c and b where that is special. */
static uint64_t amd_div_fixup(amd_format format, uint32_t mode, uint64_t a, uint64_t b, uint64_t c) {
    const division *d = &divisions[format];
    b = amd_input(format, mode, b);
    c = amd_input(format, mode, c);
    uint64_t sign = (b ^ c) & amd_sign(format), infinity = amd_infinity(format);
    if (amd_is_nan(format, c)) return c | amd_quiet(format);
    if (amd_is_nan(format, b)) return b | amd_quiet(format);
    bool infinite_b = exponent_of(format, b) == d->top, infinite_c = exponent_of(format, c) == d->top;
    bool zero_b = is_zero(format, b), zero_c = is_zero(format, c);
    if ((zero_b && zero_c) || (infinite_b && infinite_c)) return amd_sign(format) | infinity | amd_quiet(format);
    if (zero_b || infinite_c) return sign | infinity;
    if (infinite_b || zero_c) return sign;
    if (exponent_of(format, c) - exponent_of(format, b) < -d->underflow) return sign;
    if (amd_is_nan(format, a) && format != AMD_HALF) return sign | infinity;
    return sign | (a & (amd_sign(format) - 1));
}

/* ---- Angles ---- */

/* 2 / pi, from the bit behind the point on. */
static const uint64_t two_over_pi[] = {0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561,
                                       0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484,
                                       0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f,
                                       0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d, 0x7527bac7ebe5f17b,
                                       0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab};

/* How many of its bits there are: 1201 as the ISA documents say, 1184 as measured on gfx1201. */
static uint32_t table_bits(const amd_wave *wave) {
    return wave->program->target->major >= 12 ? 1184 : 1201;
}

/* 53 bits of 2 / pi from the one on where the product with a has its last bits that matter, and the segment'th so many
 * behind them; of large a the result is larger than it should be, so that nothing underflows. */
static uint64_t amd_trig_preop(const amd_wave *wave, uint32_t mode, uint64_t a, uint32_t segment) {
    enum { SEGMENT = 53, FIRST = 1077, LARGE = 1968, RAISED = 128 };
    const int exponent = exponent_of(AMD_DOUBLE, a);
    const int shift = (int)(segment & 31) * SEGMENT + (exponent > FIRST ? exponent - FIRST : 0);
    double bits = 0;
    for (uint32_t i = (uint32_t)shift; i < (uint32_t)shift + SEGMENT; i++)
        bits = bits * 2 + (double)(i < table_bits(wave) ? two_over_pi[i / 64] >> (63 - i % 64) & 1 : 0);
    const uint32_t cuts = mode | 15u << AMD_MODE_DENORMAL_32 | AMD_ROUND_ZERO << AMD_MODE_ROUND_64;
    uint64_t result;
    memcpy(&result, &bits, sizeof result);
    return amd_ldexp(AMD_DOUBLE, cuts, result, -SEGMENT - shift + (exponent >= LARGE ? RAISED : 0));
}

#define AMD_FORMAT_f16                          AMD_HALF
#define AMD_FORMAT_f32                          AMD_SINGLE
#define AMD_FORMAT_f64                          AMD_DOUBLE
#define AMD_ALU(name, d, a, b, c, value)        AMD_ALU_BODY(name, 0, d, a, b, c, AMD_ALU_STORE(d, value))
#define AMD_ALU_ZEROES(name, d, a, b, c, value) AMD_ALU_BODY(name, AMD_ALU_CLEARS, d, a, b, c, AMD_ALU_STORE(d, value))
#define AMD_ALU_IN(name, d, a, b, c, value)     AMD_ALU_BODY(name, AMD_ALU_MASK_IN, d, a, b, c, AMD_ALU_STORE(d, value))
#define AMD_ALU_OUT(name, d, a, b, c, value, mark) \
    AMD_ALU_BODY(name, AMD_ALU_MASK_OUT, d, a, b, c, AMD_ALU_MARK(mark); AMD_ALU_STORE(d, value))
#define AMD_APPROXIMATE(name, type, function, unit, bound) \
    AMD_ALU(name, type, type, none, none, amd_approximate(wave, mode, AMD_FORMAT_##type, function, unit, bound, a))
#define AMD_APPROXIMATE_SCALAR(name, type, function, unit, bound)       \
    void amd_run_##name(amd_wave *wave, const amd_op *op) {             \
        scalar_run(wave, op, AMD_FORMAT_##type, function, unit, bound); \
    }
#include "tests/sim/amdgcn/alu/amd_approximations.def"
#include "tests/sim/amdgcn/alu/amd_vector_special.def"
