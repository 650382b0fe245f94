/* The end of a tile of gemm_fp8's and gemm_int8's kernels by wgmma, sm_90a (w8a8_sm90a.h, w8a8_sm90a_rows.h):
 * matmul_sm90a.h says which elements a thread has. It gives the sums their scales, where they have none yet, adds the
 * bias, takes the activation, rounds and writes.
 *
 * A whole tile without an activation is written as fast as may be, since no products are made meanwhile: a warp puts 64
 * columns of its 16 rows into shared memory by stmatrix and writes lines of 128 bytes. Scales of rows and columns are
 * loaded before the last products have been made, those of columns one by one by the threads of a warpgroup, and shared
 * by it. Activations, tiles beyond d's last columns, what is not aligned and partial sums go another way, piece by
 * piece: four threads of a row exchange their words by shuffles, so that rows are written by whole sectors.
 *
 * The includer defines `unit` (w8a8_sm90a.h). */
#ifndef KILN_KERNELS_COMMON_MATMUL_W8A8_SM90A_END_H
#define KILN_KERNELS_COMMON_MATMUL_W8A8_SM90A_END_H

#include "kernels/arch/sm90a_wgmma.h"
#include "kernels/common/matmul/matmul_sm90a.h"
#include "kernels/common/matmul/w8a8_gpu.h"
#include "kernels/common/matmul/w8a8_mapped_args.h"
#include "kernels/common/matmul/w8a8_sums.h"

enum : uint32_t {
    WARP_ROWS = 16,  /* of a tile, of a warp */
    LINE_COLS = 64,  /* that a warp writes at a time */
    LINE_BYTES = 128 /* of them, in f16 and bf16 */
};

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

template <class unit> KILN_INLINE float number_of(typename unit::sums sum, const ending &end) {
    return end.integer ? unit::value(sum) : w8a8_f32(sum);
}

/* ---- Piece by piece ---- */

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

/* Finishes this thread's piece of `row`, in the PART_COLS columns from `first` on. All lanes of the warp must call
 * this. */
template <class unit>
KILN_INLINE void end_piece(const kiln_w8a8_args &args, const typename unit::sums *piece, const work &w, uint32_t row,
                           uint32_t first, const ending &end) {
    const uint32_t col = first + own_col();
    const float left = whole_scale(args.a_scales, row, args.m, end.scaled);
    float values[PIECE];
    KILN_UNROLL
    for (uint32_t i = 0; i < PIECE; i++)
        values[i] = number_of<unit>(piece[i], end) *
                    (left * whole_scale(args.b_scales, col + i / 2 * 8 + i % 2, args.n, end.scaled));
    if (args.splits == 1) finish_piece(args, values, col);
    if (end.aligned && first + PART_COLS <= (uint32_t)args.n)
        write_piece((kiln_element *)args.d + row * (uint64_t)args.d_stride + first, values, row < (uint32_t)args.m);
    else
        write_elements(args, values, w.split, row, col);
}

template <class S, class unit>
KILN_INLINE void end_pieces(const kiln_w8a8_args &args, const typename unit::sums *sums, const work &w,
                            const ending &end) {
    enum : uint32_t { PIECES = S::COLS / PART_COLS * 2 };
    typename unit::sums piece[PIECE];
    KILN_LOOP
    for (uint32_t i = 0; i < PIECES; i++) {
        KILN_UNROLL
        for (uint32_t j = 0; j < PIECES; j++) /* registers have no index */
            if (j == i) take_piece(piece, sums, j / 2, j % 2);
        end_piece<unit>(args, piece, w, own_row(w) + i % 2 * 8, w.col + i / 2 * PART_COLS, end);
    }
}

/* ---- A whole tile without an activation ---- */

/* Scales of a tile: of a thread's two rows, and those of columns that it loads. */
template <class S> struct tile_scales {
    enum : uint32_t { EACH = (S::COLS + WARPGROUP - 1) / WARPGROUP };
    float rows[2], cols[EACH];
};

template <class S> KILN_INLINE void load_scales(tile_scales<S> *scales, const kiln_w8a8_args &args, const work &w) {
    KILN_UNROLL
    for (uint32_t i = 0; i < 2; i++)
        scales->rows[i] = whole_scale(args.a_scales, own_row(w) + 8 * i, args.m, false);
    KILN_UNROLL
    for (uint32_t i = 0; i < tile_scales<S>::EACH; i++)
        scales->cols[i] = whole_scale(args.b_scales, w.col + kiln_thread() % WARPGROUP + i * WARPGROUP, args.n, false);
}

/* Shares the scales of columns with the warpgroup. `to` is not what it still reads of the tile before. */
template <class S> KILN_INLINE void share_scales(float *to, const tile_scales<S> &scales) {
    const uint32_t thread = kiln_thread() % WARPGROUP;
    KILN_UNROLL
    for (uint32_t i = 0; i < tile_scales<S>::EACH; i++)
        if (S::COLS >= WARPGROUP || thread < S::COLS) to[thread + i * WARPGROUP] = scales.cols[i];
    kiln_sm90a_barrier_sync(kiln_thread() / WARPGROUP, WARPGROUP);
}

