/* gemm_rows of bf16 by AVX-512 BF16: gemm_dot.h tells when. As many bytes of b are asked for ahead however few rows of
 * it are multiplied at a time: with half of them 8 rows came to 51 % of reading in place of 58.
 *
 * Measured on an AMD EPYC (Zen 5) that was busy with other work, one thread, processor time, b of 64 MB with k = 4096,
 * in per cent of a loop that reads: 1 row 90 (by f32 arithmetic 91), 2 rows 82 (81), 4 rows 77 (82), 8 rows 58 (47).
 *
 * Included once, by gemm_cpu.c. */

#if defined(__AVX512BW__)

/* Numbers of a's rows that are kept: as many bytes as there. */
enum { KEPT_NUMBERS = KEPT * sizeof(float) / sizeof(uint16_t) };

/* multiply_group: products of m rows of a, which lie in kept, with a few of b. */
KILN_INLINE void dot_group(rows_scratch *scratch, const rows_piece *piece, size_t m, size_t col) {
    const size_t group = rows_at_a_time(m), ahead = 4 * AHEAD_BYTES / group / sizeof(uint16_t);
    const uint16_t *kept = (const uint16_t *)(const void *)scratch->a, *rows[4];
    kiln_vec products[KILN_GEMM_ROWS][4];
    KILN_UNROLL
    for (size_t i = 0; i < group; i++) /* the last row several times, if there are no more */
        rows[i] = (const uint16_t *)piece->b + kiln_min(col + i, piece->rows - 1) * piece->stride;
    KILN_UNROLL
    for (size_t r = 0; r < m; r++) {
        KILN_UNROLL
        for (size_t i = 0; i < group; i++)
            products[r][i] = KILN_VEC_ZERO();
    }
    for (size_t k = 0; k < piece->n; k += PAIRED) {
        const size_t next = k + ahead < piece->n ? k + ahead : k + ahead - piece->n + group * piece->stride;
        kiln_vec factors[4];
        KILN_UNROLL
        for (size_t i = 0; i < group; i++) {
            if (!piece->cached) __builtin_prefetch(rows[i] + next, 0, 2);
            factors[i] = _mm512_castsi512_ps(load_pairs(rows[i] + k, piece->n - k));
        }
        KILN_UNROLL
        for (size_t r = 0; r < m; r++) {
            const kiln_vec element = KILN_VEC_LOAD(kept + r * (KEPT_NUMBERS / m) + k);
            KILN_UNROLL
            for (size_t i = 0; i < group; i++)
                products[r][i] = KILN_VEC_DOT_BF16(element, factors[i], products[r][i]);
        }
    }
    KILN_UNROLL
    for (size_t r = 0; r < m; r++) {
        KILN_UNROLL
        for (size_t i = 0; i < group; i++)
            KILN_VEC_STORE(scratch->products[r][(col + i) % KILN_VEC], products[r][i]);
    }
}

/* Takes a piece of the rows of a, the last of them several times if there are fewer than m, with zeros behind. */
KILN_INLINE void keep_rows(rows_scratch *scratch, const rows_piece *piece, const uint16_t *a, uint64_t stride,
                           size_t rows, size_t m) {
    uint16_t *kept = (uint16_t *)(void *)scratch->a;
    for (size_t r = 0; r < m; r++)
        for (size_t k = 0; k < piece->n; k += PAIRED)
            _mm512_storeu_si512(kept + r * (KEPT_NUMBERS / m) + k,
                                load_pairs(a + kiln_min(r, rows - 1) * stride + k, piece->n - k));
}

/* A block's columns of d, by m rows at least as many as a has. */
KILN_INLINE void dot_rows_of(rows_scratch *scratch, float (*sums)[COLUMNS], const kiln_gemm_args *args, uint64_t batch,
                             uint64_t first, size_t m) {
    const uint64_t k_end = (uint64_t)args->k, most = KEPT_NUMBERS / m;
    rows_piece piece = {.stride = (size_t)args->b_stride,
                        .rows = kiln_min((uint64_t)args->n - first, COLUMNS),
                        .cached = (uint64_t)args->n * k_end * sizeof(uint16_t) <= CACHED};
    for (uint64_t k = 0; k < k_end; k += most) {
        const uint16_t *a = (const uint16_t *)args->a + batch * (uint64_t)args->a_batch_stride + k;
        piece.n = kiln_min(k_end - k, most);
        piece.b = (const uint16_t *)args->b + batch * (uint64_t)args->b_batch_stride + first * piece.stride + k;
        keep_rows(scratch, &piece, a, (uint64_t)args->a_stride, (size_t)args->m, m);
        if (piece.rows < COLUMNS) memset(scratch->products, 0, sizeof scratch->products); /* some are not multiplied */
        for (size_t col = 0; col < piece.rows; col += KILN_VEC) {
            for (size_t i = 0; i < KILN_VEC && col + i < piece.rows; i += rows_at_a_time(m))
                dot_group(scratch, &piece, m, col + i);
            add_products(scratch, sums, col, m);
        }
    }
}

static void dot_rows(rows_scratch *scratch, float (*sums)[COLUMNS], const kiln_gemm_args *args, uint64_t batch,
                     uint64_t first) {
    if (args->m == 1)
        dot_rows_of(scratch, sums, args, batch, first, 1);
    else if (args->m == 2)
        dot_rows_of(scratch, sums, args, batch, first, 2);
    else if (args->m <= 4)
        dot_rows_of(scratch, sums, args, batch, first, 4);
    else
        dot_rows_of(scratch, sums, args, batch, first, KILN_GEMM_ROWS);
}

/* Does a block's columns of d, if it is asked to and the machine can; whether it did. */
KILN_INLINE bool rows_extended(rows_scratch *scratch, float (*sums)[COLUMNS], const kiln_gemm_args *args,
                               uint64_t batch, uint64_t first, kiln_cpu_dtype dtype) {
    if (dtype != KILN_CPU_bf16 || args->stages != KILN_GEMM_COMPUTE_DOT || !KILN_CPU_HAS("avx512bf16")) return false;
    dot_rows(scratch, sums, args, batch, first);
    return true;
}

#else

KILN_INLINE bool rows_extended(rows_scratch *scratch, float (*sums)[COLUMNS], const kiln_gemm_args *args,
                               uint64_t batch, uint64_t first, kiln_cpu_dtype dtype) {
    (void)scratch, (void)sums, (void)args, (void)batch, (void)first, (void)dtype;
    return false;
}

#endif
