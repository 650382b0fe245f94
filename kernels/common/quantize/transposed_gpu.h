/* Tiles of a tensor whose columns are not adjacent, turned in shared memory: there 128 elements of a row are adjacent,
 * as vectors, which is a line. A tile has 64 lines of 16-bit elements or 32 of f32: of as many rows, or of half or a
 * quarter of these, first those of all rows' first 128 columns, then those of the next. Of a transposed tensor, whose
 * rows are adjacent, a thread reads a vector along the rows of each of four columns, 128 bytes of a column at a time if
 * a tile has all rows, and stores four elements of each of its rows at once: stores of single elements took twice the
 * instructions of the whole load (simulated). Any other tensor is read element by element. Elements beyond the tensor
 * are zeros. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_TRANSPOSED_GPU_H
#define KILN_KERNELS_COMMON_QUANTIZE_TRANSPOSED_GPU_H

#include "kernels/common/device.h"
#include "kernels/common/quantize/transposed_args.h"

enum {
    KILN_VECTOR_LOG2 = KILN_VECTOR == 8 ? 3 : 2,
    KILN_TRANSPOSED_VECTORS = KILN_TRANSPOSED_BYTES / KILN_VECTOR_BYTES,
    KILN_TRANSPOSED_ELEMENTS = KILN_TRANSPOSED_VECTORS * KILN_VECTOR,
    KILN_LINE_LOG2 = KILN_TRANSPOSED_COLS_LOG2 - KILN_VECTOR_LOG2,
    KILN_LINE = 1 << KILN_LINE_LOG2, /* vectors */
    KILN_TRANSPOSED_LINES_LOG2 = KILN_TRANSPOSED_BYTES_LOG2 - 4 - KILN_LINE_LOG2,
    KILN_TRANSPOSED_LINES = 1 << KILN_TRANSPOSED_LINES_LOG2,
    KILN_FOUR_LOG2 = 2,
    KILN_FOUR = 1 << KILN_FOUR_LOG2 /* columns that a thread reads of a tile: KILN_TRANSPOSED_VECTORS / KILN_BLOCK */
};

/* Four elements of a row. */
typedef struct kiln_transposed_four {
    uint32_t words[sizeof(kiln_element)];
} __attribute__((aligned(KILN_FOUR * sizeof(kiln_element)))) kiln_transposed_four;

/* The number of columns of a tile, as a logarithm. */
KILN_INLINE uint32_t kiln_transposed_cols_log2(const kiln_transposed *t) {
    return KILN_TRANSPOSED_COLS_LOG2 + KILN_TRANSPOSED_LINES_LOG2 - t->rows_log2;
}

/* Where a line's vector is. What threads store at the same time, to lines a vector's elements apart and to neighbouring
 * vectors, is in different banks. */
KILN_INLINE uint32_t kiln_transposed_place(const kiln_transposed *t, uint32_t line, uint32_t vector) {
    const uint32_t apart_log2 = KILN_TRANSPOSED_LINES_LOG2 - t->rows_log2;
    return line * KILN_LINE + (vector ^ (line >> KILN_VECTOR_LOG2 << apart_log2 & 7u));
}

/* Where an element is. */
KILN_INLINE uint32_t kiln_transposed_element(const kiln_transposed *t, uint32_t row, uint32_t col) {
    const uint32_t line = (col >> KILN_TRANSPOSED_COLS_LOG2 << t->rows_log2) + row;
    return kiln_transposed_place(t, line, col / KILN_VECTOR % KILN_LINE) * KILN_VECTOR + col % KILN_VECTOR;
}

/* How many of a tile's rows or columns from `first` on are inside the tensor. */
KILN_INLINE uint32_t kiln_transposed_inside(int64_t count, uint64_t first, uint32_t most_log2) {
    const uint64_t left = (uint64_t)count > first ? (uint64_t)count - first : 0;
    return left < 1ull << most_log2 ? (uint32_t)left : 1u << most_log2;
}

