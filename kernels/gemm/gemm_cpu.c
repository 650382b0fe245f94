/* gemm on the CPU: the operator's definition. gemm_gpu.c says what its kernels and blocks do.
 *
 * gemm_tiles: consecutive blocks compute a rectangle of tiles of d together (matmul_blocks.h). Both factors have k
 * along their rows. DEPTH columns of 64 rows of b are transposed into the first-level cache, so that a row there has
 * what one step of k needs; then ROWS rows of a are multiplied with VECS vectors of it at a time, with their sums in
 * registers: an element of a is the factor of a whole vector. The cost of transposing is shared by all rows of the
 * rectangle. Its first 64 columns copy the rows of a, as f32, for the others: rows a power of two apart leave the
 * caches early.
 *
 * gemm_rows: dot products of few rows of a with rows of b, in vectors along k: up to four rows of b at a time, each
 * from its first byte to its last, which is how memory is read fastest, and converted in registers.
 *
 * gemm_dot.h, gemm_dot_rows.h and gemm_amx.h do the same by dot products of 16-bit numbers, if the call asks for them.
 * gemm_norm_cpu.h and gemm_fused_cpu.h have the kernels for calls that normalise the rows of a or gate the result.
 *
 * Measured (docs/benchmarks/cpu-model.md), gemm_tiles of f32 has 84 to 87 % of the peak of multiply-adds, one thread.
 * In the first-level cache the loop has 98 to 99, with six rows of four vectors as with 12 or 14 of two and 8 or 9 of
 * three. What it loses: 3.5 % to transposing b, which takes as long in lanes of 128 bits, 1.5 to copying rows of a, 2.5
 * to prefetching b line by line, 1.5 to reading sums and copies from the second-level cache, 1.5 to writing d and 3 to
 * pages of 4 KB. Nothing was gained by depths of 64, 96, 160, 192 and 256, rectangles of 512 x 256, 384 x 384 and 512 x
 * 512, rows copied for 256 or 512 of k at once, prefetching copies and sums into the first-level cache, and more steps
 * of k without a branch.
 *
 * Floor: 2 m n k operations for gemm_tiles, one read of b at memory bandwidth for gemm_rows.
 * Test: build/tests/ops/gemm_test. Bench: build/bench/cpu_gemm_bench */
#include "kernels/common/matmul/matmul_blocks.h"
#include "kernels/common/matmul/matmul_cpu.h"
#include "kernels/common/matmul/matmul_end_cpu.h"
/* after them: */
#include "kernels/gemm/gemm_args.h"

enum {
    TILE = KILN_GEMM_TILE,
    DEPTH = 128,      /* of b's transposed columns */
    CACHED = 1 << 20, /* bytes that a second-level cache keeps from one call to the next */
    VECS = KILN_MATMUL_VECS,
    ROWS = KILN_MATMUL_ROWS,
    STRIP_ROWS = (KILN_MATMUL_BLOCK_ROWS + ROWS - 1) / ROWS * ROWS,
    STRIP_TILES = KILN_MATMUL_BLOCK_COLUMNS / TILE,
    COLUMNS = KILN_GEMM_BLOCK_COLUMNS /* of d, in gemm_rows */
};

typedef struct finish_tiles {
    float results[KILN_TILE], addends[KILN_TILE];
} finish_tiles;

/* Writes count elements of a row of d, at most a tile, from the sums of products. */
KILN_OUTLINED void finish(finish_tiles *tiles, const kiln_gemm_args *args, const float *sums, uint32_t batch,
                          uint64_t row, uint64_t col, size_t count, kiln_cpu_dtype dtype) {
    uint64_t place = batch * (uint64_t)args->d_batch_stride + row * (uint64_t)args->d_stride + col;
    void *d = kiln_at_mut(args->d, place, dtype);
    float *results = kiln_tile_target(tiles->results, d, dtype, false);
    if (args->c) { /* which may be d */
        uint64_t c = batch * (uint64_t)args->c_batch_stride + row * (uint64_t)args->c_stride + col;
        const float *addends = kiln_tile_load(tiles->addends, kiln_at(args->c, c, dtype), count, dtype);
        KILN_INDEPENDENT
        for (size_t i = 0; i < count; i++)
            results[i] = sums[i] * args->scale + addends[i];
    } else {
        KILN_INDEPENDENT
        for (size_t i = 0; i < count; i++)
            results[i] = sums[i] * args->scale;
    }
    kiln_matmul_add_bias(results, tiles->addends, args->bias, col, count, dtype);
    if (args->gated) kiln_matmul_activate(results, count, args->bound, args->coefficients, KILN_GEMM_COEFFICIENTS);
    kiln_tile_write(d, results, count, dtype, false);
}

