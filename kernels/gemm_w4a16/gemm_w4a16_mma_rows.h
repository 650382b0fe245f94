/* gemm_w4a16 of few rows by mma.sync, for sm_80 and later, f16 and bf16, and for sm_75, f16, of weights in the layout
 * sm80_v1 (gemm_w4a16_layout.h): gemm_w4a16_mma_rows_8 and _16, up to 8 and to 16 rows of a, as when tokens are
 * generated.
 *
 * Weights are the first factor of mma.sync m16n8k16 and a is the second: what a product makes is a part of d,
 * transposed. A lane's 16 bytes of a tile of 16 rows x 64 of k are its fragments of four products. The order of k
 * within 32 is that in which a lane's 16 bytes of a row of a, eight neighbours, are its fragments of two products:
 * neither factor needs ldmatrix.
 *
 * A block does 32 rows of weights, read once, straight into registers; its 4 to 16 warps share k, 128 elements at a
 * time, a step, and add up their sums in shared memory. As soon as 64 elements of k have been multiplied, their
 * registers are refilled with those two steps ahead, or one (row_traits): a multiprocessor has up to 64 KiB of weights
 * on their way for 8 rows and 48 KiB for 16. The first-level cache keeps rows of a alone. A lane asks for the scale and
 * the zero of one row of weights, and shuffles hand them on. Integers are multiplied as they are: a group's sum is
 * multiplied with its scale in f32, and what a zero adds is the sum of a over the group, which products with ones make.
 *
 * For each lane scales and zeros so asked for are 2 bytes of a line of their own, with groups of 32 four times a step.
 * So a block copies those of small groups, and on sm_90a of all that have zeros, into shared memory where a row's lie
 * together: by vectors, those of 128 groups at a time, a panel, while the one before is used. sm_75 has no panels, and
 * sm_80 to sm_120, but for sm_90a, have those of small groups for 8 rows, which keeps images small.
 *
 * Gated calls have 16 rows of gates in a block and the 16 that they are for, and end with both. gemm_w4a16_mma_norm_8,
 * of bf16, normalises up to 8 rows of a: it multiplies them with norm_weight in place of pre_scale, adds up their
 * squares beside the products, each warp those of its part of k, and divides the sums by the root: 2540 instructions
 * for an element of d of 8 rows and k = 4096 on sm_90a, without 1892 (simulated).
 *
 * Before panels an H100 took in a step of the Llama-3-8B shape, with groups of 32 and zeros, 53.5 us for 1 row of
 * 28672 x 4096, 31.4 of 4096 x 14336, 16.1 of 6144 x 4096 and 12.0 of 4096 x 4096; with groups of 128 and zeros 29.5,
 * 16.3, 10.2 and 8.3 (by ncu), and 50.1 for 28672 x 8192 and 53.1 for 8 rows, without zeros 45.4 and 47.2 (80 GB HBM3,
 * driver 580.159.04, 2026-11-26). With them an H200 took 34.1 us for 1 row of 28672 x 4096 and 12.1 of 6144 x 4096,
 * normalised, with groups of 128 and zeros, 16.0 of 4096 x 14336 and 7.9 of 4096 x 4096 with zeros (driver 580.159.04,
 * 2026-11-27). A step with zeros is 430 instructions for 8 rows and 531 for 16 with groups of 32, 338 and 405 with
 * groups of 128, and 28672 x 4096 has 217 steps for each of an H100's multiprocessors: 13 and 16 us with groups of 32
 * (predicted), and reading 24.5.
 *
 * Floor: one read of the weights. A step without zeros and pre_scale is 240 instructions for 8 rows and 280 for 16 on
 * sm_90a, in the assembler's code, so that 8192 x 8192 takes an H100's schedulers 3.8 and 4.4 us (predicted), and
 * reading 11.8.
 *
 * Measured before that on an H100 (driver 580.159.04, 2026-11-26), in us: 1 and 16 rows 15.5 and 21.1 for 8192 x 8192,
 * 49.3 and 61.1 for 28672 x 8192, 6.9 and 9.2 for 4096 x 4096. Then a step was 420 and 530 instructions, zeros and
 * pre_scale were asked for in the one loop, as many bytes were on their way as half of those now, registers were
 * refilled all at once and moved, and the first-level cache kept weights too.
 *
 * Prototypes of that in bf16 on an H200 (the same driver and day; CUDA graphs, weights not in L2, groups of 128), in
 * us, with a kernel that only reads as many bytes; in brackets what they took before scales were asked for ahead and
 * rows that a does not have were left alone:
 *
 *   n x k           reading   1 row         16 rows
 *   8192 x 8192       9.6     13.7 (15.4)   17.7 (22.9)
 *   28672 x 8192     29.7     41.7 (48.2)   52.4 (75.7)
 *   8192 x 28672     29.7     41.0 (47.3)   54.4 (68.2)
 *   28672 x 4096     15.3     23.0 (26.4)   28.5 (44.3)
 *   4096 x 4096       3.6      5.6 (6.2)     7.2 (7.8)
 *
 * On an H100, with what is asked for of zeros and pre_scale in the loop, which that kernel did not have, 1 and 16 rows:
 * 8192 x 8192 14.6 and 19.8 (reading 12.2), 28672 x 8192 48.0 and 59.8 (38.8), 4096 x 4096 5.9 and 7.7 (3.8). With an
 * and and an or for each pair of integers instead of one instruction for both, 1 row took 15.9, 51.3 and 6.6.
 *
 * Not better there: weights, or both factors, by way of rings of cp.async that each thread has for itself (8192 x 8192:
 * 15.5 to 17, 18.1), 16 or 64 rows of weights in a block, more warps. On an H100: a by way of shared memory, a ring of
 * bulk copies, wgmma. */
