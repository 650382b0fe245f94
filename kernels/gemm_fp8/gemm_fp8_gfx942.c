/* gemm_fp8 for gfx942: the matrix units of gemm_fp8_amd.h, v_mfma 32x32x16 and 16x16x32 of E4M3 FNUZ, for which OCP's
 * codes are made FNUZ's of half the number on their way there (the bits are the same, but for -0 and NaN). A lane's 16
 * codes of a row are its part of two products. */
#include "kernels/common/tuned.h"
#include "kernels/gemm_fp8/gemm_fp8_portable.h"

#include "kernels/arch/gfx942.h"
#include "kernels/common/matmul/w8a8_amd.h"
#include "kernels/common/matmul/w8a8_amd_rows.h"

KILN_TUNED_PARTS(f32 f16 bf16)
KILN_SHAPE(gemm_fp8_mma_large, 128, 128, 128, 43008, 100)
KILN_STAGES(gemm_fp8_mma_large, 1)
KILN_SHAPE(gemm_fp8_mma_small, 64, 64, 128, 21504, 50)
KILN_STAGES(gemm_fp8_mma_small, 1)
KILN_SHAPE(gemm_fp8_mma_rows_16, 16, 16, 128, 0, 100)

struct tile : mfma_tile, codes_fnuz {
    enum : uint32_t { DIES = 8, PRODUCTS = 2 };
    typedef float sum;
    typedef kiln_gfx90a_sums sums;
    KILN_INLINE sums multiply(const fragment &a, const fragment &b, uint32_t product, sums sum) {
        return kiln_gfx942_mfma_fnuz(a.words + 2 * product, b.words + 2 * product, sum);
    }
};

struct few : mfma_rows, codes_fnuz {
    enum : uint32_t { PRODUCTS = 2 };
    typedef float sum;
    typedef kiln_gfx90a_sums_16 sums;
    KILN_INLINE sums multiply(const taken &a, const taken &b, uint32_t product, sums sum) {
        return kiln_gfx942_mfma_16_fnuz(a.of[0].words + 2 * product, b.of[0].words + 2 * product, sum);
    }
};

#include "kernels/gemm_fp8/gemm_fp8_amd.h"
