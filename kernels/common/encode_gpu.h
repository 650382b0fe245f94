/* f32 as codes of 8 and 4 bits on devices, several at a time, in fewer instructions than float8.h, float4.h and
 * small_integer.h take. The codes are the same. */
#ifndef KILN_KERNELS_COMMON_ENCODE_GPU_H
#define KILN_KERNELS_COMMON_ENCODE_GPU_H

#include "kernels/common/minimum.h"
#include "kernels/common/nvfp4_scale.h"

/* The byte of that number, the lowest being 0, of each of four words, of which `step` says how far apart they are. */
KILN_INLINE uint32_t kiln_bytes_of(const uint32_t *words, uint32_t step, uint32_t number) {
#if defined(__CUDACC__)
    uint32_t pair = number | (4 + number) << 4;
    return __byte_perm(__byte_perm(words[0], words[step], pair), __byte_perm(words[2 * step], words[3 * step], pair),
                       0x5410);
#else
    uint32_t pair = number | (4 + number) << 8;
    return __builtin_amdgcn_perm(__builtin_amdgcn_perm(words[3 * step], words[2 * step], pair),
                                 __builtin_amdgcn_perm(words[step], words[0], pair), 0x05040100u);
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

/* kiln_nvfp4_scale without a division: the quotient by 6, from the rounded sixth and its remainder, is that of IEEE
 * arithmetic for every magnitude whose scale is not 0. */
KILN_INLINE uint32_t kiln_nvfp4_scale_of(float greatest, float encode) {
    const float sixth = 1.0f / KILN_E2M1_GREATEST;
    float quotient = greatest * sixth;
    quotient = KILN_FMA(KILN_FMA(-KILN_E2M1_GREATEST, quotient, greatest), sixth, quotient);
    float scale = (greatest < KILN_INFINITY ? quotient : greatest) * encode;
    return kiln_small_float_encode(kiln_bits(scale), 3, 7, KILN_E4M3_GREATEST);
}

/* Eight codes of a byte, the first in the lowest byte. */
typedef struct kiln_eight_bytes {
    uint32_t words[2];
} __attribute__((aligned(8))) kiln_eight_bytes;

/* The int8 codes of eight values, limited to [-bound, bound]. bound: at most 127. */
KILN_INLINE kiln_eight_bytes kiln_int8_eight(float *values, float bound) {
    uint32_t sums[8];
    if (kiln_any_nan(values)) {
        KILN_UNROLL
        for (int i = 0; i < 8; i++)
            values[i] = values[i] == values[i] ? values[i] : 0.0f;
    }
    KILN_UNROLL
    for (int i = 0; i < 8; i++) /* the sum's low bits are the integer */
        sums[i] = kiln_bits(kiln_fast_clamp(values[i], bound) + 0x1.8p23f);
    return {{kiln_bytes_of(sums, 1, 0), kiln_bytes_of(sums + 4, 1, 0)}};
}

/* The E4M3 codes of eight values, limited to [-bound, bound]. bound: from 1 to 448.
 *
 * Adding 2^20 times a magnitude's power of two rounds the magnitude to eighths of that power; the sum's low bits count
 * them, and each further exponent has eight more. Below 2^-6 the spacing is that above 2^-6. The 56 further eighths are
 * for the exponent's bias. A sign of NaN does not count. */
KILN_INLINE kiln_eight_bytes kiln_e4m3_eight(const float *values, float bound) {
    uint32_t sums[8], bits[8];
    KILN_UNROLL
    for (int i = 0; i < 8; i++) {
        float magnitude = kiln_fast_min(__builtin_fabsf(values[i]), bound);
        uint32_t power = kiln_bits(kiln_fast_max(magnitude, 0x1p-6f)) & 0x7f800000u;
        bits[i] = kiln_bits(values[i]);
        sums[i] = kiln_bits(KILN_FMA(kiln_float(power), 0x1.00007p20f, magnitude)) + (power >> 20);
    }
    if (kiln_any_nan(values)) {
        KILN_UNROLL
        for (int i = 0; i < 8; i++) {
            sums[i] = values[i] == values[i] ? sums[i] : 0x7fu;
            bits[i] = values[i] == values[i] ? bits[i] : 0u;
        }
    }
    return {{kiln_bytes_of(sums, 1, 0) | (kiln_bytes_of(bits, 1, 3) & 0x80808080u),
             kiln_bytes_of(sums + 4, 1, 0) | (kiln_bytes_of(bits + 4, 1, 3) & 0x80808080u)}};
}

/* The E2M1 codes of eight products, the first in the lowest bits. */
KILN_INLINE uint32_t kiln_e2m1_eight(const float *values) {
#if defined(__CUDACC__) /* a product that is NaN has no sign: kiln_e2m1_of, but for the places of the codes */
    uint32_t sums[8], bits[8];
    KILN_UNROLL
    for (int i = 0; i < 8; i++) {
        float magnitude = kiln_fast_min(__builtin_fabsf(values[i]), KILN_E2M1_GREATEST);
        uint32_t power = kiln_bits(kiln_fast_max(magnitude, 1.0f)) & 0x7f800000u;
        bits[i] = kiln_bits(values[i]);
        sums[i] = kiln_bits(KILN_FMA(kiln_float(power), 0x1.000004p22f, magnitude)) + (power >> 22);
    }
    uint32_t even = (kiln_bytes_of(sums, 2, 0) & 0x07070707u) | (kiln_bytes_of(bits, 2, 3) >> 4 & 0x08080808u);
    uint32_t odd = (kiln_bytes_of(sums + 1, 2, 0) << 4 & 0x70707070u) | (kiln_bytes_of(bits + 1, 2, 3) & 0x80808080u);
    return even | odd;
#else
    uint32_t word = 0;
    KILN_UNROLL
    for (int i = 0; i < 8; i++)
        word |= (uint32_t)kiln_e2m1_of(values[i]) << i * 4;
    return word;
#endif
}

#endif
