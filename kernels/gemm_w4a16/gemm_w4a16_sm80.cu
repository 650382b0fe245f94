/* gemm_w4a16 for sm_80 and later, f16 and bf16, of weights in the layout sm80_v1 (gemm_w4a16_layout.h), beside the
 * portable kernels (gemm_w4a16_gpu.c) for canonical ones.
 *
 * Weights are the first factor of mma.sync m16n8k16 and a is the second: what a product makes is a part of d,
 * transposed. A lane's 16 bytes of a tile of 16 rows x 64 of k are its fragments of four products, an integer q as q +
 * 8 in 4 bits: an and and an or make 1024 + q + 8 (f16) or 128 + q + 8 (bf16) of two at once, from which 1032 or 136 is
 * subtracted without an error. The order of k within 32 is that in which a lane's 16 bytes of a row of a, eight
 * neighbours, are its fragments of two products: neither factor needs ldmatrix.
 *
 * gemm_w4a16_mma_rows_8 and _16: up to 8 and to 16 rows of a, as when tokens are generated. A block does 32 rows of
 * weights, read once, straight into registers; its 4 or 8 warps share k, 128 elements at a time, and add up their sums
 * in shared memory. The next 128 elements of both factors, with their scales, are on their way while these are
 * multiplied; with groups of 32 or 64 the scales are not, and registers are refilled as soon as they are free.
 * Integers are multiplied as they are: a group's sum is multiplied with its scale in f32, and what a zero adds is the
 * sum of a over the group, which products with ones make.
 *
 * gemm_w4a16_mma_64 and _128: more rows. A block does a tile of 64 x 64 or 128 x 128 elements of d, each of its 8 warps
 * 32 rows of a x 16 of weights or 64 x 32. 64 elements of k are a stage, of which cp.async keeps three ahead of the one
 * at work. A row of a is 8 vectors of 16 bytes there, in odd rows with their halves exchanged, so that no bank is met
 * twice. Weights become numbers of 16 bits in registers, times the scale and plus the zero with one rounding.
 *
 * Floor: one read of the weights for few rows, 2 m n k operations for many. Prototypes of the kernels for few rows in
 * bf16 on an H200 (driver 580.159.04, 2026-11-26; CUDA graphs, weights not in L2, groups of 128), in us, with a kernel
 * that only reads as many bytes; in brackets what they took before scales were asked for ahead and rows that a does not
 * have were left alone:
 *
 *   n x k           reading   1 row         16 rows
 *   8192 x 8192       9.6     13.7 (15.4)   17.7 (22.9)
 *   28672 x 8192     29.7     41.7 (48.2)   52.4 (75.7)
 *   8192 x 28672     29.7     41.0 (47.3)   54.4 (68.2)
 *   28672 x 4096     15.3     23.0 (26.4)   28.5 (44.3)
 *   4096 x 4096       3.6      5.6 (6.2)     7.2 (7.8)
 *
 * As shipped (ptxas 12.0; zeros and pre_scale are asked for in the loop) they take longer, 1 and 16 rows of 8192 x
 * 8192 17.1 and 23.7 us, 28672 x 8192 49.6 and 66.9, 4096 x 4096 7.1 and 9.4; 4096 rows of 8192 x 8192 2601 us, 0.26 of
 * cuBLAS in bf16.
 *
 * Zeros add 1 to 4 us. Not better there: weights, or both factors, by way of rings of cp.async that each thread
 * has for itself (8192 x 8192: 15.5 to 17, 18.1), 16 or 64 rows of weights in a block, more warps. On an H100: a by way
 * of shared memory, a ring of bulk copies, wgmma.
 * Test: build/tests/ops/gemm_w4a16_test. Bench: build/kiln bench gemm_w4a16 --set weight_layout=sm80_v1 */
#include "kernels/arch/sm80.h"
#include "kernels/arch/sm80_pairs.h"
#include "kernels/common/tuned.h"
#include "kernels/gemm_w4a16/gemm_w4a16_layout.h"
#include "kernels/gemm_w4a16/gemm_w4a16_portable.h"

KILN_TUNED_PARTS(f16 bf16)
KILN_SHAPE(gemm_w4a16_mma_128, 128, 128, 64, 20480, 100)
KILN_SHAPE(gemm_w4a16_mma_64, 64, 64, 64, 10240, 60)
KILN_SHAPE(gemm_w4a16_mma_rows_8, 8, 32, 1024, 0, 100)
KILN_SHAPE(gemm_w4a16_mma_rows_16, 16, 32, 1024, 0, 100)

