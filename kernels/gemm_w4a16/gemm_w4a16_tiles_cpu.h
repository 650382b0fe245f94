/* gemm_w4a16_tiles on the CPU: as gemm's tiles, with weights in place of b. Consecutive blocks compute tiles of d below
 * each other, and up to STRIP of them are computed together: DEPTH columns of 64 rows of weights are decoded into the
 * first-level cache, transposed as words of eight integers, and multiplied with all rows of a that the strip has.
 *
 * Included once, by gemm_w4a16_cpu.c. */
#include "kernels/common/formats/int4_cpu.h"
#include "kernels/common/matmul/matmul_cpu.h"

enum {
    DEPTH = 128,             /* columns of weights */
    SCALES = 16,             /* groups whose scales are kept */
    EACH = KILN_MATMUL_ROWS, /* rows of a at a time */
    TILES_ROWS = (KILN_MATMUL_STRIP * TILE + EACH - 1) / EACH * EACH
};
_Static_assert(TILE == (int)KILN_MATMUL_TILE, "is what is multiplied");
_Static_assert(DEPTH % KILN_INT4_VEC == 0 && DEPTH <= SCALES * KILN_W4A16_CHUNK, "whole vectors of words; scales fit");

typedef struct tiles_scratch {
    float sums[TILES_ROWS][TILE];
    float columns[DEPTH][TILE];
    float converted[EACH][DEPTH], factors[DEPTH];
    float scales[SCALES][TILE], zeros[SCALES][TILE];
    finish_tiles tiles;
    uint64_t scales_end; /* the first group whose scales are not here */
} tiles_scratch;
_Static_assert(sizeof(tiles_scratch) <= KILN_CPU_SCRATCH, "fits");

/* The scales, or zeros, of a strip's rows of weights for count groups from `first` on, as columns. */
KILN_INLINE void take_group_columns(float (*to)[TILE], const void *from, const kiln_gemm_w4a16_args *args,
                                    const kiln_matmul_strip *s, uint64_t first, size_t count, kiln_cpu_dtype dtype) {
    if (args->scale_group_step == 1) {
        const uint64_t place = s->col * (uint64_t)args->scale_row_step + first;
        kiln_matmul_transpose(to, kiln_at(from, place, dtype), (uint64_t)args->scale_row_step, s->cols, count, dtype);
        return;
    }
    for (size_t g = 0; g < count; g++) {
        const uint64_t place = (first + g) * (uint64_t)args->scale_group_step + s->col;
        const float *values = kiln_tile_load(to[g], kiln_at(from, place, dtype), s->cols, dtype);
        if (values != to[g]) memcpy(to[g], values, s->cols * sizeof *values);
    }
}

/* Sees to it that the scratch memory has the scales for [k, k_end). Its first group is a multiple of SCALES. */
KILN_OUTLINED void take_group_scales(tiles_scratch *scratch, const kiln_gemm_w4a16_args *args,
                                     const kiln_matmul_strip *s, uint64_t k, uint64_t k_end, kiln_cpu_dtype dtype) {
    const uint64_t last = (k_end - 1) >> args->group_log2, first = (k >> args->group_log2) / SCALES * SCALES;
    if (last < scratch->scales_end) return;
    const size_t count = kiln_min((((uint64_t)args->k - 1) >> args->group_log2) + 1 - first, SCALES);
    take_group_columns(scratch->scales, args->scales, args, s, first, count, dtype);
    if (args->zeros) take_group_columns(scratch->zeros, args->zeros, args, s, first, count, dtype);
    scratch->scales_end = first + count;
}

/* A vector of words of a row from a byte on, with zeros behind the last of count bytes. */
KILN_INLINE kiln_vec words_of(const uint8_t *row, size_t count) {
    uint8_t last[KILN_VEC * sizeof(float)] = {0};
    kiln_vec words;
    if (count < sizeof last) memcpy(last, row, count);
    memcpy(&words, count < sizeof last ? last : row, sizeof words);
    return words;
}

/* Decodes [k, k + n) of the rows of weights as columns. Vectors that need more rows get the last one. */
KILN_OUTLINED void decode_columns(tiles_scratch *scratch, const kiln_gemm_w4a16_args *args, const kiln_matmul_strip *s,
                                  uint64_t k, size_t n) {
    const size_t end = (s->cols + KILN_MATMUL_SPAN - 1) / KILN_MATMUL_SPAN * KILN_MATMUL_SPAN;
    const uint64_t row_bytes = (uint64_t)args->k / 2;
    for (size_t row = 0; row < end; row += KILN_VEC)
        for (size_t at = 0; at < n; at += KILN_INT4_VEC) {
            kiln_vec block[KILN_VEC];
            KILN_UNROLL
            for (size_t i = 0; i < KILN_VEC; i++) {
                const uint64_t weight_row = s->col + kiln_min(row + i, s->cols - 1);
                block[i] = words_of(args->weights + weight_row * row_bytes + (k + at) / 2, (n - at) / 2);
            }
            kiln_vec_transpose(block);
            KILN_UNROLL
            for (size_t i = 0; i < KILN_VEC; i++) {
                const uint64_t group = (k + at + i * KILN_INT4_WORD) >> args->group_log2;
                const kiln_vec scale = KILN_VEC_LOAD(&scratch->scales[group % SCALES][row]);
                const kiln_vec zero =
                    args->zeros ? KILN_VEC_LOAD(&scratch->zeros[group % SCALES][row]) : KILN_VEC_ZERO();
                kiln_int4_vec words;
                memcpy(&words, &block[i], sizeof words);
                KILN_UNROLL
                for (unsigned place = 0; place < KILN_INT4_WORD; place++)
                    KILN_VEC_STORE(&scratch->columns[at + i * KILN_INT4_WORD + place][row],
                                   KILN_VEC_FMA(kiln_int4_at(words, place), scale, zero));
            }
        }
}

