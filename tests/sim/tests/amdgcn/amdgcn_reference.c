#include "tests/sim/tests/amdgcn/amdgcn_reference.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

const ref_format F16[1] = {{5, 10}}, F32[1] = {{8, 23}}, F64[1] = {{11, 52}};

/* ---- MODE ---- */

enum { IEEE = 1 << 9, DX10_CLAMP = 1 << 8 };

bool ref_ieee(ref_mode mode) {
    return mode.major >= 12 || mode.bits & IEEE;
}

bool ref_nan_clamps(ref_mode mode) {
    return mode.major >= 12 || mode.bits & DX10_CLAMP;
}

bool ref_keeps_inputs(const ref_format *f, ref_mode mode) {
    return mode.bits & (f->mantissa == 23 ? 0x10 : 0x40);
}

bool ref_keeps_outputs(const ref_format *f, ref_mode mode) {
    return mode.bits & (f->mantissa == 23 ? 0x20 : 0x80);
}

exact_rounding ref_rounding(const ref_format *f, ref_mode mode) {
    switch (f->mantissa == 23 ? mode.bits & 3 : mode.bits >> 2 & 3) {
    case 1:
        return EXACT_RP;
    case 2:
        return EXACT_RM;
    case 3:
        return EXACT_RZ;
    default:
        return EXACT_RN;
    }
}

/* ---- Classes ---- */

uint64_t ref_sign(const ref_format *f) {
    return 1ull << (f->exponent + f->mantissa);
}

uint64_t ref_infinity(const ref_format *f) {
    return ((1ull << f->exponent) - 1) << f->mantissa;
}

uint64_t ref_quiet(const ref_format *f) {
    return 1ull << (f->mantissa - 1);
}

uint64_t ref_default_nan(const ref_format *f) {
    return ref_sign(f) | ref_infinity(f) | ref_quiet(f);
}

static uint64_t size_of(const ref_format *f, uint64_t a) {
    return a & (ref_sign(f) - 1);
}

bool ref_is_nan(const ref_format *f, uint64_t a) {
    return size_of(f, a) > ref_infinity(f);
}

bool ref_is_signalling(const ref_format *f, uint64_t a) {
    return ref_is_nan(f, a) && !(a & ref_quiet(f));
}

bool ref_is_denormal(const ref_format *f, uint64_t a) {
    return size_of(f, a) && !(a & ref_infinity(f));
}

bool ref_is_infinite(const ref_format *f, uint64_t a) {
    return size_of(f, a) == ref_infinity(f);
}

bool ref_is_zero(const ref_format *f, uint64_t a) {
    return !size_of(f, a);
}

/* ---- Numbers ---- */

double ref_value(const ref_format *f, uint64_t a) {
    int exponent = (int)(size_of(f, a) >> f->mantissa), bias = (1 << (f->exponent - 1)) - 1;
    double digits = (double)(a & ((1ull << f->mantissa) - 1));
    if (exponent) digits += ldexp(1, f->mantissa);
    double value = ref_is_infinite(f, a) ? INFINITY : ldexp(digits, (exponent ? exponent : 1) - bias - f->mantissa);
    return a & ref_sign(f) ? -value : value;
}

uint64_t ref_bits(const ref_format *f, double value, exact_rounding rounding) {
    exact sum = {{0}};
    uint64_t sign = signbit(value) ? ref_sign(f) : 0;
    if (isinf(value)) return sign | ref_infinity(f);
    exact_add_product(&sum, value, 1);
    return sign | exact_round(&sum, f->exponent, f->mantissa, rounding);
}

static uint64_t flushed(const ref_format *f, bool keeps, uint64_t a) {
    return ref_is_denormal(f, a) && !keeps ? a & ref_sign(f) : a;
}

uint64_t ref_in(const ref_format *f, ref_mode mode, uint64_t a) {
    return flushed(f, ref_keeps_inputs(f, mode), a);
}

uint64_t ref_out(const ref_format *f, ref_mode mode, uint64_t a) {
    return flushed(f, ref_keeps_outputs(f, mode), a);
}

uint64_t ref_quieted(const ref_format *f, ref_mode mode, uint64_t a) {
    return ref_ieee(mode) ? a | ref_quiet(f) : a;
}

uint64_t ref_negated(const ref_format *f, uint64_t a) {
    return a ^ ref_sign(f);
}

/* ---- Sums and products ---- */

