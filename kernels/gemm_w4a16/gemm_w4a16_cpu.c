/* gemm_w4a16 on the CPU: the operator's definition. gemm_w4a16_gpu.c says what its kernels and blocks do.
 *
 * Everything is dot products of up to 8 rows of a with a few rows of weights, in vectors along k. A byte has an even
 * and an odd element of a row of weights, so rows of a are separated into their even and odd elements, as f32 times
 * pre_scale, once for all rows of weights of a block. A vector of bytes is then two vectors of weights. Where a
 * register holds all 16 integers (AVX-512), the weights are looked up in the group's table of q * scale + zero, two
 * instructions for 16 of them.
 *
 * Floor: one read of the weights at memory bandwidth for up to 8 rows, 2 m n k operations for many.
 * Test: build/tests/ops/gemm_w4a16_test. Bench: build/kiln bench gemm_w4a16 --device cpu */
#include "kernels/common/vec.h"
/* after it: */
#include "kernels/common/root.h"
#include "kernels/common/squares_cpu.h"
#include "kernels/gemm_w4a16/gemm_w4a16_args.h"

enum {
    TILE = KILN_W4A16_TILE,
    ROWS = KILN_W4A16_ROWS,
    COLUMNS = KILN_W4A16_BLOCK_COLUMNS,       /* of a block of gemm_w4a16_rows */
    KEPT = 1 << 14,                           /* elements of a's rows that are kept as f32 */
    STRIP = KILN_VEC_REGISTERS >= 32 ? 4 : 2, /* rows of weights at a time, at most */
    GROUPS = KEPT / KILN_W4A16_CHUNK + 1,     /* per row of what is kept, at most */
    LINE = 64,                                /* bytes */
    AHEAD = 512                               /* bytes of a row of weights, prefetched before they are needed */
};

typedef struct product_scratch {
    float even[KEPT / 2], odd[KEPT / 2];
    float scales[STRIP][GROUPS], zeros[STRIP][GROUPS];
    float sums[ROWS][TILE], gates[ROWS][TILE], results[TILE], addends[TILE];
    float tile[KILN_TILE], factors[KILN_TILE]; /* of a row of a */
    float norms[ROWS];                         /* what rows of a are normalised by; 0: nothing */
} product_scratch;
_Static_assert(sizeof(product_scratch) <= KILN_CPU_SCRATCH, "fits");

/* ---- From integers to weights ---- */

/* What turns a group's integers into weights. */
typedef struct decoder {
#if defined(__AVX512F__)
    kiln_vec table;
#else
    kiln_vec scale, zero;
#endif
} decoder;

KILN_INLINE decoder decoder_of(float scale, float zero) {
#if defined(__AVX512F__)
    const kiln_vec integers = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1);
    return (decoder){KILN_VEC_FMA(integers, KILN_VEC_SET(scale), KILN_VEC_SET(zero))};
#else
    return (decoder){KILN_VEC_SET(scale), KILN_VEC_SET(zero)};
#endif
}

/* The weights of KILN_VEC bytes: *low has those of their lower halves. */
KILN_INLINE void decode(const decoder *of, const uint8_t *bytes, kiln_vec *low, kiln_vec *high) {
#if defined(__AVX512F__)
    const __m512i words = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)bytes));
    *low = _mm512_permutexvar_ps(words, of->table);
    *high = _mm512_permutexvar_ps(_mm512_srli_epi32(words, 4), of->table);
#elif defined(__AVX2__) && defined(__FMA__)
    const __m256i words = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)bytes));
    const __m256i first = _mm256_srai_epi32(_mm256_slli_epi32(words, 28), 28);
    const __m256i second = _mm256_srai_epi32(_mm256_slli_epi32(words, 24), 28);
    *low = KILN_VEC_FMA(_mm256_cvtepi32_ps(first), of->scale, of->zero);
    *high = KILN_VEC_FMA(_mm256_cvtepi32_ps(second), of->scale, of->zero);
