/* gemm_fp8 and gemm_int8 on the CPU: the operators' definition. gemm_fp8_gpu.c and gemm_int8_gpu.c say what their
 * kernels and blocks do. The includer defines W8A8_INTEGERS, whether codes are integers, codes_load(tile, codes,
 * count), which gives codes as f32, codes_vecs(to, codes, part), which gives the CODES_PARTS parts of STEP codes as
 * CODES_VECS vectors each, in an order that both factors share, in CODES_UNIT, and its kernels over those of this
 * header.
 *
 * Codes become f32 in the first-level cache, a group of 128 columns at a time. The products of a group are added in
 * f32, which is exact for integers: they are below 2^21. Groups are then scaled and added in f32; where there are no
 * scales for groups, those of integers are added in int32.
 *
 * Tiles: consecutive blocks compute tiles of d below each other, and up to STRIP of them are computed together. 64 rows
 * of b are transposed at a time, so that a row of the result has what one step of k needs; then ROWS rows of a are
 * multiplied with VECS vectors of it at a time, with their sums in registers.
 *
 * Rows: dot products of few rows of a with rows of b, up to four of them at a time, in vectors along k, each row of b
 * from its first byte to its last. Rows of a become f32 once for all blocks of a span where all of k fits.
 *
 * Where codes are integers the includer also defines, after this header, tiles_extended, multiply_strip_extended and
 * rows_block_extended: for machines that have instructions beyond their level. */
#ifndef KILN_KERNELS_COMMON_MATMUL_W8A8_CPU_H
#define KILN_KERNELS_COMMON_MATMUL_W8A8_CPU_H

#include "kernels/common/matmul/matmul_cpu.h"
#include "kernels/common/matmul/matmul_end_cpu.h"
#include "kernels/common/matmul/w8a8_scales.h"

enum {
    TILE = KILN_W8A8_TILE,
    GROUP = KILN_W8A8_GROUP,
    STRIP = KILN_MATMUL_STRIP,
    VECS = KILN_MATMUL_VECS,
    ROWS = KILN_MATMUL_ROWS,
    STRIP_ROWS = (STRIP * TILE + ROWS - 1) / ROWS * ROWS,
    COLUMNS = KILN_W8A8_BLOCK_COLUMNS /* of d, in rows */
};

_Static_assert(TILE == (int)KILN_MATMUL_TILE, "is what is multiplied");

/* A sum of products: of groups that have been scaled, or of products as they are. */
typedef union w8a8_sum {
    float scaled;
    int32_t exact;
} w8a8_sum;

typedef int32_t w8a8_integers __attribute__((vector_size(sizeof(kiln_vec))));

/* The sum plus the products of a group, in a vector, times their scales. */
KILN_INLINE kiln_vec w8a8_add(kiln_vec sums, kiln_vec products, kiln_vec factors, bool grouped) {
    if (grouped) return KILN_VEC_FMA(products, factors, sums);
    if (!W8A8_INTEGERS) return KILN_VEC_ADD(sums, products);
    return (kiln_vec)((w8a8_integers)sums + __builtin_convertvector(products, w8a8_integers));
}

/* ---- The end: from the sums of products to d ---- */

typedef struct finish_tiles {
    float sums[KILN_TILE], results[KILN_TILE], biases[KILN_TILE];
} finish_tiles;

/* Writes count elements of a row of d, at most a tile, from sums that have been scaled. */
KILN_OUTLINED void finish(finish_tiles *tiles, const kiln_w8a8_args *args, const float *sums, uint64_t row,
                          uint64_t col, size_t count, kiln_cpu_dtype dtype) {
    void *d = kiln_at_mut(args->d, row * (uint64_t)args->d_stride + col, dtype);
    float *results = kiln_tile_target(tiles->results, d, dtype, false);
    KILN_INDEPENDENT
    for (size_t i = 0; i < count; i++)
        results[i] = sums[i] * args->scale;
    kiln_matmul_add_bias(results, tiles->biases, args->bias, col, count, dtype);
    if (args->gated) kiln_matmul_activate(results, count, args->bound, args->coefficients, KILN_W8A8_COEFFICIENTS);
    kiln_tile_write(d, results, count, dtype, false);
}

