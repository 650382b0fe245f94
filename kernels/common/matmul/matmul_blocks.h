/* How the blocks of a launch, tiles of d, become the larger blocks that a CPU multiplies at a time: their sums, and
 * what is copied of the rows of a, stay in the second-level cache. */
#ifndef KILN_KERNELS_COMMON_MATMUL_MATMUL_BLOCKS_H
#define KILN_KERNELS_COMMON_MATMUL_MATMUL_BLOCKS_H

#include <stdint.h>

enum {
    KILN_MATMUL_LAUNCHED = 64,    /* rows and columns of d in a block of the launch */
    KILN_MATMUL_BLOCK_ROWS = 256, /* in a block of these */
    KILN_MATMUL_BLOCK_COLUMNS = 512
};

static inline uint64_t kiln_matmul_least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* What consecutive blocks of a launch compute together: a rectangle of tiles. They go down the columns of a larger
 * block, its columns from left to right, such blocks down d, and then on to the right. */
typedef struct kiln_matmul_rectangle {
    uint64_t row, col;   /* of its first tile */
    uint64_t rows, cols; /* in tiles */
} kiln_matmul_rectangle;

/* The rectangle that begins with a tile, of d's tile_rows x tile_cols, and has `most` tiles at most. */
static inline kiln_matmul_rectangle kiln_matmul_rectangle_of(uint64_t tile, uint64_t most, uint64_t tile_rows,
                                                             uint64_t tile_cols) {
    enum {
        TALL = KILN_MATMUL_BLOCK_ROWS / KILN_MATMUL_LAUNCHED,
        WIDE = KILN_MATMUL_BLOCK_COLUMNS / KILN_MATMUL_LAUNCHED
    };
    const uint64_t band = tile / (tile_rows * WIDE) * WIDE, width = kiln_matmul_least(tile_cols - band, WIDE);
    const uint64_t in_band = tile - band * tile_rows, top = in_band / (TALL * width) * TALL;
    const uint64_t height = kiln_matmul_least(tile_rows - top, TALL), in_block = in_band - top * width;
    kiln_matmul_rectangle r = {.row = in_block % height, .col = in_block / height, .rows = height, .cols = 1};
    if (r.row || most < height)
        r.rows = kiln_matmul_least(height - r.row, most);
    else
        r.cols = kiln_matmul_least(width - r.col, most / height);
    r.row += top;
    r.col += band;
    return r;
}

#endif
