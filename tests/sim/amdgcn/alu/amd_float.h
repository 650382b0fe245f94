/* Floating-point arithmetic of the vector ALU on bit patterns, under the MODE register: rounding, denormal flushing,
 * and quieting of NaN. A format's bits stand in the low end of a 64-bit word.
 *
 * Sources: the ISA guides of AMD ("Vega", "CDNA 3", "RDNA 2" to "RDNA 4"), chapters on the MODE register and on the
 * vector ALU. They do not say which NaN of several is handed on: here it is the first operand's, but an invalid product
 * comes before a NaN addend, and the NaN of an invalid operation is negative, as public measurements of RDNA 3 and 4
 * have it. */
#ifndef KILN_TESTS_SIM_AMD_FLOAT_H
#define KILN_TESTS_SIM_AMD_FLOAT_H

#include "tests/sim/core/sim_float.h"
#include <stdbool.h>
#include <stdint.h>

typedef enum amd_format { AMD_HALF, AMD_SINGLE, AMD_DOUBLE } amd_format;

/* Bits of MODE. Rounding: 0 nearest even, 1 up, 2 down, 3 to zero. Denormals: 1 keeps them in inputs, 2 in results. */
enum {
    AMD_MODE_ROUND_32 = 0,    /* two bits, f32 */
    AMD_MODE_ROUND_64 = 2,    /* two bits, f16 and f64 */
    AMD_MODE_DENORMAL_32 = 4, /* two bits */
    AMD_MODE_DENORMAL_64 = 6, /* two bits */
    AMD_MODE_DX10_CLAMP = 1 << 8,
    AMD_MODE_IEEE = 1 << 9,
    /* Not of MODE: what generations do differently. */
    AMD_MODE_FIRST_NAN = 1 << 29,                 /* gfx10 and later: of two NaNs min and max give the first */
    AMD_MODE_NUMBERS = 1 << 30,                   /* gfx12: to min and max a signalling NaN is as any */
    AMD_MODE_PLAIN_32 = 3 << AMD_MODE_DENORMAL_32 /* f32 is as C has it: nearest even, denormals kept */
};

/* Whether f32 arithmetic under mode is that of C, NaN aside. */
static inline bool amd_mode_plain_32(uint32_t mode) {
    return (mode & (3u << AMD_MODE_ROUND_32 | 3u << AMD_MODE_DENORMAL_32)) == AMD_MODE_PLAIN_32;
}

sim_rounding amd_mode_rounding(amd_format format, uint32_t mode);

/* A format's sign bit, its positive infinity, its quiet bit. */
uint64_t amd_sign(amd_format format);
uint64_t amd_infinity(amd_format format);
uint64_t amd_quiet(amd_format format);

bool amd_is_nan(amd_format format, uint64_t a);
bool amd_is_signalling(amd_format format, uint64_t a);
bool amd_is_denormal(amd_format format, uint64_t a);

/* What an instruction reads of an operand: a denormal becomes a zero of its sign if mode says so. */
uint64_t amd_input(amd_format format, uint32_t mode, uint64_t a);
/* What it writes of a result. */
uint64_t amd_output(amd_format format, uint32_t mode, uint64_t a);

/* The value of the bits, exactly; and the bits of a value that is exact or was rounded to odd, rounded as mode says, or
 * as told, without flushing. AMD_DOUBLE: the value's own bits. */
double amd_value(amd_format format, uint64_t a);
uint64_t amd_round(amd_format format, uint32_t mode, double value);
uint64_t amd_round_as(amd_format format, sim_rounding rounding, double value);

/* The NaN that comes of NaN operands (count of them, in order): the first, quieted under IEEE; 0 if none is a NaN. */
uint64_t amd_nan_of(amd_format format, uint32_t mode, const uint64_t *operands, int count);

/* a + b, a * b, a * b + c with one rounding, and with a rounding of the product and flushed denormals (v_mad, v_mac).
 */
uint64_t amd_add(amd_format format, uint32_t mode, uint64_t a, uint64_t b);
uint64_t amd_multiply(amd_format format, uint32_t mode, uint64_t a, uint64_t b);
uint64_t amd_fma(amd_format format, uint32_t mode, uint64_t a, uint64_t b, uint64_t c);
uint64_t amd_mad(amd_format format, uint32_t mode, uint64_t a, uint64_t b, uint64_t c);

/* a * b + c of finite numbers, times a power of two: f32 rounds once, f64 twice where the result is denormal. */
uint64_t amd_fma_scaled(amd_format format, uint32_t mode, uint64_t a, uint64_t b, uint64_t c, int exponent);

/* minNum and maxNum with -0 below +0: a NaN loses to a number; before gfx12 a signalling NaN wins under IEEE. */
uint64_t amd_min_any(amd_format format, uint32_t mode, uint64_t a, uint64_t b);
uint64_t amd_max_any(amd_format format, uint32_t mode, uint64_t a, uint64_t b);
/* minimum and maximum of IEEE 754-2019: any NaN wins. */
uint64_t amd_minimum_any(amd_format format, uint32_t mode, uint64_t a, uint64_t b);
uint64_t amd_maximum_any(amd_format format, uint32_t mode, uint64_t a, uint64_t b);
/* A NaN makes it the least of the three; else it is the larger of the two that a largest one leaves. */
uint64_t amd_med3_any(amd_format format, uint32_t mode, uint64_t a, uint64_t b, uint64_t c);

