/* gemm by wgmma, sm_90a: gemm_wgmma_large, _medium and _small, tiles of 128 x 256, 128 x 128 and 128 x 64 of d, where
 * the rows of a and b are 16-byte aligned; and, of f16 and bf16, _large_224 and _large_192 of so many columns, whose
 * tiles fill the last round of blocks where those of 256 do not. matmul_sm90a.h has their structure: as many stages of
 * 128 bytes of each row as shared memory has, and clusters of two blocks in all but the small tile. gemm_pieces.h has
 * the end of a tile.
 *
 * Floor: 2 m n k operations. Measured on an H200 (driver 580.159.04, 2026-11-26; bf16, CUDA graphs), us, and cuBLAS's
 * in the same process: 8192 cubed 1401 (1397), 4096 cubed 177.9 (174.1), 2048 cubed 26.5 (25.0), 1024 cubed 8.5 (6.8),
 * 512 x 8192 x 8192 90.6 (88.8), 128 x 8192 x 8192 41.8 (37.7). The rates of the tiles are from there. Without clusters
 * the medium tile was a quarter slower (235 instead of 188 us at 4096 cubed): what blocks take in from L2 bounds it.
 * Two consumer warpgroups with a tile of 128 x 128 each, one's end under the other's products, were slower but where
 * tiles end with an activation (1024 x 28672 x 4096 by 3 %).
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
