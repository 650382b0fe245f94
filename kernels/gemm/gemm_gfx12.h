/* gemm for gfx12, f16 and bf16: gemm_mma_large is tiles of 128 x 128 elements of d, 64 x 32 by a wave, gemm_mma_small
 * of 64 x 64, 32 x 16 by a wave, by v_wmma 16x16x16; gemm_amd.h tells the rest. */
#ifndef KILN_KERNELS_GEMM_GFX12_H
#define KILN_KERNELS_GEMM_GFX12_H

#include "kernels/arch/gfx12.h"
#include "kernels/gemm/gemm_amd.h"

struct wmma {
    enum : uint32_t { WAVE = 32, SIDE = 16, DIES = 1, PRODUCTS = 1, ELEMENTS = 8 };
    typedef kiln_gfx12_sums sums;
    typedef kiln_gfx12_row fragment;
    KILN_INLINE fragment load(const kiln_vector *row, uint32_t lane) {
        return __builtin_bit_cast(fragment, row[lane % SIDE * ROW_PITCH + lane / SIDE]);
    }
    KILN_INLINE uint32_t row_of(uint32_t lane, uint32_t element) { return lane / SIDE * 8 + element; }
    KILN_INLINE sums multiply(fragment a, fragment b, uint32_t, sums sum) {
#ifdef KILN_PART_bf16
        return kiln_gfx12_wmma_bf16(a, b, sum);
#else
        return kiln_gfx12_wmma_f16(a, b, sum);
#endif
    }
};

/* For up to 16 rows, of bf16: the same. */
struct few {
    enum : uint32_t { WAVE = 32, ELEMENTS = 8, PARTS = 2 };
    typedef kiln_gfx12_sums sums;
    KILN_INLINE uint32_t row_of(uint32_t lane, uint32_t element) { return lane / 16 * 8 + element; }
    KILN_INLINE sums multiply(const kiln_vector &a, const kiln_vector &b, sums sum) {
        return kiln_gfx12_wmma_bf16(__builtin_bit_cast(kiln_gfx12_row, a), __builtin_bit_cast(kiln_gfx12_row, b), sum);
    }
};

#include "kernels/gemm/gemm_amd_norm.h"

KILN_ENTRY(gemm_mma_large, kiln_gemm_args) {
    gemm_mma<wmma, 128, 128, 64, 32>(args);
}

KILN_ENTRY(gemm_mma_small, kiln_gemm_args) {
    gemm_mma<wmma, 64, 64, 32, 16>(args);
}

#endif
