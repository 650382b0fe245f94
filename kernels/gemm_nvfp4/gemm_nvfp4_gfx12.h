/* gemm_nvfp4 for gfx12: gemm_nvfp4_mma_large is tiles of 128 x 128 elements of d, 64 x 32 by a wave,
 * gemm_nvfp4_mma_small of 64 x 64, 32 x 16 by a wave, by v_wmma 16x16x16; gemm_nvfp4_amd.h and matmul_gfx12.h tell the
 * rest. */
#ifndef KILN_KERNELS_GEMM_NVFP4_GFX12_H
#define KILN_KERNELS_GEMM_NVFP4_GFX12_H

#include "kernels/common/matmul/matmul_gfx12.h"
#include "kernels/gemm_nvfp4/gemm_nvfp4_amd.h"

typedef wmma<false> unit;

KILN_ENTRY(gemm_nvfp4_mma_large, kiln_gemm_nvfp4_args) {
    gemm_nvfp4_mma<unit, 128, 64, 32>(args);
}

KILN_ENTRY(gemm_nvfp4_mma_small, kiln_gemm_nvfp4_args) {
    gemm_nvfp4_mma<unit, 64, 32, 16>(args);
}

#endif
