/* gemm of few rows by mma.sync in one launch, with what comes before and after it: gemm_mma_gated_8 and _16, of gated
 * products, and gemm_mma_norm_8 and _16, of bf16, which normalise the rows of a and may gate. gemm_mma_rows.h has
 * their structure.
 *
 * Of a gated product a block does 8 columns of d: the 8 rows of b that are the upper half of a fragment are those of
 * the gates, and the lower half those of what they are multiplied with. To normalise, a lane multiplies its 16 bytes of
 * a, two numbers at a time and rounded once, with the weights there, which it has read ahead as it has a. Each eight of
 * rows is first multiplied with all of them by mma.sync, from the registers where they are: on the diagonal are the
 * sums of their squares, in f32. They go through shared memory with the sums, which are divided by the root at the end.
 *
 * By f32 arithmetic, two FMA and two conversions for each two numbers, the squares cost a warp 6 instructions more of a
 * chunk with 8 rows and 10 more with 16, where a thread's 128 registers were not enough.
 *
 * Floor: one read of b. Not measured. Predicted: a layer of Llama-3-8B at batch 1 on an H100 takes 10 us less, what two
 * launches of add_rmsnorm (3.6 us each) and one of silu_mul (2.9) took there. A chunk of 1 KiB of b takes a
 * multiprocessor's share of the memory 70 cycles, in which it issues up to 280 instructions of a warp; assembled for
 * sm_90a, it takes 26 of them with 8 rows and 39 with 16, and 48 and 75 to normalise as well. */
#ifndef KILN_KERNELS_GEMM_MMA_FUSED_H
#define KILN_KERNELS_GEMM_MMA_FUSED_H

#include "kernels/gemm/gemm_mma_rows.h"
#ifdef KILN_PART_bf16
#include "kernels/arch/sm80.h"
#endif

/* The first row of d's columns and, of a gated product, of the rows n further. */
template <uint32_t TILES>
KILN_INLINE void start_fused(few_rows<TILES> *rows, const kiln_gemm_fused_args &args, uint32_t batch, uint64_t first) {
    const kiln_gemm_args &plain = args.plain;
    const uint32_t lane = kiln_thread() % 32;
    const kiln_element *a = (const kiln_element *)plain.a + batch * plain.a_batch_stride + lane % 4 * KILN_VECTOR;
    const kiln_element *b = (const kiln_element *)plain.b + batch * plain.b_batch_stride + lane % 4 * KILN_VECTOR;
    KILN_UNROLL
    for (uint32_t i = 0; i < 2; i++) { /* beyond the last one: that once more, for nothing */
        uint64_t col = first + lane / 4 + (args.halves ? 0 : 8 * i);
        col = col < (uint64_t)plain.n ? col : (uint64_t)plain.n - 1;
        rows->b[i] = b + (args.halves && i ? (uint64_t)plain.n + col : col) * (uint64_t)plain.b_stride;
    }
    KILN_UNROLL
    for (uint32_t i = 0; i < TILES; i++) {
        uint64_t row = lane / 4 + 8 * i;
        rows->present[i] = row < (uint64_t)plain.m;
        rows->a[i] = a + (rows->present[i] ? row : 0) * (uint64_t)plain.a_stride;
    }
}

#ifdef KILN_PART_bf16
/* Adds the products of a chunk's rows with each other to `squares`, and multiplies the chunk with the weights. */
template <uint32_t TILES>
KILN_INLINE void weigh_chunk(typename few_rows<TILES>::chunk *of, const kiln_vector &weight, float (*squares)[4]) {
    uint32_t *low = of->a[0].words, *high = of->a[TILES - 1].words;
    KILN_UNROLL
    for (uint32_t half = 0; half < 4; half += 2) {
        const uint32_t fragment[4] = {low[half], high[half], low[half + 1], high[half + 1]};
        KILN_UNROLL
        for (uint32_t i = 0; i < TILES; i++)
            mma(squares[i], fragment, of->a[i].words + half);
    }
    KILN_UNROLL
    for (uint32_t i = 0; i < TILES; i++) {
        KILN_UNROLL
        for (uint32_t w = 0; w < 4; w++)
            of->a[i].words[w] = kiln_sm80_fma_bf16x2(of->a[i].words[w], weight.words[w], 0x80008000u); /* + -0 */
    }
}
#else
template <uint32_t TILES>
KILN_INLINE void weigh_chunk(typename few_rows<TILES>::chunk *, const kiln_vector &, float (*)[4]) {}
#endif

