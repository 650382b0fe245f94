/* gemm_f32 by f32 multiply-adds for sm_80 and later: gemm_ffma, where the rows of a and b are 16-byte aligned.
 *
 * A block does a tile of 128 x 128 elements of d, each of its 8 warps 64 x 32 of them and each thread 8 x 8, as four
 * squares of 4 x 4 that are 32 rows and 16 columns apart. 16 elements of each row of a and b are a stage, of which
 * shared memory has two; while one is at work, the next is on its way to registers. There a step of k is a row of 128
 * elements, whose columns are swizzled by which vector of the 64 bytes k came from, as in gemm_tiles (gemm_gpu.c), so
 * that neither writing nor reading meets a bank twice. A thread reads 4 vectors of 16 bytes for 64 multiply-adds, one
 * step ahead.
 *
 * Floor: 2 m n k operations. Measured on an H200 (1980 MHz, driver 580.159.04, 2026-11-26) at 4096 cubed: 44.8 TFLOP/s
 * as nvcc 13 compiles it, 0.90 of cuBLAS's, and 36.7 as assembled by ptxas 12.0, for which 12.8 stands now (not
 * measured). At 2048 43.2 with nvcc 13. gemm_tiles did 30.1 and 29.2. What was slower there: two blocks a
 * multiprocessor with 128 registers a thread, 41.2; 8 elements of k in a stage, 41.2; 128 x 256 by a block, 44.4; rows
 * in shared memory as they come, by cp.async, 37.0. */
#ifndef KILN_KERNELS_GEMM_FFMA_H
#define KILN_KERNELS_GEMM_FFMA_H

#include "kernels/gemm/gemm_portable.h"

enum : uint32_t {
    FFMA_TILE = 128,
    FFMA_DEPTH = 16,                                /* of a stage */
    FFMA_SIDE = 8,                                  /* a thread does FFMA_SIDE x FFMA_SIDE elements */
    FFMA_ROUNDS = FFMA_TILE * VECTORS / KILN_BLOCK, /* vectors of a factor that a thread copies */
    FFMA_ROWS = KILN_BLOCK / VECTORS,               /* that a block copies at once */
    FFMA_RASTER = 8,                                /* rows of tiles that neighbouring blocks go over together */
    FFMA_PITCH = 48 /* of a row of a warp's sums in shared memory: neither writing nor reading meets a bank twice */
};

/* A stage's share of a factor. */
typedef float ffma_stage[FFMA_DEPTH][FFMA_TILE];

/* A thread's rows of a factor, and its vectors of the next stage. */
struct ffma_copy {
    const kiln_element *rows[FFMA_ROUNDS];
    kiln_vector vectors[FFMA_ROUNDS];
};

/* Rows beyond the last are that once more, for nothing. */
KILN_INLINE ffma_copy ffma_copy_of(const void *data, uint64_t offset, uint64_t stride, uint64_t first, uint64_t count) {
    ffma_copy copy;
    KILN_UNROLL
    for (uint32_t i = 0; i < FFMA_ROUNDS; i++) {
        uint64_t row = first + i * FFMA_ROWS + kiln_thread() / VECTORS;
        copy.rows[i] = (const kiln_element *)data + offset + (row < count ? row : count - 1) * stride;
    }
    return copy;
}

KILN_INLINE void ffma_fetch(ffma_copy *copy, uint32_t k, uint32_t end, bool whole) {
    KILN_UNROLL
    for (uint32_t i = 0; i < FFMA_ROUNDS; i++)
        copy->vectors[i] = whole ? kiln_vector_load(copy->rows[i] + k) : fetch(copy->rows[i], k, end, true);
}

KILN_INLINE void ffma_put(const ffma_copy *copy, ffma_stage *stage) {
    uint32_t part = kiln_thread() % VECTORS, row = kiln_thread() / VECTORS;
    KILN_UNROLL
    for (uint32_t i = 0; i < FFMA_ROUNDS; i++) {
        KILN_UNROLL
        for (uint32_t k = 0; k < KILN_VECTOR; k++)
            (*stage)[part * KILN_VECTOR + k][(row + i * FFMA_ROWS) ^ part * SWIZZLE] =
                kiln_float(copy->vectors[i].words[k]);
    }
}

/* A thread's elements of a step of k: those of its rows, or of its columns, which are `apart`. */
KILN_INLINE void ffma_take(float *values, const ffma_stage *stage, uint32_t k, uint32_t first, uint32_t apart) {
    KILN_UNROLL
    for (uint32_t half = 0; half < FFMA_SIDE / SIDE; half++)
        *(quad *)&values[half * SIDE] = *(const quad *)&(*stage)[k][(first + half * apart) ^ k / KILN_VECTOR * SWIZZLE];
}

/* Adds the products of a stage. */
KILN_INLINE void ffma_multiply(const ffma_stage *a, const ffma_stage *b, uint32_t row, uint32_t col,
                               float (*sums)[FFMA_SIDE]) {
    alignas(16) float left[2][FFMA_SIDE], right[2][FFMA_SIDE]; /* of this step and the next */
    ffma_take(left[0], a, 0, row, 32);
    ffma_take(right[0], b, 0, col, 16);
    KILN_UNROLL
    for (uint32_t k = 0; k < FFMA_DEPTH; k++) {
        if (k + 1 < FFMA_DEPTH) {
            ffma_take(left[(k + 1) % 2], a, k + 1, row, 32);
            ffma_take(right[(k + 1) % 2], b, k + 1, col, 16);
        }
        KILN_UNROLL
        for (uint32_t r = 0; r < FFMA_SIDE; r++) {
            KILN_UNROLL
            for (uint32_t c = 0; c < FFMA_SIDE; c++)
                sums[r][c] = KILN_FMA(left[k % 2][r], right[k % 2][c], sums[r][c]);
        }
    }
}

