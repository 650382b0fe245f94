/* gemm_fp8 for gfx90a, whose matrix units have no E4M3: those of gemm_fp8_amd.h are v_mfma 32x32x8 and 16x16x16 of f16,
 * in which E4M3 is exact. A lane's 8 numbers of a row are its part of two products. */
#include "kernels/common/tuned.h"
#include "kernels/gemm_fp8/gemm_fp8_portable.h"

#include "kernels/arch/gfx90a.h"
#include "kernels/common/matmul/w8a8_amd.h"
#include "kernels/common/matmul/w8a8_amd_rows.h"

KILN_TUNED_PARTS(f32 f16 bf16)
KILN_SHAPE(gemm_fp8_mma_large, 128, 128, 128, 43008, 100)
KILN_STAGES(gemm_fp8_mma_large, 1)
KILN_SHAPE(gemm_fp8_mma_small, 64, 64, 128, 21504, 50)
KILN_STAGES(gemm_fp8_mma_small, 1)
KILN_SHAPE(gemm_fp8_mma_rows_16, 16, 16, 128, 0, 100)

struct tile : mfma_tile, codes_f16 {
    enum : uint32_t { DIES = 1, PRODUCTS = 2 };
    typedef float sum;
    typedef kiln_gfx90a_sums sums;
    KILN_INLINE sums multiply(const fragment &a, const fragment &b, uint32_t product, sums sum) {
        return kiln_gfx90a_mfma_f16(a.words + 2 * product, b.words + 2 * product, sum);
    }
};

struct few : mfma_rows, codes_f16 {
    enum : uint32_t { PRODUCTS = 4 };
    typedef float sum;
    typedef kiln_gfx90a_sums_16 sums;
    KILN_INLINE sums multiply(const taken &a, const taken &b, uint32_t product, sums sum) {
        return kiln_gfx90a_mfma_16_f16(a.of[product / 2].words + product % 2 * 2,
                                       b.of[product / 2].words + product % 2 * 2, sum);
    }
};

#include "kernels/gemm_fp8/gemm_fp8_amd.h"
