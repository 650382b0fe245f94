/* E4M3 codes as f32, for CPU kernels: those of float8.h, in vectors.
 *
 * Where the machine converts f16, a code's bits are put into one: sign, exponent and the first bits of the mantissa lie
 * in the same order, and the number is that of the code, subnormal ones too, times 2^-8. NaN's bits become those of a
 * NaN by one more bit of the exponent. */
#ifndef KILN_KERNELS_COMMON_FORMATS_FLOAT8_CPU_H
#define KILN_KERNELS_COMMON_FORMATS_FLOAT8_CPU_H

#include "kernels/common/formats/float8.h"
#include "kernels/common/vec.h"

/* Has an array read from memory. */
#define KILN_FROM_MEMORY(array) __asm__("" : "+m"(array))

/* Vectors of numbers of codes that lie one behind the other, in a unit. multiplied: their halves are converted from
 * memory, since in registers they are moved by a unit that multiplies as well: the upper one down, and each to the
 * width of its numbers. Numbers that are stored are converted in registers, since each store takes its turn. */
#if defined(__AVX512BW__) && defined(__AVX512VL__)
#define KILN_E4M3_UNIT 0x1p-8f
enum { KILN_E4M3_VECS = 2, KILN_E4M3_PARTS = 2 };

/* From codes as integers times 128: bit 14 is the sign's as well. */
KILN_INLINE void kiln_e4m3_widen(kiln_vec *to, __m512i bits, bool multiplied) {
    const __m512i next = _mm512_add_epi16(bits, _mm512_set1_epi16(0x80)); /* NaN's alone has another */
    const __m512i both = _mm512_ternarylogic_epi32(bits, next, _mm512_set1_epi16(0x4000), 0x78); /* a ^ (b & c) */
    _Alignas(64) __m256i halves[2] = {_mm512_castsi512_si256(both), _mm512_extracti64x4_epi64(both, 1)};
    if (multiplied) {
        _mm512_store_si512(halves, both);
        KILN_FROM_MEMORY(halves);
    }
    to[0] = _mm512_cvtph_ps(halves[0]);
    to[1] = _mm512_cvtph_ps(halves[1]);
}

KILN_INLINE void kiln_e4m3_convert(kiln_vec *to, const uint8_t *codes, bool multiplied) {
    const __m512i wide = _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)codes));
    kiln_e4m3_widen(to, _mm512_slli_epi16(wide, 7), multiplied);
}

KILN_INLINE void kiln_e4m3_part(kiln_vec *to, const uint8_t *codes, size_t part) {
    const __m512i factors = _mm512_set1_epi16(part ? (short)0x8000 : 0x80);
    kiln_e4m3_widen(to, _mm512_maddubs_epi16(factors, _mm512_loadu_si512(codes)), true);
}
#elif defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#define KILN_E4M3_UNIT 0x1p-8f
enum { KILN_E4M3_VECS = 2 };

KILN_INLINE void kiln_e4m3_convert(kiln_vec *to, const uint8_t *codes, bool multiplied) {
    const __m256i wide = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)codes));
    const __m256i bits = _mm256_slli_epi16(wide, 7);                      /* whose bit 14 is the sign's as well */
    const __m256i next = _mm256_add_epi16(bits, _mm256_set1_epi16(0x80)); /* NaN's alone has another */
    const __m256i both = _mm256_xor_si256(bits, _mm256_and_si256(next, _mm256_set1_epi16(0x4000)));
    _Alignas(32) __m128i halves[2] = {_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1)};
    if (multiplied) {
        _mm256_store_si256((__m256i *)(void *)halves, both);
        KILN_FROM_MEMORY(halves);
    }
    to[0] = _mm256_cvtph_ps(halves[0]);
    to[1] = _mm256_cvtph_ps(halves[1]);
}
#elif defined(__aarch64__)
#define KILN_E4M3_UNIT 0x1p-8f
enum { KILN_E4M3_VECS = 2 };

KILN_INLINE void kiln_e4m3_convert(kiln_vec *to, const uint8_t *codes, bool multiplied) {
    (void)multiplied;
    const int16x8_t wide = vshlq_n_s16(vmovl_s8(vreinterpret_s8_u8(vld1_u8(codes))), 7);
    const uint16x8_t bits = vandq_u16(vreinterpretq_u16_s16(wide), vdupq_n_u16(0xbf80));
    const uint16x8_t next = vaddq_u16(bits, vdupq_n_u16(0x80)); /* NaN's alone has bit 14 */
    const float16x8_t halves = vreinterpretq_f16_u16(vorrq_u16(bits, vandq_u16(next, vdupq_n_u16(0x4000))));
    to[0] = vcvt_f32_f16(vget_low_f16(halves));
    to[1] = vcvt_high_f32_f16(halves);
}
#elif defined(__SSE4_1__)
#define KILN_E4M3_UNIT 1.0f
enum { KILN_E4M3_VECS = 4 };

/* In bf16, whose upper byte follows from the upper half of a code and whose lower byte has the lower half's bits; both
 * are found in tables for subnormal numbers. */