/* A row's elements, of that number in the vectors of four columns. */
KILN_INLINE kiln_transposed_four kiln_transposed_row(const kiln_vector *columns, uint32_t number) {
    kiln_transposed_four four;
    KILN_UNROLL
    for (uint32_t i = 0; i < sizeof(kiln_element); i++) {
#if defined(KILN_PART_f32)
        four.words[i] = columns[i].words[number];
#else
        const uint32_t first = columns[2 * i].words[number / 2], second = columns[2 * i + 1].words[number / 2];
#if defined(__CUDACC__)
        four.words[i] = __byte_perm(first, second, number % 2 ? 0x7632 : 0x5410);
#else
        four.words[i] = __builtin_amdgcn_perm(second, first, number % 2 ? 0x07060302u : 0x05040100u);
#endif
#endif
    }
    return four;
}

/* Stores the elements of four columns from c on that a thread has of the rows from r on. */
KILN_INLINE void kiln_transposed_store(const kiln_transposed *t, const kiln_vector *columns, uint32_t r, uint32_t c,
                                       kiln_vector *tile) {
    kiln_transposed_four *target = (kiln_transposed_four *)tile + kiln_transposed_element(t, r, c) / KILN_FOUR;
    KILN_UNROLL
    for (uint32_t i = 0; i < KILN_VECTOR; i++)
        target[i * (KILN_TRANSPOSED_COLS / KILN_FOUR)] = kiln_transposed_row(columns, i);
}

/* Where a tile is, and what of it is inside the tensor. */
typedef struct kiln_transposed_tile {
    uint64_t row, col;
    uint32_t rows, cols;
} kiln_transposed_tile;

KILN_INLINE kiln_transposed_tile kiln_transposed_at(const kiln_transposed *t, uint64_t row, uint64_t col) {
    const kiln_transposed_tile at = {row, col, kiln_transposed_inside(t->rows, row, t->rows_log2),
                                     kiln_transposed_inside(t->cols, col, kiln_transposed_cols_log2(t))};
    return at;
}

/* Reads a tile of all rows and columns that it can have, from there on. rows_log2 of *t is the greatest, known to the
 * compiler. The caller has a barrier behind it. */
KILN_INLINE void kiln_transposed_load_whole(const kiln_transposed *t, uint64_t row, uint64_t col, kiln_vector *tile) {
    enum { LANES = KILN_TRANSPOSED_LINES / KILN_VECTOR, SIZE = sizeof(kiln_element) };
    const uint32_t r = kiln_thread() % LANES * KILN_VECTOR, c = kiln_thread() / LANES * KILN_FOUR;
    const uint64_t stride = (uint64_t)t->col_stride * SIZE;
    const char *x = (const char *)t->x + row * SIZE + col * stride;
    kiln_vector columns[KILN_FOUR];
    x += c * stride + r * SIZE;
    KILN_UNROLL
    for (uint32_t i = 0; i < KILN_FOUR; i++, x += stride)
        columns[i] = *(const kiln_vector *)x;
    kiln_transposed_store(t, columns, r, c, tile);
}

/* Reads a tile. The caller has a barrier behind it, and one in front of it where the memory had been read. */
KILN_INLINE void kiln_transposed_load(const kiln_transposed *t, kiln_transposed_tile at, kiln_vector *tile) {
    enum { FEW = 2 };
    const uint32_t cols_log2 = kiln_transposed_cols_log2(t), thread = kiln_thread(), rows = at.rows, cols = at.cols;
    const kiln_element *x =
        (const kiln_element *)t->x + at.row * (uint64_t)t->row_stride + at.col * (uint64_t)t->col_stride;
    kiln_element *elements = (kiln_element *)tile;
    if (t->wide && rows % KILN_VECTOR == 0) {
        const uint32_t lanes_log2 = t->rows_log2 - KILN_VECTOR_LOG2; /* threads that read a column */
        const uint32_t r = (thread & ((1u << lanes_log2) - 1)) * KILN_VECTOR;
        const uint32_t c = thread >> lanes_log2 << KILN_FOUR_LOG2, end = r < rows ? cols : 0;
        kiln_vector columns[KILN_FOUR];
        x += c * (uint64_t)t->col_stride + r;
        KILN_UNROLL
        for (uint32_t i = 0; i < KILN_FOUR; i++) {
            const kiln_vector none = {{0}};
            columns[i] = none;
            if (c + i < end) columns[i] = kiln_vector_load(x);
            x += t->col_stride;
        }
        kiln_transposed_store(t, columns, r, c, tile);
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
