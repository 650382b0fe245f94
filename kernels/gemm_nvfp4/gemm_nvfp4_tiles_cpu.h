/* gemm_nvfp4_tiles on the CPU: as gemm's tiles, from codes. Consecutive blocks compute tiles of d below each other, and
 * up to STRIP of them are computed together: DEPTH columns of 64 rows of b are decoded into the first-level cache,
 * transposed as words of eight codes, and multiplied with all rows of a that the strip has.
 *
 * Included once, by gemm_nvfp4_cpu.c. */
#include "kernels/common/matmul/matmul_cpu.h"

enum {
    DEPTH = 128, /* columns of b */
    DEPTH_BLOCKS = DEPTH / KILN_NVFP4_BLOCK,
    KEPT_BLOCKS = 4 * DEPTH_BLOCKS, /* whose scales are taken at a time */
    EACH = KILN_MATMUL_ROWS,        /* rows of a at a time */
    TILES_ROWS = (KILN_MATMUL_STRIP * TILE + EACH - 1) / EACH * EACH
};
_Static_assert(TILE == (int)KILN_MATMUL_TILE, "is what is multiplied");
_Static_assert(DEPTH % KILN_INT4_VEC == 0 && KEPT_BLOCKS % KILN_E4M3_AT_A_TIME == 0 && KEPT_BLOCKS <= (int)SCALES,
               "whole vectors; scales fit");

typedef struct tiles_scratch {
    float sums[TILES_ROWS][TILE];
    float columns[DEPTH][TILE];
    float numbers[EACH][DEPTH]; /* of a */
    float a_scales[TILES_ROWS][KEPT_BLOCKS], b_scales[TILE][KEPT_BLOCKS];
    float scales[KEPT_BLOCKS][TILE]; /* of b */
    finish_tiles tiles;
} tiles_scratch;
_Static_assert(sizeof(tiles_scratch) <= KILN_CPU_SCRATCH, "fits");

/* Which of the blocks whose scales are taken begins at k. */
KILN_INLINE size_t kept_at(const kiln_matmul_strip *s, uint64_t k) {
    return (size_t)(k - s->k) / KILN_NVFP4_BLOCK % KEPT_BLOCKS;
}

/* Takes the scales of n codes of the strip's rows from k on. */
KILN_OUTLINED void take_all_scales(tiles_scratch *scratch, const kiln_gemm_nvfp4_args *args, const kiln_matmul_strip *s,
                                   uint64_t k, size_t n) {
    for (size_t row = 0; row < s->rows; row++)
        take_scales(scratch->a_scales[row], &args->a, s->row + row, k, n);
    for (size_t row = 0; row < s->cols; row++)
        take_scales(scratch->b_scales[row], &args->b, s->col + row, k, n);
    kiln_matmul_transpose(scratch->scales, scratch->b_scales, KEPT_BLOCKS, s->cols, vecs_of(n) * BLOCKS, KILN_CPU_f32);
}

/* Decodes n codes of the rows of b from k on as columns, in the order of take_numbers. Vectors that need more
 * rows get the last one. */
KILN_OUTLINED void decode_columns(tiles_scratch *scratch, const kiln_gemm_nvfp4_args *args, const kiln_matmul_strip *s,
                                  uint64_t k, size_t n) {
    const float(*scales)[TILE] = (const float(*)[TILE])scratch->scales[kept_at(s, k)];
    const size_t end = (s->cols + KILN_MATMUL_SPAN - 1) / KILN_MATMUL_SPAN * KILN_MATMUL_SPAN;
    for (size_t row = 0; row < end; row += KILN_VEC)
        for (size_t vec = 0; vec < vecs_of(n); vec++) {
            kiln_vec block[KILN_VEC];
            KILN_UNROLL
            for (size_t i = 0; i < KILN_VEC; i++) {
                const uint64_t b_row = s->col + kiln_min(row + i, s->cols - 1);
                const kiln_int4_vec words = words_at(args->b.codes + b_row * (uint64_t)args->b.stride + k / 2, vec, n);
                memcpy(&block[i], &words, sizeof words);
            }
            kiln_vec_transpose(block);
            KILN_UNROLL
            for (size_t i = 0; i < KILN_VEC; i++) {
                const kiln_vec scale = KILN_VEC_LOAD(&scales[vec * BLOCKS + i / 2][row]);
                float(*to)[TILE] = &scratch->columns[vec * KILN_INT4_VEC + i];
                kiln_int4_vec words;
                memcpy(&words, &block[i], sizeof words);
                KILN_UNROLL
                for (unsigned place = 0; place < HALVES * WORD_BYTES; place++) {
                    const kiln_int4_vec halves = kiln_e2m1_half(words, place / WORD_BYTES);
                    KILN_VEC_STORE(&to[place * KILN_VEC][row],
                                   KILN_VEC_MUL(kiln_e2m1_byte(halves, place % WORD_BYTES), scale));
                }
            }
        }
}

