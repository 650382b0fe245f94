/* The kernels of gemm_int8 and gemm_fp8 for 8 or 16 rows of a by mma.sync m16n8k32 of bytes, sm_80 and later, where
 * rows of a and b are 16-byte aligned and k is a multiple of 16. A block does 16 or 32 columns of d; its 8 warps share
 * k and add up their sums in shared memory. Rows of b are the first factor of mma.sync and those of a the second, and
 * nothing goes through shared memory: a lane's 16 bytes of a row are, with k in another order that is the same for both
 * factors, its part of two fragments. What comes next is on its way while these are multiplied.
 *
 * The includer defines, after the portable kernels, `unit`:
 *   sums                       int32_t or float: what mma adds in
 *   TWO_LEVEL                  whether its results are taken over group by group where scales are not of groups either
 *   mma(sums, a, b)
 *   first(), value(sums)       what the products of a group begin with, and what they are then as f32 */
#ifndef KILN_KERNELS_COMMON_W8A8_MMA_ROWS_H
#define KILN_KERNELS_COMMON_W8A8_MMA_ROWS_H

#include "kernels/arch/sm80_bytes.h"
#include "kernels/common/w8a8_gpu.h"
#include "kernels/common/w8a8_sums.h"

enum : uint32_t {
    WARPS = KILN_BLOCK / 32,
    CHUNK = 64, /* codes of k of which a warp's lanes have 16 bytes each: two fragments */
    PER_GROUP = KILN_W8A8_GROUP / CHUNK
};

/* TILES times 8 rows of a, BLOCKS times 16 of b, and CHUNKS chunks of k at a time: whole groups. A lane has of each 8
 * rows one, and results of rows lane / 4 and lane / 4 + 8 of each 16 of b, and of 2 of each 8 of a. */
template <uint32_t TILES, uint32_t BLOCKS, uint32_t CHUNKS> struct few_rows {
    enum : uint32_t { COLS = 16 * BLOCKS, STEP = CHUNK * CHUNKS, GROUPS = STEP / KILN_W8A8_GROUP };
    const uint8_t *a[TILES], *b[2 * BLOCKS];
    const float *a_scales[2 * TILES], *b_scales[2 * BLOCKS];
    struct chunks {
        kiln_vector a[CHUNKS][TILES], b[CHUNKS][2 * BLOCKS];
        float a_scales[GROUPS][2 * TILES], b_scales[GROUPS][2 * BLOCKS];
    };
    struct sums { /* of the block's warps, in shared memory: their bits */
        uint32_t of[WARPS][TILES][COLS][8];
    };
};

/* Codes from k on, and their groups' scales, if they have any; zeros from `end` on, which is a multiple of a vector. */
template <uint32_t TILES, uint32_t BLOCKS, uint32_t CHUNKS>
KILN_INLINE void load_chunks(typename few_rows<TILES, BLOCKS, CHUNKS>::chunks *to,
                             const few_rows<TILES, BLOCKS, CHUNKS> &rows, const kiln_w8a8_args &args, uint32_t k,
                             uint32_t end) {
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
    KILN_UNROLL
    for (uint32_t g = 0; g < rows.GROUPS; g++) {
        uint32_t group = k / KILN_W8A8_GROUP + g;
        bool present = args.grouped && group * KILN_W8A8_GROUP < (uint32_t)args.k;
        KILN_UNROLL
        for (uint32_t i = 0; i < 2 * BLOCKS; i++)
            kiln_sm80_load_f32(&to->b_scales[g][i], rows.b_scales[i] + group * args.b_scales.step, present);
        KILN_UNROLL
        for (uint32_t i = 0; i < 2 * TILES; i++)
            kiln_sm80_load_f32(&to->a_scales[g][i], rows.a_scales[i] + group * args.a_scales.step, present);
    }
}

/* Adds the products of a group's chunks. */
template <class unit, uint32_t TILES, uint32_t BLOCKS, uint32_t CHUNKS>
KILN_INLINE void multiply_group(typename unit::sums (*sums)[TILES][4],
                                const typename few_rows<TILES, BLOCKS, CHUNKS>::chunks &of, uint32_t group) {
    KILN_UNROLL
    for (uint32_t c = group * PER_GROUP; c < (group + 1) * PER_GROUP; c++) {
        KILN_UNROLL
        for (uint32_t block = 0; block < BLOCKS; block++) {
            const uint32_t *low = of.b[c][2 * block].words, *high = of.b[c][2 * block + 1].words;
            KILN_UNROLL
            for (uint32_t half = 0; half < 4; half += 2) {
                const uint32_t fragment[4] = {low[half], high[half], low[half + 1], high[half + 1]};
                KILN_UNROLL
                for (uint32_t i = 0; i < TILES; i++)
                    unit::mma(sums[block][i], fragment, of.a[c][i].words + half);
            }
        }
    }
}

