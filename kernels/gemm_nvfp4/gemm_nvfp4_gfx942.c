/* gemm_nvfp4 for gfx942: gemm_nvfp4_mfma.h tells the tiles. */
#define MFMA_DIES 8
#include "kernels/gemm_nvfp4/gemm_nvfp4_mfma.h"

KILN_TUNED_PARTS(f32 f16 bf16)
KILN_SHAPE(gemm_nvfp4_mma_large, 128, 128, 32, 20480, 100)
KILN_STAGES(gemm_nvfp4_mma_large, 2)
KILN_SHAPE(gemm_nvfp4_mma_small, 64, 64, 32, 10240, 50)
KILN_STAGES(gemm_nvfp4_mma_small, 2)
