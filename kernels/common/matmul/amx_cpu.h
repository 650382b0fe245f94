/* Products of matrices by the tiles of AMX, for kernels of level x86-64-v4: gemm_amx.h and gemm_int8_amx.h.
 *
 * A block is KILN_MATMUL_BLOCK_ROWS rows of a by KILN_MATMUL_BLOCK_COLUMNS rows of b, the columns of d. Rows of both
 * are taken KILN_AMX_DEPTH bytes at a time: those of a are copied tile by tile, so that no tile's rows lie a page
 * apart; those of b are transposed, two tiles wide, in lanes of 4 bytes, which are two or four numbers of k. Then two
 * tiles of rows are multiplied with two of columns: four tiles have the sums, and a tile that is loaded is used twice.
 * The columns stay in the first-level cache, the copies and the sums in the second.
 *
 * Rows come from beyond the second-level cache, at 13 to 25 cycles a line, in which a tile's product could be computed.
 * So between products the lines that come next are copied into a second buffer (of a) or prefetched (of b).
 *
 * docs/benchmarks/cpu-model.md has the speeds, and what was tried. */
#ifndef KILN_KERNELS_COMMON_MATMUL_AMX_CPU_H
#define KILN_KERNELS_COMMON_MATMUL_AMX_CPU_H

#include "kernels/arch/amx.h"
#include "kernels/arch/x86.h"
#include "kernels/common/cpu.h"
#include "kernels/common/matmul/matmul_blocks.h"

enum {
    KILN_AMX_TILE_ROWS = 16,
    KILN_AMX_TILE_BYTES = 64, /* of a row */
    KILN_AMX_PAIR = 2 * KILN_AMX_TILE_ROWS,
    KILN_AMX_DEPTH = 512, /* bytes of a row at a time */
    KILN_AMX_STEPS = KILN_AMX_DEPTH / KILN_AMX_TILE_BYTES,
    KILN_AMX_AHEAD = 4 /* rows between a line that is copied and the one that is prefetched */
};

typedef enum kiln_amx_numbers { KILN_AMX_BF16, KILN_AMX_F16, KILN_AMX_INT8 } kiln_amx_numbers;

/* Tiles as they lie in memory. Lanes of sums are f32 or int32. */
typedef struct kiln_amx_tile {
    _Alignas(64) uint8_t rows[KILN_AMX_TILE_ROWS][KILN_AMX_TILE_BYTES];
} kiln_amx_tile;

typedef struct kiln_amx_block {
    kiln_amx_tile sums[KILN_MATMUL_BLOCK_ROWS / KILN_AMX_TILE_ROWS][KILN_MATMUL_BLOCK_COLUMNS / KILN_AMX_TILE_ROWS];
    kiln_amx_tile a[2][KILN_MATMUL_BLOCK_ROWS / KILN_AMX_TILE_ROWS][KILN_AMX_STEPS]; /* one is multiplied, one copied */
    kiln_amx_tile b[KILN_AMX_STEPS][2];
} kiln_amx_block;

/* Some rows of a or b, from a place in k on. */
typedef struct kiln_amx_rows {
    const uint8_t *first;
    uint64_t stride; /* bytes */
    size_t count;    /* where a tile needs more it has the last one again, whose sums are not used */
} kiln_amx_rows;

/* All tiles are whole ones. Tiles are the thread's until kiln_amx_end. */
KILN_INLINE void kiln_amx_begin(void) {
    static const kiln_amx_config whole = {
        .palette = 1, .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64}, .rows = {16, 16, 16, 16, 16, 16, 16, 16}};
    KILN_AMX_CONFIGURE(&whole);
}

KILN_INLINE void kiln_amx_end(void) {
    KILN_AMX_RELEASE();
}

KILN_INLINE const uint8_t *kiln_amx_row(const kiln_amx_rows *rows, size_t row) {
    return rows->first + kiln_min(row, rows->count - 1) * rows->stride;
}

/* Lines of rows, one row after the other: those that have not been read yet. */
typedef struct kiln_amx_lines {
    kiln_amx_rows rows;
    size_t bytes; /* of each row, KILN_AMX_DEPTH at most */
    size_t row, end;
    size_t byte;
} kiln_amx_lines;

