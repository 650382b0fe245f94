/* gemm_nvfp4 for gfx1100: gemm_nvfp4_gfx11.h tells the tiles. */
#include "kernels/gemm_nvfp4/gemm_nvfp4_gfx11.h"

KILN_TUNED_PARTS(f32 f16 bf16)
KILN_SHAPE(gemm_nvfp4_mma_large, 128, 128, 32, 20480, 100)
KILN_STAGES(gemm_nvfp4_mma_large, 2)
KILN_SHAPE(gemm_nvfp4_mma_small, 64, 64, 32, 10240, 50)
KILN_STAGES(gemm_nvfp4_mma_small, 2)
