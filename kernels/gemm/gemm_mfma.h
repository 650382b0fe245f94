/* gemm for CDNA, f16 and bf16: gemm_mma_large is tiles of 256 x 128 elements of d, 128 x 64 by a wave, gemm_mma_small
 * of 64 x 64, 32 x 32 by a wave, by v_mfma 32x32x8; gemm_amd.h and matmul_mfma.h tell the rest. A stage of the large
 * tile is 32 products of 16 passes (64 cycles) for each wave on gfx90a, beside 12 reads and 6 writes of LDS by 16
 * bytes. Includers define MFMA_DIES, the dies of the chip. */
#ifndef KILN_KERNELS_GEMM_MFMA_H
#define KILN_KERNELS_GEMM_MFMA_H

#include "kernels/arch/gfx90a.h"
#include "kernels/common/matmul/matmul_mfma.h"
#include "kernels/gemm/gemm_amd.h"

typedef mfma<MFMA_DIES, ELEMENTS_ARE_BF16> unit;

/* For up to 16 rows: v_mfma 16x16x16, of bf16. */
struct few : sums_mfma_16 {
    enum : uint32_t { PARTS = 4 };
    typedef kiln_gfx90a_sums_16 sums;
    KILN_INLINE sums multiply(const kiln_vector &a, const kiln_vector &b, sums sum) {
        sum = kiln_gfx90a_mfma_16_bf16(a.words, b.words, sum);
        return kiln_gfx90a_mfma_16_bf16(a.words + 2, b.words + 2, sum);
    }
};

#include "kernels/gemm/gemm_amd_norm.h"

KILN_ENTRY(gemm_mma_large, kiln_gemm_args) {
    gemm_mma<unit, 256, 128, 128, 64>(args);
}

KILN_ENTRY(gemm_mma_small, kiln_gemm_args) {
    gemm_mma<unit, 64, 64, 32, 32>(args);
}

#endif
