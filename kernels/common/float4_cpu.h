/* E2M1 codes as f32, for CPU kernels: those of float4.h, in vectors. Where the level has vector look-ups a number is
 * found in a table: AVX2 of 8 magnitudes, AVX-512 of all 16. */
#ifndef KILN_KERNELS_COMMON_FLOAT4_CPU_H
#define KILN_KERNELS_COMMON_FLOAT4_CPU_H

#include "kernels/common/vec.h"
/* after it: */
#include "kernels/common/float4.h"

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
    float pairs[KILN_VEC][2], first[KILN_VEC], second[KILN_VEC];
    for (size_t i = 0; i < KILN_VEC; i++) {
        kiln_e2m1_pair_values(pairs[i], bytes[i]);
        first[i] = pairs[i][0];
        second[i] = pairs[i][1];
    }
    *low = KILN_VEC_LOAD(first);
    *high = KILN_VEC_LOAD(second);
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
