/* 16-bit floats, held as uint16_t everywhere, converted by integer arithmetic alone: every compiler makes straight-line
 * code of that, and CPU compilers vectorise it. Conversions to 16 bits round to nearest even and keep NaN a NaN.
 *
 * The includer (device.h, cpu.h) defines KILN_INLINE. */
#ifndef KILN_KERNELS_COMMON_FORMATS_FLOAT16_H
#define KILN_KERNELS_COMMON_FORMATS_FLOAT16_H

#include <stdint.h>

KILN_INLINE uint32_t kiln_bits(float value) {
    uint32_t bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    return bits;
}

KILN_INLINE float kiln_float(uint32_t bits) {
    float value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}

KILN_INLINE float kiln_bf16_to_f32(uint16_t half) {
    return kiln_float((uint32_t)half << 16);
}

KILN_INLINE uint16_t kiln_f32_to_bf16(float value) {
    uint32_t bits = kiln_bits(value);
    uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
    uint32_t nan = bits >> 16 | 0x40u;
    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}

KILN_INLINE float kiln_f16_to_f32_soft(uint16_t half) {
    uint32_t magnitude = (uint32_t)(half & 0x7fffu) << 13;
    uint32_t finite = kiln_bits(kiln_float(magnitude) * 0x1p112f); /* moves the exponent; subnormals become normal */
    uint32_t special = magnitude | 0x7f800000u;
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    return kiln_float(sign | ((half & 0x7c00u) == 0x7c00u ? special : finite));
}

KILN_INLINE uint16_t kiln_f32_to_f16_soft(float value) {
    uint32_t bits = kiln_bits(value);
    uint32_t magnitude = bits & 0x7fffffffu;
    uint32_t bounded = magnitude < 0x47800000u ? magnitude : 0x47800000u; /* 65536 rounds to infinity */
    uint32_t normal = (bounded - 0x38000000u + 0xfffu + (bounded >> 13 & 1u)) >> 13;
    uint32_t subnormal = kiln_bits(kiln_float(bounded) + 0.5f) - 0x3f000000u; /* 0.5 has the ulp of a subnormal half */
    uint32_t nan = 0x7e00u | (magnitude >> 13 & 0x3ffu);
    uint32_t finite = bounded < 0x38800000u ? subnormal : normal;
    return (uint16_t)(bits >> 16 & 0x8000u) | (uint16_t)(magnitude > 0x7f800000u ? nan : finite);
}

#endif
