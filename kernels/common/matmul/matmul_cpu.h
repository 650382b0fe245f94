/* Products of rows with columns that lie transposed in the first-level cache: an element of a row is the factor of a
 * whole vector of columns. What products of matrices share on the CPU. */
#ifndef KILN_KERNELS_COMMON_MATMUL_MATMUL_CPU_H
#define KILN_KERNELS_COMMON_MATMUL_MATMUL_CPU_H

#include "kernels/common/vec.h"

enum {
    KILN_MATMUL_TILE = 64,                               /* columns */
    KILN_MATMUL_STRIP = 4,                               /* tiles of a strip, at most */
    KILN_MATMUL_LINE = 16,                               /* elements of f32 in a line of the cache */
    KILN_MATMUL_VECS = KILN_VEC_REGISTERS >= 32 ? 4 : 2, /* of columns, multiplied at a time */
    KILN_MATMUL_ROWS = 6,                                /* with rows: their sums fill most of the registers */
    KILN_MATMUL_STEPS = 2,                               /* of k without a branch: more gain nothing */
    KILN_MATMUL_SPAN = KILN_MATMUL_VECS * KILN_VEC,      /* columns that are multiplied at a time */
    KILN_MATMUL_AHEAD = 32                               /* rows of memory that are prefetched meanwhile, at most */
};

/* A product d of m x n, over k in parts of `split`, whose blocks are tiles. */
typedef struct kiln_matmul_sizes {
    uint64_t m, n, k, split;
    uint64_t tile_rows; /* tiles of d's height */
} kiln_matmul_sizes;

/* Tiles below each other, which are computed together. */
typedef struct kiln_matmul_strip {
    uint64_t split, row, col, k, k_end;
    size_t rows, cols;
    size_t blocks;
} kiln_matmul_strip;

/* The strip that begins with a block. Here blocks go down a column of tiles before they go on to the next. */
KILN_INLINE kiln_matmul_strip kiln_matmul_strip_of(const kiln_matmul_sizes *sizes, const kiln_cpu_span *span,
                                                   uint64_t block) {
    const uint64_t tiles = sizes->tile_rows * span->grid[0], tile = block % tiles, tile_row = tile % sizes->tile_rows;
    kiln_matmul_strip s = {
        .split = block / tiles, .row = tile_row * KILN_MATMUL_TILE, .col = tile / sizes->tile_rows * KILN_MATMUL_TILE};
    s.blocks = kiln_min(kiln_min(sizes->tile_rows - tile_row, span->end - block), KILN_MATMUL_STRIP);
    s.rows = kiln_min(sizes->m - s.row, s.blocks * KILN_MATMUL_TILE);
    s.cols = kiln_min(sizes->n - s.col, KILN_MATMUL_TILE);
    s.k = s.split * sizes->split;
    s.k_end = kiln_min(s.k + sizes->split, sizes->k);
    return s;
}

/* Where the sums of a row of a strip are among those of all splits. */
KILN_INLINE uint64_t kiln_matmul_partial(const kiln_matmul_strip *s, uint64_t row, uint64_t m, uint64_t n) {
    return (s->split * m + s->row + row) * n + s->col;
}

/* Loads n elements of each of a matrix' rows, which are as far from each other as stride says, as columns. Vectors that
 * need more rows, or more elements, get arbitrary ones, whose results are not used. */
KILN_INLINE void kiln_matmul_transpose(float (*columns)[KILN_MATMUL_TILE], const void *matrix, uint64_t stride,
                                       size_t rows, size_t n, kiln_cpu_dtype dtype) {
    size_t end = (rows + KILN_MATMUL_SPAN - 1) / KILN_MATMUL_SPAN * KILN_MATMUL_SPAN;
    for (size_t row = 0; row < end; row += KILN_VEC) {
        const void *sources[KILN_VEC];
        for (size_t i = 0; i < KILN_VEC; i++)
            sources[i] = kiln_at(matrix, kiln_min(row + i, rows - 1) * stride, dtype);
        for (size_t k = 0; k < n; k += KILN_VEC) {
            kiln_vec block[KILN_VEC];
            size_t count = kiln_min(n - k, KILN_VEC);
            KILN_UNROLL
            for (size_t i = 0; i < KILN_VEC; i++)
                block[i] = kiln_vec_load(kiln_at(sources[i], k, dtype), count, dtype);
            kiln_vec_transpose(block);
            KILN_UNROLL
            for (size_t i = 0; i < KILN_VEC; i++)
                KILN_VEC_STORE(&columns[k + i][row], block[i]);
        }
    }
}

/* KILN_MATMUL_ROWS rows from a k on, and rows of memory that are needed soon, of which a line is prefetched with each
 * line of these: many at a time would keep what reads the caches waiting. */
typedef struct kiln_matmul_rows {
    const void *values[KILN_MATMUL_ROWS];
    const char *ahead[KILN_MATMUL_AHEAD];
    size_t ahead_count;
    size_t size; /* of an element there, in bytes */
} kiln_matmul_rows;

