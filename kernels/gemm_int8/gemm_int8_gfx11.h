/* gemm_int8 for gfx11: the matrix unit of gemm_int8_amd.h, v_wmma 16x16x16 of int8. */
#ifndef KILN_KERNELS_GEMM_INT8_GFX11_H
#define KILN_KERNELS_GEMM_INT8_GFX11_H

#include "kernels/common/tuned.h"
#include "kernels/gemm_int8/gemm_int8_portable.h"

#include "kernels/arch/gfx11.h"
#include "kernels/common/matmul/w8a8_amd.h"
#include "kernels/common/matmul/w8a8_amd_rows.h"

struct unit : wmma_gfx11, codes_plain {
    enum : uint32_t { PRODUCTS = 2 };
    typedef int32_t sum;
    typedef kiln_gfx11_sums_i32 sums;
    KILN_INLINE sums multiply(const fragment &a, const fragment &b, uint32_t product, sums sum) {
        return kiln_gfx11_wmma_i8(a.of[product].words, b.of[product].words, sum);
    }
};

typedef unit tile;

/* The 16 codes of a lane are one product. */
struct few : unit {
    enum : uint32_t { PRODUCTS = 1 };
    KILN_INLINE sums multiply(const taken &a, const taken &b, uint32_t, sums sum) {
        return kiln_gfx11_wmma_i8(a.of[0].words, b.of[0].words, sum);
    }
};

#include "kernels/gemm_int8/gemm_int8_amd.h"

#endif
