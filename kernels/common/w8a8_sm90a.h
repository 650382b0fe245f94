/* The kernels of gemm_fp8 and gemm_int8 by wgmma, sm_90a, for rows of a and b that are 16-byte aligned: matmul_sm90a.h
 * has their structure. 128 codes of k are a stage, and so is a group that may have scales of its own.
 *
 * Where sums are taken over group by group, because scales are of groups or because a matrix unit's sums are not to be
 * longer, a warpgroup makes the products of a stage with 128 columns, waits for them, and adds them to the sums in f32,
 * while the other warpgroup's are made. (Two temporaries of 64 columns in turn, so that a warpgroup need not wait, were
 * no faster as prototypes: 1351 and 1404 TFLOP/s of e4m3 at 4096 and 8192 cubed, against 1348 and 1399.) Where scales
 * are of groups, three warps of the first warpgroup bring those of a stage's rows of a and b into shared memory, one
 * stage ahead of the one that they write, and arrive at its `full`. Elsewhere the products of all of k are added up by
 * wgmma, and get their scales at the end.
 *
 * The includer defines, after the portable kernels, `unit`:
 *   sums                       int32_t or float: what wgmma adds in
 *   whole(args)                whether the products of all of k are added up by wgmma
 *   multiply<COLS>(sums, a, b, add)
 *   value(sums)                what they are as f32 */
#ifndef KILN_KERNELS_COMMON_W8A8_SM90A_H
#define KILN_KERNELS_COMMON_W8A8_SM90A_H

#include "kernels/common/w8a8_sm90a_end.h"

static_assert(KILN_TENSOR_MAP_FITS_SM90(offsetof(kiln_w8a8_mapped_args, a)), "the offset of tensor maps");

enum : uint32_t { SCALE_THREADS = WARPGROUP - 32 /* that bring scales */ };

/* Behind the barriers are the scales of each stage: of its rows of a, then of b. Where scales are not of groups, their
 * place has those of the columns of each warpgroup's tile, and of its next one. Then comes the warps' staging. */
