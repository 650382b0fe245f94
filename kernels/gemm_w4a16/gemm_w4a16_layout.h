/* The layout sm80_v1 of weights of 4 bits, for mma.sync m16n8k16 with weights as its first factor.
 *
 * [n / 16][k / 64] tiles of 512 bytes: 32 lanes of 16 bytes, four words, a word for each product of a tile. The lane's
 * word 2 c + h has, of the rows r = lane / 4 and r + 8 of the tile, four neighbours from k = 32 c + 8 (lane % 4) + 4 h
 * on. Half a byte is q + 8; from the lowest on: row r at k, row r + 8 at k, row r at k + 2, row r + 8 at k + 2; then
 * the same at k + 1 and k + 3. So a shift by 4 i leaves pair i of the fragment in the low halves of the word's halves.
 */
#ifndef KILN_KERNELS_GEMM_W4A16_LAYOUT_H
#define KILN_KERNELS_GEMM_W4A16_LAYOUT_H

enum {
    KILN_W4A16_TILE_ROWS = 16,  /* of weights */
    KILN_W4A16_TILE_DEPTH = 64, /* of k */
    KILN_W4A16_TILE_BYTES = KILN_W4A16_TILE_ROWS * KILN_W4A16_TILE_DEPTH / 2,
    KILN_W4A16_STAGES = 4, /* of k in shared memory: gemm_w4a16_mma_64 and _128 */
    KILN_W4A16_PANEL_GROUPS = 128,
    KILN_W4A16_PANEL_BYTES = 17408, /* of scales and zeros there: gemm_w4a16_mma_rows_8 and _16 */
    KILN_W4A16_NORM_DEPTH = 16384,  /* the longest rows that are normalised as they are multiplied */
    /* gemm_w4a16_mma_shared_8 and _16: rows of a in shared memory have PADDING bytes between them and are copied SLAB
     * elements of each at a time, at most STEPS steps of them to a block, which has up to WARPS warps. Before them are
     * HEAD bytes, and sums of the other block. */
    KILN_W4A16_SHARED_STEP = 128,
    KILN_W4A16_SHARED_SLAB = 512,
    KILN_W4A16_SHARED_PADDING = 64,
    KILN_W4A16_SHARED_STEPS = 64,
    KILN_W4A16_SHARED_WARPS = 14,
    KILN_W4A16_SHARED_HEAD = 5200
};

#endif