/* Begins without any rows: an initialiser would clear all places for them, in as long as 100 elements are multiplied.
 */
KILN_INLINE void kiln_matmul_begin(kiln_matmul_rows *rows, size_t size) {
    rows->ahead_count = 0;
    rows->size = size;
}

/* Has `count` rows of memory prefetched, as many of them as there is room for. */
KILN_INLINE void kiln_matmul_ask(kiln_matmul_rows *rows, const void *first, uint64_t stride_bytes, size_t count) {
    for (size_t i = 0; i < count && rows->ahead_count < KILN_MATMUL_AHEAD; i++)
        rows->ahead[rows->ahead_count++] = (const char *)first + i * stride_bytes;
}

/* Adds the products of one element of the rows with KILN_MATMUL_VECS vectors of columns. paired: elements are two
 * numbers of bf16, at a level whose machines may multiply them. */
KILN_INLINE void kiln_matmul_step(kiln_vec (*products)[KILN_MATMUL_VECS], const kiln_matmul_rows *rows,
                                  const float *columns, size_t k, bool paired) {
    kiln_vec factors[KILN_MATMUL_VECS];
    KILN_UNROLL
    for (size_t v = 0; v < KILN_MATMUL_VECS; v++)
        factors[v] = KILN_VEC_LOAD(columns + k * KILN_MATMUL_TILE + v * KILN_VEC);
    KILN_UNROLL
    for (size_t r = 0; r < KILN_MATMUL_ROWS; r++) {
        float value;
        memcpy(&value, (const char *)rows->values[r] + k * sizeof value, sizeof value);
        kiln_vec element = KILN_VEC_SET(value);
        KILN_UNROLL
        for (size_t v = 0; v < KILN_MATMUL_VECS; v++)
            products[r][v] = paired ? KILN_VEC_DOT_BF16(element, factors[v], products[r][v])
                                    : KILN_VEC_FMA(element, factors[v], products[r][v]);
    }
}

/* The sums of the products of n elements of the rows with KILN_MATMUL_VECS vectors of columns. ahead: how many rows of
 * memory are prefetched. */
KILN_INLINE void kiln_matmul_products(kiln_vec (*products)[KILN_MATMUL_VECS], const kiln_matmul_rows *rows,
                                      size_t ahead, const float *columns, size_t n, bool paired) {
    const size_t lines = n - n % KILN_MATMUL_LINE;
    size_t k = 0;
    KILN_UNROLL
    for (size_t r = 0; r < KILN_MATMUL_ROWS;
         r++) { /* one loop over both is too long to be unrolled, which leaves products in memory */
        KILN_UNROLL
        for (size_t v = 0; v < KILN_MATMUL_VECS; v++)
            products[r][v] = KILN_VEC_ZERO();
    }
    for (; k < lines; k += KILN_MATMUL_LINE) {
        for (size_t i = 0; i < ahead; i++)
            __builtin_prefetch(rows->ahead[i] + k * rows->size, 0, 2);
        for (size_t i = 0; i < KILN_MATMUL_LINE; i += KILN_MATMUL_STEPS) {
            KILN_UNROLL
            for (size_t step = 0; step < KILN_MATMUL_STEPS; step++)
                kiln_matmul_step(products, rows, columns, k + i + step, paired);
        }
    }
    for (; k < n; k++)
        kiln_matmul_step(products, rows, columns, k, paired);
}

/* Adds these sums to others, of all columns, which have rows of KILN_MATMUL_TILE. */
KILN_INLINE void kiln_matmul_add(float *sums, const kiln_matmul_rows *rows, const float *columns, size_t n, size_t cols,
                                 bool paired) {
    for (size_t col = 0; col < cols; col += KILN_MATMUL_SPAN) {
        kiln_vec products[KILN_MATMUL_ROWS][KILN_MATMUL_VECS];
        kiln_matmul_products(products, rows, col ? 0 : rows->ahead_count, columns + col, n, paired);
        KILN_UNROLL
        for (size_t r = 0; r < KILN_MATMUL_ROWS; r++) {
            KILN_UNROLL
            for (size_t v = 0; v < KILN_MATMUL_VECS; v++) {
                float *sum = sums + r * KILN_MATMUL_TILE + col + v * KILN_VEC;
                KILN_VEC_STORE(sum, KILN_VEC_ADD(KILN_VEC_LOAD(sum), products[r][v]));
            }
        }
    }
}

KILN_OUTLINED void kiln_matmul_columns(float *sums, const kiln_matmul_rows *rows, const float *columns, size_t n,
                                       size_t cols) {
    kiln_matmul_add(sums, rows, columns, n, cols, false);
}

#if defined(__AVX512F__)
/* The same of pairs of bf16. */
KILN_OUTLINED void kiln_matmul_pairs(float *sums, const kiln_matmul_rows *rows, const float *columns, size_t n,
                                     size_t cols) {
    kiln_matmul_add(sums, rows, columns, n, cols, true);
}
#endif

#endif
