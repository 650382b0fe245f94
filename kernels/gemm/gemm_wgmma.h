/* gemm by wgmma, sm_90a: gemm_wgmma_large, _medium and _small, tiles of 128 x 256, 128 x 128 and 128 x 64 of d, where
 * the rows of a and b are 16-byte aligned; and, of f16 and bf16, _large_224 and _large_192 of so many columns, whose
 * tiles fill the last round of blocks where those of 256 do not. matmul_sm90a.h has their structure: as many stages of
 * 128 bytes of each row as shared memory has, and clusters of two blocks in all but the small tile. gemm_pieces.h has
 * the end of a tile.
 *
 * Floor: 2 m n k operations. Measured on an H100 (driver 580.159.04, 2026-11-26; bf16, CUDA graphs), us, and cuBLAS's
 * in the same process: 8192 cubed 1427 (1411), 4096 cubed 180.8 (177.6), 2048 cubed 25.7 (25.6), 1024 cubed 6.3 (6.1),
 * 512 x 8192 x 8192 92.2 (92.7), 128 x 8192 x 8192 49.5 (50.0), 512 x 4096 x 4096 25.7 (24.7). Before, 2048 cubed took
 * 27.5 and 1024 cubed 8.4. Of these, the waits of a cluster's last barrier for what tiles had written took 1.1 and 0.1
 * us; exchanging the words of a row by shuffles, instead of by slabs, 0.6 and 0.8; bands of 8 rows of tiles, instead of
 * 2, 1.1 at 1024 cubed: neighbouring multiprocessors then ask L2 for the same rows at once. The rates of the tiles are
 * from an H200. Without clusters the medium tile was a quarter slower there (235 instead of 188 us at 4096 cubed): what
 * blocks take in from L2 bounds it. Two consumer warpgroups with a tile of 128 x 128 each, one's end under the other's
 * products, were slower but where tiles end with an activation (1024 x 28672 x 4096 by 3 %).
 *
 * Small tiles in clusters (_small_2 and, of 80 columns, _small_80, for f16 and bf16 with more than 128 rows) took 18.0
 * instead of 19.8 us for 256 x 4096 x 4096 (cuBLAS 19.3), 17.2 instead of 20.2 for 1024 x 1024 x 4096 (15.4), and 33.9
 * instead of 43.9, by tiles of 128 columns, for 1024 x 1280 x 8192 with bias and GELU (29.6 without them). Clusters of
 * four with half of k each took 36.9 for that.
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

/* Behind the barriers of the stages are slabs of the warps that multiply (gemm_pieces.h), where there is room for
 * them. */
template <uint32_t COLS_, uint32_t STAGES_, uint32_t CLUSTER_, bool HAS_SLABS_, uint32_t RASTER_>
struct gemm_shape : matmul_shape<sizeof(kiln_element), COLS_, STAGES_, CLUSTER_> {
    typedef matmul_shape<sizeof(kiln_element), COLS_, STAGES_, CLUSTER_> base;
    static constexpr bool HAS_SLABS = HAS_SLABS_;
    static constexpr uint32_t RASTER = RASTER_ ? RASTER_ : base::RASTER;
    static constexpr uint32_t SLABS_AT = (base::END + 127) / 128 * 128;
};

template <class S>
KILN_INLINE void multiply_tiles(const kiln_gemm_args &args, uint32_t shared, uint8_t *stages, uint32_t rank) {
    const uint32_t count = work_count<S>(args);
    const bool aligned = is_aligned(args);
    uint8_t *slabs = stages + S::SLABS_AT + (kiln_thread() - WARPGROUP) / 32 * (SLABS * SLAB_BYTES);
    place at = {0, 0};
    float sums[parts_of(S::COLS) * 2 * PIECE];
    KILN_LOOP
    for (uint32_t number = blockIdx.x / S::CLUSTER; number < count; number += gridDim.x / S::CLUSTER) {
        work w = work_of<S>(args, number, rank);
        KILN_UNROLL
        for (uint32_t i = 0; i < sizeof sums / sizeof *sums; i++)
            sums[i] = 0.0f;
        uint32_t bias[ADDEND_WORDS] = {};
        load_bias(bias, args, w.col, (uint32_t)args.n, aligned);
        add_products<S, unit>(sums, shared, &at, w.steps);
        write_tile<S::COLS, S::HAS_SLABS>(args, sums, bias, w, own_row(w), aligned, slabs);
    }
}

template <uint32_t COLS, uint32_t STAGES, uint32_t CLUSTER, bool HAS_SLABS, uint32_t RASTER = 0>
KILN_INLINE void gemm_wgmma(const kiln_gemm_mapped_args &args) {
    typedef gemm_shape<COLS, STAGES, CLUSTER, HAS_SLABS, RASTER> S;
    matmul<S>(
        args, 1, [](uint32_t, uint8_t *, uint32_t) {},
        [&](uint32_t shared, uint8_t *stages, uint32_t rank) { multiply_tiles<S>(args.plain, shared, stages, rank); });
}

MATMUL_ENTRY(gemm_wgmma_large, kiln_gemm_mapped_args, 2) {
    gemm_wgmma<256, 4, 2, true>(args);
}

MATMUL_ENTRY(gemm_wgmma_medium, kiln_gemm_mapped_args, 2) {
    gemm_wgmma<128, 6, 2, true>(args);
}

MATMUL_ENTRY(gemm_wgmma_small, kiln_gemm_mapped_args, 1) {
    gemm_wgmma<64, 8, 1, true>(args);
}

#endif