/* Whether the bits are of a normal number of f32 or of an infinity, with which no mode has to do. */
static inline bool amd_is_plain_single(uint64_t a) {
    return (uint32_t)((a & 0x7fffffff) - 0x00800000) <= 0x7f000000;
}

/* An integer that has the place among integers that such a number, or a zero, has among numbers. */
static inline int32_t amd_place_of(uint64_t a) {
    const uint32_t bits = (uint32_t)a;
    return (int32_t)(bits >> 31 ? bits ^ 0x7fffffff : bits);
}

/* The same without a call of such numbers of f32, which kernels have most of. */
static inline bool amd_have_places(amd_format format, uint64_t a, uint64_t b) {
    return format == AMD_SINGLE && (amd_is_plain_single(a) || !(a & 0x7fffffff)) &&
           (amd_is_plain_single(b) || !(b & 0x7fffffff));
}
static inline uint64_t amd_min(amd_format format, uint32_t mode, uint64_t a, uint64_t b) {
    if (!amd_have_places(format, a, b)) return amd_min_any(format, mode, a, b);
    return amd_place_of(a) < amd_place_of(b) ? a : b;
}
static inline uint64_t amd_max(amd_format format, uint32_t mode, uint64_t a, uint64_t b) {
    if (!amd_have_places(format, a, b)) return amd_max_any(format, mode, a, b);
    return amd_place_of(a) < amd_place_of(b) ? b : a;
}
static inline uint64_t amd_minimum(amd_format format, uint32_t mode, uint64_t a, uint64_t b) {
    if (!amd_have_places(format, a, b)) return amd_minimum_any(format, mode, a, b);
    return amd_place_of(a) < amd_place_of(b) ? a : b;
}
static inline uint64_t amd_maximum(amd_format format, uint32_t mode, uint64_t a, uint64_t b) {
    if (!amd_have_places(format, a, b)) return amd_maximum_any(format, mode, a, b);
    return amd_place_of(a) < amd_place_of(b) ? b : a;
}
static inline uint64_t amd_med3(amd_format format, uint32_t mode, uint64_t a, uint64_t b, uint64_t c) {
    const bool plain = amd_is_plain_single(a) && amd_is_plain_single(b) && amd_is_plain_single(c);
    if (format != AMD_SINGLE || !plain) return amd_med3_any(format, mode, a, b, c);
    const uint64_t low = amd_place_of(a) < amd_place_of(b) ? a : b, high = amd_place_of(a) < amd_place_of(b) ? b : a;
    const uint64_t rest = amd_place_of(c) < amd_place_of(high) ? c : high;
    return amd_place_of(rest) > amd_place_of(low) ? rest : low;
}

/* v_mul_legacy and v_fma_legacy: 0 times anything is 0, and c is handed on as it is. */
uint64_t amd_multiply_legacy(uint32_t mode, uint64_t a, uint64_t b);
uint64_t amd_fma_legacy(uint32_t mode, uint64_t a, uint64_t b, uint64_t c);
uint64_t amd_mad_legacy(uint32_t mode, uint64_t a, uint64_t b, uint64_t c);

/* Comparison: the bits of AMD_LESS ... that hold, one of them. */
enum { AMD_LESS = 1, AMD_EQUAL = 2, AMD_GREATER = 4, AMD_UNORDERED = 8 };
int amd_compare(amd_format format, uint32_t mode, uint64_t a, uint64_t b);

/* The bit of v_cmp_class's mask that a falls under: 0 signalling NaN, 1 quiet NaN, 2 -inf, 3 -normal, 4 -denormal, 5
 * -0, 6 +0, 7 +denormal, 8 +normal, 9 +inf. */
int amd_float_class(amd_format format, uint64_t a);

/* Rounding to an integer, in the same format. */
typedef enum amd_integer_rounding { AMD_TRUNC, AMD_CEIL, AMD_FLOOR, AMD_RNDNE } amd_integer_rounding;
uint64_t amd_round_integer(amd_format format, uint32_t mode, amd_integer_rounding rounding, uint64_t a);

uint64_t amd_fract(amd_format format, uint32_t mode, uint64_t a);
uint64_t amd_ldexp(amd_format format, uint32_t mode, uint64_t a, int exponent);
uint64_t amd_frexp_mantissa(amd_format format, uint32_t mode, uint64_t a);
int32_t amd_frexp_exponent(amd_format format, uint32_t mode, uint64_t a);

/* The output modifiers, in their order: multiplication (omod 2: by 2, 4: by 4, 1: by 0.5; ignored under IEEE and where
 * denormal results are kept), then the clamp to [0, 1]. */
uint64_t amd_modify_output(amd_format format, uint32_t mode, uint64_t a, int omod, bool clamp);

/* A number to a whole number of bits wide: towards zero, saturated, NaN gives 0. */
int32_t amd_to_signed(double value, int bits);
uint32_t amd_to_unsigned(double value, int bits);

/* From one format to another: rounds as the narrower one's mode says, flushes both ends. */
uint64_t amd_convert(amd_format to, amd_format from, uint32_t mode, uint64_t a);

#endif