/* A NaN, widened or narrowed; a narrowed one is always quiet. */
static uint64_t nan_to(const ref_format *to, const ref_format *from, uint64_t a) {
    uint64_t payload = a & ((1ull << from->mantissa) - 1);
    payload = to->mantissa >= from->mantissa ? payload << (to->mantissa - from->mantissa)
                                             : payload >> (from->mantissa - to->mantissa);
    if (to->mantissa < from->mantissa) payload |= ref_quiet(to);
    return (a & ref_sign(from) ? ref_sign(to) : 0) | ref_infinity(to) | payload;
}

uint64_t ref_fma(const ref_format *f, ref_mode mode, uint64_t a, uint64_t b, uint64_t c) {
    a = ref_in(f, mode, a);
    b = ref_in(f, mode, b);
    c = ref_in(f, mode, c);
    bool invalid = (ref_is_infinite(f, a) && ref_is_zero(f, b)) || (ref_is_zero(f, a) && ref_is_infinite(f, b));
    if (ref_is_nan(f, a)) return ref_quieted(f, mode, a);
    if (ref_is_nan(f, b)) return ref_quieted(f, mode, b);
    if (invalid) return ref_default_nan(f);
    if (ref_is_nan(f, c)) return ref_quieted(f, mode, c);
    bool minus = (a ^ b) & ref_sign(f), minus_c = c & ref_sign(f);
    if (ref_is_infinite(f, a) || ref_is_infinite(f, b)) {
        if (ref_is_infinite(f, c) && minus != minus_c) return ref_default_nan(f);
        return ref_infinity(f) | (minus ? ref_sign(f) : 0);
    }
    if (ref_is_infinite(f, c)) return ref_infinity(f) | (minus_c ? ref_sign(f) : 0);
    exact sum = {{0}};
    exact_add_product(&sum, ref_value(f, a), ref_value(f, b));
    exact_add_product(&sum, ref_value(f, c), 1);
    exact_rounding rounding = ref_rounding(f, mode);
    if (exact_sign(&sum)) return ref_out(f, mode, exact_round(&sum, f->exponent, f->mantissa, rounding));
    bool negative = minus == minus_c ? minus : rounding == EXACT_RM;
    return negative ? ref_sign(f) : 0;
}

static uint64_t one(const ref_format *f) {
    return ((1ull << (f->exponent - 1)) - 1) << f->mantissa;
}

uint64_t ref_add(const ref_format *f, ref_mode mode, uint64_t a, uint64_t b) {
    return ref_fma(f, mode, a, one(f), b);
}

uint64_t ref_mul(const ref_format *f, ref_mode mode, uint64_t a, uint64_t b) {
    return ref_fma(f, mode, a, b, (a ^ b) & ref_sign(f));
}

uint64_t ref_mad(const ref_format *f, ref_mode mode, uint64_t a, uint64_t b, uint64_t c) {
    if (f->mantissa == 23) mode.bits &= ~0x30u;
    return ref_add(f, mode, ref_mul(f, mode, a, b), c);
}

/* ---- Smallest and largest ---- */

/* -0 is below 0. */
static bool below(const ref_format *f, uint64_t a, uint64_t b) {
    if (ref_is_zero(f, a) && ref_is_zero(f, b)) return (a & ref_sign(f)) > (b & ref_sign(f));
    return ref_value(f, a) < ref_value(f, b);
}

/* The documents' v_min_f32 and v_max_f32; of gfx12, v_min_num_f32 and v_max_num_f32, which heed no signalling NaN. */
static uint64_t extreme(const ref_format *f, ref_mode mode, uint64_t a, uint64_t b, bool largest) {
    a = ref_in(f, mode, a);
    b = ref_in(f, mode, b);
    if (mode.major < 12 && ref_ieee(mode)) {
        if (ref_is_signalling(f, a)) return a | ref_quiet(f);
        if (ref_is_signalling(f, b)) return b | ref_quiet(f);
    }
    if (ref_is_nan(f, a) && ref_is_nan(f, b)) return mode.major >= 12 ? a | ref_quiet(f) : mode.major >= 10 ? a : b;
    if (ref_is_nan(f, a)) return ref_out(f, mode, b);
    if (ref_is_nan(f, b)) return ref_out(f, mode, a);
    return ref_out(f, mode, (largest ? below(f, b, a) : below(f, a, b)) ? a : b);
}

uint64_t ref_min(const ref_format *f, ref_mode mode, uint64_t a, uint64_t b) {
    return extreme(f, mode, a, b, false);
}

