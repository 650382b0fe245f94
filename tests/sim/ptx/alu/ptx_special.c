/* rcp sqrt rsqrt div, exact and approximate, and ex2 lg2 sin cos tanh.
 *
 * An approximate instruction is computed precisely and then moved, by an amount that the launch's seed and the operands
 * decide, within the error that the ISA allows (ptx_approximations.def). What the ISA's tables give for zeros,
 * infinities and NaN is kept. */
#include "tests/sim/ptx/alu/ptx_float.h"
#include <math.h>
#include <string.h>

typedef enum function { RCP, DIV, SQRT, RSQRT, SIN, COS, LG2, EX2, TANH, FUNCTION_COUNT } function;

static const char *const function_names[FUNCTION_COUNT] = {"rcp", "div", "sqrt", "rsqrt", "sin",
                                                           "cos", "lg2", "ex2",  "tanh"};

/* What op->mode holds: a function, a rounding, and the number of an approximation. */
enum { MODE_FUNCTION = 15, MODE_ROUNDING_SHIFT = 4, MODE_APPROXIMATION_SHIFT = 8 };

static function function_of(const ptx_op *op) {
    return (function)(op->mode & MODE_FUNCTION);
}

/* ---- With IEEE rounding: rcp, div, sqrt ---- */

static void run_rounded_narrow(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    sim_rounding rounding = (sim_rounding)(op->mode >> MODE_ROUNDING_SHIFT);
    bool divides = function_of(op) == DIV;
    uint32_t *d = PTX_ARRAY(uint32_t, op->d[0]);
    const uint32_t *first = PTX_ARRAY(uint32_t, op->s[0]);
    const uint32_t *second = divides ? PTX_ARRAY(uint32_t, op->s[1]) : first;
    PTX_LANES({
        double a = ptx_narrow_load(SIM_f32, first[l], op->flags);
        double b = ptx_narrow_load(SIM_f32, second[l], op->flags);
        double result = function_of(op) == SQRT ? sim_sqrt_odd(a) : sim_divide_odd(divides ? a : 1, b);
        d[l] = ptx_narrow_store(SIM_f32, result, rounding, op->flags);
    });
}

static void run_divide_f32(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    const float *a = PTX_ARRAY(float, op->s[0]), *b = PTX_ARRAY(float, op->s[1]);
    float results[PTX_WARP];
    for (int l = 0; l < PTX_WARP; l++)
        results[l] = a[l] / b[l];
    ptx_store_f32(warp, op->d[0], results, mask);
}

static void run_rounded_double(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    bool divides = function_of(op) == DIV;
    double *d = PTX_ARRAY(double, op->d[0]);
    const double *a = PTX_ARRAY(double, op->s[0]), *b = divides ? PTX_ARRAY(double, op->s[1]) : a;
    ptx_host_rounding((sim_rounding)(op->mode >> MODE_ROUNDING_SHIFT));
    PTX_LANES({
        double result = function_of(op) == SQRT ? sqrt(a[l]) : (divides ? a[l] : 1) / b[l];
        d[l] = isnan(result) ? ptx_double_nan() : result;
    });
    ptx_host_rounding(SIM_ROUND_NEAREST_EVEN);
}

/* ---- Approximate ---- */

typedef enum kind { ULP, RELATIVE, ABSOLUTE, ANGLE, LOGARITHM, GROSS } kind;

static const struct {
    const char *opcode;
    ptx_type type;
    kind kind;
    double bound;
} approximations[] = {
#define PTX_APPROXIMATION(opcode, type, kind, bound) {#opcode, PTX_##type, kind, bound},
#include "tests/sim/ptx/alu/ptx_approximations.def"
#undef PTX_APPROXIMATION
};

static double evaluate(function f, double a, double b) {
    switch (f) {
    case RCP:
        return 1 / a;
    case DIV:
        return a / b;
    case SQRT:
        return sqrt(a);
    case RSQRT:
        return 1 / sqrt(a);
    case SIN:
        return sin(a);
    case COS:
        return cos(a);
    case LG2:
        return log2(a);
    case EX2:
        return exp2(a);
    default:
        return tanh(a);
    }
}

/* Half of the last place of results next to value: what rounding may add to the error. */
static double half_place(ptx_type type, double value) {
    int exponent, digits = type == PTX_f32 ? 24 : type == PTX_f16 ? 11 : type == PTX_bf16 ? 8 : 21;
    frexp(value, &exponent);
    int least = type == PTX_f32 || type == PTX_bf16 ? -125 : type == PTX_f16 ? -13 : -1021;
    return sim_power_of_two((exponent > least ? exponent : least) - digits - 1);
}

