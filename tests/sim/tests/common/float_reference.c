#include "tests/sim/tests/common/float_reference.h"
#include "tests/sim/ptx/warp/ptx_warp.h"
#include <math.h>

const float_format float_f16 = {"f16", 16, 5, 10, 0x7fff}, float_bf16 = {"bf16", 16, 8, 7, 0x7fff},
                   float_f32 = {"f32", 32, 8, 23, 0x7fffffff}, float_f64 = {"f64", 64, 11, 52, 0x7ff8000000000000};

uint64_t float_infinity(const float_format *f) {
    return ((1ull << f->exponent) - 1) << f->mantissa;
}

uint64_t float_sign(const float_format *f) {
    return 1ull << (f->bits - 1);
}

double float_value(const float_format *f, uint64_t bits) {
    uint64_t magnitude = bits & (float_sign(f) - 1), exponent = magnitude >> f->mantissa;
    double value, mantissa = (double)(magnitude & ((1ull << f->mantissa) - 1));
    int bias = (1 << (f->exponent - 1)) - 1;
    if (magnitude >= float_infinity(f))
        value = magnitude > float_infinity(f) ? NAN : INFINITY;
    else if (exponent)
        value = ldexp(mantissa + ldexp(1, f->mantissa), (int)exponent - bias - f->mantissa);
    else
        value = ldexp(mantissa, 1 - bias - f->mantissa);
    return bits & float_sign(f) ? -value : value;
}

uint64_t float_flushed(const float_format *f, uint64_t bits) {
    return (bits & (float_sign(f) - 1)) >> f->mantissa ? bits : bits & float_sign(f);
}

size_t float_edges(const float_format *f, uint64_t out[FLOAT_EDGES_MAX]) {
    uint64_t one = float_infinity(f) / 2 >> f->mantissa << f->mantissa, least = 1ull << f->mantissa;
    const uint64_t positive[] = {0,
                                 1,
                                 2,
                                 3,
                                 least / 2,
                                 least - 1,
                                 least,
                                 least + 1,
                                 one - 1,
                                 one,
                                 one + 1,
                                 one + least - 1,
                                 one + least,
                                 one + least / 2,
                                 one + 2 * least + 1,
                                 one + ((uint64_t)(f->mantissa + 1) << f->mantissa),
                                 one + ((uint64_t)f->mantissa << f->mantissa) + 1,
                                 one - ((uint64_t)(f->mantissa + 1) << f->mantissa),
                                 float_infinity(f) - least,
                                 float_infinity(f) - 1,
                                 float_infinity(f),
                                 float_infinity(f) + 1,
                                 float_infinity(f) + least / 2};
    size_t count = sizeof positive / sizeof *positive;
    for (size_t i = 0; i < count; i++) {
        out[2 * i] = positive[i];
        out[2 * i + 1] = positive[i] | float_sign(f);
    }
    return 2 * count;
}

uint64_t float_random(const float_format *f, uint64_t *state) {
    uint64_t bits = sim_random(state), mask = float_sign(f) | (float_sign(f) - 1);
    if (sim_random(state) & 1) return bits & mask;
    uint64_t one = float_infinity(f) / 2 >> f->mantissa;
    return (bits & (float_sign(f) | ((1ull << f->mantissa) - 1))) | (one - 2 + sim_random(state) % 5) << f->mantissa;
}

uint64_t float_multiply_add(const float_format *factors, uint64_t a, uint64_t b, const float_format *f, uint64_t c,
                            exact_rounding rounding, bool adds) {
    double x = float_value(factors, a), y = float_value(factors, b), z = float_value(f, c);
    bool minus = signbit(x) != signbit(y), endless = isinf(x) || isinf(y);
    if (isnan(x) || isnan(y) || (isinf(x) && y == 0) || (x == 0 && isinf(y))) return f->nan;
    if (adds && (isnan(z) || (endless && isinf(z) && minus != signbit(z)))) return f->nan;
    if (endless || (adds && isinf(z))) return float_infinity(f) | ((endless ? minus : signbit(z)) ? float_sign(f) : 0);
    exact sum = {{0}};
    exact_add_product(&sum, x, y);
    if (adds) exact_add_product(&sum, z, 1);
    if (exact_sign(&sum)) return exact_round(&sum, f->exponent, f->mantissa, rounding);
    /* An exact zero: of equal signs that sign, else + but when rounding down. */
    bool product_zero = x == 0 || y == 0, same = !adds || (product_zero && z == 0 && minus == signbit(z));
    bool down = rounding == EXACT_RM && !same;
    return (same && minus) || down ? float_sign(f) : 0;
}

uint64_t float_finish(const float_format *f, uint64_t bits, uint32_t flags) {
    bool minus = bits & float_sign(f), nan = (bits & (float_sign(f) - 1)) > float_infinity(f);
    uint64_t one = float_infinity(f) / 2 >> f->mantissa << f->mantissa;
    if (flags & FLOAT_FTZ) bits = float_flushed(f, bits);
    if (flags & FLOAT_SAT) return nan || minus ? 0 : bits > one ? one : bits;
    if (nan) return flags & FLOAT_RELU ? f->nan : bits;
    if (flags & FLOAT_SATFINITE && (bits & (float_sign(f) - 1)) == float_infinity(f)) bits--;
    return flags & FLOAT_RELU && minus ? 0 : bits;
}

uint64_t float_chosen(const float_format *f, uint64_t a, uint64_t b, bool largest, bool nan, bool xorsign) {
    uint64_t sign = float_sign(f), result;
    bool a_nan = (a & (sign - 1)) > float_infinity(f), b_nan = (b & (sign - 1)) > float_infinity(f);
    uint64_t both = (a ^ b) & sign;
    if ((a_nan && b_nan) || (nan && (a_nan || b_nan))) return f->nan;
    if (xorsign) a &= sign - 1, b &= sign - 1;
    /* In order of the numbers: negative bits fall as their numbers rise. */
    uint64_t key_a = a & sign ? sign - 1 - (a & (sign - 1)) : a | sign,
             key_b = b & sign ? sign - 1 - (b & (sign - 1)) : b | sign;
    if (a_nan || b_nan)
        result = a_nan ? b : a;
    else
        result = (key_a > key_b) == largest ? a : b;
    return xorsign ? (result & (sign - 1)) | both : result;
}
