/* Floats of 8 bits, held as uint8_t: E4M3 and E5M2 of the Open Compute Project (OFP8, revision 1.0), and the E4M3 of
 * AMD's gfx940 to gfx942, FNUZ (finite, no negative zero). Conversions from f32 round to nearest even and saturate:
 * numbers beyond the greatest, infinities too, become the greatest, and only NaN becomes NaN.
 *
 * | format    | bias | greatest | least  | zero      | infinity   | NaN                  | encoded NaN |
 * | E4M3      | 7    | 448      | 2^-9   | 0x00 0x80 | none       | 0x7f 0xff            | 0x7f        |
 * | E4M3 FNUZ | 8    | 240      | 2^-10  | 0x00      | none       | 0x80                 | 0x80        |
 * | E5M2      | 15   | 57344    | 2^-16  | 0x00 0x80 | 0x7c 0xfc  | 0x7d-0x7f, 0xfd-0xff | 0x7f        |
 *
 * The includer (device.h, cpu.h) defines KILN_INLINE. */
#ifndef KILN_KERNELS_COMMON_FORMATS_FLOAT8_H
#define KILN_KERNELS_COMMON_FORMATS_FLOAT8_H

#include "kernels/common/formats/small_float.h"

#define KILN_E4M3_GREATEST      448.0f
#define KILN_E4M3_FNUZ_GREATEST 240.0f
#define KILN_E5M2_GREATEST      57344.0f

/* The same with a bound of at most 448 in place of the greatest number. Numbers beyond it get the bound's code. */
KILN_INLINE uint8_t kiln_e4m3_within(float value, float bound) {
    uint32_t bits = kiln_bits(value), magnitude = bits & 0x7fffffffu;
    uint32_t code = kiln_small_float_encode(magnitude, 3, 7, bound) | (bits >> 24 & 0x80u);
    return (uint8_t)(magnitude > 0x7f800000u ? 0x7fu : code);
}

KILN_INLINE uint8_t kiln_e4m3_of(float value) {
    return kiln_e4m3_within(value, KILN_E4M3_GREATEST);
}

KILN_INLINE float kiln_e4m3_value(uint8_t code) {
    float value = kiln_small_float_decode(code & 0x7fu, 3, 7);
    value = (code & 0x7fu) == 0x7fu ? kiln_float(0x7fc00000u) : value;
    return kiln_small_float_signed(value, code >> 7);
}

KILN_INLINE uint8_t kiln_e4m3_fnuz_of(float value) {
    uint32_t bits = kiln_bits(value), magnitude = bits & 0x7fffffffu;
    uint32_t code = kiln_small_float_encode(magnitude, 3, 8, KILN_E4M3_FNUZ_GREATEST);
    code |= code ? bits >> 24 & 0x80u : 0u;
    return (uint8_t)(magnitude > 0x7f800000u ? 0x80u : code);
}

KILN_INLINE float kiln_e4m3_fnuz_value(uint8_t code) {
    float value = kiln_small_float_signed(kiln_small_float_decode(code & 0x7fu, 3, 8), code >> 7);
    return code == 0x80u ? kiln_float(0x7fc00000u) : value;
}

/* The FNUZ code of half the number of an E4M3 code, which is exact: matrix units for FNUZ multiply E4M3 tensors in this
 * form, with twice the scale. -0 becomes 0. */
KILN_INLINE uint8_t kiln_e4m3_fnuz_of_half(uint8_t code) {
    uint8_t number = code == 0x80u ? 0x00u : code;
    return (code & 0x7fu) == 0x7fu ? 0x80u : number;
}

KILN_INLINE uint8_t kiln_e5m2_of(float value) {
    uint32_t bits = kiln_bits(value), magnitude = bits & 0x7fffffffu;
    uint32_t code = kiln_small_float_encode(magnitude, 2, 15, KILN_E5M2_GREATEST) | (bits >> 24 & 0x80u);
    return (uint8_t)(magnitude > 0x7f800000u ? 0x7fu : code);
}

KILN_INLINE float kiln_e5m2_value(uint8_t code) {
    uint32_t magnitude = code & 0x7fu;
    float value = kiln_small_float_decode(magnitude, 2, 15);
    value = magnitude >= 0x7cu ? kiln_float(magnitude > 0x7cu ? 0x7fc00000u : 0x7f800000u) : value;
    return kiln_small_float_signed(value, code >> 7);
}

#endif