/* n elements of a row of a from k on as f32 times pre_scale, whose elements from k on are in scratch->factors. */
KILN_INLINE const float *take_scaled(float *kept, const kiln_gemm_w4a16_args *args, const float *factors, uint64_t row,
                                     uint64_t k, size_t n, kiln_cpu_dtype dtype) {
    const void *source = kiln_at(args->a, row * (uint64_t)args->a_stride + k, dtype);
    const float *values = kiln_tile_load(kept, source, n, dtype);
    if (!args->pre_scale) return values;
    KILN_INDEPENDENT
    for (size_t i = 0; i < n; i++)
        kept[i] = values[i] * factors[i];
    return kept;
}

/* Writes the results of rows of a strip. */
KILN_INLINE void finish_rows(tiles_scratch *scratch, const kiln_gemm_w4a16_args *args, const kiln_matmul_strip *s,
                             size_t row, size_t end, kiln_cpu_dtype dtype) {
    for (; row < end; row++) {
        const uint64_t place = kiln_matmul_partial(s, row, (uint64_t)args->m, (uint64_t)args->n);
        if (args->partials)
            memcpy(args->partials + place, scratch->sums[row], s->cols * sizeof(float));
        else
            finish(&scratch->tiles, args, scratch->sums[row], s->row + row, s->col, s->cols, dtype);
    }
}

/* Adds to the sums the products of [k, k + n), and finishes rows after their last, while a near cache still has their
 * sums. */
KILN_INLINE void multiply_tile_strip(tiles_scratch *scratch, const kiln_gemm_w4a16_args *args,
                                     const kiln_matmul_strip *s, uint64_t k, size_t n, kiln_cpu_dtype dtype) {
    const size_t size = kiln_dtype_size(dtype);
    if (args->pre_scale) {
        const float *factors = kiln_tile_load(scratch->factors, kiln_at(args->pre_scale, k, dtype), n, dtype);
        if (factors != scratch->factors) memcpy(scratch->factors, factors, n * sizeof *factors);
    }
    decode_columns(scratch, args, s, k, n);
    for (size_t row = 0; row < s->rows; row += EACH) {
        const size_t end = kiln_min(row + EACH, s->rows);
        const uint64_t next = (s->row + row + EACH) * (uint64_t)args->a_stride + k;
        kiln_matmul_rows rows;
        kiln_matmul_begin(&rows, size);
        kiln_matmul_ask(&rows, kiln_at(args->a, next, dtype), (uint64_t)args->a_stride * size, EACH);
        for (size_t r = 0; r < EACH; r++) /* the last row several times, if there are no more */
            rows.values[r] = take_scaled(scratch->converted[r], args, scratch->factors,
                                         s->row + kiln_min(row + r, s->rows - 1), k, n, dtype);
        kiln_matmul_columns(scratch->sums[row], &rows, scratch->columns[0], n, s->cols);
        if (k + n == s->k_end) finish_rows(scratch, args, s, row, end, dtype);
    }
}

KILN_OUTLINED void gemm_w4a16_tiles(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_gemm_w4a16_args args = *(const kiln_gemm_w4a16_args *)arguments; /* a copy, which no store can change */
    tiles_scratch *scratch = span->scratch;
    const kiln_matmul_sizes sizes = {(uint64_t)args.m, (uint64_t)args.n, (uint64_t)args.k, args.split, args.tile_rows};
    kiln_matmul_strip s;
    for (uint64_t block = span->begin; block < span->end; block += s.blocks) {
        s = kiln_matmul_strip_of(&sizes, span, block);
        if (s.split >= args.splits) break;
        scratch->scales_end = 0;
        memset(scratch->sums, 0, (s.rows + EACH - 1) / EACH * EACH * sizeof *scratch->sums);
        for (uint64_t k = s.k, n; k < s.k_end; k += n) {
            n = kiln_min(s.k_end - k, DEPTH - k % DEPTH); /* no further than kept scales reach */
            take_group_scales(scratch, &args, &s, k, k + n, dtype);
            multiply_tile_strip(scratch, &args, &s, k, n, dtype);
        }
        if (s.k >= s.k_end) finish_rows(scratch, &args, &s, 0, s.rows, dtype); /* empty sums */
    }
}
KILN_CPU_KERNEL(gemm_w4a16_tiles)