/* All lines of rows [first, end). Without bytes there are none. */
KILN_INLINE kiln_amx_lines kiln_amx_lines_of(const kiln_amx_rows *rows, size_t first, size_t end, size_t bytes) {
    kiln_amx_lines lines = {.rows = *rows, .bytes = bytes, .row = bytes ? first : end, .end = end};
    return lines;
}

KILN_INLINE void kiln_amx_next_line(kiln_amx_lines *lines) {
    lines->byte += KILN_AMX_TILE_BYTES;
    if (lines->byte < lines->bytes) return;
    lines->byte = 0;
    lines->row++;
}

/* Copies a line into its tile, with zeros behind it where fewer bytes than a line are left of the row. */
KILN_INLINE void kiln_amx_copy_line(kiln_amx_tile (*tiles)[KILN_AMX_STEPS], const kiln_amx_rows *rows, size_t row,
                                    size_t byte, size_t left) {
    const __mmask64 mask = left >= KILN_AMX_TILE_BYTES ? ~(__mmask64)0 : ((__mmask64)1 << left) - 1;
    kiln_amx_tile *tile = &tiles[row / KILN_AMX_TILE_ROWS][byte / KILN_AMX_TILE_BYTES];
    __builtin_prefetch(kiln_amx_row(rows, row + KILN_AMX_AHEAD) + byte, 0, 2);
    _mm512_store_si512(tile->rows[row % KILN_AMX_TILE_ROWS],
                       _mm512_maskz_loadu_epi8(mask, kiln_amx_row(rows, row) + byte));
}

/* Copies at most `count` lines. */
KILN_INLINE void kiln_amx_copy_lines(kiln_amx_lines *lines, kiln_amx_tile (*tiles)[KILN_AMX_STEPS], size_t count) {
    for (; count && lines->row < lines->end; count--, kiln_amx_next_line(lines))
        kiln_amx_copy_line(tiles, &lines->rows, lines->row, lines->byte, lines->bytes - lines->byte);
}

KILN_INLINE void kiln_amx_prefetch_lines(kiln_amx_lines *lines, size_t count) {
    for (; count && lines->row < lines->end; count--, kiln_amx_next_line(lines))
        __builtin_prefetch(kiln_amx_row(&lines->rows, lines->row) + lines->byte, 0, 2);
}

/* Rows up to whole pairs of tiles. */
KILN_INLINE size_t kiln_amx_whole(size_t rows) {
    return (rows + KILN_AMX_PAIR - 1) / KILN_AMX_PAIR * KILN_AMX_PAIR;
}

/* Copies `bytes` of each row into tiles. */
KILN_INLINE void kiln_amx_take_rows(kiln_amx_tile (*tiles)[KILN_AMX_STEPS], const kiln_amx_rows *a, size_t bytes) {
    for (size_t row = 0; row < kiln_amx_whole(a->count); row++)
        for (size_t byte = 0; byte < bytes; byte += KILN_AMX_TILE_BYTES)
            kiln_amx_copy_line(tiles, a, row, byte, bytes - byte);
}

/* The 16 bytes from `byte` on of rows `row`, `row` + 4, `row` + 8 and `row` + 12 of a tile. */
KILN_INLINE __m512i kiln_amx_quarter(const uint8_t *const *rows, size_t row, size_t byte) {
    __m512i quarter = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(const void *)(rows[row] + byte)));
    KILN_UNROLL
    for (int i = 1; i < 4; i++) {
        const __m128i next = _mm_loadu_si128((const __m128i *)(const void *)(rows[row + 4 * (size_t)i] + byte));
        quarter = i == 1   ? _mm512_inserti32x4(quarter, next, 1)
                  : i == 2 ? _mm512_inserti32x4(quarter, next, 2)
                           : _mm512_inserti32x4(quarter, next, 3);
    }
    return quarter;
}

/* The transpose of 16 rows of 16 lanes: four lanes of each row at a time. */
KILN_INLINE void kiln_amx_transpose(kiln_amx_tile *tile, const uint8_t *const *rows) {
    KILN_UNROLL
    for (size_t lane = 0; lane < 16; lane += 4) {
        __m512i from[4];
        KILN_UNROLL
        for (size_t i = 0; i < 4; i++)
            from[i] = kiln_amx_quarter(rows, i, 4 * lane);
        const __m512i low[2] = {_mm512_unpacklo_epi32(from[0], from[1]), _mm512_unpacklo_epi32(from[2], from[3])};
        const __m512i high[2] = {_mm512_unpackhi_epi32(from[0], from[1]), _mm512_unpackhi_epi32(from[2], from[3])};
        _mm512_store_si512(tile->rows[lane], _mm512_unpacklo_epi64(low[0], low[1]));
        _mm512_store_si512(tile->rows[lane + 1], _mm512_unpackhi_epi64(low[0], low[1]));
        _mm512_store_si512(tile->rows[lane + 2], _mm512_unpacklo_epi64(high[0], high[1]));
        _mm512_store_si512(tile->rows[lane + 3], _mm512_unpackhi_epi64(high[0], high[1]));
    }
}

