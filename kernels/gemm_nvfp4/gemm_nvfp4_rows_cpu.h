/* gemm_nvfp4 of few rows of a on the CPU: dot products of up to 8 of them with rows of b, of which up to four are read
 * at a time, each from its first byte to its last.
 *
 * Rows of a become f32, times their scales, once for all blocks of a span where all of k fits. With up to four rows
 * the numbers of b's codes are multiplied as they are, eight for a lane, whose sum is then multiplied by the lane's
 * scale. With AVX-512, 16 codes take a shift, a look-up and a product for each row of a. With more rows registers are
 * for more sums, and numbers are scaled before they are multiplied.
 *
 * Included once, by gemm_nvfp4_cpu.c. */

enum {
    STRIP = 4,                 /* rows of b at a time, at most */
    KEPT = 1 << 17,            /* elements of a's rows that are kept as f32, in a second-level cache */
    PIECE = 1 << 14,           /* of them that are multiplied at a time: most of a first-level cache, */
    PIECE_OF_MANY = PIECE / 2, /* or less, if few rows of b share what is read of many rows */
    LINE = 64,                 /* bytes */
    AHEAD = 512                /* bytes of b, prefetched before they are needed */
};
_Static_assert((int)PIECE <= (int)SCALES * KILN_NVFP4_BLOCK, "scales of a piece");

typedef struct rows_scratch {
    float a[KEPT]; /* of each piece, each row */
    float scales[STRIP][SCALES];
    float products[ROWS][KILN_VEC][KILN_VEC]; /* of a row of a and a row of b, by their place in a vector */
    float sums[ROWS][TILE];
    finish_tiles tiles;
    uint64_t taken; /* the first of the rows of which a has all of k; none: all bits */
} rows_scratch;
_Static_assert(sizeof(rows_scratch) <= KILN_CPU_SCRATCH, "fits");

/* Rows of a and of b, and the k that is multiplied. */
typedef struct piece {
    uint64_t row, col;
    size_t rows, cols;
    uint64_t k, k_end;
    const float *a; /* of the first row, each of them piece_of(m) elements long */
} piece;

/* How much of k is multiplied at a time with m rows of a. */
KILN_INLINE size_t piece_of(size_t m) {
    return (m > 2 ? PIECE_OF_MANY : PIECE) / m;
}

/* Whether numbers are scaled after they were multiplied with m rows of a. */
KILN_INLINE bool scales_sums(size_t m) {
    return m <= 4;
}

/* How many rows of b are multiplied at a time with m rows of a: two or four vectors of sums for each. */
KILN_INLINE size_t strip_of(size_t m) {
    const size_t most = KILN_VEC_REGISTERS / (scales_sums(m) ? 4u : 2u) / m;
    return most > STRIP ? STRIP : most ? most : 1;
}

/* What is multiplied at a time: a piece of rows of a with that of a few rows of b. */
typedef struct strip {
    const float *a;
    const uint8_t *rows[STRIP];
    size_t n;    /* codes of a row */
    size_t next; /* bytes from a row to the one that is multiplied after it */
} strip;

/* Adds the products of a vector of words of each row of b. */
KILN_INLINE void multiply_words(kiln_vec (*products)[STRIP], const rows_scratch *scratch, const strip *s,
                                const kiln_int4_vec *words, size_t vec, size_t m) {
    const size_t count = strip_of(m);
    const float *a = s->a + vec * KILN_INT4_VEC;
    kiln_vec sums[ROWS][STRIP], scales[STRIP];
    KILN_UNROLL
    for (size_t c = 0; c < count; c++)
        scales[c] = scales_at(scratch->scales[c], vec);
    KILN_UNROLL
    for (unsigned half = 0; half < HALVES; half++) {
        kiln_int4_vec halves[STRIP];
        KILN_UNROLL
        for (size_t c = 0; c < count; c++)
            halves[c] = kiln_e2m1_half(words[c], half);
        KILN_UNROLL
        for (unsigned byte = 0; byte < WORD_BYTES; byte++, a += KILN_VEC) {
            const bool first = !half && !byte;
            kiln_vec numbers[STRIP];
            KILN_UNROLL
            for (size_t c = 0; c < count; c++) {
                numbers[c] = kiln_e2m1_byte(halves[c], byte);
                if (!scales_sums(m)) numbers[c] = KILN_VEC_MUL(numbers[c], scales[c]);
            }
            KILN_UNROLL
            for (size_t r = 0; r < m; r++) {
                const kiln_vec element = KILN_VEC_LOAD(a + r * piece_of(m));
                KILN_UNROLL
                for (size_t c = 0; c < count; c++)
                    if (!scales_sums(m))
                        products[r][c] = KILN_VEC_FMA(element, numbers[c], products[r][c]);
                    else
                        sums[r][c] =
                            first ? KILN_VEC_MUL(element, numbers[c]) : KILN_VEC_FMA(element, numbers[c], sums[r][c]);
            }
        }
    }
    if (!scales_sums(m)) return;
    KILN_UNROLL
    for (size_t r = 0; r < m; r++) {
        KILN_UNROLL
        for (size_t c = 0; c < count; c++)
            products[r][c] = KILN_VEC_FMA(sums[r][c], scales[c], products[r][c]);
    }
}