uint64_t ref_max(const ref_format *f, ref_mode mode, uint64_t a, uint64_t b) {
    return extreme(f, mode, a, b, true);
}

static uint64_t bound(const ref_format *f, ref_mode mode, uint64_t a, uint64_t b, bool largest) {
    a = ref_in(f, mode, a);
    b = ref_in(f, mode, b);
    if (ref_is_signalling(f, a)) return a | ref_quiet(f);
    if (ref_is_signalling(f, b)) return b | ref_quiet(f);
    if (ref_is_nan(f, a)) return a;
    if (ref_is_nan(f, b)) return b;
    return ref_out(f, mode, (largest ? below(f, b, a) : below(f, a, b)) ? a : b);
}

uint64_t ref_minimum(const ref_format *f, ref_mode mode, uint64_t a, uint64_t b) {
    return bound(f, mode, a, b, false);
}

uint64_t ref_maximum(const ref_format *f, ref_mode mode, uint64_t a, uint64_t b) {
    return bound(f, mode, a, b, true);
}

/* With a NaN it is min3; else the larger of the two that the largest leaves. */
uint64_t ref_med3(const ref_format *f, ref_mode mode, uint64_t a, uint64_t b, uint64_t c) {
    if (ref_is_nan(f, a) || ref_is_nan(f, b) || ref_is_nan(f, c)) return ref_min(f, mode, ref_min(f, mode, a, b), c);
    a = ref_in(f, mode, a);
    b = ref_in(f, mode, b);
    c = ref_in(f, mode, c);
    double largest = fmax(fmax(ref_value(f, a), ref_value(f, b)), ref_value(f, c));
    if (ref_value(f, a) == largest) return ref_max(f, mode, b, c);
    if (ref_value(f, b) == largest) return ref_max(f, mode, a, c);
    return ref_max(f, mode, a, b);
}

/* ---- Comparisons ---- */

char ref_order(const ref_format *f, ref_mode mode, uint64_t a, uint64_t b) {
    if (ref_is_nan(f, a) || ref_is_nan(f, b)) return '?';
    double x = ref_value(f, ref_in(f, mode, a)), y = ref_value(f, ref_in(f, mode, b));
    return x < y ? '<' : x > y ? '>' : '=';
}

int ref_class(const ref_format *f, uint64_t a) {
    bool negative = a & ref_sign(f);
    if (ref_is_nan(f, a)) return ref_is_signalling(f, a) ? 0 : 1;
    if (ref_is_infinite(f, a)) return negative ? 2 : 9;
    if (ref_is_zero(f, a)) return negative ? 5 : 6;
    if (ref_is_denormal(f, a)) return negative ? 4 : 7;
    return negative ? 3 : 8;
}

/* ---- Conversions ---- */

uint64_t ref_convert(const ref_format *to, const ref_format *from, ref_mode mode, uint64_t a) {
    a = ref_in(from, mode, a);
    if (ref_is_nan(from, a)) return nan_to(to, from, a) | ref_quiet(to);
    const ref_format *narrow = to->mantissa < from->mantissa ? to : from;
    /* f32 of f64 is an instruction of f64. */
    exact_rounding rounding = ref_rounding(narrow->mantissa == 23 ? F64 : narrow, mode);
    return ref_out(to, mode, ref_bits(to, ref_value(from, a), rounding));
}

uint64_t ref_from_integer(const ref_format *to, ref_mode mode, __int128 a) {
    exact sum = {{0}};
    uint64_t size = (uint64_t)(a < 0 ? -a : a);
    exact_add_product(&sum, (double)(size >> 32), a < 0 ? -0x1p32 : 0x1p32);
    exact_add_product(&sum, (double)(uint32_t)size, a < 0 ? -1 : 1);
    return exact_round(&sum, to->exponent, to->mantissa, ref_rounding(to, mode));
}

__int128 ref_to_integer(const ref_format *from, ref_mode mode, uint64_t a, __int128 least, __int128 most) {
    a = ref_in(from, mode, a);
    if (ref_is_nan(from, a)) return 0;
    double value = trunc(ref_value(from, a));
    if (value <= (double)least) return least;
    return value >= (double)most ? most : (__int128)value;
}

