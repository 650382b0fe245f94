/* gemm_fp8 and gemm_int8 of few rows by wgmma, sm_90a: wgmma_rows_1, _2 and _4, where reading b bounds the time.
 *
 * matmul_rows_sm90a.h has their structure, and w8a8_sm90a_end.h the end of a tile.
 *
 * A stage is a group that may have scales of its own. Where sums are taken over group by group, threads load the next
 * group's scales once they have used the last one's; they come while the warpgroup waits for the next stage.
 *
 * Floor: one read of b. Measured on an H100 (driver 580.159.04, 2026-11-26; cold), us, and torch in brackets: 32 x 8192
 * x 8192 of int8 27.8 (28.3 by _int_mm); as a prototype, 64 x 8192 x 8192 of e4m3 27.7 (27.9 by _scaled_mm), with
 * scales of rows and blocks 31.5. Tiles of 128 columns, three blocks of 4 stages and clusters of 4 were no faster
 * there.
 *
 * The includer defines `unit` (w8a8_sm90a.h). */
#ifndef KILN_KERNELS_COMMON_MATMUL_W8A8_SM90A_ROWS_H
#define KILN_KERNELS_COMMON_MATMUL_W8A8_SM90A_ROWS_H

#include "kernels/arch/sm90a_wgmma.h"
#include "kernels/common/matmul/matmul_rows_sm90a.h"
#include "kernels/common/matmul/w8a8_sm90a_end.h"

/* The scales of a group: of a thread's two rows and of its columns. */
template <class S> struct rows_scales { float rows[2], cols[S::COLS / 4]; };

/* Rows and columns beyond the last have the last's. `row` and `col` are the thread's first. */
template <class S>
KILN_INLINE void load_group(rows_scales<S> *scales, const kiln_w8a8_args &args, uint32_t row, uint32_t col,
                            uint32_t group) {
    const uint32_t a_last = (uint32_t)args.m - 1, b_last = (uint32_t)args.n - 1;
    KILN_UNROLL
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t at = row + 8 * i;
        scales->rows[i] = kiln_w8a8_scale(&args.a_scales, at < a_last ? at : a_last, group);
    }
    KILN_UNROLL
    for (uint32_t i = 0; i < S::COLS / 4; i++) {
        const uint32_t at = col + i / 2 * 8 + i % 2;
        scales->cols[i] = kiln_w8a8_scale(&args.b_scales, at < b_last ? at : b_last, group);
    }
}

template <class S, class unit>
KILN_INLINE void rows_groups(typename unit::sums *sums, const kiln_w8a8_args &args, uint32_t shared, const work &w,
                             uint32_t row) {
    const uint32_t col = w.col + own_col(), group = w.begin / KILN_W8A8_GROUP;
    rows_scales<S> scales;
    place at = {0, 0};
    if (args.grouped && w.steps) load_group(&scales, args, row, col, group);
    KILN_LOOP
    for (uint32_t step = 0; step < w.steps; step++) {
        typename unit::sums products[S::COLS / 2];
        rows_multiply<S, unit>(products, shared, at, false);
        kiln_sm90a_wgmma_wait<0>();
        kiln_sm90a_wgmma_hold<S::COLS / 2>(products);
        rows_release<S>(shared, at.stage);
        advance<S>(&at);
        KILN_UNROLL
        for (uint32_t i = 0; i < S::COLS / 2; i++) {
            const float factor = args.grouped ? scales.rows[i / 2 % 2] * scales.cols[i / 4 * 2 + i % 2] : 1.0f;
            w8a8_add(&sums[i], unit::value(products[i]), factor);
        }
        if (args.grouped && step + 1 < w.steps) load_group(&scales, args, row, col, group + step + 1);
    }
}

template <class S, class unit>
KILN_INLINE void rows_end(const kiln_w8a8_args &args, const typename unit::sums *sums, uint8_t *stages, uint32_t shared,
                          const work &w, uint32_t rank, uint32_t row, const ending &end) {
    if (S::PARTS > 1) rows_give<S>(sums, shared, rank);
    KILN_UNROLL
    for (uint32_t i = 0; i < S::EACH; i++) {
        const uint32_t number = rank * S::EACH + i;
        typename unit::sums piece[PIECE];
        if (S::PARTS > 1)
            rows_sum<S>(piece, stages, i, end.integer);
        else
            take_piece(piece, sums, i / 2, i % 2);
        end_piece<unit>(args, piece, w, row + number % 2 * 8, w.col + number / 2 * PART_COLS, end);
    }
}

template <class unit, uint32_t COLS, uint32_t STAGES, uint32_t PARTS>
KILN_INLINE void w8a8_wgmma_rows(const kiln_w8a8_mapped_args &args) {
    typedef rows_shape<1, false, COLS, STAGES, PARTS> S;
    matmul_rows<S>(args, [&](uint32_t shared, uint8_t *stages, uint32_t rank, const work &w) {
        const uint32_t row = kiln_thread() / 32 * 16 + kiln_thread() % 32 / 4;
        const bool whole = unit::whole(args);
        const ending end = {args.plain.grouped != 0, whole, is_aligned(args.plain)};
        typename unit::sums sums[COLS / 2] = {};
        kiln_sm90a_wgmma_hold<COLS / 2>(sums); /* else the assembler makes one product wait for the other */
        if (whole)
            rows_whole<S, unit>(sums, shared, w);
        else
            rows_groups<S, unit>(sums, args.plain, shared, w, row);
        rows_end<S, unit>(args.plain, sums, stages, shared, w, rank, row, end);
    });
}

#endif