#else
    float first[KILN_VEC], second[KILN_VEC];
    for (size_t i = 0; i < KILN_VEC; i++) {
        first[i] = (float)((int32_t)((bytes[i] & 15u) ^ 8u) - 8);
        second[i] = (float)((int32_t)(bytes[i] >> 4 ^ 8u) - 8);
    }
    *low = KILN_VEC_FMA(KILN_VEC_LOAD(first), of->scale, of->zero);
    *high = KILN_VEC_FMA(KILN_VEC_LOAD(second), of->scale, of->zero);
#endif
}

/* ---- Dot products ---- */

/* Rows of a and of weights, and the k that is multiplied. */
typedef struct piece {
    uint64_t row, col;
    size_t rows, cols;
    uint64_t k, k_end;
} piece;

/* Where the elements of row r of a begin, with m rows in all. */
KILN_INLINE size_t kept_at(size_t r, size_t m) {
    return r * (KEPT / 2 / m);
}

/* 1 / the root of the mean of a row's squares. */
KILN_OUTLINED float norm_of(const kiln_gemm_w4a16_args *args, const void *row, kiln_cpu_dtype dtype) {
    float tile[KILN_TILE], sum[KILN_LANES] = {0};
    for (uint64_t k = 0; k < (uint64_t)args->k; k += KILN_TILE) {
        size_t n = kiln_min((uint64_t)args->k - k, KILN_TILE);
        kiln_squares_add(sum, kiln_tile_load(tile, kiln_at(row, k, dtype), n, dtype), n);
    }
    return kiln_rsqrt(KILN_FMA(kiln_lanes_sum(sum), args->mean, args->norm_eps));
}

/* Separates the rows of a, the last one several times if there are fewer than m. Zeros fill up the last vector. */
KILN_OUTLINED void take_rows(product_scratch *scratch, const kiln_gemm_w4a16_args *args, const piece *p, size_t m,
                             kiln_cpu_dtype dtype) {
    float *tile = scratch->tile;
    for (size_t r = 0; r < m; r++) {
        uint64_t row = (p->row + kiln_min(r, p->rows - 1)) * (uint64_t)args->a_stride;
        float *even = scratch->even + kept_at(r, m), *odd = scratch->odd + kept_at(r, m);
        size_t pairs = (size_t)(p->k_end - p->k) / 2;
        for (size_t at = 0; at < pairs; at += KILN_TILE / 2) {
            size_t n = kiln_min(pairs - at, KILN_TILE / 2);
            uint64_t k = p->k + 2 * at;
            const float *values = kiln_tile_load(tile, kiln_at(args->a, row + k, dtype), 2 * n, dtype);
            if (args->norm_weight) {
                const float norm = scratch->norms[kiln_min(r, p->rows - 1)];
                KILN_INDEPENDENT
                for (size_t i = 0; i < 2 * n; i++)
                    tile[i] = values[i] * norm;
                values = tile;
            }
            if (args->pre_scale) {
                const float *by = kiln_tile_load(scratch->factors, kiln_at(args->pre_scale, k, dtype), 2 * n, dtype);
                KILN_INDEPENDENT
                for (size_t i = 0; i < 2 * n; i++)
                    tile[i] = values[i] * by[i];
                values = tile;
            }
            KILN_INDEPENDENT
            for (size_t i = 0; i < n; i++) {
                even[at + i] = values[2 * i];
                odd[at + i] = values[2 * i + 1];
            }
        }
        for (; pairs % KILN_VEC; pairs++)
            even[pairs] = odd[pairs] = 0;
    }
}

/* The scales, or zeros, of count rows of weights from a row on, for the groups from a k on; the last row several times
 * if there are fewer than STRIP. */