/* How far from the exact value the approximation may be. */
static double allowed(uint32_t row, double a, double value) {
    double bound = approximations[row].bound, magnitude = fabs(value);
    switch (approximations[row].kind) {
    case ULP:
        return bound * 2 * half_place(approximations[row].type, value);
    case ABSOLUTE:
        return bound;
    case ANGLE:
        return fabs(a) <= 2 * M_PI ? 0x1.6a09e6p-21 : 0x1.3b2c47p-15;
    case LOGARITHM:
        return a > 0.5 && a < 2 ? bound : bound * magnitude;
    default:
        return bound * magnitude;
    }
}

/* A number in [-1, 1) that the seed, the instruction and the operands decide. */
static double deviation(const ptx_warp *warp, uint32_t row, uint64_t a, uint64_t b) {
    uint64_t state = warp->block->launch->seed;
    state = sim_random(&state) ^ a;
    state = sim_random(&state) ^ b;
    state = sim_random(&state) ^ row;
    return (double)(sim_random(&state) >> 11) * 0x1p-52 - 1;
}

static double approximate(const ptx_warp *warp, const ptx_op *op, double a, double b, uint64_t bits_a,
                          uint64_t bits_b) {
    uint32_t row = op->mode >> MODE_APPROXIMATION_SHIFT;
    function f = function_of(op);
    double value = evaluate(f, a, b);
    /* The product of a and the reciprocal of b, which is flushed to zero. */
    if (f == DIV && op->flags & PTX_F_APPROX && fabs(b) > 0x1p126 && isfinite(b)) return a * copysign(0, b);
    if (!isfinite(value) || value == 0 || !isfinite(a) || a == 0) return value;
    if (f == TANH && fabs(a) < 0x1p-126) return value;
    /* The ISA does not say so, but libdevice takes it for a power of two: its exp, erf and tanh of f64 scale by it. */
    if (f == EX2 && op->type == PTX_f32 && a == rint(a)) return value;
    double bound = allowed(row, a, value);
    double room = bound - half_place(approximations[row].type, fabs(value) + bound);
    return value + deviation(warp, row, bits_a, bits_b) * (room > 0 ? room : 0);
}

static void run_approximate(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    sim_format format = ptx_format_of(op->type);
    uint32_t elements = ptx_elements_of(op->type);
    void *d = PTX_ARRAY(void, op->d[0]);
    const void *first = PTX_ARRAY(void, op->s[0]);
    const void *second = function_of(op) == DIV ? PTX_ARRAY(void, op->s[1]) : first;
    PTX_LANES({
        for (uint32_t i = (uint32_t)l * elements; i < ((uint32_t)l + 1) * elements; i++) {
            uint32_t x = ptx_element(first, format, i);
            uint32_t y = ptx_element(second, format, i);
            double a = ptx_narrow_load(format, x, op->flags);
            double b = ptx_narrow_load(format, y, op->flags);
            double result = approximate(warp, op, a, b, x, y);
            ptx_element_set(d, format, i, ptx_narrow_store(format, result, SIM_ROUND_NEAREST_EVEN, op->flags));
        }
    });
}

/* rsqrt.approx.f64. */
static void run_approximate_double(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    double *d = PTX_ARRAY(double, op->d[0]);
    const double *a = PTX_ARRAY(double, op->s[0]);
    PTX_LANES({
        uint64_t bits;
        memcpy(&bits, &a[l], sizeof bits);
        double result = approximate(warp, op, a[l], a[l], bits, 0);
        d[l] = isnan(result) ? ptx_double_nan() : result;
    });
}

/* rcp and rsqrt.approx.ftz.f64: of the upper 32 bits of the operand, the upper 32 bits of the result. */
static void run_gross(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    const uint64_t upper = 0xffffffffull << 32, sign = 1ull << 63, least = 1ull << 52;
    uint64_t *d = PTX_ARRAY(uint64_t, op->d[0]);
    const uint64_t *source = PTX_ARRAY(uint64_t, op->s[0]);
    PTX_LANES({
        uint64_t bits = source[l] & upper;
        double a;
        double result;
        if ((bits & ~sign) < least) bits &= sign;
        memcpy(&a, &bits, sizeof a);
        result = isnan(a) ? NAN : approximate(warp, op, a, a, bits, 0);
        memcpy(&bits, &result, sizeof bits);
        if (isfinite(result)) bits += 0x80000000u; /* to nearest */
        if ((bits & ~sign) < least) bits &= sign;
        d[l] = isnan(result) ? 0x7fffffffull << 32 : bits & upper;
    });
}

