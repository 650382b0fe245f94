/* gemm_w4a16 for gfx11, f16 and bf16: gemm_w4a16_mma_large is tiles of 128 x 128 elements of d, 64 x 32 by a wave,
 * gemm_w4a16_mma_small of 64 x 64, 32 x 16 by a wave, by v_wmma 16x16x16; gemm_w4a16_amd.h and matmul_gfx11.h tell the
 * rest. */
#ifndef KILN_KERNELS_GEMM_W4A16_GFX11_H
#define KILN_KERNELS_GEMM_W4A16_GFX11_H

#include "kernels/arch/gfx10.h"
#include "kernels/common/matmul/matmul_gfx11.h"
#include "kernels/gemm_w4a16/gemm_w4a16_amd.h"
#include "kernels/gemm_w4a16/gemm_w4a16_amd_rows.h"

typedef wmma<ELEMENTS_ARE_BF16> unit;

KILN_ENTRY(gemm_w4a16_mma_large, kiln_gemm_w4a16_args) {
    gemm_w4a16_mma<unit, 128, 128, 64, 32>(args);
}

KILN_ENTRY(gemm_w4a16_mma_small, kiln_gemm_w4a16_args) {
    gemm_w4a16_mma<unit, 64, 64, 32, 16>(args);
}

/* For few rows. Each half of a wave reads other weights, and tells the other half their numbers. */
struct few : sums_gfx11 {
    enum : uint32_t { STEP = 128, PARTS = 2, HALVES = 2 };
    typedef unit::sums sums;
    typedef unit::fragment factor;
    KILN_INLINE factor all(uint32_t word) { return word; }
    KILN_INLINE factor factor_of(uint32_t codes) {
        const bool high = kiln_thread() % WAVE >= FEW_ROWS;
        const uint32_t biased = biased_of(codes);
        const two_numbers both = numbers_of_two(biased, kiln_gfx10_permlanex16(biased), high);
        return unit::fragment_of(both.of);
    }
    KILN_INLINE sums multiply(const kiln_vector *a, factor weights, sums sum) {
        return unit::multiply(unit::fragment_of(a), weights, 0, sum);
    }
};

KILN_ENTRY(gemm_w4a16_mma_few, kiln_gemm_w4a16_args) {
    gemm_w4a16_few<few>(args);
}

#endif
