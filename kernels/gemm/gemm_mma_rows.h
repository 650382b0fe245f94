/* gemm of few rows by mma.sync, for sm_80 and later, f16 and bf16, and for sm_75, f16 alone: gemm_mma_rows_8 and _16,
 * up to 8 and to 16 rows of a, as when tokens are generated. A block does 16 columns of d; its warps share k, 128
 * elements at a time, and add up their sums in shared memory. Rows of b are the first factor of mma.sync and those of a
 * the second, and nothing goes through shared memory: a lane's 16 bytes of a row are, with k in another order that is
 * the same for both factors, its part of two fragments. As soon as 32 elements of k have been multiplied, their
 * registers wait for those 128 ahead: so at least 96 are on their way at any time.
 *
 * A block has 16, 8 or 4 warps, as the launch says: as many as let all blocks be on the device at once, since a second
 * round of a few blocks leaves memory idle. Where there are more blocks than that, 8 (up to 8 rows) or 4.
 *
 * Floor: one read of b. Prototypes of this in bf16 on an H200 (driver 580.159.04, 2026-11-26; CUDA graphs, b not in
 * L2), in us, with a kernel that only reads b and cuBLAS in the same run:
 *
 *   n x k           reading   8 rows, cuBLAS   16 rows, cuBLAS
 *   8192 x 8192      33.4      33.8   33.3      35.4   33.7
 *   28672 x 8192    111       109.7  107.1     112    107.5
 *   8192 x 28672    111       109.1  111.9     111.3  112.4
 *   28672 x 4096     56.6      57.4   55.7      58.8   56.1
 *   4096 x 14336     29.4      29.7   31.4      30.9   31.7
 *   4096 x 4096       9.2      10.5   12.4      11.1   12.7
 *   1280 x 8192       6.2       7.9    9.9
 *
 * 1 to 4 rows take at most 2 % less. As shipped, on an H100 (same driver and date): 8 and 16 rows took 47.1 and 47.9 us
 * for 8192 x 8192 (cuBLAS 47.2 and 47.5), 158.3 and 164.5 for 28672 x 8192 (161.8, 161.7), 41.2 and 42.1 for
 * 4096 x 14336 (43.8, 44.4). There ptxas 12.0 cost 16 rows 2 to 4 %, and it cost 1 to 4 % that the first-level cache
 * kept rows of b: it has better use for those of a. No faster were 32 rows of b, 3 and 5 chunks.
 *
 * Not better as prototypes on an H200: a ring of stages copied by tensor maps for wgmma with 64 rows of b (8
 * rows: 35.4, 114, 111, 59.0, 30.8, 11.3, 8.3), rings of cp.async that each thread has for itself (36.0, 120, 116, 63,
 * 32, 11.4, 9.1), 32 rows of b in a block; k shared by the blocks of a cluster won for 1280 x 8192 alone, and there no
 * more than 16 warps do. By f32 arithmetic, with 2 rows of b in a block of 256 threads, 1 row took 9.6 for 4096 x 4096
 * and 6.7 for 1280 x 8192, but 113 for 8192 x 28672. */
#ifndef KILN_KERNELS_GEMM_MMA_ROWS_H
#define KILN_KERNELS_GEMM_MMA_ROWS_H

#include "kernels/arch/sm80.h"
#include "kernels/gemm/gemm_portable.h"
#if __CUDA_ARCH__ < 800
#include "kernels/arch/sm75.h"
#endif

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
    CHUNK = 32,    /* elements of k of which a warp's lanes have 16 bytes each: two fragments */
    CHUNKS = 4,    /* that a warp has under way */
    ROWS_COLS = 16 /* rows of b, columns of d, of a block */
};

/* TILES times 8 rows of a. A lane has one row of each 8, of b as well. */
template <uint32_t TILES> struct few_rows {
    const kiln_element *a[TILES], *b[2];
    bool present[TILES]; /* whether a has the lane's row */
    struct chunk {
        kiln_vector a[TILES], b[2];
    };
    struct sums { /* of a warp, in shared memory */
        float of[TILES][ROWS_COLS][8];
    };
};

/* Chunk c of those from k on; zeros from `end` on, which is a multiple of a vector. */
template <uint32_t TILES>
KILN_INLINE void load_chunk(typename few_rows<TILES>::chunk *to, const few_rows<TILES> &rows, uint32_t k, uint32_t c,
                            uint32_t end) {
    const bool present = k + c * CHUNK < end;
    KILN_UNROLL
    for (uint32_t i = 0; i < 2; i++)
#if __CUDA_ARCH__ >= 900 /* its first drivers read PTX 7.4 */
        kiln_sm80_load_v4_once(to->b[i].words, rows.b[i] + k + c * CHUNK, present);
#else
        kiln_sm80_load_v4(to->b[i].words, rows.b[i] + k + c * CHUNK, present);
#endif
    KILN_UNROLL
    for (uint32_t i = 0; i < TILES; i++)
        kiln_sm80_load_v4(to->a[i].words, rows.a[i] + k + c * CHUNK, present && rows.present[i]);
}

