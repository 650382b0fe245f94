/* gemm_w4a16 for CDNA, f16 and bf16: gemm_w4a16_mma_large is tiles of 256 x 128 elements of d, 128 x 64 by a wave,
 * gemm_w4a16_mma_small of 64 x 64, 32 x 32 by a wave, by v_mfma 32x32x8; gemm_w4a16_amd.h and matmul_mfma.h tell the
 * rest. Includers define MFMA_DIES, the dies of the chip. */
#ifndef KILN_KERNELS_GEMM_W4A16_MFMA_H
#define KILN_KERNELS_GEMM_W4A16_MFMA_H

#include "kernels/arch/gfx90a.h"
#include "kernels/common/matmul/matmul_mfma.h"
#include "kernels/gemm_w4a16/gemm_w4a16_amd.h"
#include "kernels/gemm_w4a16/gemm_w4a16_amd_rows.h"

typedef mfma<MFMA_DIES, ELEMENTS_ARE_BF16> unit;

KILN_ENTRY(gemm_w4a16_mma_large, kiln_gemm_w4a16_args) {
    gemm_w4a16_mma<unit, 256, 128, 128, 64>(args);
}

KILN_ENTRY(gemm_w4a16_mma_small, kiln_gemm_w4a16_args) {
    gemm_w4a16_mma<unit, 64, 64, 32, 32>(args);
}

/* For few rows: v_mfma 16x16x16. */
struct few : sums_mfma_16 {
    enum : uint32_t { STEP = 128, PARTS = 4, HALVES = 1 };
    typedef kiln_gfx90a_sums_16 sums;
    KILN_INLINE kiln_vector all(uint32_t word) { return {{word, word, word, word}}; }
    KILN_INLINE kiln_vector factor_of(uint32_t codes) { return numbers_of(codes); }
    KILN_INLINE sums multiply(const kiln_vector *a, const kiln_vector &weights, sums sum) {
        KILN_UNROLL
        for (uint32_t i = 0; i < 4; i += 2) {
#ifdef KILN_PART_bf16
            sum = kiln_gfx90a_mfma_16_bf16(a->words + i, weights.words + i, sum);
#else
            sum = kiln_gfx90a_mfma_16_f16(a->words + i, weights.words + i, sum);
#endif
        }
        return sum;
    }
};

__attribute__((amdgpu_waves_per_eu(2))) /* sums in vector registers */
KILN_ENTRY(gemm_w4a16_mma_few, kiln_gemm_w4a16_args) {
    gemm_w4a16_few<few>(args);
}

#endif
