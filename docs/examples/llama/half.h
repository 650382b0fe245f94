/* float32 to 16 bits and back, rounded to nearest even: weights on their way to the device, logits on their way from
 * it. */
#ifndef LLAMA_HALF_H
#define LLAMA_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t float_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float bits_float(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint16_t to_bf16(float value) {
    uint32_t bits = float_bits(value);
    if (value != value) return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static inline float from_bf16(uint16_t half) {
    return bits_float((uint32_t)half << 16);
}

static inline uint16_t to_f16(float value) {
    uint32_t bits = float_bits(value), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000) return (uint16_t)(sign | 0x7e00);
    if (magnitude >= 0x477ff000) return (uint16_t)(sign | 0x7c00); /* 65520 is infinity */
    if (magnitude < 0x38800000)                                    /* subnormal: 0.5 has its last place */
        return (uint16_t)(sign | (float_bits(bits_float(magnitude) + 0.5f) - 0x3f000000));
    return (uint16_t)(sign | ((magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13));
}

static inline float from_f16(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, magnitude = half & 0x7fff;
    if (magnitude >= 0x7c00) return bits_float(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
    float value = bits_float(magnitude << 13) * 0x1p112f; /* moves the exponent; subnormals become normal */
    return bits_float(sign | float_bits(value));
}

#endif