uint64_t ref_modified(const ref_format *f, ref_mode mode, uint64_t a, int omod, bool clamp) {
    /* Under IEEE, which gfx12 has no bit for, and where denormals are kept, there is no multiplication. */
    bool multiplies = omod && !ref_keeps_outputs(f, mode) && (mode.major >= 12 || !ref_ieee(mode));
    if (multiplies && !ref_is_nan(f, a)) {
        double factor = omod == 1 ? 0.5 : omod;
        a = ref_is_infinite(f, a) ? a : ref_bits(f, ref_value(f, a) * factor, ref_rounding(f, mode));
        if (ref_is_denormal(f, a) || ref_is_zero(f, a)) a = 0;
    }
    if (!clamp) return a;
    if (ref_is_nan(f, a)) return ref_nan_clamps(mode) ? 0 : a;
    double value = ref_value(f, a);
    return value <= 0 ? 0 : value >= 1 ? one(f) : a;
}

__int128 ref_normalised(const ref_format *from, uint64_t a, double least, double most) {
    if (ref_is_nan(from, a)) return 0;
    double value = ref_value(from, a);
    return (__int128)nearbyint((value < least ? least : value > 1 ? 1 : value) * most);
}

__int128 ref_floor_integer(ref_mode mode, uint64_t a, double add) {
    a = ref_in(F32, mode, a);
    if (ref_is_nan(F32, a)) return 0;
    double value = floor(ref_value(F32, a) + add);
    return value < INT32_MIN ? INT32_MIN : value > INT32_MAX ? INT32_MAX : (__int128)value;
}

uint64_t ref_cut_half(ref_mode mode, uint64_t a) {
    mode.bits |= 3 << 2;
    return ref_convert(F16, F32, mode, a);
}

/* ---- Parts ---- */

uint64_t ref_whole(const ref_format *f, ref_mode mode, uint64_t a, double (*whole)(double)) {
    a = ref_in(f, mode, a);
    if (ref_is_nan(f, a)) return ref_quieted(f, mode, a);
    return ref_bits(f, whole(ref_value(f, a)), EXACT_RN);
}

uint64_t ref_fract(const ref_format *f, ref_mode mode, uint64_t a) {
    a = ref_in(f, mode, a);
    if (ref_is_nan(f, a)) return ref_quieted(f, mode, a);
    if (ref_is_infinite(f, a)) return ref_default_nan(f);
    exact sum = {{0}};
    double value = ref_value(f, a);
    exact_add_product(&sum, value, 1);
    exact_add_product(&sum, floor(value), -1);
    if (!exact_sign(&sum)) return ref_rounding(f, mode) == EXACT_RM ? ref_sign(f) : 0;
    uint64_t bits = exact_round(&sum, f->exponent, f->mantissa, ref_rounding(f, mode));
    return ref_out(f, mode, bits == one(f) ? bits - 1 : bits);
}

uint64_t ref_frexp_mantissa(const ref_format *f, ref_mode mode, uint64_t a) {
    int exponent;
    a = ref_in(f, mode, a);
    if (ref_is_nan(f, a)) return ref_quieted(f, mode, a);
    if (ref_is_infinite(f, a)) return a;
    return ref_bits(f, frexp(ref_value(f, a), &exponent), EXACT_RN);
}

int ref_frexp_exponent(const ref_format *f, ref_mode mode, uint64_t a) {
    int exponent = 0;
    a = ref_in(f, mode, a);
    if (!ref_is_nan(f, a) && !ref_is_infinite(f, a)) frexp(ref_value(f, a), &exponent);
    return exponent;
}

/* a * 2^exponent, rounded once. The factor is made of three that f64 has. */
static uint64_t scaled(const ref_format *f, ref_mode mode, const exact *number, int exponent) {
    exact moved = {{0}};
    for (int i = 0; i < EXACT_WORDS * 64; i++) {
        int to = i + exponent;
        bool bit = number->words[i / 64] >> i % 64 & 1;
        if (bit && to >= 0 && to < EXACT_WORDS * 64 - 1) moved.words[to / 64] |= 1ull << to % 64;
        /* What falls out below makes the number inexact, and what falls out above infinite. */
        if (bit && to < 0) moved.words[0] |= 1;
        if (bit && to >= EXACT_WORDS * 64 - 1) moved.words[EXACT_WORDS - 1] |= 1ull << 62;
    }
    return exact_round(&moved, f->exponent, f->mantissa, ref_rounding(f, mode));
}

