/* gemm_nvfp4 on the CPU: the operator's definition. gemm_nvfp4_gpu.c says what its kernels and blocks do;
 * gemm_nvfp4_rows_cpu.h and gemm_nvfp4_tiles_cpu.h how the products are computed.
 *
 * Both take codes as vectors of words of eight, which become eight vectors of numbers (float4_cpu.h): elements of k in
 * another order, the same for a and b. A block's scale is that of two words. Codes beyond the last are zeros, and so
 * are their scales.
 *
 * Floor: one read of b at memory bandwidth for few rows, 2 m n k operations for many.
 * Test: build/tests/ops/gemm_nvfp4_test. Bench: build/kiln bench gemm_nvfp4 --device cpu */
#include "kernels/common/cpu.h"
#include "kernels/common/formats/float4_cpu.h"
#include "kernels/common/formats/float8_cpu.h"
#include "kernels/common/matmul/matmul_end_cpu.h"
#include "kernels/common/quantize/nvfp4_scale.h"
#include "kernels/gemm_nvfp4/gemm_nvfp4_args.h"

enum {
    TILE = KILN_NVFP4_TILE,
    ROWS = KILN_NVFP4_ROWS,
    COLUMNS = KILN_NVFP4_BLOCK_COLUMNS,    /* of a block of gemm_nvfp4_rows */
    BLOCKS = KILN_VEC / 2,                 /* of a vector of words */
    SCALES = (1 << 14) / KILN_NVFP4_BLOCK, /* of a row that are taken at a time, at most; whole vectors of codes */
    HALVES = 2,                            /* of a byte: each a code */
    WORD_BYTES = 4
};
_Static_assert(SCALES % KILN_E4M3_AT_A_TIME == 0 && SCALES % BLOCKS == 0, "whole vectors");

/* ---- Codes and scales ---- */

/* The vectors of words in n codes. */
KILN_INLINE size_t vecs_of(size_t n) {
    return (n + KILN_INT4_VEC - 1) / KILN_INT4_VEC;
}

/* Vector `vec` of the words of n codes, with zeros behind the last of them. */
KILN_INLINE kiln_int4_vec words_at(const uint8_t *codes, size_t vec, size_t n) {
    uint8_t last[KILN_INT4_VEC_BYTES] = {0};
    if ((vec + 1) * KILN_INT4_VEC <= n) return kiln_int4_load(codes + vec * KILN_INT4_VEC_BYTES);
    if (vec * KILN_INT4_VEC < n) {
        const size_t count = n - vec * KILN_INT4_VEC;
        memcpy(last, codes + vec * KILN_INT4_VEC_BYTES, (count + 1) / 2);
        if (count % 2) last[count / 2] &= 15;
    }
    return kiln_int4_load(last);
}

/* The scales of the blocks of n codes of a row from k on, whole blocks of 4 and at most SCALES, and zeros for blocks
 * that whole vectors of words have behind them. Their signs are not read. */
KILN_OUTLINED void take_scales(float *to, const kiln_nvfp4_operand *operand, uint64_t row, uint64_t k, size_t n) {
    const uint64_t blocks = (uint64_t)operand->scale_cols, first = k / KILN_NVFP4_BLOCK;
    const size_t count = (n + KILN_NVFP4_BLOCK - 1) / KILN_NVFP4_BLOCK, end = vecs_of(n) * BLOCKS;
    const size_t whole = (count + KILN_E4M3_AT_A_TIME - 1) / KILN_E4M3_AT_A_TIME * KILN_E4M3_AT_A_TIME;
    uint8_t codes[SCALES];
    if (operand->swizzled) {
        const uint8_t *from = operand->scales + kiln_nvfp4_swizzled(row, first, blocks);
        for (size_t i = 0; i < count; i++)
            codes[i] = from[i / 4 * 512 + i % 4] & 0x7fu;
    } else {
        const uint8_t *from = operand->scales + row * blocks + first;
        for (size_t i = 0; i < count; i++)
            codes[i] = from[i] & 0x7fu;
    }
    memset(codes + count, 0, whole - count);
    kiln_e4m3_load(to, codes, whole);
    for (size_t i = whole; i < end; i++)
        to[i] = 0;
}