#ifndef KILN_KERNELS_GEMM_W4A16_MMA_ROWS_H
#define KILN_KERNELS_GEMM_W4A16_MMA_ROWS_H

#include "kernels/arch/sm80.h"
#if __CUDA_ARCH__ < 800
#include "kernels/arch/sm75.h"
#endif
#include "kernels/gemm_w4a16/gemm_w4a16_integers.h"
#include "kernels/gemm_w4a16/gemm_w4a16_rows_args.h"

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
    STEP_LOG2 = 7,
    STEP = 1 << STEP_LOG2,                     /* of k, that a warp does at a time */
    STEP_TILES = STEP / KILN_W4A16_TILE_DEPTH, /* of weights */
    TILE_CHUNKS = KILN_W4A16_TILE_DEPTH / CHUNK,
    BLOCKS = 2, /* of 16 rows of weights */
    COLS = KILN_W4A16_TILE_ROWS * BLOCKS
};

/* The scale and the zero of one of a block's rows of weights: that of row lane / 4 + 8 (lane % 4). */
struct row_group {
    uint16_t scale, zero;
};

/* What a warp has of a tile's depth: weights, and TILES times 8 rows of a. */
template <uint32_t TILES> struct row_tile { kiln_vector weights[BLOCKS], a[TILE_CHUNKS][TILES]; };

/* The sums of a warp, in shared memory. A column's 8 rows are in such an order that of the columns that lanes read at
 * once two have a bank in common, not eight. */
template <uint32_t TILES> struct warp_sums { float of[TILES][COLS][8]; };

KILN_INLINE uint32_t place_of_row(uint32_t col, uint32_t row) {
    return row ^ col / 4 % 4 * 2;
}

/* Where a lane reads next, from k on. */
template <uint32_t TILES> struct row_sources {
    uint32_t k;
    const kiln_element *a;  /* its first row, of the first 8 */
    bool present[TILES];    /* whether a has its row of each 8 */
    const uint8_t *weights; /* its bytes of the first tile */
    uint32_t next;          /* tiles to the second 16 rows': 0 if there are none, and the first are read twice */
    uint64_t group;         /* the first group of its row of weights */
};

/* A block's columns of d, as a logarithm. */
KILN_INLINE uint32_t columns_log2(const kiln_gemm_w4a16_args &args) {
    return args.paired ? 4 : 5;
}

/* Which row of weights is row number `row` of the 32 that are `tile`, as a block's: 16 of two that are paired are n
 * apart. */
KILN_INLINE uint64_t weight_row(const kiln_gemm_w4a16_args &args, uint32_t tile, uint32_t row) {
    const uint64_t beyond = args.paired && row >= KILN_W4A16_TILE_ROWS ? (uint64_t)args.n - KILN_W4A16_TILE_ROWS : 0;
    return ((uint64_t)tile << columns_log2(args)) + row + beyond;
}

/* Whether there are 32 of them; else there are 16. */
KILN_INLINE bool has_both(const kiln_gemm_w4a16_args &args, uint32_t tile) {
    return args.paired || weight_row(args, tile, KILN_W4A16_TILE_ROWS) < (uint64_t)args.n;
}

