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
#include <stddef.h>

#if defined(__AVX512BW__)

#define DOT        __attribute__((target("avx512bf16")))
#define DOT_INLINE DOT KILN_INLINE

enum {
    PAIRED = 2 * KILN_VEC,     /* numbers in a vector */
    DOT_DEPTH = 2 * DEPTH,     /* of b's columns */
    ROW_VECS = TILE / KILN_VEC /* vectors in a transposed row */
};

/* The first count of the numbers from source on, a vector at most, and zeros behind them. */
KILN_INLINE __m512i load_pairs(const void *source, size_t count) {
    if (count >= PAIRED) return _mm512_loadu_si512(source);
    return _mm512_maskz_loadu_epi16((1u << count) - 1, source);
}

/* The sums with the products of pairs. */
DOT_INLINE kiln_vec add_pairs(kiln_vec sums, __m512i a, __m512i b) {
    return _mm512_dpbf16_ps(sums, (__m512bh)a, (__m512bh)b);
}

/* ---- Tiles ---- */

/* What a strip is worked on with, in place of floats: lanes of two numbers. */
typedef struct dot_strip {
    __m512i columns[DOT_DEPTH / 2][ROW_VECS];
} dot_strip;
_Static_assert(sizeof(dot_strip) <= sizeof(((strip_scratch *)0)->columns), "is where columns are");
_Static_assert(offsetof(strip_scratch, columns) % sizeof(__m512i) == 0, "vectors are aligned");
_Static_assert(ROWS *DOT_DEPTH * sizeof(uint16_t) <= sizeof(((strip_scratch *)0)->converted), "rows fit");

/* Takes n numbers of each of b's rows as columns, with zeros behind them up to whole vectors; rows as transpose does.
 */
KILN_INLINE void take_pairs(dot_strip *pairs, const uint16_t *b, uint64_t stride, size_t rows, size_t n) {
    const size_t end = (rows + VECS * KILN_VEC - 1) / (VECS * KILN_VEC) * VECS;
    for (size_t v = 0; v < end; v++)
        for (size_t k = 0; k < n; k += PAIRED) {
            kiln_vec block[KILN_VEC];
            KILN_UNROLL
            for (size_t i = 0; i < KILN_VEC; i++) {
                const uint16_t *row = b + kiln_min(v * KILN_VEC + i, rows - 1) * stride;
                block[i] = _mm512_castsi512_ps(load_pairs(row + k, n - k));
            }
            kiln_vec_transpose(block);
            KILN_UNROLL
            for (size_t i = 0; i < KILN_VEC; i++)
                pairs->columns[k / 2 + i][v] = _mm512_castps_si512(block[i]);
        }
}

/* Adds the products of one pair of each of ROWS rows with VECS vectors of columns. */
DOT_INLINE void multiply_pair(kiln_vec (*products)[VECS], const uint16_t *const *rows, const __m512i *columns,
                              size_t pair) {
    __m512i factors[VECS];
    KILN_UNROLL
    for (size_t v = 0; v < VECS; v++)
        factors[v] = columns[pair * ROW_VECS + v];
    KILN_UNROLL
    for (size_t r = 0; r < ROWS; r++) {
        int32_t two;
        memcpy(&two, rows[r] + 2 * pair, sizeof two);
        const __m512i element = _mm512_set1_epi32(two);
        KILN_UNROLL
        for (size_t v = 0; v < VECS; v++)
            products[r][v] = add_pairs(products[r][v], element, factors[v]);
    }
}

