/* f32 as codes of 8 bits on devices, several at a time, and the scales of NVFP4, in fewer instructions than float8.h
 * and small_integer.h take. The codes are the same. */
#ifndef KILN_KERNELS_COMMON_FORMATS_ENCODE_GPU_H
#define KILN_KERNELS_COMMON_FORMATS_ENCODE_GPU_H

#include "kernels/common/device.h"
#include "kernels/common/formats/code_words.h"
#include "kernels/common/math/float_bits.h"
#include "kernels/common/math/minimum.h"
#include "kernels/common/quantize/nvfp4_scale.h"

/* The lowest byte of each of four words, of which `step` says how far apart they are. */
KILN_INLINE uint32_t kiln_lowest_bytes(const uint32_t *words, uint32_t step) {
#if defined(__CUDACC__)
    return __byte_perm(__byte_perm(words[0], words[step], 0x0040),
                       __byte_perm(words[2 * step], words[3 * step], 0x0040), 0x5410);
#else
    return __builtin_amdgcn_perm(__builtin_amdgcn_perm(words[3 * step], words[2 * step], 0x0400u),
                                 __builtin_amdgcn_perm(words[step], words[0], 0x0400u), 0x05040100u);
#endif
}

/* Whether any of eight values is NaN: compilers join two of these comparisons into one. */
KILN_INLINE bool kiln_any_nan(const float *values) {
    bool found = false;
    KILN_UNROLL
    for (int i = 0; i < 8; i += 2)
        found |= (values[i] != values[i]) | (values[i + 1] != values[i + 1]);
    return found;
}

/* The steps from 0 of a magnitude that is rounded to the numbers of a float with so many bits of fraction, and its
 * power of two, at least that of the least exponent. Adding 2^(23 - fraction_bits) times the power rounds the magnitude
 * to the spacing around it, and the sum's low bits count these steps from 0 and `further` ones; each further exponent
 * has 2^fraction_bits more, of which the caller makes the exponent's bias with `further`. */
KILN_INLINE uint32_t kiln_steps(float magnitude, float least, uint32_t fraction_bits, uint32_t further) {
    const float one = (float)(1u << (23 - fraction_bits)) + (float)further / (float)(1u << fraction_bits);
    float power = kiln_float_and(kiln_fast_max(magnitude, least), 0x7f800000u);
    return kiln_bits(KILN_FMA(power, one, magnitude)) + kiln_float_shr(power, 23 - fraction_bits);
}

/* kiln_nvfp4_scale without a division: the quotient by 6, from the rounded sixth and its remainder, is that of IEEE
 * arithmetic for every magnitude whose scale is not 0. */
KILN_INLINE uint32_t kiln_nvfp4_scale_of(float greatest, float encode) {
    const float sixth = 1.0f / KILN_E2M1_GREATEST;
    float quotient = greatest * sixth;
    quotient = KILN_FMA(KILN_FMA(-KILN_E2M1_GREATEST, quotient, greatest), sixth, quotient);
    float scale = (greatest < KILN_INFINITY ? quotient : greatest) * encode;
    return kiln_steps(kiln_fast_min(scale, KILN_E4M3_GREATEST), 0x1p-6f, 3, 56) & 0xffu;
}

/* kiln_nvfp4_factor: the scale's bits, moved to the places of f32's, are the number times a power of two. */
KILN_INLINE float kiln_nvfp4_factor_of(uint32_t scale, float encode) {
    float decode = kiln_float(scale << 20) * 0x1p120f;
    float factor = encode / (scale ? decode : 1.0f);
    return scale ? factor : 0.0f;
}

/* Eight codes of a byte, the first in the lowest byte. */
typedef struct kiln_eight_bytes {
    uint32_t words[2];
} __attribute__((aligned(8))) kiln_eight_bytes;

/* The int8 codes of eight values, limited to [-bound, bound]. bound: at most 127. */
KILN_INLINE kiln_eight_bytes kiln_int8_eight(float *values, float bound) {
    float sums[8];
    if (kiln_any_nan(values)) {
        KILN_UNROLL
        for (int i = 0; i < 8; i++)
            values[i] = values[i] == values[i] ? values[i] : 0.0f;
    }
    KILN_UNROLL
    for (int i = 0; i < 8; i++) /* the sum's low bits are the integer */
        sums[i] = kiln_fast_clamp(values[i], bound) + 0x1.8p23f;
    return {{kiln_float_bytes(sums, 1, 0), kiln_float_bytes(sums + 4, 1, 0)}};
}

/* The E4M3 codes of eight values, limited to [-bound, bound]. bound: from 1 to 448. */
#if KILN_E4M3_INSTRUCTION
KILN_INLINE kiln_eight_bytes kiln_e4m3_eight(float *values, float bound) {
    if (bound < KILN_E4M3_GREATEST) { /* the instruction's own */
        KILN_UNROLL
        for (int i = 0; i < 8; i++) /* NaN stays */
            values[i] = values[i] == values[i] ? kiln_fast_clamp(values[i], bound) : values[i];
    }
    return {{kiln_e4m3_word(values), kiln_e4m3_word(values + 4)}};
}
#else
KILN_INLINE kiln_eight_bytes kiln_e4m3_eight(const float *values, float bound) {
    uint32_t sums[8];
    KILN_UNROLL
    for (int i = 0; i < 8; i++)
        sums[i] = kiln_steps(kiln_fast_min(__builtin_fabsf(values[i]), bound), 0x1p-6f, 3, 56);
    kiln_eight_bytes codes = {{kiln_lowest_bytes(sums, 1) | (kiln_float_bytes(values, 1, 3) & 0x80808080u),
                               kiln_lowest_bytes(sums + 4, 1) | (kiln_float_bytes(values + 4, 1, 3) & 0x80808080u)}};
    if (kiln_any_nan(values)) {
        KILN_UNROLL
        for (int i = 0; i < 8; i++) {
            uint32_t others = ~(0xffu << i % 4 * 8), nan = 0x7fu << i % 4 * 8;
            if (values[i] != values[i]) codes.words[i / 4] = (codes.words[i / 4] & others) | nan;
        }
    }
    return codes;
}
#endif

#endif