KILN_OUTLINED void take_scales(float (*to)[GROUPS], const void *from, const kiln_gemm_w4a16_args *args, uint64_t col,
                               size_t count, const piece *p, kiln_cpu_dtype dtype) {
    const uint64_t first = p->k >> args->group_log2, groups = ((p->k_end - 1) >> args->group_log2) - first + 1;
    float tile[STRIP];
    if (args->scale_group_step == 1) {
        for (size_t c = 0; c < count; c++)
            for (uint64_t g = 0; g < groups; g += KILN_TILE) {
                uint64_t place = (col + c) * (uint64_t)args->scale_row_step + first + g;
                size_t n = kiln_min(groups - g, KILN_TILE);
                const float *values = kiln_tile_load(&to[c][g], kiln_at(from, place, dtype), n, dtype);
                if (values != &to[c][g]) memcpy(&to[c][g], values, n * sizeof *values);
            }
        return;
    }
    for (uint64_t g = 0; g < groups; g++) {
        uint64_t place = (first + g) * (uint64_t)args->scale_group_step + col;
        const float *values = kiln_tile_load(tile, kiln_at(from, place, dtype), count, dtype);
        for (size_t c = 0; c < count; c++)
            to[c][g] = values[c];
    }
}

/* How many rows of weights are multiplied at a time with m rows of a. */
KILN_INLINE size_t strip_of(size_t m) {
    return m <= 2 ? STRIP : STRIP / 2;
}

/* Adds the products of a vector of bytes of each row of weights. */
KILN_INLINE void step(kiln_vec (*products)[STRIP], const product_scratch *scratch, const decoder *decoders,
                      const uint8_t *const *bytes, size_t at, size_t m) {
    const size_t strip = strip_of(m);
    kiln_vec low[STRIP], high[STRIP];
    KILN_UNROLL
    for (size_t c = 0; c < strip; c++)
        decode(&decoders[c], bytes[c], &low[c], &high[c]);
    KILN_UNROLL
    for (size_t r = 0; r < m; r++) {
        const kiln_vec even = KILN_VEC_LOAD(scratch->even + kept_at(r, m) + at);
        const kiln_vec odd = KILN_VEC_LOAD(scratch->odd + kept_at(r, m) + at);
        KILN_UNROLL
        for (size_t c = 0; c < strip; c++)
            products[r][c] = KILN_VEC_FMA(odd, high[c], KILN_VEC_FMA(even, low[c], products[r][c]));
    }
}

/* Adds the products of the bytes [at, end) of each row of weights, all of one group. */
KILN_INLINE void multiply_group(kiln_vec (*products)[STRIP], const product_scratch *scratch, const decoder *decoders,
                                const uint8_t *const *rows, size_t at, size_t end, size_t m) {
    const size_t strip = strip_of(m);
    const uint8_t *bytes[STRIP];
    for (; at + LINE <= end; at += LINE) {
        KILN_UNROLL
        for (size_t c = 0; c < strip; c++)
            __builtin_prefetch(rows[c] + at + AHEAD, 0, 2);
        for (size_t i = 0; i < LINE; i += KILN_VEC) {
            KILN_UNROLL
            for (size_t c = 0; c < strip; c++)
                bytes[c] = rows[c] + at + i;
            step(products, scratch, decoders, bytes, at + i, m);
        }
    }
    for (; at < end; at += KILN_VEC) {
        uint8_t last[STRIP][KILN_VEC] = {{0}};
        size_t count = kiln_min(end - at, KILN_VEC);
        for (size_t c = 0; c < strip; c++) {
            bytes[c] = rows[c] + at;
            if (count == KILN_VEC) continue;
            memcpy(last[c], bytes[c], count);
            bytes[c] = last[c];
        }
        step(products, scratch, decoders, bytes, at, m);
    }
}

KILN_INLINE float total(kiln_vec vector) {
    float lanes[KILN_VEC];
    KILN_VEC_STORE(lanes, vector);
    KILN_UNROLL
    for (size_t half = KILN_VEC / 2; half; half /= 2)
        for (size_t i = 0; i < half; i++)
            lanes[i] += lanes[i + half];
    return lanes[0];
}

