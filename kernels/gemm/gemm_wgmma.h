/* gemm by wgmma, sm_90a: gemm_wgmma_large, _medium and _small, tiles of 128 x 256, 128 x 128 and 128 x 64 of d, where
 * the rows of a and b are 16-byte aligned. matmul_sm90a.h has their structure: 4, 6 or 8 stages of 128 bytes of each
 * row, 192 KB, and clusters of two blocks in the large tile.
 *
 * The end of a tile: a thread has of each 8 columns two elements of two rows. It adds c and the bias and takes the
 * activation of 4 times 8 columns, rounds, and four threads of a row write whole sectors of it. What is not aligned so,
 * or beyond d's last columns, is written element by element.
 *
 * Floor: 2 m n k operations. Not measured. A prototype of this structure in bf16 on an H100 reached cuBLAS: 807 TFLOP/s
 * at 8192 cubed and 725 sustained with clusters of two (without: 796, but 661 sustained), 692 at 2048 cubed (medium),
 * 310 at 1024 cubed (small); the rates of the tiles are those. Registers by ptxas 12.0: 168 in each.
 *
 * The includer defines, after the portable kernels, `unit`, whose multiply<COLS>(sums, a, b, add) is wgmma's. */
#ifndef KILN_KERNELS_GEMM_WGMMA_H
#define KILN_KERNELS_GEMM_WGMMA_H

#include "kernels/common/matmul_sm90a.h"
#include "kernels/gemm/gemm_mapped_args.h"
#include "kernels/gemm/gemm_portable.h"

static_assert(KILN_TENSOR_MAP_FITS_SM90(offsetof(kiln_gemm_mapped_args, a)), "the offset of tensor maps");

KILN_INLINE uint32_t batch_of(const kiln_gemm_args &args) {
    return args.batch;
}

/* Whether pieces can be written, and read of c and of the bias, as they are. */
KILN_INLINE bool is_aligned(const kiln_gemm_args &args) {
    uint64_t d = (uint64_t)args.d | (uint64_t)(args.d_stride | args.d_batch_stride) * sizeof(kiln_element);
    uint64_t c = (uint64_t)args.c | (uint64_t)(args.c_stride | args.c_batch_stride) * sizeof(kiln_element);
    return !(d % KILN_VECTOR_BYTES) && !(((args.c ? c : 0) | (uint64_t)args.bias) % (2 * sizeof(kiln_element)));
}

KILN_INLINE kiln_element *piece_of(const kiln_gemm_args &args, const work &w, uint32_t row, uint32_t col) {
    return (kiln_element *)args.d + w.batch * args.d_batch_stride + row * args.d_stride + col;
}

/* What is done to a piece's sums, of whose columns the first is `col`, before they are rounded. */
KILN_INLINE void finish_piece(const kiln_gemm_args &args, float *values, uint32_t batch, uint32_t row, uint32_t col) {
    float addends[PIECE] = {};
    if (args.c && row < (uint32_t)args.m)
        read_piece(addends, (const kiln_element *)args.c + batch * args.c_batch_stride + row * args.c_stride + col);
    KILN_UNROLL
    for (uint32_t i = 0; i < PIECE; i++)
        values[i] = KILN_FMA(args.scale, values[i], addends[i]);
    if (args.bias) {
        read_piece(addends, (const kiln_element *)args.bias + col);
        KILN_UNROLL
        for (uint32_t i = 0; i < PIECE; i++)
            values[i] += addends[i];
    }
    if (!args.gated) return;
    KILN_UNROLL
    for (uint32_t i = 0; i < PIECE; i++)
        values[i] = kiln_gated(values[i], args.bound, args.coefficients, KILN_GEMM_COEFFICIENTS);
}