/* ---- gemm_tiles ---- */

/* Working memory for a strip. */
typedef struct strip_scratch {
    float sums[STRIP_TILES][STRIP_ROWS][TILE];
    float columns[DEPTH][TILE];
    float rows[STRIP_ROWS][DEPTH];
    finish_tiles tiles;
} strip_scratch;
_Static_assert(sizeof(strip_scratch) <= KILN_CPU_SCRATCH, "fits");
_Static_assert(TILE == (int)KILN_MATMUL_TILE, "is what is multiplied");
_Static_assert(TILE == (int)KILN_MATMUL_LAUNCHED, "is what is launched");

/* What consecutive blocks compute together. */
typedef struct strip {
    uint32_t batch, split;
    uint64_t row, col, k, k_end;
    size_t rows, cols;
    size_t blocks;
} strip;

/* The strip that begins with a block. */
KILN_INLINE strip strip_of(const kiln_gemm_args *args, const kiln_cpu_span *span, uint64_t block) {
    const uint64_t tiles = args->tile_rows * (uint64_t)span->grid[0], matrix = block / tiles, tile = block % tiles;
    const uint64_t most = kiln_min(span->end - block, tiles - tile);
    const kiln_matmul_rectangle r = kiln_matmul_rectangle_of(tile, most, args->tile_rows, span->grid[0]);
    strip s = {.split = (uint32_t)(matrix % args->splits),
               .batch = (uint32_t)(matrix / args->splits),
               .row = r.row * TILE,
               .col = r.col * TILE,
               .blocks = r.rows * r.cols};
    s.rows = kiln_min((uint64_t)args->m - s.row, r.rows * TILE);
    s.cols = kiln_min((uint64_t)args->n - s.col, r.cols * TILE);
    s.k = (uint64_t)s.split * args->split;
    s.k_end = kiln_min(s.k + args->split, (uint64_t)args->k);
    return s;
}

/* The columns of a strip that are multiplied at a time, from its column `col` on, by n elements from k on. */
typedef struct strip_step {
    size_t col, cols;
    uint64_t k;
    size_t n;
    bool paired; /* as pairs of bf16 */
} strip_step;

/* Where a row of a and a row of b begin. */
KILN_INLINE const void *a_at(const kiln_gemm_args *args, const strip *s, size_t row, uint64_t k, kiln_cpu_dtype dtype) {
    return kiln_at(args->a, s->batch * (uint64_t)args->a_batch_stride + (s->row + row) * (uint64_t)args->a_stride + k,
                   dtype);
}
KILN_INLINE const void *b_at(const kiln_gemm_args *args, const strip *s, size_t col, uint64_t k, kiln_cpu_dtype dtype) {
    return kiln_at(args->b, s->batch * (uint64_t)args->b_batch_stride + (s->col + col) * (uint64_t)args->b_stride + k,
                   dtype);
}

/* Writes the results of rows of a strip. */
KILN_INLINE void finish_rows(strip_scratch *scratch, const kiln_gemm_args *args, const strip *s, size_t col,
                             size_t cols, size_t row, kiln_cpu_dtype dtype) {
    for (size_t end = kiln_min(row + ROWS, s->rows); row < end; row++) {
        const float *sums = scratch->sums[col / TILE][row];
        if (args->partials) {
            uint64_t matrix = ((uint64_t)s->split * args->batch + s->batch) * (uint64_t)args->m;
            uint64_t place = (matrix + s->row + row) * (uint64_t)args->n + s->col + col;
            memcpy(args->partials + place, sums, cols * sizeof *sums);
        } else {
            finish(&scratch->tiles, args, sums, s->batch, s->row + row, s->col + col, cols, dtype);
        }
    }
}

#include "kernels/gemm/gemm_dot.h"

