/* Codes of 8 and 4 bits as f16 on AMD's devices, which holds each such number exactly, two at a time, and their
 * products with a factor in f32. The results are those of small_float_gpu.h, but that NaN has a sign and other bits.
 *
 * The numbers of a word's codes are in pairs: a number is beside the one that is half of the codes further. */
#ifndef KILN_KERNELS_COMMON_FORMATS_CODE_HALVES_H
#define KILN_KERNELS_COMMON_FORMATS_CODE_HALVES_H

#include "kernels/arch/gfx.h"
#include "kernels/common/values.h"

typedef _Float16 kiln_halves __attribute__((ext_vector_type(2)));
typedef int16_t kiln_shorts __attribute__((ext_vector_type(2)));

KILN_INLINE kiln_halves kiln_halves_of(uint32_t word) {
    return __builtin_bit_cast(kiln_halves, word);
}

/* Two codes of E4M3 in the upper bytes of halves, whatever the lower bytes are. Moved to the places of f16's exponent
 * and fraction they are the numbers over 256; the code of NaN, plus the lowest place, carries into the bit above, which
 * makes it a NaN. */
KILN_INLINE kiln_halves kiln_e4m3_pair(uint32_t word) {
    const uint32_t moved =
        __builtin_bit_cast(uint32_t, __builtin_bit_cast(kiln_shorts, word) >> (kiln_shorts){1, 1}) & 0xbf80bf80u;
    const uint32_t carried =
        __builtin_bit_cast(uint32_t, __builtin_bit_cast(kiln_shorts, moved) + (kiln_shorts){0x80, 0x80});
    return kiln_halves_of((carried & 0x40004000u) | moved) * (kiln_halves){256, 256};
}

/* The numbers of a word's four codes of E4M3. */
KILN_INLINE void kiln_e4m3_halves(kiln_halves *pairs, uint32_t word) {
    pairs[0] = kiln_e4m3_pair(word << 8);
    pairs[1] = kiln_e4m3_pair(word);
}

/* The same of int8: 1024 has the ulp of an integer. */
KILN_INLINE void kiln_int8_halves(kiln_halves *pairs, uint32_t word) {
    const uint32_t biased = word ^ 0x80808080u;
    const kiln_halves bias = {1024 + 128, 1024 + 128};
    pairs[0] = kiln_halves_of((biased & 0x00ff00ffu) | 0x64006400u) - bias;
    pairs[1] = kiln_halves_of(__builtin_amdgcn_perm(0x64646464u, biased, 0x04030401u)) - bias;
}

/* The numbers of four or eight integers of 4 bits. Those at bit 4 of a half are sixteenfold beside 1024. */
KILN_INLINE void kiln_int4_halves(kiln_halves *pairs, uint32_t word, int count) {
    const kiln_halves bias = {1024 + 8, 1024 + 8}, sixteenth = {(_Float16)0.0625f, (_Float16)0.0625f};
    uint32_t biased = word ^ (count == 4 ? 0x8888u : 0x88888888u);
    if (count == 4) biased |= biased << 8;
    KILN_UNROLL
    for (int i = 0; i < count / 2; i += 2) {
        pairs[i] = kiln_halves_of((biased & 0x000f000fu) | 0x64006400u) - bias;
        pairs[i + 1] = __builtin_elementwise_fma(kiln_halves_of((biased & 0x00f000f0u) | 0x64006400u), sixteenth,
                                                 (kiln_halves){-(64 + 8), -(64 + 8)});
        biased >>= 8;
    }
}

/* The upper bytes of four numbers of E2M1 as f16, whose lower bytes are 0. A code is the low half of a byte. */
KILN_INLINE uint32_t kiln_e2m1_bytes(uint32_t codes) {
    return (codes << 4 & 0x80808080u) | __builtin_amdgcn_perm(0x46444240u, 0x3e3c3800u, codes & 0x07070707u);
}

/* The numbers of four or eight codes of E2M1 times a number of E4M3, which are exact too. */
KILN_INLINE void kiln_e2m1_halves(kiln_halves *pairs, uint32_t word, int count, kiln_halves factor) {
    enum { BYTES_0_1 = 0x010c000c, BYTES_2_3 = 0x030c020c, BYTES_0_2 = 0x020c000c };
    if (count == 4) {
        const uint32_t bytes = kiln_e2m1_bytes(word << 12 | word); /* of the codes 0, 2, 1 and 3 */
        pairs[0] = kiln_halves_of(__builtin_amdgcn_perm(0, bytes, BYTES_0_1)) * factor;
        pairs[1] = kiln_halves_of(__builtin_amdgcn_perm(0, bytes, BYTES_2_3)) * factor;
        return;
    }
    KILN_UNROLL
    for (int i = 0; i < 2; i++) {
        const uint32_t bytes = kiln_e2m1_bytes(word >> 4 * i); /* of every other code */
        pairs[i] = kiln_halves_of(__builtin_amdgcn_perm(0, bytes, BYTES_0_2)) * factor;
        pairs[i + 2] = kiln_halves_of(bytes & 0xff00ff00u) * factor;
    }
}

/* A number of a pair times factor, plus addend. */
KILN_INLINE float kiln_half_product(kiln_halves pair, int high, float factor, float addend) {
#if defined(__gfx9_generic__)
    return KILN_FMA((float)(high ? pair.y : pair.x), factor, addend);
#else
    const uint32_t word = __builtin_bit_cast(uint32_t, pair);
    return high ? kiln_gfx_mix_high(word, factor, addend) : kiln_gfx_mix_low(word, factor, addend);
#endif
}

/* A vector of numbers times factor, plus addend; a word has `count` codes. An addend of -0 leaves each product as it
 * is. */
KILN_INLINE kiln_vector kiln_halves_products(const kiln_halves *pairs, int count, float factor, float addend) {
    const int apart = count / 2;
#if defined(KILN_PART_f16) && !defined(__gfx9_generic__)
    kiln_vector vector;
    KILN_UNROLL
    for (int i = 0; i < KILN_VECTOR; i += 2) {
        const kiln_halves *two = &pairs[i / count * apart + i % apart];
        const uint32_t first = __builtin_bit_cast(uint32_t, two[0]), second = __builtin_bit_cast(uint32_t, two[1]);
        vector.words[i / 2] = i / apart % 2 ? kiln_gfx_mix_highs(first, second, factor, addend)
                                            : kiln_gfx_mix_lows(first, second, factor, addend);
    }
    return vector;
#else
    float values[KILN_VECTOR];
    KILN_UNROLL
    for (int i = 0; i < KILN_VECTOR; i++)
        values[i] = kiln_half_product(pairs[i / count * apart + i % apart], i / apart % 2, factor, addend);
    return kiln_vector_of(values);
#endif
}

#endif
