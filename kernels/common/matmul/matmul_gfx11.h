/* gfx11's matrix unit for products (matmul_amd.h) of 16-bit numbers, v_wmma 16x16x16. Both halves of a wave read the
 * same rows. */
#ifndef KILN_KERNELS_COMMON_MATMUL_MATMUL_GFX11_H
#define KILN_KERNELS_COMMON_MATMUL_MATMUL_GFX11_H

#include "kernels/arch/gfx11.h"
#include "kernels/common/matmul/matmul_amd.h"
#include "kernels/common/matmul/matmul_sums_amd.h"

template <bool BF16> struct wmma : sums_gfx11 {
    enum : uint32_t { DIES = 1, PRODUCTS = 1 };
    typedef kiln_gfx11_sums sums;
    typedef kiln_gfx11_row fragment;
    KILN_INLINE fragment fragment_of(const kiln_vector *vectors) {
        const uint32_t *l = vectors[0].words, *h = vectors[1].words;
        return {l[0], l[1], l[2], l[3], h[0], h[1], h[2], h[3]};
    }
    KILN_INLINE fragment load(const kiln_vector *row, uint32_t lane) {
        const kiln_vector *own = row + lane % SIDE * ROW_PITCH, vectors[2] = {own[0], own[1]};
        return fragment_of(vectors);
    }
    KILN_INLINE sums multiply(fragment a, fragment b, uint32_t, sums sum) {
        return BF16 ? kiln_gfx11_wmma_bf16(a, b, sum) : kiln_gfx11_wmma_f16(a, b, sum);
    }
};

#endif
