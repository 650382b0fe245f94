/* Sine and cosine of an angle in turns, one source for host C and both device compilers.
 *
 * Angles are 64-bit fixed point: a turn is 2^64, so that a position times a frequency wraps as angles do and nothing is
 * lost however large the position is. The includer (device.h, cpu.h) defines what math.h asks for. It may define
 * KILN_FLIPPED(value, bits): value, of the other sign where the highest of the bits is set. */
#ifndef KILN_KERNELS_COMMON_ROTARY_TURN_H
#define KILN_KERNELS_COMMON_ROTARY_TURN_H

#include "kernels/common/math/math.h"

#if !defined(KILN_FLIPPED)
#define KILN_FLIPPED(value, bits) kiln_float(kiln_bits(value) ^ ((bits)&0x80000000u))
#endif

typedef struct kiln_direction {
    float cosine;
    float sine;
} kiln_direction;

/* Absolute errors at most 1.2e-7 (measured: 1.15e-7, 9.8e-8 fused). The upper 32 bits are the nearest quarter turn and
 * the rest, at most an eighth of a turn, of which both functions are polynomials of degree 7 and 8. */
KILN_INLINE kiln_direction kiln_direction_of(uint64_t turns) {
    uint32_t angle = (uint32_t)(turns >> 32), rounded = angle + 0x20000000u; /* the quarter in the upper two bits */
    float x = (float)(int32_t)(angle - (rounded & 0xc0000000u)) * 0x1.921fb6p-30f; /* 2 pi / 2^32 */
    float square = x * x;
    float s = KILN_FMA(square, -0x1.9943f2p-13f, 0x1.11073cp-7f);
    s = KILN_FMA(s, square, -0x1.555546p-3f);
    s = KILN_FMA(s * square, x, x);
    float c = KILN_FMA(square, 0x1.99eb9cp-16f, -0x1.6c0c34p-10f);
    c = KILN_FMA(c, square, 0x1.55554ap-5f);
    c = KILN_FMA(c, square, -0.5f);
    c = KILN_FMA(c, square, 1.0f);
    kiln_direction direction;
    const bool odd = rounded & 0x40000000u;
    direction.sine = KILN_FLIPPED(odd ? c : s, rounded);
    direction.cosine = KILN_FLIPPED(odd ? s : c, rounded + 0x40000000u);
    return direction;
}

#endif
