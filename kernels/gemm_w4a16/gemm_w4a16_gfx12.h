/* gemm_w4a16 for gfx12, f16 and bf16: gemm_w4a16_mma_large is tiles of 128 x 128 elements of d, 64 x 32 by a wave,
 * gemm_w4a16_mma_small of 64 x 64, 32 x 16 by a wave, by v_wmma 16x16x16; gemm_w4a16_amd.h and matmul_gfx12.h tell the
 * rest. */
#ifndef KILN_KERNELS_GEMM_W4A16_GFX12_H
#define KILN_KERNELS_GEMM_W4A16_GFX12_H

#include "kernels/common/matmul/matmul_gfx12.h"
#include "kernels/gemm_w4a16/gemm_w4a16_amd.h"
#include "kernels/gemm_w4a16/gemm_w4a16_amd_rows.h"

typedef wmma<ELEMENTS_ARE_BF16> unit;

KILN_ENTRY(gemm_w4a16_mma_large, kiln_gemm_w4a16_args) {
    gemm_w4a16_mma<unit, 128, 128, 64, 32>(args);
}

KILN_ENTRY(gemm_w4a16_mma_small, kiln_gemm_w4a16_args) {
    gemm_w4a16_mma<unit, 64, 64, 32, 16>(args);
}

/* For few rows. */
struct few : sums_gfx12 {
    enum : uint32_t { STEP = 128, PARTS = 2, HALVES = 1 };
    typedef unit::sums sums;
    KILN_INLINE kiln_vector all(uint32_t word) { return {{word, word, word, word}}; }
    KILN_INLINE kiln_vector factor_of(uint32_t codes) { return numbers_of(codes); }
    KILN_INLINE sums multiply(const kiln_vector *a, const kiln_vector &weights, sums sum) {
        const kiln_gfx12_row left = __builtin_bit_cast(kiln_gfx12_row, *a);
        return unit::multiply(left, __builtin_bit_cast(kiln_gfx12_row, weights), 0, sum);
    }
};

KILN_ENTRY(gemm_w4a16_mma_few, kiln_gemm_w4a16_args) {
    gemm_w4a16_few<few>(args);
}

#endif