uint64_t ref_ldexp(const ref_format *f, ref_mode mode, uint64_t a, __int128 exponent) {
    a = ref_in(f, mode, a);
    if (ref_is_nan(f, a)) return ref_quieted(f, mode, a);
    if (ref_is_infinite(f, a) || ref_is_zero(f, a)) return a;
    int by = exponent > 4000 ? 4000 : exponent < -4000 ? -4000 : (int)exponent;
    exact_rounding rounding = ref_rounding(f, mode);
    bool negative = a & ref_sign(f);
    /* Its magnitude is scaled: the directions change places for a negative number. */
    if (negative && (rounding == EXACT_RP || rounding == EXACT_RM)) mode.bits ^= f->mantissa == 23 ? 3 : 12;
    exact number = {{0}};
    exact_add_product(&number, ref_value(f, a & ~ref_sign(f)), 1);
    return ref_out(f, mode, scaled(f, mode, &number, by) | (negative ? ref_sign(f) : 0));
}

/* ---- Division ---- */

typedef struct division {
    int far, scale, tiny, underflow;
} division;

static division division_of(const ref_format *f) {
    return f->mantissa == 23 ? (division){96, 64, 23, 150} : (division){768, 128, 53, 1075};
}

static int field_of(const ref_format *f, uint64_t a) {
    return (int)(size_of(f, a) >> f->mantissa);
}

bool ref_div_far(const ref_format *f, uint64_t b, uint64_t c) {
    return abs(field_of(f, c) - field_of(f, b)) >= division_of(f).far;
}

uint64_t ref_div_scale(const ref_format *f, ref_mode mode, uint64_t a, uint64_t b, uint64_t c) {
    division d = division_of(f);
    if (f->mantissa == 23) {
        a = ref_in(f, mode, a);
        b = ref_in(f, mode, b);
        c = ref_in(f, mode, c);
    }
    int distance = field_of(f, c) - field_of(f, b), top = (1 << f->exponent) - 1, by = 0;
    mode.bits |= 0xf0;
    if (ref_is_zero(f, b) || ref_is_zero(f, c)) return ref_default_nan(f);
    if (distance >= d.far) {
        if (a == b) by = d.scale;
    } else if (field_of(f, b) >= top - 2) {
        if (!(distance <= -d.far) || a == b) by = -d.scale;
    } else if (field_of(f, b) != 0 && distance <= -d.far) {
        if (a != b) by = d.scale;
    } else if (field_of(f, b) == 0 || field_of(f, c) <= d.tiny) {
        by = d.scale;
    }
    if (ref_is_nan(f, a)) return mode.major >= 12 ? a | ref_quiet(f) : a;
    return ref_ldexp(f, mode, a, by);
}

uint64_t ref_div_fmas(const ref_format *f, ref_mode mode, uint64_t a, uint64_t b, uint64_t c, bool scale) {
    int top = (1 << f->exponent) - 1;
    if (!scale || field_of(f, a) == top || field_of(f, b) == top || field_of(f, c) == top)
        return ref_fma(f, mode, a, b, c);
    int by = field_of(f, c) > top / 2 ? division_of(f).scale : -division_of(f).scale;
    /* f64 rounds twice. */
    if (f->mantissa == 52) return ref_ldexp(f, mode, ref_fma(f, (ref_mode){mode.bits | 0x80, mode.major}, a, b, c), by);
    exact sum = {{0}};
    exact_add_product(&sum, ref_value(f, ref_in(f, mode, a)), ref_value(f, ref_in(f, mode, b)));
    exact_add_product(&sum, ref_value(f, ref_in(f, mode, c)), 1);
    int sign = exact_sign(&sum);
    if (!sign) return ref_fma(f, mode, a, b, c);
    exact_rounding rounding = ref_rounding(f, mode);
    if (sign < 0) {
        exact magnitude = {{0}};
        exact_add_product(&magnitude, ref_value(f, ref_in(f, mode, a)), -ref_value(f, ref_in(f, mode, b)));
        exact_add_product(&magnitude, ref_value(f, ref_in(f, mode, c)), -1);
        sum = magnitude;
        if (rounding == EXACT_RP || rounding == EXACT_RM) mode.bits ^= 3;
    }
    return ref_out(f, mode, scaled(f, mode, &sum, by) | (sign < 0 ? ref_sign(f) : 0));
}