/* Adds to the sums the products of m rows of a with a strip of rows of weights, from column col of the piece on. */
KILN_INLINE void multiply_strip(product_scratch *scratch, const kiln_gemm_w4a16_args *args, const piece *p, size_t col,
                                size_t m, kiln_cpu_dtype dtype) {
    const size_t strip = strip_of(m), count = kiln_min(p->cols - col, strip);
    const uint8_t *rows[STRIP];
    kiln_vec products[ROWS][STRIP];
    take_scales(scratch->scales, args->scales, args, p->col + col, count, p, dtype);
    if (args->zeros) take_scales(scratch->zeros, args->zeros, args, p->col + col, count, p, dtype);
    KILN_UNROLL
    for (size_t c = 0; c < strip; c++)
        rows[c] = args->weights + (p->col + col + kiln_min(c, count - 1)) * ((uint64_t)args->k / 2) + p->k / 2;
    KILN_UNROLL
    for (size_t r = 0; r < m; r++) {
        KILN_UNROLL
        for (size_t c = 0; c < strip; c++)
            products[r][c] = KILN_VEC_ZERO();
    }
    const uint64_t first = p->k >> args->group_log2;
    for (uint64_t k = p->k, end; k < p->k_end; k = end) {
        const uint64_t group = k >> args->group_log2;
        decoder decoders[STRIP];
        end = kiln_min((group + 1) << args->group_log2, p->k_end);
        KILN_UNROLL
        for (size_t c = 0; c < strip; c++) {
            size_t row = kiln_min(c, count - 1);
            float zero = args->zeros ? scratch->zeros[row][group - first] : 0;
            decoders[c] = decoder_of(scratch->scales[row][group - first], zero);
        }
        multiply_group(products, scratch, decoders, rows, (size_t)(k - p->k) / 2, (size_t)(end - p->k) / 2, m);
    }
    KILN_UNROLL
    for (size_t r = 0; r < m; r++) {
        KILN_UNROLL
        for (size_t c = 0; c < strip; c++)
            if (c < count) scratch->sums[r][col + c] += total(products[r][c]);
    }
}

/* Computes the sums of up to m rows of a with all rows of weights of `all`. */
KILN_INLINE void multiply_rows(product_scratch *scratch, const kiln_gemm_w4a16_args *args, const piece *all, size_t m,
                               kiln_cpu_dtype dtype) {
    memset(scratch->sums, 0, sizeof scratch->sums);
    for (uint64_t k = all->k; k < all->k_end; k += KEPT / m) {
        piece p = *all;
        p.k = k;
        p.k_end = kiln_min(k + KEPT / m, all->k_end);
        take_rows(scratch, args, &p, m, dtype);
        for (size_t col = 0; col < p.cols; col += strip_of(m))
            multiply_strip(scratch, args, &p, col, m, dtype);
    }
}

/* ---- Kernels ---- */

/* Adds the bias of columns from `col` on. */
KILN_INLINE void add_bias(product_scratch *scratch, const kiln_gemm_w4a16_args *args, float *results, uint64_t col,
                          size_t count, kiln_cpu_dtype dtype) {
    if (!args->bias) return;
    const float *addends = kiln_tile_load(scratch->addends, kiln_at(args->bias, col, dtype), count, dtype);
    KILN_INDEPENDENT
    for (size_t i = 0; i < count; i++)
        results[i] += addends[i];
}

KILN_INLINE void activate(const kiln_gemm_w4a16_args *args, float *results, size_t count) {
    if (!args->activated) return;
    KILN_INDEPENDENT
    for (size_t i = 0; i < count; i++)
        results[i] = kiln_gated(results[i], args->bound, args->coefficients, KILN_W4A16_COEFFICIENTS);
}

/* Writes count elements of a row of d. */
KILN_OUTLINED void finish(product_scratch *scratch, const kiln_gemm_w4a16_args *args, const float *sums, uint64_t row,
                          uint64_t col, size_t count, kiln_cpu_dtype dtype) {
    void *d = kiln_at_mut(args->d, row * (uint64_t)args->d_stride + col, dtype);
    float *results = kiln_tile_target(scratch->results, d, dtype, false);
    if (args->c) { /* which may be d */
        const uint64_t at = row * (uint64_t)args->c_stride + col;
        const float *addends = kiln_tile_load(scratch->addends, kiln_at(args->c, at, dtype), count, dtype);
        KILN_INDEPENDENT
        for (size_t i = 0; i < count; i++)
            results[i] = sums[i] * args->scale + addends[i];
    } else {
        KILN_INDEPENDENT
        for (size_t i = 0; i < count; i++)
            results[i] = sums[i] * args->scale;
    }
    add_bias(scratch, args, results, col, count, dtype);
    activate(args, results, count);
    kiln_tile_write(d, results, count, dtype, false);
}

