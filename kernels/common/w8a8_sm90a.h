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
 * The end of a tile: a thread has of each 8 columns two elements of two rows, gives them their scales, adds the bias,
 * rounds, and four threads of a row exchange their words by shuffles, so that rows are written by whole sectors.
 * Activations, tiles beyond d's last columns, what is not aligned and partial sums go another way, piece by piece.
 *
 * The includer defines, after the portable kernels, `unit`:
 *   sums                       int32_t or float: what wgmma adds in
 *   whole(args)                whether the products of all of k are added up by wgmma
 *   multiply<COLS>(sums, a, b, add)
 *   value(sums)                what they are as f32 */
#ifndef KILN_KERNELS_COMMON_W8A8_SM90A_H
#define KILN_KERNELS_COMMON_W8A8_SM90A_H

#include "kernels/common/matmul_sm90a.h"
#include "kernels/common/w8a8_gpu.h"
#include "kernels/common/w8a8_mapped_args.h"
#include "kernels/common/w8a8_sums.h"

static_assert(KILN_TENSOR_MAP_FITS_SM90(offsetof(kiln_w8a8_mapped_args, a)), "the offset of tensor maps");

enum : uint32_t { SCALE_THREADS = WARPGROUP - 32 /* that bring scales */ };

/* Behind the barriers are the scales of each stage: of its rows of a, then of b. */
template <uint32_t COLS_, uint32_t STAGES_, uint32_t CLUSTER_>
struct w8a8_shape : matmul_shape<1, COLS_, STAGES_, CLUSTER_> {
    enum : uint32_t {
        SCALES = TILE_ROWS + COLS_,
        SCALES_EACH = (SCALES + SCALE_THREADS - 1) / SCALE_THREADS, /* of a thread that brings them */
        PART = COLS_ < 128 ? COLS_ : 128 /* columns whose products of a stage are made at a time */
    };
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
KILN_INLINE void load_scales(float *values, const kiln_w8a8_args &args, const work &w, uint32_t step) {
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
        load_scales<S>(values, args, w, 0);
        KILN_LOOP
        for (uint32_t step = 0; step < w.steps; step++) {
            load_scales<S>(next, args, w, step + 1 < w.steps ? step + 1 : step);
            kiln_sm90a_mbarrier_wait(shared + S::EMPTY + at.stage * BARRIER_BYTES, at.parity ^ 1);
            KILN_UNROLL
            for (uint32_t i = 0; i < S::SCALES_EACH; i++) {
                const uint32_t row = thread + i * SCALE_THREADS;
                if (row < S::SCALES) scales[at.stage * S::SCALES + row] = values[i];
                values[i] = next[i];
            }
            kiln_sm90a_mbarrier_arrive(shared + S::FULL + at.stage * BARRIER_BYTES);
            advance<S>(&at);
        }
    }
}

/* ---- Sums that are taken over group by group ---- */

/* Adds the products of a stage with S::PART columns. `scales`: of the stage, if they are of groups, those of b from the
 * columns' first on. */
template <class S, class unit>
KILN_INLINE void take_products(typename unit::sums *sums, const typename unit::sums *products, const float *a_scales,
                               const float *b_scales, bool grouped) {
    if (!grouped) {
        KILN_UNROLL
        for (uint32_t i = 0; i < S::PART / 2; i++)
            w8a8_add(&sums[i], unit::value(products[i]), 1.0f);
        return;
    }
    const float low = a_scales[0], high = a_scales[8];
    KILN_UNROLL
    for (uint32_t j = 0; j < S::PART / 8; j++) {
        const float2 right = *(const float2 *)&b_scales[8 * j];
        w8a8_add(&sums[4 * j], unit::value(products[4 * j]), low * right.x);
        w8a8_add(&sums[4 * j + 1], unit::value(products[4 * j + 1]), low * right.y);
        w8a8_add(&sums[4 * j + 2], unit::value(products[4 * j + 2]), high * right.x);
        w8a8_add(&sums[4 * j + 3], unit::value(products[4 * j + 3]), high * right.y);
    }
}