template <uint32_t TILES> KILN_INLINE void multiply_chunk(float (*sums)[4], const typename few_rows<TILES>::chunk &of) {
    const uint32_t *low = of.b[0].words, *high = of.b[1].words;
    KILN_UNROLL
    for (uint32_t half = 0; half < 4; half += 2) {
        const uint32_t fragment[4] = {low[half], high[half], low[half + 1], high[half + 1]};
        KILN_UNROLL
        for (uint32_t i = 0; i < TILES; i++)
            mma(sums[i], fragment, of.a[i].words + half);
    }
}

template <uint32_t TILES> KILN_INLINE void gemm_mma_rows(const kiln_gemm_args &args) {
    extern __shared__ __align__(16) uint8_t of_warps[];
    typename few_rows<TILES>::sums *shared = (typename few_rows<TILES>::sums *)of_warps;
    few_rows<TILES> rows;
    const uint32_t lane = kiln_thread() % 32, warp = kiln_thread() / 32, batch = (uint32_t)kiln_block();
    const uint64_t first = (uint64_t)kiln_tile() * ROWS_COLS;
    if (batch >= args.batch) return; /* the whole block */
    const kiln_element *a = (const kiln_element *)args.a + batch * args.a_batch_stride + lane % 4 * KILN_VECTOR;
    const kiln_element *b = (const kiln_element *)args.b + batch * args.b_batch_stride + lane % 4 * KILN_VECTOR;
    KILN_UNROLL
    for (uint32_t i = 0; i < 2; i++) { /* beyond the last one: that once more, for nothing */
        uint64_t col = first + lane / 4 + 8 * i;
        rows.b[i] = b + (col < (uint64_t)args.n ? col : (uint64_t)args.n - 1) * (uint64_t)args.b_stride;
    }
    KILN_UNROLL
    for (uint32_t i = 0; i < TILES; i++) {
        uint64_t row = lane / 4 + 8 * i;
        rows.present[i] = row < (uint64_t)args.m;
        rows.a[i] = a + (rows.present[i] ? row : 0) * (uint64_t)args.a_stride;
    }

    typename few_rows<TILES>::chunk chunks[CHUNKS];
    float sums[TILES][4] = {};
    const uint32_t own = lane % 4 * KILN_VECTOR, step = blockDim.x / 32 * (CHUNK * CHUNKS);
    const uint32_t end = (uint32_t)args.k > own ? (uint32_t)args.k - own : 0;
    uint32_t k = warp * (CHUNK * CHUNKS);
    KILN_UNROLL
    for (uint32_t c = 0; c < CHUNKS; c++)
        load_chunk(&chunks[c], rows, k, c, end);
    KILN_LOOP
    for (; k < (uint32_t)args.k; k += step) {
        KILN_UNROLL
        for (uint32_t c = 0; c < CHUNKS; c++) {
            multiply_chunk<TILES>(sums, chunks[c]);
            load_chunk(&chunks[c], rows, k + step, c, end);
            __syncwarp(); /* keeps assemblers from moving the loads behind the next chunks' products */
        }
    }

    KILN_UNROLL
    for (uint32_t i = 0; i < TILES; i++) {
        float(*to)[8] = &shared[warp].of[i][lane / 4];
        *(float2 *)&to[0][lane % 4 * 2] = make_float2(sums[i][0], sums[i][1]);
        *(float2 *)&to[8][lane % 4 * 2] = make_float2(sums[i][2], sums[i][3]);
    }
    kiln_barrier();
    KILN_LOOP
    for (uint32_t i = kiln_thread(); i < ROWS_COLS * TILES * 8; i += blockDim.x) {
        uint64_t row = i / ROWS_COLS, col = first + i % ROWS_COLS;
        if (row >= (uint64_t)args.m || col >= (uint64_t)args.n) break;
        float sum = 0.0f;
        KILN_LOOP
        for (uint32_t w = 0; w < blockDim.x / 32; w++)
            sum += shared[w].of[row / 8][i % ROWS_COLS][row % 8];
        finish_element(&args, sum, batch, row, col);
    }
}

/* Bounds by the warps that a multiprocessor is to have registers for, of all its blocks: the host side divides them. */
#pragma push_macro("KILN_ENTRY_HEAD")
#undef KILN_ENTRY_HEAD

#define KILN_ENTRY_HEAD extern "C" __global__ __launch_bounds__(24 * 32, 1) void
KILN_ENTRY(gemm_mma_rows_8, kiln_gemm_args) {
    gemm_mma_rows<1>(args);
}
#undef KILN_ENTRY_HEAD

#define KILN_ENTRY_HEAD extern "C" __global__ __launch_bounds__(16 * 32, 1) void
KILN_ENTRY(gemm_mma_rows_16, kiln_gemm_args) {
    gemm_mma_rows<2>(args);
}
#pragma pop_macro("KILN_ENTRY_HEAD")

#endif
