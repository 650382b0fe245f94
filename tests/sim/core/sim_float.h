/* The small floating-point formats of both vendors, converted exactly: decoded to f64, encoded from f64 with one
 * rounding.
 *
 * Sources: IEEE 754-2019 for binary16 and binary32; OCP "8-bit Floating Point Specification (OFP8)" for e4m3 and e5m2,
 * and "Microscaling Formats (MX)" for e2m1, e2m3, e3m2 and ue8m0; LLVM's APFloat documentation for the FNUZ forms. */
#ifndef KILN_TESTS_SIM_FLOAT_H
#define KILN_TESTS_SIM_FLOAT_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* SIM_FORMAT(name, exponent bits, mantissa bits, bias, specials). specials: IEEE (inf and NaN in the top exponent), FN
 * (no inf; NaN is all ones), FNUZ (no inf, no -0; NaN is the sign bit alone), FINITE (neither). */
#define SIM_FORMATS(SIM_FORMAT)          \
    SIM_FORMAT(f32, 8, 23, 127, IEEE)    \
    SIM_FORMAT(tf32, 8, 10, 127, IEEE)   \
    SIM_FORMAT(f16, 5, 10, 15, IEEE)     \
    SIM_FORMAT(bf16, 8, 7, 127, IEEE)    \
    SIM_FORMAT(e4m3, 4, 3, 7, FN)        \
    SIM_FORMAT(e5m2, 5, 2, 15, IEEE)     \
    SIM_FORMAT(e4m3fnuz, 4, 3, 8, FNUZ)  \
    SIM_FORMAT(e5m2fnuz, 5, 2, 16, FNUZ) \
    SIM_FORMAT(e2m1, 2, 1, 1, FINITE)    \
    SIM_FORMAT(e2m3, 2, 3, 1, FINITE)    \
    SIM_FORMAT(e3m2, 3, 2, 3, FINITE)

typedef enum sim_format {
#define SIM_FORMAT_ENUM(name, exponent, mantissa, bias, specials) SIM_##name,
    SIM_FORMATS(SIM_FORMAT_ENUM)
#undef SIM_FORMAT_ENUM
        SIM_FORMAT_COUNT
} sim_format;

typedef enum sim_rounding {
    SIM_ROUND_NEAREST_EVEN,
    SIM_ROUND_NEAREST_AWAY,
    SIM_ROUND_ZERO,
    SIM_ROUND_DOWN,
    SIM_ROUND_UP
} sim_rounding;

/* 2^exponent: what ldexp(1, exponent) is, without its checks where that is a normal number. */
static inline double sim_power_of_two(int exponent) {
    if (exponent < -1022 || exponent > 1023) return ldexp(1, exponent);
    uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

/* The value of the bits; a NaN's payload stands in the upper mantissa bits, as a widening conversion has it. */
double sim_decode_any(sim_format format, uint32_t bits);
/* The same, most often without a call: a finite number of f32, or of bf16, which is the upper half of one, or a normal
 * one of f16. */
static inline double sim_decode(sim_format format, uint32_t bits) {
    if ((format == SIM_f32 && ~bits & 0x7f800000) || (format == SIM_bf16 && ~bits & 0x7f80)) {
        const uint32_t single = format == SIM_f32 ? bits : bits << 16;
        float value;
        memcpy(&value, &single, sizeof value);
        return (double)value;
    }
    if (format == SIM_f16 && bits & 0x7c00 && ~bits & 0x7c00) {
        const uint64_t magnitude = ((uint64_t)(bits & 0x7fff) << 42) + (1008ull << 52);
        const uint64_t wide = (uint64_t)(bits & 0x8000) << 48 | magnitude;
        double value;
        memcpy(&value, &wide, sizeof value);
        return value;
    }
    return sim_decode_any(format, bits);
}

/* Rounds a value to a format. saturate: what is beyond the largest finite number, infinities included, becomes that
 * number; else it becomes infinity, or NaN where the format has none (FINITE formats always saturate). NaN gives the
 * format's canonical quiet NaN, or the largest number in a FINITE format. */
uint32_t sim_encode(sim_format format, double value, sim_rounding rounding, bool saturate);

/* a + b in f64 rounded to odd: rounding it again to at most 51 bits is the same as rounding the exact sum once. With a
 * an exact product this makes a fused multiply-add of any narrower format. */
double sim_add_odd(double a, double b);

/* The same for a quotient and a square root. */
double sim_divide_odd(double a, double b);
double sim_sqrt_odd(double a);

/* ue8m0: a power of two, 2^(bits - 127); 0xff is NaN. Encoding rounds up or towards zero and saturates. */
double sim_ue8m0_decode(uint8_t bits);
uint8_t sim_ue8m0_encode(double value, sim_rounding rounding);

#endif