enum : uint32_t {
    WARPS = KILN_BLOCK / 32,
    TILE_ROWS = KILN_W4A16_TILE_ROWS, /* of weights, in a tile of the layout */
    TILE_DEPTH = KILN_W4A16_TILE_DEPTH,
    TILE_BYTES = KILN_W4A16_TILE_BYTES,
    CHUNK = KILN_W4A16_CHUNK /* of k: a lane's vector of a, two fragments */
};

/* ---- Numbers ---- */

#ifdef KILN_PART_bf16
enum : uint32_t { ANCHOR = 0x43004300u, LESS_ANCHOR = 0xc308c308u, ONES = 0x3f803f80u };
#else
enum : uint32_t { ANCHOR = 0x64006400u, LESS_ANCHOR = 0xe408e408u, ONES = 0x3c003c00u };
#endif

KILN_INLINE uint32_t fma_pair(uint32_t a, uint32_t b, uint32_t c) {
#ifdef KILN_PART_bf16
    return kiln_sm80_fma_bf16x2(a, b, c);
#else
    return kiln_sm80_fma_f16x2(a, b, c);
#endif
}

KILN_INLINE void mma(float *sums, const uint32_t *a, const uint32_t *b) {
#ifdef KILN_PART_bf16
    kiln_sm80_mma_bf16(sums, a, b);
#else
    kiln_sm80_mma_f16(sums, a, b);
#endif
}

/* The integers of a word, two by two, as a fragment: of row lane / 4 of a tile the first and the third pair, of the row
 * 8 below it the others. */
KILN_INLINE void integers_of(uint32_t *fragment, uint32_t word) {
    KILN_UNROLL
    for (uint32_t i = 0; i < 4; i++)
        fragment[i] = fma_pair((word >> 4 * i & 0x000f000fu) | ANCHOR, ONES, LESS_ANCHOR);
}

KILN_INLINE void multiply_pairs(kiln_vector *by, kiln_vector factors) {
    KILN_UNROLL
    for (uint32_t i = 0; i < 4; i++)
        by->words[i] = fma_pair(by->words[i], factors.words[i], 0x80008000u); /* -0: a product of 0 keeps its sign */
}

/* ---- gemm_w4a16_mma_rows ---- */

