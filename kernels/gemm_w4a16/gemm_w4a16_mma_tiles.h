/* gemm_w4a16 by mma.sync for sm_80 and later, f16 and bf16, and for sm_75, f16, of weights in the layout sm80_v1
 * (gemm_w4a16_layout.h), more than 16 rows of a: gemm_w4a16_mma_64 and _128, in the order of k of
 * gemm_w4a16_mma_rows.h.
 *
 * A block does a tile of 64 x 64 or 128 x 128 elements of d, each of its 8 warps 32 rows of a x 16 of weights or 64 x
 * 32. 64 elements of k are a stage, of which cp.async keeps three ahead of the one at work; sm_75, which has none,
 * loads one into registers meanwhile (copies.h). A row of a is 8 vectors of 16 bytes there, in odd rows with their
 * halves exchanged, so that no bank is met twice. Weights become numbers of 16 bits in registers, times the scale and
 * plus the zero with one rounding. */
#ifndef KILN_KERNELS_GEMM_W4A16_MMA_TILES_H
#define KILN_KERNELS_GEMM_W4A16_MMA_TILES_H

#include "kernels/common/copies.h"
#include "kernels/gemm_w4a16/gemm_w4a16_mma_rows.h"

enum : uint32_t {
#if __CUDA_ARCH__ >= 800
    STAGES = KILN_W4A16_STAGES,
#else
    STAGES = 2,
#endif
    ROW_VECTORS = KILN_W4A16_TILE_DEPTH / KILN_VECTOR, /* of a row of a in a stage */
    ROW_BYTES = ROW_VECTORS * KILN_VECTOR_BYTES,
    LOAD_ROWS = KILN_BLOCK / ROW_VECTORS, /* that a block copies at once */
    SLICE = 8                             /* rows of a warp's sums that leave at once */
};

/* Where a vector of a row of a is in a stage. */
KILN_INLINE uint32_t vector_at(uint32_t row, uint32_t vector) {
    return row * ROW_BYTES + (vector ^ row % 2 * 4) * KILN_VECTOR_BYTES;
}

/* The scales and zeros of a lane's rows of weights, each twice in a word, for both halves of a stage. */
template <uint32_t BLOCKS> struct stage_groups { uint32_t scales[2][2 * BLOCKS], zeros[2][2 * BLOCKS]; };

template <uint32_t TILES>
KILN_INLINE void load_groups(const kiln_gemm_w4a16_args &args, stage_groups<TILES> *to, const uint64_t *rows,
                             uint32_t k, uint32_t end) {
    KILN_UNROLL
    for (uint32_t half = 0; half < 2; half++) {
        const uint64_t group = (k + half * CHUNK >> args.group_log2) * (uint64_t)args.scale_group_step;
        KILN_UNROLL
        for (uint32_t i = 0; i < 2 * TILES; i++) {
            to->scales[half][i] = kiln_sm80_load_u16((const kiln_element *)args.scales + rows[i] + group, k < end);
            to->zeros[half][i] = 0;
            if (args.zeros)
                to->zeros[half][i] = kiln_sm80_load_u16((const kiln_element *)args.zeros + rows[i] + group, k < end);
        }
    }
}

/* Adds the products of a stage to a warp's sums: a is at its first row, weights at its first tile. */
template <uint32_t ROWS, uint32_t TILES>
KILN_INLINE void multiply_stage(const kiln_gemm_w4a16_args &args, float (*sums)[ROWS / 8][4], const char *a,
                                const char *weights, const stage_groups<TILES> &groups, uint32_t k) {
    const uint32_t lane = kiln_thread() % 32;
    kiln_vector codes[TILES], values[ROWS / 8];
    KILN_UNROLL
    for (uint32_t b = 0; b < TILES; b++)
        codes[b] = *(const kiln_vector *)(weights + b * KILN_W4A16_TILE_BYTES + lane * KILN_VECTOR_BYTES);
    KILN_UNROLL
    for (uint32_t c = 0; c < KILN_W4A16_TILE_DEPTH / CHUNK; c++) {
        KILN_UNROLL
        for (uint32_t j = 0; j < ROWS / 8; j++)
            values[j] = *(const kiln_vector *)(a + vector_at(8 * j + lane / 4, 4 * c + lane % 4));
        if (args.pre_scale) {
            const kiln_element *factors = (const kiln_element *)args.pre_scale + k + c * CHUNK;
            const kiln_vector by = kiln_vector_load(factors + lane % 4 * KILN_VECTOR);
            KILN_UNROLL
            for (uint32_t j = 0; j < ROWS / 8; j++)
                multiply_pairs(&values[j], by);
        }
        KILN_UNROLL
        for (uint32_t half = 0; half < 2; half++) {
            KILN_UNROLL
            for (uint32_t b = 0; b < TILES; b++) {
                uint32_t fragment[4];
                integers_of(fragment, codes[b].words[2 * c + half]);
                KILN_UNROLL
                for (uint32_t i = 0; i < 4; i++) {
                    const uint32_t row = 2 * b + i % 2;
                    fragment[i] =
                        fma_pair(fragment[i], groups.scales[c][row] * 0x10001u, groups.zeros[c][row] * 0x10001u);
                }
                KILN_UNROLL
                for (uint32_t j = 0; j < ROWS / 8; j++)
                    mma(sums[b][j], fragment, values[j].words + 2 * half);
            }
        }
    }
}

