/* gemm_w4a16 of few rows of a on the CPU: dot products of up to 8 of them with rows of weights, of which up to four are
 * read at a time, each from its first byte to its last.
 *
 * A vector of words has eight vectors of integers, so that rows of a are dealt to eight vectors as well, as f32, once
 * for all blocks of a span where all of k fits. With up to four rows integers are multiplied as they are, eight for a
 * lane, whose sum is then multiplied by the lane's scale: all of a word are of one group. Zeros are factors of the sums
 * of a's elements. With AVX-512, 16 weights take a shift, a look-up of the integer and a product for each row of a.
 * With more rows registers are for more sums, and integers become weights before they are multiplied.
 *
 * Included once, by gemm_w4a16_cpu.c. */
#include "kernels/common/formats/int4_cpu.h"
#include "kernels/common/math/squares_cpu.h"

enum {
    COLUMNS = KILN_W4A16_BLOCK_COLUMNS, /* of a block */
    STRIP = 4,                          /* rows of weights at a time, at most */
    KEPT = 1 << 17,                     /* elements of a's rows that are kept as f32, in a second-level cache */
    PIECE = 1 << 14,                    /* of them that are multiplied at a time: most of a first-level cache, */
    PIECE_OF_MANY = PIECE / 2,          /* or less, if few rows of weights share what is read of many rows */
    GROUPS = PIECE / KILN_W4A16_CHUNK + KILN_VEC, /* of a piece of a row, at most, and what is read with the last */
    LINE = 64,                                    /* bytes */
    AHEAD = 512                                   /* bytes of weights, prefetched before they are needed */
};

typedef struct rows_scratch {
    float a[KEPT];                       /* dealt: of each piece, each row */
    float a_sums[KEPT / KILN_INT4_WORD]; /* of each word's eight */
    float scales[COLUMNS][GROUPS], zeros[COLUMNS][GROUPS];
    float products[ROWS][KILN_VEC][KILN_VEC]; /* of a row of a and a row of weights, by their place in a vector */
    float sums[ROWS][TILE], gates[ROWS][TILE];
    float norms[ROWS]; /* what rows of a are normalised by */
    finish_tiles tiles;
    bool taken; /* a has all of k */
} rows_scratch;
_Static_assert(sizeof(rows_scratch) <= KILN_CPU_SCRATCH, "fits");

/* Rows of weights, and the k that is multiplied. */
typedef struct piece {
    uint64_t col;
    size_t cols;
    uint64_t k, k_end;
    const float *a, *a_sums; /* of the first row, each of them piece_of(m) elements long */
} piece;

/* How much of k is multiplied at a time with m rows of a. */
KILN_INLINE size_t piece_of(size_t m) {
    return (m > 2 ? PIECE_OF_MANY : PIECE) / m;
}

/* Whether integers are multiplied as they are with m rows of a. */
KILN_INLINE bool multiplies_integers(size_t m) {
    return m <= 4;
}

