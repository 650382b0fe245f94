/* gemm_w4a16 of few rows by mma.sync, for sm_80 and later, f16 and bf16, and for sm_75, f16, of weights in the layout
 * sm80_v1 (gemm_w4a16_layout.h): gemm_w4a16_mma_rows_8 and _16, up to 8 and to 16 rows of a, as when tokens are
 * generated.
 *
 * Weights are the first factor of mma.sync m16n8k16 and a is the second: what a product makes is a part of d,
 * transposed. A lane's 16 bytes of a tile of 16 rows x 64 of k are its fragments of four products. The order of k
 * within 32 is that in which a lane's 16 bytes of a row of a, eight neighbours, are its fragments of two products:
 * neither factor needs ldmatrix.
 *
 * A block does 32 rows of weights, read once, straight into registers; its 4 or 8 warps share k, 128 elements at a
 * time, and add up their sums in shared memory. The next 128 elements of both factors, with their scales, are on their
 * way while these are multiplied; with groups of 32 or 64 the scales are not, and registers are refilled as soon as
 * they are free. Integers are multiplied as they are: a group's sum is multiplied with its scale in f32, and what a
 * zero adds is the sum of a over the group, which products with ones make.
 *
 * Floor: one read of the weights. Prototypes in bf16 on an H200 (driver 580.159.04, 2026-11-26; CUDA graphs, weights
 * not in L2, groups of 128), in us, with a kernel that only reads as many bytes; in brackets what they took before
 * scales were asked for ahead and rows that a does not have were left alone:
 *
 *   n x k           reading   1 row         16 rows
 *   8192 x 8192       9.6     13.7 (15.4)   17.7 (22.9)
 *   28672 x 8192     29.7     41.7 (48.2)   52.4 (75.7)
 *   8192 x 28672     29.7     41.0 (47.3)   54.4 (68.2)
 *   28672 x 4096     15.3     23.0 (26.4)   28.5 (44.3)
 *   4096 x 4096       3.6      5.6 (6.2)     7.2 (7.8)
 *
 * On an H100 (the same driver and day), with what is asked for of zeros and pre_scale in the loop, which that kernel
 * did not have, 1 and 16 rows: 8192 x 8192 14.6 and 19.8 (reading 12.2), 28672 x 8192 48.0 and 59.8 (38.8), 4096 x
 * 4096 5.9 and 7.7 (3.8). As ptxas 12.0 assembles it, the 16 rows take a tenth longer, and spill; with an and and an or
 * for each pair of integers instead of one instruction for both, 1 row takes 15.9, 51.3 and 6.6.
 *
 * Zeros add 1 to 4 us. Not better there: weights, or both factors, by way of rings of cp.async that each thread
 * has for itself (8192 x 8192: 15.5 to 17, 18.1), 16 or 64 rows of weights in a block, more warps. On an H100: a by way
 * of shared memory, a ring of bulk copies, wgmma. */
#ifndef KILN_KERNELS_GEMM_W4A16_MMA_ROWS_H
#define KILN_KERNELS_GEMM_W4A16_MMA_ROWS_H

#include "kernels/arch/sm80.h"
#if __CUDA_ARCH__ < 800
#include "kernels/arch/sm75.h"
#endif
#include "kernels/gemm_w4a16/gemm_w4a16_integers.h"

enum : uint32_t { CHUNK = KILN_W4A16_CHUNK /* of k: a lane's vector of a, two fragments */ };

KILN_INLINE void mma(float *sums, const uint32_t *a, const uint32_t *b) {
#if defined(KILN_PART_bf16)
    kiln_sm80_mma_bf16(sums, a, b);
#elif __CUDA_ARCH__ >= 800
    kiln_sm80_mma_f16(sums, a, b);
#else
    kiln_sm75_mma_f16(sums, a, b);
#endif
}

