/* Codes of E4M3 as elements of 16 bits, for attention on a cache of codes by matrix instructions.
 *
 * sm_90 and later convert two codes to f16 by an instruction, which is exact, and so all other factors are f16 too,
 * also in a call of bf16: queries after a multiplication by a power of two, weights times 2^15, so that none that
 * counts is subnormal. Without that instruction (PTX 8.1 has it for sm_89, but drivers of CUDA 12.0 do not take such
 * texts) codes become elements of the call's precision: a code's exponent and fraction, moved to where an element has
 * its own, are its number times a power of two, subnormal ones too; a multiplication makes it the number.
 *
 * What one word of shared memory has for a lane are 4 codes, as ldmatrix gives them, which is made for elements of two
 * bytes. Which elements of a head stand beside each other in a product does not matter as long as queries stand alike,
 * nor in which order the results' elements lie in registers:
 *
 *   keys     a lane's word is elements 4 t to 4 t + 3 of 16 of its key's, t = lane % 4. A fragment wants elements 2 t,
 *            2 t + 1, 2 t + 8 and 2 t + 9: it gets these four, in an order that is the queries' too.
 *   values   the transposed word is two keys' codes of two neighbouring elements: they are the fragments of two
 * products, of even elements and of odd ones. */
#ifndef KILN_KERNELS_COMMON_ATTENTION_ATTENTION_SM80_CODES_H
#define KILN_KERNELS_COMMON_ATTENTION_ATTENTION_SM80_CODES_H

#include "kernels/arch/sm80.h"
#include "kernels/common/device.h"
#if __CUDA_ARCH__ >= 900
#include "kernels/arch/sm89.h"
#endif

#ifdef KILN_PART_bf16
enum : uint32_t { CODE_SHIFT = 4 };
#else
enum : uint32_t { CODE_SHIFT = 7 };
#endif

/* Whether products of codes are of f16 in each call, and weights, then, times which power of two. */
enum : uint32_t {
#if __CUDA_ARCH__ >= 900
    CODES_ARE_F16 = 1,
#else
    CODES_ARE_F16 = 0,
#endif
    CODES_WEIGHT_LOG2 = 15
};

/* The numbers of two codes, of which the magnitudes are where elements have them, and bits 7 say which are NaN: that
 * bit is in f16 the last that its exponent lacks, in bf16 the first of eight. */
KILN_INLINE uint32_t pair_of_codes(uint32_t magnitudes, uint32_t nans, uint32_t signs) {
#ifdef KILN_PART_bf16
    uint32_t pair = magnitudes | (nans & 0x00800080u) * 0xff | (signs & 0x80008000u);
    return kiln_sm80_fma_bf16x2(pair, 0x7b807b80u, 0x80008000u); /* times 2^120; -0 is added */
#else
    uint32_t pair = magnitudes | (nans & 0x00800080u) << CODE_SHIFT | (signs & 0x80008000u);
    return kiln_sm80_mul_f16x2(pair, 0x5c005c00u); /* times 2^8 */
#endif
}

/* The numbers of 4 codes: pairs[0] of bytes 0 and 2, pairs[1] of bytes 1 and 3. */
KILN_INLINE void pairs_of_codes(uint32_t *pairs, uint32_t codes) {
    uint32_t magnitudes = codes & 0x7f7f7f7fu, nans = magnitudes + 0x01010101u;
    pairs[0] = pair_of_codes((magnitudes & 0x00ff00ffu) << CODE_SHIFT, nans, codes << 8);
    pairs[1] = pair_of_codes((magnitudes & 0xff00ff00u) >> (8 - CODE_SHIFT), nans >> 8, codes);
}

/* The numbers of 8 codes in memory, 8-byte aligned, where they are present; else zeros. */
KILN_INLINE kiln_vector vector_of_codes(const void *codes, bool present) {
    uint2 words = make_uint2(0, 0);
    kiln_vector vector;
    if (present) words = *(const uint2 *)codes;
    KILN_UNROLL
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t pairs[2];
        pairs_of_codes(pairs, i ? words.y : words.x);
        vector.words[2 * i] = __byte_perm(pairs[0], pairs[1], 0x5410);
        vector.words[2 * i + 1] = __byte_perm(pairs[0], pairs[1], 0x7632);
    }
    return vector;
}

/* Four words of codes as fragments of a product's second factor, two registers each: of four times 8 keys, and of 16
 * elements of 16 keys' values, two times two. */
KILN_INLINE void key_fragments(uint32_t *fragments, const uint32_t *words) {
    KILN_UNROLL
    for (uint32_t i = 0; i < 4; i++) {
#if __CUDA_ARCH__ >= 900
        kiln_sm89_cvt_f16x2_e4m3x4(fragments + 2 * i, words[i]);
#else
        pairs_of_codes(fragments + 2 * i, words[i]);
#endif
    }
}
KILN_INLINE void value_fragments(uint32_t *fragments, const uint32_t *words) {
    KILN_UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t pairs[2];
#if __CUDA_ARCH__ >= 900
        kiln_sm89_cvt_f16x2_e4m3x4(pairs, __byte_perm(words[i], 0, 0x3120));
#else
        pairs_of_codes(pairs, words[i]);
#endif
        fragments[i / 2 * 4 + i % 2] = pairs[0];
        fragments[i / 2 * 4 + i % 2 + 2] = pairs[1];
    }
}

/* 16 elements of a query as its part of two fragments; words are elements 4 t to 4 t + 3. */
KILN_INLINE void query_for_codes(uint32_t *low, uint32_t *high, uint2 words) {
#if __CUDA_ARCH__ >= 900
    *low = words.x;
    *high = words.y;
#else
    *low = __byte_perm(words.x, words.y, 0x5410);
    *high = __byte_perm(words.x, words.y, 0x7632);
#endif
}

#endif