/* How many rows of weights are multiplied at a time with m rows of a: two or four vectors of sums for each. */
KILN_INLINE size_t strip_of(size_t m) {
    const size_t most = KILN_VEC_REGISTERS / (multiplies_integers(m) ? 4u : 2u) / m;
    return most > STRIP ? STRIP : most ? most : 1;
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

/* Deals the elements [k, k_end) of a row of a, as f32 times norm and pre_scale. Zeros fill up the last vectors. units:
 * they are factors of integers in the units of int4_cpu.h. */
KILN_OUTLINED void take_row(float *kept, float *sums, const kiln_gemm_w4a16_args *args, const void *row, float norm,
                            const piece *p, bool units, kiln_cpu_dtype dtype) {
    for (uint64_t k = p->k; k < p->k_end; k += KILN_INT4_VEC, kept += KILN_INT4_VEC, sums += KILN_VEC) {
        kiln_vec dealt[KILN_INT4_WORD], sum = KILN_VEC_ZERO();
        for (size_t i = 0; i < KILN_INT4_WORD; i++) {
            const uint64_t at = k + i * KILN_VEC;
            const size_t count = at < p->k_end ? kiln_min(p->k_end - at, KILN_VEC) : 0;
            dealt[i] = count ? kiln_vec_load(kiln_at(row, at, dtype), count, dtype) : KILN_VEC_ZERO();
            if (args->norm_weight) dealt[i] = KILN_VEC_MUL(dealt[i], KILN_VEC_SET(norm));
            if (args->pre_scale && count)
                dealt[i] = KILN_VEC_MUL(dealt[i], kiln_vec_load(kiln_at(args->pre_scale, at, dtype), count, dtype));
        }
        kiln_vec_deal(dealt, KILN_INT4_WORD);
        KILN_UNROLL
        for (unsigned i = 0; i < KILN_INT4_WORD; i++) {
            sum = KILN_VEC_ADD(sum, dealt[i]);
            KILN_VEC_STORE(kept + i * KILN_VEC,
                           units ? KILN_VEC_MUL(dealt[i], KILN_VEC_SET(1 / kiln_int4_unit(i))) : dealt[i]);
        }
        KILN_VEC_STORE(sums, sum);
    }
}

/* Takes a piece of the rows of a, the last one several times if there are fewer than m. */
KILN_INLINE void take_rows(rows_scratch *scratch, const kiln_gemm_w4a16_args *args, const piece *p, size_t m,
                           kiln_cpu_dtype dtype) {
    for (size_t r = 0; r < m; r++) {
        const size_t row = kiln_min(r, (size_t)args->m - 1), at = (size_t)(p->a - scratch->a) + r * piece_of(m);
        const void *source = kiln_at(args->a, row * (uint64_t)args->a_stride, dtype);
        take_row(scratch->a + at, scratch->a_sums + at / KILN_INT4_WORD, args, source, scratch->norms[row], p,
                 multiplies_integers(m) && KILN_INT4_UNITS > 1, dtype);
    }
}

/* The scales, or zeros, of a piece's rows of weights for its groups. What a vector has beyond the last is zero. */
KILN_OUTLINED void take_scales(float (*to)[GROUPS], const void *from, const kiln_gemm_w4a16_args *args, const piece *p,
                               kiln_cpu_dtype dtype) {
    const uint64_t first = p->k >> args->group_log2, groups = ((p->k_end - 1) >> args->group_log2) - first + 1;
    for (size_t c = 0; c < p->cols; c++)
        memset(&to[c][groups], 0, KILN_VEC * sizeof **to);
    if (args->scale_group_step == 1) {
        for (size_t c = 0; c < p->cols; c++)
            for (uint64_t g = 0; g < groups; g += KILN_TILE) {
                uint64_t place = (p->col + c) * (uint64_t)args->scale_row_step + first + g;
                size_t n = kiln_min(groups - g, KILN_TILE);
                const float *values = kiln_tile_load(&to[c][g], kiln_at(from, place, dtype), n, dtype);
                if (values != &to[c][g]) memcpy(&to[c][g], values, n * sizeof *values);
            }
        return;
    }
    for (uint64_t g = 0; g < groups; g += KILN_VEC)
        for (size_t c = 0; c < p->cols; c += KILN_VEC) {
            kiln_vec block[KILN_VEC];
            const size_t cols = kiln_min(p->cols - c, KILN_VEC);
            for (size_t i = 0; i < KILN_VEC; i++) {
                const uint64_t place = (first + g + i) * (uint64_t)args->scale_group_step + p->col + c;
                block[i] = g + i < groups ? kiln_vec_load(kiln_at(from, place, dtype), cols, dtype) : KILN_VEC_ZERO();
            }
            kiln_vec_transpose(block);
            for (size_t i = 0; i < KILN_VEC; i++)
                KILN_VEC_STORE(&to[c + i][g], block[i]);
        }
}

/* What is multiplied at a time: a piece of rows of a with that of a few rows of weights. */
typedef struct strip {
    const float *a, *a_sums;
    const uint8_t *rows[STRIP];
    const float *scales[STRIP], *zeros[STRIP]; /* zeros: NULL if there are none */
    size_t bytes;                              /* of a row of what is multiplied */
    size_t next;                               /* bytes from a row to the one that is multiplied after it */
    unsigned vecs_log2;                        /* vectors of words in a group; fewer than one: */
    unsigned words_log2;                       /* words in a group */
    bool narrow;
} strip;

/* The scales, or zeros, of the lanes of a vector of words. */
KILN_INLINE kiln_vec scales_at(const float *scales, const strip *s, size_t vec) {
#if defined(__AVX512F__) || (defined(__AVX2__) && defined(__FMA__)) /* else a group is a vector at least */
    if (s->narrow) {
        const __m128 few = _mm_loadu_ps(scales + (vec * KILN_VEC >> s->words_log2));
#if defined(__AVX512F__)
        const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        return _mm512_permutexvar_ps(_mm512_srli_epi32(lane, s->words_log2), _mm512_castps128_ps512(few));
#else
        const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        return _mm256_permutevar8x32_ps(_mm256_castps128_ps256(few), _mm256_srli_epi32(lane, (int)s->words_log2));
#endif
    }
#endif
    return KILN_VEC_SET(scales[vec >> s->vecs_log2]);
}

/* A vector of a row of a: that of a place of a vector of words. */
KILN_INLINE kiln_vec a_at(const strip *s, size_t r, size_t vec, unsigned place, size_t m) {
    return KILN_VEC_LOAD(s->a + r * piece_of(m) + vec * KILN_INT4_VEC + place * KILN_VEC);
}

/* Adds the products of a vector of words of each row of weights, as integers. */
KILN_INLINE void multiply_integers(kiln_vec (*products)[STRIP], const strip *s, const kiln_int4_vec *words, size_t vec,
                                   size_t m) {
    const size_t count = strip_of(m);
    kiln_vec sums[ROWS][STRIP];
    kiln_int4_vec offset[STRIP];
    KILN_UNROLL
    for (size_t c = 0; c < count; c++)
        offset[c] = kiln_int4_offset(words[c]);
    KILN_UNROLL
    for (unsigned place = 0; place < KILN_INT4_WORD; place++) {
        kiln_vec integers[STRIP];
        KILN_UNROLL
        for (size_t c = 0; c < count; c++)
            integers[c] = kiln_int4_unit_at(offset[c], place);
        KILN_UNROLL
        for (size_t r = 0; r < m; r++) {
            const kiln_vec a = a_at(s, r, vec, place, m);
            KILN_UNROLL
            for (size_t c = 0; c < count; c++)
                sums[r][c] = place ? KILN_VEC_FMA(a, integers[c], sums[r][c]) : KILN_VEC_MUL(a, integers[c]);
        }
    }
    KILN_UNROLL
    for (size_t c = 0; c < count; c++) {
        const kiln_vec scale = scales_at(s->scales[c], s, vec);
        KILN_UNROLL
        for (size_t r = 0; r < m; r++)
            products[r][c] = KILN_VEC_FMA(sums[r][c], scale, products[r][c]);
        if (!s->zeros[c]) continue;
        const kiln_vec zero = scales_at(s->zeros[c], s, vec);
        KILN_UNROLL
        for (size_t r = 0; r < m; r++) {
            const kiln_vec sum = KILN_VEC_LOAD(s->a_sums + r * (piece_of(m) / KILN_INT4_WORD) + vec * KILN_VEC);
            products[r][c] = KILN_VEC_FMA(sum, zero, products[r][c]);
        }
    }
}

/* The same, as weights. */
KILN_INLINE void multiply_weights(kiln_vec (*products)[STRIP], const strip *s, const kiln_int4_vec *words, size_t vec,
                                  size_t m) {
    const size_t count = strip_of(m);
    kiln_vec scales[STRIP], zeros[STRIP];
    KILN_UNROLL
    for (size_t c = 0; c < count; c++) {
        scales[c] = scales_at(s->scales[c], s, vec);
        zeros[c] = s->zeros[c] ? scales_at(s->zeros[c], s, vec) : KILN_VEC_ZERO();
    }
    KILN_UNROLL
    for (unsigned place = 0; place < KILN_INT4_WORD; place++) {
        kiln_vec weights[STRIP];
        KILN_UNROLL
        for (size_t c = 0; c < count; c++)
            weights[c] = KILN_VEC_FMA(kiln_int4_at(words[c], place), scales[c], zeros[c]);
        KILN_UNROLL
        for (size_t r = 0; r < m; r++) {
            const kiln_vec a = a_at(s, r, vec, place, m);
            KILN_UNROLL
            for (size_t c = 0; c < count; c++)
                products[r][c] = KILN_VEC_FMA(a, weights[c], products[r][c]);
        }
    }
}

KILN_INLINE void multiply_words(kiln_vec (*products)[STRIP], const strip *s, const kiln_int4_vec *words, size_t vec,
                                size_t m) {
    if (multiplies_integers(m))
        multiply_integers(products, s, words, vec, m);
    else
        multiply_weights(products, s, words, vec, m);
}

/* The sums of the products of m rows of a with a strip, by their place in a vector. */
KILN_INLINE void multiply_strip(rows_scratch *scratch, const strip *s, size_t col, size_t m) {
    const size_t count = strip_of(m);
    kiln_vec products[ROWS][STRIP];
    kiln_int4_vec words[STRIP];
    size_t at = 0;
    KILN_UNROLL
    for (size_t r = 0; r < m; r++) {
        KILN_UNROLL
        for (size_t c = 0; c < count; c++)
            products[r][c] = KILN_VEC_ZERO();
    }
    for (; at + KILN_INT4_VEC_BYTES <= s->bytes; at += KILN_INT4_VEC_BYTES) {
        const size_t next = at + AHEAD < s->bytes ? at + AHEAD : at + AHEAD - s->bytes + s->next;
        KILN_UNROLL
        for (size_t c = 0; c < count; c++) {
            if (at % LINE == 0) __builtin_prefetch(s->rows[c] + next, 0, 2);
            words[c] = kiln_int4_load(s->rows[c] + at);
        }
        multiply_words(products, s, words, at / KILN_INT4_VEC_BYTES, m);
    }
    if (at < s->bytes) {
        KILN_UNROLL
        for (size_t c = 0; c < count; c++) {
            uint8_t last[KILN_INT4_VEC_BYTES] = {0};
            memcpy(last, s->rows[c] + at, s->bytes - at);
            words[c] = kiln_int4_load(last);
        }
        multiply_words(products, s, words, at / KILN_INT4_VEC_BYTES, m);
    }
    KILN_UNROLL
    for (size_t r = 0; r < m; r++) {
        KILN_UNROLL
        for (size_t c = 0; c < count; c++)
            KILN_VEC_STORE(scratch->products[r][(col + c) % KILN_VEC], products[r][c]);
    }
}

/* The strip of a piece that begins with a column; the last row several times if there are fewer. */
KILN_INLINE strip strip_at(const rows_scratch *scratch, const kiln_gemm_w4a16_args *args, const piece *p, size_t col,
                           size_t count) {
    const uint64_t row_bytes = (uint64_t)args->k / 2;
    strip s = {.a = p->a, .a_sums = p->a_sums, .bytes = (size_t)(p->k_end - p->k) / 2, .next = count * row_bytes};
    const unsigned vec_log2 = (unsigned)__builtin_ctz(KILN_INT4_VEC),
                   word_log2 = (unsigned)__builtin_ctz(KILN_INT4_WORD);
    s.narrow = args->group_log2 < vec_log2;
    s.words_log2 = args->group_log2 - word_log2;
    s.vecs_log2 = s.narrow ? 0 : args->group_log2 - vec_log2;
    KILN_UNROLL
    for (size_t c = 0; c < count; c++) {
        const size_t row = kiln_min(col + c, p->cols - 1);
        s.rows[c] = args->weights + (p->col + row) * row_bytes + p->k / 2;
        s.scales[c] = scratch->scales[row];
        s.zeros[c] = args->zeros ? scratch->zeros[row] : NULL;
    }
    return s;
}

/* Adds to sums those that multiply_strip left. */
KILN_INLINE void add_products(rows_scratch *scratch, size_t col, size_t m) {
    for (size_t r = 0; r < m; r++)
        kiln_vec_add_sums(&scratch->sums[r][col], (const float(*)[KILN_VEC])scratch->products[r]);
}

/* Computes the sums of up to m rows of a with all rows of weights of `all`. */
KILN_INLINE void multiply_rows(rows_scratch *scratch, const kiln_gemm_w4a16_args *args, const piece *all, size_t m,
                               kiln_cpu_dtype dtype) {
    const size_t count = strip_of(m), most = piece_of(m);
    const bool fits = args->k <= (int64_t)(KEPT / m / most * most);
    memset(scratch->sums, 0, sizeof scratch->sums);
    if (all->cols % KILN_VEC) memset(scratch->products, 0, sizeof scratch->products); /* of rows beyond the last */
    for (uint64_t k = all->k; k < all->k_end; k += most) {
        const size_t at = fits ? (size_t)k * m : 0;
        piece p = *all;
        p.k = k;
        p.k_end = kiln_min(k + most, all->k_end);
        p.a = scratch->a + at;
        p.a_sums = scratch->a_sums + at / KILN_INT4_WORD;
        if (!scratch->taken) take_rows(scratch, args, &p, m, dtype);
        take_scales(scratch->scales, args->scales, args, &p, dtype);
        if (args->zeros) take_scales(scratch->zeros, args->zeros, args, &p, dtype);
        for (size_t col = 0; col < p.cols; col += KILN_VEC) {
            for (size_t i = 0; i < KILN_VEC && col + i < p.cols; i += count) {
                const strip s = strip_at(scratch, args, &p, col + i, count);
                multiply_strip(scratch, &s, col + i, m);
            }
            add_products(scratch, col, m);
        }
    }
    scratch->taken = fits;
}

/* The same of all rows of a, as few as there are. */
KILN_INLINE void multiply_few_rows(rows_scratch *scratch, const kiln_gemm_w4a16_args *args, const piece *p,
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
    rows_scratch *scratch = span->scratch;
    const uint64_t columns = args.paired ? COLUMNS / 2 : COLUMNS;
    scratch->taken = false;
    for (size_t row = 0; row < (size_t)args.m; row++)
        scratch->norms[row] =
            args.norm_weight ? norm_of(&args, kiln_at(args.a, row * (uint64_t)args.a_stride, dtype), dtype) : 1;
    for (uint64_t block = span->begin; block < kiln_min(span->end, span->grid[0]); block++) {
        piece p = {.col = block * columns, .k_end = (uint64_t)args.k};
        const uint64_t col = p.col;
        p.cols = kiln_min((uint64_t)args.n - p.col, columns);
        for (uint32_t part = 0; part <= args.paired; part++) {
            if (part) memcpy(scratch->gates, scratch->sums, sizeof scratch->gates);
            p.col = col + part * (uint64_t)args.n;
            multiply_few_rows(scratch, &args, &p, dtype);
        }
        for (size_t row = 0; row < (size_t)args.m; row++) {
            if (args.paired)
                finish_pairs(&scratch->tiles, &args, scratch->gates[row], scratch->sums[row], row, col, p.cols, dtype);
            else
                finish(&scratch->tiles, &args, scratch->sums[row], row, col, p.cols, dtype);
        }
    }
}
KILN_CPU_KERNEL(gemm_w4a16_rows)

/* gemm_w4a16_rows does it all. */
KILN_OUTLINED void gemm_w4a16_fused_rows(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    gemm_w4a16_rows(arguments, span, dtype);
}
KILN_CPU_KERNEL(gemm_w4a16_fused_rows)