/* Scales of `count` rows of b from `first` on, one for each: as they are in memory, or repeated in `kept`. */
KILN_INLINE const float *scales_of(float *kept, const kiln_w8a8_scales *scales, uint64_t first, size_t count) {
    if (!scales->rows_log2 && scales->cols == 1) return scales->values + first;
    for (size_t i = 0, end; i < count; i = end) {
        const uint64_t next = (((first + i) >> scales->rows_log2) + 1) << scales->rows_log2;
        const float scale = kiln_w8a8_scale(scales, first + i, 0);
        for (end = kiln_min(next - first, count); i < end; i++)
            kept[i] = scale;
    }
    return kept;
}

/* Scales the sums of a row of d, if they have not been scaled. */
KILN_OUTLINED const float *scaled(finish_tiles *tiles, const kiln_w8a8_args *args, const w8a8_sum *sums, uint64_t row,
                                  uint64_t col, size_t count) {
    float *results = tiles->sums;
    if (!args->k || args->grouped) { /* without k there may be no scales */
        for (size_t i = 0; i < count; i++)
            results[i] = args->grouped || !W8A8_INTEGERS ? sums[i].scaled : (float)sums[i].exact;
        return results;
    }
    const float left = kiln_w8a8_scale(&args->a_scales, row, 0);
    const float *right = scales_of(tiles->biases, &args->b_scales, col, count);
    KILN_INDEPENDENT
    for (size_t i = 0; i < count; i++)
        results[i] = (W8A8_INTEGERS ? (float)sums[i].exact : sums[i].scaled) * (left * right[i]);
    return results;
}

/* ---- Tiles ---- */

/* Working memory for a strip. */
typedef struct strip_scratch {
    w8a8_sum sums[STRIP_ROWS][TILE];
    float columns[GROUP][TILE];
    float b[KILN_VEC][GROUP];
    float a[ROWS][GROUP];
    float b_scales[TILE];
    finish_tiles tiles;
} strip_scratch;
_Static_assert(sizeof(strip_scratch) <= KILN_CPU_SCRATCH, "fits");

typedef kiln_matmul_strip strip;

/* Loads n codes of each of b's rows as columns. Vectors that need more rows get the last one again, and the rest of a
 * group's codes keeps its old contents: the results of either are not used. */
KILN_INLINE void transpose(strip_scratch *scratch, const uint8_t *b, uint64_t stride, size_t rows, size_t n) {
    size_t end = (rows + VECS * KILN_VEC - 1) / (VECS * KILN_VEC) * (VECS * KILN_VEC);
    for (size_t row = 0; row < end; row += KILN_VEC) {
        for (size_t i = 0; i < KILN_VEC; i++)
            codes_load(scratch->b[i], b + kiln_min(row + i, rows - 1) * stride, n);
        for (size_t k = 0; k < n; k += KILN_VEC) {
            kiln_vec block[KILN_VEC];
            KILN_UNROLL
            for (size_t i = 0; i < KILN_VEC; i++)
                block[i] = KILN_VEC_LOAD(&scratch->b[i][k]);
            kiln_vec_transpose(block);
            KILN_UNROLL
            for (size_t i = 0; i < KILN_VEC; i++)
                KILN_VEC_STORE(&scratch->columns[k + i][row], block[i]);
        }
    }
}

/* Adds to sums the products of n codes of ROWS rows with VECS vectors of columns. */
KILN_OUTLINED void multiply(w8a8_sum *sums, const float (*a)[GROUP], const float *columns, size_t n,
                            const float *a_scales, const float *b_scales, bool grouped) {
    kiln_vec products[ROWS][VECS];
    kiln_matmul_rows rows;
    kiln_matmul_begin(&rows, 0);
    for (size_t r = 0; r < ROWS; r++)
        rows.values[r] = a[r];
    kiln_matmul_products(products, &rows, 0, columns, n, false);
    KILN_UNROLL
    for (size_t r = 0; r < ROWS; r++) {
        kiln_vec left = KILN_VEC_SET(a_scales[r]);
        KILN_UNROLL
        for (size_t v = 0; v < VECS; v++) {
            float *sum = &sums[r * TILE + v * KILN_VEC].scaled;
            kiln_vec factors = KILN_VEC_MUL(left, KILN_VEC_LOAD(b_scales + v * KILN_VEC));
            KILN_VEC_STORE(sum, w8a8_add(KILN_VEC_LOAD(sum), products[r][v], factors, grouped));
        }
    }
}

