/* gemm for gfx11, f16 and bf16: gemm_mma_large is tiles of 128 x 128 elements of d, 64 x 32 by a wave, gemm_mma_small
 * of 64 x 64, 32 x 16 by a wave, by v_wmma 16x16x16; gemm_amd.h and matmul_gfx11.h tell the rest. */
#ifndef KILN_KERNELS_GEMM_GFX11_H
#define KILN_KERNELS_GEMM_GFX11_H

#include "kernels/arch/gfx10.h"
#include "kernels/common/matmul/matmul_gfx11.h"
#include "kernels/gemm/gemm_amd.h"

typedef wmma<ELEMENTS_ARE_BF16> unit;

/* For up to 16 rows, of bf16: the same, whose halves tell each other what they have loaded. */
struct few : sums_gfx11 {
    enum : uint32_t { PARTS = 2 };
    typedef kiln_gfx11_sums sums;
    KILN_INLINE kiln_gfx11_row both(const kiln_vector &own) {
        const bool high = kiln_thread() % WAVE >= 16;
        kiln_gfx11_row row;
        KILN_UNROLL
        for (uint32_t i = 0; i < 4; i++) {
            const uint32_t other = kiln_gfx10_permlanex16(own.words[i]);
            row[i] = high ? other : own.words[i];
            row[4 + i] = high ? own.words[i] : other;
        }
        return row;
    }
    KILN_INLINE sums multiply(const kiln_vector &a, const kiln_vector &b, sums sum) {
        return kiln_gfx11_wmma_bf16(both(a), both(b), sum);
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
