/* Products of matrices by the tiles of AMX, for kernels of level x86-64-v4 that transpose one factor into lanes of two
 * or four numbers of k: gemm_amx.h and gemm_int8_amx.h.
 *
 * Four tiles have the sums of 32 rows of a with 32 columns; a step of k, of 64 bytes, loads two tiles of either factor
 * and multiplies each with each, so that a tile that is loaded is used twice. */
#ifndef KILN_KERNELS_COMMON_AMX_CPU_H
#define KILN_KERNELS_COMMON_AMX_CPU_H

#include "kernels/arch/amx.h"
#include "kernels/common/cpu.h"

enum {
    KILN_AMX_ROWS = 32,       /* of a, multiplied at a time */
    KILN_AMX_DEPTH_BYTES = 64 /* of a row of a in a tile */
};

typedef enum kiln_amx_numbers { KILN_AMX_BF16, KILN_AMX_F16, KILN_AMX_INT8 } kiln_amx_numbers;

/* All tiles are whole ones. Tiles are the thread's until kiln_amx_end. */
KILN_INLINE void kiln_amx_begin(void) {
    static const kiln_amx_config whole = {
        .palette = 1, .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64}, .rows = {16, 16, 16, 16, 16, 16, 16, 16}};
    KILN_AMX_CONFIGURE(&whole);
}

KILN_INLINE void kiln_amx_end(void) {
    KILN_AMX_RELEASE();
}

/* KILN_AMX_ROWS rows of a, or where they are copied to if there are fewer or they end within a tile: copies have zeros
 * there, and are `size` bytes apart, the row's bytes rounded up to whole tiles. Gives their stride in place of a's. */
KILN_INLINE const char *kiln_amx_rows(char *copies, const char *a, uint64_t *stride, size_t rows, size_t bytes,
                                      size_t size) {
    if (rows >= KILN_AMX_ROWS && bytes % KILN_AMX_DEPTH_BYTES == 0) return a;
    memset(copies, 0, KILN_AMX_ROWS * size);
    for (size_t row = 0; row < kiln_min(rows, KILN_AMX_ROWS); row++)
        memcpy(copies + row * size, a + row * *stride, bytes);
    *stride = size;
    return copies;
}

/* Adds to sums, rows of `width` bytes of f32 or int32, the products of KILN_AMX_ROWS rows of a with `width` / 4
 * columns, whose rows have as many lanes: `steps` of 64 bytes of a's rows, and 16 rows of the columns. */
KILN_INLINE void kiln_amx_multiply(void *sums, const char *a, uint64_t a_stride, const void *columns, size_t width,
                                   size_t steps, kiln_amx_numbers numbers) {
    for (size_t col = 0; col < width; col += 128) {
        char *low = (char *)sums + col, *high = low + 16 * width;
        const char *left = a, *b = (const char *)columns + col;
        KILN_AMX_LOAD(0, low, width);
        KILN_AMX_LOAD(1, low + 64, width);
        KILN_AMX_LOAD(2, high, width);
        KILN_AMX_LOAD(3, high + 64, width);
        for (size_t step = 0; step < steps; step++, left += KILN_AMX_DEPTH_BYTES, b += 16 * width) {
            KILN_AMX_LOAD(4, left, a_stride);
            KILN_AMX_LOAD(5, left + 16 * a_stride, a_stride);
            KILN_AMX_LOAD(6, b, width);
            KILN_AMX_LOAD(7, b + 64, width);
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
        KILN_AMX_STORE(0, low, width);
        KILN_AMX_STORE(1, low + 64, width);
        KILN_AMX_STORE(2, high, width);
        KILN_AMX_STORE(3, high + 64, width);
    }
}

#endif