/* Adds to the sums the products of n codes from k on. */
KILN_INLINE void multiply_strip(strip_scratch *scratch, const kiln_w8a8_args *args, const strip *s, uint64_t k,
                                size_t n) {
    transpose(scratch, args->b + s->col * (uint64_t)args->b_stride + k, (uint64_t)args->b_stride, s->cols, n);
    for (size_t i = 0; args->grouped && i < s->cols; i++)
        scratch->b_scales[i] = kiln_w8a8_scale(&args->b_scales, s->col + i, k / GROUP);
    for (size_t row = 0; row < s->rows; row += ROWS) {
        float a_scales[ROWS] = {0};
        for (size_t r = 0; r < ROWS; r++) { /* the last row several times, if there are no more */
            uint64_t place = s->row + kiln_min(row + r, s->rows - 1);
            codes_load(scratch->a[r], args->a + place * (uint64_t)args->a_stride + k, n);
            if (args->grouped) a_scales[r] = kiln_w8a8_scale(&args->a_scales, place, k / GROUP);
        }
        for (size_t col = 0; col < s->cols; col += VECS * KILN_VEC)
            multiply(&scratch->sums[row][col], scratch->a, &scratch->columns[0][col], n, a_scales,
                     scratch->b_scales + col, args->grouped);
    }
}

#if W8A8_INTEGERS
/* Computes the same sums as multiply_strip, of as many codes from k on as it returns: 0 if the machine
 * cannot. */
static size_t multiply_strip_extended(strip_scratch *scratch, const kiln_w8a8_args *args, const strip *s, uint64_t k);

/* Computes the blocks of the span, to the same bits: false if the machine cannot. */
static bool tiles_extended(const kiln_w8a8_args *args, const kiln_cpu_span *span, kiln_cpu_dtype dtype);
#else
KILN_INLINE bool tiles_extended(const kiln_w8a8_args *args, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    (void)args, (void)span, (void)dtype;
    return false;
}

KILN_INLINE size_t multiply_strip_extended(strip_scratch *scratch, const kiln_w8a8_args *args, const strip *s,
                                           uint64_t k) {
    (void)scratch, (void)args, (void)s, (void)k;
    return 0;
}
#endif

/* Writes the results of row `row` of a strip from its sums. */
KILN_INLINE void finish_row(finish_tiles *tiles, const kiln_w8a8_args *args, const w8a8_sum *sums, const strip *s,
                            size_t row, kiln_cpu_dtype dtype) {
    const float *results = scaled(tiles, args, sums, s->row + row, s->col, s->cols);
    const uint64_t place = kiln_matmul_partial(s, row, (uint64_t)args->m, (uint64_t)args->n);
    if (args->partials)
        memcpy(args->partials + place, results, s->cols * sizeof *results);
    else
        finish(tiles, args, results, s->row + row, s->col, s->cols, dtype);
}

KILN_OUTLINED void w8a8_tiles(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_w8a8_args args = *(const kiln_w8a8_args *)arguments; /* a copy, which no store can change */
    strip_scratch *scratch = span->scratch;
    const kiln_matmul_sizes sizes = {(uint64_t)args.m, (uint64_t)args.n, (uint64_t)args.k, args.split, args.tile_rows};
    strip s;
    if (tiles_extended(&args, span, dtype)) return;
    memset(scratch->b_scales, 0, sizeof scratch->b_scales);
    for (uint64_t block = span->begin; block < span->end; block += s.blocks) {
        s = kiln_matmul_strip_of(&sizes, span, block);
        if (s.split >= args.splits) break;
        memset(scratch->sums, 0, (s.rows + ROWS - 1) / ROWS * ROWS * sizeof *scratch->sums);
        for (uint64_t k = s.k, n; k < s.k_end; k += n) {
            n = multiply_strip_extended(scratch, &args, &s, k);
            if (n) continue;
            n = kiln_min(s.k_end - k, GROUP);
            multiply_strip(scratch, &args, &s, k, n);
        }
        for (size_t row = 0; row < s.rows; row++)
            finish_row(&scratch->tiles, &args, scratch->sums[row], &s, row, dtype);
    }
}

/* ---- The sums of blocks that share k, added up ---- */

KILN_OUTLINED void w8a8_join(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_w8a8_args args = *(const kiln_w8a8_args *)arguments; /* a copy, which no store can change */
    uint64_t step = (uint64_t)args.m * (uint64_t)args.n;
    finish_tiles *tiles = span->scratch;
    float *sums = tiles->sums;
    _Static_assert((int)KILN_TILE == (int)KILN_BLOCK, "a block's columns are a tile");
    for (uint64_t block = span->begin; block < span->end; block++) {
        uint64_t col = block % span->grid[0] * KILN_BLOCK, row = block / span->grid[0];
        if (row >= (uint64_t)args.m) break;
        size_t count = kiln_min((uint64_t)args.n - col, KILN_BLOCK);
        const float *partial = args.partials + row * (uint64_t)args.n + col;
        kiln_matmul_join(sums, partial, args.splits, step, count);
        finish(tiles, &args, sums, row, col, count, dtype);
    }
}