enum : uint32_t {
    STEP = 128, /* of k, that a warp does at a time */
    CHUNKS = STEP / CHUNK,
    STEP_TILES = STEP / KILN_W4A16_TILE_DEPTH, /* of weights */
    BLOCKS = 2,                                /* of 16 rows of weights */
    COLS = KILN_W4A16_TILE_ROWS * BLOCKS
};

/* The scales and zeros of a lane's rows of weights, every eighth of a block's. */
struct row_groups {
    uint32_t scales[2 * BLOCKS], zeros[2 * BLOCKS];
};

/* What a warp multiplies at once, with TILES times 8 rows of a. */
template <uint32_t TILES> struct row_step { kiln_vector a[CHUNKS][TILES], weights[STEP_TILES][BLOCKS]; };

/* The sums of a warp, in shared memory. */
template <uint32_t TILES> struct warp_sums { float of[TILES][COLS][8]; };

/* Where a lane reads. */
template <uint32_t TILES> struct row_sources {
    const kiln_element *a[TILES];      /* its row of each 8 */
    bool present[TILES];               /* whether a has it */
    const uint8_t *weights;            /* its bytes of the first tile */
    uint64_t scale;                    /* its first row's */
    uint64_t next_weights, next_scale; /* steps to the next block: 0 if there is none, and this one is read twice */
};

template <uint32_t TILES>
KILN_INLINE void load_row_groups(const kiln_gemm_w4a16_args &args, row_groups *to, const row_sources<TILES> &from,
                                 uint32_t k) {
    const uint64_t first = from.scale + (k >> args.group_log2) * (uint64_t)args.scale_group_step;
    KILN_UNROLL
    for (uint32_t i = 0; i < 2 * BLOCKS; i++) {
        const uint64_t at = first + i / 2 * from.next_scale + 8 * (i % 2) * (uint64_t)args.scale_row_step;
        const bool there = k < (uint32_t)args.k;
        to->scales[i] = kiln_sm80_load_u16((const kiln_element *)args.scales + at, there);
        to->zeros[i] = kiln_sm80_load_u16((const kiln_element *)args.zeros + at, there && args.zeros);
    }
}

/* Of a step from k on, the elements that a tile of weights has; zeros from the end on, which is a multiple of its
 * depth.
 */
template <uint32_t TILES>
KILN_INLINE void load_row_tile(const kiln_gemm_w4a16_args &args, row_step<TILES> *to, const row_sources<TILES> &from,
                               uint32_t k, uint32_t tile) {
    const uint32_t at = k + tile * KILN_W4A16_TILE_DEPTH;
    const uint8_t *first = from.weights + at / KILN_W4A16_TILE_DEPTH * (uint64_t)KILN_W4A16_TILE_BYTES;
    KILN_UNROLL
    for (uint32_t b = 0; b < BLOCKS; b++)
        kiln_sm80_load_v4(to->weights[tile][b].words, first + b * from.next_weights, at < (uint32_t)args.k);
    KILN_UNROLL
    for (uint32_t c = 0; c < KILN_W4A16_TILE_DEPTH / CHUNK; c++) {
        KILN_UNROLL
        for (uint32_t i = 0; i < TILES; i++)
            kiln_sm80_load_v4(to->a[tile * (KILN_W4A16_TILE_DEPTH / CHUNK) + c][i].words, from.a[i] + at + c * CHUNK,
                              at < (uint32_t)args.k && from.present[i]);
    }
}

/* The products of some of a step's chunks, and the sums of a over them. */
template <uint32_t TILES> struct row_products { float of[BLOCKS][TILES][4], totals[TILES][4]; };

