/* Tiles of a tensor whose columns are not adjacent, turned in shared memory: there 128 elements of a row are adjacent,
 * as vectors, which is a line. A tile has 64 lines of 16-bit elements or 32 of f32: of as many rows, or of half or a
 * quarter of these, first those of all rows' first 128 columns, then those of the next. Of a transposed tensor, whose
 * rows are adjacent, threads read vectors along the rows, 128 bytes of a column at a time if a tile has all rows; of
 * any other, element by element. Elements beyond the tensor are zeros. */
#ifndef KILN_KERNELS_COMMON_TRANSPOSED_GPU_H
#define KILN_KERNELS_COMMON_TRANSPOSED_GPU_H

#include "kernels/common/device.h"
#include "kernels/common/transposed_args.h"

enum {
    KILN_VECTOR_LOG2 = KILN_VECTOR == 8 ? 3 : 2,
    KILN_TRANSPOSED_VECTORS = KILN_TRANSPOSED_BYTES / KILN_VECTOR_BYTES,
    KILN_TRANSPOSED_ELEMENTS = KILN_TRANSPOSED_VECTORS * KILN_VECTOR,
    KILN_LINE_LOG2 = KILN_TRANSPOSED_COLS_LOG2 - KILN_VECTOR_LOG2,
    KILN_LINE = 1 << KILN_LINE_LOG2, /* vectors */
    KILN_TRANSPOSED_LINES_LOG2 = KILN_TRANSPOSED_BYTES_LOG2 - 4 - KILN_LINE_LOG2,
    KILN_TRANSPOSED_LINES = 1 << KILN_TRANSPOSED_LINES_LOG2
};

/* The number of columns of a tile, as a logarithm. */
KILN_INLINE uint32_t kiln_transposed_cols_log2(const kiln_transposed *t) {
    return KILN_TRANSPOSED_COLS_LOG2 + KILN_TRANSPOSED_LINES_LOG2 - t->rows_log2;
}

/* Where a line's vector is. Vectors of lines that threads store to at the same time are in different banks. */
KILN_INLINE uint32_t kiln_transposed_place(uint32_t line, uint32_t vector) {
    return line * KILN_LINE + (vector ^ (line >> KILN_VECTOR_LOG2 & 7u));
}

/* Where an element is. */
KILN_INLINE uint32_t kiln_transposed_element(const kiln_transposed *t, uint32_t row, uint32_t col) {
    const uint32_t line = (col >> KILN_TRANSPOSED_COLS_LOG2 << t->rows_log2) + row;
    return kiln_transposed_place(line, col / KILN_VECTOR % KILN_LINE) * KILN_VECTOR + col % KILN_VECTOR;
}

/* How many of a tile's rows or columns from `first` on are inside the tensor. */
KILN_INLINE uint32_t kiln_transposed_inside(int64_t count, uint64_t first, uint32_t most_log2) {
    const uint64_t left = (uint64_t)count > first ? (uint64_t)count - first : 0;
    return left < 1ull << most_log2 ? (uint32_t)left : 1u << most_log2;
}

/* Reads the tile at a row and a column. The caller has a barrier behind it, and one in front of it where the tile had
 * been read. */
KILN_INLINE void kiln_transposed_load(const kiln_transposed *t, uint64_t row, uint64_t col, kiln_vector *tile) {
    enum { EACH = KILN_TRANSPOSED_VECTORS / KILN_BLOCK, FEW = 2 };
    const uint32_t cols_log2 = kiln_transposed_cols_log2(t), thread = kiln_thread();
    const uint32_t rows = kiln_transposed_inside(t->rows, row, t->rows_log2);
    const uint32_t cols = kiln_transposed_inside(t->cols, col, cols_log2);
    const kiln_element *x = (const kiln_element *)t->x + row * (uint64_t)t->row_stride + col * (uint64_t)t->col_stride;
    kiln_element *elements = (kiln_element *)tile;
    if (t->wide && rows % KILN_VECTOR == 0) {
        const uint32_t lanes_log2 = t->rows_log2 - KILN_VECTOR_LOG2; /* threads that read a column */
        const uint32_t r = (thread & ((1u << lanes_log2) - 1)) * KILN_VECTOR, apart = KILN_BLOCK >> lanes_log2;
        uint32_t c = thread >> lanes_log2;
        const uint64_t step = apart * (uint64_t)t->col_stride;
        kiln_vector vectors[EACH];
        x += c * (uint64_t)t->col_stride + r;
        KILN_UNROLL
        for (uint32_t i = 0; i < EACH; i++) {
            const kiln_vector none = {{0}};
            vectors[i] = none;
            if (r < rows && c + i * apart < cols) vectors[i] = kiln_vector_load(x);
            x += step;
        }
        KILN_UNROLL
        for (uint32_t i = 0; i < EACH; i++) {
            kiln_element *target = elements + kiln_transposed_element(t, r, c);
            KILN_UNROLL
            for (uint32_t j = 0; j < KILN_VECTOR; j++) {
                const uint32_t bit = j * (uint32_t)sizeof(kiln_element) * 8;
                target[j * KILN_TRANSPOSED_COLS] = (kiln_element)(vectors[i].words[bit / 32] >> bit % 32);
            }
            c += apart;
        }
        return;
    }
    const uint32_t low_log2 = t->by_row ? cols_log2 : t->rows_log2;
    KILN_LOOP
    for (uint32_t n = thread; n < KILN_TRANSPOSED_ELEMENTS; n += FEW * KILN_BLOCK) {
        kiln_element few[FEW];
        uint32_t places[FEW];
        KILN_UNROLL
        for (uint32_t i = 0; i < FEW; i++) {
            const uint32_t low = (n + i * KILN_BLOCK) & ((1u << low_log2) - 1), high = (n + i * KILN_BLOCK) >> low_log2;
            const uint32_t r = t->by_row ? high : low, c = t->by_row ? low : high;
            places[i] = kiln_transposed_element(t, r, c);
            few[i] = 0;
            if (r < rows && c < cols) few[i] = x[r * (uint64_t)t->row_stride + c * (uint64_t)t->col_stride];
        }
        KILN_UNROLL
        for (uint32_t i = 0; i < FEW; i++)
            elements[places[i]] = few[i];
    }
}

#endif