template <uint32_t TILES>
KILN_INLINE row_sources<TILES> row_sources_of(const kiln_gemm_w4a16_args &args, uint32_t tile, uint32_t k) {
    const uint32_t lane = kiln_thread() % 32;
    const uint64_t block = weight_row(args, tile, 0) / KILN_W4A16_TILE_ROWS;
    const uint64_t apart = args.paired ? (uint64_t)args.n / KILN_W4A16_TILE_ROWS : 1;
    const uint64_t block_tiles = (uint64_t)args.k / KILN_W4A16_TILE_DEPTH;
    const bool both = has_both(args, tile);
    const uint32_t row = lane / 4 + lane % (both ? 4 : 2) * 8; /* of the 32 */
    row_sources<TILES> from;
    from.k = k;
    from.a = (const kiln_element *)args.a + lane / 4 * (uint64_t)args.a_stride + from.k + lane % 4 * KILN_VECTOR;
    KILN_UNROLL
    for (uint32_t i = 0; i < TILES; i++)
        from.present[i] = lane / 4 + 8 * i < (uint64_t)args.m;
    from.weights = args.weights +
                   (block * block_tiles + from.k / KILN_W4A16_TILE_DEPTH) * (uint64_t)KILN_W4A16_TILE_BYTES + lane * 16;
    from.next = both ? (uint32_t)(apart * block_tiles) : 0;
    from.group = weight_row(args, tile, row) * (uint64_t)args.scale_row_step;
    return from;
}

template <uint32_t TILES> KILN_INLINE void advance(row_sources<TILES> *from, uint32_t k) {
    from->k += k;
    from->weights += k / KILN_W4A16_TILE_DEPTH * (uint64_t)KILN_W4A16_TILE_BYTES;
    from->a += k;
}

/* Refills the registers of a step's groups, and of its tile t. From the `end` of k on, and of rows that a does not
 * have, they stay as they are: nothing is added then, and a row's products are apart from the others'. */
template <uint32_t TILES, uint32_t GROUPS>
KILN_INLINE void refill_groups(const kiln_gemm_w4a16_args &args, row_group *to, const row_sources<TILES> &from,
                               bool zeros, uint32_t end) {
    KILN_UNROLL
    for (uint32_t g = 0; g < GROUPS; g++) {
        const uint32_t k = from.k + g * (STEP / GROUPS);
        const uint64_t at = from.group + (uint64_t)(k >> args.group_log2) * (uint32_t)args.scale_group_step;
        const bool there = k < end;
        kiln_sm80_refill_u16(&to[g].scale, (const kiln_element *)args.scales + at, there);
        if (zeros) kiln_sm80_refill_u16(&to[g].zero, (const kiln_element *)args.zeros + at, there && args.zeros);
    }
}

template <uint32_t TILES>
KILN_INLINE void refill_weights(const kiln_gemm_w4a16_args &args, kiln_vector *to, const row_sources<TILES> &from,
                                uint32_t t, uint32_t end) {
    const bool there = from.k + t * KILN_W4A16_TILE_DEPTH < end;
    KILN_UNROLL
    for (uint32_t b = 0; b < BLOCKS; b++) {
        const uint8_t *first = from.weights + (b * from.next + t) * (uint64_t)KILN_W4A16_TILE_BYTES;
#if __CUDA_ARCH__ >= 900 /* its first drivers read PTX 7.4 */
        kiln_sm80_refill_v4_once(to[b].words, first, there);
#else
        kiln_sm80_refill_v4(to[b].words, first, there);
#endif
    }
}

/* `nearer`: how much of k before that which is at `from`. */
template <uint32_t TILES>
KILN_INLINE void refill_a(const kiln_gemm_w4a16_args &args, row_tile<TILES> *to, const row_sources<TILES> &from,
                          uint32_t t, uint32_t nearer) {
    const uint32_t at = t * KILN_W4A16_TILE_DEPTH;
    const bool there = from.k - nearer + at < (uint32_t)args.k;
    KILN_UNROLL
    for (uint32_t i = 0; i < TILES; i++) {
        const kiln_element *row = from.a - nearer + i * 8 * (uint64_t)args.a_stride + at;
        KILN_UNROLL
        for (uint32_t c = 0; c < TILE_CHUNKS; c++)
            kiln_sm80_refill_v4(to->a[c][i].words, row + c * CHUNK, there && from.present[i]);
    }
}

/* The products of chunks of a group, and the sums of a over them. */
template <uint32_t TILES> struct row_products { float of[BLOCKS][TILES][4], totals[TILES][4]; };

template <uint32_t TILES>
KILN_INLINE void multiply_chunk(row_products<TILES> *products, const row_tile<TILES> &tile, const row_tile<TILES> &a,
                                uint32_t c) {
    KILN_UNROLL
    for (uint32_t half = 0; half < 2; half++) {
        KILN_UNROLL
        for (uint32_t b = 0; b < BLOCKS; b++) {
            uint32_t fragment[4];
            integers_of(fragment, tile.weights[b].words[c * 2 + half]);
            KILN_UNROLL
            for (uint32_t i = 0; i < TILES; i++)
                mma(products->of[b][i], fragment, a.a[c][i].words + 2 * half);
        }
    }
}

