/* The longest vector of f32 that a CPU level has, for kernels whose loops the compiler does not vectorise well:
 * products of matrices. Included after cpu.h. */
#ifndef KILN_KERNELS_COMMON_VEC_H
#define KILN_KERNELS_COMMON_VEC_H

#include "kernels/common/cpu.h"
#if defined(__AVX2__)
#include "kernels/arch/x86.h"
#elif defined(__SSE4_1__)
#include <smmintrin.h>
#endif

#if defined(__AVX512F__)
typedef __m512 kiln_vec;
enum { KILN_VEC = 16, KILN_VEC_REGISTERS = 32 };
#define KILN_VEC_ZERO()       _mm512_setzero_ps()
#define KILN_VEC_SET(value)   _mm512_set1_ps(value)
#define KILN_VEC_LOAD(p)      _mm512_loadu_ps(p)
#define KILN_VEC_STORE(p, v)  _mm512_storeu_ps(p, v)
#define KILN_VEC_FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#define KILN_VEC_ADD(a, b)    _mm512_add_ps(a, b)
#define KILN_VEC_MUL(a, b)    _mm512_mul_ps(a, b)
#define KILN_VEC_MIN(a, b)    _mm512_min_ps(a, b) /* b if a is NaN, at every level */
#define KILN_VEC_MAX(a, b)    _mm512_max_ps(a, b)
#define KILN_VEC_ZIP_LOW(a, b) \
    _mm512_permutex2var_ps(a, _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23), b)
#define KILN_VEC_ZIP_HIGH(a, b) \
    _mm512_permutex2var_ps(a, _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31), b)
#elif defined(__AVX2__) && defined(__FMA__)
typedef __m256 kiln_vec;
enum { KILN_VEC = 8, KILN_VEC_REGISTERS = 16 };
#define KILN_VEC_ZERO()         _mm256_setzero_ps()
#define KILN_VEC_SET(value)     _mm256_set1_ps(value)
#define KILN_VEC_LOAD(p)        _mm256_loadu_ps(p)
#define KILN_VEC_STORE(p, v)    _mm256_storeu_ps(p, v)
#define KILN_VEC_FMA(a, b, c)   _mm256_fmadd_ps(a, b, c)
#define KILN_VEC_ADD(a, b)      _mm256_add_ps(a, b)
#define KILN_VEC_MUL(a, b)      _mm256_mul_ps(a, b)
#define KILN_VEC_MIN(a, b)      _mm256_min_ps(a, b)
#define KILN_VEC_MAX(a, b)      _mm256_max_ps(a, b)
#define KILN_VEC_ZIP_LOW(a, b)  _mm256_permute2f128_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b), 0x20)
#define KILN_VEC_ZIP_HIGH(a, b) _mm256_permute2f128_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b), 0x31)
#elif defined(__aarch64__)
typedef float32x4_t kiln_vec;
enum { KILN_VEC = 4, KILN_VEC_REGISTERS = 32 };
#define KILN_VEC_ZERO()         vdupq_n_f32(0.0f)
#define KILN_VEC_SET(value)     vdupq_n_f32(value)
#define KILN_VEC_LOAD(p)        vld1q_f32(p)
#define KILN_VEC_STORE(p, v)    vst1q_f32(p, v)
#define KILN_VEC_FMA(a, b, c)   vfmaq_f32(c, a, b)
#define KILN_VEC_ADD(a, b)      vaddq_f32(a, b)
#define KILN_VEC_MUL(a, b)      vmulq_f32(a, b)
#define KILN_VEC_MIN(a, b)      vbslq_f32(vcltq_f32(a, b), a, b)
#define KILN_VEC_MAX(a, b)      vbslq_f32(vcgtq_f32(a, b), a, b)
#define KILN_VEC_ZIP_LOW(a, b)  vzip1q_f32(a, b)
#define KILN_VEC_ZIP_HIGH(a, b) vzip2q_f32(a, b)
#else
typedef __m128 kiln_vec;
enum { KILN_VEC = 4, KILN_VEC_REGISTERS = 16 };
#define KILN_VEC_ZERO()         _mm_setzero_ps()
#define KILN_VEC_SET(value)     _mm_set1_ps(value)
#define KILN_VEC_LOAD(p)        _mm_loadu_ps(p)
#define KILN_VEC_STORE(p, v)    _mm_storeu_ps(p, v)
#define KILN_VEC_FMA(a, b, c)   _mm_add_ps(_mm_mul_ps(a, b), c)
#define KILN_VEC_ADD(a, b)      _mm_add_ps(a, b)
#define KILN_VEC_MUL(a, b)      _mm_mul_ps(a, b)
#define KILN_VEC_MIN(a, b)      _mm_min_ps(a, b)
#define KILN_VEC_MAX(a, b)      _mm_max_ps(a, b)
#define KILN_VEC_ZIP_LOW(a, b)  _mm_unpacklo_ps(a, b)
#define KILN_VEC_ZIP_HIGH(a, b) _mm_unpackhi_ps(a, b)
#endif

