/* E4M3 codes as f32, for CPU kernels: those of float8.h, in vectors.
 *
 * Where the machine converts f16, a code's bits are put into one: sign, exponent and the first bits of the mantissa lie
 * in the same order, and the number is that of the code, subnormal ones too, times 2^-8. */
#ifndef KILN_KERNELS_COMMON_FLOAT8_CPU_H
#define KILN_KERNELS_COMMON_FLOAT8_CPU_H

#include "kernels/common/float8.h"
#include "kernels/common/vec.h"

#if defined(__AVX512BW__) && defined(__AVX512VL__)
enum { KILN_E4M3_AT_A_TIME = 32 };

/* The numbers of so many codes. */
KILN_INLINE void kiln_e4m3_numbers(float *to, const uint8_t *codes) {
    const __m256i loaded = _mm256_loadu_si256((const __m256i *)(const void *)codes), nan = _mm256_set1_epi8(0x7f);
    const __mmask32 nans = _mm256_cmpeq_epi8_mask(_mm256_and_si256(loaded, nan), nan);
    const __m512i bits = _mm512_slli_epi16(_mm512_cvtepi8_epi16(loaded), 7); /* but for copies of the sign */
    const __m512i numbers = _mm512_and_si512(bits, _mm512_set1_epi16((short)0xbf80));
    const __m512i signs = _mm512_and_si512(bits, _mm512_set1_epi16((short)0x8000));
    const __m512i halves = _mm512_mask_blend_epi16(nans, numbers, _mm512_or_si512(signs, _mm512_set1_epi16(0x7e00)));
    const __m512 scale = _mm512_set1_ps(256.0f);
    _mm512_storeu_ps(to, _mm512_mul_ps(_mm512_cvtph_ps(_mm512_castsi512_si256(halves)), scale));
    _mm512_storeu_ps(to + 16, _mm512_mul_ps(_mm512_cvtph_ps(_mm512_extracti64x4_epi64(halves, 1)), scale));
}
#elif defined(__AVX2__) && defined(__F16C__)
enum { KILN_E4M3_AT_A_TIME = 16 };

KILN_INLINE void kiln_e4m3_numbers(float *to, const uint8_t *codes) {
    const __m128i loaded = _mm_loadu_si128((const __m128i *)(const void *)codes), nan = _mm_set1_epi8(0x7f);
    const __m256i nans = _mm256_cvtepi8_epi16(_mm_cmpeq_epi8(_mm_and_si128(loaded, nan), nan));
    const __m256i bits = _mm256_slli_epi16(_mm256_cvtepi8_epi16(loaded), 7);
    const __m256i numbers = _mm256_and_si256(bits, _mm256_set1_epi16((short)0xbf80));
    const __m256i signs = _mm256_and_si256(bits, _mm256_set1_epi16((short)0x8000));
    const __m256i halves = _mm256_blendv_epi8(numbers, _mm256_or_si256(signs, _mm256_set1_epi16(0x7e00)), nans);
    const __m256 scale = _mm256_set1_ps(256.0f);
    _mm256_storeu_ps(to, _mm256_mul_ps(_mm256_cvtph_ps(_mm256_castsi256_si128(halves)), scale));
    _mm256_storeu_ps(to + 8, _mm256_mul_ps(_mm256_cvtph_ps(_mm256_extracti128_si256(halves, 1)), scale));
}
#else
enum { KILN_E4M3_AT_A_TIME = 1 };

KILN_INLINE void kiln_e4m3_numbers(float *to, const uint8_t *codes) {
    *to = kiln_e4m3_value(*codes);
}
#endif

KILN_INLINE void kiln_e4m3_load(float *to, const uint8_t *codes, size_t count) {
    const size_t whole = count - count % KILN_E4M3_AT_A_TIME;
    KILN_INDEPENDENT
    for (size_t i = 0; i < whole; i += KILN_E4M3_AT_A_TIME)
        kiln_e4m3_numbers(to + i, codes + i);
    for (size_t i = whole; i < count; i++)
        to[i] = kiln_e4m3_value(codes[i]);
}

#endif
