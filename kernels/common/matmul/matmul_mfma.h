/* CDNA's matrix unit for products (matmul_amd.h) of 16-bit numbers, v_mfma 32x32x8. A lane's 16 bytes of a row of each
 * factor are its part of two products: k is in another order there, the same for both factors. */
#ifndef KILN_KERNELS_COMMON_MATMUL_MATMUL_MFMA_H
#define KILN_KERNELS_COMMON_MATMUL_MATMUL_MFMA_H

#include "kernels/arch/gfx90a.h"
#include "kernels/common/matmul/matmul_amd.h"
#include "kernels/common/matmul/matmul_sums_amd.h"

struct mfma_wave : sums_mfma_32 {
    typedef kiln_vector fragment;
    KILN_INLINE fragment load(const kiln_vector *row, uint32_t lane) {
        return row[lane % SIDE * ROW_PITCH + lane / SIDE];
    }
};

template <uint32_t CHIP_DIES, bool BF16> struct mfma : mfma_wave {
    enum : uint32_t { DIES = CHIP_DIES, PRODUCTS = 2 };
    typedef kiln_gfx90a_sums sums;
    KILN_INLINE sums multiply(const fragment &a, const fragment &b, uint32_t product, sums sum) {
        if (BF16) return kiln_gfx90a_mfma_bf16(a.words + 2 * product, b.words + 2 * product, sum);
        return kiln_gfx90a_mfma_f16(a.words + 2 * product, b.words + 2 * product, sum);
    }
};

#endif