template <uint32_t COLS_, uint32_t STAGES_, uint32_t CLUSTER_>
struct w8a8_shape : matmul_shape<1, COLS_, STAGES_, CLUSTER_> {
    enum : uint32_t {
        SCALES = TILE_ROWS + COLS_,
        SCALES_EACH = (SCALES + SCALE_THREADS - 1) / SCALE_THREADS, /* of a thread that brings them */
        PART = COLS_ < 128 ? COLS_ : 128, /* columns whose products of a stage are made at a time */
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

/* ---- Scales ---- */

/* This thread's scales of a stage; rows beyond the last have the last's. */
template <class S>
KILN_INLINE void load_stage_scales(float *values, const kiln_w8a8_args &args, const work &w, uint32_t step) {
    const uint32_t thread = kiln_thread() - 32, group = w.begin / KILN_W8A8_GROUP + step;
    KILN_UNROLL
    for (uint32_t i = 0; i < S::SCALES_EACH; i++) {
        const uint32_t row = thread + i * SCALE_THREADS;
        const uint32_t a_row = w.row + row, b_row = w.col + row - TILE_ROWS;
        const uint32_t a_last = (uint32_t)args.m - 1, b_last = (uint32_t)args.n - 1;
        if (row < TILE_ROWS)
            values[i] = kiln_w8a8_scale(&args.a_scales, a_row < a_last ? a_row : a_last, group);
        else
            values[i] = kiln_w8a8_scale(&args.b_scales, b_row < b_last ? b_row : b_last, group);
    }
}

template <class S>
KILN_INLINE void bring_scales(const kiln_w8a8_args &args, float *scales, uint32_t shared, uint32_t rank) {
    const uint32_t count = work_count<S>(args), thread = kiln_thread() - 32;
    place at = {0, 0};
    KILN_LOOP
    for (uint32_t number = blockIdx.x / S::CLUSTER; number < count; number += gridDim.x / S::CLUSTER) {
        work w = work_of<S>(args, number, rank);
        float values[S::SCALES_EACH], next[S::SCALES_EACH];
        load_stage_scales<S>(values, args, w, 0);
        KILN_LOOP
        for (uint32_t step = 0; step < w.steps; step++) {
            load_stage_scales<S>(next, args, w, step + 1 < w.steps ? step + 1 : step);
            kiln_sm90a_mbarrier_wait(shared + S::EMPTY + at.stage * BARRIER_BYTES, at.parity ^ 1);
            KILN_UNROLL
            for (uint32_t i = 0; i < S::SCALES_EACH; i++) {
                const uint32_t row = thread + i * SCALE_THREADS;
                if (row < S::SCALES) scales[at.stage * S::SCALES + row] = values[i];
                values[i] = next[i];
            }
            __syncwarp();
            if (thread % 32 == 0) kiln_sm90a_mbarrier_arrive(shared + S::FULL + at.stage * BARRIER_BYTES);
            advance<S>(&at);
        }
    }
}

/* ---- Sums that are taken over group by group ---- */

/* Adds the products of a stage with S::PART columns: those of the two rows have factors of their own, and where COLUMNS
 * so have the columns. */
template <class S, class unit, bool COLUMNS>
KILN_INLINE void take_products(typename unit::sums *sums, const typename unit::sums *products, float low, float high,
                               const float *b_scales) {
    KILN_UNROLL
    for (uint32_t j = 0; j < S::PART / 8; j++) {
        const float2 right = COLUMNS ? *(const float2 *)&b_scales[8 * j] : make_float2(1.0f, 1.0f);
        w8a8_add(&sums[4 * j], unit::value(products[4 * j]), COLUMNS ? low * right.x : low);
        w8a8_add(&sums[4 * j + 1], unit::value(products[4 * j + 1]), COLUMNS ? low * right.y : low);
        w8a8_add(&sums[4 * j + 2], unit::value(products[4 * j + 2]), COLUMNS ? high * right.x : high);
        w8a8_add(&sums[4 * j + 3], unit::value(products[4 * j + 3]), COLUMNS ? high * right.y : high);
    }
}

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

/* Adds the products of a tile's stages group by group. `scales` are the stages', if they are of groups. `last` is done
 * while the last products are made. */
template <class S, class unit, class last_type>
KILN_INLINE void add_groups(typename unit::sums *sums, const kiln_w8a8_args &args, const float *scales, uint32_t shared,
                            place *at, uint32_t steps, last_type last) {
    const uint32_t row = (kiln_thread() - WARPGROUP) / 32 * 16 + kiln_thread() % 32 / 4;
    const bool columns = args.grouped && args.b_scales.rows_log2 < KILN_W8A8_GROUP_LOG2;
    KILN_LOOP
    for (uint32_t step = 0; step < steps; step++) {
        const float *own = scales + at->stage * S::SCALES;
        KILN_UNROLL
        for (uint32_t part = 0; part < S::COLS / S::PART; part++) {
            const float *b_scales = own + TILE_ROWS + part * S::PART;
            typename unit::sums products[S::PART / 2];
            begin_products<S, unit, S::PART>(products, shared, *at, part * S::PART, false);
            if (step + 1 == steps && (part + 1) * S::PART == S::COLS) last();
            kiln_sm90a_wgmma_wait<0>();
            kiln_sm90a_wgmma_hold<S::PART / 2>(products);
            float low = 1.0f, high = 1.0f;
            if (args.grouped) {
                const float right = columns ? 1.0f : b_scales[0];
                low = own[row] * right;
                high = own[row + 8] * right;
            }
            if (columns)
                take_products<S, unit, true>(sums + part * S::PART / 2, products, low, high, b_scales + own_col());
            else
                take_products<S, unit, false>(sums + part * S::PART / 2, products, low, high, b_scales);
        }
        __syncwarp(); /* all lanes have read their scales */
        release<S>(shared, at->stage, true);
        advance<S>(at);
    }
}

/* ---- The kernels ---- */

template <class S, class unit>
KILN_INLINE void multiply_tiles(const kiln_w8a8_mapped_args &mapped, float *scales, uint32_t shared, uint32_t rank) {
    const kiln_w8a8_args &args = mapped.plain;
    const uint32_t count = work_count<S>(args), warpgroup = kiln_thread() / WARPGROUP - 1;
    const bool whole = unit::whole(mapped);
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
        auto last = [&]() {
            if (!end.scaled) load_scales(&own, args, w);
        };
        KILN_UNROLL
        for (uint32_t i = 0; i < S::COLS / 2; i++)
            sums[i] = 0;
        kiln_sm90a_wgmma_hold<S::COLS / 2>(sums); /* else the assembler makes one product wait for the other */
        if (whole)
            add_whole<S, unit>(sums, shared, &at, w.steps, last);
        else
            add_groups<S, unit>(sums, args, scales, shared, &at, w.steps, last);
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
    const bool grouped = args.plain.grouped;
    matmul<S>(
        args, grouped ? 1 + SCALE_THREADS / 32 : 1,
        [&](uint32_t shared, uint8_t *stages, uint32_t rank) {
            if (grouped) bring_scales<S>(args.plain, (float *)(stages + S::END), shared, rank);
        },
        [&](uint32_t shared, uint8_t *stages, uint32_t rank) {
            multiply_tiles<S, unit>(args, (float *)(stages + S::END), shared, rank);
        });
}

#endif