/* ---- Few rows ---- */

enum {
    KEPT = 1 << 17,     /* codes of a's rows that are kept as f32, in a second-level cache */
    PIECE = 1 << 12,    /* of them that are multiplied at a time, in a first-level cache: whole groups of each row */
    ROWS_STRIP = 4,     /* rows of b at a time, at most */
    AHEAD_BYTES = 1024, /* of a row of b, prefetched while the bytes before them are multiplied */
    STEP = CODES_PARTS * CODES_VECS * KILN_VEC /* codes that become vectors at a time */
};
_Static_assert(GROUP % STEP == 0, "whole vectors");

/* Working memory for the rows. */
typedef struct rows_scratch {
    _Alignas(64) w8a8_sum sums[KILN_W8A8_ROWS][COLUMNS][KILN_VEC]; /* of each place in a vector */
    w8a8_sum totals[COLUMNS];
    finish_tiles tiles;
    uint8_t last[ROWS_STRIP][GROUP]; /* of rows of b: a group that is not whole, and zeros */
    float a_scales[KEPT / GROUP];    /* of a's groups */
    float a[KEPT];                   /* of each piece, a vector of each row in turn */
    uint64_t taken;                  /* the first of the rows of which a has all of k; none: all bits */
} rows_scratch;
_Static_assert(sizeof(rows_scratch) <= KILN_CPU_SCRATCH, "fits");
_Static_assert(COLUMNS % KILN_VEC == 0 && COLUMNS % ROWS_STRIP == 0, "whole vectors and strips");

/* A range of k. */
typedef struct rows_piece {
    uint64_t row, col; /* the block's first */
    uint64_t k, n;
    size_t rows, cols;
    const float *a, *a_scales; /* of the rows of a */
} rows_piece;

/* How much of k is multiplied at a time with m rows of a. */
KILN_INLINE size_t piece_of(size_t m) {
    return PIECE / m;
}

/* How many rows of b are multiplied at a time with m rows of a: sums fill half of the registers. */
KILN_INLINE size_t rows_strip_of(size_t m) {
    const size_t most = KILN_VEC_REGISTERS / 2 / m;
    return most > ROWS_STRIP ? ROWS_STRIP : most;
}

/* Loads a group of codes of a row of a, with zeros after the last; vectors go into every m-th place. */
KILN_OUTLINED void take_group(float *kept, const uint8_t *codes, size_t count, size_t m) {
    const kiln_vec factor = KILN_VEC_SET(1 / (CODES_UNIT * CODES_UNIT)); /* of both factors */
    uint8_t group[GROUP] = {0};
    memcpy(group, codes, count);
    for (size_t i = 0; i < GROUP; i += STEP) {
        KILN_UNROLL
        for (size_t part = 0; part < CODES_PARTS; part++) {
            kiln_vec numbers[CODES_VECS];
            codes_vecs(numbers, group + i, part);
            for (size_t v = 0; v < CODES_VECS; v++, kept += m * KILN_VEC)
                KILN_VEC_STORE(kept, KILN_VEC_MUL(numbers[v], factor));
        }
    }
}

/* Takes a piece of m rows of a, the last one several times if there are fewer. */
KILN_INLINE void take_rows(float *kept, float *scales, const kiln_w8a8_args *args, const rows_piece *piece, size_t m) {
    for (size_t r = 0; r < m; r++) {
        const uint64_t row = piece->row + kiln_min(r, piece->rows - 1);
        const uint8_t *a = args->a + row * (uint64_t)args->a_stride + piece->k;
        for (size_t k = 0; k < piece->n; k += GROUP) {
            take_group(kept + k * m + r * KILN_VEC, a + k, kiln_min(piece->n - k, GROUP), m);
            if (args->grouped)
                scales[k / GROUP * m + r] = kiln_w8a8_scale(&args->a_scales, row, (piece->k + k) / GROUP);
        }
    }
}