/* The scales of a vector of words. */
KILN_INLINE kiln_vec scales_at(const float *scales, size_t vec) {
    scales += vec * BLOCKS;
#if defined(__AVX512F__)
    const __m512i lane = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    return _mm512_permutexvar_ps(lane, _mm512_castps256_ps512(_mm256_loadu_ps(scales)));
#elif defined(__AVX2__) && defined(__FMA__)
    const __m256i lane = _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3);
    return _mm256_permutevar8x32_ps(_mm256_castps128_ps256(_mm_loadu_ps(scales)), lane);
#elif defined(__aarch64__)
    const float32x4_t two = vcombine_f32(vld1_f32(scales), vdup_n_f32(0));
    return vzip1q_f32(two, two);
#else
    const __m128 two = _mm_castpd_ps(_mm_load_sd((const double *)(const void *)scales));
    return _mm_unpacklo_ps(two, two);
#endif
}

/* The numbers of n codes of a times their scales: whole vectors, zeros behind the last. */
KILN_INLINE void take_numbers(float *to, const uint8_t *codes, const float *scales, size_t n) {
    for (size_t vec = 0; vec < vecs_of(n); vec++) {
        const kiln_int4_vec words = words_at(codes, vec, n);
        /* both factors are multiples of their unit, which the product is not */
        const kiln_vec unit = KILN_VEC_SET(1 / (KILN_E2M1_UNIT * KILN_E2M1_UNIT));
        const kiln_vec scale = KILN_VEC_MUL(scales_at(scales, vec), unit);
        KILN_UNROLL
        for (unsigned half = 0; half < HALVES; half++) {
            const kiln_int4_vec halves = kiln_e2m1_half(words, half);
            KILN_UNROLL
            for (unsigned byte = 0; byte < WORD_BYTES; byte++, to += KILN_VEC)
                KILN_VEC_STORE(to, KILN_VEC_MUL(kiln_e2m1_byte(halves, byte), scale));
        }
    }
}

/* ---- Results ---- */

typedef struct finish_tiles {
    float results[TILE], addends[TILE];
} finish_tiles;

/* Writes count elements of a row of d. Global scales come one by one: the product of two may be infinite. */
KILN_OUTLINED void finish(finish_tiles *tiles, const kiln_gemm_nvfp4_args *args, const float *sums, uint64_t row,
                          uint64_t col, size_t count, kiln_cpu_dtype dtype) {
    void *d = kiln_at_mut(args->d, row * (uint64_t)args->d_stride + col, dtype);
    float *results = kiln_tile_target(tiles->results, d, dtype, false);
    const float left = args->k ? args->a.global_scale[args->a.each ? row : 0] : 1.0f;
    for (size_t i = 0; i < count; i++) {
        float right = args->k ? args->b.global_scale[args->b.each ? col + i : 0] : 1.0f;
        results[i] = sums[i] * left * right * args->scale;
    }
    kiln_matmul_add_bias(results, tiles->addends, args->bias, col, count, dtype);
    if (args->gated) kiln_matmul_activate(results, count, args->bound, args->coefficients, KILN_NVFP4_COEFFICIENTS);
    kiln_tile_write(d, results, count, dtype, false);
}

/* ---- Kernels ---- */

#include "kernels/gemm_nvfp4/gemm_nvfp4_rows_cpu.h"
#include "kernels/gemm_nvfp4/gemm_nvfp4_tiles_cpu.h"

typedef struct join_scratch {
    float sums[TILE];
    finish_tiles tiles;
} join_scratch;
_Static_assert(sizeof(join_scratch) <= KILN_CPU_SCRATCH, "fits");

KILN_OUTLINED void gemm_nvfp4_join(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_gemm_nvfp4_args args = *(const kiln_gemm_nvfp4_args *)arguments; /* a copy, which no store can change */
    join_scratch *scratch = span->scratch;
    for (uint64_t block = span->begin; block < span->end; block++) {
        uint64_t first = block % span->grid[0] * KILN_BLOCK, row = block / span->grid[0];
        uint64_t end = kiln_min(first + KILN_BLOCK, (uint64_t)args.n);
        if (row >= (uint64_t)args.m) break;
        for (uint64_t col = first; col < end; col += TILE) {
            size_t count = kiln_min(end - col, TILE);
            float *sums = scratch->sums;
            kiln_matmul_join(sums, args.partials + row * (uint64_t)args.n + col, args.splits,
                             (uint64_t)args.m * (uint64_t)args.n, count);
            finish(&scratch->tiles, &args, sums, row, col, count, dtype);
        }
    }
}
KILN_CPU_KERNEL(gemm_nvfp4_join)