/* Has what comes soon prefetched: rows of b that are transposed next, the next rows of a, and where results go. */
KILN_INLINE void ask_ahead(kiln_matmul_rows *rows, const kiln_gemm_args *args, const strip *s, const strip_step *step,
                           size_t row, kiln_cpu_dtype dtype) {
    const size_t size = kiln_dtype_size(dtype), after = row + ROWS;
    const uint64_t a_stride = (uint64_t)args->a_stride * size, b_stride = (uint64_t)args->b_stride * size;
    const bool last_columns = step->col + step->cols == s->cols, last = step->k + step->n == s->k_end;
    const size_t next_col = last_columns ? 0 : step->col + step->cols;
    const uint64_t next_k = last_columns ? step->k + step->n : step->k;
    const size_t each = (ROWS * TILE + s->rows - 1) / s->rows; /* with so many rows at a time all of a tile's */
    const size_t first = row / ROWS * each, next_cols = kiln_min(s->cols - next_col, TILE);
    if (!step->col && after < s->rows)
        kiln_matmul_ask(rows, a_at(args, s, after, step->k, dtype), a_stride, kiln_min(s->rows - after, ROWS));
    else if (last_columns && !last && after >= s->rows)
        kiln_matmul_ask(rows, a_at(args, s, 0, next_k, dtype), a_stride, kiln_min(s->rows, ROWS));
    if (last && !args->partials) {
        const uint64_t d = s->batch * (uint64_t)args->d_batch_stride + (s->row + row) * (uint64_t)args->d_stride;
        kiln_matmul_ask(rows, kiln_at(args->d, d + s->col + step->col, dtype), (uint64_t)args->d_stride * size,
                        kiln_min(s->rows - row, ROWS));
    }
    if (first < next_cols)
        kiln_matmul_ask(rows, b_at(args, s, next_col + first, next_k, dtype), b_stride,
                        kiln_min(next_cols - first, each));
}

/* A row of a from a step's k on, as f32 or pairs. shared: it is kept for the columns after the strip's first. */
KILN_OUTLINED const void *take_row(float *kept, const void *source, const strip_step *step, bool shared,
                                   kiln_cpu_dtype dtype) {
    if (step->paired) return copy_pairs(kept, source, step->n);
    if (dtype != KILN_CPU_f32 || !shared) return kiln_tile_load(kept, source, step->n, dtype);
    for (size_t k = 0; k < step->n; k += KILN_VEC)
        KILN_VEC_STORE(kept + k, kiln_vec_load(kiln_at(source, k, dtype), step->n - k, dtype));
    return kept;
}

/* Adds to the sums the products of a step, and finishes rows after their last, while a near cache still has their sums.
 */
KILN_INLINE void multiply_step(strip_scratch *scratch, const kiln_gemm_args *args, const strip *s,
                               const strip_step *step, kiln_cpu_dtype dtype) {
    const void *b = b_at(args, s, step->col, step->k, dtype);
    float(*sums)[TILE] = scratch->sums[step->col / TILE];
    if (step->paired)
        take_pairs(scratch->columns, b, (uint64_t)args->b_stride, step->cols, step->n);
    else
        kiln_matmul_transpose(scratch->columns, b, (uint64_t)args->b_stride, step->cols, step->n, dtype);
    for (size_t row = 0; row < s->rows; row += ROWS) {
        kiln_matmul_rows rows;
        kiln_matmul_begin(&rows, step->paired ? 2 * sizeof(uint16_t) : kiln_dtype_size(dtype));
        for (size_t r = 0; r < ROWS; r++) { /* the last row several times, if there are no more */
            const size_t at = kiln_min(row + r, s->rows - 1);
            rows.values[r] =
                step->col ? scratch->rows[at]
                          : take_row(scratch->rows[at], a_at(args, s, at, step->k, dtype), step, s->cols > TILE, dtype);
        }
        ask_ahead(&rows, args, s, step, row, dtype);
        if (step->k == s->k) memset(sums[row], 0, ROWS * sizeof *sums);
        if (step->paired)
            multiply_pairs(sums[row], &rows, scratch->columns[0], step->n, step->cols);
        else
            kiln_matmul_columns(sums[row], &rows, scratch->columns[0], step->n, step->cols);
        if (step->k + step->n == s->k_end) finish_rows(scratch, args, s, step->col, step->cols, row, dtype);
    }
}