/* The same of paired rows of weights: gates, and the sums that they are for. */
KILN_OUTLINED void finish_pairs(product_scratch *scratch, const kiln_gemm_w4a16_args *args, const float *gates,
                                const float *sums, uint64_t row, uint64_t col, size_t count, kiln_cpu_dtype dtype) {
    float gate_tile[TILE], tile[TILE];
    KILN_INDEPENDENT
    for (size_t i = 0; i < count; i++) {
        gate_tile[i] = gates[i] * args->scale;
        tile[i] = sums[i] * args->scale;
    }
    add_bias(scratch, args, gate_tile, col, count, dtype);
    add_bias(scratch, args, tile, (uint64_t)args->n + col, count, dtype);
    activate(args, gate_tile, count);
    void *d = kiln_at_mut(args->d, row * (uint64_t)args->d_stride + col, dtype);
    float *results = kiln_tile_target(scratch->results, d, dtype, false);
    KILN_INDEPENDENT
    for (size_t i = 0; i < count; i++)
        results[i] = gate_tile[i] * tile[i];
    kiln_tile_write(d, results, count, dtype, false);
}

/* The sums of all rows of a, as few as there are, with those of weights of a piece. */
KILN_INLINE void multiply_few_rows(product_scratch *scratch, const kiln_gemm_w4a16_args *args, const piece *p,
                                   kiln_cpu_dtype dtype) {
    if (args->m == 1)
        multiply_rows(scratch, args, p, 1, dtype);
    else if (args->m == 2)
        multiply_rows(scratch, args, p, 2, dtype);
    else if (args->m <= 4)
        multiply_rows(scratch, args, p, 4, dtype);
    else
        multiply_rows(scratch, args, p, ROWS, dtype);
}

KILN_OUTLINED void gemm_w4a16_rows(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_gemm_w4a16_args args = *(const kiln_gemm_w4a16_args *)arguments; /* a copy, which no store can change */
    product_scratch *scratch = span->scratch;
    const uint64_t columns = args.paired ? COLUMNS / 2 : COLUMNS;
    for (uint64_t block = span->begin; block < kiln_min(span->end, span->grid[0]); block++) {
        piece p = {.col = block * columns, .rows = (size_t)args.m, .k_end = (uint64_t)args.k};
        const uint64_t col = p.col;
        p.cols = kiln_min((uint64_t)args.n - p.col, columns);
        for (size_t row = 0; row < p.rows && args.norm_weight; row++)
            scratch->norms[row] = norm_of(&args, kiln_at(args.a, row * (uint64_t)args.a_stride, dtype), dtype);
        for (uint32_t part = 0; part <= args.paired; part++) {
            if (part) memcpy(scratch->gates, scratch->sums, sizeof scratch->gates);
            p.col = col + part * (uint64_t)args.n;
            multiply_few_rows(scratch, &args, &p, dtype);
        }
        for (size_t row = 0; row < p.rows; row++) {
            if (args.paired)
                finish_pairs(scratch, &args, scratch->gates[row], scratch->sums[row], row, col, p.cols, dtype);
            else
                finish(scratch, &args, scratch->sums[row], row, col, p.cols, dtype);
        }
    }
}
KILN_CPU_KERNEL(gemm_w4a16_rows)

/* gemm_w4a16_rows does it all. */
KILN_OUTLINED void gemm_w4a16_fused_rows(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    gemm_w4a16_rows(arguments, span, dtype);
}
KILN_CPU_KERNEL(gemm_w4a16_fused_rows)

