/* The widest vector of f32 that a CPU level has, for kernels whose loops the compiler does not vectorise as they should
 * be: products of matrices. Included after cpu.h. */
#ifndef KILN_KERNELS_COMMON_VEC_H
#define KILN_KERNELS_COMMON_VEC_H

#include "kernels/common/cpu.h"

#if defined(__AVX512F__)
typedef __m512 kiln_vec;
enum { KILN_VEC = 16, KILN_VEC_REGISTERS = 32 };
#define KILN_VEC_ZERO()       _mm512_setzero_ps()
#define KILN_VEC_SET(value)   _mm512_set1_ps(value)
#define KILN_VEC_LOAD(p)      _mm512_loadu_ps(p)
#define KILN_VEC_STORE(p, v)  _mm512_storeu_ps(p, v)
#define KILN_VEC_FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#define KILN_VEC_ADD(a, b)    _mm512_add_ps(a, b)
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
#define KILN_VEC_ZIP_LOW(a, b)  _mm_unpacklo_ps(a, b)
#define KILN_VEC_ZIP_HIGH(a, b) _mm_unpackhi_ps(a, b)
#endif

/* The sum of a vector's elements. */
KILN_INLINE float kiln_vec_sum(kiln_vec vec) {
    float lanes[KILN_VEC];
    KILN_VEC_STORE(lanes, vec);
    for (size_t half = KILN_VEC / 2; half; half /= 2)
        for (size_t lane = 0; lane < half; lane++)
            lanes[lane] += lanes[lane + half];
    return lanes[0];
}

/* Makes rows of columns. A round of zips takes the upper half of the rows between the lower: after as many as a lane's
 * number has bits, each element has changed its row for its lane. */
KILN_INLINE void kiln_vec_transpose(kiln_vec *rows) {
    kiln_vec zipped[KILN_VEC];
    KILN_UNROLL
    for (size_t bits = KILN_VEC; bits > 1; bits /= 2) {
        KILN_UNROLL
        for (size_t i = 0; i < KILN_VEC / 2; i++) {
            zipped[2 * i] = KILN_VEC_ZIP_LOW(rows[i], rows[i + KILN_VEC / 2]);
            zipped[2 * i + 1] = KILN_VEC_ZIP_HIGH(rows[i], rows[i + KILN_VEC / 2]);
        }
        KILN_UNROLL
        for (size_t i = 0; i < KILN_VEC; i++)
            rows[i] = zipped[i];
    }
}

/* The dot products of a_rows rows with b_rows rows of count elements, contiguous, into products[a_rows][b_rows]; the
 * numbers of rows are constants. */
KILN_INLINE void kiln_dots(float *products, const float *a, size_t a_stride, const float *b, size_t b_stride,
                           size_t count, size_t a_rows, size_t b_rows) {
    kiln_vec sums[8 * 4];
    size_t k = 0;
    KILN_UNROLL
    for (size_t i = 0; i < a_rows * b_rows; i++)
        sums[i] = KILN_VEC_ZERO();
    for (; k + KILN_VEC <= count; k += KILN_VEC) {
        kiln_vec factors[4];
        KILN_UNROLL
        for (size_t j = 0; j < b_rows; j++)
            factors[j] = KILN_VEC_LOAD(b + j * b_stride + k);
        KILN_UNROLL
        for (size_t i = 0; i < a_rows; i++) {
            kiln_vec factor = KILN_VEC_LOAD(a + i * a_stride + k);
            KILN_UNROLL
            for (size_t j = 0; j < b_rows; j++)
                sums[i * b_rows + j] = KILN_VEC_FMA(factor, factors[j], sums[i * b_rows + j]);
        }
    }
    for (size_t i = 0; i < a_rows; i++)
        for (size_t j = 0; j < b_rows; j++) {
            float sum = kiln_vec_sum(sums[i * b_rows + j]);
            for (size_t rest = k; rest < count; rest++)
                sum = KILN_FMA(a[i * a_stride + rest], b[j * b_stride + rest], sum);
            products[i * b_rows + j] = sum;
        }
}

#endif