KILN_INLINE void gemm_tiles(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_gemm_args args = *(const kiln_gemm_args *)arguments; /* a copy, which no store can change */
    strip_scratch *scratch = span->scratch;
    strip s;
    if (gemm_amx(&args, span, dtype)) return;
    const bool paired = multiplies_pairs(&args, dtype);
    for (uint64_t block = span->begin; block < span->end; block += s.blocks) {
        s = strip_of(&args, span, block);
        if (s.batch >= args.batch) break;
        strip_step step = {.k = s.k, .paired = paired};
        do { /* without k, a step of no products */
            step.n = kiln_min(s.k_end - step.k, paired ? 2 * DEPTH : DEPTH);
            for (step.col = 0; step.col < s.cols; step.col += TILE) {
                step.cols = kiln_min(s.cols - step.col, TILE);
                multiply_step(scratch, &args, &s, &step, dtype);
            }
            step.k += step.n;
        } while (step.k < s.k_end);
    }
}
KILN_CPU_KERNEL(gemm_tiles)

/* ---- gemm_join ---- */

typedef struct join_scratch {
    float sums[KILN_BLOCK];
    finish_tiles tiles;
} join_scratch;
_Static_assert(sizeof(join_scratch) <= KILN_CPU_SCRATCH, "fits");

KILN_OUTLINED void gemm_join(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_gemm_args args = *(const kiln_gemm_args *)arguments; /* a copy, which no store can change */
    uint64_t step = (uint64_t)args.batch * (uint64_t)args.m * (uint64_t)args.n;
    join_scratch *scratch = span->scratch;
    float *sums = scratch->sums;
    for (uint64_t block = span->begin; block < span->end; block++) {
        uint64_t col = block % span->grid[0] * KILN_BLOCK, row = block / span->grid[0];
        if (row >= (uint64_t)args.m * args.batch) break;
        size_t count = kiln_min((uint64_t)args.n - col, KILN_BLOCK);
        const float *partial = args.partials + row * (uint64_t)args.n + col;
        kiln_matmul_join(sums, partial, args.splits, step, count);
        finish(&scratch->tiles, &args, sums, (uint32_t)(row / (uint64_t)args.m), row % (uint64_t)args.m, col, count,
               dtype);
    }
}
KILN_CPU_KERNEL(gemm_join)

#include "kernels/gemm/gemm_norm_cpu.h"

/* ---- gemm_rows ---- */

enum {
    KEPT = 1 << 12,    /* elements of a's rows that are kept as f32 */
    AHEAD_BYTES = 1024 /* of a row of b, prefetched while the bytes before them are multiplied */
};

#if defined(__F16C__) || defined(__aarch64__)
enum { WIDENS_SLOWLY = 0 };
#else
enum { WIDENS_SLOWLY = 1 }; /* no instruction converts f16 */
#endif

/* Working memory for the rows. */
typedef struct rows_scratch {
    float a[KEPT];
    float products[KILN_GEMM_ROWS][KILN_VEC][KILN_VEC]; /* of a row of a and a row of b, by their place in a vector */
    finish_tiles tiles;
} rows_scratch;
_Static_assert(sizeof(rows_scratch) <= KILN_CPU_SCRATCH, "fits");

/* Rows of b that are multiplied at a time with m rows of a. */
KILN_INLINE size_t rows_at_a_time(size_t m) {
    size_t most = KILN_VEC_REGISTERS / 2 / m;
    return most > 4 ? 4 : most;
}

/* A range of elements: of rows of a, as f32, and of a row of b and those after it. */
typedef struct rows_piece {
    const float *a[KILN_GEMM_ROWS];
    const void *b;
    size_t stride, rows; /* of b */
    size_t n;
    bool cached; /* b need not be prefetched */
} rows_piece;

/* Adds the products of count elements from k on, at most a vector. */
KILN_INLINE void rows_step(kiln_vec (*products)[4], const rows_piece *piece, const void *const *rows, size_t m,
                           size_t k, size_t count, kiln_cpu_dtype dtype) {
    kiln_vec factors[4];
    const size_t group = rows_at_a_time(m);
    KILN_UNROLL
    for (size_t i = 0; i < group; i++) {
        const void *source = kiln_at(rows[i], k, dtype);
        factors[i] = count == KILN_VEC ? kiln_vec_widen(source, dtype) : kiln_vec_load(source, count, dtype);
    }
    KILN_UNROLL
    for (size_t r = 0; r < m; r++) {
        const float *source = piece->a[r] + k;
        kiln_vec element = count == KILN_VEC ? KILN_VEC_LOAD(source) : kiln_vec_load(source, count, KILN_CPU_f32);
        KILN_UNROLL
        for (size_t i = 0; i < group; i++)
            products[r][i] = KILN_VEC_FMA(element, factors[i], products[r][i]);
    }
}

