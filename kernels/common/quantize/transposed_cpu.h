/* Tiles of a tensor whose columns are not adjacent, as f32, on the CPU: 64 rows of 16 bits or 32 of f32 at a time, so
 * that whole cache lines of a column are used where rows are adjacent. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_TRANSPOSED_CPU_H
#define KILN_KERNELS_COMMON_QUANTIZE_TRANSPOSED_CPU_H

#include "kernels/common/quantize/transposed_args.h"
#include "kernels/common/reduce/greatest_cpu.h"

enum {
    KILN_TRANSPOSED_PADDING = 16, /* floats behind a row, so that a column's are in different sets of a cache */
    KILN_TRANSPOSED_FLOATS = KILN_TRANSPOSED_ROWS * (KILN_TRANSPOSED_COLS + KILN_TRANSPOSED_PADDING),
    KILN_TRANSPOSED_AHEAD = 16, /* columns */
    KILN_TRANSPOSED_KEPT = 28   /* tiles of a row that is gone through twice */
};

/* In span->scratch. */
typedef struct kiln_transposed_scratch {
    float tiles[KILN_TRANSPOSED_KEPT][KILN_TRANSPOSED_FLOATS];
    uint32_t greatest[KILN_TRANSPOSED_ROWS]; /* the bits of each row's greatest magnitude */
} kiln_transposed_scratch;
_Static_assert(sizeof(kiln_transposed_scratch) <= KILN_CPU_SCRATCH, "what a call has");

/* What of a tile is inside the tensor, and the floats between its rows. */
typedef struct kiln_transposed_tile {
    uint64_t row, col;
    uint64_t rows, cols;
    uint64_t pitch;
} kiln_transposed_tile;

KILN_INLINE unsigned kiln_transposed_cols_log2(const kiln_transposed *t, kiln_cpu_dtype dtype) {
    return KILN_TRANSPOSED_BYTES_LOG2 - (dtype == KILN_CPU_f32 ? 2u : 1u) - t->rows_log2;
}

KILN_INLINE kiln_transposed_tile kiln_transposed_tile_at(const kiln_transposed *t, uint64_t row, uint64_t col,
                                                         kiln_cpu_dtype dtype) {
    const uint64_t rows = row < (uint64_t)t->rows ? (uint64_t)t->rows - row : 0;
    const uint64_t cols = col < (uint64_t)t->cols ? (uint64_t)t->cols - col : 0;
    const uint64_t most = 1ull << kiln_transposed_cols_log2(t, dtype);
    return (kiln_transposed_tile){row, col, kiln_min(rows, 1ull << t->rows_log2), kiln_min(cols, most),
                                  most + KILN_TRANSPOSED_PADDING};
}

typedef float kiln_four __attribute__((vector_size(16)));

/* Four rows and four columns, the columns' pitch apart, become four rows. */
KILN_INLINE void kiln_transposed_four(float *tile, uint64_t pitch, const float *columns) {
    kiln_four c[4], low[2], high[2], rows[4];
    for (int i = 0; i < 4; i++)
        memcpy(&c[i], columns + i * KILN_TRANSPOSED_ROWS, sizeof c[i]);
    for (int i = 0; i < 2; i++) {
        low[i] = __builtin_shufflevector(c[2 * i], c[2 * i + 1], 0, 4, 1, 5);
        high[i] = __builtin_shufflevector(c[2 * i], c[2 * i + 1], 2, 6, 3, 7);
    }
    rows[0] = __builtin_shufflevector(low[0], low[1], 0, 1, 4, 5);
    rows[1] = __builtin_shufflevector(low[0], low[1], 2, 3, 6, 7);
    rows[2] = __builtin_shufflevector(high[0], high[1], 0, 1, 4, 5);
    rows[3] = __builtin_shufflevector(high[0], high[1], 2, 3, 6, 7);
    for (uint64_t i = 0; i < 4; i++)
        memcpy(tile + i * pitch, &rows[i], sizeof rows[i]);
}

/* The elements of a tile, four columns at a time where rows are adjacent. */
KILN_INLINE void kiln_transposed_load(const kiln_transposed *t, const kiln_transposed_tile *at, float *tile,
                                      kiln_cpu_dtype dtype) {
    const uint64_t row_stride = (uint64_t)t->row_stride, col_stride = (uint64_t)t->col_stride;
    const uint64_t size = kiln_dtype_size(dtype);
    const void *x = kiln_at(t->x, at->row * row_stride + at->col * col_stride, dtype);
    float columns[4 * KILN_TRANSPOSED_ROWS];
    for (uint64_t col = 0; row_stride == 1 && col < at->cols; col += 4) {
        const uint64_t count = kiln_min(at->cols - col, 4), whole = count == 4 ? at->rows / 4 * 4 : 0;
        for (uint64_t c = 0; c < count; c++) {
            float *column = columns + c * KILN_TRANSPOSED_ROWS;
            const void *source = kiln_at(x, (col + c) * col_stride, dtype);
            kiln_prefetch(source, at->rows * size, KILN_TRANSPOSED_AHEAD * col_stride * size);
            const float *values = kiln_tile_load(column, source, at->rows, dtype);
            if (values != column) memcpy(column, values, at->rows * sizeof *column);
        }
        for (uint64_t r = 0; r < whole; r += 4)
            kiln_transposed_four(tile + r * at->pitch + col, at->pitch, columns + r);
        for (uint64_t r = whole; r < at->rows; r++)
            for (uint64_t c = 0; c < count; c++)
                tile[r * at->pitch + col + c] = columns[c * KILN_TRANSPOSED_ROWS + r];
    }
    if (row_stride == 1) return;
    const uint64_t inner = t->by_row ? at->cols : at->rows, outer = t->by_row ? at->rows : at->cols;
    for (uint64_t o = 0; o < outer; o++)
        for (uint64_t i = 0; i < inner; i++) {
            const uint64_t r = t->by_row ? o : i, c = t->by_row ? i : o;
            tile[r * at->pitch + c] = kiln_element_load(kiln_at(x, r * row_stride + c * col_stride, dtype), dtype);
        }
}

/* Adds a tile's magnitudes to those of its rows, or of all rows, which the first has. */
KILN_INLINE void kiln_transposed_take(const kiln_transposed_tile *at, const float *tile, uint32_t *greatest, bool all) {
    for (uint64_t r = 0; r < at->rows; r++) {
        uint32_t *own = &greatest[all ? 0 : r];
        *own = kiln_greatest_magnitude(*own, tile + r * at->pitch, at->cols);
    }
}

#endif
