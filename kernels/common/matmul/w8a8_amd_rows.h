/* The kernel of gemm_int8 and gemm_fp8 for up to 16 rows of a by the matrix units of AMD chips, where rows of a and b
 * are 16-byte aligned and k is a multiple of 16. A block does 16 columns of d; its waves share k, of which each takes
 * whole groups of 128, and add up their sums in LDS. Nothing else goes through LDS: lanes load their parts of rows of
 * both factors as the unit takes them. What comes next is on its way while this is multiplied.
 *
 * Includers define `few`, a chip's matrix unit of 16 x 16 and what it takes of codes, from w8a8_amd_units.h: as `tile`
 * of w8a8_amd.h, but for
 *   PARTS                    vectors of a row that its lanes have, each another
 *   taken, take(codes)       16 codes as they are multiplied
 *   PRODUCTS                 that they take
 *   multiply(a, b, product, sums) */
#ifndef KILN_KERNELS_COMMON_MATMUL_W8A8_AMD_ROWS_H
#define KILN_KERNELS_COMMON_MATMUL_W8A8_AMD_ROWS_H

#include "kernels/common/matmul/w8a8_amd_units.h"
#include "kernels/common/matmul/w8a8_gpu.h"

enum : uint32_t { FEW_SIDE = 16 }; /* rows and columns of the tile */

/* Bits of the sums of a block's waves: as many of each as the block has threads. */
template <class rows> struct few_shared {
    enum : uint32_t { WAVES = KILN_BLOCK / rows::WAVE };
    uint32_t of[WAVES][KILN_BLOCK];
};

/* A lane's row of each factor, from its part on, and where the scales of its sums begin. */
template <class rows> struct few_source {
    const uint8_t *a, *b;
    const float *b_scales;
    uint32_t a_scales[rows::ELEMENTS];
    uint32_t own; /* the column of k of its part */
};

/* A lane's part of a group. */
template <class rows> struct few_group {
    enum : uint32_t { CHUNK = rows::PARTS * KILN_VECTOR_BYTES, CHUNKS = KILN_W8A8_GROUP / CHUNK };
    kiln_vector a[CHUNKS], b[CHUNKS];
    float a_scales[rows::ELEMENTS], b_scale;
};

template <class rows> KILN_INLINE few_source<rows> few_start(const kiln_w8a8_args &args, uint64_t first_col) {
    few_source<rows> of;
    const uint32_t lane = kiln_thread() % rows::WAVE;
    const uint64_t last_row = (uint64_t)args.m - 1, last_col = (uint64_t)args.n - 1;
    uint64_t row = lane % FEW_SIDE, col = first_col + lane % FEW_SIDE;
    if (row > last_row) row = last_row;
    if (col > last_col) col = last_col;
    of.own = lane / FEW_SIDE % rows::PARTS * KILN_VECTOR_BYTES;
    of.a = args.a + row * (uint64_t)args.a_stride;
    of.b = args.b + col * (uint64_t)args.b_stride;
    of.b_scales = args.b_scales.values + (col >> args.b_scales.rows_log2) * (uint64_t)args.b_scales.cols;
    KILN_UNROLL
    for (uint32_t r = 0; r < rows::ELEMENTS; r++) {
        uint64_t sum_row = rows::row_of(lane, r);
        if (sum_row > last_row) sum_row = last_row;
        of.a_scales[r] = (uint32_t)((sum_row >> args.a_scales.rows_log2) * (uint64_t)args.a_scales.cols);
    }
    return of;
}

/* Loads the group from k on, which begins before the end of k, and its scales if there are any; zeros from the end on.
 */