/* Multiplies m rows of a with a few rows of b, from a column on, each from its first byte to its last. */
KILN_INLINE void multiply_group(rows_scratch *scratch, const rows_piece *piece, size_t m, size_t col,
                                kiln_cpu_dtype dtype) {
    const size_t group = rows_at_a_time(m), line = 64 / kiln_dtype_size(dtype),
                 ahead = AHEAD_BYTES / kiln_dtype_size(dtype);
    const void *rows[4];
    kiln_vec products[KILN_GEMM_ROWS][4];
    size_t k = 0;
    KILN_UNROLL
    for (size_t i = 0; i < group; i++) /* the last row several times, if there are no more */
        rows[i] = kiln_at(piece->b, kiln_min(col + i, piece->rows - 1) * piece->stride, dtype);
    KILN_UNROLL
    for (size_t r = 0; r < m; r++) {
        KILN_UNROLL
        for (size_t i = 0; i < group; i++)
            products[r][i] = KILN_VEC_ZERO();
    }
    for (; k + line <= piece->n; k += line) {
        size_t next = k + ahead < piece->n ? k + ahead : k + ahead - piece->n + group * piece->stride;
        KILN_UNROLL
        for (size_t i = 0; i < group; i++)
            if (!piece->cached) __builtin_prefetch(kiln_at(rows[i], next, dtype), 0, 2);
        if (WIDENS_SLOWLY && dtype == KILN_CPU_f16) { /* beside which a loop is nothing */
            for (size_t i = 0; i < line; i += KILN_VEC)
                rows_step(products, piece, rows, m, k + i, KILN_VEC, dtype);
            continue;
        }
        KILN_UNROLL
        for (size_t i = 0; i < line; i += KILN_VEC)
            rows_step(products, piece, rows, m, k + i, KILN_VEC, dtype);
    }
    for (; k + KILN_VEC <= piece->n; k += KILN_VEC)
        rows_step(products, piece, rows, m, k, KILN_VEC, dtype);
    if (k < piece->n) rows_step(products, piece, rows, m, k, piece->n - k, dtype);
    KILN_UNROLL
    for (size_t r = 0; r < m; r++) {
        KILN_UNROLL
        for (size_t i = 0; i < group; i++)
            KILN_VEC_STORE(scratch->products[r][(col + i) % KILN_VEC], products[r][i]);
    }
}

/* Adds to sums the products of m rows of a with a vector of rows of b. */
KILN_INLINE void add_products(const rows_scratch *scratch, float (*sums)[COLUMNS], size_t col, size_t m) {
    for (size_t r = 0; r < m; r++)
        kiln_vec_add_sums(&sums[r][col], (const float(*)[KILN_VEC])scratch->products[r]);
}

/* Adds to sums the products of m rows of a with all rows of b that the piece has. */
KILN_INLINE void multiply_piece(rows_scratch *scratch, float (*sums)[COLUMNS], const rows_piece *piece, size_t m,
                                kiln_cpu_dtype dtype) {
    const size_t group = rows_at_a_time(m);
    if (piece->rows < COLUMNS)
        memset(scratch->products, 0, sizeof scratch->products); /* rows beyond b's are not multiplied */
    for (size_t col = 0; col < piece->rows; col += KILN_VEC) {
        for (size_t i = 0; i < KILN_VEC && col + i < piece->rows; i += group)
            multiply_group(scratch, piece, m, col + i, dtype);
        add_products(scratch, sums, col, m);
    }
}

/* How rows of a are normalised. */
typedef struct rows_norm {
    const void *weight;
    float scales[KILN_GEMM_ROWS];
} rows_norm;

/* Loads n elements of the rows of a from k on, the last row several times if there are fewer than m. */
KILN_INLINE void take_rows(rows_scratch *scratch, rows_piece *piece, const void *a, uint64_t stride, size_t rows,
                           size_t m, const rows_norm *norm, uint64_t first, kiln_cpu_dtype dtype) {
    for (size_t r = 0; r < m; r++) {
        const size_t row = kiln_min(r, rows - 1);
        const void *source = kiln_at(a, row * stride, dtype);
        float *kept = scratch->a + r * (KEPT / m);
        piece->a[r] = dtype == KILN_CPU_f32 && !norm ? source : kept;
        for (size_t k = 0; piece->a[r] == kept && k < piece->n; k += KILN_TILE) {
            const size_t count = kiln_min(piece->n - k, KILN_TILE);
            if (norm)
                normalise(kept + k, kiln_at(source, k, dtype), kiln_at(norm->weight, first + k, dtype),
                          norm->scales[row], count, dtype);
            else
                kiln_tile_load(kept + k, kiln_at(source, k, dtype), count, dtype);
        }
    }
}

