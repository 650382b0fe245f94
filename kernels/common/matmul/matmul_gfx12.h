/* gfx12's matrix unit for products (matmul_amd.h) of 16-bit numbers, v_wmma 16x16x16. */
#ifndef KILN_KERNELS_COMMON_MATMUL_MATMUL_GFX12_H
#define KILN_KERNELS_COMMON_MATMUL_MATMUL_GFX12_H

#include "kernels/arch/gfx12.h"
#include "kernels/common/matmul/matmul_amd.h"
#include "kernels/common/matmul/matmul_sums_amd.h"

template <bool BF16> struct wmma : sums_gfx12 {
    enum : uint32_t { DIES = 1, PRODUCTS = 1 };
    typedef kiln_gfx12_sums sums;
    typedef kiln_gfx12_row fragment;
    KILN_INLINE fragment load(const kiln_vector *row, uint32_t lane) {
        return __builtin_bit_cast(fragment, row[lane % SIDE * ROW_PITCH + lane / SIDE]);
    }
    KILN_INLINE sums multiply(fragment a, fragment b, uint32_t, sums sum) {
        return BF16 ? kiln_gfx12_wmma_bf16(a, b, sum) : kiln_gfx12_wmma_f16(a, b, sum);
    }
};

#endif