/* c plus the products of two numbers of bf16 in each lane of a and b. An instruction of machines with AVX-512 BF16,
 * which only they may be given (extensions.h); elsewhere it is never asked for. */
#if defined(__AVX512F__)
KILN_INLINE kiln_vec kiln_vec_dot_bf16(kiln_vec a, kiln_vec b, kiln_vec c) {
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(c) : "v"(a), "v"(b));
    return c;
}
#define KILN_VEC_DOT_BF16(a, b, c) kiln_vec_dot_bf16(a, b, c)
#else
#define KILN_VEC_DOT_BF16(a, b, c) (c)
#endif

/* A whole vector of elements as f32. */
KILN_INLINE kiln_vec kiln_vec_widen(const void *source, kiln_cpu_dtype dtype) {
    if (dtype == KILN_CPU_f32) return KILN_VEC_LOAD(source);
#if defined(__AVX512F__)
    const __m256i halves = _mm256_loadu_si256(source);
    if (dtype == KILN_CPU_f16) return _mm512_cvtph_ps(halves);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
#elif defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
    const __m128i halves = _mm_loadu_si128(source);
    if (dtype == KILN_CPU_f16) return _mm256_cvtph_ps(halves);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
#else
    float tile[KILN_VEC];
    kiln_halves_load(tile, source, KILN_VEC, dtype);
    return KILN_VEC_LOAD(tile);
#endif
}

/* The first count elements from source on as f32, at most a vector, and zeros after them. */
KILN_INLINE kiln_vec kiln_vec_load(const void *source, size_t count, kiln_cpu_dtype dtype) {
    float tile[KILN_VEC] = {0};
    if (count >= KILN_VEC) return kiln_vec_widen(source, dtype);
#if defined(__AVX512F__)
    if (dtype == KILN_CPU_f32) return _mm512_maskz_loadu_ps((__mmask16)((1u << count) - 1), source);
#endif
    const float *values = kiln_tile_load(tile, source, count, dtype);
    if (values != tile) memcpy(tile, values, count * sizeof *values);
    return KILN_VEC_LOAD(tile);
}

/* Moves elements among count rows, a power of two of at least 2: what was in lane `lane` of row `row` is the element of
 * number row * KILN_VEC + lane, and lands in the row of its number modulo count, whose lanes are in the order of
 * numbers. A round interleaves the lower half of the rows with the upper half, which rotates the bits of each element's
 * place by one; there are as many rounds as a lane's number has bits. */
KILN_INLINE void kiln_vec_deal(kiln_vec *rows, size_t count) {
    kiln_vec zipped[KILN_VEC > 8 ? KILN_VEC : 8];
    KILN_UNROLL
    for (size_t bits = KILN_VEC; bits > 1; bits /= 2) {
        KILN_UNROLL
        for (size_t i = 0; i < count / 2; i++) {
            zipped[2 * i] = KILN_VEC_ZIP_LOW(rows[i], rows[i + count / 2]);
            zipped[2 * i + 1] = KILN_VEC_ZIP_HIGH(rows[i], rows[i + count / 2]);
        }
        KILN_UNROLL
        for (size_t i = 0; i < count; i++)
            rows[i] = zipped[i];
    }
}

/* Transposes rows: a row and a lane are exchanged. */
KILN_INLINE void kiln_vec_transpose(kiln_vec *rows) {
    kiln_vec_deal(rows, KILN_VEC);
}

/* The sums of the elements of each row, for as many rows as a vector has elements. The rows are overwritten. */
KILN_INLINE kiln_vec kiln_vec_sums(kiln_vec *rows) {
    KILN_UNROLL
    for (size_t half = KILN_VEC / 2; half; half /= 2) {
        KILN_UNROLL
        for (size_t i = 0; i < half; i++)
            rows[i] =
                KILN_VEC_ADD(KILN_VEC_ZIP_LOW(rows[i], rows[i + half]), KILN_VEC_ZIP_HIGH(rows[i], rows[i + half]));
    }
    return rows[0];
}

/* Adds the sums of the elements of so many rows to others. */
KILN_INLINE void kiln_vec_add_sums(float *sums, const float (*rows)[KILN_VEC]) {
    kiln_vec vectors[KILN_VEC];
    KILN_UNROLL
    for (size_t i = 0; i < KILN_VEC; i++)
        vectors[i] = KILN_VEC_LOAD(rows[i]);
    KILN_VEC_STORE(sums, KILN_VEC_ADD(KILN_VEC_LOAD(sums), kiln_vec_sums(vectors)));
}

#endif