KILN_INLINE void kiln_e4m3_convert(kiln_vec *to, const uint8_t *codes, bool multiplied) {
    (void)multiplied;
    const __m128i uppers = _mm_setr_epi8(0x3c, 0x3d, 0x3e, 0x3f, 0x40, 0x41, 0x42, 0x43, (char)0xbc, (char)0xbd,
                                         (char)0xbe, (char)0xbf, (char)0xc0, (char)0xc1, (char)0xc2, (char)0xc3);
    const __m128i least_uppers = _mm_setr_epi8(0, 0x3b, 0x3b, 0x3b, 0x3c, 0x3c, 0x3c, 0x3c, 0, 0, 0, 0, 0, 0, 0, 0);
    const __m128i least_lowers =
        _mm_setr_epi8(0, 0, (char)0x80, (char)0xc0, 0, 0x20, 0x40, 0x60, 0, 0, 0, 0, 0, 0, 0, 0);
    const __m128i loaded = _mm_loadu_si128((const __m128i *)(const void *)codes), zero = _mm_setzero_si128();
    const __m128i magnitudes = _mm_and_si128(loaded, _mm_set1_epi8(0x7f)), signs = _mm_xor_si128(loaded, magnitudes);
    const __m128i least = _mm_cmpgt_epi8(_mm_set1_epi8(8), magnitudes);
    const __m128i nans = _mm_cmpeq_epi8(magnitudes, _mm_set1_epi8(0x7f));
    const __m128i places = _mm_and_si128(_mm_srli_epi16(loaded, 4), _mm_set1_epi8(15));
    const __m128i shifted = _mm_and_si128(_mm_slli_epi16(loaded, 4), _mm_set1_epi8((char)0xf0));
    const __m128i least_upper = _mm_or_si128(_mm_shuffle_epi8(least_uppers, magnitudes), signs);
    __m128i upper = _mm_shuffle_epi8(uppers, places);
    upper = _mm_or_si128(_mm_andnot_si128(least, upper), _mm_and_si128(least, least_upper));
    upper = _mm_or_si128(upper, _mm_and_si128(nans, _mm_set1_epi8(0x7f)));
    __m128i lower = _mm_and_si128(least, _mm_shuffle_epi8(least_lowers, magnitudes));
    lower = _mm_or_si128(_mm_andnot_si128(least, shifted), lower);
    lower = _mm_andnot_si128(_mm_and_si128(nans, _mm_set1_epi8(0x3f)), lower);
    const __m128i low = _mm_unpacklo_epi8(lower, upper), high = _mm_unpackhi_epi8(lower, upper);
    to[0] = _mm_castsi128_ps(_mm_unpacklo_epi16(zero, low));
    to[1] = _mm_castsi128_ps(_mm_unpackhi_epi16(zero, low));
    to[2] = _mm_castsi128_ps(_mm_unpacklo_epi16(zero, high));
    to[3] = _mm_castsi128_ps(_mm_unpackhi_epi16(zero, high));
}
#else
#define KILN_E4M3_UNIT 1.0f
enum { KILN_E4M3_VECS = 1 };

KILN_INLINE void kiln_e4m3_convert(kiln_vec *to, const uint8_t *codes, bool multiplied) {
    (void)multiplied;
    float numbers[KILN_VEC];
    for (size_t i = 0; i < KILN_VEC; i++)
        numbers[i] = kiln_e4m3_value(codes[i]);
    to[0] = KILN_VEC_LOAD(numbers);
}
#endif

enum { KILN_E4M3_AT_A_TIME = KILN_E4M3_VECS * KILN_VEC };

/* For products. */
KILN_INLINE void kiln_e4m3_vecs(kiln_vec *to, const uint8_t *codes) {
    kiln_e4m3_convert(to, codes, true);
}

/* For products both of whose factors come so: KILN_E4M3_PARTS times as many codes, in as many parts. Where there are
 * two, those of even places and those of odd ones: a product of bytes widens and shifts every other code at once, in a
 * unit of which the processor has two. With AVX2 that gained nothing for one row and lost 7 % for four. */
#if !defined(__AVX512BW__) || !defined(__AVX512VL__)
enum { KILN_E4M3_PARTS = 1 };

KILN_INLINE void kiln_e4m3_part(kiln_vec *to, const uint8_t *codes, size_t part) {
    (void)part;
    kiln_e4m3_vecs(to, codes);
}
#endif

/* The numbers of so many codes. */
KILN_INLINE void kiln_e4m3_numbers(float *to, const uint8_t *codes) {
    kiln_vec numbers[KILN_E4M3_VECS];
    kiln_e4m3_convert(numbers, codes, false);
    KILN_UNROLL
    for (size_t v = 0; v < KILN_E4M3_VECS; v++)
        KILN_VEC_STORE(to + v * KILN_VEC, KILN_VEC_MUL(numbers[v], KILN_VEC_SET(1 / KILN_E4M3_UNIT)));
}

/* The numbers of count codes in KILN_E4M3_UNIT, and zeros behind them to the end of as many as are converted at a time.
 */
KILN_INLINE void kiln_e4m3_load_units(float *to, const uint8_t *codes, size_t count) {
    for (size_t i = 0; i < count; i += KILN_E4M3_AT_A_TIME) {
        uint8_t last[KILN_E4M3_AT_A_TIME] = {0};
        kiln_vec numbers[KILN_E4M3_VECS];
        const bool whole = count - i >= KILN_E4M3_AT_A_TIME;
        if (!whole) memcpy(last, codes + i, count - i);
        kiln_e4m3_convert(numbers, whole ? codes + i : last, false);
        KILN_UNROLL
        for (size_t v = 0; v < KILN_E4M3_VECS; v++)
            KILN_VEC_STORE(to + i + v * KILN_VEC, numbers[v]);
    }
}

KILN_INLINE void kiln_e4m3_load(float *to, const uint8_t *codes, size_t count) {
    const size_t whole = count - count % KILN_E4M3_AT_A_TIME;
    KILN_INDEPENDENT
    for (size_t i = 0; i < whole; i += KILN_E4M3_AT_A_TIME)
        kiln_e4m3_numbers(to + i, codes + i);
    for (size_t i = whole; i < count; i++)
        to[i] = kiln_e4m3_value(codes[i]);
}

#endif