template <uint32_t TILES>
KILN_INLINE void multiply_chunk(const kiln_gemm_w4a16_args &args, row_products<TILES> *products,
                                const row_step<TILES> &step, uint32_t c) {
    const uint32_t ones[4] = {ONES, ONES, ONES, ONES};
    KILN_UNROLL
    for (uint32_t half = 0; half < 2; half++) {
        KILN_UNROLL
        for (uint32_t b = 0; b < BLOCKS; b++) {
            uint32_t fragment[4];
            integers_of(fragment, step.weights[c / 2][b].words[c % 2 * 2 + half]);
            KILN_UNROLL
            for (uint32_t i = 0; i < TILES; i++)
                mma(products->of[b][i], fragment, step.a[c][i].words + 2 * half);
        }
        if (!args.zeros) continue;
        KILN_UNROLL
        for (uint32_t i = 0; i < TILES; i++)
            mma(products->totals[i], ones, step.a[c][i].words + 2 * half);
    }
}

/* Adds the products of a group to the sums, with its scales and zeros, and clears them. */
template <uint32_t TILES>
KILN_INLINE void add_group(float (*sums)[TILES][4], row_products<TILES> *products, const row_groups &groups) {
    KILN_UNROLL
    for (uint32_t b = 0; b < BLOCKS; b++) {
        KILN_UNROLL
        for (uint32_t i = 0; i < 4 * TILES; i++) {
            const uint32_t row = 2 * b + i % 4 / 2;
            float *sum = &sums[b][i / 4][i % 4];
            *sum = KILN_FMA(products->of[b][i / 4][i % 4], kiln_element_to_f32((kiln_element)groups.scales[row]), *sum);
            *sum = KILN_FMA(products->totals[i / 4][i % 4], kiln_element_to_f32((kiln_element)groups.zeros[row]), *sum);
        }
    }
    *products = row_products<TILES>();
}

/* Multiplies a chunk of a with pre_scale. */
template <uint32_t TILES> KILN_INLINE void scale_chunk(const kiln_gemm_w4a16_args &args, kiln_vector *a, uint32_t k) {
    const kiln_element *source = (const kiln_element *)args.pre_scale + k + kiln_thread() % 4 * KILN_VECTOR;
    kiln_vector factors;
    kiln_sm80_load_v4(factors.words, source, k < (uint32_t)args.k);
    KILN_UNROLL
    for (uint32_t i = 0; i < TILES; i++)
        multiply_pairs(&a[i], factors);
}

/* Adds to the sums all products of a warp. WHOLE: a step is of one group; else its chunks may be of several. */
template <uint32_t TILES, bool WHOLE>
KILN_INLINE void multiply_rows(const kiln_gemm_w4a16_args &args, float (*sums)[TILES][4]) {
    const uint32_t lane = kiln_thread() % 32, first = kiln_thread() / 32 * STEP;
    const uint64_t block = (uint64_t)kiln_tile() * BLOCKS;
    row_sources<TILES> from;
    KILN_UNROLL
    for (uint32_t i = 0; i < TILES; i++) {
        const uint64_t row = lane / 4 + 8 * i;
        from.present[i] = row < (uint64_t)args.m;
        from.a[i] = (const kiln_element *)args.a + (from.present[i] ? row : 0) * (uint64_t)args.a_stride +
                    lane % 4 * KILN_VECTOR;
    }
    const uint64_t block_bytes = (uint64_t)args.k / KILN_W4A16_TILE_DEPTH * KILN_W4A16_TILE_BYTES;
    const bool both = (block + 1) * KILN_W4A16_TILE_ROWS < (uint64_t)args.n;
    from.weights = args.weights + block * block_bytes + lane * 16;
    from.scale = (block * KILN_W4A16_TILE_ROWS + lane / 4) * (uint64_t)args.scale_row_step;
    from.next_weights = both ? block_bytes : 0;
    from.next_scale = both ? KILN_W4A16_TILE_ROWS * (uint64_t)args.scale_row_step : 0;

    row_step<TILES> now, next;
    row_groups groups;
    row_products<TILES> products = {};
    const uint32_t step = blockDim.x / 32 * STEP;
    KILN_UNROLL
    for (uint32_t tile = 0; tile < STEP_TILES; tile++)
        load_row_tile(args, &next, from, first, tile);
    if (WHOLE) load_row_groups(args, &groups, from, first);
    KILN_LOOP
    for (uint32_t k = first; k < (uint32_t)args.k; k += step) {
        row_step<TILES> &at = WHOLE ? now : next; /* registers for two steps, or for one that is refilled */
        KILN_UNROLL
        for (uint32_t tile = 0; WHOLE && tile < STEP_TILES; tile++) {
            if (tile == 0) now = next;
            load_row_tile(args, &next, from, k + step, tile);
        }
        KILN_UNROLL
        for (uint32_t c = 0; c < CHUNKS; c++) {
            if (!WHOLE) load_row_groups(args, &groups, from, k + c * CHUNK);
            if (args.pre_scale) scale_chunk<TILES>(args, at.a[c], k + c * CHUNK);
            multiply_chunk(args, &products, at, c);
            if (!WHOLE && (c + 1) * CHUNK % KILN_W4A16_TILE_DEPTH == 0)
                load_row_tile(args, &next, from, k + step, c * CHUNK / KILN_W4A16_TILE_DEPTH);
            if (c + 1 == CHUNKS || !WHOLE) add_group(sums, &products, groups);
        }
        if (WHOLE) load_row_groups(args, &groups, from, k + step);
    }
}

