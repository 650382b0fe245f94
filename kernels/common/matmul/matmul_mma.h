/* What products by mma.sync share: which tile of d a block does, and how a warp's sums leave. */
#ifndef KILN_KERNELS_COMMON_MATMUL_MATMUL_MMA_H
#define KILN_KERNELS_COMMON_MATMUL_MATMUL_MMA_H

#include "kernels/common/device.h"

enum : uint32_t {
    RASTER = 8, /* rows of tiles that neighbouring blocks go over together */
    SLICE = 16  /* rows of a warp's sums that leave at once */
};

/* Which tile a block does: they go down RASTER rows of tiles before they go on to the next column. */
KILN_INLINE void raster(uint32_t *row, uint32_t *col, uint32_t rows, uint32_t cols) {
    uint32_t band = *row / RASTER, place = *row % RASTER * cols + *col;
    uint32_t height = rows - band * RASTER < RASTER ? rows - band * RASTER : RASTER;
    *row = band * RASTER + place % height;
    *col = place / height;
}

/* Gives a warp's sums to write(sum, row, col), a function, where d, of which row and col are the warp's first, has such
 * an element: SLICE rows at a time, by the warp's part of shared memory, so that a row is written by neighbouring
 * lanes. */
template <uint32_t ROWS, uint32_t COLS, class args_type, class sum_type, class writer>
KILN_INLINE void write_sums(const args_type *args, const sum_type (*sums)[COLS / 8][4], float *slice, uint64_t row,
                            uint64_t col, const writer &write) {
    enum : uint32_t { PITCH = COLS + 8 }; /* no two rows that are written at once meet a bank */
    uint32_t lane = kiln_thread() % 32;
    float *place = slice + lane / 4 * PITCH + lane % 4 * 2;
    KILN_LOOP
    for (uint32_t part = 0; part < ROWS / SLICE; part++, row += SLICE) {
        __syncwarp();
        KILN_UNROLL
        for (uint32_t i = 0; i < ROWS / SLICE; i++) { /* registers have no index */
            if (i != part) continue;
            KILN_UNROLL
            for (uint32_t j = 0; j < COLS / 8; j++) {
                *(float2 *)(place + j * 8) = make_float2((float)sums[i][j][0], (float)sums[i][j][1]);
                *(float2 *)(place + j * 8 + 8 * PITCH) = make_float2((float)sums[i][j][2], (float)sums[i][j][3]);
            }
        }
        __syncwarp();
        KILN_LOOP
        for (uint32_t i = lane; i < SLICE * COLS; i += 32) {
            uint64_t d_row = row + i / COLS, d_col = col + i % COLS;
            if (d_row >= (uint64_t)args->m || d_col >= (uint64_t)args->n) continue;
            write(slice[i / COLS * PITCH + i % COLS], d_row, d_col);
        }
    }
}

#endif
