/* gemm of 17 to 64 rows by wgmma, sm_90a: gemm_wgmma_rows_1, _2 and _4, where reading b bounds the time.
 *
 * matmul_rows_sm90a.h has their structure, and gemm_pieces.h the end of a tile.
 *
 * Floor: one read of b. Measured on an H200 (driver 580.159.04, 2026-11-26; 64 rows of bf16, CUDA graphs, cold), us for
 * n x k, and cuBLAS's there: 6144 x 4096 17.6 (16.7), 4096 x 4096 12.9 (13.2), 28672 x 4096 63.6 (65.1),
 * 4096 x 14336 33.0 (36.7), 1280 x 8192 10.4 (11.0), 8192 x 1024 8.1 (8.5), 7168 x 8192 33.4 (31.7), 8192 x 3584 18.3
 * (18.2). In all a multiprocessor then takes in 50 to 60 bytes/ns, of which a is half. What was no faster as a
 * prototype: tiles of 96 to 256 columns, which read a less often (128: 63 at 28672 x 4096, but 22 at 4096 x 4096),
 * clusters of 8, and copying a's rows to two or four neighbours along n at once. Joining the sums of two blocks takes
 * about 1.6 us, of four 2.5.
 *
 * The includer defines `unit` (gemm_wgmma.h). */
#ifndef KILN_KERNELS_GEMM_WGMMA_ROWS_H
#define KILN_KERNELS_GEMM_WGMMA_ROWS_H

#include "kernels/common/matmul/matmul_rows_sm90a.h"
#include "kernels/gemm/gemm_mapped_args.h"
#include "kernels/gemm/gemm_pieces.h"

template <class S>
KILN_INLINE void rows_end(const kiln_gemm_args &args, const float *sums, uint8_t *stages, uint32_t shared,
                          const work &w, uint32_t rank) {
    const bool aligned = is_aligned(args);
    const uint32_t row = kiln_thread() / 32 * 16 + kiln_thread() % 32 / 4;
    uint32_t bias[ADDEND_WORDS] = {};
    if (S::PARTS == 1) {
        load_bias(bias, args, w.col, (uint32_t)args.n, aligned);
        write_tile<S::COLS, false>(args, sums, bias, w, row, aligned, stages);
        return;
    }
    rows_give<S>(sums, shared, rank);
    KILN_LOOP
    for (uint32_t i = 0; i < S::EACH; i++) {
        const uint32_t number = rank * S::EACH + i, first = w.col + number / 2 * PART_COLS;
        float piece[PIECE];
        load_bias(bias, args, first, (uint32_t)args.n, aligned);
        rows_sum<S>(piece, stages, i, false);
        end_pieces<1>(args, piece, bias, w, row + number % 2 * 8, first, (uint32_t)args.n, aligned);
    }
}

template <uint32_t COLS, uint32_t STAGES, uint32_t PARTS>
KILN_INLINE void gemm_wgmma_rows(const kiln_gemm_mapped_args &args) {
    typedef rows_shape<sizeof(kiln_element), true, COLS, STAGES, PARTS> S;
    matmul_rows<S>(args, [&](uint32_t shared, uint8_t *stages, uint32_t rank, const work &w) {
        float sums[COLS / 2] = {};
        rows_whole<S, unit>(sums, shared, w);
        rows_end<S>(args.plain, sums, stages, shared, w, rank);
    });
}

ROWS_ENTRY(gemm_wgmma_rows_1, kiln_gemm_mapped_args, 1) {
    gemm_wgmma_rows<64, 6, 1>(args);
}

ROWS_ENTRY(gemm_wgmma_rows_2, kiln_gemm_mapped_args, 2) {
    gemm_wgmma_rows<64, 6, 2>(args);
}

ROWS_ENTRY(gemm_wgmma_rows_4, kiln_gemm_mapped_args, 4) {
    gemm_wgmma_rows<64, 6, 4>(args);
}

#endif