template <uint32_t TILES>
KILN_INLINE void total_chunk(row_products<TILES> *products, const row_tile<TILES> &tile, uint32_t c) {
    const uint32_t ones[4] = {ONES, ONES, ONES, ONES};
    KILN_UNROLL
    for (uint32_t i = 0; i < 2 * TILES; i++)
        mma(products->totals[i / 2], ones, tile.a[c][i / 2].words + 2 * (i % 2));
}

/* Adds to the sums a group's products, times a scale or a zero that a lane has of each row of weights. */
template <uint32_t TILES>
KILN_INLINE void add_products(float (*sums)[TILES][4], const float (*products)[TILES][4], bool of_blocks,
                              uint16_t factor) {
    KILN_UNROLL
    for (uint32_t row = 0; row < 2 * BLOCKS; row++) {
        const float of_row = __shfl_sync(~0u, kiln_element_to_f32((kiln_element)factor), (int)row, 4);
        KILN_UNROLL
        for (uint32_t i = 0; i < 2 * TILES; i++) {
            float *sum = &sums[row / 2][i / 2][row % 2 * 2 + i % 2];
            *sum = KILN_FMA(products[of_blocks ? row / 2 : 0][i / 2][row % 2 * 2 + i % 2], of_row, *sum);
        }
    }
}

/* Multiplies a tile's part of a with pre_scale. */
template <uint32_t TILES>
KILN_INLINE void scale_tile(const kiln_gemm_w4a16_args &args, row_tile<TILES> *tile, uint32_t k) {
    const kiln_element *factors = (const kiln_element *)args.pre_scale + k + kiln_thread() % 4 * KILN_VECTOR;
    KILN_UNROLL
    for (uint32_t c = 0; c < TILE_CHUNKS; c++) {
        const kiln_vector of_chunk = kiln_vector_load(factors + c * CHUNK);
        KILN_UNROLL
        for (uint32_t i = 0; i < TILES; i++)
            multiply_pairs(&tile->a[c][i], of_chunk);
    }
}

/* What a kernel that normalises rows of a has besides: the squares of a lane's rows, and where in shared memory the
 * factors of a's columns are. */
template <uint32_t TILES, bool NORM> struct row_norm {
    float squares[TILES];
    uint32_t factors;
};
template <uint32_t TILES> struct row_norm<TILES, false> {};

/* Multiplies a chunk of a, which is at k, with its columns' factors. */
template <uint32_t TILES>
KILN_INLINE void norm_chunk(row_norm<TILES, true> *norm, row_tile<TILES> *tile, uint32_t c, uint32_t k) {
    kiln_vector factors;
    kiln_sm80_shared_load_v4(factors.words, /* not before it is needed */
                             norm->factors + (k + kiln_thread() % 4 * KILN_VECTOR) * (uint32_t)sizeof(kiln_element));
    KILN_UNROLL
    for (uint32_t i = 0; i < TILES; i++) {
        float values[KILN_VECTOR];
        kiln_vector_values(values, tile->a[c][i]);
        norm->squares[i] = kiln_add_squares(norm->squares[i], values);
        multiply_pairs(&tile->a[c][i], factors);
    }
    __syncwarp(); /* as in multiply_step */
}
template <uint32_t TILES>
KILN_INLINE void norm_chunk(row_norm<TILES, false> *, row_tile<TILES> *, uint32_t, uint32_t) {}

/* Copies the factors; their copies are to be waited for, before a barrier. */
template <uint32_t TILES>
KILN_INLINE void fetch_factors(const kiln_gemm_w4a16_args &args, const row_norm<TILES, true> &norm) {
    KILN_LOOP
    for (uint32_t at = kiln_thread() * KILN_VECTOR; at < (uint32_t)args.k; at += blockDim.x * KILN_VECTOR)
        kiln_sm80_cp_async(norm.factors + at * (uint32_t)sizeof(kiln_element),
                           (const kiln_element *)args.norm_weight + at, 16);
}
template <uint32_t TILES>
KILN_INLINE void fetch_factors(const kiln_gemm_w4a16_args &, const row_norm<TILES, false> &) {}

/* What products are of: steps that are whole, each of one group, without zeros and pre_scale (PLAIN) or with those that
 * there are (WHOLE); or steps of several groups or cut short by the end (ANY). */
enum row_kind { PLAIN, WHOLE, ANY };

template <uint32_t TILES, row_kind KIND> struct row_traits {
    enum : uint32_t {
        STEPS = KIND == PLAIN || (KIND == WHOLE && TILES == 1) ? 2 : 1, /* ahead: what there are registers for */
        GROUPS = KIND == ANY ? STEP / CHUNK : 1,                        /* of a step */
        GROUP_CHUNKS = STEP / CHUNK / GROUPS,
        TOTAL_CHUNKS = KIND == ANY ? 1 : TILE_CHUNKS /* whose totals are made together */
    };
};