/* Adds the products of a group of m rows of a with a strip of rows of b. */
KILN_INLINE void multiply_group(kiln_vec (*products)[ROWS_STRIP], const float *a, const uint8_t *const *b, size_t m) {
    const size_t count = rows_strip_of(m);
    for (size_t i = 0; i < GROUP; i += STEP) {
        KILN_UNROLL
        for (size_t part = 0; part < CODES_PARTS; part++) {
            kiln_vec numbers[ROWS_STRIP][CODES_VECS];
            KILN_UNROLL
            for (size_t c = 0; c < count; c++)
                codes_vecs(numbers[c], b[c] + i, part);
            KILN_UNROLL
            for (size_t v = 0; v < CODES_VECS; v++) {
                KILN_UNROLL
                for (size_t r = 0; r < m; r++) {
                    const kiln_vec element =
                        KILN_VEC_LOAD(a + (i + (part * CODES_VECS + v) * KILN_VEC) * m + r * KILN_VEC);
                    KILN_UNROLL
                    for (size_t c = 0; c < count; c++)
                        products[r][c] = KILN_VEC_FMA(element, numbers[c][v], products[r][c]);
                }
            }
        }
    }
}

/* Adds to the sums the products of a group, which begins at k of the piece, times its scales. */
KILN_INLINE void add_group(kiln_vec (*sums)[ROWS_STRIP], kiln_vec (*products)[ROWS_STRIP], const kiln_w8a8_args *args,
                           const rows_piece *piece, size_t col, size_t k, size_t m, bool grouped) {
    KILN_UNROLL
    for (size_t c = 0; c < rows_strip_of(m); c++) {
        const uint64_t row = piece->col + kiln_min(col + c, piece->cols - 1);
        const float right = grouped ? kiln_w8a8_scale(&args->b_scales, row, (piece->k + k) / GROUP) : 0.0f;
        KILN_UNROLL
        for (size_t r = 0; r < m; r++) {
            const float left = grouped ? piece->a_scales[k / GROUP * m + r] : 0.0f;
            sums[r][c] = w8a8_add(sums[r][c], products[r][c], KILN_VEC_SET(left * right), grouped);
            products[r][c] = KILN_VEC_ZERO();
        }
    }
}

/* Adds to the sums of columns from `col` on the products of m rows of a with their rows of b, the last one several
 * times if there are fewer than a strip has. */
KILN_INLINE void multiply_rows(rows_scratch *scratch, const kiln_w8a8_args *args, const rows_piece *piece, size_t col,
                               size_t m, bool grouped) {
    const size_t count = rows_strip_of(m);
    const uint8_t *rows[ROWS_STRIP], *b[ROWS_STRIP];
    kiln_vec sums[KILN_W8A8_ROWS][ROWS_STRIP], products[KILN_W8A8_ROWS][ROWS_STRIP];
    KILN_UNROLL
    for (size_t c = 0; c < count; c++)
        rows[c] = args->b + (piece->col + kiln_min(col + c, piece->cols - 1)) * (uint64_t)args->b_stride + piece->k;
    KILN_UNROLL
    for (size_t r = 0; r < m; r++) {
        KILN_UNROLL
        for (size_t c = 0; c < count; c++) {
            sums[r][c] = KILN_VEC_LOAD(&scratch->sums[r][col + c][0].scaled);
            products[r][c] = KILN_VEC_ZERO();
        }
    }
    for (size_t k = 0; k < piece->n; k += GROUP) {
        const size_t left = piece->n - k, ahead = k + AHEAD_BYTES;
        const size_t next = ahead < piece->n ? ahead : ahead - piece->n + count * (size_t)args->b_stride;
        KILN_UNROLL
        for (size_t c = 0; c < count; c++) {
            kiln_prefetch(rows[c] + next, GROUP, 0);
            b[c] = rows[c] + k;
            if (left >= GROUP) continue;
            memset(scratch->last[c] + left, 0, GROUP - left);
            b[c] = memcpy(scratch->last[c], b[c], left);
        }
        multiply_group(products, piece->a + k * m, b, m);
        if (grouped || W8A8_INTEGERS) add_group(sums, products, args, piece, col, k, m, grouped);
    }
    if (!grouped && !W8A8_INTEGERS) add_group(sums, products, args, piece, col, 0, m, grouped);
    KILN_UNROLL
    for (size_t r = 0; r < m; r++) {
        KILN_UNROLL
        for (size_t c = 0; c < count; c++)
            KILN_VEC_STORE(&scratch->sums[r][col + c][0].scaled, sums[r][c]);
    }
}