/* This thread's numbers of two rows in PART_COLS columns, finished. SAME: all have the factors of the rows; else
 * columns have theirs as well, `right` from the tile's first on. */
template <class unit, bool SAME>
KILN_INLINE void finish_part(float (*values)[PIECE], const kiln_w8a8_args &args, const typename unit::sums *sums,
                             const work &w, const ending &end, uint32_t part, const float *factors,
                             const float *right) {
    const uint32_t first = part * PART_COLS + own_col();
    float bias[PIECE] = {};
    if (args.bias) read_piece(bias, (const kiln_element *)args.bias + w.col + first);
    KILN_UNROLL
    for (uint32_t i = 0; i < 2 * PIECE; i++) {
        const uint32_t row = i / PIECE, j = i % PIECE;
        const float number = number_of<unit>(sums[part * 2 * PIECE + j / 2 * 4 + 2 * row + j % 2], end);
        const float factor = SAME ? factors[row] : factors[row] * right[first + j / 2 * 8 + j % 2];
        values[row][j] = KILN_FMA(args.scale, number * factor, bias[j]);
    }
}

#ifdef KILN_PART_f32
template <class S, class unit, bool SAME>
KILN_INLINE void write_tile(const kiln_w8a8_args &args, const typename unit::sums *sums, const work &w,
                            const ending &end, const float *factors, const float *right, uint8_t *) {
    const uint32_t row = own_row(w);
    kiln_element *d = (kiln_element *)args.d + row * (uint64_t)args.d_stride + w.col;
    KILN_UNROLL
    for (uint32_t part = 0; part < S::COLS / PART_COLS; part++) {
        float values[2][PIECE];
        finish_part<unit, SAME>(values, args, sums, w, end, part, factors, right);
        write_piece(d + part * PART_COLS, values[0], row < (uint32_t)args.m);
        write_piece(d + 8 * args.d_stride + part * PART_COLS, values[1], row + 8 < (uint32_t)args.m);
    }
}
#else
/* Puts two rows' numbers of PART_COLS columns, the first or second half of a line, into the warp's staging: rows of
 * LINE_BYTES, whose vectors are exchanged so that no two of a column are in the same banks. */
KILN_INLINE void put_part(uint32_t staging, uint32_t half, float (*values)[PIECE]) {
    const uint32_t lane = kiln_thread() % 32, row = staging + lane % WARP_ROWS * LINE_BYTES;
    KILN_UNROLL
    for (uint32_t j = 0; j < PIECE / 2; j += 2) { /* 16 columns, of which a lane addresses 8 */
        const uint32_t words[4] = {kiln_pair_of(values[0] + 2 * j), kiln_pair_of(values[1] + 2 * j),
                                   kiln_pair_of(values[0] + 2 * j + 2), kiln_pair_of(values[1] + 2 * j + 2)};
        const uint32_t vector = half * (PIECE / 2) + j + lane / WARP_ROWS;
        kiln_sm90a_stmatrix_x4(row + (vector ^ lane % 8) * KILN_VECTOR_BYTES, words);
    }
}

/* Writes a line of each of the warp's rows from its staging. */
KILN_INLINE void write_lines(kiln_element *to, const kiln_w8a8_args &args, const uint8_t *staging, uint32_t row) {
    enum : uint32_t { EACH = LINE_BYTES / KILN_VECTOR_BYTES, AT_ONCE = 32 / EACH /* rows */ };
    const uint32_t lane = kiln_thread() % 32;
    kiln_vector vectors[WARP_ROWS / AT_ONCE];
    KILN_UNROLL
    for (uint32_t i = 0; i < WARP_ROWS / AT_ONCE; i++) {
        const uint32_t at = lane / EACH + i * AT_ONCE;
        vectors[i] = *(const kiln_vector *)(staging + at * LINE_BYTES + (lane % EACH ^ at % 8) * KILN_VECTOR_BYTES);
    }
    KILN_UNROLL
    for (uint32_t i = 0; i < WARP_ROWS / AT_ONCE; i++)
        if (row + i * AT_ONCE < (uint32_t)args.m) kiln_vector_store(to + i * AT_ONCE * args.d_stride, vectors[i]);
}

/* Writes a tile. `staging` is the warp's. */
template <class S, class unit, bool SAME>
KILN_INLINE void write_tile(const kiln_w8a8_args &args, const typename unit::sums *sums, const work &w,
                            const ending &end, const float *factors, const float *right, uint8_t *staging) {
    const uint32_t lane = kiln_thread() % 32, shared = kiln_sm90a_shared(staging);
    const uint32_t row = w.row + (kiln_thread() - WARPGROUP) / 32 * WARP_ROWS + lane / 8;
    kiln_element *to = (kiln_element *)args.d + row * (uint64_t)args.d_stride + w.col + lane % 8 * KILN_VECTOR;
    KILN_UNROLL
    for (uint32_t part = 0; part < S::COLS / PART_COLS; part++) {
        float values[2][PIECE];
        finish_part<unit, SAME>(values, args, sums, w, end, part, factors, right);
        put_part(shared, part % 2, values);
        if (part % 2 == 0) continue;
        __syncwarp();
        write_lines(to + part / 2 * LINE_COLS, args, staging, row);
        __syncwarp(); /* before it is written again */
    }
}
#endif

#endif