template <uint32_t TILES> KILN_INLINE void gemm_w4a16_mma_rows(const kiln_gemm_w4a16_args &args) {
    extern __shared__ __align__(16) uint8_t of_warps[];
    warp_sums<TILES> *shared = (warp_sums<TILES> *)of_warps;
    const uint32_t lane = kiln_thread() % 32, warp = kiln_thread() / 32;
    const uint64_t first = (uint64_t)kiln_tile() * COLS;
    float sums[BLOCKS][TILES][4] = {};
    if (kiln_block()) return; /* the whole block */
    if (args.group_log2 < 7)
        multiply_rows<TILES, false>(args, sums);
    else
        multiply_rows<TILES, true>(args, sums);

    KILN_UNROLL
    for (uint32_t i = 0; i < BLOCKS * TILES; i++) {
        const float *sum = sums[i / TILES][i % TILES];
        float(*to)[8] = &shared[warp].of[i % TILES][i / TILES * KILN_W4A16_TILE_ROWS + lane / 4];
        *(float2 *)&to[0][lane % 4 * 2] = make_float2(sum[0], sum[1]);
        *(float2 *)&to[8][lane % 4 * 2] = make_float2(sum[2], sum[3]);
    }
    kiln_barrier();
    KILN_LOOP
    for (uint32_t i = kiln_thread(); i < COLS * TILES * 8; i += blockDim.x) {
        const uint64_t row = i / COLS, col = first + i % COLS;
        if (row >= (uint64_t)args.m || col >= (uint64_t)args.n) continue;
        float sum = 0.0f;
        KILN_LOOP
        for (uint32_t w = 0; w < blockDim.x / 32; w++)
            sum += shared[w].of[row / 8][i % COLS][row % 8];
        finish_element(&args, sum, row, col);
    }
}

/* Bounds by the warps that a multiprocessor is to have registers for, of all its blocks. */
#pragma push_macro("KILN_ENTRY_HEAD")
#undef KILN_ENTRY_HEAD

#define KILN_ENTRY_HEAD extern "C" __global__ __launch_bounds__(16 * 32, 1) void
KILN_ENTRY(gemm_w4a16_mma_rows_8, kiln_gemm_w4a16_args) {
    gemm_w4a16_mma_rows<1>(args);
}
#undef KILN_ENTRY_HEAD

#define KILN_ENTRY_HEAD extern "C" __global__ __launch_bounds__(12 * 32, 1) void
KILN_ENTRY(gemm_w4a16_mma_rows_16, kiln_gemm_w4a16_args) {
    gemm_w4a16_mma_rows<2>(args);
}
#pragma pop_macro("KILN_ENTRY_HEAD")

#endif
