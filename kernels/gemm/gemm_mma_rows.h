/* gemm of few rows by mma.sync, for sm_80 and later, f16 and bf16: gemm_mma_rows_8 and _16, 2 to 8 and to 16 rows of a,
 * as when several sequences are decoded together. A block does 16 columns of d; its 8 warps share k, 128 elements at a
 * time, and add up their sums in shared memory. Rows of b are the first factor of mma.sync and those of a the second,
 * and nothing goes through shared memory: a lane's 16 bytes of a row are, with k in another order that is the same for
 * both factors, its part of two fragments. The next 128 elements are on their way while these are multiplied.
 * Prototypes of this on an H100 read b at 88 to 95 % of the best rate (8 rows: 90 % of 134 MB, 95 % of 470 MB; 16 rows:
 * 88 %, 93 %); sharing k among blocks never paid there. These kernels are not measured.
 *
 * Floor: one read of b. */
#ifndef KILN_KERNELS_GEMM_MMA_ROWS_H
#define KILN_KERNELS_GEMM_MMA_ROWS_H

#include "kernels/arch/sm80.h"
#include "kernels/gemm/gemm_portable.h"

KILN_INLINE void mma(float *sums, const uint32_t *a, const uint32_t *b) {
#ifdef KILN_PART_bf16
    kiln_sm80_mma_bf16(sums, a, b);
#else
    kiln_sm80_mma_f16(sums, a, b);
#endif
}

enum : uint32_t {
    WARPS = KILN_BLOCK / 32,
    CHUNK = 32 /* elements of k of which a warp's lanes have 16 bytes each: two fragments */
};

/* TILES times 8 rows of a, BLOCKS times 16 of b, and CHUNKS chunks of k at a time. A lane has of each 8 rows one. */
template <uint32_t TILES, uint32_t BLOCKS, uint32_t CHUNKS> struct few_rows {
    enum : uint32_t { COLS = 16 * BLOCKS, STEP = CHUNK * CHUNKS };
    const kiln_element *a[TILES], *b[2 * BLOCKS];
    struct chunks {
        kiln_vector a[CHUNKS][TILES], b[CHUNKS][2 * BLOCKS];
    };
    struct sums { /* of the block's warps, in shared memory */
        float of[WARPS][TILES][COLS][8];
    };
};

/* Elements from k on; zeros from `end` on, which is a multiple of a vector. */
template <uint32_t TILES, uint32_t BLOCKS, uint32_t CHUNKS>
KILN_INLINE void load_chunks(typename few_rows<TILES, BLOCKS, CHUNKS>::chunks *to,
                             const few_rows<TILES, BLOCKS, CHUNKS> &rows, uint32_t k, uint32_t end) {
    KILN_UNROLL
    for (uint32_t c = 0; c < CHUNKS; c++) {
        uint32_t at = k + c * CHUNK;
        KILN_UNROLL
        for (uint32_t i = 0; i < 2 * BLOCKS; i++)
            kiln_sm80_load_v4(to->b[c][i].words, rows.b[i] + at, at < end);
        KILN_UNROLL
        for (uint32_t i = 0; i < TILES; i++)
            kiln_sm80_load_v4(to->a[c][i].words, rows.a[i] + at, at < end);
    }
}

template <uint32_t TILES, uint32_t BLOCKS, uint32_t CHUNKS>
KILN_INLINE void multiply_chunks(float (*sums)[TILES][4], const typename few_rows<TILES, BLOCKS, CHUNKS>::chunks &of) {
    KILN_UNROLL
    for (uint32_t c = 0; c < CHUNKS; c++) {
        KILN_UNROLL
        for (uint32_t block = 0; block < BLOCKS; block++) {
            const uint32_t *low = of.b[c][2 * block].words, *high = of.b[c][2 * block + 1].words;
            KILN_UNROLL
            for (uint32_t half = 0; half < 4; half += 2) {
                const uint32_t fragment[4] = {low[half], high[half], low[half + 1], high[half + 1]};
                KILN_UNROLL
                for (uint32_t i = 0; i < TILES; i++)
                    mma(sums[block][i], fragment, of.a[c][i].words + half);
            }
        }
    }
}

