/* gemm of 16-bit numbers by dot products of pairs of them, where KILN_GEMM_COMPUTE_DOT asks for it and the machine,
 * which is of level x86-64-v4, has more than its level need have.
 *
 * AVX-512 BF16, for bf16: vdpbf16ps adds to each lane of f32 the products of two numbers of k. Tiles: as gemm_cpu.c has
 * them, but a lane of a column is two numbers, so that the same first-level cache holds columns of twice the depth.
 * Rows: vectors along k, in which neither factor is converted.
 *
 * Floor: half the time of f32's 2 m n k operations where the processor does as many vdpbf16ps as fused multiply-adds.
 * Measured on an AMD EPYC (Zen 5) that was busy with other work, one thread, processor time:
 * docs/benchmarks/cpu-model.md.
 *
 * Included once, by gemm_cpu.c. */
#include "kernels/common/extensions.h"
#include "kernels/common/vec.h"
#include <kiln/ops/gemm.h>

#if defined(__AVX512BW__)

enum { PAIRED = 2 * KILN_VEC /* numbers in a vector */ };

/* The first count of the numbers from source on, a vector at most, and zeros behind them. */
KILN_INLINE __m512i load_pairs(const void *source, size_t count) {
    if (count >= PAIRED) return _mm512_loadu_si512(source);
    return _mm512_maskz_loadu_epi16((1u << count) - 1, source);
}

/* Takes n numbers of each of b's rows as columns of pairs, with zeros behind them up to whole vectors; rows as
 * kiln_matmul_transpose does. */
KILN_INLINE void take_pairs(float (*columns)[TILE], const uint16_t *b, uint64_t stride, size_t rows, size_t n) {
    const size_t end = (rows + VECS * KILN_VEC - 1) / (VECS * KILN_VEC) * (VECS * KILN_VEC);
    for (size_t row = 0; row < end; row += KILN_VEC)
        for (size_t k = 0; k < n; k += PAIRED) {
            kiln_vec block[KILN_VEC];
            KILN_UNROLL
            for (size_t i = 0; i < KILN_VEC; i++)
                block[i] = _mm512_castsi512_ps(load_pairs(b + kiln_min(row + i, rows - 1) * stride + k, n - k));
            kiln_vec_transpose(block);
            KILN_UNROLL
            for (size_t i = 0; i < KILN_VEC; i++)
                KILN_VEC_STORE(&columns[k / 2 + i][row], block[i]);
        }
}

/* A copy of a row's n numbers, with zeros behind them up to a whole vector. */
KILN_INLINE const void *copy_pairs(float *copy, const uint16_t *row, size_t n) {
    for (size_t k = 0; k < n; k += PAIRED)
        _mm512_storeu_si512(copy + k / 2, load_pairs(row + k, n - k));
    return copy;
}

KILN_INLINE void multiply_pairs(float *sums, const kiln_matmul_rows *rows, const float *columns, size_t n,
                                size_t cols) {
    kiln_matmul_pairs(sums, rows, columns, (n + 1) / 2, cols);
}

/* Whether tiles are products of pairs. */
KILN_INLINE bool multiplies_pairs(const kiln_gemm_args *args, kiln_cpu_dtype dtype) {
    return dtype == KILN_CPU_bf16 && args->stages == KILN_GEMM_COMPUTE_DOT && KILN_CPU_HAS("avx512bf16");
}

#include "kernels/gemm/gemm_amx.h"

#else

KILN_INLINE void take_pairs(float (*columns)[TILE], const uint16_t *b, uint64_t stride, size_t rows, size_t n) {
    (void)columns, (void)b, (void)stride, (void)rows, (void)n;
}

KILN_INLINE const void *copy_pairs(float *copy, const uint16_t *row, size_t n) {
    (void)row, (void)n;
    return copy;
}

KILN_INLINE void multiply_pairs(float *sums, const kiln_matmul_rows *rows, const float *columns, size_t n,
                                size_t cols) {
    (void)sums, (void)rows, (void)columns, (void)n, (void)cols;
}

KILN_INLINE bool multiplies_pairs(const kiln_gemm_args *args, kiln_cpu_dtype dtype) {
    (void)args, (void)dtype;
    return false;
}

KILN_INLINE bool gemm_amx(const kiln_gemm_args *args, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    (void)args, (void)span, (void)dtype;
    return false;
}

#endif
