/* The kernels of gemm_fp8 and gemm_int8 by wgmma, sm_90a, for rows of a and b that are 16-byte aligned: matmul_sm90a.h
 * has their structure. 128 codes of k are a stage, and so is a group that may have scales of its own.
 *
 * The products of all of k are added up by wgmma, and get their scales at the end, unless their sums are taken over
 * group by group: w8a8_sm90a_groups.h.
 *
 * The includer defines, after the portable kernels, `unit`:
 *   sums                       int32_t or float: what wgmma adds in
 *   AT_ONCE                    1, or QUAD: stages whose products are pending one after the other, group by group
 *   whole(args)                whether the products of all of k are added up by wgmma
 *   multiply<COLS>(sums, a, b, add)
 *   value(sums)                what they are as f32 */
#ifndef KILN_KERNELS_COMMON_MATMUL_W8A8_SM90A_H
#define KILN_KERNELS_COMMON_MATMUL_W8A8_SM90A_H

#include "kernels/arch/sm90a_wgmma.h"
#include "kernels/common/matmul/w8a8_sm90a_end.h"
#include "kernels/common/matmul/w8a8_sm90a_groups.h"

static_assert(KILN_TENSOR_MAP_FITS_SM90(offsetof(kiln_w8a8_mapped_args, a)), "the offset of tensor maps");

/* Behind the barriers are the scales of each stage: of its rows of a, then of b. Where scales are not of groups, their
 * place has those of the columns of each warpgroup's tile, and of its next one. Then comes the warps' staging. */
template <uint32_t COLS_, uint32_t STAGES_, uint32_t CLUSTER_>
struct w8a8_shape : matmul_shape<1, COLS_, STAGES_, CLUSTER_> {
    enum : uint32_t {
        SCALES = TILE_ROWS + COLS_,
        SCALES_EACH = (SCALES + SCALE_THREADS - 1) / SCALE_THREADS, /* of a thread that brings them */
        BLOCKS = (COLS_ + KILN_W8A8_GROUP - 1) / KILN_W8A8_GROUP,   /* of columns that may have a scale of their own */
        STAGING = matmul_shape<1, COLS_, STAGES_, CLUSTER_>::END + STAGES_ * SCALES * 4,
        STAGING_BYTES = CONSUMERS * WARPGROUP / 32 * WARP_ROWS * LINE_BYTES
    };
    static_assert(STAGES_ * SCALES >= CONSUMERS * 2 * COLS_, "room for scales of columns");
};

KILN_INLINE uint32_t batch_of(const kiln_w8a8_args &) {
    return 1;
}
KILN_INLINE bool is_early(const kiln_w8a8_mapped_args &args) {
    return args.early;
}

/* ---- The kernels ---- */

/* As add_products; `last` is done while the last products are made. */
template <class S, class unit, class last_type>
KILN_INLINE void add_whole(typename unit::sums *sums, uint32_t shared, place *at, uint32_t steps, last_type last) {
    uint32_t before = 0;
    KILN_LOOP
    for (uint32_t step = 0; step < steps; step++) {
        begin_products<S, unit, S::COLS>(sums, shared, *at, 0, true);
        kiln_sm90a_wgmma_wait<1>();
        release<S>(shared, before, step > 0);
        before = at->stage;
        advance<S>(at);
    }
    last();
    kiln_sm90a_wgmma_wait<0>();
    release<S>(shared, before, true);
}

template <class S, class unit>
KILN_INLINE void multiply_tiles(const kiln_w8a8_mapped_args &mapped, float *scales, uint32_t shared, uint32_t rank) {
    const kiln_w8a8_args &args = mapped.plain;
    const uint32_t count = work_count<S>(args), warpgroup = kiln_thread() / WARPGROUP - 1;
    const bool whole = unit::whole(mapped);
    const factors whose = factors_of(args);
    const ending end = {args.grouped != 0, whole, args.splits == 1 && is_aligned(args)};
    const bool same = end.scaled || (args.a_scales.rows_log2 >= 32 && args.b_scales.rows_log2 >= 32);
    uint8_t *staging =
        (uint8_t *)(scales + S::STAGES * S::SCALES) + (kiln_thread() - WARPGROUP) / 32 * WARP_ROWS * LINE_BYTES;
    place at = {0, 0};
    uint32_t other = 0; /* the half of the columns' scales that the tile before did not have */
    typename unit::sums sums[S::COLS / 2];
    KILN_LOOP
    for (uint32_t number = blockIdx.x / S::CLUSTER; number < count; number += gridDim.x / S::CLUSTER) {
        work w = work_of<S>(args, number, rank);
        tile_scales<S> own = {{1.0f, 1.0f}, {1.0f}};
        KILN_UNROLL
        for (uint32_t i = 0; i < S::COLS / 2; i++)
            sums[i] = 0;
        kiln_sm90a_wgmma_hold<S::COLS / 2>(sums); /* else the assembler makes one product wait for the other */
        if (whole) {
            add_whole<S, unit>(sums, shared, &at, w.steps, [&]() { load_scales(&own, args, w); });
        } else if (whose == NONE) {
            load_scales(&own, args, w);
            add_groups<S, unit, NONE>(sums, args, scales, shared, &at, w);
        } else if (whose == BLOCKS) {
            add_groups<S, unit, BLOCKS>(sums, args, scales, shared, &at, w);
        } else {
            add_groups<S, unit, COLUMNS>(sums, args, scales, shared, &at, w);
        }
        if (!end.aligned || args.gated || w.col + S::COLS > (uint32_t)args.n) {
            end_pieces<S, unit>(args, sums, w, end);
            continue;
        }
        if (same) {
            const float factors[2] = {own.rows[0] * own.cols[0], own.rows[1] * own.cols[0]};
            write_tile<S, unit, true>(args, sums, w, end, factors, scales, staging);
            continue;
        }
        float *right = scales + (warpgroup * 2 + other) * S::COLS;
        share_scales<S>(right, own);
        write_tile<S, unit, false>(args, sums, w, end, own.rows, right, staging);
        other ^= 1;
    }
}

template <class S, class unit> KILN_INLINE void w8a8_wgmma(const kiln_w8a8_mapped_args &args) {
    const bool brings = factors_of(args.plain) == COLUMNS;
    matmul<S>(
        args, brings ? 1 + SCALE_THREADS / 32 : 1,
        [&](uint32_t shared, uint8_t *stages, uint32_t rank) {
            if (brings) bring_scales<S>(args.plain, (float *)(stages + S::END), shared, rank);
        },
        [&](uint32_t shared, uint8_t *stages, uint32_t rank) {
            multiply_tiles<S, unit>(args, (float *)(stages + S::END), shared, rank);
        });
}

#endif