/* Writes the results of rows of a strip. */
KILN_INLINE void finish_rows(tiles_scratch *scratch, const kiln_gemm_nvfp4_args *args, const kiln_matmul_strip *s,
                             size_t row, size_t end, kiln_cpu_dtype dtype) {
    for (; row < end; row++) {
        const uint64_t place = kiln_matmul_partial(s, row, (uint64_t)args->m, (uint64_t)args->n);
        if (args->partials)
            memcpy(args->partials + place, scratch->sums[row], s->cols * sizeof(float));
        else
            finish(&scratch->tiles, args, scratch->sums[row], s->row + row, s->col, s->cols, dtype);
    }
}

/* Adds to the sums the products of n codes from k on, whose columns have been decoded, and finishes rows after their
 * last, while a near cache still has their sums. */
KILN_INLINE void multiply_tile_strip(tiles_scratch *scratch, const kiln_gemm_nvfp4_args *args,
                                     const kiln_matmul_strip *s, uint64_t k, size_t n, kiln_cpu_dtype dtype) {
    for (size_t row = 0; row < s->rows; row += EACH) {
        const size_t end = kiln_min(row + EACH, s->rows);
        const uint64_t next = (s->row + row + EACH) * (uint64_t)args->a.stride + k / 2;
        kiln_matmul_rows rows;
        kiln_matmul_begin(&rows, 0);
        kiln_matmul_ask(&rows, args->a.codes + next, (uint64_t)args->a.stride, EACH);
        for (size_t r = 0; r < EACH; r++) { /* the last row several times, if there are no more */
            const size_t at = kiln_min(row + r, s->rows - 1);
            const uint8_t *codes = args->a.codes + (s->row + at) * (uint64_t)args->a.stride + k / 2;
            take_numbers(scratch->numbers[r], codes, scratch->a_scales[at] + kept_at(s, k), n);
            rows.values[r] = scratch->numbers[r];
        }
        kiln_matmul_columns(scratch->sums[row], &rows, scratch->columns[0], vecs_of(n) * KILN_INT4_VEC, s->cols);
        if (k + n == s->k_end) finish_rows(scratch, args, s, row, end, dtype);
    }
}

KILN_OUTLINED void gemm_nvfp4_tiles(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_gemm_nvfp4_args args = *(const kiln_gemm_nvfp4_args *)arguments; /* a copy, which no store can change */
    tiles_scratch *scratch = span->scratch;
    const kiln_matmul_sizes sizes = {(uint64_t)args.m, (uint64_t)args.n, (uint64_t)args.k, args.split, args.tile_rows};
    kiln_matmul_strip s;
    for (uint64_t block = span->begin; block < span->end; block += s.blocks) {
        s = kiln_matmul_strip_of(&sizes, span, block);
        if (s.split >= args.splits) break;
        memset(scratch->sums, 0, (s.rows + EACH - 1) / EACH * EACH * sizeof *scratch->sums);
        for (uint64_t k = s.k; k < s.k_end; k += DEPTH) {
            const size_t n = kiln_min(s.k_end - k, DEPTH);
            if (!kept_at(&s, k))
                take_all_scales(scratch, &args, &s, k, kiln_min(s.k_end - k, KEPT_BLOCKS * KILN_NVFP4_BLOCK));
            decode_columns(scratch, &args, &s, k, n);
            multiply_tile_strip(scratch, &args, &s, k, n, dtype);
        }
        if (s.k >= s.k_end) finish_rows(scratch, &args, &s, 0, s.rows, dtype); /* empty sums */
    }
}
KILN_CPU_KERNEL(gemm_nvfp4_tiles)
