/* gemm_int8 for gfx90a: the matrix units of gemm_int8_amd.h, v_mfma 32x32x8 and 16x16x16 of int8. A lane's 16 codes of
 * a row are its part of four products. */
#include "kernels/common/tuned.h"
#include "kernels/gemm_int8/gemm_int8_portable.h"

#include "kernels/arch/gfx90a.h"
#include "kernels/common/matmul/w8a8_amd.h"
#include "kernels/common/matmul/w8a8_amd_rows.h"

KILN_TUNED_PARTS(f32 f16 bf16)
KILN_SHAPE(gemm_int8_mma_large, 128, 128, 128, 43008, 100)
KILN_STAGES(gemm_int8_mma_large, 1)
KILN_SHAPE(gemm_int8_mma_small, 64, 64, 128, 21504, 50)
KILN_STAGES(gemm_int8_mma_small, 1)
KILN_SHAPE(gemm_int8_mma_rows_16, 16, 16, 128, 0, 100)

struct tile : mfma_tile, codes_plain {
    enum : uint32_t { DIES = 1, PRODUCTS = 4 };
    typedef int32_t sum;
    typedef kiln_gfx90a_sums_i32 sums;
    KILN_INLINE sums multiply(const fragment &a, const fragment &b, uint32_t product, sums sum) {
        return kiln_gfx90a_mfma_i8(a.words[product], b.words[product], sum);
    }
};

struct few : mfma_rows, codes_plain {
    enum : uint32_t { PRODUCTS = 4 };
    typedef int32_t sum;
    typedef kiln_gfx90a_sums_16_i32 sums;
    KILN_INLINE sums multiply(const taken &a, const taken &b, uint32_t product, sums sum) {
        return kiln_gfx90a_mfma_16_i8(a.of[0].words[product], b.of[0].words[product], sum);
    }
};

#include "kernels/gemm_int8/gemm_int8_amd.h"