/* A block's columns of d, with m rows, at least as many as a has. norm: NULL where they are not normalised. */
KILN_INLINE void rows_block(rows_scratch *scratch, float (*sums)[COLUMNS], const kiln_gemm_args *args,
                            const rows_norm *norm, uint64_t batch, uint64_t first, size_t m, kiln_cpu_dtype dtype) {
    const uint64_t k_end = (uint64_t)args->k, most = KEPT / m;
    rows_piece piece = {.stride = (size_t)args->b_stride,
                        .rows = kiln_min((uint64_t)args->n - first, COLUMNS),
                        /* after its first product */
                        .cached = (uint64_t)args->n * k_end * kiln_dtype_size(dtype) <= CACHED};
    for (uint64_t k = 0; k < k_end; k += most) {
        uint64_t a = batch * (uint64_t)args->a_batch_stride + k;
        uint64_t b = batch * (uint64_t)args->b_batch_stride + first * piece.stride + k;
        piece.n = kiln_min(k_end - k, most);
        piece.b = kiln_at(args->b, b, dtype);
        take_rows(scratch, &piece, kiln_at(args->a, a, dtype), (uint64_t)args->a_stride, (size_t)args->m, m, norm, k,
                  dtype);
        multiply_piece(scratch, sums, &piece, m, dtype);
    }
}

KILN_INLINE void rows_of(rows_scratch *scratch, float (*sums)[COLUMNS], const kiln_gemm_args *args,
                         const rows_norm *norm, uint64_t batch, uint64_t first, kiln_cpu_dtype dtype) {
    if (args->m == 1)
        rows_block(scratch, sums, args, norm, batch, first, 1, dtype);
    else if (args->m == 2)
        rows_block(scratch, sums, args, norm, batch, first, 2, dtype);
    else if (args->m <= 4)
        rows_block(scratch, sums, args, norm, batch, first, 4, dtype);
    else
        rows_block(scratch, sums, args, norm, batch, first, KILN_GEMM_ROWS, dtype);
}

/* The same, compiled once for each dtype: gemm_rows and gemm_rows_fused call the same code. */
#define ROWS_PLAIN(dtype)                                                                                           \
    KILN_OUTLINED void rows_plain_##dtype(rows_scratch *scratch, float(*sums)[COLUMNS], const kiln_gemm_args *args, \
                                          const rows_norm *norm, uint64_t batch, uint64_t first) {                  \
        rows_of(scratch, sums, args, norm, batch, first, KILN_CPU_##dtype);                                         \
    }
ROWS_PLAIN(f32)
ROWS_PLAIN(f16)
ROWS_PLAIN(bf16)

KILN_INLINE void rows_plain(rows_scratch *scratch, float (*sums)[COLUMNS], const kiln_gemm_args *args,
                            const rows_norm *norm, uint64_t batch, uint64_t first, kiln_cpu_dtype dtype) {
    if (dtype == KILN_CPU_f32)
        rows_plain_f32(scratch, sums, args, norm, batch, first);
    else if (dtype == KILN_CPU_f16)
        rows_plain_f16(scratch, sums, args, norm, batch, first);
    else
        rows_plain_bf16(scratch, sums, args, norm, batch, first);
}

#include "kernels/gemm/gemm_dot_rows.h"

KILN_INLINE void gemm_rows(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_gemm_args args = *(const kiln_gemm_args *)arguments; /* a copy, which no store can change */
    rows_scratch *scratch = span->scratch;
    for (uint64_t block = span->begin; block < span->end; block++) {
        uint32_t batch = (uint32_t)(block / span->grid[0]);
        uint64_t first = block % span->grid[0] * COLUMNS;
        if (batch >= args.batch) break;
        float sums[KILN_GEMM_ROWS][COLUMNS] = {{0}};
        if (!rows_extended(scratch, sums, &args, batch, first, dtype))
            rows_plain(scratch, sums, &args, NULL, batch, first, dtype);
        for (uint64_t row = 0; row < (uint64_t)args.m; row++)
            finish(&scratch->tiles, &args, sums[row], batch, row, first, kiln_min((uint64_t)args.n - first, COLUMNS),
                   dtype);
    }
}
KILN_CPU_KERNEL(gemm_rows)

#include "kernels/gemm/gemm_fused_cpu.h"
