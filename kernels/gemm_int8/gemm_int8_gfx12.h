/* gemm_int8 for gfx12: the matrix unit of gemm_int8_amd.h, v_wmma 16x16x16 of int8. A lane's 16 codes of a row
 * are its part of two products. */
#ifndef KILN_KERNELS_GEMM_INT8_GFX12_H
#define KILN_KERNELS_GEMM_INT8_GFX12_H

#include "kernels/common/tuned.h"
#include "kernels/gemm_int8/gemm_int8_portable.h"

#include "kernels/arch/gfx12.h"
#include "kernels/common/matmul/w8a8_amd.h"
#include "kernels/common/matmul/w8a8_amd_rows.h"

struct unit : wmma_gfx12, codes_plain {
    enum : uint32_t { PRODUCTS = 2 };
    typedef int32_t sum;
    typedef kiln_gfx12_sums_i32 sums;
    KILN_INLINE sums multiply(const kiln_vector &a, const kiln_vector &b, uint32_t product, sums sum) {
        return kiln_gfx12_wmma_i8(a.words + 2 * product, b.words + 2 * product, sum);
    }
    KILN_INLINE sums multiply(const taken &a, const taken &b, uint32_t product, sums sum) {
        return multiply(a.of[0], b.of[0], product, sum);
    }
};

typedef unit tile;
typedef unit few;

#include "kernels/gemm_int8/gemm_int8_amd.h"

#endif
