/* gemm_f32 by f32 multiply-adds for sm_80 and later: gemm_ffma, where the rows of a and b are 16-byte aligned.
 *
 * A block of 128 threads does a tile of 128 x 128 elements of d, each of its 4 warps 64 x 64 of them and each thread
 * 16 x 8, as squares of 4 x 4 that are 16 rows and 32 columns apart. 16 elements of each row of a and b are a stage, of
 * which shared memory has two; while one is at work, the next is on its way to registers, a's vectors during its first
 * half and b's during the second. There a step of k is a row of
 * 128 elements, whose columns are swizzled by which vector of the 64 bytes k came from, as in gemm_tiles (gemm_gpu.c),
 * so that neither writing nor reading meets a bank twice. A thread reads 6 vectors of 16 bytes for 128 multiply-adds,
 * one step ahead. A multiprocessor has two such blocks.
 *
 * Floor: 2 m n k operations. Measured on an H100 (1980 MHz, driver 580.159.04, 2026-11-26; CUDA graphs), with cuBLAS
 * in the same process: 46.4 TFLOP/s at 4096 cubed, 0.91 of cuBLAS's, and 44.7 at 2048, 0.89. With 8 x 8 elements by
 * each of 256 threads it was 37.4 (0.73) and 36.3: assemblers put the vectors of a step right before its multiply-adds
 * there, not one step ahead, whatever the source's order, and a vector for 16 multiply-adds is too many. What was
 * slower as a prototype: that with a loop over pairs of steps, 31.8; a's and b's vectors on their way at once, 45.2;
 * columns outside and rows inside, 44.9; multiply-adds not back and forth, 45.5; ptxas 12.0 instead of 12.8, 44.8. On
 * an H200, with 8 x 8: two blocks of 256 threads, 41.2; 8 elements of k in a stage, 41.2; rows in shared memory as they
 * come, by cp.async, 37.0. */
#ifndef KILN_KERNELS_GEMM_FFMA_H
#define KILN_KERNELS_GEMM_FFMA_H

#include "kernels/gemm/gemm_portable.h"

enum : uint32_t {
    FFMA_TILE = 128,
    FFMA_DEPTH = 16, /* of a stage */
    FFMA_THREADS = 128,
    FFMA_HIGH = 16, /* a thread does FFMA_HIGH x FFMA_WIDE elements, as squares of SIDE x SIDE */
    FFMA_WIDE = 8,
    FFMA_LANES_DOWN = 4, /* a warp has so many threads above each other, and the others beside them */
    FFMA_LANES_ACROSS = KILN_SUBGROUP / FFMA_LANES_DOWN,
    FFMA_DOWN = FFMA_LANES_DOWN * SIDE, /* between a thread's squares */
    FFMA_ACROSS = FFMA_LANES_ACROSS * SIDE,
    FFMA_WARP = 64,                                   /* rows and columns of a warp */
    FFMA_ROUNDS = FFMA_TILE * VECTORS / FFMA_THREADS, /* vectors of a factor that a thread copies */
    FFMA_ROWS = FFMA_THREADS / VECTORS,               /* that a block copies at once */
    FFMA_RASTER = 8                                   /* rows of tiles that neighbouring blocks go over together */
};
static_assert(FFMA_HIGH / SIDE * FFMA_DOWN == FFMA_WARP && FFMA_WIDE / SIDE * FFMA_ACROSS == FFMA_WARP, "of a warp");

/* A stage's share of a factor. */
typedef float ffma_stage[FFMA_DEPTH][FFMA_TILE];

/* Where a thread's vectors of the stage after the next are, and those of the next stage. */
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

