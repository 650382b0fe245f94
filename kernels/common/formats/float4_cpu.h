/* E2M1 codes as f32, for CPU kernels: those of float4.h, in vectors. Where the level has vector look-ups a number is
 * found in a table: AVX-512 of all 16; AVX2 of 8 magnitudes, or, as others do, of 16 bytes that are twice the numbers.
 */
#ifndef KILN_KERNELS_COMMON_FORMATS_FLOAT4_CPU_H
#define KILN_KERNELS_COMMON_FORMATS_FLOAT4_CPU_H

#include "kernels/common/formats/int4_cpu.h"
/* after it: */
#include "kernels/common/formats/float4.h"

/* ---- Words of eight codes, in the vectors of int4_cpu.h ---- */

/* What kiln_e2m1_byte's numbers are multiples of. */
#if defined(__AVX512F__)
#define KILN_E2M1_UNIT 1.0f
#else
#define KILN_E2M1_UNIT 0x1p25f /* twice a number is the highest of four bytes */
#endif

/* The bytes of a table of 16 at the places that the bytes of `places` give. */
#if !defined(__AVX512F__)
KILN_INLINE kiln_int4_vec kiln_bytes_at(const int8_t *table, kiln_int4_vec places) {
#if defined(__AVX2__) && defined(__FMA__)
    const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)table);
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(bytes), places);
#elif defined(__aarch64__)
    return vreinterpretq_s32_s8(vqtbl1q_s8(vld1q_s8(table), vreinterpretq_u8_s32(places)));
#elif defined(__SSE4_1__)
    return _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)table), places);
#else
    uint8_t at[sizeof places];
    memcpy(at, &places, sizeof at);
    for (size_t i = 0; i < sizeof at; i++)
        at[i] = (uint8_t)table[at[i]];
    memcpy(&places, at, sizeof at);
    return places;
#endif
}
#endif

/* The codes of the lower halves of all bytes, half 0, or of their upper halves, for kiln_e2m1_byte. */
KILN_INLINE kiln_int4_vec kiln_e2m1_half(kiln_int4_vec words, unsigned half) {
#if defined(__AVX512F__)
    return half ? _mm512_srli_epi32(words, 4) : words;
#else
    static const int8_t twice[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
#if defined(__AVX2__) && defined(__FMA__)
    const kiln_int4_vec codes = half ? _mm256_srli_epi32(words, 4) : words;
    return kiln_bytes_at(twice, _mm256_and_si256(codes, _mm256_set1_epi8(15)));
#elif defined(__aarch64__)
    const uint32x4_t codes = vreinterpretq_u32_s32(words), shifted = half ? vshrq_n_u32(codes, 4) : codes;
    return kiln_bytes_at(twice, vreinterpretq_s32_u32(vandq_u32(shifted, vdupq_n_u32(0x0f0f0f0fu))));
#else
    const kiln_int4_vec codes = half ? _mm_srli_epi32(words, 4) : words;
    return kiln_bytes_at(twice, _mm_and_si128(codes, _mm_set1_epi8(15)));
#endif
#endif
}

/* The numbers of one byte of each word, 0 to 3, in KILN_E2M1_UNIT. */
KILN_INLINE kiln_vec kiln_e2m1_byte(kiln_int4_vec codes, unsigned byte) {
#if defined(__AVX512F__)
    const kiln_vec table = _mm512_setr_ps(0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6);
    return _mm512_permutexvar_ps(_mm512_srli_epi32(codes, 8 * byte), table);
#elif defined(__AVX2__) && defined(__FMA__)
    const int top = (int)0xff000000u, left = (int)(24 - 8 * byte);
    return _mm256_cvtepi32_ps(_mm256_and_si256(_mm256_slli_epi32(codes, left), _mm256_set1_epi32(top)));
#elif defined(__aarch64__)
    const int32x4_t left = vshlq_s32(codes, vdupq_n_s32((int)(24 - 8 * byte)));
    return vcvtq_f32_s32(vandq_s32(left, vdupq_n_s32((int)0xff000000u)));
#else
    const __m128i left = _mm_slli_epi32(codes, (int)(24 - 8 * byte));
    return _mm_cvtepi32_ps(_mm_and_si128(left, _mm_set1_epi32((int)0xff000000u)));
#endif
}

/* ---- Rows of codes ---- */

/* The numbers of KILN_VEC bytes: *low has those of their lower halves. */
KILN_INLINE void kiln_e2m1_numbers(const uint8_t *bytes, kiln_vec *low, kiln_vec *high) {
#if defined(__AVX512F__)
    const kiln_vec table = _mm512_setr_ps(0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6);
    const __m512i words = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)bytes));
    *low = _mm512_permutexvar_ps(words, table);
    *high = _mm512_permutexvar_ps(_mm512_srli_epi32(words, 4), table);