/* Writes the normalised rows of a to d. */
KILN_OUTLINED void gemm_w4a16_norm(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_gemm_w4a16_args args = *(const kiln_gemm_w4a16_args *)arguments; /* a copy, which no store can change */
    product_scratch *scratch = span->scratch;
    for (uint64_t row = span->begin; row < kiln_min(span->end, (uint64_t)args.m); row++) {
        const void *a = kiln_at(args.a, row * (uint64_t)args.a_stride, dtype);
        const float norm = norm_of(&args, a, dtype);
        for (uint64_t k = 0; k < (uint64_t)args.k; k += KILN_TILE) {
            size_t n = kiln_min((uint64_t)args.k - k, KILN_TILE);
            const float *values = kiln_tile_load(scratch->tile, kiln_at(a, k, dtype), n, dtype);
            void *d = kiln_at_mut(args.d, row * (uint64_t)args.d_stride + k, dtype);
            float *results = kiln_tile_target(scratch->tile, d, dtype, false);
            const float *factors = kiln_tile_load(scratch->factors, kiln_at(args.norm_weight, k, dtype), n, dtype);
            KILN_INDEPENDENT
            for (size_t i = 0; i < n; i++)
                results[i] = values[i] * norm * factors[i];
            kiln_tile_write(d, results, n, dtype, false);
        }
    }
}
KILN_CPU_KERNEL(gemm_w4a16_norm)

KILN_OUTLINED void gemm_w4a16_tiles(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_gemm_w4a16_args args = *(const kiln_gemm_w4a16_args *)arguments; /* a copy, which no store can change */
    product_scratch *scratch = span->scratch;
    for (uint64_t block = span->begin; block < span->end; block++) {
        uint64_t down = block / span->grid[0], split = down / args.tile_rows;
        uint64_t row = down % args.tile_rows * TILE, row_end = kiln_min(row + TILE, (uint64_t)args.m);
        piece p = {.col = block % span->grid[0] * TILE, .k = split * args.split};
        if (split >= args.splits) break;
        p.cols = kiln_min((uint64_t)args.n - p.col, TILE);
        p.k_end = kiln_min(p.k + args.split, (uint64_t)args.k);
        for (p.row = row; p.row < row_end; p.row += ROWS) {
            p.rows = kiln_min(row_end - p.row, ROWS);
            multiply_rows(scratch, &args, &p, ROWS, dtype);
            for (size_t r = 0; r < p.rows; r++) {
                uint64_t place = (split * (uint64_t)args.m + p.row + r) * (uint64_t)args.n + p.col;
                if (args.partials)
                    memcpy(args.partials + place, scratch->sums[r], p.cols * sizeof(float));
                else
                    finish(scratch, &args, scratch->sums[r], p.row + r, p.col, p.cols, dtype);
            }
        }
    }
}
KILN_CPU_KERNEL(gemm_w4a16_tiles)

/* Adds up the partial sums of count columns of a row, of which each split has `cols`. */
KILN_INLINE void join(const kiln_gemm_w4a16_args *args, float *sums, uint64_t row, uint64_t cols, uint64_t col,
                      size_t count) {
    memset(sums, 0, count * sizeof *sums);
    for (uint64_t split = 0; split < args->splits; split++) {
        const float *partial = args->partials + (split * (uint64_t)args->m + row) * cols + col;
        for (size_t i = 0; i < count; i++)
            sums[i] += partial[i];
    }
}

KILN_OUTLINED void gemm_w4a16_join(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_gemm_w4a16_args args = *(const kiln_gemm_w4a16_args *)arguments; /* a copy, which no store can change */
    product_scratch *scratch = span->scratch;
    const uint64_t n = (uint64_t)args.n;
    for (uint64_t block = span->begin; block < span->end; block++) {
        uint64_t first = block % span->grid[0] * KILN_BLOCK, row = block / span->grid[0];
        uint64_t end = kiln_min(first + KILN_BLOCK, n);
        if (row >= (uint64_t)args.m) break;
        for (uint64_t col = first; col < end; col += TILE) {
            size_t count = kiln_min(end - col, TILE);
            float *sums = scratch->sums[0], *gates = scratch->gates[0];
            if (args.paired) {
                join(&args, gates, row, 2 * n, col, count);
                join(&args, sums, row, 2 * n, n + col, count);
                finish_pairs(scratch, &args, gates, sums, row, col, count, dtype);
            } else {
                join(&args, sums, row, n, col, count);
                finish(scratch, &args, sums, row, col, count, dtype);
            }
        }
    }
}
KILN_CPU_KERNEL(gemm_w4a16_join)