/* ---- Decoding ---- */

static uint32_t find_approximation(ptx_decoder *decoder, ptx_type type, bool gross) {
    ptx_type element = type == PTX_f16x2 ? PTX_f16 : type == PTX_bf16x2 ? PTX_bf16 : type;
    for (uint32_t i = 0; i < sizeof approximations / sizeof *approximations; i++)
        if (approximations[i].type == element && (approximations[i].kind == GROSS) == gross &&
            strcmp(approximations[i].opcode, decoder->statement->opcode) == 0)
            return i;
    ptx_refuse(decoder, "it has no approximation of type %s", ptx_type_name(type));
}

/* .ftz: f32 but for tanh; of bf16 it must be there, of f16 it may not. */
static void decode_approximate(ptx_decoder *decoder, ptx_type type, function f) {
    ptx_op *op = decoder->op;
    bool half = ptx_format_of(type) == SIM_f16, brain = ptx_format_of(type) == SIM_bf16;
    if (f == TANH || half || brain) ptx_need(decoder, brain ? 90 : 75, brain ? 78 : 70);
    if (f != TANH && !half) ptx_take_flag(decoder, PTX_M_FTZ, PTX_F_FTZ);
    bool ftz = op->flags & PTX_F_FTZ, gross = type == PTX_f64 && ftz;
    if (f == EX2 && brain && !ftz) ptx_refuse(decoder, "%s needs .ftz", ptx_type_name(type));
    op->mode = f | find_approximation(decoder, type, gross) << MODE_APPROXIMATION_SHIFT;
    ptx_decode_same(decoder, type, f == DIV ? 2 : 1);
    op->run = gross ? run_gross : type == PTX_f64 ? run_approximate_double : run_approximate;
}

static void decode_rounded(ptx_decoder *decoder, ptx_type type, function f) {
    ptx_op *op = decoder->op;
    if (f > SQRT || (type != PTX_f32 && type != PTX_f64)) ptx_refuse(decoder, "it needs .approx");
    sim_rounding rounding = ptx_take_rounding(decoder, -1);
    if (type == PTX_f32) ptx_take_flag(decoder, PTX_M_FTZ, PTX_F_FTZ);
    op->mode = f | (uint32_t)rounding << MODE_ROUNDING_SHIFT;
    ptx_decode_same(decoder, type, f == DIV ? 2 : 1);
    op->run = type == PTX_f64 ? run_rounded_double : run_rounded_narrow;
    if (type == PTX_f32 && f == DIV && rounding == SIM_ROUND_NEAREST_EVEN && !op->flags) op->run = run_divide_f32;
}

static void decode_function(ptx_decoder *decoder, function f) {
    ptx_expect_types(decoder, 1);
    ptx_type type = ptx_type_at(decoder, 0);
    bool small = ptx_format_of(type) != SIM_f32;
    if (type != PTX_f32 && type != PTX_f64 && !small) ptx_refuse(decoder, "it has no type %s", ptx_type_name(type));
    bool approx = ptx_take(decoder, PTX_M_APPROX), full = f == DIV && ptx_take(decoder, PTX_M_FULL);
    if (approx && full) ptx_refuse(decoder, ".approx and .full exclude each other");
    if (approx) decoder->op->flags |= PTX_F_APPROX;
    if (approx || full)
        decode_approximate(decoder, type, f);
    else
        decode_rounded(decoder, type, f);
}

void ptx_decode_float_divide(ptx_decoder *decoder) {
    decode_function(decoder, DIV);
}

void ptx_decode_special(ptx_decoder *decoder) {
    const char *opcode = decoder->statement->opcode;
    if (strcmp(opcode, "testp") == 0) {
        ptx_decode_testp(decoder);
        return;
    }
    if (strcmp(opcode, "copysign") == 0) {
        ptx_decode_copysign(decoder);
        return;
    }
    for (int f = 0; f < FUNCTION_COUNT; f++)
        if (strcmp(function_names[f], opcode) == 0) decode_function(decoder, (function)f);
}
