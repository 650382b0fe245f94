/* Operators on [rows, cols] that read x along either of its axes, with two strides: among the arguments of their
 * kernels for x whose columns are not adjacent. These read x by tiles of KILN_TRANSPOSED_BYTES. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_TRANSPOSED_ARGS_H
#define KILN_KERNELS_COMMON_QUANTIZE_TRANSPOSED_ARGS_H

#include "kernels/common/geometry.h"

enum {
    KILN_TRANSPOSED_BYTES_LOG2 = 14,
    KILN_TRANSPOSED_BYTES = 1 << KILN_TRANSPOSED_BYTES_LOG2,
    KILN_TRANSPOSED_COLS_LOG2 = 7, /* of a tile at least */
    KILN_TRANSPOSED_COLS = 1 << KILN_TRANSPOSED_COLS_LOG2,
    KILN_TRANSPOSED_ROWS = KILN_TRANSPOSED_BYTES / KILN_TRANSPOSED_COLS / 2 /* of a tile at most */
};

KILN_ARGS_BEGIN
typedef struct kiln_transposed {
    const void *x;
    int64_t rows;
    int64_t cols;
    int64_t row_stride;
    int64_t col_stride;
    uint32_t rows_log2; /* the rows of a tile, as a logarithm */
    uint32_t wide;      /* non-zero: rows are adjacent, and the vectors of each column are aligned */
    uint32_t by_row;    /* non-zero: columns are closer than rows */
    uint32_t padding;
} kiln_transposed;
KILN_ARGS_END

#endif