#elif defined(__AVX2__) && defined(__FMA__)
    const kiln_vec table = _mm256_setr_ps(0, 0.5f, 1, 1.5f, 2, 3, 4, 6), sign = _mm256_set1_ps(-0.0f);
    const __m256i words = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)bytes));
    const __m256i halves = _mm256_srli_epi32(words, 4);
    const kiln_vec low_sign = _mm256_and_ps(_mm256_castsi256_ps(_mm256_slli_epi32(words, 28)), sign);
    const kiln_vec high_sign = _mm256_and_ps(_mm256_castsi256_ps(_mm256_slli_epi32(words, 24)), sign);
    *low = _mm256_xor_ps(_mm256_permutevar8x32_ps(table, words), low_sign);
    *high = _mm256_xor_ps(_mm256_permutevar8x32_ps(table, halves), high_sign);
#else
    const kiln_vec scale = KILN_VEC_SET(1 / KILN_E2M1_UNIT);
    uint32_t codes;
    memcpy(&codes, bytes, sizeof codes);
#if defined(__aarch64__)
    const uint32x4_t words = vmovl_u16(vget_low_u16(vmovl_u8(vcreate_u8(codes)))), sign = vdupq_n_u32(0x80000000u);
    const kiln_int4_vec each = vreinterpretq_s32_u32(words);
    const uint32x4_t low_bits = vreinterpretq_u32_f32(KILN_VEC_MUL(kiln_e2m1_byte(kiln_e2m1_half(each, 0), 0), scale));
    const uint32x4_t high_bits = vreinterpretq_u32_f32(KILN_VEC_MUL(kiln_e2m1_byte(kiln_e2m1_half(each, 1), 0), scale));
    *low = vreinterpretq_f32_u32(vorrq_u32(low_bits, vandq_u32(vshlq_n_u32(words, 28), sign)));
    *high = vreinterpretq_f32_u32(vorrq_u32(high_bits, vandq_u32(vshlq_n_u32(words, 24), sign)));
#else
    const __m128i zero = _mm_setzero_si128(), packed = _mm_cvtsi32_si128((int)codes);
    const __m128i words = _mm_unpacklo_epi16(_mm_unpacklo_epi8(packed, zero), zero);
    const kiln_vec sign = _mm_set1_ps(-0.0f);
    const kiln_vec low_sign = _mm_and_ps(_mm_castsi128_ps(_mm_slli_epi32(words, 28)), sign);
    const kiln_vec high_sign = _mm_and_ps(_mm_castsi128_ps(_mm_slli_epi32(words, 24)), sign);
    *low = _mm_or_ps(KILN_VEC_MUL(kiln_e2m1_byte(kiln_e2m1_half(words, 0), 0), scale), low_sign);
    *high = _mm_or_ps(KILN_VEC_MUL(kiln_e2m1_byte(kiln_e2m1_half(words, 1), 0), scale), high_sign);
#endif
#endif
}

/* The numbers of count codes, two of a byte, in their order. */
KILN_INLINE void kiln_e2m1_load(float *to, const uint8_t *codes, size_t count) {
    size_t i = 0;
    for (; i + 2 * KILN_VEC <= count; i += 2 * KILN_VEC) {
        kiln_vec low, high;
        kiln_e2m1_numbers(codes + i / 2, &low, &high);
        KILN_VEC_STORE(to + i, KILN_VEC_ZIP_LOW(low, high));
        KILN_VEC_STORE(to + i + KILN_VEC, KILN_VEC_ZIP_HIGH(low, high));
    }
    for (; i < count; i++)
        to[i] = kiln_e2m1_value(codes[i / 2] >> i % 2 * 4 & 15);
}

#endif
