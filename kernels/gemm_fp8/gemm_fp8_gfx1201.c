/* gemm_fp8 for gfx1201: gemm_fp8_gfx12.h tells the unit, gemm_fp8_amd.h the tiles. */
#include "kernels/gemm_fp8/gemm_fp8_gfx12.h"

KILN_TUNED_PARTS(f32 f16 bf16)
KILN_SHAPE(gemm_fp8_mma_large, 128, 128, 128, 43008, 100)
KILN_STAGES(gemm_fp8_mma_large, 1)
KILN_SHAPE(gemm_fp8_mma_small, 64, 64, 128, 21504, 50)
KILN_STAGES(gemm_fp8_mma_small, 1)
KILN_SHAPE(gemm_fp8_mma_rows_16, 16, 16, 128, 0, 100)