/* Reads the vectors of a factor's stage, the thread's of which are at k: one branch for all of them. */
KILN_INLINE void ffma_fetch(ffma_copy *copy, uint32_t k, uint32_t end, bool whole) {
    KILN_UNROLL
    for (uint32_t i = 0; i < FFMA_ROUNDS && whole; i++)
        copy->vectors[i] = kiln_vector_load(copy->rows[i]);
    KILN_UNROLL
    for (uint32_t i = 0; i < FFMA_ROUNDS && !whole; i++)
        copy->vectors[i] = fetch(copy->rows[i] - k, k, end, true);
    KILN_UNROLL
    for (uint32_t i = 0; i < FFMA_ROUNDS; i++)
        copy->rows[i] += FFMA_DEPTH;
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

/* A thread's COUNT elements of a step of k: those of its rows, or of its columns, whose squares are APART. */
template <uint32_t COUNT, uint32_t APART>
KILN_INLINE void ffma_take(float *values, const ffma_stage *stage, uint32_t k, uint32_t first) {
    KILN_UNROLL
    for (uint32_t i = 0; i < COUNT / SIDE; i++)
        *(quad *)&values[i * SIDE] = *(const quad *)&(*stage)[k][(first + i * APART) ^ k / KILN_VECTOR * SWIZZLE];
}

/* Adds the products of half of a stage, from step `first` of k on; those of the first step have been taken. */
KILN_INLINE void ffma_multiply(const ffma_stage *a, const ffma_stage *b, uint32_t row, uint32_t col,
                               float (*left)[FFMA_HIGH], float (*right)[FFMA_WIDE], uint32_t first,
                               float (*sums)[FFMA_WIDE]) {
    KILN_UNROLL
    for (uint32_t k = first; k < first + FFMA_DEPTH / 2; k++) {
        if (k + 1 < FFMA_DEPTH) {
            ffma_take<FFMA_HIGH, FFMA_DOWN>(left[(k + 1) % 2], a, k + 1, row);
            ffma_take<FFMA_WIDE, FFMA_ACROSS>(right[(k + 1) % 2], b, k + 1, col);
        }
        KILN_UNROLL
        for (uint32_t r = 0; r < FFMA_HIGH; r++) {
            KILN_UNROLL
            for (uint32_t i = 0; i < FFMA_WIDE; i++) {
                const uint32_t c = r % 2 ? FFMA_WIDE - 1 - i : i;
                sums[r][c] = KILN_FMA(left[k % 2][r], right[k % 2][c], sums[r][c]);
            }
        }
    }
}

/* Writes a warp's sums to d, or to the partial sums where blocks share k, by its slice of shared memory: those of one
 * row of each thread at a time, each row by neighbouring threads. */
KILN_INLINE void ffma_write(const kiln_gemm_args *args, const float (*sums)[FFMA_WIDE], float *slice, uint32_t split,
                            uint32_t batch, uint32_t first_row, uint32_t first_col) {
    const uint32_t lane = kiln_thread() % KILN_SUBGROUP;
    quad *place = (quad *)(slice + lane / FFMA_LANES_ACROSS * FFMA_WARP) + lane % FFMA_LANES_ACROSS;
    float *partials = args->partials;
    partials += ((uint64_t)split * args->batch + batch) * (uint64_t)args->m * (uint64_t)args->n;
    KILN_LOOP
    for (uint32_t part = 0; part < FFMA_HIGH; part++) {
        __syncwarp();
        KILN_UNROLL
        for (uint32_t r = 0; r < FFMA_HIGH; r++) { /* registers have no index */
            if (r != part) continue;
            KILN_UNROLL
            for (uint32_t i = 0; i < FFMA_WIDE / SIDE; i++) {
                const float *four = sums[r] + i * SIDE;
                place[i * FFMA_LANES_ACROSS] = {{four[0], four[1], four[2], four[3]}};
            }
        }
        __syncwarp();
        KILN_LOOP
        for (uint32_t i = lane; i < FFMA_LANES_DOWN * FFMA_WARP; i += KILN_SUBGROUP) {
            uint32_t d_row = first_row + i / FFMA_WARP * SIDE + part / SIDE * FFMA_DOWN + part % SIDE;
            uint32_t d_col = first_col + i % FFMA_WARP;
            if (d_row >= (uint32_t)args->m || d_col >= (uint32_t)args->n) continue;
            if (args->splits > 1)
                partials[d_row * (uint64_t)args->n + d_col] = slice[i];
            else
                finish_element(args, slice[i], batch, d_row, d_col);
        }
    }
}

/* Two blocks of a multiprocessor, so that one multiplies while the other one waits for its stage. */
#pragma push_macro("KILN_ENTRY_HEAD")
#undef KILN_ENTRY_HEAD
#define KILN_ENTRY_HEAD extern "C" __global__ __launch_bounds__(FFMA_THREADS, 2) void

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
    uint32_t first_row = (band + place % height) * FFMA_TILE, first_col = place / height * FFMA_TILE;
    uint32_t begin = split * args.split, end = begin + args.split;
    if (end > (uint32_t)args.k) end = (uint32_t)args.k;

    uint32_t k = begin + kiln_thread() % VECTORS * KILN_VECTOR, warp = kiln_thread() / 32, lane = kiln_thread() % 32;
    ffma_copy a = ffma_copy_of(args.a, batch * args.a_batch_stride + k, args.a_stride, first_row, (uint64_t)args.m);
    ffma_copy b = ffma_copy_of(args.b, batch * args.b_batch_stride + k, args.b_stride, first_col, (uint64_t)args.n);
    uint32_t warp_row = warp / 2 * FFMA_WARP, warp_col = warp % 2 * FFMA_WARP;
    uint32_t row = warp_row + lane / FFMA_LANES_ACROSS * SIDE, col = warp_col + lane % FFMA_LANES_ACROSS * SIDE;
    float sums[FFMA_HIGH][FFMA_WIDE] = {};

    ffma_fetch(&a, k, end, begin + FFMA_DEPTH <= end);
    ffma_fetch(&b, k, end, begin + FFMA_DEPTH <= end);
    ffma_put(&a, &a_stages[0]);
    ffma_put(&b, &b_stages[0]);
    kiln_barrier();
    KILN_LOOP
    for (; begin < end; begin += FFMA_DEPTH, use ^= 1) {
        bool whole = begin + 2 * FFMA_DEPTH <= end; /* the next stage */
        k += FFMA_DEPTH;
        alignas(16) float left[2][FFMA_HIGH], right[2][FFMA_WIDE]; /* of a step of k and the next */
        ffma_take<FFMA_HIGH, FFMA_DOWN>(left[0], &a_stages[use], 0, row);
        ffma_take<FFMA_WIDE, FFMA_ACROSS>(right[0], &b_stages[use], 0, col);
        ffma_fetch(&a, k, end, whole);
        ffma_multiply(&a_stages[use], &b_stages[use], row, col, left, right, 0, sums);
        ffma_put(&a, &a_stages[use ^ 1]);
        ffma_fetch(&b, k, end, whole);
        ffma_multiply(&a_stages[use], &b_stages[use], row, col, left, right, FFMA_DEPTH / 2, sums);
        ffma_put(&b, &b_stages[use ^ 1]);
        kiln_barrier();
    }
    ffma_write(&args, sums, (float *)ffma_shared + warp * FFMA_LANES_DOWN * FFMA_WARP, split, batch,
               first_row + warp_row, first_col + warp_col);
}
#pragma pop_macro("KILN_ENTRY_HEAD")

#endif