template <class rows>
KILN_INLINE void few_load(few_group<rows> *to, const few_source<rows> &of, const kiln_w8a8_args &args, uint32_t k) {
    const uint32_t end = (uint32_t)args.k;
    if (k + KILN_W8A8_GROUP <= end) {
        KILN_UNROLL
        for (uint32_t c = 0; c < to->CHUNKS; c++) {
            to->b[c] = *(const kiln_vector *)(const void *)(of.b + k + c * to->CHUNK + of.own);
            to->a[c] = *(const kiln_vector *)(const void *)(of.a + k + c * to->CHUNK + of.own);
        }
    } else {
        KILN_UNROLL
        for (uint32_t c = 0; c < to->CHUNKS; c++) {
            const uint32_t at = k + c * to->CHUNK + of.own;
            to->b[c] = to->a[c] = {};
            if (at >= end) continue;
            to->b[c] = *(const kiln_vector *)(const void *)(of.b + at);
            to->a[c] = *(const kiln_vector *)(const void *)(of.a + at);
        }
    }
    if (!args.grouped) return;
    const uint32_t group = k >> KILN_W8A8_GROUP_LOG2, a_group = group * args.a_scales.step;
    to->b_scale = of.b_scales[group * args.b_scales.step];
    KILN_UNROLL
    for (uint32_t r = 0; r < rows::ELEMENTS; r++)
        to->a_scales[r] = args.a_scales.values[of.a_scales[r] + a_group];
}

/* Adds the products of a group: to the products, or scaled to the sums. */
template <class rows>
KILN_INLINE void few_add(const few_group<rows> &of, typename rows::sums *products, float *sums, bool grouped) {
    KILN_UNROLL
    for (uint32_t c = 0; c < of.CHUNKS; c++) {
        const typename rows::taken a = rows::take(of.a[c]), b = rows::take(of.b[c]);
        KILN_UNROLL
        for (uint32_t product = 0; product < rows::PRODUCTS; product++)
            *products = rows::multiply(a, b, product, *products);
    }
    if (!grouped) return;
    KILN_UNROLL
    for (uint32_t r = 0; r < rows::ELEMENTS; r++) {
        sums[r] = KILN_FMA(rows::value((*products)[r]), of.a_scales[r] * of.b_scale, sums[r]);
        (*products)[r] = 0;
    }
}

template <class rows> KILN_INLINE void w8a8_mma_rows(const kiln_w8a8_args &args, few_shared<rows> *shared) {
    typedef typename rows::sum sum_type;
    const uint64_t first_col = (uint64_t)kiln_tile() * FEW_SIDE;
    if (kiln_block()) return; /* the whole block */
    const uint32_t lane = kiln_thread() % rows::WAVE;
    const uint32_t wave = (uint32_t)__builtin_amdgcn_readfirstlane((int)(kiln_thread() / rows::WAVE));
    const uint32_t end = (uint32_t)args.k, step = shared->WAVES * KILN_W8A8_GROUP;
    const few_source<rows> source = few_start<rows>(args, first_col);

    few_group<rows> even, odd;
    typename rows::sums products = {};
    float sums[rows::ELEMENTS] = {};
    uint32_t k = wave * KILN_W8A8_GROUP;
    if (k < end) few_load(&even, source, args, k);
    KILN_LOOP
    while (k < end) {
        if (k + step < end) few_load(&odd, source, args, k + step);
        few_add<rows>(even, &products, sums, args.grouped);
        k += step;
        if (k >= end) break;
        if (k + step < end) few_load(&even, source, args, k + step);
        few_add<rows>(odd, &products, sums, args.grouped);
        k += step;
    }

    KILN_UNROLL
    for (uint32_t r = 0; r < rows::ELEMENTS; r++) {
        const sum_type product = products[r];
        shared->of[wave][r * rows::WAVE + lane] =
            args.grouped ? kiln_bits(sums[r]) : __builtin_bit_cast(uint32_t, product);
    }
    kiln_barrier();
    const uint32_t place = kiln_thread();
    const uint64_t row = rows::row_of(place % rows::WAVE, place / rows::WAVE), col = first_col + place % FEW_SIDE;
    if (row >= (uint64_t)args.m || col >= (uint64_t)args.n) return;
    sum_type whole = 0;
    float scaled = 0.0f;
    KILN_UNROLL
    for (uint32_t w = 0; w < shared->WAVES; w++) {
        const uint32_t bits = shared->of[w][place];
        whole += __builtin_bit_cast(sum_type, bits);
        scaled += kiln_float(bits);
    }
    if (!args.grouped)
        scaled =
            rows::value(whole) * (kiln_w8a8_scale(&args.a_scales, row, 0) * kiln_w8a8_scale(&args.b_scales, col, 0));
    w8a8_finish(&args, scaled, row, col);
}

#endif
