/* gemm_nvfp4 for CDNA: gemm_nvfp4_mma_large is tiles of 128 x 128 elements of d, 64 x 64 by a wave,
 * gemm_nvfp4_mma_small of 64 x 64, 32 x 32 by a wave, by v_mfma 32x32x8; gemm_nvfp4_amd.h tells the rest. A lane's 16
 * bytes of a row of each factor are its part of two products: k is in another order there, the same for both factors.
 * Includers define MFMA_DIES, the dies of the chip. */
#ifndef KILN_KERNELS_GEMM_NVFP4_MFMA_H
#define KILN_KERNELS_GEMM_NVFP4_MFMA_H

#include "kernels/arch/gfx90a.h"
#include "kernels/gemm_nvfp4/gemm_nvfp4_amd.h"

struct mfma {
    enum : uint32_t { WAVE = 64, SIDE = 32, DIES = MFMA_DIES, PRODUCTS = 2, ELEMENTS = 16 };
    typedef kiln_gfx90a_sums sums;
    typedef kiln_vector fragment;
    KILN_INLINE fragment load(const kiln_vector *row, uint32_t lane) {
        return row[lane % SIDE * ROW_PITCH + lane / SIDE];
    }
    KILN_INLINE uint32_t row_of(uint32_t lane, uint32_t element) {
        return element / 4 * 8 + lane / SIDE * 4 + element % 4;
    }
    KILN_INLINE sums multiply(const fragment &a, const fragment &b, uint32_t product, sums sum) {
        return kiln_gfx90a_mfma_f16(a.words + 2 * product, b.words + 2 * product, sum);
    }
};

KILN_ENTRY(gemm_nvfp4_mma_large, kiln_gemm_nvfp4_args) {
    gemm_nvfp4_mma<mfma, 128, 64, 64>(args);
}

KILN_ENTRY(gemm_nvfp4_mma_small, kiln_gemm_nvfp4_args) {
    gemm_nvfp4_mma<mfma, 64, 32, 32>(args);
}

#endif