/* Adds to the sums the products of a step, whose registers are refilled as soon as they are multiplied, with what is
 * at `from`, or of a `nearer` by so much. */
template <uint32_t TILES, row_kind KIND, bool NORM>
KILN_INLINE void multiply_step(const kiln_gemm_w4a16_args &args, float (*sums)[TILES][4], row_norm<TILES, NORM> *norm,
                               row_tile<TILES> *tiles, row_tile<TILES> *a, row_group *groups,
                               const row_sources<TILES> &from, uint32_t k, uint32_t nearer) {
    typedef row_traits<TILES, KIND> traits;
    const bool zeros = KIND != PLAIN && args.zeros;
    row_products<TILES> products = {};
    KILN_UNROLL
    for (uint32_t c = 0; c < STEP / CHUNK; c++) {
        const uint32_t t = c / TILE_CHUNKS, next = c + 1;
        if (KIND == ANY && k + t * KILN_W4A16_TILE_DEPTH >= (uint32_t)args.k) return;
        norm_chunk(norm, &a[t], c % TILE_CHUNKS, k + c * CHUNK);
        if (!NORM && KIND != PLAIN && c % TILE_CHUNKS == 0 && args.pre_scale)
            scale_tile(args, &a[t], k + t * KILN_W4A16_TILE_DEPTH);
        multiply_chunk(&products, tiles[t], a[t], c % TILE_CHUNKS);
        KILN_UNROLL
        for (uint32_t i = 0; next % traits::TOTAL_CHUNKS == 0 && zeros && i < traits::TOTAL_CHUNKS; i++)
            total_chunk(&products, a[t], (next - traits::TOTAL_CHUNKS + i) % TILE_CHUNKS);
        if (next % traits::GROUP_CHUNKS == 0) {
            const row_group group = groups[c / traits::GROUP_CHUNKS];
            add_products<TILES>(sums, products.of, true, group.scale);
            if (zeros) add_products<TILES>(sums, &products.totals, false, group.zero);
            products = row_products<TILES>();
        }
        if (next % TILE_CHUNKS) continue;
        refill_weights(args, tiles[t].weights, from, t, (uint32_t)args.k);
        refill_a(args, &a[t], from, t, nearer);
        __syncwarp(); /* keeps assemblers from moving the loads behind the next products */
    }
    refill_groups<TILES, traits::GROUPS>(args, groups, from, KIND != PLAIN, (uint32_t)args.k);
}

/* Scales and zeros of a block's rows of weights for PANEL_GROUPS groups, in shared memory. A row's bytes are a multiple
 * of 16 and 4 banks apart from the next row's: the 8 rows that a warp reads at once have no bank in common. */
enum : uint32_t { PANEL_GROUPS = KILN_W4A16_PANEL_GROUPS, PANEL_VECTORS = PANEL_GROUPS / KILN_VECTOR };
struct panel_row {
    uint32_t words[(PANEL_GROUPS + KILN_VECTOR) / 2];
};
struct panel {
    panel_row scales[COLS], zeros[COLS];
};
static_assert(sizeof(panel) == KILN_W4A16_PANEL_BYTES, "the host side allocates two");

/* Copies a panel from a group on, as far as there are groups. A row of weights that is not there has the scales of the
 * one 16 above it. */
KILN_INLINE void fetch_panel(const kiln_gemm_w4a16_args &args, panel *to, uint32_t group) {
    const uint32_t rows = has_both(args, kiln_tile()) ? COLS : KILN_W4A16_TILE_ROWS;
    const uint32_t vector = kiln_thread() % PANEL_VECTORS * KILN_VECTOR;
    KILN_LOOP
    for (uint32_t row = kiln_thread() / PANEL_VECTORS; row < COLS; row += blockDim.x / PANEL_VECTORS) {
        const uint64_t at = weight_row(args, kiln_tile(), row % rows) * (uint64_t)args.scale_row_step + group + vector;
        if (group + vector >= (uint64_t)args.scale_row_step) break;
        kiln_sm80_cp_async(kiln_sm80_shared(to->scales[row].words + vector / 2), (const kiln_element *)args.scales + at,
                           16);
        if (args.zeros)
            kiln_sm80_cp_async(kiln_sm80_shared(to->zeros[row].words + vector / 2),
                               (const kiln_element *)args.zeros + at, 16);
    }
}

/* The halves of a word of a panel's row as f32, by the bytes that make it (PTX ISA, "prmt"). */
#ifdef KILN_PART_bf16
enum : uint32_t { LOW_HALF = 0x1044, HIGH_HALF = 0x3244 };
#else
enum : uint32_t { LOW_HALF = 0x4410, HIGH_HALF = 0x4432 };
#endif

