/* gemm_w4a16 for gfx11, f16 and bf16: gemm_w4a16_mma_large is tiles of 128 x 128 elements of d, 64 x 32 by a wave,
 * gemm_w4a16_mma_small of 64 x 64, 32 x 16 by a wave, by v_wmma 16x16x16; gemm_w4a16_amd.h tells the rest. Both halves
 * of a wave read the same rows. */
#ifndef KILN_KERNELS_GEMM_W4A16_GFX11_H
#define KILN_KERNELS_GEMM_W4A16_GFX11_H

#include "kernels/arch/gfx11.h"
#include "kernels/gemm_w4a16/gemm_w4a16_amd.h"
#include "kernels/gemm_w4a16/gemm_w4a16_amd_rows.h"

struct wmma {
    enum : uint32_t { WAVE = 32, SIDE = 16, DIES = 1, PRODUCTS = 1, ELEMENTS = 8 };
    typedef kiln_gfx11_sums sums;
    typedef kiln_gfx11_row fragment;
    KILN_INLINE fragment load(const kiln_vector *row, uint32_t lane) {
        const kiln_vector low = row[lane % SIDE * ROW_PITCH], high = row[lane % SIDE * ROW_PITCH + 1];
        const uint32_t *l = low.words, *h = high.words;
        return {l[0], l[1], l[2], l[3], h[0], h[1], h[2], h[3]};
    }
    KILN_INLINE uint32_t row_of(uint32_t lane, uint32_t element) { return 2 * element + lane / SIDE; }
    KILN_INLINE sums multiply(fragment a, fragment b, uint32_t, sums sum) {
#ifdef KILN_PART_bf16
        return kiln_gfx11_wmma_bf16(a, b, sum);
#else
        return kiln_gfx11_wmma_f16(a, b, sum);
#endif
    }
};

KILN_ENTRY(gemm_w4a16_mma_large, kiln_gemm_w4a16_args) {
    gemm_w4a16_mma<wmma, 128, 128, 64, 32>(args);
}

KILN_ENTRY(gemm_w4a16_mma_small, kiln_gemm_w4a16_args) {
    gemm_w4a16_mma<wmma, 64, 64, 32, 16>(args);
}

/* For few rows. */
struct few {
    enum : uint32_t { WAVE = 32, STEP = 128, PARTS = 1, VECTORS = 2, ELEMENTS = 8 };
    typedef wmma::sums sums;
    KILN_INLINE uint32_t row_of(uint32_t lane, uint32_t element) { return wmma::row_of(lane, element); }
    KILN_INLINE kiln_gfx11_row row(const kiln_vector *vectors) {
        const uint32_t *l = vectors[0].words, *h = vectors[1].words;
        return {l[0], l[1], l[2], l[3], h[0], h[1], h[2], h[3]};
    }
    KILN_INLINE sums multiply(const kiln_vector *a, const kiln_vector *weights, sums sum) {
        return wmma::multiply(row(a), row(weights), 0, sum);
    }
};

KILN_ENTRY(gemm_w4a16_mma_few, kiln_gemm_w4a16_args) {
    gemm_w4a16_few<few>(args);
}

#endif
