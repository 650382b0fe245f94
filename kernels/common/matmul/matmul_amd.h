/* What products by the matrix units of AMD chips share. A block does a tile of d, and each of its waves a part of it by
 * products of SIDE x SIDE, from stages of both factors in LDS. A row of a stage is 64 bytes and 16 more, whereby
 * neither writes nor reads meet a bank twice. Blocks go over d in bands of 8 rows of tiles, so that what they read
 * stays in L2; where a chip is of several dies, to which it deals blocks in turn, each has tiles that are neighbours. A
 * lane's sums leave by LDS that is its own, for registers have no index, a product's at a time, of which each element
 * is of a row that neighbouring lanes write.
 *
 * `unit` is a chip's matrix unit, of matmul_mfma.h, matmul_gfx11.h, matmul_gfx12.h or w8a8_amd_units.h:
 *   WAVE, SIDE            lanes of a wave; rows and columns of a product
 *   DIES                  of the chip
 *   fragment              a lane's part of SIDE rows and 32 bytes of each; load(row, lane) reads it, from their first
 *                         vector of the first row on, with ROW_PITCH vectors from row to row
 *   PRODUCTS              that a fragment takes
 *   sums                  a lane's elements of a product, ELEMENTS of them
 *   multiply(a, b, product, sums), row_of(lane, element): its row of the product; its column is lane % SIDE */
#ifndef KILN_KERNELS_COMMON_MATMUL_MATMUL_AMD_H
#define KILN_KERNELS_COMMON_MATMUL_MATMUL_AMD_H

#include "kernels/common/device.h"

enum : uint32_t {
    ROW_VECTORS = 4,             /* of a row of a stage */
    ROW_PITCH = ROW_VECTORS + 1, /* vectors from row to row in LDS */
    STEP_VECTORS = 2,            /* of a row in a fragment */
    RASTER = 8                   /* rows of tiles that neighbouring blocks go over together */
};

#ifdef KILN_PART_bf16
enum : bool { ELEMENTS_ARE_BF16 = true };
#else
enum : bool { ELEMENTS_ARE_BF16 = false };
#endif

/* The row and the vector of VECTORS that a thread loads first. Eight neighbouring threads have the same vector of 8
 * rows: their writes meet no bank twice. */
template <uint32_t VECTORS> KILN_INLINE uint32_t stage_row(void) {
    return kiln_thread() % 8 + kiln_thread() / (8 * VECTORS) * 8;
}
template <uint32_t VECTORS> KILN_INLINE uint32_t stage_vector(void) {
    return kiln_thread() / 8 % VECTORS;
}

/* What a block does: a tile, and one of the shares that each tile is done in. */
struct block_work {
    uint32_t tile_row, tile_col, share;
};

/* A share from `shares` on: there is nothing to do for the block. Of blocks there are fewer than 2^32: a d of so many
 * tiles has 32 TB. */
template <uint32_t DIES> KILN_INLINE block_work block_work_of(uint32_t tile_rows, uint32_t tile_cols, uint32_t shares) {
    const uint32_t count = tile_cols * tile_rows * shares;
    uint32_t number = (uint32_t)kiln_block() * tile_cols + kiln_tile();
    if (DIES > 1 && number < count) { /* a die's blocks are those whose numbers are the same modulo DIES */
        const uint32_t die = number % DIES, each = count / DIES, more = count % DIES;
        number = die * each + (die < more ? die : more) + number / DIES;
    }
    const uint32_t block = number / tile_cols, col = number % tile_cols, row = block % tile_rows;
    /* Down RASTER rows of tiles before the next column. */
    const uint32_t band = row / RASTER, place = row % RASTER * tile_cols + col;
    const uint32_t height = tile_rows - band * RASTER < RASTER ? tile_rows - band * RASTER : RASTER;
    return {band * RASTER + place % height, place / height, block / tile_rows};
}

/* Adds the products of a stage to a wave's sums: a and b are at its first rows. */
template <class unit, uint32_t DOWN, uint32_t ACROSS>
KILN_INLINE void multiply_stage(typename unit::sums (*sums)[ACROSS], const kiln_vector *a, const kiln_vector *b) {
    const uint32_t lane = kiln_thread() % unit::WAVE;
    KILN_UNROLL
    for (uint32_t step = 0; step < ROW_VECTORS; step += STEP_VECTORS) {
        typename unit::fragment left[DOWN], right[ACROSS];
        KILN_UNROLL
        for (uint32_t i = 0; i < DOWN; i++)
            left[i] = unit::load(a + i * unit::SIDE * ROW_PITCH + step, lane);
        KILN_UNROLL
        for (uint32_t j = 0; j < ACROSS; j++)
            right[j] = unit::load(b + j * unit::SIDE * ROW_PITCH + step, lane);
        KILN_UNROLL
        for (uint32_t product = 0; product < unit::PRODUCTS; product++) {
            KILN_UNROLL
            for (uint32_t i = 0; i < DOWN; i++) {
                KILN_UNROLL
                for (uint32_t j = 0; j < ACROSS; j++)
                    sums[i][j] = unit::multiply(left[i], right[j], product, sums[i][j]);
            }
        }
    }
}

/* Of a function that is given to finish_products: else what it reads is read before the loops, for which there are not
 * registers enough. */
#define KILN_INLINE_LAMBDA __attribute__((always_inline))

/* Calls finish(args, sum, row, col) for a wave's elements of d, of args->m x args->n. Its products begin at row and
 * col; sum_of(i, j, r) is the lane's element r of product i, j. The wave has part number `wave` of `stages`, which no
 * other reads any more. finish does not capture the arguments: AMD's compiler would not see what memory they point to.
 */
template <class unit, uint32_t DOWN, uint32_t ACROSS, class args_type, class sum_type, class finish_type>
KILN_INLINE void finish_products(const args_type *args, kiln_vector *stages, uint32_t wave, uint64_t row, uint64_t col,
                                 const sum_type &sum_of, const finish_type &finish) {
    const uint32_t lane = kiln_thread() % unit::WAVE;
    float *slice = (float *)stages + wave * (uint32_t)(unit::ELEMENTS * unit::WAVE) + lane;
    KILN_LOOP
    for (uint32_t part = 0; part < DOWN * ACROSS; part++) {
        KILN_UNROLL
        for (uint32_t i = 0; i < DOWN * ACROSS; i++) {
            if (i != part) continue;
            KILN_UNROLL
            for (uint32_t r = 0; r < unit::ELEMENTS; r++)
                slice[r * unit::WAVE] = sum_of(i / ACROSS, i % ACROSS, r);
        }
        const uint64_t first_row = row + part / ACROSS * unit::SIDE;
        const uint64_t d_col = col + part % ACROSS * unit::SIDE + lane % unit::SIDE;
        KILN_LOOP
        for (uint32_t r = 0; r < unit::ELEMENTS; r++) {
            const uint64_t d_row = first_row + unit::row_of(lane, r);
            if (d_row < (uint64_t)args->m && d_col < (uint64_t)args->n)
                finish(args, slice[r * unit::WAVE], d_row, d_col);
        }
    }
}

#endif