KILN_INLINE float half_of(uint32_t word, uint32_t half) {
#ifdef KILN_PART_bf16
    return kiln_float(__byte_perm(word, 0, half));
#else
    return kiln_element_to_f32((kiln_element)__byte_perm(word, 0, half));
#endif
}

/* Adds to the sums a group's products, times the scales or zeros of rows 8 apart. */
template <uint32_t TILES>
KILN_INLINE void add_panel_products(float (*sums)[TILES][4], const float (*products)[TILES][4], bool of_blocks,
                                    const panel_row *rows, uint32_t word, uint32_t half) {
    KILN_UNROLL
    for (uint32_t row = 0; row < 2 * BLOCKS; row++) {
        const float of_row = half_of(rows[8 * row].words[word], half);
        KILN_UNROLL
        for (uint32_t i = 0; i < 2 * TILES; i++) {
            float *sum = &sums[row / 2][i / 2][row % 2 * 2 + i % 2];
            *sum = KILN_FMA(products[of_blocks ? row / 2 : 0][i / 2][row % 2 * 2 + i % 2], of_row, *sum);
        }
    }
}

/* As multiply_step, of a step whose scales and zeros are in a panel: of one group, or of groups of 32 or 64 (SMALL), of
 * which two chunks have two in a word, or one in half a word. */
template <uint32_t TILES, bool SMALL, bool NORM>
KILN_INLINE void multiply_panel_step(const kiln_gemm_w4a16_args &args, float (*sums)[TILES][4],
                                     row_norm<TILES, NORM> *norm, row_tile<TILES> *tiles, row_tile<TILES> *a,
                                     const panel *groups, const row_sources<TILES> &from, uint32_t k, uint32_t nearer) {
    const uint32_t first = (k >> args.group_log2) % PANEL_GROUPS;
    const bool by_chunk = SMALL && args.group_log2 == 5;
    const panel_row *scales = groups->scales + kiln_thread() % 32 / 4, *zeros = scales + COLS;
    row_products<TILES> products;
    KILN_UNROLL
    for (uint32_t c = 0; c < STEP / CHUNK; c++) {
        const uint32_t t = c / TILE_CHUNKS, word = first / 2 + (by_chunk ? t : 0);
        const uint32_t half = (by_chunk ? c % TILE_CHUNKS : SMALL ? t : first % 2) ? HIGH_HALF : LOW_HALF;
        norm_chunk(norm, &a[t], c % TILE_CHUNKS, k + c * CHUNK);
        if (SMALL) products = row_products<TILES>();
        const bool begins = SMALL || c == 0, ends = SMALL || c + 1 == STEP / CHUNK;
        if (begins) products = row_products<TILES>();
        multiply_chunk(&products, tiles[t], a[t], c % TILE_CHUNKS);
        if (ends) add_panel_products<TILES>(sums, products.of, true, scales, word, half);
        if (args.zeros) {
            total_chunk(&products, a[t], c % TILE_CHUNKS);
            if (ends) add_panel_products<TILES>(sums, &products.totals, false, zeros, word, half);
        }
        if ((c + 1) % TILE_CHUNKS) continue;
        refill_weights(args, tiles[t].weights, from, t, (uint32_t)args.k);
        refill_a(args, &a[t], from, t, nearer);
        __syncwarp(); /* as in multiply_step */
    }
}

/* Adds to the sums all products of a warp, of whole steps. While a panel is used, the next is copied.
 */
template <uint32_t TILES, bool SMALL, bool NORM>
KILN_INLINE void multiply_panels(const kiln_gemm_w4a16_args &args, float (*sums)[TILES][4], row_norm<TILES, NORM> *norm,
                                 panel *panels) {
    enum : uint32_t { STEPS = 2, A_STEPS = NORM ? 1 : STEPS };
    row_sources<TILES> from = row_sources_of<TILES>(args, kiln_tile(), kiln_thread() / 32 * STEP);
    const uint32_t step = blockDim.x / 32 * STEP, depth = PANEL_GROUPS << args.group_log2, end = (uint32_t)args.k;
    row_tile<TILES> tiles[STEPS][STEP_TILES] = {};
    fetch_factors(args, *norm);
    fetch_panel(args, panels, 0);
    KILN_UNROLL
    for (uint32_t s = 0; s < STEPS; s++, advance(&from, step)) {
        KILN_UNROLL
        for (uint32_t t = 0; t < STEP_TILES; t++) {
            refill_weights(args, tiles[s][t].weights, from, t, (uint32_t)args.k);
            if (s < A_STEPS) refill_a(args, &tiles[s][t], from, t, 0);
        }
    }
    KILN_LOOP
    for (uint32_t first = 0; first < end; first += STEPS * step) { /* of the block's */
        const uint32_t next = first + depth;
        if (first % depth == 0) {
            kiln_sm80_cp_async_commit();
            kiln_sm80_cp_async_wait<0>();
            kiln_barrier();
            if (next < end) fetch_panel(args, panels + next / depth % 2, next >> args.group_log2);
        }
        KILN_UNROLL
        for (uint32_t s = 0; s < STEPS; s++, advance(&from, step)) {
            const uint32_t k = from.k - STEPS * step;
            if (k >= end) continue;
            multiply_panel_step<TILES, SMALL>(args, sums, norm, tiles[s], tiles[s % A_STEPS],
                                              panels + first / depth % 2, from, k, (STEPS - A_STEPS) * step);
        }
    }
    kiln_barrier();
}

