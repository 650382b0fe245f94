/* The numbers of 16 bits that the matrix units of AMD chips take of integers of 4 bits: the integers themselves, or
 * weights. */
#ifndef KILN_KERNELS_GEMM_W4A16_AMD_NUMBERS_H
#define KILN_KERNELS_GEMM_W4A16_AMD_NUMBERS_H

#include "kernels/common/math/two.h"
#include "kernels/gemm_w4a16/gemm_w4a16_portable.h"

/* Elements times factors, each rounded once: those of f16 two at once. */
KILN_INLINE kiln_vector times(kiln_vector vector, kiln_vector factors) {
#if defined(KILN_PART_f16)
    KILN_UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        const kiln_pair pair = __builtin_bit_cast(kiln_pair, vector.words[i]);
        vector.words[i] =
            __builtin_bit_cast(uint32_t, (kiln_pair)(pair * __builtin_bit_cast(kiln_pair, factors.words[i])));
    }
    return vector;
#else
    float values[KILN_VECTOR], by[KILN_VECTOR];
    kiln_vector_values(values, vector);
    kiln_vector_values(by, factors);
    KILN_UNROLL
    for (uint32_t i = 0; i < KILN_VECTOR; i++)
        values[i] *= by[i];
    return kiln_vector_of(values);
#endif
}

/* The integers of a word, all greater by 8, of which none is negative. */
KILN_INLINE uint32_t biased_of(uint32_t codes) {
    return codes ^ 0x88888888u;
}

/* Eight numbers, twice. */
struct two_numbers {
    kiln_vector of[2];
};

/* ---- f16: two at once, from the bits of 1024 + q + 8 and 1024 + 16 (q + 8) ---- */

#if defined(KILN_PART_f16)
enum : uint32_t { ONES = 0x3c003c00u };

/* The integers of a byte, of which all are greater by 8, from it in both halves of a word. */
KILN_INLINE kiln_pair integers_of_byte(uint32_t twice) {
    const kiln_pair units = {(_Float16)1.0f, (_Float16)0.0625f}, origin = {(_Float16)-1032.0f, (_Float16)-72.0f};
    uint32_t thousands = 0x64006400u;
    asm("" : "+v"(thousands)); /* in a vector register, where one instruction masks bits and adds these */
    const kiln_pair bits = __builtin_bit_cast(kiln_pair, (twice & 0x00f0000fu) | thousands);
    return __builtin_elementwise_fma(bits, units, origin);
}

enum : uint32_t { FIRST_TWICE = 0x0c000c00u, ONE_FURTHER = 0x10001u }; /* which bytes of words make one */

/* The integers 2 i and 2 i + 1 of a word. */
KILN_INLINE kiln_pair integers_of(uint32_t biased, uint32_t i) {
    return integers_of_byte(__builtin_amdgcn_perm(biased, biased, FIRST_TWICE + i * ONE_FURTHER));
}

/* Eight integers. */
enum : uint32_t { NUMBERS_MORE = 0 };
KILN_INLINE kiln_vector numbers_of(uint32_t codes) {
    kiln_vector vector;
    KILN_UNROLL
    for (uint32_t i = 0; i < 4; i++)
        vector.words[i] = __builtin_bit_cast(uint32_t, integers_of(biased_of(codes), i));
    return vector;
}

/* Those of two words, the second's first where they are `turned`; each lane selects bytes of both words. */
KILN_INLINE two_numbers numbers_of_two(uint32_t biased, uint32_t other, bool turned) {
    two_numbers both;
    KILN_UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t bytes = FIRST_TWICE + (i + (turned ? 4 : 0)) * ONE_FURTHER;
        const kiln_pair first = integers_of_byte(__builtin_amdgcn_perm(other, biased, bytes));
        const kiln_pair second = integers_of_byte(__builtin_amdgcn_perm(biased, other, bytes));
        both.of[0].words[i] = __builtin_bit_cast(uint32_t, first);
        both.of[1].words[i] = __builtin_bit_cast(uint32_t, second);
    }
    return both;
}