/* Writes a warp's sums to d, or to the partial sums where blocks share k, by its slice of shared memory: SIDE rows at a
 * time, each by 32 neighbouring threads. */
KILN_INLINE void ffma_write(const kiln_gemm_args *args, const float (*sums)[FFMA_SIDE], float *slice, uint32_t split,
                            uint32_t batch, uint64_t first_row, uint64_t first_col) {
    uint32_t lane = kiln_thread() % 32, row = lane / 4, col = lane % 4 * SIDE;
    uint64_t d_col = first_col + lane;
    quad *place = (quad *)slice + (row * FFMA_PITCH + col) / SIDE;
    float *partials = args->partials;
    partials += ((uint64_t)split * args->batch + batch) * (uint64_t)args->m * (uint64_t)args->n;
    KILN_LOOP
    for (uint32_t part = 0; part < FFMA_SIDE; part++) {
        __syncwarp();
        KILN_UNROLL
        for (uint32_t r = 0; r < FFMA_SIDE; r++) { /* registers have no index */
            if (r != part) continue;
            KILN_UNROLL
            for (uint32_t half = 0; half < FFMA_SIDE / SIDE; half++) {
                const float *four = sums[r] + half * SIDE;
                place[4 * half] = {{four[0], four[1], four[2], four[3]}};
            }
        }
        __syncwarp();
        KILN_LOOP
        for (uint32_t i = 0; i < 8; i++) { /* the rows that the warp's threads have of this part */
            uint64_t d_row = first_row + i * SIDE + part % SIDE + part / SIDE * 32;
            if (d_row >= (uint64_t)args->m || d_col >= (uint64_t)args->n) continue;
            float sum = slice[i * FFMA_PITCH + lane];
            if (args->splits > 1)
                partials[d_row * (uint64_t)args->n + d_col] = sum;
            else
                finish_element(args, sum, batch, d_row, d_col);
        }
    }
}

KILN_ENTRY(gemm_ffma, kiln_gemm_args) {
    KILN_DYNAMIC_SHARED(kiln_vector, ffma_shared);
    ffma_stage *a_stages = (ffma_stage *)ffma_shared, *b_stages = a_stages + 2;
    uint32_t block = (uint32_t)kiln_block(), tile_row = block % args.tile_rows, rest = block / args.tile_rows;
    uint32_t split = rest % args.splits, batch = rest / args.splits, tile_col = kiln_tile(), use = 0;
    if (batch >= args.batch) return;
    /* Tiles go down FFMA_RASTER rows of them before they go on to the next column. */
    uint32_t band = tile_row / FFMA_RASTER * FFMA_RASTER, across = ((uint32_t)args.n + FFMA_TILE - 1) / FFMA_TILE;
    uint32_t height = args.tile_rows - band < FFMA_RASTER ? args.tile_rows - band : FFMA_RASTER;
    uint32_t place = (tile_row - band) * across + tile_col;
    uint64_t first_row = (uint64_t)(band + place % height) * FFMA_TILE;
    uint64_t first_col = (uint64_t)(place / height) * FFMA_TILE;
    uint32_t begin = split * args.split, end = begin + args.split;
    if (end > (uint32_t)args.k) end = (uint32_t)args.k;

    ffma_copy a = ffma_copy_of(args.a, batch * args.a_batch_stride, args.a_stride, first_row, (uint64_t)args.m);
    ffma_copy b = ffma_copy_of(args.b, batch * args.b_batch_stride, args.b_stride, first_col, (uint64_t)args.n);
    uint32_t k = begin + kiln_thread() % VECTORS * KILN_VECTOR, warp = kiln_thread() / 32, lane = kiln_thread() % 32;
    uint32_t warp_row = warp / 4 * 64, warp_col = warp % 4 * 32;
    uint32_t row = warp_row + lane / 4 * SIDE, col = warp_col + lane % 4 * SIDE;
    float sums[FFMA_SIDE][FFMA_SIDE] = {};

    ffma_fetch(&a, k, end, begin + FFMA_DEPTH <= end);
    ffma_fetch(&b, k, end, begin + FFMA_DEPTH <= end);
    ffma_put(&a, &a_stages[0]);
    ffma_put(&b, &b_stages[0]);
    kiln_barrier();
    KILN_LOOP
    for (; begin < end; begin += FFMA_DEPTH, use ^= 1) {
        bool whole = begin + 2 * FFMA_DEPTH <= end; /* the next stage */
        k += FFMA_DEPTH;
        ffma_fetch(&a, k, end, whole);
        ffma_fetch(&b, k, end, whole);
        ffma_multiply(&a_stages[use], &b_stages[use], row, col, sums);
        ffma_put(&a, &a_stages[use ^ 1]);
        ffma_put(&b, &b_stages[use ^ 1]);
        kiln_barrier();
    }
    ffma_write(&args, sums, (float *)ffma_shared + warp * 8 * FFMA_PITCH, split, batch, first_row + warp_row,
               first_col + warp_col);
}

#endif