/* Adds to the sums all products of a warp. */
template <uint32_t TILES, row_kind KIND, bool NORM>
KILN_INLINE void multiply_rows(const kiln_gemm_w4a16_args &args, float (*sums)[TILES][4], row_norm<TILES, NORM> *norm) {
    enum : uint32_t { STEPS = row_traits<TILES, KIND>::STEPS, GROUPS = row_traits<TILES, KIND>::GROUPS };
    enum : uint32_t { A_STEPS = NORM ? 1 : STEPS }; /* a kernel that normalises rows has no registers for more of a */
    row_sources<TILES> from = row_sources_of<TILES>(args, kiln_tile(), kiln_thread() / 32 * STEP);
    const uint32_t step = blockDim.x / 32 * STEP, end = (uint32_t)args.k + STEPS * step;
    row_tile<TILES> tiles[STEPS][STEP_TILES] = {};
    row_group groups[STEPS][GROUPS] = {};
    KILN_UNROLL
    for (uint32_t s = 0; s < STEPS; s++, advance(&from, step)) {
        KILN_UNROLL
        for (uint32_t t = 0; t < STEP_TILES; t++) {
            refill_weights(args, tiles[s][t].weights, from, t, (uint32_t)args.k);
            if (s < A_STEPS) refill_a(args, &tiles[s][t], from, t, 0);
        }
        refill_groups<TILES, GROUPS>(args, groups[s], from, KIND != PLAIN, (uint32_t)args.k);
    }
    if (NORM) {
        fetch_factors(args, *norm);
        kiln_sm80_cp_async_commit();
        kiln_sm80_cp_async_wait<0>();
        kiln_barrier();
    }
    KILN_LOOP
    while (from.k < end) {
        KILN_UNROLL
        for (uint32_t s = 0; s < STEPS; s++, advance(&from, step)) {
            if (from.k >= end) return;
            multiply_step<TILES, KIND>(args, sums, norm, tiles[s], tiles[s % A_STEPS], groups[s], from,
                                       from.k - STEPS * step, (STEPS - A_STEPS) * step);
        }
    }
}

/* Writes a warp's sums to where the block adds them up. */
template <uint32_t TILES> KILN_INLINE void give_sums(const float (*sums)[TILES][4], warp_sums<TILES> *to) {
    const uint32_t lane = kiln_thread() % 32;
    KILN_UNROLL
    for (uint32_t i = 0; i < BLOCKS * TILES * 2; i++) {
        const float *sum = sums[i / 2 / TILES][i / 2 % TILES] + i % 2 * 2;
        const uint32_t col = i / 2 / TILES * KILN_W4A16_TILE_ROWS + i % 2 * 8 + lane / 4;
        *(float2 *)(to->of[i / 2 % TILES][col] + place_of_row(col, lane % 4 * 2)) = make_float2(sum[0], sum[1]);
    }
}

/* The sum of all warps' sums of an element. */
template <uint32_t TILES> KILN_INLINE float block_sum(const warp_sums<TILES> *shared, uint32_t row, uint32_t col) {
    float sum = 0.0f;
    KILN_UNROLL
    for (uint32_t w = 0; w < 16 / TILES; w++)
        if (w < blockDim.x / 32) sum += shared[w].of[row / 8][col][place_of_row(col, row % 8)];
    return sum;
}

/* Writes a warp's sums of squares behind all sums: four lanes have parts of a row. */
template <uint32_t TILES> KILN_INLINE void give_squares(const row_norm<TILES, true> &norm, warp_sums<TILES> *shared) {
    const uint32_t lane = kiln_thread() % 32;
    float *squares = (float *)(shared + blockDim.x / 32) + kiln_thread() / 32 * TILES * 8;
    KILN_UNROLL
    for (uint32_t i = 0; i < TILES; i++) {
        float sum = norm.squares[i];
        sum += kiln_shuffle_xor(sum, 1);
        sum += kiln_shuffle_xor(sum, 2);
        if (lane % 4 == 0) squares[i * 8 + lane / 4] = sum;
    }
}
template <uint32_t TILES> KILN_INLINE void give_squares(const row_norm<TILES, false> &, warp_sums<TILES> *) {}

