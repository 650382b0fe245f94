/* Numbers of 8 and 4 bits as f32 on devices, in fewer instructions than float8.h and float4.h take: a code's bits,
 * moved to where f32 has its exponent and fraction, are the number times a power of two, subnormal ones too, which no
 * device is slow with. The same results, bit by bit. */
#ifndef KILN_KERNELS_COMMON_SMALL_FLOAT_GPU_H
#define KILN_KERNELS_COMMON_SMALL_FLOAT_GPU_H

#include "kernels/common/device.h"

/* Of an E4M3, with any bits above its eight. */
KILN_INLINE float kiln_e4m3_number(uint32_t code) {
    float value = kiln_float((code << 20 & 0x07f00000u) | (code << 24 & 0x80000000u)) * 0x1p120f;
    return (code & 0x7fu) == 0x7fu ? kiln_float(0x7fc00000u) : value;
}

/* Of an E2M1, with any bits above its four. */
KILN_INLINE float kiln_e2m1_number(uint32_t code) {
    return kiln_float((code << 22 & 0x01c00000u) | (code << 28 & 0x80000000u)) * 0x1p126f;
}

/* value * factor, for what becomes an element of the part. AMD's compiler would make one instruction of the product and
 * its conversion to f16, which adds 0 and so makes 0 of -0: with the sign put behind the product it does not. */
KILN_INLINE float kiln_product(float value, float factor) {
#if defined(__HIP__) && defined(KILN_PART_f16)
    return kiln_float(kiln_bits(__builtin_fabsf(value) * factor) ^ (kiln_bits(value) & 0x80000000u));
#else
    return value * factor;
#endif
}

#endif
