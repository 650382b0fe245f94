/* gemm by wgmma, sm_90a: gemm_wgmma_large, _medium and _small, tiles of 128 x 256, 128 x 128 and 128 x 64 of d, where
 * the rows of a and b are 16-byte aligned. matmul_sm90a.h has their structure: 4, 6 or 8 stages of 128 bytes of each
 * row, 192 KB, and clusters of two blocks in the large tile. gemm_pieces.h has the end of a tile.
 *
 * Floor: 2 m n k operations. Measured on an H200 (driver 580.159.04, 2026-11-26; bf16, CUDA graphs), us and cuBLAS's:
 * 8192 cubed 1418 (1421; sustained 668 and 647 TFLOP/s), 4096 cubed 182 (177), 2048 cubed 31.6 (25.5), 1024 cubed 9.3
 * (7.0), 512 x 8192 x 8192 92.8 (90.6). A prototype of this structure on an H100 reached 807 TFLOP/s at 8192 cubed and
 * 725 sustained with clusters of two (without: 796, but 661 sustained), 692 at 2048 cubed (medium), 310 at 1024 cubed
 * (small); the rates of the tiles are those. Registers by ptxas 12.0: 168 in each.
 *
 * The includer defines, after the portable kernels, `unit`, whose multiply<COLS>(sums, a, b, add) is wgmma's. */
#ifndef KILN_KERNELS_GEMM_WGMMA_H
#define KILN_KERNELS_GEMM_WGMMA_H

#include "kernels/gemm/gemm_mapped_args.h"
#include "kernels/gemm/gemm_pieces.h"
#include "kernels/gemm/gemm_portable.h"

static_assert(KILN_TENSOR_MAP_FITS_SM90(offsetof(kiln_gemm_mapped_args, a)), "the offset of tensor maps");

KILN_INLINE uint32_t batch_of(const kiln_gemm_args &args) {
    return args.batch;
}
KILN_INLINE bool is_early(const kiln_gemm_mapped_args &args) {
    return args.early;
}

template <class S> KILN_INLINE void multiply_tiles(const kiln_gemm_args &args, uint32_t shared, uint32_t rank) {
    const uint32_t count = work_count<S>(args);
    const bool aligned = is_aligned(args);
    place at = {0, 0};
    float sums[S::COLS / 2];
    KILN_LOOP
    for (uint32_t number = blockIdx.x / S::CLUSTER; number < count; number += gridDim.x / S::CLUSTER) {
        work w = work_of<S>(args, number, rank);
        KILN_UNROLL
        for (uint32_t i = 0; i < S::COLS / 2; i++)
            sums[i] = 0.0f;
        uint32_t bias[ADDEND_WORDS] = {};
        load_bias(bias, args, w.col, aligned);
        add_products<S, unit>(sums, shared, &at, w.steps);
        write_tile<S::COLS>(args, sums, bias, w, own_row(w), aligned);
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

MATMUL_ENTRY(gemm_wgmma_medium, kiln_gemm_mapped_args, 2) {
    gemm_wgmma<128, 7, 2>(args);
}

MATMUL_ENTRY(gemm_wgmma_small, kiln_gemm_mapped_args, 1) {
    gemm_wgmma<64, 8, 1>(args);
}

#endif