/* The sums of the products of m rows of a with a strip, by their place in a vector. */
KILN_INLINE void multiply_strip(rows_scratch *scratch, const strip *s, size_t col, size_t m) {
    const size_t count = strip_of(m), vecs = vecs_of(s->n), bytes = (s->n + 1) / 2;
    kiln_vec products[ROWS][STRIP];
    KILN_UNROLL
    for (size_t r = 0; r < m; r++) {
        KILN_UNROLL
        for (size_t c = 0; c < count; c++)
            products[r][c] = KILN_VEC_ZERO();
    }
    for (size_t vec = 0; vec < vecs; vec++) {
        const size_t at = vec * KILN_INT4_VEC_BYTES;
        const size_t next = at + AHEAD < bytes ? at + AHEAD : at + AHEAD - bytes + s->next;
        kiln_int4_vec words[STRIP];
        KILN_UNROLL
        for (size_t c = 0; c < count; c++) {
            if (at % LINE == 0) __builtin_prefetch(s->rows[c] + next, 0, 2);
            words[c] = words_at(s->rows[c], vec, s->n);
        }
        multiply_words(products, scratch, s, words, vec, m);
    }
    KILN_UNROLL
    for (size_t r = 0; r < m; r++) {
        KILN_UNROLL
        for (size_t c = 0; c < count; c++)
            KILN_VEC_STORE(scratch->products[r][(col + c) % KILN_VEC], products[r][c]);
    }
}

/* The strip of a piece that begins with a column, and its scales; the last row several times if there are fewer. */
KILN_INLINE strip strip_at(rows_scratch *scratch, const kiln_gemm_nvfp4_args *args, const piece *p, size_t col,
                           size_t count) {
    strip s = {.a = p->a, .n = (size_t)(p->k_end - p->k), .next = count * (uint64_t)args->b.stride};
    KILN_UNROLL
    for (size_t c = 0; c < count; c++) {
        const uint64_t row = p->col + kiln_min(col + c, p->cols - 1);
        s.rows[c] = args->b.codes + row * (uint64_t)args->b.stride + p->k / 2;
        take_scales(scratch->scales[c], &args->b, row, p->k, s.n);
    }
    return s;
}

/* Adds to sums those that multiply_strip left. */
KILN_INLINE void add_products(rows_scratch *scratch, size_t col, size_t m) {
    for (size_t r = 0; r < m; r++)
        kiln_vec_add_sums(&scratch->sums[r][col], (const float(*)[KILN_VEC])scratch->products[r]);
}

/* Computes the sums of up to m rows of a, the last one several times if there are fewer, with all rows of b of `all`.
 */
KILN_INLINE void multiply_rows(rows_scratch *scratch, const kiln_gemm_nvfp4_args *args, const piece *all, size_t m) {
    const size_t count = strip_of(m), most = piece_of(m);
    const bool fits = args->k <= (int64_t)(KEPT / m / most * most), taken = fits && scratch->taken == all->row;
    memset(scratch->sums, 0, sizeof scratch->sums);
    if (all->cols % KILN_VEC) memset(scratch->products, 0, sizeof scratch->products); /* of rows beyond the last */
    for (uint64_t k = all->k; k < all->k_end; k += most) {
        float *a = scratch->a + (fits ? (size_t)k * m : 0);
        piece p = *all;
        p.k = k;
        p.k_end = kiln_min(k + most, all->k_end);
        p.a = a;
        for (size_t r = 0; !taken && r < m; r++) {
            const uint64_t row = p.row + kiln_min(r, p.rows - 1);
            const size_t n = (size_t)(p.k_end - k);
            take_scales(scratch->scales[0], &args->a, row, k, n);
            take_numbers(a + r * most, args->a.codes + row * (uint64_t)args->a.stride + k / 2, scratch->scales[0], n);
        }
        for (size_t col = 0; col < p.cols; col += KILN_VEC) {
            for (size_t i = 0; i < KILN_VEC && col + i < p.cols; i += count) {
                const strip s = strip_at(scratch, args, &p, col + i, count);
                multiply_strip(scratch, &s, col + i, m);
            }
            add_products(scratch, col, m);
        }
    }
    scratch->taken = fits ? all->row : UINT64_MAX;
}

KILN_OUTLINED void gemm_nvfp4_rows(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_gemm_nvfp4_args args = *(const kiln_gemm_nvfp4_args *)arguments; /* a copy, which no store can change */
    rows_scratch *scratch = span->scratch;
    scratch->taken = UINT64_MAX;
    for (uint64_t block = span->begin; block < span->end; block++) {
        piece p = {.row = block / span->grid[0] * ROWS, .col = block % span->grid[0] * COLUMNS};
        if (p.row >= (uint64_t)args.m) break;
        p.rows = kiln_min((uint64_t)args.m - p.row, ROWS);
        p.cols = kiln_min((uint64_t)args.n - p.col, COLUMNS);
        p.k_end = (uint64_t)args.k;
        if (p.rows == 1)
            multiply_rows(scratch, &args, &p, 1);
        else if (p.rows == 2)
            multiply_rows(scratch, &args, &p, 2);
        else if (p.rows <= 4)
            multiply_rows(scratch, &args, &p, 4);
        else
            multiply_rows(scratch, &args, &p, ROWS);
        for (size_t row = 0; row < p.rows; row++)
            finish(&scratch->tiles, &args, scratch->sums[row], p.row + row, p.col, p.cols, dtype);
    }
}
KILN_CPU_KERNEL(gemm_nvfp4_rows)
