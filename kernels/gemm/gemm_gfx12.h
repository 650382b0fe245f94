/* gemm for gfx12, f16 and bf16: gemm_mma_large is tiles of 128 x 128 elements of d, 64 x 32 by a wave, gemm_mma_small
 * of 64 x 64, 32 x 16 by a wave, by v_wmma 16x16x16; gemm_amd.h and matmul_gfx12.h tell the rest. */
#ifndef KILN_KERNELS_GEMM_GFX12_H
#define KILN_KERNELS_GEMM_GFX12_H

#include "kernels/common/matmul/matmul_gfx12.h"
#include "kernels/gemm/gemm_amd.h"

typedef wmma<ELEMENTS_ARE_BF16> unit;

/* For up to 16 rows, of bf16: the same. */
struct few : sums_gfx12 {
    enum : uint32_t { PARTS = 2 };
    typedef kiln_gfx12_sums sums;
    KILN_INLINE sums multiply(const kiln_vector &a, const kiln_vector &b, sums sum) {
        return kiln_gfx12_wmma_bf16(__builtin_bit_cast(kiln_gfx12_row, a), __builtin_bit_cast(kiln_gfx12_row, b), sum);
    }
};

#include "kernels/gemm/gemm_amd_norm.h"

KILN_ENTRY(gemm_mma_large, kiln_gemm_args) {
    gemm_mma<unit, 128, 128, 64, 32>(args);
}

KILN_ENTRY(gemm_mma_small, kiln_gemm_args) {
    gemm_mma<unit, 64, 64, 32, 16>(args);
}

#endif