/* Writes a warp's sums to d, or to the partial sums where blocks share k: SLICE rows at a time, by its part of shared
 * memory, so that a row is written by neighbouring lanes. */
template <uint32_t ROWS, uint32_t WIDTH>
KILN_INLINE void write_sums(const kiln_gemm_w4a16_args &args, float *partials, const float (*sums)[ROWS / 8][4],
                            float *slice, uint64_t row, uint64_t col) {
    enum : uint32_t { PITCH = WIDTH + 4 }; /* no two elements that are written at once meet a bank */
    const uint32_t lane = kiln_thread() % 32;
    float *place = slice + lane % 4 * 2 * PITCH + lane / 4;
    KILN_LOOP
    for (uint32_t part = 0; part < ROWS / SLICE; part++, row += SLICE) {
        __syncwarp();
        KILN_UNROLL
        for (uint32_t j = 0; j < ROWS / SLICE; j++) { /* registers have no index */
            if (j != part) continue;
            KILN_UNROLL
            for (uint32_t i = 0; i < WIDTH / KILN_W4A16_TILE_ROWS * 4; i++)
                place[i % 2 * PITCH + i / 4 * KILN_W4A16_TILE_ROWS + i % 4 / 2 * 8] = sums[i / 4][j][i % 4];
        }
        __syncwarp();
        KILN_LOOP
        for (uint32_t i = lane; i < SLICE * WIDTH; i += 32) {
            const uint64_t d_row = row + i / WIDTH, d_col = col + i % WIDTH;
            if (d_row >= (uint64_t)args.m || d_col >= (uint64_t)args.n) continue;
            const float sum = slice[i / WIDTH * PITCH + i % WIDTH];
            if (args.partials)
                partials[d_row * (uint64_t)args.n + d_col] = sum;
            else
                finish_element(&args, sum, d_row, d_col);
        }
    }
}

