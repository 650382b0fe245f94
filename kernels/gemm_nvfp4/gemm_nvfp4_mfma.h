/* gemm_nvfp4 for CDNA: gemm_nvfp4_mma_large is tiles of 128 x 128 elements of d, 64 x 64 by a wave,
 * gemm_nvfp4_mma_small of 64 x 64, 32 x 32 by a wave, by v_mfma 32x32x8; gemm_nvfp4_amd.h and matmul_mfma.h tell the
 * rest. Includers define MFMA_DIES, the dies of the chip. */
#ifndef KILN_KERNELS_GEMM_NVFP4_MFMA_H
#define KILN_KERNELS_GEMM_NVFP4_MFMA_H

#include "kernels/common/matmul/matmul_mfma.h"
#include "kernels/gemm_nvfp4/gemm_nvfp4_amd.h"

typedef mfma<MFMA_DIES, false> unit;

KILN_ENTRY(gemm_nvfp4_mma_large, kiln_gemm_nvfp4_args) {
    gemm_nvfp4_mma<unit, 128, 64, 64>(args);
}

KILN_ENTRY(gemm_nvfp4_mma_small, kiln_gemm_nvfp4_args) {
    gemm_nvfp4_mma<unit, 64, 32, 32>(args);
}

#endif