/* Transposes `bytes` of two tiles of rows, from row `first` on; zeros are behind them. */
KILN_INLINE void kiln_amx_take_columns(kiln_amx_block *block, const kiln_amx_rows *b, size_t first, size_t bytes) {
    for (size_t half = 0; half < 2; half++) {
        const uint8_t *rows[KILN_AMX_TILE_ROWS];
        for (size_t i = 0; i < KILN_AMX_TILE_ROWS; i++)
            rows[i] = kiln_amx_row(b, first + half * KILN_AMX_TILE_ROWS + i);
        for (size_t byte = 0; byte < bytes; byte += KILN_AMX_TILE_BYTES) {
            kiln_amx_tile end;
            const uint8_t *sources[KILN_AMX_TILE_ROWS];
            const size_t left = kiln_min(bytes - byte, KILN_AMX_TILE_BYTES);
            if (left < KILN_AMX_TILE_BYTES) memset(&end, 0, sizeof end);
            for (size_t i = 0; i < KILN_AMX_TILE_ROWS; i++) {
                if (left < KILN_AMX_TILE_BYTES) memcpy(end.rows[i], rows[i] + byte, left);
                sources[i] = left < KILN_AMX_TILE_BYTES ? end.rows[i] : rows[i] + byte;
            }
            kiln_amx_transpose(&block->b[byte / KILN_AMX_TILE_BYTES][half], sources);
        }
    }
}

/* Adds to tiles 0 to 3 the products of two tiles of rows with two of columns. */
KILN_INLINE void kiln_amx_add_step(const kiln_amx_tile *low, const kiln_amx_tile *high, const kiln_amx_tile *b,
                                   kiln_amx_numbers numbers) {
    KILN_AMX_LOAD(4, low, KILN_AMX_TILE_BYTES);
    KILN_AMX_LOAD(6, &b[0], KILN_AMX_TILE_BYTES);
    KILN_AMX_LOAD(7, &b[1], KILN_AMX_TILE_BYTES);
    KILN_AMX_LOAD(5, high, KILN_AMX_TILE_BYTES);
    if (numbers == KILN_AMX_BF16) {
        KILN_AMX_DOT_BF16(0, 4, 6);
        KILN_AMX_DOT_BF16(1, 4, 7);
        KILN_AMX_DOT_BF16(2, 5, 6);
        KILN_AMX_DOT_BF16(3, 5, 7);
    } else if (numbers == KILN_AMX_F16) {
        KILN_AMX_DOT_F16(0, 4, 6);
        KILN_AMX_DOT_F16(1, 4, 7);
        KILN_AMX_DOT_F16(2, 5, 6);
        KILN_AMX_DOT_F16(3, 5, 7);
    } else {
        KILN_AMX_DOT_INT8(0, 4, 6);
        KILN_AMX_DOT_INT8(1, 4, 7);
        KILN_AMX_DOT_INT8(2, 5, 6);
        KILN_AMX_DOT_INT8(3, 5, 7);
    }
}

/* Tiles 0 to 3 to two tiles each of two rows of tiles. */
KILN_INLINE void kiln_amx_store_sums(kiln_amx_tile *low, kiln_amx_tile *high) {
    KILN_AMX_STORE(0, &low[0], KILN_AMX_TILE_BYTES);
    KILN_AMX_STORE(1, &low[1], KILN_AMX_TILE_BYTES);
    KILN_AMX_STORE(2, &high[0], KILN_AMX_TILE_BYTES);
    KILN_AMX_STORE(3, &high[1], KILN_AMX_TILE_BYTES);
}

