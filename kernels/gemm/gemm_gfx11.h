/* gemm for gfx11, f16 and bf16: gemm_mma_large is tiles of 128 x 128 elements of d, 64 x 32 by a wave, gemm_mma_small
 * of 64 x 64, 32 x 16 by a wave, by v_wmma 16x16x16; gemm_amd.h tells the rest. Both halves of a wave read the same
 * rows. */
#ifndef KILN_KERNELS_GEMM_GFX11_H
#define KILN_KERNELS_GEMM_GFX11_H

#include "kernels/arch/gfx10.h"
#include "kernels/arch/gfx11.h"
#include "kernels/gemm/gemm_amd.h"

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

/* For up to 16 rows, of bf16: the same, whose halves tell each other what they have loaded. */
struct few {
    enum : uint32_t { WAVE = 32, ELEMENTS = 8, PARTS = 2 };
    typedef kiln_gfx11_sums sums;
    KILN_INLINE uint32_t row_of(uint32_t lane, uint32_t element) { return 2 * element + lane / 16; }
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
    gemm_mma<wmma, 128, 128, 64, 32>(args);
}

KILN_ENTRY(gemm_mma_small, kiln_gemm_args) {
    gemm_mma<wmma, 64, 64, 32, 16>(args);
}

#endif
