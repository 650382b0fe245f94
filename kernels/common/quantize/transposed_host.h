/* What the host sides of operators share that read x along either axis: the checks of its two strides. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_TRANSPOSED_HOST_H
#define KILN_KERNELS_COMMON_QUANTIZE_TRANSPOSED_HOST_H

#include "kernels/common/host.h"
#include "kernels/common/quantize/transposed_args.h"

/* Whether kiln__transposed_check is for x: its columns are not adjacent, or it is a single row of which the caller has
 * the strides of a transposed tensor, 1 and 1. */
static inline bool kiln__is_transposed(int64_t cols, int64_t row_stride, int64_t col_stride) {
    return (col_stride != 0 && col_stride != 1) || (col_stride == 1 && row_stride && row_stride < cols);
}

/* The most rows of a tile, as a logarithm. */
static inline uint32_t kiln__transposed_rows_log2(unsigned size_log2) {
    return KILN_TRANSPOSED_BYTES_LOG2 - KILN_TRANSPOSED_COLS_LOG2 - size_log2;
}

/* (count - 1) * stride + 1, the elements that count of them take, both positive; INT64_MAX if that is too large. */
static inline int64_t kiln__transposed_extent(int64_t count, int64_t stride) {
    int64_t extent;
    const bool overflow =
        __builtin_mul_overflow(count - 1, stride, &extent) || __builtin_add_overflow(extent, 1, &extent);
    return overflow ? INT64_MAX : extent;
}

/* Checks x, of rows and columns that are positive, and fills in all but the tile's rows: its most. */
static inline kiln_status kiln__transposed_check(const char *name, const void *x, int64_t rows, int64_t cols,
                                                 int64_t row_stride, int64_t col_stride, unsigned size_log2,
                                                 kiln_transposed *out) {
    const int64_t most = INT64_MAX >> 3;
    KILN__REQUIRE(row_stride >= 0, "%s: x_stride is %lld: must not be negative", name, (long long)row_stride);
    KILN__REQUIRE(col_stride >= 0, "%s: x_col_stride is %lld: must not be negative", name, (long long)col_stride);
    if (!row_stride) row_stride = cols;
    KILN__TRY(kiln__tensor_check(name, "x", x, 1, 1, 1, size_log2));
    const int64_t row = kiln__transposed_extent(cols, col_stride), col = kiln__transposed_extent(rows, row_stride);
    KILN__REQUIRE(row <= most && col <= most - row,
                  "%s: x is too large: %lld x %lld with an x_stride of %lld and an x_col_stride of %lld, at most %lld "
                  "elements in all",
                  name, (long long)rows, (long long)cols, (long long)row_stride, (long long)col_stride,
                  (long long)most);
    KILN__REQUIRE(row_stride >= row || col_stride >= col,
                  "%s: x_stride is %lld and x_col_stride %lld: x_stride must be at least %lld, what a row takes, or "
                  "x_col_stride at least %lld, what a column does",
                  name, (long long)row_stride, (long long)col_stride, (long long)row, (long long)col);
    *out = (kiln_transposed){.x = x,
                             .rows = rows,
                             .cols = cols,
                             .row_stride = row_stride,
                             .col_stride = col_stride,
                             .rows_log2 = kiln__transposed_rows_log2(size_log2),
                             .wide = row_stride == 1 && kiln__rows_wide((uintptr_t)x, cols, col_stride, size_log2),
                             .by_row = col_stride < row_stride};
    return KILN_OK;
}

/* For blocks that go through whole rows: makes a tile's rows fewer, of more columns, as long as the blocks are few and
 * 64 bytes of a column are read at a time. Returns the tiles of a row. */
static inline uint32_t kiln__transposed_rows(kiln_transposed *t, unsigned size_log2) {
    enum { FEW_BLOCKS = 256, LEAST_BYTES_LOG2 = 6 };
    while (t->rows_log2 + size_log2 > LEAST_BYTES_LOG2 && t->rows >> t->rows_log2 < FEW_BLOCKS &&
           t->cols >> (KILN_TRANSPOSED_BYTES_LOG2 - size_log2 - t->rows_log2))
        t->rows_log2--;
    const uint64_t cols = 1ull << (KILN_TRANSPOSED_BYTES_LOG2 - size_log2 - t->rows_log2);
    return (uint32_t)(((uint64_t)t->cols + cols - 1) / cols);
}

#endif