/* The same the other way. */
KILN_INLINE void kiln_amx_load_sums(const kiln_amx_tile *low, const kiln_amx_tile *high) {
    KILN_AMX_LOAD(0, &low[0], KILN_AMX_TILE_BYTES);
    KILN_AMX_LOAD(1, &low[1], KILN_AMX_TILE_BYTES);
    KILN_AMX_LOAD(2, &high[0], KILN_AMX_TILE_BYTES);
    KILN_AMX_LOAD(3, &high[1], KILN_AMX_TILE_BYTES);
}

KILN_INLINE void kiln_amx_zero_sums(void) {
    KILN_AMX_ZERO(0);
    KILN_AMX_ZERO(1);
    KILN_AMX_ZERO(2);
    KILN_AMX_ZERO(3);
}

/* Sets the sums of the block to the products of all rows of a with all of b, of `bytes` of each. */
KILN_INLINE void kiln_amx_multiply(kiln_amx_block *block, const kiln_amx_rows *a, const kiln_amx_rows *b, size_t bytes,
                                   kiln_amx_numbers numbers) {
    const size_t rows = kiln_amx_whole(a->count), cols = kiln_amx_whole(b->count);
    /* a step multiplies a part of 1 / (rows * cols) of the block's lines with each other */
    const size_t copied_a_step = (KILN_AMX_PAIR * KILN_AMX_PAIR + cols - 1) / cols;
    const size_t prefetched_a_step = (KILN_AMX_PAIR * KILN_AMX_PAIR + rows - 1) / rows;
    kiln_amx_take_rows(block->a[0], a, kiln_min(bytes, KILN_AMX_DEPTH));
    for (size_t at = 0, which = 0; at < bytes; at += KILN_AMX_DEPTH, which = !which) {
        const size_t n = kiln_min(bytes - at, KILN_AMX_DEPTH), next_n = kiln_min(bytes - at - n, KILN_AMX_DEPTH);
        const size_t steps = (n + KILN_AMX_TILE_BYTES - 1) / KILN_AMX_TILE_BYTES;
        const kiln_amx_rows right = {b->first + at, b->stride, b->count};
        const kiln_amx_rows next_left = {a->first + at + n, a->stride, a->count};
        const kiln_amx_rows next_right = {b->first + at + n, b->stride, b->count};
        kiln_amx_lines next_rows = kiln_amx_lines_of(&next_left, 0, rows, next_n);
        for (size_t col = 0; col < cols; col += KILN_AMX_PAIR) {
            const size_t next_col = col + KILN_AMX_PAIR;
            kiln_amx_lines next_columns = next_col < cols
                                              ? kiln_amx_lines_of(&right, next_col, next_col + KILN_AMX_PAIR, n)
                                              : kiln_amx_lines_of(&next_right, 0, KILN_AMX_PAIR, next_n);
            kiln_amx_take_columns(block, &right, col, n);
            for (size_t tile = 0; tile < rows / KILN_AMX_TILE_ROWS; tile += 2) {
                kiln_amx_tile *low = &block->sums[tile][col / KILN_AMX_TILE_ROWS];
                kiln_amx_tile *high = &block->sums[tile + 1][col / KILN_AMX_TILE_ROWS];
                if (at)
                    kiln_amx_load_sums(low, high);
                else
                    kiln_amx_zero_sums();
                for (size_t step = 0; step < steps; step++) {
                    kiln_amx_add_step(&block->a[which][tile][step], &block->a[which][tile + 1][step], block->b[step],
                                      numbers);
                    kiln_amx_copy_lines(&next_rows, block->a[!which], copied_a_step);
                    kiln_amx_prefetch_lines(&next_columns, prefetched_a_step);
                }
                kiln_amx_store_sums(low, high);
            }
        }
        kiln_amx_copy_lines(&next_rows, block->a[!which], SIZE_MAX);
    }
}

/* Copies the sums of a row of the block from a tile's first column on: `count` lanes of 4 bytes, up to whole tiles. */
KILN_INLINE void kiln_amx_sums_of(void *sums, const kiln_amx_block *block, size_t row, size_t first, size_t count) {
    for (size_t col = 0; col < count; col += KILN_AMX_TILE_ROWS)
        memcpy((char *)sums + 4 * col,
               block->sums[row / KILN_AMX_TILE_ROWS][(first + col) / KILN_AMX_TILE_ROWS].rows[row % KILN_AMX_TILE_ROWS],
               KILN_AMX_TILE_BYTES);
}

#endif