template <class S, class unit>
KILN_INLINE void add_groups(typename unit::sums *sums, const kiln_w8a8_args &args, const float *scales, uint32_t shared,
                            place *at, uint32_t steps) {
    const uint32_t row = (kiln_thread() - WARPGROUP) / 32 * 16 + kiln_thread() % 32 / 4;
    KILN_LOOP
    for (uint32_t step = 0; step < steps; step++) {
        const float *own = scales + at->stage * S::SCALES;
        KILN_UNROLL
        for (uint32_t part = 0; part < S::COLS / S::PART; part++) {
            typename unit::sums products[S::PART / 2];
            begin_products<S, unit, S::PART>(products, shared, *at, part * S::PART, false);
            kiln_sm90a_wgmma_wait<0>();
            kiln_sm90a_wgmma_hold<S::PART / 2>(products);
            take_products<S, unit>(sums + part * S::PART / 2, products, own + row,
                                   own + TILE_ROWS + part * S::PART + own_col(), args.grouped);
        }
        __syncwarp(); /* all lanes have read their scales */
        release<S>(shared, at->stage, true);
        advance<S>(at);
    }
}

/* ---- The end of a tile ---- */

/* How the sums of a tile become elements of d. */
struct ending {
    bool scaled;  /* the sums have their scales */
    bool integer; /* they are as wgmma makes them */
    bool aligned; /* pieces can be written, and read of the bias, as they are */
};

KILN_INLINE bool is_aligned(const kiln_w8a8_args &args) {
    return !(((uint64_t)args.d | (uint64_t)args.d_stride * sizeof(kiln_element)) % KILN_VECTOR_BYTES) &&
           !((uint64_t)args.bias % (2 * sizeof(kiln_element)));
}

/* The scale of a row's codes where none is of a group, so that there is one column of them; 1 where the sums have
 * theirs. A row beyond the last has the last's. */
KILN_INLINE float whole_scale(const kiln_w8a8_scales &scales, uint32_t row, int64_t rows, bool scaled) {
    const uint32_t last = (uint32_t)rows - 1, at = row < last ? row : last;
    return scaled ? 1.0f : scales.values[scales.rows_log2 < 32 ? at >> scales.rows_log2 : 0];
}

/* The scales of a piece's columns, of which the first is `col`. */
KILN_INLINE void column_scales(float *values, const kiln_w8a8_args &args, uint32_t col, bool scaled) {
    KILN_UNROLL
    for (uint32_t i = 0; i < PIECE; i++)
        values[i] = whole_scale(args.b_scales, col + i / 2 * 8 + i % 2, args.n, scaled);
}

template <class unit>
KILN_INLINE void scale_piece(float *values, const typename unit::sums *sums, const ending &end, float left,
                             const float *right) {
    KILN_UNROLL
    for (uint32_t i = 0; i < PIECE; i++)
        values[i] = (end.integer ? unit::value(sums[i]) : w8a8_f32(sums[i])) * (left * right[i]);
}

/* The pieces of a tile that lies within d's columns, without an activation. */
template <class S, class unit>
KILN_INLINE void write_whole(const kiln_w8a8_args &args, const typename unit::sums *sums, const work &w,
                             const ending &end) {
    const uint32_t row = own_row(w);
    const float left[2] = {whole_scale(args.a_scales, row, args.m, end.scaled),
                           whole_scale(args.a_scales, row + 8, args.m, end.scaled)};
    kiln_element *d = (kiln_element *)args.d + row * (uint64_t)args.d_stride + w.col;
    kiln_element *const to[2] = {d, d + 8 * args.d_stride};
    KILN_UNROLL
    for (uint32_t part = 0; part < S::COLS / PART_COLS; part++) {
        const uint32_t col = w.col + part * PART_COLS + own_col();
        float right[PIECE], bias[PIECE] = {};
        column_scales(right, args, col, end.scaled);
        if (args.bias) read_piece(bias, (const kiln_element *)args.bias + col);
        KILN_UNROLL
        for (uint32_t lower = 0; lower < 2; lower++) {
            typename unit::sums piece[PIECE];
            float values[PIECE];
            take_piece(piece, sums, part, lower);
            scale_piece<unit>(values, piece, end, left[lower], right);
            KILN_UNROLL
            for (uint32_t i = 0; i < PIECE; i++)
                values[i] = KILN_FMA(args.scale, values[i], bias[i]);
            write_piece(to[lower] + part * PART_COLS, values, row + 8 * lower < (uint32_t)args.m);
        }
    }
}

/* What is done to a piece, of whose columns the first is `col`, before it is rounded. */
KILN_INLINE void finish_piece(const kiln_w8a8_args &args, float *values, uint32_t col) {
    const kiln_element *bias = (const kiln_element *)args.bias;
    KILN_UNROLL
    for (uint32_t i = 0; i < PIECE; i++) {
        const uint32_t at = col + i / 2 * 8 + i % 2;
        const bool biased = bias && at < (uint32_t)args.n;
        values[i] = KILN_FMA(args.scale, values[i], biased ? kiln_element_to_f32(bias[at]) : 0.0f);
    }
    if (!args.gated) return;
    KILN_UNROLL
    for (uint32_t i = 0; i < PIECE; i++)
        values[i] = kiln_gated(values[i], args.bound, args.coefficients, KILN_W8A8_COEFFICIENTS);
}

