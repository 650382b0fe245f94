/* gemm_fp8 for gfx11, whose matrix units have no E4M3: that of gemm_fp8_amd.h is v_wmma 16x16x16 of f16, in which E4M3
 * is exact. */
#ifndef KILN_KERNELS_GEMM_FP8_GFX11_H
#define KILN_KERNELS_GEMM_FP8_GFX11_H

#include "kernels/common/tuned.h"
#include "kernels/gemm_fp8/gemm_fp8_portable.h"

#include "kernels/arch/gfx11.h"
#include "kernels/common/matmul/w8a8_amd.h"
#include "kernels/common/matmul/w8a8_amd_rows.h"

struct unit : wmma_gfx11, codes_f16 {
    enum : uint32_t { PRODUCTS = 1 };
    typedef float sum;
    typedef kiln_gfx11_sums sums;
    template <class sixteen> KILN_INLINE sums multiply(const sixteen &a, const sixteen &b, uint32_t, sums sum) {
        return kiln_gfx11_wmma_f16(__builtin_bit_cast(kiln_gfx11_row, a), __builtin_bit_cast(kiln_gfx11_row, b), sum);
    }
};

typedef unit tile;
typedef unit few;

#include "kernels/gemm_fp8/gemm_fp8_amd.h"

#endif