/* A tile of SIDE rows of a x SIDE of weights; a warp does WARP_ROWS x WARP_COLS of it. */
template <uint32_t SIDE, uint32_t WARP_ROWS, uint32_t WARP_COLS>
KILN_INLINE void gemm_w4a16_mma(const kiln_gemm_w4a16_args &args) {
    enum : uint32_t {
        A_BYTES = SIDE * ROW_BYTES,
        STAGE_BYTES = A_BYTES + SIDE / KILN_W4A16_TILE_ROWS * KILN_W4A16_TILE_BYTES,
        TILES = WARP_COLS / KILN_W4A16_TILE_ROWS,
        ACROSS = SIDE / WARP_COLS
    };
    KILN_DYNAMIC_SHARED(kiln_vector, stages);
    const uint32_t block = (uint32_t)kiln_block(), tile_row = block % args.tile_rows, split = block / args.tile_rows;
    if (split >= args.splits) return; /* the whole block */
    const uint64_t first_row = (uint64_t)tile_row * SIDE, first_col = (uint64_t)kiln_tile() * SIDE;
    uint32_t begin = split * args.split, end = begin + args.split;
    if (end > (uint32_t)args.k) end = (uint32_t)args.k;
    const uint32_t lane = kiln_thread() % 32, warp = kiln_thread() / 32;
    const uint32_t warp_row = warp / ACROSS * WARP_ROWS, warp_col = warp % ACROSS * WARP_COLS;

    /* What this thread copies: a vector of every LOAD_ROWS-th row of a, and one of a tile of weights. */
    const uint32_t row = kiln_thread() / ROW_VECTORS, vector = kiln_thread() % ROW_VECTORS;
    const kiln_element *a =
        (const kiln_element *)args.a + (first_row + row) * (uint64_t)args.a_stride + vector * KILN_VECTOR;
    const uint64_t tile = first_col / KILN_W4A16_TILE_ROWS + warp;
    const bool shares = warp < SIDE / KILN_W4A16_TILE_ROWS, present = tile < (uint64_t)args.n / KILN_W4A16_TILE_ROWS;
    const uint8_t *weights =
        args.weights + tile * ((uint64_t)args.k / KILN_W4A16_TILE_DEPTH * KILN_W4A16_TILE_BYTES) + lane * 16;
    uint64_t scales[2 * TILES]; /* of this lane's rows */
    KILN_UNROLL
    for (uint32_t i = 0; i < 2 * TILES; i++) {
        const uint64_t col = first_col + warp_col + i / 2 * KILN_W4A16_TILE_ROWS + i % 2 * 8 + lane / 4;
        scales[i] = (col < (uint64_t)args.n ? col : (uint64_t)args.n - 1) * (uint64_t)args.scale_row_step;
    }

    const uint32_t shared = kiln_sm80_shared(stages);
    uint32_t next = begin, fill = 0, use = 0;
    copies<SIDE / LOAD_ROWS> a_copies;
    copies<1> weight_copy;
    auto copy_stage = [&]() {
        KILN_UNROLL
        for (uint32_t i = 0; i < SIDE / LOAD_ROWS; i++) {
            const uint32_t to = shared + fill + vector_at(row + i * LOAD_ROWS, vector);
            const bool there = next < end && first_row + row + i * LOAD_ROWS < (uint64_t)args.m;
            const kiln_element *from = a + i * LOAD_ROWS * (uint64_t)args.a_stride + next;
            a_copies.start(i, to, there ? from : (const kiln_element *)args.a, there ? 16 : 0);
        }
        if (shares) {
            const bool there = next < end && present;
            const uint8_t *from = weights + next / KILN_W4A16_TILE_DEPTH * (uint64_t)KILN_W4A16_TILE_BYTES;
            weight_copy.start(0, shared + fill + A_BYTES + kiln_thread() * 16, there ? from : args.weights,
                              there ? 16 : 0);
        }
        copies_commit();
        next += KILN_W4A16_TILE_DEPTH;
        fill = fill + STAGE_BYTES == STAGES * STAGE_BYTES ? 0 : fill + STAGE_BYTES;
    };
    auto land_stage = [&]() {
        a_copies.land();
        if (shares) weight_copy.land();
    };
    stage_groups<TILES> groups, coming;
    load_groups(args, &coming, scales, begin, end);
    KILN_LOOP
    for (uint32_t i = 1; i < STAGES; i++) {
        copy_stage();
        land_stage();
    }
    float sums[TILES][WARP_ROWS / 8][4] = {};
    KILN_LOOP
    for (; begin < end; begin += KILN_W4A16_TILE_DEPTH) {
        groups = coming;
        load_groups(args, &coming, scales, begin + KILN_W4A16_TILE_DEPTH, end);
        copies_wait<STAGES - 2>();
        kiln_barrier();
        copy_stage();
        const char *stage = (const char *)stages + use;
        multiply_stage<WARP_ROWS, TILES>(args, sums, stage + warp_row * ROW_BYTES,
                                         stage + A_BYTES + warp_col / KILN_W4A16_TILE_ROWS * KILN_W4A16_TILE_BYTES,
                                         groups, begin);
        land_stage();
        use = use + STAGE_BYTES == STAGES * STAGE_BYTES ? 0 : use + STAGE_BYTES;
    }
    copies_wait<0>();
    kiln_barrier();

    float *partials = args.partials + (uint64_t)split * (uint64_t)args.m * (uint64_t)args.n;
    float *slice = (float *)stages + warp * SLICE * (WARP_COLS + 4);
    write_sums<WARP_ROWS, WARP_COLS>(args, partials, sums, slice, first_row + warp_row, first_col + warp_col);
}

KILN_ENTRY(gemm_w4a16_mma_64, kiln_gemm_w4a16_args) {
    gemm_w4a16_mma<64, 32, 16>(args);
}

KILN_ENTRY(gemm_w4a16_mma_128, kiln_gemm_w4a16_args) {
    gemm_w4a16_mma<128, 64, 32>(args);
}

#endif
