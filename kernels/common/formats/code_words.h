/* Four codes of 8 bits at a time on devices, in fewer instructions than encode_gpu.h takes, for numbers
 * that need neither bounds nor a case for NaN. The first code is the lowest byte of a word. The results are the same,
 * bit by bit; for E4M3 and int8 every such number was tried. */
#ifndef KILN_KERNELS_COMMON_FORMATS_CODE_WORDS_H
#define KILN_KERNELS_COMMON_FORMATS_CODE_WORDS_H

#include "kernels/common/device.h"

#if defined(__CUDACC__) && __CUDA_ARCH__ >= 890
#include "kernels/arch/sm89.h"
#define KILN_E4M3_INSTRUCTION 1 /* which has bounds, and a code for NaN */
#else
#define KILN_E4M3_INSTRUCTION 0
#endif

/* The byte of that number, the lowest being 0, of each of four words. */
KILN_INLINE uint32_t kiln_bytes_of(const uint32_t *words, uint32_t number) {
#if defined(__CUDACC__)
    uint32_t pair = number | (4 + number) << 4;
    return __byte_perm(__byte_perm(words[0], words[1], pair), __byte_perm(words[2], words[3], pair), 0x5410);
#else
    uint32_t pair = number | (4 + number) << 8;
    return __builtin_amdgcn_perm(__builtin_amdgcn_perm(words[3], words[2], pair),
                                 __builtin_amdgcn_perm(words[1], words[0], pair), 0x05040100u);
#endif
}

/* int8 of magnitudes of at most 127.5: adding 1.5 * 2^23 leaves the integer in the low bits. */
KILN_INLINE uint32_t kiln_int8_word(const float *values) {
    uint32_t sums[4];
    KILN_UNROLL
    for (int i = 0; i < 4; i++)
        sums[i] = kiln_bits(values[i] + 0x1.8p23f);
    return kiln_bytes_of(sums, 0);
}

/* E4M3 of magnitudes of at most 448.01. Adding a power of two whose ulp is the spacing of the format around a magnitude
 * rounds the magnitude to that spacing; the sum's low bits count the steps, and each further exponent has eight more.
 * The 7 * 8 that are added to the steps are for the exponent's bias. */
KILN_INLINE uint32_t kiln_e4m3_word(const float *values) {
#if KILN_E4M3_INSTRUCTION
    return kiln_sm89_cvt_e4m3x4_f32(values);
#else
    uint32_t numbers[4], sums[4];
    KILN_UNROLL
    for (int i = 0; i < 4; i++) {
        float magnitude = __builtin_fabsf(values[i]);
        float normal = magnitude > 0x1p-6f ? magnitude : 0x1p-6f; /* below 2^-6 the spacing is that above */
        uint32_t power = kiln_bits(normal) & 0x7f800000u;
        sums[i] = kiln_bits(KILN_FMA(kiln_float(power), 0x1.00007p20f, magnitude)) + (power >> 20);
        numbers[i] = kiln_bits(values[i]);
    }
    return (kiln_bytes_of(sums, 0) & 0x7f7f7f7fu) | (kiln_bytes_of(numbers, 3) & 0x80808080u);
#endif
}

#endif