/* Adds to sums the products of n pairs of ROWS rows with VECS vectors of columns, and asks for the rows behind. */
DOT_INLINE void multiply_pairs(float *sums, const uint16_t *const *rows, const uint16_t *next, uint64_t next_stride,
                               const __m512i *columns, size_t n) {
    kiln_vec products[ROWS][VECS];
    size_t pair = 0;
    KILN_UNROLL
    for (size_t r = 0; r < ROWS; r++) {
        KILN_UNROLL
        for (size_t v = 0; v < VECS; v++)
            products[r][v] = KILN_VEC_ZERO();
    }
    for (; pair + LINE <= n; pair += LINE) {
        for (size_t r = 0; r < ROWS; r++)
            __builtin_prefetch(next + r * next_stride + 2 * pair, 0, 2);
        for (size_t i = 0; i < LINE; i += STEPS) {
            KILN_UNROLL
            for (size_t step = 0; step < STEPS; step++)
                multiply_pair(products, rows, columns, pair + i + step);
        }
    }
    for (; pair < n; pair++)
        multiply_pair(products, rows, columns, pair);
    KILN_UNROLL
    for (size_t r = 0; r < ROWS; r++) {
        KILN_UNROLL
        for (size_t v = 0; v < VECS; v++) {
            float *sum = sums + r * TILE + v * KILN_VEC;
            KILN_VEC_STORE(sum, KILN_VEC_ADD(KILN_VEC_LOAD(sum), products[r][v]));
        }
    }
}

/* A row's n numbers, copied with a zero behind them if they are odd. */
KILN_INLINE const uint16_t *whole_pairs(uint16_t *copy, const uint16_t *row, size_t n) {
    if (n % 2 == 0) return row;
    memcpy(copy, row, n * sizeof *row);
    copy[n] = 0;
    return copy;
}

/* What multiply_strip does, of n elements. */
DOT static void multiply_strip_dot(strip_scratch *scratch, const kiln_gemm_args *args, const strip *s, uint64_t k,
                                   size_t n) {
    const uint64_t b_stride = (uint64_t)args->b_stride, a_stride = (uint64_t)args->a_stride;
    const uint16_t *b = (const uint16_t *)args->b + s->batch * (uint64_t)args->b_batch_stride + s->col * b_stride + k;
    dot_strip *pairs = (dot_strip *)(void *)scratch->columns;
    uint16_t(*copies)[DOT_DEPTH] = (uint16_t(*)[DOT_DEPTH])(void *)scratch->converted;
    take_pairs(pairs, b, b_stride, s->cols, n);
    for (size_t row = 0; row < s->rows; row += ROWS) {
        const uint16_t *a =
            (const uint16_t *)args->a + s->batch * (uint64_t)args->a_batch_stride + (s->row + row) * a_stride + k;
        const uint16_t *rows[ROWS];
        for (size_t r = 0; r < ROWS; r++) /* of the last row several, if there are no more */
            rows[r] = whole_pairs(copies[r], a + kiln_min(r, s->rows - row - 1) * a_stride, n);
        size_t first = row / ROWS * AHEAD, end = kiln_min(first + AHEAD, s->cols);
        for (size_t i = first; i < end; i++) /* what is transposed next */
            kiln_prefetch(b + i * b_stride, DOT_DEPTH * sizeof *b, DOT_DEPTH * sizeof *b);
        if (k + n == s->k_end) prefetch_results(args, s, row, kiln_min(row + ROWS, s->rows), KILN_CPU_bf16);
        multiply_pairs(scratch->sums[row], rows, a + ROWS * a_stride, a_stride, pairs->columns[0], (n + 1) / 2);
        if (k + n == s->k_end) finish_rows(scratch, args, s, row, kiln_min(row + ROWS, s->rows), KILN_CPU_bf16);
    }
}

#include "kernels/gemm/gemm_amx.h"

/* Does what multiply_strip does of as many elements from k on as it says: of none if it is not asked to. */
KILN_INLINE size_t multiply_strip_extended(strip_scratch *scratch, const kiln_gemm_args *args, const strip *s,
                                           uint64_t k, kiln_cpu_dtype dtype) {
    if (args->stages != KILN_GEMM_COMPUTE_DOT) return 0;
    const size_t n = kiln_min(s->k_end - k, DOT_DEPTH);
    if (dtype != KILN_CPU_bf16 || !KILN_CPU_HAS("avx512bf16")) return 0;
    multiply_strip_dot(scratch, args, s, k, n);
    return n;
}

#else

KILN_INLINE size_t multiply_strip_extended(strip_scratch *scratch, const kiln_gemm_args *args, const strip *s,
                                           uint64_t k, kiln_cpu_dtype dtype) {
    (void)scratch, (void)args, (void)s, (void)k, (void)dtype;
    return 0;
}

KILN_INLINE bool gemm_amx(const kiln_gemm_args *args, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    (void)args, (void)span, (void)dtype;
    return false;
}

#endif