/* The same element by element, as far as d reaches; or into the partial sums where blocks share k. */
KILN_INLINE void write_elements(const kiln_gemm_args &args, const float *sums, const work &w, uint32_t row,
                                uint32_t col) {
    if (row >= (uint32_t)args.m) return;
    float *partials = args.partials;
    partials += ((uint64_t)(w.split * args.batch + w.batch) * (uint64_t)args.m + row) * (uint64_t)args.n;
    KILN_UNROLL
    for (uint32_t i = 0; i < PIECE; i++) {
        uint32_t at = col + i / 2 * 8 + i % 2;
        if (at >= (uint32_t)args.n) continue;
        if (args.splits > 1)
            partials[at] = sums[i];
        else
            finish_element(&args, sums[i], w.batch, row, at);
    }
}

template <class S>
KILN_INLINE void write_tile(const kiln_gemm_args &args, const float *sums, const work &w, bool aligned) {
    enum : uint32_t { PIECES = S::COLS / PART_COLS * 2 };
    const uint32_t row = own_row(w);
    float piece[PIECE];
    if (aligned && !args.c && !args.bias && !args.gated && w.col + S::COLS <= (uint32_t)args.n) {
        KILN_UNROLL
        for (uint32_t i = 0; i < PIECES; i++) {
            const uint32_t at = row + i % 2 * 8;
            take_piece(piece, sums, i / 2, i % 2);
            KILN_UNROLL
            for (uint32_t j = 0; j < PIECE; j++)
                piece[j] *= args.scale;
            write_piece(piece_of(args, w, at, w.col + i / 2 * PART_COLS), piece, at < (uint32_t)args.m);
        }
        return;
    }
    KILN_LOOP
    for (uint32_t i = 0; i < PIECES; i++) {
        KILN_UNROLL
        for (uint32_t j = 0; j < PIECES; j++) /* registers have no index */
            if (j == i) take_piece(piece, sums, j / 2, j % 2);
        const uint32_t col = w.col + i / 2 * PART_COLS, at = row + i % 2 * 8;
        if (aligned && col + PART_COLS <= (uint32_t)args.n) {
            finish_piece(args, piece, w.batch, at, col + own_col());
            write_piece(piece_of(args, w, at, col), piece, at < (uint32_t)args.m);
        } else {
            write_elements(args, piece, w, at, col + own_col());
        }
    }
}

template <class S> KILN_INLINE void multiply_tiles(const kiln_gemm_args &args, uint32_t shared, uint32_t rank) {
    const uint32_t count = work_count<S>(args);
    const bool aligned = args.splits == 1 && is_aligned(args);
    place at = {0, 0};
    float sums[S::COLS / 2];
    KILN_LOOP
    for (uint32_t number = blockIdx.x / S::CLUSTER; number < count; number += gridDim.x / S::CLUSTER) {
        work w = work_of<S>(args, number, rank);
        KILN_UNROLL
        for (uint32_t i = 0; i < S::COLS / 2; i++)
            sums[i] = 0.0f;
        add_products<S, unit>(sums, shared, &at, w.steps);
        write_tile<S>(args, sums, w, aligned);
    }
}

template <uint32_t COLS, uint32_t STAGES, uint32_t CLUSTER>
KILN_INLINE void gemm_wgmma(const kiln_gemm_mapped_args &args) {
    typedef matmul_shape<sizeof(kiln_element), COLS, STAGES, CLUSTER> S;
    matmul<S>(
        args, 1, [](uint32_t, uint8_t *, uint32_t) {},
        [&](uint32_t shared, uint8_t *, uint32_t rank) { multiply_tiles<S>(args.plain, shared, rank); });
}

MATMUL_ENTRY(gemm_wgmma_large, kiln_gemm_mapped_args, 2) {
    gemm_wgmma<256, 4, 2>(args);
}

MATMUL_ENTRY(gemm_wgmma_medium, kiln_gemm_mapped_args, 1) {
    gemm_wgmma<128, 6, 1>(args);
}

MATMUL_ENTRY(gemm_wgmma_small, kiln_gemm_mapped_args, 1) {
    gemm_wgmma<64, 8, 1>(args);
}

#endif