/* Writes a piece as far as d reaches, or into the partial sums where blocks share k. */
KILN_INLINE void write_elements(const kiln_w8a8_args &args, const float *values, uint32_t split, uint32_t row,
                                uint32_t col) {
    if (row >= (uint32_t)args.m) return;
    kiln_element *d = (kiln_element *)args.d + row * (uint64_t)args.d_stride;
    float *partials = args.partials;
    partials += (split * (uint64_t)args.m + row) * (uint64_t)args.n;
    KILN_UNROLL
    for (uint32_t i = 0; i < PIECE; i++) {
        const uint32_t at = col + i / 2 * 8 + i % 2;
        if (at >= (uint32_t)args.n) continue;
        if (args.splits > 1)
            partials[at] = values[i];
        else
            d[at] = kiln_element_from_f32(values[i]);
    }
}

template <class S, class unit>
KILN_INLINE void write_tile(const kiln_w8a8_args &args, const typename unit::sums *sums, const work &w,
                            const ending &end) {
    if (end.aligned && !args.gated && w.col + S::COLS <= (uint32_t)args.n) {
        write_whole<S, unit>(args, sums, w, end);
        return;
    }
    enum : uint32_t { PIECES = S::COLS / PART_COLS * 2 };
    typename unit::sums piece[PIECE];
    KILN_LOOP
    for (uint32_t i = 0; i < PIECES; i++) {
        KILN_UNROLL
        for (uint32_t j = 0; j < PIECES; j++) /* registers have no index */
            if (j == i) take_piece(piece, sums, j / 2, j % 2);
        const uint32_t row = own_row(w) + i % 2 * 8, first = w.col + i / 2 * PART_COLS, col = first + own_col();
        float values[PIECE], right[PIECE];
        column_scales(right, args, col, end.scaled);
        scale_piece<unit>(values, piece, end, whole_scale(args.a_scales, row, args.m, end.scaled), right);
        if (args.splits == 1) finish_piece(args, values, col);
        if (end.aligned && first + PART_COLS <= (uint32_t)args.n)
            write_piece((kiln_element *)args.d + row * (uint64_t)args.d_stride + first, values, row < (uint32_t)args.m);
        else
            write_elements(args, values, w.split, row, col);
    }
}

/* ---- The kernels ---- */

template <class S, class unit>
KILN_INLINE void multiply_tiles(const kiln_w8a8_mapped_args &mapped, const float *scales, uint32_t shared,
                                uint32_t rank) {
    const kiln_w8a8_args &args = mapped.plain;
    const uint32_t count = work_count<S>(args);
    const bool whole = unit::whole(mapped);
    const ending end = {args.grouped != 0, whole, args.splits == 1 && is_aligned(args)};
    place at = {0, 0};
    typename unit::sums sums[S::COLS / 2];
    KILN_LOOP
    for (uint32_t number = blockIdx.x / S::CLUSTER; number < count; number += gridDim.x / S::CLUSTER) {
        work w = work_of<S>(args, number, rank);
        KILN_UNROLL
        for (uint32_t i = 0; i < S::COLS / 2; i++)
            sums[i] = 0;
        kiln_sm90a_wgmma_hold<S::COLS / 2>(sums); /* else the assembler makes one product wait for the other */
        if (whole)
            add_products<S, unit>(sums, shared, &at, w.steps);
        else
            add_groups<S, unit>(sums, args, scales, shared, &at, w.steps);
        write_tile<S, unit>(args, sums, w, end);
    }
}

template <class S, class unit> KILN_INLINE void w8a8_wgmma(const kiln_w8a8_mapped_args &args) {
    const bool grouped = args.plain.grouped;
    matmul<S>(
        args, grouped ? 1 + SCALE_THREADS : 1,
        [&](uint32_t shared, uint8_t *stages, uint32_t rank) {
            if (grouped) bring_scales<S>(args.plain, (float *)(stages + S::END), shared, rank);
        },
        [&](uint32_t shared, uint8_t *stages, uint32_t rank) {
            multiply_tiles<S, unit>(args, (const float *)(stages + S::END), shared, rank);
        });
}

#endif