enum : uint32_t {
    STEP = 128, /* of k, that a warp does at a time */
    CHUNKS = STEP / CHUNK,
    STEP_TILES = STEP / TILE_DEPTH, /* of weights */
    BLOCKS = 2,                     /* of 16 rows of weights */
    COLS = TILE_ROWS * BLOCKS
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
    const uint32_t at = k + tile * TILE_DEPTH;
    const uint8_t *first = from.weights + at / TILE_DEPTH * (uint64_t)TILE_BYTES;
    KILN_UNROLL
    for (uint32_t b = 0; b < BLOCKS; b++)
        kiln_sm80_load_v4(to->weights[tile][b].words, first + b * from.next_weights, at < (uint32_t)args.k);
    KILN_UNROLL
    for (uint32_t c = 0; c < TILE_DEPTH / CHUNK; c++) {
        KILN_UNROLL
        for (uint32_t i = 0; i < TILES; i++)
            kiln_sm80_load_v4(to->a[tile * (TILE_DEPTH / CHUNK) + c][i].words, from.a[i] + at + c * CHUNK,
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
    const uint64_t block_bytes = (uint64_t)args.k / TILE_DEPTH * TILE_BYTES;
    const bool both = (block + 1) * TILE_ROWS < (uint64_t)args.n;
    from.weights = args.weights + block * block_bytes + lane * 16;
    from.scale = (block * TILE_ROWS + lane / 4) * (uint64_t)args.scale_row_step;
    from.next_weights = both ? block_bytes : 0;
    from.next_scale = both ? TILE_ROWS * (uint64_t)args.scale_row_step : 0;

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
            if (!WHOLE && (c + 1) * CHUNK % TILE_DEPTH == 0)
                load_row_tile(args, &next, from, k + step, c * CHUNK / TILE_DEPTH);
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
        float(*to)[8] = &shared[warp].of[i % TILES][i / TILES * TILE_ROWS + lane / 4];
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

/* ---- gemm_w4a16_mma_64 and _128 ---- */

enum : uint32_t {
    STAGES = KILN_W4A16_STAGES,
    ROW_VECTORS = TILE_DEPTH / KILN_VECTOR, /* of a row of a in a stage */
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
        codes[b] = *(const kiln_vector *)(weights + b * TILE_BYTES + lane * KILN_VECTOR_BYTES);
    KILN_UNROLL
    for (uint32_t c = 0; c < TILE_DEPTH / CHUNK; c++) {
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
            for (uint32_t i = 0; i < WIDTH / TILE_ROWS * 4; i++)
                place[i % 2 * PITCH + i / 4 * TILE_ROWS + i % 4 / 2 * 8] = sums[i / 4][j][i % 4];
        }
        __syncwarp();
        KILN_LOOP
        for (uint32_t i = lane; i < SLICE * WIDTH; i += 32) {
            const uint64_t d_row = row + i / WIDTH, d_col = col + i % WIDTH;
            if (d_row >= (uint64_t)args.m || d_col >= (uint64_t)args.n) continue;
            const float sum = slice[i / WIDTH * PITCH + i % WIDTH];
            if (args.splits > 1)
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
        STAGE_BYTES = A_BYTES + SIDE / TILE_ROWS * TILE_BYTES,
        TILES = WARP_COLS / TILE_ROWS,
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
    const uint64_t tile = first_col / TILE_ROWS + warp;
    const bool copies = warp < SIDE / TILE_ROWS, present = tile < (uint64_t)args.n / TILE_ROWS;
    const uint8_t *weights = args.weights + tile * ((uint64_t)args.k / TILE_DEPTH * TILE_BYTES) + lane * 16;
    uint64_t scales[2 * TILES]; /* of this lane's rows */
    KILN_UNROLL
    for (uint32_t i = 0; i < 2 * TILES; i++) {
        const uint64_t col = first_col + warp_col + i / 2 * TILE_ROWS + i % 2 * 8 + lane / 4;
        scales[i] = (col < (uint64_t)args.n ? col : (uint64_t)args.n - 1) * (uint64_t)args.scale_row_step;
    }

    const uint32_t shared = kiln_sm80_shared(stages);
    uint32_t next = begin, fill = 0, use = 0;
    auto copy_stage = [&]() {
        KILN_UNROLL
        for (uint32_t i = 0; i < SIDE / LOAD_ROWS; i++) {
            const uint32_t to = shared + fill + vector_at(row + i * LOAD_ROWS, vector);
            const bool there = next < end && first_row + row + i * LOAD_ROWS < (uint64_t)args.m;
            const kiln_element *from = a + i * LOAD_ROWS * (uint64_t)args.a_stride + next;
            kiln_sm80_cp_async(to, there ? from : (const kiln_element *)args.a, there ? 16 : 0);
        }
        if (copies) {
            const bool there = next < end && present;
            const uint8_t *from = weights + next / TILE_DEPTH * (uint64_t)TILE_BYTES;
            kiln_sm80_cp_async(shared + fill + A_BYTES + kiln_thread() * 16, there ? from : args.weights,
                               there ? 16 : 0);
        }
        kiln_sm80_cp_async_commit();
        next += TILE_DEPTH;
        fill = fill + STAGE_BYTES == STAGES * STAGE_BYTES ? 0 : fill + STAGE_BYTES;
    };
    stage_groups<TILES> groups, coming;
    load_groups(args, &coming, scales, begin, end);
    KILN_LOOP
    for (uint32_t i = 1; i < STAGES; i++)
        copy_stage();
    float sums[TILES][WARP_ROWS / 8][4] = {};
    KILN_LOOP
    for (; begin < end; begin += TILE_DEPTH) {
        groups = coming;
        load_groups(args, &coming, scales, begin + TILE_DEPTH, end);
        kiln_sm80_cp_async_wait<STAGES - 2>();
        kiln_barrier();
        copy_stage();
        const char *stage = (const char *)stages + use;
        multiply_stage<WARP_ROWS, TILES>(args, sums, stage + warp_row * ROW_BYTES,
                                         stage + A_BYTES + warp_col / TILE_ROWS * TILE_BYTES, groups, begin);
        use = use + STAGE_BYTES == STAGES * STAGE_BYTES ? 0 : use + STAGE_BYTES;
    }
    kiln_sm80_cp_async_wait<0>();
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
