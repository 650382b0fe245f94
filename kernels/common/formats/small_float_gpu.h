/* Codes of 8 and 4 bits as f32 on devices, in fewer instructions than float8.h and float4.h take: a code's bits, moved
 * to the places of f32's exponent and fraction, are the number times a power of two, subnormal ones too, with which no
 * device is slow. The results are the same, bit by bit. */
#ifndef KILN_KERNELS_COMMON_FORMATS_SMALL_FLOAT_GPU_H
#define KILN_KERNELS_COMMON_FORMATS_SMALL_FLOAT_GPU_H

#include "kernels/common/device.h"

/* The number of an E4M3 code. Bits above the lowest eight are ignored. */
KILN_INLINE float kiln_e4m3_number(uint32_t code) {
    float value = kiln_float((code << 20 & 0x07f00000u) | (code << 24 & 0x80000000u)) * 0x1p120f;
    return (code & 0x7fu) == 0x7fu ? kiln_float(0x7fc00000u) : value;
}

/* The number of an E2M1 code. Bits above the lowest four are ignored. */
KILN_INLINE float kiln_e2m1_number(uint32_t code) {
    return kiln_float((code << 22 & 0x01c00000u) | (code << 28 & 0x80000000u)) * 0x1p126f;
}

/* value * factor, which becomes an element. AMD's compiler would fuse the product with its conversion to f16 into an
 * instruction that adds 0 and so turns -0 into 0; setting the sign after the product prevents that. */
KILN_INLINE float kiln_product(float value, float factor) {
#if defined(__HIP__) && defined(KILN_PART_f16)
    return kiln_float(kiln_bits(__builtin_fabsf(value) * factor) ^ (kiln_bits(value) & 0x80000000u));
#else
    return value * factor;
#endif
}

#endif