/* A block's columns of d, with m rows, at least as many as a has: the last one several times. */
KILN_INLINE void rows_block_of(rows_scratch *scratch, const kiln_w8a8_args *args, rows_piece piece, size_t m) {
    const bool fits = args->k <= (int64_t)(KEPT / m), taken = fits && scratch->taken == piece.row;
    for (; piece.k < (uint64_t)args->k; piece.k += piece_of(m)) {
        const size_t at = fits ? (size_t)piece.k * m : 0;
        piece.n = kiln_min((uint64_t)args->k - piece.k, piece_of(m));
        piece.a = scratch->a + at;
        piece.a_scales = scratch->a_scales + at / GROUP;
        if (!taken) take_rows(scratch->a + at, scratch->a_scales + at / GROUP, args, &piece, m);
        for (size_t col = 0; col < piece.cols; col += rows_strip_of(m))
            if (args->grouped)
                multiply_rows(scratch, args, &piece, col, m, true);
            else
                multiply_rows(scratch, args, &piece, col, m, false);
    }
    scratch->taken = fits ? piece.row : UINT64_MAX;
}

KILN_INLINE void rows_block(rows_scratch *scratch, const kiln_w8a8_args *args, const rows_piece *piece) {
    if (piece->rows == 1)
        rows_block_of(scratch, args, *piece, 1);
    else if (piece->rows == 2)
        rows_block_of(scratch, args, *piece, 2);
    else if (piece->rows <= 4)
        rows_block_of(scratch, args, *piece, 4);
    else
        rows_block_of(scratch, args, *piece, KILN_W8A8_ROWS);
}

/* The sums of the vectors of sums of a row's columns. */
KILN_INLINE void add_vectors(w8a8_sum *totals, const w8a8_sum (*sums)[KILN_VEC], size_t cols, bool integers) {
    for (size_t col = 0; integers && col < cols; col++) {
        int32_t total = 0;
        for (size_t i = 0; i < KILN_VEC; i++)
            total += sums[col][i].exact;
        totals[col].exact = total;
    }
    for (size_t col = 0; !integers && col < cols; col += KILN_VEC) {
        kiln_vec vectors[KILN_VEC];
        KILN_UNROLL
        for (size_t i = 0; i < KILN_VEC; i++)
            vectors[i] = KILN_VEC_LOAD(&sums[col + i][0].scaled);
        KILN_VEC_STORE(&totals[col].scaled, kiln_vec_sums(vectors));
    }
}

#if W8A8_INTEGERS
/* Computes what rows_block computes, with the same sums, if the machine can. Returns whether it did. */
static bool rows_block_extended(rows_scratch *scratch, const kiln_w8a8_args *args, const rows_piece *piece,
                                size_t cols);
#else
KILN_INLINE bool rows_block_extended(rows_scratch *scratch, const kiln_w8a8_args *args, const rows_piece *piece,
                                     size_t cols) {
    (void)scratch, (void)args, (void)piece, (void)cols;
    return false;
}
#endif

KILN_OUTLINED void w8a8_rows(const void *arguments, const kiln_cpu_span *span, kiln_cpu_dtype dtype) {
    const kiln_w8a8_args args = *(const kiln_w8a8_args *)arguments; /* a copy, which no store can change */
    rows_scratch *scratch = span->scratch;
    scratch->taken = UINT64_MAX;
    for (uint64_t block = span->begin; block < span->end; block++) {
        rows_piece piece = {.row = block / span->grid[0] * KILN_W8A8_ROWS, .col = block % span->grid[0] * COLUMNS};
        if (piece.row >= (uint64_t)args.m) break;
        const size_t cols = kiln_min((uint64_t)args.n - piece.col, COLUMNS);
        piece.cols = cols;
        piece.rows = kiln_min((uint64_t)args.m - piece.row, KILN_W8A8_ROWS);
        memset(scratch->sums, 0, sizeof scratch->sums);
        if (!rows_block_extended(scratch, &args, &piece, cols)) rows_block(scratch, &args, &piece);
        for (size_t row = 0; row < piece.rows; row++) {
            add_vectors(scratch->totals, (const w8a8_sum(*)[KILN_VEC])scratch->sums[row], cols,
                        W8A8_INTEGERS && !args.grouped);
            const float *sums = scaled(&scratch->tiles, &args, scratch->totals, piece.row + row, piece.col, cols);
            finish(&scratch->tiles, &args, sums, piece.row + row, piece.col, cols, dtype);
        }
    }
}

#endif
