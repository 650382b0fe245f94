/* Integers of 4 bits, two's complement, as f32: eight of a word of 32 bits, the first in its lowest bits, in vectors of
 * as many words as a vector of f32 has lanes. */
#ifndef KILN_KERNELS_COMMON_FORMATS_INT4_CPU_H
#define KILN_KERNELS_COMMON_FORMATS_INT4_CPU_H

#include "kernels/common/vec.h"

enum {
    KILN_INT4_WORD = 8,                        /* integers */
    KILN_INT4_VEC = KILN_VEC * KILN_INT4_WORD, /* of a vector of words */
    KILN_INT4_VEC_BYTES = KILN_INT4_VEC / 2
};

#if defined(__AVX512F__)
typedef __m512i kiln_int4_vec;
#elif defined(__AVX2__) && defined(__FMA__)
typedef __m256i kiln_int4_vec;
#elif defined(__aarch64__)
typedef int32x4_t kiln_int4_vec;
#else
typedef __m128i kiln_int4_vec;
#endif

/* A vector of words from bytes on. */
KILN_INLINE kiln_int4_vec kiln_int4_load(const uint8_t *bytes) {
    kiln_int4_vec words;
    memcpy(&words, bytes, sizeof words);
    return words;
}

/* The integers of place `place`, 0 to 7, of each word. */
KILN_INLINE kiln_vec kiln_int4_at(kiln_int4_vec words, unsigned place) {
#if defined(__AVX512F__)
    const kiln_vec integers = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1);
    return _mm512_permutexvar_ps(_mm512_srli_epi32(words, 4 * place), integers);
#elif defined(__AVX2__) && defined(__FMA__)
    return _mm256_cvtepi32_ps(_mm256_srai_epi32(_mm256_slli_epi32(words, (int)(28 - 4 * place)), 28));
#elif defined(__aarch64__)
    return vcvtq_f32_s32(vshrq_n_s32(vshlq_s32(words, vdupq_n_s32((int)(28 - 4 * place))), 28));
#else
    return _mm_cvtepi32_ps(_mm_srai_epi32(_mm_slli_epi32(words, (int)(28 - 4 * place)), 28));
#endif
}

/* The same where they lie, which takes fewer instructions that few ports do: kiln_int4_unit(place) times the integers
 * of words that kiln_int4_offset has made. */
#if defined(__AVX512F__)
enum { KILN_INT4_UNITS = 1 }; /* all are 1: a look-up takes integers as they are */
#else
enum { KILN_INT4_UNITS = 16 };
#endif

KILN_INLINE float kiln_int4_unit(unsigned place) {
    return KILN_INT4_UNITS > 1 ? (float)(1u << 4 * place) : 1;
}

/* Adds 8 to all integers, which kiln_int4_unit_at subtracts. */
KILN_INLINE kiln_int4_vec kiln_int4_offset(kiln_int4_vec words) {
#if defined(__AVX512F__)
    return words;
#elif defined(__AVX2__) && defined(__FMA__)
    return _mm256_xor_si256(words, _mm256_set1_epi32((int)0x88888888u));
#elif defined(__aarch64__)
    return veorq_s32(words, vdupq_n_s32((int)0x88888888u));
#else
    return _mm_xor_si128(words, _mm_set1_epi32((int)0x88888888u));
#endif
}

KILN_INLINE kiln_vec kiln_int4_unit_at(kiln_int4_vec words, unsigned place) {
#if defined(__AVX512F__)
    return kiln_int4_at(words, place);
#else
    const int mask = (int)(15u << 4 * place), eight = (int)(8u << 4 * place);
#if defined(__AVX2__) && defined(__FMA__)
    const __m256i shifted = _mm256_and_si256(words, _mm256_set1_epi32(mask));
    return _mm256_cvtepi32_ps(_mm256_sub_epi32(shifted, _mm256_set1_epi32(eight)));
#elif defined(__aarch64__)
    return vcvtq_f32_s32(vsubq_s32(vandq_s32(words, vdupq_n_s32(mask)), vdupq_n_s32(eight)));
#else
    return _mm_cvtepi32_ps(_mm_sub_epi32(_mm_and_si128(words, _mm_set1_epi32(mask)), _mm_set1_epi32(eight)));
#endif
#endif
}

#endif