/* Eight integers times a scale plus a zero, each rounded once. */
KILN_INLINE kiln_vector weights_of(uint32_t codes, uint32_t scale, uint32_t zero) {
    const kiln_pair scales = __builtin_bit_cast(kiln_pair, scale * 0x10001u);
    const kiln_pair zeros = __builtin_bit_cast(kiln_pair, zero * 0x10001u);
    kiln_vector vector;
    KILN_UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        const kiln_pair weights = __builtin_elementwise_fma(integers_of(biased_of(codes), i), scales, zeros);
        vector.words[i] = __builtin_bit_cast(uint32_t, weights);
    }
    return vector;
}

/* ---- bf16: by way of f32 ---- */

#else
enum : uint32_t { ONES = 0x3f803f80u };

/* The integers of a word, of even and odd places. */
typedef struct integer_bytes {
    uint32_t even, odd;
} integer_bytes;

KILN_INLINE integer_bytes bytes_of(uint32_t codes) {
    const uint32_t biased = biased_of(codes);
    integer_bytes bytes = {biased & 0x0f0f0f0fu, biased >> 4 & 0x0f0f0f0fu};
    asm("" : "+v"(bytes.even), "+v"(bytes.odd)); /* else bytes are not converted where they are, */
    return bytes;
}

/* The integers 2 i and 2 i + 1. */
KILN_INLINE kiln_two integers_of(integer_bytes bytes, uint32_t i) {
    float middle = 8.0f;
    asm("" : "+v"(middle)); /* and integers subtracted before */
    return kiln_two_of((float)(bytes.even >> 8 * i & 255u), (float)(bytes.odd >> 8 * i & 255u)) -
           kiln_two_of(middle, middle);
}

/* Eight integers, each greater by NUMBERS_MORE: 16 + q + 8 by its bits, of which these are four. */
enum : uint32_t { NUMBERS_MORE = 24 };
KILN_INLINE kiln_vector numbers_of_biased(uint32_t biased) {
    const uint32_t even = biased << 3, odd = biased >> 1;
    uint32_t sixteens = 0x41804180u;
    asm("" : "+v"(sixteens)); /* in a vector register, where one instruction masks bits and adds these */
    kiln_vector vector;
    KILN_UNROLL
    for (uint32_t i = 0; i < 4; i++)
        vector.words[i] = (__builtin_amdgcn_perm(odd, even, 0x0c040c00u + i * 0x10001u) & 0x00780078u) | sixteens;
    return vector;
}

KILN_INLINE kiln_vector numbers_of(uint32_t codes) {
    return numbers_of_biased(biased_of(codes));
}

/* Those of two words, the second's first where they are `turned`. */
KILN_INLINE two_numbers numbers_of_two(uint32_t biased, uint32_t other, bool turned) {
    return {{numbers_of_biased(turned ? other : biased), numbers_of_biased(turned ? biased : other)}};
}

/* Eight integers times a scale plus a zero, each rounded once. */
KILN_INLINE kiln_vector weights_of(uint32_t codes, uint32_t scale, uint32_t zero) {
    kiln_two group = kiln_two_of(kiln_float(scale << 16), kiln_float(zero << 16));
    asm("" : "+v"(group)); /* one pair of registers, else each is half of one that may be on its way */
    const kiln_two scales = kiln_two_of(group.x, group.x), zeros = kiln_two_of(group.y, group.y);
    const integer_bytes bytes = bytes_of(codes);
    kiln_vector vector;
    KILN_UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        const kiln_two weights = __builtin_elementwise_fma(integers_of(bytes, i), scales, zeros);
        const float values[] = {weights.x, weights.y};
        vector.words[i] = kiln_pair_of(values);
    }
    return vector;
}
#endif

#endif