/* Adds the products of all chunks. Sums of groups are f32, those of all of k what mma adds in. */
template <class unit, uint32_t TILES, uint32_t BLOCKS, uint32_t CHUNKS>
KILN_INLINE void add_chunks(typename unit::sums (*sums)[TILES][4],
                            const typename few_rows<TILES, BLOCKS, CHUNKS>::chunks &of, bool grouped) {
    const bool whole = !grouped && !unit::TWO_LEVEL;
    KILN_UNROLL
    for (uint32_t g = 0; g < CHUNKS / PER_GROUP; g++) {
        typename unit::sums products[BLOCKS][TILES][4];
        KILN_UNROLL
        for (uint32_t i = 0; i < BLOCKS * TILES * 4; i++) {
            const uint32_t block = i / (TILES * 4), tile = i / 4 % TILES, r = i % 4;
            products[block][tile][r] = whole ? sums[block][tile][r] : unit::first();
        }
        multiply_group<unit, TILES, BLOCKS, CHUNKS>(products, of, g);
        KILN_UNROLL
        for (uint32_t i = 0; i < BLOCKS * TILES * 4; i++) {
            const uint32_t block = i / (TILES * 4), tile = i / 4 % TILES, r = i % 4;
            float factor = grouped ? of.a_scales[g][2 * tile + r % 2] * of.b_scales[g][2 * block + r / 2] : 1.0f;
            if (whole)
                sums[block][tile][r] = products[block][tile][r];
            else
                w8a8_add(&sums[block][tile][r], unit::value(products[block][tile][r]), factor);
        }
    }
}

template <class unit, uint32_t TILES, uint32_t BLOCKS, uint32_t CHUNKS>
KILN_INLINE void w8a8_mma_rows(const kiln_w8a8_args &args, typename few_rows<TILES, BLOCKS, CHUNKS>::sums *shared) {
    typedef typename unit::sums sum_type;
    few_rows<TILES, BLOCKS, CHUNKS> rows;
    uint32_t lane = kiln_thread() % 32, warp = kiln_thread() / 32;
    uint64_t first = (uint64_t)kiln_tile() * rows.COLS, last_row = (uint64_t)args.m - 1,
             last_col = (uint64_t)args.n - 1;
    if (kiln_block()) return; /* the whole block */
    KILN_UNROLL
    for (uint32_t i = 0; i < 2 * BLOCKS; i++) { /* beyond the last one: that once more, for nothing; of a as well */
        uint64_t col = first + lane / 4 + 8 * i;
        if (col > last_col) col = last_col;
        rows.b[i] = args.b + col * (uint64_t)args.b_stride + lane % 4 * KILN_VECTOR_BYTES;
        rows.b_scales[i] = args.b_scales.values + (col >> args.b_scales.rows_log2) * (uint64_t)args.b_scales.cols;
    }
    KILN_UNROLL
    for (uint32_t i = 0; i < TILES; i++) {
        uint64_t row = lane / 4 + 8 * i;
        rows.a[i] = args.a + (row < last_row ? row : last_row) * (uint64_t)args.a_stride + lane % 4 * KILN_VECTOR_BYTES;
    }
    KILN_UNROLL
    for (uint32_t i = 0; i < 2 * TILES; i++) {
        uint64_t row = i / 2 * 8 + lane % 4 * 2 + i % 2;
        if (row > last_row) row = last_row;
        rows.a_scales[i] = args.a_scales.values + (row >> args.a_scales.rows_log2) * (uint64_t)args.a_scales.cols;
    }

    typename few_rows<TILES, BLOCKS, CHUNKS>::chunks even, odd;
    sum_type sums[BLOCKS][TILES][4] = {};
    const uint32_t own = lane % 4 * KILN_VECTOR_BYTES, step = WARPS * rows.STEP;
    const uint32_t end = (uint32_t)args.k > own ? (uint32_t)args.k - own : 0;
    load_chunks(&even, rows, args, warp * rows.STEP, end);
    KILN_LOOP
    for (uint32_t k = warp * rows.STEP; k < (uint32_t)args.k; k += 2 * step) {
        load_chunks(&odd, rows, args, k + step, end);
        add_chunks<unit, TILES, BLOCKS, CHUNKS>(sums, even, args.grouped);
        load_chunks(&even, rows, args, k + 2 * step, end);
        add_chunks<unit, TILES, BLOCKS, CHUNKS>(sums, odd, args.grouped);
    }

    KILN_UNROLL
    for (uint32_t i = 0; i < BLOCKS * TILES; i++) {
        const sum_type *sum = sums[i / TILES][i % TILES];
        sum_type(*to)[8] = (sum_type(*)[8])shared->of[warp][i % TILES][i / TILES * 16 + lane / 4];
        to[0][lane % 4 * 2] = sum[0];
        to[0][lane % 4 * 2 + 1] = sum[1];
        to[8][lane % 4 * 2] = sum[2];
        to[8][lane % 4 * 2 + 1] = sum[3];
    }
    kiln_barrier();
    KILN_LOOP
    for (uint32_t i = kiln_thread(); i < rows.COLS * TILES * 8; i += KILN_BLOCK) {
        uint64_t row = i / rows.COLS, col = first + i % rows.COLS;
        if (row >= (uint64_t)args.m || col >= (uint64_t)args.n) break;
        sum_type whole = 0;
        float scaled = 0.0f;
        KILN_UNROLL
        for (uint32_t w = 0; w < WARPS; w++) {
            sum_type sum = ((const sum_type *)shared->of[w][row / 8][i % rows.COLS])[row % 8];
            whole += sum;
            scaled += w8a8_f32(sum);
        }
        if (!args.grouped)
            scaled = (float)whole * (kiln_w8a8_scale(&args.a_scales, row, 0) * kiln_w8a8_scale(&args.b_scales, col, 0));
        w8a8_finish(&args, scaled, row, col);
    }
}

#endif