uint64_t ref_div_fixup(const ref_format *f, ref_mode mode, uint64_t a, uint64_t b, uint64_t c) {
    b = ref_in(f, mode, b);
    c = ref_in(f, mode, c);
    uint64_t sign = (b ^ c) & ref_sign(f);
    if (ref_is_nan(f, c)) return c | ref_quiet(f);
    if (ref_is_nan(f, b)) return b | ref_quiet(f);
    if (ref_is_zero(f, b) && ref_is_zero(f, c)) return ref_default_nan(f);
    if (ref_is_infinite(f, b) && ref_is_infinite(f, c)) return ref_default_nan(f);
    if (ref_is_zero(f, b) || ref_is_infinite(f, c)) return sign | ref_infinity(f);
    if (ref_is_infinite(f, b) || ref_is_zero(f, c)) return sign;
    if (f->mantissa != 10 && field_of(f, c) - field_of(f, b) < -division_of(f).underflow) return sign;
    if (f->mantissa != 10 && ref_is_nan(f, a)) return sign | ref_infinity(f);
    return sign | size_of(f, a);
}

bool ref_has_zero(const ref_format *f, ref_mode mode, uint64_t a, uint64_t b) {
    return ref_is_zero(f, ref_in(f, mode, a)) || ref_is_zero(f, ref_in(f, mode, b));
}

ref_mode ref_without_denormals(ref_mode mode) {
    mode.bits &= ~0x30u;
    return mode;
}

unsigned ref_to_byte(ref_mode mode, uint64_t a) {
    if (ref_is_nan(F32, a)) return 0;
    double value = ref_value(F32, ref_in(F32, mode, a)), below = floor(value), over = value - below;
    if (value >= 255) return 255;
    if (value <= 0) return 0;
    switch (ref_rounding(F32, mode)) {
    case EXACT_RP:
        return (unsigned)ceil(value);
    case EXACT_RZ:
    case EXACT_RM:
        return (unsigned)below;
    default:
        return (unsigned)below + (over > 0.5 || (over == 0.5 && (unsigned)below % 2));
    }
}

/* ---- 2 / pi: numbers of 32-bit digits, the first in front of the point ---- */

enum { DIGITS = 46, BITS = 1201, BITS_OF_12 = 1184 };
typedef uint32_t digits[DIGITS];

static void digits_divide(digits a, uint32_t by) {
    uint64_t rest = 0;
    for (int i = 0; i < DIGITS; i++) {
        rest = rest << 32 | a[i];
        a[i] = (uint32_t)(rest / by);
        rest %= by;
    }
}

/* a += b, or a -= b. */
static void digits_add(digits a, const digits b, bool minus) {
    int64_t carry = 0;
    for (int i = DIGITS; i-- > 0;) {
        carry += (int64_t)a[i] + (minus ? -(int64_t)b[i] : (int64_t)b[i]);
        a[i] = (uint32_t)carry;
        carry >>= 32;
    }
}

/* a += times * atan(1 / of), or -=. */
static void digits_add_arc(digits a, uint32_t times, uint32_t of, bool minus) {
    digits power = {times}, term;
    digits_divide(power, of);
    for (uint32_t n = 1; n < 32 * DIGITS; n += 2) {
        memcpy(term, power, sizeof term);
        digits_divide(term, n);
        digits_add(a, term, minus ^ (n / 2 % 2));
        digits_divide(power, of);
        digits_divide(power, of);
    }
}

static void two_over_pi_bits(bool bits[BITS]) {
    digits pi = {0}, rest = {2};
    digits_add_arc(pi, 16, 5, false);
    digits_add_arc(pi, 4, 239, true);
    for (int i = 0; i < BITS; i++) {
        digits_add(rest, rest, false);
        bits[i] = memcmp(rest, pi, sizeof rest) != 0;
        for (int d = 0; bits[i] && d < DIGITS; d++) {
            if (rest[d] == pi[d]) continue;
            bits[i] = rest[d] > pi[d];
            break;
        }
        if (bits[i]) digits_add(rest, pi, true);
    }
}

uint64_t ref_trig_preop(ref_mode mode, uint64_t a, uint64_t segment) {
    static bool bits[BITS], made;
    if (!made) two_over_pi_bits(bits);
    made = true;
    const int exponent = (int)(a >> 52 & 2047), most = mode.major >= 12 ? BITS_OF_12 : BITS;
    const int from = 53 * (int)(segment & 31) + (exponent > 1077 ? exponent - 1077 : 0);
    int scale = -53 - from + (exponent >= 1968 ? 128 : 0);
    uint64_t part = 0;
    for (int i = from; i < from + 53; i++)
        part = part << 1 | (i < most && bits[i]);
    if (scale < -1074) { /* cut off */
        part = -1074 - scale < 64 ? part >> (-1074 - scale) : 0;
        scale = -1074;
    }
    return ref_bits(F64, ldexp((double)part, scale), EXACT_RN);
}