template <uint32_t TILES, uint32_t BLOCKS, uint32_t CHUNKS>
KILN_INLINE void gemm_mma_rows(const kiln_gemm_args &args, typename few_rows<TILES, BLOCKS, CHUNKS>::sums *shared) {
    few_rows<TILES, BLOCKS, CHUNKS> rows;
    uint32_t lane = kiln_thread() % 32, warp = kiln_thread() / 32, batch = (uint32_t)kiln_block();
    uint64_t first = (uint64_t)kiln_tile() * rows.COLS;
    if (batch >= args.batch) return; /* the whole block */
    const kiln_element *a = (const kiln_element *)args.a + batch * args.a_batch_stride + lane % 4 * KILN_VECTOR;
    const kiln_element *b = (const kiln_element *)args.b + batch * args.b_batch_stride + lane % 4 * KILN_VECTOR;
    KILN_UNROLL
    for (uint32_t i = 0; i < 2 * BLOCKS; i++) { /* beyond the last one: that once more, for nothing; of a as well */
        uint64_t col = first + lane / 4 + 8 * i;
        rows.b[i] = b + (col < (uint64_t)args.n ? col : (uint64_t)args.n - 1) * (uint64_t)args.b_stride;
    }
    KILN_UNROLL
    for (uint32_t i = 0; i < TILES; i++) {
        uint64_t row = lane / 4 + 8 * i;
        rows.a[i] = a + (row < (uint64_t)args.m ? row : (uint64_t)args.m - 1) * (uint64_t)args.a_stride;
    }

    typename few_rows<TILES, BLOCKS, CHUNKS>::chunks even, odd;
    float sums[BLOCKS][TILES][4] = {};
    const uint32_t own = lane % 4 * KILN_VECTOR, step = WARPS * rows.STEP;
    const uint32_t end = (uint32_t)args.k > own ? (uint32_t)args.k - own : 0;
    load_chunks(&even, rows, warp * rows.STEP, end);
    KILN_LOOP
    for (uint32_t k = warp * rows.STEP; k < (uint32_t)args.k; k += 2 * step) {
        load_chunks(&odd, rows, k + step, end);
        multiply_chunks<TILES, BLOCKS, CHUNKS>(sums, even);
        load_chunks(&even, rows, k + 2 * step, end);
        multiply_chunks<TILES, BLOCKS, CHUNKS>(sums, odd);
    }

    KILN_UNROLL
    for (uint32_t i = 0; i < BLOCKS * TILES; i++) {
        const float *sum = sums[i / TILES][i % TILES];
        float(*to)[8] = &shared->of[warp][i % TILES][i / TILES * 16 + lane / 4];
        *(float2 *)&to[0][lane % 4 * 2] = make_float2(sum[0], sum[1]);
        *(float2 *)&to[8][lane % 4 * 2] = make_float2(sum[2], sum[3]);
    }
    kiln_barrier();
    KILN_LOOP
    for (uint32_t i = kiln_thread(); i < rows.COLS * TILES * 8; i += KILN_BLOCK) {
        uint64_t row = i / rows.COLS, col = first + i % rows.COLS;
        if (row >= (uint64_t)args.m || col >= (uint64_t)args.n) break;
        float sum = 0.0f;
        KILN_UNROLL
        for (uint32_t w = 0; w < WARPS; w++)
            sum += shared->of[w][row / 8][i % rows.COLS][row % 8];
        finish_element(&args, sum, batch, row, col);
    }
}

KILN_ENTRY(gemm_mma_rows_8, kiln_gemm_args) {
    KILN_SHARED few_rows<1, 1, 4>::sums sums;
    gemm_mma_rows<1, 1, 4>(args, &sums);
}

KILN_ENTRY(gemm_mma_rows_16, kiln_gemm_args) {
    KILN_SHARED few_rows<2, 2, 2>::sums sums;
    gemm_mma_rows<2, 2, 2>(args, &sums);
}

#endif
