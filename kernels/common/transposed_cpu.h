/* Tiles of a tensor whose columns are not adjacent, as f32, on the CPU: 64 rows of 16 bits or 32 of f32 at a time, so
 * that whole cache lines of a column are used where rows are adjacent. */
#ifndef KILN_KERNELS_COMMON_TRANSPOSED_CPU_H
#define KILN_KERNELS_COMMON_TRANSPOSED_CPU_H

#include "kernels/common/greatest_cpu.h"
#include "kernels/common/transposed_args.h"

enum {
    KILN_TRANSPOSED_PADDING = 16, /* floats behind a row, so that a column's are in different sets of a cache */
    KILN_TRANSPOSED_FLOATS = KILN_TRANSPOSED_ROWS * (KILN_TRANSPOSED_COLS + KILN_TRANSPOSED_PADDING),
    KILN_TRANSPOSED_AHEAD = 16 /* columns */
};

/* In span->scratch. */
typedef struct kiln_transposed_scratch {
    float tile[KILN_TRANSPOSED_FLOATS];
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

/* The elements of a tile, a column at a time where rows are adjacent. */
KILN_INLINE void kiln_transposed_load(const kiln_transposed *t, const kiln_transposed_tile *at, float *tile,
                                      kiln_cpu_dtype dtype) {
    const uint64_t row_stride = (uint64_t)t->row_stride, col_stride = (uint64_t)t->col_stride;
    const void *x = kiln_at(t->x, at->row * row_stride + at->col * col_stride, dtype);
    float column[KILN_TRANSPOSED_ROWS];
    for (uint64_t c = 0; row_stride == 1 && c < at->cols; c++) {
        const void *source = kiln_at(x, c * col_stride, dtype);
        kiln_prefetch(source, at->rows * kiln_dtype_size(dtype),
                      KILN_TRANSPOSED_AHEAD * col_stride * kiln_dtype_size(dtype));
        const float *values = kiln_tile_load(column, source, at->rows, dtype);
        for (uint64_t r = 0; r < at->rows; r++)
            tile[r * at->pitch + c] = values[r];
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
KILN_INLINE void kiln_transposed_take(const kiln_transposed_tile *at, kiln_transposed_scratch *scratch, bool all) {
    for (uint64_t r = 0; r < at->rows; r++) {
        uint32_t *greatest = &scratch->greatest[all ? 0 : r];
        *greatest = kiln_greatest_magnitude(*greatest, scratch->tile + r * at->pitch, at->cols);
    }
}

#endif