/* What a row's sums are multiplied with. */
template <uint32_t TILES>
KILN_INLINE float row_factor(const kiln_gemm_w4a16_args &args, const warp_sums<TILES> *shared, uint32_t row) {
    const float *squares = (const float *)(shared + blockDim.x / 32) + row;
    float sum = 0.0f;
    KILN_LOOP
    for (uint32_t w = 0; w < blockDim.x / 32; w++)
        sum += squares[w * TILES * 8];
    return norm_of(&args, sum);
}

template <uint32_t TILES, bool NORM> KILN_INLINE void gemm_w4a16_mma_rows(const kiln_gemm_w4a16_rows_args &all) {
    const kiln_gemm_w4a16_args &args = all.plain;
    extern __shared__ __align__(16) uint8_t dynamic[];
    uint8_t *of_warps = dynamic + (NORM ? (uint32_t)args.k * (uint32_t)sizeof(kiln_element) : 0);
    warp_sums<TILES> *shared = (warp_sums<TILES> *)of_warps;
    const uint32_t warp = kiln_thread() / 32;
    float sums[BLOCKS][TILES][4] = {};
    row_norm<TILES, NORM> norm = {};
    if constexpr (NORM) norm.factors = kiln_sm80_shared(dynamic);
    const bool plain = __CUDA_ARCH__ >= (TILES == 1 ? 900 : 800); /* elsewhere WHOLE does it in a smaller image */
    const bool panels = __CUDA_ARCH__ >= (TILES == 1 ? 800 : 900);
    if (kiln_block()) return;
    if (panels && all.panels && args.group_log2 < STEP_LOG2)
        multiply_panels<TILES, true>(args, sums, &norm, (panel *)of_warps);
    else if (!NORM && __CUDA_ARCH__ >= 900 && all.panels)
        multiply_panels<TILES, false>(args, sums, &norm, (panel *)of_warps);
    else if (args.group_log2 < STEP_LOG2 || args.k % STEP)
        multiply_rows<TILES, ANY>(args, sums, &norm);
    else if (plain && !args.zeros && (NORM || !args.pre_scale))
        multiply_rows<TILES, PLAIN>(args, sums, &norm);
    else
        multiply_rows<TILES, WHOLE>(args, sums, &norm);

    give_sums(sums, shared + warp);
    give_squares(norm, shared);
    kiln_barrier();
    const uint32_t cols_log2 = columns_log2(args);
    KILN_LOOP
    for (uint32_t i = kiln_thread(); i < TILES * 8 << cols_log2; i += blockDim.x) {
        const uint32_t row = i >> cols_log2, col = i & (1u << cols_log2) - 1;
        const uint64_t d_col = ((uint64_t)kiln_tile() << cols_log2) + col;
        if (row >= (uint64_t)args.m || d_col >= (uint64_t)args.n) continue;
        const float factor = NORM ? row_factor(args, shared, row) : 1.0f;
        const float sum = block_sum(shared, row, col) * factor;
        if (args.paired)
            finish_pair(&args, sum, block_sum(shared, row, col + KILN_W4A16_TILE_ROWS) * factor, row, d_col);
        else
            finish_element(&args, sum, row, d_col);
    }
}

/* Bounds by the warps that a multiprocessor is to have registers for, of all its blocks. */
#pragma push_macro("KILN_ENTRY_HEAD")
#undef KILN_ENTRY_HEAD

#define KILN_ENTRY_HEAD extern "C" __global__ __launch_bounds__(16 * 32, 1) void
KILN_ENTRY(gemm_w4a16_mma_rows_8, kiln_gemm_w4a16_rows_args) {
    gemm_w4a16_mma_rows<1, false>(args);
}
#ifdef KILN_PART_bf16
KILN_ENTRY(gemm_w4a16_mma_norm_8, kiln_gemm_w4a16_rows_args) {
    gemm_w4a16_mma_rows<1, true>(args);
}
#endif
#undef KILN_ENTRY_HEAD

#define KILN_ENTRY_HEAD extern "C" __global__ __launch_bounds__(12 * 32, 1) void
KILN_ENTRY(gemm_w4a16_mma_rows_16, kiln_gemm_w4a16_rows_args) {
    gemm_w4a16_mma_rows<2, false>(args);
}
#pragma pop_macro("KILN_ENTRY_HEAD")

#endif