/* A warp's sums over its part of k, and those of products of rows of a with each other if they are normalised. */
template <uint32_t TILES, bool NORM>
KILN_INLINE void multiply_fused(float (*sums)[4], float (*squares)[4], const few_rows<TILES> &rows,
                                const kiln_gemm_fused_args &args) {
    const uint32_t own = kiln_thread() % 4 * KILN_VECTOR, step = blockDim.x / 32 * (CHUNK * CHUNKS);
    const uint32_t k_end = (uint32_t)args.plain.k, end = k_end > own ? k_end - own : 0;
    const kiln_element *weight = (const kiln_element *)args.norm_weight + own;
    typename few_rows<TILES>::chunk chunks[CHUNKS];
    kiln_vector weights[CHUNKS];
    uint32_t k = kiln_thread() / 32 * (CHUNK * CHUNKS);
    auto load = [&](uint32_t from, uint32_t c) {
        load_chunk(&chunks[c], rows, from, c, end);
        const uint32_t at = from + c * CHUNK;
        if (NORM) kiln_sm80_load_v4(weights[c].words, weight + at, at < end);
    };
    KILN_UNROLL
    for (uint32_t c = 0; c < CHUNKS; c++)
        load(k, c);
    KILN_LOOP
    for (; k < k_end; k += step) {
        KILN_UNROLL
        for (uint32_t c = 0; c < CHUNKS; c++) {
            if (NORM) weigh_chunk<TILES>(&chunks[c], weights[c], squares);
            multiply_chunk<TILES>(sums, chunks[c]);
            load(k + step, c);
            __syncwarp(); /* keeps assemblers from moving the loads behind the next chunks' products */
        }
    }
}

/* What a warp leaves in shared memory: its sums, and those of the squares of each row. */
template <uint32_t TILES> struct fused_sums {
    typename few_rows<TILES>::sums sums;
    float squares[TILES * 8];
};

template <uint32_t TILES, bool NORM> KILN_INLINE void gemm_mma_fused(const kiln_gemm_fused_args &args) {
    extern __shared__ __align__(16) uint8_t of_warps[];
    fused_sums<TILES> *shared = (fused_sums<TILES> *)of_warps;
    const kiln_gemm_args &plain = args.plain;
    const uint32_t lane = kiln_thread() % 32, warp = kiln_thread() / 32, batch = (uint32_t)kiln_block();
    const uint32_t columns = args.halves ? ROWS_COLS / 2 : ROWS_COLS; /* of d */
    const uint64_t first = (uint64_t)kiln_tile() * columns;
    if (batch >= plain.batch) return; /* the whole block */
    few_rows<TILES> rows;
    float sums[TILES][4] = {}, squares[TILES][4] = {};
    start_fused(&rows, args, batch, first);
    multiply_fused<TILES, NORM>(sums, squares, rows, args);

    KILN_UNROLL
    for (uint32_t i = 0; i < TILES; i++) {
        float(*to)[8] = &shared[warp].sums.of[i][lane / 4];
        *(float2 *)&to[0][lane % 4 * 2] = make_float2(sums[i][0], sums[i][1]);
        *(float2 *)&to[8][lane % 4 * 2] = make_float2(sums[i][2], sums[i][3]);
        if (!NORM) continue;
        const float square = lane / 4 % 2 ? squares[i][2 * i + 1] : squares[i][2 * i]; /* of a row with itself */
        if (lane / 8 == lane % 4) shared[warp].squares[i * 8 + lane / 4] = square;
    }
    kiln_barrier();
    KILN_LOOP
    for (uint32_t i = kiln_thread(); i < columns * TILES * 8; i += blockDim.x) {
        const uint32_t row = i / columns, place = i % columns;
        const uint64_t col = first + place;
        if (row >= (uint32_t)plain.m || col >= (uint64_t)plain.n) break;
        float sum = 0.0f, up = 0.0f, square = 0.0f;
        KILN_LOOP
        for (uint32_t w = 0; w < blockDim.x / 32; w++) {
            sum += shared[w].sums.of[row / 8][place][row % 8];
            if (args.halves) up += shared[w].sums.of[row / 8][place + 8][row % 8];
            if (NORM) square += shared[w].squares[row];
        }
        const float scale = NORM ? norm_scale(args, square) : 1.0f;
        if (args.halves)
            finish_halves(&plain, sum * scale, up * scale, batch, row, col);
        else
            finish_element(&plain, sum * scale, batch, row, col);
    }
}

/* Bounds by warps, as in gemm_mma_rows.h: with those of 20 the kernels that normalise spill. */
#pragma push_macro("KILN_ENTRY_HEAD")
#undef KILN_ENTRY_HEAD

#define KILN_ENTRY_HEAD extern "C" __global__ __launch_bounds__(24 * 32, 1) void
KILN_ENTRY(gemm_mma_gated_8, kiln_gemm_fused_args) {
    gemm_mma_fused<1, false>(args);
}
#undef KILN_ENTRY_HEAD

#define KILN_ENTRY_HEAD extern "C" __global__ __launch_bounds__(16 * 32, 1) void
KILN_ENTRY(gemm_mma_gated_16, kiln_gemm_fused_args) {
    gemm_mma_fused<2, false>(args);
}

#ifdef KILN_PART_bf16
KILN_ENTRY(gemm_mma_norm_8, kiln_gemm_fused_args) {
    gemm_mma_fused<1, true>(args);
}

KILN_ENTRY(gemm_mma_norm_16, kiln_gemm_fused_args) {
    gemm_mma_fused<2, true>(args);
}
#endif
#pragma pop_macro("KILN_ENTRY_HEAD")

#endif
